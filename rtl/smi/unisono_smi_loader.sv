// Loads an image of `unisono route` (docs/routing.md) into the tables of a node.
//
// The image comes as 32-bit words, little-endian, with last at the end of it. Its head is compared
// with what this node is built for, its tables are written a byte at a time, its CRC-32 is checked.
// Before the first image, while one comes, and after one that was refused the node does not run
// (running_o low), and image_o says what was wrong. A new image may come at any time; the node
// forgets what is in its queues, so the whole network should be quiet, and all nodes be loaded.
//
// Throughput: a word in 4 cycles. The node runs 3 cycles after the last.

module unisono_smi_loader #(
  parameter int unsigned Links           = 4,
  parameter int unsigned VirtualChannels = 1,
  parameter int unsigned MaxRanks        = 128,
  // Logical ports of the node; the image must be made for as many.
  parameter int unsigned Ports           = 4,
  localparam int unsigned LinkBits       = Links > 1 ? $clog2(Links) : 1,
  localparam int unsigned SendBits       = $clog2(VirtualChannels * MaxRanks),
  localparam int unsigned ReceiveBits    = $clog2(2 * Ports)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   image_valid_i,
  output logic                   image_ready_o,
  input  logic [31:0]            image_data_i,
  input  logic                   image_last_i,

  // One bit for the link whose table is written.
  output logic [Links-1:0]       cks_wr_en_o,
  output logic [SendBits-1:0]    cks_wr_address_o,
  output logic [Links-1:0]       ckr_wr_en_o,
  output logic [ReceiveBits-1:0] ckr_wr_address_o,
  output logic [6:0]             wr_entry_o,

  output logic                   running_o,
  output unisono_smi_pkg::image_e image_o,
  output logic [unisono_smi_pkg::RankBits-1:0] ranks_o,
  output logic [unisono_smi_pkg::RankBits-1:0] rank_o,
  output logic [unisono_smi_pkg::PortBits-1:0] ports_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned HeadBytes   = 16;
  localparam int unsigned AddressBits = 17;
  localparam logic [31:0] Magic       = {"U", "O", "R", "U"};

  // A word's bytes one by one, the lowest first; the first is in byte_q[7:0].
  logic [31:0]            bytes_q;
  logic [2:0]             left_q;
  logic                   last_q;
  logic                   step;
  logic [AddressBits-1:0] at_q;
  image_e                 image_q;
  logic                   running_q;
  logic [31:0]            sum_q;

  logic [7:0]             links_q, channels_q;
  logic [15:0]            ranks_q, rank_q, ports_q;

  // The image has ended as its head says; its check sum is looked at in the cycle behind.
  logic sums_q;
  assign step          = left_q != '0;
  assign image_ready_o = left_q <= 3'd1 && !(step && last_q) && !sums_q;

  // IEEE 802.3, a byte at a time, the lowest bit first.
  function automatic logic [31:0] sum_of(input logic [31:0] sum, input logic [7:0] value);
    logic [31:0] next;
    next = sum ^ {24'd0, value};
    for (int unsigned i = 0; i < 8; i++) begin
      next = (next >> 1) ^ (next[0] ? 32'hEDB8_8320 : 32'd0);
    end
    return next;
  endfunction
  // Of anything followed by its own CRC-32.
  localparam logic [31:0] Residue = 32'hDEBB_20E3;

  // Where the bytes of the tables belong.
  logic                   in_cks_q, in_ckr_q;
  logic [LinkBits-1:0]    link_q;
  logic [2:0]             channel_q;
  logic [15:0]            place_q;
  logic                   end_of_row, end_of_links;
  logic [7:0]             value;
  // Bytes of tables that are still to come, and of zeros and check sum behind them.
  logic [2:0]             tail_q;

  assign value        = bytes_q[7:0];
  assign end_of_row   = in_cks_q ? place_q == ranks_q - 16'd1 : place_q == 2 * ports_q - 16'd1;
  assign end_of_links = 32'(link_q) == Links - 1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q    <= '0;
      last_q    <= 1'b0;
      at_q      <= '0;
      image_q   <= ImageMagic;
      running_q <= 1'b0;
      sums_q    <= 1'b0;
      sum_q     <= '1;
      in_cks_q  <= 1'b0;
      in_ckr_q  <= 1'b0;
      link_q    <= '0;
      channel_q <= '0;
      place_q   <= '0;
      tail_q    <= '0;
    end else begin
      if (image_valid_i && image_ready_o) begin
        bytes_q   <= image_data_i;
        last_q    <= image_last_i;
        left_q    <= 3'd4;
        running_q <= 1'b0;
        if (at_q == '0) begin
          image_q <= image_data_i == Magic ? ImageGood : ImageMagic;
        end
      end else if (step) begin
        bytes_q <= bytes_q >> 8;
        left_q  <= left_q - 3'd1;
      end

      // Nothing is taken in this cycle.
      if (sums_q) begin
        sums_q    <= 1'b0;
        running_q <= sum_q == Residue;
        if (sum_q != Residue) begin
          image_q <= ImageSum;
        end
      end
      if (step && at_q == '0) begin
        sum_q <= sum_of('1, value);
      end else if (step) begin
        sum_q <= sum_of(sum_q, value);
      end

      if (step) begin
        if (at_q != '1) begin
          at_q <= at_q + AddressBits'(1);
        end
        case (32'(at_q))
          4:  if (image_q == ImageGood && value != 8'd1) image_q <= ImageMagic;
          5:  links_q         <= value;
          6:  channels_q      <= value;
          8:  ranks_q[7:0]    <= value;
          9:  ranks_q[15:8]   <= value;
          10: rank_q[7:0]     <= value;
          11: rank_q[15:8]    <= value;
          12: ports_q[7:0]    <= value;
          13: ports_q[15:8]   <= value;
          HeadBytes - 1: begin
            if (image_q == ImageGood) begin
              if (32'(links_q) != Links) begin
                image_q <= ImageLinks;
              end else if (channels_q == '0 || 32'(channels_q) > VirtualChannels) begin
                image_q <= ImageChannels;
              end else if (ranks_q == '0 || 32'(ranks_q) > MaxRanks || rank_q >= ranks_q) begin
                image_q <= ImageRanks;
              end else if (32'(ports_q) != Ports) begin
                image_q <= ImagePorts;
              end else begin
                in_cks_q <= 1'b1;
              end
            end
          end
          default: ;
        endcase

        if (in_cks_q || in_ckr_q) begin
          place_q <= place_q + 16'd1;
          if (end_of_row) begin
            place_q <= '0;
            if (in_cks_q && 8'(channel_q) != channels_q - 8'd1) begin
              channel_q <= channel_q + 3'd1;
            end else begin
              channel_q <= '0;
              link_q    <= end_of_links ? '0 : link_q + LinkBits'(1);
              if (end_of_links) begin
                in_cks_q <= 1'b0;
                in_ckr_q <= in_cks_q;
                if (in_ckr_q) begin
                  // Zeros up to a multiple of 4, and the sum.
                  tail_q <= 3'(32'd3 - 32'(at_q[1:0])) + 3'd4;
                end
              end
            end
          end
        end else if (tail_q != '0) begin
          tail_q <= tail_q - 3'd1;
        end

        if (last_q && left_q == 3'd1) begin
          // The image ends with this byte.
          if (image_q == ImageGood && at_q > AddressBits'(HeadBytes)) begin
            if (in_cks_q || in_ckr_q || tail_q != 3'd1) begin
              image_q <= ImageLength;
            end else begin
              sums_q <= 1'b1;
            end
          end else if (image_q == ImageGood) begin
            image_q <= ImageLength;
          end
          at_q      <= '0;
          in_cks_q  <= 1'b0;
          in_ckr_q  <= 1'b0;
          link_q    <= '0;
          channel_q <= '0;
          place_q   <= '0;
          tail_q    <= '0;
        end else if (tail_q == 3'd1 && image_q == ImageGood) begin
          image_q <= ImageLength;
        end
      end
    end
  end

  always_comb begin
    cks_wr_en_o         = '0;
    ckr_wr_en_o         = '0;
    cks_wr_en_o[link_q] = step && in_cks_q;
    ckr_wr_en_o[link_q] = step && in_ckr_q;
  end
  assign cks_wr_address_o = SendBits'(32'(channel_q) * MaxRanks + 32'(place_q));
  assign ckr_wr_address_o = ReceiveBits'(place_q);
  assign wr_entry_o       = value[6:0];

  assign running_o = running_q;
  assign image_o   = image_q;
  assign ranks_o   = ranks_q;
  assign rank_o    = rank_q;
  assign ports_o   = ports_q;

endmodule
