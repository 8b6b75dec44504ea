// Bursts of writes: their requests wait until the last beat is in the buffer, and go out; then their beats do, so a
// writer never holds up a memory channel that others share, whatever becomes of its producer.
//
// Latency: a burst's last beat to its request 2 cycles, to its first beat 4. Throughput: 1 beat per cycle.

module unisono_memory_write_bursts #(
  parameter int unsigned DataBytes    = 64,
  parameter int unsigned AddressWidth = 64,
  parameter int unsigned BurstBeats   = 64,
  parameter int unsigned Outstanding  = 16,
  parameter int unsigned BufferWords  = 512,
  localparam int unsigned OffsetWidth = $clog2(DataBytes),
  localparam int unsigned IndexWidth  = $clog2(BurstBeats),
  localparam int unsigned BlockWidth  = AddressWidth - OffsetWidth - IndexWidth,
  localparam int unsigned IdWidth     = $clog2(Outstanding)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // A beat is on its way: it has its place in the buffer from then on, and there is room for another one.
  output logic                    space_o,
  input  logic                    beat_i,
  input  logic                    beat_valid_i,
  input  logic                    beat_close_i,    // it is the last of its burst
  input  logic [DataBytes-1:0]    beat_strobe_i,
  input  logic [DataBytes*8-1:0]  beat_data_i,

  // A burst, while its last beat is on its way. There is one for each slot at most.
  input  logic                    burst_i,
  input  logic [IdWidth-1:0]      burst_slot_i,
  input  logic [BlockWidth-1:0]   burst_block_i,
  input  logic [IndexWidth-1:0]   burst_start_i,
  input  logic [IndexWidth-1:0]   burst_length_i,

  // To memory: the request, and its beats.
  output logic                    request_valid_o,
  input  logic                    request_ready_i,
  output logic [IdWidth-1:0]      request_id_o,
  output logic [AddressWidth-1:0] request_address_o,
  output logic [7:0]              request_length_o,
  output logic                    out_valid_o,
  input  logic                    out_ready_i,
  output logic [DataBytes*8-1:0]  out_data_o,
  output logic [DataBytes-1:0]    out_strobe_o,
  output logic                    out_last_o
);

  localparam int unsigned PointerWidth = $clog2(BufferWords);

  typedef logic [BlockWidth-1:0] block_t;
  typedef logic [IndexWidth-1:0] index_t;
  typedef struct packed {
    logic [DataBytes-1:0]   strobe;
    logic [DataBytes*8-1:0] data;
  } beat_t;

  (* ram_style = "block" *) beat_t buffer [BufferWords];
  logic [PointerWidth-1:0] write_pointer_q, read_pointer_q;
  logic [PointerWidth:0]   words_q;
  beat_t                   fetched_q, out_beat_q;
  logic                    fetch, out_step;

  always_ff @(posedge clk_i) begin
    if (beat_valid_i) begin
      buffer[write_pointer_q] <= '{beat_strobe_i, beat_data_i};
    end
  end

  always_ff @(posedge clk_i) begin
    if (out_step) begin
      fetched_q  <= buffer[read_pointer_q];
      out_beat_q <= fetched_q;
    end
  end

  // Invariant: words_q counts beats from their making on, so the buffer never overflows. It never goes beyond its size,
  // a power of two, so the top bit says that it is full.
  assign space_o = !words_q[PointerWidth];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      words_q         <= '0;
      write_pointer_q <= '0;
      read_pointer_q  <= '0;
    end else begin
      words_q         <= words_q + (PointerWidth + 1)'(beat_i) - (PointerWidth + 1)'(fetch);
      write_pointer_q <= write_pointer_q + PointerWidth'(beat_valid_i);
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
    .in_valid_i (burst_i),
    .in_ready_o (burst_room),
    .in_data_i  ({burst_slot_i, burst_block_i, burst_start_i, burst_length_i}),
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
      collected_q <= collected_q + (IdWidth + 1)'(beat_close_i) - (IdWidth + 1)'(launch);
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
    .out_valid_o(request_valid_o),
    .out_ready_i(request_ready_i),
    .out_data_o ({request_id_o, request_address_o, request_length_o})
  );

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

  assign out_step  = !out_valid_q || out_ready_i;
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

  assign out_valid_o = out_valid_q;
  assign out_last_o  = out_last_q;
  assign out_data_o  = out_beat_q.data;
  assign out_strobe_o  = out_beat_q.strobe;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && burst_i) begin
      assert (burst_room)
      else $error("unisono_memory_write_bursts: more bursts than slots");
    end
    if (rst_ni && launch) begin
      assert (length_room)
      else $error("unisono_memory_write_bursts: more bursts than slots");
    end
    if (rst_ni && request_valid_o) begin
      assert (64'(request_address_o[11:0]) + 64'(request_length_o) * DataBytes < 64'd4096)
      else $error("unisono_memory_write_bursts: a burst crosses 4 KiB");
    end
  end
  unisono_handshake_check #(
    .Width($bits(request_address_o))
  ) u_check_address (
    .clk_i,
    .rst_ni,
    .valid_i(request_valid_o),
    .ready_i(request_ready_i),
    .data_i (request_address_o)
  );
  unisono_handshake_check #(
    .Width($bits(out_data_o) + 1)
  ) u_check_data (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i ({out_last_o, out_data_o})
  );
`else
  logic unused_room;
  assign unused_room = burst_room ^ length_room;
`endif

endmodule
