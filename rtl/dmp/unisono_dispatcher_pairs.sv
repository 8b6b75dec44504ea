// What the dispatcher knows of a call's slot and a peer: which move sends to it now, and what the peer has granted.
//
// A grant is of the message that is sent now, or of the next one, which may be granted before this one has ended. The
// two differ in the lowest bit of their generation, by which they are kept. A grant that comes again raises the limit.
// If both are there, the one that came first is of the message that is sent now.
//
// What is known by pair stands in LUT memory, and a count for each slot says whether anything is there, so that a call
// that has sent everything is cleared at once.
//
// Latency: who sends, and whether a grant is there, in the cycle of the question, of what came before it; the grant
// itself one cycle later; the slots' counts two cycles later. Throughput: one of each per cycle. Restrictions: a reset
// leaves the memories as they are. Until they have been swept (every pair ended, with both its grants, while sweeps_i)
// no grant comes and no message begins.

module unisono_dispatcher_pairs
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_look_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // The pair that the look is about, in its slot.
  input  pair_t       pair_i,
  output logic        sends_o,                      // a message has begun and not ended
  output entry_t      sender_o,                     // of which move
  output logic        granted_o,                    // there is a grant for the message that is sent now
  output logic        parity_o,                     // the lowest bit of its generation
  output grant_t      grant_o,                      // one cycle later
  input  logic        ends_i,                       // the message ends here
  input  logic [1:0]  forget_i,                     // the grants of these parities are no more

  // A message begins: of the look's slot, and not for the pair above, which may end its own in this cycle.
  input  logic        begin_valid_i,
  input  pair_t       begin_pair_i,
  input  entry_t      begin_entry_i,

  // Another pair that is asked about.
  input  pair_t       kick_pair_i,
  output logic        kick_sends_o,
  output entry_t      kick_sender_o,

  // A grant has come, or more has been granted.
  input  logic        grant_valid_i,
  input  pair_t       grant_pair_i,
  input  grant_t      grant_i,

  input  logic             sweeps_i,
  output logic [Calls-1:0] holds_o                  // a slot has messages that have not ended, or grants
);

  // ------------------------------------------------------------------------------------------------ senders

  (* ram_style = "distributed" *) entry_t sender_q [Pairs];
  logic sender_there;

  always_ff @(posedge clk_i) begin
    if (begin_valid_i) sender_q[begin_pair_i] <= begin_entry_i;
  end
  assign sender_o = sender_q[pair_i];
  assign kick_sender_o = sender_q[kick_pair_i];

  unisono_flags #(.Depth(Pairs)) u_sends (
    .clk_i, .raise_valid_i(begin_valid_i), .raise_index_i(begin_pair_i), .raise_bit_o(sender_there),
    .lower_valid_i(ends_i), .lower_index_i(pair_i), .lower_bit_o(sends_o),
    .read_index_i(kick_pair_i), .read_bit_o(kick_sends_o)
  );

  // ------------------------------------------------------------------------------------------------- grants

  (* ram_style = "distributed" *) logic first_q [Pairs];
  logic [1:0] grant_comes, grant_known, grant_there, unused_read_bit;

  for (genvar g = 0; g < 2; g++) begin : gen_granted
    assign grant_comes[g] = grant_valid_i && grant_i.generation[0] == 1'(g);
    unisono_flags #(.Depth(Pairs)) u_granted (
      .clk_i, .raise_valid_i(grant_comes[g]), .raise_index_i(grant_pair_i), .raise_bit_o(grant_known[g]),
      .lower_valid_i(forget_i[g]), .lower_index_i(pair_i), .lower_bit_o(grant_there[g]),
      .read_index_i(pair_i), .read_bit_o(unused_read_bit[g])
    );
  end
  // Which came first: the parity of the other one, when a second one comes.
  always_ff @(posedge clk_i) begin
    if (|(grant_comes & ~grant_known)) first_q[grant_pair_i] <= grant_i.generation[0] ^ |grant_known;
  end
  assign granted_o = |grant_there;
  assign parity_o = &grant_there ? first_q[pair_i] : grant_there[1];

  unisono_ram_sdp #(.Width($bits(grant_t)), .Depth(2 * Pairs)) u_grants (
    .clk_i, .wr_en_i(grant_valid_i), .wr_addr_i({grant_pair_i, grant_i.generation[0]}), .wr_data_i(grant_i),
    .rd_en_i(1'b1), .rd_addr_i({pair_i, parity_o}), .rd_out_en_i(1'b1), .rd_data_o(grant_o)
  );

  // ------------------------------------------------------------------------------------------------- counts
  // A pair has at most a message and two grants.

  localparam int unsigned HeldWidth = RankWidth + 2;
  logic [Calls-1:0][HeldWidth-1:0] held_q;
  logic more_sends_q, less_sends_q, more_grants_q, swept_q;
  logic [1:0] less_grants_q;
  slot_t own_slot_q, grant_slot_q;

  always_ff @(posedge clk_i) begin
    more_sends_q <= begin_valid_i;
    less_sends_q <= ends_i;
    more_grants_q <= |(grant_comes & ~grant_known);
    less_grants_q <= forget_i & grant_there;
    swept_q <= sweeps_i;
    own_slot_q <= pair_i.slot;
    grant_slot_q <= grant_pair_i.slot;
  end
  for (genvar s = 0; s < int'(Calls); s++) begin : gen_held
    logic own;
    logic [1:0] more, less;
    assign own = own_slot_q == slot_t'(s);
    assign more = 2'(own && more_sends_q) + 2'(grant_slot_q == slot_t'(s) && more_grants_q);
    assign less = own ? 2'(less_sends_q) + 2'(less_grants_q[0]) + 2'(less_grants_q[1]) : 2'd0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || sweeps_i || swept_q) held_q[s] <= '0;
      else held_q[s] <= held_q[s] + HeldWidth'(more) - HeldWidth'(less);
    end
    assign holds_o[s] = held_q[s] != '0;
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && !sweeps_i) begin
      assert (!begin_valid_i || begin_pair_i.slot == pair_i.slot) else $error("a message of another slot begins");
      assert (!begin_valid_i || !sender_there) else $error("a second move of a pair sends");
      assert (!ends_i || sends_o) else $error("a message that was not begun has ended");
    end
  end
  `endif

endmodule
