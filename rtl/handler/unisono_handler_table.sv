// Goes through the lanes of a vector in their order: spvacc on a table in memory, and sums of lanes.
//
// Columns whose index is beyond the table cost nothing; a beat without any costs the cycle in which that is seen, and so
// an idle tile of 16 lanes one cycle where there are 16 lanes. The others go one per cycle: read the entry, add, write.
// One whose entry is on its way waits for it, so that an index that comes twice counts twice. Sums into a scalar have
// an order: of floating point each waits for the one before it, 9 cycles. Integers are added in the cycle after the
// read, and sums of integer lanes a beat per cycle.
//
// fp16 and bf16 are added in fp32, and rounded when they are stored. The adder of floating point is that of lane 0.
//
// Where there are 16 columns, operands are taken with `start_i`, and what follows may go on meanwhile. Else they stay
// until `done_o`, which may be in the same cycle. What was before a lane that reaches beyond memory has been written
// then. The next spvacc may begin when the last lane of one on the same table has gone.
module unisono_handler_table
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned Columns = 16,
  parameter int unsigned MemoryBytes = 65536,
  localparam int unsigned Beats = 16 / Columns,
  localparam int unsigned BeatBits = Beats > 1 ? $clog2(Beats) : 1,
  localparam int unsigned LaneBits = Columns > 1 ? $clog2(Columns) : 1,
  localparam int unsigned AddressBits = $clog2(MemoryBytes)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  output logic                    ready_o,
  output logic                    busy_o,
  input  logic                    start_i,  // if `ready_o`
  input  op_e                     op_i,
  input  element_e                element_i,
  input  cell_t                   table_i,
  input  cell_t                   limit_i,
  input  cell_t                   value_i,  // of spvacc_vx
  input  cell_t                   sum_i,  // what sums begin with
  input  logic [24:0]             memory_bytes_i,
  output logic [BeatBits-1:0]     beat_o,  // the beat whose lanes it wants
  input  cell_t [Columns-1:0]       lanes_i,  // indexes, or of `sum` what is added
  input  cell_t [Columns-1:0]       values_i,  // of spvacc_vv
  output logic                    done_o,
  output logic                    beyond_o,  // with `done_o`: a lane reached beyond memory
  output cell_t                   sum_o,  // with `done_o`

  output logic                    add_o,
  output element_e                add_element_o,
  output cell_t                   add_a_o,
  output cell_t                   add_b_o,
  input  cell_t                   added_i,  // 8 cycles later

  output logic                    rd_en_o,
  output logic [AddressBits-1:0]  rd_address_o,
  input  cell_t                   rd_data_i,  // a cycle later; more than the element
  output logic                    wr_en_o,
  output logic [AddressBits-1:0]  wr_address_o,
  output logic [1:0]              wr_size_o,
  output cell_t                   wr_data_o
);

  localparam int unsigned Steps = 9;  // from the entry to the sum

  logic going_q, busy_q, beyond_q;  // lanes are to come; or are on their way; one was beyond memory
  logic [Steps-1:0] way_q;  // step 0 has the entry

  // What it was started with.
  op_e op;
  element_e element;
  cell_t table_, limit, value;
  cell_t [Columns-1:0] lanes, values;
  if (Beats == 1) begin : gen_taken
    op_e op_q;
    element_e element_q;
    cell_t table_q, limit_q, value_q;
    cell_t [Columns-1:0] lanes_q, values_q;
    always_ff @(posedge clk_i) begin
      if (start_i) begin
        op_q <= op_i;
        element_q <= element_i;
        table_q <= table_i;
        limit_q <= limit_i;
        value_q <= value_i;
        lanes_q <= lanes_i;
        values_q <= values_i;
      end
    end
    assign op = start_i ? op_i : op_q;
    assign element = start_i ? element_i : element_q;
    assign table_ = start_i ? table_i : table_q;
    assign limit = start_i ? limit_i : limit_q;
    assign value = start_i ? value_i : value_q;
    assign lanes = start_i ? lanes_i : lanes_q;
    assign values = start_i ? values_i : values_q;
    // What is on its way is added and written as what is started now.
    assign ready_o = !going_q && (way_q == '0 || (!is_sum(op_i) && !is_sum(op_q) && element_i == element_q
                                                  && table_i == table_q));
  end else begin : gen_stays
    assign op = op_i;
    assign element = element_i;
    assign table_ = table_i;
    assign limit = limit_i;
    assign value = value_i;
    assign lanes = lanes_i;
    assign values = values_i;
    assign ready_o = !busy_q;
  end

  function automatic logic is_sum(op_e code);
    return code == OpSpvaccXv || code == OpSum;
  endfunction

  logic floating, narrow, sums, tables;
  logic [1:0] size;
  assign floating = is_floating(element);
  assign narrow = floating && size == 2'd1;
  assign tables = op != OpSum;
  assign sums = is_sum(op);
  assign size = size_of(element);
  assign busy_o = busy_q;

  // The lane whose turn it is. In the first cycle nothing has been done.
  logic                going;
  logic [BeatBits-1:0] beat_q, beat;
  logic [Columns-1:0]    gone_q, left, turn;
  assign going = start_i || going_q;
  assign beat = start_i ? '0 : beat_q;
  assign beat_o = beat;
  for (genvar l = 0; l < int'(Columns); l++) begin : gen_left
    assign left[l] = (!tables || {32'd0, lanes[l][31:0]} < limit) && (start_i || !gone_q[l]);
  end
  assign turn = left & (~left + Columns'(1));

  logic [LaneBits-1:0] lane;
  always_comb begin
    lane = '0;
    for (int unsigned l = 0; l < Columns; l++) if (turn[l]) lane |= LaneBits'(l);
  end

  logic [31:0] index;
  logic [34:0] offset;
  logic [24:0] most;  // where the last element of memory begins
  logic outside;
  assign index = lanes[lane][31:0];
  assign offset = {3'd0, index} << size;
  assign most = memory_bytes_i - (25'd1 << size);
  assign outside = tables && ((25'd1 << size) > memory_bytes_i || table_ > 64'(most)
                              || {29'd0, offset} > 64'(most) - table_);

  logic [Steps-1:0][31:0] index_q;
  cell_t                  with_q;
  logic [Steps-1:0]       same;
  logic last, waits, issue, whole;
  assign last = floating ? way_q[Steps-1] : way_q[0];
  for (genvar s = 0; s < int'(Steps); s++) begin : gen_same
    assign same[s] = way_q[s] && index_q[s] == index;
  end
  assign waits = sums ? floating && way_q[Steps-2:0] != '0 : same != '0;
  // Integer lanes are summed by the beat.
  assign whole = !tables && !floating;
  assign issue = going && left != '0 && !waits && !outside && !whole;

  logic over, ends;  // this beat has no lane to come; nor has any
  assign over = left == '0 || whole || (issue && left == turn);
  assign ends = going && ((over && beat == BeatBits'(Beats - 1)) || (left != '0 && outside));
  // What is at its last step has been written in the next cycle.
  assign done_o = (ends || (!going && busy_q)) && !issue && (!floating || way_q[Steps-2:0] == '0);
  assign beyond_o = beyond_q || (going && left != '0 && outside);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      going_q <= 1'b0;
      busy_q <= 1'b0;
      beyond_q <= 1'b0;
      way_q <= '0;
    end else begin
      going_q <= going && !ends;
      busy_q <= (start_i || busy_q) && !done_o;
      beyond_q <= beyond_o && !done_o;
      way_q <= {floating ? way_q[Steps-2:0] : '0, issue};
    end
  end
  always_ff @(posedge clk_i) begin
    if (going) begin
      gone_q <= over ? '0 : issue ? (start_i ? turn : gone_q | turn) : start_i ? '0 : gone_q;
      beat_q <= over ? beat + BeatBits'(1) : beat;
    end
    index_q <= {index_q[Steps-2:0], index};
    with_q <= !tables ? lanes[lane] : op == OpSpvaccVv ? values[lane] : value;
  end

  assign rd_en_o = issue && tables;
  assign rd_address_o = AddressBits'(table_) + AddressBits'(offset);

  // What is added: to the entry, or to the sum so far.
  cell_t entry, first, second, plain, stored, mask, total, sum_q;
  assign mask = bits_of(size);
  always_comb begin
    entry = rd_data_i & mask;
    if (narrow) entry = to_fp32(rd_data_i, element);
    if (!tables) entry = with_q;
  end
  assign first = sums ? sum_q : entry;
  assign second = sums ? entry : with_q;
  assign add_o = way_q[0];
  assign add_element_o = element;
  assign add_a_o = first;
  assign add_b_o = second;
  assign plain = (first + second) & mask;
  assign total = floating ? added_i : plain;
  assign stored = narrow ? from_fp32(added_i, element) : total;
  assign wr_en_o = last && tables && !sums;
  assign wr_address_o = AddressBits'(table_)
                      + AddressBits'({3'd0, floating ? index_q[Steps-1] : index_q[0]} << size);
  assign wr_size_o = size;
  assign wr_data_o = stored;

  cell_t together;
  always_comb begin
    together = start_i ? sum_i : sum_q;
    for (int unsigned l = 0; l < Columns; l++) together += lanes[l];
  end
  always_comb begin
    sum_o = start_i ? sum_i : sum_q;
    if (whole) sum_o = together & mask;
    else if (last) sum_o = total;
  end
  always_ff @(posedge clk_i) if (going || last) sum_q <= sum_o;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    assert (!rst_ni || !start_i || ready_o) else $error("%m: started when it is not ready");
  end
`endif

endmodule
