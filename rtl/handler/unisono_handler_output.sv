// Makes a packet of what a function writes.
//
// Up to 64 bytes are pushed at a time; they are moved together. A word goes when a byte follows it, so that the last
// one is known: it goes at the function's end. A function that has written nothing has no packet.
//
// Latency: 1 cycle from the push that follows a word, or from the end. Throughput: a push per cycle.
module unisono_handler_output (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         push_valid_i,
  output logic         push_ready_o,
  input  logic [6:0]   push_bytes_i,  // 0 to 64
  input  logic [511:0] push_data_i,

  input  logic         end_i,  // until `ended_o`; no push then
  input  logic         end_failed_i,
  output logic         ended_o,  // nothing is held back any more

  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [511:0] out_data_o,
  output logic [63:0]  out_keep_o,
  output logic         out_last_o,
  output logic         out_failed_o  // with the last word: the function was stopped, or failed the job
);

  logic [511:0]  held_q;
  logic [6:0]    fill_q;  // 0 to 64
  logic [511:0]  pushed;
  logic [1023:0] joined;
  logic [7:0]    total;
  logic          full, room, push;
  for (genvar b = 0; b < 64; b++) begin : gen_byte
    assign pushed[8*b+:8] = 7'(b) < push_bytes_i ? push_data_i[8*b+:8] : 8'd0;
  end
  assign joined = {512'd0, held_q} | ({512'd0, pushed} << {fill_q, 3'd0});
  assign total = 8'(fill_q) + 8'(push_bytes_i);
  assign full = total > 8'd64;
  assign room = !out_valid_o || out_ready_i;
  assign push_ready_o = !full || room;
  assign push = push_valid_i && push_ready_o;
  assign ended_o = end_i && fill_q == '0;

  logic leave;
  assign leave = end_i && fill_q != '0 && room;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_o <= 1'b0;
      fill_q <= '0;
      held_q <= '0;
    end else begin
      if (room) out_valid_o <= leave || (push && full);
      if (push) begin
        fill_q <= full ? 7'(total - 8'd64) : 7'(total);
        held_q <= full ? joined[1023:512] : joined[511:0];
      end else if (leave) begin
        fill_q <= '0;
        held_q <= '0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (room) begin
      out_data_o <= leave ? held_q : joined[511:0];
      out_keep_o <= leave ? ~(64'hffff_ffff_ffff_fffe << (fill_q - 7'd1)) : '1;
      out_last_o <= leave;
      out_failed_o <= leave && end_failed_i;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    assert (!rst_ni || !push_valid_i || push_bytes_i <= 7'd64) else $error("%m: more than a word is pushed");
    assert (!rst_ni || !push_valid_i || !end_i) else $error("%m: pushed at the end");
  end
`endif

endmodule
