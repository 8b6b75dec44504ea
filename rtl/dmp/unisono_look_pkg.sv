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
    StepOpen,          // not granted yet: an answer about credit
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
    logic opens;               // long, and its first segments may go on credit
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
    logic credited;            // what goes next has its credit
    logic requested;           // its peer has been asked to grant it, or has its first segment
    logic opening;             // its first segments go on credit
    logic done;                // everything has been handed over
    message_bytes_t position;
  } progress_t;

  // What a peer has granted to the message that is sent to it now, or next.
  typedef struct packed {
    logic [15:0] generation;
    logic [15:0] slot;
    message_bytes_t limit;
  } grant_t;

  // Going through a list: what is done for each peer.
  typedef enum logic [1:0] { WalkPost, WalkCheck, WalkDispatch } walk_e;

  typedef enum logic [2:0] {
    ListKeep,
    ListPost,                  // from the beginning: arrivals are posted
    ListCheck,                 // from the beginning: are all segments there?
    ListDispatch,              // from the first peer: all go
    ListCount,                 // the pool's word is how many there are: on to the first
    ListNext
  } list_command_e;

  typedef struct packed {
    walk_e walk;
    logic counts;              // the pool is asked how many there are
    logic first;
    logic last;
    logic makes;               // the segment is made as local result first
    logic keeps;               // it is needed once more, for the next peer
    logic more;                // of those that are sent to, some come after the present one:
    logic [Ranks-1:0] peers;
    rank_t peer;               // the first of them
  } list_t;

  // How much may go.
  typedef struct packed {
    segment_bytes_t own;       // without regard to grants
    segment_bytes_t sized;
    message_bytes_t end_;      // where the former ends
    message_bytes_t after;     // where what goes ends
    logic last;                // with its message
    logic granted;             // there is a grant
    logic parity;              // of this kind
    logic waits;               // nothing may go yet
  } size_t;

  typedef struct packed {
    logic compute;             // it is the compute lane
    logic choose;
    logic blocked;             // it overtakes, and waits
    logic sent;                // the job has been handed over, and sends
    logic clear;               // nobody waits any more
  } lane_command_t;

  // The look that is under way.
  typedef struct packed {
    step_e step;
    move_id_t id;
    logic offered;             // it is about the head of Rx
    logic offer_answer;        // which has been answered in the cycle before
    logic asks;                // what goes is a request to grant the message
    logic cleared;
    logic adopted;             // grants that came before the message have been asked for
    logic credit_asked;        // a question is asked once
    logic space_asked;
    logic issued_here;         // the run was made in the cycle before, and is not read
    segment_bytes_t bytes;     // of what goes
  } look_t;

  // What the look takes.
  typedef struct packed {
    logic issue;
    logic wake;
    logic next;
    logic offer_answer;        // and whether the offer is accepted
    logic offer_accepted;
  } takes_t;

  typedef struct packed {
    logic read_move;
    logic read_run;            // and its progress
    logic run_write;
    logic progress_write;
    logic live_raise;
    logic live_clear;
  } memory_command_t;

  // What others answer the look's questions.
  typedef struct packed {
    logic credit_ready;
    logic credit_answer;
    logic credit_granted;
    logic credit_back_ready;
    logic adopt_ready;
    logic space_ready;
    logic space_answer;
    logic space_granted;
    logic post_ready;
    logic head_answer;
    logic take_ready;
    logic job_ready;
  } answers_t;

  // What may hold a move up.
  typedef struct packed {
    logic point_to_point;
    logic to_switch;           // its peer is one
    logic free;                // it has no producer
    logic follows;             // its producers have made what its next segment reads
    logic streams;             // its elements, or their room, are there
    logic held;                // messages come before it
    logic remote_busy;
    logic overtakes;
  } state_t;

  // What is told in a cycle.
  typedef struct packed {
    logic begins;              // a look
    logic parks;               // it ends
    logic again;               // its move is looked at again
    logic announced;
    logic consumed;
    logic sent;
    logic complete;
    logic fail;
    logic remote_begin;
    logic follow_waits;
    logic stream_waits;
  } events_t;

  // Whether a move may go on, and how (unisono_dispatcher_permit).
  typedef struct packed {
    step_e step;               // the next one
    logic offered;             // of the look, see look_t
    logic asks;
    logic adopted;
    logic credit_asked;
    segment_bytes_t bytes;
    logic eager;               // what goes has its credit
    progress_t progress;
    logic writes;              // progress is kept
    logic computes;            // the lane is the compute lane
    logic refuses;             // what Rx offers, if anything
    logic forgets;             // the grant is over with the message
    events_t events;
  } permit_t;

endpackage
