// The POE of the simulated network: a segment is one frame, addressed to a node.
//
// Datagrams: a frame may be lost, doubled or overtaken by the network, and is never repeated here.
// See docs/rtl/poe.md for the interface on the engine's side and docs/rtl/poe_frame.md for
// registers, the MAC's side, figures and tests.
//
// Latency: see unisono_poe_tx and unisono_poe_rx. Throughput: 1 word per cycle each way. After a
// reset the tables are cleared; ready outputs stay low for 2 * Sessions or Nodes cycles, whichever
// is more, but for mac_rx_ready_o: until then frames come from unknown sources and are dropped.

module unisono_poe_frame #(
  parameter int unsigned DataBytes      = 64,
  // Peers: as many data sessions, 0 .. Sessions - 1, and as many control sessions. A power of two.
  parameter int unsigned Sessions       = 64,
  // Node addresses, 0 .. Nodes - 1. A power of two.
  parameter int unsigned Nodes          = 64,
  // Words of the buffers; powers of two.
  parameter int unsigned TxDataWords    = 512,
  parameter int unsigned TxControlWords = 64,
  parameter int unsigned RxDataWords    = 512,
  parameter int unsigned RxControlWords = 64,
  // Longest segments, in bytes.
  parameter int unsigned MaxPayload     = 8192,
  parameter int unsigned MaxControl     = 256,
  // 1: the MAC waits while a receive buffer is full; 0: the frame is dropped.
  parameter bit          RxPause        = 1'b0
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  output unisono_poe_pkg::poe_capability_t capability_o,

  // Engine: may a segment of so many bytes be sent?
  input  logic                             query_valid_i,
  output logic                             query_ready_o,
  input  unisono_poe_pkg::session_t        query_session_i,
  input  unisono_poe_pkg::bytes_t          query_bytes_i,
  output logic                             grant_valid_o,
  input  logic                             grant_ready_i,
  output logic                             grant_granted_o,

  // Engine: segments to send.
  input  logic                             tx_meta_valid_i,
  output logic                             tx_meta_ready_o,
  input  unisono_poe_pkg::session_t        tx_meta_session_i,
  input  unisono_poe_pkg::bytes_t          tx_meta_bytes_i,
  input  logic                             tx_valid_i,
  output logic                             tx_ready_o,
  input  logic [DataBytes*8-1:0]           tx_data_i,
  input  logic [DataBytes-1:0]             tx_keep_i,
  input  logic                             tx_last_i,

  // Engine: segments received.
  output logic                             rx_meta_valid_o,
  input  logic                             rx_meta_ready_i,
  output unisono_poe_pkg::session_t        rx_meta_session_o,
  output unisono_poe_pkg::bytes_t          rx_meta_bytes_o,
  output logic                             rx_meta_error_o,
  output logic                             rx_valid_o,
  input  logic                             rx_ready_i,
  output logic [DataBytes*8-1:0]           rx_data_o,
  output logic [DataBytes-1:0]             rx_keep_o,
  output logic                             rx_last_o,

  // Engine: sessions that opened or closed.
  output logic                             event_valid_o,
  input  logic                             event_ready_i,
  output unisono_poe_pkg::session_t        event_session_o,
  output logic                             event_state_o,

  // Registers: one access at a time; it is done in the cycle in which reg_ready_o is high, and
  // reg_rdata_o is valid then.
  input  logic                             reg_valid_i,
  output logic                             reg_ready_o,
  input  logic                             reg_write_i,
  input  logic [15:0]                      reg_addr_i,
  input  logic [31:0]                      reg_wdata_i,
  output logic [31:0]                      reg_rdata_o,

  // MAC: frames to send. Destination, length and control are constant over a frame.
  output logic                             mac_tx_valid_o,
  input  logic                             mac_tx_ready_i,
  output logic [DataBytes*8-1:0]           mac_tx_data_o,
  output logic [DataBytes-1:0]             mac_tx_keep_o,
  output logic                             mac_tx_last_o,
  output unisono_poe_pkg::node_t           mac_tx_dest_o,
  output unisono_poe_pkg::bytes_t          mac_tx_bytes_o,
  output logic                             mac_tx_control_o,

  // MAC: frames received. With the last word of a damaged frame comes error.
  input  logic                             mac_rx_valid_i,
  output logic                             mac_rx_ready_o,
  input  logic [DataBytes*8-1:0]           mac_rx_data_i,
  input  logic [DataBytes-1:0]             mac_rx_keep_i,
  input  logic                             mac_rx_last_i,
  input  unisono_poe_pkg::node_t           mac_rx_source_i,
  input  unisono_poe_pkg::bytes_t          mac_rx_bytes_i,
  input  logic                             mac_rx_control_i,
  input  logic                             mac_rx_error_i
);

  import unisono_poe_pkg::*;

  localparam int unsigned IndexBits = $clog2(Sessions);
  localparam int unsigned PlaceBits = $clog2(Nodes);
  localparam int unsigned SpaceBits = $clog2(TxDataWords + 1);
  localparam int unsigned OffsetBits = $clog2(DataBytes);
  localparam int unsigned MaxWords   = (MaxPayload + DataBytes - 1) >> OffsetBits;

  if ((1 << PlaceBits) != Nodes || Nodes < 2 || Nodes > 65536 || Sessions > 32768) begin : gen_bad
    $error("unisono_poe_frame: Nodes must be a power of two, 2 to 65536; Sessions at most 32768");
  end
  if (MaxPayload > RxDataWords * DataBytes || MaxControl > RxControlWords * DataBytes)
  begin : gen_bad_buffers
    $error("unisono_poe_frame: the longest segments must fit the receive buffers");
  end

  assign capability_o = '{
    ordered: 1'b1, reliable: 1'b0, datagram: 1'b1,
    max_payload: bytes_t'(MaxPayload), max_control: bytes_t'(MaxControl)
  };

  typedef logic [IndexBits-1:0] index_t;
  typedef logic [PlaceBits-1:0] place_t;

  typedef struct packed {
    logic   open;
    place_t place;
  } session_entry_t;
  typedef struct packed {
    logic   open;
    index_t index;
  } source_entry_t;

  // Where a session leads, and which session leads to a node: each the other's inverse.
  (* ram_style = "distributed" *) session_entry_t session_mem [Sessions];
  (* ram_style = "distributed" *) source_entry_t  source_mem [Nodes];

  // ---- Register accesses, a step per cycle. Opening, closing and moving a session keeps the two
  // tables inverse to one another in every cycle in which both are read.
  typedef enum logic [3:0] {
    RegClear, RegIdle, RegLook, RegForget, RegAsk, RegSet, RegTold, RegTell, RegDone
  } reg_state_e;

  reg_state_e     reg_state_q;
  session_entry_t old_q;
  logic           opens_q, taken, place_known;
  index_t         reg_index;
  place_t         reg_place;
  logic [31:0]    rdata_q;
  logic           is_session, event_room, event_push, event_state, reg_last_clear;

  localparam int unsigned ClearBits = IndexBits > PlaceBits ? IndexBits : PlaceBits;
  logic [ClearBits-1:0] clear_q;

  assign is_session     = 32'(reg_addr_i) < Sessions;
  assign reg_index      = reg_addr_i[IndexBits-1:0];
  assign reg_place      = reg_wdata_i[PlaceBits-1:0];
  assign place_known    = 32'(reg_wdata_i[NodeBits-1:0]) < Nodes;
  assign taken          = source_mem[reg_place].open;
  assign reg_last_clear = clear_q == '1;

  logic tx_started;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reg_state_q <= RegClear;
      clear_q     <= '0;
    end else begin
      case (reg_state_q)
        RegClear: begin
          clear_q <= clear_q + 1'b1;
          if (reg_last_clear) begin
            reg_state_q <= RegIdle;
          end
        end
        RegIdle: begin
          if (reg_valid_i && tx_started) begin
            reg_state_q <= is_session ? RegLook : RegDone;
          end
        end
        // What the session was.
        RegLook:   reg_state_q <= reg_write_i ? RegForget : RegDone;
        // Frames from its old node belong to nobody from here on.
        RegForget: reg_state_q <= RegAsk;
        // Whether its new node is free.
        RegAsk:    reg_state_q <= RegSet;
        RegSet:    reg_state_q <= RegTold;
        RegTold:   reg_state_q <= !old_q.open || event_room ? RegTell : RegTold;
        RegTell:   reg_state_q <= !opens_q || event_room ? RegDone : RegTell;
        default:   reg_state_q <= RegIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (reg_state_q == RegLook) begin
      old_q <= session_mem[reg_index];
    end
    if (reg_state_q == RegAsk) begin
      opens_q <= reg_wdata_i[31] && place_known && !taken;
    end
  end

  always_ff @(posedge clk_i) begin
    case (reg_state_q)
      RegClear: session_mem[clear_q[IndexBits-1:0]] <= '0;
      RegSet:   session_mem[reg_index] <= '{open: opens_q, place: reg_place};
      default:  ;
    endcase
  end
  always_ff @(posedge clk_i) begin
    case (reg_state_q)
      RegClear:  source_mem[clear_q[PlaceBits-1:0]] <= '0;
      RegForget: if (old_q.open) source_mem[old_q.place] <= '0;
      RegSet:    if (opens_q) source_mem[reg_place] <= '{open: 1'b1, index: reg_index};
      default:   ;
    endcase
  end

  // A session that is moved closes and opens.
  assign event_push  = (reg_state_q == RegTold && old_q.open) ||
                       (reg_state_q == RegTell && opens_q);
  assign event_state = reg_state_q == RegTell;

  logic [2:0] events_count;
  unisono_fifo #(
    .Width(IndexBits + 1),
    .Depth(4)
  ) u_events (
    .clk_i,
    .rst_ni,
    .in_valid_i (event_push),
    .in_ready_o (event_room),
    .in_data_i  ({reg_index, event_state}),
    .out_valid_o(event_valid_o),
    .out_ready_i(event_ready_i),
    .out_data_o ({event_session_o[IndexBits-1:0], event_state_o}),
    .count_o    (events_count)
  );
  logic unused_events_count;
  assign unused_events_count = ^events_count;
  assign event_session_o[SessionBits-1:IndexBits] = '0;

  // ---- The other registers.
  logic [SpaceBits-1:0]           session_limit_q;
  logic [Counters-1:0][31:0]      counters_q;
  logic [Counters-1:0]            count;
  logic                           tx_sent, rx_received;
  bytes_t                         tx_sent_bytes, rx_received_bytes;

  // A limit below one longest segment would refuse that segment for ever.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      session_limit_q <= SpaceBits'(TxDataWords);
    end else if (reg_state_q == RegDone && reg_write_i && reg_addr_i == RegSessionLimit) begin
      session_limit_q <= reg_wdata_i < MaxWords ? SpaceBits'(MaxWords) :
                         reg_wdata_i > TxDataWords ? SpaceBits'(TxDataWords) :
                         reg_wdata_i[SpaceBits-1:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counters_q <= '0;
    end else begin
      for (int unsigned i = 0; i < Counters; i++) begin
        if (i == CountTxBytes) begin
          if (tx_sent) counters_q[i] <= counters_q[i] + 32'(tx_sent_bytes);
        end else if (i == CountRxBytes) begin
          if (rx_received) counters_q[i] <= counters_q[i] + 32'(rx_received_bytes);
        end else if (count[i]) begin
          counters_q[i] <= counters_q[i] + 32'd1;
        end
      end
    end
  end
  assign count[CountTxSegments] = tx_sent;
  assign count[CountTxBytes]    = tx_sent;
  assign count[CountRxSegments] = rx_received;
  assign count[CountRxBytes]    = rx_received;
  assign count[CountNotOpened]  = reg_state_q == RegSet && reg_wdata_i[31] && !opens_q;

  always_ff @(posedge clk_i) begin
    rdata_q <= '0;
    if (is_session) begin
      if (reg_state_q == RegLook) begin
        rdata_q[31]            <= session_mem[reg_index].open;
        rdata_q[PlaceBits-1:0] <= session_mem[reg_index].place;
      end
    end else if (reg_addr_i == RegSessionLimit) begin
      rdata_q[SpaceBits-1:0] <= session_limit_q;
    end else if (reg_addr_i == RegShape) begin
      rdata_q <= {16'(Sessions), 16'(MaxPayload)};
    end else if (reg_addr_i[15:8] == RegCounters[15:8] && 32'(reg_addr_i[7:0]) < Counters) begin
      rdata_q <= counters_q[reg_addr_i[$clog2(Counters)-1:0]];
    end
  end
  assign reg_rdata_o = rdata_q;
  assign reg_ready_o = reg_state_q == RegDone;

  // ---- The two directions.
  index_t         lookup_index, query_index;
  node_t          lookup_source;
  session_entry_t lookup_session;
  source_entry_t  lookup_found;

  assign lookup_session = session_mem[lookup_index];
  assign lookup_found   = source_mem[lookup_source[PlaceBits-1:0]];

  unisono_poe_tx #(
    .DataBytes   (DataBytes),
    .Sessions    (Sessions),
    .DataWords   (TxDataWords),
    .ControlWords(TxControlWords),
    .MaxPayload  (MaxPayload),
    .MaxControl  (MaxControl)
  ) u_tx (
    .clk_i,
    .rst_ni,
    .started_o      (tx_started),
    .session_limit_i(session_limit_q),
    .lookup_index_o (lookup_index),
    .lookup_open_i  (lookup_session.open),
    .lookup_node_i  (node_t'(lookup_session.place)),
    .query_index_o  (query_index),
    .query_open_i   (session_mem[query_index].open),
    .query_valid_i,
    .query_ready_o,
    .query_session_i,
    .query_bytes_i,
    .grant_valid_o,
    .grant_ready_i,
    .grant_granted_o,
    .meta_valid_i   (tx_meta_valid_i),
    .meta_ready_o   (tx_meta_ready_o),
    .meta_session_i (tx_meta_session_i),
    .meta_bytes_i   (tx_meta_bytes_i),
    .in_valid_i     (tx_valid_i),
    .in_ready_o     (tx_ready_o),
    .in_data_i      (tx_data_i),
    .in_keep_i      (tx_keep_i),
    .in_last_i      (tx_last_i),
    .mac_valid_o    (mac_tx_valid_o),
    .mac_ready_i    (mac_tx_ready_i),
    .mac_data_o     (mac_tx_data_o),
    .mac_keep_o     (mac_tx_keep_o),
    .mac_last_o     (mac_tx_last_o),
    .mac_dest_o     (mac_tx_dest_o),
    .mac_bytes_o    (mac_tx_bytes_o),
    .mac_control_o  (mac_tx_control_o),
    .sent_o         (tx_sent),
    .sent_bytes_o   (tx_sent_bytes),
    .unknown_o      (count[CountTxUnknown]),
    .oversize_o     (count[CountTxOversize]),
    .length_o       (count[CountTxLength]),
    .unreserved_o   (count[CountTxUnreserved]),
    .refused_o      (count[CountTxRefused])
  );

  unisono_poe_rx #(
    .DataBytes   (DataBytes),
    .Sessions    (Sessions),
    .DataWords   (RxDataWords),
    .ControlWords(RxControlWords),
    .MaxPayload  (MaxPayload),
    .MaxControl  (MaxControl),
    .RxPause     (RxPause)
  ) u_rx (
    .clk_i,
    .rst_ni,
    .lookup_node_o   (lookup_source),
    .lookup_open_i   (reg_state_q != RegClear && lookup_found.open &&
                      32'(lookup_source) < Nodes),
    .lookup_index_i  (lookup_found.index),
    .mac_valid_i     (mac_rx_valid_i),
    .mac_ready_o     (mac_rx_ready_o),
    .mac_data_i      (mac_rx_data_i),
    .mac_keep_i      (mac_rx_keep_i),
    .mac_last_i      (mac_rx_last_i),
    .mac_source_i    (mac_rx_source_i),
    .mac_bytes_i     (mac_rx_bytes_i),
    .mac_control_i   (mac_rx_control_i),
    .mac_error_i     (mac_rx_error_i),
    .meta_valid_o    (rx_meta_valid_o),
    .meta_ready_i    (rx_meta_ready_i),
    .meta_session_o  (rx_meta_session_o),
    .meta_bytes_o    (rx_meta_bytes_o),
    .out_valid_o     (rx_valid_o),
    .out_ready_i     (rx_ready_i),
    .out_data_o      (rx_data_o),
    .out_keep_o      (rx_keep_o),
    .out_last_o      (rx_last_o),
    .received_o      (rx_received),
    .received_bytes_o(rx_received_bytes),
    .unknown_o       (count[CountRxUnknown]),
    .length_o        (count[CountRxLength]),
    .damaged_o       (count[CountRxDamaged]),
    .full_o          (count[CountRxFull])
  );

  // Frames with missing or wrong bytes are dropped here.
  assign rx_meta_error_o = 1'b0;

endmodule
