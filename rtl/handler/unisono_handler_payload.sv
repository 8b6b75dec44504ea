// Holds two packets: one that a function reads, and one that comes.
//
// A packet has 8192 bytes at most, keep as streams have it; one without bytes is a word without any. What is said of it
// (`in_about_i`, `in_ends_i`) is constant over its words. Latency: a packet is there in the cycle after its last word. Throughput: a
// word per cycle while there is room.
module unisono_handler_payload
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned Window = 64,
  parameter int unsigned AboutBits = 5 * 32,
  parameter int unsigned EndsBits = 2
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 in_valid_i,
  output logic                 in_ready_o,
  input  logic [511:0]         in_data_i,
  input  logic [63:0]          in_keep_i,
  input  logic                 in_last_i,
  input  logic [AboutBits-1:0] in_about_i,
  input  logic [EndsBits-1:0]  in_ends_i,  // whether it is its message's first packet, or last, and the like

  output logic                 there_o,  // a packet to be worked on
  output logic                 there_next_o,  // and another one
  input  logic                 done_i,  // with it
  output logic [13:0]          length_o,
  output logic [AboutBits-1:0] about_o,
  output logic [EndsBits-1:0]  ends_o,
  output logic [AboutBits-1:0] about_next_o,  // of the other one
  output logic [EndsBits-1:0]  ends_next_o,

  input  logic                 take_en_i,
  input  logic [12:0]          take_address_i,
  output logic [Window*8-1:0]  take_data_o
);

  logic [1:0] full_q;
  logic write_q, read_q;  // which of the two
  logic [7:0] word_q;
  logic [1:0][13:0] length_q;
  logic [1:0][AboutBits-1:0] about_q;
  logic [1:0][EndsBits-1:0] ends_q;
  logic [6:0] kept;
  always_comb begin
    kept = '0;
    for (int unsigned b = 0; b < 64; b++) if (in_keep_i[b]) kept = 7'(b + 1);
  end

  logic push;
  assign in_ready_o = !full_q[write_q];
  assign push = in_valid_i && in_ready_o;
  assign there_o = full_q[read_q];
  assign length_o = length_q[read_q];
  assign about_o = about_q[read_q];
  assign ends_o = ends_q[read_q];
  assign there_next_o = full_q[!read_q];
  assign about_next_o = about_q[!read_q];
  assign ends_next_o = ends_q[!read_q];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      full_q <= '0;
      write_q <= 1'b0;
      read_q <= 1'b0;
      word_q <= '0;
    end else begin
      if (push) word_q <= in_last_i ? '0 : word_q + 8'd1;
      if (push && in_last_i) begin
        full_q[write_q] <= 1'b1;
        write_q <= !write_q;
      end
      if (done_i) begin
        full_q[read_q] <= 1'b0;
        read_q <= !read_q;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (push) begin
      length_q[write_q] <= {word_q, 6'd0} + 14'(kept);
      about_q[write_q] <= in_about_i;
      ends_q[write_q] <= in_ends_i;
    end
  end

  // verilator lint_off UNUSEDSIGNAL
  logic [Window/8-1:0][63:0] unused_groups;
  // verilator lint_on UNUSEDSIGNAL
  unisono_handler_window #(
    .Bytes (2 * MostPayloadBytes),
    .Window(Window)
  ) u_bytes (
    .clk_i,
    .wr_en_i     (push),
    .wr_address_i({write_q, word_q[6:0], 6'd0}),
    .wr_mask_i   (Window'(64'hffff_ffff_ffff_ffff)),
    .wr_data_i   ((Window * 8)'(in_data_i)),
    .rd_en_i     (take_en_i),
    .rd_address_i({read_q, take_address_i}),
    .rd_data_o   (take_data_o),
    .groups_i       (1'b0),
    .group_rd_en_i  ('0),
    .group_rd_row_i ('0),
    .group_rd_data_o(unused_groups),
    .group_wr_mask_i('0),
    .group_wr_row_i ('0),
    .group_wr_data_i('0)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && push) begin
      assert (word_q < 8'd128) else $error("%m: a packet has more than 8192 bytes");
      assert (in_last_i || in_keep_i == '1) else $error("%m: a word that is not the last is not full");
      assert ((in_keep_i & (in_keep_i + 64'd1)) == '0) else $error("%m: keep is not contiguous from byte 0");
    end
    if (rst_ni && done_i) assert (there_o) else $error("%m: done with no packet");
  end
`endif

endmodule
