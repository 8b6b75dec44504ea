// A memory of which as many bytes as it has banks are read or written at once, from any address on.
//
// A bank is a byte wide. Byte a is in bank a mod Window; a window that begins within a row takes its end from the row
// above, so that each bank has an address of its own. Behind the last byte comes the first.
//
// With `groups_i` each 8 banks side by side are read and written at rows of their own instead, and the window's byte 0
// has no meaning: what they read is at `group_rd_data_o`.
//
// Latency of a read: 1 cycle; the data stay until the next one. Throughput: a read and a write per cycle. A read of
// what is written in the same cycle returns what was there before. Contents are undefined until written.
module unisono_handler_window #(
  parameter int unsigned Bytes = 65536,  // a power of two
  parameter int unsigned Window = 64,  // a power of two, less than Bytes
  localparam int unsigned AddressBits = $clog2(Bytes),
  localparam int unsigned PlaceBits = $clog2(Window),
  localparam int unsigned RowBits = AddressBits - PlaceBits,
  localparam int unsigned Groups = Window / 8
) (
  input  logic                   clk_i,

  input  logic                   wr_en_i,
  input  logic [AddressBits-1:0] wr_address_i,
  input  logic [Window-1:0]      wr_mask_i,
  input  logic [Window*8-1:0]    wr_data_i,

  input  logic                   rd_en_i,
  input  logic [AddressBits-1:0] rd_address_i,
  output logic [Window*8-1:0]    rd_data_o,

  input  logic                           groups_i,
  input  logic [Groups-1:0]              group_rd_en_i,
  input  logic [Groups-1:0][RowBits-1:0] group_rd_row_i,
  output logic [Groups-1:0][63:0]        group_rd_data_o,
  input  logic [Groups-1:0][7:0]         group_wr_mask_i,
  input  logic [Groups-1:0][RowBits-1:0] group_wr_row_i,
  input  logic [Groups-1:0][63:0]        group_wr_data_i
);

  if ((1 << AddressBits) != Bytes || (1 << PlaceBits) != Window || Window >= Bytes) begin : gen_bad
    $error("unisono_handler_window: Bytes and Window must be powers of two, Window the lesser");
  end

  logic [PlaceBits-1:0] wr_place, rd_place, rd_place_q;
  logic [RowBits-1:0] wr_row, rd_row;
  assign {wr_row, wr_place} = wr_address_i;
  assign {rd_row, rd_place} = rd_address_i;

  // The window's byte 0 goes to the bank that its address names.
  logic [2*Window-1:0] mask;
  logic [2*Window*8-1:0] data;
  assign mask = {wr_mask_i, wr_mask_i} << wr_place;
  assign data = {wr_data_i, wr_data_i} << {wr_place, 3'd0};

  logic [Window*8-1:0] banks;
  for (genvar b = 0; b < int'(Window); b++) begin : gen_bank
    // As unisono_ram_sdp, but that no address can be beyond the last row.
    (* ram_style = "block" *) logic [7:0] bytes_q [1 << RowBits];
    logic write, read;
    logic [RowBits-1:0] to, from;
    logic [7:0] written;
    assign write = groups_i ? group_wr_mask_i[b/8][b%8] : wr_en_i && mask[Window+b];
    assign to = groups_i ? group_wr_row_i[b/8] : wr_row + RowBits'(b < 32'(wr_place));
    assign written = groups_i ? group_wr_data_i[b/8][8*(b%8)+:8] : data[8*(Window+b)+:8];
    assign read = groups_i ? group_rd_en_i[b/8] : rd_en_i;
    assign from = groups_i ? group_rd_row_i[b/8] : rd_row + RowBits'(b < 32'(rd_place));
    always_ff @(posedge clk_i) begin
      if (write) bytes_q[to] <= written;
      if (read) banks[8*b+:8] <= bytes_q[from];
    end
  end
  assign group_rd_data_o = banks;

  always_ff @(posedge clk_i) if (rd_en_i) rd_place_q <= rd_place;
  assign rd_data_o = (Window * 8)'({banks, banks} >> {rd_place_q, 3'd0});

  logic unused_lower;
  assign unused_lower = ^{mask[Window-1:0], data[Window*8-1:0]};

endmodule
