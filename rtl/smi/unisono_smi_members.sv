// Opens a channel to each member of a communicator, one after the other: at the root of a scatter the
// sending end, at the root of a gather the receiving one.
//
// Members are entries of a table that is written before, in any number of lists; the order is that of
// the list. The next channel is opened as soon as the one before is closed.
//
// Latency: 2 cycles from start_i to the first offer, then 1 from a channel's end to the next offer.

module unisono_smi_members #(
  // Entries of the table.
  parameter int unsigned Entries = 256
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  // An entry of the table: the rank of a member.
  input  logic                         member_wr_en_i,
  input  logic [7:0]                   member_wr_address_i,
  input  logic [unisono_smi_pkg::RankBits-1:0] member_wr_rank_i,

  // The list, for a cycle; while running_o is low.
  input  logic                         start_i,
  input  logic [7:0]                   member_i,
  input  logic [7:0]                   members_i,

  // To the end that is opened; the rest of the beat is the same for all.
  output logic                         open_valid_o,
  input  logic                         open_ready_i,
  output logic [unisono_smi_pkg::RankBits-1:0] peer_o,

  // Not all channels are closed.
  output logic                         running_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned EntryBits = 8;

  if (Entries == 0 || Entries > 256) begin : gen_bad_entries
    $error("unisono_smi_members: Entries must be 1 to 256");
  end

  // As many bits as a rank has; a table of ranks below 256.
  (* ram_style = "distributed" *) logic [EntryBits-1:0] ranks [Entries];
  always_ff @(posedge clk_i) begin
    if (member_wr_en_i && 32'(member_wr_address_i) < Entries) begin
      ranks[member_wr_address_i] <= member_wr_rank_i[EntryBits-1:0];
    end
  end

  logic       running_q, valid_q;
  logic [7:0] at_q, left_q, rank_q;

  assign open_valid_o = valid_q;
  assign peer_o       = RankBits'(rank_q);
  assign running_o    = running_q;

  always_ff @(posedge clk_i) begin
    rank_q <= ranks[at_q];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      running_q <= 1'b0;
      valid_q   <= 1'b0;
      at_q      <= '0;
      left_q    <= '0;
    end else if (start_i) begin
      running_q <= 1'b1;
      valid_q   <= 1'b0;
      at_q      <= member_i;
      left_q    <= members_i;
    end else if (valid_q && open_ready_i) begin
      valid_q <= 1'b0;
      at_q    <= at_q + 8'd1;
      left_q  <= left_q - 8'd1;
    end else if (running_q && !valid_q) begin
      valid_q   <= left_q != '0;
      // open_ready_i: the last channel is closed.
      running_q <= left_q != '0 || !open_ready_i;
    end
  end

  logic unused_rank;
  assign unused_rank = ^member_wr_rank_i;

endmodule
