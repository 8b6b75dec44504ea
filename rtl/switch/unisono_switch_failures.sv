// Runs of a switch that have ended because calls differed: which call it was, and what still comes of it.
//
// A run that has ended throws away what comes of that call: heads and grants with its sequence. Of the call that went
// last, a neighbour may still say that it was another one: nothing else of it is here then, so the run is to end.
//
// Latency: of what is asked, 1 cycle after run_i; of look_i, none. One change per cycle.
// Restrictions: a run is looked at 2 cycles after a change to it or later.

// Of what a port says, only who and which call is looked at.
// verilator lint_off UNUSEDSIGNAL

module unisono_switch_failures
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,       // 4 to MaxPorts
  localparam int unsigned AllRuns = UnitEntries * UnitRuns
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              open_valid_i,     // the run begins anew
  input  run_t              open_run_i,

  // The run looked at.
  input  run_t              run_i,
  input  look_t [Ports-1:0] look_i,
  output logic [Ports-1:0]  thrown_o,         // heads that are thrown away
  output logic [Ports-1:0]  thrown_grants_o,
  output logic              differs_o,        // a neighbour called something else last: a cycle later
  output logic [31:0]       latest_sequence_o,
  output logic [31:0]       latest_signature_o,

  input  logic              over_i,           // a message of this call has gone on
  input  logic [31:0]       over_sequence_i,
  input  logic [31:0]       over_signature_i,
  input  logic              fails_i,          // the run ends with this call
  input  logic [31:0]       fail_sequence_i
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_failures: Ports must be 4 to %0d", MaxPorts);
  end

  (* ram_style = "distributed" *) logic [31:0] failed_sequence_q [AllRuns];
  (* ram_style = "distributed" *) logic [63:0] latest_q [AllRuns];    // sequence and signature
  logic [AllRuns-1:0] failed_q, has_latest_q;

  logic        failed, has_latest;
  logic [31:0] sequence_q;

  always_ff @(posedge clk_i) begin
    if (over_i) latest_q[run_i] <= {over_sequence_i, over_signature_i};
    if (fails_i) failed_sequence_q[run_i] <= fail_sequence_i;
    {latest_sequence_o, latest_signature_o} <= latest_q[run_i];
    sequence_q <= failed_sequence_q[run_i];
    failed     <= failed_q[run_i];
    has_latest <= has_latest_q[run_i];
  end
  for (genvar r = 0; r < int'(AllRuns); r++) begin : gen_run
    always_ff @(posedge clk_i) begin
      if (!rst_ni || (open_valid_i && open_run_i == run_t'(r))) begin
        failed_q[r]     <= 1'b0;
        has_latest_q[r] <= 1'b0;
      end else if (run_i == run_t'(r)) begin
        failed_q[r]     <= failed_q[r] || fails_i;
        has_latest_q[r] <= has_latest_q[r] || over_i;
      end
    end
  end

  logic [Ports-1:0] differs;
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_port
    assign thrown_o[p]        = failed && look_i[p].there && look_i[p].head.sequence_ == sequence_q;
    assign thrown_grants_o[p] = failed && look_i[p].has_grant && look_i[p].grant.sequence_ == sequence_q;
    assign differs[p]         = has_latest && look_i[p].has_grant && look_i[p].grant.sequence_ == latest_sequence_o &&
                                look_i[p].grant.signature != latest_signature_o;
  end
  always_ff @(posedge clk_i) differs_o <= differs != '0;

endmodule
