// A bank of tables: adds to the entries that it is given, in their order.
//
// Entries wait in a queue until their turn, so that one that must wait holds up nobody but its own bank. An entry of
// floating point that is on its way is waited for; of integers the sum goes to the next one at once.
//
// Latency from the queue's end to the entry's being written: 2 cycles of integers, 10 of floating point. Throughput: an
// entry per cycle.
module unisono_handler_bank
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned AddressBits = 16,
  parameter int unsigned Depth = 16  // of the queue: a power of two
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  element_e               element_i,  // of all that is here
  input  logic                   push_i,  // if `room_o`
  input  logic [AddressBits-1:0] at_i,
  input  cell_t                  value_i,
  output logic                   room_o,
  output logic                   busy_o,

  output logic                   add_o,
  output cell_t                  add_a_o,
  output cell_t                  add_b_o,
  input  cell_t                  added_i,  // 8 cycles later

  output logic                   rd_en_o,
  output logic [AddressBits-1:0] rd_address_o,
  output logic [AddressBits-1:0] rd_address_q_o,  // a cycle later, with
  input  cell_t                  rd_data_i,  // the 8 bytes there
  output logic                   wr_en_o,
  output logic [AddressBits-1:0] wr_address_o,
  output cell_t                  wr_data_o
);

  localparam int unsigned Steps = 9;  // from the entry to the sum
  localparam int unsigned PlaceBits = $clog2(Depth);

  if ((1 << PlaceBits) != Depth) begin : gen_bad
    $error("unisono_handler_bank: Depth must be a power of two");
  end

  typedef logic [AddressBits-1:0] address_t;

  logic floating, wide;
  assign floating = is_floating(element_i);
  assign wide = size_of(element_i) == 2'd3;

  // The queue.
  (* ram_style = "distributed" *) logic [AddressBits+CellBits-1:0] queue_q [Depth];
  logic [PlaceBits-1:0] push_q, pop_q;
  logic [PlaceBits:0] fill_q;
  address_t at;
  cell_t value;
  logic issue;
  assign {at, value} = queue_q[pop_q];
  assign room_o = !fill_q[PlaceBits];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      push_q <= '0;
      pop_q <= '0;
      fill_q <= '0;
    end else begin
      if (push_i) push_q <= push_q + PlaceBits'(1);
      if (issue) pop_q <= pop_q + PlaceBits'(1);
      if (push_i != issue) fill_q <= push_i ? fill_q + (PlaceBits + 1)'(1) : fill_q - (PlaceBits + 1)'(1);
    end
    if (push_i) queue_q[push_q] <= {at_i, value_i};
  end

  // What is on its way: step 0 has the entry, and the last one the sum of floating point.
  logic [Steps-1:0] way_q, same;
  address_t [Steps-1:0] way_at_q;
  cell_t value_q;
  for (genvar s = 0; s < int'(Steps); s++) begin : gen_same
    assign same[s] = way_q[s] && way_at_q[s] == at;
  end
  assign issue = fill_q != '0 && !(floating && same != '0);
  assign busy_o = way_q != '0 || fill_q != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) way_q <= '0;
    else way_q <= {floating ? way_q[Steps-2:0] : '0, issue};
  end
  always_ff @(posedge clk_i) begin
    way_at_q <= {way_at_q[Steps-2:0], at};
    value_q <= value;
  end
  assign rd_en_o = issue;
  assign rd_address_o = at;
  assign rd_address_q_o = way_at_q[0];

  // The entry, which an integer's sum may be that has been written when it was read.
  logic again_q;
  cell_t total_q, total, stands, narrow;
  assign narrow = {32'd0, way_at_q[0][2] ? rd_data_i[63:32] : rd_data_i[31:0]};
  assign stands = again_q ? total_q : wide ? rd_data_i : narrow;
  always_ff @(posedge clk_i) begin
    again_q <= issue && !floating && same[0];
    total_q <= total;
  end
  assign add_o = way_q[0] && floating;
  assign add_a_o = stands;
  assign add_b_o = value_q;
  assign total = floating ? added_i : (stands + value_q) & bits_of(size_of(element_i));
  assign wr_en_o = floating ? way_q[Steps-1] : way_q[0];
  assign wr_address_o = floating ? way_at_q[Steps-1] : way_at_q[0];
  assign wr_data_o = total;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) assert (!rst_ni || !push_i || room_o) else $error("%m: pushed when there is no room");
`endif

endmodule
