// Sends each packet of a stream to the output that its destination names.
//
// The destination is taken from a packet's first word and holds for the packet. A packet whose
// destination names no output is thrown away, and stray_o is high for the cycle in which its last
// word goes. A packet that its output does not take stops those behind it.
//
// Latency: 1 cycle. Throughput: 1 word per cycle. Outputs share one data register; their
// out_valid_o is one gate behind registers. in_ready_o comes from a register.

module unisono_stream_demux #(
  parameter int unsigned Outputs   = 4,
  parameter int unsigned DataBytes = 64,
  parameter int unsigned UserBits  = 1,
  parameter int unsigned DestBits  = Outputs > 1 ? $clog2(Outputs) : 1
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  input  logic                                in_valid_i,
  output logic                                in_ready_o,
  input  logic [DataBytes*8-1:0]              in_data_i,
  input  logic [DataBytes-1:0]                in_keep_i,
  input  logic                                in_last_i,
  input  logic [UserBits-1:0]                 in_user_i,
  input  logic [DestBits-1:0]                 in_dest_i,

  output logic [Outputs-1:0]                  out_valid_o,
  input  logic [Outputs-1:0]                  out_ready_i,
  output logic [Outputs-1:0][DataBytes*8-1:0] out_data_o,
  output logic [Outputs-1:0][DataBytes-1:0]   out_keep_o,
  output logic [Outputs-1:0]                  out_last_o,
  output logic [Outputs-1:0][UserBits-1:0]    out_user_o,
  output logic [Outputs-1:0][DestBits-1:0]    out_dest_o,

  output logic                                stray_o
);

  if (DestBits < $clog2(Outputs)) begin : gen_bad_dest_bits
    $error("unisono_stream_demux: DestBits cannot name every output");
  end

  localparam int unsigned WordBits = DataBytes * 8 + DataBytes + 1 + UserBits + DestBits;

  // Within a packet: where it goes.
  logic                locked_q;
  logic [Outputs-1:0]  locked_select_q, select;
  logic [DestBits-1:0] locked_dest_q, dest;

  assign dest = locked_q ? locked_dest_q : in_dest_i;

  always_comb begin
    select = locked_select_q;
    if (!locked_q) begin
      for (int unsigned i = 0; i < Outputs; i++) begin
        select[i] = 32'(in_dest_i) == i;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      locked_q <= 1'b0;
    end else if (in_valid_i && in_ready_o) begin
      locked_q <= !in_last_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!locked_q) begin
      locked_select_q <= select;
      locked_dest_q   <= in_dest_i;
    end
  end

  logic                word_valid, word_ready;
  logic [Outputs-1:0]  word_select;
  logic [WordBits-1:0] word;

  unisono_skid #(
    .Width(Outputs + WordBits)
  ) u_in (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i  ({select, dest, in_user_i, in_last_i, in_keep_i, in_data_i}),
    .out_valid_o(word_valid),
    .out_ready_i(word_ready),
    .out_data_o ({word_select, word})
  );

  // A word for no output goes nowhere.
  assign word_ready  = (word_select & ~out_ready_i) == '0;
  assign out_valid_o = word_valid ? word_select : '0;

  for (genvar i = 0; i < Outputs; i++) begin : gen_out
    assign {out_dest_o[i], out_user_o[i], out_last_o[i], out_keep_o[i], out_data_o[i]} = word;
  end

  assign stray_o = word_valid && word_select == '0 && out_last_o[0];

`ifndef SYNTHESIS
  unisono_stream_check #(
    .DataBytes (DataBytes),
    .UserBits  (UserBits + DestBits),
    .AllowEmpty(1'b1)
  ) u_check_in (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i (in_data_i),
    .keep_i (in_keep_i),
    .last_i (in_last_i),
    .user_i ({in_user_i, in_dest_i})
  );
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ($onehot0(out_valid_o)) else $error("%m: a word for more than one output");
    end
  end
`endif

endmodule
