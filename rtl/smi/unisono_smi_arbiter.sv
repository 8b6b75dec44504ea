// Which of several inputs is next, in bursts: an input that goes on asking is granted up to Burst
// times in a row, then the next one that asks. This is SMI's R, without its idle cycles: inputs that
// do not ask are passed over within the cycle.
//
// Every grant is used. There is a grant in every cycle with a request. A request that stays is
// granted after at most (Requests - 1) * Burst others.

module unisono_smi_arbiter #(
  parameter int unsigned Requests   = 4,
  parameter int unsigned Burst      = 8,
  localparam int unsigned IndexBits = Requests > 1 ? $clog2(Requests) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic [Requests-1:0]  request_i,
  // At most one bit; none when there is no request.
  output logic [Requests-1:0]  grant_o,
  output logic [IndexBits-1:0] index_o
);

  if (Burst == 0) begin : gen_bad_burst
    $error("unisono_smi_arbiter: Burst must be at least 1");
  end

  localparam int unsigned LeftBits = $clog2(Burst + 1);

  // Who was granted last, and how often it may still be before others.
  logic [Requests-1:0]  last_q;
  logic [IndexBits-1:0] last_index_q;
  logic [LeftBits-1:0]  left_q;

  logic [Requests-1:0]  next_grant;
  logic [IndexBits-1:0] next_index;
  logic                 keep;

  assign keep = left_q != '0 && (request_i & last_q) != '0;

  unisono_round_robin #(
    .Requests(Requests)
  ) u_turn (
    .clk_i,
    .rst_ni,
    .request_i,
    .advance_i(!keep),
    .grant_o  (next_grant),
    .index_o  (next_index)
  );

  assign grant_o = keep ? last_q : next_grant;
  assign index_o = keep ? last_index_q : next_index;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      last_q       <= '0;
      last_index_q <= '0;
      left_q       <= '0;
    end else if (keep) begin
      left_q       <= left_q - LeftBits'(1);
    end else if (next_grant != '0) begin
      last_q       <= next_grant;
      last_index_q <= next_index;
      left_q       <= LeftBits'(Burst - 1);
    end else begin
      // It has stopped asking, and nobody else asks: its burst is over.
      left_q       <= '0;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ($onehot0(grant_o)) else $error("%m: more than one grant");
      assert ((grant_o & ~request_i) == '0) else $error("%m: a grant without request");
      assert ((grant_o == '0) == (request_i == '0)) else $error("%m: a request without any grant");
    end
  end
`endif

endmodule
