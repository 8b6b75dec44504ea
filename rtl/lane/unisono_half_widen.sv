// One half of a word of fp16 or bf16 as a word of fp32.
//
// Latency: none. Throughput: one half per cycle. What comes out while no half is wanted is anything:
// that takes no gates, and a simulator computes nothing.

module unisono_half_widen
  import unisono_plugin_pkg::*;
#(
  parameter int unsigned DataBytes = 64
) (
  input  logic                   wanted_i,
  input  logic                   upper_i,      // which half
  input  logic                   brain_i,      // bf16, else fp16
  input  logic [DataBytes*8-1:0] data_i,
  input  logic [DataBytes-1:0]   keep_i,
  output logic [DataBytes*8-1:0] data_o,
  output logic [DataBytes-1:0]   keep_o
);

  localparam int unsigned Lanes = DataBytes / 4;

  logic [Lanes*16-1:0] data;
  logic [Lanes*2-1:0] keep;
  assign data = upper_i ? data_i[Lanes*16+:Lanes*16] : data_i[0+:Lanes*16];
  assign keep = upper_i ? keep_i[Lanes*2+:Lanes*2] : keep_i[0+:Lanes*2];

  always_comb begin
    data_o = 'x;
    keep_o = 'x;
    if (wanted_i) begin
      for (int unsigned i = 0; i < Lanes; i++) begin
        data_o[32*i+:32] = brain_i ? widen_bf16(data[16*i+:16]) : widen_fp16(data[16*i+:16]);
        keep_o[4*i+:4] = {4{keep[2*i]}};
      end
    end
  end

  // Elements are whole.
  logic unused;
  assign unused = ^keep;

endmodule
