// Reads the descriptor of a started call, and tells whether the firmware has a plan for it.
//
// The firmware keeps plans of the last calls; what decides about them, the calls' keys, is here. A hash of its key
// names the place of a call's plan.
//
// Latency: 6 cycles from a start to its answer, in which the core waits. The first word of the descriptor is asked for
// in the first of them, the words come in the cycles after they were asked for. Throughput: a call per 7 cycles.
// Restrictions: a start stays until it is taken.

module unisono_cpu_plans
  import unisono_cpu_pkg::*;
#(
  parameter int unsigned Communicators = 32
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  // A start waits for the core; the item at hand, this or another, is taken.
  input  logic                     starts_i,
  input  logic                     taken_i,
  output logic                     looking_o,

  // The word of the descriptor that is wanted, and what was asked for a cycle ago: of the descriptor, and the state of
  // the call's entry of the communicator table.
  output logic [3:0]               word_o,
  input  logic [63:0]              descriptor_i,
  input  logic [31:0]              state_i,

  // The communicator of the call at hand, and whether the table has such an entry; the place of the call's plan, and
  // whether its plan is there.
  output logic [7:0]               communicator_o,
  output logic                     known_o,
  output logic [$clog2(Plans)-1:0] plan_o,
  output logic                     hit_o,

  // The plan of the call at hand is kept in a place; plans are forgotten.
  input  logic                     keeps_i,
  input  logic [$clog2(Plans)-1:0] keep_place_i,
  input  logic                     forgets_i,
  input  logic [Plans-1:0]         forget_mask_i
);

  localparam logic [2:0] LookHead = 3'd0;
  localparam logic [2:0] LookPeers = 3'd1;
  localparam logic [2:0] LookCount = 3'd2;
  localparam logic [2:0] LookState = 3'd3;
  localparam logic [2:0] LookKey = 3'd4;
  localparam logic [2:0] LookCompare = 3'd5;
  localparam logic [2:0] LookDone = 3'd6;

  call_key_t keys_q [Plans];
  logic [Plans-1:0] key_known_q;
  call_key_t key_q, key_there_q;
  logic [2:0] look_q;
  logic known_q, hit_q;

  assign looking_o = starts_i && look_q != LookDone;
  assign word_o    = look_q == LookCount ? 4'd3 : {3'd0, look_q[0]};

  // Counts are often multiples of powers of two, and roots small.
  logic [15:0] mixed;
  assign mixed = key_q.count[15:0] ^ key_q.count[31:16] ^ key_q.root[15:0] ^
                 {key_q.head[3:0], key_q.head[7:4], key_q.head[19:16], key_q.head[27:24]} ^
                 {key_q.communicator[7:0], 8'd0};
  assign plan_o = mixed[3:0] ^ mixed[7:4] ^ mixed[11:8] ^ mixed[15:12];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || taken_i) look_q <= LookHead;
    else if (looking_o) look_q <= look_q + 1'b1;
    if (looking_o) begin
      case (look_q)
        LookPeers: {key_q.flags, key_q.head} <= descriptor_i[32+DescriptorFlags-1:0];
        LookCount: {key_q.root, key_q.communicator} <= descriptor_i;
        LookState: begin
          key_q.count <= descriptor_i;
          known_q <= key_q.communicator < 32'(Communicators);
        end
        LookKey: key_q.state <= known_q ? state_i : '0;
        LookCompare: begin
          // Wide, so in two steps: what is there, and whether it is the same.
          key_there_q <= keys_q[plan_o];
          hit_q <= key_known_q[plan_o];
        end
        default: ;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (keeps_i) keys_q[keep_place_i] <= key_q;
    if (!rst_ni) key_known_q <= '0;
    else if (keeps_i) key_known_q[keep_place_i] <= 1'b1;
    else if (forgets_i) key_known_q <= key_known_q & ~forget_mask_i;
  end

  assign communicator_o = key_q.communicator[7:0];
  assign known_o        = known_q;
  assign hit_o          = hit_q && key_there_q == key_q;

`ifndef SYNTHESIS
  logic waits_q;
  always_ff @(posedge clk_i) begin
    waits_q <= rst_ni && starts_i && !taken_i;
    if (rst_ni) keeps_or_forgets: assert (!(keeps_i && forgets_i));
    if (rst_ni && waits_q) start_stays: assert (starts_i);
  end
`endif

endmodule
