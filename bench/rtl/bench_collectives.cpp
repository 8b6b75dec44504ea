// Measures collectives of rtl/smi on cables, in cycles of 250 MHz: one JSON object a line, with the fields of
// docs/bench.md. bench_collectives NAME=FOLDER...: networks, with the routes that `unisono route --ports 4` has made.
//
// An element a cycle is pushed or popped at each port, as SMI's calls do. Beside the trees: the root that sends to each
// rank, and takes from each, one channel after another.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>

#include "sim/cables/network.hpp"
#include "sim/cables/trees.hpp"

namespace {

using namespace unisono::sim;
using Kind = Collective::Kind;

constexpr double kWire = 20;  // bytes a cycle: 40 Gb/s
constexpr std::uint32_t kCount = 7000;
constexpr int kFp32 = 6, kSum = 1;  // of the specification

struct Span {
  std::uint64_t first = ~0ull, last = 0;
  bool right = true;
  void add(const Outcome& outcome) {
    if (outcome.elements == 0) return;
    first = std::min(first, outcome.first_at);
    last = std::max(last, outcome.last_at);
  }
  double cycles() const { return static_cast<double>(last - first + 1); }
};

/// Small whole numbers that differ by rank and place: their sums are exact in every order.
std::vector<std::uint8_t> values(int rank, std::uint32_t count, int seed) {
  std::vector<std::uint8_t> bytes(4 * std::size_t{count});
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto value =
        static_cast<float>((i * 7 + static_cast<unsigned>(rank) * 31 + static_cast<unsigned>(seed)) % 101);
    std::memcpy(bytes.data() + 4 * std::size_t{i}, &value, 4);
  }
  return bytes;
}

std::vector<std::uint8_t> sum(const std::vector<std::vector<std::uint8_t>>& all) {
  std::vector<std::uint8_t> bytes = all.front();
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    for (std::size_t at = 0; at < bytes.size(); at += 4) {
      float a, b;
      std::memcpy(&a, bytes.data() + at, 4);
      std::memcpy(&b, all[rank].data() + at, 4);
      a += b;
      std::memcpy(bytes.data() + at, &a, 4);
    }
  }
  return bytes;
}

struct Call {
  std::vector<const CollectiveOutcome*> outcomes;
  std::vector<std::vector<std::uint8_t>> expected;
  bool closed() const {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const auto* outcome) { return outcome->closed; });
  }
};

Call open(CableNetwork& network, const Routes& routes, Kind kind, int port, int root) {
  const int size = static_cast<int>(routes.nodes.size());
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::vector<TreePlace> tree = tree_of(routes, root, ranks);
  std::vector<std::vector<std::uint8_t>> given;
  for (int rank = 0; rank < size; ++rank) given.push_back(values(rank, kCount, root + port));
  std::vector<std::uint8_t> all;
  for (const auto& bytes : given) all.insert(all.end(), bytes.begin(), bytes.end());
  Call call;
  for (int rank = 0; rank < size; ++rank) {
    Collective mine{.kind = kind, .port = port, .root = root, .count = kCount, .size = 2, .lanes = 1};
    mine.tree = tree[rank];
    mine.dtype = kind == Kind::kReduce ? kFp32 : 0;
    mine.func = kind == Kind::kReduce ? kSum : 0;
    mine.members = size;
    const bool top = rank == root;
    std::vector<std::uint8_t> expected;
    if (kind == Kind::kBroadcast) {
      (top ? mine.bytes : expected) = given[root];
    } else if (kind == Kind::kScatter) {
      if (top) mine.bytes = all;
      expected = given[rank];
    } else {
      mine.bytes = given[rank];
      if (top) expected = kind == Kind::kReduce ? sum(given) : all;
    }
    call.expected.push_back(std::move(expected));
    call.outcomes.push_back(&network.node(rank).collective(std::move(mine)));
  }
  return call;
}

void add(Span& span, const Call& call) {
  for (std::size_t rank = 0; rank < call.outcomes.size(); ++rank) {
    span.add(call.outcomes[rank]->pushed);
    span.add(call.outcomes[rank]->popped);
    span.right = span.right && call.outcomes[rank]->popped.bytes == call.expected[rank];
  }
}

/// Collectives of one kind from roots 0, 1, ..., one after another at port 0, or at once at a port each.
Span units(const Routes& routes, Kind kind, int calls, bool at_once) {
  const int size = static_cast<int>(routes.nodes.size());
  CableNetwork network(size, {.latency = 4, .bytes_per_cycle = kWire});
  network.load(routes);
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  for (const int rank : ranks) network.node(rank).members(0, ranks);
  std::vector<Call> all;
  for (int i = 0; i < calls; ++i) all.push_back(open(network, routes, kind, at_once ? i : 0, i % size));
  Span span;
  span.right =
      network.run([&] { return std::all_of(all.begin(), all.end(), [](const Call& c) { return c.closed(); }); }, 50000);
  for (const Call& call : all) add(span, call);
  return span;
}

/// The root, rank 0, sends to each other rank, or takes from each.
Span linear(const Routes& routes, Kind kind) {
  const int size = static_cast<int>(routes.nodes.size());
  CableNetwork network(size, {.latency = 4, .bytes_per_cycle = kWire});
  network.load(routes);
  const bool sends = kind == Kind::kBroadcast || kind == Kind::kScatter;
  std::vector<const Outcome*> sent, got;
  std::vector<std::vector<std::uint8_t>> expected;
  // Its own part of scatter and gather is a channel, too.
  for (int rank = kind == Kind::kScatter || kind == Kind::kGather ? 0 : 1; rank < size; ++rank) {
    Message message{.port = 0, .count = kCount, .size = 2, .credits = true, .lanes = 1};
    expected.push_back(values(kind == Kind::kBroadcast ? 0 : rank, kCount, 0));
    Message from = message, to = message;
    from.peer = sends ? rank : 0;
    from.bytes = expected.back();
    to.peer = sends ? 0 : rank;
    sent.push_back(&network.node(sends ? 0 : rank).send(std::move(from)));
    got.push_back(&network.node(sends ? rank : 0).receive(std::move(to)));
  }
  Span span;
  span.right = network.run(
      [&] { return std::all_of(got.begin(), got.end(), [](const Outcome* o) { return o->closed; }); }, 50000);
  for (std::size_t i = 0; i < got.size(); ++i) {
    span.add(*sent[i]);
    span.add(*got[i]);
    span.right = span.right && got[i]->bytes == expected[i];
  }
  return span;
}

bool g_right = true;

void print(const char* op, const std::string& network, int ranks, const char* algorithm, int calls, bool at_once,
           const Span& span, double limit, double linear_cycles) {
  g_right = g_right && span.right;
  std::printf(
      "{\"section\": \"collectives\", \"system\": \"unisono\", \"op\": \"%s\", \"network\": \"cables\", \"topology\": "
      "\"%s\", \"platform\": \"rtl\", \"ranks\": %d, \"bytes\": %u, \"dtype\": \"fp32\", \"buffers\": \"stream\", "
      "\"algorithm\": \"%s\", \"calls\": %d, \"at_once\": %s, \"cycles\": %.0f, \"cycles_an_element\": %.3f, "
      "\"median_us\": %.2f, ",
      op, network.c_str(), ranks, 4 * kCount, algorithm, calls, at_once ? "true" : "false", span.cycles(),
      span.cycles() / kCount / calls, span.cycles() / 250);
  if (linear_cycles > 0) {
    std::printf("\"ratio\": {\"linear\": %.4f}, ", span.cycles() / calls / linear_cycles);
  } else {
    std::printf("\"ratio\": null, ");
  }
  std::printf("\"limit_ratio\": %.4f, \"verified\": %s}\n", span.cycles() / limit, span.right ? "true" : "false");
  std::fflush(stdout);
}

void measure(const std::string& name, const Routes& routes) {
  const int ranks = static_cast<int>(routes.nodes.size());
  const std::pair<Kind, const char*> kinds[] = {
      {Kind::kBroadcast, "bcast"}, {Kind::kReduce, "reduce"}, {Kind::kScatter, "scatter"}, {Kind::kGather, "gather"}};
  for (const auto& [kind, op] : kinds) {
    const bool tree = kind == Kind::kBroadcast || kind == Kind::kReduce;
    // An element a cycle at the root's port.
    const double limit = static_cast<double>(kCount) * (tree ? 1 : ranks);
    const Span one = linear(routes, kind);
    print(op, name, ranks, "linear", 1, false, one, limit, 0);
    const char* how = tree ? "tree" : "members";
    print(op, name, ranks, how, 1, false, units(routes, kind, 1, false), limit, one.cycles());
    print(op, name, ranks, how, 4, false, units(routes, kind, 4, false), 4 * limit, one.cycles());
    // At once each port has its own element a cycle.
    print(op, name, ranks, how, 4, true, units(routes, kind, 4, true), limit, one.cycles());
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr,
                 "bench_collectives NAME=FOLDER...: routes that `unisono route --ports 4 -o FOLDER` has made\n");
    return 2;
  }
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const std::size_t at = word.find('=');
    measure(word.substr(0, at), read_routes(word.substr(at + 1)));
  }
  if (!g_right) std::fprintf(stderr, "bench_collectives: wrong data, or the network stands still\n");
  return g_right ? 0 : 1;
}
