// Joins several packet streams into one, a whole packet at a time, in round-robin order.
//
// Between packets the next input is chosen among those that offer a word, without an idle cycle;
// an input that offers a packet waits for at most Inputs - 1 others. The input's number leaves
// beside the packet. Side-band (user) passes through.
//
// Latency: 1 cycle. Throughput: 1 word per cycle, also with packets of one word. Outputs are
// registered; in_ready_o depends on in_valid_i within the cycle, not on out_ready_i.

module unisono_stream_arbiter #(
  parameter int unsigned Inputs      = 4,
  parameter int unsigned DataBytes   = 64,
  parameter int unsigned UserBits    = 1,
  localparam int unsigned SourceBits = Inputs > 1 ? $clog2(Inputs) : 1
) (
  input  logic                               clk_i,
  input  logic                               rst_ni,

  input  logic [Inputs-1:0]                  in_valid_i,
  output logic [Inputs-1:0]                  in_ready_o,
  input  logic [Inputs-1:0][DataBytes*8-1:0] in_data_i,
  input  logic [Inputs-1:0][DataBytes-1:0]   in_keep_i,
  input  logic [Inputs-1:0]                  in_last_i,
  input  logic [Inputs-1:0][UserBits-1:0]    in_user_i,

  output logic                               out_valid_o,
  input  logic                               out_ready_i,
  output logic [DataBytes*8-1:0]             out_data_o,
  output logic [DataBytes-1:0]               out_keep_o,
  output logic                               out_last_o,
  output logic [UserBits-1:0]                out_user_o,
  // Which input the packet came from.
  output logic [SourceBits-1:0]              out_source_o
);

  localparam int unsigned WordBits = DataBytes * 8 + DataBytes + 1 + UserBits + SourceBits;

  // From the cycle after its first offer to its last word: the input that a packet comes from. A
  // choice once made stays, even while the word waits, so that the offered word does not change.
  logic                  locked_q;
  logic [Inputs-1:0]     locked_grant_q;
  logic [SourceBits-1:0] locked_source_q;

  logic [Inputs-1:0]     next_grant, grant;
  logic [SourceBits-1:0] next_source, source;
  logic                  word_valid, word_ready, word_last;
  logic [WordBits-1:0]   word;

  unisono_round_robin #(
    .Requests(Inputs)
  ) u_round_robin (
    .clk_i,
    .rst_ni,
    .request_i(in_valid_i),
    .advance_i(!locked_q),
    .grant_o  (next_grant),
    .index_o  (next_source)
  );

  assign grant      = locked_q ? locked_grant_q : next_grant;
  assign source     = locked_q ? locked_source_q : next_source;
  assign word_valid = (grant & in_valid_i) != '0;
  assign word_last  = (grant & in_last_i) != '0;
  assign in_ready_o = word_ready ? grant : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      locked_q <= 1'b0;
    end else if (word_valid) begin
      locked_q <= !(word_ready && word_last);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!locked_q) begin
      locked_grant_q  <= next_grant;
      locked_source_q <= next_source;
    end
  end

  // Selection by number, which needs fewer LUTs than by the one-hot grant.
  logic [(1<<SourceBits)-1:0][WordBits-1:0] words;
  for (genvar i = 0; i < 1 << SourceBits; i++) begin : gen_word
    if (i < int'(Inputs)) begin : gen_input
      assign words[i] = {SourceBits'(i), in_user_i[i], in_last_i[i], in_keep_i[i], in_data_i[i]};
    end else begin : gen_none
      assign words[i] = '0;
    end
  end
  assign word = words[source];

  unisono_skid #(
    .Width(WordBits)
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (word_valid),
    .in_ready_o (word_ready),
    .in_data_i  (word),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_source_o, out_user_o, out_last_o, out_keep_o, out_data_o})
  );

`ifndef SYNTHESIS
  for (genvar i = 0; i < Inputs; i++) begin : gen_check
    unisono_stream_check #(
      .DataBytes (DataBytes),
      .UserBits  (UserBits),
      .AllowEmpty(1'b1)
    ) u_check (
      .clk_i,
      .rst_ni,
      .valid_i(in_valid_i[i]),
      .ready_i(in_ready_o[i]),
      .data_i (in_data_i[i]),
      .keep_i (in_keep_i[i]),
      .last_i (in_last_i[i]),
      .user_i (in_user_i[i])
    );
  end
  unisono_stream_check #(
    .DataBytes (DataBytes),
    .UserBits  (UserBits + SourceBits),
    .AllowEmpty(1'b1)
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_data_o),
    .keep_i (out_keep_o),
    .last_i (out_last_o),
    .user_i ({out_source_o, out_user_o})
  );
`endif

endmodule
