// A model of unisono_cdc_sync: the first flip-flop takes, of each bit that has just changed, the new or the old value.
module unisono_cdc_sync #(
  parameter int unsigned Width  = 1,
  parameter int unsigned Stages = 2
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [Width-1:0] data_i,
  output logic [Width-1:0] data_o
);

  logic [Width-1:0] late, was;
  for (genvar bit_ = 0; bit_ < int'(Width); bit_++) begin : gen_bit
    unisono_step_before u_before (
      .D(data_i[bit_]),
      .Q(was[bit_])
    );
    unisono_anything u_late (
      .Y(late[bit_])
    );
  end

  logic [Stages-1:0][Width-1:0] stages_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stages_q <= '0;
    end else begin
      stages_q <= {stages_q[Stages-2:0], (data_i & ~late) | (was & late)};
    end
  end

  assign data_o = stages_q[Stages-1];

endmodule

// tools/rtl/formal.py puts cells of Yosys in the place of these two. A bit as it was one step of time ago, whatever the
// clocks did.
(* blackbox *)
module unisono_step_before (
  input  logic D,
  output logic Q
);
endmodule

// Any bit, in each step another one.
(* blackbox *)
module unisono_anything (
  output logic Y
);
endmodule
