// Takes calls of the host and of kernels, keeps them until they may start, and tells their requesters
// how they ended.
//
// It joins its parts: admission, the checks of a descriptor, the search, the table of entries. What is left is one
// thing at a time: the search, an entry, a start or an end.
//
// An outstanding call has an entry. At admission its descriptor goes to the descriptor memory and is
// checked; then the entries are searched for the calls that it waits for, the failures of its requester
// for those that have ended badly, and the entries again for the call behind which it must start. A call
// with nothing left to wait for goes to an active slot or a kernel; a nop, and a call that has failed,
// end here. Every call ends through the same state and is answered once.
//
// Requester 0 is the host, requester 1 + k the kernel port k. Ids belong to a requester.
// Latency: from the first rows of a descriptor to its start, or to a nop's answer: see
// docs/rtl/call_queue.md. Throughput: one admission in 6 cycles, and one more for each line of the search
// beyond the first; a start in 4, an end in 2.
// Restrictions: Requesters <= 8. A requester has at most 32 calls that are outstanding or whose answers
// it has not taken; the entries are shared, but one is kept for each requester that has none. Communicators
// from 256 on count as one: there are none.

module unisono_call_queue #(
  parameter int unsigned KernelPorts = 1,
  parameter int unsigned Programs = 16,
  parameter int unsigned StreamPorts = unisono_spec_pkg::MaxStreamPorts,
  localparam int unsigned Requesters = KernelPorts + 1,
  localparam int unsigned KernelWidth = KernelPorts > 1 ? $clog2(KernelPorts) : 1
) (
  input  logic                                              clk_i,
  input  logic                                              rst_ni,

  // Descriptors, four rows at a time, 16 each. Bad belongs to the last four: the descriptor was not as long as it
  // must be.
  input  logic [Requesters-1:0]                             quad_valid_i,
  output logic [Requesters-1:0]                             quad_ready_o,
  input  unisono_call_pkg::call_quad_t [Requesters-1:0]     quad_data_i,
  input  logic [Requesters-1:0]                             quad_bad_i,

  // To the descriptor memory.
  output logic                                              write_o,
  output unisono_call_pkg::call_entry_t                     write_entry_o,
  output unisono_call_pkg::call_quad_index_t                write_quad_o,
  output unisono_call_pkg::call_quad_t                      write_data_o,

  // Programs that can be called.
  input  logic [Programs-1:0]                               program_loaded_i,

  // Starts. A place that says it is free takes the start at once.
  input  logic                                              slot_free_i,
  input  logic [KernelPorts-1:0]                            kernel_free_i,
  output logic                                              slot_start_o,
  output logic [KernelPorts-1:0]                            kernel_start_o,
  output unisono_call_pkg::call_start_t                     start_o,

  // Ends of what was started: 0 of slots, 1 of kernels.
  input  logic [1:0]                                        end_valid_i,
  output logic [1:0]                                        end_ready_o,
  input  unisono_call_pkg::call_end_t [1:0]                 end_i,

  // Answers, one stream for each requester.
  output logic [Requesters-1:0]                             response_valid_o,
  input  logic [Requesters-1:0]                             response_ready_i,
  output unisono_call_pkg::call_response_t [Requesters-1:0] response_o,

  // Entries that hold a call, and each failure when it is answered.
  output logic [unisono_call_pkg::EntryIndexWidth:0]        outstanding_o,
  output logic                                              failed_o,
  output unisono_call_pkg::call_response_t                  failed_response_o
);

  import unisono_spec_pkg::*;
  import unisono_call_pkg::*;

  if (KernelPorts < 1 || KernelPorts > 7) begin : gen_bad_kernels
    $error("unisono_call_queue: KernelPorts must be between 1 and 7");
  end
  if (Programs < 1 || StreamPorts > MaxStreamPorts) begin : gen_bad_limits
    $error("unisono_call_queue: Programs must be at least 1, StreamPorts at most MaxStreamPorts");
  end

  localparam int unsigned RequesterWidth = $clog2(Requesters);
  localparam int unsigned CountWidth = EntryIndexWidth + 1;

  typedef logic [RequesterWidth-1:0] requester_t;

  // What else a call needs when it starts or ends.
  typedef struct packed {
    call_place_e place;
    logic [KernelWidth-1:0] kernel;
    requester_t  requester;
    logic [31:0] call_id;
    logic [1:0]  mode;
    logic        src_stream;
    logic        dst_stream;
    unisono_cclo_pkg::stream_port_t src_port;
    unisono_cclo_pkg::stream_port_t dst_port;
    logic [31:0] deadline_us;
    logic [31:0] tag;
  } kept_t;

  typedef enum logic [2:0] {
    StIdle,
    StScan,     // four entries or failures a cycle
    StEnter,    // the candidate goes into the table
    StStart,    // an entry starts, or ends at once
    StEnd       // a call is answered; what waited for it is told
  } state_e;

  state_e      state_q;
  call_entry_t pick_q, end_entry_q;
  call_code_t  end_code_q;

  // ----------------------------------------------------------------------------------------- parts

  logic        begin_intake, quad_step, there, waits_entry, checks, entered, last_line, direct_start, pick_failed;
  requester_t  requester;
  call_entry_t entry;
  call_code_t  enter_code, pick_code;
  call_quad_index_t quad;
  call_candidate_t candidate;
  call_found_t found;
  logic [KernelWidth-1:0] kernel_number;
  logic [Requesters-1:0] answer_push, answer_pop;
  logic [Entries-1:0] request, listed, twin, tail;
  kept_t       kept;
  requester_t  end_requester_q;           // of the call that ends
  logic [31:0] end_id_q;

  unisono_call_admit #(.Requesters(Requesters)) u_admit (
    .clk_i, .rst_ni, .quad_valid_i, .quad_ready_o, .begin_o(begin_intake), .step_o(quad_step), .index_o(quad),
    .there_o(there), .waits_o(waits_entry), .requester_o(requester), .entry_o(entry), .entered_i(entered),
    .end_valid_i(state_q == StEnd), .end_entry_i(end_entry_q), .end_requester_i(end_requester_q),
    .answered_i(answer_pop), .outstanding_o
  );
  unisono_call_check #(.KernelPorts(KernelPorts), .Programs(Programs), .StreamPorts(StreamPorts)) u_check (
    .clk_i, .rst_ni, .begin_i(begin_intake), .step_i(quad_step), .index_i(quad), .quad_i(write_data_o),
    .bad_i(quad_bad_i[requester]), .program_loaded_i, .checks_o(checks), .candidate_o(candidate),
    .kernel_o(kernel_number)
  );
  unisono_call_search #(.Requesters(Requesters)) u_search (
    .clk_i, .rst_ni, .idle_i(state_q == StIdle), .scan_i(state_q == StScan), .last_o(last_line),
    .candidate_i(candidate), .requester_i(requester), .enter_i(entered), .entry_i(entry),
    .listed_i(listed), .twin_i(twin), .tail_i(tail), .end_valid_i(state_q == StEnd), .end_entry_i(end_entry_q),
    .end_requester_i(end_requester_q), .end_id_i(end_id_q), .end_code_i(end_code_q), .found_o(found)
  );
  unisono_call_table #(.KernelPorts(KernelPorts)) u_table (
    .clk_i, .rst_ni, .enter_i(entered), .entry_i(entry), .candidate_i(candidate), .found_i(found),
    .kernel_i(kernel_number), .direct_i(direct_start), .code_i(enter_code), .pick_i(pick_q),
    .start_i(state_q == StStart), .pick_failed_o(pick_failed), .pick_code_o(pick_code),
    .end_valid_i(state_q == StEnd), .end_entry_i(end_entry_q), .end_code_i(end_code_q), .slot_free_i, .kernel_free_i,
    .request_o(request), .listed_o(listed), .twin_o(twin), .tail_o(tail)
  );

  assign write_o       = quad_step;
  assign write_entry_o = entry;
  assign write_quad_o  = quad;
  assign write_data_o  = quad_data_i[requester];

  // ------------------------------------------------------------------------------ requests of entries

  // The next one after the one picked last: the lowest above it, or the lowest of all.
  logic [Entries-1:0] request_q, above, above_pick_q;
  call_entry_t pick;
  logic        above_any, request_any;
  call_entry_t above_pick, request_pick;
  logic [1:0][Entries-1:0] unused_one;
  assign above = request_q & above_pick_q;
  assign pick  = above_any ? above_pick : request_pick;

  unisono_lowest_one #(
    .Width(Entries)
  ) u_above (
    .bits_i (above),
    .any_o  (above_any),
    .index_o(above_pick),
    .one_o  (unused_one[0])
  );

  unisono_lowest_one #(
    .Width(Entries)
  ) u_request (
    .bits_i (request_q),
    .any_o  (request_any),
    .index_o(request_pick),
    .one_o  (unused_one[1])
  );

  always_ff @(posedge clk_i) begin
    request_q <= rst_ni ? request : '0;
    for (int unsigned e = 0; e < Entries; e++) begin
      above_pick_q[e] <= call_entry_t'(e) > pick_q;
    end
  end

  // ----------------------------------------------------------------------------- one thing at a time

  // What a start has changed reaches the requests, and free places, two cycles after it.
  logic [1:0] hold_q;
  logic       slot_free_q;
  always_ff @(posedge clk_i) begin
    slot_free_q <= rst_ni && slot_free_i;
    if (!rst_ni) begin
      hold_q <= '0;
    end else if (state_q == StStart || direct_start) begin
      hold_q <= 2'd2;
    end else if (hold_q != '0) begin
      hold_q <= hold_q - 2'd1;
    end
  end

  always_comb begin
    enter_code = candidate.code;
    if (candidate.code == '0) begin
      if (found.twin) begin
        enter_code = call_code_t'(ErrorCodeInvalidArgument);
      end else if (!found.wait0 && candidate.wait0 != '0 && found.wait0_code != '0) begin
        enter_code = found.wait0_code;
      end else if (!found.wait1 && candidate.wait1 != '0 && found.wait1_code != '0) begin
        enter_code = found.wait1_code;
      end
    end
  end

  logic starts, ends_here, waits, direct;
  assign ends_here = pick_failed || kept.place == PlaceNone;
  assign starts    = state_q == StStart && !ends_here;
  assign entered   = state_q == StEnter;

  // A call that waits for nothing starts right after it was entered, unless another one has asked before.
  assign waits  = found.wait0 || found.wait1 || found.order;
  assign direct = enter_code != '0
               || (!waits && (candidate.place == PlaceNone
                              || (candidate.place == PlaceSlot && slot_free_i && slot_free_q && hold_q == '0
                                  && !request_any)));

  // One for a slot does so as it is entered. As it stood behind none, it leaves its order without a trace.
  assign direct_start = state_q == StEnter && direct && enter_code == '0 && candidate.place == PlaceSlot;

  logic end_turn_q;                      // whose end goes first
  logic [1:0] end_grant;
  call_end_t  end_picked;
  always_comb begin
    end_grant = '0;
    if (end_valid_i[end_turn_q]) begin
      end_grant[end_turn_q] = 1'b1;
    end else if (end_valid_i[!end_turn_q]) begin
      end_grant[!end_turn_q] = 1'b1;
    end
  end
  assign end_ready_o = state_q == StIdle ? end_grant : '0;
  assign end_picked  = end_grant[1] ? end_i[1] : end_i[0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q    <= StIdle;
      pick_q     <= '0;
      end_turn_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle: begin
          if (end_grant != '0) begin
            state_q    <= StEnd;
            end_turn_q <= !end_turn_q;
          end else if (there) begin
            state_q <= StScan;
          end else if (request_any && hold_q == '0) begin
            state_q <= StStart;
            pick_q  <= pick;
          end
        end
        StScan: begin
          if (last_line) begin
            state_q <= StEnter;
          end
        end
        StEnter: begin
          state_q <= direct && !direct_start ? StStart : StIdle;
          if (direct) begin
            pick_q <= entry;
          end
        end
        StStart: state_q <= ends_here ? StEnd : StIdle;
        default: state_q <= StIdle;
      endcase
    end
    if (state_q == StStart) begin
      end_entry_q  <= pick_q;
      end_code_q   <= pick_failed ? pick_code : '0;
    end else if (state_q == StIdle) begin
      end_entry_q  <= end_picked.entry;
      end_code_q   <= end_picked.code;
    end
  end

  // ---- starts

  call_start_t candidate_start;
  assign candidate_start = '{entry: entry, call_id: candidate.call_id, tag: candidate.tag,
                             deadline_us: candidate.deadline_us, mode: candidate.mode,
                             src_stream: candidate.src_stream, dst_stream: candidate.dst_stream,
                             src_port: candidate.src_port, dst_port: candidate.dst_port};

  (* ram_style = "distributed" *) kept_t keeps [Entries];
  always_ff @(posedge clk_i) begin
    if (state_q == StEnter) begin
      keeps[entry] <= '{place: candidate.place, kernel: kernel_number, requester: requester,
                        call_id: candidate.call_id, mode: candidate.mode,
                        src_stream: candidate.src_stream, dst_stream: candidate.dst_stream,
                        src_port: candidate.src_port, dst_port: candidate.dst_port,
                        deadline_us: candidate.deadline_us, tag: candidate.tag};
    end
  end
  // That of an end is read before it, as the choice is made.
  assign kept = keeps[state_q == StIdle ? end_picked.entry : pick_q];
  always_ff @(posedge clk_i) begin
    end_requester_q <= kept.requester;
    end_id_q        <= kept.call_id;
  end

  always_ff @(posedge clk_i) begin
    slot_start_o   <= rst_ni && ((starts && kept.place == PlaceSlot) || direct_start);
    kernel_start_o <= '0;
    if (rst_ni && starts && kept.place == PlaceKernel) begin
      kernel_start_o[kept.kernel] <= 1'b1;
    end
    if (state_q == StEnter) start_o <= candidate_start;
    else start_o <= '{entry: pick_q, call_id: kept.call_id, tag: kept.tag,
                 deadline_us: kept.deadline_us, mode: kept.mode,
                 src_stream: kept.src_stream, dst_stream: kept.dst_stream,
                 src_port: kept.src_port, dst_port: kept.dst_port};
  end

  // ----------------------------------------------------------------------------------------- answers

  call_response_t answer;
  assign answer = '{code: 16'(end_code_q), call_id: end_id_q};

  for (genvar r = 0; r < int'(Requesters); r++) begin : gen_answers
    logic unused_ready;
    logic [CountWidth-1:0] unused_count;
    assign answer_push[r] = state_q == StEnd && end_requester_q == requester_t'(r);
    assign answer_pop[r]  = response_valid_o[r] && response_ready_i[r];

    unisono_fifo #(
      .Width($bits(call_response_t)),
      .Depth(Entries)
    ) u_answers (
      .clk_i,
      .rst_ni,
      .in_valid_i (answer_push[r]),
      .in_ready_o (unused_ready),
      .in_data_i  (answer),
      .out_valid_o(response_valid_o[r]),
      .out_ready_i(response_ready_i[r]),
      .out_data_o (response_o[r]),
      .count_o    (unused_count)
    );

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        assert (!answer_push[r] || unused_ready) else $error("%m: an answer is lost");
      end
    end
`endif
  end

  always_ff @(posedge clk_i) begin
    failed_o          <= rst_ni && state_q == StEnd && end_code_q != '0;
    failed_response_o <= answer;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (state_q != StEnter || (waits_entry && !checks)) else $error("%m: enters too early");
    end
  end
`endif

endmodule
