// What the parts of the receive-buffer manager say to each other, and what they keep.

package unisono_rbm_pkg;

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;

  // A design uses only a part of this.
  // verilator lint_off UNUSEDPARAM

  // What a message is known by, that is at the head of Rx.
  typedef struct packed {
    logic point_to_point;
    logic grant;
    logic continues;             // what has begun on credit
    logic opens;                 // it begins a message that goes on
    communicator_t communicator;
    rank_t source;
    logic [31:0] sequence_;
    logic [31:0] tag;
    logic [31:0] signature;
  } message_t;

  // Of what kind it is.
  typedef struct packed {
    logic is_data;               // eager, or a write
    logic is_write;
    logic is_grant;
    logic is_request;
    logic is_pair;               // point to point
  } kind_t;

  // The decision about a segment (unisono_rbm_head).
  typedef enum logic [2:0] {
    VerdictDrop,                 // nothing
    VerdictEarly,                // its call has not begun
    VerdictWait,                 // look again
    VerdictAdopt,                // its pair takes over first what is early for it
    VerdictGrant,                // hand the grant over
    VerdictRequest,              // note that the sender asks
    VerdictRefuse,               // its call ends
    VerdictTake                  // it goes to the lane or to a buffer
  } verdict_e;

  // Of a segment in a buffer, or of an early grant.
  typedef struct packed {
    logic grant;                 // total is its limit, signature its token
    logic request;               // point to point, ends is its sequence
    logic point_to_point;
    logic continues;             // point to point, what has begun on credit
    logic opens;                 // begins a message that goes on; point to point, ends is its sequence
    communicator_t communicator;
    rank_t source;
    logic [31:0] key;            // its sequence; point to point, its tag
    logic [31:0] signature;
    message_bytes_t ends;        // offset of its end in its message
    segment_bytes_t bytes;
    logic last;
    logic [23:0] tag;
    message_bytes_t total;
  } info_t;

  // An arrival that has issued behind another one.
  typedef struct packed {
    logic posted;
    entry_t entry;
    generation_t program_;
    logic [23:0] tag;
    message_bytes_t total;
    message_bytes_t limit;
    logic rendezvous;
    logic fan_in;
    logic ample;
    logic granted;
  } next_t;

  // All that is known of a pair's messages to this rank.
  typedef struct packed {
    next_t next;
    generation_t program_;       // the scoreboard's generation of the posted one
    logic granted;               // it has had its first grant
    logic posted;                // its arrival has issued
    entry_t entry;
    logic [23:0] tag;
    message_bytes_t total;
    message_bytes_t received;    // of the message that comes now
    message_bytes_t consumed;    // of the posted one
    message_bytes_t limit;       // granted
    logic rendezvous;
    logic fan_in;
    logic ample;                 // grants of this message have buffers in reserve
    logic requested;             // behind what is listed, the sender asks for a grant
    logic bound;                 // point to point: the message is known, and total is its length
    logic [15:0] generation;
    logic listed;                // segments stand in buffers
    buffer_t head;
    buffer_t tail;
    logic [4:0] written;         // segments on their way to buffers
  } record_t;

  // What comes early for a pair, as its record will say.
  typedef struct packed {
    logic requested;
    logic bound;
    logic listed;
    buffer_t head;
    buffer_t tail;
    message_bytes_t total;
    message_bytes_t received;
  } adopted_t;

  // What the operations on pairs do in this cycle.
  typedef enum logic [4:0] {
    Idle,
    AppendEarly,   // a written segment of a call that is not active joins a list
    AdoptAsk,      // the dispatcher wants to know of a pair's grants
    Adopt,         // what came early is gone through
    AdoptRead,
    AdoptCheck,
    AdoptGrant,
    AdoptEnd,
    Append,        // a written segment joins its pair's list
    TakeRead,      // the pair's oldest segment leaves its list
    Take,
    HeadRead,      // the pair's oldest segment is shown
    HeadShow,
    PostRead,      // an arrival has issued
    PostElder,     // of a receive that is not the oldest: has the oldest been here?
    Post,
    Grant,         // a pair is granted more: which of its arrivals?
    GrantStep,     // how much
    GrantSend,
    Segment,       // a segment has come: look at its pair
    Store,         // it goes to a buffer
    Offered,       // it was offered: the answer is there
    Kick,          // an arrival has something new
    ClearRead,     // a pair of the call that is cleared
    ClearTake,     // its oldest segment is given back
    WipeRead,      // a record loses its epoch, and keeps its generation
    Wipe
  } state_e;

  // To whom a buffer's credit is owed, if its message was eager.
  typedef struct packed {
    logic eager;
    communicator_t communicator;
    rank_t source;
  } owner_t;

  // Where early segments are looked for: a list for each value of a hash of their communicator, source and key.
  localparam int unsigned Buckets = 512;
  typedef logic [$clog2(Buckets)-1:0] bucket_t;
  // verilator lint_off UNUSEDSIGNAL
  // The key's low bits tell apart what comes one after another.
  function automatic bucket_t hash(communicator_t communicator, rank_t source, logic [31:0] key);
    return bucket_t'(key) ^ {source, 3'b0} ^ bucket_t'({communicator, 2'b0});
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // A segment on its way to a buffer, and to the list of its pair, or to an early one.
  typedef struct packed {
    pair_t pair;
    logic early;
    bucket_t bucket;
    buffer_t buffer;
    logic empty;                 // nothing to write
  } pending_t;

  // What is done with early segments in this cycle; see unisono_rbm_early.
  // One bit each, so that what an operation looks at is found soon.
  typedef enum logic [8:0] {
    EarlyNone = 9'd0,
    EarlyLook = 9'd1,            // at a list, to append to it
    EarlyAppend = 9'd2,          // to the list that was looked at
    EarlyBegin = 9'd4,           // with the list of the pair under way
    EarlyRead = 9'd8,            // the list's next segment
    EarlyCheck = 9'd16,          // whose it is
    EarlyEnd = 9'd32,            // with the list
    EarlySweep = 9'd64,          // begin with the next list, for communicators that begin anew
    EarlyAim = 9'd128,           // at a list, to empty it
    EarlyVoid = 9'd256           // the list is empty, whatever there was
  } early_op_e;

  // Which operation is next (unisono_rbm_choice).
  typedef struct packed {
    state_e step;                // its first; Idle: none, or one that is done at once
    logic reads;                 // the record of the pair
    logic by_match;              // if the head of Rx matches another pair, that one's
    pair_t pair;
    logic renews;                // communicators have begun anew
    logic clears;                // a call is forgotten at once
  } choice_t;

  // What is done in a step of a clear (unisono_rbm_clear).
  typedef struct packed {
    state_e state;               // the next one
    pair_t pair;
    logic reads;
    logic writes;
    logic voids;                 // what is written has no epoch
    logic returns;               // reserves of the posted arrival
    logic returns_next;          // and of the next
    logic gives_back;            // the pair's oldest buffer
  } clear_step_t;

  // What is done in a step that takes over what is early (unisono_rbm_adopt).
  typedef struct packed {
    state_e state;               // the next one
    logic asks_elder;            // the pair of the oldest receive comes first
    logic ready;                 // the dispatcher is answered
    logic writes;                // the record
    logic grants;
    logic gives_back;            // the buffer of the early segment that is looked at
    logic mute;                  // and owes nobody a credit for it
    logic fails;
    logic bad;                   // memory had an error
  } adopt_step_t;

  // Where a payload goes.
  typedef enum logic [1:0] { WayNone, WayBuffer, WayBypass, WayDrop } way_e;

  // A request stands behind what has come: when nothing of that is left, it is of the arrival that takes what comes.
  function automatic record_t met(record_t record);
    met = record;
    if (record.posted && record.requested && !record.listed && record.written == '0 && record.received == '0) begin
      met.requested = 1'b0;
      met.rendezvous = 1'b1;
      if (!record.rendezvous) met.generation = record.generation + 1'b1;
    end
  endfunction

  // All of an arrival has been taken: it is the next one's turn.
  function automatic record_t promoted(record_t record);
    promoted = record;
    promoted.posted = record.next.posted;
    promoted.entry = record.next.entry;
    promoted.program_ = record.next.program_;
    promoted.tag = record.next.tag;
    promoted.total = record.next.total;
    promoted.limit = record.next.limit;
    promoted.rendezvous = record.next.rendezvous;
    promoted.fan_in = record.next.fan_in;
    promoted.ample = record.next.ample;
    promoted.granted = record.next.granted;
    promoted.consumed = '0;
    if (record.next.posted && record.next.rendezvous) promoted.generation = record.generation + 1'b1;
    promoted.next = '0;
    promoted = met(promoted);
  endfunction

endpackage
