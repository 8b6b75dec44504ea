// Proof of unisono_smi_push with credits: it never sends a packet for which the receiver has no place,
// nor any before the receiver has opened its end, however control packets and stalls fall.
//
// The receiver, rank 1, is honest: it opens a message once, after it has had the last packet of the
// one before, and tells of no more packets than it has got. Rank 0 may say whatever it likes. The proof
// counts what the receiver holds: it must never be more than Window.

module unisono_smi_push_proof
  import unisono_smi_pkg::*;
#(
  parameter int unsigned Window    = 2,
  parameter int unsigned WordBytes = 8,
  localparam int unsigned Width    = 256,
  localparam int unsigned LaneBits = $clog2(WordBytes + 1)
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input logic                   open_valid_i,
  input open_t                  open_i,
  input logic                   in_valid_i,
  input logic [WordBytes*8-1:0] in_data_i,
  input logic [LaneBits-1:0]    in_count_i,
  input logic                   in_flush_i,
  input logic                   out_ready_i,
  input logic                   control_valid_i,
  input logic                   control_src_i,
  input control_t               control_i
);

  logic             open_ready, in_ready, out_valid, control_ready, differ_valid;
  logic [Width-1:0] out_data;
  differ_t          differ;

  unisono_smi_push #(
    .PacketBytes(32),
    .WordBytes  (WordBytes),
    .MaxRanks   (2),
    .Window     (Window),
    .IdleFlush  (2),
    .AskAfter   (2)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .rank_i         (16'd0),
    .open_valid_i,
    .open_ready_o   (open_ready),
    .open_i,
    .tree_i         (1'b0),
    .in_valid_i,
    .in_ready_o     (in_ready),
    .in_data_i,
    .in_count_i,
    .in_flush_i,
    .out_valid_o    (out_valid),
    .out_ready_i,
    .out_data_o     (out_data),
    .control_valid_i,
    .control_ready_o(control_ready),
    .control_data_i ({5'd0, OpSynch, 8'd0, 8'd0, 7'd0, control_src_i, 224'(control_i)}),
    .differ_valid_o (differ_valid),
    .differ_o       (differ)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb begin
    if (!started_q) begin
      reset_first: assume (!rst_ni);
    end
    with_credits: assume (open_i.credits && open_i.peer == 16'd1);
    short_words: assume ((32'(in_count_i) << open_i.size) <= WordBytes);
  end

  // The receiver: it is open, and holds so many packets.
  typedef logic [$clog2(Window+2)-1:0] held_t;
  logic  open_q, honest, first, places, data, last;
  held_t held_q;

  assign honest = control_valid_i && control_src_i && control_i.kind == ControlPlaces;
  assign first  = honest && control_i.first;
  assign places = honest && !control_i.first;
  assign data   = out_valid && out_ready_i && op_e'(out_data[250:248]) != OpSynch;
  assign last   = data && op_e'(out_data[250:248]) == OpLast;

  always_comb begin
    opens_once: assume (!first || !open_q);
    tells_the_truth: assume (!places || control_i.packets <= 32'(held_q));
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      open_q <= 1'b0;
      held_q <= '0;
    end else begin
      open_q <= first || (open_q && !last);
      if (first) begin
        held_q <= '0;
      end else begin
        held_q <= held_q + held_t'(data) - (places ? held_t'(control_i.packets) : '0);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      if (data) receiver_is_open: assert (open_q);
      if (data) place_for_it: assert (32'(held_q) < Window);
    end
  end

endmodule
