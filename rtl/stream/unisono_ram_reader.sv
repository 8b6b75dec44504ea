// A memory whose read side is a valid/ready channel: fetches ahead, so that the words of a FIFO
// leave at one per cycle although a block RAM answers late.
//
// The owner keeps the pointers: it writes with wr_*, shows with avail_i that the word at rd_addr_i
// has been written (in an earlier cycle), and moves rd_addr_i on when fetch_o is high. The cell is
// then free for a new word.
//
// Latency from avail_i to out_valid_o: 2 cycles with block RAM (its read and its output register),
// 1 with LUTRAM. Throughput: 1 word per cycle. Up to 2 (block RAM) or 1 fetched words are held
// beside the memory. fetch_o follows out_ready_i within the cycle.

module unisono_ram_reader #(
  parameter int unsigned Width        = 64,
  parameter int unsigned Depth        = 64,
  parameter bit          BlockRam     = Depth > 64,
  localparam int unsigned AddressBits = Depth > 1 ? $clog2(Depth) : 1
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   wr_en_i,
  input  logic [AddressBits-1:0] wr_addr_i,
  input  logic [Width-1:0]       wr_data_i,

  input  logic                   avail_i,
  input  logic [AddressBits-1:0] rd_addr_i,
  output logic                   fetch_o,

  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [Width-1:0]       out_data_o
);

  logic out_valid_q, out_free;
  assign out_free    = out_ready_i || !out_valid_q;
  assign out_valid_o = out_valid_q;

  if (BlockRam) begin : gen_block
    // A word in the RAM's read register.
    logic read_valid_q;

    assign fetch_o = avail_i && (out_free || !read_valid_q);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        read_valid_q <= 1'b0;
        out_valid_q  <= 1'b0;
      end else begin
        if (fetch_o) begin
          read_valid_q <= 1'b1;
        end else if (out_free) begin
          read_valid_q <= 1'b0;
        end
        if (out_free) begin
          out_valid_q <= read_valid_q;
        end
      end
    end

    unisono_ram_sdp #(
      .Width         (Width),
      .Depth         (Depth),
      .OutputRegister(1'b1),
      .RamStyle      ("block")
    ) u_ram (
      .clk_i,
      .wr_en_i,
      .wr_addr_i,
      .wr_data_i,
      .rd_en_i    (fetch_o),
      .rd_out_en_i(out_free),
      .rd_addr_i,
      .rd_data_o  (out_data_o)
    );
  end else begin : gen_lutram
    assign fetch_o = avail_i && out_free;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        out_valid_q <= 1'b0;
      end else if (out_free) begin
        out_valid_q <= avail_i;
      end
    end

    unisono_ram_sdp #(
      .Width         (Width),
      .Depth         (Depth),
      .OutputRegister(1'b0),
      .RamStyle      ("distributed")
    ) u_ram (
      .clk_i,
      .wr_en_i,
      .wr_addr_i,
      .wr_data_i,
      .rd_en_i    (out_free),
      .rd_out_en_i(1'b0),
      .rd_addr_i,
      .rd_data_o  (out_data_o)
    );
  end

endmodule
