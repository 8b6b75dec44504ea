#include "python/core/communicator.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "core/footprint.hpp"
#include "core/generated/spec.hpp"
#include "python/core/module.hpp"
#include "python/core/quick.hpp"

namespace unisono::python {

namespace {

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

}  // namespace

template <class Make>
std::optional<Communicator> Communicator::made(const Hints& hints, Make&& make) {
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

std::uint32_t Communicator::number() const {
  unisono_communicator_state now{};
  now.struct_size = sizeof now;
  unisono_result result = 0;
  {
    const WithoutGil released;
    result = unisono_communicator_describe(handle_, &now);
  }
  return result == 0 ? now.number : number_;
}

std::string Communicator::name() const {
  const char* name = nullptr;
  check(unisono_communicator_name(handle_, &name));
  return name;
}

void Communicator::set_name(const std::string& name) const {
  call_library([&] { return unisono_communicator_set_name(handle_, name.c_str()); });
}

std::optional<Communicator> Communicator::split(std::int64_t colour, std::int64_t key, const Hints& hints) const {
  return made(hints, [&](const auto* settings, auto* result) {
    return unisono_split_with(handle_, colour, key, settings, result);
  });
}

std::optional<Communicator> Communicator::dup(const Hints& hints) const {
  return made(hints, [&](const auto* settings, auto* result) { return unisono_dup(handle_, settings, result); });
}

std::optional<Communicator> Communicator::subset(const std::vector<std::uint32_t>& ranks, const Hints& hints) const {
  return made(hints, [&](const auto* settings, auto* result) {
    return unisono_subset(handle_, ranks.data(), ranks.size(), settings, result);
  });
}

std::optional<Communicator> Communicator::create_group(const std::vector<std::uint32_t>& ranks, std::int64_t tag,
                                                       const Hints& hints) const {
  return made(hints, [&](const auto* settings, auto* result) {
    return unisono_create_group(handle_, ranks.data(), ranks.size(), tag, settings, result);
  });
}

std::unique_ptr<Graph> Communicator::graph(const std::vector<std::int64_t>& sources,
                                           const std::vector<std::int64_t>& destinations) const {
  unisono_graph* made = nullptr;
  interruptibly([&] {
    return unisono_graph_create(handle_, sources.size(), sources.data(), destinations.size(), destinations.data(),
                                &made);
  });
  return std::make_unique<Graph>(made, sources.size(), destinations.size());
}

void Communicator::free() const {
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

void Communicator::set_timeout(double seconds) const {
  call_library([&] { return unisono_communicator_set_timeout(handle_, seconds); });
}

void Communicator::revoke(const std::string& reason) const {
  call_library([&] { return unisono_communicator_revoke(handle_, reason.c_str()); });
}

Communicator Communicator::shrink() const {
  free_dropped();
  unisono_communicator* made = nullptr;
  interruptibly([&] { return unisono_shrink(handle_, &made); });
  return Communicator(made, true);
}

std::uint64_t Communicator::agree(std::uint64_t value) const {
  interruptibly([&] { return unisono_agree(handle_, &value); });
  return value;
}

std::vector<std::uint32_t> Communicator::failed() const {
  std::size_t count = 0;
  check(unisono_failed(handle_, nullptr, 0, &count));
  std::vector<std::uint32_t> ranks(count);
  check(unisono_failed(handle_, ranks.data(), ranks.size(), &count));
  ranks.resize(std::min(count, ranks.size()));
  return ranks;
}

std::pair<std::optional<std::string>, bool> Communicator::last_algorithm() const {
  const char* name = nullptr;
  int automatic = 0;
  check(unisono_last_algorithm(handle_, &name, &automatic));
  return {name == nullptr ? std::nullopt : std::optional<std::string>(name), automatic != 0};
}

nb::tuple Communicator::state() const {
  unisono_communicator_state now{};
  now.struct_size = sizeof now;
  call_library([&] { return unisono_communicator_describe(handle_, &now); });
  return nb::make_tuple(now.number, now.epoch, now.group_size, now.eager_limit, now.segment_bytes, now.rx_buffer_count,
                        now.timeout_seconds, now.capability, now.calls, now.lanes != 0, now.revoked != 0, now.groups,
                        now.group, std::string(now.carrier));
}

std::vector<std::pair<std::string, std::uint64_t>> Communicator::counters() const {
  std::vector<std::pair<std::string, std::uint64_t>> values;
  for (;;) {
    const char* name = nullptr;
    std::uint64_t value = 0;
    call_library([&] { return unisono_counter(handle_, values.size(), &name, &value); });
    if (name == nullptr) return values;
    values.emplace_back(name, value);
  }
}

void Communicator::window(const nb::object& buffer) const {
  auto memory = std::make_unique<Memory>(buffer, "the window", true);
  interruptibly([&] { return unisono_window(handle_, memory->data(), memory->bytes()); });
  ownership_->keep_window(std::move(memory));
}

Communicator::Prepared Communicator::prepare(int collective, int datatype, int op, bool in_place, std::int64_t root,
                                             std::int64_t tag, std::int64_t count, nb::handle src, nb::handle dst,
                                             const Counts& send_counts, const Counts& send_displacements,
                                             const Counts& recv_counts, const Counts& recv_displacements,
                                             const std::optional<std::string>& algorithm, std::uint64_t window_offset,
                                             const std::vector<const Request*>& wait_for, double timeout,
                                             const Program* program, const Graph* graph,
                                             const Datatypes& send_datatypes, const Datatypes& recv_datatypes,
                                             int wire_datatype, std::uint64_t element_bytes, int src_port, int dst_port,
                                             std::optional<double> pre_scale, std::optional<double> post_scale) const {
  release_abandoned();
  Prepared made{Memory(src, "src", false), Memory(dst, "dst", true), handles_of(wait_for), {}, {}};
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

std::int64_t Communicator::sendrecv(int datatype, std::uint64_t element_bytes, nb::handle src, std::int64_t count,
                                    std::int64_t to, std::int64_t send_tag, nb::handle dst, std::int64_t source,
                                    std::int64_t recv_tag, const std::vector<const Request*>& wait_for, double timeout,
                                    int wire_datatype) const {
  release_abandoned();
  const Memory from(src, "src", false);
  const Memory into(dst, "dst", true);
  const std::vector<unisono_request*> before = handles_of(wait_for);
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

void Communicator::group_begin() const {
  call_library([&] { return unisono_group_begin(handle_); });
}

void Communicator::group_end() const {
  call_library([&] { return unisono_group_end(handle_); });
}

/// Starts a call, or only prepares it.
void Communicator::begin(const unisono_call& call, InFlight& made, bool starts) const {
  const EndedRequests ended = EndedRequests::take();
  // Starting does work of the engine, and an in-place alltoallv waits for the other ranks.
  call_library([&] {
    ended.free();
    return starts ? unisono_start(handle_, &call, &made.request) : unisono_prepare(handle_, &call, &made.request);
  });
}

InFlight Communicator::start(Prepared given, bool starts) const {
  InFlight made{nullptr, std::move(given.src), std::move(given.dst), {}, {}, ownership_};
  begin(given.call, made, starts);
  return made;
}

Communicator::Started Communicator::start_quick(const std::optional<unisono_call>& call, nb::handle src,
                                                nb::handle dst) const {
  if (!call) return std::nullopt;
  release_abandoned();
  InFlight made;
  if (call->src != nullptr) made.src = Memory(src, call->src, call->src_bytes);
  if (call->dst != nullptr) made.dst = Memory(dst, call->dst, call->dst_bytes);
  made.of = ownership_;
  begin(*call, made, true);
  const Uses uses = uses_of(static_cast<Collective>(call->collective), call->root == rank_, call->in_place != 0);
  nb::object result = uses.dst == Extent::kNothing ? nb::none() : nb::borrow(dst);
  return Started({Request(std::move(made)), std::move(result)});
}

Communicator::Started Communicator::quick_start(int collective, nb::handle src, nb::handle dst, nb::handle op,
                                                nb::handle root, nb::handle in_place) const {
  nb::object own;
  if (dst.is_none()) {
    own = quick_result(collective, src, size_);
    if (own.is_valid()) dst = own;
  }
  return start_quick(quick_call({collective, src, dst, op, root, in_place}, rank_, size_), src, dst);
}

Communicator::Started Communicator::quick_start_counted(int collective, nb::handle src, nb::handle dst, nb::handle op,
                                                        nb::handle root, nb::handle in_place, nb::handle send_counts,
                                                        nb::handle send_displacements, nb::handle recv_counts,
                                                        nb::handle recv_displacements) const {
  QuickLayout layout;  // its room is not to be cleared for nothing
  layout.send_counts = send_counts;
  layout.send_displacements = send_displacements;
  layout.recv_counts = recv_counts;
  layout.recv_displacements = recv_displacements;
  return start_quick(python::quick_counted({collective, src, dst, op, root, in_place}, layout, rank_, size_), src, dst);
}

Communicator::Started Communicator::quick_start_send(nb::handle src, nb::handle peer, nb::handle tag) const {
  return start_quick(quick_message(true, src, peer, tag), src, nb::none());
}

Communicator::Started Communicator::quick_start_recv(nb::handle dst, nb::handle peer, nb::handle tag) const {
  return start_quick(quick_message(false, dst, peer, tag), nb::none(), dst);
}

Communicator::Started Communicator::quick_start_put(nb::handle src, nb::handle peer, nb::handle offset) const {
  return start_quick(quick_access(true, src, peer, offset), src, nb::none());
}

Communicator::Started Communicator::quick_start_get(nb::handle dst, nb::handle peer, nb::handle offset) const {
  return start_quick(quick_access(false, dst, peer, offset), nb::none(), dst);
}

nb::object Communicator::quick_new(int collective, nb::handle src, nb::handle op) const {
  nb::object made = quick_result(collective, src, size_);
  if (!made.is_valid() || !quick(collective, src, made, op, nb::none(), Py_False)) return nb::none();
  return made;
}

bool Communicator::quick(int collective, nb::handle src, nb::handle dst, nb::handle op, nb::handle root,
                         nb::handle in_place) const {
  return run_quick(quick_call({collective, src, dst, op, root, in_place}, rank_, size_), dst.is_none() ? src : dst);
}

bool Communicator::quick_counted(int collective, nb::handle src, nb::handle dst, nb::handle op, nb::handle root,
                                 nb::handle in_place, nb::handle send_counts, nb::handle send_displacements,
                                 nb::handle recv_counts, nb::handle recv_displacements) const {
  QuickLayout layout;  // its room is not to be cleared for nothing
  layout.send_counts = send_counts;
  layout.send_displacements = send_displacements;
  layout.recv_counts = recv_counts;
  layout.recv_displacements = recv_displacements;
  return run_quick(python::quick_counted({collective, src, dst, op, root, in_place}, layout, rank_, size_),
                   dst.is_none() ? src : dst);
}

bool Communicator::quick_send(nb::handle src, nb::handle peer, nb::handle tag) const {
  return run_quick(quick_message(true, src, peer, tag), {});
}

std::int64_t Communicator::quick_recv(nb::handle dst, nb::handle peer, nb::handle tag) const {
  const std::optional<unisono_call> call = quick_message(false, dst, peer, tag);
  return call ? exchange(nullptr, *call, dst) : -1;
}

std::optional<StatusTuple> Communicator::quick_recv_status(nb::handle dst, nb::handle peer, nb::handle tag) const {
  const std::optional<unisono_call> call = quick_message(false, dst, peer, tag);
  if (!call) return std::nullopt;
  unisono_status status = empty_status();
  interruptibly([&] { return unisono_recv(handle_, &*call, &status); });
  return tuple_of(status);
}

bool Communicator::quick_put(nb::handle src, nb::handle peer, nb::handle offset) const {
  return run_quick(quick_access(true, src, peer, offset), {});
}

bool Communicator::quick_get(nb::handle dst, nb::handle peer, nb::handle offset) const {
  return run_quick(quick_access(false, dst, peer, offset), dst);
}

StatusTuple Communicator::probe(std::int64_t source, std::int64_t tag, double timeout) const {
  unisono_status status = empty_status();
  interruptibly([&] { return unisono_probe(handle_, source, tag, timeout, &status); });
  return tuple_of(status);
}

std::optional<StatusTuple> Communicator::iprobe(std::int64_t source, std::int64_t tag) const {
  unisono_status status = empty_status();
  int found = 0;
  call_library([&] { return unisono_iprobe(handle_, source, tag, &found, &status); });
  return found != 0 ? std::optional(tuple_of(status)) : std::nullopt;
}

std::int64_t Communicator::quick_sendrecv(nb::handle src, nb::handle to, nb::handle send_tag, nb::handle dst,
                                          nb::handle source, nb::handle recv_tag) const {
  const std::optional<unisono_call> send = quick_message(true, src, to, send_tag);
  const std::optional<unisono_call> recv = quick_message(false, dst, source, recv_tag);
  return send && recv && send->datatype == recv->datatype ? exchange(&*send, *recv, dst) : -1;
}

void Communicator::run(Prepared given) const {
  interruptibly([&] { return unisono_run(handle_, &given.call); }, given.dst.owner());
}

bool Communicator::run_quick(const std::optional<unisono_call>& call, nb::handle destination) const {
  if (!call) return false;
  interruptibly([&] { return unisono_run(handle_, &*call); }, destination);
  return true;
}

std::int64_t Communicator::exchange(const unisono_call* send, const unisono_call& recv, nb::handle destination) const {
  std::int64_t received = 0;
  interruptibly([&] { return unisono_sendrecv(handle_, send, &recv, &received); }, destination);
  return received;
}

void bind_communicators(nb::module_& module) {
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

  nb::class_<Graph>(module, "Graph", "Edges between ranks.")
      .def_ro("sources", &Graph::sources, "Number of edges that come here.")
      .def_ro("destinations", &Graph::destinations, "Number of edges that go from here.");
  module.def("set_in_place", &set_in_place, "sentinel"_a, "What stands for the buffer that an in-place call has not.");

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
      .def("quick_new", &Communicator::quick_new, "collective"_a, "src"_a.none(), "op"_a.none())
      .def("quick_start", &Communicator::quick_start, "collective"_a, "src"_a.none(), "dst"_a.none(), "op"_a.none(),
           "root"_a.none(), "in_place"_a)
      .def("quick_start_counted", &Communicator::quick_start_counted, "collective"_a, "src"_a.none(), "dst"_a.none(),
           "op"_a.none(), "root"_a.none(), "in_place"_a, "send_counts"_a.none(), "send_displacements"_a.none(),
           "recv_counts"_a.none(), "recv_displacements"_a.none())
      .def("quick_start_send", &Communicator::quick_start_send, "src"_a.none(), "peer"_a.none(), "tag"_a.none())
      .def("quick_start_recv", &Communicator::quick_start_recv, "dst"_a.none(), "peer"_a.none(), "tag"_a.none())
      .def("quick_start_put", &Communicator::quick_start_put, "src"_a.none(), "peer"_a.none(), "offset"_a.none())
      .def("quick_start_get", &Communicator::quick_start_get, "dst"_a.none(), "peer"_a.none(), "offset"_a.none())
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
}

}  // namespace unisono::python
