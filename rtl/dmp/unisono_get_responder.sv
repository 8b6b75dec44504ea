// Serves gets of peers: turns a request for bytes of this rank's window into jobs of the send lane, without the
// microcontroller and without the dispatcher.
//
// A request waits in a queue until those before it have been served. All that it asks for may be sent at once, so
// serving waits for the transport's space and for the lane, never for a peer's program. There is a place for every
// request that can come: 8 calls of each peer, one operation each. What does not fit the window is refused.
//
// Latency: from a request to its first job 6 cycles and the transport's answer, 4 and that if the queue is no block RAM
// (Requests at most 64). Throughput: a job in 3 cycles and the transport's answer; segments of a request go one after
// the other.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_get_responder
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned Requests = 512
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A request, with what is known of the window: whether it fits, where it begins, and the longest segment.
  input  logic           heard_valid_i,
  output logic           heard_ready_o,
  input  received_t      heard_i,
  input  logic           heard_fits_i,
  input  address_t       heard_address_i,
  input  segment_bytes_t heard_segment_i,

  // Space in the transport for one packet, reserved with the answer.
  output logic           space_valid_o,
  input  logic           space_ready_i,
  output session_t       space_session_o,
  output segment_bytes_t space_bytes_o,
  input  logic           space_answer_i,
  input  logic           space_granted_i,

  // Jobs for the send lane, which belong to no call.
  output logic job_valid_o,
  input  logic job_ready_i,
  output job_t job_o,

  // A request is refused.
  output logic          refuse_valid_o,
  input  logic          refuse_ready_i,
  output communicator_t refuse_communicator_o,
  output rank_t         refuse_peer_o,
  output logic [15:0]   refuse_slot_o,
  output logic [15:0]   refuse_generation_o
);

  typedef struct packed {
    logic fits;
    communicator_t communicator;
    logic [31:0] number;
    logic [15:0] epoch;
    session_t session;
    rank_t own;
    rank_t peer;
    datatype_e dtype;
    logic [15:0] token_slot;
    logic [15:0] token_generation;
    segment_bytes_t segment;
    message_bytes_t bytes;
    address_t address;
  } request_t;
  request_t request_in, request;
  logic request_valid, request_take;

  // A payload would say how much may come at once; here all does.
  assign request_in = '{fits: heard_fits_i && heard_i.header.segment_bytes == '0 && heard_i.header.message_bytes != '0 &&
                              heard_segment_i != '0,
                        communicator: heard_i.communicator, number: heard_i.header.communicator,
                        epoch: heard_i.header.epoch, session: heard_i.session,
                        own: rank_t'(heard_i.header.destination), peer: heard_i.source,
                        dtype: datatype_e'(heard_i.header.dtype[5:0]),
                        token_slot: heard_i.header.token_slot, token_generation: heard_i.header.token_generation,
                        segment: heard_segment_i, bytes: heard_i.header.message_bytes, address: heard_address_i};
  unisono_fifo #(.Width($bits(request_t)), .Depth(Requests)) u_requests (
    .clk_i, .rst_ni, .in_valid_i(heard_valid_i), .in_ready_o(heard_ready_o), .in_data_i(request_in),
    .out_valid_o(request_valid), .out_ready_i(request_take), .out_data_o(request), .count_o()
  );

  typedef enum logic [2:0] {
    Idle,
    Size,        // the next segment
    Space,
    Answer,
    Job,
    Refuse
  } state_e;
  state_e state_d, state_q;
  message_bytes_t sent_q, left_q;
  segment_bytes_t bytes_q;
  logic last_q, job_gone;

  assign space_valid_o = state_q == Space;
  assign space_session_o = request.session;
  assign space_bytes_o = bytes_q;
  assign job_valid_o = state_q == Job;
  assign job_gone = job_valid_o && job_ready_i;
  assign refuse_valid_o = state_q == Refuse;
  assign refuse_communicator_o = request.communicator;
  assign refuse_peer_o = request.peer;
  assign refuse_slot_o = request.token_slot;
  assign refuse_generation_o = request.token_generation;
  assign request_take = (job_gone && last_q) || (refuse_valid_o && refuse_ready_i);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Idle: if (request_valid) state_d = request.fits ? Size : Refuse;
      Size: state_d = Space;
      Space: if (space_ready_i) state_d = Answer;
      Answer: if (space_answer_i) state_d = space_granted_i ? Job : Space;
      Job: if (job_ready_i) state_d = last_q ? Idle : Size;
      default: if (refuse_ready_i) state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= Idle;
    else state_q <= state_d;
    if (state_q == Idle) begin
      sent_q <= '0;
      left_q <= request.bytes;
    end else if (job_gone) begin
      sent_q <= sent_q + message_bytes_t'(bytes_q);
      left_q <= left_q - message_bytes_t'(bytes_q);
    end
    if (state_q == Size) begin
      last_q <= left_q <= message_bytes_t'(request.segment);
      bytes_q <= left_q <= message_bytes_t'(request.segment) ? segment_bytes_t'(left_q) : request.segment;
    end
  end

  always_comb begin
    job_o = '0;
    job_o.serves = 1'b1;
    job_o.bytes = bytes_q;
    job_o.op0 = Op0Memory;
    job_o.op0_address = request.address + address_t'(sent_q);
    job_o.send = 1'b1;
    job_o.transmit.communicator = request.communicator;
    job_o.transmit.peer = request.peer;
    job_o.transmit.session = request.session;
    job_o.transmit.header.type_ = MessageTypeWrite;
    job_o.transmit.header.dtype = 8'(request.dtype);
    job_o.transmit.header.first = sent_q == '0;
    job_o.transmit.header.last = last_q;
    job_o.transmit.header.communicator = request.number;
    job_o.transmit.header.epoch = request.epoch;
    job_o.transmit.header.source = 32'(request.own);
    job_o.transmit.header.destination = 32'(request.peer);
    job_o.transmit.header.segment_bytes = 32'(bytes_q);
    job_o.transmit.header.message_bytes = request.bytes;
    job_o.transmit.header.offset = sent_q;
    job_o.transmit.header.token_slot = request.token_slot;
    job_o.transmit.header.token_generation = request.token_generation;
  end

endmodule
