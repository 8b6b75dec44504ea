// What engines do that have no way of their own.
#include "core/text.hpp"
#include "engine/admit.hpp"
#include "engine/engine.hpp"
#include "engine/interrupt.hpp"
#include "engine/native_engine.hpp"

namespace unisono {

using namespace cclo;  // NOLINT(google-build-using-namespace): this file is the blocks' outer shell

Served Engine::serve(Bell& /*bell*/, bool /*watched*/, std::chrono::microseconds at_most) {
  return drive(at_most) ? Served::kIdle : Served::kBusy;
}

std::uint64_t Engine::run(const CallRequest& request) {
  const CallId id = submit_awaited(request);
  CallResult result = wait(id, Interrupt::kInterval);
  while (!result.complete) {
    if (Interrupt::current().pending()) revoke(request.communicator, kInterrupted);
    result = wait(id, Interrupt::kInterval);
  }
  forget(id);
  if (result.code != ErrorCode::kOk) throw Error(result.code, result.message, result.still_written);
  if (request.status != nullptr) *request.status = result.status;
  return result.received_bytes;
}

void cclo::refuse_recovery() {
  throw Error(ErrorCode::kUnsupported,
              "this engine cannot go on after the end of a rank: agree, shrink and who has failed are of the native "
              "engine (UNISONO_PLATFORM=native)");
}

CallId Engine::submit_at_once(const Request& /*request*/) { return 0; }

std::uint64_t Engine::write_stream(std::uint32_t /*port*/, std::span<const std::byte> /*bytes*/,
                                   std::chrono::microseconds /*at_most*/) {
  throw Error(ErrorCode::kUnsupported, "the streams of this engine are those of kernels on its device");
}

std::uint64_t Engine::read_stream(std::uint32_t port, std::span<std::byte> bytes, std::chrono::microseconds at_most) {
  return write_stream(port, bytes, at_most);
}

std::optional<CallResult> Engine::take(CallId /*id*/) { return std::nullopt; }

Agreed Engine::agree(std::uint32_t /*communicator*/, std::uint32_t /*purpose*/, std::uint64_t /*value*/,
                     std::uint64_t /*number*/, std::chrono::microseconds /*timeout*/) {
  refuse_recovery();
}

std::vector<bool> Engine::gone(std::uint32_t /*communicator*/) { refuse_recovery(); }

std::optional<MessageStatus> Engine::look_for(const CallRequest& request) {
  throw Error(ErrorCode::kUnsupported, "recv: " + wildcard_in_hardware(request));
}

std::shared_ptr<FastPath> Engine::fast_path(std::uint32_t /*communicator*/) const { return nullptr; }

}  // namespace unisono
