// Nodes of the transport in software and Verilated ones on one bus, and random messages between all of them.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "sim/software/software_node.hpp"
#include "tests/cpp/sim/software/cabled_job.hpp"

namespace unisono::sim {
namespace {

using kernels::SmiNode;
using kernels::SmiNodeSettings;

std::unique_ptr<SmiNode> verilated(const SmiNodeSettings& settings) {
  void* const library = dlopen(UNISONO_SMI_NODE_4, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto open = reinterpret_cast<kernels::SmiNodeOpen>(dlsym(library, "unisono_smi_node_open"));
  char why[1024] = {};
  std::unique_ptr<SmiNode> node(open == nullptr ? nullptr : open(&settings, why, sizeof why));
  if (node == nullptr) throw std::runtime_error(why);
  return node;
}

/// Bits of the ranks whose nodes are in software, of 4.
class NodesOfBothKinds : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Ranks, NodesOfBothKinds, ::testing::Values(0b0000U, 0b0001U, 0b0110U, 0b1010U, 0b1011U));

TEST_P(NodesOfBothKinds, CarryMessagesOfAllKindsInEqualCycles) {
  const auto make = [](const SmiNodeSettings& settings) -> std::unique_ptr<SmiNode> {
    if ((GetParam() >> settings.rank & 1U) == 0) return verilated(settings);
    return std::make_unique<SoftwareNode>(settings);
  };
  testing::CabledJob once(4, 4, 32, make), again(4, 4, 32, make);
  EXPECT_EQ(testing::random_rounds(once, 4, 20, GetParam()), testing::random_rounds(again, 4, 20, GetParam()));
}

}  // namespace
}  // namespace unisono::sim
