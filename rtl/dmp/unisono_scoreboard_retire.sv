// Moves leave their windows, in their order, when they are complete.
//
// A call is looked at after a completion of its oldest move, and then until one is found that is not complete; calls by
// turns.
//
// Latency: 2 cycles from a completion to the move's leave, which is told a cycle later. Throughput: a move per cycle.

module unisono_scoreboard_retire #(
  parameter int unsigned Calls = unisono_cclo_pkg::Calls,
  parameter int unsigned Window = unisono_spec_pkg::Window,
  localparam int unsigned SlotWidth = $clog2(Calls),
  localparam int unsigned EntryWidth = $clog2(Window),
  localparam int unsigned IdWidth = SlotWidth + EntryWidth
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic [Calls-1:0]                 clear_i,

  // The windows: [head, armed), move numbers modulo 2 * Window.
  input  logic [Calls-1:0][EntryWidth:0]   head_i,
  input  logic [Calls-1:0][EntryWidth:0]   armed_i,

  input  logic                             complete_i,
  input  logic [SlotWidth-1:0]             complete_slot_i,
  input  logic [EntryWidth-1:0]            complete_entry_i,

  // The oldest move of a call: is it complete, and the one behind it? It leaves.
  output logic [SlotWidth-1:0]             retire_slot_o,
  output logic [EntryWidth-1:0]            retire_entry_o,
  input  logic                             head_incomplete_i,
  input  logic                             next_incomplete_i,
  output logic                             retire_o,

  output logic                             retired_valid_o,
  output logic [IdWidth-1:0]               retired_id_o
);

  typedef logic [SlotWidth-1:0] slot_t;
  typedef logic [EntryWidth:0] count_t;

  logic [Calls-1:0] near_head, look_at_q, look_after_q, look_later;
  logic [Calls-1:0] look_one, look_any_one, look_later_one;
  logic look_any, look_later_any, retire_valid_q, retire_more;
  count_t retire_next;
  slot_t look_slot, look_any_slot, look_later_slot, retire_slot_q;

  assign look_later = look_at_q & look_after_q;
  unisono_lowest_one #(.Width(Calls)) u_look_any (
    .bits_i(look_at_q), .any_o(look_any), .index_o(look_any_slot), .one_o(look_any_one)
  );
  unisono_lowest_one #(.Width(Calls)) u_look_later (
    .bits_i(look_later), .any_o(look_later_any), .index_o(look_later_slot), .one_o(look_later_one)
  );
  assign look_slot = look_later_any ? look_later_slot : look_any_slot;
  assign look_one = look_later_any ? look_later_one : look_any_one;

  // The one behind the head too: the head may be retiring.
  for (genvar s = 0; s < int'(Calls); s++) begin : gen_near_head
    wire [EntryWidth-1:0] oldest = head_i[s][EntryWidth-1:0];
    wire [EntryWidth-1:0] second = oldest + 1'b1;
    assign near_head[s] = complete_entry_i == oldest || complete_entry_i == second;
  end

  assign retire_o = retire_valid_q && head_i[retire_slot_q] != armed_i[retire_slot_q] &&
                  !head_incomplete_i && !clear_i[retire_slot_q];
  // A look in vain would cost another call its turn: so the one behind is looked at as well.
  assign retire_next = head_i[retire_slot_q] + 1'b1;
  assign retire_more = retire_o && retire_next != armed_i[retire_slot_q] && !next_incomplete_i;

  always_ff @(posedge clk_i) begin
    retire_slot_q <= look_slot;
    if (!rst_ni) begin
      look_at_q <= '0;
      look_after_q <= '0;
      retire_valid_q <= 1'b0;
      retired_valid_o <= 1'b0;
    end else begin
      retire_valid_q <= look_any;
      if (look_any) begin
        for (int s = 0; s < int'(Calls); s++) look_after_q[s] <= slot_t'(s) > look_slot;
      end
      for (int s = 0; s < int'(Calls); s++) begin
        if (complete_i && complete_slot_i == slot_t'(s) && near_head[s]) begin
          look_at_q[s] <= 1'b1;
        end else if (retire_valid_q && retire_slot_q == slot_t'(s) && !retire_more) begin
          look_at_q[s] <= 1'b0;
        end
      end
      retired_valid_o <= retire_o;
    end
    retired_id_o <= {retire_slot_q, retire_entry_o};
  end
  wire unused_look = ^look_one;

  assign retire_slot_o = retire_slot_q;
  assign retire_entry_o = head_i[retire_slot_q][EntryWidth-1:0];

endmodule
