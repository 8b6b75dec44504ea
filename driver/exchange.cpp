// A send and a receive at once.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "driver/callbacks.hpp"
#include "driver/front_door.hpp"
#include "driver/group.hpp"
#include "driver/interface.hpp"
#include "engine/interrupt.hpp"

namespace unisono::driver {

namespace {

/// One of the two calls, checked.
std::unique_ptr<CheckedCall> half(const Communicator& communicator, const unisono_call& given, Collective needed) {
  const std::string name = name_of(needed);
  if (given.collective != static_cast<int>(needed)) {
    throw Error(ErrorCode::kInvalidArgument, "sendrecv: the call given as " + name + " is of collective " +
                                                 std::to_string(given.collective) + "; allowed is " + name + " (" +
                                                 std::to_string(static_cast<int>(needed)) + ")");
  }
  auto checked = std::make_unique<CheckedCall>();
  prepare(communicator, given, *checked);
  return checked;
}

void check_disjoint(const Binding& src, const Binding& dst) {
  const auto a = reinterpret_cast<std::uintptr_t>(src.data);
  const auto b = reinterpret_cast<std::uintptr_t>(dst.data);
  if (src.bytes == 0 || dst.bytes == 0 || a >= b + dst.bytes || b >= a + src.bytes) return;
  throw Error(ErrorCode::kOverlappingBuffers, "sendrecv: src (" + std::to_string(src.bytes) + " bytes) and dst (" +
                                                  std::to_string(dst.bytes) + " bytes) overlap; pass disjoint buffers");
}

/// Waits for a flight's end, and ends the communicator if the caller gives up.
CallResult outcome(const Communicator& communicator, Flight& flight) {
  for (;;) {
    if (const std::optional<CallResult> result = flight.wait_at_most(cclo::Interrupt::kInterval)) return *result;
    if (!cclo::Interrupt::current().pending()) continue;
    const Error given_up(ErrorCode::kRevoked, "the call was interrupted by its caller");
    communicator.context->endpoint()->engine->revoke(communicator.number, given_up.what());
    flight.wait();
    throw given_up;
  }
}

/// A receive alone. Returns the elements that came.
std::int64_t receive(unisono_communicator* communicator, const std::shared_ptr<Communicator>& own,
                     const unisono_call& given) {
  std::uint64_t bytes = 0;
  if (given.struct_size == sizeof given && given.collective == UNISONO_RECV &&
      run_at_once(communicator, &given, bytes)) {
    return whole_elements(bytes, bytes_of(static_cast<Datatype>(given.datatype)));
  }
  const unisono_call imported = import_struct(&given, "unisono_call");
  const std::unique_ptr<CheckedCall> checked = half(*own, imported, Collective::kRecv);
  resolve_before(*checked);
  return whole_elements(run_to_end(*own, checked->request), checked->element_bytes);
}

/// Both calls in flight together. Returns the bytes that came.
std::uint64_t run_together(const std::shared_ptr<Communicator>& communicator, std::unique_ptr<CheckedCall> send,
                           std::unique_ptr<CheckedCall> recv) {
  Request receiving(communicator, std::move(recv), false);
  Request sending(communicator, std::move(send), false);
  receiving.submit();
  try {
    sending.submit();
  } catch (const Error& error) {
    // The receive has the buffer, and may wait for a peer that waits for this message.
    communicator->context->endpoint()->engine->revoke(communicator->number,
                                                      std::string("the send of a sendrecv failed: ") + error.what());
    receiving.flight()->wait();
    throw;
  }
  CallResult received;
  try {
    received = outcome(*communicator, *receiving.flight());
  } catch (const Error&) {
    sending.flight()->wait();
    throw;
  }
  const CallResult sent = outcome(*communicator, *sending.flight());
  throw_if_failed(received);
  throw_if_failed(sent);
  return received.received_bytes;
}

}  // namespace

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_sendrecv(unisono_communicator* communicator, const unisono_call* send, const unisono_call* recv,
                                int64_t* received) {
  return guarded([&] {
    Callbacks::refuse("unisono_sendrecv");
    const auto own = communicator_of(communicator);
    if (Group::of_this_thread(*own)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "sendrecv was called while a group of this communicator is open on this thread; start a send and a "
                  "recv, and wait for them after the group's end (unisono_group_end)");
    }
    if (send == nullptr) {
      const std::int64_t came = receive(communicator, own, output(recv, "recv"));
      if (received != nullptr) *received = came;
      return;
    }
    const unisono_call to_send = import_struct(&output(send, "send"), "unisono_call");
    const unisono_call to_receive = import_struct(&output(recv, "recv"), "unisono_call");
    std::unique_ptr<CheckedCall> sends = half(*own, to_send, Collective::kSend);
    std::unique_ptr<CheckedCall> receives = half(*own, to_receive, Collective::kRecv);
    check_disjoint(sends->request.src, receives->request.dst);
    resolve_before(*sends);
    resolve_before(*receives);
    const std::uint64_t element = receives->element_bytes;
    // A short message is on its way at once, and waits for nobody.
    std::uint64_t none = 0;
    const std::uint64_t bytes = run_at_once(communicator, send, none)
                                    ? run_to_end(*own, receives->request)
                                    : run_together(own, std::move(sends), std::move(receives));
    if (received != nullptr) *received = whole_elements(bytes, element);
  });
}

}  // extern "C"
