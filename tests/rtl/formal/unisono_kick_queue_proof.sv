// Proof of unisono_kick_queue: no kick is lost, and no place comes twice for one kick.
//
// The proof keeps which places must be looked at: from their kick until they leave, where a kick in the cycle in which a
// place leaves counts as a later one. After a reset it sweeps all places, before which nothing may be kicked.

module unisono_kick_queue_proof #(
  parameter int unsigned Depth = 4,
  localparam int unsigned Width = $clog2(Depth)
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             kick_valid_i,
  input logic [Width-1:0] kick_place_i,
  input logic             next_take_i
);

  localparam int unsigned Settled = 2;             // cycles after a kick in which its place may not yet be on offer

  logic next_valid, sweeps, swept_q;
  logic [Width-1:0] next_place, sweep_q;

  unisono_kick_queue #(.Depth(Depth)) u_dut (
    .clk_i, .rst_ni, .kick_valid_i, .kick_place_i, .next_valid_o(next_valid), .next_take_i, .next_place_o(next_place),
    .sweep_valid_i(sweeps), .sweep_place_i(sweep_q)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  assign sweeps = rst_ni && !swept_q;
  always_comb if (rst_ni) begin
    nothing_during_the_sweep: assume (!sweeps || !kick_valid_i);
    takes_what_is_there: assume (!next_take_i || next_valid);
  end

  logic [Depth-1:0] waiting_d, waiting_q;
  logic [$clog2(Settled+1)-1:0] quiet_q;           // cycles since the last kick
  always_comb begin
    waiting_d = waiting_q;
    if (next_take_i) waiting_d[next_place] = 1'b0;
    if (kick_valid_i) waiting_d[kick_place_i] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweep_q <= '0;
      swept_q <= 1'b0;
      waiting_q <= '0;
      quiet_q <= '0;
    end else begin
      sweep_q <= sweep_q + 1'b1;
      if (sweep_q == '1) swept_q <= 1'b1;
      waiting_q <= waiting_d;
      if (kick_valid_i) quiet_q <= '0;
      else if (32'(quiet_q) != Settled) quiet_q <= quiet_q + 1'b1;
    end
  end

  // As each place that leaves waits no more, and one is on offer as long as any waits, all leave.
  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      if (next_valid) not_twice: assert (waiting_q[next_place]);
      if (32'(quiet_q) == Settled) none_lost: assert (next_valid == (waiting_q != '0));
    end
  end

endmodule
