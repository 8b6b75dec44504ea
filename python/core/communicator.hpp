// Communicators as objects of Python, and the calls that are made on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/core/memory.hpp"
#include "python/core/outcome.hpp"
#include "python/core/ownership.hpp"
#include "python/core/request.hpp"
#include "unisono/unisono.h"

namespace unisono::python {

/// Programs of the user, one for each rank.
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

/// Entries for each rank, or each edge of a graph; nothing where they are not given.
using Counts = std::optional<std::vector<std::int64_t>>;
using Datatypes = std::optional<std::vector<int>>;

/// A communicator of the C interface.
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
  std::uint32_t number() const;
  std::string name() const;
  void set_name(const std::string& name) const;

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return size_; }

  /// Hints for a communicator that is made: group_size, eager_limit, timeout, lanes, name, group (0: none), streams.
  using Hints = std::tuple<std::uint32_t, std::uint32_t, double, bool, std::optional<std::string>, std::uint64_t, bool>;

  std::optional<Communicator> split(std::int64_t colour, std::int64_t key, const Hints& hints) const;
  std::optional<Communicator> dup(const Hints& hints) const;
  std::optional<Communicator> subset(const std::vector<std::uint32_t>& ranks, const Hints& hints) const;
  std::optional<Communicator> create_group(const std::vector<std::uint32_t>& ranks, std::int64_t tag,
                                           const Hints& hints) const;

  std::unique_ptr<Graph> graph(const std::vector<std::int64_t>& sources,
                               const std::vector<std::int64_t>& destinations) const;

  void free() const;
  void set_timeout(double seconds) const;
  void revoke(const std::string& reason) const;

  Communicator shrink() const;
  std::uint64_t agree(std::uint64_t value) const;
  std::vector<std::uint32_t> failed() const;

  std::pair<std::optional<std::string>, bool> last_algorithm() const;

  nb::tuple state() const;

  std::vector<std::pair<std::string, std::uint64_t>> counters() const;

  void window(const nb::object& buffer) const;

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
                   std::optional<double> pre_scale, std::optional<double> post_scale) const;

  /// A send and a receive at once; returns the elements that came. They have the datatype, what must complete before,
  /// the deadline and what travels in common.
  std::int64_t sendrecv(int datatype, std::uint64_t element_bytes, nb::handle src, std::int64_t count, std::int64_t to,
                        std::int64_t send_tag, nb::handle dst, std::int64_t source, std::int64_t recv_tag,
                        const std::vector<const Request*>& wait_for, double timeout, int wire_datatype) const;

  void group_begin() const;
  void group_end() const;

  /// Starts a call, or only prepares it.
  InFlight start(Prepared given, bool starts) const;

  /// A plain call (quick.hpp) that was started, and the array that it writes on this rank, or None. Nothing, having
  /// done nothing, if it must go the long way. Where `dst` is None, it is made for collectives that `quick_result`
  /// knows.
  using Started = std::optional<std::pair<Request, nb::object>>;
  Started quick_start(int collective, nb::handle src, nb::handle dst, nb::handle op, nb::handle root,
                      nb::handle in_place) const;
  Started quick_start_counted(int collective, nb::handle src, nb::handle dst, nb::handle op, nb::handle root,
                              nb::handle in_place, nb::handle send_counts, nb::handle send_displacements,
                              nb::handle recv_counts, nb::handle recv_displacements) const;
  Started quick_start_send(nb::handle src, nb::handle peer, nb::handle tag) const;
  Started quick_start_recv(nb::handle dst, nb::handle peer, nb::handle tag) const;
  Started quick_start_put(nb::handle src, nb::handle peer, nb::handle offset) const;
  Started quick_start_get(nb::handle dst, nb::handle peer, nb::handle offset) const;

  /// Runs a plain call (quick.hpp); false, having done nothing, if it must go the long way.
  bool quick(int collective, nb::handle src, nb::handle dst, nb::handle op, nb::handle root, nb::handle in_place) const;
  /// The same of one whose destination is made (`quick_result`), which is returned; none if it must go the long way.
  nb::object quick_new(int collective, nb::handle src, nb::handle op) const;
  /// As `quick`, of a collective with counts; those of one side are None where it has none.
  bool quick_counted(int collective, nb::handle src, nb::handle dst, nb::handle op, nb::handle root,
                     nb::handle in_place, nb::handle send_counts, nb::handle send_displacements, nb::handle recv_counts,
                     nb::handle recv_displacements) const;
  bool quick_send(nb::handle src, nb::handle peer, nb::handle tag) const;
  /// The elements that came; -1, having done nothing, if the call must go the long way.
  std::int64_t quick_recv(nb::handle dst, nb::handle peer, nb::handle tag) const;
  /// What came; none, having done nothing, if the call must go the long way.
  std::optional<StatusTuple> quick_recv_status(nb::handle dst, nb::handle peer, nb::handle tag) const;
  bool quick_put(nb::handle src, nb::handle peer, nb::handle offset) const;
  bool quick_get(nb::handle dst, nb::handle peer, nb::handle offset) const;
  StatusTuple probe(std::int64_t source, std::int64_t tag, double timeout) const;
  std::optional<StatusTuple> iprobe(std::int64_t source, std::int64_t tag) const;
  std::int64_t quick_sendrecv(nb::handle src, nb::handle to, nb::handle send_tag, nb::handle dst, nb::handle source,
                              nb::handle recv_tag) const;
  void run(Prepared given) const;

 private:
  bool run_quick(const std::optional<unisono_call>& call, nb::handle destination) const;
  /// `dst`: None where the call has none.
  Started start_quick(const std::optional<unisono_call>& call, nb::handle src, nb::handle dst) const;
  void begin(const unisono_call& call, InFlight& made, bool starts) const;
  /// A receive, and a send at the same time if there is one; the elements that came.
  std::int64_t exchange(const unisono_call* send, const unisono_call& recv, nb::handle destination) const;

  /// What `make(settings, &communicator)` makes; none if it makes none.
  template <class Make>
  static std::optional<Communicator> made(const Hints& hints, Make&& make);

  unisono_communicator* handle_;
  std::shared_ptr<Ownership> ownership_;
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t number_ = 0;
};

}  // namespace unisono::python
