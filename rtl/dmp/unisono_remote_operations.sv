// Puts and gets of this engine that are under way: one for each active call. A move that puts or gets completes when
// its peer says so (put), or when all that it asked for stands in memory (get).
//
// An operation is known by its slot and a generation, which travel in its messages and come back in the answers; the
// generation goes on when an operation ends, in whatever way. So what is said of one that has ended is ignored.
//
// Latency: an answer completes its move 2 cycles later, if the queue of completions is empty; a get's request is offered
// in the cycle after its begin. Throughput: one answer per cycle.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_remote_operations
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // A slot's call is forgotten, also what begins in these cycles but the last.
  input  logic  clear_valid_i,
  input  slot_t clear_slot_i,

  input  call_context_t contexts_i [Calls],
  input  logic [Calls-1:0][GenerationWidth-1:0] generations_i,   // of the slots' programs; see unisono_scoreboard

  // The dispatcher: another operation of the call is under way, so that this one must wait; its generation: both one
  // cycle after the question. It begins, which must have been asked about in the cycle before.
  input  move_id_t    ask_id_i,
  output logic        busy_o,
  output logic [15:0] generation_o,
  input  logic        begin_valid_i,
  input  operation_t  begin_i,

  // What peers say, and what has landed; see unisono_window_writes.
  input  logic      heard_valid_i,
  output logic      heard_ready_o,
  input  received_t heard_i,
  input  logic      landed_valid_i,
  input  slot_t     landed_slot_i,
  input  logic      landed_error_i,
  input  slot_t     landing_slot_i,
  output landing_t  landing_o,

  // A get is asked for. Where it stands is known until it ends.
  output logic           request_valid_o,
  input  logic           request_ready_i,
  output communicator_t  request_communicator_o,
  output rank_t          request_peer_o,
  output datatype_e      request_dtype_o,
  output message_bytes_t request_offset_o,
  output message_bytes_t request_bytes_o,
  output logic [15:0]    request_slot_o,
  output logic [15:0]    request_generation_o,

  output logic        complete_valid_o,
  input  logic        complete_ready_i,
  output move_id_t    complete_id_o,
  output generation_t complete_generation_o,
  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o
);

  // ------------------------------------------------------------------------------------------- what is known

  logic [Calls-1:0] pending_q;
  // Of the operation under way, or of the last one: only a begin writes it. The next one has the generation after that.
  typedef struct packed {
    entry_t entry;
    logic get;
    communicator_t communicator;
    rank_t peer;
    logic [15:0] generation;
  } known_t;
  (* ram_style = "distributed" *) known_t known_q [Calls];
  // Of gets only.
  typedef struct packed {
    datatype_e dtype;
    message_bytes_t offset;
    message_bytes_t bytes;
    address_t address;
  } place_t;
  (* ram_style = "distributed" *) place_t places_q [Calls];
  initial for (int s = 0; s < int'(Calls); s++) known_q[s] = '0;

  known_t about, lands_at;
  logic busy_q;
  logic [15:0] generation_q;
  assign about = known_q[ask_id_i.slot];
  always_ff @(posedge clk_i) begin
    busy_q <= pending_q[ask_id_i.slot] && about.entry != ask_id_i.entry;
    generation_q <= about.generation + 16'(!pending_q[ask_id_i.slot]);
    if (begin_valid_i) begin
      known_q[begin_i.id.slot] <= '{entry: begin_i.id.entry, get: begin_i.get,
                                    communicator: contexts_i[begin_i.id.slot].communicator, peer: begin_i.peer,
                                    generation: generation_q};
    end
    if (begin_valid_i && begin_i.get) begin
      places_q[begin_i.id.slot] <= '{dtype: begin_i.dtype, offset: begin_i.offset, bytes: begin_i.bytes,
                                     address: begin_i.address};
    end
  end
  assign busy_o = busy_q;
  assign generation_o = generation_q;

  assign lands_at = known_q[landing_slot_i];
  assign landing_o.valid = pending_q[landing_slot_i] && lands_at.get;
  assign landing_o.communicator = lands_at.communicator;
  assign landing_o.peer = lands_at.peer;
  assign landing_o.generation = lands_at.generation;
  assign landing_o.place = '{bytes: places_q[landing_slot_i].bytes, address: places_q[landing_slot_i].address};

  // ----------------------------------------------------------------------------------------------- answers
  // A put's stands in sequence: slot and generation. A get is refused by its token. What is said, or has landed, is kept
  // for a cycle before it is compared with what is known of its slot.

  logic heard_get, heard_known;
  logic [15:0] heard_code;
  error_code_e code;
  assign heard_get = heard_i.header.tag == 32'(ControlKindGetFailed);
  assign heard_known = heard_get || (heard_i.header.tag == 32'(ControlKindPutDone) &&
                                     heard_i.header.sequence_[31:16+SlotWidth] == '0);
  assign heard_code = heard_get ? heard_i.header.offset[15:0] : heard_i.header.token_generation;
  assign heard_ready_o = !landed_valid_i;
  // Numbers that name no error of an engine say that the message is corrupt.
  always_comb begin
    code = error_code_e'(heard_code);
    if (heard_code == '0 || heard_code > 16'(ErrorCodeInternal)) code = ErrorCodeCorruptMessage;
    if (landed_valid_i) code = ErrorCodeInternal;
  end

  typedef struct packed {
    logic landed;
    logic get;
    logic bad;
    error_code_e code;
    slot_t slot;
    communicator_t communicator;
    rank_t source;
    logic [15:0] generation;
  } event_t;
  logic event_valid_q;
  event_t event_q;
  always_ff @(posedge clk_i) begin
    event_valid_q <= rst_ni && (landed_valid_i || (heard_valid_i && heard_known));
    event_q.landed <= landed_valid_i;
    event_q.get <= landed_valid_i || heard_get;
    event_q.bad <= landed_valid_i ? landed_error_i : heard_get || heard_code != '0;
    event_q.code <= code;
    event_q.slot <= landed_valid_i ? landed_slot_i
                    : heard_get ? slot_t'(heard_i.header.token_slot) : heard_i.header.sequence_[16+:SlotWidth];
    event_q.communicator <= heard_i.communicator;
    event_q.source <= heard_i.source;
    event_q.generation <= heard_get ? heard_i.header.token_generation : heard_i.header.sequence_[15:0];
  end

  // What has landed may be of a get that memory has failed before.
  known_t subject;
  logic agrees, ends;
  assign subject = known_q[event_q.slot];
  assign agrees = {subject.communicator, subject.peer, subject.generation} ==
                  {event_q.communicator, event_q.source, event_q.generation};
  assign ends = event_valid_q && pending_q[event_q.slot] && subject.get == event_q.get && (event_q.landed || agrees) &&
                !(clear_valid_i && clear_slot_i == event_q.slot);
  assign fail_valid_o = ends && event_q.bad;
  assign fail_slot_o = event_q.slot;
  assign fail_code_o = event_q.code;

  unisono_fifo #(.Width($bits(move_id_t) + GenerationWidth), .Depth(2 * Calls)) u_completes (
    .clk_i, .rst_ni, .in_valid_i(ends && !event_q.bad), .in_ready_o(),
    .in_data_i({event_q.slot, subject.entry, generations_i[event_q.slot]}),
    .out_valid_o(complete_valid_o), .out_ready_i(complete_ready_i),
    .out_data_o({complete_id_o, complete_generation_o}), .count_o()
  );

  for (genvar s = 0; s < int'(Calls); s++) begin : gen_slot
    logic begins, ended;
    assign begins = begin_valid_i && begin_i.id.slot == slot_t'(s);
    assign ended = (ends && event_q.slot == slot_t'(s)) || (clear_valid_i && clear_slot_i == slot_t'(s));
    always_ff @(posedge clk_i) pending_q[s] <= rst_ni && (begins || (pending_q[s] && !ended));
  end

  // ---------------------------------------------------------------------------------------------- requests

  slot_t asked;
  logic [Calls-1:0] asks_q, asked_one;
  logic asked_valid;
  unisono_lowest_one #(.Width(Calls)) u_asks (
    .bits_i(asks_q & pending_q), .any_o(asked_valid), .index_o(asked), .one_o(asked_one)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asks_q <= '0;
    end else begin
      asks_q <= (asks_q & pending_q & ~(request_valid_o && request_ready_i ? asked_one : '0)) |
                (begin_valid_i && begin_i.get ? Calls'(1) << begin_i.id.slot : '0);
    end
  end
  assign request_valid_o = asked_valid;
  known_t asks_of;
  assign asks_of = known_q[asked];
  assign request_communicator_o = asks_of.communicator;
  assign request_peer_o = asks_of.peer;
  assign request_dtype_o = places_q[asked].dtype;
  assign request_offset_o = places_q[asked].offset;
  assign request_bytes_o = places_q[asked].bytes;
  assign request_slot_o = {LandingBase[15:SlotWidth], asked};
  assign request_generation_o = asks_of.generation;

  `ifndef SYNTHESIS
  move_id_t asked_q;
  always_ff @(posedge clk_i) begin
    asked_q <= ask_id_i;
    if (rst_ni && begin_valid_i) begin
      assert (!pending_q[begin_i.id.slot] || about_begin.entry == begin_i.id.entry)
        else $error("a second operation of a call begins");
      assert (asked_q == begin_i.id && !busy_q) else $error("what begins has not been asked about");
    end
  end
  known_t about_begin;
  assign about_begin = known_q[begin_i.id.slot];
  `endif

endmodule
