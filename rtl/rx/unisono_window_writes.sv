// What peers write straight to this engine's memory: puts into a communicator's window, and the data of gets into the
// place that the get named. Stands between Rx and the receive-buffer manager, and shares the writer of buffers.
//
// A put is a write with the token slot WindowSlot; offset and message_bytes are places in the window, message_bytes that
// of the put's end. So every segment tells by itself whether all of the put fits; if not, nothing of it is written. The
// last segment is answered: when all that was written before it stands in memory, or that it was refused.
//
// Data of a get is a write with the token slot LandingBase + the call's slot. It must have the operation's generation,
// come from whom was asked, and fit; else it is of an operation that has ended, and dropped.
//
// Control messages end here too: what they say of this engine's own operations is told (heard), all others are dropped.
//
// Everything that comes can be taken at once: an engine has one operation of each of its calls under way, so Answers of
// 8 for each peer are never exceeded.
//
// Latency: from a header to its write command 3 cycles; from a write's answer to the put's answer 2, or 4 if others
// wait. Throughput: 3 cycles more than a segment has words. Other messages pass in the same cycle.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_window_writes
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned Answers = 512,
  parameter int unsigned Commands = 64                 // of the writer, buffers included, that may be under way
) (
  input  logic clk_i,
  input  logic rst_ni,

  // From Rx: a header, then its payload if it has any; and on to the receive-buffer manager. Words of payload are the
  // same for all.
  input  logic      received_valid_i,
  output logic      received_ready_o,
  input  received_t received_i,
  input  logic      payload_valid_i,
  output logic      payload_ready_o,
  input  logic      payload_last_i,
  output logic      pass_received_valid_o,
  input  logic      pass_received_ready_i,
  output logic      pass_payload_valid_o,
  input  logic      pass_payload_ready_i,

  // The window of a communicator, in the same cycle; and what a slot's get waits for.
  output communicator_t window_communicator_o,
  input  binding_t      window_i,
  input  segment_bytes_t window_segment_i,             // its longest segment
  output slot_t         landing_slot_o,
  input  landing_t      landing_i,

  // The writer, as the receive-buffer manager uses it.
  input  logic           buffer_command_valid_i,
  output logic           buffer_command_ready_o,
  input  address_t       buffer_command_address_i,
  input  segment_bytes_t buffer_command_bytes_i,
  input  logic           buffer_valid_i,
  output logic           buffer_ready_o,
  output logic           buffer_written_o,
  output logic           buffer_error_o,

  // The writer. Its words are those of the payload.
  output logic           write_command_valid_o,
  input  logic           write_command_ready_i,
  output address_t       write_command_address_o,
  output segment_bytes_t write_command_bytes_o,
  output logic           write_valid_o,
  input  logic           write_ready_i,
  input  logic           written_valid_i,
  input  logic           written_error_i,

  // Answers to puts.
  output logic          answer_valid_o,
  input  logic          answer_ready_i,
  output communicator_t answer_communicator_o,
  output rank_t         answer_peer_o,
  output logic [31:0]   answer_sequence_o,
  output error_code_e   answer_code_o,

  // A control message of a peer.
  output logic      heard_valid_o,
  input  logic      heard_ready_i,
  output received_t heard_o,
  output logic           heard_fits_o,                 // what a get asks for is in the window,
  output address_t       heard_address_o,              // and stands there
  output segment_bytes_t heard_segment_o,
  // All data of a slot's get is visible, or memory refused some of it. Never refused.
  output logic      landed_valid_o,
  output slot_t     landed_slot_o,
  output logic      landed_error_o
);

  header_t header;
  logic is_write, is_put, is_landing, is_control, own, with_data;
  assign header = received_i.header;
  assign is_write = header.type_ == MessageTypeWrite;
  assign is_put = is_write && header.token_slot == 16'(WindowSlot);
  assign is_landing = is_write && header.token_slot[15:SlotWidth] == LandingBase[15:SlotWidth];
  assign is_control = header.type_ == MessageTypeControl;
  assign own = is_put || is_landing || is_control;
  assign with_data = header.segment_bytes != '0;
  assign window_communicator_o = received_i.communicator;
  assign landing_slot_o = slot_t'(header.token_slot);

  typedef enum logic [2:0] {
    Idle,
    Judge,       // where it goes is known
    Go,          // and whether it may
    Write,       // its payload passes to memory
    Drop         // its payload is thrown away
  } state_e;
  state_e state_d, state_q;

  // What was passed on with a payload that has not passed yet. Own payload comes behind it.
  logic [2:0] passing_q;
  logic passes, passed, ours;
  assign ours = state_q == Write || state_q == Drop;
  assign passes = pass_received_valid_o && pass_received_ready_i && with_data;
  assign passed = pass_payload_valid_o && pass_payload_ready_i && payload_last_i;
  assign pass_received_valid_o = received_valid_i && !own && state_q == Idle;
  assign pass_payload_valid_o = payload_valid_i && !ours;
  assign payload_ready_o = state_q == Write ? write_ready_i : state_q == Drop || pass_payload_ready_i;
  assign write_valid_o = state_q == Write ? payload_valid_i : buffer_valid_i;
  assign buffer_ready_o = write_ready_i && state_q != Write;

  // ---------------------------------------------------------------------------------------------- judging

  // Begin and length are of one cycle, also if the host moves the window, or a get ends, while a write waits here.
  address_t begin_read_q, begin_q;
  message_bytes_t room_q;
  logic expected_q, fits_q;
  logic [48:0] end_q;
  segment_bytes_t segment_q;
  always_ff @(posedge clk_i) begin
    begin_read_q <= is_landing ? landing_i.place.address : window_i.address;
    begin_q <= begin_read_q;
    room_q <= is_landing ? landing_i.place.bytes : window_i.bytes;
    segment_q <= window_segment_i;
    expected_q <= !is_landing || (landing_i.valid && landing_i.generation == header.token_generation &&
                                  landing_i.peer == received_i.source &&
                                  landing_i.communicator == received_i.communicator);
    // Rx has seen that no segment ends beyond the end of its message. A get names begin and length.
    end_q <= {1'b0, header.message_bytes} + (is_control ? {1'b0, header.offset} : '0);
    fits_q <= expected_q && end_q <= {1'b0, room_q};
  end
  address_t place;
  assign place = begin_q + address_t'(header.offset);
  assign heard_fits_o = fits_q;
  assign heard_address_o = place;
  assign heard_segment_o = segment_q;

  logic writes, answers, answers_ready, commands_ready, goes;
  assign writes = state_q == Go && is_write && fits_q && with_data;
  assign answers = is_put && header.last;
  assign write_command_valid_o = state_q == Go ? writes && commands_ready && (!answers || answers_ready)
                                               : buffer_command_valid_i && commands_ready;
  assign write_command_address_o = state_q == Go ? place : buffer_command_address_i;
  assign write_command_bytes_o = state_q == Go ? segment_bytes_t'(header.segment_bytes) : buffer_command_bytes_i;
  assign buffer_command_ready_o = write_command_ready_i && commands_ready && state_q != Go;
  assign goes = state_q == Go && (writes ? write_command_valid_o && write_command_ready_i
                                         : is_control ? heard_ready_i : !answers || answers_ready);
  assign heard_valid_o = state_q == Go && is_control;
  assign heard_o = received_i;
  assign received_ready_o = own ? goes : state_q == Idle && pass_received_ready_i;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Idle: if (received_valid_i && own && passing_q == '0) state_d = Judge;
      Judge: state_d = Go;
      Go: if (goes) state_d = !with_data ? Idle : writes ? Write : Drop;
      default: if (payload_valid_i && payload_ready_o && payload_last_i) state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Idle;
      passing_q <= '0;
    end else begin
      state_q <= state_d;
      passing_q <= passing_q + 3'(passes) - 3'(passed);
    end
  end

  // ------------------------------------------------------------------------------------------- what is written
  // The writer answers in the order of its commands.

  typedef struct packed {
    logic own;
    logic landing;
    logic last;
    communicator_t communicator;
    rank_t source;         // of a put; of a landing, the slot
  } command_t;
  command_t command_in, command_out;
  assign command_in = '{own: state_q == Go, landing: is_landing, last: header.last, communicator: received_i.communicator,
                        source: is_landing ? rank_t'(landing_slot_o) : received_i.source};
  unisono_fifo #(.Width($bits(command_t)), .Depth(Commands)) u_commands (
    .clk_i, .rst_ni, .in_valid_i(write_command_valid_o && write_command_ready_i), .in_ready_o(commands_ready),
    .in_data_i(command_in), .out_valid_o(), .out_ready_i(written_valid_i), .out_data_o(command_out), .count_o()
  );
  logic put_written;
  assign put_written = written_valid_i && command_out.own && !command_out.landing;
  assign buffer_written_o = written_valid_i && !command_out.own;
  assign buffer_error_o = written_error_i;
  assign landed_valid_o = written_valid_i && command_out.own && command_out.landing &&
                          (command_out.last || written_error_i);
  assign landed_slot_o = slot_t'(command_out.source);
  assign landed_error_o = written_error_i;

  // --------------------------------------------------------------------------------------------- answers

  typedef struct packed {
    logic refused;
    logic waits;           // for the answer of the writer
    communicator_t communicator;
    rank_t source;
    logic [31:0] sequence_;
  } answer_t;
  answer_t answer_in, answer;
  logic answer_there, taken, bad;
  localparam int unsigned CountWidth = $clog2(Answers + 1);
  logic [CountWidth-1:0] released_q;
  assign answer_in = '{refused: !fits_q, waits: writes, communicator: received_i.communicator,
                       source: received_i.source, sequence_: header.sequence_};
  unisono_fifo #(.Width($bits(answer_t)), .Depth(Answers)) u_answers (
    .clk_i, .rst_ni, .in_valid_i(goes && answers), .in_ready_o(answers_ready), .in_data_i(answer_in),
    .out_valid_o(answer_there), .out_ready_i(taken), .out_data_o(answer), .count_o()
  );
  // Memory has refused a segment of this member. If several of its puts are under way, the one that is answered next is
  // told, but one that was refused hides nothing.
  unisono_flags #(.Depth(Communicators * Ranks)) u_bad (
    .clk_i, .raise_valid_i(put_written && written_error_i),
    .raise_index_i({command_out.communicator, command_out.source}), .raise_bit_o(),
    .lower_valid_i(taken && bad && !answer.refused), .lower_index_i({answer.communicator, answer.source}), .lower_bit_o(),
    .read_index_i({answer.communicator, answer.source}), .read_bit_o(bad)
  );
  assign answer_valid_o = answer_there && (!answer.waits || released_q != '0);
  assign taken = answer_valid_o && answer_ready_i;
  assign answer_communicator_o = answer.communicator;
  assign answer_peer_o = answer.source;
  assign answer_sequence_o = answer.sequence_;
  assign answer_code_o = answer.refused ? ErrorCodeBufferTooSmall : bad ? ErrorCodeInternal : ErrorCodeOk;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      released_q <= '0;
    end else begin
      released_q <= released_q + CountWidth'(put_written && command_out.last) - CountWidth'(taken && answer.waits);
    end
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (passing_q != '1 || !passes) else $error("more messages have been passed on than are counted");
      assert (passing_q != '0 || !passed) else $error("a payload without its header");
      assert (state_q == Idle || !buffer_command_valid_i) else $error("a buffer is written in the middle of a put");
    end
  end
  `endif

endmodule
