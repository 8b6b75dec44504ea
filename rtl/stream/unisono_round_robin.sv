// Round-robin arbiter: which of several requests is next.
//
// The grant follows the requests within the cycle (two LUT levels and a chain of carries). When
// advance_i is high, the granted request becomes the last in line. Hence a request that stays is
// granted after at most Requests - 1 others.

module unisono_round_robin #(
  parameter int unsigned Requests   = 4,
  localparam int unsigned IndexBits = Requests > 1 ? $clog2(Requests) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic [Requests-1:0]  request_i,
  // The grant is used; look at the next request from now on.
  input  logic                 advance_i,
  // At most one bit; none when there is no request.
  output logic [Requests-1:0]  grant_o,
  output logic [IndexBits-1:0] index_o
);

  if (Requests == 0) begin : gen_bad_requests
    $error("unisono_round_robin: Requests must be at least 1");
  end

  // Ones above the request that was granted last: these go first.
  logic [Requests-1:0] first_q;
  logic [Requests-1:0] preferred;

  assign preferred = request_i & first_q;

  // All requests above the preferred ones: the lowest one of both is next. A negative number has the
  // bits of the number up to its lowest one, and the inverse of them above: one chain of carries.
  logic [2*Requests-1:0] both, negative, lowest, above;
  assign both     = {request_i, preferred};
  assign negative = -both;
  assign lowest   = both & negative;
  assign above    = both ^ negative;
  assign grant_o  = lowest[2*Requests-1-:Requests] | lowest[Requests-1:0];

  // Bits of a request's number, as masks of the requests that have them.
  function automatic logic [Requests-1:0] having(input int unsigned bit_number);
    logic [Requests-1:0] mask;
    for (int unsigned r = 0; r < Requests; r++) begin
      mask[r] = 1'(r >> bit_number);
    end
    return mask;
  endfunction

  for (genvar b = 0; b < IndexBits; b++) begin : gen_index
    localparam logic [Requests-1:0] Mask = having(b);
    assign index_o[b] = (grant_o & Mask) != '0;
  end

  // Above the lowest of the preferred ones all bits of the others are ones.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= '0;
    end else if (advance_i && request_i != '0) begin
      first_q <= above[Requests] ? above[Requests-1:0] : above[2*Requests-1-:Requests];
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
