// Whether a port takes what has come, by its header: it keeps to what was agreed, there is room, and a write is the
// next one of its window.
//
// A message that breaks the protocol is not taken, and is a fault; but a write of a window that has just been closed is
// late, and none. What it says of credit holds.
//
// What is compared with what was agreed, and with the window, is registered: comparisons and what follows from them do
// not fit into one cycle. The header stays for both.
//
// Latency: 1 cycle from header, terms and window; none from what there is room for, and whether the window is open.
// Throughput: a header every second cycle.

module unisono_switch_admit
  import unisono_spec_pkg::*;
  import unisono_switch_pkg::*;
(
  input  logic       clk_i,

  // Only what a message to a switch says is looked at.
  // verilator lint_off UNUSEDSIGNAL
  input  header_t    header_i,
  input  terms_t     terms_i,             // of its entry
  input  neighbour_t from_i,              // who is behind this port there
  // verilator lint_on UNUSEDSIGNAL
  input  run_t       run_i,

  // The run's window.
  input  logic [15:0]   generation_i,     // of it, or of the next one
  input  switch_bytes_t limit_i,
  input  switch_bytes_t arrived_i,        // unless it is fresh

  // One cycle later.
  input  logic found_i,                   // there is such an entry
  input  logic open_i,                    // the window
  input  logic fresh_i,                   // nothing has come to it
  input  logic whole_i,                   // all has come
  input  logic room_i,                    // in the run's queue
  input  logic buffer_free_i,
  input  logic grant_known_i,
  input  logic grants_full_i,

  output logic has_payload_o,
  output logic is_eager_o,
  output logic is_request_o,
  output logic is_write_o,
  output logic is_grant_o,
  output logic sound_o,                   // it is of this neighbour and communicator, without odd flags
  output logic accept_o,
  output logic buffers_o,                 // a short message with data, which is taken
  output logic late_o
);

  assign is_eager_o    = header_i.type_ == MessageTypeEager;
  assign is_request_o  = header_i.type_ == MessageTypeRequest;
  assign is_write_o    = header_i.type_ == MessageTypeWrite;
  assign is_grant_o    = header_i.type_ == MessageTypeGrant;

  logic          mine_q, plain_q, short_q;          // of this neighbour; without odd flags; a short message
  logic          of_window_q, now_q, closed_q, reopened_q, first_q, next_q, within_q, whole_segment_q;
  switch_bytes_t end_of_segment;
  logic [15:0]   age;
  assign end_of_segment = header_i.offset + switch_bytes_t'(header_i.segment_bytes);
  // Each opening and closing of a window makes a generation.
  assign age = generation_i - header_i.token_generation;
  always_ff @(posedge clk_i) begin
    mine_q  <= header_i.source == 32'(from_i.rank) && header_i.destination == 32'(terms_i.rank);
    plain_q <= !header_i.point_to_point && !header_i.stream && !header_i.trailer &&
               header_i.tag[31:SwitchTagWidth] == '0 && header_i.segment_bytes <= 32'(terms_i.segment_bytes);
    has_payload_o <= header_i.segment_bytes != '0 || header_i.trailer;
    short_q <= header_i.first && header_i.last && header_i.segment_bytes <= 32'(terms_i.eager_limit);
    of_window_q <= header_i.token_slot == 16'(run_i);
    now_q       <= age == 16'd0;
    closed_q    <= age == 16'd1;
    reopened_q  <= age == 16'd2;
    first_q     <= header_i.offset == '0;
    next_q      <= header_i.offset == arrived_i;
    within_q    <= end_of_segment <= limit_i;
    // A segment is whole but for the last one.
    whole_segment_q <= header_i.last || header_i.segment_bytes == 32'(terms_i.segment_bytes);
  end

  assign sound_o = found_i && mine_q && plain_q;
  assign late_o  = sound_o && is_write_o && of_window_q && (open_i ? reopened_q : closed_q);

  logic eager;
  assign eager     = sound_o && short_q && room_i && (!has_payload_o || buffer_free_i);
  assign buffers_o = is_eager_o && has_payload_o && eager;
  always_comb begin
    if (is_eager_o) begin
      accept_o = eager;
    end else if (is_request_o) begin
      accept_o = sound_o && !has_payload_o && room_i;
    end else if (is_write_o) begin
      accept_o = sound_o && open_i && (fresh_i ? first_q : next_q && !whole_i) && of_window_q && now_q && within_q &&
                 whole_segment_q;
    end else if (is_grant_o) begin
      accept_o = sound_o && !has_payload_o && (grant_known_i || !grants_full_i);
    end else begin
      accept_o = sound_o && !has_payload_o;
    end
  end

endmodule
