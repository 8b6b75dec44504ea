// Credits between a node of a tree and its neighbours: the places that receivers have told of, and the
// control packets by which this node tells those who send to it.
//
// Neighbours are numbered: children 0 to Children - 1, then the parent. Data goes to those in to_i,
// and comes from those in from_i; both hold while active_i is high. A sender may send to a neighbour
// (may_o) once that has opened its end, as long as it has places there.
//
// The first control packet of a neighbour is remembered, with what it was opened with, until this
// node opens its own end. If the two do not agree, differ_o names both and the neighbour is told,
// who names them too. Data flows all the same.
//
// Latency: a first counts within 4 * (Children + 2) cycles, other control packets after 2; one leaves 3
// cycles after what it tells of. Throughput: may_o and spend_i work every cycle, a control packet
// leaves every second one. Nothing moves while nothing comes and nothing is told.

module unisono_smi_tree #(
  parameter int unsigned PacketBytes = 32,
  parameter int unsigned MaxRanks    = 128,
  // Packets after which a sender is told of their places.
  parameter int unsigned Batch       = 4,
  localparam int unsigned Width      = PacketBytes * 8,
  localparam int unsigned Neighbours = unisono_smi_pkg::Children + 1
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic [unisono_smi_pkg::RankBits-1:0] rank_i,

  input  logic                         active_i,
  input  unisono_smi_pkg::collective_t place_i,
  input  logic [Neighbours-1:0]        to_i,
  input  logic [Neighbours-1:0]        from_i,
  // Packets that this node holds for each neighbour in from_i, at most 255.
  input  logic [7:0]                   window_i,

  output logic [Neighbours-1:0]        may_o,
  // A packet goes to a neighbour that may have it; one has been taken of a neighbour.
  input  logic [Neighbours-1:0]        spend_i,
  input  logic [Neighbours-1:0]        freed_i,

  // Control packets of trees; each is taken at once.
  input  logic                         control_valid_i,
  input  logic [Width-1:0]             control_data_i,

  output logic                         control_valid_o,
  input  logic                         control_ready_i,
  output logic [Width-1:0]             control_data_o,

  // For a cycle each.
  output logic                         differ_valid_o,
  output unisono_smi_pkg::differ_t     differ_o
);

  import unisono_smi_pkg::*;

  localparam int unsigned HeaderBytes  = header_bytes(PacketBytes);
  localparam int unsigned PayloadBits  = Width - HeaderBytes * 8;
  localparam int unsigned PeerBits     = MaxRanks > 1 ? $clog2(MaxRanks) : 1;
  localparam int unsigned TurnBits     = $clog2(Neighbours);
  localparam int unsigned WindowBits   = 8;
  localparam int unsigned ControlBits  = $bits(control_t);
  typedef logic [WindowBits-1:0] count_t;

  // ---- What comes, a cycle later.
  header_t  header, header_q;
  control_t told, told_q;
  logic     valid_q, first, places, differ;

  assign header = header_of(PacketBytes, control_data_i[Width-1-:WideHeaderBits]);
  assign told   = control_t'(control_data_i[ControlBits-1:0]);
  always_ff @(posedge clk_i) begin
    valid_q  <= rst_ni && control_valid_i;
    if (control_valid_i) begin
      header_q <= header;
      told_q   <= told;
    end
  end
  assign first  = valid_q && told_q.kind == ControlPlaces && told_q.first;
  assign places = valid_q && told_q.kind == ControlPlaces && !told_q.first;
  assign differ = valid_q && told_q.kind == ControlDiffer;

  logic unused;
  assign unused = ^{header_q, told_q, place_i, control_data_i};

  // ---- Firsts: a bit for each rank, and what it was opened with. Neighbours are looked at one after
  // the other, in four steps each, when the node has opened or another first has come; then it rests.
  logic [MaxRanks-1:0]   first_q;
  (* ram_style = "distributed" *) logic [$bits(opening_t)+WindowBits-1:0] openings [MaxRanks];

  logic [TurnBits-1:0]   turn_q, visits_q;
  logic [1:0]            step_q;
  logic [RankBits-1:0]   peer_q;
  logic                  active_q, wants_q, has_q, same_q, known;
  logic [Neighbours-1:0] begun_q;
  logic [Neighbours-1:0][RankBits-1:0] rank_of;
  opening_t              mine, theirs_q;
  count_t                window_q;

  assign rank_of = {place_i.parent, place_i.child};
  assign mine = '{
    kind:    place_i.kind,
    credits: 1'b1,
    strict:  1'b0,
    size:    place_i.size,
    dtype:   place_i.dtype,
    func:    place_i.func,
    count:   place_i.count,
    window:  32'(place_i.root)
  };
  assign known = active_i && step_q == 2'd3 && wants_q && has_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      turn_q   <= '0;
      step_q   <= '0;
      visits_q <= '0;
    end else begin
      active_q <= active_i;
      // One more than there are: the neighbour whose turn it is may have been looked at already.
      if (first || (active_i && !active_q)) begin
        visits_q <= TurnBits'(Neighbours + 1);
      end else if (step_q == 2'd3 && visits_q != '0) begin
        visits_q <= visits_q - TurnBits'(1);
      end
      if (visits_q != '0 || step_q != '0) begin
        step_q <= step_q + 2'd1;
      end
      if (step_q == 2'd3) begin
        turn_q <= 32'(turn_q) == Neighbours - 1 ? '0 : turn_q + TurnBits'(1);
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (step_q == 2'd0) begin
      peer_q  <= rank_of[turn_q];
      wants_q <= active_q && active_i && to_i[turn_q] && !begun_q[turn_q];
    end
    if (step_q == 2'd1) begin
      has_q                <= first_q[PeerBits'(peer_q)];
      {theirs_q, window_q} <= openings[PeerBits'(peer_q)];
    end
    same_q <= theirs_q == mine;
    if (!active_i) begin
      wants_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= '0;
    end else begin
      if (known) begin
        first_q[PeerBits'(peer_q)] <= 1'b0;
      end
      if (first && 32'(header_q.src) < MaxRanks) begin
        first_q[PeerBits'(header_q.src)] <= 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (first) begin
      openings[PeerBits'(header_q.src)] <= {told_q.opening, told_q.packets[WindowBits-1:0]};
    end
  end

  // ---- Counts, by neighbour.
  logic [Neighbours-1:0]   due, begins, opened, picked_q, spoken;
  count_t [Neighbours-1:0] freed;

  for (genvar n = 0; n < Neighbours; n++) begin : gen_neighbour
    count_t places_q, freed_q;
    logic   opened_q, may_q, more;

    assign more      = places && header_q.src == rank_of[n] && begun_q[n]
                       && told_q.packets[WindowBits-1:0] != '0;
    assign begins[n] = known && turn_q == TurnBits'(n);

    always_ff @(posedge clk_i) begin
      if (!rst_ni || !active_i) begin
        begun_q[n] <= 1'b0;
        places_q   <= '0;
        may_q      <= 1'b0;
        opened_q   <= 1'b0;
        freed_q    <= '0;
      end else begin
        begun_q[n] <= begun_q[n] || begins[n];
        if (begins[n]) begin
          places_q <= window_q;
          may_q    <= window_q != '0;
        end else begin
          places_q <= places_q + (more ? told_q.packets[WindowBits-1:0] : '0) - count_t'(spend_i[n]);
          may_q    <= more || (places_q != '0 && !(places_q == count_t'(1) && spend_i[n]));
        end
        opened_q <= opened_q || spoken[n];
        freed_q  <= (spoken[n] ? '0 : freed_q) + count_t'(freed_i[n]);
      end
    end
    assign may_o[n]  = may_q;
    assign due[n]    = active_i && from_i[n] && (!opened_q || 32'(freed_q) >= Batch);
    assign opened[n] = opened_q;
    assign freed[n]  = freed_q;

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni && active_i) begin
        assert (!spend_i[n] || may_q) else $error("%m: sent without a place at the other end");
        assert (!freed_i[n] || from_i[n]) else $error("%m: a packet of who sends none");
      end
    end
`endif
  end

  // ---- What is told: that the ends do not agree, before places. Who is told is picked a cycle before.
  logic                control_valid_q, control_free, pick_q, warn_q, warns, tells;
  logic [Width-1:0]    control_data_q;
  logic [RankBits-1:0] warned_q, listener;
  count_t              packets;
  logic                is_first;
  control_t            tell;

  assign control_free = !control_valid_q || control_ready_i;
  assign warns        = warn_q && control_free;
  assign tells        = pick_q && !warn_q && control_free && active_i;
  assign spoken       = tells ? picked_q : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || !active_i) begin
      pick_q <= 1'b0;
    end else if (!pick_q) begin
      pick_q <= due != '0;
    end else if (tells) begin
      pick_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!pick_q) begin
      picked_q <= due & (~due + Neighbours'(1));
    end
  end

  // One at a time; a second one that is found meanwhile is named here alone.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      warn_q <= 1'b0;
    end else if (known && !same_q) begin
      warn_q <= 1'b1;
    end else if (warns) begin
      warn_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (known && !warn_q) begin
      warned_q <= peer_q;
    end
  end

  always_comb begin
    listener = '0;
    packets  = '0;
    is_first = 1'b0;
    for (int unsigned n = 0; n < Neighbours; n++) begin
      if (picked_q[n]) begin
        listener |= rank_of[n];
        packets  |= opened[n] ? freed[n] : count_t'(window_i);
        is_first |= !opened[n];
      end
    end
  end

  assign tell = '{
    opening:  mine,
    message:  '0,
    kind:     warn_q ? ControlDiffer : ControlPlaces,
    tree:     1'b1,
    first:    !warn_q && is_first,
    packets:  32'(packets),
    elements: '0
  };

  header_t                   tell_header;
  logic [WideHeaderBits-1:0] packed_tell;
  assign tell_header = '{
    count: '0,
    op:    OpSynch,
    port:  place_i.port,
    dst:   warn_q ? warned_q : listener,
    src:   rank_i
  };
  assign packed_tell = header_bits(PacketBytes, tell_header);
  logic unused_tell;
  assign unused_tell = ^{packed_tell, window_i};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      control_valid_q <= 1'b0;
    end else if (control_free) begin
      control_valid_q <= warns || tells;
    end
  end
  always_ff @(posedge clk_i) begin
    if (control_free) begin
      control_data_q <= {packed_tell[WideHeaderBits-1-:HeaderBytes*8], PayloadBits'(tell)};
    end
  end
  assign control_valid_o = control_valid_q;
  assign control_data_o  = control_data_q;

  // ---- Ends that do not agree: found here, or told by who found it.
  logic    differ_q;
  differ_t found_q;
  always_ff @(posedge clk_i) begin
    differ_q <= rst_ni && ((known && !same_q) || differ);
    found_q  <= differ ? '{peer: header_q.src, mine: mine, theirs: told_q.opening}
                       : '{peer: peer_q, mine: mine, theirs: theirs_q};
  end
  assign differ_valid_o = differ_q;
  assign differ_o       = found_q;

endmodule
