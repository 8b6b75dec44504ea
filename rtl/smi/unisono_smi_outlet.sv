// Queue from a communication kernel to a stream with valid and ready: a link's wire, or an endpoint.
//
// Latency: 2 cycles. Throughput: 1 packet per cycle. room_o is that of unisono_smi_queue: one more
// packet and Slack before it.

module unisono_smi_outlet #(
  parameter int unsigned Width = 256,
  // Places, a power of two; the stream's register is one more.
  parameter int unsigned Depth = 8,
  parameter int unsigned Slack = 2
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             in_valid_i,
  input  logic [Width-1:0] in_data_i,
  output logic             room_o,

  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);

  logic head, pop, valid_q;

  // Invariant: the queue's read register holds the word on offer while valid_q is high.
  assign pop         = head && (!valid_q || out_ready_i);
  assign out_valid_o = valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
    end else begin
      valid_q <= pop || (valid_q && !out_ready_i);
    end
  end

  logic unused_head, unused_route, unused_last;
  unisono_smi_queue #(
    .Width    (Width),
    .RouteBits(1),
    .Channels (1),
    .Depth    (Depth),
    .Slack    (Slack)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_channel_i(1'b0),
    .in_route_i  (1'b0),
    .in_last_i   (1'b1),
    .in_data_i,
    .room_o,
    .head_valid_o(head),
    .head_route_o(unused_head),
    .head_last_o (unused_last),
    .pop_i       (pop),
    .keep_i      (1'b0),
    .out_route_o (unused_route),
    .out_data_o
  );

`ifndef SYNTHESIS
  unisono_handshake_check #(
    .Width(Width)
  ) u_check (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_data_o)
  );
`endif

endmodule
