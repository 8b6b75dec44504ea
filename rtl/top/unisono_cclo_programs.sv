// From work items to moves: the microcontroller, the microcode memory before it, and what fetches long programs.
// Contexts of calls are translated for the data path, and room of a window is given to items.
//
// Latency, throughput: see its parts.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_cclo_programs
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
  import unisono_dmp_pkg::PoolWords;
  import unisono_dmp_pkg::pool_index_t;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned CpuMemoryBytes = 131072,
  localparam int unsigned PlaceWidth = CommunicatorWidth + 3,
  localparam int unsigned LoadWidth = $clog2(CpuMemoryBytes / 4)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 engine_rst_ni,           // also by the host
  input  logic                 run_i,                   // the microcontroller runs; otherwise its memory can be loaded
  input  logic                 load_valid_i, load_write_i,
  input  logic [LoadWidth-1:0] load_address_i,
  input  logic [31:0]          load_data_i,
  output logic [31:0]          load_data_o,

  // Items, descriptors and communicators; see unisono_replay.
  input  logic                 work_valid_i,
  output logic                 work_ready_o,
  input  unisono_cpu_pkg::work_t work_i,
  input  logic                 work_newest_i,
  output logic                 step_valid_o,
  output slot_t                step_slot_o,
  output logic [SlotWidth+3:0] descriptor_address_o,
  input  logic [63:0]          descriptor_data_i,
  input  unisono_call_pkg::call_quad_t descriptor_quad_i,
  input  logic                 store_valid_i,
  input  unisono_call_pkg::call_quad_index_t store_quad_i,
  input  unisono_call_pkg::call_quad_t store_data_i,
  output logic [PlaceWidth-1:0] place_o,
  input  logic [31:0]          place_data_i,
  input  logic                 clear_valid_i,
  input  slot_t                clear_slot_i,
  // Programs that the host loads.
  input  logic                 program_valid_i,
  output logic                 program_ready_o,
  input  logic [2:0]           program_word_i,
  input  logic [31:0]          program_data_i,
  output logic [31:0]          program_state_o,
  output logic [LoadedPrograms-1:0] program_loaded_o,

  // Room of windows, for moves of calls that do not fail; room for items.
  input  rooms_t               room_i,
  input  logic [Calls-1:0]     failing_i,
  output rooms_t               item_room_o,

  // To the data path.
  output logic                 move_valid_o, move_end_o,
  input  logic                 move_ready_i,
  output move_t                move_o,
  output slot_t                move_slot_o,
  output logic                 pool_write_o,
  output pool_word_t           pool_o,
  output logic                 context_valid_o, context_local_o,
  output slot_t                context_slot_o,
  output call_context_t        context_o,

  // Moves of programs that stand in memory.
  output logic                   fetch_command_valid_o,
  input  logic                   fetch_command_ready_i,
  output address_t               fetch_command_address_o,
  output segment_bytes_t         fetch_command_bytes_o,
  input  logic                   fetch_valid_i, fetch_last_i, fetch_error_i,
  output logic                   fetch_ready_o,
  input  logic [DataBytes*8-1:0] fetch_data_i,

  // The microcontroller refuses a call; memory could not be read.
  output cause_t                 cpu_fails_o,
  output logic                   fetch_fail_valid_o,
  output slot_t                  fetch_fail_slot_o
);

  logic run;
  logic [Calls-1:0] step_room, rest_here, rest_waits;
  assign run = run_i && engine_rst_ni;
  // A call whose next moves still come from memory is not asked for them.
  for (genvar s = 0; s < int'(Calls); s++) begin : gen_room
    assign step_room[s] = room_i[s] >= (EntryWidth + 1)'(MovesPerStep) && !failing_i[s];
    assign item_room_o[s] = rest_waits[s] ? '0 : room_i[s];
  end

  logic cpu_work_valid, cpu_work_ready, cpu_step_valid, cpu_move_valid, cpu_move_ready, cpu_move_end;
  logic cpu_list_valid, cpu_context_valid;
  unisono_cpu_pkg::work_t cpu_work;
  slot_t cpu_step_slot, cpu_move_slot, cpu_list_slot, cpu_context_slot;
  move_t cpu_move;
  pool_index_t cpu_list_index;
  logic [23:0] cpu_list_word;
  logic [SlotWidth+3:0] cpu_descriptor_address;
  logic [PlaceWidth-1:0] cpu_place;
  unisono_cpu_pkg::context_t cpu_context;

  unisono_cclo_cpu #(
    .MemoryBytes(CpuMemoryBytes),
    .Communicators(Communicators),
    .ListWords(PoolWords)
  ) u_cpu (
    .clk_i, .rst_ni, .run_i(run),
    .load_valid_i, .load_ready_o(), .load_write_i, .load_address_i, .load_data_i, .load_data_valid_o(), .load_data_o,
    .work_valid_i(cpu_work_valid), .work_ready_o(cpu_work_ready), .work_i(cpu_work),
    .room_i(step_room), .step_valid_o(cpu_step_valid), .step_slot_o(cpu_step_slot),
    .descriptor_address_o(cpu_descriptor_address), .descriptor_data_i,
    .communicator_address_o(cpu_place), .communicator_data_i(place_data_i),
    .move_valid_o(cpu_move_valid), .move_ready_i(cpu_move_ready), .move_o(cpu_move), .move_slot_o(cpu_move_slot),
    .move_end_o(cpu_move_end),
    .list_valid_o(cpu_list_valid), .list_slot_o(cpu_list_slot), .list_index_o(cpu_list_index),
    .list_word_o(cpu_list_word),
    .context_valid_o(cpu_context_valid), .context_slot_o(cpu_context_slot), .context_o(cpu_context),
    .fail_valid_o(cpu_fails_o.valid), .fail_slot_o(cpu_fails_o.slot), .fail_code_o(cpu_fails_o.code)
  );

  logic rest_begin_valid, rest_want, rest_valid, rest_ready;
  slot_t rest_begin_slot, rest_want_slot;
  address_t rest_begin_address;
  logic [$clog2(ProgramMoves-LoadedMoves+1)-1:0] rest_begin_moves;
  move_t rest_move;
  unisono_cpu_pkg::context_t given;
  // Of a word of a list the rank counts.
  // verilator lint_off UNUSEDSIGNAL
  logic [23:0] list_word;
  // verilator lint_on UNUSEDSIGNAL
  assign pool_o.word = list_word[RankWidth-1:0];

  unisono_replay #(.Communicators(Communicators), .ListWords(PoolWords)) u_replay (
    .clk_i, .rst_ni(run),
    .work_valid_i, .work_ready_o, .work_i, .step_valid_o, .step_slot_o,
    .descriptor_address_o, .descriptor_quad_i, .store_valid_i, .store_quad_i, .store_data_i, .work_newest_i,
    .communicator_address_o(place_o), .communicator_data_i(place_data_i), .clear_valid_i, .clear_slot_i,
    .move_valid_o, .move_ready_i, .move_o, .move_slot_o, .move_end_o,
    .list_valid_o(pool_write_o), .list_slot_o(pool_o.slot), .list_index_o(pool_o.index), .list_word_o(list_word),
    .context_valid_o, .context_slot_o, .context_o(given),
    .cpu_work_valid_o(cpu_work_valid), .cpu_work_ready_i(cpu_work_ready), .cpu_work_o(cpu_work),
    .cpu_step_valid_i(cpu_step_valid), .cpu_step_slot_i(cpu_step_slot),
    .cpu_descriptor_address_i(cpu_descriptor_address), .cpu_communicator_address_i(cpu_place),
    .cpu_move_valid_i(cpu_move_valid), .cpu_move_ready_o(cpu_move_ready), .cpu_move_i(cpu_move),
    .cpu_move_slot_i(cpu_move_slot), .cpu_move_end_i(cpu_move_end),
    .cpu_list_valid_i(cpu_list_valid), .cpu_list_slot_i(cpu_list_slot), .cpu_list_index_i(cpu_list_index),
    .cpu_list_word_i(cpu_list_word),
    .cpu_context_valid_i(cpu_context_valid), .cpu_context_slot_i(cpu_context_slot), .cpu_context_i(cpu_context),
    .cpu_fail_valid_i(cpu_fails_o.valid), .cpu_fail_slot_i(cpu_fails_o.slot),
    .program_valid_i, .program_ready_o, .program_word_i, .program_data_i, .program_state_o, .program_loaded_o,
    .rest_begin_valid_o(rest_begin_valid), .rest_begin_slot_o(rest_begin_slot),
    .rest_begin_address_o(rest_begin_address), .rest_begin_moves_o(rest_begin_moves),
    .rest_ready_i(rest_here), .rest_want_o(rest_want), .rest_want_slot_o(rest_want_slot),
    .rest_valid_i(rest_valid), .rest_ready_o(rest_ready), .rest_move_i(rest_move), .waits_o(rest_waits),
    .replayed_o()
  );

  // Goes on while the microcontroller is stopped, for the memory answers all the same.
  unisono_program_fetch #(.DataBytes(DataBytes)) u_program_fetch (
    .clk_i, .rst_ni(engine_rst_ni),
    .begin_valid_i(rest_begin_valid), .begin_slot_i(rest_begin_slot), .begin_address_i(rest_begin_address),
    .begin_moves_i(rest_begin_moves), .clear_valid_i, .clear_slot_i,
    .ready_o(rest_here), .want_i(rest_want), .want_slot_i(rest_want_slot),
    .out_valid_o(rest_valid), .out_ready_i(rest_ready), .out_move_o(rest_move),
    .read_command_valid_o(fetch_command_valid_o), .read_command_ready_i(fetch_command_ready_i),
    .read_command_address_o(fetch_command_address_o), .read_command_bytes_o(fetch_command_bytes_o),
    .read_valid_i(fetch_valid_i), .read_ready_o(fetch_ready_o), .read_data_i(fetch_data_i),
    .read_last_i(fetch_last_i), .read_error_i(fetch_error_i),
    .fail_valid_o(fetch_fail_valid_o), .fail_slot_o(fetch_fail_slot_o)
  );

  unisono_cclo_context u_context (
    .clk_i, .rst_ni(engine_rst_ni), .valid_i(context_valid_o), .given_i(given), .context_o, .local_o(context_local_o)
  );

endmodule
