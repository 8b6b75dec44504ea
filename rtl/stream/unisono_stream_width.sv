// Converts a packet stream to words of another width, by an integer factor either way.
//
// Wider (OutBytes > InBytes): collects words; a wide word leaves when it is full or the packet
// ends. Latency: 1 cycle from the word that completes it. Throughput: 1 narrow word per cycle.
// Narrower: takes a wide word and sends its parts from byte 0; parts without bytes are left out.
// Latency: 1 cycle. Throughput: 1 narrow word per cycle.
// Equal: a register slice.
// The side-band of a packet passes unchanged. Outputs are registered; when converting, in_ready_o
// follows out_ready_i within the cycle.

module unisono_stream_width #(
  parameter int unsigned InBytes  = 8,
  parameter int unsigned OutBytes = 64,
  parameter int unsigned UserBits = 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  in_valid_i,
  output logic                  in_ready_o,
  input  logic [InBytes*8-1:0]  in_data_i,
  input  logic [InBytes-1:0]    in_keep_i,
  input  logic                  in_last_i,
  input  logic [UserBits-1:0]   in_user_i,

  output logic                  out_valid_o,
  input  logic                  out_ready_i,
  output logic [OutBytes*8-1:0] out_data_o,
  output logic [OutBytes-1:0]   out_keep_o,
  output logic                  out_last_o,
  output logic [UserBits-1:0]   out_user_o
);

  if (InBytes % OutBytes != 0 && OutBytes % InBytes != 0) begin : gen_bad_widths
    $error("unisono_stream_width: one width must be a multiple of the other");
  end

  if (OutBytes > InBytes) begin : gen_wider
    localparam int unsigned Parts    = OutBytes / InBytes;
    localparam int unsigned PartBits = $clog2(Parts);

    // The part that the next narrow word fills.
    logic [PartBits-1:0]   part_q;
    logic                  valid_q, last_q;
    logic [OutBytes*8-1:0] data_q;
    logic [OutBytes-1:0]   keep_q;
    logic [UserBits-1:0]   user_q;
    logic                  take, complete;

    assign in_ready_o = !valid_q || out_ready_i;
    assign take       = in_valid_i && in_ready_o;
    assign complete   = in_last_i || part_q == PartBits'(Parts - 1);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        part_q  <= '0;
        valid_q <= 1'b0;
      end else if (in_ready_o) begin
        valid_q <= take && complete;
        if (take) begin
          part_q <= complete ? '0 : part_q + PartBits'(1);
        end
      end
    end

    always_ff @(posedge clk_i) begin
      if (take) begin
        last_q <= in_last_i;
        user_q <= in_user_i;
        for (int unsigned i = 0; i < Parts; i++) begin
          if (part_q == PartBits'(i)) begin
            data_q[i*InBytes*8 +: InBytes*8] <= in_data_i;
            keep_q[i*InBytes +: InBytes]     <= in_keep_i;
          end else if (part_q == '0) begin
            keep_q[i*InBytes +: InBytes] <= '0;
          end
        end
      end
    end

    assign out_valid_o = valid_q;
    assign out_data_o  = data_q;
    assign out_keep_o  = keep_q;
    assign out_last_o  = last_q;
    assign out_user_o  = user_q;

  end else if (OutBytes < InBytes) begin : gen_narrower
    localparam int unsigned RestBytes = InBytes - OutBytes;

    // The part on offer is at the bottom; the rest moves down as parts leave. Zeros come in at
    // the top of keep, so the rest is empty when the lowest bit of its keep is zero.
    logic                valid_q, last_q, rest_empty, part_left;
    logic [OutBytes*8-1:0]  data_q;
    logic [OutBytes-1:0]    keep_q;
    logic [RestBytes*8-1:0] rest_data_q;
    logic [RestBytes-1:0]   rest_keep_q;
    logic [UserBits-1:0]    user_q;

    assign rest_empty = !rest_keep_q[0];
    assign part_left  = out_ready_i || !valid_q;
    assign in_ready_o = !valid_q || (rest_empty && out_ready_i);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        valid_q <= 1'b0;
      end else if (in_ready_o) begin
        valid_q <= in_valid_i;
      end
    end

    always_ff @(posedge clk_i) begin
      if (in_ready_o) begin
        {rest_data_q, data_q} <= in_data_i;
        {rest_keep_q, keep_q} <= in_keep_i;
        last_q                <= in_last_i;
        user_q                <= in_user_i;
      end else if (part_left) begin
        {rest_data_q, data_q} <= (InBytes * 8)'(rest_data_q);
        {rest_keep_q, keep_q} <= InBytes'(rest_keep_q);
      end
    end

    assign out_valid_o = valid_q;
    assign out_data_o  = data_q;
    assign out_keep_o  = keep_q;
    assign out_last_o  = last_q && rest_empty;
    assign out_user_o  = user_q;

  end else begin : gen_equal
    unisono_stream_skid #(
      .DataBytes(InBytes),
      .UserBits (UserBits)
    ) u_skid (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o,
      .in_data_i,
      .in_keep_i,
      .in_last_i,
      .in_user_i,
      .out_valid_o,
      .out_ready_i,
      .out_data_o,
      .out_keep_o,
      .out_last_o,
      .out_user_o
    );
  end

`ifndef SYNTHESIS
  unisono_stream_check #(
    .DataBytes (InBytes),
    .UserBits  (UserBits),
    .AllowEmpty(1'b1)
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
  unisono_stream_check #(
    .DataBytes (OutBytes),
    .UserBits  (UserBits),
    .AllowEmpty(1'b1)
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_data_o),
    .keep_i (out_keep_o),
    .last_i (out_last_o),
    .user_i (out_user_o)
  );
`endif

endmodule
