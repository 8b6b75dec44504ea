// Puts and gets: those of this engine, gets of peers, which are served beside the dispatcher, what peers write to
// memory themselves, which goes past the receive-buffer manager, and what peers are told about all that. What is sent
// goes through lanes.
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

  // What has come. The rest passes, to the receive-buffer manager, whose writes share the way to memory; the words of
  // payloads go beside.
  input  logic           received_valid_i,
  output logic           received_ready_o,
  input  received_t      received_i,
  input  logic           payload_valid_i, payload_last_i,
  output logic           payload_ready_o,
  output logic           pass_received_valid_o, pass_payload_valid_o,
  input  logic           pass_received_ready_i, pass_payload_ready_i,
  input  logic           buffer_command_valid_i, buffer_valid_i,
  output logic           buffer_command_ready_o, buffer_ready_o,
  input  address_t       buffer_command_address_i,
  input  segment_bytes_t buffer_command_bytes_i,
  output logic           buffer_written_o, buffer_error_o,
  output logic           write_command_valid_o, write_valid_o,
  input  logic           write_command_ready_i, write_ready_i,
  output address_t       write_command_address_o,
  output segment_bytes_t write_command_bytes_o,
  input  logic           written_valid_i, written_error_i,

  // The window of a communicator, in the same cycle.
  output communicator_t window_communicator_o,
  input  binding_t      window_i,
  input  segment_bytes_t window_segment_i,

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

  logic heard_valid, heard_ready, landed_valid, landed_error, answer_valid, answer_ready;
  received_t heard;
  logic heard_fits;
  address_t heard_address;
  segment_bytes_t heard_segment;
  slot_t landed_slot, landing_slot;
  landing_t landing;
  put_answer_t answer;
  logic is_get, operations_ready, responder_ready, request_valid, request_ready, refuse_valid, refuse_ready;
  logic serve_asks, serve_ready, serve_answer;
  get_request_t request;
  get_refusal_t refuse;
  question_t serve_question;

  unisono_window_writes u_window_writes (
    .clk_i, .rst_ni, .received_valid_i, .received_ready_o, .received_i, .payload_valid_i, .payload_ready_o,
    .payload_last_i, .pass_received_valid_o, .pass_received_ready_i, .pass_payload_valid_o, .pass_payload_ready_i,
    .window_communicator_o, .window_i, .window_segment_i, .landing_slot_o(landing_slot), .landing_i(landing),
    .buffer_command_valid_i, .buffer_command_ready_o, .buffer_command_address_i, .buffer_command_bytes_i,
    .buffer_valid_i, .buffer_ready_o, .buffer_written_o, .buffer_error_o,
    .write_command_valid_o, .write_command_ready_i, .write_command_address_o, .write_command_bytes_o,
    .write_valid_o, .write_ready_i, .written_valid_i, .written_error_i,
    .answer_valid_o(answer_valid), .answer_ready_i(answer_ready), .answer_communicator_o(answer.communicator),
    .answer_peer_o(answer.peer), .answer_sequence_o(answer.sequence_), .answer_code_o(answer.code),
    .heard_valid_o(heard_valid), .heard_ready_i(heard_ready), .heard_o(heard),
    .heard_fits_o(heard_fits), .heard_address_o(heard_address), .heard_segment_o(heard_segment),
    .landed_valid_o(landed_valid), .landed_slot_o(landed_slot), .landed_error_o(landed_error)
  );

  assign is_get = heard.header.tag == 32'(ControlKindGet);
  assign heard_ready = is_get ? responder_ready : operations_ready;

  unisono_remote_operations u_operations (
    .clk_i, .rst_ni, .clear_valid_i, .clear_slot_i, .contexts_i, .generations_i,
    .ask_id_i, .busy_o, .generation_o, .begin_valid_i, .begin_i,
    .heard_valid_i(heard_valid && !is_get), .heard_ready_o(operations_ready), .heard_i(heard),
    .landed_valid_i(landed_valid), .landed_slot_i(landed_slot), .landed_error_i(landed_error),
    .landing_slot_i(landing_slot), .landing_o(landing),
    .request_valid_o(request_valid), .request_ready_i(request_ready),
    .request_communicator_o(request.communicator), .request_peer_o(request.peer), .request_dtype_o(request.dtype),
    .request_offset_o(request.offset), .request_bytes_o(request.bytes), .request_slot_o(request.slot),
    .request_generation_o(request.generation),
    .complete_valid_o, .complete_ready_i, .complete_id_o(complete_o.id), .complete_generation_o(complete_o.generation),
    .fail_valid_o(cause_o.valid), .fail_slot_o(cause_o.slot), .fail_code_o(cause_o.code)
  );

  unisono_get_responder u_responder (
    .clk_i, .rst_ni,
    .heard_valid_i(heard_valid && is_get), .heard_ready_o(responder_ready), .heard_i(heard),
    .heard_fits_i(heard_fits), .heard_address_i(heard_address), .heard_segment_i(heard_segment),
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
    .answer_valid_i(answer_valid), .answer_ready_o(answer_ready), .answer_i(answer),
    .refuse_valid_i(refuse_valid), .refuse_ready_o(refuse_ready), .refuse_i(refuse),
    .request_valid_i(request_valid), .request_ready_o(request_ready), .request_i(request),
    .notice_valid_o, .notice_ready_i, .notice_o
  );

endmodule
