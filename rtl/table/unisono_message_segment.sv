// How long the segments of a message are: both of its ends cut it alike, by its length.
//
// A segment goes on when all of it is there: in memory, in the transport, at the other end, in the move that passes it
// on. Short segments make that wait short, long ones carry fewer headers. So a message of up to ShortMessage bytes has
// segments of ShortSegment, one of up to MediumMessage segments of MediumSegment, and a longer one the longest that its
// communicator has agreed. What may go eagerly is one segment, and what goes to a switch or comes from
// there, or to a window, has the agreed length: whole_i says so.
//
// The same rule in C++ is core/message_segment.hpp.
//
// Latency: none, it is combinational. Throughput: a message per cycle.

module unisono_message_segment
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned ShortMessage = 65536,    // powers of two, as all four
  parameter int unsigned ShortSegment = 2048,
  parameter int unsigned MediumMessage = 262144,
  parameter int unsigned MediumSegment = 4096
) (
  input  message_bytes_t bytes_i,
  input  logic [31:0]    eager_limit_i,           // as agreed in its communicator
  input  logic [31:0]    segment_bytes_i,
  input  logic           whole_i,
  output segment_bytes_t segment_o
);

  if (2 ** $clog2(ShortMessage) != ShortMessage || 2 ** $clog2(ShortSegment) != ShortSegment ||
      2 ** $clog2(MediumMessage) != MediumMessage || 2 ** $clog2(MediumSegment) != MediumSegment ||
      ShortMessage >= MediumMessage || ShortSegment >= MediumSegment || MediumSegment > MaxSegment) begin : gen_bad
    $error("unisono_message_segment: lengths must be powers of two, and short ones shorter than medium ones");
  end

  logic is_short, is_medium, is_agreed;
  segment_bytes_t agreed;

  assign agreed = segment_bytes_t'(segment_bytes_i);
  // Powers of two, of which only higher bits are looked at.
  assign is_short = bytes_i[47:$clog2(ShortMessage)] == '0 || bytes_i == message_bytes_t'(ShortMessage);
  assign is_medium = bytes_i[47:$clog2(MediumMessage)] == '0 || bytes_i == message_bytes_t'(MediumMessage);
  assign is_agreed = whole_i || bytes_i <= message_bytes_t'(eager_limit_i);

  always_comb begin
    segment_o = agreed;
    if (!is_agreed && is_short && segment_bytes_i > 32'(ShortSegment)) begin
      segment_o = segment_bytes_t'(ShortSegment);
    end else if (!is_agreed && is_medium && segment_bytes_i > 32'(MediumSegment)) begin
      segment_o = segment_bytes_t'(MediumSegment);
    end
  end

endmodule
