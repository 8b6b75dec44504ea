// CRC-32C of the 60 bytes of a header before its checksum (core/crc32c.hpp, spec/records.yaml).
//
// Every bit of the result is the exclusive or of some message bits: about 240 of 480. Which ones
// follows from the polynomial at elaboration. Bit 0 of data_i is the first bit of the first byte.
//
// Latency: Stages cycles (0: combinational, 4 levels of six-input LUTs; 2: two levels per stage).
// Throughput: one result per cycle. No reset. A cycle without a message keeps what the first registers
// hold, and has no result; so a simulator need not compute one.

module unisono_crc32c #(
  // Registers on the way: 0, 1 (after the second half) or 2 (also between the halves).
  parameter int unsigned Stages = 2,
  // 1: leave the preset and the inversion out. CRCs are then linear:
  // full(a ^ b) == full(a) ^ linear(b), so that fields known late can be added to a finished CRC.
  parameter bit Linear = 1'b0
) (
  // verilator lint_off UNUSEDSIGNAL
  input  logic         clk_i,  // unused if Stages is 0
  // verilator lint_on UNUSEDSIGNAL
  input  logic         valid_i,  // whether there is a message
  input  logic [479:0] data_i,
  output logic [31:0]  crc_o
);

  if (Stages > 2) begin : gen_bad_stages
    $error("unisono_crc32c: Stages must be 0, 1 or 2");
  end

  localparam int unsigned Bits = 480;
  localparam int unsigned Parts = 10;
  localparam int unsigned PartBits = Bits / Parts;
  localparam logic [31:0] Polynomial = 32'h82F6_3B78;  // reflected

  typedef logic [31:0][Bits-1:0] matrix_t;

  // matrix[b][i]: whether message bit i turns bit b of the result.
  function automatic matrix_t matrix();
    matrix_t result;
    logic [31:0] value;
    value = Polynomial;  // what the last message bit leaves; each earlier one has a step more
    for (int i = int'(Bits) - 1; i >= 0; i--) begin
      for (int b = 0; b < 32; b++) begin
        result[b][i] = value[b];
      end
      value = (value >> 1) ^ (value[0] ? Polynomial : 32'd0);
    end
    return result;
  endfunction

  // The CRC of a message of zeros.
  function automatic logic [31:0] of_zeros();
    logic [31:0] value;
    value = '1;
    for (int i = 0; i < int'(Bits); i++) begin
      value = (value >> 1) ^ (value[0] ? Polynomial : 32'd0);
    end
    return ~value;
  endfunction

  localparam matrix_t Matrix = matrix();
  localparam logic [31:0] Constant = Linear ? 32'd0 : of_zeros();

  typedef logic [31:0][Parts-1:0] partial_t;

  function automatic partial_t partial_of(input logic [Bits-1:0] data);
    partial_t result;
    for (int b = 0; b < 32; b++) begin
      for (int k = 0; k < int'(Parts); k++) begin
        result[b][k] = ^(data[k*PartBits +: PartBits] & Matrix[b][k*PartBits +: PartBits]);
      end
    end
    return result;
  endfunction

  partial_t    partial_q;
  logic [31:0] crc;

  if (Stages == 2) begin : gen_partial_register
    always_ff @(posedge clk_i) begin
      if (valid_i) partial_q <= partial_of(data_i);
    end
  end else begin : gen_no_partial_register
    always_comb begin
      if (valid_i) partial_q = partial_of(data_i);
      else partial_q = 'x;  // nobody looks: no gate, and nothing to compute
    end
  end

  for (genvar b = 0; b < 32; b++) begin : gen_bit
    assign crc[b] = ^partial_q[b] ^ Constant[b];
  end

  if (Stages >= 1) begin : gen_register
    always_ff @(posedge clk_i) crc_o <= crc;
  end else begin : gen_no_register
    assign crc_o = crc;
  end

endmodule
