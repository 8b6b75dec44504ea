// What came before its call: lists of segments, in a table keyed by a hash of communicator, source and key.
//
// A segment that is early is appended to its list once it is in memory. The first operation on a pair of a new call
// goes through the list (EarlyBegin, then EarlyRead and EarlyCheck for each segment, then EarlyEnd): what is the pair's
// moves over to it, the rest stays in its order. Grants are handed over before it goes on; grants and requests have a
// buffer without content, which is given back. A receive takes one message only, with what continues it; that stands
// behind it, and before the next message of its source and key. When a communicator begins anew, its
// early segments are thrown away: the same way through each list that is not empty, one after the other.
//
// The operations of the receive-buffer manager say what is done in each cycle; this module has no order of its own.
//
// Latency: a list with n segments is gone through in 2 n + 2 cycles, an empty one in 2. What is appended counts for the
// number of lists one cycle later. Throughput: one list at a time.
// Restrictions: a list is gone through only when nothing is on its way to any (pending_o is low).

module unisono_rbm_early
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  early_op_e     op_i,
  input  bucket_t       bucket_i,                    // EarlyLook
  input  buffer_t       append_i,                    // EarlyAppend: the segment that joins the list looked at
  input  logic          store_i,                     // one more is on its way to a list
  output logic          pending_o,                   // some are
  output logic          any_o,                       // there are lists
  output logic          has_o,                       // the list that op_i looks at is not empty

  // The pair under way.
  input  rank_t         peer_i,
  // Of a call the datatype counts elsewhere.
  // verilator lint_off UNUSEDSIGNAL
  input  call_context_t context_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [31:0]   key_i,                       // its sequence; point to point, its tag
  input  logic          active_i,

  input  logic          wipe_i,                      // after a reset: nothing that is written counts

  // A communicator begins anew.
  input  logic          begins_valid_i,
  input  communicator_t begins_communicator_i,
  output logic          renews_o,                    // some do
  input  logic          renew_i,                     // what is early of them goes away; no operation in this cycle
  output logic          sweeps_o,                    // so EarlySweep has

  // The segment that is looked at: its buffer, in the next cycle what is known of it, and the next in its list.
  output buffer_t       look_o,
  // verilator lint_off UNUSEDSIGNAL
  input  info_t         info_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic          bad_i,
  input  buffer_t       link_i,
  output logic          link_write_o,
  output buffer_t       link_buffer_o,
  output buffer_t       link_next_o,

  // EarlyCheck: what becomes of it.
  output logic          hold_o,                      // it is checked again
  output logic          last_o,                      // it is the last of its list
  output buffer_t       at_o,
  output logic          give_back_o,
  output logic          mute_o,                      // its credit is of a communicator that is no more
  input  logic          give_back_full_i,
  output logic          grant_valid_o,
  input  logic          grant_ready_i,
  output logic          bind_o,                      // it is the message of the pair's receive, or begins it
  output logic          fail_o,
  output logic          fail_bad_o,                  // because memory did not take it
  output adopted_t      adopted_o                    // EarlyEnd: what has come early for the pair
);

  // ------------------------------------------------------------------------------------------ the table

  (* ram_style = "distributed" *) logic early_q [Buckets];   // the list is not empty
  logic early_here;                                  // that of bucket_q
  logic [$clog2(Buckets):0] early_count_q;
  logic write, read, valid;
  bucket_t bucket_d, bucket_q;
  buffer_t first, last, first_new, last_new;
  logic [4:0] early_pending_d, early_pending_q;
  unisono_ram_sdp #(.Width(2 * BufferWidth), .Depth(Buckets)) u_early (
    .clk_i, .wr_en_i(write), .wr_addr_i(bucket_q), .wr_data_i({first_new, last_new}),
    .rd_en_i(read), .rd_out_en_i(1'b1), .rd_addr_i(bucket_d), .rd_data_o({first, last})
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      early_count_q <= '0;
      early_pending_q <= '0;
      bucket_q <= '0;
    end else begin
      if (write && !wipe_i) begin
        early_count_q <= early_count_q + ($clog2(Buckets) + 1)'(valid && !early_here) -
                         ($clog2(Buckets) + 1)'(!valid && early_here);
      end
      early_pending_q <= early_pending_d;
      bucket_q <= bucket_d;
    end
  end
  always_ff @(posedge clk_i) begin
    if (write) early_q[bucket_q] <= valid;
  end
  assign early_here = early_q[bucket_q];
  assign has_o = early_q[bucket_d];
  assign any_o = early_count_q != '0;
  assign pending_o = early_pending_q != '0;

  // ----------------------------------------------------------------------------------- communicators anew

  logic [Communicators-1:0] renewed_d, renewed_q, sweeping_d, sweeping_q;
  logic renews_d, renews_q, sweeps_d, sweeps;        // whether there are any
  bucket_t sweep_bucket_d, sweep_bucket_q;           // the next one
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      renewed_q <= '0;
      renews_q <= 1'b0;
      sweeping_q <= '0;
      sweeps <= 1'b0;
      sweep_bucket_q <= '0;
    end else begin
      renewed_q <= renewed_d;
      renews_q <= renews_d || begins_valid_i;
      sweeping_q <= sweeping_d;
      sweeps <= sweeps_d;
      sweep_bucket_q <= sweep_bucket_d;
      if (begins_valid_i) renewed_q[begins_communicator_i] <= 1'b1;
    end
  end
  assign renews_o = renews_q;
  assign sweeps_o = sweeps;

  // ------------------------------------------------------------------------------------- through a list

  buffer_t at_d, at_q, stays_head_d, stays_head_q, stays_tail_d, stays_tail_q;
  logic walk_d, walk_q;                              // the list's head has been passed
  logic stays_d, stays_q;                            // some stay
  logic bound_d, bound_q;                            // the list has given its message
  logic open_d, open_q;                              // which what comes next may continue
  logic others, same;                                // the segment stays; it is of the pair
  adopted_t adopted_d, adopted_q;
  always_ff @(posedge clk_i) begin
    at_q <= at_d;
    stays_head_q <= stays_head_d;
    stays_tail_q <= stays_tail_d;
    stays_q <= stays_d;
    adopted_q <= adopted_d;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      walk_q <= 1'b0;
      bound_q <= 1'b0;
      open_q <= 1'b0;
    end else begin
      walk_q <= walk_d;
      bound_q <= bound_d;
      open_q <= open_d;
    end
  end
  assign at_o = at_q;
  assign adopted_o = adopted_q;
  assign last_o = at_q == last;
  assign same = info_i.communicator == context_i.communicator && info_i.source == peer_i &&
                info_i.point_to_point == context_i.point_to_point && info_i.key == key_i;
  assign others = sweeps ? !sweeping_q[info_i.communicator]
                         : !same || (info_i.continues ? !open_q : bound_q);

  // Apart from what follows from it.
  always_comb begin
    bucket_d = bucket_q;
    if ((op_i & (EarlyLook | EarlyAim)) != '0) bucket_d = bucket_i;
    if ((op_i & EarlySweep) != '0) bucket_d = sweep_bucket_q;
    if ((op_i & EarlyBegin) != '0) bucket_d = hash(context_i.communicator, peer_i, key_i);
  end

  always_comb begin
    read = 1'b0;
    write = 1'b0;
    valid = 1'b1;
    first_new = '0;
    last_new = '0;
    early_pending_d = early_pending_q + 5'(store_i);
    renewed_d = renewed_q;
    renews_d = renews_q;
    sweeping_d = sweeping_q;
    sweeps_d = sweeps;
    sweep_bucket_d = sweep_bucket_q;
    at_d = at_q;
    walk_d = walk_q;
    stays_d = stays_q;
    stays_head_d = stays_head_q;
    stays_tail_d = stays_tail_q;
    bound_d = bound_q;
    open_d = open_q;
    adopted_d = adopted_q;
    look_o = at_q;
    link_write_o = 1'b0;
    link_buffer_o = last;
    link_next_o = at_q;
    hold_o = 1'b0;
    give_back_o = 1'b0;
    mute_o = 1'b0;
    grant_valid_o = 1'b0;
    bind_o = 1'b0;
    fail_o = 1'b0;
    fail_bad_o = 1'b0;

    unique case (op_i)
      EarlyLook: read = 1'b1;
      EarlyAppend: begin
        early_pending_d = early_pending_q - 1'b1;
        write = 1'b1;
        link_write_o = early_here;
        link_next_o = append_i;
        first_new = early_here ? first : append_i;
        last_new = append_i;
      end
      EarlyVoid: begin
        write = 1'b1;
        valid = 1'b0;
      end
      EarlySweep, EarlyBegin: begin
        read = 1'b1;
        stays_d = 1'b0;
        walk_d = 1'b0;
        at_d = '0;
        if (op_i == EarlySweep) begin
          sweep_bucket_d = sweep_bucket_q + 1'b1;
          if (!has_o && sweep_bucket_q == '1) sweeps_d = 1'b0;
        end else begin
          adopted_d = '0;
          bound_d = 1'b0;
          open_d = 1'b0;
        end
      end
      EarlyRead: begin
        // The list's head, or the next one; its words are there in the next cycle.
        at_d = walk_q ? at_q : first;
        walk_d = 1'b1;
        look_o = at_d;
      end
      EarlyCheck: begin
        at_d = link_i;
        if (others) begin
          link_write_o = stays_q;
          link_buffer_o = stays_tail_q;
          stays_d = 1'b1;
          if (!stays_q) stays_head_d = at_q;
          stays_tail_d = at_q;
          // Another message of the same key: what follows continues that.
          if (same && !info_i.continues) open_d = 1'b0;
        end else if (sweeps) begin
          hold_o = give_back_full_i;
          mute_o = !give_back_full_i;
          give_back_o = !give_back_full_i;
        end else if (info_i.grant && !active_i) begin
          give_back_o = 1'b1;
        end else if (info_i.grant) begin
          // Waits here until the dispatcher has it.
          grant_valid_o = 1'b1;
          hold_o = !grant_ready_i;
          give_back_o = grant_ready_i;
        end else begin
          if (context_i.point_to_point) begin
            // A receive takes one message.
            bound_d = 1'b1;
            bind_o = !info_i.continues;
            if (!info_i.continues) open_d = info_i.opens;
            adopted_d.bound = 1'b1;
            adopted_d.total = info_i.total;
          end
          if (info_i.request) begin
            adopted_d.requested = 1'b1;
            give_back_o = 1'b1;
          end else begin
            link_write_o = adopted_q.listed;
            link_buffer_o = adopted_q.tail;
            adopted_d.listed = 1'b1;
            if (!adopted_q.listed) adopted_d.head = at_q;
            adopted_d.tail = at_q;
            adopted_d.received = info_i.last ? '0 : info_i.opens ? message_bytes_t'(info_i.bytes) : info_i.ends;
          end
          fail_o = (info_i.signature != context_i.signature || bad_i) && active_i;
          fail_bad_o = bad_i;
        end
        if (hold_o) at_d = at_q;
      end
      EarlyEnd: begin
        write = early_here && walk_q;
        valid = stays_q;
        first_new = stays_head_q;
        last_new = stays_tail_q;
        walk_d = 1'b0;
        if (sweeps && sweep_bucket_q == '0) sweeps_d = 1'b0;
      end
      default: ;
    endcase
    if (renew_i) begin
      renewed_d = '0;
      renews_d = 1'b0;
      sweeping_d = renewed_q;
      sweeps_d = 1'b1;
    end
  end

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(store_i && op_i == EarlyAppend)) else $error("a segment is stored while another is appended");
      assert (op_i != EarlyAppend || pending_o) else $error("a segment is appended that was not on its way");
      assert (!renew_i || op_i == EarlyNone) else $error("communicators begin anew amid an operation");
      assert (op_i != EarlyBegin || !pending_o) else $error("a list is gone through too early");
    end
  end
  `endif

endmodule
