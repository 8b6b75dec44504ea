// The configuration file of a cluster: keys of its own beside those of the network.
#include "sim/cluster/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/error.hpp"

namespace unisono::sim {
namespace {

TEST(ClusterConfig, HasKeysOfTranslationAndOfTheNetwork) {
  const ClusterFile file = parse_cluster("nodes = 5\n tlb_entries = 64 # few\ntlb_page = 4K\r\ngbps = 200\n", "a");
  EXPECT_EQ(file.network.nodes, 5U);
  EXPECT_EQ(file.network.link.mbps, 200'000U);
  EXPECT_TRUE(file.has_tlb());
  const TlbConfig tlb = file.tlb({.entries = 9, .page_bytes = 1 << 21U, .miss_cycles = 77, .from = 5});
  EXPECT_EQ(tlb.entries, 64U);
  EXPECT_EQ(tlb.page_bytes, 4096U);
  EXPECT_EQ(tlb.miss_cycles, 77U) << "as usual, where the file says nothing";
  EXPECT_EQ(tlb.from, 5U);
  EXPECT_FALSE(parse_cluster("nodes = 3\n# tlb_entries = 2\n", "a").has_tlb());
}

TEST(ClusterConfig, NamesLineAndKey) {
  const auto said = [](const std::string& text) -> std::string {
    try {
      parse_cluster(text, "f.conf");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(said("\ntlb_page = 3M\n"),
              testing::AllOf(testing::HasSubstr("f.conf, line 2"), testing::HasSubstr("tlb_page"),
                             testing::HasSubstr("4K, 2M or 1G")));
  EXPECT_THAT(said("tlb_entries = -1"), testing::HasSubstr("tlb_entries"));
  EXPECT_THAT(said("tlb_enties = 4"), testing::HasSubstr("tlb_miss_cycles")) << "says which there are";
  EXPECT_THAT(said("tlb_entries = 4\n\nspeed = 3\n"), testing::HasSubstr("f.conf, line 3")) << "the network's own";
}

TEST(ClusterConfig, NodesAreThoseOfTheJob) {
  const auto said = [](const std::string& text, std::uint32_t nodes, std::optional<std::uint64_t> seed = {}) {
    try {
      parse_cluster(text, "f.conf").network_of(nodes, seed);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(said("\nnodes = 8", 4),
            "f.conf, line 2: nodes = 8, but the job has 4 ranks: each rank has a node. Leave the line out, or start 8 "
            "ranks");
  EXPECT_THAT(said("nodes = 2", 1), testing::HasSubstr("the job has 1 rank:"));
  EXPECT_EQ(said("nodes = 8", 8), "");
  EXPECT_EQ(said("nodes = 8\naggregation = aas@node7", 4),
            "f.conf, line 1: nodes = 8, but the job has 4 ranks: each rank has a node and 1 more is a unit. Leave the "
            "line out, or start 7 ranks");
  EXPECT_EQ(said("nodes = 8\naggregation = aas@node7", 7), "");
  EXPECT_EQ(said("gbps = 40", 5), "");
  EXPECT_EQ(said("seed = 3\nnodes = 2", 2, 4),
            "f.conf, line 1: seed = 3 does nothing, for the option --seed says 4. Leave one of them out");
  EXPECT_EQ(said("seed = 3", 2, 3), "");
  EXPECT_EQ(parse_cluster("seed = 3", "f").network_of(2, std::nullopt).seed, 3U) << "of the file, without the option";
  EXPECT_EQ(parse_cluster("", "f").network_of(2, 9).seed, 9U);
  EXPECT_EQ(parse_cluster("", "f").network_of(5, std::nullopt).nodes, 5U);
  EXPECT_EQ(parse_cluster("aggregation = aas@node5", "f").network_of(5, std::nullopt).nodes, 6U)
      << "a unit behind them";
  EXPECT_EQ(parse_cluster("nodes = 6\naggregation = aas@node5", "f").network_of(5, std::nullopt).nodes, 6U);
}

}  // namespace
}  // namespace unisono::sim
