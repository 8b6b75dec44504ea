// In the place of sim/cluster/node.cpp where nothing was compiled by Verilator: there are native nodes only.
#include "core/error.hpp"
#include "sim/cluster/node.hpp"
#include "sim/network/cables.hpp"
#include "sim/switch_rtl/rtl_switch.hpp"

class VerilatedContext {};
class Vunisono_cclo_frame {};

namespace unisono::sim {
namespace {

[[noreturn]] void refuse() {
  throw Error(
      ErrorCode::kUnsupported,
      "this cluster was built without Verilated engines: all its nodes and switches must be native, and no transport "
      "is there");
}

}  // namespace

Model::Model(std::uint64_t /*seed*/, const std::string& /*firmware*/) { refuse(); }
Model::~Model() = default;

class Node::Wave {};

Node::Node(const NodeConfig& config, Carrier& network)
    : model_(config.seed, config.firmware),
      top_(model_.top()),
      node_(config.node),
      network_(network),
      memory_(config.memory),
      skips_(config.skip),
      trusts_(config.trust_silence),
      trace_(config.trace),
      log_(config.node) {}
Node::~Node() = default;
void Node::look() { refuse(); }
bool Node::disturbed() const { refuse(); }
void Node::evaluate() { refuse(); }
void Node::commit() { refuse(); }
std::uint64_t Node::calm() const { refuse(); }
void Node::pass(std::uint64_t /*cycles*/) { refuse(); }
void Node::begin(const RegisterAccess& /*access*/) { refuse(); }
bool Node::interrupt() const { refuse(); }
void Node::leave_streams() { refuse(); }
void Node::start_kernel(std::uint32_t /*number*/, const device::KernelStart& /*start*/) { refuse(); }
void Node::leave_kernels() { refuse(); }
void Node::end_rest() { refuse(); }
void Node::store(std::uint64_t /*address*/, std::span<const std::byte> /*bytes*/) { refuse(); }
void Node::load(std::uint64_t /*address*/, std::span<std::byte> /*bytes*/) const { refuse(); }

std::unique_ptr<AggregationUnit> make_rtl_switch(Network& /*network*/, std::uint32_t /*unit*/) { refuse(); }
std::unique_ptr<Carrier> make_cables(const std::string& /*routes*/, const NetworkConfig& /*config*/) { refuse(); }
void check_cables(const std::string& /*routes*/, const NetworkConfig& /*config*/) { refuse(); }

}  // namespace unisono::sim
