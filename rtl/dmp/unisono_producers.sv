// How far the producers of segment dependencies are, and which moves wait for them.
//
// A move that follows another one element by element (rule 10 of docs/model.md) may go on to the segment whose bytes
// the earlier move has made visible. Ends of jobs add to what a move has made. A look asks for its move and learns a
// limit; one that finds its segment beyond it says that it waits, and is kicked when a job of its call has ended.
//
// A place of a window is used again at most once while a move that depends on it lives, so one bit tells whether the
// producer still holds it (lap). If it does not, it is complete.
//
// Latency: question to limit 3 cycles, and then the limit follows; end to kick 5. Throughput: one question, one end
// and one kick per cycle.
// Restrictions: a move says that it waits in a cycle in which it has seen the limit, never later.

module unisono_producers
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // A call is cleared: none of its moves waits any more.
  input  logic  clear_valid_i,
  input  slot_t clear_slot_i,

  // A move enters its window. Distances to its producers, 0: none.
  input  logic        push_valid_i,
  input  move_id_t    push_id_i,
  input  generation_t push_generation_i,
  input  entry_t      push_distance0_i,
  input  entry_t      push_distance1_i,

  // A job has ended, whose local result has so many bytes more.
  input  logic           end_valid_i,
  input  move_id_t       end_id_i,
  input  generation_t    end_generation_i,
  input  segment_bytes_t end_bytes_i,
  input  logic           end_all_i,        // all of it at once, however long it is

  // How many bytes a move may have done. One cycle after the question it is known whether it follows no other (free).
  input  move_id_t       ask_id_i,
  output logic           free_o,
  output message_bytes_t limit_o,
  output logic           limited_o,        // without: all

  // It waits for more.
  input  logic     wait_valid_i,
  input  move_id_t wait_id_i,
  output logic     kick_valid_o,
  input  logic     kick_ready_i,
  output move_id_t kick_id_o
);

  localparam int unsigned Moves = Calls * Window;

  typedef struct packed {
    logic valid;
    logic lap;
    entry_t entry;
  } producer_t;

  // --------------------------------------------------------------------------------------------- producers
  // Of each move, and of each place: the lap of the move that holds it, and its generation. Whether that move has made
  // anything is the difference of two bits with one writer each: what it has made counts from its first end on.

  logic lap_d;
  logic [Calls-1:0] lap_q;
  (* ram_style = "distributed" *) logic lap_mem [Moves];
  (* ram_style = "distributed" *) generation_t generation_mem [Moves];
  (* ram_style = "distributed" *) logic up_mem [Moves];
  (* ram_style = "distributed" *) logic down_mem [Moves];

  // A program begins at place 0, and each round of the window does.
  assign lap_d = lap_q[push_id_i.slot] ^ (push_id_i.entry == '0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) lap_q <= '0;
    else if (push_valid_i) lap_q[push_id_i.slot] <= lap_d;
  end
  always_ff @(posedge clk_i) begin
    if (push_valid_i) begin
      lap_mem[push_id_i] <= lap_d;
      generation_mem[push_id_i] <= push_generation_i;
      up_mem[push_id_i] <= !down_mem[push_id_i];
    end
  end

  function automatic producer_t producer(entry_t entry, entry_t distance, logic lap);
    return '{valid: distance != '0, lap: lap ^ (distance > entry), entry: entry - distance};
  endfunction

  producer_t [1:0] push_producers, producers;
  assign push_producers[0] = producer(push_id_i.entry, push_distance0_i, lap_d);
  assign push_producers[1] = producer(push_id_i.entry, push_distance1_i, lap_d);

  unisono_ram_sdp #(.Width($bits(push_producers)), .Depth(Moves)) u_producers (
    .clk_i, .wr_en_i(push_valid_i), .wr_addr_i(push_id_i), .wr_data_i(push_producers),
    .rd_en_i(1'b1), .rd_addr_i(ask_id_i), .rd_out_en_i(1'b1), .rd_data_o(producers)
  );

  // -------------------------------------------------------------------------------------------------- ends
  // First cycle: what it had made is read. Second: more is written.

  logic end_valid_q, end_first_q, end_all_q, forward_q, end_take;
  move_id_t end_id_q;
  segment_bytes_t end_bytes_q;
  message_bytes_t made, made_before, made_now, made_q;

  assign end_take = end_valid_i && (end_all_i || end_bytes_i != '0) && end_generation_i == generation_mem[end_id_i];
  assign made_before = end_first_q ? '0 : forward_q ? made_q : made;
  assign made_now = end_all_q ? '1 : made_before + message_bytes_t'(end_bytes_q);

  always_ff @(posedge clk_i) begin
    end_valid_q <= rst_ni && end_take;
    end_first_q <= up_mem[end_id_i] != down_mem[end_id_i];
    end_id_q <= end_id_i;
    end_bytes_q <= end_bytes_i;
    end_all_q <= end_all_i;
    // What is written in this cycle is not read in it.
    forward_q <= end_valid_q && end_id_q == end_id_i;
    made_q <= made_now;
  end
  always_ff @(posedge clk_i) begin
    if (end_take) down_mem[end_id_i] <= up_mem[end_id_i];
  end

  unisono_ram_sdp #(.Width($bits(message_bytes_t)), .Depth(Moves)) u_made (
    .clk_i, .wr_en_i(end_valid_q), .wr_addr_i(end_id_q), .wr_data_i(made_now),
    .rd_en_i(1'b1), .rd_addr_i(end_id_i), .rd_out_en_i(1'b1), .rd_data_o(made)
  );

  // ------------------------------------------------------------------------------------------------ limits

  assign free_o = !producers[0].valid && !producers[1].valid;

  slot_t slot_q;
  logic [1:0] limits_q, none_q;
  message_bytes_t [1:0] bytes;
  always_ff @(posedge clk_i) slot_q <= ask_id_i.slot;

  for (genvar k = 0; k < 2; k++) begin : gen_producer
    move_id_t id;
    assign id = '{slot: slot_q, entry: producers[k].entry};
    unisono_ram_sdp #(.Width($bits(message_bytes_t)), .Depth(Moves)) u_copy (
      .clk_i, .wr_en_i(end_valid_q), .wr_addr_i(end_id_q), .wr_data_i(made_now),
      .rd_en_i(1'b1), .rd_addr_i(id), .rd_out_en_i(1'b1), .rd_data_o(bytes[k])
    );
    // The first end clears the difference a cycle before its bytes are written.
    always_ff @(posedge clk_i) begin
      limits_q[k] <= producers[k].valid && lap_mem[id] == producers[k].lap;
      none_q[k] <= up_mem[id] != down_mem[id] || (end_valid_q && end_first_q && end_id_q == id);
    end
  end

  message_bytes_t [1:0] limit;
  always_comb begin
    for (int k = 0; k < 2; k++) limit[k] = !limits_q[k] ? '1 : none_q[k] ? '0 : bytes[k];
  end
  always_ff @(posedge clk_i) begin
    limit_o <= limit[0] < limit[1] ? limit[0] : limit[1];
    limited_o <= |limits_q;
  end

  // ------------------------------------------------------------------------------------------------- kicks
  // A call in which a job has ended is gone through once, after all that may have missed the end have said so.

  localparam int unsigned Delay = 3;
  logic [Delay-1:0][Calls-1:0] ended_q;
  logic [Calls-1:0] dirty_q, ended, turn, turn_later, turn_any_one, turn_later_one;
  logic turn_any, turn_is_later, walks_d, kick;
  slot_t turn_slot, turn_any_slot, turn_later_slot, walk_slot_q;
  logic [Calls-1:0][Window-1:0] waits_q;
  logic [Window-1:0] walk_q, walk_one;
  entry_t walk_entry;

  assign ended = end_valid_q ? Calls'(1) << end_id_q.slot : '0;
  assign turn = dirty_q;
  assign turn_later = dirty_q & (({Calls{1'b1}} << 1) << walk_slot_q);
  unisono_lowest_one #(.Width(Calls)) u_turn_any (
    .bits_i(turn), .any_o(turn_any), .index_o(turn_any_slot), .one_o(turn_any_one)
  );
  unisono_lowest_one #(.Width(Calls)) u_turn_later (
    .bits_i(turn_later), .any_o(turn_is_later), .index_o(turn_later_slot), .one_o(turn_later_one)
  );
  assign turn_slot = turn_is_later ? turn_later_slot : turn_any_slot;
  unisono_lowest_one #(.Width(Window)) u_walk (
    .bits_i(walk_q), .any_o(kick_valid_o), .index_o(walk_entry), .one_o(walk_one)
  );
  assign kick_id_o = '{slot: walk_slot_q, entry: walk_entry};
  assign kick = kick_valid_o && kick_ready_i;
  assign walks_d = turn_any && (walk_q == '0 || (kick && walk_q == walk_one));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ended_q <= '0;
      dirty_q <= '0;
      walk_slot_q <= '0;
      walk_q <= '0;
      waits_q <= '0;
    end else begin
      ended_q <= {ended_q[Delay-2:0], ended};
      for (int s = 0; s < int'(Calls); s++) begin
        if (ended_q[Delay-1][s]) dirty_q[s] <= 1'b1;
        else if (walks_d && turn_slot == slot_t'(s)) dirty_q[s] <= 1'b0;
      end
      if (walks_d) begin
        walk_slot_q <= turn_slot;
        walk_q <= waits_q[turn_slot];
        waits_q[turn_slot] <= '0;
      end else if (kick) begin
        walk_q <= walk_q & ~walk_one;
      end
      if (wait_valid_i) waits_q[wait_id_i.slot][wait_id_i.entry] <= 1'b1;
      if (clear_valid_i) begin
        waits_q[clear_slot_i] <= '0;
        if (walk_slot_q == clear_slot_i) walk_q <= '0;
      end
    end
  end

  logic unused;
  assign unused = ^{turn_any_one, turn_later_one};

endmodule
