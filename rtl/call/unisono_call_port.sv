// A kernel's stream of calls: each packet is a call descriptor, which it hands on four rows of 64 bits at a time.
//
// Latency: none, the rows are a part of the word on offer; of narrower words those before the last of four rows are
// kept. Throughput: four rows per cycle, hence a descriptor in 4 cycles; a word is taken with its last row.
// A packet that is not as long as a descriptor still gives 16 rows, of which the last four are marked bad:
// rows that it lacks are zero, what it has too much is dropped.

module unisono_call_port #(
  parameter int unsigned DataBytes = 64
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic                         in_valid_i,
  output logic                         in_ready_o,
  input  logic [DataBytes*8-1:0]       in_data_i,
  input  logic [DataBytes-1:0]         in_keep_i,
  input  logic                         in_last_i,

  output logic                         quad_valid_o,
  input  logic                         quad_ready_i,
  output unisono_call_pkg::call_quad_t quad_data_o,
  output logic                         quad_bad_o
);

  import unisono_call_pkg::*;

  localparam int unsigned QuadBytes = QuadRows * 8;

  if (DataBytes != 8 && DataBytes != 16 && DataBytes != 32 && DataBytes != 64 && DataBytes != 128)
  begin : gen_bad_width
    $error("unisono_call_port: DataBytes must be 8, 16, 32, 64 or 128");
  end

  // Where the next rows come from: a word of the descriptor, nowhere (the packet was too short), or it
  // waits until the rest of a packet that was too long has passed.
  typedef enum logic [1:0] {
    StTake,
    StFill,
    StDrop
  } state_e;

  localparam call_quad_index_t LastQuad = call_quad_index_t'(Quads - 1);

  state_e           state_q;
  call_quad_index_t quad_q;
  logic             bad_q;

  logic last_quad, last_of_word, whole, step, gather, flaw;
  assign last_quad    = quad_q == LastQuad;
  assign quad_valid_o = state_q == StFill || (state_q == StTake && in_valid_i && whole);
  assign step         = quad_valid_o && quad_ready_i;
  assign gather       = state_q == StTake && in_valid_i && !whole;
  assign in_ready_o   = state_q == StDrop || (state_q == StTake && (!whole || (last_of_word && quad_ready_i)));
  assign flaw         = in_keep_i != '1 || in_last_i != (last_quad && whole);
  assign quad_bad_o   = last_quad && (bad_q || (state_q == StTake && flaw));

  if (DataBytes > QuadBytes) begin : gen_wide
    localparam int unsigned PerWord = DataBytes / QuadBytes;
    call_quad_t [PerWord-1:0] quads;
    assign quads        = in_data_i;
    assign whole        = 1'b1;
    assign last_of_word = &quad_q[$clog2(PerWord)-1:0];
    assign quad_data_o  = state_q == StTake ? quads[quad_q[$clog2(PerWord)-1:0]] : '0;
  end else if (DataBytes == QuadBytes) begin : gen_equal
    assign whole        = 1'b1;
    assign last_of_word = 1'b1;
    assign quad_data_o  = state_q == StTake ? in_data_i : '0;
  end else begin : gen_narrow
    // The words before the last of four rows. What has not come is zero.
    localparam int unsigned Words = QuadBytes / DataBytes;
    logic [Words-2:0][DataBytes*8-1:0] kept_q;
    logic [$clog2(Words)-1:0] word_q;
    assign whole        = word_q == '1;
    assign last_of_word = 1'b1;
    assign quad_data_o  = {state_q == StTake ? in_data_i : '0, kept_q};
    always_ff @(posedge clk_i) begin
      if (!rst_ni || step) begin
        kept_q <= '0;
        word_q <= '0;
      end else if (gather) begin
        kept_q[word_q] <= in_data_i;
        word_q         <= word_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StTake;
      quad_q  <= '0;
      bad_q   <= 1'b0;
    end else if (state_q == StDrop) begin
      if (in_valid_i && in_last_i) begin
        state_q <= StTake;
      end
    end else if (step) begin
      quad_q <= quad_q + call_quad_index_t'(1);
      if (last_quad) begin
        state_q <= state_q == StTake && !in_last_i ? StDrop : StTake;
        bad_q   <= 1'b0;
      end else if (state_q == StTake && last_of_word && flaw) begin
        bad_q <= 1'b1;
        if (in_last_i) begin
          state_q <= StFill;
        end
      end
    end else if (gather && flaw) begin
      bad_q <= 1'b1;
      if (in_last_i) begin
        state_q <= StFill;
      end
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(state_q == StFill && in_ready_o)) else $error("%m: takes a word of the next packet");
      assert (!(state_q == StTake && in_ready_o && whole && !last_of_word)) else $error("%m: loses rows");
    end
  end
`endif

endmodule
