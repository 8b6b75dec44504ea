// A queue of places in which each stands at most once.
//
// Who kicks a place puts it at the end of the queue, unless it stands there already. So the queue has room for every
// place there is, and refuses nothing. A place that is kicked in the cycle in which it leaves, or later, comes again:
// what may have changed for it after it left is seen.
//
// Latency: what is kicked finds out in the next cycle whether it stands in the queue; in an empty one it is on offer 2
// cycles after the kick. Throughput: one kick, and one that leaves, per cycle; a place that is kicked while it is on
// offer stays there for another cycle. Restrictions: after a reset every place must be swept, one per cycle, before
// the first kick: what stood in the queue is gone, and who stood there is not.

module unisono_kick_queue #(
  parameter int unsigned Depth = 512,               // places
  localparam int unsigned Width = $clog2(Depth)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             kick_valid_i,
  input  logic [Width-1:0] kick_place_i,

  output logic             next_valid_o,
  input  logic             next_take_i,
  output logic [Width-1:0] next_place_o,

  input  logic             sweep_valid_i,
  input  logic [Width-1:0] sweep_place_i
);

  if (Depth < 2 || Depth != 1 << Width) begin : gen_bad_depth
    $error("unisono_kick_queue: Depth must be a power of two, and at least 2");
  end

  logic kicked, push_valid_q, pop_valid, queue_ready, unused_lower_bit, unused_read_bit;
  logic [Width-1:0] push_id_q, pop_id;
  logic [Width:0] unused_count;
  // A place that was kicked in the cycle before leaves in the next one: no look begins beside its own kick.
  logic pop_waits;

  assign pop_waits = push_valid_q && push_id_q == pop_id;
  assign next_valid_o = pop_valid && !pop_waits;
  assign next_place_o = pop_id;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      push_valid_q <= 1'b0;
      push_id_q <= '0;
    end else begin
      push_valid_q <= kick_valid_i;
      push_id_q <= kick_place_i;
    end
  end

  // Invariant: a bit is high exactly while its place is in the queue.
  unisono_flags #(.Depth(Depth)) u_kicked (
    .clk_i, .raise_valid_i(push_valid_q), .raise_index_i(push_id_q), .raise_bit_o(kicked),
    .lower_valid_i(sweep_valid_i || next_take_i), .lower_index_i(sweep_valid_i ? sweep_place_i : pop_id),
    .lower_bit_o(unused_lower_bit), .read_index_i(push_id_q), .read_bit_o(unused_read_bit)
  );
  unisono_fifo #(.Width(Width), .Depth(Depth), .BlockRam(1'b0)) u_kicks (
    .clk_i, .rst_ni, .in_valid_i(push_valid_q && !kicked), .in_ready_o(queue_ready), .in_data_i(push_id_q),
    .out_valid_o(pop_valid), .out_ready_i(next_take_i), .out_data_o(pop_id), .count_o(unused_count)
  );

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!push_valid_q || kicked || queue_ready) else $error("a kick is lost");
      assert (!next_take_i || next_valid_o) else $error("a place is taken that is not on offer");
      assert (!sweep_valid_i || (!push_valid_q && !kick_valid_i && !pop_valid)) else $error("a kick during the sweep");
    end
  end
  `endif

endmodule
