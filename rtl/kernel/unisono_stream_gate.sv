// Says when a segment may use a kernel's stream.
//
// A job enters a lane only when what it takes from a stream stands in that port's queue, and what it gives to one has
// room there (rule 1 of docs/rtl/engine.md). Both are counted here, and reserved when the job is dispatched.
//
// A port is used by one call after the other, in the order in which their first moves with a stream came, and within a
// call in the order of its moves. So a kernel that has made two calls on a port gives the data of the first, then that
// of the second. A call has a port until its program has no more moves and all that use the port have used it.
//
// A move that may not go on is remembered, and kicked when it may. The ports are looked at one after the other, and every
// second time one to which something has just happened.
//
// Latency: the answer stands in the cycle of the question; a kick follows what allows it after 3 cycles at best, and 4
// StreamPorts + 4 at worst. Throughput: one question and one reservation per cycle.
// Restrictions: a port's queue holds a segment: Depth words are at least MaxSegment / DataBytes + 4.

module unisono_stream_gate
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned StreamPorts = 2,
  parameter int unsigned DataBytes = 64,
  parameter int unsigned Depth = 256,
  localparam int unsigned OffsetWidth = $clog2(DataBytes)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A move enters its window; its uses are numbered.
  input  logic           push_valid_i,
  input  move_id_t       push_id_i,
  input  logic           push_source_i,              // op0 is a stream
  input  stream_port_t   push_source_port_i,
  input  logic           push_sink_i,                // the local result is one
  input  stream_port_t   push_sink_port_i,
  output stream_ticket_t push_source_ticket_o,
  output stream_ticket_t push_sink_ticket_o,
  // A program has no more moves; a slot is cleared, and nothing of it is dispatched any more.
  input  logic  close_valid_i,
  input  slot_t close_slot_i,
  input  logic  clear_valid_i,
  input  slot_t clear_slot_i,

  // The dispatcher asks for a segment, says that its move waits, and reserves.
  input  move_id_t       ask_id_i,
  input  stream_use_t    ask_source_i,
  input  stream_use_t    ask_sink_i,
  input  message_bytes_t ask_bytes_i,
  output logic           ready_o,
  input  logic           wait_i,
  input  logic           take_source_i,
  input  logic           take_sink_i,
  input  segment_bytes_t take_bytes_i,
  input  logic           take_first_i,
  input  logic           take_last_i,
  output logic           kick_valid_o,
  input  logic           kick_ready_i,
  output move_id_t       kick_id_o,

  // What kernels have given, and taken.
  input  logic [StreamPorts-1:0] filled_i,
  input  logic [StreamPorts-1:0][OffsetWidth:0] filled_bytes_i,
  input  logic [StreamPorts-1:0] drained_i
);

  // Channels: the streams to the engine, then those to kernels.
  localparam int unsigned Channels = 2 * StreamPorts;
  localparam int unsigned ChannelWidth = $clog2(Channels);
  localparam int unsigned PortWidth = StreamPorts > 1 ? $clog2(StreamPorts) : 1;
  localparam int unsigned AmountWidth = $clog2((Depth + 2) * DataBytes) + 1;
  typedef logic [ChannelWidth-1:0] channel_t;
  typedef logic [PortWidth-1:0] port_t;
  typedef logic [AmountWidth-1:0] amount_t;     // bytes in a source, words of room in a sink

  if (Depth * DataBytes < MaxSegment + 4 * DataBytes || StreamPorts > unisono_spec_pkg::MaxStreamPorts) begin : gen_bad
    $error("unisono_stream_gate: a queue must hold a segment, and ports must have numbers");
  end

  // ------------------------------------------------------------------------------------------------- turns

  stream_ticket_t issued_q [Channels][Calls], served_q [Channels][Calls];
  logic [Calls-1:0] holds_q [Channels];
  slot_t owner_q [Channels];
  logic [Channels-1:0] owned_q;
  logic [Calls-1:0] closed_q, used_q;
  logic [Calls-1:0] before_q [Calls];           // the calls that came before it

  channel_t push_source, push_sink, ask_source, ask_sink;
  assign push_source = channel_t'(push_source_port_i);
  assign push_sink = channel_t'(StreamPorts) + channel_t'(push_sink_port_i);
  assign ask_source = channel_t'(ask_source_i.port);
  assign ask_sink = channel_t'(StreamPorts) + channel_t'(ask_sink_i.port);
  assign push_source_ticket_o = issued_q[push_source][push_id_i.slot];
  assign push_sink_ticket_o = issued_q[push_sink][push_id_i.slot];

  logic pushes;
  assign pushes = push_valid_i && (push_source_i || push_sink_i);

  logic serves;
  assign serves = take_last_i;

  for (genvar c = 0; c < int'(Channels); c++) begin : gen_channel
    logic push_here, take_here;
    logic [Calls-1:0] oldest;
    assign push_here = push_valid_i && (c < int'(StreamPorts) ? push_source_i && push_source == channel_t'(c)
                                                              : push_sink_i && push_sink == channel_t'(c));
    assign take_here = c < int'(StreamPorts) ? take_source_i && ask_source == channel_t'(c)
                                             : take_sink_i && ask_sink == channel_t'(c);
    for (genvar s = 0; s < int'(Calls); s++) begin : gen_slot
      logic clears, pushed, served;
      assign clears = clear_valid_i && clear_slot_i == slot_t'(s);
      assign pushed = push_here && push_id_i.slot == slot_t'(s);
      assign served = take_here && serves && ask_id_i.slot == slot_t'(s);
      assign oldest[s] = holds_q[c][s] && (holds_q[c] & before_q[s]) == '0;
      always_ff @(posedge clk_i) begin
        if (!rst_ni || clears) begin
          issued_q[c][s] <= '0;
          served_q[c][s] <= '0;
          holds_q[c][s] <= 1'b0;
        end else begin
          issued_q[c][s] <= issued_q[c][s] + stream_ticket_t'(pushed);
          served_q[c][s] <= served_q[c][s] + stream_ticket_t'(served);
          if (pushed) holds_q[c][s] <= 1'b1;
          else if (closed_q[s] && issued_q[c][s] == served_q[c][s]) holds_q[c][s] <= 1'b0;
        end
      end
    end
    slot_t oldest_slot;
    always_comb begin
      oldest_slot = '0;
      for (int unsigned s = 0; s < Calls; s++) if (oldest[s]) oldest_slot |= slot_t'(s);
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        owned_q[c] <= 1'b0;
        owner_q[c] <= '0;
      end else if (!owned_q[c]) begin
        owned_q[c] <= oldest != '0;
        owner_q[c] <= oldest_slot;
      end else if (!holds_q[c][owner_q[c]]) begin
        owned_q[c] <= 1'b0;
      end
    end
  end

  // A call that goes in the cycle in which another one comes is not before it: its slot's next call comes later.
  logic [Calls-1:0] clears;
  assign clears = clear_valid_i ? Calls'(1) << clear_slot_i : '0;

  for (genvar s = 0; s < int'(Calls); s++) begin : gen_age
    always_ff @(posedge clk_i) begin
      if (!rst_ni || (clear_valid_i && clear_slot_i == slot_t'(s))) begin
        closed_q[s] <= 1'b0;
        used_q[s] <= 1'b0;
      end else begin
        if (close_valid_i && close_slot_i == slot_t'(s)) closed_q[s] <= 1'b1;
        if (pushes && push_id_i.slot == slot_t'(s)) used_q[s] <= 1'b1;
      end
      if (!rst_ni) before_q[s] <= '0;
      else if (pushes && push_id_i.slot == slot_t'(s) && !used_q[s]) before_q[s] <= used_q & ~clears;
      else before_q[s] <= before_q[s] & ~clears;
    end
  end

  // ----------------------------------------------------------------------------------------------- amounts

  amount_t amount_q [Channels];
  logic [OffsetWidth-1:0] tail_q [StreamPorts];      // bytes of a packet's last word so far
  logic [StreamPorts-1:0] open_q;                    // a packet has begun and not ended

  for (genvar p = 0; p < int'(StreamPorts); p++) begin : gen_amount
    logic source_here, sink_here, cuts;
    logic [AmountWidth-1:0] sum, words;
    logic [OffsetWidth-1:0] tail;
    assign source_here = take_source_i && ask_source_i.port == stream_port_t'(p);
    assign sink_here = take_sink_i && ask_sink_i.port == stream_port_t'(p);
    assign cuts = take_first_i && open_q[p];
    assign tail = take_first_i ? '0 : tail_q[p];
    assign sum = amount_t'(tail) + amount_t'(take_bytes_i);
    assign words = (sum >> OffsetWidth) + amount_t'(take_last_i && sum[OffsetWidth-1:0] != '0) + amount_t'(cuts);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        amount_q[p] <= '0;
        amount_q[StreamPorts + p] <= amount_t'(Depth);
        tail_q[p] <= '0;
        open_q[p] <= 1'b0;
      end else begin
        amount_q[p] <= amount_q[p] + (filled_i[p] ? amount_t'(filled_bytes_i[p]) : '0)
                                   - (source_here ? amount_t'(take_bytes_i) : '0);
        amount_q[StreamPorts + p] <= amount_q[StreamPorts + p] + amount_t'(drained_i[p]) - (sink_here ? words : '0);
        if (sink_here) begin
          tail_q[p] <= take_last_i ? '0 : sum[OffsetWidth-1:0];
          open_q[p] <= !take_last_i;
        end
      end
    end
  end

  // ----------------------------------------------------------------------------------------------- answers

  logic source_turn, sink_turn, source_enough, sink_enough, source_ready, sink_ready;
  amount_t source_need, sink_need;
  assign source_turn = owned_q[ask_source] && owner_q[ask_source] == ask_id_i.slot &&
                       served_q[ask_source][ask_id_i.slot] == ask_source_i.ticket;
  assign sink_turn = owned_q[ask_sink] && owner_q[ask_sink] == ask_id_i.slot &&
                     served_q[ask_sink][ask_id_i.slot] == ask_sink_i.ticket;
  // Room for one word more than it fills, for what is left of one that was cut off, and for its own last.
  assign source_need = amount_t'(ask_bytes_i);
  assign sink_need = amount_t'(ask_bytes_i >> OffsetWidth) + amount_t'(3);
  assign source_enough = amount_q[ask_source] >= source_need;
  assign sink_enough = amount_q[ask_sink] >= sink_need;
  assign source_ready = !ask_source_i.used || (source_turn && source_enough);
  assign sink_ready = !ask_sink_i.used || (sink_turn && sink_enough);
  assign ready_o = source_ready && sink_ready;

  // ------------------------------------------------------------------------------------------------- kicks

  // Moves that wait, and for the one whose turn it is at a channel, how much it needs.
  logic [Calls*unisono_spec_pkg::Window-1:0] source_waits_q, sink_waits_q;
  logic [Channels-1:0] need_known_q;
  amount_t need_q [Channels];
  channel_t wait_channel;
  assign wait_channel = source_ready ? ask_sink : ask_source;

  // Which move has a ticket.
  (* ram_style = "distributed" *) entry_t source_entry_q [StreamPorts * Calls * unisono_spec_pkg::Window];
  (* ram_style = "distributed" *) entry_t sink_entry_q [StreamPorts * Calls * unisono_spec_pkg::Window];
  localparam int unsigned MapWidth = $clog2(StreamPorts * Calls * unisono_spec_pkg::Window);
  typedef logic [MapWidth-1:0] map_t;
  always_ff @(posedge clk_i) begin
    if (push_valid_i && push_source_i) begin
      source_entry_q[map_t'({push_source_port_i, push_id_i.slot, push_source_ticket_o[EntryWidth-1:0]})] <= push_id_i.entry;
    end
  end
  always_ff @(posedge clk_i) begin
    if (push_valid_i && push_sink_i) begin
      sink_entry_q[map_t'({push_sink_port_i, push_id_i.slot, push_sink_ticket_o[EntryWidth-1:0]})] <= push_id_i.entry;
    end
  end

  channel_t scan_q, turn_q, turn_next, event_channel;
  logic event_any, by_event_q;                  // the channel looked at was chosen for what happened there
  port_t scan_port;
  logic scan_sink, scan_may, found_q, found_sink_q, kick_q, kicks;
  slot_t scan_slot;
  stream_ticket_t scan_ticket;
  map_t scan_place;
  move_id_t found_id_q, kick_id_q;
  // The channels are looked at in turn while any move waits for one.
  logic scans;
  assign scans = source_waits_q != '0 || sink_waits_q != '0;
  assign turn_next = turn_q == channel_t'(Channels - 1) ? '0 : turn_q + 1'b1;
  always_comb begin
    event_any = 1'b0;
    event_channel = '0;
    for (int c = int'(Channels) - 1; c >= 0; c--) begin
      if (c < int'(StreamPorts) ? filled_i[c % StreamPorts] : drained_i[c % StreamPorts]) begin
        event_any = 1'b1;
        event_channel = channel_t'(c);
      end
    end
  end
  assign scan_sink = scan_q >= channel_t'(StreamPorts);
  assign scan_port = port_t'(scan_sink ? scan_q - channel_t'(StreamPorts) : scan_q);
  assign scan_slot = owner_q[scan_q];
  assign scan_ticket = served_q[scan_q][scan_slot];
  assign scan_place = map_t'({scan_port, scan_slot, scan_ticket[EntryWidth-1:0]});
  assign scan_may = owned_q[scan_q] && issued_q[scan_q][scan_slot] != scan_ticket &&
                    (!need_known_q[scan_q] || amount_q[scan_q] >= need_q[scan_q]);
  assign kicks = found_q && (found_sink_q ? sink_waits_q[found_id_q] : source_waits_q[found_id_q]) && !kick_q;
  assign kick_valid_o = kick_q;
  assign kick_id_o = kick_id_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      scan_q <= '0;
      turn_q <= '0;
      by_event_q <= 1'b0;
      found_q <= 1'b0;
      found_id_q <= '0;
      kick_q <= 1'b0;
      kick_id_q <= '0;
      found_sink_q <= 1'b0;
      source_waits_q <= '0;
      sink_waits_q <= '0;
    end else begin
      found_q <= scans && scan_may;
      if (scans) begin
        by_event_q <= event_any && !by_event_q;
        if (event_any && !by_event_q) begin
          scan_q <= event_channel;
        end else begin
          scan_q <= turn_next;
          turn_q <= turn_next;
        end
        found_sink_q <= scan_sink;
        found_id_q <= '{slot: scan_slot, entry: scan_sink ? sink_entry_q[scan_place] : source_entry_q[scan_place]};
      end
      if (kicks) begin
        kick_q <= 1'b1;
        kick_id_q <= found_id_q;
        if (found_sink_q) sink_waits_q[found_id_q] <= 1'b0;
        else source_waits_q[found_id_q] <= 1'b0;
      end else if (kick_ready_i) begin
        kick_q <= 1'b0;
      end
      if (wait_i && source_ready) sink_waits_q[ask_id_i] <= 1'b1;
      if (wait_i && !source_ready) source_waits_q[ask_id_i] <= 1'b1;
    end
  end

  for (genvar c = 0; c < int'(Channels); c++) begin : gen_need
    logic take_here;
    assign take_here = c < int'(StreamPorts) ? take_source_i && ask_source == channel_t'(c)
                                             : take_sink_i && ask_sink == channel_t'(c);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || take_here || !owned_q[c]) begin
        need_known_q[c] <= 1'b0;
      end else if (wait_i && wait_channel == channel_t'(c)) begin
        // Another move of the call that looks out of its turn leaves the one whose turn it is alone.
        if (source_ready ? sink_turn : source_turn) begin
          need_known_q[c] <= 1'b1;
          need_q[c] <= source_ready ? sink_need : source_need;
        end
      end
    end
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!take_source_i || (source_turn && amount_q[ask_source] >= amount_t'(take_bytes_i)))
        else $error("a segment takes from a stream what is not there");
      assert (!take_sink_i || sink_turn) else $error("a segment uses a stream out of its turn");
      for (int unsigned p = 0; p < StreamPorts; p++) begin
        assert (amount_q[StreamPorts + p] <= amount_t'(Depth)) else $error("more in a queue than it holds");
      end
    end
  end
  `endif

endmodule
