// Proof of unisono_rbm_pool: no buffer is given twice or lost, and each credit is owed once.
//
// What it asks of the users: a buffer comes back once for each time that it was taken, in one of the two ways; nothing
// goes past the buffers twice in a row. With CheckIdentity the proof keeps which buffers are out, and how many credits
// are on their way. Without, it counts, and asks only that no more come back than are out.

module unisono_rbm_pool_proof
  import unisono_rbm_pkg::*;
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned Depth = 4,
  parameter bit CheckIdentity = 1'b1,
  localparam int unsigned Width = $clog2(Depth)
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             free_take_i,
  input owner_t           owner_i,
  input logic             release_valid_i,
  input logic [Width-1:0] release_buffer_i,
  input logic             signal_valid_i,
  input logic             signal_mute_i,
  input logic [Width-1:0] signal_buffer_i,
  input logic             bypass_valid_i
);

  // A buffer that has come back is free after so many cycles: behind all others, two cycles each, and one way through.
  localparam int unsigned Settled = 2 * Depth + 2;

  logic free_valid, owed_valid;
  logic [Width-1:0] free_buffer;
  logic [Width:0] free_count;

  unisono_rbm_pool #(.Depth(Depth), .ReleaseDepth(Depth), .SignalDepth(Depth)) u_dut (
    .clk_i, .rst_ni, .free_valid_o(free_valid), .free_take_i, .free_buffer_o(free_buffer), .free_count_o(free_count),
    .owner_i, .release_valid_i, .release_buffer_i, .signal_valid_i, .signal_mute_i, .signal_buffer_i,
    .signal_full_o(), .bypass_valid_i, .owed_valid_o(owed_valid), .owed_communicator_o(), .owed_peer_o()
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end

  // What is out, and whether its credit will be owed.
  logic [Depth-1:0] out_q, eager_q;
  logic [Width:0] outs_q;
  logic [5:0] owing_q;
  logic [$clog2(Settled+1)-1:0] quiet_q;             // cycles since anything came back, or went past
  logic bypass_q, earns_release, earns_signal;

  assign earns_release = release_valid_i && eager_q[release_buffer_i];
  assign earns_signal = signal_valid_i && eager_q[signal_buffer_i] && !signal_mute_i;

  always_comb if (rst_ni) begin
    takes_what_is_there: assume (!free_take_i || free_valid);
    if (CheckIdentity) begin
      releases_what_is_out: assume (!release_valid_i || out_q[release_buffer_i]);
      signals_what_is_out: assume (!signal_valid_i || out_q[signal_buffer_i]);
      one_way: assume (!release_valid_i || !signal_valid_i || release_buffer_i != signal_buffer_i);
    end
    as_many_as_are_out: assume ((Width + 1)'(release_valid_i) + (Width + 1)'(signal_valid_i) <= outs_q);
    one_header_at_a_time: assume (!bypass_valid_i || (!bypass_q && !free_take_i));
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q <= '0;
      outs_q <= '0;
      eager_q <= '0;
      owing_q <= '0;
      quiet_q <= '0;
      bypass_q <= 1'b0;
    end else begin
      if (release_valid_i) out_q[release_buffer_i] <= 1'b0;
      if (signal_valid_i) out_q[signal_buffer_i] <= 1'b0;
      if (free_take_i) begin
        out_q[free_buffer] <= 1'b1;
        eager_q[free_buffer] <= owner_i.eager;
      end
      outs_q <= outs_q + (Width + 1)'(free_take_i) - (Width + 1)'(release_valid_i) - (Width + 1)'(signal_valid_i);
      owing_q <= owing_q + 6'(earns_release) + 6'(earns_signal) + 6'(bypass_valid_i) - 6'(owed_valid);
      if (release_valid_i || signal_valid_i || bypass_valid_i) quiet_q <= '0;
      else if (32'(quiet_q) != Settled) quiet_q <= quiet_q + 1'b1;
      bypass_q <= bypass_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      not_more_than_there_are: assert (free_count + outs_q <= (Width + 1)'(Depth));
      if (32'(quiet_q) == Settled) begin
        none_lost: assert (free_count + outs_q == (Width + 1)'(Depth));
        offered: assert (free_valid == (outs_q != (Width + 1)'(Depth)));
        if (CheckIdentity) all_owed: assert (owing_q == '0);
      end
      if (CheckIdentity) begin
        if (free_valid) not_given_twice: assert (!out_q[free_buffer]);
        if (owing_q == '0) owed_once: assert (!owed_valid);
      end
    end
  end

endmodule
