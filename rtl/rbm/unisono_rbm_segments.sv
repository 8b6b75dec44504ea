// The segments that stand in receive buffers: what is known of each, which one follows it in its list, and which are
// still on their way to memory.
//
// A segment is stored: what is known of it is kept with its buffer, and it waits in a queue until memory has what was
// written. Writes are answered in their order; a segment without content has none, and waits only for those before it.
// Then the segment is shown, to join a list. A buffer that memory did not take is marked as bad.
//
// Latency: a stored segment is shown from the next cycle on, or one cycle after its write is answered. What is asked
// for of a buffer (info, link, bad) is there one cycle later. Throughput: one of each per cycle.
// Restrictions: store_ready_o is asked before a segment is stored. There are no more answers than segments stored with
// content. What is written to a buffer's word in the cycle in which that is read is not seen yet.

module unisono_rbm_segments
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  logic     store_valid_i,
  output logic     store_ready_o,
  input  pending_t store_i,
  input  info_t    info_i,

  input  logic     written_i,                        // a write is visible, in order
  input  logic     written_error_i,

  output logic     shown_valid_o,                    // the oldest of those that wait, and it is in memory
  input  logic     shown_take_i,
  output pending_t shown_o,
  output logic     shown_bad_o,

  input  buffer_t  info_buffer_i,
  output info_t    info_o,
  output logic     bad_o,

  input  buffer_t  link_buffer_i,
  output buffer_t  link_o,
  input  logic     link_write_i,
  input  buffer_t  link_write_buffer_i,
  input  buffer_t  link_write_next_i
);

  unisono_ram_sdp #(.Width($bits(info_t)), .Depth(Buffers)) u_infos (
    .clk_i, .wr_en_i(store_valid_i), .wr_addr_i(store_i.buffer), .wr_data_i(info_i),
    .rd_en_i(1'b1), .rd_addr_i(info_buffer_i), .rd_out_en_i(1'b1), .rd_data_o(info_o)
  );
  unisono_ram_sdp #(.Width(BufferWidth), .Depth(Buffers)) u_links (
    .clk_i, .wr_en_i(link_write_i), .wr_addr_i(link_write_buffer_i), .wr_data_i(link_write_next_i),
    .rd_en_i(1'b1), .rd_addr_i(link_buffer_i), .rd_out_en_i(1'b1), .rd_data_o(link_o)
  );

  logic pending_valid, written_valid, written_ready, written_bad;
  logic [4:0] unused_pending_count;
  logic [5:0] unused_written_count;
  unisono_fifo #(.Width($bits(pending_t)), .Depth(16)) u_pending (
    .clk_i, .rst_ni, .in_valid_i(store_valid_i), .in_ready_o(store_ready_o), .in_data_i(store_i),
    .out_valid_o(pending_valid), .out_ready_i(shown_take_i), .out_data_o(shown_o), .count_o(unused_pending_count)
  );
  unisono_fifo #(.Width(1), .Depth(32)) u_written (
    .clk_i, .rst_ni, .in_valid_i(written_i), .in_ready_o(written_ready), .in_data_i(written_error_i),
    .out_valid_o(written_valid), .out_ready_i(shown_take_i && !shown_o.empty), .out_data_o(written_bad),
    .count_o(unused_written_count)
  );
  assign shown_valid_o = pending_valid && (shown_o.empty || written_valid);
  assign shown_bad_o = !shown_o.empty && written_bad;

  unisono_ram_sdp #(.Width(1), .Depth(Buffers)) u_bad (
    .clk_i, .wr_en_i(shown_take_i), .wr_addr_i(shown_o.buffer), .wr_data_i(shown_bad_o),
    .rd_en_i(1'b1), .rd_addr_i(info_buffer_i), .rd_out_en_i(1'b1), .rd_data_o(bad_o)
  );

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!store_valid_i || store_ready_o) else $error("a segment is stored where there is no room");
      assert (!shown_take_i || shown_valid_o) else $error("a segment is taken before it is in memory");
      assert (!written_i || written_ready) else $error("the answer of a write is lost");
    end
  end
  `endif

endmodule
