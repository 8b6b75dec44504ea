// Simple dual-port RAM: one write port, one read port, one clock.
//
// Latency of a read: 1 cycle, or 2 with OutputRegister (block RAM then reaches its full clock
// frequency). Throughput: a write and a read per cycle.
// Reading the address that is written in the same cycle returns the old content (read-first).
// Contents are undefined until written. The read data hold while rd_en_i is low; with
// OutputRegister the second register has its own enable, rd_out_en_i.

module unisono_ram_sdp #(
  parameter int unsigned Width          = 64,
  parameter int unsigned Depth          = 512,
  parameter bit          OutputRegister = 1'b0,
  // "block", "distributed", "ultra" or "auto"; a hint to synthesis.
  // Its use in an attribute is not counted as one.
  // verilator lint_off UNUSEDPARAM
  parameter              RamStyle       = "block",
  // verilator lint_on UNUSEDPARAM
  localparam int unsigned AddressBits   = Depth > 1 ? $clog2(Depth) : 1
) (
  input  logic                   clk_i,

  input  logic                   wr_en_i,
  input  logic [AddressBits-1:0] wr_addr_i,
  input  logic [Width-1:0]       wr_data_i,

  input  logic                   rd_en_i,
  input  logic                   rd_out_en_i,
  input  logic [AddressBits-1:0] rd_addr_i,
  output logic [Width-1:0]       rd_data_o
);

  if (Width == 0 || Depth == 0) begin : gen_bad_parameters
    $error("unisono_ram_sdp: Width and Depth must be at least 1");
  end

  (* ram_style = RamStyle *) logic [Width-1:0] mem [Depth];

  logic [Width-1:0] rd_data_q;

  always_ff @(posedge clk_i) begin
    if (wr_en_i) begin
      mem[wr_addr_i] <= wr_data_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_en_i) begin
      rd_data_q <= mem[rd_addr_i];
    end
  end

  if (OutputRegister) begin : gen_output_register
    logic [Width-1:0] rd_out_q;
    always_ff @(posedge clk_i) begin
      if (rd_out_en_i) begin
        rd_out_q <= rd_data_q;
      end
    end
    assign rd_data_o = rd_out_q;
  end else begin : gen_no_output_register
    logic unused_rd_out_en;
    assign unused_rd_out_en = rd_out_en_i;
    assign rd_data_o = rd_data_q;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    assert (!wr_en_i || 32'(wr_addr_i) < Depth) else $error("%m: write beyond the last word");
    assert (!rd_en_i || 32'(rd_addr_i) < Depth) else $error("%m: read beyond the last word");
  end
`endif

endmodule
