// Random programs on the engine and on the reference interpreter: equal bits.
#include <gtest/gtest.h>

#include "engine/lower.hpp"
#include "network/counters.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/random_programs.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

class RandomPrograms : public testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomPrograms, GiveTheInterpretersBits) {
  const std::uint32_t size = GetParam();
  std::uint32_t on_lanes = 0;
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    Generator generator(seed * 10 + size, size);
    const std::vector<Program> programs = generator.run(20 + seed * 6);
    const reference::Job job =
        reference::make_job(programs, generator.dtype(), generator.src_bytes(), generator.bytes());
    std::vector<reference::RankInput> inputs(size);
    for (std::uint32_t r = 0; r < size; ++r) inputs[r] = {generator.data(r, 0), generator.data(r, 1), {}};
    const auto expected = reference::interpret(job, inputs);
    ASSERT_EQ(expected, reference::interpret(job, inputs, reference::Policy::random(seed))) << "the generator races";

    bool changed = false;
    for (std::uint32_t r = 0; r < size; ++r) changed = changed || expected[r] != inputs[r].dst;
    ASSERT_TRUE(changed) << "the program does nothing";

    EngineSettings settings = quick_settings();
    settings.eager_limit = seed % 4 == 0 ? 0 : seed % 4 == 1 ? 200 : 8192;
    settings.segment_bytes = seed % 3 == 0 ? 64 : 512;
    settings.rx_buffer_count = 1 + seed % 5;
    std::vector<std::shared_ptr<const Program>> set;
    for (const Program& program : programs) set.push_back(std::make_shared<const Program>(program));
    const bool carried = cclo::lanes_carry(set);
    on_lanes += carried ? 1 : 0;
    // By messages, on lanes, and on lanes with a call that does not block.
    const auto round = [&](Rank& self, bool lanes, bool blocking) {
      std::vector<std::byte> src = inputs[self.rank].src, dst = inputs[self.rank].dst;
      CallRequest r;
      r.call.collective = Collective::kProgram;
      r.call.dtype = generator.dtype();
      r.program = set[self.rank];
      r.lanes_carry = lanes;
      r.src = bind(src);
      r.dst = bind(dst);
      const std::size_t sent = static_cast<std::size_t>(NativeCounter::kLaneMessages);
      const std::uint64_t before = self.engine.counter(sent);
      blocking ? static_cast<void>(self.engine.run(r)) : static_cast<void>(self.run(r));
      if (!lanes) {
        EXPECT_EQ(self.engine.counter(sent), before);
      }
      EXPECT_EQ(src, inputs[self.rank].src);
      EXPECT_EQ(dst, expected[self.rank])
          << "seed " << seed << ", rank " << self.rank << " of " << self.size << ", " << name_of(generator.dtype());
    };
    run_ranks(size, settings, [&](Rank& self) { round(self, false, false); });
    if (!carried) continue;
    run_ranks(size, settings, [&](Rank& self) {
      for (const bool blocking : {true, false, true}) round(self, true, blocking);
    });
  }
  EXPECT_GT(on_lanes, 12U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RandomPrograms, testing::Values(2U, 3U, 5U));

}  // namespace
}  // namespace unisono::test
