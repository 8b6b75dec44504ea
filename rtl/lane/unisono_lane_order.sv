// Whether a lane still holds something for a peer.
//
// Two lanes send. Messages to one peer must reach Tx in the order in which they were dispatched, so what is sent by one
// lane waits until the other has handed over what it holds for the same peer. Each count is the difference of two that
// only grow, each with one writer.
//
// A reset clears one peer a cycle while the lane is empty; until all are, a lane is busy for everybody while it holds
// anything.
//
// Latency: a job, or a packet that Tx has taken, counts from the next cycle on. Throughput: one of each per lane and
// cycle.
// Restrictions: at most 31 jobs for a peer in a lane; the queues before and in it hold fewer.

module unisono_lane_order
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned Lanes = 2
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  rank_t             ask_peer_i,
  output logic [Lanes-1:0]  busy_o,
  output logic [Lanes-1:0]  any_o,           // it holds something for some peer

  input  logic [Lanes-1:0]  enter_i,         // for the peer that is asked about
  input  logic [Lanes-1:0]  leave_i,
  input  rank_t [Lanes-1:0] leave_peer_i
);

  localparam int unsigned CountWidth = 5;
  typedef logic [CountWidth-1:0] count_t;

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    (* ram_style = "distributed" *) count_t entered_q [Ranks];
    (* ram_style = "distributed" *) count_t left_q [Ranks];
    logic [CountWidth+1:0] all_q;
    logic [RankWidth-1:0] clear_q;
    logic cleared_q;

    // While the lane is empty nothing leaves, and what enters goes first.
    logic clears;
    assign clears = !cleared_q && all_q == '0 && !enter_i[l];

    rank_t entered_at, left_at;
    assign entered_at = clears ? clear_q : ask_peer_i;
    assign left_at = clears ? clear_q : leave_peer_i[l];

    always_ff @(posedge clk_i) begin
      if (enter_i[l] || clears) entered_q[entered_at] <= clears ? '0 : entered_q[ask_peer_i] + 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (leave_i[l] || clears) left_q[left_at] <= clears ? '0 : left_q[leave_peer_i[l]] + 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        all_q <= '0;
        clear_q <= '0;
        cleared_q <= 1'b0;
      end else begin
        all_q <= all_q + (CountWidth + 2)'(enter_i[l]) - (CountWidth + 2)'(leave_i[l]);
        if (clears) {cleared_q, clear_q} <= {1'b0, clear_q} + 1'b1;
      end
    end

    assign any_o[l] = all_q != '0;
    assign busy_o[l] = cleared_q ? entered_q[ask_peer_i] != left_q[ask_peer_i] : any_o[l];

    `ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) assert (all_q != '0 || !leave_i[l]) else $error("a packet that was not dispatched");
      if (rst_ni && cleared_q) begin
        assert (!enter_i[l] || count_t'(entered_q[ask_peer_i] - left_q[ask_peer_i]) != '1)
          else $error("more jobs for a peer than can be counted");
        assert (!leave_i[l] || entered_q[leave_peer_i[l]] != left_q[leave_peer_i[l]])
          else $error("a packet to a peer for which none was dispatched");
      end
    end
    `endif
  end

endmodule
