// What the parts of the dispatcher say to each other.

package unisono_look_pkg;

  import unisono_cclo_pkg::*;

  // What a peer has granted to the message that is sent to it now, or next.
  typedef struct packed {
    logic [15:0] generation;
    logic [15:0] slot;
    message_bytes_t limit;
  } grant_t;

endpackage
