#include "kernels/fibre.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define UNISONO_FIBRES_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNISONO_FIBRES_ASAN
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define UNISONO_FIBRES_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNISONO_FIBRES_TSAN
#endif
#endif
#ifdef UNISONO_FIBRES_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef UNISONO_FIBRES_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace unisono::kernels {

namespace context = boost::context::detail;

/// What a fibre begins in.
struct FibreEntry {
  static void run(context::transfer_t from) {
    auto* self = static_cast<Fibre*>(from.data);
    self->resumer_ = from.fctx;
    Fibre::start(self);
  }
};

Fibre::Fibre(std::function<void()> body, std::size_t stack_bytes) : body_(std::move(body)) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  bytes_ = (stack_bytes + page - 1) / page * page + page;
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kOutOfMemory, formatted("no address space for the {} bytes of a kernel's stack", bytes_));
  }
  memory_ = static_cast<std::byte*>(memory);
  mprotect(memory_, page, PROT_NONE);  // a stack that overflows ends the program, and overwrites nothing
  context_ = context::make_fcontext(memory_ + bytes_, bytes_ - page, FibreEntry::run);
#ifdef UNISONO_FIBRES_TSAN
  tsan_ = __tsan_create_fiber(0);
#endif
}

Fibre::~Fibre() {
#ifdef UNISONO_FIBRES_TSAN
  __tsan_destroy_fiber(tsan_);
#endif
  munmap(memory_, bytes_);
}

// A fibre may go on in another thread, and in the middle of handling an exception.
void Fibre::exchange_handled() {
  auto* const of_thread = reinterpret_cast<Handled*>(abi::__cxa_get_globals());
  std::swap(*of_thread, handled_);
}

void Fibre::resume() {
  exchange_handled();
#ifdef UNISONO_FIBRES_TSAN
  resumer_tsan_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_, 0);
#endif
#ifdef UNISONO_FIBRES_ASAN
  __sanitizer_start_switch_fiber(&resumer_fake_stack_, memory_, bytes_);
#endif
  context_ = context::jump_fcontext(context_, this).fctx;
#ifdef UNISONO_FIBRES_ASAN
  __sanitizer_finish_switch_fiber(resumer_fake_stack_, nullptr, nullptr);
#endif
  exchange_handled();
}

void Fibre::suspend() {
#ifdef UNISONO_FIBRES_TSAN
  __tsan_switch_to_fiber(resumer_tsan_, 0);
#endif
#ifdef UNISONO_FIBRES_ASAN
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &fake_stack_, resumer_stack_, resumer_stack_bytes_);
#endif
  resumer_ = context::jump_fcontext(resumer_, nullptr).fctx;
#ifdef UNISONO_FIBRES_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_, &resumer_stack_, &resumer_stack_bytes_);
#endif
}

void Fibre::start(void* fibre) {
  auto& self = *static_cast<Fibre*>(fibre);
#ifdef UNISONO_FIBRES_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &self.resumer_stack_, &self.resumer_stack_bytes_);
#endif
  self.body_();
  self.body_ = nullptr;
  self.ended_ = true;
  self.suspend();
  __builtin_unreachable();
}

}  // namespace unisono::kernels
