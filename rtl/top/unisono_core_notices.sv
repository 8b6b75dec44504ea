// What peers are told about puts and gets: answers to their puts first, which never wait for anything of this engine,
// then refusals of their gets, then gets of this engine.
//
// Latency: none. Throughput: a notice per cycle.

module unisono_core_notices
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_core_pkg::*;
(
  input  logic         answer_valid_i,
  output logic         answer_ready_o,
  input  put_answer_t  answer_i,
  input  logic         refuse_valid_i,
  output logic         refuse_ready_o,
  input  get_refusal_t refuse_i,
  input  logic         request_valid_i,
  output logic         request_ready_o,
  input  get_request_t request_i,

  output logic         notice_valid_o,
  input  logic         notice_ready_i,
  output notice_t      notice_o
);

  assign notice_valid_o = answer_valid_i || refuse_valid_i || request_valid_i;
  assign answer_ready_o = notice_ready_i;
  assign refuse_ready_o = notice_ready_i && !answer_valid_i;
  assign request_ready_o = notice_ready_i && !answer_valid_i && !refuse_valid_i;

  always_comb begin
    notice_o = '0;
    if (answer_valid_i) begin
      notice_o.communicator = answer_i.communicator;
      notice_o.peer = answer_i.peer;
      notice_o.kind = ControlKindPutDone;
      notice_o.sequence_ = answer_i.sequence_;
      notice_o.token_generation = 16'(answer_i.code);
    end else if (refuse_valid_i) begin
      notice_o.communicator = refuse_i.communicator;
      notice_o.peer = refuse_i.peer;
      notice_o.kind = ControlKindGetFailed;
      notice_o.offset = message_bytes_t'(ErrorCodeBufferTooSmall);
      notice_o.token_slot = refuse_i.slot;
      notice_o.token_generation = refuse_i.generation;
    end else begin
      notice_o.communicator = request_i.communicator;
      notice_o.peer = request_i.peer;
      notice_o.kind = ControlKindGet;
      notice_o.dtype = request_i.dtype;
      notice_o.message_bytes = request_i.bytes;
      notice_o.offset = request_i.offset;
      notice_o.token_slot = request_i.slot;
      notice_o.token_generation = request_i.generation;
    end
  end

endmodule
