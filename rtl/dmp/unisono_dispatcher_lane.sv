// Which lane a job goes by: the compute lane, or the one that only sends.
//
// What only reads memory and sends needs no plugin, unless the compute lane still holds something for the same peer;
// then it follows that, as messages to a peer must not overtake one another. A job of the compute lane that finds the
// peer busy in the other one waits, and makes further sends to it go its own way, so that its turn comes (it *yields*
// until then). What goes to several peers stays in one lane: its last job ends the move, and must be the last to end.
//
// Latency: what the run needs is known with it; the chosen lane one cycle after the choice. Throughput: one per cycle.

module unisono_dispatcher_lane
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_look_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // The run, and the one that there will be in the next cycle: what they need, and whom they send to.
  // verilator lint_off UNUSEDSIGNAL
  input  run_t run_i,
  input  run_t next_run_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [1:0] busy_i,                   // what holds something for the run's peer: 0 compute lane, 1 send lane

  output logic overtakes_o,                    // in neither lane may it go now
  input  lane_command_t command_i,
  output logic lane_o                          // 0: compute
);

  logic only_sends, only_sends_q, via_sender, lane_q, yields_q, yields_peer, yields_peer_now_q;
  rank_t yields_peer_q;

  assign only_sends = next_run_i.send && !next_run_i.arrival && next_run_i.func == FuncNone && !next_run_i.local_ &&
                      !next_run_i.op0_use.used;
  assign yields_peer = yields_peer_q == next_run_i.peer;
  always_ff @(posedge clk_i) begin
    only_sends_q <= only_sends;
    yields_peer_now_q <= yields_peer;
  end
  assign via_sender = only_sends_q && (run_i.fan_out || (!busy_i[0] && !(yields_q && yields_peer_now_q)));
  assign overtakes_o = run_i.send && (via_sender ? run_i.fan_out && busy_i[0] : busy_i[1]);
  assign lane_o = lane_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      lane_q <= 1'b0;
      yields_q <= 1'b0;
      yields_peer_q <= '0;
    end else begin
      if (command_i.compute) lane_q <= 1'b0;
      else if (command_i.choose) lane_q <= via_sender;
      if (command_i.blocked) begin
        yields_q <= yields_q || !only_sends_q;
        if (!yields_q) yields_peer_q <= run_i.peer;
      end else if (command_i.clear || (command_i.sent && !lane_q && yields_peer_now_q)) begin
        yields_q <= 1'b0;
      end
    end
  end

endmodule
