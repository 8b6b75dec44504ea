// Forms of calls beside blocking and in flight: with a callback, persistent, in groups.
#include "driver/callbacks.hpp"
#include "driver/group.hpp"
#include "driver/interface.hpp"

using namespace unisono;          // NOLINT(google-build-using-namespace): the functions below are extern "C"
using namespace unisono::driver;  // NOLINT(google-build-using-namespace)

extern "C" {

unisono_result unisono_on_complete(unisono_request* request, unisono_completion function, void* context) {
  return guarded([&] {
    if (function == nullptr) throw Error(ErrorCode::kInvalidArgument, "the function to call on completion is null");
    request_of(request)->on_complete([request, function, context](const CallResult& result) {
      last_error() = result.code == ErrorCode::kOk ? std::string() : result.message;
      function(request, static_cast<unisono_result>(result.code), context);
    });
  });
}

unisono_result unisono_request_offload(unisono_request* request) {
  return guarded([&] {
    const auto own = request_of(request);
    if (!own->flight()->known()) own->communicator()->context->offload();
  });
}

unisono_result unisono_prepare(unisono_communicator* communicator, const unisono_call* call,
                               unisono_request** request) {
  return guarded([&] {
    unisono_request*& result = output(request, "request");
    result = nullptr;
    const auto made = make_request(communicator_of(communicator), output(call, "call"), true);
    result = handle_of<unisono_request>(Requests::instance().add(made));
  });
}

unisono_result unisono_request_start(unisono_request* request) {
  return guarded([&] { request_of(request)->start(); });
}

unisono_result unisono_group_begin(unisono_communicator* communicator) {
  return guarded([&] { Group::begin(*communicator_of(communicator)); });
}

unisono_result unisono_group_end(unisono_communicator* communicator) {
  return guarded([&] { Group::end(*communicator_of(communicator)); });
}

}  // extern "C"
