// Support unit of a reduction: combines the packets of this node's sending end with those of its
// children in the tree, element by element, and gives the result to the parent, or at the root to the
// node's receiving end.
//
// The order is fixed: own element, then those of the children, as the tree lists them. So the result
// has the same bits in every run, whenever packets come. Packets of children wait in a queue for each
// child; packet i is combined with packet i, so packets begin with the same element at all ends
// (unisono_smi_push, whole). A packet that is not full may come again with the same elements and more.
// Two packets are combined as far as the shorter one goes, which is then used up; the longer one stays
// for those that follow the shorter. So what all have pushed and flushed always gets to the root.
//
// A bare root has one child, and no elements here: the child's packets are what its receiving end gets.
//
// One array of plugins serves all children: of the packets that are under way (up to Flight), one is
// combined with a packet of one child in each cycle. Packets pass each child in order, so the memory
// of partial results is a queue behind each child.
//
// Latency: 4 cycles and the plugin's for each child; without children 1. Throughput: a packet in as
// many cycles as there are children, at least 1, if as many packets are under way as that takes.

module unisono_smi_reduce
  import unisono_plugin_pkg::*;
#(
  parameter int unsigned PacketBytes = 32,
  // What the plugins compute.
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t Funcs        = AllFuncs,
  // Places for packets of each child, a power of two.
  parameter int unsigned ChildDepth  = 16,
  // Packets that are partly combined, behind each child, a power of two.
  parameter int unsigned Flight      = 16,
  localparam int unsigned Width      = PacketBytes * 8
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic [unisono_smi_pkg::RankBits-1:0] rank_i,

  // Holds while a message is under way.
  input  logic                         active_i,
  input  unisono_smi_pkg::collective_t place_i,

  // From the node's sending end.
  input  logic                         own_valid_i,
  output logic                         own_ready_o,
  input  logic [Width-1:0]             own_data_i,

  // From the network: taken at once, as long as children send no more than they have places for.
  input  logic                         in_valid_i,
  output logic                         in_ready_o,
  input  logic [Width-1:0]             in_data_i,

  // The result: to the parent if that has a place (may_i), or to the node's receiving end.
  output logic                         out_valid_o,
  input  logic                         out_ready_i,
  output logic [Width-1:0]             out_data_o,
  input  logic                         may_i,
  output logic                         spend_o,

  // A packet of a child has been taken out of its queue.
  output logic [unisono_smi_pkg::Children-1:0] freed_o,
  // The last packet of the message has left.
  output logic                         done_o,

  // For a cycle: a packet came of a rank that is no child, and was left out.
  output logic                         foreign_valid_o,
  output logic [unisono_smi_pkg::RankBits-1:0] foreign_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned HeaderBytes  = header_bytes(PacketBytes);
  localparam int unsigned PayloadBits  = Width - HeaderBytes * 8;
  localparam int unsigned IndexBits    = $clog2(Flight);
  localparam int unsigned StageBits    = $clog2(Children);
  // What goes with a packet through the plugins, beside its last flag: its stage and its count.
  localparam int unsigned UserBits     = StageBits + CountBits;

  if (Flight < 2 || (Flight & (Flight - 1)) != 0) begin : gen_bad_flight
    $error("unisono_smi_reduce: Flight must be a power of two");
  end

  typedef logic [IndexBits:0] index_t;
  // What of a packet is known before its payload is read.
  typedef struct packed {
    logic                 last;
    logic [CountBits-1:0] count;
  } mark_t;

  // ---- Packets of children, a queue for each.
  logic [Children-1:0] of_child, head, read, pop, room;
  logic [StageBits-1:0] in_child;
  header_t             in_header;
  logic                in_child_valid;
  logic [Width-1:0]    child_data;
  mark_t               in_mark;
  mark_t [Children-1:0] heads;
  logic [Children-1:0] unused_last;
  mark_t               unused_popped;
  logic                keep;

  assign in_header = header_of(PacketBytes, in_data_i[Width-1-:WideHeaderBits]);
  always_comb begin
    in_child = '0;
    for (int unsigned c = 0; c < Children; c++) begin
      of_child[c] = 32'(place_i.children) > c && in_header.src == place_i.child[c];
      if (of_child[c]) begin
        in_child |= StageBits'(c);
      end
    end
  end
  assign in_child_valid = active_i && in_valid_i && of_child != '0;
  assign in_ready_o     = active_i;
  assign in_mark        = '{last: in_header.op == OpLast, count: in_header.count};

  always_ff @(posedge clk_i) begin
    foreign_valid_o <= rst_ni && active_i && in_valid_i && of_child == '0;
    foreign_o       <= in_header.src;
  end

  unisono_smi_queue #(
    .Width    (Width),
    .RouteBits($bits(mark_t)),
    .Channels (Children),
    .Depth    (ChildDepth),
    .Slack    (0)
  ) u_children (
    .clk_i,
    .rst_ni      (rst_ni && active_i),
    .in_valid_i  (in_child_valid),
    .in_channel_i(in_child),
    .in_route_i  (in_mark),
    .in_last_i   (1'b1),
    .in_data_i,
    .room_o      (room),
    .head_valid_o(head),
    .head_route_o(heads),
    .head_last_o (unused_last),
    .pop_i       (read),
    .keep_i      (keep),
    .out_route_o (unused_popped),
    .out_data_o  (child_data)
  );
  assign freed_o = pop;

  // ---- What is done next. Stage s combines with child s; its result is partial unless s is the last.
  // Of each stage: operands issued, results that have come, partial results of the one before used up.
  index_t [Children-1:0] started_q, done_q, used_q;
  mark_t [Children-1:0]  lefts;
  logic [Children-1:0]   stages, finals, ready, chosen, left_over, head_over;
  logic                  leaf, bare, issue, pend_q, pend_free;
  logic                  array_ready, result_valid, result_ready, result_last, result_final;
  logic [StageBits-1:0]  chosen_stage, result_stage;
  mark_t                 own_mark, chosen_mark;
  header_t               own_header;

  assign own_header = header_of(PacketBytes, own_data_i[Width-1-:WideHeaderBits]);
  assign own_mark   = '{last: own_header.op == OpLast, count: own_header.count};
  assign leaf       = place_i.children == '0;
  assign bare       = place_i.top && place_i.bare;
  always_comb begin
    for (int unsigned s = 0; s < Children; s++) begin
      stages[s] = 32'(place_i.children) > s;
      finals[s] = 32'(place_i.children) == s + 1;
    end
  end
  // The packet that ends first is used up; both are if they end alike. The oldest packets are those
  // of the last stage: it goes first.
  always_comb begin
    for (int unsigned s = 0; s < Children; s++) begin
      left_over[s] = lefts[s].count <= heads[s].count;
      head_over[s] = heads[s].count <= lefts[s].count || (s == 0 && bare);
      ready[s]     = stages[s] && head[s]
                     && (s == 0 ? own_valid_i || bare : used_q[s] != done_q[(s+Children-1)%Children])
                     && (finals[s] || started_q[s] - used_q[(s+1)%Children] != index_t'(Flight));
    end
    chosen       = '0;
    chosen_stage = '0;
    keep         = 1'b0;
    chosen_mark  = '0;
    for (int unsigned s = 0; s < Children; s++) begin
      if (ready[s]) begin
        chosen       = '0;
        chosen[s]    = 1'b1;
        chosen_stage = StageBits'(s);
        keep         = !head_over[s];
        chosen_mark  = '{
          last:  s == 0 && bare ? heads[s].last : lefts[s].last && left_over[s],
          count: head_over[s] ? heads[s].count : lefts[s].count
        };
      end
    end
  end
  assign issue = active_i && !leaf && pend_free && ready != '0;
  assign read  = issue ? chosen : '0;
  assign pop   = keep ? '0 : read;

  // ---- Partial results: a queue behind each stage, payloads in one memory.
  (* ram_style = "distributed" *) logic [PayloadBits-1:0] parts [Children*Flight];
  logic                   part_write, pend_bare_q;
  mark_t                  result_mark, pend_mark_q;
  logic [PayloadBits-1:0] part_in, part_out, pend_part_q;
  logic [StageBits-1:0]   pend_stage_q, part_stage;

  assign part_stage = chosen_stage - StageBits'(1);
  assign part_out   = parts[{part_stage, used_q[chosen_stage][IndexBits-1:0]}];
  always_ff @(posedge clk_i) begin
    if (part_write) begin
      parts[{result_stage, done_q[result_stage][IndexBits-1:0]}] <= part_in;
    end
  end
  assign lefts[0] = own_mark;
  for (genvar s = 1; s < Children; s++) begin : gen_marks
    (* ram_style = "distributed" *) mark_t marks [Flight];
    always_ff @(posedge clk_i) begin
      if (part_write && result_stage == StageBits'(s - 1)) begin
        marks[done_q[s-1][IndexBits-1:0]] <= result_mark;
      end
    end
    assign lefts[s] = marks[used_q[s][IndexBits-1:0]];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || !active_i) begin
      pend_q <= 1'b0;
    end else if (pend_free) begin
      pend_q <= issue;
    end
  end
  always_ff @(posedge clk_i) begin
    if (pend_free) begin
      pend_stage_q <= chosen_stage;
      pend_mark_q  <= chosen_mark;
      pend_bare_q  <= bare;
      pend_part_q  <= chosen[0] ? own_data_i[PayloadBits-1:0] : part_out;
    end
  end
  assign pend_free = !pend_q || array_ready;

  // ---- The plugins.
  logic [Width-1:0]         result_data;
  logic [CountBits-1:0]     result_count;
  logic                     unused_refused, array_idle;
  logic [PacketBytes-1:0]   unused_keep;
  logic                     unused_plug;
  logic [23:0]              unused_datatypes;
  logic [15:0]              unused_funcs;
  logic                     plug_enable, plug_swap, plug_use0, plug_use1, plug_last;
  logic [Width-1:0]         plug_op0, plug_op1;
  logic [7:0]               plug_func;
  logic [5:0]               plug_dtype;
  logic [PacketBytes-1:0]   plug_keep;
  logic [UserBits-1:0]      plug_user;

  // Not in reset between messages: there the clocks of the plugins run, and here nothing is left inside.
  unisono_plugin_array #(
    .DataBytes(PacketBytes),
    .UserBits (UserBits),
    .Datatypes(Datatypes),
    .Funcs    (Funcs),
    .Depth    (16)
  ) u_array (
    .clk_i,
    .rst_ni,
    .in_valid_i            (pend_q),
    .in_ready_o            (array_ready),
    .in_op0_i              (Width'(pend_part_q)),
    .in_op1_i              (Width'(child_data[PayloadBits-1:0])),
    .in_func_i             (pend_bare_q ? 8'd0 : place_i.func),  // no function: the child's elements
    .in_dtype_i            (place_i.dtype),
    .in_swap_i             (1'b0),
    .in_use0_i             (!pend_bare_q),
    .in_use1_i             (1'b1),
    .in_keep_i             ('1),
    .in_last_i             (pend_mark_q.last),
    .in_user_i             ({pend_stage_q, pend_mark_q.count}),
    .out_valid_o           (result_valid),
    .out_ready_i           (result_ready),
    .out_data_o            (result_data),
    .out_keep_o            (unused_keep),
    .out_last_o            (result_last),
    .out_user_o            ({result_stage, result_count}),
    .out_refused_o         (unused_refused),
    .plug_enable_o         (plug_enable),
    .plug_op0_o            (plug_op0),
    .plug_op1_o            (plug_op1),
    .plug_func_o           (plug_func),
    .plug_dtype_o          (plug_dtype),
    .plug_swap_o           (plug_swap),
    .plug_use0_o           (plug_use0),
    .plug_use1_o           (plug_use1),
    .plug_keep_o           (plug_keep),
    .plug_last_o           (plug_last),
    .plug_user_o           (plug_user),
    .plug_valid_i          ('0),
    .plug_data_i           ('0),
    .plug_keep_i           ('0),
    .plug_last_i           ('0),
    .plug_user_i           ('0),
    .capability_datatypes_o(unused_datatypes),
    .capability_funcs_o    (unused_funcs),
    .idle_o                (array_idle)
  );
  assign unused_plug = ^{plug_enable, plug_op0, plug_op1, plug_func, plug_dtype, plug_swap,
                         plug_use0, plug_use1, plug_keep, plug_last, plug_user};

  // ---- Results: partial ones wait for the next stage.
  assign result_final = finals[result_stage];
  assign part_write   = result_valid && !result_final;
  assign part_in      = result_data[PayloadBits-1:0];
  assign result_mark  = '{last: result_last, count: result_count};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || !active_i) begin
      started_q <= '0;
      done_q    <= '0;
      used_q    <= '0;
    end else begin
      for (int unsigned s = 0; s < Children; s++) begin
        if (read[s]) begin
          started_q[s] <= started_q[s] + index_t'(1);
        end
        if (read[s] && left_over[s]) begin
          used_q[s] <= used_q[s] + index_t'(1);
        end
        if (result_valid && result_ready && result_stage == StageBits'(s)) begin
          done_q[s] <= done_q[s] + index_t'(1);
        end
      end
    end
  end

  // ---- What leaves: a register, with the header of this node.
  logic                      out_valid_q, out_free, offer, leave, leave_last, last_q;
  logic [Width-1:0]          out_data_q;
  logic [PayloadBits-1:0]    leave_payload;
  header_t                   header;
  logic [WideHeaderBits-1:0] packed_header;

  assign out_free      = !out_valid_q || out_ready_i;
  assign offer         = leaf ? own_valid_i : result_valid && result_final;
  assign leave         = active_i && offer && out_free && !last_q && (place_i.top || may_i);
  assign spend_o       = leave && !place_i.top;
  assign leave_last    = leaf ? own_mark.last : result_last;
  assign leave_payload = leaf ? own_data_i[PayloadBits-1:0] : result_data[PayloadBits-1:0];
  assign result_ready  = !result_final || leave;
  assign own_ready_o   = leaf ? leave : read[0] && left_over[0] && !bare;

  assign header = '{
    count: leaf ? own_header.count : result_count,
    op:    leave_last ? OpLast : OpSend,
    port:  place_i.port,
    dst:   place_i.top ? rank_i : place_i.parent,
    src:   rank_i
  };
  assign packed_header = header_bits(PacketBytes, header);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || !active_i) begin
      out_valid_q <= 1'b0;
      last_q      <= 1'b0;
    end else begin
      if (out_free) begin
        out_valid_q <= leave;
      end
      last_q <= last_q || (leave && leave_last);
    end
  end
  always_ff @(posedge clk_i) begin
    if (out_free) begin
      out_data_q <= {packed_header[WideHeaderBits-1-:HeaderBytes*8], leave_payload};
    end
  end
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_data_q;
  assign done_o      = last_q && !out_valid_q;

  logic unused;
  assign unused = ^{place_i, in_header, own_header, child_data, result_data, room, packed_header,
                    unused_popped, unused_refused, array_idle, unused_keep, unused_plug,
                    unused_datatypes, unused_funcs};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && active_i) begin
      assert (!in_child_valid || room[in_child]) else $error("%m: a child sent without a place");
      if (result_valid) assert (!unused_refused) else $error("%m: no plugin computes this");
    end
    if (rst_ni && !active_i) begin
      assert (array_idle) else $error("%m: a packet is left behind the message's last");
    end
  end
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
