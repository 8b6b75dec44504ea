// Plugin: sum of floating point and complex numbers, lane-parallel on a whole word.
//
// Every 8 bytes have four adders, each for the formats whose elements can end up in it:
//
//   byte     7 6        5 4        3 2        1 0
//   fp64     [            first lane            ]
//   fp32     [   second lane   ] [  first lane  ]
//   16 bits  [ fourth ][second ] [ third ][first]
//
// so that fp64, fp32, fp16 and bf16 share their adders. Complex numbers are added by parts.
//
// Latency: SumLatency. Throughput: one word per cycle. See docs/rtl/plugin_sum.md.

module unisono_plugin_sum
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned UserBits = 1,
  // Formats not needed for these are not built.
  parameter datatype_mask_t Datatypes = AllDatatypes
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
  logic [SumLatency-1:0] valid_q;
  unisono_clock_gate u_gate (
    .clk_i,
    .enable_i(!rst_ni || enable_i || valid_q != '0),
    .clk_o   (clk)
  );

  localparam float_mask_t Formats = float_mask(Datatypes);
  localparam float_mask_t Formats32 = Formats & ~float_mask_t'(1);
  localparam float_mask_t Formats16 = Formats & ~float_mask_t'(3);

  // There is one function, of two operands, and it commutes.
  logic unused;
  assign unused = ^{func_i, swap_i, use0_i, use1_i};

  float_e format, format_last;
  assign format = float_of(dtype_i);

  unisono_plugin_delay #(
    .Width (2),
    .Cycles(SumLatency)
  ) u_format (
    .clk_i(clk),
    .d_i(format),
    .q_o({format_last})
  );

  for (genvar c = 0; c < DataBytes / 8; c++) begin : gen_chunk
    logic [63:0] a, b, first;
    logic [31:0] second;
    logic [15:0] third, fourth;
    assign a = op0_i[c*64+:64];
    assign b = op1_i[c*64+:64];

    if (Formats != '0) begin : gen_first
      unisono_float_add #(
        .Width  (64),
        .Formats(Formats)
      ) u_add (
        .clk_i(clk),
        .format_i(format),
        .a_i     (a),
        .b_i     (b),
        .result_o(first)
      );
    end else begin : gen_no_first
      assign first = '0;
    end
    if (Formats32 != '0) begin : gen_second
      unisono_float_add #(
        .Width  (32),
        .Formats(Formats32)
      ) u_add (
        .clk_i(clk),
        .format_i(format),
        .a_i     (a[63:32]),
        .b_i     (b[63:32]),
        .result_o(second)
      );
    end else begin : gen_no_second
      assign second = '0;
    end
    if (Formats16 != '0) begin : gen_third_fourth
      unisono_float_add #(
        .Width  (16),
        .Formats(Formats16)
      ) u_third (
        .clk_i(clk),
        .format_i(format),
        .a_i     (a[31:16]),
        .b_i     (b[31:16]),
        .result_o(third)
      );
      unisono_float_add #(
        .Width  (16),
        .Formats(Formats16)
      ) u_fourth (
        .clk_i(clk),
        .format_i(format),
        .a_i     (a[63:48]),
        .b_i     (b[63:48]),
        .result_o(fourth)
      );
    end else begin : gen_no_third_fourth
      assign third  = '0;
      assign fourth = '0;
    end

    always_comb begin
      case (format_last)
        FloatFp64: data_o[c*64+:64] = first;
        FloatFp32: data_o[c*64+:64] = {second, first[31:0]};
        default: data_o[c*64+:64] = {fourth, second[15:0], third, first[15:0]};
      endcase
    end
  end

  unisono_plugin_delay #(
    .Width (DataBytes + 1 + UserBits),
    .Cycles(SumLatency)
  ) u_side (
    .clk_i(clk),
    .d_i({keep_i, last_i, user_i}),
    .q_o({keep_o, last_o, user_o})
  );

  always_ff @(posedge clk) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[SumLatency-2:0], enable_i};
  end
  assign valid_o = valid_q[SumLatency-1];

endmodule
