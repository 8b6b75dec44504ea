// Admits calls: whose descriptor is next, and which entry its call gets.
//
// Requesters take turns. One entry stays free for each requester that has none, and a requester has at most as many
// calls as there are entries that are outstanding or whose answers it has not taken: nobody is locked out, and each
// answer has its room. An entry is the lowest one that is free, and is free again when its call ends.
//
// Latency: a descriptor is chosen one cycle after its first rows are on offer; what an admission or an end has changed
// reaches the choice two cycles later. Throughput: four rows a cycle; the next descriptor comes when the candidate has
// been entered.

module unisono_call_admit
  import unisono_call_pkg::*;
#(
  parameter int unsigned Requesters = 2,
  localparam int unsigned RequesterWidth = $clog2(Requesters),
  localparam int unsigned CountWidth = EntryIndexWidth + 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Descriptors, four rows at a time.
  input  logic [Requesters-1:0]     quad_valid_i,
  output logic [Requesters-1:0]     quad_ready_o,

  output logic                      begin_o,         // a descriptor is chosen: its rows come from the next cycle on
  output logic                      step_o,          // four rows are taken
  output call_quad_index_t          index_o,
  output logic                      there_o,         // all of its rows have come before, or come now
  output logic                      waits_o,         // they have come before
  output logic [RequesterWidth-1:0] requester_o,     // whose it is
  output call_entry_t               entry_o,
  input  logic                      entered_i,       // it is in the table

  // A call ends; answers are taken.
  input  logic                      end_valid_i,
  input  call_entry_t               end_entry_i,
  input  logic [RequesterWidth-1:0] end_requester_i,
  input  logic [Requesters-1:0]     answered_i,

  output logic [CountWidth-1:0]     outstanding_o    // entries that hold a call
);

  typedef logic [RequesterWidth-1:0] requester_t;
  typedef logic [CountWidth-1:0] count_t;

  typedef enum logic [1:0] {
    InChoose,     // a requester and an entry
    InQuads,      // its descriptor
    InCandidate   // is checked, and waits until it is entered
  } intake_e;

  intake_e     intake_q;
  requester_t  requester_q, requester_pick;
  logic        requester_any;
  call_entry_t entry_q, free_entry_q;
  logic        free_any_q;
  call_quad_index_t quad_q;
  logic        last_quad;

  logic [Entries-1:0] used_q;        // given to a call, from its first row on
  count_t [Requesters-1:0] outstanding_q, held_q;
  count_t free_count_q;
  logic [Requesters-1:0] may_admit_q;

  // One entry stays free for each requester that has none.
  logic [Requesters-1:0] idle;
  count_t idle_count;
  always_comb begin
    idle_count = '0;
    for (int unsigned r = 0; r < Requesters; r++) begin
      idle[r] = outstanding_q[r] == '0;
      idle_count += count_t'(idle[r]);
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned r = 0; r < Requesters; r++) begin
      may_admit_q[r] <= rst_ni && held_q[r] < count_t'(Entries)
                     && (idle[r] ? free_count_q != '0 : free_count_q > idle_count);
    end
    free_any_q   <= rst_ni && used_q != '1;
    free_entry_q <= '0;
    for (int e = int'(Entries) - 1; e >= 0; e--) begin
      if (!used_q[e]) begin
        free_entry_q <= call_entry_t'(e);
      end
    end
  end

  // Round robin: the next requester after the one served last.
  always_comb begin
    requester_any  = 1'b0;
    requester_pick = '0;
    for (int unsigned i = 1; i <= Requesters; i++) begin
      automatic int unsigned r = int'(requester_q) + i;
      if (r >= Requesters) begin
        r -= Requesters;
      end
      if (!requester_any && quad_valid_i[r] && may_admit_q[r]) begin
        requester_any  = 1'b1;
        requester_pick = requester_t'(r);
      end
    end
  end

  // The next descriptor may come when nothing asks for this one's any more. Since the last choice, what it has changed
  // has reached may_admit_q and free_entry_q.
  assign begin_o   = (intake_q == InChoose || entered_i) && requester_any && free_any_q;
  assign step_o    = intake_q == InQuads && quad_valid_i[requester_q];
  assign last_quad = quad_q == call_quad_index_t'(Quads - 1);

  always_comb begin
    quad_ready_o = '0;
    quad_ready_o[requester_q] = intake_q == InQuads;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      intake_q    <= InChoose;
      requester_q <= '0;
      quad_q      <= '0;
    end else begin
      unique case (intake_q)
        InQuads: begin
          if (step_o) begin
            quad_q <= quad_q + call_quad_index_t'(1);
            if (last_quad) begin
              intake_q <= InCandidate;
            end
          end
        end
        default: begin
          if (begin_o) begin
            intake_q    <= InQuads;
            requester_q <= requester_pick;
          end else if (entered_i) begin
            intake_q <= InChoose;
          end
        end
      endcase
    end
    if (begin_o) begin
      entry_q <= free_entry_q;
    end
  end

  assign index_o     = quad_q;
  assign there_o     = intake_q == InCandidate || (step_o && last_quad);
  assign waits_o     = intake_q == InCandidate;
  assign requester_o = requester_q;
  assign entry_o     = entry_q;

  // ---------------------------------------------------------------------------------------- counts

  // Invariant: free_count_q is how many bits of used_q are low.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q       <= '0;
      free_count_q <= count_t'(Entries);
    end else begin
      if (begin_o) used_q[free_entry_q] <= 1'b1;
      if (end_valid_i) used_q[end_entry_i] <= 1'b0;
      free_count_q <= free_count_q - count_t'(begin_o) + count_t'(end_valid_i);
    end
    outstanding_o <= rst_ni ? count_t'(Entries) - free_count_q : '0;
  end

  for (genvar r = 0; r < int'(Requesters); r++) begin : gen_counts
    logic admits, ends;
    assign admits = begin_o && requester_pick == requester_t'(r);
    assign ends   = end_valid_i && end_requester_i == requester_t'(r);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        outstanding_q[r] <= '0;
        held_q[r]        <= '0;
      end else begin
        outstanding_q[r] <= outstanding_q[r] + count_t'(admits) - count_t'(ends);
        held_q[r]        <= held_q[r] + count_t'(admits) - count_t'(answered_i[r]);
      end
    end

    `ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        assert (outstanding_q[r] <= held_q[r]) else $error("%m: counts disagree");
      end
    end
    `endif
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!begin_o || !used_q[free_entry_q]) else $error("%m: an entry is given twice");
      assert (!end_valid_i || used_q[end_entry_i]) else $error("%m: ends what is not there");
    end
  end
  `endif

endmodule
