// Deadlines: a count of microseconds for each of several places, and a mark when it has passed.
//
// A deadline of n microseconds never fires early: the mark rises at the (n+1)th tick after it was set,
// hence between n and n+1 microseconds after it, and at most 2 * Places + 2 cycles later, because the
// places share one memory and one subtractor and are looked at one after the other; each setting
// meanwhile delays that walk by one more. Throughput: one setting per cycle, but a walk then stands still.
// A deadline of 0 takes the default; a default of 0 takes the longest, 2^32-1.
//
// Skips: an edge may stand for several cycles, in which nothing is set or stopped and no deadline ends, or for none
// (docs/rtl/skipping.md). Walks that begin in them are done at their end. For simulation only.

module unisono_deadline #(
  parameter int unsigned Places = 9,
  parameter int unsigned ClockMHz = 250,
  parameter bit          Skips = 1'b0,
  localparam int unsigned PlaceWidth = $clog2(Places)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Cycles that end at this edge; without Skips it is 1, whatever this says. And for how many from now on no mark rises.
  input  logic [31:0]           cycles_i,
  output logic [31:0]           calm_o,

  input  logic [31:0]           default_us_i,

  input  logic                  set_i,
  input  logic [PlaceWidth-1:0] set_place_i,
  input  logic [31:0]           set_us_i,

  // One bit for each place: its deadline no longer counts. Setting it in the same cycle wins.
  input  logic [Places-1:0]     stop_i,

  // High from the end of the deadline until it is stopped or set anew.
  output logic [Places-1:0]     expired_o,

  // One cycle each microsecond.
  output logic                  tick_o
);

  if (Places < 2 || Places > 32) begin : gen_bad_places
    $error("unisono_deadline: Places must be between 2 and 32");
  end
  if (ClockMHz < 2 * Places + 4) begin : gen_bad_clock
    $error("unisono_deadline: a microsecond is too short to look at all places");
  end

  localparam int unsigned TickWidth = $clog2(ClockMHz);

  logic [TickWidth-1:0]  tick_count_q;
  logic                  tick_q;
  logic [PlaceWidth-1:0] walk_q;
  logic                  walking_q, step;
  logic [Places-1:0]     running_q, expired_q;
  logic [31:0]           left_q, left_next, set_value;
  logic [PlaceWidth-1:0] place_q;
  logic                  read_q, write_back, set_q;
  logic [Places-1:0]     fresh_q;

  (* ram_style = "distributed" *) logic [31:0] left [Places];

  // Whether the edge stands for another number of cycles than one; the count of the microsecond after them, and how many
  // walks begin in them.
  logic        jumps;
  logic [31:0] tick_jump, walks;

  assign tick_o    = tick_q;
  assign expired_o = expired_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tick_count_q <= '0;
      tick_q <= 1'b0;
    end else if (jumps) begin
      tick_count_q <= TickWidth'(tick_jump);
      if (cycles_i != '0) tick_q <= tick_jump == '0;
    end else begin
      tick_count_q <= tick_count_q == TickWidth'(ClockMHz - 1) ? '0 : tick_count_q + TickWidth'(1);
      tick_q <= tick_count_q == TickWidth'(ClockMHz - 1);
    end
  end

  // A place that is set while a walk is under way is left out of it: it began after the tick.
  logic [31:0]           set_us_q;
  logic [PlaceWidth-1:0] set_place_q;

  always_comb begin
    set_value = set_us_q;
    if (set_us_q == '0) begin
      set_value = default_us_i == '0 ? '1 : default_us_i;
    end
  end

  // One write port: setting goes first, and the walk waits while it does.
  assign step       = walking_q && !set_q && !read_q;
  assign write_back = read_q && !set_q;
  assign left_next  = left_q - 32'd1;

  if (Skips) begin : gen_skips
    logic [32:0] sum;
    logic [63:0] calm;
    logic [31:0] least;
    assign jumps = cycles_i != 32'd1;
    assign sum = 33'(tick_count_q) + 33'(cycles_i);
    always_comb begin
      {tick_jump, walks} = {32'(tick_count_q), 32'd0};
      if (jumps && cycles_i != '0) begin
        tick_jump = 32'(sum % 33'(ClockMHz));
        walks = 32'((sum - 33'd1) / 33'(ClockMHz));
      end
    end
    always_ff @(posedge clk_i) begin
      if (walks != '0) begin
        for (int unsigned p = 0; p < Places; p++) left[p] <= left[p] - walks;
      end else if (set_q) begin
        left[set_place_q] <= set_value;
      end else if (write_back) begin
        left[place_q] <= left_next;
      end
    end
    // The walk that finds 0 is not left out: the one after as many as the least that is left.
    always_comb begin
      least = '1;
      for (int unsigned p = 0; p < Places; p++) if (running_q[p] && left[p] < least) least = left[p];
      calm = (64'(least) + 64'd1) * 64'(ClockMHz) - 64'(tick_count_q);
    end
    assign calm_o = calm > 64'hffff_ffff ? '1 : calm[31:0];
  end else begin : gen_steps
    assign {jumps, tick_jump, walks, calm_o} = '0;
    always_ff @(posedge clk_i) begin
      if (set_q) begin
        left[set_place_q] <= set_value;
      end else if (write_back) begin
        left[place_q] <= left_next;
      end
    end
    logic unused;
    assign unused = |{cycles_i, walks};
  end

  always_ff @(posedge clk_i) begin
    set_us_q    <= set_us_i;
    set_place_q <= set_place_i;
    if (!rst_ni) begin
      set_q     <= 1'b0;
      walk_q    <= '0;
      walking_q <= 1'b0;
      read_q    <= 1'b0;
      running_q <= '0;
      expired_q <= '0;
      fresh_q   <= '0;
    end else begin
      set_q <= set_i;
      if (tick_q && running_q != '0) begin
        walking_q <= 1'b1;
        walk_q    <= '0;
        fresh_q   <= '0;
      end else if (step) begin
        walk_q <= walk_q + PlaceWidth'(1);
        if (walk_q == PlaceWidth'(Places - 1)) begin
          walking_q <= 1'b0;
        end
      end
      if (step) begin
        read_q <= running_q[walk_q] && !fresh_q[walk_q];
      end else if (write_back) begin
        read_q <= 1'b0;
      end
      // What was read of a place that is set now is no longer true.
      if (set_i && set_place_i == (step ? walk_q : place_q)) begin
        read_q <= 1'b0;
      end
      if (write_back && running_q[place_q] && left_q == '0) begin
        running_q[place_q] <= 1'b0;
        expired_q[place_q] <= 1'b1;
      end
      for (int unsigned p = 0; p < Places; p++) begin
        if (stop_i[p]) begin
          running_q[p] <= 1'b0;
          expired_q[p] <= 1'b0;
        end
      end
      if (set_i) begin
        running_q[set_place_i] <= 1'b1;
        expired_q[set_place_i] <= 1'b0;
        fresh_q[set_place_i]   <= 1'b1;
      end
    end
    if (step) begin
      left_q  <= left[walk_q];
      place_q <= walk_q;
    end
  end

endmodule
