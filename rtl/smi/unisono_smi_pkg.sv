// Packets of the SMI transport, and what opens a channel.
//
// A packet is, if nothing else is said, one word of PacketBytes bytes: elements from byte 0, the header in the last bytes.
//
// Packets of 32 bytes have SMI's own header of 4 bytes (bytes 28 to 31 of the packet):
//
//   byte 0 source, 1 destination, 2 port, 3 operation in bits 2 to 0 and valid elements in bits 7 to 3
//
// Wider ones (64, 128, 256 bytes) have a header of 8 bytes, little-endian:
//
//   bytes 0-1 source, 2-3 destination, 4-5 port, 6-7 operation in bits 2 to 0, elements in 15 to 3
//
// A wide packet may have several words (parameter Words), of 256 bytes in all. Its header is in the
// last 8 bytes of the first word; the others are full of elements. Beside each word goes whether it
// is the last one, as the top bit of what carries it.
//
// A packet of operation OpSynch is control, every other one data. Control and data never wait for
// each other: each kind has VirtualChannels channels of its own on every link and in every queue.
// Channel number: kind * VirtualChannels + virtual channel, kind 1 being control.

package unisono_smi_pkg;

  // Operations as SMI numbers them; OpLast is the one it left free.
  localparam int unsigned OpBits = 3;
  typedef enum logic [OpBits-1:0] {
    OpSend      = 3'd0,
    OpReceive   = 3'd1,
    OpBroadcast = 3'd2,
    // Tells a sender how far it may go on.
    OpSynch     = 3'd3,
    OpScatter   = 3'd4,
    OpReduce    = 3'd5,
    OpGather    = 3'd6,
    // Elements sent, as OpSend, and the message ends with them.
    OpLast      = 3'd7
  } op_e;

  localparam int unsigned RankBits  = 16;
  localparam int unsigned PortBits  = 16;
  localparam int unsigned CountBits = 13;

  // A header in the form that the modules work with, whatever the packet's size.
  typedef struct packed {
    logic [CountBits-1:0] count;
    op_e                  op;
    logic [PortBits-1:0]  port;
    logic [RankBits-1:0]  dst;
    logic [RankBits-1:0]  src;
  } header_t;

  localparam int unsigned WideHeaderBits = 64;

  function automatic int unsigned header_bytes(input int unsigned packet_bytes);
    return packet_bytes == 32 ? 4 : 8;
  endfunction

  // Bits that carry a word of a packet: with several words, one more that says which is the last.
  function automatic int unsigned word_bits(input int unsigned packet_bytes,
                                            input int unsigned words);
    return 8 * packet_bytes + (words > 1 ? 1 : 0);
  endfunction

  // From the last 8 bytes of a packet's only, or first, word.
  function automatic header_t header_of(input int unsigned packet_bytes,
                                        input logic [WideHeaderBits-1:0] last);
    header_t header;
    if (packet_bytes == 32) begin
      header.src   = RankBits'(last[39:32]);
      header.dst   = RankBits'(last[47:40]);
      header.port  = PortBits'(last[55:48]);
      header.op    = op_e'(last[58:56]);
      header.count = CountBits'(last[63:59]);
    end else begin
      header = header_t'(last);
    end
    return header;
  endfunction

  // Fields of it that kernels look up, without the others.
  function automatic logic [RankBits-1:0] destination_of(input int unsigned packet_bytes,
                                                         input logic [WideHeaderBits-1:0] last);
    logic unused_rest;
    unused_rest = ^last;
    return packet_bytes == 32 ? RankBits'(last[47:40]) : last[31:16];
  endfunction
  function automatic logic [PortBits-1:0] port_of(input int unsigned packet_bytes,
                                                  input logic [WideHeaderBits-1:0] last);
    logic unused_rest;
    unused_rest = ^last;
    return packet_bytes == 32 ? PortBits'(last[55:48]) : last[47:32];
  endfunction
  function automatic logic is_control(input int unsigned packet_bytes,
                                      input logic [WideHeaderBits-1:0] last);
    logic unused_rest;
    unused_rest = ^last;
    return (packet_bytes == 32 ? last[58:56] : last[50:48]) == OpSynch;
  endfunction

  // The bits of a header, at the top of 64.
  function automatic logic [WideHeaderBits-1:0] header_bits(input int unsigned packet_bytes,
                                                            input header_t header);
    if (packet_bytes == 32) begin
      return {header.count[4:0], header.op, header.port[7:0], header.dst[7:0], header.src[7:0],
              32'd0};
    end
    return header;
  endfunction

  // `count` of a packet that a frame was cut into (unisono_smi_cut): the packet's bytes, and on top
  // whether the frame ends with it.
  function automatic logic [CountBits-1:0] frame_count(input logic ends,
                                                       input logic [CountBits-2:0] bytes);
    return {ends, bytes};
  endfunction

  // What opens a channel, at either end. Both ends say the same count, size and protocol.
  typedef struct packed {
    logic [RankBits-1:0] peer;     // the rank at the other end
    logic [PortBits-1:0] port;     // the port, the same at both ends
    logic [31:0]         count;    // elements of the message
    logic [1:0]          size;     // an element has 1 << size bytes
    logic                credits;  // the sender waits until the receiver has told it of room
    logic                strict;   // with credits: at most `window` elements are under way;
                                   // without: packets as a reduction has them (unisono_smi_push, whole)
    logic [31:0]         window;   // the asynchronicity degree k, of strict
    logic [7:0]          lanes;    // receiver: most elements of a word that it gives; 0: what fits
  } open_t;

  // ---- Collectives; docs/rtl/smi_collectives.md.

  // Children of a node in a tree.
  localparam int unsigned Children     = 4;
  localparam int unsigned ChildrenBits = $clog2(Children + 1);

  // What opens a collective, at each of its ranks. `root`, `kind`, `port`, `count`, `size`, `dtype`
  // and `func` are the same everywhere; the rest is the rank's place.
  typedef struct packed {
    logic                              bare;      // reduce, root with one child: its own elements do not
                                                  // pass here; it gets what the others' make together
    op_e                               kind;      // OpBroadcast, OpReduce, OpScatter, OpGather
    logic                              top;       // this rank is the root
    logic [RankBits-1:0]               root;
    logic [PortBits-1:0]               port;
    logic [31:0]                       count;     // elements of each rank
    logic [1:0]                        size;      // an element has 1 << size bytes
    logic [5:0]                        dtype;     // reduce: datatype_e and func_e of the specification
    logic [7:0]                        func;
    logic [RankBits-1:0]               parent;    // broadcast, reduce: the tree. Not of the root
    logic [ChildrenBits-1:0]           children;
    logic [Children-1:0][RankBits-1:0] child;     // reduce: combined in this order
    logic [7:0]                        member;    // scatter, gather, root: the first entry of the table
    logic [7:0]                        members;   // and how many
    logic [7:0]                        lanes;     // receiver: as in open_t
  } collective_t;

  // What one end of a channel, or of an edge of a tree, was opened with.
  typedef struct packed {
    op_e         kind;     // OpSend for a channel
    logic        credits;
    logic        strict;
    logic [1:0]  size;
    logic [5:0]  dtype;
    logic [7:0]  func;
    logic [31:0] count;
    logic [31:0] window;
  } opening_t;

  // That of a channel's end. The window is of strict alone.
  function automatic opening_t opening_of(input open_t channel);
    logic unused_rest;
    unused_rest = ^{channel.peer, channel.port, channel.lanes};
    return '{
      kind:    OpSend,
      credits: channel.credits,
      strict:  channel.strict && channel.credits,
      size:    channel.size,
      count:   channel.count,
      window:  channel.strict && channel.credits ? channel.window : '0,
      default: '0
    };
  endfunction

  // Two ends do not agree.
  typedef struct packed {
    logic [RankBits-1:0] peer;
    opening_t            mine;
    opening_t            theirs;
  } differ_t;

  // What a control packet says.
  typedef enum logic [1:0] {
    ControlPlaces = 2'd0,  // packets that have left the receiver's queue, elements that were popped
    ControlAsks   = 2'd1,  // a sender with credits has opened its end
    ControlDiffer = 2'd2   // the ends do not agree; with the sender's opening
  } control_e;

  // The payload of a control packet, from byte 0.
  typedef struct packed {
    opening_t    opening;   // of who tells it, if it is the first, asks or differs
    logic [3:0]  message;   // of a channel: how many the two had before, modulo 16
    control_e    kind;
    logic        tree;      // of a tree, not of a channel
    logic        first;     // the receiver has opened its end
    logic [31:0] packets;
    logic [31:0] elements;
  } control_t;

  // A packet with another destination.
  function automatic logic [WideHeaderBits-1:0] with_destination(
      input int unsigned packet_bytes, input logic [WideHeaderBits-1:0] last,
      input logic [RankBits-1:0] dst);
    logic [WideHeaderBits-1:0] result;
    result = last;
    if (packet_bytes == 32) begin
      result[47:40] = dst[7:0];
    end else begin
      result[31:16] = dst;
    end
    return result;
  endfunction

  // What a receiver has to complain of when a message has ended.
  typedef struct packed {
    logic                foreign;   // a packet of another rank than the peer's came, and was left out
    logic [RankBits-1:0] src;       // who sent it (the peer, if the counts differ)
    logic [31:0]         expected;  // elements the receiver was opened for
    logic [31:0]         got;       // elements the sender has sent
  } complaint_t;

  // A packet that nobody wanted.
  typedef struct packed {
    logic [RankBits-1:0] dst;
    logic [PortBits-1:0] port;
    logic [RankBits-1:0] src;
    op_e                 op;
  } stray_t;

  function automatic stray_t stray_of(input header_t header);
    logic [CountBits-1:0] unused_count;
    unused_count = header.count;
    return '{dst: header.dst, port: header.port, src: header.src, op: header.op};
  endfunction

  // Why an image of tables was refused.
  typedef enum logic [2:0] {
    ImageGood     = 3'd0,
    ImageMagic    = 3'd1,  // no image of routes, or of another version
    ImageLinks    = 3'd2,  // for another number of links
    ImageChannels = 3'd3,  // for more virtual channels than there are
    ImageRanks    = 3'd4,  // for more ranks than the tables hold, or for a rank beyond the last
    ImagePorts    = 3'd5,  // for another number of ports
    ImageLength   = 3'd6,  // shorter or longer than its head says
    ImageSum      = 3'd7   // damaged: the check sum is wrong
  } image_e;

endpackage
