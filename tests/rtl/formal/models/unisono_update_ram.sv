// What unisono_update_ram promises, without the ways by which it keeps the promise: one array, read and
// written in the cycle in which values are shown. The proof "update_ram" shows that the module does
// the same; proofs of modules around it use this one.

module unisono_update_ram #(
  parameter int unsigned Entries  = 1024,
  parameter int unsigned Width    = 16,
  parameter bit          Observer = 1'b1,

  localparam int unsigned AddressBits = $clog2(Entries)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  output logic                   ready_o,

  input  logic                   update_valid_i,
  input  logic [AddressBits-1:0] update_address_i,
  output logic                   update_valid_o,
  output logic [Width-1:0]       update_data_o,
  input  logic [Width-1:0]       update_next_i,

  input  logic [AddressBits-1:0] observe_address_i,
  output logic [Width-1:0]       observe_data_o
);

  logic                   ready_q, valid1_q, valid2_q;
  logic [AddressBits-1:0] address1_q, address2_q, observe1_q, observe2_q;
  logic [Entries-1:0][Width-1:0] memory_q;

  always_ff @(posedge clk_i) begin
    valid1_q   <= rst_ni && update_valid_i;
    valid2_q   <= rst_ni && valid1_q;
    address1_q <= update_address_i;
    address2_q <= address1_q;
    observe1_q <= observe_address_i;
    observe2_q <= observe1_q;
    ready_q    <= rst_ni;
    if (!rst_ni) memory_q <= '0;
    else if (valid2_q) memory_q[address2_q] <= update_next_i;
  end

  assign ready_o        = ready_q;
  assign update_valid_o = valid2_q;
  assign update_data_o  = memory_q[address2_q];
  assign observe_data_o = Observer ? memory_q[observe2_q] : '0;

endmodule
