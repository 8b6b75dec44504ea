// The control of a switch's unit: decides which message goes on, from which ports, folded or not, and to which ports.
//
// It looks at one run at a time, whenever something of it has changed; what may go on comes first, and takes the place of
// a look that has not decided yet (unisono_switch_runs). What waits at the heads of the ports' queues is judged by the CCM: a fold waits for all shares from below, with equal sequence, signature, datatype, length and tag;
// everything else goes on alone. A run carries one message up and one down at a time, in the order of its program: of
// all-gather and gather, whose blocks come by several ports, the run's next position says whose turn it is.
//
// A short message whose data are all here, and for which all receivers have a buffer, goes at once. Otherwise
//   1. the receivers that must be asked are asked: switches, and those without a buffer;
//   2. the senders that wait are granted a window, while the receivers are still asked: all senders have called, and
//      the window is the run's own, so nothing else waits for it;
//   3. segments go as they are here and the receivers' limits allow, and the window is raised as they have gone.
//
// Heads that differ in one call, and messages that no tree carries, end the run: each neighbour gets a grant with a
// signature that is nobody's, and what still comes of the call is thrown away.
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

  localparam int unsigned AllRuns = UnitEntries * UnitRuns;

  typedef logic [Ports-1:0] ports_t;

  // A message that is granted or asked for.
  typedef struct packed {
    logic          granted;     // its senders
    logic          gone;        // all of it, into the fold
    ports_t        in;
    ports_t        in_place;    // of these, data are in a buffer
    ports_t        out;
    ports_t        out_eager;   // of these, a credit has been taken
    logic          fold;
    logic          several;     // of a collective whose blocks come by several ports
    count_t        next;        // the run's position when it is over
    switch_tag_t   tag_in;
    switch_tag_t   tag;         // that it goes on with
    func_e         func;
    datatype_e     dtype;
    logic [31:0]   sequence_;
    logic [31:0]   signature;
    switch_bytes_t bytes;
    switch_bytes_t done;        // bytes that have gone
    switch_bytes_t limit;       // of the window
    logic          extended;
    extension_t    extension;
  } transfer_t;

  (* ram_style = "distributed" *) transfer_t   transfers_q [Ways];
  (* ram_style = "distributed" *) count_t      next_q [AllRuns];
  (* ram_style = "distributed" *) logic [31:0] sequence_q [AllRuns];   // of the run whose position it is
  (* ram_style = "distributed" *) logic [31:0] failed_sequence_q [AllRuns];
  (* ram_style = "distributed" *) terms_t      terms_q [UnitEntries];
  (* ram_style = "distributed" *) logic [63:0] latest_q [AllRuns];     // sequence and signature of what went last
  logic [AllRuns-1:0] has_latest_q;
  logic [Ways-1:0]    active_q;
  logic [AllRuns-1:0] failed_q;

  // ---------------------------------------------------------------- which run
  typedef enum logic [4:0] {
    StIdle,
    StLook1,
    StLook2,
    StBegin,      // what is known is here: of a run that failed, what came is thrown away; which head is looked at
    StTurn,       // the other way
    StRoot,
    StPlace,      // of several senders, whose turn it is
    StAction1,
    StAction2,
    StAction3,
    StEval,       // what it needs
    StAsk,        // it begins: receivers are asked
    StTransfer,   // what it waits for
    StWindow,     // senders are granted
    StSegment,    // a segment goes
    StFetch1,
    StFetch2,
    StStart,
    StOver,       // the message is over
    StFail
  } state_e;

  state_e state_q;
  run_t   run_q;
  logic   down_q;                // which way is looked at
  logic   turned_q;              // the other one has been, or need not be
  logic   yields_q;              // to an urgent one, as long as nothing is decided
  way_t   way;
  terms_t terms;
  transfer_t t_q;
  logic   known_active_q;
  look_t [Ports-1:0] look_q;
  logic [Ports-1:0][15:0] generations_q;

  assign way = {run_q, down_q};
  assign look_run_o = run_q;

  // ---------------------------------------------------------------- the next look
  logic   next_valid, next_urgent, next_yields, pick;
  way_t   next_way;
  logic   ended_valid;           // a fold of this way is over
  way_t   ended_way;
  logic   turn;                  // nothing goes on this way
  logic   leave_any, again_way, again_run;
  ports_t leave_ports;

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
    .leave_any_i  (leave_any),
    .leave_ports_i(leave_ports),
    .again_way_i  (again_way),
    .again_run_i  (again_run || (pick && state_q != StIdle)),
    .valid_o      (next_valid),
    .urgent_o     (next_urgent),
    .yields_o     (next_yields),
    .way_o        (next_way),
    .take_i       (pick)
  );
  // What is looked at and has decided nothing yet is looked at again later.
  assign pick = state_q == StIdle ? next_valid
                                  : yields_q && next_urgent && state_q inside {StLook1, StLook2, StTurn, StRoot, StPlace,
                                                                               StAction1, StAction2, StAction3};

  // ---------------------------------------------------------------- folds under way
  port_t            last_in;     // of the cell from which the result comes
  logic             tag_there, free_ways, begins;
  logic [TagBits:0] outstanding;

  unisono_switch_folds #(
    .Ports  (Ports),
    .TagBits(TagBits)
  ) u_folds (
    .clk_i,
    .rst_ni,
    .room_o       (tag_there),
    .clear_o      (free_ways),
    .outstanding_o(outstanding),
    .begin_i      (begins),
    .way_i        (way),
    .out_i        (t_q.out),
    .from_i       (last_in),
    .tag_o        (start_tag_o),
    .masks_o,
    .done_i,
    .ended_valid_o(ended_valid),
    .ended_way_o  (ended_way)
  );

  // ---------------------------------------------------------------- the ports of this entry
  ports_t used, used_entries, up_port, down_ports;
  ports_t there_now, there_q;    // at whose head something waits; as it was when the look began
  // A port without members is a gap: nobody is there who could be told something.
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_used
    assign used_entries[p] = port_count_t'(p) < head_i.ports && ports_i[p].count != '0;
  end
  assign used = ports_t'((2 * Ports)'(used_entries) << head_i.first_port);
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_port
    assign up_port[p] = head_i.has_up && head_i.up == port_t'(p);
    // While blocks of a run come by several ports, only what is of that run is seen.
    assign there_now[p] = look_i[p].there && (next_q[run_q] == '0 || look_i[p].head.sequence_ == sequence_q[run_q]);
  end

  // ---------------------------------------------------------------- which head
  port_t    lead_q, lead, any_lead;
  waiting_t lead_head_q;         // with it
  logic     several_q, is_several;
  count_t   place_q, after_skip, following;
  ports_t   lead_from, any_from, way_ports, place_port;
  logic     skips;

  // Of collectives with one sender, or a fold, from below or from above; of the others from anywhere.
  assign way_ports = down_q ? up_port : used;
  assign lead_from = there_now & way_ports;
  assign any_from  = there_now & (used | up_port);
  always_comb begin
    lead     = '0;
    any_lead = '0;
    for (int p = int'(Ports) - 1; p >= 0; p--) begin
      if (lead_from[p]) lead = port_t'(p);
      if (any_from[p]) any_lead = port_t'(p);
    end
  end
  assign is_several = any_from != '0 && look_i[any_lead].head.tag.opcode inside {5'(CollectiveAllgather),
                                                                                 5'(CollectiveGather)};

  unisono_switch_places #(
    .Ports(Ports)
  ) u_places (
    .clk_i,
    .head_i,
    .ports_i,
    .up_port_i   (up_port),
    .gathers_i   (lead_head_q.tag.opcode == 5'(CollectiveGather)),
    .root_i      (lead_head_q.tag.place),
    .place_i     (place_q),
    .skips_o     (skips),
    .after_skip_o(after_skip),
    .port_o      (place_port),
    .following_o (following)
  );

  // ---------------------------------------------------------------- what is done with it
  arriving_t arriving;
  action_t   action;
  ports_t    mask, lead_port;
  logic      action_valid;
  // Only results of folds say in their tag that they go down; the CCM is told so of all that comes from above.
  logic from_above, folds, wrong_way;
  assign from_above = (lead_port & up_port) != '0;
  assign folds = lead_head_q.tag.opcode inside {5'(CollectiveBarrier), 5'(CollectiveReduce), 5'(CollectiveAllreduce),
                                                5'(CollectiveReduceScatter)};
  assign wrong_way = lead_head_q.tag.down != (folds && from_above);
  always_comb begin
    arriving          = '{tag: lead_head_q.tag, port: lead_q, member: '0};
    arriving.tag.down = from_above;
  end

  unisono_switch_ccm #(
    .Ports(Ports)
  ) u_ccm (
    .clk_i,
    .rst_ni,
    .valid_i   (state_q == StAction1),
    .head_i,
    .ports_i,
    .arriving_i(arriving),
    .valid_o   (action_valid),
    .action_o  (action),
    .mask_o    (mask),
    .down_o    (down_ports)
  );

  ports_t    in, all_there, differs;
  transfer_t fresh;              // the transfer that this head begins
  ports_t    no_credit, asked;
  logic      is_short, known_func;

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_head
    waiting_t h;
    assign h = look_q[p].head;
    assign lead_port[p] = lead_q == port_t'(p);
    assign all_there[p] = there_q[p] && h.sequence_ == lead_head_q.sequence_;
    assign differs[p]   = h.signature != lead_head_q.signature || h.dtype != lead_head_q.dtype ||
                          h.bytes != lead_head_q.bytes || h.tag != lead_head_q.tag;
    assign no_credit[p] = !look_q[p].has_credit;
    assign asked[p]     = look_q[p].head.asked;
  end
  assign in = action.kind == ActionFold ? down_ports : lead_port;
  assign is_short = lead_head_q.bytes <= switch_bytes_t'(terms.eager_limit);
  assign known_func = action.kind != ActionFold || lead_head_q.bytes == '0 ||
                      (lead_head_q.tag.func != 5'(FuncNone) &&
                       is_supported(Datatypes, Funcs, '0, func_e'({3'd0, lead_head_q.tag.func}), lead_head_q.dtype));

  // Whose grant says that it calls something else.
  ports_t grant_differs;
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_differs
    assign grant_differs[p] = look_q[p].has_grant && look_q[p].grant.sequence_ == lead_head_q.sequence_ &&
                              look_q[p].grant.signature != lead_head_q.signature;
  end

  ports_t switches;
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_switch
    assign switches[p] = look_q[p].neighbour.is_switch;
  end

  always_comb begin
    fresh = '0;
    fresh.in        = in;
    fresh.in_place  = in & ~asked;
    fresh.out       = mask;
    fresh.out_eager = is_short ? mask & ~no_credit : '0;
    fresh.fold      = action.kind == ActionFold;
    fresh.several   = several_q;
    fresh.next      = following;
    fresh.tag_in    = lead_head_q.tag;
    fresh.tag       = lead_head_q.tag;
    if (fresh.fold && !action.up) fresh.tag.down = 1'b1;
    fresh.func      = fresh.fold ? func_e'({3'd0, lead_head_q.tag.func}) : FuncNone;
    fresh.dtype     = lead_head_q.dtype;
    fresh.sequence_ = lead_head_q.sequence_;
    fresh.signature = lead_head_q.signature;
    fresh.bytes     = lead_head_q.bytes;
  end

  // ---------------------------------------------------------------- a transfer
  logic [15:0]   length;
  switch_bytes_t left, segment_end, window_end, segment;
  ports_t        out_granted, out_wrong, out_within, in_here, by_grant, by_write;
  logic          last_segment, here, room, raises;

  assign segment      = switch_bytes_t'(terms.segment_bytes);
  assign left         = t_q.bytes - t_q.done;
  assign last_segment = left <= segment;
  assign length       = last_segment ? left[15:0] : terms.segment_bytes;
  assign segment_end  = t_q.done + switch_bytes_t'(length);
  assign by_grant     = t_q.out & ~t_q.out_eager;
  assign by_write     = t_q.in & ~t_q.in_place;

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_transfer
    assign out_granted[p] = look_q[p].has_grant && look_q[p].grant.sequence_ == t_q.sequence_;
    assign out_wrong[p]   = by_grant[p] && out_granted[p] && look_q[p].grant.signature != t_q.signature;
    assign out_within[p]  = out_granted[p] && look_q[p].grant.limit >= segment_end;
    assign in_here[p]     = look_q[p].arrived >= segment_end && (length != '0 || look_q[p].whole);
  end
  always_comb begin
    last_in = '0;
    for (int p = 0; p < int'(Ports); p++) if (t_q.in[p]) last_in = port_t'(p);
  end
  // The next segment is here, and all receivers take it; and there is room for it inside.
  assign here = (by_write & ~in_here) == '0 && (by_grant & ~out_within) == '0;
  assign room = (t_q.out & ~out_ready_i) == '0 && (t_q.in & ~read_ready_i) == '0 && tag_there && free_ways;

  logic       lends, windows, over, fails;
  extension_t free_extension;
  unisono_switch_windows #(
    .WindowSegments(WindowSegments),
    .CountWidth    (TagBits + 1)
  ) u_windows (
    .clk_i,
    .rst_ni,
    .run_i        (run_q),
    .segment_i    (segment),
    .bytes_i      (t_q.bytes),
    .done_i       (t_q.done),
    .outstanding_i(outstanding),
    .granted_i    (t_q.granted),
    .limit_i      (t_q.limit),
    .extended_i   (t_q.extended),
    .extension_i  (t_q.extension),
    .lends_o      (lends),
    .free_o       (free_extension),
    .end_o        (window_end),
    .raises_o     (raises),
    .grant_i      (windows && !t_q.granted),
    .over_i       (over),
    .fails_i      (fails),
    .open_valid_i,
    .open_run_i
  );

  // ---------------------------------------------------------------- failed runs
  ports_t      thrown, thrown_grants, latest_differs;
  logic [31:0] latest_sequence, latest_signature;
  assign {latest_sequence, latest_signature} = latest_q[run_q];
  logic        failed;
  logic [31:0] failed_sequence, fail_sequence_q, fail_signature_q;
  assign failed          = failed_q[run_q];
  assign failed_sequence = failed_sequence_q[run_q];
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_thrown
    assign thrown[p]        = failed && look_i[p].there && look_i[p].head.sequence_ == failed_sequence;
    // Of a call of which nothing is here any more, a neighbour may still say that it was another one.
    assign latest_differs[p] = has_latest_q[run_q] && look_i[p].has_grant &&
                               look_i[p].grant.sequence_ == latest_sequence &&
                               look_i[p].grant.signature != latest_signature;
    assign thrown_grants[p] = failed && look_i[p].has_grant && look_i[p].grant.sequence_ == failed_sequence;
  end

  // ---------------------------------------------------------------- the states
  logic immediate_q, immediate;  // nobody is asked or granted
  assign immediate = is_short && (in & asked) == '0 && (mask & no_credit) == '0;

  ports_t neighbours, asks;
  assign neighbours = used | up_port;
  assign asks       = t_q.out & (t_q.bytes <= switch_bytes_t'(terms.eager_limit) ? ~t_q.out_eager : switches);

  state_e state_d;
  logic   keep, asks_now, segments, starts, read_all;

  always_comb begin
    state_d = state_q;
    turn    = 1'b0;
    again_way = 1'b0;
    again_run = 1'b0;
    keep    = 1'b0;     // t_q is kept
    over    = 1'b0;
    fails   = 1'b0;
    asks_now = 1'b0;
    windows = 1'b0;
    segments = 1'b0;
    starts  = 1'b0;
    unique case (state_q)
      StIdle:  state_d = StIdle;
      StLook1: state_d = StLook2;
      StLook2: state_d = StBegin;
      StBegin: begin
        if ((thrown | thrown_grants) != '0) begin
          again_run = 1'b1;
          state_d   = StIdle;
        end else if (latest_differs != '0) begin
          state_d = StFail;
        end else if (known_active_q) begin
          state_d = StTransfer;
        end else if (is_several) begin
          state_d = StRoot;
        end else if (lead_from == '0) begin
          turn = 1'b1;
        end else begin
          state_d = StAction1;
        end
      end
      StRoot: state_d = StPlace;
      StPlace: begin
        if (place_q == head_i.members) state_d = StFail;
        else if (!skips) begin
          if ((place_port & there_q & way_ports) != '0) state_d = StAction1;
          else turn = 1'b1;
        end
      end
      StAction1: state_d = StAction2;
      StAction2: state_d = StAction3;
      StAction3: state_d = StEval;
      StEval: begin
        if (action.kind == ActionNothing || wrong_way || !known_func || (in & all_there & differs) != '0 || grant_differs != '0) state_d = StFail;
        else if ((in & ~all_there) != '0) turn = 1'b1;
        else state_d = immediate ? StTransfer : StAsk;
      end
      StAsk: begin
        if ((asks & ~out_ready_i) == '0) begin
          asks_now  = 1'b1;
          keep      = 1'b1;
          again_way = 1'b1;
        end else begin
          again_run = 1'b1;
        end
        state_d = StIdle;
      end
      StTransfer: begin
        if (out_wrong != '0) begin
          state_d = StFail;
        end else if (!t_q.granted && by_write != '0) begin
          state_d = StWindow;
        end else if (!t_q.gone && here) begin
          if (!room) begin
            again_run = 1'b1;
            turn      = 1'b1;
          end else if (immediate_q) begin
            segments = 1'b1;
            state_d  = StFetch1;
          end else begin
            state_d = StSegment;
          end
        end else if (t_q.gone && outstanding == '0) begin
          state_d = StOver;
        end else if (raises) begin
          state_d = StWindow;
        end else begin
          turn = 1'b1;
        end
      end
      StWindow: begin
        if ((by_write & ~out_ready_i) == '0) begin
          windows   = 1'b1;
          keep      = 1'b1;
          again_way = 1'b1;
        end else begin
          again_run = 1'b1;
        end
        state_d = StIdle;
      end
      StSegment: begin
        segments = 1'b1;
        state_d  = StFetch1;
      end
      StFetch1: state_d = StFetch2;
      StFetch2: state_d = StStart;
      StStart: begin
        starts = length != '0;
        if (length == '0 || start_ready_i) begin
          keep = !immediate_q;
          if (immediate_q) begin
            state_d = StOver;
          end else begin
            again_way = 1'b1;
            state_d   = StIdle;
          end
        end
      end
      StOver: begin
        over      = 1'b1;
        again_run = 1'b1;
        state_d   = StIdle;
      end
      StFail: begin
        if ((neighbours & ~out_ready_i) == '0) fails = 1'b1;
        again_run = 1'b1;
        state_d   = StIdle;
      end
      default: state_d = StIdle;
    endcase
    if (turn) state_d = turned_q ? StIdle : StTurn;
    if (state_q == StTurn) state_d = StLook2;
    if (pick) state_d = StLook1;
  end

  transfer_t kept;
  always_comb begin
    kept = t_q;
    if (windows) begin
      kept.granted = 1'b1;
      kept.limit   = window_end;
      if (!t_q.granted) begin
        kept.extended  = lends;
        kept.extension = free_extension;
      end
    end
    if (state_q == StStart) begin
      kept.done = segment_end;
      kept.gone = last_segment;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      state_q <= state_d;
    end
    if (pick) begin
      {run_q, down_q} <= next_way;
      turned_q        <= next_urgent;
      yields_q        <= next_yields;
    end
    if (state_q == StTurn && !pick) begin
      down_q   <= !down_q;
      turned_q <= 1'b1;
    end
    terms <= terms_q[entry_of(run_q)];
    if (state_q == StLook2) begin
      t_q            <= transfers_q[way];
      known_active_q <= active_q[way];
      immediate_q    <= 1'b0;
    end
    if (state_q == StBegin) begin
      look_q        <= look_i;
      there_q       <= there_now;
      generations_q <= generation_i;
      several_q     <= is_several;
      lead_q        <= is_several ? any_lead : lead;
      lead_head_q   <= is_several ? look_i[any_lead].head : look_i[lead].head;
      place_q       <= next_q[run_q];
    end
    if (state_q == StPlace) begin
      if (skips) begin
        place_q <= after_skip;
      end else begin
        for (int p = 0; p < int'(Ports); p++) begin
          if (place_port[p]) begin
            lead_q      <= port_t'(p);
            lead_head_q <= look_q[p].head;
          end
        end
      end
    end
    if (state_q == StBegin) begin
      fail_sequence_q  <= latest_sequence;
      fail_signature_q <= latest_signature;
    end else if (state_q == StEval) begin
      t_q         <= fresh;
      immediate_q <= immediate;
      fail_sequence_q  <= lead_head_q.sequence_;
      fail_signature_q <= lead_head_q.signature;
    end else if (state_q == StPlace) begin
      fail_sequence_q  <= lead_head_q.sequence_;
      fail_signature_q <= lead_head_q.signature;
    end else if (state_q == StTransfer) begin
      fail_sequence_q  <= t_q.sequence_;
      fail_signature_q <= t_q.signature;
    end
    if (keep) transfers_q[way] <= kept;
    if (over) latest_q[run_q] <= {t_q.sequence_, t_q.signature};
    if (fails) failed_sequence_q[run_q] <= fail_sequence_q;
    if (open_valid_i) terms_q[entry_of(open_run_i)] <= open_terms_i;
  end

  // Positions of runs.
  logic several_over;
  assign several_over = over && t_q.several;
  always_ff @(posedge clk_i) begin
    if (open_valid_i || fails || several_over) next_q[open_valid_i ? open_run_i : run_q] <= several_over ? t_q.next : '0;
    if (several_over) sequence_q[run_q] <= t_q.sequence_;
  end

  for (genvar r = 0; r < int'(AllRuns); r++) begin : gen_run
    logic opens, mine;
    assign opens = open_valid_i && open_run_i == run_t'(r);
    assign mine  = run_q == run_t'(r);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || opens) begin
        failed_q[r] <= 1'b0;
        active_q[2*r+:2] <= '0;
        has_latest_q[r] <= 1'b0;
      end else begin
        if (over && mine) has_latest_q[r] <= 1'b1;
        if (fails && mine) begin
          failed_q[r] <= 1'b1;
          active_q[2*r+:2] <= '0;
        end else if (mine && (asks_now || over)) begin
          active_q[2*r+32'(down_q)] <= asks_now;
        end
      end
    end
  end

  // ---------------------------------------------------------------- commands
  always_comb begin
    discard_o      = state_q == StBegin;
    // A head whose buffer has been read is over at once, or it might be thrown away with a call that fails meanwhile.
    pop_o = '0;
    if (state_q == StBegin) pop_o = thrown;
    else if (over) pop_o = immediate_q ? t_q.in : by_write;
    else if (read_all) pop_o = t_q.in_place;
    pop_grant_o    = state_q == StBegin ? thrown_grants : (over ? by_grant : '0);
    take_credit_o  = asks_now ? t_q.out_eager : (segments && immediate_q ? t_q.out : '0);
    window_open_o  = windows && !t_q.granted ? by_write : '0;
    window_extended_o  = lends;
    window_extension_o = free_extension;
    window_raise_o = windows && t_q.granted ? by_write : '0;
    window_close_o = fails ? neighbours : '0;
    window_limit_o = window_end;
    read_o         = segments && length != '0 ? t_q.in : '0;
    read_place_o   = t_q.in_place;
    read_bytes_o   = length;
    begins         = segments && length != '0;

    send_o          = '0;
    send_by_grant_o = by_grant;
    send_message_o  = '0;
    send_message_o.entry         = entry_of(run_q);
    send_message_o.dtype         = t_q.dtype;
    send_message_o.tag           = t_q.tag;
    send_message_o.sequence_     = t_q.sequence_;
    send_message_o.signature     = t_q.signature;
    send_message_o.message_bytes = t_q.bytes;
    send_message_o.first         = 1'b1;
    send_message_o.last          = 1'b1;
    if (asks_now) begin
      send_o = asks;
      send_message_o.kind = MessageTypeRequest;
    end else if (windows) begin
      send_o = by_write;
      send_message_o.kind          = MessageTypeGrant;
      send_message_o.tag           = t_q.tag_in;
      send_message_o.message_bytes = window_end;
      send_message_o.token_slot    = 16'(run_q);
    end else if (segments) begin
      send_o = t_q.out;
      send_message_o.kind          = MessageTypeEager;
      send_message_o.first         = t_q.done == '0;
      send_message_o.last          = last_segment;
      send_message_o.offset        = t_q.done;
      send_message_o.segment_bytes = length;
    end else if (fails) begin
      send_o = neighbours;
      send_message_o.kind          = MessageTypeGrant;
      send_message_o.dtype         = DatatypeNone;
      send_message_o.tag           = '0;
      send_message_o.sequence_     = fail_sequence_q;
      send_message_o.signature     = ~fail_signature_q;
      send_message_o.message_bytes = '0;
    end
  end
  // The opening of a window makes its generation.
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_generation
    assign send_generation_o[p] = windows ? generations_q[p] + 16'(!t_q.granted) : '0;
  end

  // Ports from which something must come before the run goes on this way: from all, or from any one.
  ports_t missing, takers;
  assign takers = by_grant & ~out_within;
  always_comb begin
    unique case (state_q)
      StPlace:    missing = place_port;
      StEval:     missing = in & ~all_there;
      StTransfer: missing = t_q.gone ? '0 : (by_write & ~in_here) | takers;
      default:    missing = '0;
    endcase
  end
  assign leave_any   = state_q == StBegin;
  assign leave_ports = state_q == StBegin ? way_ports : (state_q == StPlace ? place_port & way_ports : missing);
  always_ff @(posedge clk_i) begin
    note_valid_o    <= rst_ni && (turn || over || fails);
    note_way_o      <= way;
    note_waits_o    <= turn && missing != '0;
    note_takes_o    <= state_q == StTransfer && missing == takers;
    note_opcode_o   <= state_q == StTransfer ? t_q.tag.opcode : lead_head_q.tag.opcode;
    note_sequence_o <= state_q == StTransfer ? t_q.sequence_ : lead_head_q.sequence_;
    note_ports_o    <= missing;
  end

  assign read_all      = keep && state_q == StStart;
  assign start_valid_o = starts;
  assign start_ports_o = t_q.in;
  assign start_func_o  = t_q.func;
  assign start_dtype_o = t_q.dtype;
  assign start_words_o = CountBits'((17'(length) + 17'(SwitchBytes - 1)) >> $clog2(SwitchBytes));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counter_messages_o   <= '0;
      counter_mismatches_o <= '0;
    end else begin
      counter_messages_o   <= counter_messages_o + 32'(over);
      counter_mismatches_o <= counter_mismatches_o + 32'(fails);
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (state_q != StEval || action_valid) else $error("%m: the CCM has not answered");
      assert (!(state_q == StEval && (in & mask) != '0 && action.kind == ActionPass))
        else $error("%m: a message goes back to where it came from");
    end
  end
`endif

endmodule
