// Round-robin arbiter: which of several requests is next.
//
// The grant follows the requests within the cycle (about four LUT levels for 8 requests). When
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
  logic [Requests-1:0] first_d, first_q;
  logic [Requests-1:0] preferred;

  assign preferred = request_i & first_q;

  // Of either set the lowest: no lower bit is set. Both at once, for depth.
  always_comb begin
    for (int unsigned i = 0; i < Requests; i++) begin
      logic lower_preferred, lower_requested;
      lower_preferred = 1'b0;
      lower_requested = 1'b0;
      for (int unsigned j = 0; j < i; j++) begin
        lower_preferred |= preferred[j];
        lower_requested |= request_i[j];
      end
      grant_o[i] = preferred != '0 ? preferred[i] && !lower_preferred
                                   : request_i[i] && !lower_requested;
    end
  end

  always_comb begin
    index_o = '0;
    for (int unsigned i = 0; i < Requests; i++) begin
      if (grant_o[i]) begin
        index_o |= IndexBits'(i);
      end
    end
  end

  // All above the grant.
  always_comb begin
    for (int unsigned i = 0; i < Requests; i++) begin
      first_d[i] = 1'b0;
      for (int unsigned j = 0; j < i; j++) begin
        first_d[i] |= grant_o[j];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= '0;
    end else if (advance_i && grant_o != '0) begin
      first_q <= first_d;
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
