// Puts and gets of this engine that are under way: one for each active call. A move that puts or gets completes when
// its peer says so (put), or when all that it asked for stands in memory (get).
//
// An operation is known by its slot and a generation, which travel in its messages and come back in the answers; the
// generation goes on when an operation ends, in whatever way. So what is said of one that has ended is ignored.
//
// Latency: an answer completes its move in the next cycle, if that is free; a get's request is offered in the cycle
// after its begin. Throughput: one answer per cycle.

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

  // The dispatcher: another operation of the call is under way, so that this one must wait; its generation; it begins,
  // or goes on.
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

  logic [Calls-1:0] pending_q, get_q;
  entry_t entry_q [Calls];
  rank_t peer_q [Calls];
  logic [15:0] generation_q [Calls];
  // Of gets only.
  typedef struct packed {
    datatype_e dtype;
    message_bytes_t offset;
    message_bytes_t bytes;
    address_t address;
  } place_t;
  (* ram_style = "distributed" *) place_t places_q [Calls];

  assign busy_o = pending_q[ask_id_i.slot] && entry_q[ask_id_i.slot] != ask_id_i.entry;
  assign generation_o = generation_q[ask_id_i.slot];

  assign landing_o.valid = pending_q[landing_slot_i] && get_q[landing_slot_i];
  assign landing_o.communicator = contexts_i[landing_slot_i].communicator;
  assign landing_o.peer = peer_q[landing_slot_i];
  assign landing_o.generation = generation_q[landing_slot_i];
  assign landing_o.place = '{bytes: places_q[landing_slot_i].bytes, address: places_q[landing_slot_i].address};

  // ----------------------------------------------------------------------------------------------- answers
  // A put's stands in sequence: slot and generation. A get is refused by its token.

  logic heard_get, known, agrees, heard_takes, ends, bad;
  slot_t heard_slot, ends_slot;
  logic [15:0] heard_generation, heard_code;
  error_code_e code;
  assign heard_get = heard_i.header.tag == 32'(ControlKindGetFailed);
  assign heard_slot = heard_get ? slot_t'(heard_i.header.token_slot) : heard_i.header.sequence_[16+:SlotWidth];
  assign heard_generation = heard_get ? heard_i.header.token_generation : heard_i.header.sequence_[15:0];
  assign heard_code = heard_get ? heard_i.header.offset[15:0] : heard_i.header.token_generation;
  assign known = heard_get || (heard_i.header.tag == 32'(ControlKindPutDone) &&
                               heard_i.header.sequence_[31:16+SlotWidth] == '0);
  assign agrees = pending_q[heard_slot] && get_q[heard_slot] == heard_get &&
                   generation_q[heard_slot] == heard_generation && peer_q[heard_slot] == heard_i.source &&
                   contexts_i[heard_slot].communicator == heard_i.communicator;
  assign heard_ready_o = !landed_valid_i;
  assign heard_takes = heard_valid_i && heard_ready_o && known && agrees;

  // What has landed may be of a get that memory has failed before.
  logic lands;
  assign lands = landed_valid_i && pending_q[landed_slot_i] && get_q[landed_slot_i];
  assign ends = (heard_takes || lands) && !(clear_valid_i && clear_slot_i == ends_slot);
  assign ends_slot = landed_valid_i ? landed_slot_i : heard_slot;
  assign bad = landed_valid_i ? landed_error_i : heard_get || heard_code != '0;
  // Numbers that name no error of an engine say that the message is corrupt.
  always_comb begin
    code = error_code_e'(heard_code);
    if (heard_code == '0 || heard_code > 16'(ErrorCodeInternal)) code = ErrorCodeCorruptMessage;
    if (landed_valid_i) code = ErrorCodeInternal;
  end
  assign fail_valid_o = ends && bad;
  assign fail_slot_o = ends_slot;
  assign fail_code_o = code;

  unisono_fifo #(.Width($bits(move_id_t) + GenerationWidth), .Depth(2 * Calls)) u_completes (
    .clk_i, .rst_ni, .in_valid_i(ends && !bad), .in_ready_o(),
    .in_data_i({ends_slot, entry_q[ends_slot], generations_i[ends_slot]}),
    .out_valid_o(complete_valid_o), .out_ready_i(complete_ready_i),
    .out_data_o({complete_id_o, complete_generation_o}), .count_o()
  );

  always_ff @(posedge clk_i) begin
    if (begin_valid_i && begin_i.get) begin
      places_q[begin_i.id.slot] <= '{dtype: begin_i.dtype, offset: begin_i.offset, bytes: begin_i.bytes,
                                     address: begin_i.address};
    end
  end
  for (genvar s = 0; s < int'(Calls); s++) begin : gen_slot
    logic begins, ended;
    assign begins = begin_valid_i && begin_i.id.slot == slot_t'(s);
    assign ended = (ends && ends_slot == slot_t'(s)) || (clear_valid_i && clear_slot_i == slot_t'(s));
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        pending_q[s] <= 1'b0;
        generation_q[s] <= '0;
      end else begin
        pending_q[s] <= begins || (pending_q[s] && !ended);
        if (ended) generation_q[s] <= generation_q[s] + 1'b1;
      end
      if (begins) begin
        entry_q[s] <= begin_i.id.entry;
        peer_q[s] <= begin_i.peer;
        get_q[s] <= begin_i.get;
      end
    end
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
  assign request_communicator_o = contexts_i[asked].communicator;
  assign request_peer_o = peer_q[asked];
  assign request_dtype_o = places_q[asked].dtype;
  assign request_offset_o = places_q[asked].offset;
  assign request_bytes_o = places_q[asked].bytes;
  assign request_slot_o = {LandingBase[15:SlotWidth], asked};
  assign request_generation_o = generation_q[asked];

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && begin_valid_i) begin
      assert (!pending_q[begin_i.id.slot] || entry_q[begin_i.id.slot] == begin_i.id.entry)
        else $error("a second operation of a call begins");
    end
  end
  `endif

endmodule
