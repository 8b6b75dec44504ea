// Receive-buffer credits of every (communicator, peer): what this engine owes a peer, and what a
// peer allows this engine.
//
// owed:      counts buffers freed since the peer was last told. Tx takes all with any header to
//            that peer. When it reaches max(1, rx_buffers / 4) a message of its own is asked for.
// available: eager segments that may still be sent; begins as rx_buffers, one is taken per segment,
//            the peer's headers return some. Who asks may leave some to others.
//
// Each quantity is the difference of two counters that only grow, each written by one port alone:
// simultaneous operations cannot lose one another's change. A port sees all operations of earlier
// cycles. Of a free and a take of one entry in one cycle the take comes first.
//
// Latency: owed_o 3 cycles after the request was accepted, available_* 2; requests and events about
// 6 cycles. Throughput: one operation of each kind per cycle. While a communicator is set up
// (Ranks cycles) and after a reset (Entries cycles) all ready outputs are low.

// Restrictions: Communicators and Ranks are powers of two, at least 2. What a peer is owed, and what
// it allows, is less than 2^CountWidth.

module unisono_credits #(
  parameter int unsigned Communicators = unisono_cclo_pkg::Communicators,
  parameter int unsigned Ranks = unisono_cclo_pkg::Ranks,
  parameter int unsigned CountWidth = 16,
  localparam int unsigned Entries = Communicators * Ranks,
  localparam int unsigned CommunicatorWidth = $clog2(Communicators),
  localparam int unsigned RankWidth = $clog2(Ranks)
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  // A communicator is created: every member owes nothing and allows rx_buffers messages.
  input  logic                         init_valid_i,
  output logic                         init_ready_o,
  input  logic [CommunicatorWidth-1:0] init_communicator_i,
  input  logic [CountWidth-1:0]        init_rx_buffers_i,

  // A receive buffer that a message of this peer held is free again.
  input  logic                         freed_valid_i,
  output logic                         freed_ready_o,
  input  logic [CommunicatorWidth-1:0] freed_communicator_i,
  input  logic [RankWidth-1:0]         freed_peer_i,

  // Tx takes what is owed, to send it with a header.
  input  logic                         owed_take_valid_i,
  output logic                         owed_take_ready_o,
  input  logic [CommunicatorWidth-1:0] owed_take_communicator_i,
  input  logic [RankWidth-1:0]         owed_take_peer_i,
  output logic [CountWidth-1:0]        owed_o,              // 3 cycles later

  // The dispatcher asks for a credit (take), or only how many there are.
  input  logic                         available_valid_i,
  output logic                         available_ready_o,
  input  logic [CommunicatorWidth-1:0] available_communicator_i,
  input  logic [RankWidth-1:0]         available_peer_i,
  input  logic                         available_take_i,
  input  logic [CountWidth-1:0]        available_keep_i,    // none is taken if so few, or fewer, are there
  output logic                         available_valid_o,   // 2 cycles later
  output logic                         available_granted_o, // one was taken
  output logic [CountWidth-1:0]        available_count_o,   // as it was before

  // A header of this peer returned credits.
  input  logic                         returned_valid_i,
  output logic                         returned_ready_o,
  input  logic [CommunicatorWidth-1:0] returned_communicator_i,
  input  logic [RankWidth-1:0]         returned_peer_i,
  input  logic [CountWidth-1:0]        returned_credits_i,

  // Wanted: a message to this peer that carries nothing but credits.
  output logic                         request_valid_o,
  input  logic                         request_ready_i,
  output logic [CommunicatorWidth-1:0] request_communicator_o,
  output logic [RankWidth-1:0]         request_peer_o,

  // Credit has come. One event may stand for several returns, and comes after the last of them.
  output logic                         event_valid_o,
  input  logic                         event_ready_i,
  output logic [CommunicatorWidth-1:0] event_communicator_o,
  output logic [RankWidth-1:0]         event_peer_o,

  // One cycle: a peer returned more than it had been sent; the excess is not counted.
  output logic                         excess_o
);

  typedef logic [CommunicatorWidth-1:0] communicator_t;
  typedef logic [RankWidth-1:0] rank_t;
  typedef logic [CountWidth-1:0] count_t;

  localparam int unsigned Bits = $clog2(Entries);
  typedef logic [Bits-1:0] pair_t;

  // ------------------------------------------------------------------ setting a communicator up
  logic          walking_q;
  communicator_t walk_communicator_q;
  rank_t         walk_rank_q;
  pair_t        walk_entry;
  logic          ready;
  logic [3:0]    ram_ready;
  logic [1:0]    queue_ready;
  logic          idle;
  count_t [Communicators-1:0] limit_q;

  assign idle       = !walking_q;
  assign ready      = idle && &ram_ready && &queue_ready;
  assign walk_entry = {walk_communicator_q, walk_rank_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      walking_q   <= 1'b0;
      walk_rank_q <= '0;
    end else if (init_valid_i && init_ready_o) begin
      walking_q   <= 1'b1;
      walk_rank_q <= '0;
    end else if (walking_q) begin
      walk_rank_q <= walk_rank_q + 1'b1;
      walking_q   <= walk_rank_q != '1;
    end
    if (init_valid_i && init_ready_o) begin
      walk_communicator_q          <= init_communicator_i;
      limit_q[init_communicator_i] <= init_rx_buffers_i;
    end
  end

  assign init_ready_o      = ready;
  assign freed_ready_o     = ready;
  assign owed_take_ready_o = ready;
  assign available_ready_o = ready;
  assign returned_ready_o  = ready;

  // ------------------------------------------------------------------ the four operations
  // Index of an operation, of its counter, and of its port of the memories.
  localparam int unsigned Freed = 0;      // counts buffers freed
  localparam int unsigned Told = 1;       // counts of these, those the peer has been told of
  localparam int unsigned Returned = 2;   // counts rx_buffers and what came back
  localparam int unsigned Taken = 3;      // counts messages sent

  logic [3:0]   valid0, valid1_q, valid2_q, init1_q, init2_q;
  pair_t [3:0] entry0, entry1_q, entry2_q;
  count_t [3:0] own, other, next;
  logic [3:0]   unused_update_valid;

  assign valid0[Freed]    = (freed_valid_i && ready) || walking_q;
  assign valid0[Told]     = (owed_take_valid_i && ready) || walking_q;
  assign valid0[Returned] = (returned_valid_i && ready) || walking_q;
  assign valid0[Taken]    = (available_valid_i && ready) || walking_q;

  assign entry0[Freed] = walking_q ? walk_entry : {freed_communicator_i, freed_peer_i};
  assign entry0[Told]  = walking_q ? walk_entry : {owed_take_communicator_i, owed_take_peer_i};
  assign entry0[Returned] = walking_q ? walk_entry : {returned_communicator_i, returned_peer_i};
  assign entry0[Taken] = walking_q ? walk_entry : {available_communicator_i, available_peer_i};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid1_q <= '0;
      valid2_q <= '0;
    end else begin
      valid1_q <= valid0;
      valid2_q <= valid1_q;
    end
    init1_q  <= {4{walking_q}};
    init2_q  <= init1_q;
    entry1_q <= entry0;
    entry2_q <= entry1_q;
  end

  for (genvar k = 0; k < 4; k++) begin : gen_counter
    // The counter that this one is compared with.
    localparam int unsigned Other = k ^ 1;
    unisono_update_ram #(
      .Entries(Entries),
      .Width  (CountWidth)
    ) u_ram (
      .clk_i,
      .rst_ni,
      .ready_o          (ram_ready[k]),
      .update_valid_i   (valid0[k]),
      .update_address_i (entry0[k]),
      .update_valid_o   (unused_update_valid[k]),
      .update_data_o    (own[k]),
      .update_next_i    (next[k]),
      .observe_address_i(entry0[Other]),
      .observe_data_o   (other[Other])
    );
  end

  logic unused_valid;
  assign unused_valid = ^unused_update_valid;

  // Fields that only one operation has, and the communicator's limit, in step with the values.
  count_t credits1_q, credits2_q;
  count_t return_limit_q, threshold_q;
  count_t freed_limit;
  logic   take1_q, take2_q;
  count_t keep1_q, keep2_q;
  logic   same_q;                          // a free and a take of one entry in one cycle

  assign freed_limit = limit_q[entry1_q[Freed][Bits-1 -: $bits(communicator_t)]];

  always_ff @(posedge clk_i) begin
    credits1_q     <= returned_credits_i;
    credits2_q     <= credits1_q;
    return_limit_q <= limit_q[entry1_q[Returned][Bits-1 -: $bits(communicator_t)]];
    threshold_q    <= freed_limit < count_t'(4) ? count_t'(1) : freed_limit >> 2;
    take1_q        <= available_take_i;
    take2_q        <= take1_q;
    keep1_q        <= available_keep_i;
    keep2_q        <= keep1_q;
    same_q         <= valid1_q[Told] && valid1_q[Freed] && entry1_q[Told] == entry1_q[Freed];
  end

  // Freed: one more. Told: all that is freed.
  count_t owed_before, owed_after;
  assign owed_before = same_q ? '0 : own[Freed] - other[Freed];
  assign owed_after  = owed_before + 1'b1;
  assign next[Freed] = init2_q[Freed] ? '0 : own[Freed] + 1'b1;
  assign next[Told]  = init2_q[Told] ? '0 : other[Told];

  // Returned: at most up to the limit. Taken: one more if there is one.
  count_t      return_before, available;
  logic [CountWidth:0] return_after;
  logic        excess, granted;
  assign return_before  = own[Returned] - other[Returned];
  assign return_after   = {1'b0, return_before} + {1'b0, credits2_q};
  assign excess         = return_after > {1'b0, return_limit_q};
  assign next[Returned] = init2_q[Returned] ? return_limit_q :
                          excess ? other[Returned] + return_limit_q :
                          own[Returned] + credits2_q;
  assign available      = other[Taken] - own[Taken];
  assign granted        = take2_q && available > keep2_q;
  assign next[Taken]    = init2_q[Taken] ? '0 : own[Taken] + count_t'(granted);

  // Answered a cycle sooner than the other operations: a message waits for it.
  assign available_valid_o   = valid2_q[Taken] && !init2_q[Taken];
  assign available_granted_o = granted;
  assign available_count_o   = available;

  logic   ask_q, come_q;
  pair_t ask_entry_q, come_entry_q;

  always_ff @(posedge clk_i) begin
    owed_o              <= other[Told] - own[Told];
    ask_entry_q         <= entry2_q[Freed];
    come_entry_q        <= entry2_q[Returned];
    if (!rst_ni) begin
      excess_o          <= 1'b0;
      ask_q             <= 1'b0;
      come_q            <= 1'b0;
    end else begin
      excess_o          <= valid2_q[Returned] && !init2_q[Returned] && excess;
      // Only the step onto the threshold asks: what follows is taken by the same message.
      ask_q             <= valid2_q[Freed] && !init2_q[Freed] && owed_after == threshold_q;
      come_q            <= valid2_q[Returned] && !init2_q[Returned] && credits2_q != '0;
    end
  end

  unisono_notice_queue #(
    .Entries(Entries)
  ) u_requests (
    .clk_i,
    .rst_ni,
    .ready_o      (queue_ready[0]),
    .push_i       (ask_q),
    .push_number_i(ask_entry_q),
    .out_valid_o  (request_valid_o),
    .out_ready_i  (request_ready_i),
    .out_number_o ({request_communicator_o, request_peer_o})
  );

  unisono_notice_queue #(
    .Entries(Entries)
  ) u_events (
    .clk_i,
    .rst_ni,
    .ready_o      (queue_ready[1]),
    .push_i       (come_q),
    .push_number_i(come_entry_q),
    .out_valid_o  (event_valid_o),
    .out_ready_i  (event_ready_i),
    .out_number_o ({event_communicator_o, event_peer_o})
  );

`ifndef SYNTHESIS
  count_t freed_limit_q, taken_limit_q;
  always_ff @(posedge clk_i) begin
    freed_limit_q <= freed_limit;
    taken_limit_q <= limit_q[entry1_q[Taken][Bits-1 -: $bits(communicator_t)]];
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni && valid2_q[Freed] && !init2_q[Freed]) begin
      assert (owed_before < freed_limit_q)
      else $error("unisono_credits: more buffers freed than a peer may have filled");
    end
    if (rst_ni && valid2_q[Taken] && !init2_q[Taken]) begin
      assert (available <= taken_limit_q)
      else $error("unisono_credits: more credits than buffers");
    end
  end
`endif

endmodule
