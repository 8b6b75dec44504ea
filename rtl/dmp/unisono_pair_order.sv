// Finds, for a move and one of its peers, the latest earlier move of the same call that names this
// peer as well.
//
// Two tables: which entry named a peer last, and which peers each entry names. The first is never
// cleaned. What it says is believed only if the entry, as it is now, does name the peer: then it
// was that entry's move that wrote it, and it is the latest. Entries that have left the window
// answer too; the reader must ignore what is not in the window before the move itself.
//
// Latency: 3 cycles from beat to answer. Throughput: a beat per cycle, in order, no back-pressure.
// Restrictions: a move's beats follow one another; all its peers stand in `peers_i` of the first.

module unisono_pair_order #(
  parameter int unsigned Calls = 8,
  parameter int unsigned Window = 32,
  parameter int unsigned Ranks = 64,
  localparam int unsigned SlotWidth = $clog2(Calls),
  localparam int unsigned EntryWidth = $clog2(Window),
  localparam int unsigned RankWidth = $clog2(Ranks)
) (
  input  logic                  clk_i,

  input  logic                  first_i,        // the first beat of a move
  input  logic [SlotWidth-1:0]  slot_i,
  input  logic [EntryWidth-1:0] entry_i,
  input  logic [Ranks-1:0]      peers_i,
  input  logic                  peer_valid_i,   // a beat of a move without peers asks nothing
  input  logic [RankWidth-1:0]  peer_i,

  output logic                  found_o,
  output logic [EntryWidth-1:0] found_entry_o
);

  (* ram_style = "distributed" *) logic [EntryWidth-1:0] last_q [Calls*Ranks];
  (* ram_style = "block" *) logic [Ranks-1:0] peers_q [Calls*Window];

  logic asked_q, read_q;
  logic [SlotWidth-1:0] slot_q;
  logic [EntryWidth-1:0] entry_q, read_entry_q;
  logic [RankWidth-1:0] peer_q, read_peer_q;
  logic [Ranks-1:0] read_peers_q;

  wire [EntryWidth-1:0] last = last_q[{slot_q, peer_q}];

  always_ff @(posedge clk_i) begin
    if (first_i) peers_q[{slot_i, entry_i}] <= peers_i;
  end

  // Read and written in one step, so that a beat sees what the one before it wrote.
  always_ff @(posedge clk_i) begin
    if (asked_q) last_q[{slot_q, peer_q}] <= entry_q;
  end

  always_ff @(posedge clk_i) begin
    asked_q <= peer_valid_i;
    slot_q <= slot_i;
    entry_q <= entry_i;
    peer_q <= peer_i;

    read_q <= asked_q;
    read_entry_q <= last;
    read_peer_q <= peer_q;
    read_peers_q <= peers_q[{slot_q, last}];

    found_o <= read_q && read_peers_q[read_peer_q];
    found_entry_o <= read_entry_q;
  end

endmodule
