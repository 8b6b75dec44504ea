// Proof of unisono_turns: calls with equal keys go first in the order in which they came.
//
// Any two calls may be watched. The proof keeps whether each is there, its key, and which of the two came
// before.

module unisono_turns_proof
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned KeyWidth = 2
) (
  input logic                clk_i,
  input logic                rst_ni,
  input slot_t               watch_a_i,
  input slot_t               watch_b_i,
  input logic                add_valid_i,
  input slot_t               add_slot_i,
  input logic [KeyWidth-1:0] add_key_i,
  input logic [Calls-1:0]    remove_i
);

  logic [Calls-1:0] pending, first;
  logic [KeyWidth-1:0] key [Calls];

  unisono_turns #(
    .KeyWidth(KeyWidth)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .add_valid_i,
    .add_slot_i,
    .add_key_i,
    .remove_i,
    .pending_o(pending),
    .first_o  (first),
    .key_o    (key),
    .before_o ()
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb begin
    if (!started_q) begin
      reset_first: assume (!rst_ni);
      two_calls: assume (watch_a_i != watch_b_i);
    end
  end

  slot_t a_q, b_q;
  logic a_there_q, b_there_q, a_before_q, b_before_q;
  logic [KeyWidth-1:0] a_key_q, b_key_q;
  logic add_a, add_b;
  assign add_a = add_valid_i && add_slot_i == a_q;
  assign add_b = add_valid_i && add_slot_i == b_q;

  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      a_q <= watch_a_i;
      b_q <= watch_b_i;
    end
    if (!rst_ni) begin
      a_there_q <= 1'b0;
      b_there_q <= 1'b0;
      a_before_q <= 1'b0;
      b_before_q <= 1'b0;
    end else begin
      a_there_q <= add_a || (a_there_q && !remove_i[a_q]);
      b_there_q <= add_b || (b_there_q && !remove_i[b_q]);
      if (add_a) a_key_q <= add_key_i;
      if (add_b) b_key_q <= add_key_i;
      // Which came before, of those that are there.
      a_before_q <= add_b ? a_there_q && !remove_i[a_q] : a_before_q && !add_a && !remove_i[a_q];
      b_before_q <= add_a ? b_there_q && !remove_i[b_q] : b_before_q && !add_b && !remove_i[b_q];
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      there: assert (pending[a_q] == a_there_q);
      if (a_there_q) key_kept: assert (key[a_q] == a_key_q);
      only_those_there: assert ((first & ~pending) == '0);
      if (a_there_q && b_there_q && a_key_q == b_key_q) begin
        not_both: assert (!(first[a_q] && first[b_q]));
        if (a_before_q) in_order: assert (!first[b_q]);
      end
      // The only one there waits for nobody.
      if (pending == Calls'(1) << a_q) alone_is_first: assert (first[a_q]);
    end
  end

endmodule
