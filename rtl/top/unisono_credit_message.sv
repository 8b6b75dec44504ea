// Makes messages that belong to no call: those that return credits to a peer to whom nothing else goes, and what this
// engine says about puts and gets.
//
// Latency: a message is offered 2 cycles after it was asked for. Throughput: one message in 3 cycles. Both kinds by turns.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_credit_message
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::notice_t;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic          request_valid_i,
  output logic          request_ready_o,
  input  communicator_t request_communicator_i,
  input  rank_t         request_peer_i,

  // About a put or a get.
  input  logic          notice_valid_i,
  output logic          notice_ready_o,
  input  notice_t       notice_i,

  // The communicator's entry, in the same cycle.
  output communicator_t       entry_communicator_o,
  input  communicator_entry_t entry_i,

  // The peer's session, one cycle after the question.
  output communicator_t peer_communicator_o,
  output rank_t         peer_rank_o,
  input  peer_entry_t   peer_i,

  output logic      out_valid_o,
  input  logic      out_ready_i,
  output transmit_t out_transmit_o
);

  typedef enum logic [1:0] { Idle, Ask, Offer } state_e;
  state_e state_q;
  communicator_t communicator_q;
  rank_t peer_q;
  notice_t notice_q;
  logic speaks_q, takes_notice;          // the message at hand is a notice; the next one is

  assign takes_notice = notice_valid_i && (!request_valid_i || !speaks_q);
  assign request_ready_o = state_q == Idle && !takes_notice;
  assign notice_ready_o = state_q == Idle && takes_notice;
  assign entry_communicator_o = communicator_q;
  assign peer_communicator_o = communicator_q;
  assign peer_rank_o = peer_q;
  assign out_valid_o = state_q == Offer;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Idle;
      communicator_q <= '0;
      peer_q <= '0;
      notice_q <= '0;
      speaks_q <= 1'b0;
    end else begin
      unique case (state_q)
        Idle: if (request_valid_i || takes_notice) begin
          communicator_q <= takes_notice ? notice_i.communicator : request_communicator_i;
          peer_q <= takes_notice ? notice_i.peer : request_peer_i;
          notice_q <= notice_i;
          speaks_q <= takes_notice;
          state_q <= Ask;
        end
        Ask: state_q <= Offer;
        default: if (out_ready_i) state_q <= Idle;
      endcase
    end
  end

  always_comb begin
    out_transmit_o = '0;
    out_transmit_o.communicator = communicator_q;
    out_transmit_o.peer = peer_q;
    out_transmit_o.session = peer_i.session;
    out_transmit_o.control = 1'b1;
    out_transmit_o.header.type_ = speaks_q ? MessageTypeControl : MessageTypeCredit;
    out_transmit_o.header.first = 1'b1;
    out_transmit_o.header.last = 1'b1;
    out_transmit_o.header.communicator = entry_i.number;
    out_transmit_o.header.epoch = entry_i.epoch;
    out_transmit_o.header.source = 32'(entry_i.rank);
    out_transmit_o.header.destination = 32'(peer_q);
    if (speaks_q) begin
      out_transmit_o.header.tag = 32'(notice_q.kind);
      out_transmit_o.header.dtype = 8'(notice_q.dtype);
      out_transmit_o.header.sequence_ = notice_q.sequence_;
      out_transmit_o.header.message_bytes = notice_q.message_bytes;
      out_transmit_o.header.offset = notice_q.offset;
      out_transmit_o.header.token_slot = notice_q.token_slot;
      out_transmit_o.header.token_generation = notice_q.token_generation;
    end
  end

  logic unused;
  assign unused = ^{peer_i.valid, entry_i, notice_q};

endmodule
