// Two ask the transport for space: the dispatcher, and what serves gets of peers. The transport answers one question at
// a time; the dispatcher's go first, and between two of them there is time for the other one's.
//
// Latency: none. Throughput: a question in the cycle after an answer.

module unisono_core_space
  import unisono_core_pkg::*;
(
  input  logic      clk_i,
  input  logic      rst_ni,

  input  logic      asks_valid_i,
  output logic      asks_ready_o,
  input  question_t asks_i,
  output logic      asks_answer_o,
  input  logic      serve_valid_i,
  output logic      serve_ready_o,
  input  question_t serve_i,
  output logic      serve_answer_o,

  output logic      space_valid_o,
  input  logic      space_ready_i,
  output question_t space_o,
  input  logic      space_answer_i
);

  logic waits_q, serves_q;

  assign space_valid_o = !waits_q && (asks_valid_i || serve_valid_i);
  assign space_o = asks_valid_i ? asks_i : serve_i;
  assign asks_ready_o = space_ready_i && !waits_q;
  assign serve_ready_o = asks_ready_o && !asks_valid_i;
  assign asks_answer_o = space_answer_i && !serves_q;
  assign serve_answer_o = space_answer_i && serves_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      waits_q <= 1'b0;
      serves_q <= 1'b0;
    end else begin
      waits_q <= (waits_q && !space_answer_i) || (space_valid_o && space_ready_i);
      if (space_valid_o && space_ready_i) serves_q <= !asks_valid_i;
    end
  end

endmodule
