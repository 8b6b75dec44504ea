// A kernel's stream of calls: each packet is a call descriptor, which it hands on in rows of 64 bits.
//
// Latency: none, the row is a part of the word on offer. Throughput: one row per cycle, hence a
// descriptor in 16 cycles; a word is taken with its last row.
// A packet that is not as long as a descriptor still gives 16 rows, of which the last is marked bad:
// rows that it lacks are zero, what it has too much is dropped.

module unisono_call_port #(
  parameter int unsigned DataBytes = 64
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [DataBytes*8-1:0] in_data_i,
  input  logic [DataBytes-1:0]   in_keep_i,
  input  logic                   in_last_i,

  output logic                   row_valid_o,
  input  logic                   row_ready_i,
  output logic [63:0]            row_data_o,
  output logic                   row_bad_o
);

  import unisono_call_pkg::*;

  localparam int unsigned Rows = DataBytes / 8;

  if (DataBytes != 8 && DataBytes != 16 && DataBytes != 32 && DataBytes != 64 && DataBytes != 128)
  begin : gen_bad_width
    $error("unisono_call_port: DataBytes must be 8, 16, 32, 64 or 128");
  end

  // Where the next row comes from: a word of the descriptor, nowhere (the packet was too short), or it
  // waits until the rest of a packet that was too long has passed.
  typedef enum logic [1:0] {
    StTake,
    StFill,
    StDrop
  } state_e;

  localparam call_row_t LastRow = call_row_t'(DescriptorRows - 1);
  localparam call_row_t LastOfWord = call_row_t'(Rows - 1);

  state_e    state_q;
  call_row_t row_q;
  logic      bad_q;

  logic last_row, last_of_word, step, flaw;
  assign last_row     = row_q == LastRow;
  assign last_of_word = (row_q & LastOfWord) == LastOfWord;
  assign row_valid_o  = state_q == StFill || (state_q == StTake && in_valid_i);
  assign step         = row_valid_o && row_ready_i;
  assign in_ready_o   = state_q == StDrop || (state_q == StTake && last_of_word && row_ready_i);
  assign flaw         = in_keep_i != '1 || in_last_i != last_row;
  assign row_bad_o    = last_row && (bad_q || (state_q == StTake && flaw));

  if (Rows == 1) begin : gen_narrow
    assign row_data_o = state_q == StTake ? in_data_i : '0;
  end else begin : gen_wide
    logic [Rows-1:0][63:0] rows;
    assign rows       = in_data_i;
    assign row_data_o = state_q == StTake ? rows[row_q[$clog2(Rows)-1:0]] : '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StTake;
      row_q   <= '0;
      bad_q   <= 1'b0;
    end else if (state_q == StDrop) begin
      if (in_valid_i && in_last_i) begin
        state_q <= StTake;
      end
    end else if (step) begin
      row_q <= row_q + call_row_t'(1);
      if (last_row) begin
        state_q <= state_q == StTake && !in_last_i ? StDrop : StTake;
        bad_q   <= 1'b0;
      end else if (state_q == StTake && last_of_word && flaw) begin
        bad_q <= 1'b1;
        if (in_last_i) begin
          state_q <= StFill;
        end
      end
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(state_q == StFill && in_ready_o)) else $error("%m: takes a word of the next packet");
      assert (!(state_q == StTake && in_ready_o && !last_of_word)) else $error("%m: loses rows");
    end
  end
`endif

endmodule
