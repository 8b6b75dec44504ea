// How far the senders of a long message may write, and which message has a longer window.
//
// A run has a window of WindowSegments segments of its own. A message that is longer than that is lent an extension when
// it is granted, if one of the Extensions is free; its window has WindowFactor times as many segments then. That helps
// against the time of an answer; no message waits for one.
//
// A window goes from what has not gone on. It is raised when a quarter of it or the message's end is gained: a neighbour
// needs some segments' time to answer, and should not run dry meanwhile.
//
// Latency: 0 cycles.

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
  input  switch_bytes_t         segment_i,      // bytes of a segment
  input  switch_bytes_t         bytes_i,        // of the message
  input  switch_bytes_t         done_i,         // that have gone on
  input  logic [CountWidth-1:0] outstanding_i,  // segments of these that are still being folded
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

  logic [Extensions-1:0] lent_q;
  run_t [Extensions-1:0] lent_to_q;
  logic                  is_extended;
  switch_bytes_t         kept_end, most, raise_least;

  always_comb begin
    free_o = '0;
    for (int x = int'(Extensions) - 1; x >= 0; x--) if (!lent_q[x]) free_o = extension_t'(x);
  end
  assign lends_o     = lent_q != '1 && bytes_i > segment_i * switch_bytes_t'(WindowSegments);
  assign is_extended = granted_i ? extended_i : lends_o;

  assign kept_end    = done_i - segment_i * switch_bytes_t'(outstanding_i);
  assign most        = (granted_i ? kept_end : '0) +
                       segment_i * (is_extended ? switch_bytes_t'(ExtendedSegments) : switch_bytes_t'(WindowSegments));
  assign end_o       = most < bytes_i ? most : bytes_i;
  assign raise_least = segment_i * (is_extended ? switch_bytes_t'(ExtendedRaise) : switch_bytes_t'(RaiseSegments));
  assign raises_o    = granted_i && limit_i != bytes_i && done_i >= segment_i * switch_bytes_t'(outstanding_i) &&
                       end_o > limit_i && (end_o == bytes_i || end_o - limit_i >= raise_least);

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
