// The control of collectives: from a communicator's entry and what comes in to what is done with it, as
// switch/entry.cpp's `action_of`.
//
// The first stage compares the tag's position with the ranges behind all ports at once, the second names the port, the
// third decides. Where `action_of` is told who gave a piece (root of a scatter, block of a gather), the switch knows
// it by the port, and behind it by the member. A piece that does not come by a port by which it can come is nothing:
// one that goes down by another port than the one that leads up, one that goes up by none of those that lead down, and
// one whose giver, by its tag, is behind another port.
//
// Latency: 3 cycles. Throughput: one per cycle. No back-pressure, no reset but of valid_o.

module unisono_switch_ccm
  import unisono_spec_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = MaxPorts  // 4 to MaxPorts
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic                    valid_i,
  input  entry_head_t             head_i,
  input  port_entry_t [Ports-1:0] ports_i,
  input  arriving_t               arriving_i,

  output logic                    valid_o,
  output action_t                 action_o,
  // The same as a set of ports, by their numbers: to which it is sent. Behind the port of `but` there may be one that
  // gave it, beside others.
  output logic [Ports-1:0]        mask_o,
  // The ports that lead down: by these come the shares of a fold.
  output logic [Ports-1:0]        down_o
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_ccm: Ports must be 4 to %0d", MaxPorts);
  end

  typedef logic [Ports-1:0] ports_t;

  // ---------------------------------------------------------------- stage 1: comparisons
  logic               valid1_q, from_up1_q, nobody1_q, alone1_q;
  ports_t             used1_q, hit1_q, came1_q, switch1_q, single1_q;
  place_t [Ports-1:0] behind1_q;      // the position, from the first behind the port on
  arriving_t          arriving1_q;
  logic               has_up1_q;
  port_t              up1_q, first_port1_q;
  logic [PortWidth:0] came;           // number of the entry by whose port it comes, if there is one

  assign came = (PortWidth + 1)'(arriving_i.port) - (PortWidth + 1)'(head_i.first_port);

  always_ff @(posedge clk_i) begin
    valid1_q <= rst_ni && valid_i;
    for (int p = 0; p < int'(Ports); p++) begin
      used1_q[p]   <= port_count_t'(p) < head_i.ports && ports_i[p].count != '0;
      behind1_q[p] <= arriving_i.tag.place - ports_i[p].first;
      // Positions before the first are far away.
      hit1_q[p]    <= port_count_t'(p) < head_i.ports &&
                      count_t'(place_t'(arriving_i.tag.place - ports_i[p].first)) < ports_i[p].count;
      came1_q[p]   <= port_count_t'(p) < head_i.ports && came == (PortWidth + 1)'(p);
      switch1_q[p] <= ports_i[p].is_switch;
      single1_q[p] <= ports_i[p].is_switch || ports_i[p].count == count_t'(1);
    end
    from_up1_q    <= head_i.has_up && arriving_i.port == head_i.up;
    nobody1_q     <= head_i.count == head_i.members && head_i.shares == count_t'(1);
    alone1_q      <= head_i.shares == count_t'(1);
    has_up1_q     <= head_i.has_up;
    up1_q         <= head_i.up;
    first_port1_q <= head_i.first_port;
    arriving1_q   <= arriving_i;
  end

  // ---------------------------------------------------------------- stage 2: which port it is
  logic        valid2_q, place_in2_q, same_port2_q, through2_q, same_member2_q;
  logic        right2_q, down2_q, nobody2_q, alone2_q, has_up2_q, but_all2_q;
  port_t       index2_q, index;
  place_t      member2_q, member;
  logic [4:0]  opcode2_q;
  ports_t      used2_q, hit2_q, up2_q;
  logic [2*Ports-1:0] used_shifted, hit_shifted;

  always_comb begin
    index  = '0;
    member = '0;
    for (int p = 0; p < int'(Ports); p++) begin
      if (hit1_q[p]) index |= port_t'(p);
      if (hit1_q[p]) member |= behind1_q[p];
    end
  end
  assign used_shifted = (2 * Ports)'(used1_q) << first_port1_q;
  assign hit_shifted  = (2 * Ports)'(hit1_q) << first_port1_q;

  always_ff @(posedge clk_i) begin
    valid2_q     <= rst_ni && valid1_q;
    place_in2_q  <= |hit1_q;
    index2_q     <= index;
    member2_q    <= member;
    same_port2_q <= |(hit1_q & came1_q);
    through2_q   <= |(hit1_q & switch1_q);
    but_all2_q   <= |(hit1_q & single1_q);
    same_member2_q <= |(hit1_q & came1_q) && member == arriving1_q.member;
    // It comes by a port by which it can come.
    right2_q     <= arriving1_q.tag.down ? from_up1_q : |came1_q;
    down2_q      <= arriving1_q.tag.down;
    opcode2_q    <= arriving1_q.tag.opcode;
    nobody2_q    <= nobody1_q;
    alone2_q     <= alone1_q;
    has_up2_q    <= has_up1_q;
    used2_q      <= used_shifted[Ports-1:0];
    hit2_q       <= hit_shifted[Ports-1:0];
    for (int p = 0; p < int'(Ports); p++) up2_q[p] <= has_up1_q && up1_q == port_t'(p);
  end

  // ---------------------------------------------------------------- stage 3: the action
  action_t action;
  ports_t  mask;

  always_comb begin
    action = '{kind: ActionNothing, default: '0};
    if (right2_q && !nobody2_q) begin
      unique case (collective_e'({3'd0, opcode2_q}))
        // From its giver to all other sides.
        CollectiveBcast, CollectiveAllgather: begin
          if (down2_q ? !place_in2_q : same_port2_q) begin
            action.up    = !down2_q && has_up2_q;
            action.below = down2_q || !alone2_q;
            if (action.up || action.below) action.kind = ActionPass;
            action.has_but = !down2_q && action.below;
          end
        end
        // From its giver to the position, if this switch is on that way. Behind one port there may be several members,
        // but behind a switch there is a switch for that.
        CollectiveScatter, CollectiveGather: begin
          action.has_only = place_in2_q && !(same_port2_q && (through2_q || same_member2_q));
          action.up       = !place_in2_q && !down2_q && has_up2_q;
          if (action.up || action.has_only) action.kind = ActionPass;
        end
        CollectiveBarrier, CollectiveAllreduce: begin
          action.kind  = down2_q ? ActionPass : ActionFold;
          action.up    = !down2_q && has_up2_q;
          action.below = down2_q || !has_up2_q;
        end
        // What is folded goes to the position.
        CollectiveReduce, CollectiveReduceScatter: begin
          action.up       = !down2_q && has_up2_q;
          action.has_only = !action.up && place_in2_q;
          if (action.up || action.has_only) action.kind = down2_q ? ActionPass : ActionFold;
        end
        default: action.kind = ActionNothing;
      endcase
    end
    if (action.has_only) action.only = index2_q;
    if (action.has_but) action.but = index2_q;
    if (action.has_only || action.has_but) action.member = member2_q;
    // A port behind which nobody but the giver is gets nothing.
    mask = ({Ports{action.up}} & up2_q) | ({Ports{action.has_only}} & hit2_q) |
           ({Ports{action.below}} & used2_q & ~({Ports{action.has_but && but_all2_q}} & hit2_q));
  end

  always_ff @(posedge clk_i) begin
    valid_o  <= rst_ni && valid2_q;
    action_o <= action;
    mask_o   <= mask;
    down_o   <= used2_q;
  end

  // Of the entry and the tag, the control looks at what decides.
  logic unused;
  assign unused = ^{head_i.first, arriving1_q.tag, arriving1_q.port, used_shifted[2*Ports-1:Ports],
                    hit_shifted[2*Ports-1:Ports]};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && valid_i) begin
      assert (32'(head_i.first_port) + 32'(head_i.ports) <= Ports)
        else $error("%m: an entry names a port beyond the last");
      assert (!head_i.has_up || 32'(head_i.up) < Ports) else $error("%m: the port that leads up is beyond the last");
    end
    if (rst_ni && valid1_q) begin
      assert ((hit1_q & (hit1_q - 1'b1)) == '0) else $error("%m: a position is behind two ports");
    end
  end
`endif

endmodule
