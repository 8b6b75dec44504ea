// Proof of unisono_smi_arbiter: at most one grant, only to a request, always one when there is a
// request; and a request that stays is granted after at most (Requests - 1) * Burst others, however
// long others go on asking.

module unisono_smi_arbiter_proof #(
  parameter int unsigned Requests   = 3,
  parameter int unsigned Burst      = 2,
  localparam int unsigned IndexBits = Requests > 1 ? $clog2(Requests) : 1
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic [Requests-1:0] request_i
);

  logic [Requests-1:0]  grant;
  logic [IndexBits-1:0] index;

  unisono_smi_arbiter #(
    .Requests(Requests),
    .Burst   (Burst)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .request_i,
    .grant_o(grant),
    .index_o(index)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      one_hot: assert ((grant & (grant - 1'b1)) == '0);
      only_requests: assert ((grant & ~request_i) == '0);
      work_conserving: assert ((grant != '0) == (request_i != '0));
      if (grant != '0) index_names_grant: assert (grant[index]);
    end
  end

  // For each request: how many others were granted since it is there.
  localparam int unsigned Bound = (Requests - 1) * Burst;
  for (genvar i = 0; i < Requests; i++) begin : gen_wait
    logic [$clog2(Bound+2)-1:0] others_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || !request_i[i] || grant[i]) begin
        others_q <= '0;
      end else begin
        others_q <= others_q + 1'b1;
      end
    end
    always_ff @(posedge clk_i) begin
      if (rst_ni && started_q && request_i[i] && !grant[i]) begin
        served_within_bound: assert (32'(others_q) < Bound);
      end
    end
  end

endmodule
