// Rotates the bytes of a word towards byte 0: out byte i is in byte (i + amount) mod Bytes.
//
// Latency: 2 cycles, always. Throughput: 1 word per cycle. Nothing stalls: what must travel with
// the word goes through the side-band, and the user accounts for space behind the module.
// A rotation by 64 places is three levels of 4-to-1 multiplexers, two before and one after the
// first register.

module unisono_memory_rotate #(
  // A power of two, at least 2.
  parameter int unsigned Bytes     = 64,
  // Bits of one "byte": 8, or 9 where a strobe travels with each byte.
  parameter int unsigned BitsEach  = 8,
  parameter int unsigned SideWidth = 1,
  localparam int unsigned AmountWidth = $clog2(Bytes)
) (
  input  logic                            clk_i,

  input  logic [AmountWidth-1:0]          amount_i,
  input  logic [Bytes-1:0][BitsEach-1:0]  data_i,
  input  logic [SideWidth-1:0]            side_i,

  output logic [Bytes-1:0][BitsEach-1:0]  data_o,
  output logic [SideWidth-1:0]            side_o
);

  if (Bytes < 2 || (Bytes & (Bytes - 1)) != 0) begin : gen_bad_bytes
    $error("unisono_memory_rotate: Bytes must be a power of two, at least 2");
  end

  typedef logic [Bytes-1:0][BitsEach-1:0] word_t;

  // The places 1, 2, 4 and 8 are done before the register, 16 and more after it.
  localparam int unsigned EarlyBits = (AmountWidth < 4) ? AmountWidth : 4;

  function automatic word_t rotated(word_t word, int unsigned places);
    word_t result;
    for (int unsigned k = 0; k < Bytes; k++) begin
      result[k] = word[(k + places) % Bytes];
    end
    return result;
  endfunction

  word_t early, late;
  word_t early_q, late_q;
  logic [AmountWidth-1:0] amount_q;
  logic [SideWidth-1:0] side_q, side_qq;

  always_comb begin
    early = data_i;
    for (int unsigned b = 0; b < EarlyBits; b++) begin
      if (amount_i[b]) begin
        early = rotated(early, 1 << b);
      end
    end
  end

  always_comb begin
    late = early_q;
    for (int unsigned b = EarlyBits; b < AmountWidth; b++) begin
      if (amount_q[b]) begin
        late = rotated(late, 1 << b);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    early_q  <= early;
    amount_q <= amount_i;
    side_q   <= side_i;
    late_q   <= late;
    side_qq  <= side_q;
  end

  assign data_o = late_q;
  assign side_o = side_qq;

  if (AmountWidth <= 4) begin : gen_unused
    logic unused_amount;
    assign unused_amount = ^amount_q;
  end

endmodule
