// Items to beats: the bytes of a word are turned to their places, and what lies in the beat behind waits for that one.
//
// Latency: 4 cycles. Throughput: 1 item per cycle; nothing stalls.
// Nothing moves here while there is no item (unisono_clock_gate), which takes four edges.

module unisono_memory_write_merge #(
  parameter int unsigned DataBytes    = 64,
  localparam int unsigned OffsetWidth = $clog2(DataBytes)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   item_i,
  input  logic                   beat_i,       // it has a beat
  input  logic                   first_i,
  input  logic                   close_i,      // the beat is the last of its burst
  input  logic [OffsetWidth-1:0] offset_i,
  input  logic [DataBytes-1:0]   kept_i,
  input  logic [DataBytes*8-1:0] data_i,

  output logic                   beat_valid_o,
  output logic                   beat_close_o,
  output logic [DataBytes-1:0]   beat_strobe_o,
  output logic [DataBytes*8-1:0] beat_data_o
);

  typedef struct packed {
    logic                   beat;
    logic                   first;
    logic                   close;
    logic [OffsetWidth-1:0] offset;
  } item_t;

  item_t item_q, turned_item;
  logic [DataBytes-1:0][8:0] bytes_q, turned, former_q;

  localparam int unsigned Stages = 4;
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
    item_q.beat   <= beat_i && rst_ni;
    item_q.first  <= first_i;
    item_q.close  <= close_i && rst_ni;
    item_q.offset <= offset_i;
    for (int unsigned i = 0; i < DataBytes; i++) begin
      bytes_q[i] <= {kept_i[i], data_i[8*i +: 8]};
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
    logic [DataBytes-1:0]   strobe;
    logic [DataBytes*8-1:0] data;
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

  assign beat_valid_o  = beat_valid_q;
  assign beat_close_o  = beat_close_q;
  assign beat_strobe_o = beat_q.strobe;
  assign beat_data_o   = beat_q.data;

endmodule
