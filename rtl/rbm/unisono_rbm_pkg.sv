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
    communicator_t communicator;
    rank_t source;
    logic [31:0] sequence_;
    logic [31:0] tag;
    logic [31:0] signature;
  } message_t;

  // Of a segment in a buffer, or of an early grant.
  typedef struct packed {
    logic grant;                 // total is its limit, signature its token
    logic request;               // point to point, ends is its sequence
    logic point_to_point;
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

  // Where a payload goes.
  typedef enum logic [1:0] { WayNone, WayBuffer, WayBypass, WayDrop } way_e;

endpackage
