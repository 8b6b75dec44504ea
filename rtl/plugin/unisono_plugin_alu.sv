// Plugin: everything but sums of floating point and products. Passes an operand; sums of integers;
// min and max of integers, floating point and truth values; bitwise and logical functions; minloc
// and maxloc of pairs.
//
// Latency: AluLatency. Throughput: one word per cycle. See docs/rtl/plugin_alu.md.

module unisono_plugin_alu
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
#(
  // A multiple of 16.
  parameter int unsigned DataBytes = 64,
  parameter int unsigned UserBits = 1,
  // What is not needed for these is not built.
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t Funcs = AllFuncs
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

  // Nothing moves while no word is inside.
  logic clk;
  logic [AluLatency-1:0] valid_q;
  unisono_clock_gate u_gate (
    .clk_i,
    .enable_i(!rst_ni || enable_i || valid_q != '0),
    .clk_o   (clk)
  );

  if (DataBytes % 16 != 0) begin : gen_width
    $error("DataBytes must be a multiple of 16: a pair of 16 bytes must not straddle words");
  end

  // All functions commute. That no operand is present when func is none is the caller's error.
  logic unused;
  assign unused = ^{swap_i, use1_i};

  localparam datatype_mask_t Floats = {6'b0, 18'h000f0} & Datatypes;
  localparam datatype_mask_t Pairs = {3'b0, 4'hf, 17'b0} & Datatypes;
  localparam bit HasExtremes = Funcs[3] | Funcs[4];
  localparam bit HasFloats = Floats != '0 && HasExtremes;
  localparam bit HasPairs = Pairs != '0 && (Funcs[11] | Funcs[12]);
  localparam bit HasLogical = (Funcs & 32'h0e0) != '0 || Datatypes[16];
  localparam bit HasBitwise = (Funcs & 32'h700) != '0;
  localparam bit HasSum = Funcs[1];

  // Only some of its value is used, by formats.
  function automatic alu_control_t decode(func_e func, datatype_e dtype, logic use0, logic odd);
    alu_control_t control;
    logic truth;
    truth = dtype == DatatypeBool;
    control = '{row: AluRowZero, format: FloatFp64, default: '0};
    control.is_signed = is_signed(dtype) || is_float(dtype) || is_pair(dtype);
    control.is_float = {2{is_float(dtype) && HasFloats}};
    case (dtype)
      DatatypeFp16: control.format = FloatFp16;
      DatatypeBf16: control.format = FloatBf16;
      DatatypeFp32, DatatypeFp32Int32: control.format = FloatFp32;
      default: control.format = FloatFp64;
    endcase
    case (part_bytes(dtype))
      4'd1: control.size = 2'd0;
      4'd2: control.size = 2'd1;
      4'd4: control.size = 2'd2;
      default: control.size = 2'd3;
    endcase
    case (func)
      FuncSum: if (HasSum) control.row = AluRowSum;
      FuncMin, FuncMax: begin
        if (truth) control.logical = func == FuncMin ? 2'd1 : 2'd2;
        else if (HasExtremes) control.compare = 1'b1;
        control.greater = func == FuncMax;
      end
      FuncLogicalAnd: control.logical = 2'd1;
      FuncLogicalOr: control.logical = 2'd2;
      FuncLogicalXor: control.logical = 2'd3;
      FuncBitwiseAnd: begin
        if (truth) control.logical = 2'd1;
        else if (HasBitwise) control.row = AluRowAnd;
      end
      FuncBitwiseOr: begin
        if (truth) control.logical = 2'd2;
        else if (HasBitwise) control.row = AluRowOr;
      end
      FuncBitwiseXor: begin
        if (truth) control.logical = 2'd3;
        else if (HasBitwise) control.row = AluRowXor;
      end
      FuncMinloc, FuncMaxloc: begin
        if (HasPairs) begin
          control.compare = 1'b1;
          control.greater = func == FuncMaxloc;
          case (dtype)
            DatatypeFp32Int32, DatatypeInt32Int32: begin
              control.pair8 = 1'b1;
              control.size = 2'd2;
              control.is_float = {1'b0, dtype == DatatypeFp32Int32};
            end
            default: begin
              control.pair16 = 1'b1;
              control.is_float = {2{dtype == DatatypeFp64Int32 && !odd}};
              if (dtype == DatatypeFp64Int32 && odd) begin
                control.size = 2'd2;
                control.pad = 1'b1;
              end
            end
          endcase
        end
      end
      default: control.row = use0 ? AluRowOp0 : AluRowOp1;
    endcase
    if (control.compare) control.row = AluRowOp0;
    if (!HasLogical) control.logical = 2'd0;
    return control;
  endfunction

  alu_control_t control_even, control_odd;
  assign control_even = decode(func_i, dtype_i, use0_i, 1'b0);
  assign control_odd = decode(func_i, dtype_i, use0_i, 1'b1);

  for (genvar c = 0; c < DataBytes / 16; c++) begin : gen_slice
    logic [1:0] value_first, value_tie, index_less;
    logic pair_first;
    assign pair_first = value_tie[0] ? index_less[1] : value_first[0];
    for (genvar h = 0; h < 2; h++) begin : gen_chunk
      unisono_alu_chunk u_chunk (
        .clk_i(clk),
        .control_i    (h == 0 ? control_even : control_odd),
        .a_i          (op0_i[c*128+h*64+:64]),
        .b_i          (op1_i[c*128+h*64+:64]),
        .value_first_o(value_first[h]),
        .value_tie_o  (value_tie[h]),
        .index_less_o (index_less[h]),
        .pair_first_i (pair_first),
        .result_o     (data_o[c*128+h*64+:64])
      );
    end
    logic unused_slice;
    assign unused_slice = ^{value_first[1], value_tie[1], index_less[0]};
  end

  unisono_plugin_delay #(
    .Width (DataBytes + 1 + UserBits),
    .Cycles(AluLatency)
  ) u_side (
    .clk_i(clk),
    .d_i({keep_i, last_i, user_i}),
    .q_o({keep_o, last_o, user_o})
  );

  always_ff @(posedge clk) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[AluLatency-2:0], enable_i};
  end
  assign valid_o = valid_q[AluLatency-1];

endmodule
