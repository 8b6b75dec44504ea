// The control of a switch's unit: decides which message goes on, from which ports, folded or not, and to which ports.
//
// It looks at one run at a time, whenever something of it has changed; what may go on comes first, and takes the place of
// a look that has not decided yet (unisono_switch_runs). What waits at the heads of the ports' queues is judged
// (unisono_switch_judge): a fold waits for all shares from below, with equal sequence, signature, datatype, length and
// tag; everything else goes on alone. A run carries one message up and one down at a time (unisono_switch_transfer), in
// the order of its program.
//
// A short message whose data are all here, and for which all receivers have a buffer, goes at once. Otherwise
//   1. the receivers that must be asked are asked: switches, and those without a buffer;
//   2. the senders that wait are granted a window, while the receivers are still asked: all senders have called, and
//      the window is the run's own, so nothing else waits for it;
//   3. segments go as they are here and the receivers' limits allow, and the window is raised as they have gone.
//
// Heads that differ in one call, and messages that no tree carries, end the run: each neighbour gets a grant with a
// signature that is nobody's, and what still comes of the call is thrown away (unisono_switch_failures).
//
// Here are the states of a look, and what joins these parts; unisono_switch_commands says it to the ports.
//
// Latency: 12 cycles from an event to the start of a fold, if nothing else is urgent. One decision at a time.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_switch_control
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,           // 4 to MaxPorts
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t Funcs = SwitchFuncs,
  parameter int unsigned WindowSegments = 4,          // segments of a run's window
  parameter int unsigned CountBits = 8,       // of words of a segment
  parameter int unsigned TagBits = 4,         // of folds under way
  localparam int unsigned Tags = 2 ** TagBits
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  input  logic                              open_valid_i,
  input  run_t                              open_run_i,
  input  terms_t                            open_terms_i,

  // The communicator table's entry of the run looked at, 1 cycle later.
  output run_t                              look_run_o,
  input  entry_head_t                       head_i,
  input  port_entry_t [Ports-1:0]           ports_i,

  // The ports.
  input  logic  [Ports-1:0]                 event_valid_i,
  input  run_t  [Ports-1:0]                 event_run_i,
  input  look_t [Ports-1:0]                 look_i,
  input  logic  [Ports-1:0][15:0]           generation_i,
  input  logic  [Ports-1:0]                 out_ready_i,
  input  logic  [Ports-1:0]                 read_ready_i,
  output logic  [Ports-1:0]                 pop_o,
  output logic                              discard_o,
  output logic  [Ports-1:0]                 pop_grant_o,
  output logic  [Ports-1:0]                 take_credit_o,
  output logic  [Ports-1:0]                 window_open_o,
  output logic                              window_extended_o,   // with it
  output extension_t                        window_extension_o,
  output logic  [Ports-1:0]                 window_raise_o,
  output logic  [Ports-1:0]                 window_close_o,
  output switch_bytes_t                     window_limit_o,
  output logic  [Ports-1:0]                 read_o,
  output logic  [Ports-1:0]                 read_place_o,
  output logic  [15:0]                      read_bytes_o,
  output logic  [Ports-1:0]                 send_o,
  output logic  [Ports-1:0]                 send_by_grant_o,
  output send_t                             send_message_o,
  output logic  [Ports-1:0][15:0]           send_generation_o,

  // The fold.
  output logic                              start_valid_o,
  input  logic                              start_ready_i,
  output logic [Ports-1:0]                  start_ports_o,
  output func_e                             start_func_o,
  output datatype_e                         start_dtype_o,
  output logic [CountBits-1:0]              start_words_o,
  output logic [TagBits-1:0]                start_tag_o,
  output logic [Tags-1:0][Ports-1:0]        masks_o,       // to which ports the result of each goes
  input  logic [Tags-1:0]                   done_i,        // the last word of a result has gone there

  // What the run waits for, when it is left: as in unisono_switch_waits.
  output logic                              note_valid_o,
  output way_t                              note_way_o,
  output logic                              note_waits_o,
  output logic                              note_takes_o,
  output logic [4:0]                        note_opcode_o,
  output logic [31:0]                       note_sequence_o,
  output logic [Ports-1:0]                  note_ports_o,

  output logic [31:0]                       counter_messages_o,   // that have gone on
  output logic [31:0]                       counter_mismatches_o
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_control: Ports must be 4 to %0d", MaxPorts);
  end

  localparam int unsigned CountWidth = TagBits + 1;

  typedef logic [Ports-1:0] ports_t;

  // ---------------------------------------------------------------- which run
  run_t   run_q;
  logic   down_q;                // which way is looked at
  way_t   way;
  terms_t my_terms_q;
  look_t [Ports-1:0] look_q;     // as it was when the look began
  logic [Ports-1:0][15:0] generations_q;
  (* ram_style = "distributed" *) terms_t terms_q [UnitEntries];

  assign way = {run_q, down_q};
  assign look_run_o = run_q;

  // Where the look is, and what is decided.
  logic pick, look, begin_, other_way, place, action, judged, transfer, start;
  logic begins, windows, asks, segments, starts, keeps, over, fails;
  logic turn;                    // nothing goes on this way
  logic again_way, again_run;
  ports_t leave_ports;

  // ---------------------------------------------------------------- the next look
  logic   next_valid, next_urgent, next_yields;
  way_t   next_way;
  logic   ended_valid;           // a fold of this way is over
  way_t   ended_way;

  unisono_switch_runs #(
    .Ports(Ports)
  ) u_runs (
    .clk_i,
    .rst_ni,
    .open_valid_i,
    .open_run_i,
    .event_valid_i,
    .event_run_i,
    .ended_valid_i(ended_valid),
    .ended_way_i  (ended_way),
    .way_i        (way),
    .leave_i      (turn),
    .leave_any_i  (begin_),
    .leave_ports_i(leave_ports),
    .again_way_i  (again_way),
    .again_run_i  (again_run),
    .valid_o      (next_valid),
    .urgent_o     (next_urgent),
    .yields_o     (next_yields),
    .way_o        (next_way),
    .take_i       (pick)
  );

  // ---------------------------------------------------------------- what waits at the heads
  ports_t      neighbours, way_ports, place_port, missing_shares;
  logic        is_several, nothing, past, skips, mine, calls_differ, immediate;
  waiting_t    lead;
  transfer_t   fresh, message;
  ports_t      fresh_in, fresh_in_place, fresh_out, fresh_out_eager;

  unisono_switch_judge #(
    .Ports    (Ports),
    .Datatypes(Datatypes),
    .Funcs    (Funcs)
  ) u_judge (
    .clk_i,
    .rst_ni,
    .run_i          (run_q),
    .down_i         (down_q),
    .head_i,
    .ports_i,
    .eager_limit_i  (my_terms_q.eager_limit),
    .look_i,
    .look_q_i       (look_q),
    .neighbours_o   (neighbours),
    .way_ports_o    (way_ports),
    .begin_i        (begin_),
    .is_several_o   (is_several),
    .nothing_o      (nothing),
    .place_i        (place),
    .past_o         (past),
    .skips_o        (skips),
    .mine_o         (mine),
    .place_port_o   (place_port),
    .action_i       (action),
    .lead_o         (lead),
    .differs_o      (calls_differ),
    .missing_o      (missing_shares),
    .immediate_o    (immediate),
    .message_o      (fresh),
    .in_o           (fresh_in),
    .in_place_o     (fresh_in_place),
    .out_o          (fresh_out),
    .out_eager_o    (fresh_out_eager),
    .open_valid_i,
    .open_run_i,
    .fails_i        (fails),
    .over_i         (over && message.several),
    .over_next_i    (message.next),
    .over_sequence_i(message.sequence_)
  );

  // ---------------------------------------------------------------- a message under way
  ports_t        in, in_place, out, out_eager, by_grant, by_write, asked, missing;
  logic          active, immediate_q, last_segment, here, takes, receiver_differs, raises, window_extended;
  logic [15:0]   length;
  switch_bytes_t window_end;
  extension_t    window_extension;
  logic [CountWidth-1:0] outstanding, outstanding_next;

  unisono_switch_transfer #(
    .Ports         (Ports),
    .WindowSegments(WindowSegments),
    .CountWidth    (CountWidth)
  ) u_transfer (
    .clk_i,
    .rst_ni,
    .open_valid_i,
    .open_run_i,
    .way_i             (way),
    .terms_i           (my_terms_q),
    .look_i,
    .look_q_i          (look_q),
    .read_i            (look),
    .active_o          (active),
    .take_i            (judged),
    .message_i         (fresh),
    .immediate_i       (immediate),
    .in_i              (fresh_in),
    .in_place_i        (fresh_in_place),
    .out_i             (fresh_out),
    .out_eager_i       (fresh_out_eager),
    .message_o         (message),
    .immediate_o       (immediate_q),
    .in_o              (in),
    .in_place_o        (in_place),
    .out_o             (out),
    .by_grant_o        (by_grant),
    .by_write_o        (by_write),
    .out_eager_o       (out_eager),
    .asks_o            (asked),
    .length_o          (length),
    .last_o            (last_segment),
    .here_o            (here),
    .missing_o         (missing),
    .takes_o           (takes),
    .differs_o         (receiver_differs),
    .outstanding_next_i(outstanding_next),
    .raises_o          (raises),
    .window_end_o      (window_end),
    .window_extended_o (window_extended),
    .window_extension_o(window_extension),
    .asks_i            (asks),
    .windows_i         (windows),
    .segment_i         (start),
    .keep_i            (keeps),
    .over_i            (over),
    .fails_i           (fails)
  );

  // ---------------------------------------------------------------- folds under way
  port_t last_in;                // of the cell from which the result comes
  logic  tag_there, free_ways;
  always_comb begin
    last_in = '0;
    for (int p = 0; p < int'(Ports); p++) if (in[p]) last_in = port_t'(p);
  end

  unisono_switch_folds #(
    .Ports  (Ports),
    .TagBits(TagBits)
  ) u_folds (
    .clk_i,
    .rst_ni,
    .room_o            (tag_there),
    .clear_o           (free_ways),
    .outstanding_o     (outstanding),
    .outstanding_next_o(outstanding_next),
    .begin_i           (begins),
    .way_i             (way),
    .out_i             (out),
    .from_i            (last_in),
    .tag_o             (start_tag_o),
    .masks_o,
    .done_i,
    .ended_valid_o     (ended_valid),
    .ended_way_o       (ended_way)
  );
  // There is room for the next segment inside.
  logic room;
  assign room = (out & ~out_ready_i) == '0 && (in & ~read_ready_i) == '0 && tag_there && free_ways;

  // ---------------------------------------------------------------- failed runs
  ports_t      thrown, thrown_grants;
  logic        latest_differs;
  logic [31:0] latest_sequence, latest_signature, fail_sequence_q, fail_signature_q;

  unisono_switch_failures #(
    .Ports(Ports)
  ) u_failures (
    .clk_i,
    .rst_ni,
    .open_valid_i,
    .open_run_i,
    .run_i             (run_q),
    .look_i,
    .thrown_o          (thrown),
    .thrown_grants_o   (thrown_grants),
    .differs_o         (latest_differs),
    .latest_sequence_o (latest_sequence),
    .latest_signature_o(latest_signature),
    .over_i            (over),
    .over_sequence_i   (message.sequence_),
    .over_signature_i  (message.signature),
    .fails_i           (fails),
    .fail_sequence_i   (fail_sequence_q)
  );

  // ---------------------------------------------------------------- the look
  unisono_switch_steps u_steps (
    .clk_i,
    .rst_ni,
    .next_valid_i  (next_valid),
    .next_urgent_i (next_urgent),
    .next_yields_i (next_yields),
    .pick_o        (pick),
    .look_o        (look),
    .begin_o       (begin_),
    .other_way_o   (other_way),
    .place_o       (place),
    .action_o      (action),
    .judged_o      (judged),
    .transfer_o    (transfer),
    .start_o       (start),
    .thrown_i      ((thrown | thrown_grants) != '0),
    .latest_differs_i(latest_differs),
    .active_i      (active),
    .several_i     (is_several),
    .nothing_i     (nothing),
    .past_i        (past),
    .skips_i       (skips),
    .mine_i        (mine),
    .differs_i     (calls_differ),
    .missing_i     (missing_shares != '0),
    .fresh_immediate_i(immediate),
    .receiver_differs_i(receiver_differs),
    .wants_window_i(!message.granted && by_write != '0),
    .gone_i        (message.gone),
    .here_i        (here),
    .room_i        (room),
    .immediate_i   (immediate_q),
    .folded_i      (outstanding == '0),
    .raises_i      (raises),
    .empty_i       (length == '0),
    .asks_may_i    ((asked & ~out_ready_i) == '0),
    .windows_may_i ((by_write & ~out_ready_i) == '0),
    .fails_may_i   ((neighbours & ~out_ready_i) == '0),
    .start_ready_i,
    .turn_o        (turn),
    .again_way_o   (again_way),
    .again_run_o   (again_run),
    .asks_o        (asks),
    .windows_o     (windows),
    .segments_o    (segments),
    .starts_o      (starts),
    .keeps_o       (keeps),
    .over_o        (over),
    .fails_o       (fails)
  );

  always_ff @(posedge clk_i) begin
    if (pick) {run_q, down_q} <= next_way;
    else if (other_way) down_q <= !down_q;
    if (open_valid_i) terms_q[entry_of(open_run_i)] <= open_terms_i;
    my_terms_q <= terms_q[entry_of(run_q)];
    if (begin_) begin
      look_q        <= look_i;
      generations_q <= generation_i;
    end
    // With which call the run ends, if it does.
    if (begin_) begin
      fail_sequence_q  <= latest_sequence;
      fail_signature_q <= latest_signature;
    end else if (judged || place) begin
      fail_sequence_q  <= lead.sequence_;
      fail_signature_q <= lead.signature;
    end else if (transfer) begin
      fail_sequence_q  <= message.sequence_;
      fail_signature_q <= message.signature;
    end
  end

  // ---------------------------------------------------------------- commands
  unisono_switch_commands #(
    .Ports(Ports)
  ) u_commands (
    .throws_i        (begin_),
    .asks_i          (asks),
    .windows_i       (windows),
    .segments_i      (segments),
    .read_all_i      (keeps && start),
    .over_i          (over),
    .fails_i         (fails),
    .run_i           (run_q),
    .neighbours_i    (neighbours),
    .thrown_i        (thrown),
    .thrown_grants_i (thrown_grants),
    .fail_sequence_i (fail_sequence_q),
    .fail_signature_i(fail_signature_q),
    .generation_i    (generations_q),
    .message_i       (message),
    .immediate_i     (immediate_q),
    .in_i            (in),
    .in_place_i      (in_place),
    .out_i           (out),
    .out_eager_i     (out_eager),
    .by_grant_i      (by_grant),
    .by_write_i      (by_write),
    .asked_i         (asked),
    .length_i        (length),
    .last_i          (last_segment),
    .window_end_i    (window_end),
    .pop_o,
    .pop_grant_o,
    .take_credit_o,
    .window_open_o,
    .window_raise_o,
    .window_close_o,
    .read_o,
    .send_o,
    .send_message_o,
    .send_generation_o
  );
  assign discard_o          = begin_;
  assign window_extended_o  = window_extended;
  assign window_extension_o = window_extension;
  assign window_limit_o     = window_end;
  assign read_place_o       = in_place;
  assign read_bytes_o       = length;
  assign send_by_grant_o    = by_grant;
  assign begins             = segments && length != '0;

  assign start_valid_o = starts;
  assign start_ports_o = in;
  assign start_func_o  = message.func;
  assign start_dtype_o = message.dtype;
  assign start_words_o = CountBits'((17'(length) + 17'(SwitchBytes - 1)) >> $clog2(SwitchBytes));

  // ---------------------------------------------------------------- what a run waits for
  // Ports from which something must come before it goes on this way: from all, or from any one.
  ports_t waits_for;
  assign waits_for   = place ? place_port : (judged ? missing_shares : (transfer ? missing : '0));
  assign leave_ports = begin_ ? way_ports : (place ? place_port & way_ports : waits_for);
  always_ff @(posedge clk_i) begin
    note_valid_o    <= rst_ni && (turn || over || fails);
    note_way_o      <= way;
    note_waits_o    <= turn && waits_for != '0;
    note_takes_o    <= transfer && takes;
    note_opcode_o   <= transfer ? message.tag.opcode : lead.tag.opcode;
    note_sequence_o <= transfer ? message.sequence_ : lead.sequence_;
    note_ports_o    <= waits_for;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counter_messages_o   <= '0;
      counter_mismatches_o <= '0;
    end else begin
      counter_messages_o   <= counter_messages_o + 32'(over);
      counter_mismatches_o <= counter_mismatches_o + 32'(fails);
    end
  end

endmodule
