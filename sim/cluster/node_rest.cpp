// How a node leaves out the cycles in which its engine could not change. See docs/rtl/skipping.md.
#include <Vunisono_cclo_frame.h>

#include <algorithm>

#include "sim/cluster/node.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint32_t kFirstTrial = 6;           ///< cycles without anything seen before the first trial
constexpr std::uint32_t kMostPatience = 64;        ///< cycles between trials
constexpr std::uint32_t kShortestRest = 8;         ///< cycles; a rest costs about three evaluations
constexpr std::uint32_t kLongestRest = 1U << 30U;  ///< cycles that the engine is given at once

}  // namespace

bool Node::hands_over() const {
  const Vunisono_cclo_frame& top = top_;
  const unsigned memory = (top.m_axi_arvalid & top.m_axi_arready) | (top.m_axi_awvalid & top.m_axi_awready) |
                          (top.m_axi_wvalid & top.m_axi_wready) | top.m_axi_rvalid | top.m_axi_bvalid;
  return memory != 0 || top.mac_rx_valid_i != 0 || (top.mac_tx_valid_o != 0 && top.mac_tx_ready_i != 0) || busy_ ||
         top.call_valid_i != 0 || top.answer_valid_o != 0 || top.record_valid_o != 0 || top.kernel_start_valid_o != 0;
}

void Node::count_silence() {
  constexpr std::uint64_t kCpu = std::uint64_t{1} << static_cast<unsigned>(Counter::kCpuBusy);
  const std::uint64_t now = top_.events_o;
  if (now != events_ || (now & kCpu) != 0 || hands_over()) {
    silent_ = 0;
    next_trial_ = patience_ = kFirstTrial;
  } else {
    ++silent_;
  }
}

bool Node::begin_rest() {
  if (hands_over() || top_.calm_o < kShortestRest) {
    next_trial_ = silent_ + kFirstTrial;
    return false;
  }
  // Time stands still, so whatever changes is not time: what would happen in this cycle, and then in the next.
  if (!trusts_ && !model_.edge_changes_nothing()) {
    next_trial_ = silent_ + patience_;
    patience_ = std::min(2 * patience_, kMostPatience);
    return false;
  }
  resting_ = true;
  rested_ = 0;
  longest_rest_ = std::min<std::uint32_t>(top_.calm_o, kLongestRest);
  events_ = top_.events_o;
  sends_ = pops_ = false;
  bool asks = false;
  for (unsigned port = 0; port < kMemoryPorts; ++port) {
    offered_[port] = pins_.sample(port);
    asks = asks || offered_[port].arvalid || offered_[port].awvalid || offered_[port].wvalid;
  }
  memory_rests_ = !asks && memory_.can_skip();
  return true;
}

bool Node::disturbed() const { return word_ != nullptr || (top_.mac_tx_valid_o != 0 && top_.mac_tx_ready_i != 0); }

void Node::rest() {
  if (twin_) {
    twin_->step(node_, network_.cycle());
    model_.enter();
  }
  ++rested_;
  bool comes = rested_ == longest_rest_;
  if (!memory_rests_) {
    for (unsigned port = 0; port < kMemoryPorts; ++port) {
      memory_.tick(port, offered_[port]);
      const AxiOutputs& out = memory_.outputs(port);
      const AxiInputs& in = offered_[port];
      comes = comes || out.rvalid || out.bvalid || (in.arvalid && out.arready) || (in.awvalid && out.awready) ||
              (in.wvalid && out.wready);
    }
  }
  if (comes) end_rest();
  if (!memory_rests_ || comes) {
    for (unsigned port = 0; port < kMemoryPorts; ++port) pins_.drive(port, memory_.outputs(port));
  }
}

std::uint64_t Node::calm() const {
  // A word that is offered may go in the next cycle already; and a twin is evaluated in each.
  if (!resting_ || !memory_rests_ || twin_ || top_.mac_tx_valid_o != 0) return 0;
  return longest_rest_ - rested_;
}

void Node::pass(std::uint64_t cycles) {
  rested_ += static_cast<std::uint32_t>(cycles);
  if (rested_ == longest_rest_) end_rest();
}

void Node::end_rest() {
  if (!resting_) return;
  resting_ = false;
  silent_ = 0;
  next_trial_ = patience_ = kFirstTrial;
  if (memory_rests_) {
    memory_.skip(rested_);
    for (unsigned port = 0; port < kMemoryPorts; ++port) pins_.drive(port, memory_.outputs(port));
  }
  if (rested_ == 0) return;
  model_.enter();
  ++evaluated_;
  // A word that was on offer meanwhile was not taken; what takes it in this cycle, perhaps, is no part of the rest.
  const auto ready = top_.mac_tx_ready_i;
  top_.mac_tx_ready_i = 0;
  top_.cycles_i = rested_;
  top_.clk_i = 0;
  top_.eval();
  top_.clk_i = 1;
  top_.eval();
  top_.cycles_i = 1;
  top_.mac_tx_ready_i = ready;
}

}  // namespace unisono::sim
