// Reads ranges of AXI4 memory as packets: {address, bytes, user} in, words packed from byte 0 out.
//
// Any address and any length. Requests run ahead of the data: while one command's data comes, the
// requests of the next ones are out, up to Outstanding bursts and BufferWords words. Room for a
// burst is reserved before it is requested, so m_axi_rready is always high: a reader never holds
// up a memory channel that others share, whatever becomes of its consumer. Every burst in flight
// has an id of its own, so several channels may answer in any order, also interleaved.
//
// Latency: command to m_axi_arvalid 2 cycles; m_axi_rvalid to out_valid_o 9 cycles, in a command
// of one beat as in a longer one.
// Throughput: 1 word per cycle, aligned or not; a command takes as many cycles as it reads beats,
// with none lost between commands.
// Restrictions: whole beats are read, so bytes around the range must be readable without effect;
// the range does not wrap around the end of the address space; m_axi_rid names a burst in flight.
//
// The ports of the AXI4 master have the names that vendors' tools infer interfaces from, instead
// of _i and _o.

module unisono_memory_read #(
  // 8, 16, 32 or 64.
  parameter int unsigned DataBytes    = 64,
  parameter int unsigned AddressWidth = 64,
  parameter int unsigned UserWidth    = 8,
  // Most beats in a burst: a power of two, a burst is at most 4 KiB.
  parameter int unsigned BurstBeats   = 64,
  // Bursts in flight, a power of two.
  parameter int unsigned Outstanding  = 16,
  // Words held for bursts in flight: a power of two, at least two bursts.
  parameter int unsigned BufferWords  = 512,
  // Commands between their requests and the end of their data.
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

  output logic                    out_valid_o,
  input  logic                    out_ready_i,
  output logic [DataBytes*8-1:0]  out_data_o,
  output logic [DataBytes-1:0]    out_keep_o,
  output logic                    out_last_o,
  output logic [UserWidth-1:0]    out_user_o,
  // With the last word of a packet: one of its beats was answered with an error.
  output logic                    out_error_o,

  output logic [IdWidth-1:0]      m_axi_arid,
  output logic [AddressWidth-1:0] m_axi_araddr,
  output logic [7:0]              m_axi_arlen,
  output logic [2:0]              m_axi_arsize,
  output logic [1:0]              m_axi_arburst,
  output logic                    m_axi_arvalid,
  input  logic                    m_axi_arready,
  input  logic [IdWidth-1:0]      m_axi_rid,
  input  logic [DataBytes*8-1:0]  m_axi_rdata,
  input  logic [1:0]              m_axi_rresp,
  input  logic                    m_axi_rlast,
  input  logic                    m_axi_rvalid,
  output logic                    m_axi_rready
);

  localparam int unsigned DataWidth    = DataBytes * 8;
  localparam int unsigned OffsetWidth  = $clog2(DataBytes);
  localparam int unsigned IndexWidth   = $clog2(BurstBeats);
  localparam int unsigned BeatsWidth   = 33 - OffsetWidth;
  localparam int unsigned PointerWidth = $clog2(BufferWords);
  localparam int unsigned OutputWords  = 16;

  if (DataBytes != 8 && DataBytes != 16 && DataBytes != 32 && DataBytes != 64) begin : gen_bad_data
    $error("unisono_memory_read: DataBytes must be 8, 16, 32 or 64");
  end
  if (Outstanding < 2 || (Outstanding & (Outstanding - 1)) != 0) begin : gen_bad_outstanding
    $error("unisono_memory_read: Outstanding must be a power of two, at least 2");
  end
  if (BufferWords < 2 * BurstBeats || (BufferWords & (BufferWords - 1)) != 0) begin : gen_bad_buffer
    $error("unisono_memory_read: BufferWords must be a power of two, at least two bursts");
  end

  // ---------------------------------------------------------------- commands

  // What the data side has to know of a command.
  typedef struct packed {
    logic [UserWidth-1:0]   user;
    logic                   empty;   // no bytes: one word without any, no beat
    logic                   flush;   // as many words as beats: the last beat alone ends the packet
    logic [OffsetWidth-1:0] offset;  // of the first byte in its beat
    logic [OffsetWidth-1:0] tail;    // bytes - 1 of the last word
  } shape_t;

  typedef struct packed {
    shape_t                 shape;
    logic [IndexWidth-1:0]  index;   // of the first beat in its block
    logic [BeatsWidth-1:0]  beats;   // - 1
  } context_t;

  context_t cmd_context, next_context;
  logic     context_ready, next_valid, next_ready;
  logic     split_ready;
  logic     cmd_empty;

  logic [31:0]            cmd_final;     // the last byte, counted from the first
  logic [OffsetWidth:0]   cmd_in_last;   // where it lies in its beat, and a carry
  logic [32:0]            cmd_end;

  assign cmd_empty   = cmd_bytes_i == 32'd0;
  assign cmd_final   = cmd_bytes_i - 32'd1;
  assign cmd_end     = 33'(cmd_address_i[OffsetWidth-1:0]) + {1'b0, cmd_final};
  assign cmd_in_last = {1'b0, cmd_address_i[OffsetWidth-1:0]} + {1'b0, cmd_final[OffsetWidth-1:0]};

  always_comb begin
    cmd_context.shape.user   = cmd_user_i;
    cmd_context.shape.empty  = cmd_empty;
    cmd_context.shape.flush  = cmd_empty || !cmd_in_last[OffsetWidth];
    cmd_context.shape.offset = cmd_address_i[OffsetWidth-1:0];
    cmd_context.shape.tail   = cmd_final[OffsetWidth-1:0];
    cmd_context.index        = cmd_address_i[OffsetWidth +: IndexWidth];
    cmd_context.beats        = cmd_empty ? '0 : cmd_end[32:OffsetWidth];
  end

  // A command enters both sides in one cycle or neither.
  assign cmd_ready_o = context_ready && split_ready;

  logic [$clog2(Commands + 1)-1:0] unused_contexts;

  unisono_fifo #(
    .Width($bits(context_t)),
    .Depth(Commands)
  ) u_contexts (
    .clk_i,
    .rst_ni,
    .in_valid_i (cmd_valid_i && cmd_ready_o),
    .in_ready_o (context_ready),
    .in_data_i  (cmd_context),
    .out_valid_o(next_valid),
    .out_ready_i(next_ready),
    .out_data_o (next_context),
    .count_o    (unused_contexts)
  );

  // ---------------------------------------------------------------- requests and answers

  typedef struct packed {
    logic                 error;
    logic [DataWidth-1:0] data;
  } beat_t;

  logic                    answer_valid_q;
  logic [IdWidth-1:0]      answer_id_q;
  beat_t                   answer_q;
  logic [PointerWidth-1:0] answer_place, place;
  logic                    arrived, issue, issue_beat, slot_end;

  assign m_axi_rready  = 1'b1;
  assign m_axi_arsize  = 3'(OffsetWidth);
  assign m_axi_arburst = 2'b01;  // INCR

  always_ff @(posedge clk_i) begin
    answer_valid_q <= m_axi_rvalid && rst_ni;
    answer_id_q    <= m_axi_rid;
    answer_q       <= '{error: m_axi_rresp[1], data: m_axi_rdata};
  end

  unisono_memory_read_ring #(
    .DataBytes(DataBytes), .AddressWidth(AddressWidth), .BurstBeats(BurstBeats), .Outstanding(Outstanding),
    .BufferWords(BufferWords)
  ) u_ring (
    .clk_i, .rst_ni, .cmd_valid_i(cmd_valid_i && context_ready && !cmd_empty), .cmd_ready_o(split_ready),
    .cmd_address_i, .cmd_bytes_i,
    .request_valid_o(m_axi_arvalid), .request_ready_i(m_axi_arready), .request_id_o(m_axi_arid),
    .request_address_o(m_axi_araddr), .request_length_o(m_axi_arlen),
    .answer_valid_i(answer_valid_q), .answer_id_i(answer_id_q), .answer_place_o(answer_place),
    .arrived_o(arrived), .place_o(place), .take_i(issue_beat), .take_last_i(slot_end)
  );

  // ---------------------------------------------------------------- sequence of beats

  // One item per beat goes down a pipeline that never stalls; credit for the words that come of it
  // is taken here. Items of an empty command have no beat behind them.
  logic                           current_valid_q;
  shape_t                         shape_q;
  logic                           first_q;
  logic [BeatsWidth-1:0]          left_q;
  logic [IndexWidth-1:0]          index_q;
  logic                           final_beat, finish, take;
  logic [$clog2(OutputWords):0]   credit_q;
  logic                           output_pop;

  assign final_beat = left_q == '0;
  assign slot_end   = final_beat || index_q == IndexWidth'(BurstBeats - 1);
  assign issue      = current_valid_q && credit_q != '0 && (shape_q.empty || arrived);
  assign issue_beat = issue && !shape_q.empty;
  assign finish     = issue && final_beat;
  assign next_ready = !current_valid_q || finish;
  // A word comes of every beat but the first, and one more of a command that flushes.
  assign take       = issue && (!first_q || shape_q.flush);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      current_valid_q <= 1'b0;
      credit_q        <= ($clog2(OutputWords) + 1)'(OutputWords);
    end else begin
      if (next_ready) begin
        current_valid_q <= next_valid;
      end
      credit_q <= credit_q + ($clog2(OutputWords) + 1)'(output_pop) -
                  ($clog2(OutputWords) + 1)'(take);
    end
  end

  always_ff @(posedge clk_i) begin
    if (next_ready) begin
      shape_q <= next_context.shape;
      left_q    <= next_context.beats;
      index_q   <= next_context.index;
      first_q   <= 1'b1;
    end else if (issue) begin
      left_q  <= left_q - 1'b1;
      index_q <= index_q + 1'b1;
      first_q <= 1'b0;
    end
  end

  // ---------------------------------------------------------------- words

  typedef struct packed {
    logic                 error;
    logic [UserWidth-1:0] user;
    logic                 last;
    logic [DataBytes-1:0] keep;
    logic [DataWidth-1:0] data;
  } word_t;

  word_t word, word_out;
  logic  word_valid, output_ready;

  unisono_memory_read_merge #(.DataBytes(DataBytes), .UserWidth(UserWidth), .BufferWords(BufferWords)) u_merge (
    .clk_i, .rst_ni, .answer_valid_i(answer_valid_q), .answer_place_i(answer_place),
    .answer_error_i(answer_q.error), .answer_data_i(answer_q.data),
    .item_i(issue), .place_i(place), .first_i(first_q), .last_i(final_beat), .user_i(shape_q.user),
    .empty_i(shape_q.empty), .flush_i(shape_q.flush), .offset_i(shape_q.offset), .tail_i(shape_q.tail),
    .word_valid_o(word_valid), .word_error_o(word.error), .word_user_o(word.user), .word_last_o(word.last),
    .word_keep_o(word.keep), .word_data_o(word.data)
  );

  logic [$clog2(OutputWords + 1)-1:0] unused_outputs;

  unisono_fifo #(
    .Width($bits(word_t)),
    .Depth(OutputWords)
  ) u_output (
    .clk_i,
    .rst_ni,
    .in_valid_i (word_valid),
    .in_ready_o (output_ready),
    .in_data_i  (word),
    .out_valid_o,
    .out_ready_i,
    .out_data_o (word_out),
    .count_o    (unused_outputs)
  );

  assign output_pop  = out_valid_o && out_ready_i;
  assign out_data_o  = word_out.data;
  assign out_keep_o  = word_out.keep;
  assign out_last_o  = word_out.last;
  assign out_user_o  = word_out.user;
  assign out_error_o = word_out.error;

  // The ends of bursts are known from their requests, and a resent exclusive access never happens.
  logic unused_read;
  assign unused_read = ^{m_axi_rlast, m_axi_rresp[0], cmd_end[OffsetWidth-1:0],
                         cmd_in_last[OffsetWidth-1:0]};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && word_valid) begin
      assert (output_ready)
      else $error("unisono_memory_read: a word without credit");
    end
  end
  unisono_handshake_check #(
    .Width($bits(word_out))
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (word_out)
  );
`endif

endmodule
