// Asks the transport for space: for data on behalf of the dispatcher, and for control messages, which pass through
// here on their way to Tx and wait until their space is granted. A question that has been offered stays until it is taken.
//
// The transport answers one question at a time; control goes first, so that credits and grants are never held up by
// data. Latency: the transport's, and 1 cycle for a control message. Throughput: the next question in the cycle after an
// answer, or after a control message has left.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_space_gate
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // Data: answered with one pulse of answer.
  input  logic           space_valid_i,
  output logic           space_ready_o,
  input  session_t       space_session_i,
  input  segment_bytes_t space_bytes_i,      // payload
  output logic           space_answer_o,
  output logic           space_granted_o,

  // Control messages, without and with space.
  input  logic      in_valid_i,
  output logic      in_ready_o,
  input  transmit_t in_transmit_i,
  output logic      out_valid_o,
  input  logic      out_ready_i,
  output transmit_t out_transmit_o,

  // The transport.
  output logic                        query_valid_o,
  input  logic                        query_ready_i,
  output unisono_poe_pkg::session_t   query_session_o,
  output unisono_poe_pkg::bytes_t     query_bytes_o,
  input  logic                        grant_valid_i,
  output logic                        grant_ready_o,
  input  logic                        grant_granted_i
);

  typedef enum logic [1:0] { Idle, Asked, Pass } state_e;
  state_e state_d, state_q;
  logic for_control_d, for_control_q, wants_control, of_data_q;

  assign wants_control = in_valid_i && !of_data_q && state_q == Idle;
  assign query_valid_o = state_q == Idle && (in_valid_i || space_valid_i);
  assign query_bytes_o = 16'(HeaderBytes) + (wants_control ? 16'(in_transmit_i.header.segment_bytes)
                                                           : 16'(space_bytes_i));
  always_comb begin
    query_session_o = wants_control ? in_transmit_i.session : space_session_i;
    query_session_o[unisono_poe_pkg::ControlBit] = wants_control;
  end
  assign space_ready_o = state_q == Idle && !wants_control && query_ready_i;
  assign grant_ready_o = state_q == Asked;
  assign space_answer_o = state_q == Asked && grant_valid_i && !for_control_q;
  assign space_granted_o = grant_granted_i;
  assign out_valid_o = state_q == Pass;
  assign out_transmit_o = in_transmit_i;
  assign in_ready_o = state_q == Pass && out_ready_i;

  always_comb begin
    state_d = state_q;
    for_control_d = for_control_q;
    unique case (state_q)
      Idle: begin
        if (query_valid_o && query_ready_i) begin
          for_control_d = wants_control;
          state_d = Asked;
        end
      end
      // A refused control message asks again; data asks again by itself.
      Asked: if (grant_valid_i) state_d = for_control_q && grant_granted_i ? Pass : Idle;
      Pass: if (out_ready_i) state_d = Idle;
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Idle;
      for_control_q <= 1'b0;
      of_data_q <= 1'b0;
    end else begin
      state_q <= state_d;
      of_data_q <= query_valid_o && !query_ready_i && !wants_control;
      for_control_q <= for_control_d;
    end
  end

endmodule
