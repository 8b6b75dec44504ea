// Adds to a table in memory through several banks: spvacc_vx and _vv, of as many entries in a cycle as there are banks.
//
// Memory is 16 groups of 8 bytes side by side; bank b has groups b, b + Banks and so on. A tile is taken in one cycle.
// From the next one on each bank takes the first lane that is its own into its queue (unisono_handler_bank), from which
// entries go on to memory. A second tile may come meanwhile: a bank that has no lane of the older tile any more goes on
// with the younger one, so that lanes of one bank go in the order in which they came, and with them those of one index.
// Bits are those of the lanes one after the other.
//
// Who starts it has made sure that the whole table is in memory and begins at a multiple of its element, which has 4 or
// 8 bytes and is no fp16 or bf16. All that is on its way has the same element.
//
// Latency from a tile to its entries' being written: 3 cycles of integers, 11 of floating point, and a cycle for each
// lane of the same bank before. Throughput: a tile per cycle while no two lanes are of one bank; a tile without entries
// takes no room.
module unisono_handler_banks
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned Banks = 16,  // 8 or 16
  parameter int unsigned MemoryBytes = 65536,
  localparam int unsigned Groups = 16,
  localparam int unsigned AddressBits = $clog2(MemoryBytes),
  localparam int unsigned RowBits = AddressBits - 7
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,

  input  element_e                       element_i,
  output logic                           ready_o,  // for a tile of this element
  output logic                           busy_o,  // something is on its way
  input  logic                           start_i,  // if `ready_o`
  input  logic [AddressBits-1:0]         table_i,
  input  logic [24:0]                    limit_i,
  input  logic                           each_i,  // a value for each lane; otherwise the first one's
  input  cell_t [Lanes-1:0]              indexes_i,
  input  cell_t [Lanes-1:0]              values_i,

  // An adder for each bank.
  output logic [Banks-1:0]               add_o,
  output element_e                       add_element_o,
  output cell_t [Banks-1:0]              add_a_o,
  output cell_t [Banks-1:0]              add_b_o,
  input  cell_t [Banks-1:0]              added_i,  // 8 cycles later

  output logic [Groups-1:0]              rd_en_o,
  output logic [Groups-1:0][RowBits-1:0] rd_row_o,
  input  cell_t [Groups-1:0]             rd_data_i,  // a cycle later
  output logic [Groups-1:0][7:0]         wr_mask_o,
  output logic [Groups-1:0][RowBits-1:0] wr_row_o,
  output cell_t [Groups-1:0]             wr_data_o
);

  localparam int unsigned BankBits = $clog2(Banks);
  localparam int unsigned Tiles = 2;

  if (Banks != 8 && Banks != 16) begin : gen_bad
    $error("unisono_handler_banks: Banks must be 8 or 16");
  end

  typedef logic [AddressBits-1:0] address_t;

  element_e element_q;
  logic wide;
  assign wide = size_of(element_q) == 2'd3;

  // Tiles, and of each the lanes that have not gone.
  logic [Tiles-1:0][Lanes-1:0] left_q, gone;
  address_t [Tiles-1:0][Lanes-1:0] at_q;
  cell_t [Tiles-1:0][Lanes-1:0] with_q;
  logic older_q;  // which tile is, if both have lanes
  logic to;  // where the next one goes
  logic [Tiles-1:0] empty;
  logic [Lanes-1:0] has;
  for (genvar t = 0; t < int'(Tiles); t++) begin : gen_empty
    assign empty[t] = left_q[t] == '0;
  end
  for (genvar l = 0; l < int'(Lanes); l++) begin : gen_has
    assign has[l] = indexes_i[l][31:0] < {7'd0, limit_i};
  end
  assign to = !empty[0];

  logic [Banks-1:0] flying;  // a bank has something on its way
  assign busy_o = empty != '1 || flying != '0;
  assign ready_o = empty != '0 && (!busy_o || element_i == element_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q <= '0;
    end else begin
      for (int unsigned t = 0; t < Tiles; t++) begin
        left_q[t] <= start_i && 32'(to) == t ? has : left_q[t] & ~gone[t];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) begin
      element_q <= element_i;
      older_q <= !to;
      for (int unsigned l = 0; l < Lanes; l++) begin
        at_q[to][l] <= table_i + (address_t'(indexes_i[l]) << size_of(element_i));
        with_q[to][l] <= each_i ? values_i[l] : values_i[0];
      end
    end
  end

  // The bank of each lane.
  logic [Banks-1:0][Tiles-1:0][Lanes-1:0] of_bank, turn;
  for (genvar b = 0; b < int'(Banks); b++) begin : gen_of
    for (genvar t = 0; t < int'(Tiles); t++) begin : gen_tile
      for (genvar l = 0; l < int'(Lanes); l++) begin : gen_lane
        assign of_bank[b][t][l] = left_q[t][l] && at_q[t][l][3+:BankBits] == BankBits'(b);
      end
    end
  end
  always_comb begin
    gone = '0;
    for (int unsigned b = 0; b < Banks; b++) gone |= turn[b];
  end

  address_t [Banks-1:0] read_at, entry_at, write_at;
  cell_t [Banks-1:0] total;
  logic [Banks-1:0] issue, write;
  for (genvar b = 0; b < int'(Banks); b++) begin : gen_bank
    // The lane whose turn it is.
    logic from, room;
    logic [Lanes-1:0] lanes, first;
    address_t at;
    cell_t value;
    assign from = of_bank[b][older_q] != '0 ? older_q : !older_q;
    assign lanes = room ? of_bank[b][from] : '0;
    assign first = lanes & (~lanes + Lanes'(1));
    always_comb begin
      at = '0;
      value = '0;
      for (int unsigned l = 0; l < Lanes; l++) begin
        if (first[l]) at |= at_q[from][l];
        if (first[l]) value |= with_q[from][l];
      end
      turn[b] = '0;
      turn[b][from] = first;
    end

    unisono_handler_bank #(
      .AddressBits(AddressBits)
    ) u_bank (
      .clk_i,
      .rst_ni,
      .element_i     (element_q),
      .push_i        (lanes != '0),
      .at_i          (at),
      .value_i       (value),
      .room_o        (room),
      .busy_o        (flying[b]),
      .add_o         (add_o[b]),
      .add_a_o       (add_a_o[b]),
      .add_b_o       (add_b_o[b]),
      .added_i       (added_i[b]),
      .rd_en_o       (issue[b]),
      .rd_address_o  (read_at[b]),
      .rd_address_q_o(entry_at[b]),
      .rd_data_i     (rd_data_i[Groups'(entry_at[b][6:3])]),
      .wr_en_o       (write[b]),
      .wr_address_o  (write_at[b]),
      .wr_data_o     (total[b])
    );
  end
  assign add_element_o = element_q;

  // Groups of memory.
  for (genvar g = 0; g < int'(Groups); g++) begin : gen_group
    localparam int unsigned Bank = g % Banks;
    logic writes;
    assign rd_en_o[g] = issue[Bank] && read_at[Bank][6:3] == 4'(g);
    assign rd_row_o[g] = read_at[Bank][7+:RowBits];
    assign writes = write[Bank] && write_at[Bank][6:3] == 4'(g);
    assign wr_row_o[g] = write_at[Bank][7+:RowBits];
    always_comb begin
      wr_mask_o[g] = '0;
      wr_data_o[g] = wide ? total[Bank] : {2{total[Bank][31:0]}};
      if (writes) wr_mask_o[g] = wide ? 8'hff : write_at[Bank][2] ? 8'hf0 : 8'h0f;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && start_i) begin
      assert (ready_o) else $error("%m: started when it is not ready");
      assert (element_bytes(element_i) >= 4) else $error("%m: an element of less than 4 bytes");
      assert (32'(table_i) % element_bytes(element_i) == 0) else $error("%m: a table that is not aligned");
    end
  end
`endif

endmodule
