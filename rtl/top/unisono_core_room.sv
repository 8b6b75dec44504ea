// Places in each window for moves that are still to come: those that were taken and have not entered their window yet
// need theirs.
//
// Latency: 1 cycle. Throughput: a move that is taken, and one that enters, per cycle.

module unisono_core_room
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
(
  input  logic   clk_i,
  input  logic   rst_ni,

  input  logic   taken_i,
  input  slot_t  taken_slot_i,
  input  logic   entered_i,        // it is in the window, or was thrown away before
  input  slot_t  entered_slot_i,

  input  rooms_t window_room_i,
  output rooms_t room_o
);

  rooms_t coming_q;

  for (genvar s = 0; s < int'(Calls); s++) begin : gen_room
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        coming_q[s] <= '0;
      end else begin
        coming_q[s] <= coming_q[s] + (EntryWidth + 1)'(taken_i && taken_slot_i == slot_t'(s))
                                   - (EntryWidth + 1)'(entered_i && entered_slot_i == slot_t'(s));
      end
    end
    assign room_o[s] = window_room_i[s] < coming_q[s] ? '0 : window_room_i[s] - coming_q[s];
  end

endmodule
