// Casts the packets of a stream from fp16 or bf16 to fp32, or passes them, as each packet asks. One
// word becomes two, or one if it ends in its lower half. Exact; NaN keeps its payload; bit for bit
// `widen` of core/arithmetic.hpp.
//
// Latency: 3 cycles. Throughput: one word per cycle out. A packet to be cast has whole elements.
// Outputs and in_ready_o are registered, but for the second half of a word.

module unisono_cast_widen
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
    $error("unisono_cast_widen: DataBytes must be a multiple of 8");
  end

  // Both stages move together; what stops them is a register of the slice at the end.
  logic step;

  // The word at hand; its half in turn stands below.
  logic valid_q, upper_q, last_q;
  cast_mode_e mode_q;
  logic [DataBytes*8-1:0] data_q;
  logic [DataBytes-1:0] keep_q;
  logic [UserBits-1:0] user_q;
  // The word at hand has another half to come.
  logic more;
  assign more = valid_q && mode_q != CastModePass && !upper_q && keep_q[HalfBytes];
  assign in_ready_o = step && !more;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      upper_q <= 1'b0;
    end else if (step) begin
      upper_q <= more;
      if (!more) valid_q <= in_valid_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (step && more) begin
      data_q[HalfBytes*8-1:0] <= data_q[DataBytes*8-1:HalfBytes*8];
      keep_q[HalfBytes-1:0] <= keep_q[DataBytes-1:HalfBytes];
    end else if (step && in_valid_i) begin
      data_q <= in_data_i;
      keep_q <= in_keep_i;
      last_q <= in_last_i;
      mode_q <= cast_mode_e'(in_mode_i);
      user_q <= in_user_i;
    end
  end

  logic wide_valid_q, wide_last_q;
  logic [DataBytes*8-1:0] wide_data_q;
  logic [DataBytes-1:0] wide_keep_q;
  logic [UserBits-1:0] wide_user_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) wide_valid_q <= 1'b0;
    else if (step) wide_valid_q <= valid_q;
  end
  always_ff @(posedge clk_i) begin
    if (step && valid_q) begin
      wide_last_q <= last_q && !more;
      wide_user_q <= user_q;
      for (int unsigned i = 0; i < Lanes; i++) begin
        case (mode_q)
          CastModeFp16: wide_data_q[32*i+:32] <= widen_fp16(data_q[16*i+:16]);
          CastModeBf16: wide_data_q[32*i+:32] <= widen_bf16(data_q[16*i+:16]);
          default: wide_data_q[32*i+:32] <= data_q[32*i+:32];
        endcase
        wide_keep_q[4*i+:4] <= mode_q == CastModePass ? keep_q[4*i+:4] : {4{keep_q[2*i]}};
      end
    end
  end

  unisono_stream_skid #(
    .DataBytes(DataBytes),
    .UserBits (UserBits)
  ) u_skid (
    .clk_i,
    .rst_ni,
    .in_valid_i(wide_valid_q),
    .in_ready_o(step),
    .in_data_i (wide_data_q),
    .in_keep_i (wide_keep_q),
    .in_last_i (wide_last_q),
    .in_user_i (wide_user_q),
    .out_valid_o,
    .out_ready_i,
    .out_data_o,
    .out_keep_o,
    .out_last_o,
    .out_user_o
  );

`ifndef SYNTHESIS
  logic inside_q;
  logic [1:0] in_mode_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
    end else if (in_valid_i && in_ready_o) begin
      inside_q <= !in_last_i;
      in_mode_q <= in_mode_i;
      assert (!inside_q || in_mode_q == in_mode_i)
        else $error("%m: the mode changed within a packet");
      for (int unsigned i = 0; i < DataBytes / 2; i++) begin
        assert (in_mode_i == 2'(CastModePass) || in_keep_i[2*i+:2] inside {2'h0, 2'h3})
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
