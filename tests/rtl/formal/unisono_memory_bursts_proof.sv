// Proof of unisono_memory_bursts: for every address and length, the bursts cover the range exactly,
// in order, and none crosses a block of BurstBeats beats, hence none a 4 KiB boundary.
//
// Any command may be watched: the proof follows it with counters of its own, in beats from the
// start of memory, and holds every burst against them.

module unisono_memory_bursts_proof #(
  parameter int unsigned DataBytes    = 8,
  parameter int unsigned AddressWidth = 16,
  parameter int unsigned BurstBeats   = 8
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic                    cmd_valid_i,
  input logic [AddressWidth-1:0] cmd_address_i,
  input logic [31:0]             cmd_bytes_i,
  input logic                    burst_ready_i
);

  localparam int unsigned OffsetWidth = $clog2(DataBytes);

  logic                    cmd_ready, burst_valid, burst_last;
  logic [AddressWidth-1:0] burst_address;
  logic [7:0]              burst_length;

  unisono_memory_bursts #(
    .DataBytes   (DataBytes),
    .AddressWidth(AddressWidth),
    .BurstBeats  (BurstBeats)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .cmd_valid_i,
    .cmd_ready_o    (cmd_ready),
    .cmd_address_i,
    .cmd_bytes_i,
    .burst_valid_o  (burst_valid),
    .burst_ready_i,
    .burst_address_o(burst_address),
    .burst_length_o (burst_length),
    .burst_last_o   (burst_last)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_ff @(posedge clk_i) if (!started_q) assume (!rst_ni);

  // What the module asks of its user: no empty range, none around the end of memory.
  logic [33:0] last_byte;
  assign last_byte = 34'(cmd_address_i) + 34'(cmd_bytes_i) - 34'd1;
  always_ff @(posedge clk_i) begin
    if (cmd_valid_i) begin
      assume (cmd_bytes_i != 32'd0);
      assume (last_byte < (34'd1 << AddressWidth));
    end
  end

  // The beats that are still to come: from next_q to end_q.
  logic                                active_q;
  logic [AddressWidth-OffsetWidth-1:0] next_q, end_q, first, last;

  assign first = burst_address[AddressWidth-1:OffsetWidth];
  assign last  = first + (AddressWidth-OffsetWidth)'(burst_length);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
    end else if (cmd_valid_i && cmd_ready) begin
      active_q <= 1'b1;
      next_q   <= cmd_address_i[AddressWidth-1:OffsetWidth];
      end_q    <= last_byte[AddressWidth-1:OffsetWidth];
    end else if (burst_valid && burst_ready_i) begin
      active_q <= !burst_last;
      next_q   <= last + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      offered: assert (burst_valid == active_q);
      if (burst_valid) begin
        continues: assert (first == next_q);
        aligned: assert (burst_address[OffsetWidth-1:0] == '0);
        in_block: assert (first / BurstBeats == last / BurstBeats);
        in_page: assert (32'(burst_address[11:0]) + (32'(burst_length) + 32'd1) * DataBytes <= 32'd4096);
        in_range: assert (last >= first && last <= end_q);
        ends: assert (burst_last == (last == end_q));
      end
    end
  end

endmodule
