// Switches among members: results bit for bit those of folds in the tree's order, whatever comes when; little credit,
// many segments, calls that differ.
#include "sim/switch/switch_communicator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/kernels.hpp"
#include "members.hpp"

namespace unisono::sim {
namespace {

std::vector<std::byte> bytes_of_values(const std::vector<float>& values) {
  std::vector<std::byte> bytes(4 * values.size());
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// What rank gives: sums of these round, so their order shows.
std::vector<float> values_of(std::uint32_t rank, std::size_t count, std::uint64_t salt) {
  std::vector<float> values(count);
  std::mt19937_64 dice(1000 * salt + rank);
  for (float& value : values) {
    value = static_cast<float>(static_cast<double>(dice() % 2'000'003) / 7.0 - 100'000.0) *
            (dice() % 3 == 0 ? 1e-6F : 1.0F);
  }
  return values;
}

/// The fold at a node of the tree, as the switch there makes it.
std::vector<float> folded(const CallTree& tree, std::uint32_t node, const std::vector<std::vector<float>>& given) {
  if (node < tree.members) return given[node];
  std::vector<std::vector<float>> below;
  const std::uint32_t s = node - tree.members;
  for (std::uint32_t i = tree.first[s]; i < tree.first[s + 1]; ++i)
    below.push_back(folded(tree, tree.children[i], given));
  std::vector<float> result = below[0];
  for (std::size_t i = 1; i < below.size(); ++i) {
    for (std::size_t k = 0; k < result.size(); ++k) result[k] += below[i][k];
  }
  return result;
}

std::uint32_t top_of(const CallTree& tree) {
  std::uint32_t node = 0;
  while (tree.parent[node] != kNoNode) node = tree.parent[node];
  return node;
}

Call call_of(Collective collective, std::size_t count, std::uint32_t root, const CallTree& tree) {
  Call call;
  call.collective = collective;
  const CollectiveFacts facts = facts_of(collective);
  call.func = facts.reduces ? Func::kSum : Func::kNone;
  call.dtype = facts.data ? Datatype::kFp32 : Datatype::kNone;
  call.count = facts.data ? count : 0;
  call.root = facts.rooted ? root : 0;
  call.size = tree.members;
  return call;
}

struct Case {
  Collective collective;
  std::size_t count;
  std::uint32_t root;
};

void begin_on(Job& job, std::uint32_t rank, const Case& one, std::uint64_t salt) {
  const std::uint32_t size = job.tree->members;
  const Call call = call_of(one.collective, one.count, one.root, *job.tree);
  std::vector<float> mine = values_of(rank, one.count, salt);
  std::vector<float> src = mine, dst(one.count, -1.0F);
  switch (one.collective) {
    case Collective::kBcast:
      src.clear();
      if (rank == one.root) dst = mine;
      break;
    case Collective::kScatter:
      src.clear();
      for (std::uint32_t r = 0; r < size && rank == one.root; ++r) {
        const std::vector<float> block = values_of(r, one.count, salt);
        src.insert(src.end(), block.begin(), block.end());
      }
      break;
    case Collective::kReduceScatter:
      for (std::uint32_t r = 1; r < size; ++r) {
        const std::vector<float> block = values_of(rank + 100 * r, one.count, salt);
        src.insert(src.end(), block.begin(), block.end());
      }
      break;
    case Collective::kGather:
    case Collective::kAllgather:
      dst.assign(one.count * size, -1.0F);
      break;
    default:
      break;
  }
  job.members[rank]->call(call, 4711 + static_cast<std::uint32_t>(salt), bytes_of_values(src), bytes_of_values(dst));
}

void expect_of(const Job& job, std::uint32_t rank, std::size_t position, const Case& one, std::uint64_t salt) {
  const std::uint32_t size = job.tree->members;
  std::vector<std::vector<float>> given;
  for (std::uint32_t r = 0; r < size; ++r) {
    given.push_back(
        values_of(one.collective == Collective::kReduceScatter && rank > 0 ? r + 100 * rank : r, one.count, salt));
  }
  std::vector<float> wanted;
  switch (one.collective) {
    case Collective::kReduce:
      if (rank != one.root) return;
      [[fallthrough]];
    case Collective::kAllreduce:
    case Collective::kReduceScatter:
      wanted = folded(*job.tree, top_of(*job.tree), given);
      break;
    case Collective::kBcast:
      wanted = given[one.root];
      break;
    case Collective::kScatter:
      wanted = given[rank];
      break;
    case Collective::kGather:
      if (rank != one.root) return;
      [[fallthrough]];
    case Collective::kAllgather:
      for (const std::vector<float>& block : given) wanted.insert(wanted.end(), block.begin(), block.end());
      break;
    default:
      return;
  }
  const std::span<const std::byte> dst = job.members[rank]->dst(position);
  const std::vector<std::byte> bytes = bytes_of_values(wanted);
  ASSERT_GE(dst.size(), bytes.size());
  EXPECT_EQ(std::memcmp(dst.data(), bytes.data(), bytes.size()), 0)
      << name_of(one.collective) << " of " << one.count << ", root " << one.root << ", rank " << rank;
}

void expect_idle(const Job& job) {
  for (const auto& member : job.members) EXPECT_TRUE(member->idle());
  for (std::size_t s = 0; s < job.switches.size(); ++s) {
    EXPECT_EQ(job.switches[s]->waiting(), "");
    EXPECT_EQ(job.outlets[s]->tokens, 0);
    EXPECT_EQ(job.switches[s]->counters().faults, 0U);
    EXPECT_EQ(job.switches[s]->counters().mismatches, 0U);
  }
}

constexpr Collective kCarried[] = {Collective::kBarrier,   Collective::kBcast,         Collective::kReduce,
                                   Collective::kAllreduce, Collective::kReduceScatter, Collective::kAllgather,
                                   Collective::kGather,    Collective::kScatter};

class Trees : public testing::TestWithParam<const char*> {};

TEST_P(Trees, CarryEachCollectiveOfEveryLengthAndRoot) {
  // Eager, at the limit, one segment, several windows; ends in the middle of a segment.
  for (const std::size_t count : {1U, 7U, 64U, 65U, 128U, 1000U, 5000U}) {
    for (const Collective collective : kCarried) {
      const std::uint32_t roots = facts_of(collective).rooted ? parse_tree(GetParam(), false)->members : 1;
      for (std::uint32_t root = 0; root < roots; ++root) {
        Job job(GetParam(), {}, 31 * count + root);
        const Case one{collective, count, root};
        for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) begin_on(job, rank, one, count);
        job.run();
        expect_idle(job);
        for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) expect_of(job, rank, 0, one, count);
      }
    }
  }
}

TEST_P(Trees, CarryManyCallsAtOnceWithLittleCredit) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Terms terms{64, 128, 1 + static_cast<std::uint32_t>(seed % 3)};
    Job job(GetParam(), terms, seed);
    std::mt19937_64 dice(seed);
    std::vector<Case> cases;
    for (int i = 0; i < 8; ++i) {
      cases.push_back({kCarried[dice() % std::size(kCarried)], 1 + dice() % 90,
                       static_cast<std::uint32_t>(dice() % job.tree->members)});
    }
    for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) {
      for (std::size_t i = 0; i < cases.size(); ++i) begin_on(job, rank, cases[i], i);
    }
    job.run();
    expect_idle(job);
    for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) {
      for (std::size_t i = 0; i < cases.size(); ++i) expect_of(job, rank, i, cases[i], i);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Trees,
                         testing::Values("(0 1)", "(0 1 2 3 4)", "((0 1) (2 3))", "(0 (1 2 3) 4)",
                                         "(((0 1) 2) (3 (4 5)))", "((0 1 2) 3 (4) (5 6))"));

TEST(SwitchCommunicator, CallsThatDifferEndOnAllMembers) {
  Job job("((0 1) (2 3))", {}, 1);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const Call call = call_of(Collective::kAllreduce, 10, 0, *job.tree);
    job.members[rank]->call(call, rank == 2 ? 5 : 4, bytes_of_values(values_of(rank, 10, 1)),
                            std::vector<std::byte>(40));
  }
  job.run();
  for (const auto& member : job.members) EXPECT_TRUE(member->mismatched);
  EXPECT_EQ(job.switches[0]->waiting(), "call 5 allreduce: ranks called different operations\n");
}

TEST(SwitchCommunicator, SaysWhoIsMissing) {
  Job job("((0 1 2) (3 4))", {}, 1);
  for (const std::uint32_t rank : {0U, 3U, 4U}) begin_on(job, rank, {Collective::kAllreduce, 4, 0}, 1);
  job.run();
  EXPECT_EQ(job.switches[1]->waiting(), "call 5 allreduce: waits for rank 1, rank 2, switch 0\n");
  EXPECT_EQ(job.switches[2]->waiting(), "call 5 allreduce: waits for switch 0\n");
  EXPECT_EQ(job.switches[0]->waiting(), "call 5 allreduce: waits for switch 1\n");
}

TEST(SwitchCommunicator, IgnoresStrangersAndWhatIsForOthers) {
  Job job("(0 1)", {}, 1);
  Header header = make_header(MessageType::kEager);
  header.communicator = kCommunicator;
  header.epoch = kEpoch;
  header.source = 0;
  header.destination = 2;
  job.switches[0]->take(kFirstAddress + 1, header, {});  // says that it is another
  header.source = 5;
  job.switches[0]->take(kFirstAddress, header, {});
  header.source = 0;
  header.destination = 1;
  job.switches[0]->take(kFirstAddress, header, {});
  EXPECT_EQ(job.switches[0]->counters().faults, 3U);
  EXPECT_EQ(job.switches[0]->waiting(), "");
}

/// Whatever sound headers members send, in whatever order: nothing is read or written beyond its place, it is noticed,
/// and the switches go on with other calls.
TEST(SwitchCommunicator, TakesAnything) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Job job("((0 1) (2 3) 4)", {}, seed);
    std::mt19937_64 dice(seed);
    const auto pick = [&](std::initializer_list<std::uint64_t> of) { return *(of.begin() + dice() % of.size()); };
    for (int i = 0; i < 200; ++i) {
      Header header = make_header(static_cast<MessageType>(pick({0, 0, 0, 1, 2, 3, 4, 5, 6, 7})));
      header.communicator = kCommunicator;
      header.epoch = kEpoch;
      header.source = static_cast<std::uint32_t>(dice() % 8);
      header.destination = static_cast<std::uint32_t>(5 + dice() % 3);
      header.sequence = static_cast<std::uint32_t>(pick({1, 2, 3}));
      header.signature = static_cast<std::uint32_t>(pick({1, 1, 1, 2}));
      header.dtype = static_cast<Datatype>(pick({0, 3, 9, 10, 11, 12}));
      header.tag = static_cast<std::uint32_t>(pick({82, 83, 82, dice() & kMaxTag}));
      header.message_bytes = pick({0, 4, 64, 256, 260, 100'000, std::uint64_t{1} << 40U});
      header.offset = pick({0, 0, 0, 512, 99'000});
      header.token_slot = static_cast<std::uint16_t>(pick({0, 1, 2, 9}));
      header.token_generation = static_cast<std::uint16_t>(pick({0, 1, 2, 3}));
      header.first = header.offset == 0;
      const std::vector<std::byte> payload(pick({0, 4, 64, 256, 512, 8000}));
      header.last = header.offset + payload.size() == header.message_bytes;
      header.segment_bytes = static_cast<std::uint32_t>(payload.size());
      const std::uint32_t to = header.destination - 5;
      job.switches[to]->take(kFirstAddress + header.source, header, payload);
    }
    job.run();
    std::uint64_t noticed = 0;
    for (const auto& one : job.switches) noticed += one->counters().faults + one->counters().mismatches;
    EXPECT_GT(noticed, 0U);
    const Case further{Collective::kAllreduce, 1000, 0};
    for (std::uint32_t rank = 0; rank < 5; ++rank) begin_on(job, rank, further, seed);
    job.run();
    for (std::uint32_t rank = 0; rank < 5; ++rank) expect_of(job, rank, 0, further, seed);
  }
}

TEST(SwitchCommunicator, RefusesTermsThatNobodyAgrees) {
  const CallTree* const tree = parse_tree("(0 1)", false);
  Ways ways(1);
  Job::Outlet outlet(ways, 0);
  const auto make = [&](std::uint32_t number, std::vector<std::uint32_t> addresses, std::uint32_t eager,
                        std::uint32_t segment) {
    const SwitchCommunicator made({1, 0, tree, number, std::move(addresses), eager, segment, 2}, outlet);
  };
  EXPECT_THROW(make(0, {0, 1}, 64, 128), Error);
  EXPECT_THROW(make(0, {0, 1, 2}, 64, 100), Error);
  EXPECT_THROW(make(0, {0, 1, 2}, 256, 128), Error);
  EXPECT_THROW(make(1, {0, 1, 2}, 64, 128), Error);
  EXPECT_NO_THROW(make(0, {0, 1, 2}, 64, 128));
}

}  // namespace
}  // namespace unisono::sim
