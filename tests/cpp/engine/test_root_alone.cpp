// What of a rooted call the root alone knows, as MPI has it: whether it is in place, and the counts of gatherv and
// scatterv. Ranks are mixed in all ways; values differ on every rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;
using Values = std::vector<std::int32_t>;

Values values(std::uint32_t rank, std::uint64_t count) {
  Values made(count);
  std::iota(made.begin(), made.end(), static_cast<std::int32_t>(rank) * 100'000 + 1);
  return made;
}

/// How the ranks of a call are told what only its root acts on.
struct Told {
  bool root_in_place = false;
  bool others_in_place = false;
  bool counts = true;  ///< the others know the counts of all
};

/// One call on one rank: its buffers, and what they must be afterwards.
struct Mixed {
  Mixed(const Rank& self, Collective collective, std::uint64_t count, std::uint32_t root, const Told& told)
      : made(request<std::int32_t>(collective, count, root,
                                   collective == Collective::kReduce ? Func::kSum : Func::kNone)) {
    const bool at_root = self.rank == root;
    const bool own_place = at_root && told.root_in_place;
    made.call.in_place = at_root ? told.root_in_place : told.others_in_place;
    const bool by_counts = collective == Collective::kGatherv || collective == Collective::kScatterv;
    std::uint64_t total = 0;
    for (std::uint32_t rank = 0; rank < self.size; ++rank) {
      counts.push_back(by_counts ? (rank % 3 == 1 ? 0 : count + rank) : count);
      begins.push_back(total);
      total += counts.back();
    }
    const std::uint64_t own = counts[self.rank];
    const bool gathers = collective == Collective::kGather || collective == Collective::kGatherv;
    if (collective == Collective::kReduce) {
      Values sum(count);
      for (std::uint32_t rank = 0; rank < self.size; ++rank) {
        const Values input = values(rank, count);
        for (std::uint64_t i = 0; i < count; ++i) sum[i] += input[i];
      }
      (own_place ? dst : src) = values(self.rank, count);
      if (at_root) dst.resize(count);
      expected = at_root ? sum : Values{};
    } else if (gathers) {
      for (std::uint32_t rank = 0; rank < self.size && at_root; ++rank) {
        const Values block = values(rank, counts[rank]);
        expected.insert(expected.end(), block.begin(), block.end());
      }
      if (at_root) dst.assign(total, -1);
      const Values input = values(self.rank, own);
      if (own_place) {
        std::copy(input.begin(), input.end(), dst.begin() + static_cast<std::ptrdiff_t>(begins[self.rank]));
      } else {
        src = input;
      }
    } else {
      if (at_root) src = values(root, total);
      const Values all = values(root, total);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(begins[self.rank]);
      if (!own_place) expected.assign(begin, begin + static_cast<std::ptrdiff_t>(own));
      if (!own_place) dst.assign(own, -1);
    }
    if (by_counts) {
      if (!at_root && !told.counts) {
        vectors.own = own;
      } else {
        (gathers ? vectors.recv_counts : vectors.send_counts) = counts.data();
      }
      made.vectors = &vectors;
    }
    made.src = bind(src);
    made.dst = bind(dst);
  }
  Mixed(const Mixed&) = delete;
  Mixed& operator=(const Mixed&) = delete;

  CallRequest made;
  Values src, dst, expected;
  std::vector<std::uint64_t> counts, begins;
  VectorArguments vectors;
};

constexpr Collective kAll[] = {Collective::kReduce, Collective::kGather, Collective::kScatter, Collective::kGatherv,
                               Collective::kScatterv};

class RootAlone : public testing::TestWithParam<bool> {
 protected:
  EngineSettings settings() const { return GetParam() ? quick_settings() : message_settings(); }
};

TEST_P(RootAlone, MixedRanksDeliver) {
  for (const std::uint32_t size : {1U, 2U, 3U, 5U}) {
    int runs = 0;
    run_ranks(size, settings(), [&](Rank& self) {
      for (int position = -1; position < static_cast<int>(algorithms().size()); ++position) {
        for (const Collective collective : kAll) {
          const Algorithm* named = position < 0 ? nullptr : &algorithms()[static_cast<std::size_t>(position)];
          if (named != nullptr && named->collective != collective) continue;
          const bool by_counts = collective == Collective::kGatherv || collective == Collective::kScatterv;
          const bool needs_counts = by_counts && named != nullptr && named->admits != nullptr;
          for (const std::uint64_t count : {0U, 1U, 7U, 3000U}) {
            for (int form = 0; form < 8; ++form) {
              const Told told{(form & 1) != 0, (form & 2) != 0, (form & 4) != 0};
              if (needs_counts && !told.counts) continue;
              const std::uint32_t root = (static_cast<std::uint32_t>(count) + static_cast<std::uint32_t>(form)) % size;
              for (const bool blocks : {true, true, false}) {
                Mixed call(self, collective, count, root, told);
                call.made.algorithm = position;
                try {
                  if (blocks) {
                    self.engine.run(call.made);
                  } else {
                    self.run(call.made);
                  }
                } catch (const Error& error) {
                  if (error.code() != ErrorCode::kUnsupported) throw;  // direct access without lanes, on every rank
                  continue;
                }
                EXPECT_EQ(call.dst, call.expected)
                    << name_of(collective) << " by " << position << ", count " << count << ", root " << root
                    << ", form " << form << ", rank " << self.rank << " of " << size;
                if (self.rank == 0) ++runs;
              }
            }
          }
        }
      }
    });
    EXPECT_GT(runs, 300);
  }
}

TEST_P(RootAlone, TheChoiceIsOneWhoeverKnowsTheCounts) {
  // Nine ranks: with all counts known, small blocks once went by a tree.
  run_ranks(9, settings(), [&](Rank& self) {
    for (const Collective collective : {Collective::kGatherv, Collective::kScatterv}) {
      for (const bool counts : {true, false}) {
        Mixed call(self, collective, 4, 2, {false, false, counts});
        self.engine.run(call.made);
        EXPECT_EQ(call.dst, call.expected);
        EXPECT_STREQ(self.engine.last_algorithm(0).algorithm->name, "linear");
      }
      // Who names one that needs all counts gives them on every rank.
      Mixed all(self, collective, 4, 2, {});
      all.made.algorithm = find_algorithm(collective, "binomial");
      self.engine.run(all.made);
      EXPECT_EQ(all.dst, all.expected);
      if (self.rank == 2) continue;
      Mixed alone(self, collective, 4, 2, {false, false, false});
      alone.made.algorithm = find_algorithm(collective, "binomial");
      try {
        self.engine.run(alone.made);
        ADD_FAILURE() << "it was carried out";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
        EXPECT_THAT(error.what(), HasSubstr("\"binomial\" needs the counts of every rank"));
      }
    }
  });
}

/// What a rank's call ended with.
struct Ended {
  ErrorCode code = ErrorCode::kOk;
  std::string text;
};

Ended ended(const Rank& self, const CallRequest& made) {
  try {
    self.engine.run(made);
    return {};
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
}

/// Two ranks, of which the root and the other count the block of rank 1 so; then a barrier. What each rank hears first.
std::vector<Ended> differ(Collective collective, std::uint64_t at_root, std::uint64_t elsewhere,
                          EngineSettings settings) {
  settings.timeout = seconds(4);
  std::vector<Ended> first(2);
  run_ranks(2, settings, [&](Rank& self) {
    const bool root = self.rank == 0;
    const std::vector<std::uint64_t> counts{2, at_root};
    Values src = values(self.rank, root ? 2 + at_root : elsewhere);
    Values dst(root ? 2 + at_root : elsewhere);
    CallRequest made = request<std::int32_t>(collective, 0, 0);
    VectorArguments vectors;
    if (root) {
      (collective == Collective::kGatherv ? vectors.recv_counts : vectors.send_counts) = counts.data();
    } else {
      vectors.own = elsewhere;
    }
    made.vectors = &vectors;
    made.src = bind(src);
    made.dst = bind(dst);
    first[self.rank] = ended(self, made);
    if (first[self.rank].code != ErrorCode::kOk) return;
    // What nobody awaits is found by the next call, of which one rank may still have heard well.
    for (int i = 0; i < 3 && first[self.rank].code == ErrorCode::kOk; ++i) {
      first[self.rank] = ended(self, request<std::int32_t>(Collective::kBarrier, 0));
    }
  });
  return first;
}

TEST_P(RootAlone, CountsThatDifferEndInErrorsOnBothRanks) {
  for (const Collective collective : {Collective::kGatherv, Collective::kScatterv}) {
    for (const auto& [at_root, elsewhere] : std::vector<std::array<std::uint64_t, 2>>{
             {5, 3}, {3, 5}, {5, 0}, {0, 5}, {0, 400'000}, {400'000, 0}, {5000, 4096}, {4096, 5000}}) {
      const auto begin = std::chrono::steady_clock::now();
      const std::vector<Ended> heard = differ(collective, at_root, elsewhere, settings());
      EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
      const std::string what = std::string(name_of(collective)) + ": " + std::to_string(at_root) + " at the root, " +
                               std::to_string(elsewhere) + " elsewhere: " + heard[0].text + " | " + heard[1].text;
      EXPECT_NE(heard[0].code, ErrorCode::kOk) << what;
      EXPECT_NE(heard[1].code, ErrorCode::kOk) << what;
      if (at_root != 5 || elsewhere != 3) continue;
      const Ended& taker = heard[collective == Collective::kGatherv ? 0 : 1];
      const bool gathers = collective == Collective::kGatherv;
      EXPECT_EQ(taker.code, ErrorCode::kMismatchedCall) << what;
      EXPECT_THAT(taker.text, HasSubstr(gathers ? "sends 12 bytes where this rank awaits 20"
                                                : "sends 20 bytes where this rank awaits 12"));
      EXPECT_THAT(taker.text, HasSubstr("different counts for the block of rank 1"));
    }
  }
}

TEST(RootAloneOnLanes, WhoWaitsForARankThatHasEndedTheCallIsToldSoon) {
  EngineSettings settings = quick_settings();
  for (const auto& [at_root, elsewhere] : std::vector<std::array<std::uint64_t, 2>>{{5, 0}, {400'000, 0}}) {
    const std::vector<Ended> heard = differ(Collective::kGatherv, at_root, elsewhere, settings);
    EXPECT_EQ(heard[0].code, ErrorCode::kMismatchedCall) << heard[0].text;
    EXPECT_THAT(heard[0].text, HasSubstr("rank 1"));
  }
}

TEST(RootAloneOnLanes, ARankThatComesLateIsAwaitedWhateverTheOthersHaveRecorded) {
  // The root waits for ranks that have begun the call and wait for the late one themselves. Of an algorithm that needs
  // the sum of all counts they have recorded that sum; the root once took it for their own count.
  for (const char* const algorithm : {"linear", "binomial", "two_level"}) {
    run_ranks(5, quick_settings(), [&](Rank& self) {
      for (const std::uint32_t late : {4U, 0U}) {
        for (const bool blocks : {true, false}) {
          Mixed call(self, Collective::kGatherv, 3000, 2, {});
          call.made.algorithm = find_algorithm(Collective::kGatherv, algorithm);
          self.engine.run(request<std::int32_t>(Collective::kBarrier, 0));
          // Longer than a rank waits before it looks at the others' records.
          if (self.rank == late) std::this_thread::sleep_for(milliseconds(250));
          if (blocks) {
            self.engine.run(call.made);
          } else {
            self.run(call.made);
          }
          EXPECT_EQ(call.dst, call.expected) << algorithm << ", rank " << self.rank;
        }
      }
    });
  }
}

TEST(RootAloneOnLanes, OtherCollectivesStillCompareWhetherTheyAreInPlace) {
  EngineSettings settings = quick_settings();
  settings.timeout = seconds(10);
  run_ranks(2, settings, [&](Rank& self) {
    Values src = values(self.rank, 4);
    Values dst = values(self.rank, 4);
    CallRequest made = request<std::int32_t>(Collective::kAllreduce, 4, 0, Func::kSum);
    made.call.in_place = self.rank == 0;
    made.src = bind(src);
    made.dst = bind(dst);
    const Ended heard = ended(self, made);
    EXPECT_NE(heard.code, ErrorCode::kOk);
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, RootAlone, testing::Bool(),
                         [](const auto& p) { return std::string(p.param ? "Lanes" : "Messages"); });

}  // namespace
}  // namespace unisono::test
