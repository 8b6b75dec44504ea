// Whose turn it is: of the active calls with equal keys, the one that came first.
//
// Point-to-point messages of a pair are announced, and receives of one key are matched, in the order in which their
// calls came. A call is added with its key; it is first when no call with the same key that was added before it is
// still there.
//
// Latency: 1 cycle. Throughput: one added per cycle, any number removed. A call that is removed and added in one
// cycle is there.

module unisono_turns
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned KeyWidth = 8
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic                add_valid_i,
  input  slot_t               add_slot_i,
  input  logic [KeyWidth-1:0] add_key_i,
  input  logic [Calls-1:0]    remove_i,

  output logic [Calls-1:0]    pending_o,
  output logic [Calls-1:0]    first_o,
  output logic [KeyWidth-1:0] key_o [Calls],
  output logic [Calls-1:0]    before_o [Calls]   // for each call, those of its key before it
);

  logic [Calls-1:0] pending_q, add;
  logic [Calls-1:0] waits_q [Calls];            // for each call, those before it
  logic [KeyWidth-1:0] key_q [Calls];
  logic [Calls-1:0] same;

  for (genvar s = 0; s < int'(Calls); s++) begin : gen_call
    assign add[s] = add_valid_i && add_slot_i == slot_t'(s);
    assign same[s] = pending_q[s] && !remove_i[s] && !add[s] && key_q[s] == add_key_i;
    assign first_o[s] = pending_q[s] && waits_q[s] == '0;
    assign key_o[s] = key_q[s];
    assign before_o[s] = waits_q[s];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        pending_q[s] <= 1'b0;
        waits_q[s] <= '0;
      end else if (add[s]) begin
        pending_q[s] <= 1'b1;
        waits_q[s] <= same;
      end else begin
        if (remove_i[s]) pending_q[s] <= 1'b0;
        waits_q[s] <= waits_q[s] & ~remove_i & ~add;
      end
      if (add[s]) key_q[s] <= add_key_i;
    end
  end
  assign pending_o = pending_q;

endmodule
