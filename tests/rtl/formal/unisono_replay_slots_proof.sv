// Proof of unisono_replay_slots: a program is kept by one slot alone, in an entry from which nothing is given out, and
// nobody takes it for whole before its end.
//
// What it asks of its users: a start's slot has nothing under way; a program is kept only where none is kept or given
// out, and given out only from an entry with a whole one; an entry is loaded only while none of its programs is given
// out, and not when its program is about to be given out.

module unisono_replay_slots_proof
  import unisono_cpu_pkg::*;
#(
  parameter int unsigned Entries = 4,
  localparam int unsigned EntryWidth = $clog2(Entries)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  settles_i,
  input logic [SlotWidth-1:0]  start_slot_i,
  input logic [EntryWidth-1:0] start_entry_i,
  input logic                  hit_i,
  input logic                  keeps_i,
  input logic                  move_i,
  input logic [SlotWidth-1:0]  move_slot_i,
  input logic                  move_end_i,
  input logic                  list_i,
  input logic [SlotWidth-1:0]  list_slot_i,
  input logic [9:0]            list_index_i,
  input logic                  fail_i,
  input logic [SlotWidth-1:0]  fail_slot_i,
  input logic                  step_i,
  input logic                  end_i,
  input logic [SlotWidth-1:0]  play_slot_i,
  input logic [12:0]           play_count_i,
  input logic                  clear_i,
  input logic [SlotWidth-1:0]  clear_slot_i,
  input logic                  load_i,
  input logic [EntryWidth-1:0] load_entry_i,
  input logic                  forget_i
);

  logic keeps_move, keeps_list, keeps_length;
  logic [Slots-1:0] playing, recording;
  logic [Slots-1:0][EntryWidth-1:0] entries;
  logic [Slots-1:0][12:0] counts;
  logic [Slots-1:0][6:0] lists;
  logic [Entries-1:0] known;

  unisono_replay_slots #(.Entries(Entries)) u_dut (
    .clk_i, .rst_ni, .settles_i, .start_slot_i, .start_entry_i, .hit_i, .keeps_i, .move_i, .move_slot_i, .move_end_i,
    .list_i, .list_slot_i, .list_index_i, .fail_i, .fail_slot_i, .keeps_move_o(keeps_move), .keeps_list_o(keeps_list),
    .keeps_length_o(keeps_length), .step_i, .end_i, .play_slot_i, .play_count_i, .clear_i, .clear_slot_i, .load_i,
    .load_entry_i, .forget_i, .playing_o(playing), .recording_o(recording), .entries_o(entries), .counts_o(counts),
    .lists_o(lists), .known_o(known)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  logic used, kept, loading;                       // the start's entry; the loaded one, from which is given out
  always_comb begin
    used = 1'b0;
    kept = 1'b0;
    loading = 1'b0;
    for (int s = 0; s < int'(Slots); s++) begin
      used |= (playing[s] || recording[s]) && entries[s] == start_entry_i;
      kept |= recording[s] && entries[s] == start_entry_i;
      loading |= playing[s] && entries[s] == load_entry_i;
    end
  end
  always_comb begin
    starts_afresh: assume (!settles_i || (!playing[start_slot_i] && !recording[start_slot_i]));
    keeps_where_room_is: assume (!(settles_i && keeps_i && !hit_i) || !used);
    gives_out_what_is_whole: assume (!(settles_i && hit_i) || (known[start_entry_i] && !kept));
    loads_what_rests: assume (!load_i || !loading);
    one_at_a_time: assume (!(load_i && settles_i && start_entry_i == load_entry_i));
  end

  logic [Slots-1:0] known_early, shared;           // of slots that keep
  always_comb begin
    known_early = '0;
    shared = '0;
    for (int s = 0; s < int'(Slots); s++) begin
      known_early[s] = recording[s] && known[entries[s]];
      for (int o = 0; o < int'(Slots); o++) begin
        if (o != s && recording[s] && entries[o] == entries[s] && (recording[o] || playing[o])) shared[s] = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      not_whole_before_its_end: assert (known_early == '0);
      kept_or_given_out: assert ((recording & playing) == '0);
      by_one_alone: assert (shared == '0);
      if (keeps_move || keeps_length) keeps_what_is_kept: assert (move_i && recording[move_slot_i]);
      if (keeps_list) keeps_its_lists: assert (list_i && recording[list_slot_i]);
    end
  end

endmodule
