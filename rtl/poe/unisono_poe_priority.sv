// Joins two packet streams into one, a whole packet at a time; between packets input 1 goes first
// whenever it offers a word.
//
// For a control stream that must never wait behind more than one packet of data. Input 0 can
// starve if input 1 never pauses: what comes by input 1 must be bounded by its sender.
//
// Latency: 1 cycle, or none without Registered. Throughput: 1 word per cycle, also with packets of
// one word. Outputs are registered, and in_ready_o depends on in_valid_i within the cycle, not on
// out_ready_i; without Registered there is a choice of two between inputs and outputs, both ways.

module unisono_poe_priority #(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned UserBits  = 1,
  parameter bit          Registered = 1'b1
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,

  input  logic [1:0]                  in_valid_i,
  output logic [1:0]                  in_ready_o,
  input  logic [1:0][DataBytes*8-1:0] in_data_i,
  input  logic [1:0][DataBytes-1:0]   in_keep_i,
  input  logic [1:0]                  in_last_i,
  input  logic [1:0][UserBits-1:0]    in_user_i,

  output logic                        out_valid_o,
  input  logic                        out_ready_i,
  output logic [DataBytes*8-1:0]      out_data_o,
  output logic [DataBytes-1:0]        out_keep_o,
  output logic                        out_last_o,
  output logic [UserBits-1:0]         out_user_o,
  // Which input the packet came from.
  output logic                        out_source_o
);

  localparam int unsigned WordBits = DataBytes * 8 + DataBytes + 1 + UserBits + 1;

  // From the cycle after its first offer to its last word: the input that a packet comes from. A
  // choice once made stays, even while the word waits, so that the offered word does not change.
  logic locked_q, source_q, source, valid, ready;

  assign source = locked_q ? source_q : in_valid_i[1];
  assign valid  = in_valid_i[source];

  always_comb begin
    in_ready_o         = '0;
    in_ready_o[source] = ready && valid;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      locked_q <= 1'b0;
      source_q <= 1'b0;
    end else if (valid) begin
      locked_q <= !(ready && in_last_i[source]);
      source_q <= source;
    end
  end

  if (Registered) begin : gen_registered
    unisono_skid #(
      .Width(WordBits)
    ) u_out (
      .clk_i,
      .rst_ni,
      .in_valid_i (valid),
      .in_ready_o (ready),
      .in_data_i  ({source, in_user_i[source], in_last_i[source], in_keep_i[source],
                    in_data_i[source]}),
      .out_valid_o,
      .out_ready_i,
      .out_data_o ({out_source_o, out_user_o, out_last_o, out_keep_o, out_data_o})
    );
  end else begin : gen_direct
    assign ready        = out_ready_i;
    assign out_valid_o  = valid;
    assign out_data_o   = in_data_i[source];
    assign out_keep_o   = in_keep_i[source];
    assign out_last_o   = in_last_i[source];
    assign out_user_o   = in_user_i[source];
    assign out_source_o = source;
  end

`ifndef SYNTHESIS
  for (genvar i = 0; i < 2; i++) begin : gen_check
    unisono_stream_check #(
      .DataBytes(DataBytes),
      .UserBits (UserBits)
    ) u_check_in (
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
`endif

endmodule
