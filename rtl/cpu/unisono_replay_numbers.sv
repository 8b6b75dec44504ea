// Numbers the collectives of each communicator, in the order of their starts.
//
// A communicator that was made anew, which its state tells, counts from 0.
//
// Latency: the number is there one cycle after its communicator, and the next one one cycle after it was counted.
// Throughput: one per two cycles of a communicator.

module unisono_replay_numbers
  import unisono_cpu_pkg::*;
#(
  parameter int unsigned Communicators = 32,
  localparam int unsigned CommunicatorWidth = $clog2(Communicators)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic [CommunicatorWidth-1:0] communicator_i,
  // What tells a new one from one that has changed; other bits do not.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [31:0]                  state_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic                         count_i,        // a collective has this number
  output logic [31:0]                  number_o
);

  localparam int unsigned Life = CommunicatorCrowded + 1;

  // A communicator that was made anew counts its collectives from 0.
  typedef struct packed {
    logic [31:Life] state;
    logic [31:0] next;
  } numbers_t;
  (* ram_style = "distributed" *) numbers_t numbers [Communicators];
  logic [Communicators-1:0] counted_q;
  logic [CommunicatorWidth-1:0] number_of;
  numbers_t number_there;
  logic [31:0] number_q;
  assign number_of = communicator_i;
  assign number_there = numbers[number_of];

  always_ff @(posedge clk_i) begin
    number_q <= counted_q[number_of] && number_there.state == state_i[31:Life] ? number_there.next : '0;
    if (count_i) begin
      numbers[number_of] <= '{state: state_i[31:Life], next: number_q + 32'd1};
      counted_q[number_of] <= 1'b1;
    end
    if (!rst_ni) counted_q <= '0;
  end
  assign number_o = number_q;

endmodule
