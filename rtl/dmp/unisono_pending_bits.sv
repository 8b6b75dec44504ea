// A table of bits with one writer that raises them and another that lowers them, in LUT memory.
//
// Each bit is the difference of two: the one who raises it writes the first as the opposite of the
// second, the one who lowers it copies the first into the second. So no memory has two writers, no
// bit needs a reset, and lowering a bit that is low changes nothing.
//
// Latency: a bit that is raised or lowered is read as such from the next cycle on. Throughput: one
// of each per cycle.
// Restrictions: one bit must not be raised and lowered in the same cycle. A reset leaves the bits
// as they are.

module unisono_pending_bits #(
  parameter int unsigned Rows = 8,
  parameter int unsigned Columns = 32,
  localparam int unsigned RowWidth = $clog2(Rows),
  localparam int unsigned ColumnWidth = $clog2(Columns)
) (
  input  logic                   clk_i,

  input  logic                   raise_valid_i,
  input  logic [RowWidth-1:0]    raise_row_i,
  input  logic [ColumnWidth-1:0] raise_column_i,

  input  logic                   lower_valid_i,
  input  logic [RowWidth-1:0]    lower_row_i,
  input  logic [ColumnWidth-1:0] lower_column_i,

  // A whole row, a single bit, and the one beside it.
  input  logic [RowWidth-1:0]    row_i,
  output logic [Columns-1:0]     row_o,
  input  logic [RowWidth-1:0]    probe_row_i,
  input  logic [ColumnWidth-1:0] probe_column_i,
  output logic                   probe_o,
  output logic                   probe_next_o    // of the column after it, cyclically
);

  localparam int unsigned AddressWidth = RowWidth + ColumnWidth;

  wire [AddressWidth-1:0] raise_address = {raise_row_i, raise_column_i};
  wire [AddressWidth-1:0] lower_address = {lower_row_i, lower_column_i};
  wire [AddressWidth-1:0] probe_address = {probe_row_i, probe_column_i};

  // Each bit stands twice: to be read alone, and with its row.
  (* ram_style = "distributed" *) logic up_q [Rows*Columns];
  (* ram_style = "distributed" *) logic down_q [Rows*Columns];
  (* ram_style = "distributed" *) logic [Columns-1:0] up_row_q [Rows];
  (* ram_style = "distributed" *) logic [Columns-1:0] down_row_q [Rows];

  // Both copies must start alike; what they start with does not matter.
  initial begin
    for (int i = 0; i < int'(Rows * Columns); i++) begin
      up_q[i] = 1'b0;
      down_q[i] = 1'b0;
    end
    for (int i = 0; i < int'(Rows); i++) begin
      up_row_q[i] = '0;
      down_row_q[i] = '0;
    end
  end

  // A row has one writer too, so it can be read, changed and written in one cycle.
  logic up_d, down_d;
  logic [Columns-1:0] up_row_d, down_row_d;
  assign up_d = !down_q[raise_address];
  assign down_d = up_q[lower_address];
  always_comb begin
    up_row_d = up_row_q[raise_row_i];
    up_row_d[raise_column_i] = up_d;
    down_row_d = down_row_q[lower_row_i];
    down_row_d[lower_column_i] = down_d;
  end

  always_ff @(posedge clk_i) begin
    if (raise_valid_i) up_q[raise_address] <= up_d;
  end
  always_ff @(posedge clk_i) begin
    if (raise_valid_i) up_row_q[raise_row_i] <= up_row_d;
  end
  always_ff @(posedge clk_i) begin
    if (lower_valid_i) down_q[lower_address] <= down_d;
  end
  always_ff @(posedge clk_i) begin
    if (lower_valid_i) down_row_q[lower_row_i] <= down_row_d;
  end

  logic [ColumnWidth-1:0] next_column;
  assign next_column = probe_column_i + 1'b1;
  wire [AddressWidth-1:0] next_address = {probe_row_i, next_column};
  assign probe_next_o = up_q[next_address] ^ down_q[next_address];
  assign probe_o = up_q[probe_address] ^ down_q[probe_address];
  assign row_o = up_row_q[row_i] ^ down_row_q[row_i];

endmodule
