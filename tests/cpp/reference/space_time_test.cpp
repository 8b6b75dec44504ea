#include "reference/space_time.hpp"

#include <gtest/gtest.h>

#include "reference/mutate.hpp"

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

}  // namespace
}  // namespace unisono::reference
