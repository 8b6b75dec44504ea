// The engine without microcontroller and call front end, with the transport of the simulated network: unisono_cclo_engine
// and unisono_poe_frame. Segments are frames at a MAC.
//
// Nothing here has state; a design with another transport has another wrapper like this one.

module unisono_cclo_engine_frame
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter logic [63:0] BufferBase = 64'h0,           // of receive buffers in memory
  parameter int unsigned BufferBytes = 8192,
  parameter int unsigned Nodes = 64,
  parameter bit          RxPause = 1'b1,
  parameter int unsigned StreamPorts = 0,              // of kernels, in each direction
  parameter int unsigned StreamWords = 256,            // queue of each
  localparam int unsigned Wires = StreamPorts > 0 ? StreamPorts : 1,
  localparam int unsigned Ports = 3,
  localparam int unsigned IdWidth = 4,
  localparam int unsigned RegWidth = 11
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Moves of the active calls, and the lists that they name; see unisono_cclo_core.
  input  logic  move_valid_i,
  output logic  move_ready_o,
  input  slot_t move_slot_i,
  input  move_t move_i,
  input  logic  move_end_i,
  input  logic        pool_write_i,
  input  slot_t       pool_write_slot_i,
  input  pool_index_t pool_write_index_i,
  input  rank_t       pool_write_word_i,
  output logic [Calls-1:0][EntryWidth:0] room_o,
  output logic  finished_valid_o,
  output slot_t finished_slot_o,

  // A slot is cleared, before it is given a call or after; see unisono_cclo_core. Its context follows, and then its
  // first move. Contexts of a communicator's collectives come in the order of their sequence.
  input  logic  clear_valid_i,
  input  slot_t clear_slot_i,
  input  logic  clear_failed_i,
  output logic  clear_done_o,
  output logic [BufferWidth:0] free_buffers_o,
  input  logic          context_valid_i,
  input  slot_t         context_slot_i,
  input  call_context_t context_i,
  input  logic          context_local_i,         // it exchanges nothing with others
  output slot_t    binding_slot_o,
  output region_e  binding_region_o,
  input  binding_t binding_i,
  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o,

  // Tables of communicators and members; see unisono_communicators. Writing 1 to a communicator's word 6 also sets up
  // its credits. Writing 1 to its word 7 makes the window what is given here, in that cycle; 0: it has none.
  input  logic [63:0]         window_address_i,
  input  logic [63:0]         window_bytes_i,
  input  logic                reg_valid_i,
  output logic                reg_ready_o,
  input  logic                reg_write_i,
  input  logic [RegWidth-1:0] reg_word_i,
  input  logic [31:0]         reg_data_i,
  output logic                reg_valid_o,
  output logic [31:0]         reg_data_o,

  // Registers of the transport; see unisono_poe_frame.
  input  logic        poe_reg_valid_i,
  output logic        poe_reg_ready_o,
  input  logic        poe_reg_write_i,
  input  logic [15:0] poe_reg_addr_i,
  input  logic [31:0] poe_reg_wdata_i,
  output logic [31:0] poe_reg_rdata_o,

  // What Rx refused.
  output logic        rx_fault_valid_o,
  output fault_e      rx_fault_code_o,

  // Streams of kernels: to the engine, and to kernels. Which regions of the active calls are streams; such a region's
  // address is the port.
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
  input  logic [Calls-1:0] src_stream_i,
  input  logic [Calls-1:0] dst_stream_i,
  input  unisono_cclo_pkg::stream_port_t [Calls-1:0] src_port_i,
  input  unisono_cclo_pkg::stream_port_t [Calls-1:0] dst_port_i,

  // Moves of programs that stand in memory; see unisono_program_fetch. Words go only to whom they are for.
  input  logic                   fetch_command_valid_i,
  output logic                   fetch_command_ready_o,
  input  address_t               fetch_command_address_i,
  input  segment_bytes_t         fetch_command_bytes_i,
  output logic                   fetch_valid_o,
  input  logic                   fetch_ready_i,
  output logic [DataBytes*8-1:0] fetch_data_o,
  output logic                   fetch_last_o,
  output logic                   fetch_error_o,

  // MAC.
  output logic                   mac_tx_valid_o,
  input  logic                   mac_tx_ready_i,
  output logic [DataBytes*8-1:0] mac_tx_data_o,
  output logic [DataBytes-1:0]   mac_tx_keep_o,
  output logic                   mac_tx_last_o,
  output logic [15:0]            mac_tx_dest_o,
  output logic [15:0]            mac_tx_bytes_o,
  output logic                   mac_tx_control_o,
  input  logic                   mac_rx_valid_i,
  output logic                   mac_rx_ready_o,
  input  logic [DataBytes*8-1:0] mac_rx_data_i,
  input  logic [DataBytes-1:0]   mac_rx_keep_i,
  input  logic                   mac_rx_last_i,
  input  logic [15:0]            mac_rx_source_i,
  input  logic [15:0]            mac_rx_bytes_i,
  input  logic                   mac_rx_control_i,
  input  logic                   mac_rx_error_i,

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

  // What happens in this cycle, for counters, and records of moves that have retired; see unisono_move_trace.
  input  logic [47:0]                  cycle_i,
  output unisono_observe_pkg::events_t events_o,
  output logic                         record_valid_o,
  output move_record_t                 record_o
);

  logic query_valid, query_ready, grant_valid, grant_ready, granted;
  logic meta_valid, meta_ready, tx_valid, tx_ready, tx_last;
  logic rx_meta_valid, rx_meta_ready, rx_meta_error, rx_valid, rx_ready, rx_last;
  logic event_valid, event_ready, event_state;
  logic [DataBytes*8-1:0] tx_data, rx_data;
  logic [DataBytes-1:0] tx_keep, rx_keep;
  unisono_poe_pkg::session_t query_session, meta_session, rx_meta_session, event_session;
  unisono_poe_pkg::bytes_t query_bytes, meta_bytes, rx_meta_bytes;
  unisono_poe_pkg::poe_capability_t capability;

  unisono_cclo_engine #(
    .DataBytes(DataBytes),
    .BufferBase(BufferBase),
    .BufferBytes(BufferBytes),
    .StreamPorts(StreamPorts),
    .StreamWords(StreamWords)
  ) u_engine (
    .clk_i, .rst_ni, .move_valid_i, .move_ready_o, .move_slot_i, .move_i, .move_end_i, .pool_write_i,
    .pool_write_slot_i, .pool_write_index_i, .pool_write_word_i, .room_o, .finished_valid_o, .finished_slot_o,
    .clear_valid_i, .clear_slot_i, .clear_failed_i, .clear_done_o, .free_buffers_o, .context_valid_i, .context_slot_i,
    .context_i, .context_local_i, .binding_slot_o, .binding_region_o, .binding_i, .fail_valid_o, .fail_slot_o,
    .fail_code_o, .window_address_i, .window_bytes_i, .reg_valid_i, .reg_ready_o, .reg_write_i, .reg_word_i,
    .reg_data_i, .reg_valid_o, .reg_data_o, .rx_fault_valid_o, .rx_fault_code_o,
    // Nothing here receives for ports.
    // verilator lint_off PINCONNECTEMPTY
    .heard_valid_o(), .heard_o(), .begins_valid_o(), .begins_communicator_o(),
    // verilator lint_on PINCONNECTEMPTY
    .stream_in_valid_i,
    .stream_in_ready_o, .stream_in_data_i, .stream_in_keep_i, .stream_in_last_i, .stream_out_valid_o,
    .stream_out_ready_i, .stream_out_data_o, .stream_out_keep_o, .stream_out_last_o, .stream_out_cut_o, .src_stream_i,
    .dst_stream_i, .src_port_i, .dst_port_i, .fetch_command_valid_i, .fetch_command_ready_o, .fetch_command_address_i, .fetch_command_bytes_i,
    .fetch_valid_o, .fetch_ready_i, .fetch_data_o, .fetch_last_o, .fetch_error_o, .m_axi_arid, .m_axi_araddr,
    .m_axi_arlen, .m_axi_arsize, .m_axi_arburst, .m_axi_arvalid, .m_axi_arready, .m_axi_rid, .m_axi_rdata,
    .m_axi_rresp, .m_axi_rlast, .m_axi_rvalid, .m_axi_rready, .m_axi_awid, .m_axi_awaddr, .m_axi_awlen, .m_axi_awsize,
    .m_axi_awburst, .m_axi_awvalid, .m_axi_awready, .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid,
    .m_axi_wready, .m_axi_bid, .m_axi_bresp, .m_axi_bvalid, .m_axi_bready, .cycle_i, .events_o, .record_valid_o,
    .record_o,
    .poe_capability_i(capability),
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
    .poe_word_sent_i(mac_tx_valid_o && mac_tx_ready_i), .poe_word_received_i(mac_rx_valid_i && mac_rx_ready_o)
  );

  // The longest segment travels with its header.
  unisono_poe_frame #(
    .DataBytes(DataBytes), .Sessions(32'(SelfSession)), .Nodes(Nodes), .MaxPayload(MaxSegment + HeaderBytes),
    .RxPause(RxPause)
  ) u_poe (
    .clk_i, .rst_ni,
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
    .reg_valid_i(poe_reg_valid_i), .reg_ready_o(poe_reg_ready_o), .reg_write_i(poe_reg_write_i),
    .reg_addr_i(poe_reg_addr_i), .reg_wdata_i(poe_reg_wdata_i), .reg_rdata_o(poe_reg_rdata_o),
    .mac_tx_valid_o, .mac_tx_ready_i, .mac_tx_data_o, .mac_tx_keep_o, .mac_tx_last_o, .mac_tx_dest_o,
    .mac_tx_bytes_o, .mac_tx_control_o,
    .mac_rx_valid_i, .mac_rx_ready_o, .mac_rx_data_i, .mac_rx_keep_i, .mac_rx_last_i, .mac_rx_source_i,
    .mac_rx_bytes_i, .mac_rx_control_i, .mac_rx_error_i
  );

endmodule
