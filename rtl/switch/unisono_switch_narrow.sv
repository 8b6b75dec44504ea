// Results of a switch's fold on their way out: those of fp16 and bf16, which come as fp32, are rounded; others pass.
//
// Latency: 3 cycles. Throughput: a word per cycle, of either kind. No back-pressure.

module unisono_switch_narrow
  import unisono_plugin_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned UserBits = 1,
  localparam int unsigned DataBits = SwitchBytes * 8
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                in_valid_i,
  input  logic [1:0]          in_mode_i,   // a cast_mode_e
  input  logic [DataBits-1:0] in_data_i,   // a word, or the lower half of it as fp32
  input  logic [DataBits-1:0] in_upper_i,  // the upper half, if it is to be rounded
  input  logic                in_last_i,
  input  logic [UserBits-1:0] in_user_i,

  output logic                out_valid_o,
  output logic [DataBits-1:0] out_data_o,
  output logic                out_last_o,
  output logic [UserBits-1:0] out_user_o
);

  localparam int unsigned Lanes = DataBits / 16;

  typedef struct packed {
    logic [1:0]          mode;
    logic                last;
    logic [UserBits-1:0] user;
  } side_t;

  logic [2:0]               valid_q;
  side_t [2:0]              side_q;
  logic [2:0]               step, step_upper;   // of each stage; the upper half stands still while words pass
  logic [Lanes-1:0][31:0]   number, passed;
  logic [DataBits-1:0]      rounded;

  assign step       = {valid_q[1:0], in_valid_i};
  assign step_upper = step & {side_q[1].mode != 2'(CastModePass), side_q[0].mode != 2'(CastModePass),
                              in_mode_i != 2'(CastModePass)};
  assign number     = {in_upper_i, in_data_i};
  always_ff @(posedge clk_i) begin
    valid_q <= rst_ni ? step : '0;
    if (step[0]) side_q[0] <= '{in_mode_i, in_last_i, in_user_i};
    if (step[1]) side_q[1] <= side_q[0];
    if (step[2]) side_q[2] <= side_q[1];
  end

  for (genvar i = 0; i < int'(Lanes); i++) begin : gen_lane
    unisono_half_narrow u_lane (
      .clk_i,
      .step_i  (i < int'(Lanes) / 2 ? step : step_upper),
      .brain_i (side_q[1].mode == 2'(CastModeBf16)),
      .number_i(number[i]),
      .half_o  (rounded[16*i+:16]),
      .number_o(passed[i])
    );
  end

  assign out_valid_o = valid_q[2];
  assign out_data_o  = side_q[2].mode == 2'(CastModePass) ? passed[Lanes/2-1:0] : rounded;
  assign out_last_o  = side_q[2].last;
  assign out_user_o  = side_q[2].user;

  logic unused;
  assign unused = ^passed[Lanes-1:Lanes/2];

endmodule
