// Receives that say what came, and probes.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "driver/callbacks.hpp"
#include "driver/front_door.hpp"
#include "driver/group.hpp"
#include "driver/interface.hpp"
#include "engine/admit.hpp"

namespace unisono::driver {

void export_status(const MessageStatus& came, std::uint64_t element_bytes, unisono_status* status) {
  if (status == nullptr) return;
  unisono_status made{};
  made.source = came.source;
  made.tag = came.tag;
  made.count = whole_elements(came.bytes, element_bytes);
  made.bytes = came.bytes;
  made.datatype = static_cast<int>(came.dtype);
  export_struct(made, status, "unisono_status");
}

namespace {

/// The elements of a message as its sender counts them.
std::uint64_t element_of(const MessageStatus& message) { return std::max<std::uint64_t>(1, bytes_of(message.dtype)); }

/// A probe, checked. It is a receive of no elements that takes nothing. `operation` is what the user called.
std::unique_ptr<CheckedCall> probe_of(const char* operation, const Communicator& communicator, std::int64_t source,
                                      std::int64_t tag, double timeout) {
  if (source != UNISONO_ANY_SOURCE && (source < 0 || source >= communicator.size)) {
    throw Error(ErrorCode::kInvalidRoot, std::string(operation) + ": source " + std::to_string(source) +
                                             " was given; the communicator has ranks 0 to " +
                                             std::to_string(communicator.size - 1) + ", and any source is " +
                                             std::to_string(UNISONO_ANY_SOURCE));
  }
  if (tag != UNISONO_ANY_TAG) {
    cclo::check_tag(tag, cclo::Refusal{operation}, kAnyTagToo);
  }
  unisono_call given{};
  given.struct_size = sizeof given;
  given.collective = UNISONO_RECV;
  given.datatype = UNISONO_BYTE;
  given.root = source;
  given.tag = tag;
  given.timeout_seconds = timeout;
  auto checked = std::make_unique<CheckedCall>();
  prepare(communicator, given, *checked);
  checked->request.probe = true;
  return checked;
}

}  // namespace

}  // namespace unisono::driver

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_recv(unisono_communicator* communicator, const unisono_call* recv, unisono_status* status) {
  return guarded([&] {
    if (status != nullptr) check_struct(status, "unisono_status");  // before a message is taken
    std::uint64_t bytes = 0;
    const unisono_call& call = output(recv, "recv");
    if (call.struct_size == sizeof call && call.collective == UNISONO_RECV && run_at_once(communicator, &call, bytes)) {
      const auto dtype = static_cast<Datatype>(call.datatype);
      export_status({static_cast<std::uint32_t>(call.root), static_cast<std::uint32_t>(call.tag), bytes, dtype},
                    bytes_of(dtype), status);
      return;
    }
    Callbacks::refuse("unisono_recv");
    const auto own = communicator_of(communicator);
    Group::refuse(*own, "unisono_recv");
    const unisono_call given = import_struct(&call, "unisono_call");
    if (given.collective != UNISONO_RECV) {
      throw Error(ErrorCode::kInvalidArgument, "recv: the call given is of collective " +
                                                   std::to_string(given.collective) + "; allowed is recv (" +
                                                   std::to_string(UNISONO_RECV) + ")");
    }
    CheckedCall checked;
    prepare(*own, given, checked);
    resolve_before(checked);
    MessageStatus came;
    checked.request.status = &came;
    run_to_end(*own, checked.request);
    export_status(came, checked.element_bytes, status);
  });
}

unisono_result unisono_probe(unisono_communicator* communicator, int64_t source, int64_t tag, double timeout_seconds,
                             unisono_status* status) {
  return guarded([&] {
    Callbacks::refuse("unisono_probe");
    const auto own = communicator_of(communicator);
    Group::refuse(*own, "unisono_probe");
    const auto checked = probe_of("probe", *own, source, tag, timeout_seconds);
    MessageStatus found;
    checked->request.status = &found;
    run_to_end(*own, checked->request);
    export_status(found, element_of(found), status);
  });
}

unisono_result unisono_iprobe(unisono_communicator* communicator, int64_t source, int64_t tag, int* found,
                              unisono_status* status) {
  return guarded([&] {
    int& answer = output(found, "answer");
    answer = 0;
    const auto own = communicator_of(communicator);
    const auto checked = probe_of("iprobe", *own, source, tag, 0);
    const auto message = own->context->endpoint()->engine->look_for(checked->request);
    if (!message) return;
    export_status(*message, element_of(*message), status);
    answer = 1;
  });
}

unisono_result unisono_request_status(unisono_request* request, unisono_status* status) {
  return guarded([&] {
    const auto own = request_of(request);
    export_status(own->status(), own->element_bytes(), &output(status, "status"));
  });
}

}  // extern "C"
