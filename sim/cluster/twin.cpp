#include "sim/cluster/twin.hpp"

#include <Vunisono_cclo_frame.h>

#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::sim {
namespace {

struct Port {
  const char* name;
  void* value;
  std::size_t bytes;
};

// Clock, reset and time are driven by who evaluates a model.
#define PORT(name) \
  Port { #name, &top.name, sizeof top.name }
std::vector<Port> inputs_of(Vunisono_cclo_frame& top) {
  return {PORT(s_axi_awaddr),         PORT(s_axi_awprot),        PORT(s_axi_awvalid),      PORT(s_axi_wdata),
          PORT(s_axi_wstrb),          PORT(s_axi_wvalid),        PORT(s_axi_bready),       PORT(s_axi_araddr),
          PORT(s_axi_arprot),         PORT(s_axi_arvalid),       PORT(s_axi_rready),       PORT(call_valid_i),
          PORT(call_data_i),          PORT(call_keep_i),         PORT(call_last_i),        PORT(answer_ready_i),
          PORT(kernel_start_ready_i), PORT(kernel_done_valid_i), PORT(kernel_done_code_i), PORT(stream_in_valid_i),
          PORT(stream_in_data_i),     PORT(stream_in_keep_i),    PORT(stream_in_last_i),   PORT(stream_out_ready_i),
          PORT(mac_tx_ready_i),       PORT(mac_rx_valid_i),      PORT(mac_rx_data_i),      PORT(mac_rx_keep_i),
          PORT(mac_rx_last_i),        PORT(mac_rx_source_i),     PORT(mac_rx_bytes_i),     PORT(mac_rx_control_i),
          PORT(mac_rx_error_i),       PORT(m_axi_arready),       PORT(m_axi_rid),          PORT(m_axi_rdata),
          PORT(m_axi_rresp),          PORT(m_axi_rlast),         PORT(m_axi_rvalid),       PORT(m_axi_awready),
          PORT(m_axi_wready),         PORT(m_axi_bid),           PORT(m_axi_bresp),        PORT(m_axi_bvalid)};
}

std::vector<Port> outputs_of(Vunisono_cclo_frame& top) {
  return {PORT(s_axi_awready),
          PORT(s_axi_wready),
          PORT(s_axi_bresp),
          PORT(s_axi_bvalid),
          PORT(s_axi_arready),
          PORT(s_axi_rdata),
          PORT(s_axi_rresp),
          PORT(s_axi_rvalid),
          PORT(interrupt_o),
          PORT(call_ready_o),
          PORT(answer_valid_o),
          PORT(answer_data_o),
          PORT(kernel_start_valid_o),
          PORT(kernel_start_data_o),
          PORT(stream_in_ready_o),
          PORT(stream_out_valid_o),
          PORT(stream_out_data_o),
          PORT(stream_out_keep_o),
          PORT(stream_out_last_o),
          PORT(stream_out_cut_o),
          PORT(mac_tx_valid_o),
          PORT(mac_tx_data_o),
          PORT(mac_tx_keep_o),
          PORT(mac_tx_last_o),
          PORT(mac_tx_dest_o),
          PORT(mac_tx_bytes_o),
          PORT(mac_tx_control_o),
          PORT(mac_rx_ready_o),
          PORT(m_axi_arid),
          PORT(m_axi_araddr),
          PORT(m_axi_arlen),
          PORT(m_axi_arsize),
          PORT(m_axi_arburst),
          PORT(m_axi_arvalid),
          PORT(m_axi_rready),
          PORT(m_axi_awid),
          PORT(m_axi_awaddr),
          PORT(m_axi_awlen),
          PORT(m_axi_awsize),
          PORT(m_axi_awburst),
          PORT(m_axi_awvalid),
          PORT(m_axi_wdata),
          PORT(m_axi_wstrb),
          PORT(m_axi_wlast),
          PORT(m_axi_wvalid),
          PORT(m_axi_bready),
          PORT(events_o),
          PORT(record_valid_o),
          PORT(record_o)};
}
#undef PORT

std::vector<Twin::Pair> pairs_of(const std::vector<Port>& own, const std::vector<Port>& other) {
  std::vector<Twin::Pair> pairs;
  for (std::size_t i = 0; i < own.size(); ++i)
    pairs.push_back({own[i].name, own[i].value, other[i].value, own[i].bytes});
  return pairs;
}

}  // namespace

Twin::Twin(std::uint64_t seed, const std::string& firmware, Vunisono_cclo_frame& other)
    : model_(seed, firmware),
      inputs_(pairs_of(inputs_of(model_.top()), inputs_of(other))),
      outputs_(pairs_of(outputs_of(model_.top()), outputs_of(other))) {
  model_.reset();
}

void Twin::step(std::uint32_t node, std::uint64_t cycle) {
  model_.enter();
  Vunisono_cclo_frame& top = model_.top();
  for (const Pair& port : inputs_) std::memcpy(port.own, port.other, port.bytes);
  top.clk_i = 0;
  top.eval();
  for (const Pair& port : outputs_) {
    if (std::memcmp(port.own, port.other, port.bytes) == 0) continue;
    throw Error(ErrorCode::kInternal,
                formatted("--check-skip: node {}, cycle {}: the engine that skips cycles drives {} otherwise than one "
                          "that is evaluated in every cycle",
                          node, cycle, port.name));
  }
  top.clk_i = 1;
  top.eval();
}

}  // namespace unisono::sim
