// What the blocks tell of themselves to counters and trace.
package unisono_observe_pkg;

  // A design uses only a part of this.
  // verilator lint_off UNUSEDPARAM

  localparam int unsigned Counters = unisono_spec_pkg::ExchangeCountersBytes / 8;
  localparam int unsigned CounterWidth = $clog2(Counters);

  // Bit n: what counter n counts (counter_e) happens in this cycle.
  typedef logic [Counters-1:0] events_t;
  typedef logic [CounterWidth-1:0] counter_index_t;

  // What a move waits for that the dispatcher has looked at and put aside.
  typedef enum logic [2:0] {
    WaitNone = 3'd0,
    WaitCredit = 3'd1,
    WaitGrant = 3'd2,
    WaitSpace = 3'd3,
    WaitArrival = 3'd4,
    WaitProducer = 3'd5
  } wait_e;
  localparam int unsigned Waits = 6;

  // verilator lint_on UNUSEDPARAM

endpackage
