// Cuts frames into packets of several words for SMI's transport.
//
// A frame is 1 to 65535 bytes in words of DataBytes, with its destination, length and kind; so are
// those of unisono_poe_frame. Packets are of up to Words words, with the header in the last 8 bytes
// of the first one, and all of them full but a frame's last. Data goes as OpSend, and as OpLast the
// packet that ends a frame; control goes as OpSynch. `count` is the packet's bytes in its low bits,
// and its top bit says in either kind that the frame ends with this packet.
//
// Frames go one after the other; who offers them decides which is first. Only the length says where
// a frame ends: in_last_i is checked, and not used.
//
// Latency: 2 cycles, both in register slices: no input leads to an output begun the cycle.
// Throughput: 1 word of a packet per cycle, so (8 * Lanes * Words - 8) of 8 * Lanes * Words bytes.

module unisono_smi_cut #(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned Words     = 4,
  localparam int unsigned Width    = unisono_smi_pkg::word_bits(DataBytes, Words)
) (
  input  logic                                 clk_i,
  input  logic                                 rst_ni,

  // Of this node.
  input  logic [unisono_smi_pkg::RankBits-1:0] rank_i,

  // Frames: destination, length and kind are constant over one.
  input  logic                                 in_valid_i,
  output logic                                 in_ready_o,
  input  logic [DataBytes*8-1:0]               in_data_i,
  input  logic                                 in_last_i,
  input  logic [15:0]                          in_dest_i,
  input  logic [15:0]                          in_bytes_i,
  input  logic                                 in_control_i,

  // Words of packets, with last on top; and which kind of endpoint takes them.
  output logic                                 out_valid_o,
  input  logic                                 out_ready_i,
  output logic                                 out_control_o,
  output logic [Width-1:0]                     out_data_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned LaneBits     = 64;
  localparam int unsigned Lanes        = DataBytes / 8;
  localparam int unsigned HaveBits     = $clog2(Lanes);
  localparam int unsigned WordBits     = $clog2(Words);
  localparam int unsigned PacketBytes  = DataBytes * Words - 8;

  if (DataBytes < 64 || (DataBytes & (DataBytes - 1)) != 0 || Words < 2) begin : gen_bad
    $error("unisono_smi_cut: DataBytes must be a power of two of at least 64, Words at least 2");
  end

  // The frames' side.
  logic                   word_valid, word_take, word_last, word_control;
  logic [DataBytes*8-1:0] word_data;
  logic [15:0]            word_dest, word_bytes;

  unisono_skid #(
    .Width(DataBytes * 8 + 34)
  ) u_in (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i  ({in_control_i, in_bytes_i, in_dest_i, in_last_i, in_data_i}),
    .out_valid_o(word_valid),
    .out_ready_i(word_take),
    .out_data_o ({word_control, word_bytes, word_dest, word_last, word_data})
  );

  // What is left of the frame under way; 0: none is. Its first bytes are the last `have` lanes of
  // the word that was taken last.
  logic [15:0]                     left_q, left, dest_q, dest;
  logic                            control_q, control;
  logic [HaveBits-1:0]             have_q, have, have_d;
  logic [WordBits-1:0]             at_q, at;
  logic [Lanes-1:0][LaneBits-1:0]  before_q, now, merged, packed_lanes;

  logic begun;
  assign begun  = left_q != '0;
  assign left    = begun ? left_q : word_bytes;
  assign dest    = begun ? dest_q : word_dest;
  assign control = begun ? control_q : word_control;
  assign have    = begun ? have_q : '0;
  assign at      = begun ? at_q : '0;
  assign now     = word_data;

  // Bytes that this word of the packet has place for.
  logic [15:0] place, have_bytes;
  logic        need, offer, room, step, frame_ends, packet_ends, header_ends;
  assign place       = at == '0 ? 16'(DataBytes - 8) : 16'(DataBytes);
  assign have_bytes  = 16'({have, 3'd0});
  assign frame_ends  = left <= place;
  assign packet_ends = frame_ends || at == WordBits'(Words - 1);
  assign header_ends = left <= 16'(PacketBytes);
  // Whether the lanes that are left over do not suffice, for the frame or for the place there is.
  assign need        = left > have_bytes && place > have_bytes;
  assign offer       = word_valid || (begun && !need);
  assign step        = offer && room;
  assign word_take   = step && need;
  // Of Lanes - 1 places, or of Lanes; modulo Lanes.
  assign have_d      = at == '0 ? have + HaveBits'(1) : have;

  // Lane j comes from lane j - have, modulo Lanes, of the word before or of this one.
  logic [HaveBits-1:0] from;
  always_comb begin
    from = '0;
    for (int unsigned s = 0; s < Lanes; s++) begin
      // Behind a frame's end stands anything, but nothing that changes.
      merged[s] = s >= Lanes - 32'(have) || !need ? before_q[s] : now[s];
    end
    for (int unsigned j = 0; j < Lanes; j++) begin
      from            = HaveBits'(j) - have;
      packed_lanes[j] = merged[from];
    end
    if (at == '0) begin
      packed_lanes[Lanes-1] = header_bits(DataBytes, '{
        src: rank_i, dst: dest, port: '0,
        op: control ? OpSynch : header_ends ? OpLast : OpSend,
        count: frame_count(header_ends,
                           (CountBits-1)'(header_ends ? left : 16'(PacketBytes)))
      });
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q <= '0;
      have_q <= '0;
      at_q   <= '0;
    end else if (step) begin
      left_q <= frame_ends ? '0 : left - place;
      have_q <= have_d;
      at_q   <= packet_ends ? '0 : at + WordBits'(1);
    end
  end
  always_ff @(posedge clk_i) begin
    if (step) begin
      dest_q    <= dest;
      control_q <= control;
    end
    if (word_take) begin
      before_q <= word_data;
    end
  end

  unisono_skid #(
    .Width(Width + 1)
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (offer),
    .in_ready_o (room),
    .in_data_i  ({control, packet_ends, packed_lanes}),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_control_o, out_data_o})
  );

`ifndef SYNTHESIS
  logic [15:0] beyond;
  assign beyond = left - 16'({have, 3'd0});
  always_ff @(posedge clk_i) begin
    if (rst_ni && word_take) begin
      assert (word_bytes != '0) else $error("%m: an empty frame");
      assert (word_last == (beyond <= 16'(DataBytes)))
        else $error("%m: a frame's words do not make up its length");
    end
  end
`else
  logic unused_last;
  assign unused_last = word_last;
`endif

endmodule
