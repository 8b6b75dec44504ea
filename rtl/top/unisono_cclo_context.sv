// What the microcontroller says of a call that it begins, as the data path knows calls. Point to point, grants of
// several sends to one peer are told apart by a number of this engine's own.
//
// Latency: none. Throughput: a call per cycle.

module unisono_cclo_context
  import unisono_cclo_pkg::*;
  import unisono_cpu_pkg::SpaceLocal;
  import unisono_cpu_pkg::SpaceCollective;
  import unisono_cpu_pkg::SpacePointToPoint;
(
  input  logic                      clk_i,
  input  logic                      rst_ni,

  input  logic                      valid_i,
  // Which algorithm it is, nobody here asks.
  // verilator lint_off UNUSEDSIGNAL
  input  unisono_cpu_pkg::context_t given_i,
  // verilator lint_on UNUSEDSIGNAL
  output call_context_t             context_o,
  output logic                      local_o         // it exchanges nothing with others
);

  logic collective, point_to_point;
  logic [31:0] pair_sequence_q;

  assign collective = given_i.space == SpaceCollective;
  assign point_to_point = given_i.space == SpacePointToPoint;
  assign local_o = given_i.space == SpaceLocal;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) pair_sequence_q <= '0;
    else if (valid_i && point_to_point) pair_sequence_q <= pair_sequence_q + 32'd1;
  end

  assign context_o = '{
    signature: given_i.signature,
    tag: collective ? '0 : given_i.sequence_or_tag,
    sequence_: collective ? given_i.sequence_or_tag : pair_sequence_q,
    dtype: given_i.dtype,
    point_to_point: point_to_point,
    communicator: communicator_t'(given_i.communicator)
  };

endmodule
