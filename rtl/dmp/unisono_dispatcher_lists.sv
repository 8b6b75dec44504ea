// Where the dispatcher is in a list of peers: of those that a move receives from, and of those that it sends to.
//
// Peers that it receives from stand in the program's constant pool: at the list's index how many they are, then one
// after the other. They are gone through three times: their arrivals are posted, once; then for each segment all are
// checked, and all are dispatched.
//
// Peers that it sends to are the bits of its progress, from which the next one is found. What a list gets out of a
// kernel's stream can be read only once: the segment is made as local result first, and then read for each peer.
//
// Latency: first and last one cycle after a step of the index, the pool's word one cycle after its question; the peers
// after the present one a cycle after the progress, the first of them two cycles. Throughput: one step per cycle.

module unisono_dispatcher_lists
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_look_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  list_command_e command_i,
  input  pool_index_t   pool_i,                // where the list stands
  output pool_index_t   pool_index_o,
  input  rank_t         pool_word_i,

  input  logic             fan_out_i,          // it is sent to several peers
  input  logic             made_i,             // and the segment's local result is there, or not needed
  input  logic [Ranks-1:0] peers_i,            // that have yet to get the segment
  input  rank_t            peer_i,             // which is sent to now

  output list_t list_o
);

  walk_e walk_q;
  pool_index_t index_q, count_q;               // 0: the count; 1 to count: the peers
  logic first_q, last_q;

  assign pool_index_o = pool_i + index_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      walk_q <= WalkPost;
      index_q <= '0;
      count_q <= '0;
    end else begin
      case (command_i)
        ListPost: begin
          walk_q <= WalkPost;
          index_q <= '0;
        end
        ListCheck: begin
          walk_q <= WalkCheck;
          index_q <= '0;
        end
        ListDispatch: begin
          walk_q <= WalkDispatch;
          index_q <= pool_index_t'(1);
        end
        ListCount: begin
          count_q <= pool_index_t'(pool_word_i);
          index_q <= pool_index_t'(1);
        end
        ListNext: index_q <= index_q + 1'b1;
        default: ;
      endcase
    end
  end
  // A peer is looked up between a step of the index and what is done for it, so these come a cycle later.
  always_ff @(posedge clk_i) begin
    first_q <= index_q == pool_index_t'(1);
    last_q <= index_q == count_q;
  end

  logic makes, next_any, next_any_q;
  logic [Ranks-1:0] peer_one, next_peers_q, unused_one;
  rank_t next_peer, next_peer_q;

  assign peer_one = Ranks'(1) << peer_i;
  unisono_lowest_one #(.Width(Ranks)) u_next_peer (
    .bits_i(next_peers_q), .any_o(next_any), .index_o(next_peer), .one_o(unused_one)
  );
  always_ff @(posedge clk_i) begin
    next_peers_q <= peers_i & ~peer_one;
    next_any_q <= next_any;
    next_peer_q <= next_peer;
  end

  assign makes = fan_out_i && !made_i;
  assign list_o = '{walk: walk_q, counts: index_q == '0, first: first_q, last: last_q, makes: makes,
                    keeps: fan_out_i && !makes && next_any_q, more: next_any_q, peers: next_peers_q, peer: next_peer_q};

endmodule
