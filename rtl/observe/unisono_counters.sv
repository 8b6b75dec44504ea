// Performance counters: 64 bits each, in a small memory.
//
// Each counter has a few bits of its own that count every cycle. They are added to its word in the memory in turn, one
// counter a cycle, and when it is read: so a counter costs 8 flip-flops and an adder of 8 bits, and the adder of 64 bits
// is there once. What is read is exact: everything up to the cycle before the read. One counter is the highest level
// that was seen, and not a sum.
//
// Latency: 2 cycles from a read to its value, which stays until the next read. Throughput: a read every second cycle;
// more would keep the counters from their turn.
//
// Skips: an edge may stand for several cycles in which the same happens, or for none (docs/rtl/skipping.md). Then the
// counters' own bits are many, and added to the memory only when they are read; for simulation only.

module unisono_counters
  import unisono_spec_pkg::*;
  import unisono_observe_pkg::*;
#(
  parameter int unsigned LevelWidth = 11,
  parameter bit          Skips = 1'b0
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  // Cycles that end at this edge; without Skips it is 1, whatever this says.
  input  logic [31:0]           cycles_i,
  input  events_t               events_i,
  // The level of which the highest is kept, at CounterBuffersHigh.
  input  logic [LevelWidth-1:0] level_i,
  input  logic                  read_i,
  input  counter_index_t        index_i,
  output logic [63:0]           value_o
);

  localparam int unsigned SmallWidth = Skips ? 48 : 8;
  typedef logic [SmallWidth-1:0] small_t;

  // --------------------------------------------------------------------------------- one counter a cycle

  counter_index_t turn_q, at, at_q;
  logic read_q, busy_q;
  small_t small_q;
  logic [63:0] total, total_q, sum;
  logic [LevelWidth-1:0] high_q;
  logic [Counters-1:0] known_q;                  // its word has been written since the reset
  small_t smalls [Counters];

  (* ram_style = "distributed" *) logic [63:0] totals [Counters];

  small_t cycles;
  assign cycles = Skips ? small_t'(cycles_i) : small_t'(1);
  logic unused;
  assign unused = ^cycles_i;

  // One gives what it has counted to the memory.
  logic take;
  assign take = read_i || !Skips;
  assign at = read_i ? index_i : turn_q;
  // The word that is just being written is newer than the memory's.
  assign total = busy_q && at == at_q ? sum : known_q[at] ? totals[at] : '0;
  assign sum = at_q == CounterBuffersHigh ? 64'(high_q) : total_q + 64'(small_q);

  always_ff @(posedge clk_i) begin
    if (busy_q) totals[at_q] <= sum;
    if (read_q) value_o <= sum;
    if (take) begin
      at_q <= at;
      small_q <= smalls[at];
      total_q <= total;
    end
    if (!rst_ni) begin
      turn_q <= '0;
      read_q <= 1'b0;
      busy_q <= 1'b0;
      known_q <= '0;
      high_q <= '0;
    end else begin
      if (!read_i && !Skips) turn_q <= turn_q + 1'b1;
      read_q <= read_i;
      busy_q <= take;
      if (busy_q) known_q[at_q] <= 1'b1;
      if (level_i > high_q) high_q <= level_i;
    end
  end

  for (genvar c = 0; c < int'(Counters); c++) begin : gen_small
    logic taken;
    small_t count_q;
    assign taken = take && at == counter_index_t'(c);
    assign smalls[c] = count_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) count_q <= '0;
      else count_q <= (taken ? '0 : count_q) + (events_i[c] ? cycles : '0);
    end

    `ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) assert (count_q != '1 || taken) else $error("%m: read too often for a counter to have its turn");
    end
    `endif
  end

endmodule
