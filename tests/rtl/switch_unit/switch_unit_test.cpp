// A tree of Verilated switches among members that are played by hand (tests/cpp/sim/switch): what the members get is
// bit for bit what switches in C++ give them, whatever comes when.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "collectives/switch_tag.hpp"
#include "core/error.hpp"
#include "sim/switch_rtl/switch_model.hpp"
#include "sim/switch_rtl/unit_terms.hpp"
#include "tests/cpp/sim/switch/cases.hpp"
#include "tests/cpp/sim/switch/members.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint32_t kFirstEntry = 3;  ///< in which the communicator of the first switch is

/// The switches of a tree, in hardware, and its members.
class RtlJob {
 public:
  RtlJob(const std::string& text, const Terms& terms, std::uint64_t seed)
      : tree(parse_tree(text, false)), ways(seed), models_(tree->switches) {
    SwitchEntry entry{kCommunicator, kEpoch, tree, 0, {}, terms.eager_limit, terms.segment_bytes, terms.rx_buffers};
    for (std::uint32_t node = 0; node < tree->members + tree->switches; ++node) {
      entry.addresses.push_back(kFirstAddress + node);
    }
    for (; entry.number < tree->switches; ++entry.number) {
      // Children from some port on, with gaps where there is room; the way up behind or before them.
      const std::uint32_t children = tree->first[entry.number + 1] - tree->first[entry.number];
      const std::uint32_t node = tree->members + entry.number;
      const std::uint32_t shift = entry.number % 2;
      const std::uint32_t step = children <= 3 ? 2 : 1;
      ports_.emplace_back();
      for (std::uint32_t i = 0; i < children; ++i) {
        ports_.back()[entry.addresses[tree->children[tree->first[entry.number] + i]]] = shift + i * step;
      }
      if (tree->parent[node] != kNoNode) {
        ports_.back()[entry.addresses[tree->parent[node]]] = shift == 0 ? children * step : 0;
      }
      models_[entry.number].open(kFirstEntry + entry.number, unit_terms(entry, [&](std::uint32_t address) {
                                   return ports_[entry.number].at(address);
                                 }));
    }
    for (std::uint32_t rank = 0; rank < tree->members; ++rank) {
      members.push_back(std::make_unique<Member>(ways, tree, rank, terms));
    }
  }

  /// Until nothing is on its way. False: it takes too long.
  bool run(std::uint64_t most = 200'000) {
    for (std::uint64_t cycle = 0; cycle < most; ++cycle) {
      std::uint32_t from = 0, to = 0;
      Ways::Message message;
      if (ways.dice()() % 4 != 0 && ways.next(from, to, message)) deliver(from, to, message);
      bool quiet = ways.empty();
      for (std::uint32_t s = 0; s < models_.size(); ++s) {
        SwitchModel& model = models_[s];
        if (model.is_quiet()) continue;
        quiet = false;
        model.tick();
        while (const auto word = model.pop()) come(s, *word);
      }
      if (quiet) return true;
    }
    return false;
  }

  SwitchModel& model(std::size_t s) { return models_[s]; }
  std::vector<SwitchModel::Wait> waits(std::size_t s) const {
    return models_[s].waits(kFirstEntry + static_cast<std::uint32_t>(s));
  }
  std::uint32_t port_of(std::size_t s, std::uint32_t node) const { return ports_[s].at(kFirstAddress + node); }
  void push(std::size_t s, std::uint32_t port, Header header, std::span<const std::byte> payload) {
    seal(header);
    const HeaderWords words = encode(header);
    std::vector<std::byte> frame(sizeof words + payload.size());
    std::memcpy(frame.data(), words.data(), sizeof words);
    std::copy(payload.begin(), payload.end(), frame.begin() + sizeof words);
    models_[s].push(port, frame);
  }

  const CallTree* tree;
  Ways ways;
  std::vector<std::unique_ptr<Member>> members;

 private:
  void deliver(std::uint32_t from, std::uint32_t to, Ways::Message& message) {
    const std::uint32_t node = to - kFirstAddress;
    if (node < members.size()) {
      members[node]->take(message.header, message.payload);
      return;
    }
    const std::size_t s = node - members.size();
    push(s, ports_[s].at(from), message.header, message.payload);
  }

  void come(std::uint32_t s, const SwitchModel::OutWord& word) {
    std::vector<std::byte>& frame = coming_[{s, word.port}];
    ASSERT_EQ(word.first, frame.empty());
    ASSERT_EQ(ports_[s].at(word.address), word.port);
    frame.insert(frame.end(), word.data.begin(), word.data.begin() + word.bytes);
    if (!word.last) {
      ASSERT_EQ(word.bytes, SwitchModel::kWordBytes);
      return;
    }
    ASSERT_EQ(frame.size(), word.frame_bytes);
    HeaderWords words{};
    ASSERT_GE(frame.size(), sizeof words);
    std::memcpy(words.data(), frame.data(), sizeof words);
    ASSERT_EQ(check_header(words), HeaderFault::kNone);
    const Header header = decode_header(words);
    ASSERT_EQ(header.segment_bytes, frame.size() - sizeof words);
    ways.send(kFirstAddress + tree->members + s, word.address, word.control, header,
              std::span(frame).subspan(sizeof words));
    frame.clear();
  }

  std::vector<SwitchModel> models_;
  std::vector<std::map<std::uint32_t, std::uint32_t>> ports_;                         ///< by switch: of an address
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> coming_;  ///< frames by switch and port
};

void expect_idle(RtlJob& job) {
  for (const auto& member : job.members) EXPECT_TRUE(member->idle());
  for (std::size_t s = 0; s < job.tree->switches; ++s) {
    EXPECT_EQ(job.model(s).counters().faults, 0U);
    EXPECT_EQ(job.model(s).counters().bad_frames, 0U);
    EXPECT_EQ(job.model(s).counters().mismatches, 0U);
  }
}

class RtlTrees : public testing::TestWithParam<const char*> {};

TEST_P(RtlTrees, CarryEachCollectiveOfEveryLength) {
  // Eager, at the limit, one segment, several windows; ends in the middle of a segment. Every root has its turn.
  std::uint32_t root = 0;
  for (const std::size_t count : {1U, 65U, 1000U}) {
    for (const Collective collective : kCarried) {
      root = facts_of(collective).rooted ? (root + 1) % parse_tree(GetParam(), false)->members : 0;
      RtlJob job(GetParam(), {}, 31 * count + root);
      const Case one{collective, count, root};
      for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) begin_on(job, rank, one, count);
      ASSERT_TRUE(job.run());
      expect_idle(job);
      for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) expect_of(job, rank, 0, one, count);
      if (HasFailure()) FAIL() << name_of(collective) << " of " << count << ", root " << root;
    }
  }
}

TEST_P(RtlTrees, CarryManyCallsAtOnceWithLittleCredit) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Terms terms{64, 128, 1 + static_cast<std::uint32_t>(seed % 3)};
    RtlJob job(GetParam(), terms, seed);
    std::mt19937_64 dice(seed);
    std::vector<Case> cases;
    for (std::uint32_t i = 0; i < SwitchModel::kRuns; ++i) {
      cases.push_back({kCarried[dice() % std::size(kCarried)], 1 + dice() % 90,
                       static_cast<std::uint32_t>(dice() % job.tree->members)});
    }
    for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) {
      for (std::size_t i = 0; i < cases.size(); ++i) begin_on(job, rank, cases[i], i);
    }
    ASSERT_TRUE(job.run());
    expect_idle(job);
    for (std::uint32_t rank = 0; rank < job.tree->members; ++rank) {
      for (std::size_t i = 0; i < cases.size(); ++i) expect_of(job, rank, i, cases[i], i);
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RtlTrees,
                         testing::Values("(0 1)", "(0 1 2 3 4)", "((0 1) (2 3))", "(0 (1 2 3) 4)",
                                         "(((0 1) 2) (3 (4 5)))", "((0 1 2) 3 (4) (5 6))"));

TEST(RtlSwitch, CallsThatDifferEndOnAllMembers) {
  RtlJob job("((0 1) (2 3))", {}, 1);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const Call call = call_of(Collective::kAllreduce, 10, 0, *job.tree);
    job.members[rank]->call(call, rank == 2 ? 5 : 4, bytes_of_values(values_of(rank, 10, 1)),
                            std::vector<std::byte>(40));
  }
  ASSERT_TRUE(job.run());
  for (const auto& member : job.members) EXPECT_TRUE(member->mismatched);
}

TEST(RtlSwitch, SaysForWhomACallWaits) {
  for (const std::uint64_t length : {10U, 5000U}) {
    RtlJob job("((0 1) (2 3))", {}, 1);
    constexpr std::size_t kTop = 0, kLeaf = 2;
    const std::uint32_t leaf = job.tree->members + kLeaf;
    const auto begin = [&](std::uint32_t rank) {
      job.members[rank]->call(call_of(Collective::kAllreduce, length, 0, *job.tree), 4,
                              bytes_of_values(values_of(rank, length, 1)), std::vector<std::byte>(4 * length));
    };
    for (const std::uint32_t rank : {0U, 1U, 3U}) begin(rank);
    ASSERT_TRUE(job.run());
    const auto expect = [&](std::size_t s, std::uint32_t node) {
      const std::vector<SwitchModel::Wait> waits = job.waits(s);
      ASSERT_EQ(waits.size(), 1U) << s;
      EXPECT_EQ(waits[0].sequence, 5U);
      EXPECT_EQ(waits[0].opcode, Collective::kAllreduce);
      EXPECT_FALSE(waits[0].takes);
      EXPECT_EQ(waits[0].ports, 1U << job.port_of(s, node)) << s;
    };
    expect(kTop, leaf);
    expect(kLeaf, 2);
    begin(2);
    ASSERT_TRUE(job.run());
    for (std::size_t s = 0; s < 3; ++s) EXPECT_TRUE(job.waits(s).empty()) << s;
  }
}

/// A call that fails while its segment is in the fold: what has been read of it already is not given back once more,
/// whenever that happens. (The ingress asserts that a buffer which is freed was in use.)
TEST(RtlSwitch, ACallThatFailsInTheFoldFreesItsBuffersOnce) {
  for (int wait = 0; wait < 80; wait += 2) {
    RtlJob job("((0 1) 2)", {}, 1);
    constexpr std::size_t kLeaf = 1;
    SwitchModel& leaf = job.model(kLeaf);
    const std::uint32_t top = job.tree->members;
    const auto message = [&](std::uint32_t source, MessageType type, std::size_t bytes) {
      Header header = make_header(type);
      header.communicator = kCommunicator;
      header.epoch = kEpoch;
      header.source = source;
      header.destination = top + kLeaf;
      header.sequence = 5;
      header.signature = 9;
      header.dtype = Datatype::kFp32;
      header.tag = encode(SwitchTag{false, Collective::kAllreduce, Func::kSum, 0});
      header.message_bytes = 64;
      header.segment_bytes = static_cast<std::uint32_t>(bytes);
      header.first = header.last = true;
      return header;
    };
    const auto push = [&](const Header& header) {
      job.push(kLeaf, job.port_of(kLeaf, header.source), header, std::vector<std::byte>(header.segment_bytes));
    };
    // The first member's contribution is here; the second one, which has no credit, asks.
    push(message(0, MessageType::kEager, 64));
    push(message(1, MessageType::kRequest, 0));
    std::optional<SwitchModel::OutWord> grant;
    for (int cycle = 0; cycle < 500 && !grant; ++cycle) {
      leaf.tick();
      grant = leaf.pop();
    }
    ASSERT_TRUE(grant && grant->control);
    HeaderWords words{};
    std::memcpy(words.data(), grant->data.data(), sizeof words);
    Header write = message(1, MessageType::kWrite, 64);
    write.token_slot = decode_header(words).token_slot;
    write.token_generation = decode_header(words).token_generation;
    push(write);
    for (int cycle = 0; cycle < wait; ++cycle) leaf.tick();
    // From above comes what no switch sends down: the call ends here.
    push(message(top, MessageType::kEager, 64));
    for (int cycle = 0; cycle < 600; ++cycle) leaf.tick();
    EXPECT_EQ(leaf.counters().mismatches, 1U) << wait;
  }
}

/// Whatever sound headers members send, in whatever order: it is noticed, and the switches go on with other calls.
TEST(RtlSwitch, TakesAnything) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RtlJob job("((0 1) (2 3) 4)", {}, seed);
    std::mt19937_64 dice(seed);
    for (int i = 0; i < 100; ++i) {
      const auto [header, payload] = drawn_message(dice);
      job.push(header.destination - 5, static_cast<std::uint32_t>(dice() % 3), header, payload);
    }
    ASSERT_TRUE(job.run());
    std::uint64_t noticed = 0;
    for (std::uint32_t s = 0; s < 3; ++s) {
      const SwitchModel::Counters counters = job.model(s).counters();
      noticed += counters.faults + counters.mismatches + counters.bad_frames;
    }
    EXPECT_GT(noticed, 0U);
    const Case further{Collective::kAllreduce, 1000, 0};
    for (std::uint32_t rank = 0; rank < 5; ++rank) begin_on(job, rank, further, seed);
    ASSERT_TRUE(job.run());
    for (std::uint32_t rank = 0; rank < 5; ++rank) expect_of(job, rank, 0, further, seed);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace unisono::sim
