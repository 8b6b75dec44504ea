// What the blocks of the call front end say to each other.
package unisono_call_pkg;

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;

  // A block uses only a part of these.
  // verilator lint_off UNUSEDPARAM

  localparam int unsigned Entries = MaxOutstandingCalls;
  localparam int unsigned EntryIndexWidth = $clog2(Entries);
  localparam int unsigned DescriptorRows = CallDescriptorWidth / 64;
  localparam int unsigned RowWidth = $clog2(DescriptorRows);
  // A descriptor travels and is stored four rows at a time.
  localparam int unsigned QuadRows = 4;
  localparam int unsigned Quads = DescriptorRows / QuadRows;
  localparam int unsigned QuadIndexWidth = $clog2(Quads);
  localparam int unsigned GenerationWidth = 4;

  // Why the microcontroller is needed; the same values as in unisono_cpu_pkg.
  localparam logic [1:0] WorkStart = 2'd1;    // a call was given the slot
  localparam logic [1:0] WorkMore = 2'd2;     // the slot has room for one more generation step
  localparam logic [1:0] WorkControl = 2'd3;  // the communicator table has changed

  // What a nop asks for, in its field `algorithm`. The kernel is the number in `root`.
  localparam logic [7:0] NopPlain = 8'd0;  // nothing
  localparam logic [7:0] NopRun = 8'd1;    // start the kernel, complete when it is done
  localparam logic [7:0] NopAwait = 8'd2;  // complete when the kernel is done
  localparam logic [7:0] NopStart = 8'd3;  // start the kernel

  // verilator lint_on UNUSEDPARAM

  typedef logic [EntryIndexWidth-1:0] call_entry_t;  // one of the outstanding calls
  typedef logic [RowWidth-1:0] call_row_t;           // 64-bit word of a descriptor
  typedef logic [QuadRows-1:0][63:0] call_quad_t;    // four of them
  typedef logic [QuadIndexWidth-1:0] call_quad_index_t;
  typedef logic [7:0] call_code_t;                   // error_code_e without its upper half, which is 0
  typedef logic [GenerationWidth-1:0] generation_t;  // tells the calls of one slot apart

  // Where a call is carried out.
  typedef enum logic [1:0] {
    PlaceNone = 2'd0,              // here: it has nothing to do
    PlaceSlot = 2'd1,              // in one of the active slots, by microcontroller and data path
    PlaceKernel = 2'd2             // by a kernel of the user
  } call_place_e;

  // Calls of one communicator and one of these keep the order in which they were admitted.
  typedef enum logic [2:0] {
    OrderNone = 3'd0,
    OrderCollective = 3'd1,
    OrderSend = 3'd2,
    OrderRecv = 3'd3,
    OrderPut = 3'd4,
    OrderGet = 3'd5
  } call_order_e;

  typedef logic [8:0] communicator_place_t;          // in the communicator table; 256: beyond it

  // A call that is admitted: what its descriptor says.
  typedef struct packed {
    call_place_e place;
    call_order_e order;
    communicator_place_t communicator;
    logic [31:0] call_id;
    logic [31:0] wait0;            // calls that it waits for; 0: none
    logic [31:0] wait1;
    logic [31:0] tag;
    logic [31:0] deadline_us;
    logic [1:0] mode;              // of a nop
    logic src_stream;
    logic dst_stream;
    unisono_cclo_pkg::stream_port_t src_port;
    unisono_cclo_pkg::stream_port_t dst_port;
    call_code_t code;              // what is wrong with it; 0: nothing
  } call_candidate_t;

  // What the search has found for a candidate: the entries, if any, and how calls that it waits for have failed.
  typedef struct packed {
    logic twin;                    // an outstanding call of its requester has its id
    logic wait0;
    logic wait1;
    logic order;                   // the last call of its order has not started
    call_entry_t wait0_at;
    call_entry_t wait1_at;
    call_entry_t order_at;
    call_code_t wait0_code;
    call_code_t wait1_code;
  } call_found_t;

  // A call on its way to the place where it is carried out.
  typedef struct packed {
    call_entry_t entry;
    logic [31:0] call_id;
    logic [31:0] tag;
    logic [31:0] deadline_us;
    logic [1:0] mode;              // of a nop
    logic src_stream;
    logic dst_stream;
    unisono_cclo_pkg::stream_port_t src_port;   // if they are streams
    unisono_cclo_pkg::stream_port_t dst_port;
  } call_start_t;

  // The end of a call, on its way back.
  typedef struct packed {
    call_entry_t entry;
    call_code_t code;
  } call_end_t;

  // What a requester is told.
  typedef struct packed {
    logic [15:0] code;
    logic [31:0] call_id;
  } call_response_t;

  // Something went wrong in a call that a block works for.
  typedef struct packed {
    slot_t slot;
    generation_t generation;
    call_code_t code;
  } call_fault_t;

endpackage
