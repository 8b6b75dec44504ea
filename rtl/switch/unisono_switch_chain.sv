// The fold of a switch: a cell for each port, and the crossbar by which running values go from cell to cell.
//
// A start names the ports whose words are folded, in the order of their numbers. The first port's cell begins with its
// own words; each further one takes the running value from the cell before it, as it comes, and combines its own word
// with it; what leaves the last one's cell is the result. So k ports fold one word per cycle, in k cells, and
// aggregations on other ports do so at the same time.
//
// Nothing waits inside. The chain takes a start once its words come to each cell behind those of earlier starts; until
// then this start waits, and all later ones with it. So each port gives its own words in the order of starts. The block
// that starts an aggregation has those words there when the chain pulls them: the first port's from the second cycle
// after the start on, each next port's a cell's latency later, one per cycle. It also has room for the results.
//
// A fold goes at the pace of the plugin that computes it; a start that is faster than the one before it waits until it
// does not overtake that in any cell.
//
// Sums and products of fp16 and bf16 over several ports round once: their running values and results are fp32, twice as
// many bits, to be narrowed by unisono_switch_narrow as result_mode_o says.
//
// Latency: k * (pace_latency + InputRegister) + 3 cycles from a start that need not wait to the first result of k ports;
// of one port, at the pace of the fastest plugin.
// Throughput: one word per cycle and aggregation, also from one start to the next on the same ports; one start per
// cycle.

module unisono_switch_chain
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = MaxPorts,  // 4 to MaxPorts
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t Funcs = SwitchFuncs,
  // In each cell, behind the crossbar. Without it a child takes a cycle less, but the clock is slower.
  parameter bit InputRegister = 1'b1,
  parameter int unsigned TagBits = 8,       // says which aggregation it is
  parameter int unsigned CountBits = 8,     // of words of a start
  localparam int unsigned DataBits = SwitchBytes * 8
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  input  logic                              start_valid_i,
  output logic                              start_ready_o,
  input  logic [Ports-1:0]                  start_ports_i,  // at least one
  input  func_e                             start_func_i,
  input  datatype_e                         start_dtype_i,
  input  logic [CountBits-1:0]              start_words_i,  // at least one
  input  logic [TagBits-1:0]                start_tag_i,

  // Own words; ready is what pulls them.
  input  logic [Ports-1:0]                  own_valid_i,
  output logic [Ports-1:0]                  own_ready_o,
  input  logic [Ports-1:0][DataBits-1:0]    own_data_i,
  input  logic [Ports-1:0][SwitchBytes-1:0] own_keep_i,

  // At the port of the last child.
  output logic [Ports-1:0]                  result_valid_o,
  output logic [Ports-1:0][DataBits-1:0]    result_data_o,
  output logic [Ports-1:0][DataBits-1:0]    result_upper_o, // of results that are to be narrowed: the upper half
  output logic [Ports-1:0][SwitchBytes-1:0] result_keep_o,
  output logic [Ports-1:0]                  result_last_o,
  output logic [Ports-1:0][1:0]             result_mode_o,  // cast_mode_e
  output logic [Ports-1:0][TagBits-1:0]     result_tag_o
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_chain: Ports must be 4 to %0d", MaxPorts);
  end

  localparam int unsigned SlowestLatency = pace_latency(Funcs[FuncProd[4:0]] ? 2 : 1) + 32'(InputRegister);
  // Cycles until a cell is free: the last cell of a start begins (Ports - 1) * Latency later.
  localparam int unsigned BusyBits = $clog2(Ports * SlowestLatency + (1 << CountBits));

  typedef logic [Ports-1:0] ports_t;
  typedef logic [BusyBits-1:0] busy_t;
  typedef logic [CountBits-1:0] words_t;

  // What goes along with a word from cell to cell.
  typedef struct packed {
    logic [TagBits-1:0] tag;
    func_e              func;
    datatype_e          dtype;
    pace_e              pace;
    logic               wide;
    ports_t             rest;    // ports that it has still to go to
  } beat_t;

  // What goes along inside a cell: the next port is chosen before, so that it is known when the word leaves.
  typedef struct packed {
    beat_t  beat;                // rest: without the next one
    ports_t next;                // one of them, or none
  } inside_t;

  // ---------------------------------------------------------------- starts
  // Where each port stands in the order is found in a cycle of its own.
  typedef struct packed {
    ports_t             ports;
    ports_t             first;
    func_e              func;
    datatype_e          dtype;
    pace_e              pace;
    logic               wide;
    words_t             words;
    logic [TagBits-1:0] tag;
    busy_t [Ports-1:0]  offset;  // cycles after which the first word comes to the port
  } start_t;

  logic   start_valid_q, start_free, go;
  start_t start_d, start_q;

  // How many ports of the start are before each port: a sum of fours, in three steps, and what is before it in its own
  // four.
  localparam int unsigned Fours = (MaxPorts + 3) / 4;
  typedef logic [$clog2(MaxPorts+1)-1:0] rank_t;
  rank_t [Fours-2:0] four;      // of the last, none is ahead of anything
  rank_t [Fours-1:0] ahead;
  logic [4*Fours-1:0] start_ports;

  function automatic rank_t ones(logic [3:0] bits);
    return rank_t'(bits[0]) + rank_t'(bits[1]) + rank_t'(bits[2]) + rank_t'(bits[3]);
  endfunction

  assign start_ports = (4 * Fours)'(start_ports_i);
  for (genvar f = 0; f < int'(Fours) - 1; f++) begin : gen_four
    assign four[f] = ones(start_ports[4*f+:4]);
  end
  always_comb begin
    ahead[0] = '0;
    ahead[1] = four[0];
    ahead[2] = four[0] + four[1];
    ahead[3] = (four[0] + four[1]) + four[2];
    ahead[4] = (four[0] + four[1]) + (four[2] + four[3]);
    ahead[5] = ((four[0] + four[1]) + (four[2] + four[3])) + four[4];
    ahead[6] = ((four[0] + four[1]) + (four[2] + four[3])) + (four[4] + four[5]);
  end

  // Cycles that so many cells take: each bit a function of five, for each pace.
  typedef busy_t [Paces-1:0][2**$bits(rank_t)-1:0] offsets_t;
  function automatic offsets_t offsets();
    offsets_t result;
    for (int unsigned c = 0; c < Paces; c++) begin
      for (int unsigned r = 0; r < 2 ** $bits(rank_t); r++) result[c][r] = busy_t'(r * (pace_latency(c) + 32'(InputRegister)));
    end
    return result;
  endfunction
  localparam offsets_t Offsets = offsets();
  // Cycles that a word is longer in a cell than one of the fastest plugin.
  function automatic busy_t more(pace_e pace);
    return busy_t'(pace_latency(32'(pace)) - pace_latency(0));
  endfunction

  always_comb begin
    start_d.first = start_ports_i & (-start_ports_i);
    start_d.pace  = start_ports_i == start_d.first ? PaceAlu : pace_of(start_func_i, start_dtype_i);
    for (int p = 0; p < int'(Ports); p++) begin
      rank_t rank;
      rank = ahead[p/4] + ones(start_ports[4*(p/4)+:4] & 4'((1 << (p % 4)) - 1));
      start_d.offset[p] = Offsets[start_d.pace][rank];
    end
    start_d.ports = start_ports_i;
    start_d.func  = start_func_i;
    start_d.dtype = start_dtype_i;
    start_d.wide  = rounds_once(start_func_i, start_dtype_i) && start_ports_i != start_d.first;
    start_d.words = start_words_i;
    start_d.tag   = start_tag_i;
  end

  assign start_ready_o = !start_valid_q || go;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) start_valid_q <= 1'b0;
    else if (start_ready_o) start_valid_q <= start_valid_i;
    if (start_ready_o && start_valid_i) start_q <= start_d;
  end

  // Cycles from now, this one included, until the last word of the start before leaves a cell, less those that the
  // fastest plugin takes. Words of the next one come in behind it, and leave behind it: the slower of both counts for
  // neither.
  busy_t [Ports-1:0] busy_q;
  pace_e [Ports-1:0] pace_q;     // of that start

  always_comb begin
    start_free = 1'b1;
    for (int p = 0; p < int'(Ports); p++) begin
      if (start_q.ports[p] &&
          busy_q[p] > start_q.offset[p] + more(pace_q[p] < start_q.pace ? pace_q[p] : start_q.pace)) start_free = 1'b0;
    end
  end
  assign go = start_valid_q && start_free;

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_busy
    always_ff @(posedge clk_i) begin
      if (!rst_ni) busy_q[p] <= '0;
      else if (go && start_q.ports[p]) busy_q[p] <= start_q.offset[p] + busy_t'(start_q.words) + more(start_q.pace) - busy_t'(1);
      else if (busy_q[p] != '0) busy_q[p] <= busy_q[p] - busy_t'(1);
      if (go && start_q.ports[p]) pace_q[p] <= start_q.pace;
    end
  end

  // ---------------------------------------------------------------- cells
  ports_t                             out_valid, out_last;
  logic [Ports-1:0][DataBits-1:0]     out_data, out_upper;
  logic [Ports-1:0][SwitchBytes-1:0]  out_keep;
  inside_t [Ports-1:0]                out_user;
  ports_t                             feeds;        // the cell begins with its own word
  ports_t [Ports-1:0]                 given;        // [to][from]

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_cell
    // The port's own words, where it is the first of a start.
    words_t left_q;
    beat_t  feed_q;
    logic   feed_last;

    assign feeds[p]   = left_q != '0;
    assign feed_last  = left_q == words_t'(1);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        left_q <= '0;
      end else if (go && start_q.first[p]) begin
        left_q <= start_q.words;
      end else if (feeds[p]) begin
        left_q <= left_q - words_t'(1);
      end
      if (go && start_q.first[p]) begin
        feed_q <= '{
          tag: start_q.tag,
          func: start_q.func,
          dtype: start_q.dtype,
          pace: start_q.pace,
          wide: start_q.wide,
          rest: start_q.ports & ~start_q.first
        };
      end
    end

    // The running value: from one of the cells of lower numbers.
    logic [DataBits-1:0] running, running_upper;
    beat_t               came, beat;
    logic                came_last, comes;
    inside_t             user;

    always_comb begin
      running   = '0;
      running_upper = '0;
      came      = '0;
      came_last = 1'b0;
      given[p]  = '0;
      for (int from = 0; from < p; from++) begin
        given[p][from] = out_valid[from] && out_user[from].next[p];
        running   |= out_data[from] & {DataBits{given[p][from]}};
        running_upper |= out_upper[from] & {DataBits{given[p][from]}};
        came      |= out_user[from].beat & {$bits(beat_t) {given[p][from]}};
        came_last |= out_last[from] && given[p][from];
      end
    end
    assign comes     = given[p] != '0;
    assign beat      = comes ? came : feed_q;
    always_comb begin
      ports_t next;
      next           = beat.rest & (-beat.rest);
      user.next      = next;
      user.beat      = beat;
      user.beat.rest = beat.rest & ~next;
    end
    assign own_ready_o[p] = comes || feeds[p];

    unisono_switch_fold #(
      .Datatypes(Datatypes),
      .Funcs    (Funcs),
      .InputRegister(InputRegister),
      .UserBits ($bits(inside_t))
    ) u_fold (
      .clk_i,
      .rst_ni,
      .in_valid_i  (comes || feeds[p]),
      .in_first_i  (!comes),
      .in_running_i(running),
      .in_running_upper_i(running_upper),
      .in_own_i    (own_data_i[p]),
      .in_keep_i   (own_keep_i[p]),
      .in_func_i   (beat.func),
      .in_dtype_i  (beat.dtype),
      .in_pace_i   (beat.pace),
      .in_wide_i   (beat.wide),
      .in_last_i   (comes ? came_last : feed_last),
      .in_user_i   (user),
      .out_valid_o (out_valid[p]),
      .out_data_o  (out_data[p]),
      .out_upper_o (out_upper[p]),
      .out_keep_o  (out_keep[p]),
      .out_last_o  (out_last[p]),
      .out_user_o  (out_user[p])
    );

    // ---------------------------------------------------------------- results
    always_ff @(posedge clk_i) begin
      result_valid_o[p] <= rst_ni && out_valid[p] && out_user[p].next == '0;
      result_data_o[p]  <= out_data[p];
      result_upper_o[p] <= out_upper[p];
      result_keep_o[p]  <= out_keep[p];
      result_last_o[p]  <= out_last[p];
      result_tag_o[p]   <= out_user[p].beat.tag;
      if (!out_user[p].beat.wide) result_mode_o[p] <= CastModePass;
      else result_mode_o[p] <= out_user[p].beat.dtype == DatatypeBf16 ? CastModeBf16 : CastModeFp16;
    end

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        assert (!(comes && feeds[p])) else $error("%m: a running value comes to a cell that begins a fold");
        assert ((given[p] & (given[p] - 1'b1)) == '0) else $error("%m: two running values come to one cell");
        assert (!(comes || feeds[p]) || own_valid_i[p]) else $error("%m: the port's own word is not there");
      end
    end
`endif
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && start_valid_i) begin
      assert (start_ports_i != '0 && start_words_i != '0) else $error("%m: a start without ports or words");
    end
  end
  unisono_handshake_check #(
    .Width(Ports + 8 + 6 + CountBits + TagBits)
  ) u_check_start (
    .clk_i,
    .rst_ni,
    .valid_i(start_valid_i),
    .ready_i(start_ready_o),
    .data_i ({start_ports_i, start_func_i, start_dtype_i, start_words_i, start_tag_i})
  );
`else
  logic unused;
  assign unused = ^own_valid_i;
`endif

endmodule
