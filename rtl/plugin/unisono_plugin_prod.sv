// Plugin: products of floating point and integers, lane-parallel on a whole word.
//
// Every 8 bytes have four multipliers for elements of 16 bits and more, placed as the adders of
// unisono_plugin_sum, which also serve the elements of 8 bits at their lower ends; and four of 8
// bits.
//
// Latency: ProdLatency. Throughput: one word per cycle. See docs/rtl/plugin_prod.md.

module unisono_plugin_prod
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned UserBits = 1,
  // What is not needed for these is not built.
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
  logic [ProdLatency-1:0] valid_q;
  unisono_clock_gate u_gate (
    .clk_i,
    .enable_i(!rst_ni || enable_i || valid_q != '0),
    .clk_o   (clk)
  );

  localparam datatype_mask_t Plain = Datatypes & ProdDatatypes;
  localparam float_mask_t Formats = float_mask(Plain);
  localparam float_mask_t Formats32 = Formats & ~float_mask_t'(1);
  localparam float_mask_t Formats16 = Formats & ~float_mask_t'(3);
  localparam bit Has8 = (Plain & 24'h00_0c00) != '0;
  localparam bit Has16 = Has8 || (Plain & 24'h00_3000) != '0;
  localparam bit Has32 = Has16 || (Plain & 24'h00_4004) != '0;
  localparam bit Has64 = Has32 || (Plain & 24'h00_8008) != '0;
  // A lane of fewer bits waits for the widest one.
  localparam int unsigned Wait32 = ProdLatency - multiply_latency(32);
  localparam int unsigned Wait16 = ProdLatency - multiply_latency(16);

  typedef enum logic [1:0] {
    Size8,
    Size16,
    Size32,
    Size64
  } size_e;

  float_e format, format32, format16;
  logic plain, plain32, plain16;
  size_e size, size_last;
  assign format = float_of(dtype_i);
  assign plain = is_integer(dtype_i);
  always_comb begin
    case (part_bytes(dtype_i))
      4'd1: size = Size8;
      4'd2: size = Size16;
      4'd4: size = Size32;
      default: size = Size64;
    endcase
  end

  // The later ones are of no use if there are wide lanes only.
  logic unused;
  assign unused = ^{func_i, swap_i, use0_i, use1_i, format32, format16, plain32, plain16};

  unisono_plugin_delay #(
    .Width (3),
    .Cycles(Wait32)
  ) u_format32 (
    .clk_i(clk),
    .d_i({format, plain}),
    .q_o({format32, plain32})
  );
  unisono_plugin_delay #(
    .Width (3),
    .Cycles(Wait16)
  ) u_format16 (
    .clk_i(clk),
    .d_i({format, plain}),
    .q_o({format16, plain16})
  );
  unisono_plugin_delay #(
    .Width (2),
    .Cycles(ProdLatency)
  ) u_size (
    .clk_i(clk),
    .d_i({size}),
    .q_o({size_last})
  );

  for (genvar c = 0; c < DataBytes / 8; c++) begin : gen_chunk
    logic [63:0] a, b, first;
    logic [31:0] second;
    logic [15:0] third, fourth;
    logic [3:0][7:0] odd;
    assign a = op0_i[c*64+:64];
    assign b = op1_i[c*64+:64];

    if (Formats != '0 || Has64) begin : gen_first
      unisono_multiply #(
        .Width   (64),
        .Formats (Formats),
        .Integers(Has64)
      ) u_multiply (
        .clk_i(clk),
        .format_i (format),
        .integer_i(plain),
        .a_i      (a),
        .b_i      (b),
        .result_o (first)
      );
    end else begin : gen_no_first
      assign first = '0;
    end

    if (Formats32 != '0 || Has32) begin : gen_second
      logic [31:0] a_late, b_late;
      unisono_plugin_delay #(
        .Width (64),
        .Cycles(Wait32)
      ) u_wait (
        .clk_i(clk),
        .d_i({a[63:32], b[63:32]}),
        .q_o({a_late, b_late})
      );
      unisono_multiply #(
        .Width   (32),
        .Formats (Formats32),
        .Integers(Has32)
      ) u_multiply (
        .clk_i(clk),
        .format_i (format32),
        .integer_i(plain32),
        .a_i      (a_late),
        .b_i      (b_late),
        .result_o (second)
      );
    end else begin : gen_no_second
      assign second = '0;
    end

    if (Formats16 != '0 || Has16) begin : gen_third_fourth
      logic [31:0] a_late, b_late;
      unisono_plugin_delay #(
        .Width (64),
        .Cycles(Wait16)
      ) u_wait (
        .clk_i(clk),
        .d_i({a[63:48], a[31:16], b[63:48], b[31:16]}),
        .q_o({a_late, b_late})
      );
      unisono_multiply #(
        .Width   (16),
        .Formats (Formats16),
        .Integers(Has16)
      ) u_third (
        .clk_i(clk),
        .format_i (format16),
        .integer_i(plain16),
        .a_i      (a_late[15:0]),
        .b_i      (b_late[15:0]),
        .result_o (third)
      );
      unisono_multiply #(
        .Width   (16),
        .Formats (Formats16),
        .Integers(Has16)
      ) u_fourth (
        .clk_i(clk),
        .format_i (format16),
        .integer_i(plain16),
        .a_i      (a_late[31:16]),
        .b_i      (b_late[31:16]),
        .result_o (fourth)
      );
    end else begin : gen_no_third_fourth
      assign third  = '0;
      assign fourth = '0;
    end

    if (Has8) begin : gen_odd
      for (genvar k = 0; k < 4; k++) begin : gen_byte
        logic [7:0] a_late, b_late, product_q;
        unisono_plugin_delay #(
          .Width (16),
          .Cycles(ProdLatency - 1)
        ) u_wait (
          .clk_i(clk),
          .d_i({a[16*k+8+:8], b[16*k+8+:8]}),
          .q_o({a_late, b_late})
        );
        always_ff @(posedge clk) product_q <= a_late * b_late;
        assign odd[k] = product_q;
      end
    end else begin : gen_no_odd
      assign odd = '0;
    end

    always_comb begin
      case (size_last)
        Size64: data_o[c*64+:64] = first;
        Size32: data_o[c*64+:64] = {second, first[31:0]};
        Size16: data_o[c*64+:64] = {fourth, second[15:0], third, first[15:0]};
        default: begin
          data_o[c*64+:64] = {odd[3], fourth[7:0], odd[2], second[7:0],
                              odd[1], third[7:0], odd[0], first[7:0]};
        end
      endcase
    end
  end

  unisono_plugin_delay #(
    .Width (DataBytes + 1 + UserBits),
    .Cycles(ProdLatency)
  ) u_side (
    .clk_i(clk),
    .d_i({keep_i, last_i, user_i}),
    .q_o({keep_o, last_o, user_o})
  );

  always_ff @(posedge clk) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[ProdLatency-2:0], enable_i};
  end
  assign valid_o = valid_q[ProdLatency-1];

endmodule
