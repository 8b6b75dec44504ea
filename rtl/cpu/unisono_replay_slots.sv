// What of each slot's call is under way: a program that is given out, or one that is kept, in which entry, and how much
// of it; and which entries hold a program that is whole.
//
// An entry is known from the end of a program that is kept until another one, or a program of the host, takes its
// place, or all are forgotten. A program is not kept to its end if it is too long, its call fails or ends, or its entry
// is taken.
//
// Latency: what happens counts from the next cycle on. Throughput: one event of each kind per cycle.

module unisono_replay_slots
  import unisono_cpu_pkg::*;
#(
  parameter int unsigned Entries = 16,
  parameter int unsigned MoveCount = 32,
  parameter int unsigned MostMoves = 4096,
  parameter int unsigned ListCount = 64,
  parameter int unsigned ListWords = 1024,
  localparam int unsigned EntryWidth = $clog2(Entries),
  localparam int unsigned MovesWidth = $clog2(MostMoves + 1),
  localparam int unsigned ListWidth = $clog2(ListCount),
  localparam int unsigned IndexWidth = $clog2(MoveCount)
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  // A start has been looked at: its program is given out, or kept, or neither.
  input  logic                             settles_i,
  input  logic [SlotWidth-1:0]             start_slot_i,
  input  logic [EntryWidth-1:0]            start_entry_i,
  input  logic                             hit_i,
  input  logic                             keeps_i,

  // What the microcontroller makes; which of it is kept. Its call fails.
  input  logic                             move_i,
  input  logic [SlotWidth-1:0]             move_slot_i,
  input  logic                             move_end_i,
  input  logic                             list_i,
  input  logic [SlotWidth-1:0]             list_slot_i,
  input  logic [$clog2(ListWords)-1:0]     list_index_i,
  input  logic                             fail_i,
  input  logic [SlotWidth-1:0]             fail_slot_i,
  output logic                             keeps_move_o,
  output logic                             keeps_list_o,
  output logic                             keeps_length_o,

  // A step of a program has been given out, with so many moves in all; the program has ended.
  input  logic                             step_i,
  input  logic                             end_i,
  input  logic [SlotWidth-1:0]             play_slot_i,
  input  logic [MovesWidth-1:0]            play_count_i,

  // A call has ended; the host begins to load an entry; all programs are forgotten.
  input  logic                             clear_i,
  input  logic [SlotWidth-1:0]             clear_slot_i,
  input  logic                             load_i,
  input  logic [EntryWidth-1:0]            load_entry_i,
  input  logic                             forget_i,

  output logic [Slots-1:0]                 playing_o,
  output logic [Slots-1:0]                 recording_o,
  output logic [Slots-1:0][EntryWidth-1:0] entries_o,
  output logic [Slots-1:0][MovesWidth-1:0] counts_o,   // moves given out, or kept
  output logic [Slots-1:0][ListWidth:0]    lists_o,    // words of lists kept
  output logic [Entries-1:0]               known_o
);

  logic [Slots-1:0] playing_q, recording_q;
  logic [Slots-1:0][EntryWidth-1:0] entry_of_q;
  logic [Slots-1:0][MovesWidth-1:0] count_q;
  logic [Slots-1:0][ListWidth:0] lists_q;
  logic [Entries-1:0] known_q;

  logic lists, moves, too_long;
  assign lists          = list_i && recording_q[list_slot_i];
  assign moves          = move_i && recording_q[move_slot_i];
  assign too_long       = count_q[move_slot_i][IndexWidth];
  assign keeps_list_o   = lists && 32'(list_index_i) < ListCount;
  assign keeps_move_o   = moves && !move_end_i && !too_long;
  assign keeps_length_o = moves && move_end_i;

  always_ff @(posedge clk_i) begin
    if (moves) begin
      if (move_end_i) begin
        known_q[entry_of_q[move_slot_i]] <= 1'b1;
        recording_q[move_slot_i] <= 1'b0;
      end else if (too_long) begin
        recording_q[move_slot_i] <= 1'b0;
      end else begin
        count_q[move_slot_i] <= count_q[move_slot_i] + 1'b1;
      end
    end
    if (lists) begin
      if (keeps_list_o) lists_q[list_slot_i] <= (ListWidth + 1)'(list_index_i) + 1'b1;
      else recording_q[list_slot_i] <= 1'b0;
    end
    if (fail_i) recording_q[fail_slot_i] <= 1'b0;
    if (clear_i) begin
      recording_q[clear_slot_i] <= 1'b0;
      playing_q[clear_slot_i] <= 1'b0;
    end
    if (settles_i) begin
      entry_of_q[start_slot_i] <= start_entry_i;
      count_q[start_slot_i] <= '0;
      lists_q[start_slot_i] <= '0;
      playing_q[start_slot_i] <= hit_i;
      recording_q[start_slot_i] <= !hit_i && keeps_i;
      if (!hit_i && keeps_i) known_q[start_entry_i] <= 1'b0;
    end
    if (load_i) begin
      known_q[load_entry_i] <= 1'b0;
      for (int s = 0; s < int'(Slots); s++) begin
        if (entry_of_q[s] == load_entry_i) recording_q[s] <= 1'b0;
      end
    end
    if (end_i) playing_q[play_slot_i] <= 1'b0;
    if (step_i) count_q[play_slot_i] <= play_count_i;
    if (forget_i) begin
      known_q <= '0;
      recording_q <= '0;
    end
    if (!rst_ni) begin
      known_q <= '0;
      recording_q <= '0;
      playing_q <= '0;
    end
  end

  assign playing_o   = playing_q;
  assign recording_o = recording_q;
  assign entries_o   = entry_of_q;
  assign counts_o    = count_q;
  assign lists_o     = lists_q;
  assign known_o     = known_q;

endmodule
