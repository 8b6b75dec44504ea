// Cuts a range of memory into AXI4 bursts: {address, bytes} in, {address of the first beat, number
// of beats - 1} out.
//
// No burst leaves its block of BurstBeats * DataBytes bytes, aligned to its own size. A block is at
// most 4 KiB, so no burst crosses a 4 KiB boundary (proved in tests/rtl/memory/formal).
//
// Latency: 1 cycle. Throughput: 1 burst per cycle, also from one command to the next.
// Restrictions: bytes is not 0; the range does not wrap around the end of the address space.

module unisono_memory_bursts #(
  parameter int unsigned DataBytes    = 64,
  parameter int unsigned AddressWidth = 64,
  parameter int unsigned BurstBeats   = 64,
  localparam int unsigned LengthWidth = 8
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic                    cmd_valid_i,
  output logic                    cmd_ready_o,
  input  logic [AddressWidth-1:0] cmd_address_i,
  input  logic [31:0]             cmd_bytes_i,

  output logic                    burst_valid_o,
  input  logic                    burst_ready_i,
  output logic [AddressWidth-1:0] burst_address_o,
  // Beats - 1, as AxLEN.
  output logic [LengthWidth-1:0]  burst_length_o,
  output logic                    burst_last_o
);

  localparam int unsigned OffsetWidth = $clog2(DataBytes);
  localparam int unsigned IndexWidth  = $clog2(BurstBeats);
  localparam int unsigned BlockWidth  = OffsetWidth + IndexWidth;
  localparam int unsigned LeftWidth   = 33 - BlockWidth;

  if (BurstBeats < 2 || (BurstBeats & (BurstBeats - 1)) != 0 || BurstBeats > 256 ||
      BurstBeats * DataBytes > 4096) begin : gen_bad_beats
    $error("unisono_memory_bursts: a burst is a power of two of beats, 2 to 256 and up to 4 KiB");
  end
  if (DataBytes < 2 || (DataBytes & (DataBytes - 1)) != 0) begin : gen_bad_data
    $error("unisono_memory_bursts: DataBytes must be a power of two");
  end
  if (AddressWidth <= BlockWidth || AddressWidth > 64) begin : gen_bad_address
    $error("unisono_memory_bursts: AddressWidth must be at most 64 and more than a block's");
  end

  // The range in blocks: it starts at beat `start` of block `block`; its last beat is beat
  // `last_index` of the block `left` further on.
  logic                               valid_q;
  logic [AddressWidth-BlockWidth-1:0] block_q;
  logic [IndexWidth-1:0]              start_q;
  logic [IndexWidth-1:0]              last_index_q;
  logic [LeftWidth-1:0]               left_q;

  logic [32:0] end_byte;  // the last byte, counted from the start of the first block
  assign end_byte = 33'(cmd_address_i[BlockWidth-1:0]) + {1'b0, cmd_bytes_i - 32'd1};

  logic                  last;
  logic [IndexWidth-1:0] end_index;
  assign last        = left_q == '0;
  assign end_index   = last ? last_index_q : '1;
  assign cmd_ready_o = !valid_q || (burst_ready_i && last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
    end else if (cmd_ready_o) begin
      valid_q <= cmd_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (cmd_ready_o) begin
      block_q      <= cmd_address_i[AddressWidth-1:BlockWidth];
      start_q      <= cmd_address_i[BlockWidth-1:OffsetWidth];
      last_index_q <= end_byte[BlockWidth-1:OffsetWidth];
      left_q       <= end_byte[32:BlockWidth];
    end else if (burst_ready_i) begin
      block_q <= block_q + 1'b1;
      start_q <= '0;
      left_q  <= left_q - 1'b1;
    end
  end

  assign burst_valid_o   = valid_q;
  assign burst_address_o = {block_q, start_q, OffsetWidth'(0)};
  assign burst_length_o  = LengthWidth'(end_index) - LengthWidth'(start_q);
  assign burst_last_o    = last;

  // The place in the last word matters to whoever shifts the data, not to bursts.
  logic unused_end;
  assign unused_end = ^end_byte[OffsetWidth-1:0];

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && cmd_valid_i) begin
      assert (cmd_bytes_i != 32'd0)
      else $error("unisono_memory_bursts: an empty range has no bursts");
    end
    if (rst_ni && burst_valid_o) begin
      assert (64'(burst_address_o[11:0]) + 64'(burst_length_o) * DataBytes < 64'd4096)
      else $error("unisono_memory_bursts: a burst crosses 4 KiB");
    end
  end
`endif

endmodule
