// The slots of a switch: which children have contributed to which turn of which communicator, and which turns are
// complete.
//
// A turn is one segment of one call; turns of a communicator's entry count from 0, modulo 2^TurnBits. Turn t uses slot
// t mod Slots. An entry has a window of Slots turns, from the oldest one that is not released. A contribution asks
// whether its child's place in the slot is free, before its data are written there, and marks it when they are. When
// all `shares` children of a turn have been marked, it is given to the fold: once, and the turns of an entry in their
// order. A release of an entry ends its oldest turn and opens the slot for the turn Slots later.
//
// Latency: an answer comes 1 cycle after its question; a turn is offered at most 5 cycles after its last mark, if no
// other one waits. Throughput: one question, mark or release per cycle; releases go first. A turn is given every second
// cycle, but not while somebody waits to open an entry.
// After reset, for Entries * Slots cycles, and for Slots cycles after an entry is opened, questions wait.
//
// Restrictions: a release is of an entry of which a turn has been given that is not released. An entry is opened only
// while none of its turns is offered or given. `shares` of an entry is the same until it is opened again.

module unisono_switch_slots
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Entries  = 64,  // communicators; a power of two, at least 2
  parameter int unsigned Slots    = 4,   // of each; a power of two, at least 2
  parameter int unsigned Children = 32,  // of a communicator, at most
  parameter int unsigned TurnBits = 16,
  localparam int unsigned EntryWidth = $clog2(Entries),
  localparam int unsigned SlotWidth = $clog2(Slots),
  localparam int unsigned ChildWidth = Children > 1 ? $clog2(Children) : 1,
  localparam int unsigned ShareWidth = $clog2(Children + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // An entry begins anew with turn 0.
  input  logic                  open_valid_i,
  output logic                  open_ready_o,
  input  logic [EntryWidth-1:0] open_entry_i,

  // Contributions.
  input  logic                  come_valid_i,
  output logic                  come_ready_o,
  input  logic                  come_mark_i,     // else it only asks
  input  logic [EntryWidth-1:0] come_entry_i,
  input  logic [TurnBits-1:0]   come_turn_i,
  input  logic [ChildWidth-1:0] come_child_i,
  input  logic [ShareWidth-1:0] come_shares_i,   // children of the entry

  output logic                  answer_valid_o,  // one cycle after a contribution was taken
  output slot_answer_e          answer_o,
  output logic                  answer_first_o,  // no child had come before
  output logic                  answer_last_o,   // with this mark all have come

  // Turns that are complete.
  output logic                  give_valid_o,
  input  logic                  give_ready_i,
  output logic [EntryWidth-1:0] give_entry_o,
  output logic [SlotWidth-1:0]  give_slot_o,

  input  logic                  release_valid_i, // always taken
  input  logic [EntryWidth-1:0] release_entry_i
);

  if (Entries < 2 || 2 ** EntryWidth != Entries) begin : gen_bad_entries
    $error("unisono_switch_slots: Entries must be a power of two, at least 2");
  end
  if (Slots < 2 || 2 ** SlotWidth != Slots || TurnBits <= SlotWidth) begin : gen_bad_slots
    $error("unisono_switch_slots: Slots must be a power of two, at least 2, and less than turns are told apart");
  end

  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [SlotWidth-1:0] slot_t;
  typedef logic [TurnBits-1:0] turn_t;
  typedef logic [Children-1:0] children_t;

  // ---------------------------------------------------------------- sweeps
  // After reset over all slots, after an opening over those of the entry.
  logic                            sweeping_q, sweep_all_q, sweep_last;
  logic [EntryWidth+SlotWidth-1:0] sweep_q;

  assign open_ready_o = !sweeping_q && !release_valid_i;
  assign sweep_last = sweep_q[SlotWidth-1:0] == '1 && (!sweep_all_q || sweep_q[SlotWidth+:EntryWidth] == '1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweeping_q  <= 1'b1;
      sweep_all_q <= 1'b1;
      sweep_q     <= '0;
    end else if (sweeping_q) begin
      // A release takes the cycle: after an opening, other entries go on.
      if (!release_valid_i) begin
        sweeping_q <= !sweep_last;
        sweep_q    <= sweep_q + 1'b1;
      end
    end else if (open_valid_i && open_ready_o) begin
      sweeping_q  <= 1'b1;
      sweep_all_q <= 1'b0;
      sweep_q     <= {open_entry_i, SlotWidth'(0)};
    end
  end

  // ---------------------------------------------------------------- the memories
  // One access per cycle: a release, a sweep's step, or a contribution.
  (* ram_style = "distributed" *) children_t came_q [Entries*Slots];
  (* ram_style = "distributed" *) turn_t oldest_q [Entries];   // turn of the window

  logic         take, sweep, known, fits, twice, mark;
  entry_t       entry;
  slot_t        slot;
  turn_t        oldest, ahead;
  children_t    came, own, all, lacks;

  assign come_ready_o = !sweeping_q && !release_valid_i && !open_valid_i;
  assign take  = come_valid_i && come_ready_o;
  assign sweep = sweeping_q && !release_valid_i;

  always_comb begin
    if (release_valid_i) entry = release_entry_i;
    else if (sweeping_q) entry = sweep_q[SlotWidth+:EntryWidth];
    else entry = come_entry_i;
  end
  assign oldest = oldest_q[entry];

  // A contribution.
  assign slot   = come_turn_i[SlotWidth-1:0];
  assign came   = came_q[{come_entry_i, slot}];
  assign ahead  = come_turn_i - oldest;
  assign known  = ShareWidth'(come_child_i) < come_shares_i;
  assign fits  = ahead < turn_t'(Slots) && known;
  for (genvar c = 0; c < int'(Children); c++) begin : gen_child
    assign own[c] = come_child_i == ChildWidth'(c);
    assign all[c] = ShareWidth'(c) < come_shares_i;
  end
  assign twice = (came & own) != '0;
  // Who comes twice changes nothing.
  assign mark  = take && come_mark_i && fits;
  assign lacks = ~(came | own) & all;

  logic [EntryWidth+SlotWidth-1:0] write_place;
  always_comb begin
    if (release_valid_i) write_place = {entry, oldest[SlotWidth-1:0]};
    else if (sweeping_q) write_place = sweep_q;
    else write_place = {come_entry_i, slot};
  end
  always_ff @(posedge clk_i) begin
    if (release_valid_i || sweep || mark) came_q[write_place] <= mark ? came | own : '0;
  end
  always_ff @(posedge clk_i) begin
    if (release_valid_i || sweep) oldest_q[entry] <= release_valid_i ? oldest + turn_t'(1) : '0;
  end

  // Whether a slot has become complete, and which, is known with the answer; who is lacking is looked at in parts
  // before.
  localparam int unsigned Parts = (Children + 7) / 8;
  logic [8*Parts-1:0] lacks_padded;
  logic [Parts-1:0]   lacks_q;
  logic               mark_q;
  entry_t             filled_entry_q;
  slot_t              filled_slot_q;

  always_ff @(posedge clk_i) begin
    answer_valid_o <= rst_ni && take;
    answer_first_o <= came == '0;
    mark_q         <= rst_ni && mark;
    for (int p = 0; p < int'(Parts); p++) lacks_q[p] <= lacks_padded[8*p+:8] != '0;
    filled_entry_q <= come_entry_i;
    filled_slot_q  <= slot;
    if (!fits) answer_o <= SlotOutside;
    else if (twice) answer_o <= SlotTwice;
    else answer_o <= SlotFree;
  end
  assign answer_last_o = mark_q && lacks_q == '0 && answer_o == SlotFree;
  assign lacks_padded = (8 * Parts)'(lacks);

  // ---------------------------------------------------------------- what is given
  logic [Entries-1:0][Slots-1:0] full_q;     // all have come, and it is not given
  logic [Entries-1:0][SlotWidth-1:0] next_q; // slot that is given next
  logic [Entries-1:0]            ready, ready_q, grant, pick_q;
  entry_t                        index, pick_index_q;
  logic                          pick, pick_valid_q, give;

  for (genvar e = 0; e < int'(Entries); e++) begin : gen_entry
    logic [Slots-1:0] set, clear;
    logic opens;
    always_comb begin
      set   = '0;
      clear = '0;
      if (answer_last_o && filled_entry_q == entry_t'(e)) set[filled_slot_q] = 1'b1;
      if (give && pick_q[e]) clear[next_q[e]] = 1'b1;
    end
    assign opens = open_valid_i && open_ready_o && open_entry_i == entry_t'(e);
    assign ready[e] = full_q[e][next_q[e]];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        full_q[e] <= '0;
        next_q[e] <= '0;
      end else if (opens) begin
        full_q[e] <= '0;
        next_q[e] <= '0;
      end else begin
        full_q[e] <= (full_q[e] | set) & ~clear;
        if (give && pick_q[e]) next_q[e] <= next_q[e] + slot_t'(1);
      end
    end
  end

  // An entry is picked by what was there a cycle before. Its turn is given only if it is there still: it may have been
  // given meanwhile, or its entry may be opened.
  unisono_round_robin #(
    .Requests(Entries)
  ) u_next (
    .clk_i,
    .rst_ni,
    .request_i(ready_q),
    .advance_i(pick),
    .grant_o  (grant),
    .index_o  (index)
  );

  assign pick = !pick_valid_q || !give_valid_o;
  assign give = pick_valid_q && !give_valid_o && (pick_q & ready) != '0 && !open_valid_i;

  always_ff @(posedge clk_i) begin
    ready_q <= ready;
    if (pick) begin
      pick_q       <= grant;
      pick_index_q <= index;
    end
    if (!rst_ni) begin
      pick_valid_q <= 1'b0;
      give_valid_o <= 1'b0;
    end else begin
      if (pick) pick_valid_q <= ready_q != '0;
      if (!give_valid_o) give_valid_o <= give;
      else if (give_ready_i) give_valid_o <= 1'b0;
    end
    if (give) begin
      give_entry_o <= pick_index_q;
      give_slot_o  <= next_q[pick_index_q];
    end
  end

`ifndef SYNTHESIS
  logic [Entries-1:0][SlotWidth:0] given_q;  // and not released
  always_ff @(posedge clk_i) begin
    for (int e = 0; e < int'(Entries); e++) begin
      if (!rst_ni) begin
        given_q[e] <= '0;
      end else begin
        given_q[e] <= given_q[e] + (SlotWidth + 1)'(give && pick_q[e]) -
                      (SlotWidth + 1)'(release_valid_i && release_entry_i == entry_t'(e));
        assert (32'(given_q[e]) <= Slots) else $error("%m: more turns are given than there are slots");
      end
    end
    if (rst_ni) begin
      assert (!release_valid_i || given_q[release_entry_i] != '0)
        else $error("%m: a release of an entry of which nothing is given");
      assert (!(open_valid_i && open_ready_o) || given_q[open_entry_i] == '0)
        else $error("%m: an entry is opened while a turn of it is given");
    end
  end
  unisono_handshake_check #(
    .Width(EntryWidth + SlotWidth)
  ) u_check_give (
    .clk_i,
    .rst_ni,
    .valid_i(give_valid_o),
    .ready_i(give_ready_i),
    .data_i ({give_entry_o, give_slot_o})
  );
`endif

endmodule
