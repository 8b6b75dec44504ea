// How far the senders of a long message may write, and which message has a longer window.
//
// A run has a window of WindowSegments segments of its own. A message that is longer than that is lent an extension when
// it is granted, if one of the Extensions is free; its window has WindowFactor times as many segments then. That helps
// against the time of an answer; no message waits for one.
//
// A window goes from what has not gone on. It is raised when a quarter of it or the message's end is gained: a neighbour
// needs some segments' time to answer, and should not run dry meanwhile.
//
// Latency: 1 cycle. Throughput: one message per cycle.
// Restrictions: what becomes of a message is said while the answers for it are there. Who asks the second time has not
// granted another one since.

module unisono_switch_windows
  import unisono_switch_pkg::*;
#(
  parameter int unsigned WindowSegments = 4,  // of a run's window
  parameter int unsigned CountWidth = 5       // of folds under way
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // The message of the run looked at.
  input  run_t                  run_i,
  input  logic [15:0]           segment_i,      // bytes of a segment
  input  switch_bytes_t         bytes_i,        // of the message
  input  switch_bytes_t         done_i,         // that have gone on
  input  logic [CountWidth-1:0] outstanding_next_i,  // segments of these that are still being folded in the next cycle, if none begins
  input  logic                  granted_i,      // its senders have a window
  input  switch_bytes_t         limit_i,        // of that
  input  logic                  extended_i,     // it has this extension
  input  extension_t            extension_i,

  output logic                  lends_o,        // it gets this one, if it is granted now
  output extension_t            free_o,
  output switch_bytes_t         end_o,          // of its window, if it is granted or raised now
  output logic                  raises_o,       // that is worth a grant

  input  logic                  grant_i,        // it is granted now
  input  logic                  over_i,         // the message is over
  input  logic                  fails_i,        // the run ends
  input  logic                  open_valid_i,   // this run begins anew
  input  run_t                  open_run_i
);

  localparam int unsigned RaiseSegments = WindowSegments > 4 ? WindowSegments / 4 : 1;
  localparam int unsigned ExtendedSegments = WindowSegments * WindowFactor;
  localparam int unsigned ExtendedRaise = ExtendedSegments / 4;

  localparam int unsigned HeldBits = 16 + CountWidth;
  typedef logic [HeldBits-1:0] held_t;

  logic [Extensions-1:0] lent_q;
  run_t [Extensions-1:0] lent_to_q;
  extension_t            free;
  logic                  lends, is_extended;
  switch_bytes_t         segment, size, least, further;

  always_comb begin
    free = '0;
    for (int x = int'(Extensions) - 1; x >= 0; x--) if (!lent_q[x]) free = extension_t'(x);
  end
  assign segment     = switch_bytes_t'(segment_i);
  assign lends       = lent_q != '1 && bytes_i > segment * switch_bytes_t'(WindowSegments);
  assign is_extended = granted_i ? extended_i : lends;
  assign size        = is_extended ? segment * switch_bytes_t'(ExtendedSegments)
                                   : segment * switch_bytes_t'(WindowSegments);
  assign least       = is_extended ? segment * switch_bytes_t'(ExtendedRaise) : segment * switch_bytes_t'(RaiseSegments);
  assign further     = limit_i + least;

  // The window would end at base - held, or at the message's end; and a raise is worth it if that is at least `further`,
  // or the end. What is held back is known last, so all else is subtracted before.
  switch_bytes_t base_q, done_q, bytes_q;
  held_t         held_q;
  logic          may_raise_q;
  logic signed [$bits(switch_bytes_t):0] gain_q;  // base less what it must reach
  switch_bytes_t base, most;
  held_t         held;
  // Few bits of a count: sums, not a multiplier's.
  always_comb begin
    held = '0;
    for (int b = 0; b < int'(CountWidth); b++) if (outstanding_next_i[b]) held += held_t'(segment_i) << b;
  end
  assign base = (granted_i ? done_i : '0) + size;
  always_ff @(posedge clk_i) begin
    lends_o     <= lends;
    free_o      <= free;
    base_q      <= base;
    done_q      <= done_i;
    bytes_q     <= bytes_i;
    held_q      <= granted_i ? held : '0;
    may_raise_q <= granted_i && limit_i != bytes_i;
    gain_q      <= {1'b0, base} - {1'b0, further < bytes_i ? further : bytes_i};
  end
  assign most     = base_q - switch_bytes_t'(held_q);
  assign end_o    = most < bytes_q ? most : bytes_q;
  assign raises_o = may_raise_q && done_q >= switch_bytes_t'(held_q) && gain_q >= $signed({1'b0, switch_bytes_t'(held_q)});

  // Who has which extension.
  for (genvar x = 0; x < int'(Extensions); x++) begin : gen_extension
    always_ff @(posedge clk_i) begin
      if (!rst_ni || (over_i && extended_i && extension_i == extension_t'(x)) || (fails_i && lent_to_q[x] == run_i) ||
          (open_valid_i && lent_to_q[x] == open_run_i)) begin
        lent_q[x] <= 1'b0;
      end else if (grant_i && lends_o && free_o == extension_t'(x)) begin
        lent_q[x]    <= 1'b1;
        lent_to_q[x] <= run_i;
      end
    end
  end

endmodule
