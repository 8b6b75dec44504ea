// What kernels do at stream ports.
#include <atomic>

#include "driver/callbacks.hpp"
#include "driver/interface.hpp"
#include "unisono/unisono.h"

namespace unisono::driver {
namespace {

std::atomic<bool (*)()> yield_of_kernels{nullptr};

bool yields() {
  const auto yield = yield_of_kernels.load(std::memory_order_acquire);
  return yield != nullptr && yield();
}

/// Moves bytes as `step(at_most)` does, in a kernel without keeping other kernels from going on. `whole`: all that
/// there are; else it ends with what is there when the time is over.
template <class Step>
std::uint64_t move_for(std::chrono::microseconds at_most, Step&& step) {
  std::uint64_t moved = step(std::chrono::microseconds(0));
  if (moved != 0 || at_most.count() == 0) return moved;
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (yields()) {
    moved = step(std::chrono::microseconds(0));
    if (moved != 0 || std::chrono::steady_clock::now() >= end) return moved;
  }
  return step(at_most);
}

/// Moves bytes by `step(done, at_most)`, which returns how many it has moved.
template <class Step>
void move(const Context& context, std::uint32_t port, std::uint64_t bytes, double seconds, std::uint64_t& done,
          const char* what, Step&& step) {
  done = 0;
  const bool whole = seconds == UNISONO_WHOLE;
  const std::chrono::microseconds at_most =
      whole ? context.endpoint()->engine->settings().timeout : duration_of(seconds, "seconds", "only look");
  const auto end = std::chrono::steady_clock::now() + at_most;
  do {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - std::chrono::steady_clock::now());
    const auto most = whole ? at_most : std::max(left, std::chrono::microseconds(0));
    const std::uint64_t moved = move_for(most, [&](std::chrono::microseconds piece) { return step(done, piece); });
    done += moved;
    if (!whole && moved == 0) return;
    if (whole && moved == 0 && done != bytes) {
      throw Error(ErrorCode::kTimeout,
                  std::string(what) + " stream port " + std::to_string(port) + ": timed out after " +
                      std::to_string(at_most.count() / 1000) + " ms without an element; " + std::to_string(done) +
                      " of " + std::to_string(bytes) + " bytes have gone through. Is there a call with this port?");
    }
  } while (done != bytes);
}

template <class T>
std::span<T> bytes_of_user(T* data, std::uint64_t bytes) {
  if (data == nullptr && bytes != 0) throw Error(ErrorCode::kInvalidArgument, "the place of the elements is null");
  return {data, bytes};
}

}  // namespace

void set_yield(bool (*yield)()) { yield_of_kernels.store(yield, std::memory_order_release); }

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_stream_write(unisono_context* context, uint32_t port, const void* data, uint64_t bytes,
                                    double seconds, uint64_t* done) {
  return guarded([&] {
    uint64_t& written = output(done, "number of bytes");
    if (seconds != 0) Callbacks::refuse("unisono_stream_write");
    const auto own = context_of(context);
    const auto all = bytes_of_user(static_cast<const std::byte*>(data), bytes);
    const auto endpoint = own->endpoint();
    move(*own, port, bytes, seconds, written, "write to", [&](std::uint64_t from, std::chrono::microseconds at_most) {
      return endpoint->engine->write_stream(port, all.subspan(from), at_most);
    });
  });
}

unisono_result unisono_stream_read(unisono_context* context, uint32_t port, void* data, uint64_t bytes, double seconds,
                                   uint64_t* done) {
  return guarded([&] {
    uint64_t& read = output(done, "number of bytes");
    if (seconds != 0) Callbacks::refuse("unisono_stream_read");
    const auto own = context_of(context);
    const auto all = bytes_of_user(static_cast<std::byte*>(data), bytes);
    const auto endpoint = own->endpoint();
    move(*own, port, bytes, seconds, read, "read from", [&](std::uint64_t from, std::chrono::microseconds at_most) {
      return endpoint->engine->read_stream(port, all.subspan(from), at_most);
    });
  });
}

}  // extern "C"
