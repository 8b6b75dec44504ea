// The configuration file of a cluster: keys of its own beside those of the network.
#include "sim/cluster/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace unisono::sim
