// Proof of unisono_rbm_router: every word goes where its packet's way leads, once, and nowhere else.
//
// The proof keeps the way of the packet under way. Words are looked at as they pass, so that the payload needs no
// model: a word that is taken from Rx is in that cycle on exactly the one port, unchanged, and taken there too.

module unisono_rbm_router_proof
  import unisono_rbm_pkg::*;
#(
  parameter int unsigned DataBytes = 1
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input way_e                   way_i,
  input logic                   payload_valid_i,
  input logic [DataBytes*8-1:0] payload_data_i,
  input logic [DataBytes-1:0]   payload_keep_i,
  input logic                   payload_last_i,
  input logic                   write_ready_i,
  input logic                   bypass_ready_i
);

  typedef struct packed {
    logic [DataBytes*8-1:0] data;
    logic [DataBytes-1:0] keep;
    logic last;
  } word_t;

  logic idle, payload_ready, write_valid, bypass_valid, write_last, bypass_last;
  word_t in, written, bypassed;
  logic [DataBytes*8-1:0] write_data, bypass_data;
  logic [DataBytes-1:0] write_keep, bypass_keep;

  unisono_rbm_router #(.DataBytes(DataBytes)) u_dut (
    .clk_i, .rst_ni, .way_i, .idle_o(idle),
    .payload_valid_i, .payload_ready_o(payload_ready), .payload_data_i, .payload_keep_i, .payload_last_i,
    .write_valid_o(write_valid), .write_ready_i, .write_data_o(write_data), .write_keep_o(write_keep),
    .write_last_o(write_last),
    .bypass_valid_o(bypass_valid), .bypass_ready_i, .bypass_data_o(bypass_data), .bypass_keep_o(bypass_keep),
    .bypass_last_o(bypass_last)
  );
  assign in = '{data: payload_data_i, keep: payload_keep_i, last: payload_last_i};
  assign written = '{data: write_data, keep: write_keep, last: write_last};
  assign bypassed = '{data: bypass_data, keep: bypass_keep, last: bypass_last};

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  logic underway_q;                                  // a packet has its way
  way_e of_packet_q;
  logic in_take, write_take, bypass_take;
  assign in_take = payload_valid_i && payload_ready;
  assign write_take = write_valid && write_ready_i;
  assign bypass_take = bypass_valid && bypass_ready_i;
  always_comb if (rst_ni) begin
    one_way_at_a_time: assume (way_i == WayNone || !underway_q);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      underway_q <= 1'b0;
      of_packet_q <= WayNone;
    end else if (way_i != WayNone) begin
      underway_q <= 1'b1;
      of_packet_q <= way_i;
    end else if (in_take && payload_last_i) begin
      underway_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      idle_between: assert (idle == !underway_q);
      if (!underway_q) waits: assert (!payload_ready && !write_valid && !bypass_valid);
      one_port: assert (!(write_valid && bypass_valid));
      if (underway_q && payload_valid_i) begin
        to_buffer: assert (write_valid == (of_packet_q == WayBuffer));
        to_lane: assert (bypass_valid == (of_packet_q == WayBypass));
        if (of_packet_q == WayDrop) dropped_at_once: assert (payload_ready);
      end
      if (write_valid || bypass_valid) taken_once: assert (in_take == (write_take || bypass_take));
      if (write_valid) unchanged_to_buffer: assert (written == in);
      if (bypass_valid) unchanged_to_lane: assert (bypassed == in);
    end
  end

endmodule
