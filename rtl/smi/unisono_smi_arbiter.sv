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

  // Who was granted last, all above it, and how often it may still be before others.
  logic [Requests-1:0] last_q, above_q;
  logic [LeftBits-1:0] left_q;

  // Three times the requests, those that go first below: the one whose burst it is, those above it, all.
  // The lowest is granted. A negative number has the bits of the number up to its lowest one, and the
  // inverse of them above, so one chain of carries finds it, and all bits above it are ones in `above`.
  logic [2:0][Requests-1:0] thrice, negative, lowest;
  logic [1:0][Requests-1:0] above;
  assign thrice   = {request_i, request_i & above_q, left_q != '0 ? request_i & last_q : '0};
  assign negative = -thrice;
  assign lowest   = thrice & negative;
  assign above    = thrice[2:1] ^ negative[2:1];
  assign grant_o  = lowest[2] | lowest[1] | lowest[0];

  logic keep;
  assign keep = above[0][0];

  // Bits of a request's number, as masks of the requests that have them.
  function automatic logic [Requests-1:0] having(input int unsigned bit_number);
    logic [Requests-1:0] mask;
    for (int unsigned i = 0; i < Requests; i++) begin
      mask[i] = 1'(i >> bit_number);
    end
    return mask;
  endfunction

  for (genvar b = 0; b < IndexBits; b++) begin : gen_index
    localparam logic [Requests-1:0] Mask = having(b);
    assign index_o[b] = (grant_o & Mask) != '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      last_q  <= '0;
      above_q <= '0;
      left_q  <= '0;
    end else if (keep) begin
      left_q  <= left_q - LeftBits'(1);
    end else if (request_i != '0) begin
      last_q  <= grant_o;
      above_q <= above[1][0] ? above[0] : above[1];
      left_q  <= LeftBits'(Burst - 1);
    end else begin
      // It has stopped asking, and nobody else asks: its burst is over.
      left_q  <= '0;
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
