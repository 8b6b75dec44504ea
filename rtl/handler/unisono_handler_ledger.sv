// The messages of a slot that are under way: each has a place, which says whose next packet is due.
//
//   packet 0 of a new message   gets a place, if one is free and a handler is loaded; else the message is refused
//   the next packet             goes on
//   an earlier one              is a copy: dropped
//   a later one                 a packet is missing: the message ends, and its sender is told which
//   of no message               a stray: dropped, as all that comes for a message that has ended
//   none for two to three ticks the message ends
//
// What goes on, goes on as items: a packet's words, or one that closes. Every message that has a place has exactly one
// last packet or one item that closes it, behind all its packets; when what this has led to has left the station, the
// place is free again (`free_*`). The last place is for messages that are refused, so the frame that says so has one.
//
// The headers of a message's first packet are kept for what goes out (`template_*`).
//
// Latency: 3 cycles from a frame's first word to the packet's first. Throughput: a word per cycle, and two cycles more
// for each packet.
module unisono_handler_ledger
  import unisono_handler_station_pkg::*;
#(
  parameter int unsigned Format = 1,  // format_e
  parameter int unsigned Slot = 0,
  parameter int unsigned Messages = 16,  // places: a power of two, 2 to 64
  localparam int unsigned PlaceBits = $clog2(Messages)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  loaded_i,  // there is a handler
  input  logic                  tick_i,  // of patience
  input  logic                  free_valid_i,
  input  logic [PlaceBits-1:0]  free_place_i,
  input  logic [PlaceBits-1:0]  template_place_i,
  output frame_word_t           template_o,  // in the same cycle

  input  logic                  in_valid_i,  // frames, headers first
  output logic                  in_ready_o,
  input  frame_word_t           in_data_i,
  input  logic [FrameBytes-1:0] in_keep_i,
  input  logic                  in_last_i,

  output logic                  out_valid_o,
  input  logic                  out_ready_i,
  output frame_word_t           out_data_o,
  output logic [FrameBytes-1:0] out_keep_o,
  output logic                  out_last_o,
  output logic [PlaceBits-1:0]  out_place_o,
  output about_t                out_about_o,

  output logic [31:0]           counter_messages_o,  // that got a place
  output logic [31:0]           counter_refused_o,
  output logic [31:0]           counter_copies_o,
  output logic [31:0]           counter_strays_o
);

  if (Messages < 2 || Messages > 64 || 2 ** PlaceBits != Messages) begin : gen_bad_messages
    $error("unisono_handler_ledger: Messages must be a power of two, 2 to 64");
  end

  typedef logic [PlaceBits-1:0] place_t;
  localparam place_t Spare = '1;

  typedef struct packed {
    logic [15:0] job;
    logic [15:0] source;
    logic [15:0] message;
  } key_t;

  logic [Messages-1:0] used_q, ended_q, hits, hits_q, late;
  key_t [Messages-1:0] key_q;
  logic [Messages-1:0][23:0] next_q, packets_q;
  logic [Messages-1:0][1:0] age_q;
  (* ram_style = "distributed" *) frame_word_t templates_q [Messages];
  assign template_o = templates_q[template_place_i];

  typedef enum logic [2:0] {
    StateIdle,
    StateCompare,
    StateDecide,
    StatePass,
    StateEmpty,  // a packet without bytes
    StateDrop,
    StateClose
  } state_e;

  state_e state_q;
  // verilator lint_off UNUSEDSIGNAL
  facts_t facts, facts_q;
  // verilator lint_on UNUSEDSIGNAL
  frame_word_t word_q;
  logic last_q, hit_q, room_q, close_q, is_late, over_q, same_q, due_now_q, early_q;
  place_t place_q, room_place_q, late_place, late_place_q, hit_place;
  reason_e reason_q;
  key_t key;
  logic [23:0] due_q, due, said;
  assign facts = facts_of(format_e'(Format), in_data_i);
  assign key = '{facts.job, facts.source, facts.message};
  // A message has one place at most.
  always_comb begin
    late_place = '0;
    hit_place = '0;
    due = '0;
    said = '0;
    for (int unsigned i = 0; i < Messages; i++) begin
      hits[i] = used_q[i] && place_t'(i) != Spare && key_q[i] == key;
      late[i] = used_q[i] && !ended_q[i] && age_q[i] == 2'd3;
      if (hits_q[i]) hit_place |= place_t'(i);
      if (hits_q[i]) due |= next_q[i];
      if (hits_q[i]) said |= packets_q[i];
    end
    for (int unsigned i = Messages; i > 0; i--) if (late[i-1]) late_place = place_t'(i - 1);
  end
  assign is_late = late[late_place_q];

  // What is done about the frame whose headers have been looked up.
  logic decide, is_first, fresh, refuse, onward, missing, copy, stray, begins;
  place_t place;
  assign decide = state_q == StateDecide;
  assign is_first = facts_q.packet == '0;
  assign fresh = !hit_q && is_first && room_q && loaded_i;
  assign refuse = !hit_q && is_first && !(room_q && loaded_i);
  assign onward = hit_q && !over_q && same_q && due_now_q;
  assign copy = hit_q && !over_q && same_q && early_q;
  assign missing = hit_q && !over_q && !(same_q && (due_now_q || early_q));
  assign stray = hit_q ? over_q : !is_first;
  assign begins = decide && (fresh || (refuse && !used_q[Spare]));
  assign place = fresh ? room_place_q : refuse ? Spare : place_q;

  always_ff @(posedge clk_i) begin
    late_place_q <= late_place;
    if (state_q == StateIdle) begin
      facts_q <= facts;
      word_q <= in_data_i;
      last_q <= in_last_i;
      room_q <= used_q[Messages-2:0] != '1;
      reason_q <= ReasonLate;
      close_q <= 1'b1;
      hits_q <= hits;
      place_q <= late_place_q;
      due_q <= next_q[late_place_q];
      for (int unsigned i = Messages - 1; i > 0; i--) if (!used_q[i-1]) room_place_q <= place_t'(i - 1);
    end
    if (state_q == StateCompare) begin
      hit_q <= hits_q != '0;
      place_q <= hit_place;
      due_q <= due;
      over_q <= (hits_q & ended_q) != '0;
      same_q <= facts_q.packets == said;
      due_now_q <= facts_q.packet == due;
      early_q <= facts_q.packet < due;
    end
    if (decide) begin
      place_q <= place;
      close_q <= refuse || missing;
      reason_q <= missing ? ReasonOrder : loaded_i ? ReasonRoom : ReasonHandler;
      if (refuse) due_q <= '0;
      if (begins) begin
        templates_q[place] <= word_q;
        key_q[place] <= '{facts_q.job, facts_q.source, facts_q.message};
        packets_q[place] <= facts_q.packets;
      end
      if (fresh || onward) next_q[place] <= facts_q.packet + 24'd1;
    end
    for (int unsigned i = 0; i < Messages; i++) begin
      // Time in which somebody waits here is not the sender's.
      if (tick_i && !in_valid_i && age_q[i] != 2'd3) age_q[i] <= age_q[i] + 2'd1;
      if (decide && place == place_t'(i) && (fresh || onward)) age_q[i] <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StateIdle;
      used_q <= '0;
      ended_q <= '0;
      counter_messages_o <= '0;
      counter_refused_o <= '0;
      counter_copies_o <= '0;
      counter_strays_o <= '0;
    end else begin
      if (free_valid_i) used_q[free_place_i] <= 1'b0;
      case (state_q)
        StateIdle: begin
          if (in_valid_i) state_q <= StateCompare;
          else if (is_late) begin
            ended_q[late_place_q] <= 1'b1;
            state_q <= StateClose;
          end
        end
        StateCompare: state_q <= StateDecide;
        StateDecide: begin
          if (fresh || onward) begin
            state_q <= last_q ? StateEmpty : StatePass;
            ended_q[place] <= facts_q.packet + 24'd1 == facts_q.packets;
          end else if (!refuse || !used_q[Spare]) begin
            state_q <= !last_q ? StateDrop : refuse || missing ? StateClose : StateIdle;
            if (refuse || missing) ended_q[place] <= 1'b1;
          end
          if (begins) used_q[place] <= 1'b1;
          counter_messages_o <= counter_messages_o + 32'(fresh);
          counter_refused_o <= counter_refused_o + 32'(begins && refuse);
          counter_copies_o <= counter_copies_o + 32'(copy);
          counter_strays_o <= counter_strays_o + 32'(stray);
        end
        StatePass: if (in_valid_i && out_ready_i && in_last_i) state_q <= StateIdle;
        StateDrop: if (in_valid_i && in_last_i) state_q <= close_q ? StateClose : StateIdle;
        default: if (out_ready_i) state_q <= StateIdle;  // StateEmpty, StateClose
      endcase
    end
  end

  status_t status;
  always_comb begin
    status = '0;
    status.reason = reason_q;
    status.slot = 8'(Slot);
    status.packet = 32'(due_q);
  end
  assign in_ready_o = state_q == StateIdle || state_q == StateDrop || (state_q == StatePass && out_ready_i);
  assign out_valid_o = (state_q == StatePass && in_valid_i) || state_q == StateEmpty || state_q == StateClose;
  assign out_data_o = state_q == StatePass ? in_data_i : state_q == StateClose ? FrameBits'(status) : '0;
  assign out_keep_o = state_q == StatePass ? in_keep_i : '0;
  assign out_last_o = state_q == StatePass ? in_last_i : 1'b1;
  assign out_place_o = place_q;
  always_comb begin
    out_about_o.closes = state_q == StateClose;
    out_about_o.packet = out_about_o.closes ? '0 : facts_q.packet;
    out_about_o.packets = out_about_o.closes ? '0 : facts_q.packets;
    out_about_o.source = facts_q.source;
    out_about_o.ranks = facts_q.ranks;
    out_about_o.tag = facts_q.tag;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && free_valid_i) begin
      assert (used_q[free_place_i] && ended_q[free_place_i]) else $error("%m: a place is freed that is not over");
    end
    if (rst_ni && in_valid_i && state_q == StateIdle) begin
      assert ($onehot0(hits)) else $error("%m: a message has two places");
    end
  end
`endif

endmodule
