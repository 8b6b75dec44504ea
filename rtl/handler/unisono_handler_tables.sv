// What works on tables and sums of lanes: a lane after the other, or through several banks.
//
// Through banks go spvacc_vx and _vv of entries of 4 or 8 bytes that are no fp16 or bf16, if the table is in memory as
// a whole and begins at a multiple of its element. All else goes lane by lane. Only one of the two works at a time, so
// that memory and adders are one's.
//
// Latency and throughput: those of unisono_handler_table and unisono_handler_banks.
module unisono_handler_tables
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned Columns = 16,
  parameter int unsigned MemoryBytes = 65536,
  parameter int unsigned Banks = 16,  // 1, and with 16 columns 8 or 16
  localparam int unsigned Beats = 16 / Columns,
  localparam int unsigned BeatBits = Beats > 1 ? $clog2(Beats) : 1,
  localparam int unsigned AddressBits = $clog2(MemoryBytes),
  localparam int unsigned Groups = Columns > 8 ? Columns : 8,
  localparam int unsigned RowBits = AddressBits - $clog2(8 * Groups)
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,

  input  op_e                            op_i,
  input  element_e                       element_i,
  input  logic                           go_i,  // it is a table's, and works; if `ready_o`
  input  logic                           over_i,  // it is the instruction's last cycle, or none runs
  input  cell_t [3:0]                    scalars_i,  // rd, rc, rb, ra
  input  cell_t [2:0][Columns-1:0]       vectors_i,
  input  logic [1:0][4:0]                lanes_of_i,  // registers of the latter two
  // What lands goes to lanes of spvacc_vx and _vv at once where there are 16 columns; of two the later one.
  input  logic [1:0][Columns-1:0]        land_lanes_i,
  input  logic [1:0][5:0]                land_to_i,
  input  cell_t [1:0][Columns-1:0]       landing_i,
  output logic                           at_once_o,
  input  logic [24:0]                    memory_bytes_i,
  output logic                           ready_o,
  output logic                           busy_o,
  output logic [BeatBits-1:0]            beat_o,  // whose lanes it wants
  output logic                           done_o,
  output logic                           beyond_o,  // with `done_o`: a lane reached beyond memory
  output cell_t                          sum_o,  // with `done_o`

  // The columns' adders.
  output logic [Columns-1:0]             lent_o,
  output element_e                       lent_element_o,
  output cell_t [Columns-1:0]            lent_a_o,
  output cell_t [Columns-1:0]            lent_b_o,
  input  cell_t [Columns-1:0]            sums_i,  // 8 cycles later

  output logic                           rd_en_o,
  output logic [AddressBits-1:0]         rd_address_o,
  input  cell_t                          rd_data_i,  // a cycle later
  output logic                           wr_en_o,
  output logic [AddressBits-1:0]         wr_address_o,
  output logic [1:0]                     wr_size_o,
  output cell_t                          wr_data_o,

  output logic                           groups_o,  // groups of memory are read and written by themselves
  output logic [Groups-1:0]              group_rd_en_o,
  output logic [Groups-1:0][RowBits-1:0] group_rd_row_o,
  input  cell_t [Groups-1:0]             group_rd_data_i,  // a cycle later
  output logic [Groups-1:0][7:0]         group_wr_mask_o,
  output logic [Groups-1:0][RowBits-1:0] group_wr_row_o,
  output cell_t [Groups-1:0]             group_wr_data_o
);

  if (Banks != 1 && (Columns != 16 || (Banks != 8 && Banks != 16))) begin : gen_bad
    $error("unisono_handler_tables: Banks must be 1, or with 16 columns 8 or 16");
  end

  cell_t sa, sb, sc, sd;
  logic [1:0] size;
  logic into_scalar, whole, alone, banked;
  assign {sd, sc, sb, sa} = scalars_i;
  assign size = size_of(element_i);
  assign into_scalar = op_i == OpSpvaccXv || op_i == OpSum;
  // The whole table is in memory: no lane can be stopped, so that what follows goes on where operands are taken.
  assign whole = sc <= 64'(memory_bytes_i) && sa <= 64'(memory_bytes_i)
               && (29'(sc[24:0]) << size) + 29'(sa[24:0]) <= 29'(memory_bytes_i);
  assign alone = Beats == 1 && whole && !into_scalar;
  // No entry reaches into another group.
  assign banked = Banks > 1 && alone && size[1] && (sa[2:0] & (size[0] ? 3'd7 : 3'd3)) == '0;

  cell_t [2:0][Columns-1:0] vectors;
  assign at_once_o = Beats == 1 && (op_i == OpSpvaccVx || op_i == OpSpvaccVv);
  always_comb begin
    vectors = vectors_i;
    for (int unsigned l = 0; l < Columns; l++) begin
      for (int unsigned w = 0; w < 2; w++) begin
        for (int unsigned i = 0; i < 2; i++) begin
          if (at_once_o && land_lanes_i[w][l] && land_to_i[w][4:0] == lanes_of_i[i]) vectors[2-i][l] = landing_i[w][l];
        end
      end
    end
  end

  // Lane by lane.
  logic started_q, line_ready, line_busy, line_start, line_done, line_beyond, add;
  cell_t add_a, add_b;
  element_e add_element;
  assign line_start = go_i && !started_q && !banked;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) started_q <= 1'b0;
    else started_q <= (line_start || started_q) && !over_i;
  end
  unisono_handler_table #(
    .Columns    (Columns),
    .MemoryBytes(MemoryBytes)
  ) u_table (
    .clk_i,
    .rst_ni,
    .ready_o       (line_ready),
    .busy_o        (line_busy),
    .start_i       (line_start),
    .op_i          (op_i),
    .element_i     (element_i),
    .table_i       (op_i == OpSpvaccXv ? sb : sa),
    .limit_i       (sc),
    .value_i       (sb),
    .sum_i         (sd),
    .memory_bytes_i,
    .beat_o,
    .lanes_i       (into_scalar ? vectors[0] : vectors[2]),
    .values_i      (vectors[1]),
    .done_o        (line_done),
    .beyond_o      (line_beyond),
    .sum_o,
    .add_o         (add),
    .add_element_o (add_element),
    .add_a_o       (add_a),
    .add_b_o       (add_b),
    .added_i       (sums_i[0]),
    .rd_en_o,
    .rd_address_o,
    .rd_data_i,
    .wr_en_o,
    .wr_address_o,
    .wr_size_o,
    .wr_data_o
  );

  // Through banks.
  logic banks_ready, banks_busy;
  logic [Columns-1:0] banks_add;
  cell_t [Columns-1:0] banks_a, banks_b;
  element_e banks_element;
  if (Banks > 1) begin : gen_banks
    logic [Banks-1:0] add_banks;
    cell_t [Banks-1:0] a_banks, b_banks;
    unisono_handler_banks #(
      .Banks      (Banks),
      .MemoryBytes(MemoryBytes)
    ) u_banks (
      .clk_i,
      .rst_ni,
      .element_i    (element_i),
      .ready_o      (banks_ready),
      .busy_o       (banks_busy),
      .start_i      (go_i && banked),
      .table_i      (sa[AddressBits-1:0]),
      .limit_i      (sc[24:0]),
      .each_i       (op_i == OpSpvaccVv),
      .indexes_i    (vectors[2]),
      .values_i     (op_i == OpSpvaccVv ? vectors[1] : {Columns{sb}}),
      .add_o        (add_banks),
      .add_element_o(banks_element),
      .add_a_o      (a_banks),
      .add_b_o      (b_banks),
      .added_i      (sums_i[Banks-1:0]),
      .rd_en_o      (group_rd_en_o),
      .rd_row_o     (group_rd_row_o),
      .rd_data_i    (group_rd_data_i),
      .wr_mask_o    (group_wr_mask_o),
      .wr_row_o     (group_wr_row_o),
      .wr_data_o    (group_wr_data_o)
    );
    assign banks_add = Columns'(add_banks);
    assign banks_a = (Columns * CellBits)'(a_banks);
    assign banks_b = (Columns * CellBits)'(b_banks);
  end else begin : gen_no_banks
    logic unused_groups;
    assign unused_groups = ^group_rd_data_i;
    assign {banks_ready, banks_busy, banks_add, banks_a, banks_b} = '0;
    assign banks_element = ElementI64;
    assign {group_rd_en_o, group_rd_row_o, group_wr_mask_o, group_wr_row_o, group_wr_data_o} = '0;
  end

  logic unused_sums;  // of columns that have no bank
  assign unused_sums = ^sums_i;
  assign ready_o = banked ? !line_busy && banks_ready : started_q || (!banks_busy && line_ready);
  assign busy_o = line_busy || banks_busy;
  assign done_o = banked || ((started_q || line_start) && (line_done || alone));
  assign beyond_o = line_beyond && !alone;
  assign groups_o = banks_busy;
  always_comb begin
    lent_o = banks_add;
    lent_a_o = banks_a;
    lent_b_o = banks_b;
    lent_element_o = banks_busy ? banks_element : add_element;
    if (add) begin
      lent_o[0] = 1'b1;
      lent_a_o[0] = add_a;
      lent_b_o[0] = add_b;
    end
  end

endmodule
