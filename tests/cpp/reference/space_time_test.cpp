#include "reference/space_time.hpp"

#include <gtest/gtest.h>

#include "collectives/build.hpp"
#include "reference/checker.hpp"
#include "reference/mutate.hpp"
#include "reference/text.hpp"

namespace unisono::reference {
namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SpaceTime, DrawsEveryMoveAndMessageAndTheCulprit) {
  Call call;
  call.collective = Collective::kAllreduce;
  call.func = Func::kSum;
  call.dtype = Datatype::kInt32;
  call.size = 4;
  call.count = 8;
  const Job job =
      make_job(algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllreduce, "ring"))], call);
  Interpreter interpreter(job);
  const SymbolRun run = interpreter.run_symbols(Policy::least_permissive(), true);
  const std::string svg = draw_space_time(interpreter.lowered(), run);
  EXPECT_EQ(occurrences(svg, "<g><title>"), interpreter.lowered().size());
  EXPECT_EQ(occurrences(svg, " L"), 4U * 6U + 2U);  // messages, and the two strokes of the arrow head
  EXPECT_EQ(occurrences(svg, "#e74c3c"), 1U);       // legend only
  Finding finding;
  finding.rank = 2;
  finding.move = 1;
  EXPECT_EQ(occurrences(draw_space_time(interpreter.lowered(), run, finding), "#e74c3c"), 2U);
}

Job ring(std::uint32_t size, std::uint64_t count) {
  Call call;
  call.collective = Collective::kAllreduce;
  call.func = Func::kSum;
  call.dtype = Datatype::kInt32;
  call.size = size;
  call.count = count;
  return make_job(algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAllreduce, "ring"))], call);
}

TEST(SpaceTime, BoxesSayWhatMovesDo) {
  const Job job = ring(4, 8);
  const std::string svg = draw_job(job, Policy::generous());
  for (const std::string to : {"0", "1", "2", "3"}) {
    EXPECT_EQ(occurrences(svg, ">send → " + to + "<"), 6U);
    EXPECT_EQ(occurrences(svg, ">+ recv " + to + "<"), 3U);
    EXPECT_EQ(occurrences(svg, ">recv " + to + "<"), 3U);
  }
  // Where that many boxes have no room for words, they hold numbers.
  const std::string long_one = draw_job(ring(33, 33), Policy::generous());
  EXPECT_EQ(occurrences(long_one, "recv"), 0U);
  EXPECT_EQ(occurrences(long_one, ">0</text>"), 33U) << "the first move of each rank";
}

// Two ranks: the second of rank 0's messages is awaited by nobody, and rank 1 awaits one with another tag.
Job unmatched(std::uint32_t tag) {
  Call call;
  call.dtype = Datatype::kInt32;
  const auto send = [&](std::uint32_t with) {
    return Move(build::Build(call).take({Region::kSrc, 0}).send(1, with).count(2));
  };
  std::vector<Program> programs(2);
  programs[0].moves = {send(0), send(1)};
  programs[1].moves = {build::Build(call).arrive(0, tag).keep(build::dst()).count(2)};
  return make_job(std::move(programs), Datatype::kInt32, 8, 8);
}

TEST(SpaceTime, MessagesThatDoNotMatchAreDrawn) {
  for (const std::uint32_t tag : {0U, 7U}) {
    const CheckReport report = check_job(unmatched(tag));
    ASSERT_EQ(report.finding.value().kind, FindingKind::kUnmatched);
    EXPECT_EQ(report.text().find("schedule"), std::string::npos) << report.text();
    const std::string svg = draw_job(*report.failing_job, Policy::least_permissive(), report.finding);
    EXPECT_EQ(occurrences(svg, "<g><title>"), 3U) << "every move";
    EXPECT_EQ(occurrences(svg, "class=\"nobody\""), 1U) << "the message that nobody awaits";
    EXPECT_GE(occurrences(svg, "#e74c3c"), 3U) << "legend, cross and the culprit";
    EXPECT_NE(svg.find("unmatched: "), std::string::npos);
    // With the tag that fits the first message is taken; with another the arrival never completes.
    EXPECT_EQ(occurrences(svg, "stroke-dasharray=\"3 2\"/>"), tag == 0 ? 0U : 1U);
  }
}

TEST(SpaceTime, LabelsOfMoves) {
  Call call;
  call.dtype = Datatype::kInt32;
  call.func = Func::kSum;
  using build::Build;
  using build::dst;
  const build::Place src{Region::kSrc, 0};
  Program program;
  program.pool = {3, 0, 2, 3, 2, 0, 2, 4, 0, 1, 2, 3};  // others, two of them, all
  const auto label = [&](const Move& move) {
    program.moves = {move};
    return label_move(program, 0, 1, 4);
  };
  EXPECT_EQ(label(Build(call).take(src).send(3, 0).count(2)), "send → 3");
  EXPECT_EQ(label(Build(call).take(src).keep(dst()).count(2)), "copy");
  EXPECT_EQ(label(Build(call).arrive(2, 0).keep(dst()).count(2)), "recv 2");
  EXPECT_EQ(label(Build(call).take(src).arrive(2, 0).keep(dst()).count(2)), "+ recv 2");
  EXPECT_EQ(label(Build(call).take(src).arrive(2, 0).send(0, 0).count(2)), "+ recv 2 → 0");
  EXPECT_EQ(label(Build(call).take(src).send(PeerMode::kList, 0, 0).count(2)), "send → others");
  EXPECT_EQ(label(Build(call).arrive(PeerMode::kList, 4, 0).keep(dst()).count(2)), "+ recv 0,2");
  EXPECT_EQ(label(Build(call).fetch(PeerMode::kList, 7, Region::kSrc, 0).keep(dst()).count(2)), "+ read all");
  EXPECT_EQ(label(Build(call).take(src).store(2, Region::kDst, 0).count(2)), "write → 2");
  EXPECT_EQ(label(Build(call).signal().send(2, 0)), "signal → 2");
  EXPECT_EQ(label(Build(call).signal().arrive(2, 0)), "signal ← 2");
  call.func = Func::kMax;
  EXPECT_EQ(label(Build(call).take(src).arrive(2, 0).keep(dst()).count(2)), "max recv 2");
}

}  // namespace
}  // namespace unisono::reference
