// Proof of unisono_credits: credits are neither made nor lost, and none is granted beyond those of the
// beginning and those that came back.
//
// Any pair may be watched. The proof keeps two plain numbers for it, changed by each operation that is
// accepted: `owed_q`, what the peer has not been told of, and `allowed_q`, what may still
// be sent. Every answer must be what these numbers say, whatever goes on at other pairs and however
// close the operations follow one another. That `allowed_q` never exceeds the limit, and changes only by
// what is granted and what returns, can be read off its few lines.

module unisono_credits_proof #(
  parameter int unsigned Communicators = 2,
  parameter int unsigned Ranks = 2,
  parameter int unsigned CountWidth = 2,
  localparam int unsigned CommunicatorWidth = $clog2(Communicators),
  localparam int unsigned RankWidth = $clog2(Ranks)
) (
  input logic                         clk_i,
  input logic                         rst_ni,
  input logic [CommunicatorWidth-1:0] watch_communicator_i,
  input logic [RankWidth-1:0]         watch_rank_i,
  input logic                         init_valid_i,
  input logic [CommunicatorWidth-1:0] init_communicator_i,
  input logic [CountWidth-1:0]        init_rx_buffers_i,
  input logic                         freed_valid_i,
  input logic [CommunicatorWidth-1:0] freed_communicator_i,
  input logic [RankWidth-1:0]         freed_peer_i,
  input logic                         owed_take_valid_i,
  input logic [CommunicatorWidth-1:0] owed_take_communicator_i,
  input logic [RankWidth-1:0]         owed_take_peer_i,
  input logic                         available_valid_i,
  input logic [CommunicatorWidth-1:0] available_communicator_i,
  input logic [RankWidth-1:0]         available_peer_i,
  input logic                         available_take_i,
  input logic [CountWidth-1:0]        available_keep_i,
  input logic                         returned_valid_i,
  input logic [CommunicatorWidth-1:0] returned_communicator_i,
  input logic [RankWidth-1:0]         returned_peer_i,
  input logic [CountWidth-1:0]        returned_credits_i
);

  typedef logic [CountWidth-1:0] count_t;

  logic init_ready, freed_ready, owed_take_ready, available_ready, returned_ready;
  logic available_valid, available_granted, excess;
  count_t owed, available_count;

  unisono_credits #(
    .Communicators(Communicators),
    .Ranks        (Ranks),
    .CountWidth   (CountWidth)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .init_valid_i,
    .init_ready_o            (init_ready),
    .init_communicator_i,
    .init_rx_buffers_i,
    .freed_valid_i,
    .freed_ready_o           (freed_ready),
    .freed_communicator_i,
    .freed_peer_i,
    .owed_take_valid_i,
    .owed_take_ready_o       (owed_take_ready),
    .owed_take_communicator_i,
    .owed_take_peer_i,
    .owed_o                  (owed),
    .available_valid_i,
    .available_ready_o       (available_ready),
    .available_communicator_i,
    .available_peer_i,
    .available_take_i,
    .available_keep_i,
    .available_valid_o       (available_valid),
    .available_granted_o     (available_granted),
    .available_count_o       (available_count),
    .returned_valid_i,
    .returned_ready_o        (returned_ready),
    .returned_communicator_i,
    .returned_peer_i,
    .returned_credits_i,
    .request_valid_o         (),
    .request_ready_i         (1'b1),
    .request_communicator_o  (),
    .request_peer_o          (),
    .event_valid_o           (),
    .event_ready_i           (1'b1),
    .event_communicator_o    (),
    .event_peer_o            (),
    .excess_o                (excess)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  // ---------------------------------------------------------------------- what happens to the watched pair
  logic [CommunicatorWidth-1:0] communicator_q;
  logic [RankWidth-1:0]         rank_q;
  logic                         set_up_q;
  logic                         init, freed, told, asked, returned;

  assign init     = init_valid_i && init_ready && init_communicator_i == communicator_q;
  assign freed    = freed_valid_i && freed_ready && freed_communicator_i == communicator_q &&
                    freed_peer_i == rank_q;
  assign told     = owed_take_valid_i && owed_take_ready &&
                    owed_take_communicator_i == communicator_q && owed_take_peer_i == rank_q;
  assign asked    = available_valid_i && available_ready &&
                    available_communicator_i == communicator_q && available_peer_i == rank_q;
  assign returned = returned_valid_i && returned_ready &&
                    returned_communicator_i == communicator_q && returned_peer_i == rank_q;

  // What the module asks of its users: nothing happens to a pair before its communicator is set up.
  always_comb if (rst_ni && !set_up_q) begin
    after_init: assume (!freed && !told && !asked && !returned);
  end

  // All that happens, two cycles later: then the module changes its memories, so that its numbers and
  // those kept here can be compared at any time.
  typedef struct packed {
    logic   init;
    count_t limit;
    logic   freed;
    logic   told;
    logic   asked;
    logic   take;
    count_t keep;
    logic   returned;
    count_t credits;
  } event_t;

  event_t now, event1_q, event2_q;
  assign now = '{init: init, limit: init_rx_buffers_i, freed: freed, told: told, asked: asked,
                 take: available_take_i, keep: available_keep_i, returned: returned, credits: returned_credits_i};
  always_ff @(posedge clk_i) begin
    event1_q <= rst_ni ? now : '0;
    event2_q <= rst_ni ? event1_q : '0;
  end

  count_t owed_q, allowed_q, limit_q;
  logic grant, beyond;
  logic [CountWidth:0] back;
  assign grant  = event2_q.asked && event2_q.take && allowed_q > event2_q.keep;
  assign back   = {1'b0, allowed_q} + {1'b0, event2_q.credits};
  assign beyond = back > {1'b0, limit_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      set_up_q       <= 1'b0;
      communicator_q <= watch_communicator_i;
      rank_q         <= watch_rank_i;
    end else if (init) begin
      set_up_q <= 1'b1;
    end
    if (!rst_ni) begin
      owed_q    <= '0;
      allowed_q <= '0;
      limit_q   <= '0;
    end else if (event2_q.init) begin
      limit_q   <= event2_q.limit;
      allowed_q <= event2_q.limit;
      owed_q    <= '0;
    end else begin
      owed_q <= (event2_q.told ? '0 : owed_q) + count_t'(event2_q.freed);
      allowed_q <= (!event2_q.returned ? allowed_q : beyond ? limit_q : back[CountWidth-1:0]) -
                   count_t'(grant);
    end
  end

  // ------------------------------------------ answers, one cycle later; whether there is credit at once
  typedef struct packed {
    logic   told;
    count_t owed;
    logic   beyond;
  } expected_t;

  // An excess that comes with a set-up of its communicator may be held against the new limit.
  expected_t expected_q;
  always_ff @(posedge clk_i) begin
    expected_q <= '{told: event2_q.told, owed: owed_q,
                    beyond: event2_q.returned && beyond && !event2_q.init};
    if (!rst_ni) expected_q <= '0;
  end

  always_comb begin
    if (rst_ni && started_q) begin
      within_limit: assert (allowed_q <= limit_q);
      if (expected_q.told) owed_is_right: assert (owed == expected_q.owed);
      if (event2_q.asked) begin
        answered: assert (available_valid);
        granted_if_there: assert (available_granted == grant);
        count_is_right: assert (available_count == allowed_q);
      end
      if (expected_q.beyond) excess_is_told: assert (excess);
    end
  end

endmodule
