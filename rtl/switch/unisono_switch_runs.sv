// Which run of a switch is looked at next.
//
// A look takes the control some ten cycles, and most of what comes lets nothing go on: of a fold of eight shares, the
// first seven. So each run is left, for each way, up and down, with the ports for which it waits: for all of them, or
// for any one. A way is *urgent* when these have come, when a fold of it is over, or when the control says so. Urgent
// ways go first. A run of which something else has come is *pending*: it is looked at, too, both ways, when nothing is
// urgent, and after UrgentMost urgent ones anyhow. So no call depends on what a run was left with; only its time does.
//
// Latency: the choice is there 1 cycle after an event; what a way is left with counts from the next cycle on. Throughput: one choice per cycle.
// Restrictions: a way is left 2 cycles after its choice or later.

module unisono_switch_runs
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,       // 4 to MaxPorts
  parameter int unsigned UrgentMost = 8,  // urgent ones that may go before one that is pending; a power of two
  localparam int unsigned AllRuns = UnitEntries * UnitRuns
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             open_valid_i,   // the run begins anew
  input  run_t             open_run_i,

  // What has come.
  input  logic [Ports-1:0] event_valid_i,
  input  run_t [Ports-1:0] event_run_i,
  input  logic             ended_valid_i,  // a fold is over
  input  way_t             ended_way_i,

  // The way that is looked at.
  input  way_t             way_i,
  input  logic             leave_i,        // it is left, and waits
  input  logic             leave_any_i,    // for any of these, or else for all; for none: for no port
  input  logic [Ports-1:0] leave_ports_i,
  input  logic             again_way_i,    // it is urgent
  input  logic             again_run_i,    // its run is pending

  // The next one.
  output logic             valid_o,
  output logic             urgent_o,       // only this way; else both ways of the run, and `down` of way_o is 0
  output logic             yields_o,       // while it is looked at, urgent ones may take its place
  output way_t             way_o,
  input  logic             take_i
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_runs: Ports must be 4 to %0d", MaxPorts);
  end
  if (UrgentMost < 2 || 2 ** $clog2(UrgentMost) != UrgentMost) begin : gen_bad_most
    $error("unisono_switch_runs: UrgentMost must be a power of two, at least 2");
  end

  typedef logic [Ports-1:0] ports_t;
  typedef logic [AllRuns-1:0] runs_t;

  runs_t [Ports-1:0]  event_of;            // the run, one bit
  ports_t [AllRuns-1:0] came;
  runs_t              looked, ended, urgent, pending_q, took_urgent, urgent_up;
  logic [Ways-1:0]    urgent_q, hit;
  ports_t             since, since_q;      // what has come of the run that is looked at

  always_comb begin
    for (int p = 0; p < int'(Ports); p++) begin
      event_of[p] = runs_t'(event_valid_i[p]) << event_run_i[p];
      for (int r = 0; r < int'(AllRuns); r++) came[r][p] = event_of[p][r];
    end
    looked = runs_t'(1) << way_i[RunWidth:1];
    ended  = runs_t'(ended_valid_i) << ended_way_i[RunWidth:1];
  end

  // The look sees what came before it was chosen. What comes in that cycle is remembered for the run that is chosen: it is
  // compared a cycle later, and no way is left so soon.
  logic [Ports-1:0] before_valid_q;
  run_t [Ports-1:0] before_run_q;
  ports_t           chosen_with;
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_since
    assign since[p]       = since_q[p] || (event_valid_i[p] && event_run_i[p] == way_i[RunWidth:1]);
    assign chosen_with[p] = before_valid_q[p] && before_run_q[p] == way_i[RunWidth:1];
  end
  always_ff @(posedge clk_i) begin
    since_q        <= take_i ? '0 : since | chosen_with;
    before_valid_q <= rst_ni ? event_valid_i : '0;
    before_run_q   <= event_run_i;
  end

  // ---------------------------------------------------------------- the choice
  localparam int unsigned CountWidth = $clog2(UrgentMost);
  logic [CountWidth-1:0] before_q;         // urgent ones since a pending one was there to go
  logic  due, by_urgent;
  run_t  index;

  // Each kind has turns of its own: one's choices must not decide where the other goes on.
  runs_t [1:0] requests, grants;           // pending, urgent
  run_t  [1:0] indexes;
  assign requests = {urgent, pending_q};
  for (genvar k = 0; k < 2; k++) begin : gen_kind
    unisono_round_robin #(
      .Requests(AllRuns)
    ) u_next (
      .clk_i,
      .rst_ni,
      .request_i(requests[k]),
      .advance_i(take_i && by_urgent == 1'(k)),
      .grant_o  (grants[k]),
      .index_o  (indexes[k])
    );
  end
  assign index = indexes[by_urgent];
  assign due       = before_q == '1;
  assign by_urgent = urgent != '0 && !(due && pending_q != '0);
  assign valid_o     = urgent != '0 || pending_q != '0;
  assign urgent_o    = by_urgent;
  assign yields_o    = !by_urgent && !due;
  // Of the urgent one, up goes first.
  assign way_o       = {index, by_urgent && (grants[1] & urgent_up) == '0};
  assign took_urgent = take_i && by_urgent ? grants[1] : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) before_q <= '0;
    else if (pending_q == '0 || (take_i && !by_urgent)) before_q <= '0;
    else if (take_i && !due) before_q <= before_q + CountWidth'(1);
  end

  // ---------------------------------------------------------------- the way that is left
  // That it is left is known late, and takes effect a cycle later, with what has come by then.
  logic   leave_hit, leave_q, leave_any_q, leave_hit_q;
  way_t   leave_way_q;
  ports_t leave_lacks, leave_lacks_q;
  assign leave_hit   = leave_any_i ? (leave_ports_i & since) != '0
                                   : leave_ports_i != '0 && (leave_ports_i & ~since) == '0;
  assign leave_lacks = leave_hit ? '0 : (leave_any_i ? leave_ports_i : leave_ports_i & ~since);
  always_ff @(posedge clk_i) begin
    leave_q       <= rst_ni && leave_i && !(open_valid_i && open_run_i == way_i[RunWidth:1]);
    leave_way_q   <= way_i;
    leave_any_q   <= leave_any_i && !leave_hit;
    leave_hit_q   <= leave_hit;
    leave_lacks_q <= leave_lacks;
  end

  // ---------------------------------------------------------------- the runs
  for (genvar r = 0; r < int'(AllRuns); r++) begin : gen_run
    logic opens, took_pending;
    assign opens        = open_valid_i && open_run_i == run_t'(r);
    assign took_pending = take_i && !by_urgent && grants[0][r];
    assign urgent[r]    = urgent_q[2*r+:2] != '0;
    assign urgent_up[r] = urgent_q[2*r];

    for (genvar d = 0; d < 2; d++) begin : gen_way
      localparam int unsigned Way = 2 * r + d;
      logic   any, any_q, mine, left, own_hit, took;
      ports_t lacks, lacks_q;
      assign mine     = looked[r] && way_i[0] == 1'(d);
      assign left     = leave_q && leave_way_q == way_t'(Way);
      assign any      = left ? leave_any_q : any_q;
      assign lacks    = left ? leave_lacks_q : lacks_q;
      assign own_hit  = any ? (lacks & came[r]) != '0 : lacks != '0 && (lacks & ~came[r]) == '0;
      assign hit[Way] = own_hit || (left && leave_hit_q);
      assign took     = took_urgent[r] && urgent_up[r] == (d == 0);
      always_ff @(posedge clk_i) begin
        if (!rst_ni || opens) begin
          any_q         <= 1'b1;
          lacks_q       <= '1;
          urgent_q[Way] <= 1'b0;
        end else begin
          any_q   <= any && !own_hit;
          lacks_q <= own_hit ? '0 : (any ? lacks : lacks & ~came[r]);
          urgent_q[Way] <= (urgent_q[Way] && !took) || hit[Way] || (mine && again_way_i) ||
                           (ended[r] && ended_way_i[0] == 1'(d));
        end
      end
    end

    // What has come and makes no way urgent may matter all the same: calls that differ, a later call's message.
    always_ff @(posedge clk_i) begin
      if (!rst_ni || opens) pending_q[r] <= 1'b0;
      else pending_q[r] <= (pending_q[r] && !took_pending) || (came[r] != '0 && hit[2*r+:2] == '0) ||
                           (looked[r] && again_run_i);
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!take_i || valid_o) else $error("%m: nothing is there to be looked at");
      assert (!take_i || valid_o && ((by_urgent ? urgent : pending_q) & grants[by_urgent]) != '0)
        else $error("%m: a run is chosen that nobody wants");
    end
  end
`endif

endmodule
