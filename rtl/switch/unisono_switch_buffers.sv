// Buffers for short messages of a port's neighbour, EagerBuffers of each communicator, and the credit that this switch
// has with the neighbour.
//
// A buffer is taken by a message with data. It is free when the last of them has been given to the fold, or at once
// when the message is over and nothing of it is read; then, as for a message without data, a buffer of the neighbour's
// is said to be free again. A message that proved bad gives its buffer back, and no credit.
//
// Latency: what is taken or freed counts from the next cycle on. Throughput: one of each per cycle. Restrictions: at
// most 4 messages are over at once in 16 cycles, for what reads free goes first.

module unisono_switch_buffers
  import unisono_switch_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,
  input  logic          open_valid_i,              // all are free, and so much credit is there
  input  unit_entry_t   open_entry_i,
  input  logic [15:0]   open_credits_i,

  // A message has come: a free buffer, if there is one; that, or another free one, is taken, or one is given back; credit
  // comes with the message.
  input  unit_entry_t   entry_i,
  output logic          any_o,
  output buffer_index_t place_o,
  input  logic          take_i,
  input  buffer_index_t take_place_i,
  input  logic          bad_i,
  input  buffer_index_t bad_place_i,
  input  logic          returns_i,
  input  logic [15:0]   returned_i,

  // The control: the entry it looks at has credit; it is taken; a message is over at once, with data or without.
  input  unit_entry_t   look_entry_i,
  output logic          has_credit_o,
  input  logic          take_credit_i,
  input  logic          pop_i,
  input  logic          pop_holds_i,
  input  buffer_index_t pop_place_i,

  // A message has been given to the fold.
  input  logic          read_i,
  input  unit_entry_t   read_entry_i,
  input  buffer_index_t read_place_i,

  output logic          freed_valid_o,
  output unit_entry_t   freed_entry_o
);

  logic [UnitEntries-1:0][EagerBuffers-1:0] free_q, free_set, free_clear;
  logic [UnitEntries-1:0][16:0] credit_q;

  logic [EagerBuffers-1:0] my_free;
  assign my_free = free_q[entry_i];
  assign any_o   = my_free != '0;
  always_comb begin
    place_o = '0;
    for (int b = int'(EagerBuffers) - 1; b >= 0; b--) if (my_free[b]) place_o = buffer_index_t'(b);
  end

  // What is over at once waits while words that are given free others: in the 16 cycles in which reads that are there
  // may end, one after the other, control pops 4 times at most.
  logic popped, popped_room;
  unit_entry_t popped_entry;
  unisono_fifo #(.Width(UnitEntryWidth), .Depth(4)) u_popped (
    .clk_i, .rst_ni, .in_valid_i(pop_i), .in_ready_o(popped_room), .in_data_i(look_entry_i), .out_valid_o(popped),
    .out_ready_i(!read_i), .out_data_o(popped_entry),
    // verilator lint_off PINCONNECTEMPTY
    .count_o()
    // verilator lint_on PINCONNECTEMPTY
  );
  assign freed_valid_o = read_i || popped;
  assign freed_entry_o = read_i ? read_entry_i : popped_entry;

  always_comb begin
    free_set   = '0;
    free_clear = '0;
    if (read_i) free_set[read_entry_i][read_place_i] = 1'b1;
    if (pop_i && pop_holds_i) free_set[look_entry_i][pop_place_i] = 1'b1;
    if (take_i) free_clear[entry_i][take_place_i] = 1'b1;
    if (bad_i) free_set[entry_i][bad_place_i] = 1'b1;
  end
  for (genvar e = 0; e < int'(UnitEntries); e++) begin : gen_entry
    logic opens, returns, takes;
    assign opens   = open_valid_i && open_entry_i == unit_entry_t'(e);
    assign returns = returns_i && entry_i == unit_entry_t'(e);
    assign takes   = take_credit_i && look_entry_i == unit_entry_t'(e);
    always_ff @(posedge clk_i) begin
      if (opens) begin
        free_q[e]   <= '1;
        credit_q[e] <= 17'(open_credits_i);
      end else begin
        free_q[e]   <= (free_q[e] | free_set[e]) & ~free_clear[e];
        credit_q[e] <= credit_q[e] + (returns ? 17'(returned_i) : '0) - 17'(takes);
      end
    end
  end
  always_ff @(posedge clk_i) has_credit_o <= credit_q[look_entry_i] != '0;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((free_set & free_q) == '0) else $error("%m: a buffer is freed that is free");
      assert (!take_i || my_free[take_place_i]) else $error("%m: a buffer is taken that is not free");
      assert (!pop_i || popped_room) else $error("%m: messages are popped faster than their credit goes back");
    end
  end
`endif

endmodule
