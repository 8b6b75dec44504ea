// Programs that no algorithm made, compared with the collective that they are meant as.
#include "reference/meaning.hpp"

#include <gtest/gtest.h>

#include <set>

#include "collectives/build.hpp"
#include "core/error.hpp"
#include "reference/checker.hpp"

namespace unisono::reference {
namespace {

using build::Build;
using build::dst;
using build::Place;

bool is_meaning(Collective collective) { return collective >= Collective::kBcast && collective < Collective::kProgram; }

// The programs of an algorithm, of which nobody says where they come from.
Job bare(const Job& made) {
  Job job = make_job(made.programs, made.dtype, 0, 0);
  job.region_bytes = made.region_bytes;
  job.params = made.params;
  return job;
}

Meaning meaning_of(const Job& made) {
  Meaning meaning;
  meaning.collective = made.call.collective;
  meaning.func = made.call.func;
  if (is_rooted(meaning.collective)) meaning.root = made.call.root;
  meaning.in_place = made.call.in_place;
  if (!is_vector(meaning.collective)) return meaning;
  for (const VectorCounts& own : made.vectors) {
    const auto& row = own.send_counts.empty() ? own.recv_counts : own.send_counts;
    meaning.counts.insert(meaning.counts.end(), row.begin(), row.end());
    if (meaning.collective != Collective::kAlltoallv) break;
  }
  return meaning;
}

bool is_packed(const Job& made) {
  for (const VectorCounts& own : made.vectors) {
    for (const auto& [counts, places] :
         {std::pair{own.send_counts, own.send_displacements}, std::pair{own.recv_counts, own.recv_displacements}}) {
      std::uint64_t at = 0;
      for (std::size_t i = 0; i < counts.size(); at += counts[i++]) {
        if (places[i] != at) return false;
      }
    }
  }
  return true;
}

TEST(Meaning, EveryAlgorithmIsWhatItIsAndNothingElse) {
  std::set<Collective> seen;
  int right = 0;
  int told_apart = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_meaning(algorithm.collective)) continue;
    CheckOptions options;
    options.counts = {4};
    options.group_sizes = {0};
    for (const CheckedCall& checked : calls_to_check(algorithm, 4, options)) {
      if (algorithm.admits != nullptr && !algorithm.admits(checked.call)) continue;
      const Job made = make_job(algorithm, checked.call, checked.vectors);
      if (!is_packed(made) || made.size() != made.members()) continue;  // a switch is no rank of a program file
      const Meaning meaning = meaning_of(made);
      const Job job = meant_as(bare(made), meaning);
      const CheckReport report = check_job(job, 1);
      ASSERT_TRUE(report.ok()) << describe(made) << "\n" << report.text();
      EXPECT_EQ(report.text().find("not compared"), std::string::npos);
      EXPECT_EQ(job.region_bytes, made.region_bytes) << describe(job) << ": its count has been found again";
      seen.insert(meaning.collective);
      ++right;
      const auto refused = [&](const Meaning& other) {
        ++told_apart;
        return !check_job(meant_as(bare(made), other), 1).ok();
      };
      if (made.call.count == 0 && meaning.collective != Collective::kAlltoallv) continue;
      Meaning other = meaning;
      if (is_reduction(meaning.collective)) {
        other.func = Func::kMax;
        EXPECT_TRUE(refused(other)) << describe(made);
      } else if (is_rooted(meaning.collective)) {
        other.root = (made.call.root + 1) % 4;
        EXPECT_TRUE(refused(other)) << describe(made);
      } else if (meaning.collective != Collective::kBarrier && !is_vector(meaning.collective)) {
        other.collective =
            meaning.collective == Collective::kAllgather ? Collective::kAlltoall : Collective::kAllgather;
        EXPECT_TRUE(refused(other)) << describe(made);
      }
    }
  }
  EXPECT_EQ(seen.size(), 16U) << "every collective";
  EXPECT_GT(right, 200);
  EXPECT_GT(told_apart, 150);
}

Call call(Datatype dtype = Datatype::kInt32) {
  Call c;
  c.dtype = dtype;
  c.func = Func::kSum;
  return c;
}
Place src(std::uint64_t offset = 0) { return {Region::kSrc, offset}; }

Program program(std::initializer_list<Move> moves, std::vector<std::uint32_t> pool = {}) {
  Program p;
  p.moves = moves;
  p.pool = std::move(pool);
  return p;
}

// All-reduce of two elements on three ranks: my vector to the others, theirs to me; rank 2 reduces in its own way.
Job exchange(Func of_two, Datatype dtype_of_two = Datatype::kInt32) {
  std::vector<Program> programs;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Call own = call(rank == 2 ? dtype_of_two : Datatype::kInt32);
    own.func = rank == 2 ? of_two : Func::kSum;
    programs.push_back(program({Build(call()).take(src()).send(PeerMode::kList, 0, 0).count(2),
                                Build(own).take(src()).arrive(PeerMode::kList, 0, 0).keep(dst()).count(2)},
                               {2, rank == 0 ? 1U : 0U, rank == 2 ? 1U : 2U}));
  }
  return make_job(std::move(programs), Datatype::kInt32, 8, 8);
}

Meaning allreduce() {
  Meaning meaning;
  meaning.collective = Collective::kAllreduce;
  return meaning;
}

TEST(Meaning, AFunctionThatDiffersOnOneRank) {
  EXPECT_TRUE(check_job(meant_as(exchange(Func::kSum), allreduce())).ok());
  const CheckReport unsaid = check_job(exchange(Func::kMax));
  EXPECT_TRUE(unsaid.ok()) << "nobody said what it is for";
  EXPECT_NE(unsaid.text().find("result not compared with anything"), std::string::npos) << unsaid.text();
  EXPECT_EQ(unsaid.text().find("right result"), std::string::npos) << unsaid.text();
  const CheckReport report = check_job(meant_as(exchange(Func::kMax), allreduce()));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.finding->kind, FindingKind::kWrongResult);
  EXPECT_EQ(report.finding->rank, 2U);
  EXPECT_EQ(report.finding->move, 1U);
  EXPECT_NE(report.text().find("element 0 of dst of rank 2 is max("), std::string::npos) << report.text();
  EXPECT_NE(report.text().find("must be sum over ranks 0 to 2 of element 0"), std::string::npos) << report.text();
  EXPECT_EQ(report.text().find("proven"), std::string::npos) << report.text();
}

TEST(Meaning, ADatatypeThatDiffersOnOneRank) {
  const CheckReport report = check_job(meant_as(exchange(Func::kSum, Datatype::kFp32), allreduce()));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.finding->rank, 2U);
  EXPECT_NE(report.finding->text.find("computes in fp32"), std::string::npos) << report.finding->text;
}

TEST(Meaning, WhatIsLeftOutIsFoundByTheCount) {
  Meaning three = allreduce();
  three.count = 3;
  const CheckReport report = check_job(meant_as(exchange(Func::kSum), three));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.finding->text.find("element 2 of dst of rank 0"), std::string::npos) << report.finding->text;
  EXPECT_NE(report.finding->text.find("no move writes it"), std::string::npos) << report.finding->text;
  three.count = 1;
  const CheckReport beyond = check_job(meant_as(exchange(Func::kSum), three));
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.finding->kind, FindingKind::kOutOfBounds);
  EXPECT_NE(beyond.finding->text.find("4 and 4 bytes on rank 1"), std::string::npos) << beyond.finding->text;
}

TEST(Meaning, AnInputMayBeFoldedTwiceWhereThatChangesNothing) {
  // By doubling on three ranks: everybody takes the left neighbour's, then what the neighbour after next has made.
  const auto doubling = [](Func func) {
    std::vector<Program> programs;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      Call own = call();
      own.func = func;
      programs.push_back(
          program({Build(own).take(src()).send((rank + 1) % 3, 0).count(2),
                   Build(own).take(src()).arrive((rank + 2) % 3, 0).keep(build::scratch()).count(2),
                   Build(own).take(build::scratch()).send((rank + 2) % 3, 1).count(2).after(1),
                   Build(own).take(build::scratch()).arrive((rank + 1) % 3, 1).keep(dst()).count(2).after(2)}));
      programs.back().scratch_bytes = 8;
    }
    return make_job(std::move(programs), Datatype::kInt32, 8, 8);
  };
  Meaning meaning = allreduce();
  meaning.func = Func::kMin;
  const CheckReport report = check_job(meant_as(doubling(Func::kMin), meaning));
  EXPECT_TRUE(report.ok()) << report.text();
  meaning.func = Func::kSum;
  EXPECT_FALSE(check_job(meant_as(doubling(Func::kSum), meaning)).ok()) << "a sum counts it twice";
}

// Everybody tells `told` others, to its right, and hears as many.
Job tell(std::uint32_t size, std::uint32_t told) {
  std::vector<Program> programs;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    Program own;
    for (std::uint32_t i = 1; i <= told; ++i) {
      own.moves.push_back(Build(call()).signal().send((rank + i) % size, 0));
      own.moves.push_back(Build(call()).signal().arrive((rank + size - i) % size, 0));
    }
    programs.push_back(own);
  }
  return make_job(std::move(programs), Datatype::kByte, 0, 0);
}

TEST(Meaning, ABarrierHoldsEverybodyBack) {
  Meaning barrier;
  barrier.collective = Collective::kBarrier;
  EXPECT_TRUE(check_job(meant_as(tell(4, 3), barrier)).ok());
  const CheckReport report = check_job(meant_as(tell(4, 2), barrier));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.finding->text.find("rank 3 may leave the barrier before rank 0 has entered"), std::string::npos)
      << report.finding->text;
  EXPECT_FALSE(check_job(meant_as(make_job({Program{}, Program{}}, Datatype::kByte, 0, 0), barrier)).ok());
  // An algorithm of the table that tells too few is no barrier either.
  Call c = call(Datatype::kNone);
  c.collective = Collective::kBarrier;
  c.func = Func::kNone;
  c.size = 4;
  Job made = make_job(algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kBarrier, "dissemination"))], c);
  EXPECT_TRUE(check_job(made).ok());
  for (Program& each : made.programs) each.moves.resize(each.moves.size() / 2);
  EXPECT_FALSE(check_job(made).ok());
}

TEST(Meaning, WhatIsNoCall) {
  const auto refusal = [](const Meaning& meaning) -> std::string {
    try {
      static_cast<void>(meant_as(exchange(Func::kSum), meaning));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto refused = [&](Meaning meaning, const char* words) {
    EXPECT_NE(refusal(meaning).find(words), std::string::npos) << refusal(meaning);
  };
  Meaning meaning = allreduce();
  EXPECT_EQ(refusal(meaning), "");
  meaning.root = 1;
  refused(meaning, "it has no root");
  meaning = allreduce();
  meaning.counts = {1, 2, 3};
  refused(meaning, "it takes none");
  meaning.counts = {};
  meaning.func = Func::kMinloc;
  refused(meaning, "not defined on datatype int32");
  meaning.func = Func::kNone;
  meaning.count = std::uint64_t{1} << 39U;
  refused(meaning, "can be run on symbols");
  for (const Collective none : {Collective::kNop, Collective::kSend, Collective::kProgram}) {
    meaning = {};
    meaning.collective = none;
    refused(meaning, "allowed are bcast, reduce");
  }
  meaning.collective = Collective::kBcast;
  meaning.in_place = true;
  refused(meaning, "it has no other");
  meaning.in_place = false;
  meaning.func = Func::kSum;
  refused(meaning, "nothing is reduced");
  meaning.func = Func::kNone;
  meaning.root = 3;
  refused(meaning, "ranks 0 to 2");
  meaning = {};
  meaning.collective = Collective::kScan;
  meaning.func = Func::kAvg;
  refused(meaning, "avg was given");
  meaning = {};
  meaning.collective = Collective::kGatherv;
  refused(meaning, "give 3");
  meaning.collective = Collective::kAlltoallv;
  meaning.counts = {1, 2, 3};
  refused(meaning, "give 9");
  meaning.counts = {0, 1, 2, 3, 0, 4, 2, 4, 0};
  EXPECT_EQ(refusal(meaning), "");
  meaning.in_place = true;
  refused(meaning, "blocks of one length");
  meaning = {};
  meaning.collective = Collective::kBarrier;
  meaning.count = 3;
  refused(meaning, "it moves no data");
}

}  // namespace
}  // namespace unisono::reference
