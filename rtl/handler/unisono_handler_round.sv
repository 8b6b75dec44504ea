// Rounds a number of 64 significant bits, once, to nearest and ties to even, to any format of floating point.
//
// Latency: 3 cycles. Throughput: one per cycle. No back-pressure, no reset: the pipeline holds data only.
//
//   1 subnormal: shift right | 2 the last bit that is kept, and what is below | 3 round, put together
module unisono_handler_round
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
(
  input  logic     clk_i,
  input  wide_t    value_i,
  input  element_e element_i,  // floating point
  output cell_t    result_o
);

  // What travels beside the significand.
  typedef struct packed {
    logic        sign;
    element_e    element;
    logic        infinite;
    logic [10:0] exponent;  // as it stands, less the hidden bit
  } side_t;

  // 1: below the least exponent of a normal number.
  logic signed [13:0] bias;
  logic signed [14:0] below;
  logic deep, all, lost, lost_q1;
  cell_t whole, whole_q1;
  side_t side, side_q1;
  assign bias = bias_of(element_i);
  assign below = 15'sd1 - 15'(bias) - 15'(value_i.exponent);
  assign deep = below > 15'sd0;
  assign all = below > 15'sd63;
  always_comb begin
    whole = value_i.significand;
    lost = value_i.lost;
    if (deep) begin
      whole = all ? '0 : value_i.significand >> below[5:0];
      lost = value_i.lost
          || (value_i.significand & (all ? '1 : ~(64'hffff_ffff_ffff_ffff << below[5:0]))) != '0;
    end
    // A number that is not 0 has its highest bit at the top.
    side = '{
      sign: value_i.sign,
      element: element_i,
      infinite: value_i.exponent > bias && value_i.significand[63],
      exponent: deep || !value_i.significand[63] ? '0 : 11'(value_i.exponent + bias - 14'sd1)
    };
  end
  always_ff @(posedge clk_i) begin
    side_q1 <= side;
    whole_q1 <= whole;
    lost_q1 <= lost;
  end

  // 2
  logic [52:0] kept, kept_q2;
  logic half, rest, grows_q2;
  side_t side_q2;
  always_comb begin
    case (side_q1.element)
      ElementFp16: begin
        kept = 53'(whole_q1[63:53]);
        half = whole_q1[52];
        rest = whole_q1[51:0] != '0;
      end
      ElementBf16: begin
        kept = 53'(whole_q1[63:56]);
        half = whole_q1[55];
        rest = whole_q1[54:0] != '0;
      end
      ElementFp32: begin
        kept = 53'(whole_q1[63:40]);
        half = whole_q1[39];
        rest = whole_q1[38:0] != '0;
      end
      default: begin
        kept = whole_q1[63:11];
        half = whole_q1[10];
        rest = whole_q1[9:0] != '0;
      end
    endcase
  end
  always_ff @(posedge clk_i) begin
    side_q2 <= side_q1;
    kept_q2 <= kept;
    grows_q2 <= half && (lost_q1 || rest || kept[0]);
  end

  // 3: the hidden bit, and a carry of rounding, add one to the exponent: into infinity, too.
  cell_t placed, total, result;
  always_comb begin
    case (side_q2.element)
      ElementFp16: placed = 64'(side_q2.exponent) << 10;
      ElementBf16: placed = 64'(side_q2.exponent) << 7;
      ElementFp32: placed = 64'(side_q2.exponent) << 23;
      default: placed = 64'(side_q2.exponent) << 52;
    endcase
    total = placed + 64'(kept_q2) + 64'(grows_q2);
    result = side_q2.infinite ? infinity_of(side_q2.element) : total;
    case (side_q2.element)
      ElementFp16, ElementBf16: result[15] = side_q2.sign;
      ElementFp32: result[31] = side_q2.sign;
      default: result[63] = side_q2.sign;
    endcase
  end
  always_ff @(posedge clk_i) result_o <= result;

endmodule
