// The buffer of beats, and beats to words: a beat is fetched, turned, and waits for the bytes of the next one that
// complete its word. A command's last word leaves alone (flush), while the first beat of the next command takes its
// place; no word leaves with a first beat, so there is never more than one word at a time.
//
// Latency: 6 cycles from an item to the word of the beat before. Throughput: 1 item per cycle; nothing stalls.
// Nothing moves here while there is no item (unisono_clock_gate), which takes six edges.

module unisono_memory_read_merge #(
  parameter int unsigned DataBytes   = 64,
  parameter int unsigned UserWidth   = 8,
  parameter int unsigned BufferWords = 512,
  localparam int unsigned OffsetWidth  = $clog2(DataBytes),
  localparam int unsigned PointerWidth = $clog2(BufferWords)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // A beat comes from memory, to a place of the buffer.
  input  logic                    answer_valid_i,
  input  logic [PointerWidth-1:0] answer_place_i,
  input  logic                    answer_error_i,
  input  logic [DataBytes*8-1:0]  answer_data_i,

  // An item: the beat at a place, the first or the last of its command, and what there is to know of that.
  input  logic                    item_i,
  input  logic [PointerWidth-1:0] place_i,
  input  logic                    first_i,
  input  logic                    last_i,
  input  logic [UserWidth-1:0]    user_i,
  input  logic                    empty_i,       // it has no beat: one word without any bytes comes of it
  input  logic                    flush_i,       // as many words as beats: the last beat alone ends the packet
  input  logic [OffsetWidth-1:0]  offset_i,      // of the first byte in its beat
  input  logic [OffsetWidth-1:0]  tail_i,        // bytes - 1 of the last word

  output logic                    word_valid_o,
  output logic                    word_error_o,
  output logic [UserWidth-1:0]    word_user_o,
  output logic                    word_last_o,
  output logic [DataBytes-1:0]    word_keep_o,
  output logic [DataBytes*8-1:0]  word_data_o
);

  localparam int unsigned DataWidth = DataBytes * 8;

  typedef struct packed {
    logic                 error;
    logic [DataWidth-1:0] data;
  } beat_t;

  typedef struct packed {
    logic [UserWidth-1:0]   user;
    logic                   empty;
    logic                   flush;
    logic [OffsetWidth-1:0] offset;
    logic [OffsetWidth-1:0] tail;
  } shape_t;

  typedef struct packed {
    logic   valid;
    logic   first;
    logic   last;
    shape_t shape;
  } item_t;

  (* ram_style = "block" *) beat_t buffer [BufferWords];
  beat_t fetched_q, beat_q;

  always_ff @(posedge clk_i) begin
    if (answer_valid_i) begin
      buffer[answer_place_i] <= '{error: answer_error_i, data: answer_data_i};
    end
  end

  // The last word of an item is made six edges after it was issued.
  localparam int unsigned Stages = 6;
  logic [Stages-1:0] moving_q;
  logic              reset_q, reset_qq;
  logic              clk;

  always_ff @(posedge clk_i) begin
    reset_q  <= !rst_ni;
    reset_qq <= reset_q;
    if (!rst_ni) moving_q <= '0;
    else moving_q <= {moving_q[Stages-2:0], item_i};
  end

  unisono_clock_gate u_gate (
    .clk_i,
    .enable_i(item_i || moving_q != '0 || !rst_ni || reset_q || reset_qq),
    .clk_o   (clk)
  );

  always_ff @(posedge clk) begin
    if (item_i && !empty_i) begin
      fetched_q <= buffer[place_i];
    end
    beat_q <= fetched_q;
  end

  item_t issued, fetched_item_q, beat_item_q, item;

  always_comb begin
    issued.valid = item_i;
    issued.first = first_i;
    issued.last  = last_i;
    issued.shape = '{user: user_i, empty: empty_i, flush: flush_i, offset: offset_i, tail: tail_i};
  end

  always_ff @(posedge clk) begin
    fetched_item_q <= issued;
    beat_item_q    <= fetched_item_q;
    if (!rst_ni) begin
      fetched_item_q.valid <= 1'b0;
      beat_item_q.valid    <= 1'b0;
    end
  end

  logic [DataWidth-1:0] turned;
  logic                 turned_error;

  unisono_memory_rotate #(
    .Bytes    (DataBytes),
    .SideWidth($bits(item_t) + 1)
  ) u_rotate (
    .clk_i   (clk),
    .amount_i(beat_item_q.shape.offset),
    .data_i  (beat_q.data),
    .side_i  ({beat_q.error && !beat_item_q.shape.empty, beat_item_q}),
    .data_o  (turned),
    .side_o  ({turned_error, item})
  );

  // The former beat, turned.
  logic [DataWidth-1:0] former_q;
  shape_t               former_shape_q;
  logic                 former_error_q;
  logic [DataBytes-1:0] own_q;   // bytes of the word that the former beat holds
  logic                 flush_q;

  logic                 emit, emit_last;
  logic [DataBytes-1:0] tail_keep;

  assign emit      = flush_q || (item.valid && !item.first);
  assign emit_last = flush_q || item.last && !item.shape.flush;

  always_ff @(posedge clk) begin
    // The pipeline before holds nothing valid two cycles after a reset.
    if (!rst_ni || reset_q || reset_qq) begin
      flush_q <= 1'b0;
    end else begin
      flush_q <= item.valid && item.last && item.shape.flush;
    end
  end

  always_ff @(posedge clk) begin
    if (item.valid) begin
      former_q       <= turned;
      former_shape_q <= item.shape;
      former_error_q <= turned_error || (!item.first && former_error_q);
      for (int unsigned i = 0; i < DataBytes; i++) begin
        own_q[i] <= i + 32'(item.shape.offset) < DataBytes;
      end
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < DataBytes; i++) begin
      tail_keep[i] = i <= 32'(former_shape_q.tail) && !former_shape_q.empty;
    end
  end

  typedef struct packed {
    logic                 error;
    logic [UserWidth-1:0] user;
    logic                 last;
    logic [DataBytes-1:0] keep;
    logic [DataWidth-1:0] data;
  } word_t;

  word_t word_q;
  logic  word_valid_q;

  always_ff @(posedge clk) begin
    word_valid_q <= emit && rst_ni && !reset_q && !reset_qq;
    word_q.error <= emit_last && (former_error_q || (!flush_q && turned_error));
    word_q.user  <= former_shape_q.user;
    word_q.last  <= emit_last;
    word_q.keep  <= emit_last ? tail_keep : '1;
    for (int unsigned i = 0; i < DataBytes; i++) begin
      word_q.data[8*i +: 8] <= own_q[i] ? former_q[8*i +: 8] : turned[8*i +: 8];
    end
  end

  assign word_valid_o = word_valid_q;
  assign word_error_o = word_q.error;
  assign word_user_o  = word_q.user;
  assign word_last_o  = word_q.last;
  assign word_keep_o  = word_q.keep;
  assign word_data_o  = word_q.data;

  logic unused_former;
  assign unused_former = ^{former_shape_q.flush, former_shape_q.offset};

endmodule
