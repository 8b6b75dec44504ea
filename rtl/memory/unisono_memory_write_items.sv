// Commands and the words of their packets to items: beats of memory, and ends of commands that had none. What of a word
// counts, where its bytes go, and which burst the beat belongs to; the word's bytes themselves go beside.
//
// A packet ends its command and a command bounds its packet: of one too long the rest is dropped up to its last word.
//
// Latency: a command 2 cycles, then none. Throughput: 1 item per cycle, with none lost between commands.

module unisono_memory_write_items #(
  parameter int unsigned DataBytes    = 64,
  parameter int unsigned AddressWidth = 64,
  parameter int unsigned UserWidth    = 8,
  parameter int unsigned BurstBeats   = 64,
  parameter int unsigned Commands     = 16,
  localparam int unsigned OffsetWidth = $clog2(DataBytes),
  localparam int unsigned IndexWidth  = $clog2(BurstBeats),
  localparam int unsigned BlockWidth  = AddressWidth - OffsetWidth - IndexWidth
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
  input  logic [DataBytes-1:0]    in_keep_i,
  input  logic                    in_last_i,

  // Room for an item behind this; an item is made. One without a beat is empty.
  input  logic                    space_i,
  output logic                    item_o,
  output logic                    empty_o,
  output logic                    first_o,       // of its command
  output logic [OffsetWidth-1:0]  offset_o,      // of the command's first byte in its beat
  output logic [DataBytes-1:0]    kept_o,        // bytes of the word that count

  // It is the last of its burst, and of its command; the packet's length was not the command's.
  output logic                    close_o,
  output logic                    end_o,
  output logic                    mismatch_o,
  output logic [UserWidth-1:0]    user_o,
  output logic [BlockWidth-1:0]   block_o,       // of the burst: its block, its first beat there, its beats - 1
  output logic [IndexWidth-1:0]   start_o,
  output logic [IndexWidth-1:0]   length_o
);

  localparam int unsigned WordsWidth = 32 - OffsetWidth;
  localparam int unsigned BurstWidth = OffsetWidth + IndexWidth;

  typedef logic [BlockWidth-1:0] block_t;
  typedef logic [IndexWidth-1:0] index_t;
  typedef logic [DataBytes-1:0]  mask_t;

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

  // Word: takes a word, which makes a beat. Flush: the bytes of the last word that lie in the beat
  // behind it. Drop: takes what a packet has too much.
  typedef enum logic [1:0] {Word, Flush, Drop} state_e;

  state_e                 state_q;
  logic                   current_q;    // there is a command
  logic [UserWidth-1:0]   user_q;
  logic [OffsetWidth-1:0] offset_q;
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

  logic  take, word_end, mismatch, spill, none, finish;
  mask_t kept;

  assign kept     = final_q ? in_keep_i & tail_q : in_keep_i;
  assign word_end = in_last_i || final_q;
  assign mismatch = final_q ? !in_last_i || in_keep_i != tail_q : in_last_i;
  assign spill    = (kept & beyond_q) != '0;
  assign none     = first_q && !kept[0];

  assign in_ready_o = current_q && ((state_q == Word && space_i) || state_q == Drop);
  assign take       = in_valid_i && in_ready_o && state_q == Word;
  assign item_o     = take || (current_q && state_q == Flush && space_i);
  assign end_o      = (state_q == Flush) || (word_end && !spill);
  assign close_o    = item_o && (end_o || index_q == '1);

  assign empty_o    = state_q == Word && none;
  assign first_o    = first_q;
  assign offset_o   = offset_q;
  assign kept_o     = state_q == Word ? kept : '0;
  assign mismatch_o = state_q == Flush ? mismatch_q : mismatch;
  assign user_o     = user_q;
  assign block_o    = block_q;
  assign start_o    = start_q;
  assign length_o   = index_q - start_q;

  always_comb begin
    if (state_q == Drop) begin
      finish = in_valid_i && current_q && in_last_i;
    end else if (state_q == Flush) begin
      finish = item_o && !excess_q;
    end else begin
      finish = take && end_o && in_last_i;
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
    end else if (item_o) begin
      if (!end_o) begin
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
      block_q  <= next_address[AddressWidth-1:BurstWidth];
      start_q  <= next_address[BurstWidth-1:OffsetWidth];
      index_q  <= next_address[BurstWidth-1:OffsetWidth];
      for (int unsigned i = 0; i < DataBytes; i++) begin
        tail_q[i]   <= next_bytes != 32'd0 && i <= 32'(next_final[OffsetWidth-1:0]);
        beyond_q[i] <= i + 32'(next_address[OffsetWidth-1:0]) >= DataBytes;
      end
    end else if (item_o) begin
      left_q  <= left_q - 1'b1;
      final_q <= left_q == WordsWidth'(1);
      first_q <= 1'b0;
      index_q <= index_q + 1'b1;
      if (close_o) begin
        start_q <= '0;
        block_q <= block_q + 1'b1;
      end
    end
    if (take) begin
      mismatch_q <= mismatch;
      excess_q   <= !in_last_i;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && in_valid_i && !in_last_i) begin
      assert (in_keep_i == '1)
      else $error("unisono_memory_write_items: a word with gaps that is not the last");
    end
  end
`endif

endmodule
