// Collectives of rtl/smi on cables: data that differs by rank, every root, against sums in the order of the tree.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "sim/cables/trees.hpp"
#include "tests/rtl/cables/cables_fixture.hpp"

namespace unisono::sim {
namespace {

using Kind = Collective::Kind;
using Bytes = std::vector<std::uint8_t>;

// Numbers of the specification.
enum Datatype { kInt32 = 2, kFp32 = 6, kFp64 = 7, kInt8 = 10, kUint16 = 13 };
enum Func { kSum = 1, kProd = 2, kMin = 3, kMax = 4, kXor = 10 };

Bytes random_bytes(std::mt19937& random, std::size_t length) {
  Bytes bytes(length);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() >> 5);
  return bytes;
}

template <class T>
Bytes random_values(std::mt19937& random, std::size_t count) {
  Bytes bytes(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    // Of any magnitude, so that another order of adding shows; negative ones alone for every second vector.
    T value{};
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(std::ldexp(1.0 + static_cast<double>(random()) / 4e9, static_cast<int>(random() % 20)));
      if (random() % 2) value = -value;
    } else {
      value = static_cast<T>(random());
    }
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

template <class T>
T combine(int func, T a, T b) {
  switch (func) {
    case kMin:
      return std::min(a, b);
    case kMax:
      return std::max(a, b);
    case kProd:
      return static_cast<T>(a * b);
    case kXor:
      if constexpr (!std::is_floating_point_v<T>) return static_cast<T>(a ^ b);
      [[fallthrough]];
    default:
      if constexpr (std::is_floating_point_v<T>) return a + b;
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
}

/// What a rank and its subtree give, in the tree's order.
template <class T>
Bytes reduced(const std::vector<TreePlace>& tree, const std::vector<Bytes>& given, int func, int rank) {
  Bytes result = given[rank];
  for (const int child : tree[rank].children) {
    const Bytes other = reduced<T>(tree, given, func, child);
    for (std::size_t at = 0; at < result.size(); at += sizeof(T)) {
      T a, b;
      std::memcpy(&a, result.data() + at, sizeof(T));
      std::memcpy(&b, other.data() + at, sizeof(T));
      a = combine(func, a, b);
      std::memcpy(result.data() + at, &a, sizeof(T));
    }
  }
  return result;
}

struct Type {
  int dtype, size;
  std::function<Bytes(std::mt19937&, std::size_t)> values;
  std::function<Bytes(const std::vector<TreePlace>&, const std::vector<Bytes>&, int, int)> result;
};

const Type kTypes[] = {
    {kFp32, 2, random_values<float>, reduced<float>},
    {kFp64, 3, random_values<double>, reduced<double>},
    {kInt32, 2, random_values<std::int32_t>, reduced<std::int32_t>},
    {kInt8, 0, random_values<std::int8_t>, reduced<std::int8_t>},
    {kUint16, 1, random_values<std::uint16_t>, reduced<std::uint16_t>},
};

/// A collective of some ranks: what each of them opens, and what it is to pop.
struct Joined {
  std::vector<int> members;
  std::vector<Collective> calls;
  std::vector<Bytes> expected;
  std::vector<const CollectiveOutcome*> outcomes;

  bool closed() const {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const auto* outcome) { return outcome->closed; });
  }
};

struct Shape {
  Kind kind = Kind::kBroadcast;
  int port = 0;
  int root = 0;
  std::uint32_t count = 0;
  int type = 0;
  int func = kSum;
  int lanes = 0;
  double pause = 0;
  int member = 0;  ///< where the members stand in the table
};

Joined join(CableNetwork& network, const Routes& routes, const std::vector<int>& members, const Shape& shape,
            unsigned seed) {
  std::mt19937 random(seed);
  Joined joined;
  joined.members = members;
  const Type& type = kTypes[shape.type];
  const std::vector<TreePlace> tree = tree_of(routes, shape.root, members);
  const std::size_t part = std::size_t{shape.count} << type.size;
  std::vector<Bytes> given(routes.nodes.size());
  for (const int rank : members) given[rank] = type.values(random, shape.count);
  Bytes all;
  for (const int rank : members) all.insert(all.end(), given[rank].begin(), given[rank].end());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int rank = members[i];
    const bool top = rank == shape.root;
    Collective call{.kind = shape.kind, .port = shape.port, .root = shape.root, .count = shape.count};
    call.size = type.size;
    call.tree = tree[rank];
    call.member = shape.member;
    call.members = static_cast<int>(members.size());
    call.lanes = shape.lanes;
    call.push_pause = random() % 2 ? shape.pause : 0;
    call.pop_pause = random() % 2 ? shape.pause : 0;
    call.flush = random() % 2 ? 0 : shape.pause;
    Bytes expected;
    switch (shape.kind) {
      case Kind::kBroadcast:
        if (top) call.bytes = given[rank];
        if (!top) expected = given[shape.root];
        break;
      case Kind::kReduce:
        call.dtype = type.dtype;
        call.func = shape.func;
        call.bytes = given[rank];
        if (top) expected = type.result(tree, given, shape.func, rank);
        break;
      case Kind::kScatter:
        if (top) call.bytes = all;
        expected = Bytes(all.begin() + static_cast<std::ptrdiff_t>(i * part),
                         all.begin() + static_cast<std::ptrdiff_t>((i + 1) * part));
        break;
      case Kind::kGather:
        call.bytes = given[rank];
        if (top) expected = all;
        break;
    }
    joined.calls.push_back(call);
    joined.expected.push_back(expected);
    joined.outcomes.push_back(&network.node(rank).collective(call));
  }
  return joined;
}

void expect_right(const Joined& joined, const std::string& what) {
  for (std::size_t i = 0; i < joined.members.size(); ++i) {
    const CollectiveOutcome& outcome = *joined.outcomes[i];
    EXPECT_TRUE(outcome.closed && !outcome.refused) << what << " rank " << joined.members[i];
    EXPECT_TRUE(outcome.popped.bytes == joined.expected[i])
        << what << " rank " << joined.members[i] << ": " << outcome.popped.elements << " popped";
    EXPECT_TRUE(outcome.popped.complaints.empty() && outcome.differences.empty()) << what;
  }
}

constexpr Kind kKinds[] = {Kind::kBroadcast, Kind::kReduce, Kind::kScatter, Kind::kGather};
constexpr int kFuncs[] = {kSum, kMax, kMin};

std::vector<int> all_of(const Routes& routes) {
  std::vector<int> ranks(routes.nodes.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

class CollectiveNetworks : public Cables, public ::testing::WithParamInterface<const char*> {};

/// Each port runs one collective after another, of its own kind at first; roots, types and lengths differ.
TEST_P(CollectiveNetworks, EveryKindFromEveryRootOnAllPortsAtOnce) {
  const Routes routes = make(GetParam());
  const std::vector<int> ranks = all_of(routes);
  CableNetwork network(static_cast<int>(ranks.size()), {.latency = 5});
  network.load(routes);
  for (const int rank : ranks) network.node(rank).members(0, ranks);
  std::mt19937 random(11);
  std::vector<std::pair<std::string, Joined>> all;
  for (const int root : ranks) {
    for (int port = 0; port < CableNode::kPorts; ++port) {
      Shape shape{.kind = kKinds[(port + root) % 4], .port = port, .root = root};
      shape.count = root == 0 ? static_cast<std::uint32_t>(port % 2) : static_cast<std::uint32_t>(random() % 300);
      shape.type = static_cast<int>(random() % std::size(kTypes));
      shape.func = kFuncs[random() % std::size(kFuncs)];
      shape.lanes = random() % 2 ? 0 : 1;
      shape.pause = random() % 2 ? 0.5 : 0;
      all.emplace_back("kind " + std::to_string(static_cast<int>(shape.kind)) + " root " + std::to_string(root),
                       join(network, routes, ranks, shape, static_cast<unsigned>(random())));
    }
  }
  ASSERT_TRUE(network.run([&] {
    return std::all_of(all.begin(), all.end(), [](auto& e) { return e.second.closed(); });
  })) << "stopped; circle: "
      << network.circle();
  for (const auto& [what, joined] : all) expect_right(joined, what);
}

INSTANTIATE_TEST_SUITE_P(Bus, CollectiveNetworks, ::testing::Values("--bus 4"));
INSTANTIATE_TEST_SUITE_P(Ring, CollectiveNetworks, ::testing::Values("--ring 5"));
INSTANTIATE_TEST_SUITE_P(Torus, CollectiveNetworks, ::testing::Values("--torus 2x4"));

class CollectivesOnCables : public Cables {};

TEST_F(CollectivesOnCables, TypesAndOperators) {
  const Routes routes = make("--bus 3");
  CableNetwork network(3, {});
  network.load(routes);
  const std::pair<int, int> cases[] = {{0, kSum}, {0, kMax}, {0, kMin}, {0, kProd}, {1, kSum}, {1, kMax},
                                       {2, kSum}, {2, kMax}, {2, kXor}, {3, kSum},  {3, kMin}, {4, kSum}};
  unsigned seed = 40;
  for (const auto& [type, func] : cases) {
    const Shape shape{.kind = Kind::kReduce, .port = 2, .root = 1, .count = 50, .type = type, .func = func};
    const Joined joined = join(network, routes, {0, 1, 2}, shape, ++seed);
    ASSERT_TRUE(network.run([&] { return joined.closed(); }));
    expect_right(joined, "type " + std::to_string(type) + " func " + std::to_string(func));
  }
}

/// Ranks 1, 4, 6 of a torus, and the others at the same port; each has a list and a tree of its own.
TEST_F(CollectivesOnCables, CommunicatorsOfSomeRanks) {
  const Routes routes = make("--torus 2x4");
  CableNetwork network(8, {.latency = 3});
  network.load(routes);
  const std::vector<int> some{6, 1, 4}, others{0, 2, 3, 5, 7};
  for (const int rank : some) network.node(rank).members(200, some);
  for (const int rank : others) network.node(rank).members(17, others);
  unsigned seed = 70;
  for (const Kind kind : kKinds) {
    const Joined one =
        join(network, routes, some, {.kind = kind, .port = 3, .root = 4, .count = 90, .member = 200}, ++seed);
    const Joined two =
        join(network, routes, others, {.kind = kind, .port = 3, .root = 7, .count = 33, .member = 17}, ++seed);
    ASSERT_TRUE(network.run([&] { return one.closed() && two.closed(); })) << static_cast<int>(kind);
    expect_right(one, "some");
    expect_right(two, "others");
  }
}

/// A rank that comes late, one whose kernel stands still for long: the same bits as when all are on time.
TEST_F(CollectivesOnCables, BitsDoNotDependOnWhoIsLate) {
  const Routes routes = make("--torus 2x4");
  std::vector<Bytes> results;
  for (const int late : {-1, 0, 5}) {
    CableNetwork network(8, {.latency = 3});
    network.load(routes);
    const Shape shape{
        .kind = Kind::kReduce, .port = 0, .root = 2, .count = 400, .lanes = 1, .pause = late < 0 ? 0 : 0.6};
    std::mt19937 random(5);
    const std::vector<TreePlace> tree = tree_of(routes, 2, all_of(routes));
    std::vector<const CollectiveOutcome*> outcomes(8);
    std::vector<Collective> calls;
    for (int rank = 0; rank < 8; ++rank) {
      Collective call{.kind = Kind::kReduce, .port = 0, .root = 2, .count = 400, .dtype = kFp32, .func = kSum};
      call.tree = tree[rank];
      call.bytes = random_values<float>(random, 400);
      call.push_pause = rank == 3 ? shape.pause : 0;
      calls.push_back(call);
    }
    for (int rank = 0; rank < 8; ++rank) {
      if (rank != late) outcomes[rank] = &network.node(rank).collective(calls[rank]);
    }
    if (late >= 0) {
      for (int i = 0; i < 700; ++i) network.cycle();
      outcomes[late] = &network.node(late).collective(calls[late]);
    }
    ASSERT_TRUE(network.run([&] { return outcomes[2]->closed; }));
    results.push_back(outcomes[2]->popped.bytes);
  }
  EXPECT_EQ(results[0].size(), 1600u);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST_F(CollectivesOnCables, ChannelsAndCollectivesTakeTurnsAtAPort) {
  const Routes routes = make("--bus 3");
  CableNetwork network(3, {});
  network.load(routes);
  std::mt19937 random(9);
  for (int round = 0; round < 3; ++round) {
    const Joined joined =
        join(network, routes, {0, 1, 2}, {.kind = kKinds[round], .port = 1, .root = round, .count = 40},
             static_cast<unsigned>(round));
    for (int rank = 0; rank < 3; ++rank) {
      if (round == 0) network.node(rank).members(0, {0, 1, 2});
    }
    ASSERT_TRUE(network.run([&] { return joined.closed(); }));
    expect_right(joined, "round " + std::to_string(round));
    Message send{.peer = 2, .port = 1, .count = 30, .size = 2, .credits = round != 1};
    send.bytes = random_bytes(random, 120);
    const Bytes sent = send.bytes;
    Message receive{.peer = 0, .port = 1, .count = 30, .size = 2, .credits = round != 1};
    network.node(0).send(send);
    const Outcome& got = network.node(2).receive(receive);
    ASSERT_TRUE(network.run([&] { return got.closed; }));
    EXPECT_EQ(got.bytes, sent);
  }
}

/// The root of a broadcast and its child were opened with other counts: both name both.
TEST_F(CollectivesOnCables, EndsThatDifferAreNamedAtBoth) {
  const Routes routes = make("--bus 2");
  CableNetwork network(2, {});
  network.load(routes);
  Collective root{.kind = Kind::kBroadcast, .port = 0, .root = 0, .count = 20, .size = 2};
  root.tree = {.parent = -1, .children = {1}};
  root.bytes = Bytes(80, 7);
  Collective leaf{.kind = Kind::kBroadcast, .port = 0, .root = 0, .count = 30, .size = 2};
  leaf.tree = {.parent = 0, .children = {}};
  const auto& at_root = network.node(0).collective(root);
  const auto& at_leaf = network.node(1).collective(leaf);
  ASSERT_TRUE(network.run([&] { return at_root.closed && at_leaf.closed; }));
  ASSERT_EQ(at_root.differences.size(), 1u);
  EXPECT_EQ(at_root.differences[0].peer, 1);
  EXPECT_EQ(at_root.differences[0].mine.count, 20u);
  EXPECT_EQ(at_root.differences[0].theirs.count, 30u);
  ASSERT_EQ(at_leaf.popped.complaints.size(), 1u);
  EXPECT_EQ(at_leaf.popped.complaints[0].expected, 30u);
  EXPECT_EQ(at_leaf.popped.complaints[0].got, 20u);
}

}  // namespace
}  // namespace unisono::sim
