// Takes calls of the host and of kernels, keeps them until they may start, and tells their requesters
// how they ended.
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
  localparam int unsigned ProgramWidth = Programs > 1 ? $clog2(Programs) : 1;
  // Entries, and failures, are searched four at a time; only lines in which there are some.
  localparam int unsigned Banks = 4;
  localparam int unsigned BankWidth = $clog2(Banks);
  localparam int unsigned Lines = Entries / Banks;
  localparam int unsigned LineWidth = $clog2(Lines);

  typedef logic [RequesterWidth-1:0] requester_t;
  typedef logic [CountWidth-1:0] count_t;
  typedef logic [8:0] place_t;           // in the communicator table; 256: beyond it

  // What the search looks at: an entry, or a failure.
  typedef struct packed {
    call_order_e order;
    place_t      communicator;
    requester_t  requester;
    logic [31:0] call_id;
  } card_t;

  localparam int unsigned AuxWidth = $bits(card_t) - 32;

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

  // ------------------------------------------------------------------------------------- admission

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
  logic        quad_step, last_quad;
  logic        entered;              // the candidate is in the table

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
  logic begin_intake;
  assign begin_intake = (intake_q == InChoose || entered) && requester_any && free_any_q;
  assign quad_step    = intake_q == InQuads && quad_valid_i[requester_q];
  assign last_quad    = quad_q == call_quad_index_t'(Quads - 1);

  always_comb begin
    quad_ready_o = '0;
    quad_ready_o[requester_q] = intake_q == InQuads;
  end

  assign write_o       = quad_step;
  assign write_entry_o = entry_q;
  assign write_quad_o  = quad_q;
  assign write_data_o  = quad_data_i[requester_q];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      intake_q    <= InChoose;
      requester_q <= '0;
      quad_q      <= '0;
    end else begin
      unique case (intake_q)
        InQuads: begin
          if (quad_step) begin
            quad_q <= quad_q + call_quad_index_t'(1);
            if (last_quad) begin
              intake_q <= InCandidate;
            end
          end
        end
        default: begin
          if (begin_intake) begin
            intake_q    <= InQuads;
            requester_q <= requester_pick;
          end else if (entered) begin
            intake_q <= InChoose;
          end
        end
      endcase
    end
    if (begin_intake) begin
      entry_q <= free_entry_q;
    end
  end

  // --------------------------------------------------------------------- the candidate and its checks

  logic             check_q, bad_q;
  call_quad_index_t checked_quad_q;
  call_quad_t       checked_q;

  collective_e collective_q;
  logic [7:0]  algorithm_q;
  logic        src_stream_q, dst_stream_q;
  unisono_cclo_pkg::stream_port_t src_port_q, dst_port_q;
  place_t      communicator_q;
  logic [KernelWidth-1:0] kernel_number_q;
  logic [31:0] tag_q, deadline_q, call_id_q, wait0_q, wait1_q;
  call_code_t  code_q, quad_code;

  // Of the two regions whose address and bytes are at hand: 2^48 bytes or more, or beyond the end of all addresses.
  // One that ends with the last address is none of these.
  logic [1:0] region_bad;
  always_comb begin
    for (int unsigned r = 0; r < 2; r++) begin
      automatic logic [63:0] address = checked_q[2*r];
      automatic logic [63:0] bytes = checked_q[2*r+1];
      automatic logic [48:0] region_end = {1'b0, address[47:0]} + {1'b0, bytes[47:0]};
      region_bad[r] = bytes[63:48] != '0 || (address[63:48] == '1 && region_end[48] && region_end[47:0] != '0);
    end
  end

  // What is wrong with the rows at hand; 0 if nothing is.
  logic head_bad, port_bad, rest_bad;
  always_comb begin
    head_bad = checked_q[0][63:45] != '0
            || (collective_q == CollectiveNop && algorithm_q != NopPlain && checked_q[1][63:32] >= KernelPorts)
            || ((collective_q == CollectiveSend || collective_q == CollectiveRecv)
                && !unisono_cclo_pkg::is_message_tag(checked_q[2][31:0]));
    port_bad = (src_stream_q && checked_q[0] >= 64'(StreamPorts)) || (dst_stream_q && checked_q[2] >= 64'(StreamPorts));
    rest_bad = (collective_q == CollectiveProgram
                && (checked_q[1][63:32] >= Programs || !program_loaded_i[checked_q[1][32+:ProgramWidth]]))
            || checked_q[2] > 64'(MaxWindowOffset) || checked_q[3] != '0 || bad_q;
  end

  always_comb begin
    quad_code = '0;
    unique case (checked_quad_q)
      2'd0: begin
        if (!collective_known(checked_q[0][7:0])) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end else if (checked_q[0][7:0] == CollectiveNop && checked_q[0][15:8] > NopStart) begin
          quad_code = call_code_t'(ErrorCodeUnknownAlgorithm);
        end else if (!func_known(checked_q[0][23:16])) begin
          quad_code = call_code_t'(ErrorCodeInvalidOp);
        end else if (checked_q[0][31:30] != '0 || !datatype_known(checked_q[0][29:24])
                  || checked_q[0][39:38] != '0 || !datatype_known(checked_q[0][37:32])) begin
          quad_code = call_code_t'(ErrorCodeInvalidDatatype);
        end else if (head_bad) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end else if (checked_q[3] > MaxCount) begin
          quad_code = call_code_t'(ErrorCodeInvalidCount);
        end
      end
      2'd1: begin
        if (port_bad || region_bad != '0) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      2'd2: begin
        if (region_bad != '0) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      default: begin
        if (rest_bad) begin
          quad_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    check_q        <= rst_ni && quad_step;
    checked_quad_q <= quad_q;
    checked_q      <= quad_data_i[requester_q];
    bad_q          <= quad_bad_i[requester_q] && last_quad;
    if (begin_intake) begin
      code_q <= '0;
    end else if (check_q && code_q == '0) begin
      code_q <= quad_code;
    end
    if (quad_step && quad_q == '0) begin
      collective_q    <= collective_e'(write_data_o[0][7:0]);
      algorithm_q     <= write_data_o[0][15:8];
      src_stream_q    <= write_data_o[0][43];
      dst_stream_q    <= write_data_o[0][44];
      communicator_q  <= write_data_o[1][31:8] != '0 ? 9'h100 : {1'b0, write_data_o[1][7:0]};
      kernel_number_q <= write_data_o[1][32+:KernelWidth];
      {deadline_q, tag_q} <= write_data_o[2];
    end
    if (quad_step && quad_q == call_quad_index_t'(1)) begin
      src_port_q <= write_data_o[0][$bits(src_port_q)-1:0];
      dst_port_q <= write_data_o[2][$bits(dst_port_q)-1:0];
    end
    if (quad_step && last_quad) begin
      {wait0_q, call_id_q} <= write_data_o[0];
      wait1_q              <= write_data_o[1][31:0];
    end
  end

  call_place_e candidate_place_q;
  call_order_e candidate_order_q;
  always_ff @(posedge clk_i) begin
    if (check_q && checked_quad_q == '0) begin
      candidate_place_q <= PlaceSlot;
      candidate_order_q <= OrderCollective;
      unique case (collective_q)
        CollectiveNop: begin
          candidate_place_q <= algorithm_q == NopPlain ? PlaceNone : PlaceKernel;
          candidate_order_q <= OrderNone;
        end
        CollectiveCopy, CollectiveCombine: candidate_order_q <= OrderNone;
        CollectiveSend: candidate_order_q <= OrderSend;
        CollectiveRecv: candidate_order_q <= OrderRecv;
        CollectivePut:  candidate_order_q <= OrderPut;
        CollectiveGet:  candidate_order_q <= OrderGet;
        default: ;
      endcase
    end
  end

  // ------------------------------------------------------------------------------------- the entries

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

  // ---- search

  // Lines that hold an entry, and of each requester those that hold a failure. None is left out that the search needs.
  logic [Lines-1:0]                 line_used_q;
  logic [Requesters-1:0][Lines-1:0] line_failed_q;

  logic [2*Lines-1:0] lines, left_q;     // to look at, failures above
  logic [LineWidth:0] line, look_line_q; // one of them
  logic               look_q;
  card_t [Banks-1:0]  card_q, cards_read;

  logic        twin_found_q, wait0_found_q, wait1_found_q, order_found_q;
  call_entry_t wait0_at_q, wait1_at_q, order_at_q;
  call_code_t  wait0_code_q, wait1_code_q;

  logic [Requesters-1:0][Entries-1:0]         failure_valid_q;
  logic [Requesters-1:0][EntryIndexWidth-1:0] failure_next_q;

  card_t      candidate_card, written_card;
  kept_t      kept;
  logic       keep_failure;
  requester_t end_requester_q;             // of the call that ends
  logic [31:0] end_id_q;
  logic [EntryIndexWidth-1:0] failure_next;
  logic [RequesterWidth+LineWidth:0] write_line;
  logic [BankWidth-1:0] write_bank;
  assign failure_next  = failure_next_q[end_requester_q];

  assign candidate_card = '{order: candidate_order_q, communicator: communicator_q,
                            requester: requester_q, call_id: call_id_q};
  assign written_card   = state_q == StEnter ? candidate_card
                                             : card_t'({AuxWidth'(end_code_q), end_id_q});
  assign write_line     = state_q == StEnter ? {1'b0, requester_t'(0), entry_q[EntryIndexWidth-1:BankWidth]}
                                             : {1'b1, end_requester_q, failure_next[EntryIndexWidth-1:BankWidth]};
  assign write_bank     = state_q == StEnter ? entry_q[BankWidth-1:0] : failure_next[BankWidth-1:0];

  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < Lines; l++) begin
      line_used_q[l] <= rst_ni && (listed_q[l*Banks+:Banks] != '0
                     || (state_q == StEnter && entry_q[EntryIndexWidth-1:BankWidth] == LineWidth'(l)));
      for (int unsigned r = 0; r < Requesters; r++) begin
        line_failed_q[r][l] <= rst_ni && (failure_valid_q[r][l*Banks+:Banks] != '0
                            || (keep_failure && end_requester_q == requester_t'(r)
                                && failure_next[EntryIndexWidth-1:BankWidth] == LineWidth'(l)));
      end
    end
  end

  // The first line is read when the search begins, if it does.
  assign lines = state_q == StIdle ? {line_failed_q[requester_q], line_used_q} : left_q;
  always_comb begin
    line = '0;
    for (int l = 2 * int'(Lines) - 1; l >= 0; l--) begin
      if (lines[l]) begin
        line = (LineWidth+1)'(l);
      end
    end
  end

  for (genvar b = 0; b < int'(Banks); b++) begin : gen_banks
    (* ram_style = "distributed" *) card_t cards [2**(RequesterWidth+LineWidth+1)];
    always_ff @(posedge clk_i) begin
      if ((state_q == StEnter || keep_failure) && write_bank == BankWidth'(b)) begin
        cards[write_line] <= written_card;
      end
    end
    assign cards_read[b] = cards[{line[LineWidth], line[LineWidth] ? requester_q : '0, line[LineWidth-1:0]}];
  end

  always_ff @(posedge clk_i) begin
    card_q      <= cards_read;
    look_line_q <= line;
    look_q      <= rst_ni && (state_q == StIdle || state_q == StScan) && lines != '0;
    left_q      <= lines & (lines - 1'b1);
  end

  // Of each of these there is at most one in a line, and in all lines.
  logic [Banks-1:0] is_id, is_wait0, is_wait1, mine, failure, tails, fails0, fails1, waits0, waits1;
  logic [BankWidth-1:0] wait0_bank, wait1_bank, tail_bank;
  call_code_t code0, code1;
  always_comb begin
    wait0_bank = '0;
    wait1_bank = '0;
    tail_bank  = '0;
    code0      = '0;
    code1      = '0;
    for (int unsigned b = 0; b < Banks; b++) begin
      automatic call_entry_t at = {look_line_q[LineWidth-1:0], BankWidth'(b)};
      is_id[b]    = card_q[b].call_id == call_id_q;
      is_wait0[b] = card_q[b].call_id == wait0_q;
      is_wait1[b] = card_q[b].call_id == wait1_q;
      mine[b]     = listed_q[at] && !twin_q[at] && card_q[b].requester == requester_q;
      failure[b]  = failure_valid_q[requester_q][at];
      tails[b]    = tail_q[at] && card_q[b].order == candidate_order_q && card_q[b].communicator == communicator_q;
      waits0[b]   = mine[b] && is_wait0[b];
      waits1[b]   = mine[b] && is_wait1[b];
      fails0[b]   = failure[b] && is_wait0[b];
      fails1[b]   = failure[b] && is_wait1[b];
      wait0_bank |= waits0[b] ? BankWidth'(b) : '0;
      wait1_bank |= waits1[b] ? BankWidth'(b) : '0;
      tail_bank  |= tails[b] ? BankWidth'(b) : '0;
      code0      |= fails0[b] ? card_q[b][32+:$bits(call_code_t)] : '0;
      code1      |= fails1[b] ? card_q[b][32+:$bits(call_code_t)] : '0;
    end
  end

  logic searches, searches_failures;
  assign searches          = state_q == StScan && look_q && !look_line_q[LineWidth];
  assign searches_failures = state_q == StScan && look_q && look_line_q[LineWidth];

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      twin_found_q  <= 1'b0;
      wait0_found_q <= 1'b0;
      wait1_found_q <= 1'b0;
      order_found_q <= 1'b0;
      wait0_code_q  <= '0;
      wait1_code_q  <= '0;
    end
    if (searches) begin
      // An id of 0 is none; that it was found means nothing.
      if ((mine & is_id) != '0) begin
        twin_found_q <= call_id_q != '0;
      end
      if (waits0 != '0) begin
        wait0_found_q <= wait0_q != '0;
        wait0_at_q    <= {look_line_q[LineWidth-1:0], wait0_bank};
      end
      if (waits1 != '0) begin
        wait1_found_q <= wait1_q != '0;
        wait1_at_q    <= {look_line_q[LineWidth-1:0], wait1_bank};
      end
      if (tails != '0) begin
        order_found_q <= 1'b1;
        order_at_q    <= {look_line_q[LineWidth-1:0], tail_bank};
      end
    end
    if (searches_failures) begin
      wait0_code_q <= wait0_code_q | code0;
      wait1_code_q <= wait1_code_q | code1;
    end
  end

  // ---- requests of entries

  logic [Entries-1:0] request, request_q, above, above_pick_q;
  call_entry_t        pick;

  always_comb begin
    for (int unsigned e = 0; e < Entries; e++) begin
      request[e] = parked_q[e] && (failed_q[e] || (!wait0_valid_q[e] && !wait1_valid_q[e]
                && !order_valid_q[e]
                && (place_q[e] == PlaceNone
                 || (place_q[e] == PlaceSlot && slot_free_i)
                 || (place_q[e] == PlaceKernel && kernel_free_i[kernel_q[e]]))));
    end
  end

  // The next one after the one picked last: the lowest above it, or the lowest of all.
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

  // ---- one thing at a time

  logic direct_start;
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

  call_code_t enter_code;
  always_comb begin
    enter_code = code_q;
    if (code_q == '0) begin
      if (twin_found_q) begin
        enter_code = call_code_t'(ErrorCodeInvalidArgument);
      end else if (!wait0_found_q && wait0_q != '0 && wait0_code_q != '0) begin
        enter_code = wait0_code_q;
      end else if (!wait1_found_q && wait1_q != '0 && wait1_code_q != '0) begin
        enter_code = wait1_code_q;
      end
    end
  end

  logic starts, ends_here, found, direct;
  assign ends_here = failed_q[pick_q] || kept.place == PlaceNone;
  assign starts    = state_q == StStart && !ends_here;
  assign entered   = state_q == StEnter;

  // A call that waits for nothing starts right after it was entered, unless another one has asked before.
  assign found  = wait0_found_q || wait1_found_q || order_found_q;
  assign direct = enter_code != '0
               || (!found && (candidate_place_q == PlaceNone
                              || (candidate_place_q == PlaceSlot && slot_free_i && slot_free_q && hold_q == '0
                                  && !request_any)));

  // One for a slot does so as it is entered. As it stood behind none, it leaves its order without a trace.
  assign direct_start = state_q == StEnter && direct && enter_code == '0 && candidate_place_q == PlaceSlot;

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
          end else if (intake_q == InCandidate || (quad_step && last_quad)) begin
            state_q <= StScan;
          end else if (request_any && hold_q == '0) begin
            state_q <= StStart;
            pick_q  <= pick;
          end
        end
        StScan: begin
          if (left_q == '0) begin
            state_q <= StEnter;
          end
        end
        StEnter: begin
          state_q <= direct && !direct_start ? StStart : StIdle;
          if (direct) begin
            pick_q <= entry_q;
          end
        end
        StStart: state_q <= ends_here ? StEnd : StIdle;
        default: state_q <= StIdle;
      endcase
    end
    if (state_q == StStart) begin
      end_entry_q  <= pick_q;
      end_code_q   <= failed_q[pick_q] ? fail_code_q[pick_q] : '0;
    end else if (state_q == StIdle) begin
      end_entry_q  <= end_picked.entry;
      end_code_q   <= end_picked.code;
    end
  end

  // ---- starts

  call_start_t candidate_start;
  assign candidate_start = '{entry: entry_q, call_id: call_id_q, tag: tag_q, deadline_us: deadline_q,
                             mode: algorithm_q[1:0], src_stream: src_stream_q, dst_stream: dst_stream_q,
                             src_port: src_port_q, dst_port: dst_port_q};

  (* ram_style = "distributed" *) kept_t keeps [Entries];
  always_ff @(posedge clk_i) begin
    if (state_q == StEnter) begin
      keeps[entry_q] <= '{place: candidate_place_q, kernel: kernel_number_q, requester: requester_q, call_id: call_id_q, mode: algorithm_q[1:0],
                          src_stream: src_stream_q, dst_stream: dst_stream_q, src_port: src_port_q, dst_port: dst_port_q,
                          deadline_us: deadline_q, tag: tag_q};
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

  // ---- the table

  // A call that leaves its order, by starting or by ending before, hands on whom it stood behind.
  // What it was and stood behind is read in the cycle before; nothing enters in either.
  logic        leaves_q, leaver_tail_q, leaver_order_q;
  call_entry_t leaver_q, leaver_behind_q;
  always_ff @(posedge clk_i) begin
    leaves_q        <= rst_ni && state_q == StStart;
    leaver_q        <= pick_q;
    leaver_tail_q   <= tail_q[pick_q];
    leaver_order_q  <= order_valid_q[pick_q];
    leaver_behind_q <= order_entry_q[pick_q];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q        <= '0;
      parked_q      <= '0;
      listed_q      <= '0;
      failed_q      <= '0;
      twin_q        <= '0;
      wait0_valid_q <= '0;
      wait1_valid_q <= '0;
      order_valid_q <= '0;
      tail_q        <= '0;
    end else begin
      if (begin_intake) begin
        used_q[free_entry_q] <= 1'b1;
      end
      if (state_q == StEnter) begin
        listed_q[entry_q]      <= 1'b1;
        parked_q[entry_q]      <= !direct_start;
        failed_q[entry_q]      <= enter_code != '0;
        twin_q[entry_q]        <= twin_found_q;
        wait0_valid_q[entry_q] <= wait0_found_q;
        wait1_valid_q[entry_q] <= wait1_found_q;
        if (enter_code == '0 && candidate_order_q != OrderNone) begin
          order_valid_q[entry_q] <= order_found_q;
          tail_q[entry_q]        <= !direct_start;
          if (order_found_q) begin
            tail_q[order_at_q] <= 1'b0;
          end
        end
      end
      if (state_q == StStart) begin
        parked_q[pick_q] <= 1'b0;
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
      if (state_q == StEnd) begin
        used_q[end_entry_q]        <= 1'b0;
        listed_q[end_entry_q]      <= 1'b0;
        failed_q[end_entry_q]      <= 1'b0;
        twin_q[end_entry_q]        <= 1'b0;
        wait0_valid_q[end_entry_q] <= 1'b0;
        wait1_valid_q[end_entry_q] <= 1'b0;
        for (int unsigned e = 0; e < Entries; e++) begin
          if ((wait0_valid_q[e] && wait0_entry_q[e] == end_entry_q)
           || (wait1_valid_q[e] && wait1_entry_q[e] == end_entry_q)) begin
            if (end_code_q != '0) begin
              failed_q[e] <= 1'b1;
            end
            if (wait0_entry_q[e] == end_entry_q) begin
              wait0_valid_q[e] <= 1'b0;
            end
            if (wait1_entry_q[e] == end_entry_q) begin
              wait1_valid_q[e] <= 1'b0;
            end
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (state_q == StEnter) begin
      wait0_entry_q[entry_q] <= wait0_at_q;
      wait1_entry_q[entry_q] <= wait1_at_q;
      order_entry_q[entry_q] <= order_at_q;
      place_q[entry_q]       <= candidate_place_q;
      kernel_q[entry_q]      <= kernel_number_q;
      fail_code_q[entry_q]   <= enter_code;
    end
    for (int unsigned e = 0; e < Entries; e++) begin
      if (leaves_q && order_valid_q[e] && order_entry_q[e] == leaver_q) begin
        order_entry_q[e] <= leaver_behind_q;
      end
      // The first failure counts.
      if (state_q == StEnd && !failed_q[e]
       && ((wait0_valid_q[e] && wait0_entry_q[e] == end_entry_q)
        || (wait1_valid_q[e] && wait1_entry_q[e] == end_entry_q))) begin
        fail_code_q[e] <= end_code_q;
      end
    end
  end

  // ---- failures that later calls may wait for

  // A ring for each requester. What falls out of it has been read by the requester, because at most as
  // many calls as the ring holds are outstanding or unanswered.
  assign keep_failure = state_q == StEnd && end_code_q != '0 && end_id_q != '0
                     && !twin_q[end_entry_q];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      failure_valid_q <= '0;
      failure_next_q  <= '0;
    end else begin
      if (keep_failure) begin
        failure_valid_q[end_requester_q][failure_next_q[end_requester_q]] <= 1'b1;
        failure_next_q[end_requester_q] <=
            failure_next_q[end_requester_q] + EntryIndexWidth'(1);
      end
      for (int unsigned b = 0; b < Banks; b++) begin
        // The candidate's id is used anew.
        if (searches_failures && is_id[b]) begin
          failure_valid_q[requester_q][{look_line_q[LineWidth-1:0], BankWidth'(b)}] <= 1'b0;
        end
      end
    end
  end

  // ----------------------------------------------------------------------------------------- answers

  call_response_t answer;
  logic [Requesters-1:0] answer_push, answer_pop;
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

    logic admits;
    assign admits = begin_intake && requester_pick == requester_t'(r);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        outstanding_q[r] <= '0;
        held_q[r]        <= '0;
      end else begin
        outstanding_q[r] <= outstanding_q[r] + count_t'(admits) - count_t'(answer_push[r]);
        held_q[r]        <= held_q[r] + count_t'(admits) - count_t'(answer_pop[r]);
      end
    end

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        assert (!answer_push[r] || unused_ready) else $error("%m: an answer is lost");
        assert (outstanding_q[r] <= held_q[r]) else $error("%m: counts disagree");
      end
    end
`endif
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      free_count_q <= count_t'(Entries);
    end else begin
      free_count_q <= free_count_q - count_t'(begin_intake)
                    + count_t'(state_q == StEnd);
    end
    outstanding_o     <= rst_ni ? count_t'(Entries) - free_count_q : '0;
    failed_o          <= rst_ni && state_q == StEnd && end_code_q != '0;
    failed_response_o <= answer;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (state_q != StEnd || listed_q[end_entry_q]) else $error("%m: ends what is not there");
      assert (state_q != StEnd || !parked_q[end_entry_q]) else $error("%m: ends a call that was not started");
      assert (!leaves_q || state_q != StEnter) else $error("%m: enters while another one leaves");
      assert (state_q != StEnter || (intake_q == InCandidate && !check_q)) else $error("%m: enters too early");
      assert (state_q != StStart || parked_q[pick_q]) else $error("%m: starts a call twice");
    end
  end
`endif

endmodule
