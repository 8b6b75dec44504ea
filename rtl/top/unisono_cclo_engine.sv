// The engine without its microcontroller and call front end: the core between memory and a transport.
//
// Moves and contexts come in, frames go out and come in, memory is read and written. Three AXI4 ports: port 0 reads op0
// and writes results, port 1 reads op1 and writes receive buffers, port 2 reads what is only sent, and programs.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_cclo_engine
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
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

  logic [31:0] rx_number;
  logic [15:0] rx_epoch;
  logic find_valid, found;
  communicator_t found_communicator, rx_entry_communicator;
  communicator_entry_t rx_entry;
  communicator_t peer_communicator [2], rx_peer_communicator, tx_peer_communicator;
  rank_t peer_rank [2], rx_peer_rank, tx_peer_rank;
  peer_entry_t tx_peer, rx_peer;

  // Four questions about peers can be asked at once, so there are two copies of the table of members.
  logic [1:0] table_ready;
  logic reg_take, credits_init_ready, credits_init, of_communicator;
  communicator_t reg_communicator;
  peer_entry_t peer [2];

  assign reg_ready_o = &table_ready && credits_init_ready;
  assign reg_take = reg_valid_i && reg_ready_o;

  unisono_communicators u_slot_table (
    .clk_i, .rst_ni,
    .reg_valid_i(reg_take), .reg_ready_o(table_ready[0]), .reg_write_i, .reg_word_i, .reg_data_i,
    .reg_valid_o, .reg_data_o,
    .find_valid_i(1'b0), .find_number_i('0), .find_epoch_i('0), .found_valid_o(), .found_o(),
    .found_communicator_o(),
    .entry_communicator_i('0), .entry_valid_o(), .entry_o(),
    .tx_communicator_i(peer_communicator[0]), .tx_rank_i(peer_rank[0]), .tx_peer_o(peer[0]),
    .rx_communicator_i(peer_communicator[1]), .rx_rank_i(peer_rank[1]), .rx_peer_o(peer[1])
  );

  unisono_communicators u_rx_table (
    .clk_i, .rst_ni,
    .reg_valid_i(reg_take), .reg_ready_o(table_ready[1]), .reg_write_i, .reg_word_i, .reg_data_i,
    .reg_valid_o(), .reg_data_o(),
    .find_valid_i(find_valid), .find_number_i(rx_number), .find_epoch_i(rx_epoch),
    .found_valid_o(), .found_o(found), .found_communicator_o(found_communicator),
    .entry_communicator_i(rx_entry_communicator), .entry_valid_o(), .entry_o(rx_entry),
    .tx_communicator_i(tx_peer_communicator), .tx_rank_i(tx_peer_rank), .tx_peer_o(tx_peer),
    .rx_communicator_i(rx_peer_communicator), .rx_rank_i(rx_peer_rank), .rx_peer_o(rx_peer)
  );

  // Entries: of a context that is loaded, of a message of credits.
  communicator_t asked [2];
  communicator_entry_t entries [2];
  communicator_t notice_communicator;
  assign asked[0] = context_i.communicator;
  assign asked[1] = notice_communicator;
  unisono_communicator_entries #(.Ports(2)) u_entries (
    .clk_i, .write_i(of_communicator), .communicator_i(reg_communicator), .word_i(reg_word_i[2:0]),
    .data_i(reg_data_i), .asked_i(asked), .entry_o(entries)
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

  // ---------------------------------------------------------------------------------------------- windows
  // Memory that the peers of each communicator may reach. One that is set up anew has none.

  communicator_t window_communicator;
  binding_t window;
  logic window_write;
  (* ram_style = "distributed" *) binding_t windows_q [Communicators];
  assign window_write = of_communicator && (reg_word_i[2:0] == 3'd7 || credits_init);
  always_ff @(posedge clk_i) begin
    if (window_write) begin
      windows_q[reg_communicator] <= '{bytes: credits_init || !reg_data_i[0] ? '0 : window_bytes_i[47:0],
                                       address: window_address_i};
    end
  end
  (* ram_style = "distributed" *) segment_bytes_t window_segments_q [Communicators];
  always_ff @(posedge clk_i) begin
    if (of_communicator && reg_word_i[2:0] == 3'd3) window_segments_q[reg_communicator] <= segment_bytes_t'(reg_data_i);
  end
  segment_bytes_t window_segment;
  assign window_segment = window_segments_q[window_communicator];
  assign window = windows_q[window_communicator];
  logic remote_valid, remote_ready;
  notice_t remote;

  // -------------------------------------------------------------------------------------------------- core

  logic [15:0] credit_keep;
  logic credit_take, credit_ready, credit_answer, credit_granted, credit_event_valid, credit_event_ready;
  communicator_t credit_communicator, credit_event_communicator, owed_communicator;
  rank_t credit_peer, credit_event_peer, owed_peer;
  logic owed_valid, owed_ready, space_valid, space_ready, space_answer, space_granted;
  session_t space_session;
  segment_bytes_t space_bytes;
  logic [1:0] transmit_valid, transmit_ready, send_valid, send_ready, send_last;
  logic grants_valid, grants_ready;
  transmit_t [1:0] transmit;
  transmit_t grants;
  logic [1:0][DataBytes*8-1:0] send_data;
  logic [1:0][DataBytes-1:0] send_keep;
  logic [DataBytes*8-1:0] payload_data;
  logic [DataBytes-1:0] payload_keep;
  logic received_valid, received_ready, payload_valid, payload_ready, payload_last;
  received_t received;
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
  logic credit_back, credit_back_ready, send_error;
  logic [1:0] send_error_source;
  slot_t [1:0] send_slot, send_slot_q;
  func_e plugin_func;
  datatype_e plugin_dtype;
  unisono_observe_pkg::events_t core_events;

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
    .begins_valid_i(credits_init), .begins_communicator_i(reg_communicator), .active_i(active_q), .contexts_i(contexts_q),
    .communicators_i(communicators_q),
    .binding_slot_o, .binding_region_o, .binding_i,
    .fail_valid_o, .fail_slot_o, .fail_code_o,
    .peer_communicator_o(peer_communicator), .peer_rank_o(peer_rank), .peer_i(peer),
    .credit_take_o(credit_take), .credit_keep_o(credit_keep), .credit_ready_i(credit_ready),
    .credit_communicator_o(credit_communicator), .credit_peer_o(credit_peer),
    .credit_answer_i(credit_answer), .credit_granted_i(credit_granted),
    .credit_back_o(credit_back), .credit_back_ready_i(credit_back_ready),
    .credit_event_valid_i(credit_event_valid), .credit_event_ready_o(credit_event_ready),
    .credit_event_communicator_i(credit_event_communicator), .credit_event_peer_i(credit_event_peer),
    .owed_valid_o(owed_valid), .owed_ready_i(owed_ready), .owed_communicator_o(owed_communicator),
    .owed_peer_o(owed_peer),
    .space_valid_o(space_valid), .space_ready_i(space_ready), .space_session_o(space_session),
    .space_bytes_o(space_bytes), .space_answer_i(space_answer), .space_granted_i(space_granted),
    .transmit_valid_o(transmit_valid), .transmit_ready_i(transmit_ready), .transmit_o(transmit),
    .send_valid_o(send_valid), .send_ready_i(send_ready), .send_data_o(send_data), .send_keep_o(send_keep),
    .send_last_o(send_last), .send_slot_o(send_slot), .send_error_valid_i(send_error),
    .send_error_slot_i(send_slot_q[send_error_source[0]]),
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

  // Programs are read beside what is only sent: that waits for the network alone, and for no call of this engine.
  logic [2:0] mover_command_valid, mover_command_ready, mover_valid, mover_ready;
  address_t mover_address [3];
  segment_bytes_t mover_bytes [3];
  for (genvar p = 0; p < 2; p++) begin : gen_core_alone
    assign mover_command_valid[p] = read_command_valid[p];
    assign read_command_ready[p] = mover_command_ready[p];
    assign mover_address[p] = read_address[p];
    assign mover_bytes[p] = read_bytes[p];
    assign read_valid[p] = mover_valid[p];
    assign mover_ready[p] = read_ready[p];
  end
  unisono_read_share u_program_share (
    .clk_i, .rst_ni,
    .command0_valid_i(read_command_valid[2]), .command0_ready_o(read_command_ready[2]),
    .command0_address_i(read_address[2]), .command0_bytes_i(read_bytes[2]),
    .out0_valid_o(read_valid[2]), .out0_ready_i(read_ready[2]),
    .command1_valid_i(fetch_command_valid_i), .command1_ready_o(fetch_command_ready_o),
    .command1_address_i(fetch_command_address_i), .command1_bytes_i(fetch_command_bytes_i),
    .out1_valid_o(fetch_valid_o), .out1_ready_i(fetch_ready_i),
    .read_command_valid_o(mover_command_valid[2]), .read_command_ready_i(mover_command_ready[2]),
    .read_command_address_o(mover_address[2]), .read_command_bytes_o(mover_bytes[2]),
    .read_valid_i(mover_valid[2]), .read_ready_o(mover_ready[2]), .read_last_i(read_last[2])
  );
  assign fetch_data_o = read_data[2];
  assign fetch_last_o = read_last[2];
  assign fetch_error_o = read_error[2];

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_mover
    unisono_memory_read #(.DataBytes(DataBytes), .UserWidth(1)) u_read (
      .clk_i, .rst_ni,
      .cmd_valid_i(mover_command_valid[p]), .cmd_ready_o(mover_command_ready[p]),
      .cmd_address_i(mover_address[p]), .cmd_bytes_i(32'(mover_bytes[p])), .cmd_user_i(1'b0),
      .out_valid_o(mover_valid[p]), .out_ready_i(mover_ready[p]), .out_data_o(read_data[p]),
      .out_keep_o(read_keep[p]), .out_last_o(read_last[p]), .out_user_o(), .out_error_o(read_error[p]),
      .m_axi_arid(m_axi_arid[p]), .m_axi_araddr(m_axi_araddr[p]), .m_axi_arlen(m_axi_arlen[p]),
      .m_axi_arsize(m_axi_arsize[p]), .m_axi_arburst(m_axi_arburst[p]),
      .m_axi_arvalid(m_axi_arvalid[p]), .m_axi_arready(m_axi_arready[p]),
      .m_axi_rid(m_axi_rid[p]), .m_axi_rdata(m_axi_rdata[p]), .m_axi_rresp(m_axi_rresp[p]),
      .m_axi_rlast(m_axi_rlast[p]), .m_axi_rvalid(m_axi_rvalid[p]), .m_axi_rready(m_axi_rready[p])
    );
  end

  for (genvar p = 0; p < 2; p++) begin : gen_writer
    unisono_memory_write #(.DataBytes(DataBytes), .UserWidth(1)) u_write (
      .clk_i, .rst_ni,
      .cmd_valid_i(write_command_valid[p]), .cmd_ready_o(write_command_ready[p]),
      .cmd_address_i(write_address[p]), .cmd_bytes_i(32'(write_bytes[p])), .cmd_user_i(1'b0),
      .in_valid_i(write_valid[p]), .in_ready_o(write_ready[p]), .in_data_i(write_data[p]),
      .in_keep_i(write_keep[p]), .in_last_i(write_last[p]),
      .done_valid_o(written_valid[p]), .done_ready_i(1'b1), .done_user_o(), .done_error_o(written_error[p]),
      .m_axi_awid(m_axi_awid[p]), .m_axi_awaddr(m_axi_awaddr[p]), .m_axi_awlen(m_axi_awlen[p]),
      .m_axi_awsize(m_axi_awsize[p]), .m_axi_awburst(m_axi_awburst[p]),
      .m_axi_awvalid(m_axi_awvalid[p]), .m_axi_awready(m_axi_awready[p]),
      .m_axi_wdata(m_axi_wdata[p]), .m_axi_wstrb(m_axi_wstrb[p]), .m_axi_wlast(m_axi_wlast[p]),
      .m_axi_wvalid(m_axi_wvalid[p]), .m_axi_wready(m_axi_wready[p]),
      .m_axi_bid(m_axi_bid[p]), .m_axi_bresp(m_axi_bresp[p]), .m_axi_bvalid(m_axi_bvalid[p]),
      .m_axi_bready(m_axi_bready[p])
    );
  end

  // Port 2 only reads.
  assign m_axi_awid[2] = '0;
  assign m_axi_awaddr[2] = '0;
  assign m_axi_awlen[2] = '0;
  assign m_axi_awsize[2] = '0;
  assign m_axi_awburst[2] = '0;
  assign m_axi_awvalid[2] = 1'b0;
  assign m_axi_wdata[2] = '0;
  assign m_axi_wstrb[2] = '0;
  assign m_axi_wlast[2] = 1'b0;
  assign m_axi_wvalid[2] = 1'b0;
  assign m_axi_bready[2] = 1'b1;

  // ----------------------------------------------------------------------------------------------- credits

  logic owed_take_valid, owed_take_ready, returned_valid, returned_ready, request_valid, request_ready;
  communicator_t owed_take_communicator, returned_communicator, request_communicator;
  rank_t owed_take_peer, returned_peer, request_peer;
  logic [15:0] owed, returned_credits;

  // What a call had taken and not used comes back beside what peers return.
  logic credits_returned_ready;
  assign credit_back_ready = credits_returned_ready;
  assign returned_ready = credits_returned_ready && !credit_back;

  // A communicator that becomes valid begins with fresh credits; its buffers were written before.
  logic [15:0] rx_buffers_q [Communicators];
  assign reg_communicator = communicator_t'(reg_word_i[3+:CommunicatorWidth]);
  assign of_communicator = reg_take && reg_write_i && !reg_word_i[RegWidth-1];
  assign credits_init = of_communicator && reg_word_i[2:0] == 3'd6 && reg_data_i[0];
  always_ff @(posedge clk_i) begin
    if (of_communicator && reg_word_i[2:0] == 3'd4) rx_buffers_q[reg_communicator] <= reg_data_i[15:0];
  end

  unisono_credits u_credits (
    .clk_i, .rst_ni,
    .init_valid_i(credits_init), .init_ready_o(credits_init_ready), .init_communicator_i(reg_communicator),
    .init_rx_buffers_i(rx_buffers_q[reg_communicator]),
    .freed_valid_i(owed_valid), .freed_ready_o(owed_ready), .freed_communicator_i(owed_communicator),
    .freed_peer_i(owed_peer),
    .owed_take_valid_i(owed_take_valid), .owed_take_ready_o(owed_take_ready),
    .owed_take_communicator_i(owed_take_communicator), .owed_take_peer_i(owed_take_peer), .owed_o(owed),
    .available_valid_i(credit_take), .available_ready_o(credit_ready),
    .available_communicator_i(credit_communicator), .available_peer_i(credit_peer), .available_take_i(1'b1),
    .available_keep_i(credit_keep),
    .available_valid_o(credit_answer), .available_granted_o(credit_granted), .available_count_o(),
    .returned_valid_i(returned_valid || credit_back), .returned_ready_o(credits_returned_ready),
    .returned_communicator_i(credit_back ? credit_communicator : returned_communicator),
    .returned_peer_i(credit_back ? credit_peer : returned_peer),
    .returned_credits_i(credit_back ? 16'd1 : returned_credits),
    .request_valid_o(request_valid), .request_ready_i(request_ready),
    .request_communicator_o(request_communicator), .request_peer_o(request_peer),
    .event_valid_o(credit_event_valid), .event_ready_i(credit_event_ready),
    .event_communicator_o(credit_event_communicator), .event_peer_o(credit_event_peer),
    .excess_o()
  );

  // A message of credits alone needs the communicator's entry and the peer's session.
  logic notice_valid, notice_ready;
  transmit_t notice;
  unisono_credit_message u_credit_message (
    .clk_i, .rst_ni,
    .request_valid_i(request_valid), .request_ready_o(request_ready),
    .request_communicator_i(request_communicator), .request_peer_i(request_peer),
    .notice_valid_i(remote_valid), .notice_ready_o(remote_ready), .notice_i(remote),
    .entry_communicator_o(notice_communicator), .entry_i(entries[1]),
    .peer_communicator_o(tx_peer_communicator), .peer_rank_o(tx_peer_rank), .peer_i(tx_peer),
    .out_valid_o(notice_valid), .out_ready_i(notice_ready), .out_transmit_o(notice)
  );

  // Grants and credits share the way out.
  logic control_valid, control_ready, prefers_notice_q, takes_notice, gate_valid, gate_ready;
  transmit_t control, gate;
  assign takes_notice = notice_valid && (!grants_valid || prefers_notice_q);
  assign control_valid = notice_valid || grants_valid;
  assign control = takes_notice ? notice : grants;
  assign notice_ready = control_ready && takes_notice;
  assign grants_ready = control_ready && !takes_notice;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) prefers_notice_q <= 1'b0;
    else if (control_valid && control_ready) prefers_notice_q <= !takes_notice;
  end
  // What waits for space keeps its place, whatever else comes meanwhile.
  logic held_valid, held_ready;
  transmit_t held;
  unisono_fifo #(.Width($bits(transmit_t)), .Depth(4)) u_control (
    .clk_i, .rst_ni, .in_valid_i(control_valid), .in_ready_o(control_ready), .in_data_i(control),
    .out_valid_o(held_valid), .out_ready_i(held_ready), .out_data_o(held), .count_o()
  );

  logic query_valid, query_ready, grant_valid, grant_ready, grant_granted;
  unisono_poe_pkg::session_t query_session, meta_session, rx_meta_session;
  unisono_poe_pkg::bytes_t query_bytes;
  unisono_space_gate u_space_gate (
    .clk_i, .rst_ni,
    .space_valid_i(space_valid), .space_ready_o(space_ready), .space_session_i(space_session),
    .space_bytes_i(space_bytes), .space_answer_o(space_answer), .space_granted_o(space_granted),
    .in_valid_i(held_valid), .in_ready_o(held_ready), .in_transmit_i(held),
    .out_valid_o(gate_valid), .out_ready_i(gate_ready), .out_transmit_o(gate),
    .query_valid_o(query_valid), .query_ready_i(query_ready), .query_session_o(query_session),
    .query_bytes_o(query_bytes), .grant_valid_i(grant_valid), .grant_ready_o(grant_ready),
    .grant_granted_i(grant_granted)
  );

  // ------------------------------------------------------------------------------------------------ Tx, Rx

  logic meta_valid, meta_ready, tx_valid, tx_ready, tx_last;
  logic [15:0] meta_bytes, rx_meta_bytes;
  logic [DataBytes*8-1:0] tx_data, rx_data;
  logic [DataBytes-1:0] tx_keep, rx_keep;
  logic rx_meta_valid, rx_meta_ready, rx_meta_error, rx_valid, rx_ready, rx_last;

  unisono_tx #(.DataBytes(DataBytes), .Sources(2)) u_tx (
    .clk_i, .rst_ni,
    .command_valid_i(transmit_valid), .command_ready_o(transmit_ready), .command_transmit_i(transmit),
    .payload_valid_i(send_valid), .payload_ready_o(send_ready), .payload_data_i(send_data),
    .payload_keep_i(send_keep), .payload_last_i(send_last),
    .control_command_valid_i(gate_valid), .control_command_ready_o(gate_ready),
    .control_command_transmit_i(gate),
    .control_payload_valid_i(1'b0), .control_payload_ready_o(), .control_payload_data_i('0),
    .control_payload_keep_i('0), .control_payload_last_i(1'b0),
    .owed_take_valid_o(owed_take_valid), .owed_take_ready_i(owed_take_ready),
    .owed_take_communicator_o(owed_take_communicator), .owed_take_peer_o(owed_take_peer), .owed_i(owed),
    .session_open_valid_i(1'b0), .session_open_ready_o(), .session_open_session_i('0),
    .meta_valid_o(meta_valid), .meta_ready_i(meta_ready), .meta_session_o(meta_session),
    .meta_bytes_o(meta_bytes),
    .tx_valid_o(tx_valid), .tx_ready_i(tx_ready), .tx_data_o(tx_data), .tx_keep_o(tx_keep),
    .tx_last_o(tx_last),
    .error_valid_o(send_error), .error_source_o(send_error_source), .error_long_o()
  );

  // Tx tells of a word that was wrong one cycle after it.
  always_ff @(posedge clk_i) begin
    for (int l = 0; l < 2; l++) if (send_valid[l] && send_ready[l]) send_slot_q[l] <= send_slot[l];
  end

  unisono_rx #(.DataBytes(DataBytes)) u_rx (
    .clk_i, .rst_ni,
    .meta_valid_i(rx_meta_valid), .meta_ready_o(rx_meta_ready), .meta_session_i(rx_meta_session),
    .meta_bytes_i(rx_meta_bytes), .meta_error_i(rx_meta_error),
    .rx_valid_i(rx_valid), .rx_ready_o(rx_ready), .rx_data_i(rx_data), .rx_keep_i(rx_keep),
    .rx_last_i(rx_last),
    .find_valid_o(find_valid), .find_number_o(rx_number), .find_epoch_o(rx_epoch),
    .found_i(found), .found_communicator_i(found_communicator),
    .entry_communicator_o(rx_entry_communicator), .entry_i(rx_entry),
    .peer_communicator_o(rx_peer_communicator), .peer_rank_o(rx_peer_rank), .peer_i(rx_peer),
    .received_valid_o(received_valid), .received_ready_i(received_ready), .received_message_o(received),
    .payload_valid_o(payload_valid), .payload_ready_i(payload_ready), .payload_data_o(payload_data),
    .payload_keep_o(payload_keep), .payload_last_o(payload_last),
    .returned_valid_o(returned_valid), .returned_ready_i(returned_ready),
    .returned_communicator_o(returned_communicator), .returned_peer_o(returned_peer),
    .returned_credits_o(returned_credits),
    .fault_valid_o(rx_fault_valid_o), .fault_ready_i(1'b1), .fault_code_o(rx_fault_code_o),
    .fault_session_o(), .fault_communicator_o(),
    .counter_good_o(), .counter_fault_o()
  );
  // -------------------------------------------------------------------------------------------- transports
  // Session SelfSession leads back to this engine, those below it to the transport that is attached.

  logic [1:0] poe_query_valid, poe_query_ready, poe_grant_valid, poe_grant_ready, poe_grant_granted;
  logic [1:0] poe_meta_valid, poe_meta_ready, poe_tx_valid, poe_tx_ready, poe_tx_last;
  logic [1:0] poe_rx_meta_valid, poe_rx_meta_ready, poe_rx_meta_error, poe_rx_valid, poe_rx_ready, poe_rx_last;
  unisono_poe_pkg::session_t [1:0] poe_query_session, poe_meta_session, poe_rx_meta_session;
  unisono_poe_pkg::bytes_t [1:0] poe_query_bytes, poe_meta_bytes, poe_rx_meta_bytes;
  logic [1:0][DataBytes*8-1:0] poe_tx_data, poe_rx_data;
  logic [1:0][DataBytes-1:0] poe_tx_keep, poe_rx_keep;
  unisono_poe_pkg::poe_capability_t [1:0] capability;
  logic [1:0] poe_event_ready;

  unisono_poe_mux #(.DataBytes(DataBytes)) u_poe_mux (
    .clk_i, .rst_ni,
    .split_i(SelfSession[unisono_poe_pkg::ControlBit-1:0]),
    .poe_capability_i(capability), .capability_o(),
    .query_valid_i(query_valid), .query_ready_o(query_ready), .query_session_i(query_session),
    .query_bytes_i(query_bytes), .grant_valid_o(grant_valid), .grant_ready_i(grant_ready),
    .grant_granted_o(grant_granted),
    .tx_meta_valid_i(meta_valid), .tx_meta_ready_o(meta_ready), .tx_meta_session_i(meta_session),
    .tx_meta_bytes_i(meta_bytes), .tx_valid_i(tx_valid), .tx_ready_o(tx_ready), .tx_data_i(tx_data),
    .tx_keep_i(tx_keep), .tx_last_i(tx_last),
    .rx_meta_valid_o(rx_meta_valid), .rx_meta_ready_i(rx_meta_ready), .rx_meta_session_o(rx_meta_session),
    .rx_meta_bytes_o(rx_meta_bytes), .rx_meta_error_o(rx_meta_error), .rx_valid_o(rx_valid),
    .rx_ready_i(rx_ready), .rx_data_o(rx_data), .rx_keep_o(rx_keep), .rx_last_o(rx_last),
    .event_valid_o(), .event_ready_i(1'b1), .event_session_o(), .event_state_o(),
    .poe_query_valid_o(poe_query_valid), .poe_query_ready_i(poe_query_ready),
    .poe_query_session_o(poe_query_session), .poe_query_bytes_o(poe_query_bytes),
    .poe_grant_valid_i(poe_grant_valid), .poe_grant_ready_o(poe_grant_ready),
    .poe_grant_granted_i(poe_grant_granted),
    .poe_tx_meta_valid_o(poe_meta_valid), .poe_tx_meta_ready_i(poe_meta_ready),
    .poe_tx_meta_session_o(poe_meta_session), .poe_tx_meta_bytes_o(poe_meta_bytes),
    .poe_tx_valid_o(poe_tx_valid), .poe_tx_ready_i(poe_tx_ready), .poe_tx_data_o(poe_tx_data),
    .poe_tx_keep_o(poe_tx_keep), .poe_tx_last_o(poe_tx_last),
    .poe_rx_meta_valid_i(poe_rx_meta_valid), .poe_rx_meta_ready_o(poe_rx_meta_ready),
    .poe_rx_meta_session_i(poe_rx_meta_session), .poe_rx_meta_bytes_i(poe_rx_meta_bytes),
    .poe_rx_meta_error_i(poe_rx_meta_error), .poe_rx_valid_i(poe_rx_valid), .poe_rx_ready_o(poe_rx_ready),
    .poe_rx_data_i(poe_rx_data), .poe_rx_keep_i(poe_rx_keep), .poe_rx_last_i(poe_rx_last),
    .poe_event_valid_i({1'b0, poe_event_valid_i}), .poe_event_ready_o(poe_event_ready),
    .poe_event_session_i({unisono_poe_pkg::session_t'(0), poe_event_session_i}),
    .poe_event_state_i({1'b0, poe_event_state_i})
  );

  assign poe_event_ready_o = poe_event_ready[0];
  assign capability[0] = poe_capability_i;
  assign poe_query_valid_o = poe_query_valid[0];
  assign poe_query_ready[0] = poe_query_ready_i;
  assign poe_query_session_o = poe_query_session[0];
  assign poe_query_bytes_o = poe_query_bytes[0];
  assign poe_grant_valid[0] = poe_grant_valid_i;
  assign poe_grant_ready_o = poe_grant_ready[0];
  assign poe_grant_granted[0] = poe_grant_granted_i;
  assign poe_tx_meta_valid_o = poe_meta_valid[0];
  assign poe_meta_ready[0] = poe_tx_meta_ready_i;
  assign poe_tx_meta_session_o = poe_meta_session[0];
  assign poe_tx_meta_bytes_o = poe_meta_bytes[0];
  assign poe_tx_valid_o = poe_tx_valid[0];
  assign poe_tx_ready[0] = poe_tx_ready_i;
  assign poe_tx_data_o = poe_tx_data[0];
  assign poe_tx_keep_o = poe_tx_keep[0];
  assign poe_tx_last_o = poe_tx_last[0];
  assign poe_rx_meta_valid[0] = poe_rx_meta_valid_i;
  assign poe_rx_meta_ready_o = poe_rx_meta_ready[0];
  assign poe_rx_meta_session[0] = poe_rx_meta_session_i;
  assign poe_rx_meta_bytes[0] = poe_rx_meta_bytes_i;
  assign poe_rx_meta_error[0] = poe_rx_meta_error_i;
  assign poe_rx_valid[0] = poe_rx_valid_i;
  assign poe_rx_ready_o = poe_rx_ready[0];
  assign poe_rx_data[0] = poe_rx_data_i;
  assign poe_rx_keep[0] = poe_rx_keep_i;
  assign poe_rx_last[0] = poe_rx_last_i;

  unisono_poe_loopback #(.DataBytes(DataBytes)) u_loopback (
    .clk_i, .rst_ni,
    .capability_o(capability[1]),
    .query_valid_i(poe_query_valid[1]), .query_ready_o(poe_query_ready[1]),
    .query_session_i(poe_query_session[1]), .query_bytes_i(poe_query_bytes[1]),
    .grant_valid_o(poe_grant_valid[1]), .grant_ready_i(poe_grant_ready[1]),
    .grant_granted_o(poe_grant_granted[1]),
    .tx_meta_valid_i(poe_meta_valid[1]), .tx_meta_ready_o(poe_meta_ready[1]),
    .tx_meta_session_i(poe_meta_session[1]), .tx_meta_bytes_i(poe_meta_bytes[1]),
    .tx_valid_i(poe_tx_valid[1]), .tx_ready_o(poe_tx_ready[1]), .tx_data_i(poe_tx_data[1]),
    .tx_keep_i(poe_tx_keep[1]), .tx_last_i(poe_tx_last[1]),
    .rx_meta_valid_o(poe_rx_meta_valid[1]), .rx_meta_ready_i(poe_rx_meta_ready[1]),
    .rx_meta_session_o(poe_rx_meta_session[1]), .rx_meta_bytes_o(poe_rx_meta_bytes[1]),
    .rx_meta_error_o(poe_rx_meta_error[1]), .rx_valid_o(poe_rx_valid[1]), .rx_ready_i(poe_rx_ready[1]),
    .rx_data_o(poe_rx_data[1]), .rx_keep_o(poe_rx_keep[1]), .rx_last_o(poe_rx_last[1]),
    .dropped_o()
  );

  // ---------------------------------------------------------------------------------------------- counters

  // Messages with payload that Tx has begun and whose last word no lane has given yet.
  logic [1:0] begins, finishes, tx_begun;
  for (genvar l = 0; l < 2; l++) begin : gen_tx_begun
    logic [3:0] count_q;
    assign begins[l] = transmit_valid[l] && transmit_ready[l] && transmit[l].header.segment_bytes != '0;
    assign finishes[l] = send_valid[l] && send_ready[l] && send_last[l];
    assign tx_begun[l] = count_q != '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) count_q <= '0;
      else count_q <= count_q + 4'(begins[l]) - 4'(finishes[l]);
    end
  end

  logic receives;
  assign receives = received_valid && received_ready;
  assign heard_valid_o = receives;
  assign heard_o = received;
  assign begins_valid_o = credits_init;
  assign begins_communicator_o = reg_communicator;

  always_comb begin
    events_o = core_events;
    events_o[CounterGrantsSent] = grants_valid && grants_ready;
    events_o[CounterCreditsSent] = notice_valid && notice_ready;
    events_o[CounterSegmentsReceived] = receives && received.header.type_ inside {MessageTypeEager, MessageTypeWrite};
    events_o[CounterRequestsReceived] = receives && received.header.type_ == MessageTypeRequest;
    events_o[CounterGrantsReceived] = receives && received.header.type_ == MessageTypeGrant;
    events_o[CounterRxFaults] = rx_fault_valid_o;
    events_o[CounterTxWords] = tx_valid && tx_ready;
    events_o[CounterRxWords] = rx_valid && rx_ready;
    events_o[CounterMacTxWords] = poe_word_sent_i;
    events_o[CounterMacRxWords] = poe_word_received_i;
    events_o[CounterStallTxData] = tx_begun != '0 && send_valid == '0;
    events_o[CounterStallTxNetwork] = (tx_valid && !tx_ready) || (meta_valid && !meta_ready);
  end

endmodule
