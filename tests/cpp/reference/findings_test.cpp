// One hand-made bad job for each kind of finding, and small good ones built by hand.
#include <gtest/gtest.h>

#include <cstring>

#include "collectives/build.hpp"
#include "core/error.hpp"
#include "reference/checker.hpp"
#include "reference/interpreter.hpp"
#include "reference/text.hpp"

namespace unisono::reference {
namespace {

using build::Build;
using build::dst;
using build::Place;
using build::scratch;

Call call() {
  Call c;
  c.dtype = Datatype::kInt32;
  c.func = Func::kSum;
  return c;
}
Place src(std::uint64_t offset = 0) { return {Region::kSrc, offset}; }

Program program(std::initializer_list<Move> moves, std::uint64_t scratch_bytes = 0) {
  Program p;
  p.moves = moves;
  p.scratch_bytes = scratch_bytes;
  return p;
}

Finding found(std::vector<Program> programs, std::uint64_t bytes = 16) {
  const CheckReport report = check_job(make_job(std::move(programs), Datatype::kInt32, bytes, bytes), 20);
  EXPECT_FALSE(report.ok());
  return report.finding.value_or(Finding{});
}

TEST(Findings, DeadlockNamesTheCycle) {
  // Each rank sends only when it has received.
  const auto rank = [](std::uint32_t peer) {
    return program({Build(call()).arrive(peer, 0).keep(dst()).count(4),
                    Build(call()).take(src()).send(peer, 0).count(4).after(1)});
  };
  const Finding finding = found({rank(1), rank(0)});
  EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
  EXPECT_NE(finding.text.find("rank 0, move 0"), std::string::npos) << finding.text;
  EXPECT_NE(finding.text.find("rank 1, move 1"), std::string::npos) << finding.text;
}

TEST(Findings, FusedRingStepDeadlocksWithThreeRanks) {
  const auto rank = [](std::uint32_t r) {
    return program({Build(call()).take(src()).send((r + 1) % 3, 0).count(4),
                    Build(call()).arrive((r + 2) % 3, 0).keep(dst()).send((r + 1) % 3, 1).count(4),
                    Build(call()).arrive((r + 2) % 3, 1).keep(dst(16)).count(4)});
  };
  EXPECT_EQ(found({rank(0), rank(1), rank(2)}, 32).kind, FindingKind::kDeadlock);
}

TEST(Findings, ListOfSendsNeedsLandingSpaceOfOneElementOnly) {
  // Rank 1 takes rank 0's message only together with rank 3's, which rank 3 sends when rank 2 has all of rank 0's.
  Program zero = program({Build(call()).take(src()).send(PeerMode::kList, 0, 0).count(4)});
  zero.pool = {2, 1, 2};
  Program one = program({Build(call()).arrive(PeerMode::kList, 0, 0).keep(dst()).count(4)});
  one.pool = {2, 0, 3};
  const Program two =
      program({Build(call()).arrive(0, 0).keep(dst()).count(4), Build(call()).send(3, 1).signal().after(1)});
  const Program three =
      program({Build(call()).arrive(2, 1).signal(), Build(call()).take(src()).send(1, 0).count(4).after(1)});
  EXPECT_EQ(found({zero, one, two, three}).kind, FindingKind::kDeadlock);
}

TEST(Findings, UnmatchedMessages) {
  const Program sender = program({Build(call()).take(src()).send(1, 5).count(4)});
  EXPECT_EQ(found({sender, program({})}).kind, FindingKind::kUnmatched);
  EXPECT_EQ(found({program({}), program({Build(call()).arrive(0, 5).keep(dst()).count(4)})}).kind,
            FindingKind::kUnmatched);
  EXPECT_EQ(found({sender, program({Build(call()).arrive(0, 6).keep(dst()).count(4)})}).kind, FindingKind::kUnmatched);
  EXPECT_EQ(found({sender, program({Build(call()).arrive(0, 5).keep(dst()).count(3)})}).kind, FindingKind::kUnmatched);
}

TEST(Findings, BoundsScratchAndUninitialised) {
  EXPECT_EQ(found({program({Build(call()).take(src(8)).keep(dst()).count(4)})}).kind, FindingKind::kOutOfBounds);
  EXPECT_EQ(found({program({Build(call()).take(src()).keep(scratch()).count(4)}, 12)}).kind, FindingKind::kScratch);
  EXPECT_EQ(found({program({Build(call()).take(scratch()).keep(dst()).count(4)}, 16)}).kind,
            FindingKind::kUninitialised);
}

TEST(Findings, RaceUntilADependencyOrdersIt) {
  const Move first = Build(call()).take(src()).keep(dst()).count(4);
  const Finding finding = found({program({first, Build(call()).take(dst()).keep(dst(16)).count(4)})}, 32);
  EXPECT_EQ(finding.kind, FindingKind::kRace);
  EXPECT_EQ(finding.move, 0U);
  EXPECT_EQ(finding.other_move, 1U);
  for (const bool streamed : {false, true}) {
    Build second(call());
    second.take(dst()).keep(dst(16)).count(4);
    streamed ? second.stream_after(1) : second.after(1);
    EXPECT_TRUE(check_job(make_job({program({first, second})}, Datatype::kInt32, 32, 32)).ok());
  }
  // Element by element is not enough where the elements are shifted.
  EXPECT_EQ(found({program({first, Build(call()).take(dst(4)).keep(dst(20)).count(4).stream_after(1)})}, 36).kind,
            FindingKind::kRace);
}

TEST(Findings, MalformedMoves) {
  const auto malformed = [](const Move& move) { return found({program({move}), program({})}, 64).kind; };
  EXPECT_EQ(malformed(Build(call()).take(src()).keep(dst()).count(4).after(1)), FindingKind::kMalformed);
  EXPECT_EQ(malformed(Build(call()).take(dst()).keep(dst(4)).count(4)), FindingKind::kMalformed);
  EXPECT_EQ(malformed(Build(call()).take(src()).send(2, 0).count(4)), FindingKind::kMalformed);
  EXPECT_EQ(malformed(Build(call()).take(src()).count(4)), FindingKind::kMalformed);
  EXPECT_EQ(malformed(Build(call()).keep(dst()).count(4)), FindingKind::kMalformed);
  Move two = Build(call()).take(src()).with(dst()).keep(dst()).count(4);
  two.func = Func::kNone;
  EXPECT_EQ(malformed(two), FindingKind::kMalformed);
  EXPECT_EQ(malformed(Build(call()).take(src()).send(PeerMode::kList, 7, 0).count(4)), FindingKind::kMalformed);
}

// Two ranks of which the first reads the second's src; the second waits for a signal, or does not.
std::vector<Program> reader_and_read(bool told, bool after) {
  Build done(call());
  done.signal().send(1, 0);
  if (after) done.after(1);
  std::vector<Program> programs{program({Build(call()).fetch(1, Region::kSrc, 0).keep(dst()).count(4)}), program({})};
  if (told) {
    programs[0].moves.push_back(done);
    programs[1].moves.push_back(Build(call()).signal().arrive(0, 0));
  }
  return programs;
}

TEST(Findings, AnAccessThatMayOutliveTheCallItReaches) {
  EXPECT_EQ(found(reader_and_read(false, false)).kind, FindingKind::kUnfinished);
  const Finding early = found(reader_and_read(true, false));
  EXPECT_EQ(early.kind, FindingKind::kUnfinished);
  EXPECT_EQ(early.rank, 0U);
  EXPECT_EQ(early.move, 0U);
  EXPECT_EQ(early.other_rank, 1U);
  const CheckReport good = check_job(make_job(reader_and_read(true, true), Datatype::kInt32, 16, 16), 20);
  EXPECT_TRUE(good.ok()) << good.text();
}

TEST(Findings, RemoteMemoryIsReadAndWrittenInOrder) {
  // Rank 1 adds to its dst while rank 0 puts there what it found: ordered by messages, or a race.
  for (const bool ordered : {true, false}) {
    Program zero = program(
        {Build(call()).take(src()).store(1, Region::kDst, 0).count(4), Build(call()).signal().send(1, 0).after(1)});
    Build add(call());
    add.take(src()).with(dst()).keep(dst()).count(4);
    if (ordered) add.after(1);
    const Program one = program({Build(call()).signal().arrive(0, 0), add});
    const CheckReport report = check_job(make_job({zero, one}, Datatype::kInt32, 16, 16), 20);
    EXPECT_EQ(report.ok(), ordered) << report.text();
    if (!ordered) {
      EXPECT_EQ(report.finding->kind, FindingKind::kRace);
    }
  }
}

TEST(Findings, WhatRemoteMemoryMayBe) {
  const auto malformed = [](Move move, std::vector<std::uint32_t> pool = {}) {
    Program zero = program({move});
    zero.pool = std::move(pool);
    return found({zero, program({})}, 64).text;
  };
  Move any = Build(call()).fetch(PeerMode::kAny, 0, Region::kSrc, 0).keep(dst()).count(4);
  EXPECT_NE(malformed(any, {2, 0, 1}).find("allowed are rank and list"), std::string::npos);
  Move scratch_of_peer = Build(call()).fetch(1, Region::kScratch, 0).keep(dst()).count(4);
  EXPECT_NE(malformed(scratch_of_peer).find("src, dst and window"), std::string::npos);
  Move params_of_peer = Build(call()).take(src()).store(1, Region::kParams, 0).count(4);
  EXPECT_NE(malformed(params_of_peer).find("src, dst and window"), std::string::npos);
  Move nobody = Build(call()).take(src()).store(2, Region::kDst, 0).count(4);
  EXPECT_NE(malformed(nobody).find("rank 2; ranks are 0 to 1"), std::string::npos);
  Move twice = Build(call()).take(src()).store(PeerMode::kList, 0, Region::kDst, 0).count(4);
  EXPECT_NE(malformed(twice, {2, 1, 1}).find("twice"), std::string::npos);
  // This rank may be in its own list; what it writes twice is malformed, as is what it reads shifted.
  Move both = Build(call()).take(src()).keep(dst()).store(PeerMode::kList, 0, Region::kDst, 0).count(4);
  EXPECT_NE(malformed(both, {2, 0, 1}).find("overlap"), std::string::npos);
  Move shifted = Build(call()).fetch(PeerMode::kList, 0, Region::kDst, 4).keep(dst()).count(4);
  EXPECT_NE(malformed(shifted, {2, 0, 1}).find("overlap"), std::string::npos);

  Job job = make_job(reader_and_read(true, true), Datatype::kInt32, 16, 16);
  EXPECT_TRUE(job.call.direct);
  job.call.direct = false;
  EXPECT_NE(check_job(job).finding.value().text.find("no direct access"), std::string::npos);
  Job window = make_job({program({Build(call()).fetch(1, Region::kWindow, 0).keep(dst()).count(4)}), program({})},
                        Datatype::kInt32, 16, 16);
  EXPECT_FALSE(window.call.direct);
  window.bytes(1, Region::kWindow) = 16;
  EXPECT_TRUE(check_job(window).ok()) << "the window stays when the call has ended";
  window.bytes(1, Region::kWindow) = 12;
  EXPECT_EQ(check_job(window).finding.value().kind, FindingKind::kOutOfBounds);
}

// All direct reductions fold in rank order, so they agree in every bit, on every rank and whoever did the work.
TEST(Direct, ReductionsGiveEqualBitsWhoeverDoesTheWork) {
  constexpr std::uint32_t kSize = 5;
  constexpr std::uint64_t kCount = 35;  // of a block; all blocks together are the vector
  std::vector<RankInput> inputs(kSize);
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    inputs[rank].src.resize(kSize * kCount * 4);
    for (std::uint32_t i = 0; i < kSize * kCount; ++i) {
      const float value = 1.0F / static_cast<float>(3 + 7 * rank + i) * (rank % 2 == 0 ? 1.0F : -3e4F);
      std::memcpy(&inputs[rank].src[i * 4], &value, 4);
    }
  }
  std::vector<float> want(kSize * kCount);
  for (std::uint32_t i = 0; i < kSize * kCount; ++i) {
    float sum = 0;
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      float value = 0;
      std::memcpy(&value, &inputs[rank].src[i * 4], 4);
      sum = rank == 0 ? value : sum + value;
    }
    want[i] = sum;
  }
  int compared = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.direct || !is_reduction(algorithm.collective)) continue;
    const bool blocks = algorithm.collective == Collective::kReduceScatter;
    for (std::uint32_t root = 0; root < (algorithm.collective == Collective::kReduce ? kSize : 1); ++root) {
      for (const bool in_place : {false, true}) {
        Call c = call();
        c.collective = algorithm.collective;
        c.dtype = Datatype::kFp32;
        c.size = kSize;
        c.root = root;
        c.count = blocks ? kCount : kSize * kCount;
        c.in_place = in_place;
        c.direct = true;
        if (!algorithm.admits(c)) continue;
        std::vector<RankInput> given = inputs;
        for (std::uint32_t rank = 0; rank < kSize; ++rank) {
          if (in_place && (c.collective != Collective::kReduce || rank == root))
            std::swap(given[rank].src, given[rank].dst);
        }
        const Job job = make_job(algorithm, c);
        const auto got = interpret(job, given, Policy::random(root + 5));
        for (std::uint32_t rank = 0; rank < kSize; ++rank) {
          if (c.collective == Collective::kReduce && rank != root) continue;
          const float* expected = want.data() + (blocks ? rank * kCount : 0);
          EXPECT_EQ(std::memcmp(got[rank].data(), expected, c.count * 4), 0) << describe(job) << ", rank " << rank;
          ++compared;
        }
      }
    }
  }
  EXPECT_EQ(compared, 3 * 5 + 2 * 5 + 2 * 5);
}

// A streaming tree reduction: kernels give the inputs, the root's kernel takes the sum.
TEST(HandMade, StreamingTreeReduce) {
  const auto leaf = [](std::uint32_t parent) {
    return program({Build(call()).take_stream(0).send(parent, 0).count(6)});
  };
  Program middle = program({Build(call()).take_stream(0).arrive(PeerMode::kList, 0, 0).send(0, 1).count(6)});
  middle.pool = {2, 2, 3};
  const Program root = program({Build(call()).take_stream(0).arrive(1, 1).keep_stream(4).count(6)});
  Job job = make_job({root, middle, leaf(1), leaf(1)}, Datatype::kInt32, 0, 0);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    StreamInput input{rank, 0, std::vector<std::byte>(24)};
    for (std::int32_t i = 0; i < 6; ++i) {
      const std::int32_t value = static_cast<std::int32_t>(rank) * 100 + i;
      std::memcpy(&input.bytes[static_cast<std::size_t>(i) * 4], &value, 4);
    }
    job.streams.push_back(input);
  }
  EXPECT_TRUE(check_job(job, 50).ok());
  for (const Policy& policy : {Policy::generous(), Policy::least_permissive(), Policy::random(3)}) {
    const NumberRun run = Interpreter(job).run_numbers({}, policy);
    ASSERT_FALSE(run.finding) << run.finding->text;
    ASSERT_EQ(run.streams.size(), 1U);
    EXPECT_EQ(run.streams[0].port, 4U);
    for (std::int32_t i = 0; i < 6; ++i) {
      std::int32_t value = 0;
      std::memcpy(&value, &run.streams[0].bytes[static_cast<std::size_t>(i) * 4], 4);
      EXPECT_EQ(value, 600 + 4 * i);
    }
  }
  job.streams[2].bytes.resize(20);  // a kernel that gives too little
  EXPECT_EQ(check_job(job).finding.value().kind, FindingKind::kDeadlock);
}

// The same program runs again on what the first run left: nothing in it belongs to a launch.
TEST(HandMade, PersistentReplay) {
  const Algorithm& ring = algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllreduce, "ring"))];
  for (const std::uint32_t size : {5U, 8U}) {
    Call c = call();
    c.collective = Collective::kAllreduce;
    c.in_place = true;
    c.size = size;
    c.count = 13;
    const Job job = make_job(ring, c);
    std::vector<RankInput> inputs(size);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      inputs[rank].dst.resize(13 * 4);
      for (std::uint32_t i = 0; i < 13; ++i) {
        const std::uint32_t value = rank * 50 + i;
        std::memcpy(&inputs[rank].dst[i * 4], &value, 4);
      }
    }
    for (int launch = 0; launch < 2; ++launch) {
      const auto result = interpret(job, inputs, Policy::random(9));
      for (std::uint32_t rank = 0; rank < size; ++rank) inputs[rank].dst = result[rank];
    }
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      for (std::uint32_t i = 0; i < 13; ++i) {
        std::uint32_t value = 0;
        std::memcpy(&value, &inputs[rank].dst[i * 4], 4);
        EXPECT_EQ(value, size * (50 * size * (size - 1) / 2 + size * i));
      }
    }
  }
}

TEST(Text, OneLinePerMove) {
  const Program p = program({Build(call()).take(src()).keep(dst()).count(4),
                             Build(call()).take(src()).arrive(3, 2).keep(dst()).send(1, 3).count(16).after(1)});
  Program direct = program({Build(call()).fetch(PeerMode::kList, 0, Region::kSrc, 64).keep(dst(64)).count(16)});
  direct.moves.push_back(
      Build(call()).take(src()).fetch(2, Region::kSrc, 64).store(PeerMode::kList, 4, Region::kDst, 64).count(16));
  direct.pool = {3, 0, 1, 2, 2, 0, 1};
  EXPECT_EQ(describe_move(direct, 0), "dst[64:128] = sum remote({0, 1, 2}).src[64:128]");
  EXPECT_EQ(describe_move(direct, 1), "src[0:64] + remote(2).src[64:128] -> remote({0, 1}).dst[64:128]");
  EXPECT_EQ(describe_move(p, 1), "dst[0:64] = src[0:64] + arrival(3, tag 2) -> send(1, tag 3)  after 0");
}

}  // namespace
}  // namespace unisono::reference
