// Example of a plugin for one operand: encrypts or decrypts the stream with ChaCha (RFC 8439).
// Every word of 64 bytes is combined with one block of the key stream; the first word of a packet
// uses block `first_block_i`, the next one the block after.
//
// Latency: 2 Rounds + 2 cycles, 42 with 20 rounds. Throughput: one word, one block, per cycle: 16
// GB/s at 250 MHz. Every round has its own hardware; nothing is used twice.
// Restrictions: words of 64 bytes. Key and nonce are constant while words are inside, and a nonce
// must not encrypt two packets: whoever sets it sees to that. No authentication.
//
// A round is done in two cycles, each of two of the four steps of a quarter round.

module unisono_plugin_chacha
  import unisono_spec_pkg::*;
#(
  parameter int unsigned UserBits = 1,
  // An even number: 8, 12 or 20.
  parameter int unsigned Rounds = 20,
  localparam int unsigned DataBytes = 64,
  // For the array's SlotLatency.
  localparam int unsigned Latency = 2 * Rounds + 2
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Words as RFC 8439 numbers them: word 0 to the right.
  input  logic [7:0][31:0]       key_i,
  input  logic [2:0][31:0]       nonce_i,
  input  logic [31:0]            first_block_i,

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

  typedef logic [15:0][31:0] state_t;

  if (Rounds % 2 != 0 || Rounds == 0) begin : gen_bad_rounds
    $error("unisono_plugin_chacha: an even number of rounds");
  end

  logic unused;
  assign unused = ^{func_i, dtype_i, swap_i, use1_i};

  // The number of the word's block. This is all that a word leaves behind.
  logic [31:0] block_q, block;
  logic inside_q;
  assign block = inside_q ? block_q : first_block_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= 1'b0;
    else if (enable_i) inside_q <= !last_i;
  end
  always_ff @(posedge clk_i) begin
    if (enable_i) block_q <= block + 32'd1;
  end

  function automatic state_t initial_state(logic [7:0][31:0] key, logic [2:0][31:0] nonce,
                                           logic [31:0] number);
    return {nonce, number, key, 32'h6b206574, 32'h79622d32, 32'h3320646e, 32'h61707865};
  endfunction

  // Two of the four steps of a quarter round on words a, b, c, d of the state.
  function automatic logic [3:0][31:0] half_quarter(logic [3:0][31:0] abcd, logic second);
    logic [31:0] a, b, c, d;
    {d, c, b, a} = abcd;
    a += b;
    d ^= a;
    d = second ? {d[23:0], d[31:24]} : {d[15:0], d[31:16]};
    c += d;
    b ^= c;
    b = second ? {b[24:0], b[31:25]} : {b[19:0], b[31:20]};
    return {d, c, b, a};
  endfunction

  // Columns of the 4 by 4 state in even rounds, diagonals in odd ones.
  function automatic state_t half_round(state_t before_half, logic diagonal, logic second);
    state_t state;
    state = before_half;
    for (int unsigned i = 0; i < 4; i++) begin
      automatic logic [1:0] b = 2'(i + (diagonal ? 1 : 0));
      automatic logic [1:0] c = 2'(i + (diagonal ? 2 : 0));
      automatic logic [1:0] d = 2'(i + (diagonal ? 3 : 0));
      {state[{2'd3, d}], state[{2'd2, c}], state[{2'd1, b}], state[{2'd0, 2'(i)}]} =
          half_quarter({before_half[{2'd3, d}], before_half[{2'd2, c}], before_half[{2'd1, b}],
                        before_half[{2'd0, 2'(i)}]}, second);
    end
    return state;
  endfunction

  // Stage 0 takes the word in; stages 1 to 2 Rounds are half rounds.
  state_t [2*Rounds:0] state_q;
  always_ff @(posedge clk_i) begin
    state_q[0] <= initial_state(key_i, nonce_i, block);
    for (int unsigned s = 0; s < 2 * Rounds; s++) begin
      state_q[s+1] <= half_round(state_q[s], s / 2 % 2 == 1, s % 2 == 1);
    end
  end

  logic [31:0] block_last;
  logic [DataBytes*8-1:0] data_last;
  unisono_plugin_delay #(
    .Width (32 + DataBytes * 8),
    .Cycles(Latency - 1)
  ) u_data (
    .clk_i,
    .d_i({block, use0_i ? op0_i : op1_i}),
    .q_o({block_last, data_last})
  );

  // The key stream is the state after all rounds plus the one before.
  state_t start;
  assign start = initial_state(key_i, nonce_i, block_last);
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < 16; i++) begin
      data_o[32*i+:32] <= data_last[32*i+:32] ^ (state_q[2*Rounds][i] + start[i]);
    end
  end

  unisono_plugin_delay #(
    .Width (DataBytes + 1 + UserBits),
    .Cycles(Latency)
  ) u_side (
    .clk_i,
    .d_i({keep_i, last_i, user_i}),
    .q_o({keep_o, last_o, user_o})
  );

  logic [Latency-1:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[Latency-2:0], enable_i};
  end
  assign valid_o = valid_q[Latency-1];

endmodule
