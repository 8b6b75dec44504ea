// Frames of handlers, and what the parts of a station say to each other about the packets in them
// (docs/rtl/handler_station.md).
//
// A frame is one word of headers, 64 bytes in each format, and then the packet's bytes: so payload needs no shifting.
package unisono_handler_station_pkg;

  import unisono_spec_pkg::*;

  // A design uses only a part of this package, and functions only look at some bits of what they get.
  // verilator lint_off UNUSEDPARAM
  // verilator lint_off UNUSEDSIGNAL

  localparam int unsigned FrameBytes = 64;  // of a word, and of all headers
  localparam int unsigned FrameBits = 8 * FrameBytes;
  localparam int unsigned MostPacket = 8192;
  localparam int unsigned MostPacketWords = MostPacket / FrameBytes;
  localparam int unsigned MostMachines = 16;
  localparam int unsigned StatusBytes = 16;  // of a status, which is the payload of an end
  localparam int unsigned StatusBits = 8 * StatusBytes;

  typedef logic [FrameBits-1:0] frame_word_t;

  // What is around a packet: the engine's header, or Ethernet, IPv4, UDP and 22 bytes of Unisono.
  typedef enum logic {
    FormatEngine = 1'b0,
    FormatUdp = 1'b1
  } format_e;

  // The last 22 bytes of the headers in the UDP format; the lowest byte first.
  typedef struct packed {
    logic [31:0] tag;
    logic [23:0] packets;
    logic [23:0] packet;
    logic [15:0] ranks;
    logic [15:0] source;
    logic [15:0] message;
    logic [15:0] job;
    logic [7:0]  slot;
    logic [3:0]  kind;
    logic [3:0]  version;
    logic [15:0] magic;
  } packet_header_t;
  localparam int unsigned PacketHeaderByte = 42;
  localparam logic [15:0] PacketMagic = 16'h4855;  // the letters "UH"
  localparam logic [3:0] PacketVersion = 4'd1;

  typedef enum logic [3:0] {
    KindPacket = 4'd0,
    KindEnd = 4'd1  // its message is over: the payload is a status
  } kind_e;

  // Why a message ended.
  typedef enum logic [7:0] {
    ReasonDone = 8'd0,
    ReasonDropped = 8'd1,  // by a verdict of the handler
    ReasonFailed = 8'd2,  // by another verdict
    ReasonStopped = 8'd16,  // and stop_e
    ReasonRoom = 8'd32,  // no place for another message
    ReasonHandler = 8'd33,  // no handler in its slot
    ReasonOrder = 8'd34,  // a packet was not the next one of its message
    ReasonLate = 8'd35  // the next packet did not come
  } reason_e;

  typedef struct packed {
    logic [31:0] packet;
    logic [31:0] word;
    logic [31:0] verdict;
    logic [7:0]  zero;
    logic [7:0]  function_;
    logic [7:0]  slot;
    logic [7:0]  reason;  // reason_e
  } status_t;

  // What a frame's headers say.
  typedef struct packed {
    logic        sound;  // all that can be seen without checksums and the frame's length
    logic [7:0]  slot;
    logic [15:0] job;
    logic [15:0] message;
    logic [15:0] source;
    logic [15:0] ranks;
    logic [23:0] packet;
    logic [23:0] packets;
    logic [31:0] tag;
    logic [13:0] bytes;  // of the payload
  } facts_t;

  // What goes with a packet from part to part. An item that closes ends its message: a word without a packet's bytes,
  // whose data is a status.
  typedef struct packed {
    logic        closes;
    logic [23:0] packet;
    logic [23:0] packets;  // 0: not known yet
    logic [15:0] source;
    logic [15:0] ranks;
    logic [31:0] tag;
  } about_t;

  // Where what a slot's messages lead to is sent, and whether to the next machine first.
  typedef struct packed {
    logic        named;  // to `address`, instead of where the packet says
    logic        back;  // UDP: source and destination change places
    logic        goes_on;  // output is the next machine's packet
    logic [15:0] address;
  } way_t;

  function automatic logic [15:0] swapped(logic [15:0] value);
    return {value[7:0], value[15:8]};
  endfunction

  // How many bytes a word has: keep is contiguous from byte 0.
  function automatic logic [6:0] kept_of(logic [FrameBytes-1:0] keep);
    kept_of = '0;
    for (int unsigned b = 0; b < FrameBytes; b++) begin
      if (keep[b] && (b == FrameBytes - 1 || !keep[(b + 1) % FrameBytes])) kept_of |= 7'(b + 1);
    end
  endfunction

  // 16 bits of a header, the first byte on top.
  function automatic logic [15:0] field_of(frame_word_t word, int unsigned at);
    return {word[8*at+:8], word[8*at+8+:8]};
  endfunction

  // A sum of 16-bit numbers, folded to 16 bits as RFC 1071 says: 0 only if all of them are.
  function automatic logic [15:0] folded(logic [31:0] sum);
    logic [16:0] once;
    once = 17'(sum[15:0]) + 17'(sum[31:16]);
    return once[15:0] + 16'(once[16]);
  endfunction

  // Sums of pairs of bytes as they lie in memory: RFC 1071's sum with its two bytes swapped.
  function automatic logic [31:0] sum_of(frame_word_t word, int unsigned from, int unsigned to);
    sum_of = '0;
    for (int unsigned b = 0; b < FrameBytes; b += 2) begin
      if (b >= from && b < to) sum_of += 32'(word[8*b+:16]);
    end
  endfunction

  function automatic facts_t facts_of(format_e format, frame_word_t word);
    facts_t f;
    header_t h;
    packet_header_t p;
    logic [15:0] udp_bytes;
    h = word;
    p = word[FrameBits-1:8*PacketHeaderByte];
    udp_bytes = field_of(word, 38);
    if (format == FormatEngine) begin
      f.slot = h.port[7:0];
      f.job = h.communicator[15:0];
      f.message = h.sequence_[15:0];
      f.source = h.source[15:0];
      f.ranks = h.token_slot;
      f.packet = h.session_sequence[23:0];
      f.packets = h.signature[23:0];
      f.tag = h.tag;
      f.bytes = h.segment_bytes[13:0];
      f.sound = h.magic == 16'(Magic) && h.version == 4'(WireVersion) && header_well_formed(h)
                && h.type_ == MessageTypeEager && h.first && h.last && h.stream && !h.point_to_point && !h.trailer
                && !h.aggregate && h.port[15:8] == '0 && h.communicator[31:16] == '0 && h.sequence_[31:16] == '0
                && h.source[31:16] == '0 && h.session_sequence[31:24] == '0 && h.signature[31:24] == '0
                && h.destination[31:16] == '0 && h.segment_bytes <= 32'(MostPacket) && h.offset == '0
                && h.message_bytes == 48'(h.segment_bytes);
    end else begin
      f.slot = p.slot;
      f.job = p.job;
      f.message = p.message;
      f.source = p.source;
      f.ranks = p.ranks;
      f.packet = p.packet;
      f.packets = p.packets;
      f.tag = p.tag;
      f.bytes = 14'(udp_bytes - 16'd30);
      // IPv4 without options, in one piece; UDP has 8 bytes of header, and the packet's 22.
      f.sound = field_of(word, 12) == 16'h0800 && word[8*14+:8] == 8'h45 && word[8*23+:8] == 8'd17
                && (field_of(word, 20) & 16'h3fff) == '0 && field_of(word, 16) == udp_bytes + 16'd20
                && udp_bytes >= 16'd30 && udp_bytes <= 16'(MostPacket + 30)
                && p.magic == PacketMagic && p.version == PacketVersion && p.kind == KindPacket;
    end
    f.sound = f.sound && f.ranks != '0 && f.packet < f.packets;
    return f;
  endfunction

  // What a frame's headers are written anew with.
  typedef struct packed {
    way_t        way;
    kind_e       kind;
    logic [23:0] packet;
    logic [23:0] packets;  // of an end: how many there were; else 0
    logic [13:0] bytes;  // of the payload
  } rewrite_t;

  // The network's address to which it goes.
  function automatic logic [15:0] address_of(format_e format, frame_word_t word, way_t way);
    header_t h;
    h = word;
    if (way.named) return way.address;
    if (format == FormatEngine) return h.destination[15:0];
    return field_of(word, way.back ? 28 : 32);
  endfunction

  // All headers of a message's first packet, with what is new in them, but for checksums, which are 0.
  function automatic frame_word_t rewritten(format_e format, frame_word_t word, rewrite_t r);
    header_t h;
    packet_header_t p;
    frame_word_t w;
    logic [15:0] udp_bytes, address;
    w = word;
    address = address_of(format, word, r.way);
    if (format == FormatEngine) begin
      h = word;
      h.type_ = r.kind == KindEnd ? MessageTypeControl : MessageTypeEager;
      h.destination = 32'(address);
      h.session_sequence = 32'(r.packet);
      h.signature = 32'(r.packets);
      h.segment_bytes = 32'(r.bytes);
      h.message_bytes = 48'(r.bytes);
      h.checksum = '0;
      return h;
    end
    udp_bytes = 16'(r.bytes) + 16'd30;
    p = word[FrameBits-1:8*PacketHeaderByte];
    p.kind = r.kind;
    p.packet = r.packet;
    p.packets = r.packets;
    w[FrameBits-1:8*PacketHeaderByte] = p;
    if (r.way.back) begin
      w[0+:96] = {word[0+:48], word[48+:48]};
      w[8*26+:64] = {word[8*26+:32], word[8*30+:32]};
      w[8*34+:32] = {word[8*34+:16], word[8*36+:16]};
    end
    if (r.way.named) w[8*32+:16] = swapped(address);
    w[8*16+:16] = swapped(udp_bytes + 16'd20);
    w[8*24+:16] = '0;
    w[8*38+:16] = swapped(udp_bytes);
    w[8*40+:16] = '0;
    return w;
  endfunction

  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNUSEDPARAM

endpackage
