// What the parts of Tx say to each other.

package unisono_tx_pkg;

  // What of a header is known last.
  typedef struct packed {
    logic [31:0] checksum;
    logic [31:0] session_sequence;
    logic [15:0] credits;
  } late_t;

endpackage
