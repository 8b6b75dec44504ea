// What a switch does with the heads of the run looked at: which of them is looked at, whether all have come that it
// waits for, and the message that goes on with them.
//
// The lead is the first port at whose head something waits, of those by which it may come this way. Of an all-gather and
// of a gather the run's next position says whose turn it is (unisono_switch_places). The CCM says what is done with the
// lead; a fold waits for all shares from below, which must be like the lead in all but their data. While blocks of a run
// come by several ports, only what is of that run is seen.
//
// Latency: from begin_i to the message 4 cycles, 2 more where blocks come by several ports. One run at a time.
// Restrictions: the run, the way and its entry stand 2 cycles before begin_i, and until the message is taken. The cycles
// of a look are begin_i; for several ports a cycle, and place_i until the turn is found; action_i; two cycles; the
// message.

// Records carry more than one block looks at.
// verilator lint_off UNUSEDSIGNAL

module unisono_switch_judge
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,           // 4 to MaxPorts
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t Funcs = SwitchFuncs,
  localparam int unsigned AllRuns = UnitEntries * UnitRuns
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // What is looked at.
  input  run_t                    run_i,
  input  logic                    down_i,
  input  entry_head_t             head_i,
  input  port_entry_t [Ports-1:0] ports_i,
  input  logic [15:0]             eager_limit_i,
  input  look_t [Ports-1:0]       look_i,        // with begin_i
  input  look_t [Ports-1:0]       look_q_i,      // the same, from the next cycle on
  output logic [Ports-1:0]        neighbours_o,  // of this entry
  output logic [Ports-1:0]        way_ports_o,   // by which something may come this way

  // Which head.
  input  logic                    begin_i,
  output logic                    is_several_o,  // blocks come by several ports
  output logic                    nothing_o,     // otherwise: nothing waits
  input  logic                    place_i,
  output logic                    past_o,        // all positions have had their turn
  output logic                    skips_o,       // nothing comes of this position
  output logic                    mine_o,        // what comes is here, and comes this way
  output logic [Ports-1:0]        place_port_o,  // by which it comes

  // What is done.
  input  logic                    action_i,
  output waiting_t                lead_o,        // from 2 cycles after it was chosen on
  output logic                    differs_o,     // calls differ, or no tree carries this
  output logic [Ports-1:0]        missing_o,     // ports from which something must come
  output logic                    immediate_o,   // nobody is asked or granted
  output transfer_t               message_o,
  output logic [Ports-1:0]        in_o,
  output logic [Ports-1:0]        in_place_o,    // of these, data are in a buffer
  output logic [Ports-1:0]        out_o,
  output logic [Ports-1:0]        out_eager_o,   // of these, a credit is there for it

  // Positions of runs.
  input  logic                    open_valid_i,  // the run begins anew
  input  run_t                    open_run_i,
  input  logic                    fails_i,       // the run looked at ends
  input  logic                    over_i,        // a message is over whose blocks come by several ports
  input  count_t                  over_next_i,
  input  logic [31:0]             over_sequence_i
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_judge: Ports must be 4 to %0d", MaxPorts);
  end

  typedef logic [Ports-1:0] ports_t;

  // ---------------------------------------------------------------- the ports of this entry
  ports_t used_entries, used_q, up_port_q;
  // A port without members is a gap: nobody is there who could be told something.
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_used
    assign used_entries[p] = port_count_t'(p) < head_i.ports && ports_i[p].count != '0;
  end
  always_ff @(posedge clk_i) begin
    used_q <= ports_t'((2 * Ports)'(used_entries) << head_i.first_port);
    for (int p = 0; p < int'(Ports); p++) up_port_q[p] <= head_i.has_up && head_i.up == port_t'(p);
  end
  assign neighbours_o = used_q | up_port_q;
  assign way_ports_o  = down_i ? up_port_q : used_q;

  // ---------------------------------------------------------------- positions
  (* ram_style = "distributed" *) count_t      next_q [AllRuns];
  (* ram_style = "distributed" *) logic [31:0] sequence_q [AllRuns];   // of the run whose position it is
  count_t      my_next_q;
  logic [31:0] my_sequence_q;
  always_ff @(posedge clk_i) begin
    if (open_valid_i || fails_i || over_i) next_q[open_valid_i ? open_run_i : run_i] <= over_i ? over_next_i : '0;
    if (over_i) sequence_q[run_i] <= over_sequence_i;
    my_next_q     <= next_q[run_i];
    my_sequence_q <= sequence_q[run_i];
  end

  // ---------------------------------------------------------------- which head
  waiting_t head, head_q;
  ports_t there, there_q, lead_from, any_from, several_here, lead, lead_q, place_port;
  logic   several_q;
  count_t place_q, after_skip, following, following_q;
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_there
    assign there[p] = look_i[p].there && (my_next_q == '0 || look_i[p].head.sequence_ == my_sequence_q);
    assign several_here[p] = look_i[p].head.tag.opcode inside {5'(CollectiveAllgather), 5'(CollectiveGather)};
  end
  // Of collectives with one sender, or a fold, from below or from above; of the others from anywhere.
  assign lead_from    = there & way_ports_o;
  assign any_from     = there & neighbours_o;
  assign is_several_o = (any_from & (-any_from) & several_here) != '0;
  assign nothing_o    = lead_from == '0;
  assign lead         = is_several_o ? any_from & (-any_from) : lead_from & (-lead_from);

  unisono_switch_places #(
    .Ports(Ports)
  ) u_places (
    .clk_i,
    .head_i,
    .ports_i,
    .up_port_i   (up_port_q),
    .gathers_i   (lead_o.tag.opcode == 5'(CollectiveGather)),
    .root_i      (head.tag.place),
    .place_i     (place_q),
    .skips_o,
    .after_skip_o(after_skip),
    .port_o      (place_port),
    .following_o (following)
  );
  assign past_o       = place_q == head_i.members;
  assign mine_o       = (place_port & there_q & way_ports_o) != '0;
  assign place_port_o = place_port;

  // The head of the port that leads.
  port_t    lead_index;
  always_comb begin
    head       = '0;
    lead_index = '0;
    for (int p = 0; p < int'(Ports); p++) begin
      if (lead_q[p]) head |= look_q_i[p].head;
      if (lead_q[p]) lead_index |= port_t'(p);
    end
  end
  always_ff @(posedge clk_i) begin
    head_q      <= head;
    following_q <= following;
    if (begin_i) begin
      there_q   <= there;
      several_q <= is_several_o;
      lead_q    <= lead;
      place_q   <= my_next_q;
    end
    if (place_i) begin
      if (skips_o) place_q <= after_skip;
      else lead_q <= place_port;
    end
  end
  assign lead_o = head_q;

  // ---------------------------------------------------------------- what is done with it
  arriving_t arriving;
  action_t   action;
  ports_t    mask, down_ports;
  logic      action_valid, from_above;
  assign from_above = (lead_q & up_port_q) != '0;
  // Only results of folds say in their tag that they go down; the CCM is told so of all that comes from above.
  always_comb begin
    arriving          = '{tag: head.tag, port: lead_index, member: '0};
    arriving.tag.down = from_above;
  end

  unisono_switch_ccm #(
    .Ports(Ports)
  ) u_ccm (
    .clk_i,
    .rst_ni,
    .valid_i   (action_i),
    .head_i,
    .ports_i,
    .arriving_i(arriving),
    .valid_o   (action_valid),
    .action_o  (action),
    .mask_o    (mask),
    .down_o    (down_ports)
  );

  // While the CCM works: what is like the lead.
  ports_t all_there_q, unlike_q, grant_differs_q, asked, no_credit;
  logic   wrong_way_q, known_func_q, is_short_q, folds;
  assign folds = head_q.tag.opcode inside {5'(CollectiveBarrier), 5'(CollectiveReduce), 5'(CollectiveAllreduce),
                                           5'(CollectiveReduceScatter)};
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_head
    waiting_t h;
    assign h = look_q_i[p].head;
    assign no_credit[p] = !look_q_i[p].has_credit;
    assign asked[p]     = look_q_i[p].head.asked;
    always_ff @(posedge clk_i) begin
      all_there_q[p] <= there_q[p] && h.sequence_ == head_q.sequence_;
      unlike_q[p]    <= h.signature != head_q.signature || h.dtype != head_q.dtype || h.bytes != head_q.bytes ||
                        h.tag != head_q.tag;
      // Whose grant says that it calls something else.
      grant_differs_q[p] <= look_q_i[p].has_grant && look_q_i[p].grant.sequence_ == head_q.sequence_ &&
                            look_q_i[p].grant.signature != head_q.signature;
    end
  end
  always_ff @(posedge clk_i) begin
    wrong_way_q  <= head_q.tag.down != (folds && from_above);
    is_short_q   <= head_q.bytes <= switch_bytes_t'(eager_limit_i);
    known_func_q <= head_q.bytes == '0 ||
                    (head_q.tag.func != 5'(FuncNone) &&
                     is_supported(Datatypes, Funcs, '0, func_e'({3'd0, head_q.tag.func}), head_q.dtype));
  end

  logic is_fold;
  assign is_fold     = action.kind == ActionFold;
  assign in_o        = is_fold ? down_ports : lead_q;
  assign in_place_o  = in_o & ~asked;
  assign out_o       = mask;
  assign out_eager_o = is_short_q ? mask & ~no_credit : '0;
  assign differs_o   = action.kind == ActionNothing || wrong_way_q || (is_fold && !known_func_q) ||
                       (in_o & all_there_q & unlike_q) != '0 || grant_differs_q != '0;
  assign missing_o   = in_o & ~all_there_q;
  assign immediate_o = is_short_q && (in_o & asked) == '0 && (mask & no_credit) == '0;
  always_comb begin
    message_o           = '0;
    message_o.several   = several_q;
    message_o.next      = following_q;
    message_o.tag       = head_q.tag;
    message_o.goes_down = head_q.tag.down || (is_fold && !action.up);
    message_o.func      = is_fold ? func_e'({3'd0, head_q.tag.func}) : FuncNone;
    message_o.dtype     = head_q.dtype;
    message_o.sequence_ = head_q.sequence_;
    message_o.signature = head_q.signature;
    message_o.bytes     = head_q.bytes;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && action_valid) begin
      assert (!(action.kind == ActionPass && (in_o & mask) != '0))
        else $error("%m: a message goes back to where it came from");
    end
  end
`else
  logic unused;
  assign unused = action_valid;
`endif

endmodule
