// What the dispatcher keeps of each place of the windows: the move as it came, the run that it has become, how far it
// is, and whether the run is of the slot's present program.
//
// Runs of a call that is cleared stay in their memory. Whether a run is *live* is the difference of two bits, one that
// making it writes and one that clearing its slot writes, so that all of a slot go at once.
//
// Latency: one cycle, and what is written in a cycle can be read from the next one on. So a run that is made counts as
// live two cycles later. Throughput: one of each per cycle. Restrictions: id_i is what next_id_i was in the cycle
// before. In the cycle after one in which something of a slot became live or was cleared, neither happens in that
// slot.

module unisono_dispatcher_runs
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_look_pkg::*;
(
  input  logic clk_i,

  // A move enters a window.
  input  logic     move_valid_i,
  input  move_id_t move_id_i,
  input  given_t   move_i,

  // What is there in the next cycle.
  input  move_id_t  next_id_i,
  input  logic      read_move_i,                // what is not read anew stays
  input  logic      read_run_i,
  output given_t    move_o,
  output run_t      run_o,
  output progress_t progress_o,
  output logic      live_o,

  // What is written, for the move that the look is about.
  input  move_id_t  id_i,
  input  logic      run_write_i,
  input  run_t      run_i,
  input  logic      progress_write_i,
  input  progress_t progress_i,
  input  logic      live_raise_i,
  input  logic      live_clear_i                // all of its slot
);

  localparam int unsigned Moves = Calls * Window;

  unisono_ram_sdp #(.Width($bits(given_t)), .Depth(Moves)) u_moves (
    .clk_i, .wr_en_i(move_valid_i), .wr_addr_i(move_id_i), .wr_data_i(move_i),
    .rd_en_i(read_move_i), .rd_addr_i(next_id_i), .rd_out_en_i(1'b1), .rd_data_o(move_o)
  );
  unisono_ram_sdp #(.Width($bits(run_t)), .Depth(Moves)) u_runs (
    .clk_i, .wr_en_i(run_write_i), .wr_addr_i(id_i), .wr_data_i(run_i),
    .rd_en_i(read_run_i), .rd_addr_i(next_id_i), .rd_out_en_i(1'b1), .rd_data_o(run_o)
  );
  unisono_ram_sdp #(.Width($bits(progress_t)), .Depth(Moves)) u_progress (
    .clk_i, .wr_en_i(progress_write_i), .wr_addr_i(id_i), .wr_data_i(progress_i),
    .rd_en_i(read_run_i), .rd_addr_i(next_id_i), .rd_out_en_i(1'b1), .rd_data_o(progress_o)
  );

  // Invariant: a run is live where the two differ.
  (* ram_style = "distributed" *) logic [Window-1:0] live_up_q [Calls];
  (* ram_style = "distributed" *) logic [Window-1:0] live_down_q [Calls];
  logic [Window-1:0] live_read, lives_q, live_down_read_q;
  logic [7:0] live_near_q;                      // of the eight runs that have the same place but for its lowest bits

  initial begin
    for (int s = 0; s < int'(Calls); s++) begin
      live_up_q[s] = '0;
      live_down_q[s] = '0;
    end
  end
  // A slot's runs are read with the move that a look is about, before the look.
  assign live_read = live_up_q[next_id_i.slot] ^ live_down_q[next_id_i.slot];
  always_ff @(posedge clk_i) begin
    lives_q <= live_read;
    live_near_q <= live_read[{next_id_i.entry[EntryWidth-1:3], 3'b0} +: 8];
    live_down_read_q <= live_down_q[next_id_i.slot];
  end
  assign live_o = live_near_q[id_i.entry[2:0]];
  always_ff @(posedge clk_i) begin
    if (live_raise_i) live_up_q[id_i.slot] <= live_down_read_q ^ (lives_q | (Window'(1) << id_i.entry));
  end
  always_ff @(posedge clk_i) begin
    if (live_clear_i) live_down_q[id_i.slot] <= live_down_read_q ^ lives_q;
  end

endmodule
