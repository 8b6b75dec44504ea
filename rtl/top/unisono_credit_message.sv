// Makes the message that returns credits to a peer to whom nothing else goes.
//
// Latency: 3 cycles. Throughput: one message in 3 cycles.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_credit_message
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic          request_valid_i,
  output logic          request_ready_o,
  input  communicator_t request_communicator_i,
  input  rank_t         request_peer_i,

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

  assign request_ready_o = state_q == Idle;
  assign entry_communicator_o = communicator_q;
  assign peer_communicator_o = communicator_q;
  assign peer_rank_o = peer_q;
  assign out_valid_o = state_q == Offer;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Idle;
      communicator_q <= '0;
      peer_q <= '0;
    end else begin
      unique case (state_q)
        Idle: if (request_valid_i) begin
          communicator_q <= request_communicator_i;
          peer_q <= request_peer_i;
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
    out_transmit_o.header.type_ = MessageTypeCredit;
    out_transmit_o.header.first = 1'b1;
    out_transmit_o.header.last = 1'b1;
    out_transmit_o.header.communicator = entry_i.number;
    out_transmit_o.header.epoch = entry_i.epoch;
    out_transmit_o.header.source = 32'(entry_i.rank);
    out_transmit_o.header.destination = 32'(peer_q);
  end

  logic unused;
  assign unused = ^{peer_i.valid, entry_i};

endmodule
