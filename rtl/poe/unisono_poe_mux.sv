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
// Latency: 1 cycle for queries, grants, metas and events, 1 for words to send and 2 for words
// received. Throughput: 1 word, segment or query per cycle.

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

  localparam int unsigned MetaBits = SessionBits + BytesBits;
  localparam int unsigned WordBits = DataBytes * 8 + DataBytes + 1;

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
  logic       query_poe, query_note_room, query_fire;
  logic [1:0] query_room, query_to;

  assign query_poe     = query_session_i[ControlBit-1:0] >= split_i;
  assign query_to      = {query_poe, !query_poe};
  assign query_ready_o = query_note_room && query_room[query_poe];
  assign query_fire    = query_valid_i && query_ready_o;

  logic [1:0][MetaBits-1:0] query_out;
  unisono_skid #(
    .Width(MetaBits)
  ) u_query [1:0] (
    .clk_i,
    .rst_ni,
    .in_valid_i ({2{query_fire}} & query_to),
    .in_ready_o (query_room),
    .in_data_i  ({2{inward(query_session_i, query_poe, split_i), query_bytes_i}}),
    .out_valid_o(poe_query_valid_o),
    .out_ready_i(poe_query_ready_i),
    .out_data_o (query_out)
  );
  assign {poe_query_session_o[0], poe_query_bytes_o[0]} = query_out[0];
  assign {poe_query_session_o[1], poe_query_bytes_o[1]} = query_out[1];

  logic       grant_poe, grant_due, grant_room, grant_fire;
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
    .out_ready_i(grant_fire),
    .out_data_o (grant_poe),
    .count_o    (query_count)
  );
  logic unused_query_count;
  assign unused_query_count = ^query_count;

  assign grant_turn        = grant_due ? {grant_poe, !grant_poe} : 2'b00;
  assign poe_grant_ready_o = grant_turn & {2{grant_room}};
  assign grant_fire        = (poe_grant_valid_i & poe_grant_ready_o) != '0;

  unisono_skid #(
    .Width(1)
  ) u_grant (
    .clk_i,
    .rst_ni,
    .in_valid_i (grant_fire),
    .in_ready_o (grant_room),
    .in_data_i  (poe_grant_granted_i[grant_poe]),
    .out_valid_o(grant_valid_o),
    .out_ready_i(grant_ready_i),
    .out_data_o (grant_granted_o)
  );

  // ---- Segments to send: metas to the session's POE, and a note of which POE the words go to.
  logic       meta_poe, meta_note_room, meta_fire;
  logic [1:0] meta_room, meta_to;

  assign meta_poe        = tx_meta_session_i[ControlBit-1:0] >= split_i;
  assign meta_to         = {meta_poe, !meta_poe};
  assign tx_meta_ready_o = meta_note_room && meta_room[meta_poe];
  assign meta_fire       = tx_meta_valid_i && tx_meta_ready_o;

  logic [1:0][MetaBits-1:0] meta_out;
  unisono_skid #(
    .Width(MetaBits)
  ) u_meta [1:0] (
    .clk_i,
    .rst_ni,
    .in_valid_i ({2{meta_fire}} & meta_to),
    .in_ready_o (meta_room),
    .in_data_i  ({2{inward(tx_meta_session_i, meta_poe, split_i), tx_meta_bytes_i}}),
    .out_valid_o(poe_tx_meta_valid_o),
    .out_ready_i(poe_tx_meta_ready_i),
    .out_data_o (meta_out)
  );
  assign {poe_tx_meta_session_o[0], poe_tx_meta_bytes_o[0]} = meta_out[0];
  assign {poe_tx_meta_session_o[1], poe_tx_meta_bytes_o[1]} = meta_out[1];

  logic       tx_poe, tx_due, tx_fire;
  logic [1:0] tx_room, tx_to;

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
    .out_ready_i(tx_fire && tx_last_i),
    .out_data_o (tx_poe),
    .count_o    (tx_count)
  );
  logic unused_tx_count;
  assign unused_tx_count = ^tx_count;

  assign tx_to      = {tx_poe, !tx_poe};
  assign tx_ready_o = tx_due && tx_room[tx_poe];
  assign tx_fire    = tx_valid_i && tx_ready_o;

  logic [1:0][WordBits-1:0] tx_out;
  unisono_skid #(
    .Width(WordBits)
  ) u_tx [1:0] (
    .clk_i,
    .rst_ni,
    .in_valid_i ({2{tx_fire}} & tx_to),
    .in_ready_o (tx_room),
    .in_data_i  ({2{tx_last_i, tx_keep_i, tx_data_i}}),
    .out_valid_o(poe_tx_valid_o),
    .out_ready_i(poe_tx_ready_i),
    .out_data_o (tx_out)
  );
  assign {poe_tx_last_o[0], poe_tx_keep_o[0], poe_tx_data_o[0]} = tx_out[0];
  assign {poe_tx_last_o[1], poe_tx_keep_o[1], poe_tx_data_o[1]} = tx_out[1];

  // ---- Segments received: in turn, by meta; the words of a segment follow its meta's choice.
  logic       rx_next, rx_any, rx_meta_room, rx_note_room, rx_fire;
  logic [1:0] rx_grant;

  unisono_round_robin #(
    .Requests(2)
  ) u_rx_turn (
    .clk_i,
    .rst_ni,
    .request_i(poe_rx_meta_valid_i),
    .advance_i(rx_fire),
    .grant_o  (rx_grant),
    .index_o  (rx_next)
  );
  assign rx_any              = poe_rx_meta_valid_i != '0;
  assign poe_rx_meta_ready_o = rx_grant & {2{rx_meta_room && rx_note_room}};
  assign rx_fire             = rx_any && rx_meta_room && rx_note_room;

  unisono_skid #(
    .Width(MetaBits + 1)
  ) u_rx_meta (
    .clk_i,
    .rst_ni,
    .in_valid_i (rx_fire),
    .in_ready_o (rx_meta_room),
    .in_data_i  ({outward(poe_rx_meta_session_i[rx_next], rx_next, split_i),
                  poe_rx_meta_bytes_i[rx_next], poe_rx_meta_error_i[rx_next]}),
    .out_valid_o(rx_meta_valid_o),
    .out_ready_i(rx_meta_ready_i),
    .out_data_o ({rx_meta_session_o, rx_meta_bytes_o, rx_meta_error_o})
  );

  logic rx_poe, rx_due, rx_room, rx_take;
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
    .out_ready_i(rx_take && poe_rx_last_i[rx_poe]),
    .out_data_o (rx_poe),
    .count_o    (rx_count)
  );
  logic unused_rx_count;
  assign unused_rx_count = ^rx_count;

  assign poe_rx_ready_o = rx_due && rx_room ? {rx_poe, !rx_poe} : 2'b00;
  assign rx_take        = (poe_rx_valid_i & poe_rx_ready_o) != '0;

  unisono_skid #(
    .Width(WordBits)
  ) u_rx (
    .clk_i,
    .rst_ni,
    .in_valid_i (rx_take),
    .in_ready_o (rx_room),
    .in_data_i  ({poe_rx_last_i[rx_poe], poe_rx_keep_i[rx_poe], poe_rx_data_i[rx_poe]}),
    .out_valid_o(rx_valid_o),
    .out_ready_i(rx_ready_i),
    .out_data_o ({rx_last_o, rx_keep_o, rx_data_o})
  );

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
