// Casts the packets of a stream from fp32 to fp16 or bf16, or passes them, as each packet asks.
// Elements of the result are packed: two words become one. To nearest, ties to even; NaN becomes
// quiet and keeps sign and upper payload; bit for bit narrow_fp16 and narrow_bf16 of
// core/arithmetic.hpp.
//
// Latency: 5 cycles (from the word that completes one of the result). Throughput: one word per
// cycle in. A packet to be cast has whole elements. Outputs and in_ready_o are registered.

module unisono_cast_narrow
  import unisono_plugin_pkg::*;
#(
  // A multiple of 8.
  parameter int unsigned DataBytes = 64,
  parameter int unsigned UserBits = 1
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Constant over a packet: a cast_mode_e.
  input  logic [1:0]             in_mode_i,
  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [DataBytes*8-1:0] in_data_i,
  input  logic [DataBytes-1:0]   in_keep_i,
  input  logic                   in_last_i,
  input  logic [UserBits-1:0]    in_user_i,

  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [DataBytes*8-1:0] out_data_o,
  output logic [DataBytes-1:0]   out_keep_o,
  output logic                   out_last_o,
  output logic [UserBits-1:0]    out_user_o
);

  localparam int unsigned Lanes = DataBytes / 4;
  localparam int unsigned HalfBytes = DataBytes / 2;

  if (DataBytes % 8 != 0) begin : gen_bad_width
    $error("unisono_cast_narrow: DataBytes must be a multiple of 8");
  end

  // Travels beside the lanes.
  typedef struct packed {
    cast_mode_e             mode;
    logic [DataBytes-1:0]   keep;
    logic                   last;
    logic [UserBits-1:0]    user;
  } side_t;

  // All stages move together; what stops them is a register of the slice at the end.
  logic step;
  assign in_ready_o = step;

  logic [2:0] valid_q;
  side_t side_q0, side_q1, side_q2;
  logic [Lanes-1:0][15:0] narrow_q2;
  logic [DataBytes*8-1:0] data_q2;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else if (step) valid_q <= {valid_q[1:0], in_valid_i};
  end
  always_ff @(posedge clk_i) begin
    // A stage keeps what it holds while nothing enters it: that is of no use to anyone, and idle
    // stages cost a simulator nothing.
    if (step && in_valid_i) begin
      side_q0 <= '{
        mode: cast_mode_e'(in_mode_i),
        keep: in_keep_i,
        last: in_last_i,
        user: in_user_i
      };
    end
    if (step && valid_q[0]) side_q1 <= side_q0;
    if (step && valid_q[1]) side_q2 <= side_q1;
  end
  for (genvar i = 0; i < int'(Lanes); i++) begin : gen_lane
    unisono_half_narrow u_lane (
      .clk_i,
      .step_i  ({3{step}} & {valid_q[1:0], in_valid_i}),
      .brain_i (side_q1.mode == CastModeBf16),
      .number_i(in_data_i[32*i+:32]),
      .half_o  (narrow_q2[i]),
      .number_o(data_q2[32*i+:32])
    );
  end

  // Packing. The lower half of a word waits for the upper one, or for the packet's end.
  logic [HalfBytes-1:0] narrow_keep;
  always_comb begin
    for (int unsigned i = 0; i < Lanes; i++) narrow_keep[2*i+:2] = {2{side_q2.keep[4*i]}};
  end

  logic pass, half_q, full_d, full_q;
  logic [HalfBytes*8-1:0] lower_q;
  logic [DataBytes*8-1:0] data_q;
  side_t side_q;
  assign pass = side_q2.mode == CastModePass;
  assign full_d = valid_q[2] && (pass || half_q || side_q2.last);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      half_q <= 1'b0;
      full_q <= 1'b0;
    end else if (step) begin
      full_q <= full_d;
      if (valid_q[2]) half_q <= !full_d;
    end
  end
  always_ff @(posedge clk_i) begin
    if (step && valid_q[2]) begin
      side_q <= side_q2;
      if (!full_d) lower_q <= narrow_q2;
      if (pass) begin
        data_q <= data_q2;
      end else if (half_q) begin
        data_q <= {narrow_q2, lower_q};
        side_q.keep <= {narrow_keep, {HalfBytes{1'b1}}};
      end else begin
        data_q <= {narrow_q2, narrow_q2};
        side_q.keep <= DataBytes'(narrow_keep);
      end
    end
  end

  unisono_stream_skid #(
    .DataBytes(DataBytes),
    .UserBits (UserBits)
  ) u_skid (
    .clk_i,
    .rst_ni,
    .in_valid_i(full_q),
    .in_ready_o(step),
    .in_data_i (data_q),
    .in_keep_i (side_q.keep),
    .in_last_i (side_q.last),
    .in_user_i (side_q.user),
    .out_valid_o,
    .out_ready_i,
    .out_data_o,
    .out_keep_o,
    .out_last_o,
    .out_user_o
  );

  logic unused;
  assign unused = ^side_q.mode;

`ifndef SYNTHESIS
  logic inside_q;
  logic [1:0] mode_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
    end else if (in_valid_i && in_ready_o) begin
      inside_q <= !in_last_i;
      mode_q <= in_mode_i;
      assert (!inside_q || mode_q == in_mode_i) else $error("%m: the mode changed within a packet");
      for (int unsigned i = 0; i < Lanes; i++) begin
        assert (in_mode_i == 2'(CastModePass) || in_keep_i[4*i+:4] inside {4'h0, 4'hf})
          else $error("%m: part of an element");
      end
    end
  end
  unisono_stream_check #(
    .DataBytes (DataBytes),
    .UserBits  (UserBits)
  ) u_check_in (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i (in_data_i),
    .keep_i (in_keep_i),
    .last_i (in_last_i),
    .user_i (in_user_i)
  );
`endif

endmodule
