// Proof of unisono_smi_pop with credits: it is what unisono_smi_push_proof takes a receiver for. The first
// control packet of a message is told once, before any other; and no more packets are told of than have
// left the queue since the channel was opened.

module unisono_smi_pop_proof
  import unisono_smi_pkg::*;
#(
  parameter int unsigned Batch     = 2,
  parameter int unsigned WordBytes = 8,
  localparam int unsigned Width    = 256,
  localparam int unsigned LaneBits = $clog2(WordBytes + 1)
) (
  input logic         clk_i,
  input logic         rst_ni,
  input logic         open_valid_i,
  input open_t        open_i,
  input logic         in_valid_i,
  input logic         in_src_i,
  input op_e          in_op_i,
  input logic [4:0]   in_count_i,
  input logic [223:0] in_payload_i,
  input logic         out_ready_i,
  input logic         control_ready_i
);

  logic                   open_ready, in_ready, out_valid, out_last, control_valid, complains, differs;
  logic [WordBytes*8-1:0] out_data;
  logic [LaneBits-1:0]    out_count;
  logic [Width-1:0]       control_data;
  complaint_t             complaint;
  differ_t                differ;
  control_t               control;

  unisono_smi_pop #(
    .PacketBytes(32),
    .WordBytes  (WordBytes),
    .Batch      (Batch),
    .MaxRanks   (2)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .rank_i           (16'd0),
    .open_valid_i,
    .open_ready_o     (open_ready),
    .open_i,
    .tree_i           (1'b0),
    .in_valid_i,
    .in_ready_o       (in_ready),
    .in_data_i        ({in_count_i, in_op_i, 8'd0, 8'd0, 7'd0, in_src_i, in_payload_i}),
    .out_valid_o      (out_valid),
    .out_ready_i,
    .out_data_o       (out_data),
    .out_count_o      (out_count),
    .out_last_o       (out_last),
    .control_valid_o  (control_valid),
    .control_ready_i,
    .control_data_o   (control_data),
    .told_valid_i     (1'b0),
    .told_data_i      ('0),
    .complaint_valid_o(complains),
    .complaint_o      (complaint),
    .differ_valid_o   (differs),
    .differ_o         (differ)
  );
  assign control = control_t'(control_data[223:0]);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb begin
    if (!started_q) begin
      reset_first: assume (!rst_ni);
    end
    with_credits: assume (open_i.credits && open_i.peer == 16'd1);
    // Control goes out in the end, before the next channel is opened: the sender waits for it.
    if (control_valid && open_ready) told_first: assume (!open_valid_i);
  end

  // Packets that have left the queue, and have not been told of. A few bits: what is never more than
  // these can count is cut off by the last assumption.
  typedef logic [3:0] count_t;
  count_t owed_q;
  logic   begun_q, takes, tells;
  assign takes = in_valid_i && in_ready;
  assign tells = control_valid && control_ready_i;

  always_comb begin
    few: assume (!takes || owed_q < 4'd14);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || (open_valid_i && open_ready)) begin
      owed_q  <= '0;
      begun_q <= 1'b0;
    end else begin
      owed_q  <= owed_q + count_t'(takes) - (tells ? count_t'(control.packets) : '0);
      begun_q <= begun_q || tells;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q && tells) begin
      tells_the_truth: assert (control.packets <= 32'(owed_q));
      first_comes_first: assert (control.first == !begun_q);
    end
  end

endmodule
