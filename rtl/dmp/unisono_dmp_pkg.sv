// What the dispatcher, the lanes and the receive-buffer manager say to each other.

package unisono_dmp_pkg;

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;

  // A design uses only a part of this.
  // verilator lint_off UNUSEDPARAM

  localparam int unsigned Buffers = 1024;              // receive buffers, one segment each
  localparam int unsigned BufferWidth = $clog2(Buffers);
  typedef logic [BufferWidth-1:0] buffer_t;

  localparam int unsigned PoolWords = 512;             // of a program's constant pool
  typedef logic [$clog2(PoolWords)-1:0] pool_index_t;

  // What a pair of a call's slot and a peer is known by.
  typedef struct packed {
    slot_t slot;
    rank_t peer;
  } pair_t;
  localparam int unsigned Pairs = Calls * Ranks;

  // A move of a point-to-point call has come: with whom, and in which direction.
  typedef struct packed {
    slot_t slot;
    logic sends;
    rank_t peer;
  } partner_t;

  // Where a lane takes the first operand from.
  typedef enum logic [1:0] {
    Op0None = 2'd0,
    Op0Memory = 2'd1,
    Op0Accumulator = 2'd2,  // what the job before has left there
    Op0Stream = 2'd3        // a kernel's stream; the address is the port
  } op0_e;

  // Where a lane takes the second operand from.
  typedef enum logic [1:0] {
    Op1None = 2'd0,
    Op1Memory = 2'd1,       // memory of a region, or a receive buffer
    Op1Bypass = 2'd2        // the head of Rx
  } op1_e;

  // The use that a move makes of a kernel's stream: the how many-th of its call on that port.
  typedef logic [EntryWidth:0] stream_ticket_t;
  typedef struct packed {
    logic used;
    stream_port_t port;
    stream_ticket_t ticket;
  } stream_use_t;

  // Tells the programs of one slot apart; see unisono_scoreboard.
  localparam int unsigned GenerationWidth = 2;
  typedef logic [GenerationWidth-1:0] generation_t;

  // How far a move of a window is, and so what others may wait for; each includes those before it.
  typedef enum logic [2:0] {
    LevelNone = 3'd0,
    LevelIssued = 3'd1,
    LevelConsumed = 3'd2,
    LevelSent = 3'd3,
    LevelComplete = 3'd4
  } level_e;
  localparam int unsigned LevelWidth = $bits(level_e);

  // One segment of one move. Everything it needs is there, everything it makes has its place.
  typedef struct packed {
    move_id_t id;
    generation_t generation;
    logic last;             // of its move
    logic wakes;            // its move goes on when this has ended
    segment_bytes_t bytes;
    func_e func;
    datatype_e dtype;
    logic swap;
    logic wide;             // one of several of fp16 or bf16, which are combined as fp32
    op0_e op0;
    address_t op0_address;
    op1_e op1;
    address_t op1_address;
    logic releases;         // op1 is a receive buffer: free it afterwards
    buffer_t buffer;
    logic accumulate;       // the result goes to the accumulator, and nowhere else
    logic local_;
    address_t local_address;
    logic stream;           // the local result goes to a kernel's stream; the address is the port
    logic starts;           // the first segment of its move
    logic serves;           // it is of no call, but of a get of a peer
    logic send;
    transmit_t transmit;
  } job_t;

  // A job has ended: what it wrote is visible, what it sent has left, what it read may change.
  typedef struct packed {
    move_id_t id;
    generation_t generation;
    logic last;
    logic wakes;
    segment_bytes_t made;   // bytes of the local result
    logic error;            // a memory answered with an error
    logic serves;
    logic releases;
    buffer_t buffer;
  } job_end_t;

  // An arrival has issued.
  typedef struct packed {
    move_id_t id;
    rank_t peer;
    logic [23:0] tag;
    message_bytes_t bytes;
    logic rendezvous;       // its sender waits for a grant
    logic fan_in;           // it is one of several: its segments do not go past the buffers
    generation_t generation;
  } post_t;

  // Where the data of a slot's get goes. Its token slot is LandingBase and the slot, which no pair has.
  localparam logic [15:0] LandingBase = 16'hff00;
  typedef struct packed {
    logic valid;
    communicator_t communicator;
    rank_t peer;
    logic [15:0] generation;
    binding_t place;
  } landing_t;

  // A put begins, or a get.
  typedef struct packed {
    move_id_t id;
    rank_t peer;
    logic get;
    datatype_e dtype;
    message_bytes_t offset;     // in the peer's window
    message_bytes_t bytes;
    address_t address;          // of a get's result
  } operation_t;

  // What a control message says, besides who tells whom.
  typedef struct packed {
    communicator_t communicator;
    rank_t peer;
    control_kind_e kind;
    datatype_e dtype;
    logic [31:0] sequence_;
    message_bytes_t message_bytes;
    message_bytes_t offset;
    logic [15:0] token_slot;
    logic [15:0] token_generation;
  } notice_t;

  // The oldest segment of a pair that stands in a buffer.
  typedef struct packed {
    logic valid;
    buffer_t buffer;
    segment_bytes_t bytes;
    logic last;             // of its message
    message_bytes_t total;  // bytes of its message
  } segment_t;

endpackage
