// Proof of unisono_switch_slots: a turn is given exactly when all its children have come, once, in the order of turns;
// no contribution is lost, and none counts twice.
//
// Any slot of any entry may be watched. The proof keeps for it which children have come since it was opened, and
// whether it is given; for its entry, how many turns have been given and released.

module unisono_switch_slots_proof
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Entries  = 2,
  parameter int unsigned Slots    = 2,
  parameter int unsigned Children = 2,
  parameter int unsigned TurnBits = 2,
  localparam int unsigned EntryWidth = $clog2(Entries),
  localparam int unsigned SlotWidth = $clog2(Slots),
  localparam int unsigned ChildWidth = $clog2(Children),
  localparam int unsigned ShareWidth = $clog2(Children + 1)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic [EntryWidth-1:0] watch_entry_i,
  input logic [SlotWidth-1:0]  watch_slot_i,
  input logic [ShareWidth-1:0] watch_shares_i,
  input logic                  open_valid_i,
  input logic [EntryWidth-1:0] open_entry_i,
  input logic                  come_valid_i,
  input logic                  come_mark_i,
  input logic [EntryWidth-1:0] come_entry_i,
  input logic [TurnBits-1:0]   come_turn_i,
  input logic [ChildWidth-1:0] come_child_i,
  input logic [ShareWidth-1:0] come_shares_i,
  input logic                  give_ready_i,
  input logic                  release_valid_i,
  input logic [EntryWidth-1:0] release_entry_i
);

  logic                  open_ready, come_ready, answer_valid, answer_last, give_valid;
  slot_answer_e          answer;
  logic [EntryWidth-1:0] give_entry;
  logic [SlotWidth-1:0]  give_slot;

  unisono_switch_slots #(
    .Entries (Entries),
    .Slots   (Slots),
    .Children(Children),
    .TurnBits(TurnBits)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .open_valid_i,
    .open_ready_o  (open_ready),
    .open_entry_i,
    .come_valid_i,
    .come_ready_o  (come_ready),
    .come_mark_i,
    .come_entry_i,
    .come_turn_i,
    .come_child_i,
    .come_shares_i,
    .answer_valid_o(answer_valid),
    .answer_o      (answer),
    .answer_first_o(),
    .answer_last_o (answer_last),
    .give_valid_o  (give_valid),
    .give_ready_i,
    .give_entry_o  (give_entry),
    .give_slot_o   (give_slot),
    .release_valid_i,
    .release_entry_i
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  logic [EntryWidth-1:0] entry_q;
  logic [SlotWidth-1:0]  slot_q;
  logic [ShareWidth-1:0] shares_q;

  // Of each entry: turns that are offered or given and not released.
  logic [Entries-1:0][SlotWidth:0] given_q;
  // Of the watched entry: its oldest turn, and the next that is given.
  logic [TurnBits-1:0] oldest_q, next_q;
  logic                opening_q;        // it is being opened
  // Of the watched slot.
  logic [Children-1:0] came_q;
  logic                slot_given_q;

  // An offer begins; it is on offer until it is taken.
  logic offered_q, offer;
  assign offer = give_valid && !offered_q;

  logic [Children-1:0] all;
  for (genvar c = 0; c < Children; c++) begin : gen_all
    assign all[c] = ShareWidth'(c) < shares_q;
  end

  always_comb begin
    if (!started_q) begin
      reset_first: assume (!rst_ni);
    end else begin
      never_again: assume (rst_ni);
    end
    some_shares: assume (watch_shares_i != '0 && 32'(watch_shares_i) <= Children);
    if (started_q && come_entry_i == entry_q) same_shares: assume (come_shares_i == shares_q);
    children_fit: assume (32'(come_shares_i) <= Children && come_shares_i != '0);
    if (release_valid_i) release_of_given: assume (given_q[release_entry_i] != '0 &&
                                                   !(give_valid && give_entry == release_entry_i &&
                                                     given_q[release_entry_i] == (SlotWidth + 1)'(1)));
    if (open_valid_i) open_of_idle: assume (given_q[open_entry_i] == '0 &&
                                            !(give_valid && give_entry == open_entry_i));
  end

  // What comes, as the answer a cycle later must be.
  logic         comes_q, marks, contributes;
  logic         watched_q;
  slot_answer_e expected, expected_q;
  logic         expected_last_q;
  logic         in_window, known;

  assign known     = ShareWidth'(come_child_i) < shares_q;
  assign in_window = TurnBits'(come_turn_i - oldest_q) < TurnBits'(Slots);
  assign contributes = come_valid_i && come_ready && come_entry_i == entry_q;
  always_comb begin
    if (!known || !in_window) expected = SlotOutside;
    else if (came_q[come_child_i]) expected = SlotTwice;
    else expected = SlotFree;
  end
  assign marks = contributes && come_mark_i && come_turn_i[SlotWidth-1:0] == slot_q && expected == SlotFree;

  logic release_slot, opens, offers_slot;
  assign release_slot = release_valid_i && release_entry_i == entry_q && oldest_q[SlotWidth-1:0] == slot_q;
  assign opens        = open_valid_i && open_ready && open_entry_i == entry_q;
  assign offers_slot  = offer && give_entry == entry_q && give_slot == slot_q;

  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      entry_q  <= watch_entry_i;
      slot_q   <= watch_slot_i;
      shares_q <= watch_shares_i;
    end
    if (!rst_ni) begin
      given_q      <= '0;
      offered_q    <= 1'b0;
      oldest_q     <= '0;
      next_q       <= '0;
      came_q       <= '0;
      slot_given_q <= 1'b0;
      comes_q      <= 1'b0;
      opening_q    <= 1'b0;
    end else begin
      offered_q <= give_valid && !give_ready_i;
      for (int e = 0; e < int'(Entries); e++) begin
        given_q[e] <= given_q[e] + (SlotWidth + 1)'(offer && give_entry == EntryWidth'(e)) -
                      (SlotWidth + 1)'(release_valid_i && release_entry_i == EntryWidth'(e));
      end
      if (opens) oldest_q <= '0;
      else if (release_valid_i && release_entry_i == entry_q) oldest_q <= oldest_q + 1'b1;
      if (opens) next_q <= '0;
      else if (offer && give_entry == entry_q) next_q <= next_q + 1'b1;
      if (opens || release_slot) came_q <= '0;
      else if (marks) came_q[come_child_i] <= 1'b1;
      if (opens || release_slot) slot_given_q <= 1'b0;
      else if (offers_slot) slot_given_q <= 1'b1;
      comes_q <= contributes;
    end
    watched_q       <= come_turn_i[SlotWidth-1:0] == slot_q;
    expected_q      <= expected;
    expected_last_q <= marks && (came_q | (Children'(1) << come_child_i)) == all;
  end

  // How long a complete turn whose turn it is has not been offered, while offers are taken, and nobody has asked to
  // open an entry meanwhile.
  localparam int unsigned Longest = 3 * Entries + 5;
  logic [$clog2(Longest+1)-1:0] waits_q;
  logic                         due;
  assign due = came_q == all && !slot_given_q && next_q[SlotWidth-1:0] == slot_q && !offers_slot;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !due || open_valid_i) waits_q <= '0;
    else if (!(give_valid && !give_ready_i)) waits_q <= waits_q + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      if (comes_q) begin
        answered: assert (answer_valid);
        if (watched_q) right_answer: assert (answer == expected_q);
        if (expected_q == SlotOutside) outside: assert (answer == SlotOutside);
        if (watched_q) last_of_all: assert (answer_last == expected_last_q);
      end
      if (offer && give_entry == entry_q) begin
        in_order: assert (give_slot == next_q[SlotWidth-1:0]);
      end
      if (offers_slot) begin
        complete: assert (came_q == all);
        not_twice: assert (!slot_given_q);
      end
      if (slot_given_q) stays_complete: assert (came_q == all);
      none_lost: assert (32'(waits_q) < Longest);
    end
  end

endmodule
