// Of each communicator and source, whether the message that began last on credit began early: before its receive.
//
// What continues such a message is early too, until a receive takes the message over; then it belongs to the receive.
// Any other segment that continues a message which no receive has is thrown away: the receive has failed. One record a
// source is enough, because of the messages of a source only one begins on credit at a time.
//
// Latency: the answer comes one cycle after the question. Throughput: a question and a change per cycle. Restrictions:
// after a reset the records are whatever they were; a message's first segment makes its own.

module unisono_rbm_openings
  import unisono_cclo_pkg::*;
(
  input  logic clk_i,

  // Who is asked about; a cycle later whether that source's message, of this sequence, has begun early.
  input  communicator_t communicator_i,
  input  rank_t         source_i,
  // Of it the low bits tell apart what can be here at a time.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [31:0]   sequence_i,                  // in the cycle of the answer
  // verilator lint_on UNUSEDSIGNAL
  output logic          early_o,

  // In that cycle, too: a message of the source begins, early or not; or the one that began early is taken over.
  input  logic          begins_i,
  input  logic          begins_early_i,
  input  logic          adopted_i
);

  typedef logic [CommunicatorWidth+RankWidth-1:0] index_t;
  typedef logic [15:0] sequence_t;                   // more than there are receive buffers
  typedef struct packed {
    logic early;
    sequence_t number;
  } opening_t;

  index_t index_q;
  opening_t opening;
  always_ff @(posedge clk_i) index_q <= {communicator_i, source_i};

  unisono_ram_sdp #(.Width($bits(opening_t)), .Depth(Communicators * Ranks)) u_openings (
    .clk_i, .wr_en_i(begins_i || (adopted_i && early_o)), .wr_addr_i(index_q),
    .wr_data_i({begins_i && begins_early_i, sequence_i[15:0]}),
    .rd_en_i(1'b1), .rd_addr_i({communicator_i, source_i}), .rd_out_en_i(1'b1), .rd_data_o(opening)
  );
  assign early_o = opening.early && opening.number == sequence_i[15:0];

endmodule
