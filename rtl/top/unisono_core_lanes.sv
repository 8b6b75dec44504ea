// The lanes, with what stands around them: jobs that wait, the order of messages to one peer, what goes past the
// receive buffers, the streams of kernels that the compute lane takes from and gives to, and params, which are read
// beside op1.
//
// Latency, throughput: see its parts.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_core_lanes
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_core_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned BypassWords = 64,
  parameter int unsigned StreamPorts = 0,
  parameter int unsigned StreamWords = 256,
  localparam int unsigned Wires = StreamPorts > 0 ? StreamPorts : 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  // Jobs of the dispatcher, for the compute lane (0) or the send lane (1). Room once shown stays until it is used. And
  // what is sent for a peer's get, behind the dispatcher's.
  input  logic            job_valid_i, job_lane_i,
  output logic [1:0]      job_ready_o,
  input  job_t            job_i,
  input  logic            serve_valid_i,
  output logic            serve_ready_o,
  input  job_t            serve_i,
  // Lanes that hold a message for this peer.
  input  rank_t           order_peer_i,
  output logic [1:0]      order_busy_o,

  // Streams of kernels.
  input  logic [Wires-1:0]                  stream_in_valid_i,
  output logic [Wires-1:0]                  stream_in_ready_o,
  input  logic [Wires-1:0][DataBytes*8-1:0] stream_in_data_i,
  input  logic [Wires-1:0][DataBytes-1:0]   stream_in_keep_i,
  output logic [Wires-1:0]                  stream_out_valid_o,
  input  logic [Wires-1:0]                  stream_out_ready_i,
  output logic [Wires-1:0][DataBytes*8-1:0] stream_out_data_o,
  output logic [Wires-1:0][DataBytes-1:0]   stream_out_keep_o,
  output logic [Wires-1:0]                  stream_out_last_o, stream_out_cut_o,
  // Moves that enter their window, and the use that they make of streams; the end of a program; a slot that is cleared.
  input  logic            push_valid_i,
  input  move_id_t        push_id_i,
  // Of it other fields count elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  move_t           push_move_i,
  // verilator lint_on UNUSEDSIGNAL
  output stream_use_t     push_source_o, push_sink_o,
  input  logic            close_valid_i, clear_valid_i,
  input  slot_t           close_slot_i, clear_slot_i,
  // The dispatcher asks whether a move can go on, and takes its turn.
  input  move_id_t        stream_id_i,
  input  stream_ask_t     stream_ask_i,
  output logic            stream_ready_o,
  input  logic            stream_waits_i,
  input  stream_take_t    stream_take_i,
  output logic            stream_kick_valid_o,
  input  logic            stream_kick_ready_i,
  output move_id_t        stream_kick_id_o,

  // What goes past the receive buffers.
  input  logic                   passing_valid_i, passing_last_i,
  output logic                   passing_ready_o,
  input  logic [DataBytes*8-1:0] passing_data_i,
  input  logic [DataBytes-1:0]   passing_keep_i,

  // Words of params.
  input  logic            params_command_valid_i,
  output logic            params_command_ready_o,
  input  address_t        params_address_i,
  output logic            params_valid_o,
  input  logic            params_ready_i,

  // Memory, plugins and Tx, as of the core.
  output logic [2:0]             read_command_valid_o,
  input  logic [2:0]             read_command_ready_i,
  output address_t               read_command_address_o [3],
  output segment_bytes_t         read_command_bytes_o [3],
  input  logic [2:0]             read_valid_i, read_last_i, read_error_i,
  output logic [2:0]             read_ready_o,
  input  logic [DataBytes*8-1:0] read_data_i [3],
  input  logic [DataBytes-1:0]   read_keep_i [3],
  output logic                   write_command_valid_o,
  input  logic                   write_command_ready_i,
  output address_t               write_command_address_o,
  output segment_bytes_t         write_command_bytes_o,
  output logic                   write_valid_o, write_last_o,
  input  logic                   write_ready_i,
  output logic [DataBytes*8-1:0] write_data_o,
  output logic [DataBytes-1:0]   write_keep_o,
  input  logic                   written_valid_i, written_error_i,
  output logic                   plugin_valid_o, plugin_use0_o, plugin_use1_o, plugin_swap_o, plugin_last_o,
  input  logic                   plugin_ready_i,
  output logic [DataBytes*8-1:0] plugin_op0_o, plugin_op1_o,
  output func_e                  plugin_func_o,
  output datatype_e              plugin_dtype_o,
  output logic [DataBytes-1:0]   plugin_keep_o,
  input  logic                   result_valid_i, result_last_i,
  output logic                   result_ready_o,
  input  logic [DataBytes*8-1:0] result_data_i,
  input  logic [DataBytes-1:0]   result_keep_i,
  output logic [1:0]             transmit_valid_o,
  input  logic [1:0]             transmit_ready_i,
  output transmit_t [1:0]        transmit_o,
  output logic [1:0]             send_valid_o, send_last_o,
  input  logic [1:0]             send_ready_i,
  output logic [1:0][DataBytes*8-1:0] send_data_o,
  output logic [1:0][DataBytes-1:0]   send_keep_o,
  output slot_t [1:0]            send_slot_o,

  // Ends of jobs; and a lane waits for memory.
  output logic            end_valid_o, send_end_valid_o,
  input  logic            send_end_ready_i,
  output job_end_t        end_o, send_end_o,
  output logic            starves_o
);

  logic lane_job_valid, lane_job_ready, send_job_valid, send_job_ready, transmit_serves;
  job_t lane_job, send_job;
  logic [1:0] enters, starves;
  logic compute_holds, unused_send_holds;   // a lane holds messages for somebody

  unisono_fifo #(.Width($bits(job_t)), .Depth(4)) u_jobs (
    .clk_i, .rst_ni, .in_valid_i(job_valid_i && !job_lane_i), .in_ready_o(job_ready_o[0]), .in_data_i(job_i),
    .out_valid_o(lane_job_valid), .out_ready_i(lane_job_ready), .out_data_o(lane_job), .count_o()
  );
  // A job of the responder is offered when it is taken, for one of the dispatcher may come before it.
  assign serve_ready_o = job_ready_o[1] && !(job_valid_i && job_lane_i);
  unisono_fifo #(.Width($bits(job_t)), .Depth(4)) u_send_jobs (
    .clk_i, .rst_ni, .in_valid_i((job_valid_i && job_lane_i) || (serve_valid_i && job_ready_o[1])),
    .in_ready_o(job_ready_o[1]), .in_data_i(job_valid_i && job_lane_i ? job_i : serve_i),
    .out_valid_o(send_job_valid), .out_ready_i(send_job_ready), .out_data_o(send_job), .count_o()
  );

  // Which peers the lanes hold messages for. What is sent for a peer's get has no place in their order.
  assign enters[0] = job_valid_i && job_ready_o[0] && !job_lane_i && job_i.send;
  assign enters[1] = job_valid_i && job_ready_o[1] && job_lane_i;
  unisono_lane_order u_order (
    .clk_i, .rst_ni, .ask_peer_i(order_peer_i), .busy_o(order_busy_o), .any_o({unused_send_holds, compute_holds}),
    .enter_i(enters), .leave_i(transmit_valid_o & transmit_ready_i & {!transmit_serves, 1'b1}),
    .leave_peer_i({transmit_o[1].peer, transmit_o[0].peer})
  );

  // What goes past the buffers waits here for its other operand, while the header behind it is looked at: so a memory
  // that answers after BypassWords cycles takes nothing of the rate.
  logic bypass_valid, bypass_ready, bypass_last;
  logic [DataBytes*8-1:0] bypass_data;
  logic [DataBytes-1:0] bypass_keep;
  unisono_fifo #(.Width(9 * DataBytes + 1), .Depth(BypassWords)) u_bypass (
    .clk_i, .rst_ni, .in_valid_i(passing_valid_i), .in_ready_o(passing_ready_o),
    .in_data_i({passing_last_i, passing_keep_i, passing_data_i}),
    .out_valid_o(bypass_valid), .out_ready_i(bypass_ready), .out_data_o({bypass_last, bypass_keep, bypass_data}),
    .count_o()
  );

  logic source_command_valid, source_command_ready, source_valid, source_ready, source_last;
  logic sink_valid, sink_ready, sink_starts, sink_ends;
  stream_port_t source_command_port, sink_port;
  segment_bytes_t source_command_bytes;
  logic [DataBytes*8-1:0] source_data;
  logic [DataBytes-1:0] source_keep;
  logic streams_move;
  assign streams_move = push_move_i.kind == MoveKindMove && push_move_i.count != '0;
  assign push_source_o.used = streams_move && push_move_i.op0.kind == OperandKindStream;
  assign push_source_o.port = stream_port_t'(push_move_i.op0.offset);
  assign push_sink_o.used = streams_move && push_move_i.local_.kind == OperandKindStream;
  assign push_sink_o.port = stream_port_t'(push_move_i.local_.offset);

  unisono_kernel_streams #(.StreamPorts(StreamPorts), .DataBytes(DataBytes), .Depth(StreamWords)) u_streams (
    .clk_i, .rst_ni,
    .in_valid_i(stream_in_valid_i), .in_ready_o(stream_in_ready_o), .in_data_i(stream_in_data_i),
    .in_keep_i(stream_in_keep_i),
    .out_valid_o(stream_out_valid_o), .out_ready_i(stream_out_ready_i), .out_data_o(stream_out_data_o),
    .out_keep_o(stream_out_keep_o), .out_last_o(stream_out_last_o), .out_cut_o(stream_out_cut_o),
    .push_valid_i, .push_id_i, .push_source_i(push_source_o.used), .push_source_port_i(push_source_o.port),
    .push_source_ticket_o(push_source_o.ticket), .push_sink_i(push_sink_o.used),
    .push_sink_port_i(push_sink_o.port), .push_sink_ticket_o(push_sink_o.ticket),
    .close_valid_i, .close_slot_i, .clear_valid_i, .clear_slot_i,
    .ask_id_i(stream_id_i), .ask_source_i(stream_ask_i.source), .ask_sink_i(stream_ask_i.sink),
    .ask_bytes_i(stream_ask_i.bytes), .ready_o(stream_ready_o), .wait_i(stream_waits_i),
    .take_source_i(stream_take_i.source), .take_sink_i(stream_take_i.sink), .take_bytes_i(stream_take_i.bytes),
    .take_first_i(stream_take_i.first), .take_last_i(stream_take_i.last),
    .kick_valid_o(stream_kick_valid_o), .kick_ready_i(stream_kick_ready_i), .kick_id_o(stream_kick_id_o),
    .command_valid_i(source_command_valid), .command_ready_o(source_command_ready),
    .command_port_i(source_command_port), .command_bytes_i(source_command_bytes),
    .source_valid_o(source_valid), .source_ready_i(source_ready), .source_data_o(source_data),
    .source_keep_o(source_keep), .source_last_o(source_last),
    .sink_valid_i(sink_valid), .sink_ready_o(sink_ready), .sink_data_i(write_data_o),
    .sink_keep_i(write_keep_o), .sink_last_i(write_last_o), .sink_port_i(sink_port),
    .sink_starts_i(sink_starts), .sink_ends_i(sink_ends)
  );

  logic op1_command_valid, op1_command_ready, op1_valid, op1_ready;
  address_t op1_address;
  segment_bytes_t op1_bytes;
  unisono_read_share u_read_share (
    .clk_i, .rst_ni,
    .command0_valid_i(op1_command_valid), .command0_ready_o(op1_command_ready),
    .command0_address_i(op1_address), .command0_bytes_i(op1_bytes),
    .out0_valid_o(op1_valid), .out0_ready_i(op1_ready),
    .command1_valid_i(params_command_valid_i), .command1_ready_o(params_command_ready_o),
    .command1_address_i(params_address_i), .command1_bytes_i(segment_bytes_t'(8)),
    .out1_valid_o(params_valid_o), .out1_ready_i(params_ready_i),
    .read_command_valid_o(read_command_valid_o[1]), .read_command_ready_i(read_command_ready_i[1]),
    .read_command_address_o(read_command_address_o[1]), .read_command_bytes_o(read_command_bytes_o[1]),
    .read_valid_i(read_valid_i[1]), .read_ready_o(read_ready_o[1]), .read_last_i(read_last_i[1])
  );

  unisono_compute_lane #(.DataBytes(DataBytes)) u_lane (
    .clk_i, .rst_ni,
    .job_valid_i(lane_job_valid), .job_ready_o(lane_job_ready), .job_i(lane_job),
    .op0_command_valid_o(read_command_valid_o[0]), .op0_command_ready_i(read_command_ready_i[0]),
    .op0_command_address_o(read_command_address_o[0]), .op0_command_bytes_o(read_command_bytes_o[0]),
    .op0_valid_i(read_valid_i[0]), .op0_ready_o(read_ready_o[0]), .op0_data_i(read_data_i[0]),
    .op0_keep_i(read_keep_i[0]), .op0_last_i(read_last_i[0]), .op0_error_i(read_error_i[0]),
    .source_command_valid_o(source_command_valid), .source_command_ready_i(source_command_ready),
    .source_command_port_o(source_command_port), .source_command_bytes_o(source_command_bytes),
    .source_valid_i(source_valid), .source_ready_o(source_ready), .source_data_i(source_data),
    .source_keep_i(source_keep), .source_last_i(source_last),
    .sink_valid_o(sink_valid), .sink_ready_i(sink_ready), .sink_port_o(sink_port), .sink_starts_o(sink_starts),
    .sink_ends_o(sink_ends),
    .op1_command_valid_o(op1_command_valid), .op1_command_ready_i(op1_command_ready),
    .op1_command_address_o(op1_address), .op1_command_bytes_o(op1_bytes),
    .op1_valid_i(op1_valid), .op1_ready_o(op1_ready), .op1_data_i(read_data_i[1]),
    .op1_keep_i(read_keep_i[1]), .op1_last_i(read_last_i[1]), .op1_error_i(read_error_i[1]),
    .bypass_valid_i(bypass_valid), .bypass_ready_o(bypass_ready), .bypass_data_i(bypass_data),
    .bypass_keep_i(bypass_keep), .bypass_last_i(bypass_last),
    .plugin_valid_o, .plugin_ready_i, .plugin_op0_o, .plugin_op1_o, .plugin_use0_o, .plugin_use1_o,
    .plugin_func_o, .plugin_dtype_o, .plugin_swap_o, .plugin_keep_o, .plugin_last_o,
    .result_valid_i, .result_ready_o, .result_data_i, .result_keep_i, .result_last_i,
    .write_command_valid_o, .write_command_ready_i, .write_command_address_o, .write_command_bytes_o,
    .write_valid_o, .write_ready_i, .write_data_o, .write_keep_o, .write_last_o, .written_valid_i, .written_error_i,
    .transmit_valid_o(transmit_valid_o[0]), .transmit_ready_i(transmit_ready_i[0]), .transmit_o(transmit_o[0]),
    .send_valid_o(send_valid_o[0]), .send_ready_i(send_ready_i[0]), .send_data_o(send_data_o[0]),
    .send_keep_o(send_keep_o[0]), .send_last_o(send_last_o[0]), .send_slot_o(send_slot_o[0]),
    .end_valid_o, .end_o, .starves_o(starves[0])
  );

  unisono_send_lane #(.DataBytes(DataBytes)) u_send_lane (
    .clk_i, .rst_ni,
    .job_valid_i(send_job_valid), .job_ready_o(send_job_ready), .job_i(send_job), .alone_i(!compute_holds),
    .command_valid_o(read_command_valid_o[2]), .command_ready_i(read_command_ready_i[2]),
    .command_address_o(read_command_address_o[2]), .command_bytes_o(read_command_bytes_o[2]),
    .read_valid_i(read_valid_i[2]), .read_ready_o(read_ready_o[2]), .read_data_i(read_data_i[2]),
    .read_keep_i(read_keep_i[2]), .read_last_i(read_last_i[2]), .read_error_i(read_error_i[2]),
    .transmit_valid_o(transmit_valid_o[1]), .transmit_ready_i(transmit_ready_i[1]), .transmit_o(transmit_o[1]),
    .transmit_serves_o(transmit_serves),
    .send_valid_o(send_valid_o[1]), .send_ready_i(send_ready_i[1]), .send_data_o(send_data_o[1]),
    .send_keep_o(send_keep_o[1]), .send_last_o(send_last_o[1]), .send_slot_o(send_slot_o[1]),
    .end_valid_o(send_end_valid_o), .end_ready_i(send_end_ready_i), .end_o(send_end_o), .starves_o(starves[1])
  );
  assign starves_o = |starves;

endmodule
