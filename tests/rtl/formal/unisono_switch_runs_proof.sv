// Proof of unisono_switch_runs: whatever comes of a run is seen by a look that begins later, and soon.
//
// One run is watched. A look at it begins when it is taken; one at both ways sees everything that came before, one at
// an urgent way what made it urgent. What made no way urgent is seen by a look at both ways, at most Most looks later,
// whatever comes meanwhile of other runs.

module unisono_switch_runs_proof
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports      = 4,
  parameter int unsigned UrgentMost = 2,
  parameter int unsigned Watch      = 5
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             open_valid_i,
  input run_t             open_run_i,
  input logic [Ports-1:0] event_valid_i,
  input run_t [Ports-1:0] event_run_i,
  input logic             ended_valid_i,
  input way_t             ended_way_i,
  input way_t             way_i,
  input logic             leave_i,
  input logic             leave_any_i,
  input logic [Ports-1:0] leave_ports_i,
  input logic             again_way_i,
  input logic             again_run_i,
  input logic             take_i
);

  logic valid, urgent, yields;
  way_t way;

  unisono_switch_runs #(
    .Ports     (Ports),
    .UrgentMost(UrgentMost)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .open_valid_i,
    .open_run_i,
    .event_valid_i,
    .event_run_i,
    .ended_valid_i,
    .ended_way_i,
    .way_i,
    .leave_i,
    .leave_any_i,
    .leave_ports_i,
    .again_way_i,
    .again_run_i,
    .valid_o (valid),
    .urgent_o(urgent),
    .yields_o(yields),
    .way_o   (way),
    .take_i
  );

  logic started_q = 1'b0;
  logic opens, comes, takes, hit, owed_q;
  logic [1:0] owed_urgent_q;

  always_comb begin
    reset_first: assume (rst_ni == started_q);
    taken_if_there: assume (!take_i || valid);
    opens = open_valid_i && open_run_i == run_t'(Watch);
    comes = 1'b0;
    for (int p = 0; p < int'(Ports); p++) if (event_valid_i[p] && event_run_i[p] == run_t'(Watch)) comes = 1'b1;
    takes = take_i && way[RunWidth:1] == run_t'(Watch);
    hit   = u_dut.hit[2*Watch+:2] != '0;
  end

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!rst_ni || opens) begin
      owed_q        <= 1'b0;
      owed_urgent_q <= '0;
    end else begin
      owed_q <= (owed_q && !(takes && !urgent)) || (comes && !hit) || (again_run_i && way_i[RunWidth:1] == run_t'(Watch));
      for (int d = 0; d < 2; d++) begin
        owed_urgent_q[d] <= (owed_urgent_q[d] && !(takes && urgent && way[0] == 1'(d))) || u_dut.hit[2*Watch+d] ||
                            (again_way_i && way_i == way_t'(2 * Watch + d)) ||
                            (ended_valid_i && ended_way_i == way_t'(2 * Watch + d));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      // Nothing that is owed is forgotten.
      if (owed_q || owed_urgent_q != '0) it_is_there: assert (valid);
      if (owed_q) it_is_pending: assert (u_dut.pending_q[Watch]);
      up_is_urgent: assert (!owed_urgent_q[0] || u_dut.urgent_q[2*Watch]);
      down_is_urgent: assert (!owed_urgent_q[1] || u_dut.urgent_q[2*Watch+1]);
      // A look for both ways says so; one for a way is at one that is urgent.
      if (valid && !urgent) both_ways: assert (!way[0]);
      if (valid && urgent) a_way_that_is_urgent: assert (u_dut.urgent_q[way]);
      if (valid && !urgent) a_run_that_is_pending: assert (u_dut.pending_q[way[RunWidth:1]]);
      // Urgent ones do not keep those that are pending from their turn.
      if (owed_q && urgent) not_for_ever: assert (u_dut.before_q != '1);
    end
  end

endmodule
