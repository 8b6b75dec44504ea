// Collectives of a port: stands between the two ends of the port (unisono_smi_push, unisono_smi_pop)
// and the transport, and opens the ends itself.
//
// While no collective is open everything passes through, and the user opens the ends. An open beat
// begins a collective:
//
//   broadcast  the root pushes `count` elements, the others pop them   unisono_smi_bcast
//   reduce     all push, the root pops; a bare root does not push      unisono_smi_reduce
//   scatter    the root pushes `count` for each member, in the order   unisono_smi_members
//              of the list; all pop `count`, the root its own part
//   gather     all push `count`, the root too; the root pops all       unisono_smi_members
//
// It closes by itself when this rank has no more to do; then the next may be opened. A kind that is
// not built is refused: the beat is taken, refused_o is high for a cycle, and nothing happens.
//
// Latency: a cycle from the beat to the opening of the ends; packets pass through without a register,
// but for those of the units. Throughput: that of the units.

module unisono_smi_collective
  import unisono_plugin_pkg::*;
#(
  parameter int unsigned PacketBytes = 32,
  parameter int unsigned MaxRanks    = 128,
  // What is built.
  parameter bit          Bcast       = 1'b1,
  parameter bit          Reduce      = 1'b1,
  parameter bit          Members     = 1'b1,
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t  Funcs       = AllFuncs,
  // Entries of the table of members.
  parameter int unsigned Entries     = 256,
  // Places of the queue in front of the port, and of one for a child of a reduction.
  parameter int unsigned Window      = 12,
  parameter int unsigned ChildDepth  = 16,
  localparam int unsigned Width      = PacketBytes * 8
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [unisono_smi_pkg::RankBits-1:0] rank_i,

  input  logic                         open_valid_i,
  output logic                         open_ready_o,
  input  unisono_smi_pkg::collective_t open_i,
  output logic                         refused_o,
  // A collective is open.
  output logic                         busy_o,
  // The ends that are opened now belong to a tree.
  output logic                         tree_o,

  input  logic                         member_wr_en_i,
  input  logic [7:0]                   member_wr_address_i,
  input  logic [unisono_smi_pkg::RankBits-1:0] member_wr_rank_i,

  // Opening beats of the user, and to the ends.
  input  logic                   push_open_valid_i,
  output logic                   push_open_ready_o,
  input  unisono_smi_pkg::open_t push_open_i,
  output logic                   push_open_valid_o,
  input  logic                   push_open_ready_i,
  output unisono_smi_pkg::open_t push_open_o,
  input  logic                   pop_open_valid_i,
  output logic                   pop_open_ready_o,
  input  unisono_smi_pkg::open_t pop_open_i,
  output logic                   pop_open_valid_o,
  input  logic                   pop_open_ready_i,
  output unisono_smi_pkg::open_t pop_open_o,

  // Packets of the ends: data from push, data to pop, control from pop, control to push.
  input  logic                   push_valid_i,
  output logic                   push_ready_o,
  input  logic [Width-1:0]       push_data_i,
  output logic                   pop_valid_o,
  input  logic                   pop_ready_i,
  output logic [Width-1:0]       pop_data_o,
  input  logic                   tell_valid_i,
  output logic                   tell_ready_o,
  input  logic [Width-1:0]       tell_data_i,
  output logic                   told_valid_o,
  output logic [Width-1:0]       told_data_o,

  // And of the transport.
  output logic                   send_valid_o,
  input  logic                   send_ready_i,
  output logic [Width-1:0]       send_data_o,
  input  logic                   receive_valid_i,
  output logic                   receive_ready_o,
  input  logic [Width-1:0]       receive_data_i,
  output logic                   send_control_valid_o,
  input  logic                   send_control_ready_i,
  output logic [Width-1:0]       send_control_data_o,
  input  logic                   receive_control_valid_i,
  input  logic [Width-1:0]       receive_control_data_i,

  output logic                   differ_valid_o,
  output unisono_smi_pkg::differ_t differ_o,
  // A packet came of a rank that is no neighbour.
  output logic                   foreign_valid_o,
  output logic [unisono_smi_pkg::RankBits-1:0] foreign_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned Neighbours = Children + 1;
  localparam int unsigned ControlBits = $bits(control_t);

  if (Window > 255 || ChildDepth > 255) begin : gen_bad_window
    $error("unisono_smi_collective: a queue of a tree has at most 255 places");
  end

  // ---- The collective that is open.
  collective_t place_q;
  logic        active_q, push_due_q, pop_due_q, built, begin_now, ends;
  logic        is_bcast, is_reduce, tree, members_run, unit_done;
  logic        opens_push, opens_pop, from_members, to_push;

  always_comb begin
    case (open_i.kind)
      OpBroadcast:         built = Bcast;
      OpReduce:            built = Reduce;
      OpScatter, OpGather: built = Members;
      default:             built = 1'b0;
    endcase
  end
  assign open_ready_o = !active_q && push_open_ready_i && pop_open_ready_i && !push_valid_i;
  assign begin_now    = open_valid_i && open_ready_o && built;
  assign busy_o       = active_q;
  always_ff @(posedge clk_i) begin
    refused_o <= rst_ni && open_valid_i && open_ready_o && !built;
  end

  // Ends that this rank opens once; those of the root of a scatter or gather are opened by members.
  assign from_members = open_i.top && (open_i.kind == OpScatter || open_i.kind == OpGather);
  assign opens_push   = (open_i.kind == OpReduce && !(open_i.top && open_i.bare)) || open_i.kind == OpGather
                        || (open_i.kind == OpBroadcast && open_i.top);
  assign opens_pop    = open_i.kind == OpScatter || (open_i.kind == OpBroadcast && !open_i.top)
                        || (open_i.kind == OpReduce && open_i.top);

  assign is_bcast  = active_q && place_q.kind == OpBroadcast;
  assign is_reduce = active_q && place_q.kind == OpReduce;
  assign tree      = is_bcast || is_reduce;
  assign tree_o    = tree;
  assign ends      = active_q && !push_due_q && !pop_due_q && !members_run && push_open_ready_i
                     && pop_open_ready_i && !push_valid_i && (!tree || unit_done);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q   <= 1'b0;
      push_due_q <= 1'b0;
      pop_due_q  <= 1'b0;
    end else if (begin_now) begin
      active_q   <= 1'b1;
      push_due_q <= opens_push;
      pop_due_q  <= opens_pop;
    end else begin
      if (push_open_ready_i) begin
        push_due_q <= 1'b0;
      end
      if (pop_open_ready_i) begin
        pop_due_q <= 1'b0;
      end
      if (ends) begin
        active_q <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (begin_now) begin
      place_q <= open_i;
    end
  end

  // ---- Opening the ends.
  logic                member_valid;
  logic [RankBits-1:0] member;
  open_t               opened;

  // A channel to the root, or to a member.
  always_comb begin
    opened = '{
      peer:    place_q.root,
      port:    place_q.port,
      count:   place_q.count,
      size:    place_q.size,
      credits: !tree,
      strict:  1'b0,
      window:  '0,
      lanes:   place_q.lanes
    };
  end
  assign to_push = place_q.kind == OpScatter;

  always_comb begin
    push_open_valid_o = active_q ? push_due_q || (member_valid && to_push)
                                 : push_open_valid_i && !open_valid_i;
    pop_open_valid_o  = active_q ? pop_due_q || (member_valid && !to_push)
                                 : pop_open_valid_i && !open_valid_i;
    push_open_o       = push_open_i;
    pop_open_o        = pop_open_i;
    if (active_q) begin
      push_open_o        = opened;
      // Whole packets.
      push_open_o.strict = is_reduce;
      pop_open_o         = opened;
      pop_open_o.strict  = is_reduce;
      if (member_valid && to_push) begin
        push_open_o.peer = member;
      end
      if (member_valid && !to_push) begin
        pop_open_o.peer = member;
      end
    end
  end
  assign push_open_ready_o = !active_q && !open_valid_i && push_open_ready_i;
  assign pop_open_ready_o  = !active_q && !open_valid_i && pop_open_ready_i;

  if (Members) begin : gen_members
    unisono_smi_members #(
      .Entries(Entries)
    ) u_members (
      .clk_i,
      .rst_ni,
      .member_wr_en_i,
      .member_wr_address_i,
      .member_wr_rank_i,
      .start_i     (begin_now && from_members),
      .member_i    (open_i.member),
      .members_i   (open_i.members),
      .open_valid_o(member_valid),
      .open_ready_i(to_push ? push_open_ready_i : pop_open_ready_i),
      .peer_o      (member),
      .running_o   (members_run)
    );
  end else begin : gen_no_members
    logic unused_members;
    assign unused_members = ^{member_wr_en_i, member_wr_address_i, member_wr_rank_i, from_members};
    assign member_valid   = 1'b0;
    assign member         = '0;
    assign members_run    = 1'b0;
  end

  // ---- The units.
  logic                  b_in_ready, b_own_valid, b_out_valid, b_freed, b_done;
  logic [Width-1:0]      b_own_data, b_out_data;
  logic [Children-1:0]   b_spend, r_freed;
  logic                  r_own_ready, r_in_ready, r_out_valid, r_spend, r_done;
  logic [Width-1:0]      r_out_data;
  logic [Neighbours-1:0] to, from, may, spend, freed;
  logic [Children-1:0]   children;

  always_comb begin
    for (int unsigned c = 0; c < Children; c++) begin
      children[c] = 32'(place_q.children) > c;
    end
  end
  assign to    = is_bcast ? {1'b0, children} : {!place_q.top, {Children{1'b0}}};
  assign from  = is_bcast ? {!place_q.top, {Children{1'b0}}} : {1'b0, children};
  assign spend = is_bcast ? {1'b0, b_spend} : {r_spend, {Children{1'b0}}};
  assign freed = is_bcast ? {b_freed, {Children{1'b0}}} : {1'b0, r_freed};
  assign unit_done = is_bcast ? b_done : r_done;

  if (Bcast) begin : gen_bcast
    unisono_smi_bcast #(
      .PacketBytes(PacketBytes)
    ) u_bcast (
      .clk_i,
      .rst_ni,
      .active_i   (is_bcast),
      .top_i      (place_q.top),
      .children_i (place_q.children),
      .child_i    (place_q.child),
      .in_valid_i (place_q.top ? push_valid_i : receive_valid_i),
      .in_ready_o (b_in_ready),
      .in_data_i  (place_q.top ? push_data_i : receive_data_i),
      .own_valid_o(b_own_valid),
      .own_ready_i(pop_ready_i),
      .own_data_o (b_own_data),
      .out_valid_o(b_out_valid),
      .out_ready_i(send_ready_i),
      .out_data_o (b_out_data),
      .may_i      (may[Children-1:0]),
      .spend_o    (b_spend),
      .freed_o    (b_freed),
      .done_o     (b_done)
    );
  end else begin : gen_no_bcast
    assign {b_in_ready, b_own_valid, b_out_valid, b_freed, b_done} = '0;
    assign {b_own_data, b_out_data, b_spend} = '0;
  end

  if (Reduce) begin : gen_reduce
    unisono_smi_reduce #(
      .PacketBytes(PacketBytes),
      .Datatypes  (Datatypes),
      .Funcs      (Funcs),
      .ChildDepth (ChildDepth)
    ) u_reduce (
      .clk_i,
      .rst_ni,
      .rank_i,
      .active_i       (is_reduce),
      .place_i        (place_q),
      .own_valid_i    (push_valid_i),
      .own_ready_o    (r_own_ready),
      .own_data_i     (push_data_i),
      .in_valid_i     (receive_valid_i),
      .in_ready_o     (r_in_ready),
      .in_data_i      (receive_data_i),
      .out_valid_o    (r_out_valid),
      .out_ready_i    (place_q.top ? pop_ready_i : send_ready_i),
      .out_data_o     (r_out_data),
      .may_i          (may[Children]),
      .spend_o        (r_spend),
      .freed_o        (r_freed),
      .done_o         (r_done),
      .foreign_valid_o,
      .foreign_o
    );
  end else begin : gen_no_reduce
    assign {r_own_ready, r_in_ready, r_out_valid, r_spend, r_done, r_freed} = '0;
    assign r_out_data = '0;
    assign {foreign_valid_o, foreign_o} = '0;
  end

  // ---- Control: that of trees is told apart by a bit.
  logic             tree_control, t_valid, t_ready;
  logic [Width-1:0] t_data;
  control_t         told;

  assign told         = control_t'(receive_control_data_i[ControlBits-1:0]);
  assign tree_control = receive_control_valid_i && told.tree;
  assign told_valid_o = receive_control_valid_i && !told.tree;
  assign told_data_o  = receive_control_data_i;
  logic unused_told;
  assign unused_told = ^told;

  if (Bcast || Reduce) begin : gen_tree
    unisono_smi_tree #(
      .PacketBytes(PacketBytes),
      .MaxRanks   (MaxRanks)
    ) u_tree (
      .clk_i,
      .rst_ni,
      .rank_i,
      .active_i       (tree),
      .place_i        (place_q),
      .to_i           (to),
      .from_i         (from),
      .window_i       (is_bcast ? 8'(Window) : 8'(ChildDepth)),
      .may_o          (may),
      .spend_i        (spend),
      .freed_i        (freed),
      .control_valid_i(tree_control),
      .control_data_i (receive_control_data_i),
      .control_valid_o(t_valid),
      .control_ready_i(t_ready),
      .control_data_o (t_data),
      .differ_valid_o,
      .differ_o
    );
  end else begin : gen_no_tree
    logic unused_tree;
    assign unused_tree = ^{tree_control, to, from, spend, freed, t_ready};
    assign may         = '0;
    assign t_valid     = 1'b0;
    assign t_data      = '0;
    assign {differ_valid_o, differ_o} = '0;
  end
  assign send_control_valid_o = t_valid || tell_valid_i;
  assign send_control_data_o  = t_valid ? t_data : tell_data_i;
  assign t_ready              = send_control_ready_i;
  assign tell_ready_o         = send_control_ready_i && !t_valid;

  // ---- Data.
  always_comb begin
    push_ready_o    = send_ready_i;
    send_valid_o    = push_valid_i;
    send_data_o     = push_data_i;
    receive_ready_o = pop_ready_i;
    pop_valid_o     = receive_valid_i;
    pop_data_o      = receive_data_i;
    if (is_bcast) begin
      push_ready_o    = place_q.top && b_in_ready;
      send_valid_o    = b_out_valid;
      send_data_o     = b_out_data;
      receive_ready_o = !place_q.top && b_in_ready;
      pop_valid_o     = b_own_valid;
      pop_data_o      = b_own_data;
    end else if (is_reduce) begin
      push_ready_o    = r_own_ready;
      send_valid_o    = r_out_valid && !place_q.top;
      send_data_o     = r_out_data;
      receive_ready_o = r_in_ready;
      pop_valid_o     = r_out_valid && place_q.top;
      pop_data_o      = r_out_data;
    end
  end

  logic unused;
  assign unused = ^{place_q, to_push};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && begin_now) begin
      assert (32'(open_i.children) <= Children) else $error("%m: more children than a node can have");
      assert (open_i.top == (open_i.root == rank_i)) else $error("%m: top is not the root");
      assert (open_i.kind != OpReduce || !open_i.bare || (open_i.top && 32'(open_i.children) == 1))
        else $error("%m: only a root with one child is bare");
    end
  end
`endif

endmodule
