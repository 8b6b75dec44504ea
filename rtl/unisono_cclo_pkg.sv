// What the blocks of the engine say to each other: identities, and the records that travel between them.
//
// Sizes that a build may change are parameters of the blocks; the widths here are their upper bounds.

package unisono_cclo_pkg;

  import unisono_spec_pkg::*;

  // A design uses only a part of this.
  // verilator lint_off UNUSEDPARAM

  localparam int unsigned Calls = MaxActiveCalls;      // calls that are carried out at once
  localparam int unsigned Communicators = 16;          // communicators that the engine knows
  localparam int unsigned Ranks = 64;                  // ranks of one communicator
  localparam int unsigned Regions = 5;                 // memory that a program can name
  localparam int unsigned MaxSegment = 8192;           // payload bytes of a segment, the largest

  localparam int unsigned SlotWidth = $clog2(Calls);
  localparam int unsigned EntryWidth = $clog2(Window);
  localparam int unsigned RankWidth = $clog2(Ranks);
  localparam int unsigned CommunicatorWidth = $clog2(Communicators);
  localparam int unsigned SegmentWidth = $clog2(MaxSegment + 1);

  typedef logic [SlotWidth-1:0] slot_t;                // an active call
  typedef logic [$clog2(MaxStreamPorts)-1:0] stream_port_t;
  typedef logic [EntryWidth-1:0] entry_t;              // a place in its window: move number modulo Window
  typedef logic [RankWidth-1:0] rank_t;                // a rank of a communicator
  typedef logic [CommunicatorWidth-1:0] communicator_t;
  typedef logic [15:0] session_t;                      // of a transport; see unisono_poe_pkg
  typedef logic [47:0] message_bytes_t;                // bytes of a message, and offsets in it
  typedef logic [SegmentWidth-1:0] segment_bytes_t;
  typedef logic [63:0] address_t;                      // in the engine's memory

  // A move's place in the engine.
  typedef struct packed {
    slot_t slot;
    entry_t entry;
  } move_id_t;

  // Where a region begins, and how long it is. bytes == 0: not bound.
  typedef struct packed {
    logic [47:0] bytes;
    address_t address;
  } binding_t;

  // What the microcontroller knows of a call that it has begun.
  typedef struct packed {
    logic [31:0] signature;
    logic [31:0] tag;              // of the user; point to point only
    logic [31:0] sequence_;        // of the communicator's collectives, or of the pair
    datatype_e dtype;
    logic point_to_point;
    communicator_t communicator;
  } call_context_t;

  // What the engine knows of a communicator besides its members.
  typedef struct packed {
    logic [31:0] number;
    logic [15:0] epoch;
    logic [31:0] eager_limit;      // bytes, as agreed by the members
    logic [31:0] segment_bytes;    // largest payload of a segment, as agreed
    logic [15:0] rx_buffers;       // eager segments a member may send to another without hearing from it
    logic opens;                   // long messages point to point begin on credit
    logic [14:0] kept;             // and leave so many credits to short ones
    logic [RankWidth:0] size;
    logic [RankWidth:0] members;   // ranks from here on are switches; 0: there are none
    rank_t rank;                   // this engine's
  } communicator_entry_t;

  // A member, as this engine reaches it.
  typedef struct packed {
    logic valid;
    session_t session;             // of data; that of control follows from the transport
  } peer_entry_t;

  // A header that has passed Rx: it is of a communicator and of a member that the engine knows.
  typedef struct packed {
    session_t session;             // of data, that leads back
    header_t header;
    communicator_t communicator;
    rank_t source;
  } received_t;

  // What Tx is asked to send: everything of the header but magic, version, credits, session sequence and checksum.
  typedef struct packed {
    header_t header;
    communicator_t communicator;
    rank_t peer;
    session_t session;
    logic control;                 // travels on the session's control channel, before data
  } transmit_t;

  // Why something that came from outside was refused; counted, and reported to the host.
  typedef enum logic [3:0] {
    FaultNone = 4'd0,
    FaultShort = 4'd1,             // shorter than a header, or not as long as the header says
    FaultMagic = 4'd2,
    FaultVersion = 4'd3,
    FaultChecksum = 4'd4,
    FaultReserved = 4'd5,          // reserved bits, or an unknown value of an enumeration
    FaultCommunicator = 4'd6,      // no such communicator and epoch here
    FaultMember = 4'd7,            // source or destination are not the two ends of the session
    FaultLength = 4'd8,            // longer than a segment may be, or beyond the message's end
    FaultTransport = 4'd9          // the transport reported an error
  } fault_e;

  // Whether a message between two ranks may have this tag: a user's, or one of those to stream ports and of sessions
  // (core/reserved_tags.hpp).
  function automatic logic is_message_tag(logic [31:0] tag);
    return tag <= 32'h7fff_ffff || tag >= 32'hffff_0000;
  endfunction

endpackage
