// Programs of the user, loaded into the engine and called, against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "platform/device/registers.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/random_programs.hpp"
#include "tests/rtl/cclo/job.hpp"

namespace unisono::rtl {
namespace {

/// Whether the engine holds it afterwards.
bool load(sim::Host& host, std::uint32_t slot, const Program& program, std::uint32_t signature) {
  host.write(registers::kProgramSlot, slot);
  for (const std::uint32_t word : program.pool) host.write(registers::kProgramList, word);
  for (const Move& move : program.moves) {
    for (const std::uint64_t words : encode(move)) {
      host.write(registers::kProgramMove, static_cast<std::uint32_t>(words));
      host.write(registers::kProgramMove, static_cast<std::uint32_t>(words >> 32U));
    }
  }
  host.write(registers::kProgramLoad, signature);
  return (host.read(registers::kProgramState) >> slot & 1U) != 0;
}

/// A set of programs that fits the engine, what they work on, and what comes out.
struct Case {
  std::vector<Program> programs;
  Datatype dtype = Datatype::kNone;
  std::vector<reference::RankInput> inputs;
  std::vector<std::vector<std::byte>> expected;
};

std::optional<Case> random_case(std::uint32_t seed, std::uint32_t size) {
  test::Generator generator(seed, size, 40, false);
  Case made;
  made.dtype = generator.dtype();
  // Not in this engine.
  if (made.dtype == Datatype::kComplex64) return std::nullopt;
  made.programs = generator.run(12);
  for (const Program& program : made.programs) {
    if (program.moves.size() > kLoadedMoves || program.pool.size() > kLoadedWords) return std::nullopt;
  }
  for (std::uint32_t r = 0; r < size; ++r) made.inputs.push_back({generator.data(r, 0), generator.data(r, 1), {}});
  const reference::Job job = reference::make_job(made.programs, made.dtype, generator.src_bytes(), generator.bytes());
  made.expected = reference::interpret(job, made.inputs);
  return made;
}

constexpr std::uint64_t kSrc = sim::Node::kMemoryAddress;
constexpr std::uint64_t kDst = kSrc + (std::uint64_t{1} << 20U);
constexpr std::uint64_t kScratch = kDst + (std::uint64_t{1} << 20U);

CallDescriptor call_of(const Case& tried, std::uint32_t rank, std::uint32_t slot, std::uint32_t id) {
  CallDescriptor call;
  call.collective = Collective::kProgram;
  call.dtype = tried.dtype;
  call.communicator = kPlace;
  call.src_address = kSrc;
  call.src_bytes = tried.inputs[rank].src.size();
  call.dst_address = kDst;
  call.dst_bytes = tried.inputs[rank].dst.size();
  call.scratch_address = kScratch;
  call.scratch_bytes = tried.programs[rank].scratch_bytes;
  call.call_id = id;
  call.program = slot;
  return call;
}

class Programs : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Programs, GiveTheInterpretersBits) {
  const std::uint32_t size = GetParam();
  Job job(size);
  std::uint32_t id = 0, tried_so_far = 0;
  for (std::uint32_t seed = size; tried_so_far < 14; seed += 7) {
    const std::optional<Case> tried = random_case(seed, size);
    if (!tried) continue;
    // Slots are used again, by other programs, and each rank has its own.
    const auto slot_of = [&](std::uint32_t rank) {
      return static_cast<std::uint32_t>((tried_so_far + rank) % kLoadedPrograms);
    };
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      ASSERT_TRUE(load(job.host(rank), slot_of(rank), tried->programs[rank], 1000 + tried_so_far));
    }
    for (int turn = 0; turn < 2; ++turn) {
      ++id;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        job.cluster().node(rank).store(kSrc, tried->inputs[rank].src);
        job.cluster().node(rank).store(kDst, tried->inputs[rank].dst);
        job.host(rank).submit(call_of(*tried, rank, slot_of(rank), id));
      }
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        ASSERT_EQ(job.host(rank).completion(kLimit), std::pair(id, std::uint16_t{0}))
            << "seed " << seed << ", " << rank;
        std::vector<std::byte> result(tried->expected[rank].size());
        job.cluster().node(rank).load(kDst, result);
        EXPECT_TRUE(result == tried->expected[rank]) << "seed " << seed << ", rank " << rank << " of " << size;
      }
    }
    ++tried_so_far;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Programs, testing::Values(2U, 3U, 5U));

TEST(ProgramLoading, WhatDoesNotFitIsRefusedAndOthersStay) {
  constexpr std::uint32_t kSize = 2;
  Job job(kSize);
  std::optional<Case> tried;
  for (std::uint32_t seed = 0; !tried; ++seed) tried = random_case(seed, kSize);
  for (std::uint32_t rank = 0; rank < kSize; ++rank) ASSERT_TRUE(load(job.host(rank), 3, tried->programs[rank], 9));

  Program much = tried->programs[0];
  while (much.moves.size() <= kLoadedMoves) much.moves.push_back(much.moves.front());
  EXPECT_FALSE(load(job.host(0), 4, much, 9));
  EXPECT_NE(job.host(0).read(registers::kProgramState) & registers::kProgramRefused, 0U);
  Program wide = tried->programs[0];
  wide.pool.resize(kLoadedWords + 1);
  EXPECT_FALSE(load(job.host(0), 4, wide, 9));
  EXPECT_FALSE(load(job.host(0), kLoadedPrograms, tried->programs[0], 9)) << "there is no such slot";
  EXPECT_EQ(job.host(0).read(registers::kProgramState) & 0xffU, 1U << 3U);

  // Neither what was refused nor what was never there can be called.
  for (const std::uint32_t slot : {4U, 5U, 8U, 0x1000003U}) {
    job.host(0).submit(call_of(*tried, 0, slot, 50 + slot % 16));
    EXPECT_EQ(job.host(0).completion(kLimit).second, static_cast<std::uint16_t>(ErrorCode::kInvalidArgument)) << slot;
  }
  // Ranks whose programs have other signatures do not meet.
  ASSERT_TRUE(load(job.host(0), 4, tried->programs[0], 10));
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    CallDescriptor call = call_of(*tried, rank, rank == 0 ? 4 : 3, 70);
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
