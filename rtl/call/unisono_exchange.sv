// The exchange memory: what host and engine share, behind an AXI4-Lite slave of 32 bits.
//
// The map is spec/exchange.yaml. Small registers are here, what the host has of its calls is in unisono_exchange_calls;
// counters, communicator table, receive buffers and the microcontroller's memory are elsewhere and reached by ports. An
// address without a register, a write to what is read only and a read of what is write only answer SLVERR and change
// nothing. Byte strobes are respected; 64-bit counters are read as a whole when the lower half is read first.
//
// Latency: a write is answered 2 cycles after address and data have both come, a read ReadLatency + 3
// cycles after its address. Throughput: one write in 2 cycles, one read in ReadLatency + 4. Only accesses
// to tables wait for another block.
// A doorbell while the descriptor before it is still being taken answers SLVERR, and so does a write to
// it: status tells. `run_o` and the settings survive a soft reset, as does the firmware.

module unisono_exchange #(
  parameter int unsigned                 AddressWidth = 14,
  parameter unisono_spec_pkg::capability_t Capability = '0,
  // Cycles from the address at a read port to its data.
  parameter int unsigned                 ReadLatency = 2,
  // Values after reset.
  parameter int unsigned                 EagerLimit = 4096,
  parameter int unsigned                 SegmentBytes = 4096,
  parameter int unsigned                 RxBufferCount = 4,
  parameter int unsigned                 RxBufferBytes = 4096,
  parameter int unsigned                 TimeoutUs = 30_000_000,
  // Cycles that a soft reset lasts.
  parameter int unsigned                 ResetCycles = 64,
  localparam int unsigned                MapWidth = $clog2(unisono_spec_pkg::ExchangeBytes),
  localparam int unsigned                CounterWidth = $clog2(unisono_spec_pkg::ExchangeCountersBytes / 8)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

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

  // Control and settings.
  output logic                    soft_reset_o,
  output logic                    run_o,
  output logic [31:0]             eager_limit_o,
  output logic [31:0]             segment_bytes_o,
  output logic [31:0]             rx_buffer_count_o,
  output logic [31:0]             rx_buffer_bytes_o,
  output logic [31:0]             timeout_us_o,
  output logic [63:0]             window_address_o,
  output logic [63:0]             window_bytes_o,

  // Status.
  input  logic                    ready_i,
  input  logic                    waits_for_cpu_i,
  input  logic [7:0]              outstanding_i,
  input  logic [7:0]              active_i,
  input  logic                    failed_i,
  input  unisono_call_pkg::call_response_t failed_response_i,

  // Calls of the host, four rows at a time, and their answers.
  output logic                    quad_valid_o,
  input  logic                    quad_ready_i,
  output unisono_call_pkg::call_quad_t quad_data_o,
  input  logic                    response_valid_i,
  output logic                    response_ready_o,
  input  unisono_call_pkg::call_response_t response_i,

  // The microcontroller's memory, word by word.
  output logic                    firmware_valid_o,
  output logic                    firmware_write_o,
  output logic [29:0]             firmware_address_o,
  output logic [31:0]             firmware_data_o,
  input  logic [31:0]             firmware_data_i,

  // Tables of the engine: whole words, at their place in the map. A write or a read is one cycle; the next
  // one waits for table_ready_i, and a read for its answer.
  output logic                    table_write_o,
  output logic                    table_read_o,
  output logic [MapWidth-1:2]     table_address_o,
  output logic [31:0]             table_data_o,
  input  logic                    table_ready_i,
  input  logic                    table_valid_i,
  input  logic [31:0]             table_data_i,

  // Counters and receive buffers, by number and by word.
  output logic                    counter_read_o,
  output logic [CounterWidth-1:0] counter_index_o,
  input  logic [63:0]             counter_i,
  output logic                    rx_buffer_read_o,
  output logic [9:0]              rx_buffer_address_o,
  input  logic [31:0]             rx_buffer_data_i
);

  import unisono_spec_pkg::*;
  import unisono_call_pkg::*;

  if (ReadLatency < 1 || ReadLatency > 8) begin : gen_bad_latency
    $error("unisono_exchange: ReadLatency must be between 1 and 8");
  end
  if (AddressWidth < $clog2(ExchangeBytes)) begin : gen_bad_address
    $error("unisono_exchange: AddressWidth is too small for the map");
  end

  localparam logic [1:0] RespOkay = 2'b00;
  localparam logic [1:0] RespSlverr = 2'b10;

  typedef logic [MapWidth-1:0] address_t;

  function automatic logic is_in(address_t address, int unsigned offset, int unsigned bytes);
    return 32'(address) >= offset && 32'(address) < offset + bytes;
  endfunction

  function automatic logic [31:0] merge(logic [31:0] old, logic [31:0] data, logic [3:0] strobe);
    for (int unsigned b = 0; b < 4; b++) begin
      merge[8*b+:8] = strobe[b] ? data[8*b+:8] : old[8*b+:8];
    end
  endfunction

  // What reads and writes of tables have to know of each other.
  logic     table_idle;              // no access to a table is under way
  logic     write_table, read_table, begins, beyond_r_q;
  address_t raddr_q;

  // ------------------------------------------------------------------------------------------ writes

  logic        aw_held_q, w_held_q, beyond_w_q;
  address_t    waddr_q;
  logic [31:0] wdata_q;
  logic [3:0]  wstrb_q;
  logic        write;                // both are there, and the answer has somewhere to go

  assign s_axi_awready = !aw_held_q;
  assign s_axi_wready  = !w_held_q;
  assign write         = aw_held_q && w_held_q && !s_axi_bvalid && (table_idle || !write_table);

  // The address, with whole words, and whether it is beyond the map.
  function automatic address_t word_of(logic [AddressWidth-1:0] address);
    return address_t'(address) & ~address_t'(3);
  endfunction

  logic slot_taken;                  // the descriptor at call_slot is being taken
  logic write_ok;

  logic write_control, write_status, write_doorbell, write_slot, write_firmware;

  function automatic logic in_table(address_t address);
    return is_in(address, ExchangeTransportOffset, ExchangeTransportBytes)
        || is_in(address, ExchangeProgramsOffset, ExchangeProgramsBytes)
        || is_in(address, ExchangeCommunicatorsOffset, ExchangeCommunicatorsBytes)
        || is_in(address, ExchangeMembersOffset, ExchangeMembersBytes);
  endfunction

  logic write_setting;
  always_comb begin
    write_control      = waddr_q == address_t'(ExchangeControlOffset);
    write_status       = waddr_q == address_t'(ExchangeStatusOffset);
    write_doorbell     = waddr_q == address_t'(ExchangeDoorbellOffset) && !slot_taken;
    write_slot         = is_in(waddr_q, ExchangeCallSlotOffset, ExchangeCallSlotBytes)
                      && !slot_taken;
    write_table        = in_table(waddr_q);
    write_firmware     = waddr_q == address_t'(ExchangeFirmwareDataOffset) && wstrb_q == '1
                      && !run_o;
    write_setting      = is_in(waddr_q, ExchangeEagerLimitOffset,
                                ExchangeTimeoutUsOffset + ExchangeTimeoutUsBytes
                                - ExchangeEagerLimitOffset)
                      || waddr_q == address_t'(ExchangeFirmwareAddressOffset)
                      || is_in(waddr_q, ExchangeWindowAddressOffset,
                                ExchangeWindowBytesOffset + ExchangeWindowBytesBytes
                                - ExchangeWindowAddressOffset);
    write_ok           = !beyond_w_q && (write_control || write_status || write_doorbell
                      || write_slot || (write_table && wstrb_q == '1) || write_firmware || write_setting);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_held_q    <= 1'b0;
      w_held_q     <= 1'b0;
      s_axi_bvalid <= 1'b0;
    end else begin
      if (s_axi_awvalid && s_axi_awready) begin
        aw_held_q <= 1'b1;
      end else if (write) begin
        aw_held_q <= 1'b0;
      end
      if (s_axi_wvalid && s_axi_wready) begin
        w_held_q <= 1'b1;
      end else if (write) begin
        w_held_q <= 1'b0;
      end
      if (write) begin
        s_axi_bvalid <= 1'b1;
      end else if (s_axi_bready) begin
        s_axi_bvalid <= 1'b0;
      end
    end
    if (s_axi_awready) begin
      waddr_q    <= word_of(s_axi_awaddr);
      beyond_w_q <= 32'(s_axi_awaddr) >= ExchangeBytes;
    end
    if (s_axi_wready) begin
      wdata_q <= s_axi_wdata;
      wstrb_q <= s_axi_wstrb;
    end
    if (write) begin
      s_axi_bresp <= write_ok ? RespOkay : RespSlverr;
    end
  end

  logic apply;
  assign apply = write && write_ok;

  // -------------------------------------------------------------------------------- small registers

  logic [31:0] firmware_address_q;
  logic [$clog2(ResetCycles+1)-1:0] reset_left_q;
  logic        firmware_step;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      run_o              <= 1'b0;
      reset_left_q       <= '0;
      eager_limit_o      <= EagerLimit;
      segment_bytes_o    <= SegmentBytes;
      rx_buffer_count_o  <= RxBufferCount;
      rx_buffer_bytes_o  <= RxBufferBytes;
      timeout_us_o       <= TimeoutUs;
      window_address_o   <= '0;
      window_bytes_o     <= '0;
      firmware_address_q <= '0;
    end else begin
      if (reset_left_q != '0) begin
        reset_left_q <= reset_left_q - 1'b1;
      end
      if (firmware_step) begin
        firmware_address_q <= firmware_address_q + 32'd4;
      end
      if (apply) begin
        unique case (32'(waddr_q))
          ExchangeControlOffset: begin
            if (wstrb_q[0]) begin
              run_o <= wdata_q[1];
              if (wdata_q[0]) begin
                reset_left_q <= ($clog2(ResetCycles+1))'(ResetCycles);
              end
            end
          end
          ExchangeEagerLimitOffset: eager_limit_o <= merge(eager_limit_o, wdata_q, wstrb_q);
          ExchangeSegmentBytesOffset: segment_bytes_o <= merge(segment_bytes_o, wdata_q, wstrb_q);
          ExchangeRxBufferCountOffset:
            rx_buffer_count_o <= merge(rx_buffer_count_o, wdata_q, wstrb_q);
          ExchangeRxBufferBytesOffset:
            rx_buffer_bytes_o <= merge(rx_buffer_bytes_o, wdata_q, wstrb_q);
          ExchangeTimeoutUsOffset: timeout_us_o <= merge(timeout_us_o, wdata_q, wstrb_q);
          ExchangeFirmwareAddressOffset: begin
            firmware_address_q <= merge(firmware_address_q, wdata_q, wstrb_q) & ~32'd3;
          end
          ExchangeWindowAddressOffset:
            window_address_o[31:0] <= merge(window_address_o[31:0], wdata_q, wstrb_q);
          ExchangeWindowAddressOffset + 4:
            window_address_o[63:32] <= merge(window_address_o[63:32], wdata_q, wstrb_q);
          ExchangeWindowBytesOffset:
            window_bytes_o[31:0] <= merge(window_bytes_o[31:0], wdata_q, wstrb_q);
          ExchangeWindowBytesOffset + 4:
            window_bytes_o[63:32] <= merge(window_bytes_o[63:32], wdata_q, wstrb_q);
          default: ;
        endcase
      end
    end
    soft_reset_o <= rst_ni && reset_left_q != '0;
  end

  // ----------------------------------------------------------------------------------------- tables
  // One access at a time; a write goes before a read that comes in the same cycle.

  logic table_write, table_read, table_read_waits_q, table_answered_q;
  logic [31:0] table_data_q;
  assign table_write = apply && write_table;
  assign table_read  = table_read_waits_q && table_idle && !table_write;
  assign table_idle  = !table_write_o && !table_read_o && table_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      table_write_o      <= 1'b0;
      table_read_o       <= 1'b0;
      table_read_waits_q <= 1'b0;
      table_answered_q   <= 1'b0;
    end else begin
      table_write_o <= table_write;
      table_read_o  <= table_read;
      if (begins && read_table && !beyond_r_q) begin
        table_read_waits_q <= 1'b1;
        table_answered_q   <= 1'b0;
      end else begin
        if (table_read) table_read_waits_q <= 1'b0;
        if (table_valid_i) table_answered_q <= 1'b1;
      end
    end
    if (table_idle) begin
      table_address_o <= table_write ? waddr_q[MapWidth-1:2] : raddr_q[MapWidth-1:2];
      table_data_o    <= wdata_q;
    end
    if (table_valid_i) table_data_q <= table_data_i;
  end

  // ------------------------------------------------------------------------------- the host's calls

  logic           error_seen, completed;
  call_response_t error;
  logic [15:0]    completed_code;
  logic [31:0]    slot_data;

  unisono_exchange_calls u_calls (
    .clk_i, .rst_ni, .soft_reset_i(soft_reset_o),
    .write_i(apply && write_slot), .write_word_i(waddr_q[2+:RowWidth+1]), .write_data_i(wdata_q),
    .write_strobe_i(wstrb_q), .read_word_i(raddr_q[2+:RowWidth+1]), .read_data_o(slot_data),
    .ring_i(apply && write_doorbell), .taken_o(slot_taken), .quad_valid_o, .quad_ready_i, .quad_data_o,
    .remove_i(response_ready_o), .response_valid_i, .response_code_i(response_i.code),
    .completed_o(completed), .completed_code_o(completed_code), .failed_i, .failed_response_i,
    .forget_i(apply && write_status && wstrb_q[0] && wdata_q[1]), .error_seen_o(error_seen), .error_o(error)
  );

  // ------------------------------------------------------------------------------------------- reads

  // The address goes to all ports; what answers is chosen when the slowest has.
  localparam int unsigned WaitWidth = 4;

  logic                 reading_q, ok_q;
  logic [WaitWidth-1:0] wait_q;
  logic                 first_q;     // of the cycles of a read
  logic                 stall;
  logic                 finish;
  logic [31:0]          local_q, local_data, counter_high_q;
  logic                 local_ok;

  assign s_axi_arready = !reading_q && !s_axi_rvalid;
  assign finish        = reading_q && wait_q == '0 && (!read_table || beyond_r_q || table_answered_q);

  logic read_counter, read_rx_buffer, read_slot, read_firmware, read_completed;
  always_comb begin
    read_table        = in_table(raddr_q);
    read_counter      = is_in(raddr_q, ExchangeCountersOffset, ExchangeCountersBytes);
    read_rx_buffer    = is_in(raddr_q, ExchangeRxBuffersOffset, ExchangeRxBuffersBytes);
    read_slot         = is_in(raddr_q, ExchangeCallSlotOffset, ExchangeCallSlotBytes);
    read_firmware     = raddr_q == address_t'(ExchangeFirmwareDataOffset) && !run_o;
    read_completed    = raddr_q == address_t'(ExchangeCompletedOffset);
  end

  logic [63:0] capability;
  assign capability = Capability;

  always_comb begin
    local_ok   = 1'b1;
    local_data = '0;
    unique case (32'(raddr_q))
      ExchangeIdentityOffset:        local_data = 32'h554e_4953;
      ExchangeVersionOffset:         local_data = {16'(AbiVersion), 16'(WireVersion)};
      ExchangeCapabilityOffset:      local_data = capability[31:0];
      ExchangeCapabilityOffset + 4:  local_data = capability[63:32];
      ExchangeControlOffset:         local_data = {30'd0, run_o, soft_reset_o || reset_left_q != '0};
      ExchangeStatusOffset: begin
        local_data = {27'd0, waits_for_cpu_i, response_valid_i, slot_taken, error_seen, ready_i};
      end
      ExchangeErrorOffset:           local_data = {16'd0, error.code};
      ExchangeErrorCallOffset:       local_data = error.call_id;
      ExchangeCompletedOffset:       local_data = response_valid_i ? response_i.call_id : '0;
      ExchangeCompletedCodeOffset:   local_data = {completed, 15'd0, completed_code};
      ExchangeCallsOffset:           local_data = {16'd0, active_i, outstanding_i};
      ExchangeEagerLimitOffset:      local_data = eager_limit_o;
      ExchangeSegmentBytesOffset:    local_data = segment_bytes_o;
      ExchangeRxBufferCountOffset:   local_data = rx_buffer_count_o;
      ExchangeRxBufferBytesOffset:   local_data = rx_buffer_bytes_o;
      ExchangeTimeoutUsOffset:       local_data = timeout_us_o;
      ExchangeFirmwareAddressOffset: local_data = firmware_address_q;
      ExchangeWindowAddressOffset:   local_data = window_address_o[31:0];
      ExchangeWindowAddressOffset + 4: local_data = window_address_o[63:32];
      ExchangeWindowBytesOffset:     local_data = window_bytes_o[31:0];
      ExchangeWindowBytesOffset + 4: local_data = window_bytes_o[63:32];
      default: begin
        local_ok = read_slot || read_table || read_counter || read_rx_buffer || read_firmware;
        local_data = slot_data;
      end
    endcase
    if (beyond_r_q) begin
      local_ok = 1'b0;
    end
  end

  // Reads that change something do so once, in their first cycle. This one never stalls.
  assign response_ready_o = first_q && read_completed && !beyond_r_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      reading_q    <= 1'b0;
      first_q      <= 1'b0;
      s_axi_rvalid <= 1'b0;
      wait_q       <= '0;
    end else begin
      first_q <= (s_axi_arvalid && s_axi_arready) || stall;
      if (s_axi_arvalid && s_axi_arready) begin
        reading_q <= 1'b1;
        wait_q    <= WaitWidth'(ReadLatency + 1);
      end else if (finish) begin
        reading_q <= 1'b0;
      end else if (wait_q != '0 && !stall) begin
        wait_q <= wait_q - WaitWidth'(1);
      end
      if (finish) begin
        s_axi_rvalid <= 1'b1;
      end else if (s_axi_rready) begin
        s_axi_rvalid <= 1'b0;
      end
    end
    if (s_axi_arready) begin
      raddr_q    <= word_of(s_axi_araddr);
      beyond_r_q <= 32'(s_axi_araddr) >= ExchangeBytes;
    end
    if (begins) begin
      local_q <= local_data;
      ok_q    <= local_ok;
    end
    if (finish) begin
      s_axi_rresp <= ok_q ? RespOkay : RespSlverr;
      s_axi_rdata <= '0;
      if (ok_q) begin
        s_axi_rdata <= local_q;
        if (read_table) begin
          s_axi_rdata <= table_data_q;
        end else if (read_rx_buffer) begin
          s_axi_rdata <= rx_buffer_data_i;
        end else if (read_firmware) begin
          s_axi_rdata <= firmware_data_i;
        end else if (read_counter) begin
          s_axi_rdata <= raddr_q[2] ? counter_high_q : counter_i[31:0];
          if (!raddr_q[2]) begin
            counter_high_q <= counter_i[63:32];
          end
        end
      end
    end
  end

  // The cycle after the first one: data are there ReadLatency cycles later.
  always_ff @(posedge clk_i) begin
    counter_read_o              <= rst_ni && begins && read_counter && !beyond_r_q;
    counter_index_o             <= raddr_q[3+:CounterWidth];
    rx_buffer_read_o            <= rst_ni && begins && read_rx_buffer && !beyond_r_q;
    rx_buffer_address_o         <= raddr_q[11:2];
  end

  // ---- the microcontroller's memory: one port for reads and writes; a read gives way

  logic firmware_write, firmware_read;
  assign firmware_write = apply && write_firmware;
  assign firmware_read  = first_q && read_firmware && !beyond_r_q;
  assign firmware_step  = firmware_write || firmware_read;
  assign stall          = firmware_write && firmware_read;
  assign begins         = first_q && !stall;

  always_ff @(posedge clk_i) begin
    firmware_valid_o   <= rst_ni && firmware_step;
    firmware_write_o   <= firmware_write;
    firmware_address_o <= firmware_address_q[31:2];
    firmware_data_o    <= wdata_q;
  end

  logic unused;
  assign unused = |{s_axi_awprot, s_axi_arprot};

`ifndef SYNTHESIS
  logic       b_held_q, r_held_q;
  logic [1:0] b_resp_q;
  logic [33:0] r_q;
  always_ff @(posedge clk_i) begin
    b_held_q <= rst_ni && s_axi_bvalid && !s_axi_bready;
    b_resp_q <= s_axi_bresp;
    r_held_q <= rst_ni && s_axi_rvalid && !s_axi_rready;
    r_q      <= {s_axi_rresp, s_axi_rdata};
    if (rst_ni) begin
      assert (!b_held_q || (s_axi_bvalid && s_axi_bresp == b_resp_q))
      else $error("%m: the answer to a write changed");
      assert (!r_held_q || (s_axi_rvalid && {s_axi_rresp, s_axi_rdata} == r_q))
      else $error("%m: the answer to a read changed");
    end
  end
`endif

endmodule
