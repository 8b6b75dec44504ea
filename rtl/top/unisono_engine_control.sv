// Grants of the core, and messages about credits, puts and gets, share the way out: they take turns. What waits for
// space keeps its place, whatever else comes meanwhile.
//
// Latency: 1 cycle. Throughput: a message per cycle.

// verilator lint_off PINCONNECTEMPTY

module unisono_engine_control
  import unisono_cclo_pkg::*;
(
  input  logic      clk_i,
  input  logic      rst_ni,

  input  logic      grants_valid_i,
  output logic      grants_ready_o,
  input  transmit_t grants_i,
  input  logic      notice_valid_i,
  output logic      notice_ready_o,
  input  transmit_t notice_i,

  output logic      out_valid_o,
  input  logic      out_ready_i,
  output transmit_t out_o
);

  logic valid, ready, prefers_notice_q, takes_notice;
  transmit_t control;

  assign takes_notice = notice_valid_i && (!grants_valid_i || prefers_notice_q);
  assign valid = notice_valid_i || grants_valid_i;
  assign control = takes_notice ? notice_i : grants_i;
  assign notice_ready_o = ready && takes_notice;
  assign grants_ready_o = ready && !takes_notice;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) prefers_notice_q <= 1'b0;
    // What waits for space stays on offer; once it has gone, it is the other's turn.
    else if (valid) prefers_notice_q <= ready ? !takes_notice : takes_notice;
  end

  unisono_fifo #(.Width($bits(transmit_t)), .Depth(4)) u_control (
    .clk_i, .rst_ni, .in_valid_i(valid), .in_ready_o(ready), .in_data_i(control),
    .out_valid_o, .out_ready_i, .out_data_o(out_o), .count_o()
  );

endmodule
