// Long programs are made again for each launch: move by move what was examined, and no more of it than the window
// holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/record.hpp"
#include "engine/move_stream.hpp"
#include "reference/checker.hpp"

namespace unisono::test {
namespace {

using cclo::CheckedProgram;
using cclo::MoveStream;

CheckedProgram program_of(const Algorithm& algorithm, const Call& call, std::size_t moves) {
  CheckedProgram program;
  program.move_count = static_cast<std::uint32_t>(moves);
  program.made_by = &algorithm;
  program.made_for = call;
  return program;
}

std::string text_of(const Algorithm& algorithm, const Call& call) {
  return std::string(name_of(algorithm.collective)) + "/" + algorithm.name + ", rank " + std::to_string(call.rank) +
         " of " + std::to_string(call.size) + ", count " + std::to_string(call.count);
}

/// Whether the stream makes what was recorded, and leaves the moves of the window where they are.
testing::AssertionResult makes_the_same(MoveStream& stream, const Algorithm& algorithm, const Call& call) {
  const std::vector<Move> moves = record(algorithm, call).moves;
  const CheckedProgram program = program_of(algorithm, call, moves.size());
  stream.begin(program);
  std::vector<const Move*> taken;
  for (std::size_t n = 0; n < moves.size(); ++n) {
    taken.push_back(&stream.next());
    for (std::size_t i = n - std::min<std::size_t>(n, kWindow - 1); i <= n; ++i) {
      if (*taken[i] == moves[i]) continue;
      return testing::AssertionFailure() << text_of(algorithm, call) << ": move " << i << ", looked at when move " << n
                                         << " had been taken, is another one";
    }
  }
  return testing::AssertionSuccess();
}

TEST(MoveStream, MakesTheProgramsOfAllAlgorithms) {
  MoveStream stream;  // used again and again, as that of a call
  std::size_t programs = 0, long_ones = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const std::uint32_t size : {1U, 2U, 6U, 33U}) {
      reference::CheckOptions options;
      options.counts = {0, 3, 2 * size + 1};
      options.group_lists = true;
      for (const reference::CheckedCall& checked : reference::calls_to_check(algorithm, size, options)) {
        Call call = checked.call;
        if (algorithm.admits != nullptr && !algorithm.admits(call)) continue;
        for (const std::uint32_t rank : {0U, size / 2, size - 1}) {
          call.rank = rank;
          ASSERT_TRUE(makes_the_same(stream, algorithm, call));
          long_ones += record(algorithm, call).moves.size() > 2 * kWindow ? 1 : 0;
          ++programs;
        }
      }
    }
  }
  EXPECT_GT(programs, 1000U);
  EXPECT_GT(long_ones, 50U);
}

TEST(MoveStream, MakesTheDivisionOfAMean) {
  MoveStream stream;
  Call call;
  call.collective = Collective::kAllreduce;
  call.func = Func::kAvg;
  call.dtype = Datatype::kFp32;
  call.size = 70;
  call.count = 1000;
  const Algorithm& ring = algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllreduce, "ring"))];
  EXPECT_TRUE(makes_the_same(stream, ring, call));
}

TEST(MoveStream, AnAlgorithmThatBreaksItsWordIsFound) {
  MoveStream stream;
  static const auto one_step = [](const Call& /*call*/) { return std::uint32_t{1}; };
  Algorithm algorithm{};
  algorithm.steps = one_step;
  algorithm.step = [](const Call& call, std::uint32_t /*s*/, Emit& emit) {
    for (std::uint64_t i = 0; i < call.count; ++i) emit(Move{});
  };
  Call call;
  call.count = kMovesPerStep;
  const CheckedProgram program = program_of(algorithm, call, kMovesPerStep + 1);
  stream.begin(program);
  for (std::uint64_t i = 0; i < kMovesPerStep; ++i) stream.next();
  EXPECT_THROW(stream.next(), Error) << "fewer moves than before";
  call.count = kMovesPerStep + 1;
  const CheckedProgram greedy = program_of(algorithm, call, kMovesPerStep + 1);
  stream.begin(greedy);
  EXPECT_THROW(stream.next(), Error) << "more moves in a step than may be";
}

}  // namespace
}  // namespace unisono::test
