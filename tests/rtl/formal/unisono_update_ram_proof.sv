// Proof of unisono_update_ram: both readers see every change of earlier cycles, and none of the same or
// later ones.
//
// Any address may be watched. The proof keeps its value in a register, changed in the cycle in which the
// new value is given; what is shown of that address must be this value.

module unisono_update_ram_proof #(
  parameter int unsigned Entries = 4,
  parameter int unsigned Width   = 1,
  localparam int unsigned AddressBits = $clog2(Entries)
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input logic [AddressBits-1:0] watch_i,
  input logic                   update_valid_i,
  input logic [AddressBits-1:0] update_address_i,
  input logic [Width-1:0]       update_next_i,
  input logic [AddressBits-1:0] observe_address_i
);

  logic ready, valid;
  logic [Width-1:0] own, other;

  unisono_update_ram #(
    .Entries(Entries),
    .Width  (Width)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .ready_o          (ready),
    .update_valid_i,
    .update_address_i,
    .update_valid_o   (valid),
    .update_data_o    (own),
    .update_next_i,
    .observe_address_i,
    .observe_data_o   (other)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end
  always_comb if (rst_ni && !ready) begin
    waits: assume (!update_valid_i);
  end

  // The two stages between an address and its value.
  logic [AddressBits-1:0] watch_q;
  logic valid1_q, valid2_q, own1_q, own2_q, other1_q, other2_q;
  logic [Width-1:0] value_q;

  always_ff @(posedge clk_i) begin
    own1_q   <= update_address_i == watch_q;
    own2_q   <= own1_q;
    other1_q <= ready && observe_address_i == watch_q;
    other2_q <= other1_q;
    if (!rst_ni) begin
      watch_q  <= watch_i;
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
      other1_q <= 1'b0;
      other2_q <= 1'b0;
      value_q  <= '0;
    end else begin
      valid1_q <= update_valid_i;
      valid2_q <= valid1_q;
      if (valid2_q && own2_q) value_q <= update_next_i;
    end
  end

  always_comb begin
    if (rst_ni && started_q) begin
      same_step: assert (valid == valid2_q);
      if (valid2_q && own2_q) own_sees_all: assert (own == value_q);
      if (other2_q) other_sees_all: assert (other == value_q);
    end
  end

endmodule
