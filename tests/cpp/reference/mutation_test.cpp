// The checker finds every mistake that changes behaviour.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "reference/checker.hpp"
#include "reference/equivalent.hpp"
#include "reference/event_graph.hpp"
#include "reference/mutate.hpp"
#include "reference/races.hpp"

namespace unisono::reference {
namespace {

// One job of every algorithm: 5 ranks (4 where 5 are not admitted), counts that make every chunk non-empty.
std::vector<Job> jobs() {
  std::vector<Job> all;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == Collective::kNop) continue;
    for (const std::uint32_t size : {5U, 4U}) {
      CheckOptions options;
      options.counts = {is_vector(algorithm.collective) ? 3U : 11U};
      // Five shares of whole lines, or blocks of which every two ranks have two lines to share.
      if (algorithm.direct) options.counts = {algorithm.collective <= Collective::kAllreduce ? 83U : 35U};
      options.roots = {1};
      options.group_sizes = {2};
      bool found = false;
      for (const CheckedCall& checked : calls_to_check(algorithm, size, options)) {
        if (algorithm.admits != nullptr && !algorithm.admits(checked.call)) continue;
        all.push_back(make_job(algorithm, checked.call, checked.vectors));
        found = true;
        if (is_vector(algorithm.collective) && checked.call.in_place) break;
      }
      if (found) break;
    }
  }
  return all;
}

TEST(Mutation, EveryMistakeThatChangesBehaviourIsFound) {
  std::map<std::string, std::pair<int, int>> by_kind;  // found, equivalent
  std::map<std::string, int> reasons;
  int found = 0;
  std::uint64_t seed = 1;
  for (const Job& job : jobs()) {
    ASSERT_TRUE(check_job(job, 2).ok()) << describe(job);
    for (const Mutant& mutant : make_mutants(job, 30, ++seed)) {
      const CheckReport report = check_job(mutant.job, 4, seed);
      auto& [caught, same] = by_kind[name_of(mutant.mutation)];
      if (!report.ok()) {
        ++caught;
        ++found;
        ++reasons[name_of(report.finding->kind)];
        EXPECT_FALSE(report.finding->text.empty());
        continue;
      }
      const auto why = equivalent(job, mutant);
      EXPECT_TRUE(why.has_value()) << describe(job) << "\n  not found: " << mutant.what;
      ++same;
    }
  }
  for (const auto& [kind, counts] : by_kind) {
    std::cout << kind << ": " << counts.first << " found, " << counts.second << " equivalent\n";
  }
  for (const auto& [reason, count] : reasons) std::cout << "found as " << reason << ": " << count << '\n';
  std::cout << found << " mutants that change behaviour, all found\n";
  EXPECT_GE(found, 200);
  EXPECT_GE(by_kind.size(), 23U);
}

// Exits are of no use if the checker does not miss them: drop each signal of each direct program, once at both ends,
// and once leave it but let it not wait.
TEST(Mutation, EveryExitOfADirectCallIsNeeded) {
  int dropped = 0;
  int hasty = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.direct) continue;
    for (const bool in_place : {false, true}) {
      Call call;
      call.collective = algorithm.collective;
      call.func = is_reduction(call.collective) ? Func::kSum : Func::kNone;
      call.dtype = Datatype::kFp32;
      call.size = 3;
      call.root = 1;
      call.count = 50;
      call.direct = true;
      call.in_place = in_place && call.collective != Collective::kBcast;
      if (!algorithm.admits(call)) continue;
      const Job job = make_job(algorithm, call);
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const auto mutant = mutate(job, Mutation::kDropSignal, seed);
        ASSERT_TRUE(mutant.has_value()) << describe(job);
        const CheckReport report = check_job(mutant->job, 2, seed);
        ASSERT_FALSE(report.ok()) << describe(job) << "\n" << mutant->what;
        // In place, a signal of reduce_scatter also says that a place is free.
        EXPECT_TRUE(report.finding->kind == FindingKind::kUnfinished || report.finding->kind == FindingKind::kRace)
            << report.text();
        ++dropped;
      }
      for (std::uint32_t rank = 0; rank < call.size; ++rank) {
        for (std::size_t i = 0; i < job.programs[rank].moves.size(); ++i) {
          if (job.programs[rank].moves[i].remote.kind != RemoteKind::kMessage) continue;
          Job early = job;
          early.programs[rank].moves[i].dependencies = 0;
          const CheckReport report = check_job(early, 2);
          ASSERT_FALSE(report.ok()) << describe(job) << ", rank " << rank << ", move " << i;
          EXPECT_TRUE(report.finding->kind == FindingKind::kUnfinished || report.finding->kind == FindingKind::kRace);
          ++hasty;
        }
      }
    }
  }
  EXPECT_GT(dropped, 250);
  EXPECT_GT(hasty, 40);
}

// Two independent definitions of the order of accesses agree, on good programs and on ones with missing dependencies.
TEST(Mutation, RaceFinderAgreesWithTheEventGraph) {
  int races = 0;
  int ordered = 0;
  std::uint64_t seed = 100;
  for (const Job& job : jobs()) {
    constexpr Mutation kKinds[] = {Mutation::kDropDependency, Mutation::kDropSegmentDependency, Mutation::kDropSignal};
    for (int i = 0; i < 6; ++i) {
      const auto mutant = mutate(job, kKinds[i % 3], ++seed);
      if (!mutant || (job.call.direct && EventGraph(mutant->job).size() > 4000)) continue;
      Interpreter interpreter(mutant->job);
      const SymbolRun run = interpreter.run_symbols(Policy::generous());
      if (run.finding && run.finding->kind == FindingKind::kUnfinished) {
        EXPECT_TRUE(EventGraph(mutant->job).first_unordered().has_value()) << run.finding->text;
        ++races;
        continue;
      }
      if (run.finding) continue;
      const auto race = find_race(interpreter.lowered(), run);
      const auto unordered = EventGraph(mutant->job).first_unordered();
      EXPECT_EQ(race.has_value(), unordered.has_value()) << describe(job) << "\n"
                                                         << mutant->what << "\n"
                                                         << (race ? race->text : *unordered);
      ++(race ? races : ordered);
    }
  }
  std::cout << races << " races, " << ordered << " ordered\n";
  EXPECT_GT(races, 10);
}

}  // namespace
}  // namespace unisono::reference
