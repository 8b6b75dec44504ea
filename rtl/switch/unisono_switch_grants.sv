// Grants of a port's neighbour, two of a run at most: it may grant the next message before it has the first.
//
// A grant with the token of one that is here raises its limit; another one is new, and stands behind the other. The
// oldest is what the control sees.
//
// Latency: what is known of a grant is there in the cycle after `run_i` and `grant_i`, and holds as long as they do; the
// control sees the oldest grant a cycle after `look_run_i`. Throughput: a grant per 2 cycles. Restrictions: both have
// stood a cycle before the grant is taken; a new one is taken only while not two are here.

module unisono_switch_grants
  import unisono_switch_pkg::*;
(
  input  logic     clk_i,
  input  logic     rst_ni,
  input  logic     open_valid_i,                   // the run begins anew
  input  run_t     open_run_i,

  input  run_t     run_i,
  input  granted_t grant_i,                        // that has come
  output logic     known_o,                        // its token is here
  output logic     full_o,
  input  logic     new_i,
  input  logic     raise_i,

  input  run_t     look_run_i,
  input  logic     pop_i,                          // the oldest is over
  output logic     has_grant_o,
  output granted_t grant_o
);

  localparam int unsigned AllRuns = UnitEntries * UnitRuns;

  // A grant without its limit.
  typedef struct packed {
    logic [31:0] sequence_;
    logic [31:0] signature;
    logic [15:0] slot;
    logic [15:0] generation;
  } granted_token_t;

  (* ram_style = "distributed" *) granted_token_t token_q       [2*AllRuns];
  (* ram_style = "distributed" *) switch_bytes_t  grant_limit_q [2*AllRuns];
  logic [AllRuns-1:0][1:0] grants_q;               // how many there are
  logic [AllRuns-1:0] oldest_grant_q;              // the place of the first

  granted_token_t token_in;
  logic [1:0] same_q, known;
  logic oldest, next;

  assign oldest = oldest_grant_q[run_i];
  assign next   = oldest ^ grants_q[run_i][0];
  for (genvar g = 0; g < 2; g++) begin : gen_known
    // The signature does not tell a grant that is here from others.
    // verilator lint_off UNUSEDSIGNAL
    granted_token_t token;
    // verilator lint_on UNUSEDSIGNAL
    assign token = token_q[{run_i, 1'(g)}];
    always_ff @(posedge clk_i) begin
      same_q[g] <= token.slot == grant_i.slot && token.generation == grant_i.generation &&
                   token.sequence_ == grant_i.sequence_;
    end
    assign known[g] = same_q[g] && (grants_q[run_i] == 2'd2 || (grants_q[run_i] == 2'd1 && oldest == 1'(g)));
  end
  assign known_o = known != '0;
  assign full_o  = grants_q[run_i] == 2'd2;

  assign token_in = '{
    sequence_: grant_i.sequence_,
    signature: grant_i.signature,
    slot: grant_i.slot,
    generation: grant_i.generation
  };
  always_ff @(posedge clk_i) begin
    if (new_i) token_q[{run_i, next}] <= token_in;
    if (new_i || raise_i) grant_limit_q[{run_i, raise_i ? known[1] : next}] <= grant_i.limit;
  end

  for (genvar r = 0; r < int'(AllRuns); r++) begin : gen_run
    logic mine, looked;
    assign mine   = run_i == run_t'(r);
    assign looked = look_run_i == run_t'(r);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || (open_valid_i && open_run_i == run_t'(r))) begin
        grants_q[r]       <= '0;
        oldest_grant_q[r] <= 1'b0;
      end else begin
        grants_q[r] <= grants_q[r] + 2'(mine && new_i) - 2'(looked && pop_i);
        if (looked && pop_i) oldest_grant_q[r] <= !oldest_grant_q[r];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    has_grant_o <= grants_q[look_run_i] != '0;
    grant_o     <= {token_q[{look_run_i, oldest_grant_q[look_run_i]}],
                    grant_limit_q[{look_run_i, oldest_grant_q[look_run_i]}]};
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      not_three: assert (!new_i || !full_o);
      raises_what_is_here: assert (!raise_i || known_o);
      pops_what_is_here: assert (!pop_i || grants_q[look_run_i] != '0);
    end
  end
`endif

endmodule
