// What the modules of the switch say to each other: the communicator table's records, the step tag of what a switch
// carries, what comes in, and where it goes. The C++ side is switch/entry.hpp.
//
// A switch has Ports ports, 4 to MaxPorts. A *position* is a place in the order of the communicator's tree; what is
// behind a port is a range of positions. Software numbers positions in 32 bits, the switch in PlaceWidth.

package unisono_switch_pkg;

  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;

  // A design uses only a part of this, and functions only look at some bits of what they get.
  // verilator lint_off UNUSEDPARAM
  // verilator lint_off UNUSEDSIGNAL

  localparam int unsigned MaxPorts = 28;
  localparam int unsigned PortWidth = $clog2(MaxPorts);
  localparam int unsigned PlaceWidth = 13;
  localparam int unsigned MaxMembers = 1 << PlaceWidth;  // of a communicator
  localparam int unsigned SwitchBytes = 64;              // of a word, on every port

  typedef logic [PortWidth-1:0] port_t;                  // number of a port, or of a port's entry
  typedef logic [$clog2(MaxPorts+1)-1:0] port_count_t;
  typedef logic [PlaceWidth-1:0] place_t;                // a position
  typedef logic [PlaceWidth:0] count_t;                  // how many members: 0 to MaxMembers

  // The step tag of a message that switches carry: 24 bits of the header's tag.
  typedef struct packed {
    place_t place;       // root of bcast, reduce and gather; receiver of a block in scatter and
                         // reduce_scatter; giver of a block in allgather
    logic [4:0] func;    // func_e
    logic [4:0] opcode;  // collective_e
    logic down;          // it goes away from the top
  } switch_tag_t;
  localparam int unsigned SwitchTagWidth = $bits(switch_tag_t);

  // Of one communicator: what does not grow (EntryHead).
  typedef struct packed {
    count_t shares;        // that a fold waits for
    port_t first_port;     // number of the port of the first entry; the others follow
    logic has_up;          // low at the top, and where nobody else is above
    port_t up;             // the port that leads up
    count_t count;         // members below this switch
    place_t first;         // position of the first of them
    count_t members;       // of the communicator
    port_count_t ports;    // entries of ports
  } entry_head_t;

  // A port that leads down (PortEntry).
  typedef struct packed {
    logic is_switch;       // a switch is behind it, which sends one share for all
    count_t count;         // members behind it
    place_t first;         // position of the first of them
  } port_entry_t;

  // What comes in: which piece of which call, and from where.
  typedef struct packed {
    switch_tag_t tag;
    port_t port;           // by which it comes
    place_t member;        // which of the members behind that port gave it, from 0; no matter if a
                           // switch is behind it, or it comes from above
  } arriving_t;

  typedef enum logic [1:0] {
    ActionNothing = 2'd0,  // no such piece comes this way
    ActionFold    = 2'd1,  // wait for all shares from below, fold them, send the result
    ActionPass    = 2'd2   // send it on
  } action_e;

  // Where it goes (Action). `only` and `but` are numbers of entries, 0 if there is none.
  typedef struct packed {
    action_e kind;
    logic up;              // it is sent up
    logic below;           // it is sent to all below
    logic has_only;        // it is sent down to one entry's port
    port_t only;
    logic has_but;         // with below: not to the one that it came from, behind this entry
    port_t but;
    place_t member;        // which member behind `only` or `but`, from 0; no matter if a switch is there
  } action_t;

  // A header that has passed the parser.
  typedef struct packed {
    logic aggregate;       // it is for the switch; otherwise it passes through
    header_t header;
  } switch_meta_t;

  // What is said to a contribution of a child to a turn.
  typedef enum logic [1:0] {
    SlotFree    = 2'd0,    // the child has not come; or it has come now
    SlotTwice   = 2'd1,    // it has come before
    SlotOutside = 2'd2     // the turn has no slot now, or there is no such child
  } slot_answer_e;

  // What a switch folds, if nothing else is said: products take more than all else together.
  localparam func_mask_t SwitchFuncs = AllFuncs & ~func_mask_t'(1 << FuncProd);
  localparam datatype_mask_t HalfDatatypes = datatype_mask_t'(1 << DatatypeFp16 | 1 << DatatypeBf16);

  // By which plugin's time the words of a fold go through its cells: those that pass, too.
  typedef enum logic [1:0] {
    PaceAlu  = 2'd0,
    PaceSum  = 2'd1,
    PaceProd = 2'd2
  } pace_e;
  localparam int unsigned Paces = 3;

  function automatic pace_e pace_of(func_e func, datatype_e dtype);
    unique case (unit_of(func, dtype))
      UnitSum:  return PaceSum;
      UnitProd: return PaceProd;
      default:  return PaceAlu;
    endcase
  endfunction
  // Cycles that a cell takes, without an input register.
  function automatic int unsigned pace_latency(int unsigned pace);
    return pace == 2 ? ProdLatency : (pace == 1 ? SumLatency : AluLatency);
  endfunction

  // Whether a fold is combined in fp32 and rounds once, at its end.
  function automatic logic rounds_once(func_e func, datatype_e dtype);
    return (func == FuncSum || func == FuncProd) && (dtype == DatatypeFp16 || dtype == DatatypeBf16);
  endfunction

  // ---------------------------------------------------------------- calls under way
  // Of a communicator, calls have run n modulo UnitRuns by their sequence. A member begins a call only when the call
  // UnitRuns before it is over for it, so at each port the messages of a run come in the order of their calls.
  localparam int unsigned UnitEntries = 8;                    // communicators
  localparam int unsigned UnitRuns = 8;                      // of each
  localparam int unsigned UnitEntryWidth = $clog2(UnitEntries);
  localparam int unsigned RunWidth = UnitEntryWidth + $clog2(UnitRuns);

  typedef logic [UnitEntryWidth-1:0] unit_entry_t;
  typedef logic [RunWidth-1:0] run_t;                      // {entry, sequence modulo UnitRuns}
  localparam int unsigned Ways = 2 << RunWidth;              // runs, up and down
  typedef logic [RunWidth:0] way_t;                        // {run, down}
  typedef logic [47:0] switch_bytes_t;
  typedef logic [15:0] node_t;                             // a rank, or an address in the network

  function automatic unit_entry_t entry_of(run_t run);
    return run[RunWidth-1-:UnitEntryWidth];
  endfunction

  localparam int unsigned EagerBuffers = 16;               // of each port and communicator: credit of who is there
  localparam int unsigned BufferIndexWidth = $clog2(EagerBuffers);
  typedef logic [BufferIndexWidth-1:0] buffer_index_t;

  // A window may have an extension, which makes a ring of WindowFactor times as many segments.
  localparam int unsigned Extensions = 4;                   // of each port, for all runs
  localparam int unsigned WindowFactor = 4;
  typedef logic [$clog2(Extensions)-1:0] extension_t;

  // What members and switches have agreed for a communicator, and this switch's rank.
  typedef struct packed {
    logic [31:0] communicator;
    logic [15:0] epoch;
    node_t rank;
    logic [15:0] eager_limit;     // bytes
    logic [15:0] segment_bytes;   // a multiple of SwitchBytes
    logic [15:0] credits;         // receive buffers for each neighbour, at most EagerBuffers
  } terms_t;

  // Who is behind a port, in a communicator.
  typedef struct packed {
    logic is_switch;              // asked before a long message
    node_t rank;
    node_t address;
  } neighbour_t;

  // A message that waits at a port for its turn.
  typedef struct packed {
    logic asked;                  // its data come when it is granted; else they are in `place`
    buffer_index_t place;
    logic [31:0] sequence_;
    logic [31:0] signature;
    datatype_e dtype;
    switch_tag_t tag;
    switch_bytes_t bytes;
  } waiting_t;

  // How far a neighbour lets this switch write.
  typedef struct packed {
    logic [31:0] sequence_;
    logic [31:0] signature;
    logic [15:0] slot;
    logic [15:0] generation;
    switch_bytes_t limit;
  } granted_t;

  // What a port says of a run that the control looks at.
  typedef struct packed {
    logic there;                  // a message waits
    waiting_t head;
    logic has_grant;
    granted_t grant;
    logic has_credit;
    switch_bytes_t arrived;      // of the message that was granted
    logic whole;                  // all of it
    neighbour_t neighbour;
  } look_t;

  // A message that a run carries, from the time when its receivers are asked, or its senders granted, until it is over;
  // beside it stand the ports.
  typedef struct packed {
    logic          granted;       // its senders
    logic          gone;          // all of it, into the fold
    logic          several;       // of a collective whose blocks come by several ports
    count_t        next;          // the run's position when it is over
    logic          goes_down;     // as its tag says where it goes on
    switch_tag_t   tag;           // with which it came
    func_e         func;
    datatype_e     dtype;
    logic [31:0]   sequence_;
    logic [31:0]   signature;
    switch_bytes_t bytes;
    switch_bytes_t done;          // bytes that have gone
    switch_bytes_t limit;         // of the window
    logic          extended;
    extension_t    extension;
  } transfer_t;

  // What the control has a port send. Rank, address, communicator and token are the port's to add.
  typedef struct packed {
    message_type_e kind;
    logic by_grant;               // of messages with data: writes where the neighbour has granted, else eager
    logic first;
    logic last;
    unit_entry_t entry;
    datatype_e dtype;
    switch_tag_t tag;
    logic [31:0] sequence_;
    logic [31:0] signature;
    switch_bytes_t message_bytes;
    switch_bytes_t offset;
    logic [15:0] segment_bytes;
    logic [15:0] token_slot;
    logic [15:0] token_generation;
  } send_t;

  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNUSEDPARAM

endpackage
