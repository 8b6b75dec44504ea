// A segment that is offered to the dispatcher, to go past the buffers: one at a time, and its answer.
//
// An offer stands until it is answered; the answer, until what it says has been done.
//
// Latency: an offer is made in the cycle after it was begun, an answer is known in the cycle after it came. Throughput:
// one offer at a time.

module unisono_rbm_offer
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,

  input  logic     begins_i,                         // of the pair that is looked at, for the arrival of its record
  input  logic     looks_i,
  input  pair_t    pair_i,
  input  entry_t   entry_i,
  input  logic     ends_i,                           // what the answer says is being done

  output logic     offer_valid_o,
  output move_id_t offer_id_o,
  input  logic     offer_answer_i, offer_accepted_i,

  output logic     offering_o, answered_o, accepted_o,
  output pair_t    pair_o
);

  logic offering_q, answered_q, accepted_q;
  move_id_t id_q;
  pair_t pair_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      offering_q <= 1'b0;
      answered_q <= 1'b0;
      accepted_q <= 1'b0;
      id_q <= '0;
      pair_q <= '0;
    end else begin
      if (begins_i) offering_q <= 1'b1;
      if (ends_i) offering_q <= 1'b0;
      answered_q <= (answered_q || offer_answer_i) && !ends_i;
      if (offer_answer_i) accepted_q <= offer_accepted_i;
      if (looks_i) begin
        id_q <= '{slot: pair_i.slot, entry: entry_i};
        pair_q <= pair_i;
      end
    end
  end

  assign offer_valid_o = offering_q && !answered_q;
  assign offer_id_o    = id_q;
  assign offering_o    = offering_q;
  assign answered_o    = answered_q;
  assign accepted_o    = accepted_q;
  assign pair_o        = pair_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      one_at_a_time: assert (!(offering_q && (begins_i || looks_i)));
      answers_an_offer: assert (!offer_answer_i || offer_valid_o);
      ends_what_is_answered: assert (!ends_i || (offering_q && answered_q));
    end
  end
`endif

endmodule
