// Writes packets to ranges of AXI4 memory: {address, bytes, user} and words packed from byte 0 in,
// {user, error} out once the memory has answered for all of a command's bytes.
//
// Any address and any length; strobes mask the bytes around the range. A burst is requested only
// when all its data is here, so a writer never holds up a memory channel that others share,
// whatever becomes of its producer. Every burst in flight has an id of its own, so several channels
// may answer in any order. Commands are pipelined: a command's data is taken while the former
// ones' bursts are written and answered. Completions come in order of commands.
//
// A packet ends its command and a command bounds its packet. A packet too short is written as far
// as it goes; of one too long the rest is dropped up to its last word. Both set error_o in the
// completion, and the next packet belongs to the next command. Data is not taken without a command.
//
// Latency: last word of a burst in to m_axi_awvalid 6 cycles and to m_axi_wvalid 8; from the last
// m_axi_bvalid to done_valid_o 2. Throughput: 1 beat per cycle, aligned or not, with none lost
// between commands.
// Restrictions: the range does not wrap around the end of the address space; m_axi_bid names a
// burst in flight.
//
// The ports of the AXI4 master have the names that vendors' tools infer interfaces from, instead
// of _i and _o.

module unisono_memory_write #(
  // 8, 16, 32 or 64.
  parameter int unsigned DataBytes    = 64,
  parameter int unsigned AddressWidth = 64,
  parameter int unsigned UserWidth    = 8,
  // Most beats in a burst: a power of two, a burst is at most 4 KiB.
  parameter int unsigned BurstBeats   = 64,
  // Bursts in flight, a power of two.
  parameter int unsigned Outstanding  = 16,
  // Words held until their burst is complete and sent: a power of two, at least two bursts.
  parameter int unsigned BufferWords  = 512,
  // Commands that may wait for their data.
  parameter int unsigned Commands     = 16,
  localparam int unsigned IdWidth     = $clog2(Outstanding)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic                    cmd_valid_i,
  output logic                    cmd_ready_o,
  input  logic [AddressWidth-1:0] cmd_address_i,
  input  logic [31:0]             cmd_bytes_i,
  input  logic [UserWidth-1:0]    cmd_user_i,

  input  logic                    in_valid_i,
  output logic                    in_ready_o,
  input  logic [DataBytes*8-1:0]  in_data_i,
  input  logic [DataBytes-1:0]    in_keep_i,
  input  logic                    in_last_i,

  output logic                    done_valid_o,
  input  logic                    done_ready_i,
  output logic [UserWidth-1:0]    done_user_o,
  // The memory answered with an error, or the packet's length was not the command's.
  output logic                    done_error_o,

  output logic [IdWidth-1:0]      m_axi_awid,
  output logic [AddressWidth-1:0] m_axi_awaddr,
  output logic [7:0]              m_axi_awlen,
  output logic [2:0]              m_axi_awsize,
  output logic [1:0]              m_axi_awburst,
  output logic                    m_axi_awvalid,
  input  logic                    m_axi_awready,
  output logic [DataBytes*8-1:0]  m_axi_wdata,
  output logic [DataBytes-1:0]    m_axi_wstrb,
  output logic                    m_axi_wlast,
  output logic                    m_axi_wvalid,
  input  logic                    m_axi_wready,
  input  logic [IdWidth-1:0]      m_axi_bid,
  input  logic [1:0]              m_axi_bresp,
  input  logic                    m_axi_bvalid,
  output logic                    m_axi_bready
);

  localparam int unsigned OffsetWidth = $clog2(DataBytes);
  localparam int unsigned IndexWidth  = $clog2(BurstBeats);
  localparam int unsigned BlockWidth  = AddressWidth - OffsetWidth - IndexWidth;

  if (DataBytes != 8 && DataBytes != 16 && DataBytes != 32 && DataBytes != 64) begin : gen_bad_data
    $error("unisono_memory_write: DataBytes must be 8, 16, 32 or 64");
  end
  if (BurstBeats < 2 || (BurstBeats & (BurstBeats - 1)) != 0 || BurstBeats > 256 ||
      BurstBeats * DataBytes > 4096) begin : gen_bad_beats
    $error("unisono_memory_write: a burst is a power of two of beats, 2 to 256 and up to 4 KiB");
  end
  if (Outstanding < 2 || (Outstanding & (Outstanding - 1)) != 0) begin : gen_bad_outstanding
    $error("unisono_memory_write: Outstanding must be a power of two, at least 2");
  end
  if (BufferWords < 2 * BurstBeats || (BufferWords & (BufferWords - 1)) != 0) begin : gen_bad_buffer
    $error("unisono_memory_write: BufferWords must be a power of two, at least two bursts");
  end

  logic                   item, empty, first, close, item_end, mismatch, buffer_space, slot_space;
  logic [OffsetWidth-1:0] offset;
  logic [DataBytes-1:0]   kept;
  logic [UserWidth-1:0]   user;
  logic [BlockWidth-1:0]  block;
  logic [IndexWidth-1:0]  start, length;

  unisono_memory_write_items #(
    .DataBytes(DataBytes), .AddressWidth(AddressWidth), .UserWidth(UserWidth), .BurstBeats(BurstBeats),
    .Commands(Commands)
  ) u_items (
    .clk_i, .rst_ni, .cmd_valid_i, .cmd_ready_o, .cmd_address_i, .cmd_bytes_i, .cmd_user_i,
    .in_valid_i, .in_ready_o, .in_keep_i, .in_last_i,
    .space_i(buffer_space && slot_space), .item_o(item), .empty_o(empty), .first_o(first), .offset_o(offset),
    .kept_o(kept), .close_o(close), .end_o(item_end), .mismatch_o(mismatch), .user_o(user),
    .block_o(block), .start_o(start), .length_o(length)
  );

  logic                   beat_valid, beat_close;
  logic [DataBytes-1:0]   beat_strobe;
  logic [DataBytes*8-1:0] beat_data;

  unisono_memory_write_merge #(.DataBytes(DataBytes)) u_merge (
    .clk_i, .rst_ni, .item_i(item), .beat_i(item && !empty), .first_i(first), .close_i(close && !empty),
    .offset_i(offset), .kept_i(kept), .data_i(in_data_i),
    .beat_valid_o(beat_valid), .beat_close_o(beat_close), .beat_strobe_o(beat_strobe), .beat_data_o(beat_data)
  );

  logic [IdWidth-1:0] slot;

  unisono_memory_write_bursts #(
    .DataBytes(DataBytes), .AddressWidth(AddressWidth), .BurstBeats(BurstBeats), .Outstanding(Outstanding),
    .BufferWords(BufferWords)
  ) u_bursts (
    .clk_i, .rst_ni, .space_o(buffer_space), .beat_i(item && !empty),
    .beat_valid_i(beat_valid), .beat_close_i(beat_close), .beat_strobe_i(beat_strobe), .beat_data_i(beat_data),
    .burst_i(close && !empty), .burst_slot_i(slot), .burst_block_i(block), .burst_start_i(start),
    .burst_length_i(length),
    .request_valid_o(m_axi_awvalid), .request_ready_i(m_axi_awready), .request_id_o(m_axi_awid),
    .request_address_o(m_axi_awaddr), .request_length_o(m_axi_awlen),
    .out_valid_o(m_axi_wvalid), .out_ready_i(m_axi_wready), .out_data_o(m_axi_wdata), .out_strobe_o(m_axi_wstrb),
    .out_last_o(m_axi_wlast)
  );
  assign m_axi_awsize  = 3'(OffsetWidth);
  assign m_axi_awburst = 2'b01;  // INCR

  unisono_memory_write_done #(.UserWidth(UserWidth), .Outstanding(Outstanding)) u_done (
    .clk_i, .rst_ni, .space_o(slot_space), .slot_o(slot), .close_i(close), .empty_i(empty), .end_i(item_end),
    .mismatch_i(mismatch), .user_i(user), .answer_valid_i(m_axi_bvalid), .answer_id_i(m_axi_bid),
    .answer_error_i(m_axi_bresp[1]),
    .done_valid_o, .done_ready_i, .done_user_o, .done_error_o
  );
  assign m_axi_bready = 1'b1;

  logic unused_write;
  assign unused_write = m_axi_bresp[0];

endmodule
