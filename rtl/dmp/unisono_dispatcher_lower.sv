// Makes the run of a move that issues: regions become addresses, a list's first peer is found, places are compared with
// what is bound, and a short message asks for credit meanwhile.
//
// Where the regions of op0, op1 and the local result stand is asked for one after the other, in Bind0, Bind1 and the
// last step before Decode; each answer is compared when it comes. Of a peer's window the binding says only what the
// call adds to places in it; where a put or get ends there is found in two cycles more.
//
// A short message that follows no other move, from memory or of elements that a kernel has given, can want nothing but
// credit: it asks in Bind0. (Credit that waits for anything but space could be what that needs.) Nothing else can take
// the elements, so with credit it goes on to space. So does the first segment of a long message that begins on credit.
//
// Latency: from Bind0 to the run in Decode 2 cycles, 3 where op1 or the local result is in memory; Decode lasts while
// ready_o is low. Throughput: one move at a time.

module unisono_dispatcher_lower
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_look_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  step_e       step_i,
  input  logic        issue_valid_i,           // a move is taken: in the next cycle it is in Bind0
  input  generation_t issue_generation_i,
  // From Bind0 on. What only receives and posts of it use is of others.
  // verilator lint_off UNUSEDSIGNAL
  input  given_t      given_i,
  input  communicator_entry_t communicator_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic        point_to_point_i,

  // Where a region stands, one cycle after the question.
  output region_e  region_o,
  output logic     region_asks_o,
  input  binding_t binding_i,

  // In Bind0: whether anything but credit is in the way, and the question about credit.
  output message_bytes_t bytes_o,
  input  logic           free_i,               // no producer, nothing before it, its elements are there
  output logic           credit_take_o,
  output logic           credit_keep_o,        // some is left to others
  input  logic           credit_ready_i,
  input  logic           credit_answer_i,
  input  logic           credit_granted_i,

  // In Bind1: another region is asked for.
  output logic     binds_o,
  // In Decode: nothing is on its way that the run needs.
  output logic     ready_o,
  output lowered_t lowered_o
);

  // verilator lint_off UNUSEDSIGNAL
  move_t move;
  // verilator lint_on UNUSEDSIGNAL
  run_t run;
  logic puts, gets, is_move, exists, exists_q;
  message_bytes_t move_bytes, move_bytes_q;    // the second from Bind1 on
  rank_t move_peer, move_peer_q;               // the lowest of its list, as well
  logic unused_any;
  logic [Ranks-1:0] unused_one;

  assign move = given_i.move;
  assign puts = move.remote.kind == RemoteKindMemory;
  assign gets = move.op1.kind == OperandKindRemoteMemory;
  assign is_move = move.kind == MoveKindMove;
  assign exists = is_move && (move.count != '0 || move.signal);
  assign bytes_o = move_bytes;

  // Elements have 1, 2, 4, 8 or 16 bytes.
  always_comb begin
    case (datatype_bytes(move.dtype))
      32'd2: move_bytes = {7'b0, move.count, 1'b0};
      32'd4: move_bytes = {6'b0, move.count, 2'b0};
      32'd8: move_bytes = {5'b0, move.count, 3'b0};
      32'd16: move_bytes = {4'b0, move.count, 4'b0};
      default: move_bytes = {8'b0, move.count};
    endcase
  end

  unisono_lowest_one #(.Width(Ranks)) u_move_peer (
    .bits_i(given_i.peers), .any_o(unused_any), .index_o(move_peer), .one_o(unused_one)
  );
  always_ff @(posedge clk_i) begin
    move_bytes_q <= move_bytes;
    move_peer_q <= move_peer;
    exists_q <= exists;
  end

  // ---------------------------------------------------------------------------------------------- regions

  assign region_o = step_i == StepBind0 ? move.op0.region
                    : step_i == StepBind1 ? (puts || gets ? RegionWindow : move.op1.region) : move.local_.region;
  assign region_asks_o = step_i == StepBind0 || step_i == StepBind1 || step_i == StepBind2 || step_i == StepDecode;
  assign binds_o = move.op1.kind == OperandKindMemory || move.local_.kind == OperandKindMemory || puts || gets;

  logic op0_beyond_q, op1_beyond_q, beyond_windows_q, outside;
  logic [47:0] op1_offset;
  logic [48:0] op0_end, op1_end, local_end_q;  // that of the local result comes last, and has its end ready
  logic [1:0] decoding_q;
  address_t op0_address_q, op1_address_q;
  logic [15:0] window_end_q;                   // what of it is beyond
  generation_t generation_q;

  assign op1_offset = puts || gets ? move.remote_address.offset : move.op1.offset;
  assign op0_end = {1'b0, move.op0.offset} + {1'b0, move_bytes_q};
  assign op1_end = {1'b0, move.op1.offset} + {1'b0, move_bytes_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      op0_address_q <= '0;
      op1_address_q <= '0;
      op0_beyond_q <= 1'b0;
      op1_beyond_q <= 1'b0;
      generation_q <= '0;
    end else begin
      if (issue_valid_i) generation_q <= issue_generation_i;
      if (step_i == StepBind1) begin
        op0_address_q <= binding_i.address;
        op0_beyond_q <= move.op0.kind == OperandKindMemory && op0_end > {1'b0, binding_i.bytes};
        op1_beyond_q <= 1'b0;
      end
      if (step_i == StepBind2) begin
        op1_address_q <= binding_i.address;
        op1_beyond_q <= move.op1.kind == OperandKindMemory && op1_end > {1'b0, binding_i.bytes};
      end
    end
  end
  // Places in a window have 48 bits.
  always_ff @(posedge clk_i) begin
    window_end_q <= 16'((run.op1_address + address_t'(move_bytes_q)) >> 48);
    beyond_windows_q <= window_end_q != '0;
    decoding_q <= step_i == StepDecode ? {decoding_q[0], 1'b1} : 2'b0;
    local_end_q <= {1'b0, move.local_.offset} + {1'b0, move_bytes_q};
  end
  assign outside = op0_beyond_q || op1_beyond_q ||
                   (move.local_.kind == OperandKindMemory && local_end_q > {1'b0, binding_i.bytes}) ||
                   ((puts || gets) && beyond_windows_q);

  // ----------------------------------------------------------------------------------------------- credit

  logic with_switch;
  logic is_short, opens;                       // it may begin on credit
  logic early, early_asked_q, early_credited_d, early_credited_q;
  assign is_short = move_bytes <= message_bytes_t'(communicator_i.eager_limit);
  // Of elements in memory only: those of a kernel may be late, and whatever comes behind would wait.
  assign opens = communicator_i.opens && point_to_point_i && !with_switch && !given_i.source.used;
  assign early = exists && move.remote.kind == RemoteKindMessage && move.remote.mode == PeerModeRank &&
                 move.op1.kind != OperandKindArrival && !given_i.sink.used && move.protocol != ProtocolRendezvous &&
                 (is_short || opens) && free_i;
  assign credit_take_o = step_i == StepBind0 && early;
  assign credit_keep_o = step_i == StepBind0 && !is_short;
  assign early_credited_d = step_i != StepBind0 &&
                            (early_credited_q || (early_asked_q && credit_answer_i && credit_granted_i));
  assign ready_o = !(early_asked_q && !credit_answer_i) && !((puts || gets) && !decoding_q[1]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      early_asked_q <= 1'b0;
      early_credited_q <= 1'b0;
    end else begin
      early_asked_q <= step_i == StepBind0 ? early && credit_ready_i : early_asked_q && !credit_answer_i;
      early_credited_q <= early_credited_d;
    end
  end

  // ---------------------------------------------------------------------------------------------- segments

  // Only messages among members are cut by their length. Ranks behind the members are switches.
  logic is_switch, is_message, short_q, opens_q, whole_q;
  logic [RankWidth:0] other;
  segment_bytes_t segment, segment_q;

  assign other = {1'b0, move.remote.kind == RemoteKindMessage ? rank_t'(move.remote.peer) : rank_t'(move.arrival.peer)};
  assign is_switch = communicator_i.members != '0 && other >= communicator_i.members;
  assign with_switch = is_switch && (move.remote.kind == RemoteKindMessage ? move.remote.mode == PeerModeRank
                                                                          : move.arrival.mode == PeerModeRank);
  assign is_message = move.remote.kind == RemoteKindMessage || move.op1.kind == OperandKindArrival;
  always_ff @(posedge clk_i) begin
    whole_q <= !is_message || with_switch;
    short_q <= is_short;
    opens_q <= opens;
  end

  unisono_message_segment u_segment (
    .bytes_i(move_bytes_q), .eager_limit_i(communicator_i.eager_limit), .segment_bytes_i(communicator_i.segment_bytes),
    .whole_i(whole_q), .segment_o(segment)
  );
  always_ff @(posedge clk_i) segment_q <= segment;

  // -------------------------------------------------------------------------------------------------- run

  always_comb begin
    run.generation = generation_q;
    run.func = move.func;
    run.dtype = move.dtype;
    run.swap = move.swap;
    run.op0 = move.op0.kind == OperandKindMemory || given_i.source.used;
    run.op0_use = given_i.source;
    run.op0_address = given_i.source.used ? address_t'(given_i.source.port)
                                          : op0_address_q + address_t'(move.op0.offset);
    run.op1_memory = move.op1.kind == OperandKindMemory;
    run.op1_address = op1_address_q + address_t'(op1_offset);
    run.arrival = move.op1.kind == OperandKindArrival;
    run.fan_in = run.arrival && move.arrival.mode != PeerModeRank;
    run.pool = pool_index_t'(move.arrival.peer);
    run.source = rank_t'(move.arrival.peer);
    run.local_ = move.local_.kind == OperandKindMemory || given_i.sink.used;
    run.local_use = given_i.sink;
    run.local_address = given_i.sink.used ? address_t'(given_i.sink.port)
                                          : binding_i.address + address_t'(move.local_.offset);
    run.put = puts;
    run.get = gets;
    run.send = move.remote.kind == RemoteKindMessage || puts;
    run.eager = move.protocol != ProtocolRendezvous && short_q;
    run.fan_out = run.send && move.remote.mode != PeerModeRank;
    run.opens = opens_q && move.remote.kind == RemoteKindMessage && !run.fan_out && !run.arrival &&
                !given_i.sink.used && move.protocol != ProtocolRendezvous && !short_q;
    run.peer = run.fan_out ? move_peer_q : rank_t'(gets ? move.arrival.peer : move.remote.peer);
    run.tag = move.remote.tag;
    run.bytes = move_bytes_q;
    run.segment = segment_q;
  end

  assign lowered_o = '{run: run, exists: exists_q, outside: outside, credited: early_credited_d, peer: move_peer_q,
                       one_piece: move_bytes_q <= message_bytes_t'(communicator_i.segment_bytes)};

endmodule
