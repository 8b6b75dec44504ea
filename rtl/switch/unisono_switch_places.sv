// Whose turn it is: blocks of an all-gather and of a gather come by several ports of a switch, in the order of their
// positions.
//
// A position is behind one port: behind one that leads down, if that port's range has it, or else above. Of a gather,
// blocks of the root's side do not come this way; such a position is skipped, with all others there.
//
// Latency: 0 cycles; the root is to be there a cycle before.

// Only parts of the entry are looked at.
// verilator lint_off UNUSEDSIGNAL

module unisono_switch_places
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8       // 4 to MaxPorts
) (
  input  logic                    clk_i,

  input  entry_head_t             head_i,
  input  port_entry_t [Ports-1:0] ports_i,
  input  logic [Ports-1:0]        up_port_i,   // the port that leads up, if there is one
  input  logic                    gathers_i,   // a gather; else an all-gather
  input  place_t                  root_i,      // of the gather
  input  count_t                  place_i,     // the run's next position; the number of members: there is none

  output logic                    skips_o,     // nothing comes of it; go on at after_skip_o
  output count_t                  after_skip_o,
  output logic [Ports-1:0]        port_o,      // by which its block comes
  output count_t                  following_o  // the position after it; 0: it is the last one
);

  typedef logic [Ports-1:0] ports_t;

  // Entries of ports: the one behind whose port a position is.
  function automatic ports_t behind(entry_head_t head, port_entry_t [Ports-1:0] entries, count_t place);
    ports_t hit;
    for (int p = 0; p < int'(Ports); p++) begin
      hit[p] = port_count_t'(p) < head.ports && count_t'(place_t'(place_t'(place) - entries[p].first)) < entries[p].count;
    end
    return hit;
  endfunction
  // The end of the range of positions in which this one is, in the tree's order: what is above is before and after.
  function automatic count_t end_of(entry_head_t head, port_entry_t [Ports-1:0] entries, ports_t hit, count_t place);
    count_t result;
    result = '0;
    for (int p = 0; p < int'(Ports); p++) if (hit[p]) result |= count_t'(entries[p].first) + entries[p].count;
    if (hit == '0) result = place < count_t'(head.first) ? count_t'(head.first) : head.members;
    return result;
  endfunction

  ports_t hit, root_hit_q, next_hit;
  count_t next, after;
  logic   skips_next;

  always_ff @(posedge clk_i) begin
    root_hit_q <= behind(head_i, ports_i, count_t'(root_i));
  end
  assign hit      = behind(head_i, ports_i, place_i);
  assign port_o   = hit == '0 ? up_port_i : ports_t'((2 * Ports)'(hit) << head_i.first_port);
  assign skips_o  = gathers_i && hit == root_hit_q;
  assign after_skip_o = end_of(head_i, ports_i, hit, place_i);

  assign next       = place_i + count_t'(1);
  assign next_hit   = behind(head_i, ports_i, next);
  assign skips_next = gathers_i && next != head_i.members && next_hit == root_hit_q;
  assign after      = skips_next ? end_of(head_i, ports_i, next_hit, next) : next;
  assign following_o = after == head_i.members ? '0 : after;

endmodule
