// The microcontroller of the engine: VexRiscv (FullCfu), its memory and its port to the engine.
//
// Runs the collectives, compiled for RV32IM: takes work items, emits moves. The image is loaded
// through the host port while `run_i` is low, which holds the core in reset. The core itself is not
// part of this project; its Verilog is taken from the package pythondata-cpu-vexriscv when a design
// is built.
//
// Latency and throughput: docs/rtl/firmware.md has the measured cycles per call and per move.
// Restrictions: those of unisono_cpu_memory and unisono_cpu_port. A step of at most MovesPerStep
// moves is meant to find room behind `move_ready_i`; if it does not, the core waits.
module unisono_cclo_cpu #(
    parameter int unsigned MemoryBytes = 131072,
    parameter int unsigned Communicators = 32,
    parameter int unsigned ListWords = 1024,
    parameter int unsigned WordAddressWidth = $clog2(MemoryBytes / 4),
    parameter int unsigned CommunicatorAddressWidth = $clog2(Communicators) + 3,
    parameter int unsigned ListAddressWidth = $clog2(ListWords)
) (
    input logic clk_i,
    input logic rst_ni,
    input logic run_i,

    // Host port of the memory, while `run_i` is low: writes, and reads that answer one cycle later.
    input  logic                        load_valid_i,
    output logic                        load_ready_o,
    input  logic                        load_write_i,
    input  logic [WordAddressWidth-1:0] load_address_i,
    input  logic [                31:0] load_data_i,
    output logic                        load_data_valid_o,
    output logic [                31:0] load_data_o,

    // The rest is described at unisono_cpu_port.
    input  logic                   work_valid_i,
    output logic                   work_ready_o,
    input  unisono_cpu_pkg::work_t work_i,

    input  logic [    unisono_cpu_pkg::Slots-1:0] room_i,
    output logic                                  step_valid_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] step_slot_o,

    output logic [unisono_cpu_pkg::SlotWidth+3:0] descriptor_address_o,
    input  logic [                          63:0] descriptor_data_i,

    output logic [CommunicatorAddressWidth-1:0] communicator_address_o,
    input  logic [                        31:0] communicator_data_i,

    output logic                                  move_valid_o,
    input  logic                                  move_ready_i,
    output unisono_spec_pkg::move_t               move_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] move_slot_o,
    output logic                                  move_end_o,

    output logic                                  list_valid_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] list_slot_o,
    output logic [          ListAddressWidth-1:0] list_index_o,
    output logic [                          23:0] list_word_o,

    output logic                                  context_valid_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] context_slot_o,
    output unisono_cpu_pkg::context_t             context_o,

    output logic                                  fail_valid_o,
    output logic [unisono_cpu_pkg::SlotWidth-1:0] fail_slot_o,
    output unisono_spec_pkg::error_code_e         fail_code_o
);

  logic running_q;
  always_ff @(posedge clk_i) running_q <= rst_ni && run_i;

  logic command_valid;
  logic command_ready;
  logic [9:0] command_function;
  logic [31:0] command_first;
  logic [31:0] command_second;
  logic answer_valid;
  logic answer_ready;
  logic [31:0] answer_data;

  logic fetch_cycle;
  logic fetch_strobe;
  logic fetch_ack;
  logic [29:0] fetch_address;
  logic [31:0] fetch_data;

  logic data_cycle;
  logic data_strobe;
  logic data_ack;
  logic data_write;
  logic [29:0] data_address;
  logic [31:0] data_read;
  logic [31:0] data_written;
  logic [3:0] data_select;

  logic unused_instruction_write;
  logic [31:0] unused_instruction_data;
  logic [3:0] unused_instruction_select;
  logic [2:0] unused_instruction_type;
  logic [1:0] unused_instruction_burst;
  logic [2:0] unused_data_type;
  logic [1:0] unused_data_burst;

  // While it waits for work the core stands still: some cycles after it has asked for an item, when it has fetched what it
  // could fetch beforehand. All that a clock would still do is to count cycles in a register that no program reads.
  localparam int unsigned SettleCycles = 8;
  logic core_clk;
  logic port_waits;
  logic core_waits;
  logic [$clog2(SettleCycles+1)-1:0] waited_q;
  assign core_waits = port_waits && !fetch_cycle && !data_cycle;
  always_ff @(posedge clk_i) begin
    if (!running_q || !core_waits) waited_q <= '0;
    else if (waited_q != ($bits(waited_q))'(SettleCycles)) waited_q <= waited_q + 1'b1;
  end
  unisono_clock_gate u_core_gate (
      .clk_i,
      .enable_i(!running_q || !core_waits || waited_q != ($bits(waited_q))'(SettleCycles)),
      .clk_o(core_clk)
  );

  VexRiscv u_core (
      .clk(core_clk),
      .reset(!running_q),
      .externalResetVector(32'd0),
      .timerInterrupt(1'b0),
      .softwareInterrupt(1'b0),
      .externalInterruptArray(32'd0),

      .CfuPlugin_bus_cmd_valid(command_valid),
      .CfuPlugin_bus_cmd_ready(command_ready),
      .CfuPlugin_bus_cmd_payload_function_id(command_function),
      .CfuPlugin_bus_cmd_payload_inputs_0(command_first),
      .CfuPlugin_bus_cmd_payload_inputs_1(command_second),
      .CfuPlugin_bus_rsp_valid(answer_valid),
      .CfuPlugin_bus_rsp_ready(answer_ready),
      .CfuPlugin_bus_rsp_payload_outputs_0(answer_data),

      .iBusWishbone_CYC(fetch_cycle),
      .iBusWishbone_STB(fetch_strobe),
      .iBusWishbone_ACK(fetch_ack),
      .iBusWishbone_WE(unused_instruction_write),
      .iBusWishbone_ADR(fetch_address),
      .iBusWishbone_DAT_MISO(fetch_data),
      .iBusWishbone_DAT_MOSI(unused_instruction_data),
      .iBusWishbone_SEL(unused_instruction_select),
      .iBusWishbone_ERR(1'b0),
      .iBusWishbone_CTI(unused_instruction_type),
      .iBusWishbone_BTE(unused_instruction_burst),

      .dBusWishbone_CYC(data_cycle),
      .dBusWishbone_STB(data_strobe),
      .dBusWishbone_ACK(data_ack),
      .dBusWishbone_WE(data_write),
      .dBusWishbone_ADR(data_address),
      .dBusWishbone_DAT_MISO(data_read),
      .dBusWishbone_DAT_MOSI(data_written),
      .dBusWishbone_SEL(data_select),
      .dBusWishbone_ERR(1'b0),
      .dBusWishbone_CTI(unused_data_type),
      .dBusWishbone_BTE(unused_data_burst)
  );

  // The memory repeats throughout the address space.
  logic unused_address;
  assign unused_address = ^{
    fetch_address[29:WordAddressWidth], data_address[29:WordAddressWidth],
    unused_instruction_write, unused_instruction_data, unused_instruction_select,
    unused_instruction_type, unused_instruction_burst, unused_data_type, unused_data_burst
  };

  unisono_cpu_memory #(
      .Bytes(MemoryBytes)
  ) u_memory (
      .clk_i,
      .rst_ni,
      .run_i(running_q),
      .fetch_valid_i(fetch_cycle && fetch_strobe),
      .fetch_address_i(fetch_address[WordAddressWidth-1:0]),
      .fetch_ack_o(fetch_ack),
      .fetch_data_o(fetch_data),
      .data_valid_i(data_cycle && data_strobe),
      .data_write_i(data_write),
      .data_address_i(data_address[WordAddressWidth-1:0]),
      .data_strobe_i(data_select),
      .data_i(data_written),
      .data_ack_o(data_ack),
      .data_o(data_read),
      .load_valid_i,
      .load_ready_o,
      .load_write_i,
      .load_address_i,
      .load_data_i,
      .load_data_valid_o,
      .load_data_o
  );

  unisono_cpu_port #(
      .Communicators(Communicators),
      .ListWords(ListWords)
  ) u_port (
      .clk_i,
      .rst_ni(running_q),
      .command_valid_i(command_valid),
      .command_ready_o(command_ready),
      .command_function_i(command_function),
      .command_first_i(command_first),
      .command_second_i(command_second),
      .answer_valid_o(answer_valid),
      .answer_ready_i(answer_ready),
      .answer_data_o(answer_data),
      .waits_o(port_waits),
      .work_valid_i,
      .work_ready_o,
      .work_i,
      .room_i,
      .step_valid_o,
      .step_slot_o,
      .descriptor_address_o,
      .descriptor_data_i,
      .communicator_address_o,
      .communicator_data_i,
      .move_valid_o,
      .move_ready_i,
      .move_o,
      .move_slot_o,
      .move_end_o,
      .list_valid_o,
      .list_slot_o,
      .list_index_o,
      .list_word_o,
      .context_valid_o,
      .context_slot_o,
      .context_o,
      .fail_valid_o,
      .fail_slot_o,
      .fail_code_o
  );

endmodule
