// Random programs on the engine and on the reference interpreter: equal bits.
#include <gtest/gtest.h>

#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/random_programs.hpp"
#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

class RandomPrograms : public testing::TestWithParam<std::uint32_t> {};

TEST_P(RandomPrograms, GiveTheInterpretersBits) {
  const std::uint32_t size = GetParam();
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
    run_ranks(size, settings, [&](Rank& self) {
      std::vector<std::byte> src = inputs[self.rank].src, dst = inputs[self.rank].dst;
      CallRequest r;
      r.call.collective = Collective::kProgram;
      r.call.dtype = generator.dtype();
      r.program = std::make_shared<Program>(programs[self.rank]);
      r.src = bind(src);
      r.dst = bind(dst);
      self.run(r);
      EXPECT_EQ(src, inputs[self.rank].src);
      EXPECT_EQ(dst, expected[self.rank])
          << "seed " << seed << ", rank " << self.rank << " of " << self.size << ", " << name_of(generator.dtype());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, RandomPrograms, testing::Values(2U, 3U, 5U));

}  // namespace
}  // namespace unisono::test
