// Divides 64 by 32 bits. All steps of a call divide the same numbers, so the last division of each slot is kept.
//
// The number that is divided comes first, then the divisor, which stays until the division is done. Then quotient and
// rest can be read, as long as the slot divides nothing else.
//
// Latency: none if the slot has divided the same before; else a cycle for each bit of the number, 32 or 64, and one.
// Throughput: one division at a time.

module unisono_cpu_divide
  import unisono_cpu_pkg::*;
(
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic [SlotWidth-1:0] slot_i,
  input  logic                 total_valid_i,
  input  logic [63:0]          total_i,
  input  logic                 divide_i,
  input  logic [31:0]          parts_i,
  output logic                 done_o,
  output logic [63:0]          quotient_o,
  output logic [31:0]          rest_o
);

  typedef struct packed {
    logic [63:0] total;
    logic [31:0] parts;
  } division_t;
  typedef struct packed {
    logic [63:0] quotient;
    logic [31:0] rest;
  } quotient_t;

  division_t division_kept_q [Slots];
  quotient_t quotient_kept_q [Slots];
  logic [Slots-1:0] division_known_q;
  division_t division_kept;
  quotient_t quotient_kept;
  logic [63:0] total_q;
  logic total_kept_q;
  assign division_kept = division_kept_q[slot_i];
  assign quotient_kept = quotient_kept_q[slot_i];
  assign done_o = total_kept_q && division_kept.parts == parts_i;

  // One bit of the quotient a cycle; totals of 32 bits skip the upper half.
  logic dividing_q;
  logic [5:0] bit_q;
  quotient_t divide_q, divide_d;
  logic [32:0] minuend, difference;
  assign minuend = {divide_q.rest, divide_q.quotient[63]};
  assign difference = minuend - {1'b0, parts_i};
  assign divide_d = '{
      quotient: {divide_q.quotient[62:0], !difference[32]},
      rest: difference[32] ? minuend[31:0] : difference[31:0]
  };

  always_ff @(posedge clk_i) begin
    if (total_valid_i) begin
      total_q <= total_i;
      total_kept_q <= division_known_q[slot_i] && division_kept.total == total_i;
    end
    if (divide_i && !done_o) begin
      if (!dividing_q) begin
        dividing_q <= 1'b1;
        bit_q <= total_q[63:32] == '0 ? 6'd31 : 6'd63;
        divide_q <= '{quotient: total_q[63:32] == '0 ? {total_q[31:0], 32'd0} : total_q, rest: '0};
      end else begin
        divide_q <= divide_d;
        bit_q <= bit_q - 1'b1;
        if (bit_q == '0) begin
          dividing_q <= 1'b0;
          division_kept_q[slot_i] <= '{total: total_q, parts: parts_i};
          quotient_kept_q[slot_i] <= divide_d;
          division_known_q[slot_i] <= 1'b1;
          total_kept_q <= 1'b1;
        end
      end
    end
    if (!rst_ni) begin
      dividing_q <= 1'b0;
      division_known_q <= '0;
      total_kept_q <= 1'b0;
    end
  end

  assign quotient_o = quotient_kept.quotient;
  assign rest_o     = quotient_kept.rest;

endmodule
