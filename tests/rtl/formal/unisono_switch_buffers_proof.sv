// Proof of unisono_switch_buffers: no buffer is given that holds a message, each that is free can be given, and each
// message that is over is said to be so once.
//
// What it asks of its users: a buffer is taken when one is there; only what holds a message is freed, once; no more
// than 4 messages that are over at once wait. The proof looks at one buffer, any, and counts what is over for its
// entry.

module unisono_switch_buffers_proof
  import unisono_switch_pkg::*;
(
  input logic          clk_i,
  input logic          rst_ni,
  input unit_entry_t   watch_entry_i,
  input buffer_index_t watch_place_i,
  input logic          open_valid_i,
  input unit_entry_t   open_entry_i,
  input unit_entry_t   entry_i,
  input logic          take_i,
  input logic          bad_i,
  input buffer_index_t bad_place_i,
  input unit_entry_t   look_entry_i,
  input logic          pop_i,
  input logic          pop_holds_i,
  input buffer_index_t pop_place_i,
  input logic          read_i,
  input unit_entry_t   read_entry_i,
  input buffer_index_t read_place_i
);

  localparam int unsigned Waiting = 4;

  logic any, has_credit, freed_valid;
  buffer_index_t place;
  unit_entry_t freed_entry;

  unisono_switch_buffers u_dut (
    .clk_i, .rst_ni, .open_valid_i, .open_entry_i, .open_credits_i('0), .entry_i, .any_o(any), .place_o(place),
    .take_i, .bad_i, .bad_place_i, .returns_i(1'b0), .returned_i('0), .look_entry_i, .has_credit_o(has_credit),
    .take_credit_i(1'b0), .pop_i, .pop_holds_i, .pop_place_i, .read_i, .read_entry_i, .read_place_i,
    .freed_valid_o(freed_valid), .freed_entry_o(freed_entry)
  );

  logic started_q = 1'b0;
  unit_entry_t watch_entry_q;
  buffer_index_t watch_place_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    watch_entry_q <= watch_entry_i;
    watch_place_q <= watch_place_i;
  end
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end
  always_comb if (started_q) begin
    one_buffer: assume (rst_ni && watch_entry_i == watch_entry_q && watch_place_i == watch_place_q);
  end

  // The buffer: it is known once its entry has been opened.
  logic known_q, held_q, takes, bad, pops, reads, opens;
  logic [2:0] waiting_q, own_q;                    // messages that are over at once, and not said to be; of the entry
  assign opens = open_valid_i && open_entry_i == watch_entry_i;
  assign takes = take_i && entry_i == watch_entry_i && place == watch_place_i;
  assign bad   = bad_i && entry_i == watch_entry_i && bad_place_i == watch_place_i;
  assign pops  = pop_i && pop_holds_i && look_entry_i == watch_entry_i && pop_place_i == watch_place_i;
  assign reads = read_i && read_entry_i == watch_entry_i && read_place_i == watch_place_i;
  always_comb begin
    takes_what_is_there: assume (!take_i || any);
    frees_what_is_held: assume (!(bad || pops || reads) || (known_q && held_q));
    frees_once: assume (2'(bad) + 2'(pops) + 2'(reads) <= 2'd1);
    not_too_many: assume (!pop_i || 32'(waiting_q) < Waiting);
  end

  logic says;                                      // of one that was over at once
  assign says = freed_valid && !read_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      known_q <= 1'b0;
      held_q <= 1'b0;
      waiting_q <= '0;
      own_q <= '0;
    end else begin
      if (opens) known_q <= 1'b1;
      if (opens) held_q <= 1'b0;
      else if (takes) held_q <= 1'b1;
      else if (bad || pops || reads) held_q <= 1'b0;
      waiting_q <= waiting_q + 3'(pop_i) - 3'(says);
      own_q <= own_q + 3'(pop_i && look_entry_i == watch_entry_i) - 3'(says && freed_entry == watch_entry_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      if (known_q && entry_i == watch_entry_i && any && place == watch_place_i) not_given_twice: assert (!held_q);
      if (known_q && entry_i == watch_entry_i && !held_q) can_be_given: assert (any && place <= watch_place_i);
      if (read_i) read_is_said: assert (freed_valid && freed_entry == read_entry_i);
      if (says) over_is_said_once: assert (waiting_q != '0);
      if (says && freed_entry == watch_entry_i) of_its_entry: assert (own_q != '0);
      if (waiting_q == 3'(Waiting) && !read_i) said_at_last: assert (freed_valid);
    end
  end

endmodule
