// Queue of whole packets: a packet is offered only when all of it is inside, and then leaves
// without gaps; the packet being written can be dropped.
//
// The packet whose last word comes with in_drop_i is forgotten as if it had never come. A packet
// that does not fit in the free space waits, or with DropWhenFull is dropped as a whole, so that
// the input is always ready. A packet of more than Depth words is dropped in either case: it could
// never leave. dropped_o is high for one cycle, the one after the last word, for each dropped
// packet.
//
// Latency from a packet's last word to its first word on offer: 2 cycles with LUTRAM (Depth up to
// 64), 3 with block RAM. Throughput: 1 word per cycle. Depth is a power of two. Beside the Depth
// words in the memory, 1 or 2 words of the packet that is leaving are held in registers.

module unisono_stream_packet_fifo #(
  parameter int unsigned DataBytes    = 64,
  parameter int unsigned UserBits     = 1,
  parameter int unsigned Depth        = 64,
  parameter bit          DropWhenFull = 1'b0,
  parameter bit          BlockRam     = Depth > 64
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   in_valid_i,
  output logic                   in_ready_o,
  input  logic [DataBytes*8-1:0] in_data_i,
  input  logic [DataBytes-1:0]   in_keep_i,
  input  logic                   in_last_i,
  input  logic [UserBits-1:0]    in_user_i,
  // Looked at with the last word.
  input  logic                   in_drop_i,

  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [DataBytes*8-1:0] out_data_o,
  output logic [DataBytes-1:0]   out_keep_o,
  output logic                   out_last_o,
  output logic [UserBits-1:0]    out_user_o,

  output logic                   dropped_o
);

  localparam int unsigned AddressBits = $clog2(Depth);
  localparam int unsigned PointerBits = AddressBits + 1;

  if (Depth < 2 || (32'd1 << AddressBits) != Depth) begin : gen_bad_depth
    $error("unisono_stream_packet_fifo: Depth must be a power of two, at least 2");
  end

  // Pointers count modulo 2 * Depth. Words from rd to committed belong to complete packets, words
  // from committed to wr to the packet being written.
  logic [PointerBits-1:0] wr_q, committed_q, rd_q;
  // The rest of this packet is thrown away.
  logic dropping_q, dropped_q;

  logic full, alone, fetch, take, store, lost;

  assign full  = wr_q == (rd_q ^ {1'b1, {AddressBits{1'b0}}});
  // Nothing will leave before this packet is complete.
  assign alone = committed_q == rd_q;

  assign in_ready_o = DropWhenFull || dropping_q || !full || alone;
  assign take       = in_valid_i && in_ready_o;
  assign store      = take && !dropping_q && !full;
  assign lost       = dropping_q || full;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_q        <= '0;
      committed_q <= '0;
      dropping_q  <= 1'b0;
      dropped_q   <= 1'b0;
    end else begin
      dropped_q <= take && in_last_i && (lost || in_drop_i);
      if (take) begin
        dropping_q <= lost && !in_last_i;
        if (lost || (in_last_i && in_drop_i)) begin
          wr_q <= committed_q;
        end else begin
          wr_q <= wr_q + PointerBits'(1);
          if (in_last_i) begin
            committed_q <= wr_q + PointerBits'(1);
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q <= '0;
    end else if (fetch) begin
      rd_q <= rd_q + PointerBits'(1);
    end
  end

  assign dropped_o = dropped_q;

  unisono_ram_reader #(
    .Width   (DataBytes * 8 + DataBytes + 1 + UserBits),
    .Depth   (Depth),
    .BlockRam(BlockRam)
  ) u_reader (
    .clk_i,
    .rst_ni,
    .wr_en_i    (store),
    .wr_addr_i  (wr_q[AddressBits-1:0]),
    .wr_data_i  ({in_user_i, in_last_i, in_keep_i, in_data_i}),
    .avail_i    (!alone),
    .rd_addr_i  (rd_q[AddressBits-1:0]),
    .fetch_o    (fetch),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_user_o, out_last_o, out_keep_o, out_data_o})
  );

`ifndef SYNTHESIS
  unisono_stream_check #(
    .DataBytes (DataBytes),
    .UserBits  (UserBits),
    .AllowEmpty(1'b1)
  ) u_check_in (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i (in_data_i),
    .keep_i (in_keep_i),
    .last_i (in_last_i),
    .user_i (in_user_i)
  );
  unisono_stream_check #(
    .DataBytes (DataBytes),
    .UserBits  (UserBits),
    .AllowEmpty(1'b1)
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_data_o),
    .keep_i (out_keep_o),
    .last_i (out_last_o),
    .user_i (out_user_o)
  );
  // Once a packet has begun to leave it has no gaps.
  logic leaving_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      leaving_q <= 1'b0;
    end else if (out_valid_o && out_ready_i) begin
      leaving_q <= !out_last_o;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!leaving_q || out_valid_o) else $error("%m: a gap within a packet");
      assert (PointerBits'(wr_q - rd_q) <= PointerBits'(Depth)) else $error("%m: overflow");
    end
  end
`endif

endmodule
