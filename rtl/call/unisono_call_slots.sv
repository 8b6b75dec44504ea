// The active calls: gives the microcontroller its work, and brings every call to its end.
//
// A call has a slot from its start until it is answered. It gets one start item, in the order of the
// starts, then a `more` item whenever the scoreboard has room for a generation step, until the
// microcontroller says that the program has ended. At most one item of a slot is with the
// microcontroller. A call ends when its program has ended and all its moves have completed, or when it
// fails: by the microcontroller, a fault of another block, or its deadline. The first of these counts.
// Whatever the reason, all blocks are then told to clear the slot, one slot at a time; when they have, the
// end is reported, and the slot can be given to another call. Its generation has changed, so a fault that
// comes late meets none.
//
// Latency: start to work item 1 cycle if nothing else waits; `finished` to `clear` 2 cycles, another event that is the
// last of a call 3; the last `clear_done` to `end` 1 cycle. Throughput: one work item in 2 cycles; one end in 4 cycles and what
// the blocks take.
// Restrictions: `item_done` comes after what the item has emitted is counted in `room`; a failure by the
// microcontroller, and the end of the program, come before it or with it.

module unisono_call_slots #(
  parameter int unsigned FaultPorts = 2,
  parameter int unsigned ClearBlocks = 3,
  localparam int unsigned RoomWidth = $clog2(unisono_spec_pkg::Window + 1)
) (
  input  logic                                           clk_i,
  input  logic                                           rst_ni,

  // A call that starts, when a slot is free.
  output logic                                           free_o,
  input  logic                                           start_i,
  input  unisono_call_pkg::call_start_t                  start_call_i,

  // Work for the microcontroller.
  output logic                                           work_valid_o,
  input  logic                                           work_ready_i,
  output logic [1:0]                                     work_kind_o,
  output unisono_cclo_pkg::slot_t                        work_slot_o,
  // The slot's item is done: its moves were taken, and it may get a further one. Not of control items.
  input  logic                                           item_done_valid_i,
  input  unisono_cclo_pkg::slot_t                        item_done_slot_i,
  // The slot's program has ended: no more moves come. Not after the item's `item_done`.
  input  logic                                           ended_valid_i,
  input  unisono_cclo_pkg::slot_t                        ended_slot_i,
  // Asks for a control item; one item may serve several requests.
  input  logic                                           control_i,

  // From the scoreboard: moves that it can take, by slot; and a program has ended, and all its moves have
  // retired.
  input  logic [unisono_cclo_pkg::Calls-1:0][RoomWidth-1:0] room_i,
  input  logic                                           finished_valid_i,
  input  unisono_cclo_pkg::slot_t                        finished_slot_i,

  // Failures. Each is taken in the cycle in which it is valid.
  input  logic                                           cpu_fail_valid_i,
  input  unisono_cclo_pkg::slot_t                        cpu_fail_slot_i,
  input  unisono_call_pkg::call_code_t                   cpu_fail_code_i,
  input  logic [FaultPorts-1:0]                          fault_valid_i,
  input  unisono_call_pkg::call_fault_t [FaultPorts-1:0] fault_i,

  // Deadlines.
  output logic                                           deadline_set_o,
  output unisono_cclo_pkg::slot_t                        deadline_slot_o,
  output logic [31:0]                                    deadline_us_o,
  output logic [unisono_cclo_pkg::Calls-1:0]             deadline_stop_o,
  input  logic [unisono_cclo_pkg::Calls-1:0]             deadline_expired_i,

  // Clearing. A block raises its bit, for one cycle or until valid falls, when nothing of the slot is left
  // in it and nothing it has begun for it can still happen.
  output logic                                           clear_valid_o,
  output unisono_cclo_pkg::slot_t                        clear_slot_o,
  output logic                                           clear_failed_o,
  input  logic [ClearBlocks-1:0]                         clear_done_i,

  // Ends.
  output logic                                           end_valid_o,
  input  logic                                           end_ready_i,
  output unisono_call_pkg::call_end_t                    end_o,

  // The state of each slot, for other blocks.
  output logic [unisono_cclo_pkg::Calls-1:0]             active_o,
  output logic [unisono_cclo_pkg::Calls-1:0]             failing_o,
  output unisono_call_pkg::generation_t [unisono_cclo_pkg::Calls-1:0] generation_o,
  output unisono_call_pkg::call_entry_t [unisono_cclo_pkg::Calls-1:0] entry_o,
  output logic [unisono_cclo_pkg::Calls-1:0]             src_stream_o,
  output logic [unisono_cclo_pkg::Calls-1:0]             dst_stream_o,
  output unisono_cclo_pkg::stream_port_t [unisono_cclo_pkg::Calls-1:0] src_port_o,
  output unisono_cclo_pkg::stream_port_t [unisono_cclo_pkg::Calls-1:0] dst_port_o,
  output logic [unisono_cclo_pkg::Calls-1:0][31:0]       slot_call_id_o,
  // A failed call cannot end because the microcontroller still works on it.
  output logic                                           waits_for_cpu_o
);

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_call_pkg::*;

  if (FaultPorts < 1 || ClearBlocks < 1) begin : gen_bad_ports
    $error("unisono_call_slots: FaultPorts and ClearBlocks must be at least 1");
  end

  logic [Calls-1:0]        active_q;      // holds a call
  logic [Calls-1:0]        delivered_q;   // its start item has been taken
  logic [Calls-1:0]        in_cpu_q;      // an item of it is on offer or being worked on
  logic [Calls-1:0]        ended_q;       // its program has ended
  logic [Calls-1:0]        complete_q;    // and all its moves have retired
  logic [Calls-1:0]        failing_q;
  logic [Calls-1:0]        closing_q;     // being cleared: nothing can fail it any more
  call_code_t [Calls-1:0]  code_q;
  generation_t [Calls-1:0] generation_q;
  call_entry_t [Calls-1:0] entry_q;
  logic [Calls-1:0]        src_stream_q, dst_stream_q;
  unisono_cclo_pkg::stream_port_t [Calls-1:0] src_port_q, dst_port_q;
  logic [Calls-1:0][31:0]  call_id_q;

  assign active_o     = active_q;
  assign failing_o    = failing_q;
  assign generation_o = generation_q;
  assign entry_o      = entry_q;
  assign slot_call_id_o = call_id_q;
  assign src_stream_o = src_stream_q;
  assign dst_stream_o = dst_stream_q;
  assign src_port_o   = src_port_q;
  assign dst_port_o   = dst_port_q;

  // -------------------------------------------------------------------------------------------- starts

  // Found beforehand: starts are further apart than it takes.
  slot_t free_slot_q;
  always_ff @(posedge clk_i) begin
    for (int s = int'(Calls) - 1; s >= 0; s--) begin
      if (!active_q[s]) begin
        free_slot_q <= slot_t'(s);
      end
    end
  end

  // Starts wait for the microcontroller in their order, which is that of their communicators' sequences. Also one whose
  // deadline passes meanwhile: it takes its number in the sequence, as on the other ranks.
  localparam int unsigned QueueWidth = $clog2(Calls);

  (* ram_style = "distributed" *) slot_t waiting [Calls];
  logic [QueueWidth:0] queue_in_q, queue_out_q;
  slot_t head_q;                           // the first one, taken out of the memory
  logic  head_valid_q, head_take, head_leaves, queue_some, start_now;

  assign queue_some  = queue_in_q != queue_out_q;
  assign head_leaves = !head_valid_q || head_take;
  assign free_o      = active_q != '1;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      waiting[queue_in_q[QueueWidth-1:0]] <= free_slot_q;
    end
    if (head_leaves) begin
      head_q <= waiting[queue_out_q[QueueWidth-1:0]];
    end
    if (!rst_ni) begin
      queue_in_q   <= '0;
      queue_out_q  <= '0;
      head_valid_q   <= 1'b0;
    end else begin
      queue_in_q  <= queue_in_q + (QueueWidth+1)'(start_i && !start_now);
      queue_out_q <= queue_out_q + (QueueWidth+1)'(head_leaves && queue_some);
      if (head_leaves) begin
        head_valid_q <= queue_some;
      end
    end
  end

  assign deadline_set_o  = start_i;
  assign deadline_slot_o = free_slot_q;
  assign deadline_us_o   = start_call_i.deadline_us;

  // --------------------------------------------------------------------------------------- work items

  // One register. A control item goes first, because a call may be given right behind the tables it needs, but not twice
  // in a row if another waits; starts and further steps take turns. So neither a flood of short calls nor a long program
  // nor a host that writes tables starves the others.
  logic       work_valid_q, control_q, control_last_q, more_turn_q;
  logic [1:0] work_kind_q;
  slot_t      work_slot_q, more_slot, more_last_q;
  logic       more_any, may_load;
  logic [1:0] kind;                        // of the next item; 0: none

  // Requests are looked at one cycle before they are served; only a failure withdraws one.
  logic [Calls-1:0] more;
  always_comb begin
    for (int unsigned s = 0; s < Calls; s++) begin
      more[s] = active_q[s] && delivered_q[s] && !in_cpu_q[s] && !ended_q[s] && !failing_q[s]
             && !closing_q[s] && room_i[s] >= RoomWidth'(MovesPerStep);
    end
    more_any  = 1'b0;
    more_slot = '0;
    for (int unsigned i = 1; i <= Calls; i++) begin
      automatic slot_t s = more_last_q + slot_t'(i);
      if (!more_any && more[s]) begin
        more_any  = 1'b1;
        more_slot = s;
      end
    end
  end

  logic  more_any_q, more_ready;
  slot_t more_slot_q;
  assign more_ready = more_any_q && !failing_q[more_slot_q];

  always_comb begin
    if (control_q && (!control_last_q || (!head_valid_q && !more_ready))) begin
      kind = WorkControl;
    end else if (head_valid_q && !(more_turn_q && more_ready)) begin
      kind = WorkStart;
    end else if (more_ready) begin
      kind = WorkMore;
    end else begin
      kind = '0;
    end
  end

  assign may_load  = !work_valid_q;
  assign head_take = may_load && kind == WorkStart;
  // Nothing else is to be done: a call becomes an item as it starts.
  assign start_now = start_i && may_load && !head_valid_q && !queue_some && !more_ready && !control_q;

  always_ff @(posedge clk_i) begin
    more_any_q  <= rst_ni && more_any && !(may_load && kind == WorkMore);
    more_slot_q <= more_slot;
    if (!rst_ni) begin
      work_valid_q   <= 1'b0;
      more_turn_q    <= 1'b0;
      more_last_q    <= '0;
      control_q      <= 1'b0;
      control_last_q <= 1'b0;
    end else begin
      if (may_load && kind != '0) begin
        work_valid_q   <= 1'b1;
        control_last_q <= kind == WorkControl;
        if (kind != WorkControl) begin
          more_turn_q <= kind == WorkStart;
        end
        if (kind == WorkMore) begin
          more_last_q <= more_slot_q;
        end
      end else if (start_now) begin
        work_valid_q   <= 1'b1;
        control_last_q <= 1'b0;
        more_turn_q    <= 1'b1;
      end else if (work_ready_i) begin
        work_valid_q <= 1'b0;
      end
      // What is asked for after an item was taken needs another one.
      if (control_i) begin
        control_q <= 1'b1;
      end else if (may_load && kind == WorkControl) begin
        control_q <= 1'b0;
      end
    end
    if (may_load) begin
      work_kind_q <= start_now ? WorkStart : kind;
      work_slot_q <= start_now ? free_slot_q : kind == WorkStart ? head_q : kind == WorkMore ? more_slot_q : '0;
    end
  end

  assign work_valid_o = work_valid_q;
  assign work_kind_o  = work_kind_q;
  assign work_slot_o  = work_slot_q;

  // ------------------------------------------------------------------------------------------- the end

  typedef enum logic [1:0] {
    StChoose,
    StClear,
    StReport
  } state_e;

  state_e                 state_q;
  slot_t                  end_slot_q, end_pick_q;
  logic                   end_any_q;
  logic [Calls-1:0]       may_end;
  logic [ClearBlocks-1:0] cleared_q;
  logic                   closes, all_cleared, reported;

  always_comb begin
    for (int unsigned s = 0; s < Calls; s++) begin
      may_end[s] = delivered_q[s] && !in_cpu_q[s] && !closing_q[s]
                && (failing_q[s] || complete_q[s] || (finished_valid_i && finished_slot_i == slot_t'(s) && ended_q[s]));
    end
  end

  // Nothing that lets a call end is ever withdrawn, so the choice may be a cycle old.
  always_ff @(posedge clk_i) begin
    end_any_q <= rst_ni && may_end != '0 && !closes;
    for (int unsigned i = Calls; i >= 1; i--) begin
      automatic slot_t s = end_slot_q + slot_t'(i);
      if (may_end[s]) begin
        end_pick_q <= s;
      end
    end
  end

  assign closes      = state_q == StChoose && end_any_q;
  assign all_cleared = (cleared_q | clear_done_i) == '1;
  assign reported    = state_q == StReport && end_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q    <= StChoose;
      end_slot_q <= '0;
      cleared_q  <= '0;
    end else begin
      unique case (state_q)
        StChoose: begin
          cleared_q <= '0;
          if (end_any_q) begin
            state_q    <= StClear;
            end_slot_q <= end_pick_q;
          end
        end
        StClear: begin
          cleared_q <= cleared_q | clear_done_i;
          if (all_cleared) begin
            state_q <= StReport;
          end
        end
        default: begin
          if (end_ready_i) begin
            state_q <= StChoose;
          end
        end
      endcase
    end
  end

  assign clear_valid_o  = state_q == StClear;
  assign clear_slot_o   = end_slot_q;
  assign clear_failed_o = failing_q[end_slot_q];
  assign end_valid_o    = state_q == StReport;
  assign end_o          = '{entry: entry_q[end_slot_q],
                            code: failing_q[end_slot_q] ? code_q[end_slot_q] : call_code_t'(0)};

  // ---------------------------------------------------------------------------------------- the slots

  logic [Calls-1:0]       fails;
  call_code_t [Calls-1:0] fail_code;

  // The one place where calls fail. The order of these lines decides which of two in one cycle counts.
  always_comb begin
    for (int unsigned s = 0; s < Calls; s++) begin
      fails[s]     = deadline_expired_i[s];
      fail_code[s] = call_code_t'(ErrorCodeTimeout);
      for (int unsigned p = 0; p < FaultPorts; p++) begin
        if (fault_valid_i[p] && fault_i[p].slot == slot_t'(s)
         && fault_i[p].generation == generation_q[s]) begin
          fails[s]     = 1'b1;
          fail_code[s] = fault_i[p].code;
        end
      end
      if (cpu_fail_valid_i && cpu_fail_slot_i == slot_t'(s) && in_cpu_q[s]) begin
        fails[s]     = 1'b1;
        fail_code[s] = cpu_fail_code_i;
      end
      fails[s] = fails[s] && active_q[s] && !failing_q[s] && !closing_q[s]
              && !(closes && end_pick_q == slot_t'(s));
      // A failure without a reason is one of ours.
      if (fail_code[s] == '0) begin
        fail_code[s] = call_code_t'(ErrorCodeInternal);
      end
      deadline_stop_o[s] = reported && end_slot_q == slot_t'(s);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q     <= '0;
      delivered_q  <= '0;
      in_cpu_q     <= '0;
      ended_q      <= '0;
      complete_q   <= '0;
      failing_q    <= '0;
      closing_q    <= '0;
      generation_q <= '0;
    end else begin
      failing_q <= failing_q | fails;
      if (start_i) begin
        active_q[free_slot_q] <= 1'b1;
      end
      if (may_load && (kind == WorkStart || kind == WorkMore)) begin
        in_cpu_q[kind == WorkStart ? head_q : more_slot_q]    <= 1'b1;
        delivered_q[kind == WorkStart ? head_q : more_slot_q] <= 1'b1;
      end
      if (start_now) begin
        in_cpu_q[free_slot_q]    <= 1'b1;
        delivered_q[free_slot_q] <= 1'b1;
      end
      if (item_done_valid_i) begin
        in_cpu_q[item_done_slot_i] <= 1'b0;
      end
      if (ended_valid_i && in_cpu_q[ended_slot_i]) begin
        ended_q[ended_slot_i] <= 1'b1;
      end
      if (finished_valid_i && ended_q[finished_slot_i]) begin
        complete_q[finished_slot_i] <= 1'b1;
      end
      if (closes) begin
        closing_q[end_pick_q] <= 1'b1;
      end
      if (reported) begin
        active_q[end_slot_q]     <= 1'b0;
        delivered_q[end_slot_q]  <= 1'b0;
        ended_q[end_slot_q]      <= 1'b0;
        complete_q[end_slot_q]   <= 1'b0;
        failing_q[end_slot_q]    <= 1'b0;
        closing_q[end_slot_q]    <= 1'b0;
        generation_q[end_slot_q] <= generation_q[end_slot_q] + generation_t'(1);
      end
    end
    for (int unsigned s = 0; s < Calls; s++) begin
      if (fails[s]) begin
        code_q[s] <= fail_code[s];
      end
    end
    if (start_i) begin
      entry_q[free_slot_q]      <= start_call_i.entry;
      call_id_q[free_slot_q]    <= start_call_i.call_id;
      src_stream_q[free_slot_q] <= start_call_i.src_stream;
      src_port_q[free_slot_q]   <= start_call_i.src_port;
      dst_port_q[free_slot_q]   <= start_call_i.dst_port;
      dst_stream_q[free_slot_q] <= start_call_i.dst_stream;
    end
    waits_for_cpu_o <= rst_ni && (failing_q & (in_cpu_q | ~delivered_q)) != '0;
  end

  logic unused;
  assign unused = |{start_call_i.tag, start_call_i.mode};

`ifndef SYNTHESIS
  logic held_q;
  logic [1:0] held_kind_q;
  slot_t held_slot_q;
  always_ff @(posedge clk_i) begin
    held_q      <= rst_ni && work_valid_o && !work_ready_i;
    held_kind_q <= work_kind_o;
    held_slot_q <= work_slot_o;
    if (rst_ni) begin
      assert (!start_i || free_o) else $error("%m: start without a free slot");
      assert (!held_q || (work_valid_o && held_kind_q == work_kind_o
                       && held_slot_q == work_slot_o)) else $error("%m: work item changed");
      assert (!item_done_valid_i || in_cpu_q[item_done_slot_i])
      else $error("%m: an item came back that is not out");
      assert (!ended_valid_i || in_cpu_q[ended_slot_i])
      else $error("%m: a program ended that nobody works on");
      assert (!finished_valid_i || ended_q[finished_slot_i])
      else $error("%m: all moves of a program have retired before it ended");
      assert (!end_valid_o || active_q[end_slot_q]) else $error("%m: end of an idle slot");
    end
  end
`endif

endmodule
