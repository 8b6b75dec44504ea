// The array with both examples attached: saturating sum as user0, ChaCha as user1.

module unisono_plugin_array_bench
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
#(
  parameter int unsigned UserBits = 9,
  parameter int unsigned Depth = 64,
  localparam int unsigned DataBytes = 64
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic [7:0][31:0]       key_i,
  input  logic [2:0][31:0]       nonce_i,
  input  logic [31:0]            first_block_i,

  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [DataBytes*8-1:0] in_op0_i,
  input  logic [DataBytes*8-1:0] in_op1_i,
  input  logic [7:0]             in_func_i,
  input  logic [5:0]             in_dtype_i,
  input  logic                   in_swap_i,
  input  logic                   in_use0_i,
  input  logic                   in_use1_i,
  input  logic [DataBytes-1:0]   in_keep_i,
  input  logic                   in_last_i,
  input  logic [UserBits-1:0]    in_user_i,

  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [DataBytes*8-1:0] out_data_o,
  output logic [DataBytes-1:0]   out_keep_o,
  output logic                   out_last_o,
  output logic [UserBits-1:0]    out_user_o,
  output logic                   out_refused_o,

  output datatype_mask_t         capability_datatypes_o,
  output logic [15:0]            capability_funcs_o,
  output logic                   idle_o
);

  localparam logic [31:0] SlotFuncs = {16'h0002, 16'h0001};
  localparam logic [15:0] SlotLatency = {8'd42, 8'd2};

  logic [1:0] enable, valid, last;
  logic [DataBytes*8-1:0] op0, op1;
  logic [1:0][DataBytes*8-1:0] data;
  logic [1:0][DataBytes-1:0] keep;
  logic [1:0][UserBits-1:0] user;
  logic [7:0] func;
  logic [5:0] dtype;
  logic swap, use0, use1, last_in;
  logic [DataBytes-1:0] keep_in;
  logic [UserBits-1:0] user_in;

  unisono_plugin_array #(
    .DataBytes  (DataBytes),
    .UserBits   (UserBits),
    .Slots      (2),
    .SlotFuncs  (SlotFuncs),
    .SlotLatency(SlotLatency),
    .Depth      (Depth)
  ) u_array (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_op0_i,
    .in_op1_i,
    .in_func_i,
    .in_dtype_i,
    .in_swap_i,
    .in_use0_i,
    .in_use1_i,
    .in_keep_i,
    .in_last_i,
    .in_user_i,
    .out_valid_o,
    .out_ready_i,
    .out_data_o,
    .out_keep_o,
    .out_last_o,
    .out_user_o,
    .out_refused_o,
    .plug_enable_o(enable),
    .plug_op0_o   (op0),
    .plug_op1_o   (op1),
    .plug_func_o  (func),
    .plug_dtype_o (dtype),
    .plug_swap_o  (swap),
    .plug_use0_o  (use0),
    .plug_use1_o  (use1),
    .plug_keep_o  (keep_in),
    .plug_last_o  (last_in),
    .plug_user_o  (user_in),
    .plug_valid_i (valid),
    .plug_data_i  (data),
    .plug_keep_i  (keep),
    .plug_last_i  (last),
    .plug_user_i  (user),
    .capability_datatypes_o,
    .capability_funcs_o,
    .idle_o
  );

  unisono_plugin_saturating_sum #(
    .DataBytes(DataBytes),
    .UserBits (UserBits)
  ) u_saturating_sum (
    .clk_i,
    .rst_ni,
    .enable_i(enable[0]),
    .op0_i   (op0),
    .op1_i   (op1),
    .func_i  (func_e'(func)),
    .dtype_i (datatype_e'(dtype)),
    .swap_i  (swap),
    .use0_i  (use0),
    .use1_i  (use1),
    .keep_i  (keep_in),
    .last_i  (last_in),
    .user_i  (user_in),
    .valid_o (valid[0]),
    .data_o  (data[0]),
    .keep_o  (keep[0]),
    .last_o  (last[0]),
    .user_o  (user[0])
  );

  unisono_plugin_chacha #(
    .UserBits(UserBits)
  ) u_chacha (
    .clk_i,
    .rst_ni,
    .key_i,
    .nonce_i,
    .first_block_i,
    .enable_i(enable[1]),
    .op0_i   (op0),
    .op1_i   (op1),
    .func_i  (func_e'(func)),
    .dtype_i (datatype_e'(dtype)),
    .swap_i  (swap),
    .use0_i  (use0),
    .use1_i  (use1),
    .keep_i  (keep_in),
    .last_i  (last_in),
    .user_i  (user_in),
    .valid_o (valid[1]),
    .data_o  (data[1]),
    .keep_o  (keep[1]),
    .last_o  (last[1]),
    .user_o  (user[1])
  );

endmodule
