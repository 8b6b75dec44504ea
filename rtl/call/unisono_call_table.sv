// The table of outstanding calls: what each waits for, and which ask to start.
//
// A call waits for up to two others to end, and behind one other of its order to start. When a call ends, those that
// waited for it wait no more, and fail with its code if it has failed; the first failure counts. A call that leaves
// its order, by starting or by ending before, hands on whom it stood behind: so each call knows one other, and the
// last of an order (its *tail*) is found by the search.
//
// Latency: what a start or an end changes is there one cycle later, what leaving an order changes two cycles later.
// Throughput: one call is entered, starts or ends per cycle.
// Restrictions: no call is entered in the cycle of a start or in the next.

module unisono_call_table
  import unisono_call_pkg::*;
#(
  parameter int unsigned KernelPorts = 1,
  localparam int unsigned KernelWidth = KernelPorts > 1 ? $clog2(KernelPorts) : 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A call is entered, with what was found for it; it starts at once if it is direct, and has failed if it has a code.
  input  logic                   enter_i,
  input  call_entry_t            entry_i,
  // Where it goes and its order; the rest of it is kept elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  call_candidate_t        candidate_i,
  input  call_found_t            found_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [KernelWidth-1:0] kernel_i,
  input  logic                   direct_i,
  input  call_code_t             code_i,

  // A call starts, or ends here.
  input  call_entry_t            pick_i,
  input  logic                   start_i,
  output logic                   pick_failed_o,
  output call_code_t             pick_code_o,

  // A call ends.
  input  logic                   end_valid_i,
  input  call_entry_t            end_entry_i,
  input  call_code_t             end_code_i,

  // Which may start, as far as they and the places know.
  input  logic                   slot_free_i,
  input  logic [KernelPorts-1:0] kernel_free_i,
  output logic [Entries-1:0]     request_o,

  output logic [Entries-1:0]     listed_o,           // in the table
  output logic [Entries-1:0]     twin_o,
  output logic [Entries-1:0]     tail_o
);

  logic [Entries-1:0]         parked_q;   // in the table and not started
  logic [Entries-1:0]         listed_q;   // in the table
  logic [Entries-1:0]         failed_q;
  logic [Entries-1:0]         twin_q;     // refused, because its id is that of another one
  logic [Entries-1:0]         wait0_valid_q, wait1_valid_q, order_valid_q;
  logic [Entries-1:0]         tail_q;     // the last one of its order that was not started
  call_entry_t [Entries-1:0]  wait0_entry_q, wait1_entry_q, order_entry_q;
  call_code_t [Entries-1:0]   fail_code_q;
  call_place_e [Entries-1:0]  place_q;
  logic [Entries-1:0][KernelWidth-1:0] kernel_q;

  always_comb begin
    for (int unsigned e = 0; e < Entries; e++) begin
      request_o[e] = parked_q[e] && (failed_q[e] || (!wait0_valid_q[e] && !wait1_valid_q[e]
                && !order_valid_q[e]
                && (place_q[e] == PlaceNone
                 || (place_q[e] == PlaceSlot && slot_free_i)
                 || (place_q[e] == PlaceKernel && kernel_free_i[kernel_q[e]]))));
    end
  end

  // A call that leaves its order, by starting or by ending before, hands on whom it stood behind.
  // What it was and stood behind is read in the cycle before; nothing enters in either.
  logic        leaves_q, leaver_tail_q, leaver_order_q;
  call_entry_t leaver_q, leaver_behind_q;
  always_ff @(posedge clk_i) begin
    leaves_q        <= rst_ni && start_i;
    leaver_q        <= pick_i;
    leaver_tail_q   <= tail_q[pick_i];
    leaver_order_q  <= order_valid_q[pick_i];
    leaver_behind_q <= order_entry_q[pick_i];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      parked_q      <= '0;
      listed_q      <= '0;
      failed_q      <= '0;
      twin_q        <= '0;
      wait0_valid_q <= '0;
      wait1_valid_q <= '0;
      order_valid_q <= '0;
      tail_q        <= '0;
    end else begin
      if (enter_i) begin
        listed_q[entry_i]      <= 1'b1;
        parked_q[entry_i]      <= !direct_i;
        failed_q[entry_i]      <= code_i != '0;
        twin_q[entry_i]        <= found_i.twin;
        wait0_valid_q[entry_i] <= found_i.wait0;
        wait1_valid_q[entry_i] <= found_i.wait1;
        if (code_i == '0 && candidate_i.order != OrderNone) begin
          order_valid_q[entry_i] <= found_i.order;
          tail_q[entry_i]        <= !direct_i;
          if (found_i.order) begin
            tail_q[found_i.order_at] <= 1'b0;
          end
        end
      end
      if (start_i) begin
        parked_q[pick_i] <= 1'b0;
      end
      if (leaves_q) begin
        tail_q[leaver_q] <= 1'b0;
        if (leaver_tail_q && leaver_order_q) begin
          tail_q[leaver_behind_q] <= 1'b1;
        end
        order_valid_q[leaver_q] <= 1'b0;
        for (int unsigned e = 0; e < Entries; e++) begin
          if (order_valid_q[e] && order_entry_q[e] == leaver_q) begin
            order_valid_q[e] <= leaver_order_q;
          end
        end
      end
      if (end_valid_i) begin
        listed_q[end_entry_i]      <= 1'b0;
        failed_q[end_entry_i]      <= 1'b0;
        twin_q[end_entry_i]        <= 1'b0;
        wait0_valid_q[end_entry_i] <= 1'b0;
        wait1_valid_q[end_entry_i] <= 1'b0;
        for (int unsigned e = 0; e < Entries; e++) begin
          if ((wait0_valid_q[e] && wait0_entry_q[e] == end_entry_i)
           || (wait1_valid_q[e] && wait1_entry_q[e] == end_entry_i)) begin
            if (end_code_i != '0) begin
              failed_q[e] <= 1'b1;
            end
            if (wait0_entry_q[e] == end_entry_i) begin
              wait0_valid_q[e] <= 1'b0;
            end
            if (wait1_entry_q[e] == end_entry_i) begin
              wait1_valid_q[e] <= 1'b0;
            end
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (enter_i) begin
      wait0_entry_q[entry_i] <= found_i.wait0_at;
      wait1_entry_q[entry_i] <= found_i.wait1_at;
      order_entry_q[entry_i] <= found_i.order_at;
      place_q[entry_i]       <= candidate_i.place;
      kernel_q[entry_i]      <= kernel_i;
      fail_code_q[entry_i]   <= code_i;
    end
    for (int unsigned e = 0; e < Entries; e++) begin
      if (leaves_q && order_valid_q[e] && order_entry_q[e] == leaver_q) begin
        order_entry_q[e] <= leaver_behind_q;
      end
      // The first failure counts.
      if (end_valid_i && !failed_q[e]
       && ((wait0_valid_q[e] && wait0_entry_q[e] == end_entry_i)
        || (wait1_valid_q[e] && wait1_entry_q[e] == end_entry_i))) begin
        fail_code_q[e] <= end_code_i;
      end
    end
  end

  assign pick_failed_o = failed_q[pick_i];
  assign pick_code_o   = fail_code_q[pick_i];
  assign listed_o      = listed_q;
  assign twin_o        = twin_q;
  assign tail_o        = tail_q;

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!end_valid_i || listed_q[end_entry_i]) else $error("%m: ends what is not there");
      assert (!end_valid_i || !parked_q[end_entry_i]) else $error("%m: ends a call that was not started");
      assert (!leaves_q || !enter_i) else $error("%m: enters while another one leaves");
      assert (!start_i || parked_q[pick_i]) else $error("%m: starts a call twice");
    end
  end
  `endif

endmodule
