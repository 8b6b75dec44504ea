// Proof of unisono_pair_order: while the latest earlier move that names a peer still has its entry, it is
// what is found; and nothing is found that does not name the peer.
//
// Any slot and peer may be watched. The proof keeps which entry named the peer last, until another move
// takes that entry, and which entries name the peer now.

module unisono_pair_order_proof #(
  parameter int unsigned Calls  = 2,
  parameter int unsigned Window = 4,
  parameter int unsigned Ranks  = 2,
  localparam int unsigned SlotWidth  = $clog2(Calls),
  localparam int unsigned EntryWidth = $clog2(Window),
  localparam int unsigned RankWidth  = $clog2(Ranks)
) (
  input logic                  clk_i,
  input logic [SlotWidth-1:0]  watch_slot_i,
  input logic [RankWidth-1:0]  watch_peer_i,
  input logic                  first_i,
  input logic [SlotWidth-1:0]  slot_i,
  input logic [EntryWidth-1:0] entry_i,
  input logic [Ranks-1:0]      peers_i,
  input logic                  peer_valid_i,
  input logic [RankWidth-1:0]  peer_i
);

  logic found;
  logic [EntryWidth-1:0] found_entry;

  unisono_pair_order #(
    .Calls (Calls),
    .Window(Window),
    .Ranks (Ranks)
  ) u_dut (
    .clk_i,
    .first_i,
    .slot_i,
    .entry_i,
    .peers_i,
    .peer_valid_i,
    .peer_i,
    .found_o      (found),
    .found_entry_o(found_entry)
  );

  logic started_q = 1'b0;
  logic [SlotWidth-1:0] watch_slot_q, slot_q;
  logic [RankWidth-1:0] watch_peer_q;
  logic [EntryWidth-1:0] entry_q;
  logic [Ranks-1:0] peers_q;
  logic move_q;                                 // a first beat has been

  // What the module asks of its users: the beats of a move follow its first one, for peers named there.
  always_comb begin
    if (!started_q) no_beat_yet: assume (!first_i && !peer_valid_i);
    if (peer_valid_i && !first_i) begin
      same_move: assume (move_q && slot_i == slot_q && entry_i == entry_q && peers_q[peer_i]);
    end
    if (peer_valid_i && first_i) own_peer: assume (peers_i[peer_i]);
  end

  logic asked, starts;
  assign asked = peer_valid_i && slot_i == watch_slot_q && peer_i == watch_peer_q;
  assign starts = first_i && slot_i == watch_slot_q;

  logic latest_valid_q, latest_valid;
  logic [EntryWidth-1:0] latest_q;
  logic [Window-1:0] names_q, names, known_q, known;
  always_comb begin
    names = names_q;
    known = known_q;
    if (starts) begin
      names[entry_i] = peers_i[watch_peer_q];
      known[entry_i] = 1'b1;
    end
  end
  assign latest_valid = latest_valid_q && !(starts && entry_i == latest_q);

  // What must be answered, three cycles later.
  typedef struct packed {
    logic valid;
    logic live;
    logic [EntryWidth-1:0] entry;
    logic [Window-1:0] names;
    logic [Window-1:0] known;
  } wanted_t;
  wanted_t [2:0] wanted_q;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (first_i) begin
      slot_q <= slot_i;
      entry_q <= entry_i;
      peers_q <= peers_i;
    end
    if (!started_q) begin
      watch_slot_q <= watch_slot_i;
      watch_peer_q <= watch_peer_i;
      latest_valid_q <= 1'b0;
      known_q <= '0;
      move_q <= 1'b0;
      wanted_q <= '0;
    end else begin
      move_q <= move_q || first_i;
      names_q <= names;
      known_q <= known;
      latest_valid_q <= asked || latest_valid;
      if (asked) latest_q <= entry_i;
      wanted_q <= {wanted_q[1:0], wanted_t'{
        valid: asked, live: latest_valid, entry: latest_q, names: names, known: known
      }};
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && wanted_q[2].valid) begin
      if (wanted_q[2].live) latest_is_found: assert (found && found_entry == wanted_q[2].entry);
      // Of entries that no move has had yet, nothing is known.
      if (found && wanted_q[2].known[found_entry]) found_names_it: assert (wanted_q[2].names[found_entry]);
    end
  end

endmodule
