// Support unit of a broadcast: gives each packet to the children of this node in the tree, and to the
// node's own receiving end.
//
// At the root packets come from the sending end, elsewhere from the parent. Each is sent once to each
// child, in the order of the list as they have places for it; with a tree along cables, once over each
// cable. It is gone when all have it. The source in its header stays the root.
//
// Latency: 1 cycle. Throughput: a packet in as many cycles as there are children, at least 1.

module unisono_smi_bcast #(
  parameter int unsigned PacketBytes = 32,
  localparam int unsigned Width      = PacketBytes * 8
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  // Holds while a message is under way.
  input  logic                         active_i,
  input  logic                         top_i,
  input  logic [unisono_smi_pkg::ChildrenBits-1:0] children_i,
  input  logic [unisono_smi_pkg::Children-1:0][unisono_smi_pkg::RankBits-1:0] child_i,

  input  logic                         in_valid_i,
  output logic                         in_ready_o,
  input  logic [Width-1:0]             in_data_i,

  // To the node's receiving end; not at the root.
  output logic                         own_valid_o,
  input  logic                         own_ready_i,
  output logic [Width-1:0]             own_data_o,

  // To the network.
  output logic                         out_valid_o,
  input  logic                         out_ready_i,
  output logic [Width-1:0]             out_data_o,

  // Children that have a place, and the one to whom a packet goes.
  input  logic [unisono_smi_pkg::Children-1:0] may_i,
  output logic [unisono_smi_pkg::Children-1:0] spend_o,

  // A packet has been taken.
  output logic                         freed_o,
  // The last packet of the message has left.
  output logic                         done_o
);

  import unisono_smi_pkg::*;

  logic [Children-1:0] all, sent_q, able, chosen;
  logic                own_q, own_now, send, whole, out_free, out_valid_q, last_q;
  logic [Width-1:0]    out_data_q;
  logic [RankBits-1:0] dst;
  header_t             header;

  always_comb begin
    for (int unsigned c = 0; c < Children; c++) begin
      all[c] = 32'(children_i) > c;
    end
  end

  assign header   = header_of(PacketBytes, in_data_i[Width-1-:WideHeaderBits]);
  assign out_free = !out_valid_q || out_ready_i;
  assign able     = all & ~sent_q & may_i;
  assign chosen   = able & (~able + Children'(1));
  assign send     = active_i && in_valid_i && !last_q && out_free && able != '0;
  assign spend_o  = send ? chosen : '0;

  assign own_valid_o = active_i && in_valid_i && !top_i && !own_q && !last_q;
  assign own_data_o  = in_data_i;
  assign own_now     = own_valid_o && own_ready_i;
  // All have it with this cycle.
  assign whole       = active_i && in_valid_i && !last_q && (top_i || own_q || own_now)
                       && (all & ~(sent_q | spend_o)) == '0;
  assign in_ready_o  = whole;
  assign freed_o     = whole && !top_i;

  always_comb begin
    dst = '0;
    for (int unsigned c = 0; c < Children; c++) begin
      if (chosen[c]) begin
        dst |= child_i[c];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || !active_i) begin
      sent_q      <= '0;
      own_q       <= 1'b0;
      last_q      <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      sent_q <= whole ? '0 : sent_q | spend_o;
      own_q  <= !whole && (own_q || own_now);
      if (whole) begin
        last_q <= header.op == OpLast;
      end
      if (out_free) begin
        out_valid_q <= send;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (out_free) begin
      out_data_q <= {with_destination(PacketBytes, in_data_i[Width-1-:WideHeaderBits], dst),
                     in_data_i[Width-WideHeaderBits-1:0]};
    end
  end

  logic unused_header;
  assign unused_header = ^header;

  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_data_q;
  assign done_o      = last_q && !out_valid_q;

`ifndef SYNTHESIS
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_own (
    .clk_i,
    .rst_ni,
    .valid_i(own_valid_o),
    .ready_i(own_ready_i),
    .data_i (own_data_o)
  );
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_data_o)
  );
`endif

endmodule
