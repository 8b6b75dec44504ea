// Whose turn it is to begin a point-to-point message: those of a pair begin in the order in which their calls came.
//
// A send that must wait for one before it is *held*. When that has announced its message, or its call is cleared, the
// next one's move is kicked.
//
// Latency: held in the cycle of the question, of what came before it; a kick is on offer 2 cycles after what makes it
// due. Throughput: a send added and one announced per cycle; a kick per cycle.

module unisono_send_turns
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // The move of a point-to-point call that sends has come.
  input  logic          add_valid_i,
  input  move_id_t      add_id_i,
  input  communicator_t add_communicator_i,
  input  rank_t         add_peer_i,

  input  logic             announced_valid_i,
  input  slot_t            announced_slot_i,
  input  logic [Calls-1:0] clear_i,

  input  slot_t slot_i,
  output logic  held_o,

  output logic     kick_valid_o,
  input  logic     kick_ready_i,
  output move_id_t kick_id_o
);

  logic [Calls-1:0] pending, first, remove, waits_q, kicks_q, kicked;
  (* ram_style = "distributed" *) entry_t entry_q [Calls];

  // Neither is asked here.
  // verilator lint_off UNUSEDSIGNAL
  logic [CommunicatorWidth+RankWidth-1:0] unused_keys [Calls];
  logic [Calls-1:0] unused_before [Calls];
  // verilator lint_on UNUSEDSIGNAL
  assign remove = (announced_valid_i ? Calls'(1) << announced_slot_i : '0) | clear_i;
  unisono_turns #(.KeyWidth(CommunicatorWidth + RankWidth)) u_turns (
    .clk_i, .rst_ni, .add_valid_i, .add_slot_i(add_id_i.slot), .add_key_i({add_communicator_i, add_peer_i}),
    .remove_i(remove), .pending_o(pending), .first_o(first), .key_o(unused_keys),
    .before_o(unused_before)
  );
  assign held_o = pending[slot_i] && !first[slot_i];

  always_ff @(posedge clk_i) begin
    if (add_valid_i) entry_q[add_id_i.slot] <= add_id_i.entry;
    if (!rst_ni) begin
      waits_q <= '0;
      kicks_q <= '0;
    end else begin
      waits_q <= pending & ~first;
      kicks_q <= ((kicks_q & ~(kick_ready_i ? kicked : '0)) | (waits_q & first)) & ~clear_i;
    end
  end

  slot_t slot;
  unisono_lowest_one #(.Width(Calls)) u_kick (
    .bits_i(kicks_q), .any_o(kick_valid_o), .index_o(slot), .one_o(kicked)
  );
  assign kick_id_o = '{slot: slot, entry: entry_q[slot]};

endmodule
