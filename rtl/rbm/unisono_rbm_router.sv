// Where the payload of the segment goes that is at the head of Rx: to a receive buffer, past the buffers to the lane,
// or nowhere.
//
// The way is set when the header has been dealt with, and stays for one packet. Until it is set, the payload waits.
//
// Latency: none; a way that is set is open from the next cycle on. Throughput: 1 word per cycle.
// Restriction: no way is set while a packet is under way (idle_o is low).

module unisono_rbm_router
  import unisono_rbm_pkg::*;
#(
  parameter int unsigned DataBytes = 64
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  way_e way_i,                                // is set, if not WayNone
  output logic idle_o,                               // no packet is under way

  input  logic                   payload_valid_i,
  output logic                   payload_ready_o,
  input  logic [DataBytes*8-1:0] payload_data_i,
  input  logic [DataBytes-1:0]   payload_keep_i,
  input  logic                   payload_last_i,

  output logic                   write_valid_o,
  input  logic                   write_ready_i,
  output logic [DataBytes*8-1:0] write_data_o,
  output logic [DataBytes-1:0]   write_keep_o,
  output logic                   write_last_o,

  output logic                   bypass_valid_o,
  input  logic                   bypass_ready_i,
  output logic [DataBytes*8-1:0] bypass_data_o,
  output logic [DataBytes-1:0]   bypass_keep_o,
  output logic                   bypass_last_o
);

  way_e way_d, way_q;
  logic ends;

  assign idle_o = way_q == WayNone;
  assign write_valid_o = way_q == WayBuffer && payload_valid_i;
  assign write_data_o = payload_data_i;
  assign write_keep_o = payload_keep_i;
  assign write_last_o = payload_last_i;
  assign bypass_valid_o = way_q == WayBypass && payload_valid_i;
  assign bypass_data_o = payload_data_i;
  assign bypass_keep_o = payload_keep_i;
  assign bypass_last_o = payload_last_i;
  always_comb begin
    unique case (way_q)
      WayBuffer: payload_ready_o = write_ready_i;
      WayBypass: payload_ready_o = bypass_ready_i;
      WayDrop: payload_ready_o = 1'b1;
      default: payload_ready_o = 1'b0;
    endcase
  end
  assign ends = payload_valid_i && payload_ready_o && payload_last_i;
  assign way_d = way_i != WayNone ? way_i : ends ? WayNone : way_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) way_q <= WayNone;
    else way_q <= way_d;
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (way_i == WayNone || idle_o) else $error("a packet's way changes while it is under way");
    end
  end
  `endif

endmodule
