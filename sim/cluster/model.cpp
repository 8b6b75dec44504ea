#include "sim/cluster/model.hpp"

#include <Vunisono_cclo_frame.h>
#include <Vunisono_cclo_frame__Syms.h>

#include <cstring>

namespace unisono::sim {
namespace {

constexpr unsigned kResetCycles = 8;

}  // namespace

Model::Model(std::uint64_t seed, const std::string& firmware) : context_(std::make_unique<VerilatedContext>()) {
  context_->randReset(2);
  context_->randSeed(static_cast<int>(seed & 0x7fffffffU));
  const std::string plus = "+firmware=" + firmware;
  const char* arguments[] = {"node", plus.c_str()};
  if (!firmware.empty()) context_->commandArgs(2, arguments);
  top_ = std::make_unique<Vunisono_cclo_frame>(context_.get());
}

Model::~Model() {
  // A model takes its scopes out of the thread's context, which is that of the node this thread evaluated last.
  enter();
  top_->final();
  top_.reset();
}

void Model::enter() { Verilated::threadContextp(context_.get()); }

void Model::reset() {
  Vunisono_cclo_frame& top = *top_;
  top.cycles_i = 1;
  top.s_axi_awvalid = top.s_axi_wvalid = top.s_axi_arvalid = 0;
  top.s_axi_bready = top.s_axi_rready = 1;
  top.s_axi_awprot = top.s_axi_arprot = 0;
  top.call_valid_i = top.kernel_done_valid_i = 0;
  top.answer_ready_i = top.kernel_start_ready_i = 1;
  top.stream_in_valid_i = top.stream_in_last_i = top.stream_out_ready_i = 0;
  top.mac_tx_ready_i = top.mac_rx_valid_i = 0;
  top.m_axi_arready = top.m_axi_rvalid = top.m_axi_awready = top.m_axi_wready = top.m_axi_bvalid = 0;
  // Registers hold anything before the first edge, and what follows a reset by a cycle sees it.
  context_->assertOn(false);
  top.rst_ni = 0;
  for (unsigned i = 0; i < kResetCycles; ++i) {
    top.clk_i = 0;
    top.eval();
    top.clk_i = 1;
    top.eval();
  }
  top.rst_ni = 1;
  context_->assertOn(true);
}

bool Model::edge_changes_nothing() {
  // All that the model remembers is in this one object; what it owns elsewhere (names, the context) no edge changes.
  auto* state = reinterpret_cast<std::byte*>(top_->rootp->vlSymsp);
  constexpr std::size_t kBytes = sizeof(Vunisono_cclo_frame__Syms);
  before_.resize(kBytes);
  std::memcpy(before_.data(), state, kBytes);
  top_->clk_i = 1;
  top_->eval();
  top_->clk_i = 0;
  top_->eval();
  if (std::memcmp(before_.data(), state, kBytes) == 0) return true;
  std::memcpy(state, before_.data(), kBytes);
  return false;
}

}  // namespace unisono::sim
