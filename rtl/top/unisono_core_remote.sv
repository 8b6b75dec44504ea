// Puts and gets: those of this engine, gets of peers, which are served beside the dispatcher, and what peers are told about
// both. The data itself goes through lanes, and past the receive-buffer manager to memory.
//
// Latency, throughput: see its parts.

module unisono_core_remote
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_core_pkg::*;
(
  input  logic          clk_i,
  input  logic          rst_ni,

  input  logic          clear_valid_i,
  input  slot_t         clear_slot_i,
  input  call_context_t contexts_i [Calls],
  input  logic [Calls-1:0][GenerationWidth-1:0] generations_i,

  // The dispatcher begins one; whether the slot has one under way.
  input  move_id_t      ask_id_i,
  output logic          busy_o,
  output logic [15:0]   generation_o,
  input  logic          begin_valid_i,
  input  operation_t    begin_i,

  // What has come: messages, data of a get, and what became of a peer's put.
  input  logic          heard_valid_i,
  output logic          heard_ready_o,
  input  heard_t        heard_i,
  input  logic          landed_valid_i,
  input  slot_t         landed_slot_i,
  input  logic          landed_error_i,
  input  slot_t         landing_slot_i,
  output landing_t      landing_o,
  input  logic          answer_valid_i,
  output logic          answer_ready_o,
  input  put_answer_t   answer_i,

  output logic          notice_valid_o,
  input  logic          notice_ready_i,
  output notice_t       notice_o,

  output logic          complete_valid_o,
  input  logic          complete_ready_i,
  output move_of_t      complete_o,
  output cause_t        cause_o,

  // A segment for a peer's get.
  output logic          serve_valid_o,
  input  logic          serve_ready_i,
  output job_t          serve_o,

  // Space: the dispatcher's questions, and all of them to the transport.
  input  logic          asks_valid_i,
  output logic          asks_ready_o,
  input  question_t     asks_i,
  output logic          asks_answer_o,
  output logic          space_valid_o,
  input  logic          space_ready_i,
  output question_t     space_o,
  input  logic          space_answer_i,
  input  logic          space_granted_i
);

  logic is_get, operations_ready, responder_ready, request_valid, request_ready, refuse_valid, refuse_ready;
  logic serve_asks, serve_ready, serve_answer;
  get_request_t request;
  get_refusal_t refuse;
  question_t serve_question;

  assign is_get = heard_i.message.header.tag == 32'(ControlKindGet);
  assign heard_ready_o = is_get ? responder_ready : operations_ready;

  unisono_remote_operations u_operations (
    .clk_i, .rst_ni, .clear_valid_i, .clear_slot_i, .contexts_i, .generations_i,
    .ask_id_i, .busy_o, .generation_o, .begin_valid_i, .begin_i,
    .heard_valid_i(heard_valid_i && !is_get), .heard_ready_o(operations_ready), .heard_i(heard_i.message),
    .landed_valid_i, .landed_slot_i, .landed_error_i, .landing_slot_i, .landing_o,
    .request_valid_o(request_valid), .request_ready_i(request_ready),
    .request_communicator_o(request.communicator), .request_peer_o(request.peer), .request_dtype_o(request.dtype),
    .request_offset_o(request.offset), .request_bytes_o(request.bytes), .request_slot_o(request.slot),
    .request_generation_o(request.generation),
    .complete_valid_o, .complete_ready_i, .complete_id_o(complete_o.id), .complete_generation_o(complete_o.generation),
    .fail_valid_o(cause_o.valid), .fail_slot_o(cause_o.slot), .fail_code_o(cause_o.code)
  );

  unisono_get_responder u_responder (
    .clk_i, .rst_ni,
    .heard_valid_i(heard_valid_i && is_get), .heard_ready_o(responder_ready), .heard_i(heard_i.message),
    .heard_fits_i(heard_i.fits), .heard_address_i(heard_i.address), .heard_segment_i(heard_i.segment),
    .space_valid_o(serve_asks), .space_ready_i(serve_ready), .space_session_o(serve_question.session),
    .space_bytes_o(serve_question.bytes), .space_answer_i(serve_answer), .space_granted_i,
    .job_valid_o(serve_valid_o), .job_ready_i(serve_ready_i), .job_o(serve_o),
    .refuse_valid_o(refuse_valid), .refuse_ready_i(refuse_ready), .refuse_communicator_o(refuse.communicator),
    .refuse_peer_o(refuse.peer), .refuse_slot_o(refuse.slot), .refuse_generation_o(refuse.generation)
  );

  unisono_core_space u_space (
    .clk_i, .rst_ni, .asks_valid_i, .asks_ready_o, .asks_i, .asks_answer_o,
    .serve_valid_i(serve_asks), .serve_ready_o(serve_ready), .serve_i(serve_question), .serve_answer_o(serve_answer),
    .space_valid_o, .space_ready_i, .space_o, .space_answer_i
  );

  unisono_core_notices u_notices (
    .answer_valid_i, .answer_ready_o, .answer_i,
    .refuse_valid_i(refuse_valid), .refuse_ready_o(refuse_ready), .refuse_i(refuse),
    .request_valid_i(request_valid), .request_ready_o(request_ready), .request_i(request),
    .notice_valid_o, .notice_ready_i, .notice_o
  );

endmodule
