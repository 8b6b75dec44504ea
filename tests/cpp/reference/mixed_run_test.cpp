// Programs on mixes of lanes, credits and grants: right ones end right, and what is broken is found.
#include "reference/mixed_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/build.hpp"
#include "core/error.hpp"
#include "core/group_table.hpp"
#include "reference/checker.hpp"
#include "reference/equivalent.hpp"
#include "reference/expectation.hpp"
#include "reference/lane_channel.hpp"
#include "reference/message_channel.hpp"
#include "reference/mutate.hpp"

namespace unisono::reference {
namespace {

using build::Build;
using build::dst;
using build::Place;
using testing::HasSubstr;
using Schedule = Mix::Schedule;

constexpr Schedule kSchedules[] = {Schedule::kFirst, Schedule::kLast, Schedule::kRandom};

Call call() {
  Call c;
  c.dtype = Datatype::kInt32;
  return c;
}
Place src(std::uint64_t offset = 0) { return {Region::kSrc, offset}; }

Job job_of(const std::vector<std::vector<Move>>& moves, std::uint64_t bytes = 48) {
  std::vector<Program> programs(moves.size());
  for (std::size_t rank = 0; rank < moves.size(); ++rank) programs[rank].moves = moves[rank];
  return make_job(std::move(programs), Datatype::kInt32, bytes, bytes);
}

/// Rank 0 sends three messages of four elements to rank 1, which takes them when rank 2 has told it that rank 0 has
/// told rank 2.
Job three_messages() {
  const auto sends = [](std::uint64_t at) { return Build(call()).take(src(at)).send(1, 0).count(4); };
  const auto takes = [](std::uint64_t at, std::uint32_t after) {
    return Build(call()).arrive(0, 0).keep(dst(at)).count(4).after(after);
  };
  return job_of({{sends(0), sends(16), sends(32), Build(call()).signal().send(2, 1)},
                 {Build(call()).signal().arrive(2, 2), takes(0, 1), takes(16, 2), takes(32, 3)},
                 {Build(call()).signal().arrive(0, 1), Build(call()).signal().send(1, 2).after(1)}});
}

/// Two ranks exchange four elements. Each takes the other's when it has sent its own, which is decision 4's mistake.
Job hasty_exchange() {
  const auto rank = [](std::uint32_t peer) {
    return std::vector<Move>{Build(call()).take(src()).send(peer, 0).count(4),
                             Build(call()).arrive(peer, 0).keep(dst()).count(4).after(1)};
  };
  return job_of({rank(1), rank(0)}, 16);
}

Mix mix_of(std::uint32_t ranks, const ChannelKind& kind, Schedule schedule, std::uint64_t segment = 1) {
  Mix mix = Mix::all(ranks, kind, schedule);
  mix.segment = segment;
  mix.seed = 5;
  return mix;
}

/// All channels of a kind `Broken`.
template <class Broken>
MakeChannel made() {
  return [](const ChannelKind& kind, std::uint64_t segment, Channel::Depart depart) {
    return std::make_unique<Broken>(kind, segment, std::move(depart));
  };
}

/// What is wrong with a job on a mix; nothing if it ends with the expressions of the least permissive run.
std::optional<Finding> finding_of(const Job& job, const Mix& mix, const MakeChannel& make = make_channel) {
  Interpreter interpreter(job);
  const SymbolRun least = interpreter.run_symbols(Policy::least_permissive());
  const SymbolRun run = run_mixed(interpreter, mix, make);
  if (run.finding || least.finding) return run.finding;
  return interpreter.compare(least, run, "a mix");
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(name_of(info.param->collective)) + "_" + info.param->name;
}
std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
  return all;
}

class MixedAlgorithm : public testing::TestWithParam<const Algorithm*> {};

TEST_P(MixedAlgorithm, EndsRightOnMixesOfUpToNineRanks) {
  CheckOptions options;
  options.ranks = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  if (GetParam()->switched) {
    options.ranks = {1, 2, 3, 4, 9};
    options.switches = {1, 2};
  }
  options.schedules = 0;
  options.seed = 77;
  const CheckReport report = check_algorithm(*GetParam(), options);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GE(report.mixed, report.calls * (4 + options.mixes));
  EXPECT_THAT(report.text(), HasSubstr("mixed: " + std::to_string(report.mixed) + " runs"));
}

INSTANTIATE_TEST_SUITE_P(Table, MixedAlgorithm, testing::ValuesIn(all_algorithms()), test_name);

TEST(Mixes, AreThoseOfHostsAndOfGroupsToo) {
  const Algorithm& algorithm =
      algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllreduce, "two_level"))];
  const auto names = [&](const Grouping& grouping, std::uint32_t ranks) {
    Call c = call();
    c.collective = Collective::kAllreduce;
    c.func = Func::kSum;
    c.size = ranks;
    c.count = 3;
    c.group_size = grouping.size;
    c.groups = grouping.list;
    const Job job = make_job(algorithm, c);
    const Lowered lowered(job);
    std::vector<std::string> all;
    for (const Mix& mix : mixes_of(job, 2, 1)) {
      if (!mix.drawn_kinds) all.push_back(mix.kinds_text(lowered));
    }
    return all;
  };
  EXPECT_THAT(names({}, 7),
              testing::ElementsAre("all pairs credit(1 by 1)", "all pairs grant(1)", "all pairs credit(1 by 1)",
                                   "all pairs grant(1)",
                                   "hosts {0 1 2 3} {4 5 6}: within each lane(1), between them credit(1 by 1)",
                                   "hosts {0 1 2 3} {4 5 6}: within each lane(1), between them grant(1)",
                                   "hosts {0 2 4 6} {1 3 5}: within each lane(1), between them credit(1 by 1)",
                                   "hosts {0 2 4 6} {1 3 5}: within each lane(1), between them grant(1)"));
  EXPECT_EQ(names({}, 1).size(), 4U);
  EXPECT_THAT(names({3, nullptr}, 7), testing::Contains("hosts {0 1 2} {3 4 5} {6}: within each lane(1), between them "
                                                        "grant(1)"));
  const std::uint64_t numbers[] = {2, 0, 2, 1, 0, 1, 2};
  EXPECT_THAT(names(find_groups(numbers), 7), testing::Contains("hosts {0 2 6} {1 4} {3 5}: within each lane(1), "
                                                                "between them credit(1 by 1)"));
}

TEST(Mixes, DrawnOnesHaveAllKinds) {
  std::set<std::string> kinds;
  std::set<int> schedules;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Mix mix = Mix::drawn(2, seed);
    schedules.insert(static_cast<int>(mix.schedule));
    for (const std::uint32_t from : {0, 1}) kinds.insert(mix.kind(from, 1 - from).text());
  }
  EXPECT_EQ(schedules.size(), 3U);
  EXPECT_GT(kinds.size(), 100U);
  for (const char* kind : {"lane(1)", "lane(8) until it is taken", "grant(1)", "grant(2, in place) until it has come",
                           "credit(1 by 1)", "credit(2 by 2)"}) {
    EXPECT_EQ(kinds.count(kind), 1U) << kind;
  }
}

TEST(Mixes, OfNeighbouringSeedsHaveNothingInCommon) {
  int alike = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const std::string kind = Mix::drawn(3, seed).kind(0, 1).text();
    alike += kind == Mix::drawn(3, seed + 1).kind(0, 1).text() ? 1 : 0;
    alike += kind == Mix::drawn(3, seed).kind(1, 0).text() ? 1 : 0;
    alike += kind == Mix::drawn(3, seed).kind(0, 2).text() ? 1 : 0;
  }
  EXPECT_LT(alike, 3000 / 20) << "of 3000 pairs of kinds; there are more than 100, some more frequent than others";
}

TEST(Mixes, ThatCarryNothingAreRefused) {
  const Job job = three_messages();
  Interpreter interpreter(job);
  const auto refused = [&](const Mix& mix) {
    try {
      run_mixed(interpreter, mix);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string();
  };
  ChannelKind greedy = ChannelKind::credit(2);
  greedy.batch = 3;
  EXPECT_THAT(refused(mix_of(3, greedy, Schedule::kLast)), HasSubstr("credit(2 by 3)"));
  EXPECT_THAT(refused(mix_of(3, ChannelKind::credit(0), Schedule::kLast)), HasSubstr("credit(0 by 1)"));
  EXPECT_THAT(refused(mix_of(3, ChannelKind::lane(0), Schedule::kLast)), HasSubstr("lane(0)"));
  EXPECT_THAT(refused(mix_of(3, ChannelKind::lane(1), Schedule::kLast, 0)), HasSubstr("segments of 0 elements"));
  EXPECT_THAT(refused(mix_of(2, ChannelKind::lane(1), Schedule::kLast)), HasSubstr("a mix of 2 ranks"));
  EXPECT_EQ(refused(mix_of(3, ChannelKind::lane(1), Schedule::kLast)), "");
}

TEST(MixedRun, OfTheSameMixIsTheSame) {
  const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllreduce, "ring"))];
  Call c = call();
  c.collective = Collective::kAllreduce;
  c.func = Func::kSum;
  c.size = 5;
  c.count = 23;
  const Job job = make_job(algorithm, c);
  Interpreter interpreter(job);
  std::set<std::uint64_t> segments;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SymbolRun one = run_mixed(interpreter, Mix::drawn(5, seed));
    ASSERT_FALSE(one.finding);
    EXPECT_EQ(one.segments, run_mixed(interpreter, Mix::drawn(5, seed)).segments);
    segments.insert(one.segments);
  }
  EXPECT_GT(segments.size(), 5U);
}

// A channel that carries all kinds of things: what the tests above rely on does happen.
TEST(MixedRun, AsksGrantsAndRaisesGrants) {
  struct Counts {
    int requests = 0, grants = 0, credits = 0, landed = 0;
  };
  static Counts counts;
  counts = {};
  struct Counting : MessageChannel {
    using MessageChannel::MessageChannel;
    std::optional<ChannelFault> requested(std::uint64_t message) override {
      ++counts.requests;
      return MessageChannel::requested(message);
    }
    std::optional<ChannelFault> notified(const Notice& notice) override {
      ++(notice.limit != 0 ? counts.grants : counts.credits);
      return MessageChannel::notified(notice);
    }
    bool lands() const override {
      counts.landed += MessageChannel::lands() ? 1 : 0;
      return MessageChannel::lands();
    }
  };
  const Job job = three_messages();
  ChannelKind kind = ChannelKind::credit(1);
  ASSERT_FALSE(finding_of(job, mix_of(3, kind, Schedule::kLast), made<Counting>()));
  EXPECT_EQ(counts.credits, 5) << "a credit for each message";
  EXPECT_EQ(counts.requests + counts.grants, 0);
  counts = {};
  kind.asks = true;
  ASSERT_FALSE(finding_of(job, mix_of(3, kind, Schedule::kLast), made<Counting>()));
  EXPECT_EQ(counts.requests, 1) << "for the second message, which waits until all is taken";
  EXPECT_EQ(counts.grants, 4) << "one for each segment";
  counts = {};
  ASSERT_FALSE(finding_of(job, mix_of(3, ChannelKind::grant(2), Schedule::kLast), made<Counting>()));
  EXPECT_EQ(counts.grants, 3 * 3 + 2) << "two segments, then one for each that is used";
  EXPECT_EQ(counts.landed, 0);
  counts = {};
  kind = ChannelKind::grant(1);
  kind.in_place = true;
  ASSERT_FALSE(finding_of(job, mix_of(3, kind, Schedule::kLast), made<Counting>()));
  EXPECT_EQ(counts.grants, 5) << "of whole messages";
  EXPECT_EQ(counts.landed, 12);
}

// ------------------------------------------------------------------------------------------- what is broken is found

TEST(MixedRun, AnArrivalThatWaitsForItsSendDeadlocksUnderGrantsAlone) {
  const Job job = hasty_exchange();
  for (const Schedule schedule : kSchedules) {
    EXPECT_FALSE(finding_of(job, mix_of(2, ChannelKind::credit(1), schedule)));
    EXPECT_FALSE(finding_of(job, mix_of(2, ChannelKind::lane(4), schedule)));
    EXPECT_EQ(finding_of(job, mix_of(2, ChannelKind::lane(3), schedule)).value().kind, FindingKind::kDeadlock);
    // One host, or two.
    const auto hosts = [&](const std::vector<std::uint32_t>& numbers) {
      return Mix::by_host(numbers, ChannelKind::lane(4), ChannelKind::grant(4), schedule);
    };
    EXPECT_FALSE(finding_of(job, hosts({0, 0})));
    const Finding finding = finding_of(job, hosts({0, 1})).value();
    EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
    EXPECT_THAT(finding.text, HasSubstr("waits for a grant of rank 1 for its message, tag 0, by grant(4)"));
    EXPECT_THAT(finding.text, HasSubstr("waits for a grant of rank 0 for its message, tag 0, by grant(4)"));
    EXPECT_THAT(finding.text, HasSubstr("depends on move 0 of rank 1"));
  }
}

// The ring of decision 8: each move takes a message in and passes it on in one go.
TEST(MixedRun, ACircleIsFoundWhereNoChannelInItHasRoom) {
  const auto rank = [](std::uint32_t r) {
    return std::vector<Move>{Build(call()).take(src()).send((r + 1) % 3, 0).count(4),
                             Build(call()).arrive((r + 2) % 3, 0).keep(dst()).send((r + 1) % 3, 1).count(4),
                             Build(call()).arrive((r + 2) % 3, 1).keep(dst(16)).count(4)};
  };
  const Job job = job_of({rank(0), rank(1), rank(2)});
  ChannelKind asking = ChannelKind::credit(1);
  asking.asks = true;
  for (const Schedule schedule : kSchedules) {
    for (const ChannelKind& kind : {ChannelKind::grant(8), ChannelKind::credit(1), asking, ChannelKind::lane(1)}) {
      EXPECT_EQ(finding_of(job, mix_of(3, kind, schedule)).value().kind, FindingKind::kDeadlock) << kind.text();
    }
    EXPECT_FALSE(finding_of(job, mix_of(3, ChannelKind::credit(2), schedule)));
    // One pair with room for both of its messages opens the circle.
    const auto hosts = [&](std::uint32_t lines) {
      return Mix::by_host({0, 0, 1}, ChannelKind::lane(lines), ChannelKind::grant(1), schedule);
    };
    EXPECT_FALSE(finding_of(job, hosts(8)));
    EXPECT_EQ(finding_of(job, hosts(7)).value().kind, FindingKind::kDeadlock);
  }
}

TEST(MixedRun, ACounterexampleNamesSeedAndKindsAndCanBeRepeated) {
  const Job job = hasty_exchange();
  Interpreter interpreter(job);
  const SymbolRun generous = interpreter.run_symbols(Policy::generous());
  ASSERT_FALSE(generous.finding);
  std::uint64_t runs = 0;
  const auto finding = check_mixes(interpreter, generous, 5, 9, runs);
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("these wait for each other:\n  rank 0, move 0"));
  EXPECT_THAT(finding->text, HasSubstr("always the first that can go on, seed 0; segments of 1 element;\n"
                                       "    all pairs grant(1)"));
  std::uint64_t again = 0;
  EXPECT_EQ(check_mixes(interpreter, generous, 5, 9, again)->text, finding->text);
  EXPECT_EQ(again, runs);
  std::uint64_t seed = 0;
  while (!run_mixed(interpreter, Mix::drawn(2, seed)).finding) ++seed;
  EXPECT_EQ(run_mixed(interpreter, Mix::drawn(2, seed)).finding->text,
            run_mixed(interpreter, Mix::drawn(2, seed)).finding->text);
  EXPECT_THAT(Mix::drawn(2, seed).text(interpreter.lowered()),
              testing::AllOf(HasSubstr("seed " + std::to_string(seed)), HasSubstr("\n      0 to 1: "),
                             HasSubstr("\n      1 to 0: ")));
}

/// The second segment that is under way overtakes the first.
struct Overtaking : LaneChannel {
  using LaneChannel::LaneChannel;
  Segment next_segment() override {
    if (data_.size() > 1) std::swap(data_[0], data_[1]);
    return LaneChannel::next_segment();
  }
};
/// It looks as if it were the first: what is between the ends cannot see it.
struct Disguised : LaneChannel {
  using LaneChannel::LaneChannel;
  Segment next_segment() override {
    if (data_.size() > 1) std::swap(data_[0].values, data_[1].values);
    return LaneChannel::next_segment();
  }
};

TEST(MixedRun, AChannelThatLosesOrderIsFound) {
  const Job job = three_messages();
  for (const Schedule schedule : kSchedules) {
    const Mix mix = mix_of(3, ChannelKind::lane(12), schedule);
    ASSERT_FALSE(finding_of(job, mix));
    const auto seen = finding_of(job, mix, made<Overtaking>());
    const auto disguised = finding_of(job, mix, made<Disguised>());
    // Where all arrives at once nothing is under way that could lose its order.
    EXPECT_EQ(seen.has_value(), schedule != Schedule::kFirst);
    EXPECT_EQ(disguised.has_value(), schedule != Schedule::kFirst);
    if (schedule == Schedule::kFirst) continue;
    EXPECT_EQ(seen->kind, FindingKind::kUnmatched);
    EXPECT_THAT(seen->text, HasSubstr("from rank 0 to rank 1, lane(12): element 1 of message 0 came where element 0 of "
                                      "message 0 was to come"));
    EXPECT_EQ(disguised->kind, FindingKind::kUnstable);
    EXPECT_THAT(disguised->text, HasSubstr("r1.dst[0] is r0.src[0] in one schedule, and r0.src["));
  }
}

/// Takes no credit.
struct Creditless : MessageChannel {
  using MessageChannel::MessageChannel;
  std::uint64_t room(std::uint64_t done, std::uint64_t length) override {
    eager_ = true;
    return MessageChannel::room(done, length);
  }
};
/// Sends on whatever was granted.
struct Grantless : MessageChannel {
  using MessageChannel::MessageChannel;
  std::uint64_t room(std::uint64_t done, std::uint64_t length) override { return length - done; }
};
/// Takes no heed of full lines.
struct Lineless : LaneChannel {
  using LaneChannel::LaneChannel;
  std::uint64_t room(std::uint64_t done, std::uint64_t length) override { return length - done; }
};
/// Loses what comes back.
struct Forgetful : MessageChannel {
  using MessageChannel::MessageChannel;
  std::optional<ChannelFault> notified(const Notice& notice) override {
    return notice.freed != 0 ? std::nullopt : MessageChannel::notified(notice);
  }
};

TEST(MixedRun, ASenderThatIgnoresWhatItsReceiverHoldsIsFound) {
  const Job job = three_messages();
  const auto found = [&](const Mix& mix, const MakeChannel& make) {
    EXPECT_FALSE(finding_of(job, mix));
    const auto finding = finding_of(job, mix, make);
    if (!finding) return std::string("nothing");
    EXPECT_EQ(finding->kind, FindingKind::kOverflow) << finding->text;
    EXPECT_EQ(finding->other_rank, 0U) << finding->text;
    return finding->text;
  };
  for (const Schedule schedule : kSchedules) {
    // Where deliveries are quick, buffers are never full, and the sender has more credits than there are at the end.
    const std::string credits = found(mix_of(3, ChannelKind::credit(2), schedule), made<Creditless>());
    EXPECT_THAT(credits, HasSubstr(credits.find("came") == std::string::npos
                                       ? "5 of 2 credits are left when all has ended"
                                       : "message 2 came without a credit: earlier messages stand in 2 of 2 buffers"));
    if (schedule == Schedule::kLast) {
      EXPECT_THAT(credits, HasSubstr("message 2 came without a credit"));
    }
    EXPECT_THAT(found(mix_of(3, ChannelKind::grant(2), schedule), made<Grantless>()),
                HasSubstr("of message 0 came, of which 0 were granted"));
    EXPECT_THAT(found(mix_of(3, ChannelKind::lane(1), schedule), made<Lineless>()),
                HasSubstr("came where all 1 lines were full"));
  }
  // There are enough for all messages, so that only the end shows it; or there are not.
  EXPECT_THAT(found(mix_of(3, ChannelKind::credit(3), Schedule::kLast), made<Forgetful>()),
              HasSubstr("0 of 3 credits are left when all has ended"));
  const auto lost = finding_of(job, mix_of(3, ChannelKind::credit(1), Schedule::kLast), made<Forgetful>());
  EXPECT_EQ(lost.value().kind, FindingKind::kDeadlock);
  EXPECT_THAT(lost->text, HasSubstr("waits for a credit of rank 1"));
}

// Mistakes that show in any run, or in the order of messages, are found by mixes alone; what changes nothing never is.
TEST(MixedRun, FindsMutantsWithoutTheProof) {
  std::map<std::string, std::pair<int, int>> by_finding;  // of the proof: found on mixes, and not
  int unchanged = 0;
  std::uint64_t seed = 1;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == Collective::kNop) continue;
    CheckOptions options;
    options.counts = {is_vector(algorithm.collective) ? 3U : algorithm.direct ? 35U : 11U};
    options.roots = {1};
    options.group_sizes = {2};
    options.in_place = false;
    for (const CheckedCall& checked : calls_to_check(algorithm, 4, options)) {
      if (algorithm.admits != nullptr && !algorithm.admits(checked.call)) continue;
      const Job job = make_job(algorithm, checked.call, checked.vectors);
      for (const Mutant& mutant : make_mutants(job, 20, ++seed)) {
        const CheckReport proof = check_job(mutant.job, 0, seed, 0);
        Interpreter interpreter(mutant.job);
        std::optional<Finding> mixed = interpreter.lowered().finding();
        for (const Mix& mix : mixed ? std::vector<Mix>{} : mixes_of(mutant.job, 8, seed)) {
          const SymbolRun run = run_mixed(interpreter, mix);
          mixed = run.finding ? run.finding : compare_with_expectation(interpreter, run);
          if (mixed) break;
        }
        if (equivalent(job, mutant)) {
          EXPECT_FALSE(mixed) << describe(job) << "\n" << mutant.what << "\n" << mixed->text;
          ++unchanged;
        } else if (!proof.ok()) {
          auto& [found, missed] = by_finding[name_of(proof.finding->kind)];
          ++(mixed ? found : missed);
        }
      }
      break;
    }
  }
  for (const auto& [kind, counts] : by_finding)
    std::cout << kind << ": " << counts.first << " found on mixes, " << counts.second << " not\n";
  for (const char* kind : {"malformed", "out of bounds", "scratch overflow", "unmatched", "wrong result", "overwritten",
                           "uninitialised"}) {
    EXPECT_EQ(by_finding[kind].second, 0) << kind;
  }
  EXPECT_GT(by_finding["wrong result"].first, 50);
  EXPECT_GT(by_finding["race"].first, 20);
  EXPECT_GT(unchanged, 20);
}

}  // namespace
}  // namespace unisono::reference
