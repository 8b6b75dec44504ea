#include "python/core/request.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <optional>

#include "python/core/completions.hpp"
#include "python/core/module.hpp"

namespace unisono::python {

namespace {

Outcome wait_slice(unisono_request* request, double seconds) {
  const WithoutGil released;
  Outcome outcome;
  outcome.code = unisono_wait_at_most(request, seconds, &outcome.complete);
  if (outcome.code != 0) outcome.complete = 1;
  outcome.note();
  return outcome;
}

/// Calls that nobody waits for any more but that still use their memory. Guarded by the GIL.
std::list<InFlight>& abandoned() {
  static auto* list = new std::list<InFlight>;
  return *list;
}

void release_completed() {
  {
    const EndedRequests ended = EndedRequests::take();
    const WithoutGil released;
    ended.free();
  }
  std::list<InFlight> mine;
  mine.swap(abandoned());
  for (auto call = mine.begin(); call != mine.end();) {
    bool ended = false;
    Outcome outcome;
    {
      const WithoutGil released;
      outcome.code = unisono_test(call->request, &outcome.complete);
      outcome.note();
      ended = outcome.complete != 0 || outcome.code != 0;
      if (ended) unisono_request_free(call->request);
    }
    keep_if_written(outcome, call->dst.owner());
    call = ended ? mine.erase(call) : std::next(call);
  }
  abandoned().splice(abandoned().end(), mine);
}

/// What is called on completion, by any thread, without the GIL.
void completed(unisono_request*, unisono_result, void* function) {
  if (PyGILState_GetThisThreadState() == nullptr) {  // no thread of Python: others need it for their progress
    return Completions::instance().add(static_cast<PyObject*>(function), Completions::Waits::kRefused);
  }
  const nb::gil_scoped_acquire held;
  const auto own = nb::steal<nb::object>(static_cast<PyObject*>(function));
  try {
    own();
  } catch (nb::python_error& error) {
    error.restore();
    PyErr_WriteUnraisable(own.ptr());
  }
}
void told_beside(unisono_request*, unisono_result, void* function) {
  Completions::instance().add(static_cast<PyObject*>(function), Completions::Waits::kAllowed);
}

/// A function of the C interface that waits for several requests, without the GIL. Failures of the calls themselves are
/// for each request to tell; `ended` says whether what is returned is one.
template <class Wait, class Ended>
void wait_for_several(Wait&& wait, Ended&& ended) {
  Outcome outcome;
  {
    const WithoutGil released;
    outcome.code = wait();
    if (outcome.code != 0) outcome.text = unisono_last_error();
  }
  if (outcome.code != 0 && !ended()) raise(outcome.code, outcome.text);
}

/// Position of one that has ended.
std::optional<std::size_t> wait_any(const std::vector<const Request*>& requests, double seconds) {
  const auto handles = handles_of(requests);
  std::size_t index = UNISONO_NONE;
  const bool none = std::all_of(handles.begin(), handles.end(), [](const auto* handle) { return handle == nullptr; });
  in_slices(seconds, [&](double slice) {
    wait_for_several([&] { return unisono_wait_any(handles.data(), handles.size(), slice, &index); },
                     [&] { return index != UNISONO_NONE; });
    return index != UNISONO_NONE || none;
  });
  return index == UNISONO_NONE ? std::nullopt : std::optional(index);
}

/// Positions of those that have ended.
std::vector<std::size_t> wait_some(const std::vector<const Request*>& requests, double seconds) {
  const auto handles = handles_of(requests);
  std::vector<std::size_t> indices(handles.size());
  std::size_t completed = 0;
  const bool none = std::all_of(handles.begin(), handles.end(), [](const auto* handle) { return handle == nullptr; });
  in_slices(seconds, [&](double slice) {
    wait_for_several(
        [&] { return unisono_wait_some(handles.data(), handles.size(), slice, indices.data(), &completed, nullptr); },
        [&] { return completed != 0; });
    return completed != 0 || none;
  });
  indices.resize(completed);
  return indices;
}

/// Whether all have ended. Their results are for each request to tell.
bool wait_all(const std::vector<const Request*>& requests, double seconds) {
  const auto handles = handles_of(requests);
  int complete = 0;
  return in_slices(seconds, [&](double slice) {
    std::vector<unisono_result> results(handles.size());
    wait_for_several(
        [&] { return unisono_wait_all(handles.data(), handles.size(), slice, &complete, results.data()); },
        [&] { return std::any_of(results.begin(), results.end(), [](unisono_result one) { return one != 0; }); });
    return complete != 0;
  });
}

}  // namespace

EndedRequests& EndedRequests::process() {
  static EndedRequests all;
  return all;
}

bool EndedRequests::add(unisono_request* request) {
  EndedRequests& all = process();
  if (all.count_ == all.handles_.size()) return false;
  all.handles_[all.count_++] = request;
  return true;
}

void EndedRequests::free() const {
  for (std::size_t i = 0; i < count_; ++i) unisono_request_free(handles_[i]);
}

void release_abandoned() {
  if (!abandoned().empty() || EndedRequests::any()) release_completed();
}

unisono_status empty_status() {
  unisono_status status{};
  status.struct_size = sizeof status;
  return status;
}

StatusTuple tuple_of(const unisono_status& status) {
  return {status.source, status.tag, status.count, status.bytes, status.datatype};
}

Request::~Request() {
  if (call_.request == nullptr) return;
  if (ended_ && !called_back_ && EndedRequests::add(call_.request)) return;
  abandoned().push_back(std::move(call_));
  release_completed();
}

bool Request::wait(double seconds) {
  return in_slices(seconds, [&](double slice) {
    const Outcome outcome = wait_slice(call_.request, slice);
    keep_if_written(outcome, call_.dst.owner());
    if (outcome.code != 0) raise(outcome.code, outcome.text);
    return ended_ = outcome.complete != 0;
  });
}

bool Request::test() {
  Outcome outcome;
  {
    const WithoutGil released;
    outcome.code = unisono_test(call_.request, &outcome.complete);
    outcome.note();
  }
  keep_if_written(outcome, call_.dst.owner());
  if (outcome.code != 0) raise(outcome.code, outcome.text);
  return ended_ = outcome.complete != 0;
}

std::int64_t Request::received() const {
  std::int64_t count = 0;
  call_library([&] { return unisono_request_count(call_.request, &count); });
  return count;
}

StatusTuple Request::status() const {
  unisono_status status = empty_status();
  call_library([&] { return unisono_request_status(call_.request, &status); });
  return tuple_of(status);
}

void Request::start() {
  ended_ = false;
  call_library([&] { return unisono_request_start(call_.request); });
}

void Request::offload() const {
  call_library([&] { return unisono_request_offload(call_.request); });
}

void Request::on_complete(const nb::callable& function, bool beside) {
  called_back_ = true;
  PyObject* const held = nb::object(function).release().ptr();  // until it has been called
  try {
    call_library([&] { return unisono_on_complete(call_.request, beside ? told_beside : completed, held); });
  } catch (...) {
    Py_DECREF(held);
    throw;
  }
}

std::vector<unisono_request*> handles_of(const std::vector<const Request*>& requests) {
  std::vector<unisono_request*> handles;
  handles.reserve(requests.size());
  for (const Request* request : requests) handles.push_back(request == nullptr ? nullptr : request->handle());
  return handles;
}

void bind_requests(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace): argument names

  nb::class_<Request>(module, "Request", "A call in flight.")
      .def("wait", &Request::wait, "seconds"_a,
           "Waits; whether the call has completed. Negative: its deadline bounds it.")
      .def("test", &Request::test, "Makes progress; whether the call has completed.")
      .def("start", &Request::start, "Starts a prepared call.")
      .def("offload", &Request::offload, "Has the helper thread make progress until the call has ended.")
      .def("on_complete", &Request::on_complete, "function"_a, "beside"_a = false,
           "Calls function() once, when the call has ended; beside: by a thread that is there for this.")
      .def_prop_ro("received", &Request::received, "Elements received by a completed recv.")
      .def("status", &Request::status, "What a completed recv has got: source, tag, elements, bytes, datatype.");

  module.def("wait_any", wait_any, "requests"_a, "seconds"_a, "Position of a request that has ended, or None.");
  module.def("wait_some", wait_some, "requests"_a, "seconds"_a, "Positions of those that have ended.");
  module.def("wait_all", wait_all, "requests"_a, "seconds"_a, "Whether all have ended.");
}

}  // namespace unisono::python
