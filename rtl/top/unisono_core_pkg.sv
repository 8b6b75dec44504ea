// What the parts of the core say to each other, beside what unisono_dmp_pkg has for the dispatcher, lanes and buffers.

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

endpackage
