// The engine without its microcontroller and call front end: the core between memory and a transport.
//
// Moves and contexts come in, frames go out and come in, memory is read and written. Three AXI4 ports: port 0 reads op0
// and writes results, port 1 reads op1 and writes receive buffers, port 2 reads what is only sent, and programs.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_cclo_engine
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_core_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter logic [63:0] BufferBase = 64'h0,           // of receive buffers in memory
  parameter int unsigned BufferBytes = 8192,
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

  // What Rx refused.
  output logic        rx_fault_valid_o,
  output fault_e      rx_fault_code_o,
  // A header is handed over in this cycle; and a communicator begins anew.
  output logic          heard_valid_o,
  output received_t     heard_o,
  output logic          begins_valid_o,
  output communicator_t begins_communicator_o,

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
  input  logic [Calls-1:0] src_stream_i, dst_stream_i,
  input  stream_port_t [Calls-1:0] src_port_i, dst_port_i,

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

  // The transport: sessions and segments, see docs/rtl/poe.md. Whether a word has gone to the network, or come from it, in
  // this cycle is for counters.
  input  unisono_poe_pkg::poe_capability_t poe_capability_i,
  output logic                             poe_query_valid_o,
  input  logic                             poe_query_ready_i,
  output unisono_poe_pkg::session_t        poe_query_session_o,
  output unisono_poe_pkg::bytes_t          poe_query_bytes_o,
  input  logic                             poe_grant_valid_i,
  output logic                             poe_grant_ready_o,
  input  logic                             poe_grant_granted_i,
  output logic                             poe_tx_meta_valid_o,
  input  logic                             poe_tx_meta_ready_i,
  output unisono_poe_pkg::session_t        poe_tx_meta_session_o,
  output unisono_poe_pkg::bytes_t          poe_tx_meta_bytes_o,
  output logic                             poe_tx_valid_o,
  input  logic                             poe_tx_ready_i,
  output logic [DataBytes*8-1:0]           poe_tx_data_o,
  output logic [DataBytes-1:0]             poe_tx_keep_o,
  output logic                             poe_tx_last_o,
  input  logic                             poe_rx_meta_valid_i,
  output logic                             poe_rx_meta_ready_o,
  input  unisono_poe_pkg::session_t        poe_rx_meta_session_i,
  input  unisono_poe_pkg::bytes_t          poe_rx_meta_bytes_i,
  input  logic                             poe_rx_meta_error_i,
  input  logic                             poe_rx_valid_i,
  output logic                             poe_rx_ready_o,
  input  logic [DataBytes*8-1:0]           poe_rx_data_i,
  input  logic [DataBytes-1:0]             poe_rx_keep_i,
  input  logic                             poe_rx_last_i,
  input  logic                             poe_event_valid_i,
  output logic                             poe_event_ready_o,
  input  unisono_poe_pkg::session_t        poe_event_session_i,
  input  logic                             poe_event_state_i,
  input  logic                             poe_word_sent_i,
  input  logic                             poe_word_received_i,

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

  // ------------------------------------------------------------------------------------------------ tables

  logic find_valid, found, begins_ready;
  logic [31:0] find_number;
  logic [15:0] find_epoch, begins_buffers;
  communicator_t found_communicator, rx_communicator, window_communicator;
  communicator_entry_t rx_entry;
  member_t [3:0] members;                        // who is asked for: twice by the core, by a message of credits, by Rx
  peer_entry_t [3:0] peers;
  communicator_t entry_communicator [2];         // of a context that is loaded, of a message of credits
  communicator_entry_t entries [2];
  binding_t window;
  segment_bytes_t window_segment;
  assign entry_communicator[0] = context_i.communicator;

  unisono_engine_tables u_tables (
    .clk_i, .rst_ni, .reg_valid_i, .reg_ready_o, .reg_write_i, .reg_word_i, .reg_data_i, .reg_valid_o, .reg_data_o,
    .window_address_i, .window_bytes_i, .begins_valid_o, .begins_ready_i(begins_ready), .begins_communicator_o,
    .begins_buffers_o(begins_buffers), .find_valid_i(find_valid), .find_number_i(find_number),
    .find_epoch_i(find_epoch), .found_o(found), .found_communicator_o(found_communicator),
    .rx_communicator_i(rx_communicator), .rx_entry_o(rx_entry), .members_i(members), .peers_o(peers),
    .entry_communicator_i(entry_communicator), .entry_o(entries),
    .window_communicator_i(window_communicator), .window_o(window), .window_segment_o(window_segment)
  );

  // ----------------------------------------------------------------------------------------- active calls

  logic [Calls-1:0] active_q;
  call_context_t contexts_q [Calls];
  communicator_entry_t communicators_q [Calls];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= '0;
    end else begin
      if (clear_valid_i) active_q[clear_slot_i] <= 1'b0;
      if (finished_valid_o) active_q[finished_slot_o] <= 1'b0;
      if (context_valid_i) active_q[context_slot_i] <= !context_local_i;
    end
    if (context_valid_i) begin
      contexts_q[context_slot_i] <= context_i;
      communicators_q[context_slot_i] <= entries[0];
    end
  end

  // -------------------------------------------------------------------------------------------------- core

  logic [15:0] credit_keep;
  logic credit_take, credit_ready, credit_answer, credit_granted, credit_back, credit_back_ready;
  logic credit_event_valid, credit_event_ready, owed_valid, owed_ready, remote_valid, remote_ready;
  member_t credit, credit_event, owed;
  notice_t remote;
  logic space_valid, space_ready, space_answer, space_granted, grants_valid, grants_ready, send_error;
  question_t space;
  logic [1:0] transmit_valid, transmit_ready, send_valid, send_ready, send_last;
  transmit_t [1:0] transmit;
  transmit_t grants;
  logic [1:0][DataBytes*8-1:0] send_data;
  logic [1:0][DataBytes-1:0] send_keep;
  slot_t [1:0] send_slot;
  slot_t send_error_slot;
  logic received_valid, received_ready, payload_valid, payload_ready, payload_last;
  received_t received;
  logic [DataBytes*8-1:0] payload_data;
  logic [DataBytes-1:0] payload_keep;
  logic [2:0] read_command_valid, read_command_ready, read_valid, read_ready, read_last, read_error;
  logic [1:0] write_command_valid, write_command_ready, write_valid, write_ready, write_last;
  logic [1:0] written_valid, written_error;
  address_t read_address [3], write_address [2];
  segment_bytes_t read_bytes [3], write_bytes [2];
  logic [DataBytes*8-1:0] read_data [3], write_data [2];
  logic [DataBytes-1:0] read_keep [3], write_keep [2];
  logic plugin_valid, plugin_ready, plugin_use0, plugin_use1, plugin_swap, plugin_last;
  logic result_valid, result_ready, result_last;
  logic [DataBytes*8-1:0] plugin_op0, plugin_op1, result_data;
  logic [DataBytes-1:0] plugin_keep, result_keep;
  func_e plugin_func;
  datatype_e plugin_dtype;
  unisono_observe_pkg::events_t core_events;
  communicator_t core_communicator [2];
  rank_t core_rank [2];
  peer_entry_t core_peer [2];
  for (genvar p = 0; p < 2; p++) begin : gen_core_peer
    assign members[p] = '{communicator: core_communicator[p], peer: core_rank[p]};
    assign core_peer[p] = peers[p];
  end

  unisono_cclo_core #(
    .DataBytes(DataBytes), .BufferBase(BufferBase), .BufferBytes(BufferBytes), .StreamPorts(StreamPorts),
    .StreamWords(StreamWords)
  ) u_core (
    .clk_i, .rst_ni,
    .stream_in_valid_i, .stream_in_ready_o, .stream_in_data_i, .stream_in_keep_i, .stream_in_last_i,
    .stream_out_valid_o, .stream_out_ready_i, .stream_out_data_o, .stream_out_keep_o, .stream_out_last_o,
    .stream_out_cut_o,
    .src_stream_i, .dst_stream_i, .src_port_i, .dst_port_i,
    .move_valid_i, .move_ready_o, .move_slot_i, .move_i, .move_end_i,
    .room_o, .finished_valid_o, .finished_slot_o,
    .pool_write_i, .pool_write_slot_i, .pool_write_index_i, .pool_write_word_i,
    .clear_valid_i, .clear_slot_i, .clear_failed_i, .clear_done_o, .free_buffers_o,
    .begins_valid_i(begins_valid_o), .begins_communicator_i(begins_communicator_o), .active_i(active_q),
    .contexts_i(contexts_q), .communicators_i(communicators_q),
    .binding_slot_o, .binding_region_o, .binding_i,
    .fail_valid_o, .fail_slot_o, .fail_code_o,
    .peer_communicator_o(core_communicator), .peer_rank_o(core_rank), .peer_i(core_peer),
    .credit_take_o(credit_take), .credit_keep_o(credit_keep), .credit_ready_i(credit_ready),
    .credit_communicator_o(credit.communicator), .credit_peer_o(credit.peer),
    .credit_answer_i(credit_answer), .credit_granted_i(credit_granted),
    .credit_back_o(credit_back), .credit_back_ready_i(credit_back_ready),
    .credit_event_valid_i(credit_event_valid), .credit_event_ready_o(credit_event_ready),
    .credit_event_communicator_i(credit_event.communicator), .credit_event_peer_i(credit_event.peer),
    .owed_valid_o(owed_valid), .owed_ready_i(owed_ready), .owed_communicator_o(owed.communicator),
    .owed_peer_o(owed.peer),
    .space_valid_o(space_valid), .space_ready_i(space_ready), .space_session_o(space.session),
    .space_bytes_o(space.bytes), .space_answer_i(space_answer), .space_granted_i(space_granted),
    .transmit_valid_o(transmit_valid), .transmit_ready_i(transmit_ready), .transmit_o(transmit),
    .send_valid_o(send_valid), .send_ready_i(send_ready), .send_data_o(send_data), .send_keep_o(send_keep),
    .send_last_o(send_last), .send_slot_o(send_slot), .send_error_valid_i(send_error),
    .send_error_slot_i(send_error_slot),
    .control_valid_o(grants_valid), .control_ready_i(grants_ready), .control_o(grants),
    .received_valid_i(received_valid), .received_ready_o(received_ready), .received_i(received),
    .payload_valid_i(payload_valid), .payload_ready_o(payload_ready), .payload_data_i(payload_data),
    .payload_keep_i(payload_keep), .payload_last_i(payload_last),
    .window_communicator_o(window_communicator), .window_i(window), .window_segment_i(window_segment),
    .notice_valid_o(remote_valid), .notice_ready_i(remote_ready), .notice_o(remote),
    .read_command_valid_o(read_command_valid), .read_command_ready_i(read_command_ready),
    .read_command_address_o(read_address), .read_command_bytes_o(read_bytes),
    .read_valid_i(read_valid), .read_ready_o(read_ready), .read_data_i(read_data), .read_keep_i(read_keep),
    .read_last_i(read_last), .read_error_i(read_error),
    .write_command_valid_o(write_command_valid), .write_command_ready_i(write_command_ready),
    .write_command_address_o(write_address), .write_command_bytes_o(write_bytes),
    .write_valid_o(write_valid), .write_ready_i(write_ready), .write_data_o(write_data),
    .write_keep_o(write_keep), .write_last_o(write_last),
    .written_valid_i(written_valid), .written_error_i(written_error),
    .plugin_valid_o(plugin_valid), .plugin_ready_i(plugin_ready), .plugin_op0_o(plugin_op0),
    .plugin_op1_o(plugin_op1), .plugin_use0_o(plugin_use0), .plugin_use1_o(plugin_use1),
    .plugin_func_o(plugin_func), .plugin_dtype_o(plugin_dtype), .plugin_swap_o(plugin_swap),
    .plugin_keep_o(plugin_keep), .plugin_last_o(plugin_last),
    .result_valid_i(result_valid), .result_ready_o(result_ready), .result_data_i(result_data),
    .result_keep_i(result_keep), .result_last_i(result_last),
    .cycle_i, .events_o(core_events), .record_valid_o, .record_o
  );

  // ----------------------------------------------------------------------------------------------- plugins

  unisono_plugin_array #(.DataBytes(DataBytes)) u_plugins (
    .clk_i, .rst_ni,
    .in_valid_i(plugin_valid), .in_ready_o(plugin_ready), .in_op0_i(plugin_op0), .in_op1_i(plugin_op1),
    .in_func_i(plugin_func), .in_dtype_i(plugin_dtype), .in_swap_i(plugin_swap),
    .in_use0_i(plugin_use0), .in_use1_i(plugin_use1), .in_keep_i(plugin_keep), .in_last_i(plugin_last),
    .in_user_i(1'b0),
    .out_valid_o(result_valid), .out_ready_i(result_ready), .out_data_o(result_data),
    .out_keep_o(result_keep), .out_last_o(result_last), .out_user_o(), .out_refused_o(),
    .plug_enable_o(), .plug_op0_o(), .plug_op1_o(), .plug_func_o(), .plug_dtype_o(), .plug_swap_o(),
    .plug_use0_o(), .plug_use1_o(), .plug_keep_o(), .plug_last_o(), .plug_user_o(),
    .plug_valid_i('0), .plug_data_i('0), .plug_keep_i('0), .plug_last_i('0), .plug_user_i('0),
    .capability_datatypes_o(), .capability_funcs_o(), .idle_o()
  );

  // ------------------------------------------------------------------------------------------------ movers

  unisono_engine_movers #(.DataBytes(DataBytes)) u_movers (
    .clk_i, .rst_ni,
    .read_command_valid_i(read_command_valid), .read_command_ready_o(read_command_ready),
    .read_command_address_i(read_address), .read_command_bytes_i(read_bytes),
    .read_valid_o(read_valid), .read_ready_i(read_ready), .read_data_o(read_data), .read_keep_o(read_keep),
    .read_last_o(read_last), .read_error_o(read_error),
    .write_command_valid_i(write_command_valid), .write_command_ready_o(write_command_ready),
    .write_command_address_i(write_address), .write_command_bytes_i(write_bytes),
    .write_valid_i(write_valid), .write_ready_o(write_ready), .write_data_i(write_data), .write_keep_i(write_keep),
    .write_last_i(write_last), .written_valid_o(written_valid), .written_error_o(written_error),
    .fetch_command_valid_i, .fetch_command_ready_o, .fetch_command_address_i, .fetch_command_bytes_i,
    .fetch_valid_o, .fetch_ready_i,
    .m_axi_arid, .m_axi_araddr, .m_axi_arlen, .m_axi_arsize, .m_axi_arburst, .m_axi_arvalid, .m_axi_arready,
    .m_axi_rid, .m_axi_rdata, .m_axi_rresp, .m_axi_rlast, .m_axi_rvalid, .m_axi_rready,
    .m_axi_awid, .m_axi_awaddr, .m_axi_awlen, .m_axi_awsize, .m_axi_awburst, .m_axi_awvalid, .m_axi_awready,
    .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready,
    .m_axi_bid, .m_axi_bresp, .m_axi_bvalid, .m_axi_bready
  );
  assign fetch_data_o = read_data[2];
  assign fetch_last_o = read_last[2];
  assign fetch_error_o = read_error[2];

  // -------------------------------------------------------------------------------- credits, and the wire

  logic take_valid, take_ready, returned_valid, returned_ready, control_valid, control_ready, noticed;
  member_t take, returned;
  logic [15:0] take_credits, returned_credits;
  transmit_t control;
  wire_events_t wire_events;

  unisono_engine_credits u_credits (
    .clk_i, .rst_ni, .begins_valid_i(begins_valid_o), .begins_ready_o(begins_ready),
    .begins_communicator_i(begins_communicator_o), .begins_buffers_i(begins_buffers),
    .credit_take_i(credit_take), .credit_keep_i(credit_keep), .credit_ready_o(credit_ready), .credit_i(credit),
    .credit_answer_o(credit_answer),
    .credit_granted_o(credit_granted), .credit_back_i(credit_back), .credit_back_ready_o(credit_back_ready),
    .event_valid_o(credit_event_valid), .event_ready_i(credit_event_ready), .event_o(credit_event),
    .owed_valid_i(owed_valid), .owed_ready_o(owed_ready), .owed_i(owed),
    .take_valid_i(take_valid), .take_ready_o(take_ready), .take_i(take), .take_credits_o(take_credits),
    .returned_valid_i(returned_valid), .returned_ready_o(returned_ready), .returned_i(returned),
    .returned_credits_i(returned_credits), .entry_communicator_o(entry_communicator[1]), .entry_i(entries[1]),
    .peer_member_o(members[2]), .peer_i(peers[2]),
    .remote_valid_i(remote_valid), .remote_ready_o(remote_ready), .remote_i(remote),
    .grants_valid_i(grants_valid), .grants_ready_o(grants_ready), .grants_i(grants),
    .out_valid_o(control_valid), .out_ready_i(control_ready), .out_o(control), .noticed_o(noticed)
  );

  unisono_engine_wire #(.DataBytes(DataBytes)) u_wire (
    .clk_i, .rst_ni,
    .space_valid_i(space_valid), .space_ready_o(space_ready), .space_i(space), .space_answer_o(space_answer),
    .space_granted_o(space_granted), .control_valid_i(control_valid), .control_ready_o(control_ready),
    .control_i(control), .transmit_valid_i(transmit_valid), .transmit_ready_o(transmit_ready),
    .transmit_i(transmit), .send_valid_i(send_valid), .send_ready_o(send_ready), .send_data_i(send_data),
    .send_keep_i(send_keep), .send_last_i(send_last), .send_slot_i(send_slot),
    .send_error_valid_o(send_error), .send_error_slot_o(send_error_slot),
    .owed_take_valid_o(take_valid), .owed_take_ready_i(take_ready), .owed_take_o(take), .owed_credits_i(take_credits),
    .returned_valid_o(returned_valid), .returned_ready_i(returned_ready), .returned_o(returned),
    .returned_credits_o(returned_credits),
    .find_valid_o(find_valid), .find_number_o(find_number), .find_epoch_o(find_epoch), .found_i(found),
    .found_communicator_i(found_communicator), .entry_communicator_o(rx_communicator), .entry_i(rx_entry),
    .member_o(members[3]), .peer_i(peers[3]),
    .received_valid_o(received_valid), .received_ready_i(received_ready), .received_o(received),
    .payload_valid_o(payload_valid), .payload_ready_i(payload_ready), .payload_data_o(payload_data),
    .payload_keep_o(payload_keep), .payload_last_o(payload_last),
    .fault_valid_o(rx_fault_valid_o), .fault_code_o(rx_fault_code_o),
    .poe_capability_i, .poe_query_valid_o, .poe_query_ready_i, .poe_query_session_o, .poe_query_bytes_o,
    .poe_grant_valid_i, .poe_grant_ready_o, .poe_grant_granted_i,
    .poe_tx_meta_valid_o, .poe_tx_meta_ready_i, .poe_tx_meta_session_o, .poe_tx_meta_bytes_o,
    .poe_tx_valid_o, .poe_tx_ready_i, .poe_tx_data_o, .poe_tx_keep_o, .poe_tx_last_o,
    .poe_rx_meta_valid_i, .poe_rx_meta_ready_o, .poe_rx_meta_session_i, .poe_rx_meta_bytes_i, .poe_rx_meta_error_i,
    .poe_rx_valid_i, .poe_rx_ready_o, .poe_rx_data_i, .poe_rx_keep_i, .poe_rx_last_i,
    .poe_event_valid_i, .poe_event_ready_o, .poe_event_session_i, .poe_event_state_i,
    .events_o(wire_events)
  );

  // ---------------------------------------------------------------------------------------------- counters

  logic receives;
  assign receives = received_valid && received_ready;
  assign heard_valid_o = receives;
  assign heard_o = received;

  always_comb begin
    events_o = core_events;
    events_o[CounterGrantsSent] = grants_valid && grants_ready;
    events_o[CounterCreditsSent] = noticed;
    events_o[CounterSegmentsReceived] = receives && received.header.type_ inside {MessageTypeEager, MessageTypeWrite};
    events_o[CounterRequestsReceived] = receives && received.header.type_ == MessageTypeRequest;
    events_o[CounterGrantsReceived] = receives && received.header.type_ == MessageTypeGrant;
    events_o[CounterRxFaults] = rx_fault_valid_o;
    events_o[CounterTxWords] = wire_events.tx_word;
    events_o[CounterRxWords] = wire_events.rx_word;
    events_o[CounterMacTxWords] = poe_word_sent_i;
    events_o[CounterMacRxWords] = poe_word_received_i;
    events_o[CounterStallTxData] = wire_events.stalls_data;
    events_o[CounterStallTxNetwork] = wire_events.stalls_network;
  end

endmodule
