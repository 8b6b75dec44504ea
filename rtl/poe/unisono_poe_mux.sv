// Two POEs behind one POE interface: sessions below split_i belong to POE 0, the others to POE 1.
//
// POE 1 knows its sessions by number less split_i; the control bit stays. Queries, segments and
// their words go to the session's POE; grants come back in the order of the queries; segments
// received, and events, are merged a whole segment at a time in turn. A POE that makes its own
// segments or queries wait makes those behind them wait too; what it has granted it takes without
// waiting, so only an ungranted query can be held up.
//
// split_i may change while no session of POE 1 is open and nothing is under way.
//
// Latency: none for queries, grants, metas and words, 1 cycle for events; words can leave in the cycle after
// their meta. Valid and ready of a POE's channel follow the engine's within the cycle and the other way
// round, so at both ends one of the two must come from a register. Throughput: 1 word, segment or query per cycle.

module unisono_poe_mux #(
  parameter int unsigned DataBytes = 64
) (
  input  logic                                  clk_i,
  input  logic                                  rst_ni,

  input  logic [unisono_poe_pkg::ControlBit-1:0] split_i,

  input  unisono_poe_pkg::poe_capability_t [1:0] poe_capability_i,
  output unisono_poe_pkg::poe_capability_t       capability_o,

  // Engine's side.
  input  logic                                  query_valid_i,
  output logic                                  query_ready_o,
  input  unisono_poe_pkg::session_t             query_session_i,
  input  unisono_poe_pkg::bytes_t               query_bytes_i,
  output logic                                  grant_valid_o,
  input  logic                                  grant_ready_i,
  output logic                                  grant_granted_o,

  input  logic                                  tx_meta_valid_i,
  output logic                                  tx_meta_ready_o,
  input  unisono_poe_pkg::session_t             tx_meta_session_i,
  input  unisono_poe_pkg::bytes_t               tx_meta_bytes_i,
  input  logic                                  tx_valid_i,
  output logic                                  tx_ready_o,
  input  logic [DataBytes*8-1:0]                tx_data_i,
  input  logic [DataBytes-1:0]                  tx_keep_i,
  input  logic                                  tx_last_i,

  output logic                                  rx_meta_valid_o,
  input  logic                                  rx_meta_ready_i,
  output unisono_poe_pkg::session_t             rx_meta_session_o,
  output unisono_poe_pkg::bytes_t               rx_meta_bytes_o,
  output logic                                  rx_meta_error_o,
  output logic                                  rx_valid_o,
  input  logic                                  rx_ready_i,
  output logic [DataBytes*8-1:0]                rx_data_o,
  output logic [DataBytes-1:0]                  rx_keep_o,
  output logic                                  rx_last_o,

  output logic                                  event_valid_o,
  input  logic                                  event_ready_i,
  output unisono_poe_pkg::session_t             event_session_o,
  output logic                                  event_state_o,

  // The same towards the POEs, 0 and 1.
  output logic [1:0]                            poe_query_valid_o,
  input  logic [1:0]                            poe_query_ready_i,
  output unisono_poe_pkg::session_t [1:0]       poe_query_session_o,
  output unisono_poe_pkg::bytes_t [1:0]         poe_query_bytes_o,
  input  logic [1:0]                            poe_grant_valid_i,
  output logic [1:0]                            poe_grant_ready_o,
  input  logic [1:0]                            poe_grant_granted_i,

  output logic [1:0]                            poe_tx_meta_valid_o,
  input  logic [1:0]                            poe_tx_meta_ready_i,
  output unisono_poe_pkg::session_t [1:0]       poe_tx_meta_session_o,
  output unisono_poe_pkg::bytes_t [1:0]         poe_tx_meta_bytes_o,
  output logic [1:0]                            poe_tx_valid_o,
  input  logic [1:0]                            poe_tx_ready_i,
  output logic [1:0][DataBytes*8-1:0]           poe_tx_data_o,
  output logic [1:0][DataBytes-1:0]             poe_tx_keep_o,
  output logic [1:0]                            poe_tx_last_o,

  input  logic [1:0]                            poe_rx_meta_valid_i,
  output logic [1:0]                            poe_rx_meta_ready_o,
  input  unisono_poe_pkg::session_t [1:0]       poe_rx_meta_session_i,
  input  unisono_poe_pkg::bytes_t [1:0]         poe_rx_meta_bytes_i,
  input  logic [1:0]                            poe_rx_meta_error_i,
  input  logic [1:0]                            poe_rx_valid_i,
  output logic [1:0]                            poe_rx_ready_o,
  input  logic [1:0][DataBytes*8-1:0]           poe_rx_data_i,
  input  logic [1:0][DataBytes-1:0]             poe_rx_keep_i,
  input  logic [1:0]                            poe_rx_last_i,

  input  logic [1:0]                            poe_event_valid_i,
  output logic [1:0]                            poe_event_ready_o,
  input  unisono_poe_pkg::session_t [1:0]       poe_event_session_i,
  input  logic [1:0]                            poe_event_state_i
);

  import unisono_poe_pkg::*;

  function automatic session_t inward(input session_t session, input logic poe,
                                      input logic [ControlBit-1:0] split);
    return {session[ControlBit], session[ControlBit-1:0] - (poe ? split : '0)};
  endfunction
  function automatic session_t outward(input session_t session, input logic poe,
                                       input logic [ControlBit-1:0] split);
    return {session[ControlBit], session[ControlBit-1:0] + (poe ? split : '0)};
  endfunction
  function automatic bytes_t least(input bytes_t a, input bytes_t b);
    return a < b ? a : b;
  endfunction

  // What holds for every session.
  assign capability_o = '{
    ordered:     poe_capability_i[0].ordered && poe_capability_i[1].ordered,
    reliable:    poe_capability_i[0].reliable && poe_capability_i[1].reliable,
    datagram:    poe_capability_i[0].datagram && poe_capability_i[1].datagram,
    max_payload: least(poe_capability_i[0].max_payload, poe_capability_i[1].max_payload),
    max_control: least(poe_capability_i[0].max_control, poe_capability_i[1].max_control)
  };

  // ---- Queries: to the session's POE, and a note of which POE is to answer.
  logic query_poe, query_note_room, query_fire;

  assign query_poe           = query_session_i[ControlBit-1:0] >= split_i;
  assign query_ready_o       = query_note_room && poe_query_ready_i[query_poe];
  assign query_fire          = query_valid_i && query_ready_o;
  assign poe_query_valid_o   = query_valid_i && query_note_room ? {query_poe, !query_poe} : 2'b00;
  assign poe_query_session_o = {inward(query_session_i, 1'b1, split_i), query_session_i};
  assign poe_query_bytes_o   = {2{query_bytes_i}};

  logic       grant_poe, grant_due;
  logic [1:0] grant_turn;

  logic [3:0] query_count;
  unisono_fifo #(
    .Width(1),
    .Depth(8)
  ) u_query_order (
    .clk_i,
    .rst_ni,
    .in_valid_i (query_fire),
    .in_ready_o (query_note_room),
    .in_data_i  (query_poe),
    .out_valid_o(grant_due),
    .out_ready_i(grant_valid_o && grant_ready_i),
    .out_data_o (grant_poe),
    .count_o    (query_count)
  );
  logic unused_query_count;
  assign unused_query_count = ^query_count;

  assign grant_turn        = grant_due ? {grant_poe, !grant_poe} : 2'b00;
  assign poe_grant_ready_o = grant_turn & {2{grant_ready_i}};
  assign grant_valid_o     = (poe_grant_valid_i & grant_turn) != '0;
  assign grant_granted_o   = poe_grant_granted_i[grant_poe];

  // ---- Segments to send: metas to the session's POE, and a note of which POE the words go to.
  logic meta_poe, meta_note_room, meta_fire;

  assign meta_poe              = tx_meta_session_i[ControlBit-1:0] >= split_i;
  assign tx_meta_ready_o       = meta_note_room && poe_tx_meta_ready_i[meta_poe];
  assign meta_fire             = tx_meta_valid_i && tx_meta_ready_o;
  assign poe_tx_meta_valid_o   = tx_meta_valid_i && meta_note_room ? {meta_poe, !meta_poe} : 2'b00;
  assign poe_tx_meta_session_o = {inward(tx_meta_session_i, 1'b1, split_i), tx_meta_session_i};
  assign poe_tx_meta_bytes_o   = {2{tx_meta_bytes_i}};

  logic tx_poe, tx_due;

  logic [3:0] tx_count;
  unisono_fifo #(
    .Width(1),
    .Depth(8)
  ) u_tx_order (
    .clk_i,
    .rst_ni,
    .in_valid_i (meta_fire),
    .in_ready_o (meta_note_room),
    .in_data_i  (meta_poe),
    .out_valid_o(tx_due),
    .out_ready_i(tx_valid_i && tx_ready_o && tx_last_i),
    .out_data_o (tx_poe),
    .count_o    (tx_count)
  );
  logic unused_tx_count;
  assign unused_tx_count = ^tx_count;

  assign tx_ready_o     = tx_due && poe_tx_ready_i[tx_poe];
  assign poe_tx_valid_o = tx_due && tx_valid_i ? {tx_poe, !tx_poe} : 2'b00;
  assign poe_tx_data_o  = {2{tx_data_i}};
  assign poe_tx_keep_o  = {2{tx_keep_i}};
  assign poe_tx_last_o  = {2{tx_last_i}};

  // ---- Segments received: in turn, by meta; the words of a segment follow its meta's choice.
  // A choice that has been offered stays until it is taken.
  logic       rx_next, rx_turn, rx_any, rx_fire, rx_note_room, rx_waits_q, rx_next_q;
  logic [1:0] rx_grant;

  unisono_round_robin #(
    .Requests(2)
  ) u_rx_turn (
    .clk_i,
    .rst_ni,
    .request_i(poe_rx_meta_valid_i),
    .advance_i(rx_fire),
    .grant_o  (rx_grant),
    .index_o  (rx_turn)
  );
  logic unused_rx_grant;
  assign unused_rx_grant     = ^rx_grant;
  assign rx_next             = rx_waits_q ? rx_next_q : rx_turn;
  assign rx_any              = poe_rx_meta_valid_i != '0;
  assign rx_meta_valid_o     = rx_any && rx_note_room;
  assign rx_fire             = rx_meta_valid_o && rx_meta_ready_i;
  assign poe_rx_meta_ready_o = rx_fire ? {rx_next, !rx_next} : 2'b00;
  assign rx_meta_session_o   = outward(poe_rx_meta_session_i[rx_next], rx_next, split_i);
  assign rx_meta_bytes_o     = poe_rx_meta_bytes_i[rx_next];
  assign rx_meta_error_o     = poe_rx_meta_error_i[rx_next];

  always_ff @(posedge clk_i) begin
    rx_waits_q <= rst_ni && rx_meta_valid_o && !rx_meta_ready_i;
    rx_next_q  <= rx_next;
  end

  logic rx_poe, rx_due;
  logic [3:0] rx_count;
  unisono_fifo #(
    .Width(1),
    .Depth(8)
  ) u_rx_order (
    .clk_i,
    .rst_ni,
    .in_valid_i (rx_fire),
    .in_ready_o (rx_note_room),
    .in_data_i  (rx_next),
    .out_valid_o(rx_due),
    .out_ready_i(rx_valid_o && rx_ready_i && rx_last_o),
    .out_data_o (rx_poe),
    .count_o    (rx_count)
  );
  logic unused_rx_count;
  assign unused_rx_count = ^rx_count;

  assign rx_valid_o     = rx_due && poe_rx_valid_i[rx_poe];
  assign poe_rx_ready_o = rx_due && rx_ready_i ? {rx_poe, !rx_poe} : 2'b00;
  assign rx_data_o      = poe_rx_data_i[rx_poe];
  assign rx_keep_o      = poe_rx_keep_i[rx_poe];
  assign rx_last_o      = poe_rx_last_i[rx_poe];

  // ---- Events, in turn.
  logic       event_next, event_room, event_fire;
  logic [1:0] event_grant;

  unisono_round_robin #(
    .Requests(2)
  ) u_event_turn (
    .clk_i,
    .rst_ni,
    .request_i(poe_event_valid_i),
    .advance_i(event_fire),
    .grant_o  (event_grant),
    .index_o  (event_next)
  );
  assign poe_event_ready_o = event_grant & {2{event_room}};
  assign event_fire        = poe_event_valid_i != '0 && event_room;

  unisono_skid #(
    .Width(SessionBits + 1)
  ) u_event (
    .clk_i,
    .rst_ni,
    .in_valid_i (event_fire),
    .in_ready_o (event_room),
    .in_data_i  ({outward(poe_event_session_i[event_next], event_next, split_i),
                  poe_event_state_i[event_next]}),
    .out_valid_o(event_valid_o),
    .out_ready_i(event_ready_i),
    .out_data_o ({event_session_o, event_state_o})
  );

endmodule
