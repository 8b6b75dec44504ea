// Register slice of a valid/ready channel with a payload of any width: both directions are
// registered.
//
// Latency: 1 cycle. Throughput: 1 word per cycle. No combinational path from any input to any
// output. Two words of storage: one behind the output, one that takes the word which arrives in
// the cycle in which the output stalls, before the sender can see that.

module unisono_skid #(
  parameter int unsigned Width = 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [Width-1:0] in_data_i,

  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);

  if (Width == 0) begin : gen_bad_width
    $error("unisono_skid: Width must be at least 1");
  end

  logic             out_valid_q;
  logic             in_ready_q;
  logic [Width-1:0] out_data_q;
  logic [Width-1:0] spare_data_q;

  // Invariant: the spare register holds a word exactly when in_ready_q is low (after reset), and
  // then the output register holds an older one.
  logic out_free;
  assign out_free = out_ready_i || !out_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q <= 1'b0;
      in_ready_q  <= 1'b1;
    end else if (out_free) begin
      out_valid_q <= in_valid_i || !in_ready_q;
      in_ready_q  <= 1'b1;
    end else begin
      in_ready_q  <= in_ready_q && !in_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (out_free) begin
      out_data_q <= in_ready_q ? in_data_i : spare_data_q;
    end
    if (in_ready_q) begin
      spare_data_q <= in_data_i;
    end
  end

  assign in_ready_o  = in_ready_q;
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_data_q;

`ifndef SYNTHESIS
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_in (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i (in_data_i)
  );
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_data_o)
  );
`endif

endmodule
