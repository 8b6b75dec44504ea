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
// Latency: neighbours are looked at one after the other, Children + 1 cycles for a round; a control
// packet leaves within two rounds. Throughput: may_o and spend_i work every cycle.

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
  // Packets that this node holds for each neighbour in from_i.
  input  logic [15:0]                  window_i,

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
  localparam int unsigned WindowBits   = 16;
  localparam int unsigned ControlBits  = $bits(control_t);
  typedef logic [WindowBits-1:0] count_t;

  // ---- What comes.
  header_t  header;
  control_t told;
  logic     first, places, differ;

  assign header = header_of(PacketBytes, control_data_i[Width-1-:WideHeaderBits]);
  assign told   = control_t'(control_data_i[ControlBits-1:0]);
  assign first  = control_valid_i && told.kind == ControlPlaces && told.first;
  assign places = control_valid_i && told.kind == ControlPlaces && !told.first;
  assign differ = control_valid_i && told.kind == ControlDiffer;

  logic unused;
  assign unused = ^{header, told, place_i, control_data_i};

  // ---- Whose turn it is.
  logic [TurnBits-1:0]             turn_q;
  logic [Neighbours-1:0][RankBits-1:0] rank_of;
  logic [RankBits-1:0]             peer;

  assign rank_of = {place_i.parent, place_i.child};
  assign peer    = rank_of[turn_q];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= '0;
    end else begin
      turn_q <= 32'(turn_q) == Neighbours - 1 ? '0 : turn_q + TurnBits'(1);
    end
  end

  // ---- Firsts: a bit for each rank, and what it was opened with.
  logic [MaxRanks-1:0]   first_q;
  logic [Neighbours-1:0] begun_q;
  logic                  known;
  opening_t              mine, theirs;
  count_t                window;

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
  assign known = active_i && to_i[turn_q] && !begun_q[turn_q] && first_q[PeerBits'(peer)];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= '0;
    end else begin
      if (known) begin
        first_q[PeerBits'(peer)] <= 1'b0;
      end
      if (first && 32'(header.src) < MaxRanks) begin
        first_q[PeerBits'(header.src)] <= 1'b1;
      end
    end
  end

  (* ram_style = "distributed" *) logic [$bits(opening_t)+WindowBits-1:0] openings [MaxRanks];
  always_ff @(posedge clk_i) begin
    if (first) begin
      openings[PeerBits'(header.src)] <= {told.opening, told.packets[WindowBits-1:0]};
    end
  end
  assign {theirs, window} = openings[PeerBits'(peer)];

  // ---- Counts, by neighbour.
  logic [Neighbours-1:0] due, begins, opened;
  count_t [Neighbours-1:0] freed;
  logic                  tells, make, warn;
  count_t                packets;

  for (genvar n = 0; n < Neighbours; n++) begin : gen_neighbour
    count_t places_d, places_q, freed_q;
    logic   opened_q, may_q, mine_now;

    assign mine_now  = header.src == rank_of[n];
    assign begins[n] = known && turn_q == TurnBits'(n);

    always_comb begin
      places_d = places_q - count_t'(spend_i[n]);
      if (begins[n]) begin
        places_d = window;
      end else if (places && mine_now && begun_q[n]) begin
        places_d = places_d + told.packets[WindowBits-1:0];
      end
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni || !active_i) begin
        begun_q[n] <= 1'b0;
        places_q   <= '0;
        may_q      <= 1'b0;
        opened_q   <= 1'b0;
        freed_q    <= '0;
      end else begin
        begun_q[n] <= begun_q[n] || begins[n];
        places_q   <= places_d;
        may_q      <= places_d != '0;
        if (tells && turn_q == TurnBits'(n)) begin
          opened_q <= 1'b1;
          freed_q  <= count_t'(freed_i[n]);
        end else begin
          freed_q  <= freed_q + count_t'(freed_i[n]);
        end
      end
    end
    assign may_o[n] = may_q;
    assign due[n]   = active_i && from_i[n] && (!opened_q || 32'(freed_q) >= Batch);
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

  assign packets = opened[turn_q] ? freed[turn_q] : window_i;

  // ---- What is told: that the ends do not agree, before places.
  logic                control_valid_q, control_free;
  logic [Width-1:0]    control_data_q;
  logic [RankBits-1:0] warned_q;
  logic                warn_q;
  control_t            tell;

  assign control_free = !control_valid_q || control_ready_i;
  assign warn         = warn_q && control_free;
  assign tells        = due[turn_q] && control_free && !warn_q;
  assign make         = warn || tells;

  // One at a time; a second one that is found meanwhile is named here alone.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      warn_q <= 1'b0;
    end else if (known && theirs != mine) begin
      warn_q <= 1'b1;
    end else if (warn) begin
      warn_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (known && !warn_q) begin
      warned_q <= peer;
    end
  end

  assign tell = '{
    opening:  mine,
    reserved: '0,
    kind:     warn_q ? ControlDiffer : ControlPlaces,
    tree:     1'b1,
    first:    !warn_q && !opened[turn_q],
    packets:  32'(packets),
    elements: '0
  };

  header_t                   tell_header;
  logic [WideHeaderBits-1:0] packed_tell;
  assign tell_header = '{
    count: '0,
    op:    OpSynch,
    port:  place_i.port,
    dst:   warn_q ? warned_q : peer,
    src:   rank_i
  };
  assign packed_tell = header_bits(PacketBytes, tell_header);
  logic unused_tell;
  assign unused_tell = ^packed_tell;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      control_valid_q <= 1'b0;
    end else if (control_free) begin
      control_valid_q <= make;
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
    differ_q <= rst_ni && ((known && theirs != mine) || differ);
    found_q  <= differ ? '{peer: header.src, mine: mine, theirs: told.opening}
                       : '{peer: peer, mine: mine, theirs: theirs};
  end
  assign differ_valid_o = differ_q;
  assign differ_o       = found_q;

endmodule
