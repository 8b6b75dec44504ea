// Finds the entry in which the program of a call may be.
//
// A call has two entries to choose from, by a hash of its arguments; they differ in the upper bit, so that two calls
// of one hash do not drive each other out. Each has a mark, another hash of the arguments of whose program is in it or
// comes into it: the call looks at the entry with its mark, or else at the one of the two that was not looked at last.
// That is a guess; what is given out is compared in whole. Programs of the user have the upper entries, from the last
// one down. An entry that once had one is out of reach for calls; they find another in the lower half.
//
// Latency: none; what is settled counts from the next cycle on. Throughput: one call per cycle.

module unisono_replay_home
  import unisono_cpu_pkg::*;
#(
  parameter int unsigned Entries = 16,
  parameter int unsigned Programs = 8,
  localparam int unsigned EntryWidth = $clog2(Entries),
  localparam int unsigned ProgramWidth = Programs > 1 ? $clog2(Programs) : 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Counts are often multiples of powers of two, and roots small: not all bits make a difference.
  // verilator lint_off UNUSEDSIGNAL
  input  call_key_t             key_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [Programs-1:0]   pinned_i,              // slots that have had a program of the user
  output logic [EntryWidth-1:0] entry_o,
  output logic [7:0]            mark_o,

  // A call of the firmware has been looked at; its program comes into the entry.
  input  logic                  settles_i,
  input  logic                  keeps_i,
  input  logic [EntryWidth-1:0] settled_entry_i,
  input  logic [7:0]            settled_mark_i
);

  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [7:0] mark_t;

  logic [15:0] mixed;
  entry_t hashed;
  mark_t [Entries-1:0] marks_q;
  logic [Entries/2-1:0] last_q;
  logic [EntryWidth-2:0] pair;
  logic [EntryWidth-1:0] from_last;

  assign mixed = key_i.count[15:0] ^ key_i.count[31:16] ^ key_i.root[15:0] ^
                 {key_i.head[3:0], key_i.head[7:4], key_i.head[19:16], key_i.head[27:24]} ^
                 {key_i.communicator[7:0], 8'd0};
  always_comb begin
    hashed = '0;
    for (int i = 0; i < 16; i += int'(EntryWidth)) begin
      hashed ^= entry_t'(mixed >> i);
    end
  end

  assign pair = hashed[EntryWidth-2:0];
  assign mark_o = {key_i.head[3:0] ^ key_i.communicator[3:0], key_i.root[3:0] ^ key_i.head[19:16]} ^
                   key_i.count[7:0] ^ {key_i.count[11:8], key_i.count[15:12]} ^ {4'd0, key_i.flags[3:0]};
  assign from_last = ~{1'b1, pair};
  always_comb begin
    entry_o = {!last_q[pair], pair};
    if (marks_q[{1'b1, pair}] == mark_o) entry_o = {1'b1, pair};
    if (marks_q[{1'b0, pair}] == mark_o) entry_o = {1'b0, pair};
    if (32'(from_last) < Programs && pinned_i[from_last[ProgramWidth-1:0]]) entry_o = {1'b0, pair};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      marks_q <= '0;
      last_q <= '1;
    end else begin
      if (settles_i) last_q[settled_entry_i[EntryWidth-2:0]] <= settled_entry_i[EntryWidth-1];
      if (keeps_i) marks_q[settled_entry_i] <= settled_mark_i;
    end
  end

endmodule
