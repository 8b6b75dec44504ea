// The engine on cables: unisono_cclo and unisono_smi_poe. Nodes pass on each other's packets; there is no switch.
//
// Nothing here has state; a design with another transport has another wrapper like this one.
//
// Latency, throughput: docs/rtl/cclo.md.

module unisono_cclo_smi
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned ClockMHz = 250,
  parameter int unsigned KernelPorts = 1,
  parameter logic [63:0] BufferBase = 64'h0,           // of receive buffers in memory
  parameter int unsigned BufferBytes = 8192,
  parameter int unsigned CpuMemoryBytes = 131072,
  parameter int unsigned Nodes = 64,
  parameter int unsigned Links = 4,
  parameter int unsigned VirtualChannels = 2,
  parameter int unsigned StreamPorts = 0,              // of kernels, in each direction
  parameter int unsigned StreamWords = 256,            // queue of each
  parameter bit          Skips = 1'b0,                 // an edge may stand for many cycles, or for none
  localparam int unsigned Wires = StreamPorts > 0 ? StreamPorts : 1,
  localparam int unsigned Ports = 3,
  localparam int unsigned IdWidth = 4,
  localparam int unsigned AddressWidth = 14,
  localparam int unsigned Channels = 2 * VirtualChannels,
  localparam int unsigned ChannelBits = $clog2(Channels)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Time; see unisono_cclo.
  input  logic [31:0] cycles_i,
  output logic [31:0] calm_o,

  // Host.
  input  logic [AddressWidth-1:0] s_axi_awaddr,
  input  logic [2:0]              s_axi_awprot,
  input  logic                    s_axi_awvalid,
  output logic                    s_axi_awready,
  input  logic [31:0]             s_axi_wdata,
  input  logic [3:0]              s_axi_wstrb,
  input  logic                    s_axi_wvalid,
  output logic                    s_axi_wready,
  output logic [1:0]              s_axi_bresp,
  output logic                    s_axi_bvalid,
  input  logic                    s_axi_bready,
  input  logic [AddressWidth-1:0] s_axi_araddr,
  input  logic [2:0]              s_axi_arprot,
  input  logic                    s_axi_arvalid,
  output logic                    s_axi_arready,
  output logic [31:0]             s_axi_rdata,
  output logic [1:0]              s_axi_rresp,
  output logic                    s_axi_rvalid,
  input  logic                    s_axi_rready,
  // A completion waits.
  output logic                    interrupt_o,

  // Kernels; see unisono_call_front.
  input  logic [KernelPorts-1:0]                  call_valid_i,
  output logic [KernelPorts-1:0]                  call_ready_o,
  input  logic [KernelPorts-1:0][DataBytes*8-1:0] call_data_i,
  input  logic [KernelPorts-1:0][DataBytes-1:0]   call_keep_i,
  input  logic [KernelPorts-1:0]                  call_last_i,
  output logic [KernelPorts-1:0]                  answer_valid_o,
  input  logic [KernelPorts-1:0]                  answer_ready_i,
  output unisono_call_pkg::call_response_t [KernelPorts-1:0] answer_data_o,
  output logic [KernelPorts-1:0]                  kernel_start_valid_o,
  input  logic [KernelPorts-1:0]                  kernel_start_ready_i,
  output logic [KernelPorts-1:0][63:0]            kernel_start_data_o,
  input  logic [KernelPorts-1:0]                  kernel_done_valid_i,
  input  logic [KernelPorts-1:0][15:0]            kernel_done_code_i,

  // Streams of kernels: to the engine, and to kernels.
  input  logic [Wires-1:0]                  stream_in_valid_i,
  output logic [Wires-1:0]                  stream_in_ready_o,
  input  logic [Wires-1:0][DataBytes*8-1:0] stream_in_data_i,
  input  logic [Wires-1:0][DataBytes-1:0]   stream_in_keep_i,
  input  logic [Wires-1:0]                  stream_in_last_i,
  output logic [Wires-1:0]                  stream_out_valid_o,
  input  logic [Wires-1:0]                  stream_out_ready_i,
  output logic [Wires-1:0][DataBytes*8-1:0] stream_out_data_o,
  output logic [Wires-1:0][DataBytes-1:0]   stream_out_keep_o,
  output logic [Wires-1:0]                  stream_out_last_o,
  output logic [Wires-1:0]                  stream_out_cut_o,      // the packet was cut off

  // Routes, from `unisono route --ports 1`; see unisono_smi_loader.
  input  logic                    image_valid_i,
  output logic                    image_ready_o,
  input  logic [31:0]             image_data_i,
  input  logic                    image_last_i,
  output logic                    running_o,
  output unisono_smi_pkg::image_e image_o,

  // Cables; see unisono_smi_transport. Last is that of a packet.
  output logic [Links-1:0]                  link_valid_o,
  input  logic [Links-1:0]                  link_ready_i,
  output logic [Links-1:0][ChannelBits-1:0] link_channel_o,
  output logic [Links-1:0]                  link_last_o,
  output logic [Links-1:0][DataBytes*8-1:0] link_data_o,
  input  logic [Links-1:0]                  link_up_i,
  input  logic [Links-1:0][Channels-1:0]    link_freed_i,
  input  logic [Links-1:0]                  link_valid_i,
  input  logic [Links-1:0][ChannelBits-1:0] link_channel_i,
  input  logic [Links-1:0]                  link_last_i,
  input  logic [Links-1:0][DataBytes*8-1:0] link_data_i,
  output logic [Links-1:0]                  link_up_o,
  output logic [Links-1:0][Channels-1:0]    link_freed_o,

  // Packets for nobody, and frames that did not fit together.
  output logic [31:0]                       strays_o,
  output unisono_smi_pkg::stray_t           first_stray_o,
  output logic [31:0]                       dropped_o,

  // Memory.
  output logic [Ports-1:0][IdWidth-1:0]     m_axi_arid,
  output logic [Ports-1:0][63:0]            m_axi_araddr,
  output logic [Ports-1:0][7:0]             m_axi_arlen,
  output logic [Ports-1:0][2:0]             m_axi_arsize,
  output logic [Ports-1:0][1:0]             m_axi_arburst,
  output logic [Ports-1:0]                  m_axi_arvalid,
  input  logic [Ports-1:0]                  m_axi_arready,
  input  logic [Ports-1:0][IdWidth-1:0]     m_axi_rid,
  input  logic [Ports-1:0][DataBytes*8-1:0] m_axi_rdata,
  input  logic [Ports-1:0][1:0]             m_axi_rresp,
  input  logic [Ports-1:0]                  m_axi_rlast,
  input  logic [Ports-1:0]                  m_axi_rvalid,
  output logic [Ports-1:0]                  m_axi_rready,
  output logic [Ports-1:0][IdWidth-1:0]     m_axi_awid,
  output logic [Ports-1:0][63:0]            m_axi_awaddr,
  output logic [Ports-1:0][7:0]             m_axi_awlen,
  output logic [Ports-1:0][2:0]             m_axi_awsize,
  output logic [Ports-1:0][1:0]             m_axi_awburst,
  output logic [Ports-1:0]                  m_axi_awvalid,
  input  logic [Ports-1:0]                  m_axi_awready,
  output logic [Ports-1:0][DataBytes*8-1:0] m_axi_wdata,
  output logic [Ports-1:0][DataBytes-1:0]   m_axi_wstrb,
  output logic [Ports-1:0]                  m_axi_wlast,
  output logic [Ports-1:0]                  m_axi_wvalid,
  input  logic [Ports-1:0]                  m_axi_wready,
  input  logic [Ports-1:0][IdWidth-1:0]     m_axi_bid,
  input  logic [Ports-1:0][1:0]             m_axi_bresp,
  input  logic [Ports-1:0]                  m_axi_bvalid,
  output logic [Ports-1:0]                  m_axi_bready,

  // Observing, for simulations and logic analysers; both may be left open. Bit n of events_o: what counter n counts
  // (counter_e) happens in this cycle. A record of each move that has retired, on offer for one cycle.
  output unisono_observe_pkg::events_t      events_o,
  output logic                              record_valid_o,
  output move_record_t                      record_o
);

  logic poe_rst_n, word_sent, word_received, query_valid, query_ready, grant_valid, grant_ready, granted;
  logic meta_valid, meta_ready, tx_valid, tx_ready, tx_last;
  logic rx_meta_valid, rx_meta_ready, rx_meta_error, rx_valid, rx_ready, rx_last;
  logic event_valid, event_ready, event_state;
  logic reg_valid, reg_ready, reg_write;
  logic [15:0] reg_addr;
  logic [31:0] reg_wdata, reg_rdata;
  logic [DataBytes*8-1:0] tx_data, rx_data;
  logic [DataBytes-1:0] tx_keep, rx_keep;
  unisono_poe_pkg::session_t query_session, meta_session, rx_meta_session, event_session;
  unisono_poe_pkg::bytes_t query_bytes, meta_bytes, rx_meta_bytes;
  unisono_poe_pkg::poe_capability_t capability;

  unisono_cclo #(
    .DataBytes(DataBytes),
    .ClockMHz(ClockMHz),
    .KernelPorts(KernelPorts),
    .BufferBase(BufferBase),
    .BufferBytes(BufferBytes),
    .CpuMemoryBytes(CpuMemoryBytes),
    .StreamPorts(StreamPorts),
    .StreamWords(StreamWords),
    .Skips(Skips)
  ) u_cclo (
    .cycles_i, .calm_o,
    .clk_i, .rst_ni, .s_axi_awaddr, .s_axi_awprot, .s_axi_awvalid, .s_axi_awready, .s_axi_wdata, .s_axi_wstrb,
    .s_axi_wvalid, .s_axi_wready, .s_axi_bresp, .s_axi_bvalid, .s_axi_bready, .s_axi_araddr, .s_axi_arprot,
    .s_axi_arvalid, .s_axi_arready, .s_axi_rdata, .s_axi_rresp, .s_axi_rvalid, .s_axi_rready, .interrupt_o,
    .call_valid_i, .call_ready_o, .call_data_i, .call_keep_i, .call_last_i, .answer_valid_o, .answer_ready_i,
    .answer_data_o, .kernel_start_valid_o, .kernel_start_ready_i, .kernel_start_data_o, .kernel_done_valid_i,
    .kernel_done_code_i, .stream_in_valid_i, .stream_in_ready_o, .stream_in_data_i, .stream_in_keep_i,
    .stream_in_last_i, .stream_out_valid_o, .stream_out_ready_i, .stream_out_data_o, .stream_out_keep_o,
    .stream_out_last_o, .stream_out_cut_o, .m_axi_arid, .m_axi_araddr, .m_axi_arlen, .m_axi_arsize, .m_axi_arburst,
    .m_axi_arvalid, .m_axi_arready, .m_axi_rid, .m_axi_rdata, .m_axi_rresp, .m_axi_rlast, .m_axi_rvalid,
    .m_axi_rready, .m_axi_awid, .m_axi_awaddr, .m_axi_awlen, .m_axi_awsize, .m_axi_awburst, .m_axi_awvalid,
    .m_axi_awready, .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready, .m_axi_bid, .m_axi_bresp,
    .m_axi_bvalid, .m_axi_bready, .events_o, .record_valid_o, .record_o,
    .poe_rst_no(poe_rst_n), .poe_capability_i(capability),
    .poe_query_valid_o(query_valid), .poe_query_ready_i(query_ready), .poe_query_session_o(query_session),
    .poe_query_bytes_o(query_bytes), .poe_grant_valid_i(grant_valid), .poe_grant_ready_o(grant_ready),
    .poe_grant_granted_i(granted),
    .poe_tx_meta_valid_o(meta_valid), .poe_tx_meta_ready_i(meta_ready), .poe_tx_meta_session_o(meta_session),
    .poe_tx_meta_bytes_o(meta_bytes), .poe_tx_valid_o(tx_valid), .poe_tx_ready_i(tx_ready), .poe_tx_data_o(tx_data),
    .poe_tx_keep_o(tx_keep), .poe_tx_last_o(tx_last),
    .poe_rx_meta_valid_i(rx_meta_valid), .poe_rx_meta_ready_o(rx_meta_ready), .poe_rx_meta_session_i(rx_meta_session),
    .poe_rx_meta_bytes_i(rx_meta_bytes), .poe_rx_meta_error_i(rx_meta_error), .poe_rx_valid_i(rx_valid),
    .poe_rx_ready_o(rx_ready), .poe_rx_data_i(rx_data), .poe_rx_keep_i(rx_keep), .poe_rx_last_i(rx_last),
    .poe_event_valid_i(event_valid), .poe_event_ready_o(event_ready), .poe_event_session_i(event_session),
    .poe_event_state_i(event_state),
    .poe_word_sent_i(word_sent), .poe_word_received_i(word_received),
    .poe_reg_valid_o(reg_valid), .poe_reg_ready_i(reg_ready), .poe_reg_write_o(reg_write), .poe_reg_addr_o(reg_addr),
    .poe_reg_wdata_o(reg_wdata), .poe_reg_rdata_i(reg_rdata)
  );

  // The longest segment travels with its header.
  unisono_smi_poe #(
    .DataBytes(DataBytes), .Sessions(32'(SelfSession)), .Nodes(Nodes), .MaxPayload(MaxSegment + HeaderBytes),
    .Links(Links), .VirtualChannels(VirtualChannels)
  ) u_poe (
    .clk_i, .rst_ni(poe_rst_n),
    .capability_o(capability),
    .query_valid_i(query_valid), .query_ready_o(query_ready),
    .query_session_i(query_session), .query_bytes_i(query_bytes),
    .grant_valid_o(grant_valid), .grant_ready_i(grant_ready),
    .grant_granted_o(granted),
    .tx_meta_valid_i(meta_valid), .tx_meta_ready_o(meta_ready),
    .tx_meta_session_i(meta_session), .tx_meta_bytes_i(meta_bytes),
    .tx_valid_i(tx_valid), .tx_ready_o(tx_ready), .tx_data_i(tx_data),
    .tx_keep_i(tx_keep), .tx_last_i(tx_last),
    .rx_meta_valid_o(rx_meta_valid), .rx_meta_ready_i(rx_meta_ready),
    .rx_meta_session_o(rx_meta_session), .rx_meta_bytes_o(rx_meta_bytes),
    .rx_meta_error_o(rx_meta_error), .rx_valid_o(rx_valid), .rx_ready_i(rx_ready),
    .rx_data_o(rx_data), .rx_keep_o(rx_keep), .rx_last_o(rx_last),
    .event_valid_o(event_valid), .event_ready_i(event_ready), .event_session_o(event_session),
    .event_state_o(event_state),
    .reg_valid_i(reg_valid), .reg_ready_o(reg_ready), .reg_write_i(reg_write),
    .reg_addr_i(reg_addr), .reg_wdata_i(reg_wdata), .reg_rdata_o(reg_rdata),
    .image_valid_i, .image_ready_o, .image_data_i, .image_last_i, .running_o, .image_o,
    .link_valid_o, .link_ready_i, .link_channel_o, .link_last_o, .link_data_o, .link_up_i, .link_freed_i,
    .link_valid_i, .link_channel_i, .link_last_i, .link_data_i, .link_up_o, .link_freed_o,
    .strays_o, .first_stray_o, .dropped_o, .word_sent_o(word_sent), .word_received_o(word_received)
  );

endmodule
