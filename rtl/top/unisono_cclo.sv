// The engine: call front end, microcontroller and data path, between a host, kernels, memory and a transport.
//
// A host sees the exchange memory (spec/exchange.yaml) behind AXI4-Lite; kernels give calls and get answers on streams;
// memory is reached by AXI4 masters; segments go out and come in through the channels of a transport (POE), which stands
// outside: unisono_cclo_frame has the one of the simulated network.
//
// Latency, throughput: docs/rtl/cclo.md.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_cclo
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned ClockMHz = 250,
  parameter int unsigned KernelPorts = 1,
  parameter logic [63:0] BufferBase = 64'h0,           // of receive buffers in memory
  parameter int unsigned BufferBytes = 8192,
  parameter int unsigned CpuMemoryBytes = 131072,
  parameter int unsigned StreamPorts = 0,              // of kernels, in each direction
  parameter int unsigned StreamWords = 256,            // queue of each
  parameter bit          Skips = 1'b0,                 // an edge may stand for many cycles, or for none
  localparam int unsigned Wires = StreamPorts > 0 ? StreamPorts : 1,
  localparam int unsigned Ports = 3,
  localparam int unsigned IdWidth = 4,
  localparam int unsigned AddressWidth = 14
) (
  input  logic clk_i,
  input  logic rst_ni,

  // For simulations that leave out cycles in which nothing changes (docs/rtl/skipping.md). Cycles that end at this edge:
  // 1, and without Skips it is 1 whatever this says. For how many from now on time alone changes nothing.
  input  logic [31:0] cycles_i,
  output logic [31:0] calm_o,

  // Host.
  input  logic [AddressWidth-1:0] s_axi_awaddr,
  input  logic [2:0]              s_axi_awprot,
  input  logic                    s_axi_awvalid,
  output logic                    s_axi_awready,
  input  logic [31:0]             s_axi_wdata,
  input  logic [3:0]              s_axi_wstrb,
  input  logic                    s_axi_wvalid,
  output logic                    s_axi_wready,
  output logic [1:0]              s_axi_bresp,
  output logic                    s_axi_bvalid,
  input  logic                    s_axi_bready,
  input  logic [AddressWidth-1:0] s_axi_araddr,
  input  logic [2:0]              s_axi_arprot,
  input  logic                    s_axi_arvalid,
  output logic                    s_axi_arready,
  output logic [31:0]             s_axi_rdata,
  output logic [1:0]              s_axi_rresp,
  output logic                    s_axi_rvalid,
  input  logic                    s_axi_rready,
  // A completion waits.
  output logic                    interrupt_o,

  // Kernels; see unisono_call_front.
  input  logic [KernelPorts-1:0]                  call_valid_i,
  output logic [KernelPorts-1:0]                  call_ready_o,
  input  logic [KernelPorts-1:0][DataBytes*8-1:0] call_data_i,
  input  logic [KernelPorts-1:0][DataBytes-1:0]   call_keep_i,
  input  logic [KernelPorts-1:0]                  call_last_i,
  output logic [KernelPorts-1:0]                  answer_valid_o,
  input  logic [KernelPorts-1:0]                  answer_ready_i,
  output unisono_call_pkg::call_response_t [KernelPorts-1:0] answer_data_o,
  output logic [KernelPorts-1:0]                  kernel_start_valid_o,
  input  logic [KernelPorts-1:0]                  kernel_start_ready_i,
  output logic [KernelPorts-1:0][63:0]            kernel_start_data_o,
  input  logic [KernelPorts-1:0]                  kernel_done_valid_i,
  input  logic [KernelPorts-1:0][15:0]            kernel_done_code_i,

  // Streams of kernels: to the engine, and to kernels.
  input  logic [Wires-1:0]                  stream_in_valid_i,
  output logic [Wires-1:0]                  stream_in_ready_o,
  input  logic [Wires-1:0][DataBytes*8-1:0] stream_in_data_i,
  input  logic [Wires-1:0][DataBytes-1:0]   stream_in_keep_i,
  input  logic [Wires-1:0]                  stream_in_last_i,
  output logic [Wires-1:0]                  stream_out_valid_o,
  input  logic [Wires-1:0]                  stream_out_ready_i,
  output logic [Wires-1:0][DataBytes*8-1:0] stream_out_data_o,
  output logic [Wires-1:0][DataBytes-1:0]   stream_out_keep_o,
  output logic [Wires-1:0]                  stream_out_last_o,
  output logic [Wires-1:0]                  stream_out_cut_o,      // the packet was cut off

  // The transport: sessions and segments, see docs/rtl/poe.md. Whether a word has gone to the network, or come from it, in
  // this cycle is for counters.
  input  unisono_poe_pkg::poe_capability_t poe_capability_i,
  output logic                             poe_query_valid_o,
  input  logic                             poe_query_ready_i,
  output unisono_poe_pkg::session_t        poe_query_session_o,
  output unisono_poe_pkg::bytes_t          poe_query_bytes_o,
  input  logic                             poe_grant_valid_i,
  output logic                             poe_grant_ready_o,
  input  logic                             poe_grant_granted_i,
  output logic                             poe_tx_meta_valid_o,
  input  logic                             poe_tx_meta_ready_i,
  output unisono_poe_pkg::session_t        poe_tx_meta_session_o,
  output unisono_poe_pkg::bytes_t          poe_tx_meta_bytes_o,
  output logic                             poe_tx_valid_o,
  input  logic                             poe_tx_ready_i,
  output logic [DataBytes*8-1:0]           poe_tx_data_o,
  output logic [DataBytes-1:0]             poe_tx_keep_o,
  output logic                             poe_tx_last_o,
  input  logic                             poe_rx_meta_valid_i,
  output logic                             poe_rx_meta_ready_o,
  input  unisono_poe_pkg::session_t        poe_rx_meta_session_i,
  input  unisono_poe_pkg::bytes_t          poe_rx_meta_bytes_i,
  input  logic                             poe_rx_meta_error_i,
  input  logic                             poe_rx_valid_i,
  output logic                             poe_rx_ready_o,
  input  logic [DataBytes*8-1:0]           poe_rx_data_i,
  input  logic [DataBytes-1:0]             poe_rx_keep_i,
  input  logic                             poe_rx_last_i,
  input  logic                             poe_event_valid_i,
  output logic                             poe_event_ready_o,
  input  unisono_poe_pkg::session_t        poe_event_session_i,
  input  logic                             poe_event_state_i,
  input  logic                             poe_word_sent_i,
  input  logic                             poe_word_received_i,

  // Registers of the transport, which the host reaches through the exchange memory: an access is done in the cycle in which
  // ready is high. The transport is reset with the engine, also by the host.
  output logic        poe_rst_no,
  output logic        poe_reg_valid_o,
  input  logic        poe_reg_ready_i,
  output logic        poe_reg_write_o,
  output logic [15:0] poe_reg_addr_o,
  output logic [31:0] poe_reg_wdata_o,
  input  logic [31:0] poe_reg_rdata_i,

  // Memory.
  output logic [Ports-1:0][IdWidth-1:0]     m_axi_arid,
  output logic [Ports-1:0][63:0]            m_axi_araddr,
  output logic [Ports-1:0][7:0]             m_axi_arlen,
  output logic [Ports-1:0][2:0]             m_axi_arsize,
  output logic [Ports-1:0][1:0]             m_axi_arburst,
  output logic [Ports-1:0]                  m_axi_arvalid,
  input  logic [Ports-1:0]                  m_axi_arready,
  input  logic [Ports-1:0][IdWidth-1:0]     m_axi_rid,
  input  logic [Ports-1:0][DataBytes*8-1:0] m_axi_rdata,
  input  logic [Ports-1:0][1:0]             m_axi_rresp,
  input  logic [Ports-1:0]                  m_axi_rlast,
  input  logic [Ports-1:0]                  m_axi_rvalid,
  output logic [Ports-1:0]                  m_axi_rready,
  output logic [Ports-1:0][IdWidth-1:0]     m_axi_awid,
  output logic [Ports-1:0][63:0]            m_axi_awaddr,
  output logic [Ports-1:0][7:0]             m_axi_awlen,
  output logic [Ports-1:0][2:0]             m_axi_awsize,
  output logic [Ports-1:0][1:0]             m_axi_awburst,
  output logic [Ports-1:0]                  m_axi_awvalid,
  input  logic [Ports-1:0]                  m_axi_awready,
  output logic [Ports-1:0][DataBytes*8-1:0] m_axi_wdata,
  output logic [Ports-1:0][DataBytes-1:0]   m_axi_wstrb,
  output logic [Ports-1:0]                  m_axi_wlast,
  output logic [Ports-1:0]                  m_axi_wvalid,
  input  logic [Ports-1:0]                  m_axi_wready,
  input  logic [Ports-1:0][IdWidth-1:0]     m_axi_bid,
  input  logic [Ports-1:0][1:0]             m_axi_bresp,
  input  logic [Ports-1:0]                  m_axi_bvalid,
  output logic [Ports-1:0]                  m_axi_bready,

  // Observing, for simulations and logic analysers; both may be left open. Bit n of events_o: what counter n counts
  // (counter_e) happens in this cycle. A record of each move that has retired, on offer for one cycle.
  output unisono_observe_pkg::events_t      events_o,
  output logic                              record_valid_o,
  output move_record_t                      record_o
);

  localparam int unsigned MapWidth = $clog2(ExchangeBytes);
  localparam int unsigned RegWidth = 11;
  localparam int unsigned PlaceWidth = CommunicatorWidth + 3;
  localparam int unsigned LoadWidth = $clog2(CpuMemoryBytes / 4);
  // Who gives calls besides the host: kernels, and behind them what receives messages to stream ports.
  localparam int unsigned Callers = StreamPorts > 0 ? KernelPorts + 1 : KernelPorts;

  function automatic capability_t capability_of();
    capability_t word;
    word = '0;
    word.version = 8'd1;
    word.datatypes = unisono_plugin_pkg::capability_datatypes('1, '1);
    word.funcs = unisono_plugin_pkg::capability_funcs('1, '0);
    word.lists = 1'b1;
    word.fan_in = 1'b1;
    word.streams = StreamPorts > 0;
    word.remote_memory = 1'b1;
    word.rendezvous = 1'b1;
    word.programs = 1'b1;
    word.log2_max_segment = 5'($clog2(MaxSegment));
    word.openings = 1'b1;
    return word;
  endfunction

  // --------------------------------------------------------------------------------------- call front end

  logic engine_rst_n, run, ready;
  logic work_valid, work_ready, work_newest, step_valid, move_valid, move_ready, move_end;
  logic [1:0] work_kind;
  slot_t work_slot, step_slot, move_slot;
  cause_t cpu_fails;
  logic [SlotWidth+3:0] descriptor_address;
  logic [63:0] descriptor_data;
  unisono_call_pkg::call_quad_t descriptor_quad, store_data;
  unisono_call_pkg::call_quad_index_t store_quad;
  logic store_valid, firmware_valid, firmware_write;
  // Of its address the microcontroller's memory has only the lower bits.
  // verilator lint_off UNUSEDSIGNAL
  logic [29:0] firmware_address;
  // verilator lint_on UNUSEDSIGNAL
  logic [31:0] firmware_data, firmware_read;
  slot_t binding_slot;
  region_e binding_region;
  binding_t binding;
  rooms_t room, item_room;
  logic finished_valid, clear_valid, clear_failed, clear_done;
  slot_t finished_slot, clear_slot;
  logic [Calls-1:0] active, failing;
  stream_regions_t streams;
  unisono_call_pkg::generation_t [Calls-1:0] generation;
  unisono_call_pkg::call_fault_t [1:0] fault;
  logic fail_valid, fetch_fail_valid;
  slot_t fail_slot, fetch_fail_slot;
  // Of error codes there are fewer than 256.
  // verilator lint_off UNUSEDSIGNAL
  error_code_e fail_code;
  // verilator lint_on UNUSEDSIGNAL
  logic table_write, table_read, table_ready, table_valid, communicator_changed;
  logic [MapWidth-1:2] table_address;
  logic [31:0] table_data, table_answer;
  logic counter_read;
  unisono_observe_pkg::counter_index_t counter_index;
  logic [63:0] counter;
  logic call_ended, call_ended_failed;
  logic [Calls-1:0][31:0] slot_call_id;
  logic [63:0] window_address, window_bytes;
  logic program_valid, program_ready;
  logic [2:0] program_word;
  logic [31:0] program_data, program_state;
  logic [LoadedPrograms-1:0] program_loaded;

  localparam error_code_e ProgramUnread = ErrorCodeInternal;
  assign fault[0] = '{slot: fail_slot, generation: generation[fail_slot], code: fail_code[7:0]};
  assign fault[1] = '{slot: fetch_fail_slot, generation: generation[fetch_fail_slot], code: ProgramUnread[7:0]};

  logic [Callers-1:0] caller_valid, caller_ready, caller_last, caller_answer, caller_answer_ready;
  logic [Callers-1:0][DataBytes*8-1:0] caller_data;
  logic [Callers-1:0][DataBytes-1:0] caller_keep;
  unisono_call_pkg::call_response_t [Callers-1:0] caller_answer_data;
  logic [Callers-1:0] caller_start, caller_start_ready, caller_done;
  logic [Callers-1:0][63:0] caller_start_data;
  logic [Callers-1:0][15:0] caller_done_code;
  logic heard_valid, begins_valid;
  received_t heard;
  communicator_t begins_communicator;

  unisono_cclo_callers #(.DataBytes(DataBytes), .KernelPorts(KernelPorts), .StreamPorts(StreamPorts)) u_callers (
    .clk_i, .rst_ni(engine_rst_n), .heard_valid_i(heard_valid), .heard_i(heard),
    .begins_valid_i(begins_valid), .begins_communicator_i(begins_communicator),
    .call_valid_i, .call_ready_o, .call_data_i, .call_keep_i, .call_last_i,
    .answer_valid_o, .answer_ready_i, .answer_data_o,
    .start_valid_o(kernel_start_valid_o), .start_ready_i(kernel_start_ready_i), .start_data_o(kernel_start_data_o),
    .done_valid_i(kernel_done_valid_i), .done_code_i(kernel_done_code_i),
    .all_valid_o(caller_valid), .all_ready_i(caller_ready), .all_data_o(caller_data), .all_keep_o(caller_keep),
    .all_last_o(caller_last), .all_answer_valid_i(caller_answer), .all_answer_ready_o(caller_answer_ready),
    .all_answer_data_i(caller_answer_data), .all_start_valid_i(caller_start),
    .all_start_ready_o(caller_start_ready), .all_start_data_i(caller_start_data),
    .all_done_valid_o(caller_done), .all_done_code_o(caller_done_code)
  );

  unisono_call_front #(
    .KernelPorts(Callers),
    .DataBytes(DataBytes),
    .ClockMHz(ClockMHz),
    .Programs(LoadedPrograms),
    .FaultPorts(2),
    .ClearBlocks(1),
    .StreamPorts(StreamPorts),
    .AddressWidth(AddressWidth),
    .Capability(capability_of()),
    .RxBufferBytes(BufferBytes),
    .Skips(Skips)
  ) u_front (
    .clk_i, .rst_ni, .cycles_i, .calm_o,
    .s_axi_awaddr, .s_axi_awprot, .s_axi_awvalid, .s_axi_awready,
    .s_axi_wdata, .s_axi_wstrb, .s_axi_wvalid, .s_axi_wready,
    .s_axi_bresp, .s_axi_bvalid, .s_axi_bready,
    .s_axi_araddr, .s_axi_arprot, .s_axi_arvalid, .s_axi_arready,
    .s_axi_rdata, .s_axi_rresp, .s_axi_rvalid, .s_axi_rready,
    .interrupt_o,
    .call_valid_i(caller_valid), .call_ready_o(caller_ready), .call_data_i(caller_data), .call_keep_i(caller_keep),
    .call_last_i(caller_last),
    .answer_valid_o(caller_answer), .answer_ready_i(caller_answer_ready), .answer_data_o(caller_answer_data),
    .kernel_start_valid_o(caller_start), .kernel_start_ready_i(caller_start_ready),
    .kernel_start_data_o(caller_start_data),
    .kernel_done_valid_i(caller_done), .kernel_done_code_i(caller_done_code),
    .work_valid_o(work_valid), .work_ready_i(work_ready), .work_kind_o(work_kind), .work_slot_o(work_slot),
    .item_done_valid_i(step_valid), .item_done_slot_i(step_slot),
    .ended_valid_i(move_valid && move_ready && move_end), .ended_slot_i(move_slot),
    .cpu_fail_valid_i(cpu_fails.valid), .cpu_fail_slot_i(cpu_fails.slot), .cpu_fail_code_i(cpu_fails.code),
    .descriptor_slot_i(descriptor_address[4+:SlotWidth]), .descriptor_row_i(descriptor_address[3:0]),
    .descriptor_data_o(descriptor_data), .descriptor_quad_o(descriptor_quad),
    .store_valid_o(store_valid), .store_quad_o(store_quad), .store_data_o(store_data), .work_newest_o(work_newest),
    .program_loaded_i(program_loaded),
    .call_ended_o(call_ended), .call_ended_failed_o(call_ended_failed), .slot_call_id_o(slot_call_id),
    .run_o(run),
    .firmware_valid_o(firmware_valid), .firmware_write_o(firmware_write),
    .firmware_address_o(firmware_address), .firmware_data_o(firmware_data), .firmware_data_i(firmware_read),
    .binding_slot_i(binding_slot), .binding_region_i(binding_region), .binding_o(binding),
    .room_i(item_room), .finished_valid_i(finished_valid), .finished_slot_i(finished_slot),
    .fault_valid_i({fetch_fail_valid, fail_valid}), .fault_i(fault),
    .clear_valid_o(clear_valid), .clear_slot_o(clear_slot), .clear_failed_o(clear_failed),
    .clear_done_i(clear_done),
    .src_stream_o(streams.src), .dst_stream_o(streams.dst),
    .src_port_o(streams.src_port), .dst_port_o(streams.dst_port), .active_o(active), .failing_o(failing),
    .generation_o(generation),
    .engine_rst_no(engine_rst_n), .ready_i(ready), .tick_o(),
    .eager_limit_o(), .segment_bytes_o(), .rx_buffer_count_o(), .rx_buffer_bytes_o(),
    .window_address_o(window_address), .window_bytes_o(window_bytes),
    .table_write_o(table_write), .table_read_o(table_read), .table_address_o(table_address),
    .table_data_o(table_data), .table_ready_i(table_ready), .table_valid_i(table_valid),
    .table_data_i(table_answer), .communicator_changed_i(communicator_changed),
    .counter_read_o(counter_read), .counter_index_o(counter_index), .counter_i(counter),
    .rx_buffer_read_o(), .rx_buffer_address_o(), .rx_buffer_data_i('0)
  );

  // -------------------------------------------------------------------------------------- microcontroller

  logic pool_write, context_valid, context_local;
  move_t move;
  pool_word_t pool;
  slot_t context_slot;
  call_context_t context_given;
  logic [PlaceWidth-1:0] place;
  logic [31:0] place_data;
  logic fetch_command_valid, fetch_command_ready, fetch_valid, fetch_ready, fetch_last, fetch_error;
  address_t fetch_address;
  segment_bytes_t fetch_bytes;
  logic [DataBytes*8-1:0] fetch_data;

  unisono_cclo_programs #(.DataBytes(DataBytes), .CpuMemoryBytes(CpuMemoryBytes)) u_programs (
    .clk_i, .rst_ni, .engine_rst_ni(engine_rst_n), .run_i(run),
    .load_valid_i(firmware_valid), .load_write_i(firmware_write), .load_address_i(firmware_address[LoadWidth-1:0]),
    .load_data_i(firmware_data), .load_data_o(firmware_read),
    .work_valid_i(work_valid), .work_ready_o(work_ready),
    .work_i('{kind: unisono_cpu_pkg::work_kind_e'(work_kind), slot: work_slot}), .work_newest_i(work_newest),
    .step_valid_o(step_valid), .step_slot_o(step_slot),
    .descriptor_address_o(descriptor_address), .descriptor_data_i(descriptor_data),
    .descriptor_quad_i(descriptor_quad), .store_valid_i(store_valid), .store_quad_i(store_quad),
    .store_data_i(store_data), .place_o(place), .place_data_i(place_data),
    .clear_valid_i(clear_valid), .clear_slot_i(clear_slot),
    .program_valid_i(program_valid), .program_ready_o(program_ready), .program_word_i(program_word),
    .program_data_i(program_data), .program_state_o(program_state), .program_loaded_o(program_loaded),
    .room_i(room), .failing_i(failing), .item_room_o(item_room),
    .move_valid_o(move_valid), .move_ready_i(move_ready), .move_o(move), .move_slot_o(move_slot),
    .move_end_o(move_end), .pool_write_o(pool_write), .pool_o(pool),
    .context_valid_o(context_valid), .context_slot_o(context_slot), .context_o(context_given),
    .context_local_o(context_local),
    .fetch_command_valid_o(fetch_command_valid), .fetch_command_ready_i(fetch_command_ready),
    .fetch_command_address_o(fetch_address), .fetch_command_bytes_o(fetch_bytes),
    .fetch_valid_i(fetch_valid), .fetch_ready_o(fetch_ready), .fetch_data_i(fetch_data), .fetch_last_i(fetch_last),
    .fetch_error_i(fetch_error), .cpu_fails_o(cpu_fails),
    .fetch_fail_valid_o(fetch_fail_valid), .fetch_fail_slot_o(fetch_fail_slot)
  );

  // ------------------------------------------------------------------------------------------------ tables

  logic reg_valid, reg_ready, reg_write, reg_answer;
  logic [RegWidth-1:0] reg_word;
  logic [31:0] reg_data, reg_read;

  unisono_host_tables u_tables (
    .clk_i, .rst_ni(engine_rst_n),
    .write_i(table_write), .read_i(table_read), .address_i(table_address), .data_i(table_data),
    .ready_o(table_ready), .valid_o(table_valid), .data_o(table_answer),
    .place_i(place), .place_data_o(place_data), .changed_o(communicator_changed),
    .reg_valid_o(reg_valid), .reg_ready_i(reg_ready), .reg_write_o(reg_write), .reg_word_o(reg_word),
    .reg_data_o(reg_data), .reg_valid_i(reg_answer), .reg_data_i(reg_read),
    .program_valid_o(program_valid), .program_ready_i(program_ready), .program_word_o(program_word),
    .program_data_o(program_data), .program_state_i(program_state),
    .poe_valid_o(poe_reg_valid_o), .poe_ready_i(poe_reg_ready_i), .poe_write_o(poe_reg_write_o),
    .poe_addr_o(poe_reg_addr_o), .poe_wdata_o(poe_reg_wdata_o), .poe_rdata_i(poe_reg_rdata_i)
  );
  assign poe_rst_no = engine_rst_n;

  // Ready: the tables have been cleared after the reset, and the microcontroller runs.
  logic cleared_q;
  always_ff @(posedge clk_i) begin
    if (!engine_rst_n) cleared_q <= 1'b0;
    else if (reg_ready) cleared_q <= 1'b1;
  end
  assign ready = cleared_q && run && engine_rst_n;

  // --------------------------------------------------------------------------------------------- data path

  logic [unisono_dmp_pkg::BufferWidth:0] free_buffers;
  unisono_observe_pkg::events_t engine_events;
  move_record_t retired_record;
  logic [47:0] cycle;

  unisono_cclo_engine #(
    .DataBytes(DataBytes),
    .BufferBase(BufferBase),
    .BufferBytes(BufferBytes),
    .StreamPorts(StreamPorts),
    .StreamWords(StreamWords)
  ) u_engine (
    .clk_i, .rst_ni(engine_rst_n),
    .stream_in_valid_i, .stream_in_ready_o, .stream_in_data_i, .stream_in_keep_i, .stream_in_last_i,
    .stream_out_valid_o, .stream_out_ready_i, .stream_out_data_o, .stream_out_keep_o, .stream_out_last_o,
    .stream_out_cut_o,
    .src_stream_i(streams.src), .dst_stream_i(streams.dst), .src_port_i(streams.src_port),
    .dst_port_i(streams.dst_port),
    .move_valid_i(move_valid), .move_ready_o(move_ready), .move_slot_i(move_slot), .move_i(move),
    .move_end_i(move_end),
    .pool_write_i(pool_write), .pool_write_slot_i(pool.slot), .pool_write_index_i(pool.index),
    .pool_write_word_i(pool.word),
    .room_o(room), .finished_valid_o(finished_valid), .finished_slot_o(finished_slot),
    .clear_valid_i(clear_valid), .clear_slot_i(clear_slot), .clear_failed_i(clear_failed),
    .clear_done_o(clear_done), .free_buffers_o(free_buffers),
    .context_valid_i(context_valid), .context_slot_i(context_slot), .context_i(context_given),
    .context_local_i(context_local),
    .binding_slot_o(binding_slot), .binding_region_o(binding_region), .binding_i(binding),
    .fail_valid_o(fail_valid), .fail_slot_o(fail_slot), .fail_code_o(fail_code),
    .reg_valid_i(reg_valid), .reg_ready_o(reg_ready), .reg_write_i(reg_write), .reg_word_i(reg_word),
    .reg_data_i(reg_data), .reg_valid_o(reg_answer), .reg_data_o(reg_read),
    .window_address_i(window_address), .window_bytes_i(window_bytes),
    .rx_fault_valid_o(), .rx_fault_code_o(),
    .heard_valid_o(heard_valid), .heard_o(heard),
    .begins_valid_o(begins_valid), .begins_communicator_o(begins_communicator),
    .fetch_command_valid_i(fetch_command_valid), .fetch_command_ready_o(fetch_command_ready),
    .fetch_command_address_i(fetch_address), .fetch_command_bytes_i(fetch_bytes),
    .fetch_valid_o(fetch_valid), .fetch_ready_i(fetch_ready), .fetch_data_o(fetch_data), .fetch_last_o(fetch_last),
    .fetch_error_o(fetch_error),
    .poe_capability_i, .poe_query_valid_o, .poe_query_ready_i, .poe_query_session_o, .poe_query_bytes_o,
    .poe_grant_valid_i, .poe_grant_ready_o, .poe_grant_granted_i,
    .poe_tx_meta_valid_o, .poe_tx_meta_ready_i, .poe_tx_meta_session_o, .poe_tx_meta_bytes_o,
    .poe_tx_valid_o, .poe_tx_ready_i, .poe_tx_data_o, .poe_tx_keep_o, .poe_tx_last_o,
    .poe_rx_meta_valid_i, .poe_rx_meta_ready_o, .poe_rx_meta_session_i, .poe_rx_meta_bytes_i, .poe_rx_meta_error_i,
    .poe_rx_valid_i, .poe_rx_ready_o, .poe_rx_data_i, .poe_rx_keep_i, .poe_rx_last_i,
    .poe_event_valid_i, .poe_event_ready_o, .poe_event_session_i, .poe_event_state_i,
    .poe_word_sent_i, .poe_word_received_i,
    .m_axi_arid, .m_axi_araddr, .m_axi_arlen, .m_axi_arsize, .m_axi_arburst, .m_axi_arvalid, .m_axi_arready,
    .m_axi_rid, .m_axi_rdata, .m_axi_rresp, .m_axi_rlast, .m_axi_rvalid, .m_axi_rready,
    .m_axi_awid, .m_axi_awaddr, .m_axi_awlen, .m_axi_awsize, .m_axi_awburst, .m_axi_awvalid, .m_axi_awready,
    .m_axi_wdata, .m_axi_wstrb, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready,
    .m_axi_bid, .m_axi_bresp, .m_axi_bvalid, .m_axi_bready,
    .cycle_i(cycle), .events_o(engine_events), .record_valid_o, .record_o(retired_record)
  );

  // ---------------------------------------------------------------------------------------------- counters

  unisono_cclo_observe #(.Skips(Skips)) u_observe (
    .clk_i, .rst_ni, .engine_rst_ni(engine_rst_n), .cycles_i, .cycle_o(cycle),
    .busy_i(active != '0), .descriptor_i(|(call_valid_i & call_ready_o)), .begins_i(context_valid),
    .begins_slot_i(context_slot), .ended_i(call_ended), .ended_failed_i(call_ended_failed),
    .answers_i(|(answer_valid_o & answer_ready_i)), .call_id_i(slot_call_id),
    .item_i(work_valid && work_ready), .item_of_call_i(work_kind != unisono_call_pkg::WorkControl),
    .step_i(step_valid), .move_i(move_valid && move_ready), .move_end_i(move_end), .move_slot_i(move_slot),
    .clear_valid_i(clear_valid), .clear_slot_i(clear_slot), .room_i(room),
    .events_i(engine_events), .record_i(retired_record), .free_buffers_i(free_buffers),
    .events_o, .record_o, .read_i(counter_read), .index_i(counter_index), .value_o(counter)
  );

endmodule
