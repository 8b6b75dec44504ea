#include "driver/neighbours.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "collectives/build.hpp"
#include "core/crc32c.hpp"
#include "core/quoted.hpp"

namespace unisono::driver {

namespace {

constexpr std::uint64_t kMostEdges = std::uint64_t{1} << 20U;       // at one rank
constexpr std::uint64_t kMaxBytes = (std::uint64_t{1} << 48U) - 1;  // what a move's byte offset can name

/// Numbers the edges between each two ranks.
std::vector<Edge> numbered(const std::vector<std::uint32_t>& others, std::uint32_t size, auto&& distance_to) {
  std::vector<Edge> edges;
  std::vector<std::uint32_t> seen(size, 0);
  for (std::uint32_t i = 0; i < others.size(); ++i) edges.push_back({i, distance_to(others[i]), seen[others[i]]++});
  return edges;
}

/// A move of a program to be: its place in the order of all edges, and what it does.
struct Planned {
  std::uint32_t distance;
  std::uint32_t nth;
  std::uint32_t source;
  Move move;

  friend bool operator<(const Planned& a, const Planned& b) {
    return std::tie(a.distance, a.nth, a.source) < std::tie(b.distance, b.nth, b.source);
  }
};

}  // namespace

std::vector<Edge> edges_out(const Edges& edges) {
  return numbered(edges.destinations, edges.size,
                  [&](std::uint32_t to) { return build::minus(to, edges.rank, edges.size); });
}

std::vector<Edge> edges_in(const Edges& edges) {
  return numbered(edges.sources, edges.size,
                  [&](std::uint32_t from) { return build::minus(edges.rank, from, edges.size); });
}

Program neighbour_program(const Edges& edges, Datatype dtype) {
  using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of moves
  const EdgeParams params(edges);
  const std::vector<Edge> in = edges_in(edges);
  Call call;
  call.dtype = dtype;
  std::vector<Planned> moves;
  for (const Edge& edge : edges_out(edges)) {
    Build move(call);
    move.take(indirect(Region::kSrc, params.send_offset(edge.index))).count_at(params.send_count(edge.index));
    if (edge.distance != 0) {
      move.send(edges.destinations[edge.index], 0);
    } else {
      const auto same = std::find_if(in.begin(), in.end(),
                                     [&](const Edge& other) { return other.distance == 0 && other.nth == edge.nth; });
      move.keep(indirect(Region::kDst, params.recv_offset(same->index)));
    }
    moves.push_back({edge.distance, edge.nth, edges.rank, move});
  }
  for (const Edge& edge : in) {
    if (edge.distance == 0) continue;
    const std::uint32_t source = edges.sources[edge.index];
    Build move(call);
    move.arrive(source, 0).keep(indirect(Region::kDst, params.recv_offset(edge.index)));
    moves.push_back({edge.distance, edge.nth, source, move.count_at(params.recv_count(edge.index))});
  }
  std::sort(moves.begin(), moves.end());
  Program program;
  for (const Planned& planned : moves) program.moves.push_back(planned.move);
  program.params_bytes = std::uint64_t{8} * params.words();
  return program;
}

std::shared_ptr<const Program> Graph::program(Datatype dtype) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Program>& program = programs_[dtype];
  if (program == nullptr) program = std::make_shared<const Program>(neighbour_program(edges_, dtype));
  return program;
}

namespace {

/// What every rank tells every other one first.
struct Degrees {
  std::uint64_t sources = 0;
  std::uint64_t destinations = 0;
  std::uint64_t fault =
      0;  ///< 0, or whether a source (1) or destination (2) is no rank, or there are too many edges (3)
  std::int64_t value = 0;  ///< the number that is no rank
};

Degrees degrees_of(std::span<const std::int64_t> sources, std::span<const std::int64_t> destinations,
                   std::uint32_t size) {
  Degrees degrees{sources.size(), destinations.size()};
  if (sources.size() > kMostEdges || destinations.size() > kMostEdges) degrees.fault = 3;
  std::uint64_t side = 0;
  for (const auto ranks : {sources, destinations}) {
    ++side;
    for (const std::int64_t rank : ranks) {
      if (degrees.fault == 0 && (rank < 0 || rank >= size)) {
        degrees.fault = side;
        degrees.value = rank;
      }
    }
  }
  if (degrees.fault != 0) degrees.sources = degrees.destinations = 0;
  return degrees;
}

template <class T>
void bind_gather(CallRequest& request, const Communicator& communicator, std::vector<T>& own, std::vector<T>& all) {
  request.communicator = communicator.number;
  request.src = {reinterpret_cast<std::byte*>(own.data()), own.size() * sizeof(T)};
  request.dst = {reinterpret_cast<std::byte*>(all.data()), all.size() * sizeof(T)};
}

std::string times(std::uint64_t count) {
  return count == 0 ? "not" : count == 1 ? "once" : std::to_string(count) + " times";
}

using Pair = std::pair<std::uint32_t, std::uint32_t>;

/// Throws if the edges that begin somewhere are not those that end somewhere; both sorted.
void compare(const std::vector<Pair>& begun, const std::vector<Pair>& ended) {
  const auto different = std::mismatch(begun.begin(), begun.end(), ended.begin(), ended.end());
  if (different.first == begun.end() && different.second == ended.end()) return;
  Pair edge;
  if (different.first == begun.end()) {
    edge = *different.second;
  } else if (different.second == ended.end()) {
    edge = *different.first;
  } else {
    edge = std::min(*different.first, *different.second);
  }
  const auto count = [&](const std::vector<Pair>& pairs) {
    const auto range = std::equal_range(pairs.begin(), pairs.end(), edge);
    return static_cast<std::uint64_t>(range.second - range.first);
  };
  const std::string from = std::to_string(edge.first);
  const std::string to = std::to_string(edge.second);
  throw Error(ErrorCode::kMismatchedCall, "graph: rank " + from + " names rank " + to + " as a destination " +
                                              times(count(begun)) + ", but rank " + to + " names rank " + from +
                                              " as a source " + times(count(ended)) +
                                              "; every edge has to be named at both of its ends");
}

}  // namespace

std::shared_ptr<Graph> make_graph(const std::shared_ptr<Communicator>& communicator,
                                  std::span<const std::int64_t> sources, std::span<const std::int64_t> destinations) {
  const std::uint32_t size = communicator->size;
  const std::uint32_t rank = communicator->rank;
  // A rank whose arguments are wrong takes part, so that all learn of it.
  std::vector<Degrees> own{degrees_of(sources, destinations, size)};
  std::vector<Degrees> all_degrees(size);
  CallRequest lengths;
  lengths.call.collective = Collective::kAllgather;
  lengths.call.dtype = Datatype::kByte;
  lengths.call.count = sizeof(Degrees);
  bind_gather(lengths, *communicator, own, all_degrees);
  as_part_of("graph", [&] { return run_to_end(*communicator, lengths); });
  for (std::uint32_t other = 0; other < size; ++other) {
    const Degrees& degrees = all_degrees[other];
    if (degrees.fault == 0) continue;
    const std::string who = other == rank ? "" : "rank " + std::to_string(other) + ": ";
    if (degrees.fault == 3) {
      throw Error(ErrorCode::kInvalidCount,
                  "graph: " + who + "more than " + std::to_string(kMostEdges) + " edges begin or end at one rank");
    }
    throw Error(ErrorCode::kInvalidArgument,
                "graph: " + who + (degrees.fault == 1 ? "source " : "destination ") + std::to_string(degrees.value) +
                    " was given; the communicator has ranks 0 to " + std::to_string(size - 1));
  }

  Edges edges;
  edges.rank = rank;
  edges.size = size;
  edges.sources.assign(sources.begin(), sources.end());
  edges.destinations.assign(destinations.begin(), destinations.end());
  std::vector<std::uint32_t> mine = edges.sources;
  mine.insert(mine.end(), edges.destinations.begin(), edges.destinations.end());
  std::vector<std::uint64_t> counts;
  std::uint64_t total = 0;
  for (const Degrees& degrees : all_degrees) {
    counts.push_back(degrees.sources + degrees.destinations);
    total += counts.back();
  }
  std::vector<std::uint32_t> all(total);
  CallRequest lists;
  lists.call.collective = Collective::kAllgatherv;
  lists.call.dtype = Datatype::kUint32;
  VectorArguments vectors;
  vectors.recv_counts = counts.data();
  lists.vectors = &vectors;
  bind_gather(lists, *communicator, mine, all);
  as_part_of("graph", [&] { return run_to_end(*communicator, lists); });

  std::vector<Pair> begun;
  std::vector<Pair> ended;
  std::uint64_t at = 0;
  for (std::uint32_t other = 0; other < size; ++other) {
    for (std::uint64_t i = 0; i < counts[other]; ++i, ++at) {
      if (i < all_degrees[other].sources) {
        ended.emplace_back(all[at], other);
      } else {
        begun.emplace_back(other, all[at]);
      }
    }
  }
  std::sort(begun.begin(), begun.end());
  std::sort(ended.begin(), ended.end());
  compare(begun, ended);
  const auto bytes_of_all = std::as_bytes(std::span(all));
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes_of_all.data());
  std::uint32_t fingerprint = crc32c(std::span(begin, bytes_of_all.size()));
  const auto* words = reinterpret_cast<const std::uint8_t*>(all_degrees.data());
  fingerprint = crc32c(std::span(words, all_degrees.size() * sizeof(Degrees)), fingerprint);
  return std::make_shared<Graph>(communicator, std::move(edges), fingerprint);
}

namespace {

/// Counts and places of the blocks of one direction, checked, in params.
class Side {
 public:
  /// An element of the user is `scaled` of the datatype, `element` bytes in all.
  Side(const std::string& operation, const char* name, std::uint64_t element, std::uint64_t scaled)
      : operation_(operation),
        name_(name),
        element_(element),
        scaled_(scaled),
        last_(std::min(kMaxBytes / element, kMaxCount / scaled)) {}

  /// Blocks of equal length, one behind the other.
  void uniform(std::size_t edges, std::uint64_t count) {
    for (std::size_t i = 0; i < edges; ++i) add(i, count, extent_);
  }
  /// The same block for every edge.
  void repeated(std::size_t edges, std::uint64_t count) {
    for (std::size_t i = 0; i < edges; ++i) add(i, count, 0);
    extent_ = count;
  }
  void varied(std::size_t edges, const std::int64_t* counts, const std::int64_t* displacements) {
    if (edges == 0) return;
    if (counts == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, operation_ + ": " + name_ +
                                                   "_counts is null; an entry is needed for each of the " +
                                                   std::to_string(edges) + " edges, in elements");
    }
    std::uint64_t packed = 0;
    for (std::size_t i = 0; i < edges; ++i) {
      const std::uint64_t count = checked("counts", i, counts[i]);
      add(i, count, displacements == nullptr ? packed : checked("displacements", i, displacements[i]));
      packed += count;
    }
  }

  void check_disjoint() const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] != 0) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return begins_[a] < begins_[b]; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (begins_[order[i - 1]] + counts_[order[i - 1]] <= begins_[order[i]]) continue;
      throw Error(ErrorCode::kOverlappingBuffers,
                  operation_ + ": " + name_ + "_displacements make the blocks of edges " +
                      std::to_string(order[i - 1]) + " and " + std::to_string(order[i]) +
                      " overlap; blocks that are written must be disjoint");
    }
  }

  /// Appends the words of params.
  void write(std::vector<std::uint64_t>& words) const {
    for (const std::uint64_t count : counts_) words.push_back(count * scaled_);
    for (const std::uint64_t begin : begins_) words.push_back(begin * element_);
  }
  std::uint64_t count(std::size_t edge) const { return counts_[edge]; }
  std::uint64_t extent() const { return extent_; }

 private:
  std::uint64_t checked(const char* what, std::size_t edge, std::int64_t value) const {
    const std::uint64_t most = kMaxCount / scaled_;
    if (value >= 0 && static_cast<std::uint64_t>(value) <= most) return static_cast<std::uint64_t>(value);
    throw Error(ErrorCode::kInvalidCount, operation_ + ": " + name_ + "_" + what + "[" + std::to_string(edge) +
                                              "] is " + std::to_string(value) + "; allowed are 0 to " +
                                              std::to_string(most) + " elements");
  }
  void add(std::size_t edge, std::uint64_t count, std::uint64_t begin) {
    if (count != 0) extent_ = std::max(extent_, begin + count);
    if (extent_ > last_) {
      throw Error(ErrorCode::kInvalidCount, operation_ + ": the block of edge " + std::to_string(edge) +
                                                " ends at element " + std::to_string(extent_) +
                                                "; the last allowed is " + std::to_string(last_));
    }
    counts_.push_back(count);
    begins_.push_back(begin);
  }

  const std::string& operation_;
  const char* name_;
  std::uint64_t element_;
  std::uint64_t scaled_;
  std::uint64_t last_;  ///< element at which a block may end
  std::vector<std::uint64_t> counts_;
  std::vector<std::uint64_t> begins_;
  std::uint64_t extent_ = 0;
};

Binding bind(const std::string& operation, const char* name, const void* data, std::uint64_t held,
             std::uint64_t elements, std::uint64_t element) {
  const std::uint64_t needed = elements * element;
  if (needed == 0) return {};
  if (data == nullptr || held < needed) {
    const std::uint64_t there = data == nullptr ? 0 : held;
    throw Error(data == nullptr ? ErrorCode::kInvalidArgument : ErrorCode::kBufferTooSmall,
                operation + ": " + name +
                    (data == nullptr ? " is null" : " holds " + std::to_string(there / element) + " elements") +
                    "; the call needs " + std::to_string(elements) + " elements (" + std::to_string(needed) +
                    " bytes) there");
  }
  // A program never writes what is bound to src.
  return {const_cast<std::byte*>(static_cast<const std::byte*>(data)), needed};  // NOLINT(*-const-cast)
}

}  // namespace

void check_neighbours(const Communicator& communicator, const unisono_call& given, CheckedCall& checked) {
  const auto graph =
      Graphs::instance().get(reinterpret_cast<std::uintptr_t>(given.graph), "graph", ErrorCode::kInvalidArgument);
  const auto collective = static_cast<Collective>(given.collective);
  const bool gathers = collective == Collective::kAllgather || collective == Collective::kAllgatherv;
  const bool varies = collective == Collective::kAllgatherv || collective == Collective::kAlltoallv;
  if (!gathers && collective != Collective::kAlltoall && !varies) {
    throw Error(ErrorCode::kInvalidArgument,
                "a graph was given; of it are allgather, allgatherv, alltoall and alltoallv only");
  }
  const std::string operation = std::string("neighbour_") + name_of(collective);
  const Edges& edges = graph->edges();
  if (graph->communicator().context != communicator.context || graph->communicator().number != communicator.number) {
    throw Error(ErrorCode::kInvalidArgument, operation + ": the graph is of another communicator");
  }
  if (given.datatype < 0 || given.datatype > 255 || !is_known(static_cast<Datatype>(given.datatype)) ||
      given.datatype == 0) {
    throw Error(ErrorCode::kInvalidDatatype, operation + ": datatype " + std::to_string(given.datatype) + " was given");
  }
  if (given.op != 0) throw Error(ErrorCode::kInvalidOp, operation + ": an op was given, but nothing is reduced");
  if (given.in_place != 0) {
    throw Error(ErrorCode::kInvalidArgument, operation + " has no in-place form; pass both buffers");
  }
  if (given.algorithm != nullptr && *given.algorithm != '\0' && std::string(given.algorithm) != "auto") {
    throw Error(ErrorCode::kUnknownAlgorithm, operation + ": there is no algorithm " + in_quotes(given.algorithm) +
                                                  "; the operation has none to choose from");
  }
  if (given.send_datatypes != nullptr || given.recv_datatypes != nullptr) {
    throw Error(ErrorCode::kInvalidArgument, operation + " has one datatype; none for each edge can be given");
  }
  const auto dtype = static_cast<Datatype>(given.datatype);
  if (given.element_bytes != 0) check_own_elements(operation, given, true);
  const std::uint64_t scaled = std::max<std::uint64_t>(given.element_bytes, 1);
  const std::uint64_t element = bytes_of(dtype) * scaled;
  if (given.count < 0 || static_cast<std::uint64_t>(given.count) > kMaxCount / scaled) {
    throw Error(ErrorCode::kInvalidCount, operation + ": count " + std::to_string(given.count) +
                                              " was given; allowed are 0 to " + std::to_string(kMaxCount / scaled));
  }
  const auto count = static_cast<std::uint64_t>(given.count);
  Side sends(operation, "send", element, scaled);
  Side receives(operation, "recv", element, scaled);
  if (gathers) {
    sends.repeated(edges.destinations.size(), count);
  } else if (varies) {
    sends.varied(edges.destinations.size(), given.send_counts, given.send_displacements);
  } else {
    sends.uniform(edges.destinations.size(), count);
  }
  if (varies) {
    receives.varied(edges.sources.size(), given.recv_counts, given.recv_displacements);
    receives.check_disjoint();
  } else {
    receives.uniform(edges.sources.size(), count);
  }
  const std::vector<Edge> in = edges_in(edges);
  for (const Edge& edge : edges_out(edges)) {
    if (edge.distance != 0) continue;
    const auto same = std::find_if(in.begin(), in.end(),
                                   [&](const Edge& other) { return other.distance == 0 && other.nth == edge.nth; });
    if (sends.count(edge.index) == receives.count(same->index)) continue;
    throw Error(ErrorCode::kInvalidCount, operation + ": this rank sends itself " +
                                              std::to_string(sends.count(edge.index)) + " elements and receives " +
                                              std::to_string(receives.count(same->index)));
  }

  CallRequest& request = checked.request;
  request.communicator = communicator.number;
  request.call.collective = Collective::kProgram;
  request.call.dtype = dtype;
  // Equal on all ranks, and part of the signature: calls along other graphs, or of other kinds, do not match.
  const std::uint64_t kind = (gathers ? 1U : 0U) | (varies ? 2U : 0U);
  request.call.count = std::uint64_t{graph->fingerprint()} << 2U | kind;
  request.operation = gathers ? (varies ? "neighbour_allgatherv" : "neighbour_allgather")
                              : (varies ? "neighbour_alltoallv" : "neighbour_alltoall");
  request.program = graph->program(dtype);
  sends.write(checked.params);
  receives.write(checked.params);
  if (!checked.params.empty()) {
    request.params = {reinterpret_cast<std::byte*>(checked.params.data()), checked.params.size() * 8};
  }
  request.src = driver::bind(operation, "src", given.src, given.src_bytes, sends.extent(), element);
  request.dst = driver::bind(operation, "dst", given.dst, given.dst_bytes, receives.extent(), element);
  if (request.src.bytes != 0 && request.dst.bytes != 0) {
    const auto a = reinterpret_cast<std::uintptr_t>(request.src.data);
    const auto b = reinterpret_cast<std::uintptr_t>(request.dst.data);
    if (a < b + request.dst.bytes && b < a + request.src.bytes) {
      throw Error(ErrorCode::kOverlappingBuffers, operation + ": src and dst overlap; pass disjoint buffers");
    }
  }
}

}  // namespace unisono::driver
