// Takes the headers out of a frame's packets: words of packets become words of the frame.
//
// A packet has its header in the last 8 bytes of its first word; all packets of a frame are full but
// the last. What a frame is comes beside it, before its first word.
//
// Latency: 1 cycle, in a register slice; a packet's first word alone fills no word. Throughput: 1
// word of a packet per cycle.

module unisono_smi_unpack #(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned Words     = 4,
  parameter int unsigned UserBits  = 16
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // The frame whose words come; taken with its last word.
  input  logic                   frame_valid_i,
  output logic                   frame_ready_o,
  input  logic [15:0]            frame_bytes_i,
  input  logic [UserBits-1:0]    frame_user_i,

  // Its packets, with their headers.
  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [DataBytes*8-1:0] in_data_i,

  // The frame.
  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [DataBytes*8-1:0] out_data_o,
  output logic [DataBytes-1:0]   out_keep_o,
  output logic                   out_last_o,
  output logic [15:0]            out_bytes_o,
  output logic [UserBits-1:0]    out_user_o
);

  localparam int unsigned LaneBits = 64;
  localparam int unsigned Lanes    = DataBytes / 8;
  localparam int unsigned HaveBits = $clog2(Lanes);
  localparam int unsigned WordBits = $clog2(Words);

  if (DataBytes < 64 || (DataBytes & (DataBytes - 1)) != 0 || Words < 2) begin : gen_bad
    $error("unisono_smi_unpack: DataBytes must be a power of two of at least 64, Words at least 2");
  end

  // Bytes that are not yet given; of them the first `have` lanes are in carry_q, the others in words
  // to come.
  logic [15:0]                    left_q, left, gives, behind, brings, have_bytes;
  logic                           within_q, need, ends, full, offer, room, step, take;
  logic [HaveBits-1:0]            have_q, have_d;
  logic [WordBits-1:0]            at_q;
  logic [Lanes-1:0][LaneBits-1:0] carry_q, now, turned, lanes;

  assign left       = within_q ? left_q : frame_bytes_i;
  assign have_bytes = 16'({have_q, 3'd0});
  assign ends       = left <= 16'(DataBytes);
  assign gives      = ends ? left : 16'(DataBytes);
  assign need       = have_bytes < gives;
  // What the next word brings, and whether that fills a word.
  assign behind     = at_q == '0 ? 16'(DataBytes - 8) : 16'(DataBytes);
  assign brings     = left - have_bytes < behind ? left - have_bytes : behind;
  assign full       = !need || have_bytes + brings >= gives;
  assign offer      = frame_valid_i && full && (!need || in_valid_i);
  assign step       = offer && room;
  assign in_ready_o = frame_valid_i && need && (!full || room);
  assign take       = in_valid_i && in_ready_o;
  assign frame_ready_o = step && ends;
  // A packet's first word brings a lane less than a word has.
  assign have_d     = at_q == '0 ? have_q - HaveBits'(1) : have_q;
  assign now        = in_data_i;

  logic [HaveBits-1:0] from;
  always_comb begin
    from = '0;
    for (int unsigned j = 0; j < Lanes; j++) begin
      from      = HaveBits'(j) - have_q;
      turned[j] = now[from];
      // Behind the end stands anything, but nothing that changes.
      lanes[j]  = j < 32'(have_q) || !need ? carry_q[j] : turned[j];
    end
  end

  logic [DataBytes-1:0] keep;
  assign keep = ends && gives != 16'(DataBytes) ? ~({DataBytes{1'b1}} << gives) : '1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      within_q <= 1'b0;
      have_q   <= '0;
      at_q     <= '0;
    end else if (step && ends) begin
      within_q <= 1'b0;
      have_q   <= '0;
      at_q     <= '0;
    end else begin
      if (step) begin
        within_q <= 1'b1;
      end
      if (take) begin
        have_q <= have_d;
        at_q   <= at_q == WordBits'(Words - 1) ? '0 : at_q + WordBits'(1);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (step) begin
      left_q <= left - gives;
    end
    if (take) begin
      carry_q <= turned;
    end
  end

  unisono_skid #(
    .Width(DataBytes * 9 + 17 + UserBits)
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (offer),
    .in_ready_o (room),
    .in_data_i  ({frame_user_i, frame_bytes_i, ends, keep, lanes}),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_user_o, out_bytes_o, out_last_o, out_keep_o, out_data_o})
  );

endmodule
