// Programs of the user, loaded into the engine and called, against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/build.hpp"
#include "platform/device/registers.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/rtl/cclo/job.hpp"
#include "tests/rtl/cclo/program_case.hpp"

namespace unisono::rtl {
namespace {

constexpr sim::Host::Agreed kFewBuffers{1024, 1024, 1};
constexpr std::uint64_t kMemory = sim::Node::kMemoryAddress;

/// Where moves of the program in a slot stand that the engine itself has no place for.
constexpr std::uint64_t rest_at(std::uint32_t slot) {
  return kMemory + (std::uint64_t{256} << 20U) + (std::uint64_t{slot} << 20U);
}

/// Loads the programs, each rank's into a slot of its own, and has them run `turns` times.
void run(Job& job, const ProgramCase& tried, std::uint32_t number, int turns, std::uint64_t limit,
         const std::string& what) {
  static std::uint32_t id = 0;
  const std::uint32_t size = job.size();
  const auto slot_of = [&](std::uint32_t rank) {
    return static_cast<std::uint32_t>((number + rank) % kLoadedPrograms);
  };
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const std::uint64_t rest = rest_at(slot_of(rank));
    store_rest(job.cluster().node(rank), tried.programs[rank], rest);
    ASSERT_TRUE(load(job.host(rank), slot_of(rank), tried.programs[rank], 1000 + number, rest));
  }
  for (int turn = 0; turn < turns; ++turn) {
    id = (id + 1) % 0x10000;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      job.cluster().node(rank).store(ProgramCase::src(kMemory), tried.inputs[rank].src);
      job.cluster().node(rank).store(ProgramCase::dst(kMemory), tried.inputs[rank].dst);
      job.host(rank).submit(tried.call(rank, slot_of(rank), kPlace, id, kMemory));
    }
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      ASSERT_EQ(job.host(rank).completion(limit), std::pair(id, std::uint16_t{0})) << what << ", rank " << rank;
      std::vector<std::byte> result(tried.expected[rank].size());
      job.cluster().node(rank).load(ProgramCase::dst(kMemory), result);
      EXPECT_TRUE(result == tried.expected[rank]) << what << ", rank " << rank << " of " << size;
    }
  }
}

class Programs : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Programs, GiveTheInterpretersBits) {
  const std::uint32_t size = GetParam();
  Job job(size);
  std::uint32_t tried_so_far = 0;
  for (std::uint32_t seed = size; tried_so_far < 14; seed += 7) {
    const std::optional<ProgramCase> tried = ProgramCase::make(seed, size);
    if (!tried) continue;
    // Slots are used again, by other programs.
    ASSERT_NO_FATAL_FAILURE(run(job, *tried, tried_so_far, 2, kLimit, "seed " + std::to_string(seed)));
    ++tried_so_far;
  }
}

// Messages of several segments, more than there are buffers.
TEST_P(Programs, GiveTheInterpretersBitsWithLongMessages) {
  const std::uint32_t size = GetParam();
  Job job(size, kFewBuffers);
  std::uint32_t tried_so_far = 0;
  for (std::uint32_t seed = 3 + size; tried_so_far < 4; seed += 5) {
    const std::optional<ProgramCase> tried = ProgramCase::make(seed, size, 3000);
    if (!tried) continue;
    ASSERT_NO_FATAL_FAILURE(run(job, *tried, tried_so_far, 1, 4 * kLimit, "seed " + std::to_string(seed)));
    ++tried_so_far;
  }
}

// Most of their moves stand in memory. More ranks' lists would take more words than there are.
class LongPrograms : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, LongPrograms, testing::Values(2U, 3U));

TEST_P(LongPrograms, GiveTheInterpretersBits) {
  const std::uint32_t size = GetParam();
  Job job(size);
  std::uint32_t tried_so_far = 0;
  std::size_t most = 0;
  for (std::uint32_t seed = size; tried_so_far < 6; seed += 7) {
    const std::optional<ProgramCase> tried = ProgramCase::make(seed, size, 40, 80 + 60 * tried_so_far);
    if (!tried) continue;
    ASSERT_NO_FATAL_FAILURE(run(job, *tried, tried_so_far, 2, 10 * kLimit, "seed " + std::to_string(seed)));
    for (const Program& program : tried->programs) most = std::max(most, program.moves.size());
    ++tried_so_far;
  }
  EXPECT_GT(most, 200U);
}

// All that the engine can carry out at once, on every rank.
TEST(LongProgram, EightAtOnceDoNotMix) {
  constexpr std::uint32_t kSize = 2;
  Job job(kSize);
  std::vector<ProgramCase> cases;
  for (std::uint32_t seed = 2; cases.size() < kLoadedPrograms; seed += 3) {
    std::optional<ProgramCase> tried = ProgramCase::make(seed, kSize, 40, 150);
    if (tried) cases.push_back(std::move(*tried));
  }
  const auto memory_of = [](std::size_t i) { return kMemory + (std::uint64_t{i} << 22U); };
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    sim::Node& node = job.cluster().node(rank);
    for (std::uint32_t i = 0; i < cases.size(); ++i) {
      ASSERT_GT(cases[i].programs[rank].moves.size(), 2 * kLoadedMoves);
      store_rest(node, cases[i].programs[rank], rest_at(i));
      ASSERT_TRUE(load(job.host(rank), i, cases[i].programs[rank], 100 + i, rest_at(i)));
      node.store(ProgramCase::src(memory_of(i)), cases[i].inputs[rank].src);
      node.store(ProgramCase::dst(memory_of(i)), cases[i].inputs[rank].dst);
    }
  }
  for (std::uint32_t i = 0; i < cases.size(); ++i) {
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      job.host(rank).submit(cases[i].call(rank, i, kPlace, 1 + i, memory_of(i)));
    }
  }
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(job.host(rank).completion(10 * kLimit).second, 0) << "rank " << rank;
    }
    for (std::uint32_t i = 0; i < cases.size(); ++i) {
      std::vector<std::byte> result(cases[i].expected[rank].size());
      job.cluster().node(rank).load(ProgramCase::dst(memory_of(i)), result);
      EXPECT_TRUE(result == cases[i].expected[rank]) << "program " << i << ", rank " << rank;
    }
  }
}

/// A program of one rank: element i of dst becomes what element i % n of src is.
ProgramCase copies(std::uint32_t moves, std::uint32_t n) {
  Call call;
  call.dtype = Datatype::kInt32;
  ProgramCase made;
  made.dtype = call.dtype;
  made.programs.resize(1);
  std::vector<std::byte> src(4 * std::size_t{n}), dst(4 * std::size_t{moves});
  for (std::uint32_t i = 0; i < n; ++i) std::memcpy(src.data() + 4 * std::size_t{i}, &i, 4);
  for (std::uint32_t i = 0; i < moves; ++i) {
    made.programs[0].moves.push_back(
        build::Build(call).count(1).take({Region::kSrc, 4 * (i % n)}).keep({Region::kDst, 4 * i}));
  }
  made.inputs.push_back({src, dst, {}});
  made.expected =
      reference::interpret(reference::make_job(made.programs, made.dtype, src.size(), dst.size()), made.inputs);
  return made;
}

// Wherever the deadline finds it, the next call of its slot gets the moves of its own program.
TEST(LongProgram, AnEndUnderwayLeavesNothingBehind) {
  Job job(1);
  sim::Host& host = job.host(0);
  sim::Node& node = job.cluster().node(0);
  const std::vector<ProgramCase> cases{copies(2000, 7), copies(300, 11)};
  for (std::uint32_t i = 0; i < 2; ++i) {
    store_rest(node, cases[i].programs[0], rest_at(i));
    ASSERT_TRUE(load(host, i, cases[i].programs[0], 100 + i, rest_at(i)));
  }
  std::uint32_t id = 0;
  for (std::uint32_t deadline = 1; deadline <= 12; ++deadline) {
    CallDescriptor call = cases[0].call(0, 0, kPlace, ++id, kMemory);
    call.deadline_us = deadline;
    host.submit(call);
    EXPECT_EQ(host.completion(kLimit), std::pair(id, static_cast<std::uint16_t>(ErrorCode::kTimeout)));
    node.store(ProgramCase::src(kMemory), cases[1].inputs[0].src);
    node.store(ProgramCase::dst(kMemory), cases[1].inputs[0].dst);
    host.submit(cases[1].call(0, 1, kPlace, ++id, kMemory));
    EXPECT_EQ(host.completion(kLimit), std::pair(id, std::uint16_t{0}));
    std::vector<std::byte> result(cases[1].expected[0].size());
    node.load(ProgramCase::dst(kMemory), result);
    EXPECT_TRUE(result == cases[1].expected[0]) << "after a deadline of " << deadline;
  }
}

TEST(LongProgram, MovesThatCannotBeReadEndTheCall) {
  Job job(1);
  sim::Node& node = job.cluster().node(0);
  const ProgramCase tried = copies(200, 5);
  store_rest(node, tried.programs[0], rest_at(2));
  ASSERT_TRUE(load(job.host(0), 2, tried.programs[0], 9, rest_at(2)));
  std::uint32_t id = 0;
  for (const std::uint64_t move : {0U, 15U, 16U, 100U, 167U}) {
    const std::uint64_t at = rest_at(2) + kMoveBytes * move;
    for (unsigned port = 0; port < sim::Node::kMemoryPorts; ++port) {
      node.memory().fail(port, at, at + kMoveBytes - 1, sim::AxiResponse::kSlaveError);
    }
    job.host(0).submit(tried.call(0, 2, kPlace, ++id, kMemory));
    EXPECT_EQ(job.host(0).completion(kLimit), std::pair(id, static_cast<std::uint16_t>(ErrorCode::kInternal))) << move;
    node.memory().heal();
    job.host(0).submit(tried.call(0, 2, kPlace, ++id, kMemory));
    EXPECT_EQ(job.host(0).completion(kLimit), std::pair(id, std::uint16_t{0})) << move;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Programs, testing::Values(2U, 3U, 5U));

/// Programs of three ranks in which each rank's moves work on `n` elements of src and dst.
class Three {
 public:
  explicit Three(std::uint64_t n) : n_(n), programs_(3) {}

  build::Build move(Func func = Func::kNone) const {
    Call call;
    call.dtype = Datatype::kInt32;
    call.func = func;
    return build::Build(call).count(n_);
  }
  /// The place in the rank's pool.
  std::uint32_t list(std::uint32_t rank, std::initializer_list<std::uint32_t> peers) {
    std::vector<std::uint32_t>& pool = programs_[rank].pool;
    const auto index = static_cast<std::uint32_t>(pool.size());
    pool.push_back(static_cast<std::uint32_t>(peers.size()));
    pool.insert(pool.end(), peers);
    return index;
  }
  void add(std::uint32_t rank, const build::Build& move) { programs_[rank].moves.push_back(move); }

  ProgramCase finish() const {
    ProgramCase made;
    made.dtype = Datatype::kInt32;
    made.programs = programs_;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      std::vector<std::byte> src(4 * n_), dst(4 * n_);
      for (std::uint64_t i = 0; i < n_; ++i) {
        const auto value = static_cast<std::uint32_t>(i * 2654435761U + rank);
        std::memcpy(src.data() + 4 * i, &value, 4);
      }
      made.inputs.push_back({src, dst, {}});
    }
    const reference::Job job = reference::make_job(made.programs, made.dtype, 4 * n_, 4 * n_);
    made.expected = reference::interpret(job, made.inputs);
    return made;
  }

 private:
  std::uint64_t n_;
  std::vector<Program> programs_;
};

constexpr std::uint64_t kLong = 40'000;  ///< elements: 160 KB, more than all buffers hold
constexpr build::Place kFrom{Region::kSrc, 0};
constexpr build::Place kTo{Region::kDst, 0};

// Rank 1 can take more of what rank 0 sends to both only when rank 2 has got as much of it.
TEST(Lists, WhatGoesToSeveralReachesAllOfThemSegmentBySegment) {
  Three three(kLong);
  three.add(0, three.move().take(kFrom).send(PeerMode::kList, three.list(0, {1, 2}), 0));
  three.add(1, three.move(Func::kSum).arrive(PeerMode::kList, three.list(1, {0, 2}), 0).keep(kTo));
  three.add(2, three.move().arrive(0, 0).keep(kTo).send(1, 0));
  Job job(3);
  run(job, three.finish(), 0, 1, kLimit, "forward");
}

// The same with what rank 0 passes on to both as it arrives, and keeps.
TEST(Lists, WhatArrivesGoesOnToSeveralAsItArrives) {
  for (const bool keeps : {true, false}) {
    Three three(kLong);
    three.add(1, three.move().take(kFrom).send(PeerMode::kList, three.list(1, {0, 2}), 0));
    build::Build pass = three.move(Func::kSum).take(kFrom).arrive(1, 0);
    if (keeps) pass.keep(kTo);
    three.add(0, pass.send(PeerMode::kList, three.list(0, {1, 2}), 0));
    three.add(1, three.move().arrive(0, 0).keep(kTo));
    three.add(2, three.move(Func::kSum).arrive(PeerMode::kList, three.list(2, {0, 1}), 0).keep(kTo));
    Job job(3);
    run(job, three.finish(), 0, 1, kLimit, keeps ? "kept" : "not kept");
  }
}

TEST(ProgramLoading, WhatDoesNotFitIsRefusedAndOthersStay) {
  constexpr std::uint32_t kSize = 2;
  Job job(kSize);
  std::optional<ProgramCase> tried;
  for (std::uint32_t seed = 0; !tried; ++seed) tried = ProgramCase::make(seed, kSize);
  for (std::uint32_t rank = 0; rank < kSize; ++rank) ASSERT_TRUE(load(job.host(rank), 3, tried->programs[rank], 9));

  // More than there may be in all; moves in memory without the first ones.
  Program much = tried->programs[0];
  while (much.moves.size() <= kProgramMoves) much.moves.push_back(much.moves.front());
  EXPECT_FALSE(load(job.host(0), 4, much, 9, rest_at(4)));
  EXPECT_NE(job.host(0).read(registers::kProgramState) & registers::kProgramRefused, 0U);
  job.host(0).write(registers::kProgramSlot, 4);
  job.host(0).write(registers::kProgramRestMoves, 1);
  job.host(0).write(registers::kProgramLoad, 9);
  EXPECT_NE(job.host(0).read(registers::kProgramState) & registers::kProgramRefused, 0U);
  Program wide = tried->programs[0];
  wide.pool.resize(kLoadedWords + 1);
  EXPECT_FALSE(load(job.host(0), 4, wide, 9));
  EXPECT_FALSE(load(job.host(0), kLoadedPrograms, tried->programs[0], 9)) << "there is no such slot";
  EXPECT_EQ(job.host(0).read(registers::kProgramState) & 0xffU, 1U << 3U);

  // Neither what was refused nor what was never there can be called.
  for (const std::uint32_t slot : {4U, 5U, 8U, 0x1000003U}) {
    job.host(0).submit(tried->call(0, slot, kPlace, 50 + slot % 16, kMemory));
    EXPECT_EQ(job.host(0).completion(kLimit).second, static_cast<std::uint16_t>(ErrorCode::kInvalidArgument)) << slot;
  }
  // Ranks whose programs have other signatures do not meet.
  ASSERT_TRUE(load(job.host(0), 4, tried->programs[0], 10));
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    CallDescriptor call = tried->call(rank, rank == 0 ? 4 : 3, kPlace, 70, kMemory);
    call.deadline_us = 200;
    job.host(rank).submit(call);
  }
  bool mismatch = false;
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    const std::uint16_t code = job.host(rank).completion(kLimit).second;
    EXPECT_NE(code, 0);
    mismatch = mismatch || code == static_cast<std::uint16_t>(ErrorCode::kMismatchedCall);
  }
  EXPECT_TRUE(mismatch);
}

}  // namespace
}  // namespace unisono::rtl
