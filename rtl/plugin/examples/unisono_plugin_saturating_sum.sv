// Example of a plugin for two operands: sum of int8 that saturates at -128 and 127 instead of
// wrapping. It commutes, so it belongs to one of FuncUser0 to FuncUser7.
// docs/rtl/plugin_examples.md builds it step by step.
//
// Latency: 2. Throughput: one word per cycle.
// Restriction: saturation is not associative. Equal programs still give equal results everywhere,
// but another algorithm or number of ranks may give others, as with floating point.

module unisono_plugin_saturating_sum
  import unisono_spec_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned UserBits = 1,
  // For the array's SlotLatency.
  localparam int unsigned Latency = 2
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   enable_i,
  input  logic [DataBytes*8-1:0] op0_i,
  input  logic [DataBytes*8-1:0] op1_i,
  input  func_e                  func_i,
  input  datatype_e              dtype_i,
  input  logic                   swap_i,
  input  logic                   use0_i,
  input  logic                   use1_i,
  input  logic [  DataBytes-1:0] keep_i,
  input  logic                   last_i,
  input  logic [   UserBits-1:0] user_i,
  output logic                   valid_o,
  output logic [DataBytes*8-1:0] data_o,
  output logic [  DataBytes-1:0] keep_o,
  output logic                   last_o,
  output logic [   UserBits-1:0] user_o
);

  // It has one function of one datatype, and the order of operands is of no interest. A program
  // that names it for another datatype gets sums of bytes.
  logic unused;
  assign unused = ^{func_i, dtype_i, swap_i, use0_i, use1_i};

  // 1: sums of 9 bits, which cannot overflow.
  logic [DataBytes-1:0][8:0] sum_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < DataBytes; i++) begin
      sum_q[i] <= {op0_i[8*i+7], op0_i[8*i+:8]} + {op1_i[8*i+7], op1_i[8*i+:8]};
    end
  end

  // 2: the two uppermost bits differ if the sum does not fit 8 bits; the first one is its sign.
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < DataBytes; i++) begin
      if (sum_q[i][8] != sum_q[i][7]) data_o[8*i+:8] <= {sum_q[i][8], {7{!sum_q[i][8]}}};
      else data_o[8*i+:8] <= sum_q[i][7:0];
    end
  end

  // The side-band leaves together with the data.
  unisono_plugin_delay #(
    .Width (DataBytes + 1 + UserBits),
    .Cycles(Latency)
  ) u_side (
    .clk_i,
    .d_i({keep_i, last_i, user_i}),
    .q_o({keep_o, last_o, user_o})
  );

  // Only this needs a reset.
  logic [Latency-1:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[Latency-2:0], enable_i};
  end
  assign valid_o = valid_q[Latency-1];

endmodule
