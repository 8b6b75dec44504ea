// The call front end: exchange memory, call queue, active calls, kernel calls, deadlines.
//
// Latency: a kernel's nop is answered 9 cycles after its first word was offered; figures of all ways are
// in docs/rtl/call_front.md. Throughput: one call in 6 cycles.
// Reset: `rst_ni` resets everything; a soft reset asked for by the host resets everything but the
// registers that survive it (unisono_exchange), and the rest of the engine through `engine_rst_no`.

module unisono_call_front #(
  parameter int unsigned KernelPorts = 1,
  parameter int unsigned DataBytes = 64,
  parameter int unsigned ClockMHz = 250,
  parameter int unsigned Programs = 16,
  parameter int unsigned StreamPorts = unisono_spec_pkg::MaxStreamPorts,
  parameter int unsigned FaultPorts = 2,
  parameter int unsigned ClearBlocks = 3,
  parameter int unsigned AddressWidth = 14,
  parameter unisono_spec_pkg::capability_t Capability = '0,
  parameter int unsigned ReadLatency = 2,
  parameter int unsigned EagerLimit = 4096,
  parameter int unsigned SegmentBytes = 4096,
  parameter int unsigned RxBufferCount = 4,
  parameter int unsigned RxBufferBytes = 4096,
  parameter int unsigned TimeoutUs = 30_000_000,
  parameter bit Skips = 1'b0,
  localparam int unsigned MapWidth = $clog2(unisono_spec_pkg::ExchangeBytes),
  localparam int unsigned RoomWidth = $clog2(unisono_spec_pkg::Window + 1),
  localparam int unsigned CounterWidth = $clog2(unisono_spec_pkg::ExchangeCountersBytes / 8)
) (
  input  logic                                             clk_i,
  input  logic                                             rst_ni,

  // See unisono_deadline.
  input  logic [31:0]                                      cycles_i,
  output logic [31:0]                                      calm_o,

  // Host.
  input  logic [AddressWidth-1:0]                          s_axi_awaddr,
  input  logic [2:0]                                       s_axi_awprot,
  input  logic                                             s_axi_awvalid,
  output logic                                             s_axi_awready,
  input  logic [31:0]                                      s_axi_wdata,
  input  logic [3:0]                                       s_axi_wstrb,
  input  logic                                             s_axi_wvalid,
  output logic                                             s_axi_wready,
  output logic [1:0]                                       s_axi_bresp,
  output logic                                             s_axi_bvalid,
  input  logic                                             s_axi_bready,
  input  logic [AddressWidth-1:0]                          s_axi_araddr,
  input  logic [2:0]                                       s_axi_arprot,
  input  logic                                             s_axi_arvalid,
  output logic                                             s_axi_arready,
  output logic [31:0]                                      s_axi_rdata,
  output logic [1:0]                                       s_axi_rresp,
  output logic                                             s_axi_rvalid,
  input  logic                                             s_axi_rready,
  // The host has a completion to read.
  output logic                                             interrupt_o,

  // Kernels: calls, their answers {code, call id}, starts {tag, call id}, and the ends of their runs.
  input  logic [KernelPorts-1:0]                           call_valid_i,
  output logic [KernelPorts-1:0]                           call_ready_o,
  input  logic [KernelPorts-1:0][DataBytes*8-1:0]          call_data_i,
  input  logic [KernelPorts-1:0][DataBytes-1:0]            call_keep_i,
  input  logic [KernelPorts-1:0]                           call_last_i,
  output logic [KernelPorts-1:0]                           answer_valid_o,
  input  logic [KernelPorts-1:0]                           answer_ready_i,
  output unisono_call_pkg::call_response_t [KernelPorts-1:0] answer_data_o,
  output logic [KernelPorts-1:0]                           kernel_start_valid_o,
  input  logic [KernelPorts-1:0]                           kernel_start_ready_i,
  output logic [KernelPorts-1:0][63:0]                     kernel_start_data_o,
  input  logic [KernelPorts-1:0]                           kernel_done_valid_i,
  input  logic [KernelPorts-1:0][15:0]                     kernel_done_code_i,

  // Microcontroller.
  output logic                                             work_valid_o,
  input  logic                                             work_ready_i,
  output logic [1:0]                                       work_kind_o,
  output unisono_cclo_pkg::slot_t                          work_slot_o,
  input  logic                                             item_done_valid_i,
  input  unisono_cclo_pkg::slot_t                          item_done_slot_i,
  input  logic                                             ended_valid_i,
  input  unisono_cclo_pkg::slot_t                          ended_slot_i,
  input  logic                                             cpu_fail_valid_i,
  input  unisono_cclo_pkg::slot_t                          cpu_fail_slot_i,
  input  unisono_spec_pkg::error_code_e                    cpu_fail_code_i,
  input  unisono_cclo_pkg::slot_t                          descriptor_slot_i,
  input  unisono_call_pkg::call_row_t                      descriptor_row_i,
  output logic [63:0]                                      descriptor_data_o,
  // The four rows among which it is, for the microcode memory.
  output unisono_call_pkg::call_quad_t                     descriptor_quad_o,
  // Descriptors as they are stored, and whether that of the start item is the one that came last.
  output logic                                             store_valid_o,
  output unisono_call_pkg::call_quad_index_t               store_quad_o,
  output unisono_call_pkg::call_quad_t                     store_data_o,
  output logic                                             work_newest_o,
  input  logic [Programs-1:0]                              program_loaded_i,
  output logic                                             run_o,
  output logic                                             firmware_valid_o,
  output logic                                             firmware_write_o,
  output logic [29:0]                                      firmware_address_o,
  output logic [31:0]                                      firmware_data_o,
  input  logic [31:0]                                      firmware_data_i,

  // Dispatcher, scoreboard, and who else can fail a call or must clear its slot.
  input  unisono_cclo_pkg::slot_t                          binding_slot_i,
  input  unisono_spec_pkg::region_e                        binding_region_i,
  output unisono_cclo_pkg::binding_t                       binding_o,
  input  logic [unisono_cclo_pkg::Calls-1:0][RoomWidth-1:0] room_i,
  input  logic                                             finished_valid_i,
  input  unisono_cclo_pkg::slot_t                          finished_slot_i,
  input  logic [FaultPorts-1:0]                            fault_valid_i,
  input  unisono_call_pkg::call_fault_t [FaultPorts-1:0]   fault_i,
  output logic                                             clear_valid_o,
  output unisono_cclo_pkg::slot_t                          clear_slot_o,
  output logic                                             clear_failed_o,
  input  logic [ClearBlocks-1:0]                           clear_done_i,
  output logic [unisono_cclo_pkg::Calls-1:0]               active_o,
  // Which of their regions are streams, and their ports.
  output logic [unisono_cclo_pkg::Calls-1:0]               src_stream_o,
  output logic [unisono_cclo_pkg::Calls-1:0]               dst_stream_o,
  output unisono_cclo_pkg::stream_port_t [unisono_cclo_pkg::Calls-1:0] src_port_o,
  output unisono_cclo_pkg::stream_port_t [unisono_cclo_pkg::Calls-1:0] dst_port_o,
  output logic [unisono_cclo_pkg::Calls-1:0]               failing_o,
  output unisono_call_pkg::generation_t [unisono_cclo_pkg::Calls-1:0] generation_o,

  // For counters and trace: a call ends that had a slot; the id of each slot's call.
  output logic                                             call_ended_o,
  output logic                                             call_ended_failed_o,
  output logic [unisono_cclo_pkg::Calls-1:0][31:0]         slot_call_id_o,

  // Settings and tables.
  output logic                                             engine_rst_no,
  input  logic                                             ready_i,
  output logic                                             tick_o,
  output logic [31:0]                                      eager_limit_o,
  output logic [31:0]                                      segment_bytes_o,
  output logic [31:0]                                      rx_buffer_count_o,
  output logic [31:0]                                      rx_buffer_bytes_o,
  output logic [63:0]                                      window_address_o,
  output logic [63:0]                                      window_bytes_o,
  output logic                                             table_write_o,
  output logic                                             table_read_o,
  output logic [MapWidth-1:2]                              table_address_o,
  output logic [31:0]                                      table_data_o,
  input  logic                                             table_ready_i,
  input  logic                                             table_valid_i,
  input  logic [31:0]                                      table_data_i,
  // The microcontroller must forget what it has derived from the communicators.
  input  logic                                             communicator_changed_i,
  output logic                                             counter_read_o,
  output logic [CounterWidth-1:0]                          counter_index_o,
  input  logic [63:0]                                      counter_i,
  output logic                                             rx_buffer_read_o,
  output logic [9:0]                                       rx_buffer_address_o,
  input  logic [31:0]                                      rx_buffer_data_i
);

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_call_pkg::*;

  localparam int unsigned Requesters = KernelPorts + 1;
  localparam int unsigned Places = Calls + KernelPorts;
  localparam int unsigned PlaceWidth = $clog2(Places);

  logic soft_reset, soft_reset_q, engine_rst_n;
  always_ff @(posedge clk_i) soft_reset_q <= soft_reset;
  assign engine_rst_n  = rst_ni && !soft_reset_q;
  assign engine_rst_no = engine_rst_n;

  // -------------------------------------------------------------------------------- exchange memory

  logic [31:0]    timeout_us;
  logic [7:0]     outstanding_byte;
  logic [EntryIndexWidth:0] outstanding;
  logic           failed, waits_for_cpu;
  call_response_t failed_response;
  logic [Requesters-1:0]           quad_valid, quad_ready, quad_bad;
  call_quad_t [Requesters-1:0]     quad_data;
  logic [Requesters-1:0]           response_valid, response_ready;
  call_response_t [Requesters-1:0] response;

  assign interrupt_o      = response_valid[0];
  assign outstanding_byte = 8'(outstanding);
  assign quad_bad[0]      = 1'b0;

  unisono_exchange #(
    .AddressWidth (AddressWidth),
    .Capability   (Capability),
    .ReadLatency  (ReadLatency),
    .EagerLimit   (EagerLimit),
    .SegmentBytes (SegmentBytes),
    .RxBufferCount(RxBufferCount),
    .RxBufferBytes(RxBufferBytes),
    .TimeoutUs    (TimeoutUs)
  ) u_exchange (
    .clk_i,
    .rst_ni,
    .s_axi_awaddr,
    .s_axi_awprot,
    .s_axi_awvalid,
    .s_axi_awready,
    .s_axi_wdata,
    .s_axi_wstrb,
    .s_axi_wvalid,
    .s_axi_wready,
    .s_axi_bresp,
    .s_axi_bvalid,
    .s_axi_bready,
    .s_axi_araddr,
    .s_axi_arprot,
    .s_axi_arvalid,
    .s_axi_arready,
    .s_axi_rdata,
    .s_axi_rresp,
    .s_axi_rvalid,
    .s_axi_rready,
    .soft_reset_o     (soft_reset),
    .run_o,
    .eager_limit_o,
    .segment_bytes_o,
    .rx_buffer_count_o,
    .rx_buffer_bytes_o,
    .timeout_us_o     (timeout_us),
    .window_address_o,
    .window_bytes_o,
    .ready_i,
    .waits_for_cpu_i  (waits_for_cpu),
    .outstanding_i    (outstanding_byte),
    .active_i         (active_o),
    .failed_i         (failed),
    .failed_response_i(failed_response),
    .quad_valid_o     (quad_valid[0]),
    .quad_ready_i     (quad_ready[0]),
    .quad_data_o      (quad_data[0]),
    .response_valid_i (response_valid[0]),
    .response_ready_o (response_ready[0]),
    .response_i       (response[0]),
    .firmware_valid_o,
    .firmware_write_o,
    .firmware_address_o,
    .firmware_data_o,
    .firmware_data_i,
    .table_write_o,
    .table_read_o,
    .table_address_o,
    .table_data_o,
    .table_ready_i,
    .table_valid_i,
    .table_data_i,
    .counter_read_o,
    .counter_index_o,
    .counter_i,
    .rx_buffer_read_o,
    .rx_buffer_address_o,
    .rx_buffer_data_i
  );

  // ---------------------------------------------------------------------------------- kernels' calls

  for (genvar k = 0; k < int'(KernelPorts); k++) begin : gen_ports
    unisono_call_port #(
      .DataBytes(DataBytes)
    ) u_port (
      .clk_i,
      .rst_ni      (engine_rst_n),
      .in_valid_i  (call_valid_i[k]),
      .in_ready_o  (call_ready_o[k]),
      .in_data_i   (call_data_i[k]),
      .in_keep_i   (call_keep_i[k]),
      .in_last_i   (call_last_i[k]),
      .quad_valid_o(quad_valid[k+1]),
      .quad_ready_i(quad_ready[k+1]),
      .quad_data_o (quad_data[k+1]),
      .quad_bad_o  (quad_bad[k+1])
    );
  end

  assign answer_valid_o                 = response_valid[Requesters-1:1];
  assign answer_data_o                  = response[Requesters-1:1];
  assign response_ready[Requesters-1:1] = answer_ready_i;

  // ------------------------------------------------------------------------------------------- queue

  logic        write;
  call_entry_t write_entry;
  call_quad_index_t write_quad;
  call_quad_t  write_data;
  logic        slot_free, slot_start;
  logic [KernelPorts-1:0] kernel_free, kernel_start;
  call_start_t start;
  logic [1:0]  end_valid, end_ready;
  call_end_t [1:0] ends;

  unisono_call_queue #(
    .KernelPorts(KernelPorts),
    .Programs   (Programs),
    .StreamPorts(StreamPorts)
  ) u_queue (
    .clk_i,
    .rst_ni           (engine_rst_n),
    .quad_valid_i     (quad_valid),
    .quad_ready_o     (quad_ready),
    .quad_data_i      (quad_data),
    .quad_bad_i       (quad_bad),
    .write_o          (write),
    .write_entry_o    (write_entry),
    .write_quad_o     (write_quad),
    .write_data_o     (write_data),
    .program_loaded_i,
    .slot_free_i      (slot_free),
    .kernel_free_i    (kernel_free),
    .slot_start_o     (slot_start),
    .kernel_start_o   (kernel_start),
    .start_o          (start),
    .end_valid_i      (end_valid),
    .end_ready_o      (end_ready),
    .end_i            (ends),
    .response_valid_o (response_valid),
    .response_ready_i (response_ready),
    .response_o       (response),
    .outstanding_o    (outstanding),
    .failed_o         (failed),
    .failed_response_o(failed_response)
  );

  // ------------------------------------------------------------------------------------ active calls

  call_entry_t [Calls-1:0] slot_entry;
  logic [Calls-1:0]  src_stream, dst_stream, slot_stop, slot_expired;
  logic              slot_set, kernel_set;
  slot_t             slot_set_slot;
  logic [31:0]       slot_us, kernel_us;
  logic [KernelPorts-1:0] kernel_set_kernel, kernel_stop, kernel_expired;
  assign src_stream_o = src_stream;
  assign dst_stream_o = dst_stream;

  unisono_call_slots #(
    .FaultPorts (FaultPorts),
    .ClearBlocks(ClearBlocks)
  ) u_slots (
    .clk_i,
    .rst_ni            (engine_rst_n),
    .free_o            (slot_free),
    .start_i           (slot_start),
    .start_call_i      (start),
    .work_valid_o,
    .work_ready_i,
    .work_kind_o,
    .work_slot_o,
    .item_done_valid_i,
    .item_done_slot_i,
    .ended_valid_i,
    .ended_slot_i,
    .control_i         (communicator_changed_i),
    .room_i,
    .finished_valid_i,
    .finished_slot_i,
    .cpu_fail_valid_i,
    .cpu_fail_slot_i,
    .cpu_fail_code_i   (cpu_fail_code_i[7:0]),
    .fault_valid_i,
    .fault_i,
    .deadline_set_o    (slot_set),
    .deadline_slot_o   (slot_set_slot),
    .deadline_us_o     (slot_us),
    .deadline_stop_o   (slot_stop),
    .deadline_expired_i(slot_expired),
    .clear_valid_o,
    .clear_slot_o,
    .clear_failed_o,
    .clear_done_i,
    .end_valid_o       (end_valid[0]),
    .end_ready_i       (end_ready[0]),
    .end_o             (ends[0]),
    .active_o,
    .failing_o,
    .generation_o,
    .entry_o           (slot_entry),
    .src_stream_o      (src_stream),
    .dst_stream_o      (dst_stream),
    .src_port_o,
    .dst_port_o,
    .slot_call_id_o,
    .waits_for_cpu_o   (waits_for_cpu)
  );

  assign call_ended_o        = end_valid[0] && end_ready[0];
  assign call_ended_failed_o = ends[0].code != '0;

  call_entry_t newest_q;
  logic        whole_q;
  always_ff @(posedge clk_i) begin
    if (!engine_rst_n) begin
      whole_q <= 1'b0;
    end else if (write) begin
      whole_q <= write_quad == call_quad_index_t'(Quads - 1);
    end
    if (write) begin
      newest_q <= write_entry;
    end
  end
  assign store_valid_o = write;
  assign store_quad_o  = write_quad;
  assign store_data_o  = write_data;
  assign work_newest_o = whole_q && slot_entry[work_slot_o] == newest_q;

  unisono_call_memory u_memory (
    .clk_i,
    .write_i       (write),
    .write_entry_i (write_entry),
    .write_quad_i  (write_quad),
    .write_data_i  (write_data),
    .slot_entry_i  (slot_entry),
    .src_stream_i  (src_stream),
    .dst_stream_i  (dst_stream),
    .row_slot_i    (descriptor_slot_i),
    .row_i         (descriptor_row_i),
    .row_data_o    (descriptor_data_o),
    .quad_data_o   (descriptor_quad_o),
    .binding_slot_i,
    .binding_region_i,
    .binding_o
  );

  unisono_call_kernels #(
    .KernelPorts(KernelPorts)
  ) u_kernels (
    .clk_i,
    .rst_ni              (engine_rst_n),
    .free_o              (kernel_free),
    .start_i             (kernel_start),
    .start_call_i        (start),
    .kernel_start_valid_o,
    .kernel_start_ready_i,
    .kernel_start_data_o,
    .kernel_done_valid_i,
    .kernel_done_code_i,
    .deadline_set_o      (kernel_set),
    .deadline_kernel_o   (kernel_set_kernel),
    .deadline_us_o       (kernel_us),
    .deadline_stop_o     (kernel_stop),
    .deadline_expired_i  (kernel_expired),
    .end_valid_o         (end_valid[1]),
    .end_ready_i         (end_ready[1]),
    .end_o               (ends[1])
  );

  // --------------------------------------------------------------------------------------- deadlines

  // The queue starts one call at a time, so slots and kernels never set a deadline together.
  logic [PlaceWidth-1:0] set_place;
  always_comb begin
    set_place = PlaceWidth'(slot_set_slot);
    for (int unsigned k = 0; k < KernelPorts; k++) begin
      if (kernel_set_kernel[k]) begin
        set_place = PlaceWidth'(Calls + k);
      end
    end
  end

  unisono_deadline #(
    .Places  (Places),
    .ClockMHz(ClockMHz),
    .Skips   (Skips)
  ) u_deadline (
    .clk_i,
    .cycles_i,
    .calm_o,
    .rst_ni      (engine_rst_n),
    .default_us_i(timeout_us),
    .set_i       (slot_set || kernel_set),
    .set_place_i (set_place),
    .set_us_i    (kernel_set ? kernel_us : slot_us),
    .stop_i      ({kernel_stop, slot_stop}),
    .expired_o   ({kernel_expired, slot_expired}),
    .tick_o
  );

  logic unused;
  assign unused = |cpu_fail_code_i[15:8];

endmodule
