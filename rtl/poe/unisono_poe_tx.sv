// The sending half of unisono_poe_frame: answers space queries, looks up where segments go, checks
// them, and queues them as whole frames for the MAC, in a lane for data and one for control.
//
// Space is counted in words. A query is granted when the lane's buffer and the session's share of
// it have that many words free, and the words are then held until the segment's frame has left.
// Hence a granted segment always finds room, and tx_ready_o stays high for as long as its words
// come. A query that could never succeed (closed session, length 0 or above the longest) is
// granted without holding anything, and its segment is dropped and counted: the engine's data path
// never waits for what cannot come.
//
// Latency: query to grant 2 cycles; last word in to first word out 3 cycles with a buffer in
// LUTRAM, 4 in block RAM. Throughput: a query, a segment and a word per cycle.
//
// The session table lies outside: lookup_* is answered within the cycle.

module unisono_poe_tx #(
  parameter int unsigned DataBytes    = 64,
  // Data sessions; a power of two.
  parameter int unsigned Sessions     = 64,
  // Words of the data and of the control buffer; powers of two.
  parameter int unsigned DataWords    = 512,
  parameter int unsigned ControlWords = 64,
  // Longest segments in bytes; they fit the buffers.
  parameter int unsigned MaxPayload   = 8192,
  parameter int unsigned MaxControl   = 256,
  localparam int unsigned SpaceBits   = $clog2(DataWords + 1)
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  // High once the tables are clear after a reset; nothing is accepted before.
  output logic                              started_o,
  // Most words that a session may hold; at least those of MaxPayload.
  input  logic [SpaceBits-1:0]              session_limit_i,

  output logic [$clog2(Sessions)-1:0]       lookup_index_o,
  input  logic                              lookup_open_i,
  input  unisono_poe_pkg::node_t            lookup_node_i,
  // A second port for queries.
  output logic [$clog2(Sessions)-1:0]       query_index_o,
  input  logic                              query_open_i,

  input  logic                              query_valid_i,
  output logic                              query_ready_o,
  input  unisono_poe_pkg::session_t         query_session_i,
  input  unisono_poe_pkg::bytes_t           query_bytes_i,
  output logic                              grant_valid_o,
  input  logic                              grant_ready_i,
  output logic                              grant_granted_o,

  input  logic                              meta_valid_i,
  output logic                              meta_ready_o,
  input  unisono_poe_pkg::session_t         meta_session_i,
  input  unisono_poe_pkg::bytes_t           meta_bytes_i,
  input  logic                              in_valid_i,
  output logic                              in_ready_o,
  input  logic [DataBytes*8-1:0]            in_data_i,
  input  logic [DataBytes-1:0]              in_keep_i,
  input  logic                              in_last_i,

  output logic                              mac_valid_o,
  input  logic                              mac_ready_i,
  output logic [DataBytes*8-1:0]            mac_data_o,
  output logic [DataBytes-1:0]              mac_keep_o,
  output logic                              mac_last_o,
  output unisono_poe_pkg::node_t            mac_dest_o,
  output unisono_poe_pkg::bytes_t           mac_bytes_o,
  output logic                              mac_control_o,

  // One cycle each, for the counters.
  output logic                              sent_o,
  output unisono_poe_pkg::bytes_t           sent_bytes_o,
  output logic                              unknown_o,
  output logic                              oversize_o,
  output logic                              length_o,
  output logic                              unreserved_o,
  output logic                              refused_o
);

  import unisono_poe_pkg::*;

  localparam int unsigned IndexBits   = $clog2(Sessions);
  localparam int unsigned EntryBits   = IndexBits + 1;  // with the control bit
  localparam int unsigned OffsetBits  = $clog2(DataBytes);
  localparam int unsigned WordsBits   = BytesBits - OffsetBits + 1;
  // Differences of two counters are at most DataWords.
  localparam int unsigned CountBits   = SpaceBits + 1;

  if ((1 << IndexBits) != Sessions || Sessions < 2) begin : gen_bad_sessions
    $error("unisono_poe_tx: Sessions must be a power of two, at least 2");
  end
  if (MaxPayload > DataWords * DataBytes || MaxControl > ControlWords * DataBytes ||
      ControlWords > DataWords || MaxPayload > 65535) begin : gen_bad_payload
    $error("unisono_poe_tx: the longest segments must fit the buffers");
  end

  typedef logic [EntryBits-1:0] entry_t;
  typedef logic [CountBits-1:0] count_t;
  typedef logic [WordsBits-1:0] words_t;

  function automatic words_t words_of(input bytes_t bytes);
    return words_t'((32'(bytes) + DataBytes - 1) >> OffsetBits);
  endfunction
  function automatic entry_t entry_of(input session_t session);
    return {session[ControlBit], session[IndexBits-1:0]};
  endfunction
  // Whether the session's number is one of the table's.
  function automatic logic numbered(input logic [ControlBit-1:0] number);
    return 32'(number) < Sessions;
  endfunction
  function automatic logic fits(input session_t session, input bytes_t bytes);
    return bytes != '0 && 32'(bytes) <= (session[ControlBit] ? MaxControl : MaxPayload);
  endfunction

  // Words per session since the reset: granted, come (their segment was announced), and free again.
  // Each has one writer, so none waits for another; what a session holds is granted - freed, what
  // it may still send granted - come.
  (* ram_style = "distributed" *) count_t granted_mem [2*Sessions];
  (* ram_style = "distributed" *) count_t come_mem [2*Sessions];
  (* ram_style = "distributed" *) count_t freed_mem [2*Sessions];
  // All sessions of a lane together.
  count_t held_q [2];

  // After a reset the tables are cleared, an entry per cycle.
  logic   started_q;
  entry_t clear_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      started_q <= 1'b0;
      clear_q   <= '0;
    end else if (!started_q) begin
      clear_q   <= clear_q + entry_t'(1);
      started_q <= clear_q == '1;
    end
  end
  assign started_o = started_q;

  // ---- Queries: registered, then decided in one cycle.
  logic     q_valid_q, q_possible_q, q_step, grant_room, q_enough, q_hold, q_granted;
  session_t q_session_q;
  words_t   q_words_q;
  entry_t   q_entry;
  count_t   q_used, q_granted_now;

  assign q_step        = grant_room || !q_valid_q;
  assign query_ready_o = started_q && q_step;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      q_valid_q <= 1'b0;
    end else if (q_step) begin
      q_valid_q <= query_valid_i && query_ready_o;
    end
  end
  always_ff @(posedge clk_i) begin
    if (q_step) begin
      q_session_q  <= query_session_i;
      q_words_q    <= words_of(query_bytes_i);
      q_possible_q <= numbered(query_session_i[ControlBit-1:0]) &&
                      fits(query_session_i, query_bytes_i);
    end
  end

  assign q_entry       = entry_of(q_session_q);
  assign query_index_o = q_session_q[IndexBits-1:0];
  assign q_granted_now = granted_mem[q_entry];
  assign q_used        = q_granted_now - freed_mem[q_entry];
  assign q_enough      = 32'(q_used) + 32'(q_words_q) <= 32'(session_limit_i) &&
                         32'(held_q[q_session_q[ControlBit]]) + 32'(q_words_q) <=
                           (q_session_q[ControlBit] ? ControlWords : DataWords);
  assign q_hold        = q_possible_q && query_open_i && q_enough;
  assign q_granted     = q_hold || !q_possible_q || !query_open_i;

  logic q_fire;
  assign q_fire = q_valid_q && grant_room;
  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      granted_mem[clear_q] <= '0;
    end else if (q_fire && q_hold) begin
      granted_mem[q_entry] <= q_granted_now + count_t'(q_words_q);
    end
  end

  unisono_skid #(
    .Width(1)
  ) u_grant (
    .clk_i,
    .rst_ni,
    // Decided only when the answer can be stored: until then space may come free.
    .in_valid_i (q_fire),
    .in_ready_o (grant_room),
    .in_data_i  (q_granted),
    .out_valid_o(grant_valid_o),
    .out_ready_i(grant_ready_i),
    .out_data_o (grant_granted_o)
  );

  // ---- Segments: where each goes, and whether it may.
  typedef struct packed {
    entry_t entry;
    node_t  node;
    bytes_t bytes;
    words_t words;
    logic   unknown;
    logic   oversize;
    logic   unreserved;
    // Holds words, which are to be freed when it is dropped.
    logic   holds;
  } order_t;

  logic     m_valid_q, m_step, order_room, m_numbered_q, m_fits_q, m_reserved;
  session_t m_session_q;
  bytes_t   m_bytes_q;
  words_t   m_words_q;
  entry_t   m_entry;
  count_t   m_come;
  order_t   m_order;

  assign m_step       = order_room || !m_valid_q;
  assign meta_ready_o = started_q && m_step;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      m_valid_q <= 1'b0;
    end else if (m_step) begin
      m_valid_q <= meta_valid_i && meta_ready_o;
    end
  end
  always_ff @(posedge clk_i) begin
    if (m_step) begin
      m_session_q  <= meta_session_i;
      m_bytes_q    <= meta_bytes_i;
      m_words_q    <= words_of(meta_bytes_i);
      m_numbered_q <= numbered(meta_session_i[ControlBit-1:0]);
      m_fits_q     <= fits(meta_session_i, meta_bytes_i);
    end
  end

  assign m_entry        = entry_of(m_session_q);
  assign lookup_index_o = m_session_q[IndexBits-1:0];
  assign m_come         = come_mem[m_entry];
  assign m_reserved     = m_numbered_q && m_fits_q &&
                          32'(count_t'(granted_mem[m_entry] - m_come)) >= 32'(m_words_q);

  always_comb begin
    m_order.entry      = m_entry;
    m_order.node       = lookup_node_i;
    m_order.bytes      = m_bytes_q;
    m_order.words      = m_words_q;
    m_order.oversize   = !m_fits_q;
    m_order.unknown    = m_fits_q && !(m_numbered_q && lookup_open_i);
    m_order.unreserved = m_fits_q && m_numbered_q && lookup_open_i && !m_reserved;
    m_order.holds      = m_reserved;
  end

  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      come_mem[clear_q] <= '0;
    end else if (m_valid_q && order_room && m_reserved) begin
      come_mem[m_entry] <= m_come + count_t'(m_words_q);
    end
  end

  logic   order_valid, order_done;
  order_t order;
  logic [2:0] orders_count;
  unisono_fifo #(
    .Width($bits(order_t)),
    .Depth(4)
  ) u_orders (
    .clk_i,
    .rst_ni,
    // Decided only when it can be stored: until then a table may change.
    .in_valid_i (m_valid_q && order_room),
    .in_ready_o (order_room),
    .in_data_i  (m_order),
    .out_valid_o(order_valid),
    .out_ready_i(order_done),
    .out_data_o (order),
    .count_o    (orders_count)
  );
  logic unused_orders_count;
  assign unused_orders_count = ^orders_count;

  // ---- Words: counted against the length, and into the lane's buffer. The buffer never sees more
  // words than are held for the segment.
  words_t                 count_q;
  logic                   overrun_q, refuse, at_end, keep_right, wrong, take, end_of_order;
  logic                   free_room, drop_free;
  logic [DataBytes-1:0]   end_keep;
  logic [OffsetBits-1:0]  tail;
  logic                   lane;
  logic [1:0]             lane_valid, lane_ready;

  assign lane       = order.entry[EntryBits-1];
  assign refuse     = order.unknown || order.oversize || order.unreserved;
  assign at_end     = count_q == order.words - words_t'(1);
  assign tail       = order.bytes[OffsetBits-1:0];
  assign end_keep   = tail == '0 ? '1 : ~({DataBytes{1'b1}} << tail);
  assign keep_right = in_keep_i == end_keep;
  // Known with the segment's last word, or with the last one that fits its length.
  assign wrong      = !(in_last_i && at_end && keep_right);

  always_comb begin
    lane_valid       = '0;
    lane_valid[lane] = in_valid_i && order_valid && !refuse && !overrun_q && free_room;
  end
  assign in_ready_o   = order_valid && free_room && (refuse || overrun_q || lane_ready[lane]);
  assign take         = in_valid_i && in_ready_o;
  assign end_of_order = take && in_last_i;
  assign order_done   = end_of_order;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q   <= '0;
      overrun_q <= 1'b0;
    end else if (take) begin
      if (in_last_i) begin
        count_q   <= '0;
        overrun_q <= 1'b0;
      end else if (!refuse) begin
        overrun_q <= overrun_q || at_end;
        count_q   <= count_q + words_t'(1);
      end
    end
  end

  // A segment that is refused or dropped gives its words back.
  assign drop_free = take && ((refuse && in_last_i && order.holds) ||
                              (!refuse && !overrun_q && (in_last_i || at_end) && wrong));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {unknown_o, oversize_o, unreserved_o, length_o, refused_o} <= '0;
    end else begin
      unknown_o    <= end_of_order && order.unknown;
      oversize_o   <= end_of_order && order.oversize;
      unreserved_o <= end_of_order && order.unreserved;
      length_o     <= take && !refuse && !overrun_q && (in_last_i || at_end) && wrong;
      refused_o    <= q_fire && !q_granted;
    end
  end

  localparam int unsigned UserBits = EntryBits + NodeBits + BytesBits;
  logic [1:0]                  frame_valid, frame_ready, frame_last, lane_dropped;
  logic [1:0][DataBytes*8-1:0] frame_data;
  logic [1:0][DataBytes-1:0]   frame_keep;
  logic [1:0][UserBits-1:0]    frame_user;

  for (genvar i = 0; i < 2; i++) begin : gen_lane
    unisono_stream_packet_fifo #(
      .DataBytes(DataBytes),
      .UserBits (UserBits),
      .Depth    (i == 0 ? DataWords : ControlWords)
    ) u_buffer (
      .clk_i,
      .rst_ni,
      .in_valid_i (lane_valid[i]),
      .in_ready_o (lane_ready[i]),
      .in_data_i  (in_data_i),
      .in_keep_i  (in_keep_i),
      .in_last_i  (in_last_i || at_end),
      .in_user_i  ({order.entry, order.node, order.bytes}),
      .in_drop_i  (wrong),
      .out_valid_o(frame_valid[i]),
      .out_ready_i(frame_ready[i]),
      .out_data_o (frame_data[i]),
      .out_keep_o (frame_keep[i]),
      .out_last_o (frame_last[i]),
      .out_user_o (frame_user[i]),
      .dropped_o  (lane_dropped[i])
    );
  end
  logic unused_dropped;
  assign unused_dropped = ^lane_dropped;

  entry_t mac_entry;
  // The buffers' outputs are registers.
  unisono_poe_priority #(
    .DataBytes (DataBytes),
    .UserBits  (UserBits),
    .Registered(1'b0)
  ) u_priority (
    .clk_i,
    .rst_ni,
    .in_valid_i  (frame_valid),
    .in_ready_o  (frame_ready),
    .in_data_i   (frame_data),
    .in_keep_i   (frame_keep),
    .in_last_i   (frame_last),
    .in_user_i   (frame_user),
    .out_valid_o (mac_valid_o),
    .out_ready_i (mac_ready_i),
    .out_data_o  (mac_data_o),
    .out_keep_o  (mac_keep_o),
    .out_last_o  (mac_last_o),
    .out_user_o  ({mac_entry, mac_dest_o, mac_bytes_o}),
    .out_source_o(mac_control_o)
  );

  // ---- Words that are free again: of frames that left (these go first) and of dropped segments.
  typedef struct packed {
    entry_t entry;
    words_t words;
  } free_t;

  logic   left_q, dropped_valid, free_now;
  free_t  left_free_q, dropped_free, free;
  count_t freed_now;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q <= 1'b0;
    end else begin
      left_q <= mac_valid_o && mac_ready_i && mac_last_o;
    end
  end
  always_ff @(posedge clk_i) begin
    left_free_q.entry <= mac_entry;
    left_free_q.words <= words_of(mac_bytes_o);
    sent_bytes_o      <= mac_bytes_o;
  end
  assign sent_o = left_q;

  logic [2:0] dropped_count;
  unisono_fifo #(
    .Width($bits(free_t)),
    .Depth(4)
  ) u_dropped (
    .clk_i,
    .rst_ni,
    .in_valid_i (drop_free),
    .in_ready_o (free_room),
    .in_data_i  ({order.entry, order.words}),
    .out_valid_o(dropped_valid),
    .out_ready_i(!left_q),
    .out_data_o (dropped_free),
    .count_o    (dropped_count)
  );
  logic unused_dropped_count;
  assign unused_dropped_count = ^dropped_count;

  assign free_now  = left_q || dropped_valid;
  assign free      = left_q ? left_free_q : dropped_free;
  assign freed_now = freed_mem[free.entry];

  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      freed_mem[clear_q] <= '0;
    end else if (free_now) begin
      freed_mem[free.entry] <= freed_now + count_t'(free.words);
    end
  end

  for (genvar i = 0; i < 2; i++) begin : gen_held
    count_t more, less;
    assign more = q_fire && q_hold && q_session_q[ControlBit] == 1'(i) ? count_t'(q_words_q) : '0;
    assign less = free_now && free.entry[EntryBits-1] == 1'(i) ? count_t'(free.words) : '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        held_q[i] <= '0;
      end else begin
        held_q[i] <= held_q[i] + more - less;
      end
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      assert (32'(held_q[0]) <= DataWords && 32'(held_q[1]) <= ControlWords)
        else $error("%m: more words held than there are");
      assert ((lane_valid & ~lane_ready) == '0)
        else $error("%m: a granted segment found no room");
    end
  end
`endif

endmodule
