// From a move as a program gives it to one that can enter its window: members of its lists are looked up, counts and
// offsets that stand in params are read, regions that are streams are named, and it is checked and unpacked. The end of
// a program follows its moves.
//
// Latency, throughput: see its parts.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_core_moves
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned StreamPorts = 0
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            move_valid_i,
  output logic            move_ready_o,
  input  slot_t           move_slot_i,
  input  move_t           move_i,
  input  logic            move_end_i,
  input  logic            pool_write_i,
  input  pool_word_t      pool_i,
  input  stream_regions_t streams_i,
  input  logic [Calls-1:0][RankWidth:0] sizes_i,        // of the communicator of each slot's call

  // Moves of a slot that is cleared go no further.
  input  logic             drains_i, forgets_i,
  input  slot_t            clear_slot_i,
  input  logic [Calls-1:0] clearing_i,
  output logic             idle_o,

  // The place of a slot's params, and the words there.
  output logic                   binding_valid_o,
  input  logic                   binding_ready_i,
  output slot_t                  binding_slot_o,
  input  binding_t               binding_i,
  output logic                   read_command_valid_o,
  input  logic                   read_command_ready_i,
  output address_t               read_command_address_o,
  input  logic                   read_valid_i,
  output logic                   read_ready_o,
  input  logic [DataBytes*8-1:0] read_data_i,
  input  logic                   read_error_i,

  // To the window, and the room there.
  output logic            push_valid_o,
  input  logic            push_ready_i,
  output entering_t       push_o,
  output logic            close_valid_o,
  output slot_t           close_slot_o,
  input  rooms_t          window_room_i,
  output rooms_t          room_o,

  // A move is malformed, its params cannot be read, it names a stream where there is none.
  output cause_t          malformed_o, params_o, no_stream_o
);

  logic lists_ready, lists_idle, raw_valid, raw_ready, raw_end, params_idle, named_valid, named_ready, named_end;
  slot_t raw_slot, named_slot;
  move_t raw_move, named_move, listed_move;
  logic [Ranks-1:0] raw_receives, raw_sends, receives, sends;
  logic listed_valid, listed_ready, decode_ready, valid, take, exists, malformed, dead;

  assign move_ready_o = lists_ready && !drains_i;
  unisono_list_masks u_list_masks (
    .clk_i, .rst_ni,
    .pool_write_i, .pool_write_slot_i(pool_i.slot), .pool_write_index_i(pool_i.index), .pool_write_word_i(pool_i.word),
    .in_valid_i(move_valid_i && !drains_i), .in_ready_o(lists_ready), .in_slot_i(move_slot_i), .in_move_i(move_i),
    .in_end_i(move_end_i),
    .out_valid_o(raw_valid), .out_ready_i(raw_ready), .out_slot_o(raw_slot), .out_move_o(raw_move),
    .out_end_o(raw_end), .out_receives_o(raw_receives), .out_sends_o(raw_sends), .idle_o(lists_idle)
  );

  unisono_move_params #(.DataBytes(DataBytes)) u_params (
    .clk_i, .rst_ni,
    .in_valid_i(raw_valid), .in_ready_o(raw_ready), .in_slot_i(raw_slot), .in_move_i(raw_move), .in_end_i(raw_end),
    .in_receives_i(raw_receives), .in_sends_i(raw_sends),
    .out_valid_o(named_valid), .out_ready_i(named_ready), .out_slot_o(named_slot), .out_move_o(named_move),
    .out_end_o(named_end), .out_receives_o(receives), .out_sends_o(sends), .idle_o(params_idle),
    .binding_valid_o, .binding_ready_i, .binding_slot_o, .binding_i,
    .read_command_valid_o, .read_command_ready_i, .read_command_address_o,
    .read_valid_i, .read_ready_o, .read_data_i, .read_error_i,
    .fail_valid_o(params_o.valid), .fail_slot_o(params_o.slot), .fail_code_o(params_o.code)
  );

  unisono_move_streams u_move_streams (
    .clk_i, .rst_ni, .src_stream_i(streams_i.src), .dst_stream_i(streams_i.dst), .src_port_i(streams_i.src_port),
    .dst_port_i(streams_i.dst_port), .clear_valid_i(forgets_i), .clear_slot_i,
    .in_valid_i(named_valid), .in_ready_o(named_ready), .in_slot_i(named_slot), .in_move_i(named_move),
    .in_end_i(named_end), .out_valid_o(listed_valid), .out_ready_i(listed_ready), .out_move_o(listed_move),
    .fail_valid_o(no_stream_o.valid), .fail_slot_o(no_stream_o.slot), .fail_code_o(no_stream_o.code)
  );

  assign close_valid_o = listed_valid && named_end && !valid && !clearing_i[named_slot];
  assign close_slot_o = named_slot;
  assign listed_ready = named_end ? !valid : decode_ready;

  // Messages, lists, loaded programs, all functions but the user's; and streams, puts.
  localparam capability_t Able = '{streams: StreamPorts > 0, remote_memory: 1'b1, default: '0};
  unisono_move_decode #(
    .Capability(64'h0dc3_7fff_ffff_ff01 | 64'(Able)), .StreamPorts(StreamPorts), .Gets(1'b1)
  ) u_decode (
    .clk_i, .rst_ni,
    .in_valid_i(listed_valid && !named_end), .in_ready_o(decode_ready), .in_slot_i(named_slot), .in_move_i(listed_move),
    .list_receives_i(receives), .list_sends_i(sends), .size_i(sizes_i[named_slot]),
    .out_valid_o(valid), .out_ready_i(take), .out_slot_o(push_o.slot), .out_move_o(push_o.move),
    .out_receives_o(push_o.receives), .out_sends_o(push_o.sends), .out_needs_op0_o(), .out_needs_op1_memory_o(),
    .out_has_local_o(), .out_exists_o(exists), .out_distance_o(push_o.distance),
    .out_malformed_o(malformed), .out_reason_o(), .out_error_o(malformed_o.code)
  );
  assign push_o.trivial = !exists;
  assign dead = clearing_i[push_o.slot];
  assign push_valid_o = valid && !malformed && !dead;
  assign take = malformed || push_ready_i || dead;
  assign malformed_o.valid = valid && malformed && !dead;
  assign malformed_o.slot = push_o.slot;
  assign idle_o = lists_idle && params_idle && !valid;

  unisono_core_room u_room (
    .clk_i, .rst_ni, .taken_i(move_valid_i && move_ready_o && !move_end_i), .taken_slot_i(move_slot_i),
    .entered_i(valid && take), .entered_slot_i(push_o.slot), .window_room_i, .room_o
  );

endmodule
