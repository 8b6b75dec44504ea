// Agreement on tuning tables, and measuring the machine.
#include "driver/calibrate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "cost/pins.hpp"
#include "cost/predict.hpp"
#include "cost/tune.hpp"
#include "driver/objects.hpp"
#include "network/shm/lanes.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;

TEST(Agreement, DifferentTablesAreRefusedByAll) {
  EngineSettings pinned;
  pinned.rules = std::make_shared<const std::vector<Rule>>(cost::parse_pins("bcast=linear"));
  EngineSettings other;
  other.rules = std::make_shared<const std::vector<Rule>>(cost::parse_pins("bcast=linear:1K-"));
  const auto capabilities = [](const EngineSettings& settings) {
    return driver::pack_capabilities(NativeEngine::capabilities_of(settings));
  };
  EXPECT_EQ(driver::agree_on(std::vector{capabilities(pinned), capabilities(pinned)}).tuning_hash,
            hash_of(*pinned.rules));
  const struct {
    EngineSettings first, second;
    const char* said;
  } kCases[] = {
      {{}, pinned, "member 2 chooses algorithms by table "},
      {pinned, {}, "member 2 chooses algorithms by the built-in table, member 0 by table "},
      {pinned, other, "set UNISONO_TUNING and UNISONO_ALGORITHM alike on all ranks"},
  };
  for (const auto& each : kCases) {
    try {
      driver::agree_on(std::vector{capabilities(each.first), capabilities(each.first), capabilities(each.second)});
      ADD_FAILURE() << "agreed";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(each.said));
    }
  }
}

TEST(Calibrate, TheModelKnowsTheLanes) {
  const cost::Machine machine;
  EXPECT_EQ(machine.inline_bytes, shm::kInlineBytes);
  EXPECT_EQ(machine.lane_lines, shm::kLaneLines);
  for (std::uint32_t ranks = 2; ranks <= 300; ++ranks) {
    const cost::Machine own = cost::for_ranks(machine, ranks, false);
    ASSERT_EQ(own.segment_bytes * own.lane_segments, shm::LaneSet::cell_bytes_for(ranks)) << ranks;
  }
}

TEST(Calibrate, MeasuresThisMachine) {
  const cost::TuningFile file = driver::calibrate(4);
  EXPECT_EQ(cost::parse_tuning(cost::write_tuning(file)), file) << "what is written can be read";
  const cost::Machine& machine = file.machine;
  EXPECT_EQ(machine.cores, driver::cores_for_ranks());
  RecordProperty("line_ns", std::to_string(machine.line));
  EXPECT_GT(machine.line, 5);
  EXPECT_LT(machine.line, 100'000);
  EXPECT_GT(machine.yield, 20);
  EXPECT_GT(machine.copy[0], 0.001);
  EXPECT_LT(machine.copy[0], 10);
  for (const Rule& rule : file.rules) EXPECT_LE(rule.max_ranks, 4U);
  for (const std::uint32_t ranks : {0U, 1U, 65U}) EXPECT_THROW(driver::calibrate(ranks), Error);
}

}  // namespace
}  // namespace unisono::test
