// CRC-32C of what the ranks of a call must agree on, a word at a time: the call's signature.
//
// Latency: a word counts from the next cycle on. Throughput: a word of 16, 32 or 64 bits per cycle. Restrictions: 0
// means that a call has no signature, so 1 stands for it.

module unisono_cpu_signature
  import unisono_cpu_pkg::*;
(
  input  logic        clk_i,

  input  logic        valid_i,
  input  logic [6:0]  operation_i,                 // CheckBegin, CheckLong, CheckWord, CheckHalf; others do nothing
  input  logic [63:0] data_i,                      // a shorter word in the lower bits
  output logic [31:0] signature_o
);

  // CRC-32C, reflected: the register after the lower bits of the data.
  function automatic logic [31:0] crc_bits(logic [31:0] state, logic [63:0] data, int bits);
    logic [31:0] value;
    value = state;
    for (int i = 0; i < 64; i++) begin
      if (i < bits) value = {1'b0, value[31:1]} ^ ((value[0] ^ data[i]) ? 32'h82F6_3B78 : 32'h0);
    end
    return value;
  endfunction

  logic [31:0] crc_q;
  assign signature_o = ~crc_q == 32'd0 ? 32'd1 : ~crc_q;

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      case (operation_i)
        CheckBegin: crc_q <= '1;
        CheckLong: crc_q <= crc_bits(crc_q, data_i, 64);
        CheckWord: crc_q <= crc_bits(crc_q, data_i, 32);
        CheckHalf: crc_q <= crc_bits(crc_q, data_i, 16);
        default: ;
      endcase
    end
  end

endmodule
