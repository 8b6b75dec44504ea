// Puts frames together again from the packets that unisono_smi_cut made of them.
//
// Packets of one source come in order, those of several sources come mixed. Each source has a ring of
// RingWords words of its own, in one memory; words are kept as they come. When a frame's last packet
// has come, the frame is whole, and waits for its turn among the sources that have one. So nothing is
// ever given that is not whole, and no source waits for another's rest: a source waits when its own
// ring or its list of frames is full, and then a frame of it is whole, and goes in the end.
//
// A frame whose packets do not fit together (it is longer than MaxBytes, or a packet that does not
// end it is not full, or has other words than its count says) is dropped when it ends, and told; so is
// each packet of a source beyond the last.
//
// Latency: a frame's last word to its first word out 6 cycles. Throughput: 1 word of a packet per
// cycle in, and out; a frame takes 1 cycle besides. After a reset tables are cleared, an entry per
// cycle; until then nothing is taken.

module unisono_smi_join #(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned Words     = 4,
  // Ranks 0 to Sources - 1; a power of two.
  parameter int unsigned Sources   = 64,
  // Words of each source's ring, a power of two: a longest frame's packets and one more fit in.
  parameter int unsigned RingWords = 256,
  // Longest frame.
  parameter int unsigned MaxBytes  = 8256,
  localparam int unsigned Width    = unisono_smi_pkg::word_bits(DataBytes, Words)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Words of packets, with last on top.
  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [Width-1:0]       in_data_i,

  // Whole frames. Source and length are constant over one.
  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [DataBytes*8-1:0] out_data_o,
  output logic [DataBytes-1:0]   out_keep_o,
  output logic                   out_last_o,
  output logic [15:0]            out_source_o,
  output logic [15:0]            out_bytes_o,

  // A frame, or a packet of nobody, was dropped.
  output logic                   dropped_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned PacketBytes = DataBytes * Words - 8;
  localparam int unsigned WordBits    = $clog2(Words);
  localparam int unsigned SourceBits  = $clog2(Sources);
  localparam int unsigned PlaceBits   = $clog2(RingWords);
  // Frames of a source that wait, at most: lengths are kept for so many.
  localparam int unsigned Frames      = 8;
  localparam int unsigned FrameBits   = $clog2(Frames);
  localparam int unsigned BytesBits   = 16;

  if ((1 << SourceBits) != Sources || (1 << PlaceBits) != RingWords || Sources < 2)
  begin : gen_bad_powers
    $error("unisono_smi_join: Sources and RingWords must be powers of two");
  end
  if (((MaxBytes + PacketBytes - 1) / PacketBytes + 1) * Words > RingWords || MaxBytes > 32767)
  begin : gen_bad_ring
    $error("unisono_smi_join: a longest frame and one more packet must fit the ring");
  end

  typedef logic [SourceBits-1:0] source_t;
  typedef logic [PlaceBits:0]    place_t;   // with the lap
  typedef logic [FrameBits:0]    frames_t;  // likewise
  typedef logic [BytesBits-1:0]  bytes_t;

  // Of each source, written by the side that takes packets: where the next packet and the frame that
  // is not whole begin, what has come of it; frames that have become whole.
  typedef struct packed {
    place_t  at;
    place_t  start;
    bytes_t  bytes;
    logic    bad;
    frames_t frames;
  } taken_t;
  // And by the side that gives frames: what has been read, frames that have been begun to be read.
  typedef struct packed {
    place_t  at;
    frames_t frames;
  } given_t;

  (* ram_style = "distributed" *) taken_t taken_mem [Sources];
  (* ram_style = "distributed" *) given_t given_mem [Sources];
  (* ram_style = "distributed" *) bytes_t length_mem [Sources*Frames];

  logic    started_q;
  source_t clear_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      started_q <= 1'b0;
      clear_q   <= '0;
    end else if (!started_q) begin
      clear_q   <= clear_q + source_t'(1);
      started_q <= clear_q == '1;
    end
  end

  // ---- Packets come. A packet's state is looked up for each word of it, and written with the last.
  header_t             first_header, header_q, header;
  logic                first_q, last, known, room, take, ends, wrong, drop;
  logic [WordBits-1:0] word_q;
  source_t             source;
  taken_t              taken, taken_d;
  given_t              given;
  bytes_t              count, total, needs;
  place_t              held, next;

  assign last         = in_data_i[Width-1];
  assign first_header = header_of(DataBytes, in_data_i[DataBytes*8-1-:WideHeaderBits]);
  assign header       = first_q ? first_header : header_q;
  assign source       = header.src[SourceBits-1:0];
  assign known        = 32'(header.src) < Sources;
  assign taken        = taken_mem[source];
  assign given        = given_mem[source];
  assign held         = taken.at - given.at;
  // A packet begins only when the ring has room for all of its words.
  assign room         = !first_q || !known ||
                        (32'(held) <= RingWords - Words &&
                         32'(frames_t'(taken.frames - given.frames)) < Frames);
  assign in_ready_o   = started_q && room;
  assign take         = in_valid_i && in_ready_o;

  assign ends  = header.count[CountBits-1];
  assign count = bytes_t'(header.count[CountBits-2:0]);
  assign total = taken.bytes + count;
  logic unused_header;
  assign unused_header = ^{header.op, header.port, header.dst};

  assign needs = (count + 16'd7) / 16'(DataBytes);  // the number of the packet's last word
  assign wrong = taken.bad || count == '0 || count > 16'(PacketBytes) ||
                 (!ends && count != 16'(PacketBytes)) || 32'(total) > MaxBytes ||
                 needs != bytes_t'(word_q);
  assign next  = taken.at + place_t'(word_q) + place_t'(1);

  always_comb begin
    taken_d = taken;
    if (wrong) begin
      // What came of it is forgotten, and what comes of it will be.
      taken_d.at    = taken.start;
      taken_d.bytes = '0;
      taken_d.bad   = !ends;
    end else if (ends) begin
      taken_d.at     = next;
      taken_d.start  = next;
      taken_d.bytes  = '0;
      taken_d.frames = taken.frames + frames_t'(1);
    end else begin
      taken_d.at    = next;
      taken_d.bytes = total;
    end
  end

  logic finish, whole;
  assign finish = take && last && known;
  assign whole  = finish && ends && !wrong;
  assign drop   = take && last && (!known || (ends && wrong));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q   <= 1'b1;
      word_q    <= '0;
      dropped_o <= 1'b0;
    end else begin
      dropped_o <= drop;
      if (take) begin
        first_q <= last;
        word_q  <= last ? '0 : word_q + WordBits'(1);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (take && first_q) begin
      header_q <= first_header;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      taken_mem[clear_q] <= '0;
    end else if (finish) begin
      taken_mem[source] <= taken_d;
    end
  end
  always_ff @(posedge clk_i) begin
    if (whole) begin
      length_mem[{source, taken.frames[FrameBits-1:0]}] <= total;
    end
  end

  // ---- Frames that are whole: sources take turns.
  logic [Sources-1:0] waiting_q, grant, more;
  source_t            granted;
  logic               pick, reads_q, info_room, info_valid, frame_done;

  unisono_round_robin #(
    .Requests(Sources)
  ) u_turn (
    .clk_i,
    .rst_ni,
    .request_i(waiting_q),
    .advance_i(pick),
    .grant_o  (grant),
    .index_o  (granted)
  );

  given_t picked;
  bytes_t picked_bytes;
  assign pick         = started_q && !reads_q && info_room && waiting_q != '0;
  assign picked       = given_mem[granted];
  assign picked_bytes = length_mem[{granted, picked.frames[FrameBits-1:0]}];

  always_comb begin
    more = waiting_q;
    if (pick && taken_mem[granted].frames == picked.frames + frames_t'(1)) begin
      more = waiting_q & ~grant;
    end
    if (whole) begin
      more[source] = 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    waiting_q <= rst_ni ? more : '0;
  end

  // ---- Its words are read. A packet has 8 bytes less in its first word.
  source_t             reading_q;
  given_t              given_q;
  bytes_t              unread_q, fetches;
  logic [WordBits-1:0] fetch_q;
  logic                fetch;

  assign fetches = fetch_q == '0 ? 16'(DataBytes - 8) : 16'(DataBytes);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reads_q <= 1'b0;
      fetch_q <= '0;
    end else if (pick) begin
      reads_q <= 1'b1;
      fetch_q <= '0;
    end else if (fetch) begin
      reads_q <= unread_q > fetches;
      fetch_q <= fetch_q == WordBits'(Words - 1) ? '0 : fetch_q + WordBits'(1);
    end
  end
  always_ff @(posedge clk_i) begin
    if (pick) begin
      reading_q      <= granted;
      unread_q       <= picked_bytes;
      given_q.at     <= picked.at;
      given_q.frames <= picked.frames + frames_t'(1);
    end else if (fetch) begin
      unread_q       <= unread_q - fetches;
      given_q.at     <= given_q.at + place_t'(1);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      given_mem[clear_q] <= '0;
    end else if (pick) begin
      given_mem[granted] <= '{at: picked.at, frames: picked.frames + frames_t'(1)};
    end else if (fetch) begin
      given_mem[reading_q] <= '{at: given_q.at + place_t'(1), frames: given_q.frames};
    end
  end

  logic                   read_valid, read_take;
  logic [DataBytes*8-1:0] read_data;
  logic [PlaceBits-1:0]   write_at;
  assign write_at = taken.at[PlaceBits-1:0] + PlaceBits'(word_q);

  unisono_ram_reader #(
    .Width   (DataBytes * 8),
    .Depth   (Sources * RingWords),
    .BlockRam(Sources * RingWords > 64)
  ) u_ring (
    .clk_i,
    .rst_ni,
    .wr_en_i    (take && known),
    .wr_addr_i  ({source, write_at}),
    .wr_data_i  (in_data_i[DataBytes*8-1:0]),
    .avail_i    (reads_q),
    .rd_addr_i  ({reading_q, given_q.at[PlaceBits-1:0]}),
    .fetch_o    (fetch),
    .out_valid_o(read_valid),
    .out_ready_i(read_take),
    .out_data_o (read_data)
  );

  // ---- And put together.
  source_t info_source;
  bytes_t  info_bytes;
  logic [1:0] unused_count;
  unisono_fifo #(
    .Width(SourceBits + BytesBits),
    .Depth(2)
  ) u_info (
    .clk_i,
    .rst_ni,
    .in_valid_i (pick),
    .in_ready_o (info_room),
    .in_data_i  ({granted, picked_bytes}),
    .out_valid_o(info_valid),
    .out_ready_i(frame_done),
    .out_data_o ({info_source, info_bytes}),
    .count_o    (unused_count)
  );

  unisono_smi_unpack #(
    .DataBytes(DataBytes),
    .Words    (Words),
    .UserBits (16)
  ) u_unpack (
    .clk_i,
    .rst_ni,
    .frame_valid_i(info_valid),
    .frame_ready_o(frame_done),
    .frame_bytes_i(info_bytes),
    .frame_user_i (16'(info_source)),
    .in_valid_i   (read_valid),
    .in_ready_o   (read_take),
    .in_data_i    (read_data),
    .out_valid_o,
    .out_ready_i,
    .out_data_o,
    .out_keep_o,
    .out_last_o,
    .out_bytes_o,
    .out_user_o   (out_source_o)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && take) begin
      assert (last || 32'(word_q) < Words - 1) else $error("%m: a packet has too many words");
    end
  end
`endif

endmodule
