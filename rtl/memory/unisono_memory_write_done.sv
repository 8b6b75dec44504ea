// Slots of bursts in flight, and completions of commands: a command is done when the memory has answered for all of its
// bursts. Answers come in any order, completions in that of commands.
//
// Latency: from the last answer to done_valid_o 2 cycles. Throughput: a burst per cycle.

module unisono_memory_write_done #(
  parameter int unsigned UserWidth   = 8,
  parameter int unsigned Outstanding = 16,
  localparam int unsigned IdWidth    = $clog2(Outstanding)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // A burst is complete, or a command that has none (empty); it owns its slot from its first beat on, because none is
  // made without a free one.
  output logic                 space_o,
  output logic [IdWidth-1:0]   slot_o,
  input  logic                 close_i,
  input  logic                 empty_i,
  input  logic                 end_i,           // it is the last of its command
  input  logic                 mismatch_i,
  input  logic [UserWidth-1:0] user_i,

  // Answers, which change nothing but flags, so they are never held up.
  input  logic                 answer_valid_i,
  input  logic [IdWidth-1:0]   answer_id_i,
  input  logic                 answer_error_i,

  output logic                 done_valid_o,
  input  logic                 done_ready_i,
  output logic [UserWidth-1:0] done_user_o,
  output logic                 done_error_o
);

  typedef struct packed {
    logic                 ends;      // a command
    logic                 mismatch;
    logic [UserWidth-1:0] user;
  } slot_t;

  slot_t                  slots [Outstanding];
  slot_t                  head;
  logic [Outstanding-1:0] answered_q, failed_q;
  logic                   error_q, retire, done_ready;
  logic [IdWidth:0]       slots_q;
  logic [IdWidth-1:0]     open_slot_q, head_slot_q;

  // They never go beyond their size, a power of two, so the top bit says that there is none.
  assign space_o = !slots_q[IdWidth];
  assign slot_o  = open_slot_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      slots_q     <= '0;
      open_slot_q <= '0;
      head_slot_q <= '0;
    end else begin
      slots_q     <= slots_q + (IdWidth + 1)'(close_i) - (IdWidth + 1)'(retire);
      open_slot_q <= open_slot_q + IdWidth'(close_i);
      head_slot_q <= head_slot_q + IdWidth'(retire);
    end
  end

  always_ff @(posedge clk_i) begin
    if (close_i) begin
      slots[open_slot_q] <= '{ends: end_i, mismatch: mismatch_i, user: user_i};
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned s = 0; s < Outstanding; s++) begin
      if (close_i && open_slot_q == IdWidth'(s)) begin
        answered_q[s] <= empty_i;
        failed_q[s]   <= 1'b0;
      end else if (answer_valid_i && answer_id_i == IdWidth'(s)) begin
        answered_q[s] <= 1'b1;
        failed_q[s]   <= answer_error_i;
      end
    end
  end

  assign head   = slots[head_slot_q];
  assign retire = slots_q != '0 && answered_q[head_slot_q] && (done_ready || !head.ends);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      error_q <= 1'b0;
    end else if (retire) begin
      error_q <= !head.ends && (error_q || failed_q[head_slot_q]);
    end
  end

  unisono_skid #(
    .Width(UserWidth + 1)
  ) u_done (
    .clk_i,
    .rst_ni,
    .in_valid_i (slots_q != '0 && answered_q[head_slot_q] && head.ends),
    .in_ready_o (done_ready),
    .in_data_i  ({head.user, error_q || failed_q[head_slot_q] || head.mismatch}),
    .out_valid_o(done_valid_o),
    .out_ready_i(done_ready_i),
    .out_data_o ({done_user_o, done_error_o})
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && answer_valid_i) begin
      assert (slots_q != '0)
      else $error("unisono_memory_write_done: an answer to no request");
    end
  end
`endif

endmodule
