// Whether a lane still holds something for a peer.
//
// Two lanes send. Messages to one peer must reach Tx in the order in which they were dispatched, so what is sent by one
// lane waits until the other has handed over what it holds for the same peer. Each count is the difference of two that
// only grow, each with one writer.
//
// Latency: a job, or a packet that Tx has taken, counts from the next cycle on. Throughput: one of each per lane and
// cycle.
// Restrictions: at most 15 jobs for a peer in a lane. A reset leaves the counts as they are, which must be equal then.

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

  localparam int unsigned CountWidth = 4;
  typedef logic [CountWidth-1:0] count_t;

  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
    (* ram_style = "distributed" *) count_t entered_q [Ranks];
    (* ram_style = "distributed" *) count_t left_q [Ranks];
    logic [CountWidth+1:0] all_q;

    // Both must start alike; what they start with does not matter.
    initial begin
      for (int i = 0; i < int'(Ranks); i++) begin
        entered_q[i] = '0;
        left_q[i] = '0;
      end
    end

    always_ff @(posedge clk_i) begin
      if (enter_i[l]) entered_q[ask_peer_i] <= entered_q[ask_peer_i] + 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (leave_i[l]) left_q[leave_peer_i[l]] <= left_q[leave_peer_i[l]] + 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) all_q <= '0;
      else all_q <= all_q + (CountWidth + 2)'(enter_i[l]) - (CountWidth + 2)'(leave_i[l]);
    end

    assign busy_o[l] = entered_q[ask_peer_i] != left_q[ask_peer_i];
    assign any_o[l] = all_q != '0;

    `ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        assert (!enter_i[l] || count_t'(entered_q[ask_peer_i] - left_q[ask_peer_i]) != '1)
          else $error("more jobs for a peer than can be counted");
        assert (!leave_i[l] || entered_q[leave_peer_i[l]] != left_q[leave_peer_i[l]])
          else $error("a packet that was not dispatched");
      end
    end
    `endif
  end

endmodule
