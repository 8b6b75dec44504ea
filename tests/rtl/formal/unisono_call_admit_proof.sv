// Proof of unisono_call_admit: no entry is given twice, and each that is free can be given.
//
// What it asks of its users: a call is entered when all its rows have come; only calls in the table end, each once. The
// proof keeps which entries have been given and have not ended.

module unisono_call_admit_proof
  import unisono_call_pkg::*;
#(
  parameter int unsigned Requesters = 2
) (
  input logic                          clk_i,
  input logic                          rst_ni,
  input logic [Requesters-1:0]         quad_valid_i,
  input logic                          entered_i,
  input logic                          end_valid_i,
  input call_entry_t                   end_entry_i,
  input logic [$clog2(Requesters)-1:0] end_requester_i,
  input logic [Requesters-1:0]         answered_i
);

  logic begins, waits, step, there, begun_q, fresh_q;
  logic [Requesters-1:0] quad_ready;
  logic [$clog2(Requesters)-1:0] requester;
  call_quad_index_t index;
  call_entry_t entry;
  logic [EntryIndexWidth:0] outstanding;
  logic [Entries-1:0] out_q, listed_q;

  unisono_call_admit #(.Requesters(Requesters)) u_dut (
    .clk_i, .rst_ni, .quad_valid_i, .quad_ready_o(quad_ready), .begin_o(begins), .step_o(step), .index_o(index),
    .there_o(there), .waits_o(waits), .requester_o(requester), .entry_o(entry), .entered_i, .end_valid_i, .end_entry_i,
    .end_requester_i, .answered_i, .outstanding_o(outstanding)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb if (!started_q) begin
    reset_first: assume (!rst_ni);
  end
  always_comb if (rst_ni) begin
    enters_what_has_come: assume (!entered_i || waits);
    ends_what_is_in_the_table: assume (!end_valid_i || listed_q[end_entry_i]);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q <= 1'b0;
      out_q <= '0;
      listed_q <= '0;
      fresh_q <= 1'b0;
    end else begin
      begun_q <= begins;
      fresh_q <= 1'b1;
      if (begun_q) out_q[entry] <= 1'b1;
      if (entered_i) listed_q[entry] <= 1'b1;
      if (end_valid_i) begin
        out_q[end_entry_i] <= 1'b0;
        listed_q[end_entry_i] <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni && fresh_q) begin
      if (begun_q) not_given_twice: assert (!out_q[entry]);
      rows_of_one: assert ((quad_ready & (quad_ready - 1'b1)) == '0);
      if (step) rows_of_the_chosen: assert (quad_ready[requester] && out_q[entry] | begun_q);
      if (waits) candidate_has_its_entry: assert (out_q[entry] && !listed_q[entry] && there);
    end
  end

endmodule
