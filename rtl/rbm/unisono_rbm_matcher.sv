// To which active call a message belongs: a collective's to the one of its communicator and sequence; a point-to-point
// message to the oldest receive of its communicator, source and tag that has none yet; what continues one that has
// begun on credit, to the receive that has this; a grant of one to the send of its sequence, unless all of it has been
// sent meanwhile. Writes come with a token instead.
//
// A call is active from the cycle in which it is said to be, until its clear has been asked for in the cycle before. A
// receive is *bound* when it has its message: then the next one of its key is the oldest, and grants for it carry the
// message's sequence.
//
// Latency: the match is there in the same cycle; what is compared besides, and the elder of a receive, one cycle later.
// Throughput: one message per cycle.

module unisono_rbm_matcher
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // The calls.
  input  logic [Calls-1:0] active_i,
  // Of a context the datatype counts elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  call_context_t    contexts_i [Calls],
  // verilator lint_on UNUSEDSIGNAL
  input  logic             partner_valid_i,          // a point-to-point call's move has come
  input  partner_t         partner_i,
  input  logic             clear_valid_i,            // the call in this slot is being cleared
  input  slot_t            clear_slot_i,
  input  logic             forgets_i,                // and is no more
  input  logic             sent_valid_i,             // all of a move's message has been sent
  input  slot_t            sent_slot_i,
  output logic [Calls-1:0] active_o,                 // and is not being cleared
  output logic [Calls-1:0] sends_o,                  // a point-to-point call that sends
  output logic [Calls-1:0] first_o,                  // a receive without message, the oldest of its key

  // The message at the head of Rx.
  input  message_t         message_i,
  output logic             match_valid_o,
  output slot_t            match_o,
  output logic [Calls-1:0] same_signature_o,         // by slot, one cycle later
  output logic [Calls-1:0] same_communicator_o,

  // The call of the pair under way: its receive is bound to the message at the head, or to an early one.
  input  slot_t            slot_i,
  input  logic             bind_i,
  input  logic             bind_early_i,             // counts one cycle later; slot_i stays meanwhile
  input  logic [31:0]      bind_sequence_i,          // of the early one
  input  logic             bind_opens_i,             // which goes on
  output slot_t            elder_o,                  // the oldest receive of its key, one cycle later
  output logic [31:0]      sequence_o                // of its message
);

  // A clear is not looked at before the next cycle.
  logic [Calls-1:0] clearing_q;
  always_ff @(posedge clk_i) clearing_q <= clear_valid_i ? Calls'(1) << clear_slot_i : '0;
  assign active_o = active_i & ~clearing_q;

  // A receive is known by communicator, source and tag.
  localparam int unsigned KeyWidth = CommunicatorWidth + RankWidth + 32;
  typedef logic [KeyWidth-1:0] receive_key_t;
  logic [Calls-1:0] bind_mask, sends_q, sending_q, unused_pending;
  receive_key_t receive_keys [Calls];
  logic [Calls-1:0] receives_before [Calls];
  rank_t partner_q [Calls];
  logic [31:0] message_sequence_q [Calls];
  logic [Calls-1:0] open_q;                          // its message has begun on credit and goes on
  logic adopt_binds_q, adopt_opens_q;
  logic [31:0] adopt_sequence_q;

  assign bind_mask = (bind_i || adopt_binds_q ? Calls'(1) << slot_i : '0) |
                     (forgets_i ? Calls'(1) << clear_slot_i : '0);
  unisono_turns #(.KeyWidth(KeyWidth)) u_receives (
    .clk_i, .rst_ni,
    .add_valid_i(partner_valid_i && !partner_i.sends), .add_slot_i(partner_i.slot),
    .add_key_i({contexts_i[partner_i.slot].communicator, partner_i.peer, contexts_i[partner_i.slot].tag}),
    .remove_i(bind_mask), .pending_o(unused_pending), .first_o, .key_o(receive_keys), .before_o(receives_before)
  );
  assign sends_o = sends_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sends_q <= '0;
      sending_q <= '0;
      open_q <= '0;
    end else begin
      if (bind_i || adopt_binds_q) open_q[slot_i] <= adopt_binds_q ? adopt_opens_q : message_i.opens;
      if (sent_valid_i) sending_q[sent_slot_i] <= 1'b0;
      if (partner_valid_i) sending_q[partner_i.slot] <= partner_i.sends;
      if (forgets_i) sends_q[clear_slot_i] <= 1'b0;
      if (forgets_i) open_q[clear_slot_i] <= 1'b0;
      if (partner_valid_i && partner_i.sends) sends_q[partner_i.slot] <= 1'b1;
    end
    if (partner_valid_i) partner_q[partner_i.slot] <= partner_i.peer;
  end
  always_ff @(posedge clk_i) begin
    if (bind_i || adopt_binds_q) begin
      message_sequence_q[slot_i] <= adopt_binds_q ? adopt_sequence_q : message_i.sequence_;
    end
  end
  always_ff @(posedge clk_i) begin
    adopt_binds_q <= rst_ni && bind_early_i;
    adopt_sequence_q <= bind_sequence_i;
    adopt_opens_q <= bind_opens_i;
  end
  assign sequence_o = message_sequence_q[slot_i];

  logic [Calls-1:0] match_of, same_signature_d, same_signature_q, same_communicator_d, same_communicator_q;
  for (genvar slot = 0; slot < int'(Calls); slot++) begin : gen_match
    logic same_sequence, same_message, same_key;
    assign same_communicator_d[slot] = contexts_i[slot].communicator == message_i.communicator;
    assign same_signature_d[slot] = contexts_i[slot].signature == message_i.signature;
    assign same_sequence = contexts_i[slot].sequence_ == message_i.sequence_;
    assign same_message = open_q[slot] && message_sequence_q[slot] == message_i.sequence_;
    assign same_key = receive_keys[slot] == {message_i.communicator, message_i.source, message_i.tag};
    assign match_of[slot] = active_o[slot] && contexts_i[slot].point_to_point == message_i.point_to_point &&
        same_communicator_d[slot] &&
        (!message_i.point_to_point ? same_sequence
         : message_i.grant ? sends_q[slot] && sending_q[slot] && same_sequence && partner_q[slot] == message_i.source
         : same_key && (message_i.continues ? same_message : first_o[slot]));
  end
  assign match_valid_o = match_of != '0;
  always_comb begin
    match_o = '0;
    for (int unsigned slot = 0; slot < Calls; slot++) if (match_of[slot]) match_o |= slot_t'(slot);
  end
  always_ff @(posedge clk_i) begin
    same_signature_q <= same_signature_d;
    same_communicator_q <= same_communicator_d;
  end
  assign same_signature_o = same_signature_q;
  assign same_communicator_o = same_communicator_q;

  // Of the receives with the key of the pair under way, the oldest.
  slot_t elder, elder_now_q;
  logic [Calls-1:0] elders;
  assign elders = first_o & receives_before[slot_i];
  always_comb begin
    elder = elders == '0 ? slot_i : '0;
    for (int unsigned slot = 0; slot < Calls; slot++) if (elders[slot]) elder |= slot_t'(slot);
  end
  always_ff @(posedge clk_i) elder_now_q <= elder;
  assign elder_o = elder_now_q;

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert ((match_of & (match_of - 1'b1)) == '0) else $error("a message matches two calls");
  end
  `endif

endmodule
