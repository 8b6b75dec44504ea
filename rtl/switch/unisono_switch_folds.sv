// The folds of a switch that are under way: a number for each, to which ports its result goes, and how many a run has.
//
// A fold begins with a free number, and ends when its result's last word has gone to its ports. The results that a port
// gets come from one cell at a time, or words of two would meet: clear_o says whether a fold may begin whose result
// comes from a certain cell.
//
// Latency: a fold is over 2 cycles after its last word, if no other one ends then; one ends per cycle.
// Restrictions: begin_i only with room_o and clear_o.

module unisono_switch_folds
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,    // 4 to MaxPorts
  parameter int unsigned TagBits = 4,  // of a fold's number
  localparam int unsigned Tags = 2 ** TagBits,
  localparam int unsigned CountWidth = TagBits + 1
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,

  // The fold that begins, or would.
  output logic                        room_o,         // there is a number
  output logic                        clear_o,
  output logic [CountWidth-1:0]       outstanding_o,  // folds of this way, if it has stood for a cycle
  output logic [CountWidth-1:0]       outstanding_next_o,  // in the next cycle, if it stands and none begins
  input  logic                        begin_i,
  input  way_t                        way_i,
  input  logic [Ports-1:0]            out_i,          // ports that get its result
  input  port_t                       from_i,         // of the cell from which that comes
  output logic [TagBits-1:0]          tag_o,          // number of the one that began last

  output logic [Tags-1:0][Ports-1:0]  masks_o,        // out_i of each
  input  logic [Tags-1:0]             done_i,         // the last word of its result has gone

  output logic                        ended_valid_o,
  output way_t                        ended_way_o
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_folds: Ports must be 4 to %0d", MaxPorts);
  end

  typedef logic [CountWidth-1:0] count_of_folds_t;

  // ---------------------------------------------------------------- numbers
  logic [Tags-1:0]    busy_q, done_q, ended;
  way_t [Tags-1:0]    way_q;
  logic [TagBits-1:0] free_tag, ended_tag;

  assign ended = done_q & (-done_q);
  always_comb begin
    free_tag  = '0;
    ended_tag = '0;
    for (int t = int'(Tags) - 1; t >= 0; t--) if (!busy_q[t]) free_tag = TagBits'(t);
    for (int t = 0; t < int'(Tags); t++) if (ended[t]) ended_tag = TagBits'(t);
  end
  assign room_o        = busy_q != '1;
  assign ended_valid_o = done_q != '0;
  assign ended_way_o   = way_q[ended_tag];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= '0;
      done_q <= '0;
    end else begin
      done_q <= (done_q & ~ended) | done_i;
      for (int t = 0; t < int'(Tags); t++) begin
        if (begin_i && free_tag == TagBits'(t)) busy_q[t] <= 1'b1;
        else if (ended[t]) busy_q[t] <= 1'b0;
      end
    end
    if (begin_i) begin
      masks_o[free_tag] <= out_i;
      way_q[free_tag]   <= way_i;
      tag_o             <= free_tag;
    end
  end

  // ---------------------------------------------------------------- ports
  logic [Ports-1:0] others;      // whose results come from another cell
  count_of_folds_t [Ports-1:0] folds_q;
  port_t [Ports-1:0] from_q;

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_port
    assign others[p] = folds_q[p] != '0 && from_q[p] != from_i;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        folds_q[p] <= '0;
      end else begin
        folds_q[p] <= folds_q[p] + count_of_folds_t'(begin_i && out_i[p]) -
                      count_of_folds_t'(ended_valid_o && masks_o[ended_tag][p]);
      end
      if (begin_i && out_i[p]) from_q[p] <= from_i;
    end
  end
  assign clear_o = (out_i & others) == '0;

  // ---------------------------------------------------------------- ways
  count_of_folds_t [Ways-1:0] of_way_q;

  for (genvar w = 0; w < int'(Ways); w++) begin : gen_way
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        of_way_q[w] <= '0;
      end else begin
        of_way_q[w] <= of_way_q[w] + count_of_folds_t'(begin_i && way_i == way_t'(w)) -
                       count_of_folds_t'(ended_valid_o && ended_way_o == way_t'(w));
      end
    end
  end
  // That one begins is known late.
  count_of_folds_t ends_here;
  assign ends_here          = count_of_folds_t'(ended_valid_o && ended_way_o == way_i);
  assign outstanding_next_o = outstanding_o - ends_here;
  always_ff @(posedge clk_i) outstanding_o <= of_way_q[way_i] - ends_here + count_of_folds_t'(begin_i);

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!begin_i || (room_o && clear_o)) else $error("%m: a fold begins without a number, or beside another one");
      assert ((done_i & ~busy_q) == '0) else $error("%m: a fold ends that has not begun");
    end
  end
`endif

endmodule
