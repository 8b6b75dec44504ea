// Brings bits from another clock into this one: a row of flip-flops, of which the first may be metastable for a while.
//
// Bits that change together may come in different cycles: of a number that counts, pass its Gray code.
// data_i must come from flip-flops. Latency: Stages cycles, one more where an edge is just missed.

module unisono_cdc_sync #(
  parameter int unsigned Width  = 1,
  parameter int unsigned Stages = 2
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [Width-1:0] data_i,  // of another clock
  output logic [Width-1:0] data_o
);

  if (Stages < 2) begin : gen_bad_stages
    $error("unisono_cdc_sync: Stages must be at least 2");
  end

  (* ASYNC_REG = "TRUE" *) logic [Stages-1:0][Width-1:0] stages_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stages_q <= '0;
    end else begin
      stages_q <= {stages_q[Stages-2:0], data_i};
    end
  end

  assign data_o = stages_q[Stages-1];

endmodule
