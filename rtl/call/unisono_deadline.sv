// Deadlines: a count of microseconds for each of several places, and a mark when it has passed.
//
// A deadline of n microseconds never fires early: the mark rises at the (n+1)th tick after it was set,
// hence between n and n+1 microseconds after it, and at most 2 * Places + 2 cycles later, because the
// places share one memory and one subtractor and are looked at one after the other; each setting
// meanwhile delays that walk by one more. Throughput: one setting per cycle, but a walk then stands still.
// A deadline of 0 takes the default; a default of 0 takes the longest, 2^32-1.

module unisono_deadline #(
  parameter int unsigned Places = 9,
  parameter int unsigned ClockMHz = 250,
  localparam int unsigned PlaceWidth = $clog2(Places)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

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

  assign tick_o    = tick_q;
  assign expired_o = expired_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || tick_count_q == TickWidth'(ClockMHz - 1)) begin
      tick_count_q <= '0;
    end else begin
      tick_count_q <= tick_count_q + TickWidth'(1);
    end
    tick_q <= rst_ni && tick_count_q == TickWidth'(ClockMHz - 1);
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

  always_ff @(posedge clk_i) begin
    if (set_q) begin
      left[set_place_q] <= set_value;
    end else if (write_back) begin
      left[place_q] <= left_next;
    end
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
