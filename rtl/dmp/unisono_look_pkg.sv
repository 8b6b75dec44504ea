// What the parts of the dispatcher say to each other.

package unisono_look_pkg;

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;

  // What the dispatcher does in a cycle.
  typedef enum logic [4:0] {
    StepIdle,
    StepWake,          // a list's local result has been made
    StepBind0,         // the move is there: where its regions stand is asked for, one after the other
    StepBind1,
    StepBind2,
    StepDecode,        // all of them are known: make its run
    StepListWait,      // a word of its list is on its way
    StepListCount,     // how many peers
    StepListRank,      // one of them
    StepPost,          // its arrival is told to the receive-buffer manager
    StepLook,          // its run and progress are there
    StepHead,          // its oldest segment is there, or none
    StepCredit,        // an answer about credit
    StepGrants,        // whether a grant has come before its message
    StepSize,          // how much may go
    StepSpace,         // an answer about space
    StepDispatch,      // to the lane
    StepClear,         // a call is cleared: has it messages that have not been sent, or grants?
    StepClearPeer,     // one peer after the other
    StepClearCredit,   // to which a message may have credit
    StepSweep          // after a reset, one pair after the other
  } step_e;

  // A move as it entered its window.
  typedef struct packed {
    stream_use_t source;       // its uses of kernels' streams: op0, and the local result
    stream_use_t sink;
    logic [Ranks-1:0] peers;   // it sends to
    move_t move;
  } given_t;

  // What a move has become when it issued.
  typedef struct packed {
    generation_t generation;
    func_e func;
    datatype_e dtype;
    logic swap;
    logic op0;
    stream_use_t op0_use;      // op0 is a stream; its address is the port, as that of a local result
    address_t op0_address;
    logic op1_memory;
    address_t op1_address;
    logic arrival;
    logic fan_in;              // of several peers, whose list stands at pool index
    pool_index_t pool;
    rank_t source;
    logic local_;
    stream_use_t local_use;
    address_t local_address;
    logic send;
    logic put;                 // to its window, at op1_address there
    logic get;                 // the result is its window, at op1_address there
    logic fan_out;             // to several peers, after its local result if it has one
    logic eager;
    rank_t peer;
    logic [23:0] tag;
    message_bytes_t bytes;
    segment_bytes_t segment;
  } run_t;

  // What is known of a move in Decode.
  typedef struct packed {
    run_t run;
    logic exists;              // there is something to be done
    logic outside;             // but not where it says
    logic credited;            // it has credit
    rank_t peer;               // the lowest of those that it sends to
    logic one_piece;           // it is one segment
  } lowered_t;

  // How far it is.
  typedef struct packed {
    logic [Ranks-1:0] peers;   // of a list: to whom the segment at `position` has yet to go
    rank_t peer;               // the lowest of them
    logic making;              // of a list out of a stream: the segment's local result is being made
    logic made;                // and is there
    logic credited;            // an eager message has its credit
    logic requested;           // its peer has been asked to grant it
    logic done;                // everything has been handed over
    message_bytes_t position;
  } progress_t;

  // What a peer has granted to the message that is sent to it now, or next.
  typedef struct packed {
    logic [15:0] generation;
    logic [15:0] slot;
    message_bytes_t limit;
  } grant_t;

endpackage
