// What the parts of Rx say to each other.

package unisono_rx_pkg;

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;

  // A header as it came, and what is wrong with the packet so far.
  typedef struct packed {
    logic        is_short;     // it has no whole header
    logic        broken;       // by the transport, or not as long as announced
    logic        payload;      // words of it are in the payload's memory
    session_t    session;
    logic [15:0] bytes;        // of the payload, as announced
    header_t     header;
  } rx_header_t;

  // What becomes of it.
  typedef struct packed {
    fault_e        fault;
    communicator_t communicator;
  } rx_verdict_t;

endpackage
