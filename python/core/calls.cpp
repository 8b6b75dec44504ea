// Contexts, communicators and calls: the C interface as Python objects.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/generated/spec.hpp"
#include "python/core/array_memory.hpp"
#include "python/core/completions.hpp"
#include "python/core/memory.hpp"
#include "python/core/module.hpp"
#include "python/core/ownership.hpp"
#include "python/core/quick.hpp"
#include "python/core/without_gil.hpp"
#include "unisono/kernels.h"
#include "unisono/unisono.h"

namespace unisono::python {

namespace {

void check(unisono_result result) {
  if (result != 0) raise(result, unisono_last_error());
}

/// A result with its text, taken before another call of this thread replaces the text.
struct Outcome {
  unisono_result code = 0;
  int complete = 0;
  std::string text;
  bool still_written = false;  ///< a stopped rank may still write to the destination

  /// To be called right after a call that failed.
  void note() {
    if (code == 0) return;
    text = unisono_last_error();
    still_written = unisono_last_error_still_written() != 0;
  }
};

/// Keeps a destination that a stopped rank may still write to for as long as this process lives. Requests are also let
/// go of while the interpreter ends, when there are no modules any more: then a reference that nobody gives back does.
void keep_if_written(const Outcome& outcome, nb::handle destination) noexcept {
  if (!outcome.still_written || !destination.is_valid() || destination.is_none()) return;
  try {
    nb::module_::import_("unisono.errors").attr("keep")(destination, outcome.text);
  } catch (...) {
    destination.inc_ref();
  }
}

/// Calls the engine with the GIL released; raises its error.
template <class Call>
void without_gil(Call&& call) {
  Outcome outcome;
  {
    const WithoutGil released;
    outcome.code = call();
    if (outcome.code != 0) outcome.text = unisono_last_error();
  }
  if (outcome.code != 0) raise(outcome.code, outcome.text);
}

/// How long a thread waits before it looks for signals.
constexpr double kSlice = 0.05;

Outcome wait_slice(unisono_request* request, double seconds) {
  const WithoutGil released;
  Outcome outcome;
  outcome.code = unisono_wait_at_most(request, seconds, &outcome.complete);
  if (outcome.code != 0) outcome.complete = 1;
  outcome.note();
  return outcome;
}

/// Calls `look(seconds)`, which returns whether it found what it waits for, until it has or `seconds` (negative:
/// unlimited) have passed, looking for signals in between.
template <class Look>
bool in_slices(double seconds, Look&& look) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    double slice = kSlice;
    bool last = false;
    if (seconds >= 0) {
      const double rest = seconds - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      last = rest <= slice;
      slice = std::fmin(slice, std::fmax(rest, 0));
    }
    if (look(slice)) return true;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (last) return false;
  }
}

/// A call in flight, with everything it uses.
struct InFlight {
  unisono_request* request = nullptr;
  Memory src;
  Memory dst;
  std::vector<Memory> arguments{};  ///< of a kernel
  std::vector<nb::object> used{};   ///< calls that were prepared for it, and communicators
  std::shared_ptr<Ownership> of{};  ///< the communicator of a call
};

/// Functions of operators by the operators' numbers. Guarded by the GIL. A cell is kept for ever, for a call may still
/// use it, against the rules; what the function holds goes when the operator is freed.
std::map<unisono_op, nb::object*>& functions_of_ops() {
  static auto* map = new std::map<unisono_op, nb::object*>;
  return *map;
}

/// The function of an operator, which returns None, or why it has failed; called from inside the engine, on a thread
/// without the GIL. No call of the engine is made with the GIL held, so that the thread that has it cannot wait for the
/// engine.
int call_python(const void* a, const void* b, void* out, std::uint64_t count, unisono_datatype datatype,
                void* context) {
  const nb::gil_scoped_acquire held;
  const nb::object function = *static_cast<const nb::object*>(context);
  try {
    if (!function.is_valid()) return unisono_op_failed("it was freed");
    std::uint64_t bytes = count * bytes_of(static_cast<Datatype>(datatype));
    const auto view = [&](const void* data, int flags) {
      return nb::steal<nb::object>(
          PyMemoryView_FromMemory(static_cast<char*>(const_cast<void*>(data)), static_cast<Py_ssize_t>(bytes), flags));
    };
    const nb::object failure = function(view(a, PyBUF_READ), view(b, PyBUF_READ), view(out, PyBUF_WRITE), datatype);
    return failure.is_none() ? 0 : unisono_op_failed(nb::cast<std::string>(failure).c_str());
  } catch (nb::python_error& error) {
    error.restore();
    PyErr_WriteUnraisable(function.ptr());
    return 1;
  } catch (...) {
    return 2;
  }
}

/// Calls that nobody waits for any more but that still use their memory. Guarded by the GIL.
std::list<InFlight>& abandoned() {
  static auto* list = new std::list<InFlight>;
  return *list;
}

void release_completed() {
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

/// What is known of a message: source, tag, elements, bytes, datatype.
using StatusTuple = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint64_t, int>;

unisono_status empty_status() {
  unisono_status status{};
  status.struct_size = sizeof status;
  return status;
}

StatusTuple tuple_of(const unisono_status& status) {
  return {status.source, status.tag, status.count, status.bytes, status.datatype};
}

class Request {
 public:
  explicit Request(InFlight call) : call_(std::move(call)) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() {
    if (call_.request == nullptr) return;
    abandoned().push_back(std::move(call_));
    release_completed();
  }

  unisono_request* handle() const { return call_.request; }

  /// Waits up to `seconds` (negative: until the call's deadline); whether the call has completed.
  bool wait(double seconds) {
    return in_slices(seconds, [&](double slice) {
      const Outcome outcome = wait_slice(call_.request, slice);
      keep_if_written(outcome, call_.dst.owner());
      if (outcome.code != 0) raise(outcome.code, outcome.text);
      return outcome.complete != 0;
    });
  }

  bool test() {
    Outcome outcome;
    {
      const WithoutGil released;
      outcome.code = unisono_test(call_.request, &outcome.complete);
      outcome.note();
    }
    keep_if_written(outcome, call_.dst.owner());
    if (outcome.code != 0) raise(outcome.code, outcome.text);
    return outcome.complete != 0;
  }

  std::int64_t received() const {
    std::int64_t count = 0;
    without_gil([&] { return unisono_request_count(call_.request, &count); });
    return count;
  }

  StatusTuple status() const {
    unisono_status status = empty_status();
    without_gil([&] { return unisono_request_status(call_.request, &status); });
    return tuple_of(status);
  }

  void start() const {
    without_gil([&] { return unisono_request_start(call_.request); });
  }
  void offload() const {
    without_gil([&] { return unisono_request_offload(call_.request); });
  }
  /// Calls `function()` once, when the call has ended: in the thread of the program that makes the progress, or, if the
  /// helper thread does, or `beside`, in one that is there for this (Completions). It may wait there if `beside`.
  void on_complete(const nb::callable& function, bool beside) const {
    PyObject* const held = nb::object(function).release().ptr();  // until it has been called
    try {
      without_gil([&] { return unisono_on_complete(call_.request, beside ? told_beside : completed, held); });
    } catch (...) {
      Py_DECREF(held);
      throw;
    }
  }

 private:
  /// What is called on completion, by any thread, without the GIL.
  static void completed(unisono_request*, unisono_result, void* function) {
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
  static void told_beside(unisono_request*, unisono_result, void* function) {
    Completions::instance().add(static_cast<PyObject*>(function), Completions::Waits::kAllowed);
  }

  InFlight call_;
};

/// Handles of several requests.
std::vector<unisono_request*> handles_of(const std::vector<const Request*>& requests) {
  std::vector<unisono_request*> handles;
  handles.reserve(requests.size());
  for (const Request* request : requests) handles.push_back(request == nullptr ? nullptr : request->handle());
  return handles;
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

struct Program {
  explicit Program(unisono_program* program) : handle(program) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { unisono_program_free(handle); }
  unisono_program* handle;
};

/// The edges of a communicator's ranks.
struct Graph {
  Graph(unisono_graph* made, std::size_t in, std::size_t out) : handle(made), sources(in), destinations(out) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { unisono_graph_free(handle); }
  unisono_graph* handle;
  std::size_t sources;
  std::size_t destinations;
};

using Counts = std::optional<std::vector<std::int64_t>>;
using Datatypes = std::optional<std::vector<int>>;

/// `ranks`: entries are by rank, not by edge of a graph.
template <class List>
auto entries_of(const List& counts, std::size_t size, const char* name, bool ranks = true) -> decltype(counts->data()) {
  if (!counts) return nullptr;
  if (counts->size() != size) {
    raise(ErrorCode::kInvalidCount, std::string(name) + " has " + std::to_string(counts->size()) +
                                        " entries; needed is one for each of the " + std::to_string(size) +
                                        (ranks ? " ranks" : " edges"));
  }
  return counts->data();
}

class Communicator {
 public:
  /// `made`: it is not the context's own.
  Communicator(unisono_communicator* handle, bool made)
      : handle_(handle), ownership_(std::make_shared<Ownership>(handle, made)) {
    check(unisono_communicator_rank(handle, &rank_));
    check(unisono_communicator_size(handle, &size_));
    number_ = number();
  }

  unisono_communicator* handle() const { return handle_; }
  /// The communicator's number; when it has been freed, what that was.
  std::uint32_t number() const {
    unisono_communicator_state now{};
    now.struct_size = sizeof now;
    unisono_result result = 0;
    {
      const WithoutGil released;
      result = unisono_communicator_describe(handle_, &now);
    }
    return result == 0 ? now.number : number_;
  }
  std::string name() const {
    const char* name = nullptr;
    check(unisono_communicator_name(handle_, &name));
    return name;
  }
  void set_name(const std::string& name) const {
    without_gil([&] { return unisono_communicator_set_name(handle_, name.c_str()); });
  }

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return size_; }

  /// Hints for a communicator that is made: group_size, eager_limit, timeout, lanes, name, group (0: none), streams.
  using Hints = std::tuple<std::uint32_t, std::uint32_t, double, bool, std::optional<std::string>, std::uint64_t, bool>;

  std::optional<Communicator> split(std::int64_t colour, std::int64_t key, const Hints& hints) const {
    return made(hints, [&](const auto* settings, auto* result) {
      return unisono_split_with(handle_, colour, key, settings, result);
    });
  }
  std::optional<Communicator> dup(const Hints& hints) const {
    return made(hints, [&](const auto* settings, auto* result) { return unisono_dup(handle_, settings, result); });
  }
  std::optional<Communicator> subset(const std::vector<std::uint32_t>& ranks, const Hints& hints) const {
    return made(hints, [&](const auto* settings, auto* result) {
      return unisono_subset(handle_, ranks.data(), ranks.size(), settings, result);
    });
  }
  std::optional<Communicator> create_group(const std::vector<std::uint32_t>& ranks, std::int64_t tag,
                                           const Hints& hints) const {
    return made(hints, [&](const auto* settings, auto* result) {
      return unisono_create_group(handle_, ranks.data(), ranks.size(), tag, settings, result);
    });
  }

  std::unique_ptr<Graph> graph(const std::vector<std::int64_t>& sources,
                               const std::vector<std::int64_t>& destinations) const {
    unisono_graph* made = nullptr;
    interruptibly([&] {
      return unisono_graph_create(handle_, sources.size(), sources.data(), destinations.size(), destinations.data(),
                                  &made);
    });
    return std::make_unique<Graph>(made, sources.size(), destinations.size());
  }

  void free() const {
    Outcome outcome;
    {
      const WithoutGil released;
      outcome.code = unisono_communicator_free(handle_);
      outcome.note();
    }
    if (outcome.code == 0 || outcome.code == static_cast<unisono_result>(ErrorCode::kMismatchedCall)) {
      ownership_->freed();
    }
    if (outcome.code != 0) raise(outcome.code, outcome.text);
  }
  void set_timeout(double seconds) const {
    without_gil([&] { return unisono_communicator_set_timeout(handle_, seconds); });
  }
  void revoke(const std::string& reason) const {
    without_gil([&] { return unisono_communicator_revoke(handle_, reason.c_str()); });
  }

  Communicator shrink() const {
    free_dropped();
    unisono_communicator* made = nullptr;
    interruptibly([&] { return unisono_shrink(handle_, &made); });
    return Communicator(made, true);
  }
  std::uint64_t agree(std::uint64_t value) const {
    interruptibly([&] { return unisono_agree(handle_, &value); });
    return value;
  }
  std::vector<std::uint32_t> failed() const {
    std::size_t count = 0;
    check(unisono_failed(handle_, nullptr, 0, &count));
    std::vector<std::uint32_t> ranks(count);
    check(unisono_failed(handle_, ranks.data(), ranks.size(), &count));
    ranks.resize(std::min(count, ranks.size()));
    return ranks;
  }

  std::pair<std::optional<std::string>, bool> last_algorithm() const {
    const char* name = nullptr;
    int automatic = 0;
    check(unisono_last_algorithm(handle_, &name, &automatic));
    return {name == nullptr ? std::nullopt : std::optional<std::string>(name), automatic != 0};
  }

  nb::tuple state() const {
    unisono_communicator_state now{};
    now.struct_size = sizeof now;
    without_gil([&] { return unisono_communicator_describe(handle_, &now); });
    return nb::make_tuple(now.number, now.epoch, now.group_size, now.eager_limit, now.segment_bytes,
                          now.rx_buffer_count, now.timeout_seconds, now.capability, now.calls, now.lanes != 0,
                          now.revoked != 0, now.groups, now.group, std::string(now.carrier));
  }

  std::vector<std::pair<std::string, std::uint64_t>> counters() const {
    std::vector<std::pair<std::string, std::uint64_t>> values;
    for (;;) {
      const char* name = nullptr;
      std::uint64_t value = 0;
      without_gil([&] { return unisono_counter(handle_, values.size(), &name, &value); });
      if (name == nullptr) return values;
      values.emplace_back(name, value);
    }
  }

  void window(const nb::object& buffer) const {
    auto memory = std::make_unique<Memory>(buffer, "the window", true);
    interruptibly([&] { return unisono_window(handle_, memory->data(), memory->bytes()); });
    ownership_->keep_window(std::move(memory));
  }

  /// A call as Python gave it, with everything that its pointers refer to.
  struct Prepared {
    Memory src;
    Memory dst;
    std::vector<unisono_request*> before;
    std::vector<double> factors;  ///< pre_scale, post_scale
    unisono_call call{};
  };

  Prepared prepare(int collective, int datatype, int op, bool in_place, std::int64_t root, std::int64_t tag,
                   std::int64_t count, nb::handle src, nb::handle dst, const Counts& send_counts,
                   const Counts& send_displacements, const Counts& recv_counts, const Counts& recv_displacements,
                   const std::optional<std::string>& algorithm, std::uint64_t window_offset,
                   const std::vector<const Request*>& wait_for, double timeout, const Program* program,
                   const Graph* graph, const Datatypes& send_datatypes, const Datatypes& recv_datatypes,
                   int wire_datatype, std::uint64_t element_bytes, int src_port, int dst_port,
                   std::optional<double> pre_scale, std::optional<double> post_scale) const {
    if (!abandoned().empty()) release_completed();
    Prepared made{Memory(src, "src", false), Memory(dst, "dst", true), {}, {}, {}};
    made.before.reserve(wait_for.size());
    for (const Request* request : wait_for) made.before.push_back(request->handle());
    unisono_call& call = made.call;
    call.struct_size = sizeof call;
    call.collective = collective;
    call.datatype = datatype;
    call.op = op;
    call.in_place = in_place ? 1 : 0;
    call.root = root;
    call.tag = tag;
    call.count = count;
    call.src = made.src.data();
    call.src_bytes = made.src.bytes();
    call.dst = made.dst.data();
    call.dst_bytes = made.dst.bytes();
    const bool ranks = graph == nullptr;
    const std::size_t sends = ranks ? size_ : graph->destinations;
    const std::size_t receives = ranks ? size_ : graph->sources;
    call.send_counts = entries_of(send_counts, sends, "send_counts", ranks);
    call.send_displacements = entries_of(send_displacements, sends, "send_displacements", ranks);
    call.recv_counts = entries_of(recv_counts, receives, "recv_counts", ranks);
    call.recv_displacements = entries_of(recv_displacements, receives, "recv_displacements", ranks);
    call.send_datatypes = entries_of(send_datatypes, size_, "send_datatypes");
    call.recv_datatypes = entries_of(recv_datatypes, size_, "recv_datatypes");
    call.algorithm = algorithm ? algorithm->c_str() : nullptr;
    call.window_offset = window_offset;
    call.wait_for = made.before.data();
    call.wait_for_count = made.before.size();
    call.timeout_seconds = timeout;
    call.program = program == nullptr ? nullptr : program->handle;
    call.graph = ranks ? nullptr : graph->handle;
    call.wire_datatype = wire_datatype;
    call.element_bytes = element_bytes;
    if (src_port >= 0) call.streams |= UNISONO_SRC_STREAM;
    if (dst_port >= 0) call.streams |= UNISONO_DST_STREAM;
    call.src_port = static_cast<std::uint32_t>(std::max(src_port, 0));
    call.dst_port = static_cast<std::uint32_t>(std::max(dst_port, 0));
    made.factors = {pre_scale.value_or(1), post_scale.value_or(1)};
    call.pre_scale = pre_scale ? made.factors.data() : nullptr;
    call.post_scale = post_scale ? made.factors.data() + 1 : nullptr;
    return made;
  }

  /// A send and a receive at once; returns the elements that came. They have the datatype, what must complete before,
  /// the deadline and what travels in common.
  std::int64_t sendrecv(int datatype, std::uint64_t element_bytes, nb::handle src, std::int64_t count, std::int64_t to,
                        std::int64_t send_tag, nb::handle dst, std::int64_t source, std::int64_t recv_tag,
                        const std::vector<const Request*>& wait_for, double timeout, int wire_datatype) const {
    if (!abandoned().empty()) release_completed();
    const Memory from(src, "src", false);
    const Memory into(dst, "dst", true);
    std::vector<unisono_request*> before;
    before.reserve(wait_for.size());
    for (const Request* request : wait_for) before.push_back(request->handle());
    unisono_call send{};
    send.struct_size = sizeof send;
    send.datatype = datatype;
    send.element_bytes = element_bytes;
    send.wait_for = before.data();
    send.wait_for_count = before.size();
    send.timeout_seconds = timeout;
    send.wire_datatype = wire_datatype;
    unisono_call recv = send;
    send.collective = UNISONO_SEND;
    send.root = to;
    send.tag = send_tag;
    send.count = count;
    send.src = from.data();
    send.src_bytes = from.bytes();
    recv.collective = UNISONO_RECV;
    recv.root = source;
    recv.tag = recv_tag;
    recv.dst = into.data();
    recv.dst_bytes = into.bytes();
    const std::uint64_t element =
        element_bytes != 0 ? element_bytes : std::max<std::uint64_t>(1, bytes_of(static_cast<Datatype>(datatype)));
    recv.count = static_cast<std::int64_t>(into.bytes() / element);
    std::int64_t received = 0;
    interruptibly([&] { return unisono_sendrecv(handle_, &send, &recv, &received); }, into.owner());
    return received;
  }

  void group_begin() const {
    without_gil([&] { return unisono_group_begin(handle_); });
  }
  void group_end() const {
    without_gil([&] { return unisono_group_end(handle_); });
  }

  /// Starts a call, or only prepares it.
  InFlight start(Prepared given, bool starts) const {
    InFlight made{nullptr, std::move(given.src), std::move(given.dst), {}, {}, ownership_};
    Outcome outcome;
    {
      // Starting does work of the engine, and an in-place alltoallv waits for the other ranks.
      const WithoutGil released;
      outcome.code = starts ? unisono_start(handle_, &given.call, &made.request)
                            : unisono_prepare(handle_, &given.call, &made.request);
      if (outcome.code != 0) outcome.text = unisono_last_error();
    }
    if (outcome.code != 0) raise(outcome.code, outcome.text);
    return made;
  }

  /// Runs a plain call (quick.hpp); false, having done nothing, if it must go the long way.
  bool quick(int collective, nb::handle src, nb::handle dst, nb::handle op, nb::handle root,
             nb::handle in_place) const {
    return run_quick(quick_call({collective, src, dst, op, root, in_place}, rank_, size_), dst.is_none() ? src : dst);
  }
  /// The same of a collective with counts; those of one side are None where it has none.
  bool quick_counted(int collective, nb::handle src, nb::handle dst, nb::handle op, nb::handle root,
                     nb::handle in_place, nb::handle send_counts, nb::handle send_displacements, nb::handle recv_counts,
                     nb::handle recv_displacements) const {
    QuickLayout layout;  // its room is not to be cleared for nothing
    layout.send_counts = send_counts;
    layout.send_displacements = send_displacements;
    layout.recv_counts = recv_counts;
    layout.recv_displacements = recv_displacements;
    return run_quick(python::quick_counted({collective, src, dst, op, root, in_place}, layout, rank_, size_),
                     dst.is_none() ? src : dst);
  }
  bool quick_send(nb::handle src, nb::handle peer, nb::handle tag) const {
    return run_quick(quick_message(true, src, peer, tag), {});
  }
  /// The elements that came; -1, having done nothing, if the call must go the long way.
  std::int64_t quick_recv(nb::handle dst, nb::handle peer, nb::handle tag) const {
    const std::optional<unisono_call> call = quick_message(false, dst, peer, tag);
    return call ? exchange(nullptr, *call, dst) : -1;
  }
  /// What came; none, having done nothing, if the call must go the long way.
  std::optional<StatusTuple> quick_recv_status(nb::handle dst, nb::handle peer, nb::handle tag) const {
    const std::optional<unisono_call> call = quick_message(false, dst, peer, tag);
    if (!call) return std::nullopt;
    unisono_status status = empty_status();
    interruptibly([&] { return unisono_recv(handle_, &*call, &status); });
    return tuple_of(status);
  }
  bool quick_put(nb::handle src, nb::handle peer, nb::handle offset) const {
    return run_quick(quick_access(true, src, peer, offset), {});
  }
  bool quick_get(nb::handle dst, nb::handle peer, nb::handle offset) const {
    return run_quick(quick_access(false, dst, peer, offset), dst);
  }
  StatusTuple probe(std::int64_t source, std::int64_t tag, double timeout) const {
    unisono_status status = empty_status();
    interruptibly([&] { return unisono_probe(handle_, source, tag, timeout, &status); });
    return tuple_of(status);
  }
  std::optional<StatusTuple> iprobe(std::int64_t source, std::int64_t tag) const {
    unisono_status status = empty_status();
    int found = 0;
    without_gil([&] { return unisono_iprobe(handle_, source, tag, &found, &status); });
    return found != 0 ? std::optional(tuple_of(status)) : std::nullopt;
  }
  std::int64_t quick_sendrecv(nb::handle src, nb::handle to, nb::handle send_tag, nb::handle dst, nb::handle source,
                              nb::handle recv_tag) const {
    const std::optional<unisono_call> send = quick_message(true, src, to, send_tag);
    const std::optional<unisono_call> recv = quick_message(false, dst, source, recv_tag);
    return send && recv && send->datatype == recv->datatype ? exchange(&*send, *recv, dst) : -1;
  }
  void run(Prepared given) const {
    interruptibly([&] { return unisono_run(handle_, &given.call); }, given.dst.owner());
  }

  /// Runs what waits for other ranks to its end. Python handles signals in the main thread only: there the wait asks
  /// for them. A signal whose handler raises ends it, and with it the communicator, but for agreements.
  template <class Call>
  static void interruptibly(Call&& call, nb::handle destination = {}) {
    const bool asks = is_first_thread();
    bool raised = false;
    Outcome outcome;
    {
      const WithoutGil released;
      if (asks) unisono_set_interrupt(signal_raised, &raised);
      outcome.code = call();
      outcome.note();
      if (asks) unisono_set_interrupt(nullptr, nullptr);
    }
    keep_if_written(outcome, destination);
    if (raised) throw nb::python_error();
    if (outcome.code != 0) raise(outcome.code, outcome.text);
  }

  /// Whether a signal's handler has raised; the exception is then pending in this thread.
  static int signal_raised(void* raised) {
    const nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() == 0) return 0;
    *static_cast<bool*>(raised) = true;
    return 1;
  }

 private:
  bool run_quick(const std::optional<unisono_call>& call, nb::handle destination) const {
    if (!call) return false;
    interruptibly([&] { return unisono_run(handle_, &*call); }, destination);
    return true;
  }
  /// A receive, and a send at the same time if there is one; the elements that came.
  std::int64_t exchange(const unisono_call* send, const unisono_call& recv, nb::handle destination) const {
    std::int64_t received = 0;
    interruptibly([&] { return unisono_sendrecv(handle_, send, &recv, &received); }, destination);
    return received;
  }

  /// What `make(settings, &communicator)` makes; none if it makes none.
  template <class Make>
  static std::optional<Communicator> made(const Hints& hints, Make&& make) {
    const auto& [group_size, eager_limit, timeout, lanes, name, group, streams] = hints;
    const unisono_communicator_settings settings{
        sizeof settings, group_size,      eager_limit, timeout, lanes ? 0 : 1, name ? name->c_str() : nullptr,
        group,           streams ? 1 : 0, nullptr,     nullptr};
    free_dropped();
    unisono_communicator* result = nullptr;
    interruptibly([&] { return make(&settings, &result); });
    if (result == nullptr) return std::nullopt;
    return Communicator(result, true);
  }

  unisono_communicator* handle_;
  std::shared_ptr<Ownership> ownership_;
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t number_ = 0;
};

/// Memory of unisono_allocate as an object with the buffer protocol. Arrays over it hold it; the last one gives it
/// back.
class Allocation {
 public:
  Allocation(unisono_context* context, std::uint64_t bytes) : context_(context), bytes_(bytes) {
    check(unisono_allocate(context, bytes, &memory_));
  }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() { unisono_deallocate(context_, memory_); }  // refused in a child of fork, whose memory this is not

  std::uint64_t bytes() const { return bytes_; }
  /// More memory of the same context.
  std::unique_ptr<Allocation> another(std::uint64_t bytes) const {
    return std::make_unique<Allocation>(context_, bytes);
  }

  static int fill(PyObject* self, Py_buffer* view, int flags) {
    const auto* allocation = nb::inst_ptr<Allocation>(self);
    return PyBuffer_FillInfo(view, self, allocation->memory_, static_cast<Py_ssize_t>(allocation->bytes_), 0, flags);
  }

 private:
  unisono_context* context_;
  std::uint64_t bytes_;
  void* memory_ = nullptr;
};

/// Lanes and offload are 1 for on, -1 for off, 0 for what they are.
unisono_settings settings_of(std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count,
                             double timeout, int lanes, int offload, int determinism,
                             const std::optional<std::string>& algorithms, int deadlines) {
  unisono_settings settings{};
  settings.struct_size = sizeof settings;
  settings.eager_limit = eager_limit;
  settings.segment_bytes = segment_bytes;
  settings.rx_buffer_count = rx_buffer_count;
  settings.timeout_seconds = timeout;
  settings.without_lanes = -lanes;
  settings.offload = offload;
  settings.determinism = determinism;
  settings.algorithms = algorithms ? algorithms->c_str() : nullptr;
  settings.deadlines = deadlines;
  return settings;
}

class Context {
 public:
  explicit Context(unisono_context* handle) : handle_(handle) {}

  std::unique_ptr<Allocation> allocate(std::uint64_t bytes) const {
    return std::make_unique<Allocation>(handle_, bytes);
  }

  Communicator world() const {
    unisono_communicator* world = nullptr;
    check(unisono_world(handle_, &world));
    return Communicator(world, false);
  }
  std::string dump(bool history) const {
    const char* text = nullptr;
    check(unisono_dump(handle_, history ? UNISONO_DUMP_HISTORY : UNISONO_DUMP_NOW, &text));
    return text;
  }
  void configure(std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count, double timeout,
                 int lanes, int offload, int determinism, const std::optional<std::string>& algorithms,
                 int deadlines) const {
    const unisono_settings settings = settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes, offload,
                                                  determinism, algorithms, deadlines);
    without_gil([&] { return unisono_configure(handle_, &settings); });
  }
  nb::tuple settings() const {
    unisono_settings now{};
    now.struct_size = sizeof now;
    without_gil([&] { return unisono_settings_now(handle_, &now); });
    return nb::make_tuple(now.eager_limit, now.segment_bytes, now.rx_buffer_count, now.timeout_seconds,
                          now.without_lanes<0, now.offload> 0, now.determinism, std::string(now.algorithms),
                          now.deadlines);
  }
  void reset() const {
    without_gil([&] { return unisono_reset(handle_); });
  }
  /// Bytes that have gone through.
  std::uint64_t stream_write(std::uint32_t port, nb::handle data, double seconds) const {
    const Memory from(data, "elements", false);
    std::uint64_t done = 0;
    Communicator::interruptibly(
        [&] { return unisono_stream_write(handle_, port, from.data(), from.bytes(), seconds, &done); });
    return done;
  }
  std::uint64_t stream_read(std::uint32_t port, nb::handle data, double seconds) const {
    const Memory into(data, "into", true);
    std::uint64_t done = 0;
    Communicator::interruptibly(
        [&] { return unisono_stream_read(handle_, port, into.data(), into.bytes(), seconds, &done); });
    return done;
  }
  /// Starts a kernel. Its arguments: kind, datatype, and the scalar's bytes, an array, or a communicator.
  std::unique_ptr<Request> start_kernel(const std::string& name,
                                        const std::vector<std::tuple<unsigned, int, nb::object>>& given,
                                        const std::vector<const Request*>& wait_for, double timeout) const {
    if (!abandoned().empty()) release_completed();
    std::vector<unisono_kernel_parameter> parameters = kernel_parameters(name);
    std::vector<unisono_kernel_argument> arguments;
    InFlight made;
    made.arguments.reserve(given.size());
    for (const auto& [kind, datatype, value] : given) {
      unisono_kernel_argument one{};
      one.kind = kind;
      one.datatype = datatype;
      if (kind == UNISONO_KERNEL_MEMORY) {
        const bool writes = arguments.size() < parameters.size() && parameters[arguments.size()].writes != 0;
        made.arguments.emplace_back(value, "an argument", writes);
        one.data = made.arguments.back().data();
        one.bytes = made.arguments.back().bytes();
      } else if (kind == UNISONO_KERNEL_COMMUNICATOR) {
        made.used.push_back(value);
        one.communicator = nb::cast<const Communicator&>(value).handle();
      } else if (kind == UNISONO_KERNEL_CALL) {
        made.used.push_back(value);
        one.data = nb::cast<const Request&>(value).handle();
      } else {
        const auto bytes = nb::cast<nb::bytes>(value);
        std::memcpy(&one.bits, bytes.c_str(), std::min<std::size_t>(bytes.size(), sizeof one.bits));
      }
      arguments.push_back(one);
    }
    std::vector<unisono_request*> before;
    before.reserve(wait_for.size());
    for (const Request* request : wait_for) before.push_back(request->handle());
    const unisono_kernel_options options{sizeof options, before.data(), before.size(), timeout};
    without_gil([&] {
      return unisono_kernel_start(handle_, name.c_str(), arguments.data(), arguments.size(), &options, &made.request);
    });
    return std::make_unique<Request>(std::move(made));
  }
  static std::vector<unisono_kernel_parameter> kernel_parameters(const std::string& name) {
    const unisono_kernel_parameter* first = nullptr;
    std::uint32_t count = 0;
    check(unisono_kernel_parameters(name.c_str(), &first, &count));
    return {first, first + count};
  }
  void progress() const {
    without_gil([&] { return unisono_progress(handle_); });
  }
  int descriptor() const {
    int result = -1;
    without_gil([&] { return unisono_descriptor(handle_, &result); });
    return result;
  }
  bool arm() const {
    int ready = 0;
    without_gil([&] { return unisono_arm(handle_, &ready); });
    return ready != 0;
  }
  void abort(const std::string& reason) const {
    without_gil([&] { return unisono_abort(handle_, reason.empty() ? nullptr : reason.c_str()); });
  }
  /// NumPy takes the memory of new arrays from here; returns what it took it from before.
  nb::object take_array_memory() const { return python::take_array_memory(handle_); }
  /// `compares`: what the ranks have called.
  void close(bool compares) const {
    Outcome outcome;
    {
      const WithoutGil released;
      outcome.code = compares ? unisono_finalize(handle_) : unisono_abandon(handle_);
      if (outcome.code != 0) outcome.text = unisono_last_error();
    }
    release_completed();
    if (outcome.code != 0) raise(outcome.code, outcome.text);
  }

 private:
  unisono_context* handle_;
};

/// The process's hook of waits; null: none. Under the GIL.
nb::object& wait_hook() {
  static auto* function = new nb::object;  // NOLINT(cppcoreguidelines-owning-memory): waits may outlive this module
  return *function;
}

/// Called by threads that wait, without the GIL, one at a time.
void call_wait_hook(void* /*context*/) {
  const nb::gil_scoped_acquire held;
  const nb::object own = wait_hook();
  if (!own.is_valid()) return;
  try {
    own();
  } catch (nb::python_error& error) {
    error.restore();
    PyErr_WriteUnraisable(own.ptr());
  }
}

void set_wait_hook(const nb::object& function) {
  wait_hook() = function.is_none() ? nb::object() : function;
  const WithoutGil released;  // a thread in the one before needs it to come out
  unisono_set_wait_hook(function.is_none() ? nullptr : call_wait_hook, nullptr);
}

struct ThreadJob {
  ThreadJob(std::uint32_t size, const char* network) { check(unisono_thread_job_create_on(size, network, &handle)); }
  ThreadJob(const ThreadJob&) = delete;
  ThreadJob& operator=(const ThreadJob&) = delete;
  ~ThreadJob() { unisono_thread_job_free(handle); }
  unisono_thread_job* handle = nullptr;
};

/// A key-value store that is written in Python. Its functions are called by the thread that joins, which has no GIL.
struct PythonStore {
  nb::callable put;
  nb::callable get;

  /// Whatever it raises, Python keeps it, and raises it as the cause.
  template <class Function>
  static int guarded(Function&& function) {
    constexpr int kRaised = 2;
    const nb::gil_scoped_acquire gil;
    try {
      return function();
    } catch (const nb::python_error&) {
      return kRaised;
    }
  }
  static int put_bytes(void* user, const char* key, const void* value, size_t bytes, double seconds) {
    return guarded([&] {
      static_cast<PythonStore*>(user)->put(key, nb::bytes(value, bytes), seconds);
      return 0;
    });
  }
  static int get_bytes(void* user, const char* key, void* value, size_t capacity, size_t* bytes, double seconds) {
    return guarded([&] {
      const nb::object found = static_cast<PythonStore*>(user)->get(key, seconds);
      if (found.is_none()) return static_cast<int>(UNISONO_JOIN_LATE);
      const auto text = nb::bytes(found);
      *bytes = text.size();
      std::memcpy(value, text.data(), std::min(text.size(), capacity));
      return 0;
    });
  }
};

/// Runs a joining function without the GIL.
template <class Join>
Context joined(Join&& join) {
  unisono_context* context = nullptr;
  Outcome outcome;
  {
    const WithoutGil released;
    outcome.code = join(&context);
    if (outcome.code != 0) outcome.text = unisono_last_error();
  }
  if (outcome.code != 0) raise(outcome.code, outcome.text);
  return Context(context);
}

}  // namespace

void bind_calls(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace): argument names

  nb::class_<Program>(module, "Program", "Programs of the user, one for each rank.")
      .def_prop_ro("size", [](const Program& program) {
        std::uint32_t ranks = 0;
        check(unisono_program_size(program.handle, &ranks));
        return ranks;
      });
  module.def(
      "load_program",
      [](const std::string& path) {
        unisono_program* handle = nullptr;
        check(unisono_program_load(path.c_str(), &handle));
        return std::make_unique<Program>(handle);
      },
      "path"_a, "Reads a program file.");
  module.def(
      "parse_program",
      [](const nb::bytes& file) {
        unisono_program* handle = nullptr;
        check(unisono_program_parse(file.c_str(), file.size(), &handle));
        return std::make_unique<Program>(handle);
      },
      "file"_a, "Reads the bytes of a program file.");

  module.def(
      "create_op",
      [](const std::string& name, const nb::callable& function, bool commutative) {
        unisono_op op = 0;
        auto cell = std::make_unique<nb::object>(function);
        check(unisono_op_create(name.c_str(), call_python, cell.get(), commutative ? 1 : 0, &op));
        functions_of_ops()[op] = cell.release();
        return op;
      },
      "name"_a, "function"_a, "commutative"_a, "Defines an operator; returns its number.");
  module.def(
      "free_op",
      [](int op) {
        check(unisono_op_free(op));
        const auto own = functions_of_ops().find(op);
        if (own == functions_of_ops().end()) return;  // it is in C
        const nb::object function = std::exchange(*own->second, nb::object());
        functions_of_ops().erase(own);  // before the function goes, which may run code of the user
      },
      "op"_a, "Undefines an operator.");

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

  nb::class_<Graph>(module, "Graph", "Edges between ranks.")
      .def_ro("sources", &Graph::sources, "Number of edges that come here.")
      .def_ro("destinations", &Graph::destinations, "Number of edges that go from here.");
  module.def("set_in_place", &set_in_place, "sentinel"_a, "What stands for the buffer that an in-place call has not.");
  module.def("wait_any", wait_any, "requests"_a, "seconds"_a, "Position of a request that has ended, or None.");
  module.def("wait_some", wait_some, "requests"_a, "seconds"_a, "Positions of those that have ended.");
  module.def("wait_all", wait_all, "requests"_a, "seconds"_a, "Whether all have ended.");

  module.def(
      "threads_inside", [] { return threads_inside().load(); }, "Threads that are in the library without the GIL.");
  module.def("set_wait_hook", &set_wait_hook, "function"_a.none(),
             "Has function() called in every wait; None: nothing.");
  module.def("restore_array_memory", &restore_array_memory, "before"_a,
             "NumPy takes the memory of new arrays from where it did before.");
  module.def(
      "forget_threads",
      [] {
        threads_inside().store(0);
        Completions::forget();
      },
      "In a child of fork: its parent's threads are not here.");
  module.def(
      "completions",
      [] {
        const Completions::Counts counts = Completions::instance().counts();
        return std::tuple(counts.called, counts.gil_taken, counts.waiting);
      },
      "Of what threads beside the program are told with: functions called, times that they took the GIL, still to "
      "call.");
  module.def(
      "end_completions",
      [](double seconds) {
        const WithoutGil released;
        return Completions::instance().end(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
      },
      "seconds"_a, "Calls what is left of them, and ends the threads; whether all have ended.");

  nb::class_<Communicator>(module, "Communicator", "A communicator of the C interface.")
      .def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size)
      .def_prop_ro("number", &Communicator::number)
      .def_prop_rw("name", &Communicator::name, &Communicator::set_name)
      .def("split", &Communicator::split, "colour"_a, "key"_a, "hints"_a)
      .def("dup", &Communicator::dup, "hints"_a)
      .def("subset", &Communicator::subset, "ranks"_a, "hints"_a)
      .def("create_group", &Communicator::create_group, "ranks"_a, "tag"_a, "hints"_a)
      .def("graph", &Communicator::graph, "sources"_a, "destinations"_a)
      .def("free", &Communicator::free)
      .def("set_timeout", &Communicator::set_timeout, "seconds"_a)
      .def("revoke", &Communicator::revoke, "reason"_a)
      .def("shrink", &Communicator::shrink)
      .def("agree", &Communicator::agree, "value"_a)
      .def("failed", &Communicator::failed)
      .def("last_algorithm", &Communicator::last_algorithm)
      .def_prop_ro("handle", [](const Communicator& self) { return reinterpret_cast<std::uintptr_t>(self.handle()); })
      .def("group_begin", &Communicator::group_begin, "Begins a group of calls of this thread.")
      .def("group_end", &Communicator::group_end, "Submits the calls of the group.")
      .def("counters", &Communicator::counters)
      .def("state", &Communicator::state)
      .def("window", &Communicator::window, "buffer"_a.none())
      .def(
          "start",
          [](const Communicator& self, int collective, int datatype, int op, bool in_place, std::int64_t root,
             std::int64_t tag, std::int64_t count, nb::handle src, nb::handle dst, const Counts& send_counts,
             const Counts& send_displacements, const Counts& recv_counts, const Counts& recv_displacements,
             const std::optional<std::string>& algorithm, std::uint64_t window_offset,
             const std::vector<const Request*>& wait_for, double timeout, const Program* program, const Graph* graph,
             const Datatypes& send_datatypes, const Datatypes& recv_datatypes, int wire_datatype,
             std::uint64_t element_bytes, int src_port, int dst_port, std::optional<double> pre_scale,
             std::optional<double> post_scale, bool starts) {
            return std::make_unique<Request>(
                self.start(self.prepare(collective, datatype, op, in_place, root, tag, count, src, dst, send_counts,
                                        send_displacements, recv_counts, recv_displacements, algorithm, window_offset,
                                        wait_for, timeout, program, graph, send_datatypes, recv_datatypes,
                                        wire_datatype, element_bytes, src_port, dst_port, pre_scale, post_scale),
                           starts));
          },
          "collective"_a, "datatype"_a, "op"_a, "in_place"_a, "root"_a, "tag"_a, "count"_a, "src"_a.none(),
          "dst"_a.none(), "send_counts"_a.none(), "send_displacements"_a.none(), "recv_counts"_a.none(),
          "recv_displacements"_a.none(), "algorithm"_a.none(), "window_offset"_a, "wait_for"_a, "timeout"_a,
          "program"_a.none(), "graph"_a.none(), "send_datatypes"_a.none(), "recv_datatypes"_a.none(), "wire_datatype"_a,
          "element_bytes"_a, "src_port"_a, "dst_port"_a, "pre_scale"_a.none(), "post_scale"_a.none(), "starts"_a)
      .def("quick", &Communicator::quick, "collective"_a, "src"_a.none(), "dst"_a.none(), "op"_a.none(),
           "root"_a.none(), "in_place"_a)
      .def("quick_counted", &Communicator::quick_counted, "collective"_a, "src"_a.none(), "dst"_a.none(), "op"_a.none(),
           "root"_a.none(), "in_place"_a, "send_counts"_a.none(), "send_displacements"_a.none(), "recv_counts"_a.none(),
           "recv_displacements"_a.none())
      .def("quick_send", &Communicator::quick_send, "src"_a.none(), "peer"_a.none(), "tag"_a.none())
      .def("quick_recv", &Communicator::quick_recv, "dst"_a.none(), "peer"_a.none(), "tag"_a.none())
      .def("quick_recv_status", &Communicator::quick_recv_status, "dst"_a.none(), "peer"_a.none(), "tag"_a.none())
      .def("quick_put", &Communicator::quick_put, "src"_a.none(), "peer"_a.none(), "offset"_a.none())
      .def("quick_get", &Communicator::quick_get, "dst"_a.none(), "peer"_a.none(), "offset"_a.none())
      .def("probe", &Communicator::probe, "source"_a, "tag"_a, "timeout"_a)
      .def("iprobe", &Communicator::iprobe, "source"_a, "tag"_a)
      .def("quick_sendrecv", &Communicator::quick_sendrecv, "src"_a.none(), "to"_a.none(), "send_tag"_a.none(),
           "dst"_a.none(), "source"_a.none(), "recv_tag"_a.none())
      .def(
          "run",
          [](const Communicator& self, int collective, int datatype, int op, bool in_place, std::int64_t root,
             std::int64_t tag, std::int64_t count, nb::handle src, nb::handle dst, const Counts& send_counts,
             const Counts& send_displacements, const Counts& recv_counts, const Counts& recv_displacements,
             const std::optional<std::string>& algorithm, std::uint64_t window_offset,
             const std::vector<const Request*>& wait_for, double timeout, const Program* program, const Graph* graph,
             const Datatypes& send_datatypes, const Datatypes& recv_datatypes, int wire_datatype,
             std::uint64_t element_bytes, int src_port, int dst_port, std::optional<double> pre_scale,
             std::optional<double> post_scale) {
            self.run(self.prepare(collective, datatype, op, in_place, root, tag, count, src, dst, send_counts,
                                  send_displacements, recv_counts, recv_displacements, algorithm, window_offset,
                                  wait_for, timeout, program, graph, send_datatypes, recv_datatypes, wire_datatype,
                                  element_bytes, src_port, dst_port, pre_scale, post_scale));
          },
          "collective"_a, "datatype"_a, "op"_a, "in_place"_a, "root"_a, "tag"_a, "count"_a, "src"_a.none(),
          "dst"_a.none(), "send_counts"_a.none(), "send_displacements"_a.none(), "recv_counts"_a.none(),
          "recv_displacements"_a.none(), "algorithm"_a.none(), "window_offset"_a, "wait_for"_a, "timeout"_a,
          "program"_a.none(), "graph"_a.none(), "send_datatypes"_a.none(), "recv_datatypes"_a.none(), "wire_datatype"_a,
          "element_bytes"_a, "src_port"_a, "dst_port"_a, "pre_scale"_a.none(), "post_scale"_a.none())
      .def("sendrecv", &Communicator::sendrecv, "datatype"_a, "element_bytes"_a, "src"_a, "count"_a, "to"_a,
           "send_tag"_a, "dst"_a, "source"_a, "recv_tag"_a, "wait_for"_a, "timeout"_a, "wire_datatype"_a,
           "A send and a receive at once; the elements that came.");

  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&Allocation::fill)}, {0, nullptr}};
  nb::class_<Allocation>(module, "Allocation", nb::type_slots(slots), "Memory that ranks on this machine share.")
      .def("__len__", &Allocation::bytes)
      .def("another", &Allocation::another, "bytes"_a, "More memory of the same context.");
  nb::class_<Context>(module, "Context", "One endpoint of a job.")
      .def("allocate", &Context::allocate, "bytes"_a)
      .def_prop_ro("world", &Context::world)
      .def("dump", &Context::dump, "history"_a)
      .def("configure", &Context::configure, "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a,
           "lanes"_a, "offload"_a, "determinism"_a, "algorithms"_a.none(), "deadlines"_a)
      .def("progress", &Context::progress)
      .def("start_kernel", &Context::start_kernel, "name"_a, "arguments"_a, "wait_for"_a, "timeout"_a)
      .def_static(
          "kernel_parameters",
          [](const std::string& name) {
            std::vector<std::tuple<unsigned, int, bool>> all;
            for (const unisono_kernel_parameter& one : Context::kernel_parameters(name)) {
              all.emplace_back(one.kind, one.datatype, one.writes != 0);
            }
            return all;
          },
          "name"_a, "Kind, datatype, and whether it is written, of each argument of a kernel.")
      .def("stream_write", &Context::stream_write, "port"_a, "data"_a, "seconds"_a)
      .def("stream_read", &Context::stream_read, "port"_a, "data"_a, "seconds"_a)
      .def("descriptor", &Context::descriptor)
      .def("arm", &Context::arm)
      .def("abort", &Context::abort, "reason"_a)
      .def("settings", &Context::settings)
      .def("reset", &Context::reset)
      .def("take_array_memory", &Context::take_array_memory)
      .def("close", &Context::close, "compares"_a);
  module.def(
      "load_kernels", [](const std::string& path) { check(unisono_kernels_load(path.c_str())); }, "path"_a,
      "Loads a library of kernels for this process.");
  module.def(
      "dump_process",
      [](std::uint32_t pid, int what) {
        const char* text = nullptr;
        check(unisono_dump_process(pid, what, &text));
        return std::string(text);
      },
      "pid"_a, "what"_a, "What the ranks of the jobs of a process are doing, in words.");
  nb::class_<ThreadJob>(module, "ThreadJob", "A job whose ranks are threads.")
      .def(nb::init<std::uint32_t, const char*>(), "size"_a, "network"_a = "shm");

  module.def(
      "init",
      [](std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count, double timeout,
         int lanes, int offload, int determinism, const std::optional<std::string>& algorithms, int deadlines) {
        const unisono_settings settings = settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes,
                                                      offload, determinism, algorithms, deadlines);
        return joined([&](unisono_context** context) { return unisono_init(&settings, context); });
      },
      "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a, "lanes"_a, "offload"_a, "determinism"_a,
      "algorithms"_a.none(), "deadlines"_a);
  module.def(
      "join",
      [](std::uint32_t rank, std::uint32_t size, nb::callable put, nb::callable get, std::uint32_t eager_limit,
         std::uint32_t segment_bytes, std::uint32_t rx_buffer_count, double timeout, int lanes, int offload,
         int determinism, const std::optional<std::string>& algorithms, int deadlines) {
        const unisono_settings settings = settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes,
                                                      offload, determinism, algorithms, deadlines);
        PythonStore store{std::move(put), std::move(get)};
        unisono_join_functions functions{};
        functions.struct_size = sizeof functions;
        functions.rank = rank;
        functions.size = size;
        functions.user = &store;
        functions.put = &PythonStore::put_bytes;
        functions.get = &PythonStore::get_bytes;
        return joined([&](unisono_context** context) { return unisono_join(&functions, &settings, context); });
      },
      "rank"_a, "size"_a, "put"_a, "get"_a, "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a,
      "lanes"_a, "offload"_a, "determinism"_a, "algorithms"_a.none(), "deadlines"_a,
      "Joins through a key-value store of the caller's.");
  module.def(
      "thread_context",
      [](const ThreadJob& job, std::uint32_t rank, std::uint32_t eager_limit, std::uint32_t segment_bytes,
         std::uint32_t rx_buffer_count, double timeout, int lanes, int offload, int determinism,
         const std::optional<std::string>& algorithms, int deadlines) {
        const unisono_settings settings = settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, lanes,
                                                      offload, determinism, algorithms, deadlines);
        return joined(
            [&](unisono_context** context) { return unisono_thread_context(job.handle, rank, &settings, context); });
      },
      "job"_a, "rank"_a, "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a, "lanes"_a, "offload"_a,
      "determinism"_a, "algorithms"_a.none(), "deadlines"_a);
  module.def(
      "process_configure",
      [](std::uint32_t pid, std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count,
         double timeout) {
        const unisono_settings settings =
            settings_of(eager_limit, segment_bytes, rx_buffer_count, timeout, 0, 0, 0, std::nullopt, 0);
        check(unisono_process_configure(pid, &settings));
      },
      "pid"_a, "eager_limit"_a, "segment_bytes"_a, "rx_buffer_count"_a, "timeout"_a,
      "What the communicators of a process's jobs are made with from now on.");
  module.def(
      "process_reset", [](std::uint32_t pid) { check(unisono_process_reset(pid)); }, "pid"_a,
      "Has a process's jobs give up their communicators.");

  module.def("version", [] { return unisono_version(); });
  module.def(
      "algorithms",
      [] {
        nb::list table;
        for (std::size_t i = 0; i < unisono_algorithms(0, nullptr); ++i) {
          unisono_algorithm_info info{};
          unisono_algorithms(i, &info);
          nb::dict entry;
          entry["collective"] = info.collective;
          entry["name"] = info.name;
          entry["source"] = info.source;
          entry["restriction"] = info.restriction;
          entry["cost"] = info.cost;
          entry["summary"] = info.summary;
          entry["ordered"] = info.ordered != 0;
          entry["radix"] = unisono_algorithm_radix(i);
          table.append(entry);
        }
        return table;
      },
      "The table of algorithms, as dictionaries.");
}

}  // namespace unisono::python
