// Proof of unisono_pending_bits: each of the three ways to read a bit shows what was done to it last.
//
// Any bit may be watched. It is known from the first time that it is raised or lowered on.

module unisono_pending_bits_proof #(
  parameter int unsigned Rows    = 2,
  parameter int unsigned Columns = 4,
  localparam int unsigned RowWidth    = $clog2(Rows),
  localparam int unsigned ColumnWidth = $clog2(Columns)
) (
  input logic                   clk_i,
  input logic [RowWidth-1:0]    watch_row_i,
  input logic [ColumnWidth-1:0] watch_column_i,
  input logic                   raise_valid_i,
  input logic [RowWidth-1:0]    raise_row_i,
  input logic [ColumnWidth-1:0] raise_column_i,
  input logic                   lower_valid_i,
  input logic [RowWidth-1:0]    lower_row_i,
  input logic [ColumnWidth-1:0] lower_column_i,
  input logic [RowWidth-1:0]    row_i,
  input logic [RowWidth-1:0]    probe_row_i,
  input logic [ColumnWidth-1:0] probe_column_i
);

  logic [Columns-1:0] row;
  logic probe, probe_next;

  unisono_pending_bits #(
    .Rows   (Rows),
    .Columns(Columns)
  ) u_dut (
    .clk_i,
    .raise_valid_i,
    .raise_row_i,
    .raise_column_i,
    .lower_valid_i,
    .lower_row_i,
    .lower_column_i,
    .row_i,
    .row_o       (row),
    .probe_row_i,
    .probe_column_i,
    .probe_o     (probe),
    .probe_next_o(probe_next)
  );

  logic started_q = 1'b0;
  logic [RowWidth-1:0] watch_row_q;
  logic [ColumnWidth-1:0] watch_column_q;
  logic known_q, value_q, raised, lowered;

  always_comb begin
    one_at_a_time: assume (!(raise_valid_i && lower_valid_i && raise_row_i == lower_row_i &&
                             raise_column_i == lower_column_i));
  end
  assign raised = raise_valid_i && raise_row_i == watch_row_q && raise_column_i == watch_column_q;
  assign lowered = lower_valid_i && lower_row_i == watch_row_q && lower_column_i == watch_column_q;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!started_q) begin
      watch_row_q    <= watch_row_i;
      watch_column_q <= watch_column_i;
      known_q        <= 1'b0;
    end else if (raised || lowered) begin
      known_q <= 1'b1;
      value_q <= raised;
    end
  end

  logic [ColumnWidth-1:0] next_column;
  assign next_column = probe_column_i + 1'b1;

  always_ff @(posedge clk_i) begin
    if (started_q) begin
      if (known_q && row_i == watch_row_q) row_shows_it: assert (row[watch_column_q] == value_q);
      if (known_q && probe_row_i == watch_row_q && probe_column_i == watch_column_q) begin
        probe_shows_it: assert (probe == value_q);
      end
      if (known_q && probe_row_i == watch_row_q && next_column == watch_column_q) begin
        next_shows_it: assert (probe_next == value_q);
      end
      // Also of a bit to which nothing has been done.
      if (row_i == probe_row_i) all_agree: assert (row[probe_column_i] == probe && row[next_column] == probe_next);
    end
  end

endmodule
