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

  localparam int unsigned DataWidth    = DataBytes * 8;
  localparam int unsigned OffsetWidth  = $clog2(DataBytes);
  localparam int unsigned IndexWidth   = $clog2(BurstBeats);
  localparam int unsigned BlockWidth   = OffsetWidth + IndexWidth;
  localparam int unsigned WordsWidth   = 32 - OffsetWidth;
  localparam int unsigned PointerWidth = $clog2(BufferWords);

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

  typedef logic [AddressWidth-BlockWidth-1:0] block_t;
  typedef logic [IndexWidth-1:0]              index_t;
  typedef logic [DataBytes-1:0]               mask_t;

  // ---------------------------------------------------------------- commands

  logic                    next_valid, next_ready;
  logic [AddressWidth-1:0] next_address;
  logic [31:0]             next_bytes;
  logic [UserWidth-1:0]    next_user;

  logic [$clog2(Commands + 1)-1:0] unused_commands;

  unisono_fifo #(
    .Width(AddressWidth + 32 + UserWidth),
    .Depth(Commands)
  ) u_commands (
    .clk_i,
    .rst_ni,
    .in_valid_i (cmd_valid_i),
    .in_ready_o (cmd_ready_o),
    .in_data_i  ({cmd_address_i, cmd_bytes_i, cmd_user_i}),
    .out_valid_o(next_valid),
    .out_ready_i(next_ready),
    .out_data_o ({next_address, next_bytes, next_user}),
    .count_o    (unused_commands)
  );

  logic [31:0] next_final;  // the last byte, counted from the first
  assign next_final = next_bytes - 32'd1;

  // ---------------------------------------------------------------- words to beats

  // Word: takes a word, which makes a beat. Flush: the bytes of the last word that lie in the beat
  // behind it. Drop: takes what a packet has too much.
  typedef enum logic [1:0] {Word, Flush, Drop} state_e;

  state_e                 state_q;
  logic                   current_q;    // there is a command
  logic [UserWidth-1:0]   user_q;
  logic [OffsetWidth-1:0] offset_q;     // of the first byte in its beat
  mask_t                  tail_q;       // bytes of the last word that the command names
  mask_t                  beyond_q;     // bytes of a word that lie in the beat behind it
  logic [WordsWidth-1:0]  left_q;       // words after this one
  logic                   final_q;      // there are none: left_q is zero
  logic                   first_q;
  block_t                 block_q;
  index_t                 start_q;      // of the burst that is being collected
  index_t                 index_q;      // of the next beat
  logic                   mismatch_q;   // of the packet, while its last beat is still to come
  logic                   excess_q;     // the packet goes on behind its command's last word

  logic  space, take, word_end, mismatch, spill, none, item, item_end, close, finish;
  logic  final_word;
  mask_t kept;

  assign final_word = final_q;
  assign kept       = final_word ? in_keep_i & tail_q : in_keep_i;
  assign word_end   = in_last_i || final_word;
  assign mismatch   = final_word ? !in_last_i || in_keep_i != tail_q : in_last_i;
  assign spill      = (kept & beyond_q) != '0;
  assign none       = first_q && !kept[0];

  assign in_ready_o = current_q && ((state_q == Word && space) || state_q == Drop);
  assign take       = in_valid_i && in_ready_o && state_q == Word;
  // An item is what goes down the pipeline: a beat, or the end of a command that had none.
  assign item       = take || (current_q && state_q == Flush && space);
  assign item_end   = (state_q == Flush) || (word_end && !spill);
  assign close      = item && (item_end || index_q == '1);

  always_comb begin
    if (state_q == Drop) begin
      finish = in_valid_i && current_q && in_last_i;
    end else if (state_q == Flush) begin
      finish = item && !excess_q;
    end else begin
      finish = take && item_end && in_last_i;
    end
  end

  assign next_ready = !current_q || finish;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      current_q <= 1'b0;
      state_q   <= Word;
    end else if (next_ready) begin
      current_q <= next_valid;
      state_q   <= Word;
    end else if (item) begin
      if (!item_end) begin
        state_q <= word_end ? Flush : Word;
      end else begin
        state_q <= Drop;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (next_ready && next_valid) begin
      user_q   <= next_user;
      offset_q <= next_address[OffsetWidth-1:0];
      left_q   <= next_bytes == 32'd0 ? '0 : next_final[31:OffsetWidth];
      final_q  <= next_bytes == 32'd0 || next_final[31:OffsetWidth] == '0;
      first_q  <= 1'b1;
      block_q  <= next_address[AddressWidth-1:BlockWidth];
      start_q  <= next_address[BlockWidth-1:OffsetWidth];
      index_q  <= next_address[BlockWidth-1:OffsetWidth];
      for (int unsigned i = 0; i < DataBytes; i++) begin
        tail_q[i]   <= next_bytes != 32'd0 && i <= 32'(next_final[OffsetWidth-1:0]);
        beyond_q[i] <= i + 32'(next_address[OffsetWidth-1:0]) >= DataBytes;
      end
    end else if (item) begin
      left_q  <= left_q - 1'b1;
      final_q <= left_q == WordsWidth'(1);
      first_q <= 1'b0;
      index_q <= index_q + 1'b1;
      if (close) begin
        start_q <= '0;
        block_q <= block_q + 1'b1;
      end
    end
    if (take) begin
      mismatch_q <= mismatch;
      excess_q   <= !in_last_i;
    end
  end

  // ---------------------------------------------------------------- shift and merge

  typedef struct packed {
    logic                   beat;
    logic                   first;
    logic                   close;
    logic [OffsetWidth-1:0] offset;
  } item_t;

  item_t item_q, turned_item;
  logic [DataBytes-1:0][8:0] bytes_q, turned, former_q;

  // From here to the buffer nothing moves while there is no item, which takes four edges.
  localparam int unsigned Stages = 4;
  logic [Stages-1:0] moving_q;
  logic              reset_q, reset_qq;
  logic              clk;

  always_ff @(posedge clk_i) begin
    reset_q  <= !rst_ni;
    reset_qq <= reset_q;
    if (!rst_ni) moving_q <= '0;
    else moving_q <= {moving_q[Stages-2:0], item};
  end

  unisono_clock_gate u_gate (
    .clk_i,
    .enable_i(item || moving_q != '0 || !rst_ni || reset_q || reset_qq),
    .clk_o   (clk)
  );

  always_ff @(posedge clk) begin
    item_q.beat   <= item && !(state_q == Word && none) && rst_ni;
    item_q.first  <= first_q;
    item_q.close  <= close && !(state_q == Word && none) && rst_ni;
    item_q.offset <= offset_q;
    for (int unsigned i = 0; i < DataBytes; i++) begin
      bytes_q[i] <= {kept[i] && state_q == Word, in_data_i[8*i +: 8]};
    end
  end

  unisono_memory_rotate #(
    .Bytes    (DataBytes),
    .BitsEach (9),
    .SideWidth($bits(item_t))
  ) u_rotate (
    .clk_i   (clk),
    .amount_i(-item_q.offset),
    .data_i  (bytes_q),
    .side_i  (item_q),
    .data_o  (turned),
    .side_o  (turned_item)
  );

  typedef struct packed {
    logic [DataBytes-1:0] strobe;
    logic [DataWidth-1:0] data;
  } beat_t;

  beat_t beat_q;
  logic  beat_valid_q, beat_close_q;

  always_ff @(posedge clk) begin
    // The pipeline before holds nothing valid two cycles after a reset.
    beat_valid_q <= turned_item.beat && rst_ni && !reset_q && !reset_qq;
    beat_close_q <= turned_item.close && rst_ni && !reset_q && !reset_qq;
    for (int unsigned i = 0; i < DataBytes; i++) begin
      if (i >= 32'(turned_item.offset)) begin
        {beat_q.strobe[i], beat_q.data[8*i +: 8]} <= turned[i];
      end else begin
        {beat_q.strobe[i], beat_q.data[8*i +: 8]} <=
            {former_q[i][8] && !turned_item.first, former_q[i][7:0]};
      end
    end
    if (turned_item.beat) begin
      former_q <= turned;
    end
  end

  (* ram_style = "block" *) beat_t buffer [BufferWords];
  logic [PointerWidth-1:0] write_pointer_q, read_pointer_q;
  logic [PointerWidth:0]   words_q;
  beat_t                   fetched_q, out_beat_q;
  logic                    fetch, out_step;

  always_ff @(posedge clk_i) begin
    if (beat_valid_q) begin
      buffer[write_pointer_q] <= beat_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (out_step) begin
      fetched_q  <= buffer[read_pointer_q];
      out_beat_q <= fetched_q;
    end
  end

  // ---------------------------------------------------------------- bursts

  // Slots are bursts in flight, and commands without any, in order of commands. The open burst
  // owns its slot from its first beat on, because no item is made without a free one.
  // Invariant: words_q counts items from their making on, so the buffer never overflows.
  logic [IdWidth:0]   slots_q;
  logic [IdWidth-1:0] open_slot_q, head_slot_q;
  logic               retire;

  // Neither goes beyond its size, a power of two, so the top bit says that it is full.
  assign space = !words_q[PointerWidth] && !slots_q[IdWidth];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      slots_q         <= '0;
      open_slot_q     <= '0;
      head_slot_q     <= '0;
      words_q         <= '0;
      write_pointer_q <= '0;
      read_pointer_q  <= '0;
    end else begin
      slots_q         <= slots_q + (IdWidth + 1)'(close) - (IdWidth + 1)'(retire);
      open_slot_q     <= open_slot_q + IdWidth'(close);
      head_slot_q     <= head_slot_q + IdWidth'(retire);
      words_q         <= words_q + (PointerWidth + 1)'(item && !(state_q == Word && none)) -
                         (PointerWidth + 1)'(fetch);
      write_pointer_q <= write_pointer_q + PointerWidth'(beat_valid_q);
      read_pointer_q  <= read_pointer_q + PointerWidth'(fetch);
    end
  end

  // Bursts wait here until their last beat is in the buffer: collected_q of them are.
  logic               burst_valid, launch, launch_ready, burst_room;
  logic [IdWidth-1:0] burst_slot;
  block_t             burst_block;
  index_t             burst_start, burst_length;
  logic [IdWidth:0]   collected_q;

  logic [$clog2(Outstanding + 1)-1:0] unused_bursts;

  unisono_fifo #(
    .Width(IdWidth + $bits(block_t) + 2 * IndexWidth),
    .Depth(Outstanding)
  ) u_bursts (
    .clk_i,
    .rst_ni,
    .in_valid_i (close && !(state_q == Word && none)),
    .in_ready_o (burst_room),
    .in_data_i  ({open_slot_q, block_q, start_q, index_t'(index_q - start_q)}),
    .out_valid_o(burst_valid),
    .out_ready_i(launch),
    .out_data_o ({burst_slot, burst_block, burst_start, burst_length}),
    .count_o    (unused_bursts)
  );

  assign launch = burst_valid && collected_q != '0 && launch_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      collected_q <= '0;
    end else begin
      collected_q <= collected_q + (IdWidth + 1)'(beat_close_q) - (IdWidth + 1)'(launch);
    end
  end

  unisono_skid #(
    .Width(IdWidth + AddressWidth + 8)
  ) u_request (
    .clk_i,
    .rst_ni,
    .in_valid_i (burst_valid && collected_q != '0),
    .in_ready_o (launch_ready),
    .in_data_i  ({burst_slot, burst_block, burst_start, OffsetWidth'(0), 8'(burst_length)}),
    .out_valid_o(m_axi_awvalid),
    .out_ready_i(m_axi_awready),
    .out_data_o ({m_axi_awid, m_axi_awaddr, m_axi_awlen})
  );

  assign m_axi_awsize  = 3'(OffsetWidth);
  assign m_axi_awburst = 2'b01;  // INCR

  // The beats of a burst become ready to go together with its request.
  logic   length_valid, length_room, beat_last;
  index_t length, sent_q;
  logic   fetched_valid_q, fetched_last_q, out_valid_q, out_last_q;

  logic [$clog2(Outstanding + 1)-1:0] unused_lengths;

  unisono_fifo #(
    .Width(IndexWidth),
    .Depth(Outstanding)
  ) u_lengths (
    .clk_i,
    .rst_ni,
    .in_valid_i (launch),
    .in_ready_o (length_room),
    .in_data_i  (burst_length),
    .out_valid_o(length_valid),
    .out_ready_i(fetch && beat_last),
    .out_data_o (length),
    .count_o    (unused_lengths)
  );

  assign out_step  = !out_valid_q || m_axi_wready;
  assign fetch     = out_step && length_valid;
  assign beat_last = sent_q == length;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sent_q          <= '0;
      fetched_valid_q <= 1'b0;
      out_valid_q     <= 1'b0;
    end else if (out_step) begin
      fetched_valid_q <= length_valid;
      out_valid_q     <= fetched_valid_q;
      if (length_valid) begin
        sent_q <= beat_last ? '0 : sent_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (out_step) begin
      fetched_last_q <= beat_last;
      out_last_q     <= fetched_last_q;
    end
  end

  assign m_axi_wvalid = out_valid_q;
  assign m_axi_wlast  = out_last_q;
  assign m_axi_wdata  = out_beat_q.data;
  assign m_axi_wstrb  = out_beat_q.strobe;

  // ---------------------------------------------------------------- completions

  typedef struct packed {
    logic                 ends;      // a command
    logic                 mismatch;
    logic [UserWidth-1:0] user;
  } slot_t;

  slot_t                  slots [Outstanding];
  slot_t                  head;
  logic [Outstanding-1:0] answered_q, failed_q;
  logic                   error_q;

  always_ff @(posedge clk_i) begin
    if (close) begin
      slots[open_slot_q] <= '{
        ends:     item_end,
        mismatch: state_q == Flush ? mismatch_q : mismatch,
        user:     user_q
      };
    end
  end

  // Answers change nothing but these flags, so they are never held up.
  assign m_axi_bready = 1'b1;

  always_ff @(posedge clk_i) begin
    for (int unsigned s = 0; s < Outstanding; s++) begin
      if (close && open_slot_q == IdWidth'(s)) begin
        answered_q[s] <= state_q == Word && none;
        failed_q[s]   <= 1'b0;
      end else if (m_axi_bvalid && m_axi_bid == IdWidth'(s)) begin
        answered_q[s] <= 1'b1;
        failed_q[s]   <= m_axi_bresp[1];
      end
    end
  end

  logic done_ready;

  assign head   = slots[head_slot_q];
  assign retire = slots_q != '0 && answered_q[head_slot_q] && (done_ready || !head.ends);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      error_q <= 1'b0;
    end else if (retire) begin
      error_q <= !head.ends && (error_q || failed_q[head_slot_q]);
    end
  end

  unisono_skid #(
    .Width(UserWidth + 1)
  ) u_done (
    .clk_i,
    .rst_ni,
    .in_valid_i (slots_q != '0 && answered_q[head_slot_q] && head.ends),
    .in_ready_o (done_ready),
    .in_data_i  ({head.user, error_q || failed_q[head_slot_q] || head.mismatch}),
    .out_valid_o(done_valid_o),
    .out_ready_i(done_ready_i),
    .out_data_o ({done_user_o, done_error_o})
  );

  logic unused_write;
  assign unused_write = m_axi_bresp[0];

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && close && !(state_q == Word && none)) begin
      assert (burst_room)
      else $error("unisono_memory_write: more bursts than slots");
    end
    if (rst_ni && launch) begin
      assert (length_room)
      else $error("unisono_memory_write: more bursts than slots");
    end
    if (rst_ni && m_axi_bvalid) begin
      assert (slots_q != '0)
      else $error("unisono_memory_write: an answer to no request");
    end
    if (rst_ni && in_valid_i && !in_last_i) begin
      assert (in_keep_i == '1)
      else $error("unisono_memory_write: a word with gaps that is not the last");
    end
    if (rst_ni && m_axi_awvalid) begin
      assert (64'(m_axi_awaddr[11:0]) + 64'(m_axi_awlen) * DataBytes < 64'd4096)
      else $error("unisono_memory_write: a burst crosses 4 KiB");
    end
  end
  unisono_handshake_check #(
    .Width($bits(m_axi_awaddr))
  ) u_check_address (
    .clk_i,
    .rst_ni,
    .valid_i(m_axi_awvalid),
    .ready_i(m_axi_awready),
    .data_i (m_axi_awaddr)
  );
  unisono_handshake_check #(
    .Width($bits(m_axi_wdata) + 1)
  ) u_check_data (
    .clk_i,
    .rst_ni,
    .valid_i(m_axi_wvalid),
    .ready_i(m_axi_wready),
    .data_i ({m_axi_wlast, m_axi_wdata})
  );
`else
  logic unused_room;
  assign unused_room = burst_room ^ length_room;
`endif

endmodule
