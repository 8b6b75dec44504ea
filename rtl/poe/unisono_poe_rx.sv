// The receiving half of unisono_poe_frame: finds the session that a frame belongs to, checks the
// frame, and offers it as a segment once it is whole. Control frames have a buffer of their own
// and go first.
//
// A frame is dropped, and counted, if no open session leads to its source, if the MAC marks it as
// damaged (looked at with the last word), if it is empty, longer than the longest or not as long
// as stated, or if its buffer is full. With RxPause the MAC waits for a full buffer instead; then
// control can be stuck behind data.
//
// Latency: last word in to meta and first word out 6 cycles with a buffer in LUTRAM, 7 in block
// RAM. Throughput: 1 word per cycle, also with segments of one word. The meta of a segment is
// offered not later than its first word.
//
// The table of sources lies outside: lookup_* is answered within the cycle.

module unisono_poe_rx #(
  parameter int unsigned DataBytes    = 64,
  parameter int unsigned Sessions     = 64,
  parameter int unsigned DataWords    = 512,
  parameter int unsigned ControlWords = 64,
  parameter int unsigned MaxPayload   = 8192,
  parameter int unsigned MaxControl   = 256,
  parameter bit          RxPause      = 1'b0
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  output unisono_poe_pkg::node_t            lookup_node_o,
  input  logic                              lookup_open_i,
  input  logic [$clog2(Sessions)-1:0]       lookup_index_i,

  input  logic                              mac_valid_i,
  output logic                              mac_ready_o,
  input  logic [DataBytes*8-1:0]            mac_data_i,
  input  logic [DataBytes-1:0]              mac_keep_i,
  input  logic                              mac_last_i,
  input  unisono_poe_pkg::node_t            mac_source_i,
  input  unisono_poe_pkg::bytes_t           mac_bytes_i,
  input  logic                              mac_control_i,
  input  logic                              mac_error_i,

  output logic                              meta_valid_o,
  input  logic                              meta_ready_i,
  output unisono_poe_pkg::session_t         meta_session_o,
  output unisono_poe_pkg::bytes_t           meta_bytes_o,
  output logic                              out_valid_o,
  input  logic                              out_ready_i,
  output logic [DataBytes*8-1:0]            out_data_o,
  output logic [DataBytes-1:0]              out_keep_o,
  output logic                              out_last_o,

  // One cycle each, for the counters.
  output logic                              received_o,
  output unisono_poe_pkg::bytes_t           received_bytes_o,
  output logic                              unknown_o,
  output logic                              length_o,
  output logic                              damaged_o,
  output logic                              full_o
);

  import unisono_poe_pkg::*;

  localparam int unsigned IndexBits  = $clog2(Sessions);
  localparam int unsigned OffsetBits = $clog2(DataBytes);
  localparam int unsigned WordsBits  = BytesBits - OffsetBits + 1;
  typedef logic [WordsBits-1:0] words_t;

  // ---- The input, behind a register slice.
  localparam int unsigned InBits = DataBytes * 8 + DataBytes + 1 + NodeBits + BytesBits + 2;
  logic                   in_valid, in_ready, in_last, in_control, in_error;
  logic [DataBytes*8-1:0] in_data;
  logic [DataBytes-1:0]   in_keep;
  bytes_t                 in_bytes;

  unisono_skid #(
    .Width(InBits)
  ) u_in (
    .clk_i,
    .rst_ni,
    .in_valid_i (mac_valid_i),
    .in_ready_o (mac_ready_o),
    .in_data_i  ({mac_error_i, mac_control_i, mac_bytes_i, mac_source_i, mac_last_i, mac_keep_i,
                  mac_data_i}),
    .out_valid_o(in_valid),
    .out_ready_i(in_ready),
    .out_data_o ({in_error, in_control, in_bytes, lookup_node_o, in_last, in_keep, in_data})
  );

  // ---- The session, looked up with the first word and kept for the rest of the frame.
  logic                   w_valid_q, w_last_q, w_error_q, w_ready, open_q;
  logic                   w_control_q, w_known_q, w_fits_q;
  logic [IndexBits-1:0]   w_index_q;
  logic [DataBytes*8-1:0] w_data_q;
  logic [DataBytes-1:0]   w_keep_q, w_end_keep_q;
  bytes_t                 w_bytes_q;
  words_t                 w_words_q, count_q;
  logic [OffsetBits-1:0]  tail;

  assign in_ready = w_ready || !w_valid_q;
  assign tail     = in_bytes[OffsetBits-1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      w_valid_q <= 1'b0;
      open_q    <= 1'b0;
    end else if (in_ready) begin
      w_valid_q <= in_valid;
      if (in_valid) begin
        open_q <= !in_last;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (in_ready && in_valid) begin
      w_data_q  <= in_data;
      w_keep_q  <= in_keep;
      w_last_q  <= in_last;
      w_error_q <= in_error;
      if (!open_q) begin
        w_known_q    <= lookup_open_i;
        w_index_q    <= lookup_index_i;
        w_control_q  <= in_control;
        w_bytes_q    <= in_bytes;
        w_words_q    <= words_t'((32'(in_bytes) + DataBytes - 1) >> OffsetBits);
        w_end_keep_q <= tail == '0 ? '1 : ~({DataBytes{1'b1}} << tail);
        w_fits_q     <= in_bytes != '0 && 32'(in_bytes) <= (in_control ? MaxControl : MaxPayload);
      end
    end
  end

  // ---- The checks, complete with the last word.
  logic       right, drop, take;
  logic [1:0] lane_valid, lane_ready;

  assign right = w_fits_q && count_q == w_words_q - words_t'(1) && w_keep_q == w_end_keep_q;
  assign drop  = !w_known_q || w_error_q || !right;
  always_comb begin
    lane_valid              = '0;
    lane_valid[w_control_q] = w_valid_q;
  end
  assign w_ready = lane_ready[w_control_q];
  assign take    = w_valid_q && w_ready;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
    end else if (take) begin
      if (w_last_q) begin
        count_q <= '0;
      end else if (count_q != '1) begin
        count_q <= count_q + words_t'(1);
      end
    end
  end

  // A frame that is dropped for a reason of its own is not counted as one without room.
  logic       own_reason_q;
  logic [1:0] lane_dropped;
  assign full_o = lane_dropped != '0 && !own_reason_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {unknown_o, damaged_o, length_o, own_reason_q} <= '0;
    end else begin
      unknown_o    <= take && w_last_q && !w_known_q;
      damaged_o    <= take && w_last_q && w_known_q && w_error_q;
      length_o     <= take && w_last_q && w_known_q && !w_error_q && !right;
      own_reason_q <= take && w_last_q && drop;
    end
  end

  // ---- The buffers.
  localparam int unsigned UserBits = IndexBits + BytesBits;
  logic [1:0]                  seg_valid, seg_ready, seg_last;
  logic [1:0][DataBytes*8-1:0] seg_data;
  logic [1:0][DataBytes-1:0]   seg_keep;
  logic [1:0][UserBits-1:0]    seg_user;

  for (genvar i = 0; i < 2; i++) begin : gen_lane
    unisono_stream_packet_fifo #(
      .DataBytes   (DataBytes),
      .UserBits    (UserBits),
      .Depth       (i == 0 ? DataWords : ControlWords),
      .DropWhenFull(!RxPause)
    ) u_buffer (
      .clk_i,
      .rst_ni,
      .in_valid_i (lane_valid[i]),
      .in_ready_o (lane_ready[i]),
      .in_data_i  (w_data_q),
      .in_keep_i  (w_keep_q),
      .in_last_i  (w_last_q),
      .in_user_i  ({w_index_q, w_bytes_q}),
      .in_drop_i  (drop),
      .out_valid_o(seg_valid[i]),
      .out_ready_i(seg_ready[i]),
      .out_data_o (seg_data[i]),
      .out_keep_o (seg_keep[i]),
      .out_last_o (seg_last[i]),
      .out_user_o (seg_user[i]),
      .dropped_o  (lane_dropped[i])
    );
  end

  logic                   s_valid, s_ready, s_last, s_control;
  logic [DataBytes*8-1:0] s_data;
  logic [DataBytes-1:0]   s_keep;
  logic [IndexBits-1:0]   s_index;
  bytes_t                 s_bytes;

  // The buffers' outputs are registers.
  unisono_poe_priority #(
    .DataBytes (DataBytes),
    .UserBits  (UserBits),
    .Registered(1'b0)
  ) u_priority (
    .clk_i,
    .rst_ni,
    .in_valid_i  (seg_valid),
    .in_ready_o  (seg_ready),
    .in_data_i   (seg_data),
    .in_keep_i   (seg_keep),
    .in_last_i   (seg_last),
    .in_user_i   (seg_user),
    .out_valid_o (s_valid),
    .out_ready_i (s_ready),
    .out_data_o  (s_data),
    .out_keep_o  (s_keep),
    .out_last_o  (s_last),
    .out_user_o  ({s_index, s_bytes}),
    .out_source_o(s_control)
  );

  // ---- Meta beside data: a first word goes on together with its meta.
  logic     within_q, meta_room, data_room;
  session_t s_session;

  always_comb begin
    s_session                = '0;
    s_session[IndexBits-1:0] = s_index;
    s_session[ControlBit]    = s_control;
  end
  assign s_ready = data_room && (within_q || meta_room);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      within_q   <= 1'b0;
      received_o <= 1'b0;
    end else begin
      if (s_valid && s_ready) begin
        within_q <= !s_last;
      end
      received_o <= s_valid && s_ready && s_last;
    end
  end
  always_ff @(posedge clk_i) begin
    received_bytes_o <= s_bytes;
  end

  logic [2:0] meta_count;
  unisono_fifo #(
    .Width(SessionBits + BytesBits),
    .Depth(4)
  ) u_meta (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_valid && !within_q && data_room),
    .in_ready_o (meta_room),
    .in_data_i  ({s_session, s_bytes}),
    .out_valid_o(meta_valid_o),
    .out_ready_i(meta_ready_i),
    .out_data_o ({meta_session_o, meta_bytes_o}),
    .count_o    (meta_count)
  );
  logic unused_meta_count;
  assign unused_meta_count = ^meta_count;
  unisono_skid #(
    .Width(DataBytes * 8 + DataBytes + 1)
  ) u_data (
    .clk_i,
    .rst_ni,
    .in_valid_i (s_valid && (within_q || meta_room)),
    .in_ready_o (data_room),
    .in_data_i  ({s_last, s_keep, s_data}),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_last_o, out_keep_o, out_data_o})
  );

endmodule
