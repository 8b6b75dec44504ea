// The interface between the engine and a protocol offload engine (POE), in types and numbers.
// What the channels mean and promise: docs/rtl/poe.md.

package unisono_poe_pkg;

  // A design uses only a part of the package.
  // verilator lint_off UNUSEDPARAM

  // A session is a way to one peer and back. Its number is local to the card.
  parameter int unsigned SessionBits = 16;
  // Length of a segment in bytes.
  parameter int unsigned BytesBits   = 16;
  // Address of a node in a simulated network.
  parameter int unsigned NodeBits    = 16;

  // The session with this bit set carries control to the same peer as the session without it. It
  // has buffers of its own, and opens and closes with the other.
  parameter int unsigned ControlBit = SessionBits - 1;

  typedef logic [SessionBits-1:0] session_t;
  typedef logic [BytesBits-1:0]   bytes_t;
  typedef logic [NodeBits-1:0]    node_t;

  // A segment that is sent, or asked space for.
  typedef struct packed {
    session_t session;
    bytes_t   bytes;
  } poe_meta_t;

  // A segment that was received. With error, some of its bytes are missing or wrong.
  typedef struct packed {
    session_t session;
    bytes_t   bytes;
    logic     error;
  } poe_rx_meta_t;

  // A session has opened (state 1) or closed (state 0). Without the control bit.
  typedef struct packed {
    session_t session;
    logic     state;
  } poe_event_t;

  // What a POE promises; constant.
  typedef struct packed {
    // Segments of a session arrive in the order in which they were sent.
    logic   ordered;
    // Every segment arrives, once; otherwise it may be lost or come twice.
    logic   reliable;
    // A segment is one datagram and arrives as it was sent; otherwise it is a range of a byte
    // stream, and may arrive in other pieces.
    logic   datagram;
    // Longest segment of a data and of a control session.
    bytes_t max_payload;
    bytes_t max_control;
  } poe_capability_t;

  // Registers of unisono_poe_frame. Below RegCounters: one for each session, {open, 15'b0, node}.
  parameter logic [15:0] RegCounters     = 16'h8000;
  // Most words that a session may have waiting.
  parameter logic [15:0] RegSessionLimit = 16'h8100;
  // {session entries, longest segment of a data session in bytes}
  parameter logic [15:0] RegShape        = 16'h8101;

  // Counters of unisono_poe_frame, at RegCounters + number. They wrap around.
  parameter int unsigned CountTxSegments   = 0;
  parameter int unsigned CountTxBytes      = 1;
  // Dropped: no such session, or it is closed.
  parameter int unsigned CountTxUnknown    = 2;
  // Dropped: empty, or longer than the longest.
  parameter int unsigned CountTxOversize   = 3;
  // Dropped: the words are more or fewer than the length says.
  parameter int unsigned CountTxLength     = 4;
  // Dropped: no space was asked for.
  parameter int unsigned CountTxUnreserved = 5;
  // Queries that were answered with no.
  parameter int unsigned CountTxRefused    = 6;
  parameter int unsigned CountRxSegments   = 7;
  parameter int unsigned CountRxBytes      = 8;
  // Dropped: from a node that no open session leads to.
  parameter int unsigned CountRxUnknown    = 9;
  // Dropped: empty, longer than the longest, or not as long as stated.
  parameter int unsigned CountRxLength     = 10;
  // Dropped: the MAC found it damaged.
  parameter int unsigned CountRxDamaged    = 11;
  // Dropped: the receive buffer was full.
  parameter int unsigned CountRxFull       = 12;
  // Sessions that were not opened: no such node, or it has a session.
  parameter int unsigned CountNotOpened    = 13;
  parameter int unsigned Counters          = 14;

  // verilator lint_on UNUSEDPARAM

endpackage
