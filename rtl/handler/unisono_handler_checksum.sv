// The sum of a frame's or packet's bytes as the checksums of IPv4 and UDP have it (RFC 1071): pairs of bytes, folded to
// 16 bits. Bytes are added as they lie in memory, so the sum has its two bytes swapped, as it lies in a header.
//
// Latency: 4 cycles from the last word to `valid_o`, which is high for a cycle. Throughput: a word per cycle.
module unisono_handler_checksum
  import unisono_handler_station_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        valid_i,
  input  frame_word_t data_i,
  input  logic [63:0] keep_i,  // bytes that count
  input  logic        last_i,

  output logic        valid_o,
  output logic [15:0] sum_o
);

  localparam int unsigned Groups = 8;

  frame_word_t kept;
  logic [Groups-1:0][17:0] group_q;
  logic [20:0] word_q;
  // A packet's 130 words at most: no folding before the end.
  logic [31:0] total_q;
  logic valid1_q, last1_q, valid2_q, last2_q, last3_q, open_q;

  for (genvar b = 0; b < 64; b++) begin : gen_byte
    assign kept[8*b+:8] = keep_i[b] ? data_i[8*b+:8] : 8'd0;
  end

  always_ff @(posedge clk_i) begin
    valid1_q <= rst_ni && valid_i;
    last1_q <= last_i;
    valid2_q <= rst_ni && valid1_q;
    last2_q <= last1_q;
    last3_q <= rst_ni && valid2_q && last2_q;
    valid_o <= rst_ni && last3_q;
    if (!rst_ni) open_q <= 1'b0;
    else if (valid2_q) open_q <= !last2_q;
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned g = 0; g < Groups; g++) begin
      group_q[g] <= 18'(kept[64*g+:16]) + 18'(kept[64*g+16+:16]) + 18'(kept[64*g+32+:16]) + 18'(kept[64*g+48+:16]);
    end
    word_q <= 21'(group_q[0]) + 21'(group_q[1]) + 21'(group_q[2]) + 21'(group_q[3])
              + 21'(group_q[4]) + 21'(group_q[5]) + 21'(group_q[6]) + 21'(group_q[7]);
    if (valid2_q) total_q <= (open_q ? total_q : '0) + 32'(word_q);
    sum_o <= folded(total_q);
  end

endmodule
