// Puts the members of the lists that a move names beside it, as masks.
//
// A list stands in the constant pool of the move's program: a count, then as many ranks. Moves without lists pass.
// The end of a program passes like a move.
//
// Latency: 1 cycle; 2 more for each list, and one for each of its ranks. Throughput: a move without lists per cycle.
// Restrictions: a pool word is written before the first move that names it comes in; a list has at least one rank.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_list_masks
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        pool_write_i,
  input  slot_t       pool_write_slot_i,
  input  pool_index_t pool_write_index_i,
  input  rank_t       pool_write_word_i,

  input  logic  in_valid_i,
  output logic  in_ready_o,
  input  slot_t in_slot_i,
  input  move_t in_move_i,
  input  logic  in_end_i,

  output logic  out_valid_o,
  input  logic  out_ready_i,
  output slot_t out_slot_o,
  output move_t out_move_o,
  output logic  out_end_o,
  output logic [Ranks-1:0] out_receives_o,
  output logic [Ranks-1:0] out_sends_o,
  output logic idle_o                           // holds no move
);

  typedef struct packed {
    slot_t slot;
    move_t move;
    logic end_;
  } held_t;

  typedef enum logic [2:0] { Empty, Wait, Count, Walk, Offer } state_e;
  state_e state_d, state_q;
  held_t held_d, held_q;
  logic second_d, second_q;                     // the list that is walked is that of the remote result
  pool_index_t index_d, index_q, left_d, left_q;
  logic [Ranks-1:0] receives_d, receives_q, sends_d, sends_q;
  rank_t word;

  unisono_ram_sdp #(.Width(RankWidth), .Depth(Calls * PoolWords)) u_pool (
    .clk_i, .wr_en_i(pool_write_i), .wr_addr_i({pool_write_slot_i, pool_write_index_i}),
    .wr_data_i(pool_write_word_i), .rd_en_i(1'b1), .rd_out_en_i(1'b1), .rd_addr_i({held_q.slot, index_q}),
    .rd_data_o(word)
  );

  logic first_list, second_list;                // of the move that comes
  assign first_list = !in_end_i && in_move_i.op1.kind == OperandKindArrival &&
                      in_move_i.arrival.mode != PeerModeRank;
  assign second_list = !in_end_i && in_move_i.remote.kind == RemoteKindMessage &&
                       in_move_i.remote.mode != PeerModeRank;
  logic held_second;
  assign held_second = held_q.move.remote.kind == RemoteKindMessage && held_q.move.remote.mode != PeerModeRank;

  assign in_ready_o = state_q == Empty || (state_q == Offer && out_ready_i);
  assign out_valid_o = state_q == Offer;
  assign idle_o = state_q == Empty;
  assign out_slot_o = held_q.slot;
  assign out_move_o = held_q.move;
  assign out_end_o = held_q.end_;
  assign out_receives_o = receives_q;
  assign out_sends_o = sends_q;

  always_comb begin
    state_d = state_q;
    held_d = held_q;
    second_d = second_q;
    index_d = index_q;
    left_d = left_q;
    receives_d = receives_q;
    sends_d = sends_q;

    unique case (state_q)
      Wait: begin
        index_d = index_q + 1'b1;
        state_d = Count;
      end
      Count: begin
        left_d = pool_index_t'(word);
        index_d = index_q + 1'b1;
        // The address of the first rank went out with the count's.
        state_d = word == '0 ? Offer : Walk;
      end
      Walk: begin
        if (second_q) sends_d[word] = 1'b1;
        else receives_d[word] = 1'b1;
        index_d = index_q + 1'b1;
        left_d = left_q - 1'b1;
        if (left_q == pool_index_t'(1)) begin
          if (!second_q && held_second) begin
            second_d = 1'b1;
            index_d = pool_index_t'(held_q.move.remote.peer);
            state_d = Wait;
          end else begin
            state_d = Offer;
          end
        end
      end
      default: begin
        if (state_q == Offer && out_ready_i) state_d = Empty;
        if (in_valid_i && in_ready_o) begin
          held_d = '{slot: in_slot_i, move: in_move_i, end_: in_end_i};
          receives_d = '0;
          sends_d = '0;
          second_d = !first_list;
          index_d = first_list ? pool_index_t'(in_move_i.arrival.peer) : pool_index_t'(in_move_i.remote.peer);
          state_d = first_list || second_list ? Wait : Offer;
        end
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Empty;
      held_q <= '0;
      second_q <= 1'b0;
      index_q <= '0;
      left_q <= '0;
      receives_q <= '0;
      sends_q <= '0;
    end else begin
      state_q <= state_d;
      held_q <= held_d;
      second_q <= second_d;
      index_q <= index_d;
      left_q <= left_d;
      receives_q <= receives_d;
      sends_q <= sends_d;
    end
  end

endmodule
