// Table of routes: written an entry at a time, looked up by several at once.
//
// A lookup follows its address within the cycle (LUTRAM, a copy for each lookup). What has not been
// written is undefined.

module unisono_smi_table #(
  parameter int unsigned Entries      = 128,
  parameter int unsigned Width        = 7,
  parameter int unsigned Lookups      = 4,
  localparam int unsigned AddressBits = Entries > 1 ? $clog2(Entries) : 1
) (
  input  logic                                clk_i,

  input  logic                                wr_en_i,
  input  logic [AddressBits-1:0]              wr_address_i,
  input  logic [Width-1:0]                    wr_entry_i,

  // An entry is of no meaning without valid_i.
  input  logic [Lookups-1:0]                  valid_i,
  input  logic [Lookups-1:0][AddressBits-1:0] address_i,
  output logic [Lookups-1:0][Width-1:0]       entry_o
);

  for (genvar i = 0; i < Lookups; i++) begin : gen_copy
    (* ram_style = "distributed" *) logic [Width-1:0] entries [Entries];
    always_ff @(posedge clk_i) begin
      if (wr_en_i) begin
        entries[wr_address_i] <= wr_entry_i;
      end
    end
    always_comb begin
      entry_o[i] = 'x;
      if (valid_i[i]) begin
        entry_o[i] = entries[address_i[i]];
      end
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    assert (!wr_en_i || 32'(wr_address_i) < Entries) else $error("%m: written beyond the end");
  end
`endif

endmodule
