// What moves wait for: how many of them for each cause, from what the dispatcher says of its looks.
//
// A move that the dispatcher puts aside waits until its next look. A call that is cleared waits for nothing any more.
//
// Latency: a cause shows one cycle after its move was put aside. Throughput: one event per cycle.

module unisono_waits
  import unisono_spec_pkg::Window;
  import unisono_cclo_pkg::*;
  import unisono_observe_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // A move is looked at; for the first time, if it has just been issued.
  input  logic     look_valid_i,
  input  logic     look_issue_i,
  input  move_id_t look_id_i,
  // It is put aside.
  input  logic     park_valid_i,
  input  wait_e    park_cause_i,
  input  move_id_t park_id_i,

  input  logic     clear_valid_i,
  input  slot_t    clear_slot_i,

  output logic [Waits-1:0] waiting_o             // some move waits for this
);

  localparam int unsigned Moves = Calls * Window;

  // Both happen in different cycles of the dispatcher; a move that is cleared is no longer aside.
  (* ram_style = "distributed" *) wait_e causes [Moves];
  logic [Moves-1:0] aside_q;
  logic parks, leaves;
  wait_e cause;
  assign parks = park_valid_i && park_cause_i != WaitNone;
  assign leaves = look_valid_i && !look_issue_i && aside_q[look_id_i];
  assign cause = causes[look_id_i];

  always_ff @(posedge clk_i) begin
    if (parks) causes[park_id_i] <= park_cause_i;
    if (!rst_ni) begin
      aside_q <= '0;
    end else begin
      if (look_valid_i) aside_q[look_id_i] <= 1'b0;
      if (parks) aside_q[park_id_i] <= 1'b1;
      if (clear_valid_i) aside_q[{clear_slot_i, entry_t'(0)} +: Window] <= '0;
    end
  end

  typedef logic [EntryWidth:0] count_t;
  logic [Calls-1:0][Waits-1:0] some;
  for (genvar s = 0; s < int'(Calls); s++) begin : gen_slot
    assign some[s][WaitNone] = 1'b0;
    for (genvar w = 1; w < int'(Waits); w++) begin : gen_cause
      count_t count_q;
      logic more, less;
      assign more = parks && park_id_i.slot == slot_t'(s) && park_cause_i == wait_e'(w);
      assign less = leaves && look_id_i.slot == slot_t'(s) && cause == wait_e'(w);
      assign some[s][w] = count_q != '0;
      always_ff @(posedge clk_i) begin
        if (!rst_ni || (clear_valid_i && clear_slot_i == slot_t'(s))) count_q <= '0;
        else count_q <= count_q + count_t'(more) - count_t'(less);
      end

      `ifndef SYNTHESIS
      always_ff @(posedge clk_i) begin
        if (rst_ni) assert (count_q <= count_t'(Window)) else $error("%m: more moves wait than there are");
      end
      `endif
    end
  end

  always_comb begin
    waiting_o = '0;
    for (int s = 0; s < int'(Calls); s++) waiting_o |= some[s];
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert (!(look_valid_i && park_valid_i)) else $error("%m: a look begins while one ends");
  end
  `endif

endmodule
