// Memory of the user that is made known beforehand.
#include "driver/registrations.hpp"

#include <limits>
#include <memory>
#include <string>

#include "core/text.hpp"
#include "driver/allocations.hpp"
#include "driver/interface.hpp"
#include "network/lasting_memory.hpp"
#include "network/shm/kernel_copy.hpp"
#include "network/shm/registered.hpp"
#include "network/shm/shm_poe.hpp"

namespace unisono::driver {

Registration::Registration(const Context* context, const std::byte* memory, std::uint64_t bytes)
    : memory_(memory), bytes_(bytes) {
  if (memory == nullptr && bytes != 0) {
    throw Error(ErrorCode::kInvalidArgument, formatted("register: {} bytes at a null address", bytes));
  }
  if (bytes > std::numeric_limits<std::uintptr_t>::max() - reinterpret_cast<std::uintptr_t>(memory)) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("register: {} bytes reach beyond the end of the address space", bytes));
  }
  const std::shared_ptr<Endpoint> endpoint = context == nullptr ? nullptr : context->endpoint();
  if (bytes == 0) return;
  if (endpoint == nullptr) {
    allocated_ = Allocations::instance().hold(memory, bytes);
  } else if (shm::ShmPoe* const shared = endpoint->poe->shared_memory(); shared != nullptr) {
    allocated_ = shared->arena()->reaches(memory, bytes);
  }
  kernel_copies_ = shm::KernelCopy::tries_own(memory, bytes);
  shm::RegisteredMemory::instance().add(memory, bytes, kernel_copies_);
  try {
    LastingMemory::instance().add(memory, bytes);
  } catch (...) {
    shm::RegisteredMemory::instance().remove(memory, bytes, kernel_copies_);
    throw;
  }
}

Registration::~Registration() {
  if (bytes_ == 0) return;
  LastingMemory::instance().remove(memory_, bytes_);
  shm::RegisteredMemory::instance().remove(memory_, bytes_, kernel_copies_);
}

void Registration::describe(unisono_registration_state* state) const {
  unisono_registration_state made{};
  made.memory = memory_;
  made.bytes = bytes_;
  made.kernel_copies = kernel_copies_ ? 1 : 0;
  made.allocated = allocated_ ? 1 : 0;
  export_struct(made, state, "unisono_registration_state");
}

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

unisono_result unisono_register(unisono_context* context, const void* memory, uint64_t bytes,
                                unisono_registration** registration) {
  return guarded([&] {
    unisono_registration*& result = output(registration, "registration");
    result = nullptr;
    const std::shared_ptr<Context> own = context == nullptr ? nullptr : context_of(context);
    auto made = std::make_shared<Registration>(own.get(), static_cast<const std::byte*>(memory), bytes);
    result = handle_of<unisono_registration>(Registrations::instance().add(std::move(made)));
  });
}

unisono_result unisono_registration_describe(const unisono_registration* registration,
                                             unisono_registration_state* state) {
  return guarded([&] {
    check_struct(state, "unisono_registration_state");
    Registrations::instance()
        .get(number_of(registration), "registration", ErrorCode::kInvalidArgument)
        ->describe(state);
  });
}

unisono_result unisono_deregister(unisono_registration* registration) {
  return guarded([&] {
    if (registration == nullptr) return;
    Registrations::instance().take(number_of(registration), "registration", ErrorCode::kInvalidArgument);
  });
}
