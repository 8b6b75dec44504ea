// The receive buffers that are free, and the credit that is owed for those that were used.
//
// Buffers that were never used are given first, then those given back. A buffer comes back in one of two ways: a
// lane has read it (release), or the receive-buffer manager itself needs it no more (signal), for one because its
// segment has no content. Released ones go first. What comes back is free again, and its credit is owed if its message
// was eager. A signal may be mute: its credit is of a communicator that is no more. A segment that went past the
// buffers (bypass) has none to give back; only its credit is owed.
//
// Latency: a buffer that comes back to empty queues is owed 2 cycles later, and on offer 5 cycles later (3 where Depth
// is at most 64). Throughput: a buffer is given per cycle; one comes back in two cycles.
// Restrictions: nothing that comes back is refused. So a buffer comes back once for each time that it was taken; no
// signal is given in the cycle after one in which signal_full_o was set; and bypasses come as seldom as headers.

module unisono_rbm_pool
  import unisono_dmp_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_rbm_pkg::*;
#(
  parameter int unsigned Depth = Buffers,           // buffers that there are
  parameter int unsigned ReleaseDepth = 64,
  parameter int unsigned SignalDepth = 16,
  localparam int unsigned Width = $clog2(Depth),
  localparam int unsigned SignalCountWidth = $clog2(SignalDepth + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A free buffer, and what will be owed for it.
  output logic             free_valid_o,
  input  logic             free_take_i,
  output logic [Width-1:0] free_buffer_o,
  output logic [Width:0]   free_count_o,
  input  owner_t           owner_i,                  // of what is taken, or goes past the buffers, in this cycle

  input  logic             release_valid_i,
  input  logic [Width-1:0] release_buffer_i,
  input  logic             signal_valid_i,
  input  logic             signal_mute_i,
  input  logic [Width-1:0] signal_buffer_i,
  output logic             signal_full_o,            // half of the queue is in use
  input  logic             bypass_valid_i,

  output logic             owed_valid_o,
  output communicator_t    owed_communicator_o,
  output rank_t            owed_peer_o
);

  if (Depth < 4 || Depth != 1 << Width) begin : gen_bad_depth
    $error("unisono_rbm_pool: Depth must be a power of two, and at least 4");
  end
  if (SignalDepth < 4 || SignalDepth != 1 << (SignalCountWidth - 1)) begin : gen_bad_signal_depth
    $error("unisono_rbm_pool: SignalDepth must be a power of two, and at least 4");
  end

  // ------------------------------------------------------------------------------------------------ free

  logic [Width:0] fresh_q, recycled_count;           // buffers that have been used
  logic fresh, recycled_valid, recycled_ready;
  logic [Width-1:0] recycled;
  logic recycle_q, recycle_mute_q;                   // a buffer's owner has been read
  logic [Width-1:0] recycle_buffer_q;

  assign fresh = fresh_q != (Width + 1)'(Depth);
  assign free_buffer_o = fresh ? fresh_q[Width-1:0] : recycled;
  assign free_valid_o = fresh || recycled_valid;
  assign free_count_o = (Width + 1)'(Depth) - fresh_q + recycled_count;

  unisono_fifo #(.Width(Width), .Depth(Depth)) u_recycled (
    .clk_i, .rst_ni, .in_valid_i(recycle_q), .in_ready_o(recycled_ready), .in_data_i(recycle_buffer_q),
    .out_valid_o(recycled_valid), .out_ready_i(free_take_i && !fresh), .out_data_o(recycled),
    .count_o(recycled_count)
  );

  // ------------------------------------------------------------------------------------------------ back

  logic released_valid, released_ready, released_take, signal_valid, signal_ready, signal_take, signal_mute;
  logic [Width-1:0] released, signal;
  logic [SignalCountWidth-1:0] signal_count;
  logic [$clog2(ReleaseDepth+1)-1:0] unused_released_count;

  unisono_fifo #(.Width(Width), .Depth(ReleaseDepth)) u_released (
    .clk_i, .rst_ni, .in_valid_i(release_valid_i), .in_ready_o(released_ready), .in_data_i(release_buffer_i),
    .out_valid_o(released_valid), .out_ready_i(released_take), .out_data_o(released), .count_o(unused_released_count)
  );
  unisono_fifo #(.Width(Width + 1), .Depth(SignalDepth)) u_signals (
    .clk_i, .rst_ni, .in_valid_i(signal_valid_i), .in_ready_o(signal_ready),
    .in_data_i({signal_mute_i, signal_buffer_i}), .out_valid_o(signal_valid), .out_ready_i(signal_take),
    .out_data_o({signal_mute, signal}), .count_o(signal_count)
  );
  assign signal_full_o = signal_count[SignalCountWidth-2];

  // The owner is read, then the buffer is free and its credit owed.
  logic back;
  logic [Width-1:0] back_buffer;
  assign released_take = released_valid && !recycle_q;
  assign signal_take = signal_valid && !released_valid && !recycle_q;
  assign back = released_take || signal_take;
  assign back_buffer = released_valid ? released : signal;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fresh_q <= '0;
      recycle_q <= 1'b0;
      recycle_buffer_q <= '0;
    end else begin
      if (free_take_i && fresh) fresh_q <= fresh_q + 1'b1;
      recycle_q <= back;
      if (back) recycle_buffer_q <= back_buffer;
      if (back) recycle_mute_q <= !released_valid && signal_mute;
    end
  end

  // ------------------------------------------------------------------------------------------------ owed

  owner_t owner, bypassed;
  logic bypassed_valid, bypassed_ready, bypassed_take;
  logic [4:0] unused_bypassed_count;
  logic unused_bypassed_eager;                       // what goes past is asked for only if it is

  unisono_ram_sdp #(.Width($bits(owner_t)), .Depth(Depth)) u_owners (
    .clk_i, .wr_en_i(free_take_i), .wr_addr_i(free_buffer_o), .wr_data_i(owner_i),
    .rd_en_i(back), .rd_addr_i(back_buffer), .rd_out_en_i(1'b1), .rd_data_o(owner)
  );
  unisono_fifo #(.Width($bits(owner_t)), .Depth(16)) u_bypassed (
    .clk_i, .rst_ni, .in_valid_i(bypass_valid_i), .in_ready_o(bypassed_ready), .in_data_i(owner_i),
    .out_valid_o(bypassed_valid), .out_ready_i(bypassed_take), .out_data_o(bypassed), .count_o(unused_bypassed_count)
  );
  assign unused_bypassed_eager = bypassed.eager;
  assign bypassed_take = bypassed_valid && !recycle_q;
  assign owed_valid_o = recycle_q ? owner.eager && !recycle_mute_q : bypassed_valid;
  assign owed_communicator_o = recycle_q ? owner.communicator : bypassed.communicator;
  assign owed_peer_o = recycle_q ? owner.source : bypassed.source;

  `ifndef SYNTHESIS
  // Nothing is lost that comes.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!free_take_i || free_valid_o) else $error("a buffer is taken where none is free");
      assert (!release_valid_i || released_ready) else $error("a buffer that was read is lost");
      assert (!signal_valid_i || signal_ready) else $error("a buffer that is given back is lost");
      assert (!recycle_q || recycled_ready) else $error("a free buffer is lost");
      assert (!bypass_valid_i || bypassed_ready) else $error("a credit is lost");
    end
  end
  `endif

endmodule
