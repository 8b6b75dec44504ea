// What the parts of the core, and of the engine around it, say to each other, beside what unisono_dmp_pkg has for the
// dispatcher, lanes and buffers.

package unisono_core_pkg;

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;

  // Which part is cleared now; one after the other, of one slot.
  typedef struct packed {
    logic drains;           // moves on their way to the window come to an end, of other calls too
    logic window;           // scoreboard, and what follows it
    logic dispatcher;       // the look under way ends first
    logic buffers;
  } clear_step_t;

  // A move, and the program of its slot that it is of.
  typedef struct packed {
    move_id_t id;
    generation_t generation;
  } move_of_t;

  // Something that ends a call, in this cycle.
  typedef struct packed {
    logic valid;
    slot_t slot;
    error_code_e code;
  } cause_t;

  // A member of a communicator.
  typedef struct packed {
    communicator_t communicator;
    rank_t peer;
  } member_t;

  // What the transport is asked for: space for a segment on a session.
  typedef struct packed {
    session_t session;
    segment_bytes_t bytes;
  } question_t;

  // What becomes of a peer's put.
  typedef struct packed {
    communicator_t communicator;
    rank_t peer;
    logic [31:0] sequence_;
    error_code_e code;
  } put_answer_t;

  // A peer's get does not fit its window.
  typedef struct packed {
    communicator_t communicator;
    rank_t peer;
    logic [15:0] slot;
    logic [15:0] generation;
  } get_refusal_t;

  // A get of this engine begins.
  typedef struct packed {
    communicator_t communicator;
    rank_t peer;
    datatype_e dtype;
    message_bytes_t offset;
    message_bytes_t bytes;
    logic [15:0] slot;
    logic [15:0] generation;
  } get_request_t;

  // A word of a slot's constant pool.
  typedef struct packed {
    slot_t slot;
    pool_index_t index;
    rank_t word;
  } pool_word_t;

  // Regions of the active calls that are streams; such a region's address is the port.
  typedef struct packed {
    logic [Calls-1:0] src;
    logic [Calls-1:0] dst;
    stream_port_t [Calls-1:0] src_port;
    stream_port_t [Calls-1:0] dst_port;
  } stream_regions_t;

  // A move that enters its window.
  typedef struct packed {
    slot_t slot;
    move_t move;
    logic [Ranks-1:0] receives;   // from whom, and to whom it sends
    logic [Ranks-1:0] sends;
    logic [5:0] distance;         // the greater segment dependency
    logic trivial;                // there is nothing to do
  } entering_t;

  typedef logic [Calls-1:0][EntryWidth:0] rooms_t;

  // What a move would take from a kernel's stream and give to one, and what its next segment does take and give.
  typedef struct packed {
    stream_use_t source;
    stream_use_t sink;
    message_bytes_t bytes;
  } stream_ask_t;
  typedef struct packed {
    logic source;
    logic sink;
    logic first;
    logic last;
    segment_bytes_t bytes;
  } stream_take_t;

  // What Tx, Rx and the transport do in this cycle, for counters.
  typedef struct packed {
    logic tx_word;
    logic rx_word;
    logic stalls_data;      // a message has begun whose words no lane gives
    logic stalls_network;
  } wire_events_t;

endpackage
