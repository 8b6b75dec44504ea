// What the host has of its calls: the descriptor that it writes, what it is told of the last completion that it has
// removed, and the last failure. A soft reset forgets all of it but the descriptor's words.
//
// The host writes and reads halves of the descriptor's rows. Once it has rung, the descriptor leaves four rows at a
// time, of which the first three are collected; until it has left, it is not written and not rung for again, so what
// leaves is what was there when the doorbell rang.
//
// Latency: the first four rows stand at the port 4 cycles after the doorbell, the next ones 4 cycles after those before
// them were taken; a word is read in the cycle of its address. Throughput: a word per cycle, a descriptor in 17 cycles.

module unisono_exchange_calls
  import unisono_call_pkg::*;
(
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                soft_reset_i,

  // The descriptor, by words of 32 bits.
  input  logic                write_i,
  input  logic [RowWidth:0]   write_word_i,
  input  logic [31:0]         write_data_i,
  input  logic [3:0]          write_strobe_i,
  input  logic [RowWidth:0]   read_word_i,
  output logic [31:0]         read_data_o,

  // It is rung for, and leaves.
  input  logic                ring_i,
  output logic                taken_o,             // it has not left yet
  output logic                quad_valid_o,
  input  logic                quad_ready_i,
  output call_quad_t          quad_data_o,

  // The host removes the oldest completion, if there is one.
  input  logic                remove_i,
  input  logic                response_valid_i,
  input  logic [15:0]         response_code_i,
  output logic                completed_o,
  output logic [15:0]         completed_code_o,

  // A call has failed; the host has seen it.
  input  logic                failed_i,
  input  call_response_t      failed_response_i,
  input  logic                forget_i,
  output logic                error_seen_o,
  output call_response_t      error_o
);

  logic                      taken_q, completed_q, error_seen_q;
  call_row_t                 row_q;
  logic [1:0][31:0]          row, read_row;
  logic [QuadRows-2:0][63:0] collected_q;
  logic                      step;
  logic [15:0]               completed_code_q;
  call_response_t            error_q;

  for (genvar h = 0; h < 2; h++) begin : gen_slot
    for (genvar b = 0; b < 4; b++) begin : gen_bytes
      (* ram_style = "distributed" *) logic [7:0] bytes [DescriptorRows];
      always_ff @(posedge clk_i) begin
        if (write_i && write_word_i[0] == 1'(h) && write_strobe_i[b]) begin
          bytes[write_word_i[RowWidth:1]] <= write_data_i[8*b+:8];
        end
      end
      assign row[h][8*b+:8]      = bytes[row_q];
      assign read_row[h][8*b+:8] = bytes[read_word_i[RowWidth:1]];
    end
  end
  assign read_data_o = read_row[read_word_i[0]];

  assign taken_o      = taken_q;
  assign quad_valid_o = taken_q && row_q[1:0] == 2'(QuadRows - 1);
  assign quad_data_o  = {row, collected_q};
  assign step         = taken_q && (row_q[1:0] != 2'(QuadRows - 1) || quad_ready_i);

  always_ff @(posedge clk_i) begin
    if (step) begin
      collected_q <= {row, collected_q[QuadRows-2:1]};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || soft_reset_i) begin
      taken_q <= 1'b0;
      row_q   <= '0;
    end else if (ring_i) begin
      taken_q <= 1'b1;
    end else if (step) begin
      row_q   <= row_q + call_row_t'(1);
      taken_q <= row_q != call_row_t'(DescriptorRows - 1);
    end
  end

  assign completed_o      = completed_q;
  assign completed_code_o = completed_code_q;
  assign error_seen_o     = error_seen_q;
  assign error_o          = error_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || soft_reset_i) begin
      completed_q      <= 1'b0;
      completed_code_q <= '0;
      error_seen_q     <= 1'b0;
      error_q          <= '0;
    end else begin
      if (remove_i) begin
        completed_q      <= response_valid_i;
        completed_code_q <= response_valid_i ? response_code_i : '0;
      end
      // A failure that comes while one is forgotten is kept.
      if (failed_i) begin
        error_seen_q <= 1'b1;
        error_q      <= failed_response_i;
      end else if (forget_i) begin
        error_seen_q <= 1'b0;
      end
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      stays_while_taken: assert (!taken_q || !(write_i || ring_i));
    end
  end
`endif

endmodule
