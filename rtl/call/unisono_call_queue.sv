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
// Latency: from the first row of a descriptor to its start, or to a nop's answer: see
// docs/rtl/call_queue.md. Throughput: one admission in 30 cycles; a start or an end in 4.
// Restrictions: Requesters <= 8. A requester has at most 32 calls that are outstanding or whose answers
// it has not taken; the entries are shared, but one is kept for each requester that has none.

module unisono_call_queue #(
  parameter int unsigned KernelPorts = 1,
  parameter int unsigned Programs = 16,
  parameter int unsigned StreamPorts = unisono_spec_pkg::MaxStreamPorts,
  localparam int unsigned Requesters = KernelPorts + 1,
  localparam int unsigned KernelWidth = KernelPorts > 1 ? $clog2(KernelPorts) : 1
) (
  input  logic                                              clk_i,
  input  logic                                              rst_ni,

  // Descriptors, 16 rows each. Bad belongs to the last row: the descriptor was not as long as it must be.
  input  logic [Requesters-1:0]                             row_valid_i,
  output logic [Requesters-1:0]                             row_ready_o,
  input  logic [Requesters-1:0][63:0]                       row_data_i,
  input  logic [Requesters-1:0]                             row_bad_i,

  // To the descriptor memory.
  output logic                                              write_o,
  output unisono_call_pkg::call_entry_t                     write_entry_o,
  output unisono_call_pkg::call_row_t                       write_row_o,
  output logic [63:0]                                       write_data_o,

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
  // Entries, and failures, are searched four at a time.
  localparam int unsigned Banks = 4;
  localparam int unsigned BankWidth = $clog2(Banks);
  localparam int unsigned Lines = Entries / Banks;
  localparam int unsigned LineWidth = $clog2(Lines);

  typedef logic [RequesterWidth-1:0] requester_t;
  typedef logic [CountWidth-1:0] count_t;

  // What the search looks at.
  typedef struct packed {
    call_order_e order;
    logic [31:0] communicator;
    requester_t  requester;
    logic [31:0] call_id;
  } card_t;

  typedef struct packed {
    call_code_t  code;
    logic [31:0] call_id;
  } failure_t;

  // ------------------------------------------------------------------------------------- admission

  typedef enum logic [1:0] {
    InChoose,     // a requester and an entry
    InRows,       // its descriptor
    InCheck,      // of the last row
    InCandidate   // waits until it is entered
  } intake_e;

  intake_e     intake_q;
  requester_t  requester_q, requester_pick;
  logic        requester_any;
  call_entry_t entry_q, free_entry_q;
  logic        free_any_q;
  call_row_t   row_q;
  logic        row_step;
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
      if (!requester_any && row_valid_i[r] && may_admit_q[r]) begin
        requester_any  = 1'b1;
        requester_pick = requester_t'(r);
      end
    end
  end

  logic begin_intake;
  assign begin_intake = intake_q == InChoose && requester_any && free_any_q;
  assign row_step     = intake_q == InRows && row_valid_i[requester_q];

  always_comb begin
    row_ready_o = '0;
    row_ready_o[requester_q] = intake_q == InRows;
  end

  assign write_o       = row_step;
  assign write_entry_o = entry_q;
  assign write_row_o   = row_q;
  assign write_data_o  = row_data_i[requester_q];

  // A choice must see what the last one and the last end have changed.
  logic settled_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      intake_q    <= InChoose;
      requester_q <= '0;
      row_q       <= '0;
      settled_q   <= 1'b0;
    end else begin
      settled_q <= intake_q == InChoose;
      unique case (intake_q)
        InChoose: begin
          if (begin_intake && settled_q) begin
            intake_q    <= InRows;
            requester_q <= requester_pick;
          end
        end
        InRows: begin
          if (row_step) begin
            row_q <= row_q + call_row_t'(1);
            if (row_q == call_row_t'(DescriptorRows - 1)) begin
              intake_q <= InCheck;
            end
          end
        end
        InCheck: intake_q <= InCandidate;
        default: begin
          if (entered) begin
            intake_q <= InChoose;
          end
        end
      endcase
    end
    if (begin_intake && settled_q) begin
      entry_q <= free_entry_q;
    end
  end

  // --------------------------------------------------------------------- the candidate and its checks

  logic        check_q, bad_q;
  call_row_t   checked_row_q;
  logic [63:0] checked_q, address_q;

  collective_e collective_q;
  logic [7:0]  algorithm_q;
  logic        src_stream_q, dst_stream_q;
  logic [31:0] communicator_q, root_q, tag_q, deadline_q, call_id_q, wait0_q, wait1_q;
  call_code_t  code_q, row_code;

  // What is wrong with the row at hand; 0 if nothing is.
  logic [63:0] bytes_end;
  logic        bytes_bad;
  always_comb begin
    bytes_end = address_q + checked_q;
    bytes_bad = checked_q[63:48] != '0 || (bytes_end < address_q && bytes_end != '0);
  end

  always_comb begin
    row_code = '0;
    unique case (checked_row_q)
      4'd0: begin
        if (!collective_known(checked_q[7:0])) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end else if (checked_q[7:0] == CollectiveNop && checked_q[15:8] > NopStart) begin
          row_code = call_code_t'(ErrorCodeUnknownAlgorithm);
        end else if (!func_known(checked_q[23:16])) begin
          row_code = call_code_t'(ErrorCodeInvalidOp);
        end else if (checked_q[31:30] != '0 || !datatype_known(checked_q[29:24])
                  || checked_q[39:38] != '0 || !datatype_known(checked_q[37:32])) begin
          row_code = call_code_t'(ErrorCodeInvalidDatatype);
        end else if (checked_q[63:45] != '0) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      4'd1: begin
        if (collective_q == CollectiveNop && algorithm_q != NopPlain
         && checked_q[63:32] >= KernelPorts) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      4'd2: begin
        if ((collective_q == CollectiveSend || collective_q == CollectiveRecv)
         && checked_q[31:0] > MaxUserTag) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      4'd3: begin
        if (checked_q > MaxCount) begin
          row_code = call_code_t'(ErrorCodeInvalidCount);
        end
      end
      4'd4: begin
        if (src_stream_q && checked_q >= 64'(StreamPorts)) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      4'd6: begin
        if (dst_stream_q && checked_q >= 64'(StreamPorts)) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      4'd5, 4'd7, 4'd9, 4'd11: begin
        if (bytes_bad) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      4'd13: begin
        if (collective_q == CollectiveProgram && (checked_q[63:32] >= Programs
         || !program_loaded_i[checked_q[32+:ProgramWidth]])) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      4'd14: begin
        if (checked_q > 64'(MaxWindowOffset)) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      4'd15: begin
        if (checked_q != '0) begin
          row_code = call_code_t'(ErrorCodeInvalidArgument);
        end
      end
      default: ;
    endcase
    if (row_code == '0 && bad_q) begin
      row_code = call_code_t'(ErrorCodeInvalidArgument);
    end
  end

  always_ff @(posedge clk_i) begin
    check_q       <= rst_ni && row_step;
    checked_row_q <= row_q;
    checked_q     <= row_data_i[requester_q];
    bad_q         <= row_bad_i[requester_q] && row_q == call_row_t'(DescriptorRows - 1);
    if (begin_intake) begin
      code_q <= '0;
    end else if (check_q && code_q == '0) begin
      code_q <= row_code;
    end
    if (check_q) begin
      address_q <= checked_q;
    end
    // Straight from the row, so that the row after it can be checked with what it says.
    if (row_step) begin
      unique case (row_q)
        4'd0: begin
          collective_q <= collective_e'(row_data_i[requester_q][7:0]);
          algorithm_q  <= row_data_i[requester_q][15:8];
          src_stream_q <= row_data_i[requester_q][43];
          dst_stream_q <= row_data_i[requester_q][44];
        end
        4'd1: {root_q, communicator_q} <= row_data_i[requester_q];
        4'd2: {deadline_q, tag_q} <= row_data_i[requester_q];
        4'd12: {wait0_q, call_id_q} <= row_data_i[requester_q];
        4'd13: wait1_q <= row_data_i[requester_q][31:0];
        default: ;
      endcase
    end
  end

  call_place_e candidate_place;
  call_order_e candidate_order;
  always_comb begin
    candidate_place = PlaceSlot;
    candidate_order = OrderCollective;
    unique case (collective_q)
      CollectiveNop: begin
        candidate_place = algorithm_q == NopPlain ? PlaceNone : PlaceKernel;
        candidate_order = OrderNone;
      end
      CollectiveCopy, CollectiveCombine: candidate_order = OrderNone;
      CollectiveSend: candidate_order = OrderSend;
      CollectiveRecv: candidate_order = OrderRecv;
      CollectivePut:  candidate_order = OrderPut;
      CollectiveGet:  candidate_order = OrderGet;
      default: ;
    endcase
  end

  // ------------------------------------------------------------------------------------- the entries

  typedef enum logic [2:0] {
    StIdle,
    StScan,     // four entries and four failures a cycle
    StEnter,    // the candidate goes into the table
    StStart,    // an entry starts, or ends at once
    StEnd,      // a call is answered; what waited for it is told
    StWait,     // the place of a start says that it is taken
    StSettle    // requests of the entries follow
  } state_e;

  state_e      state_q;
  call_entry_t pick_q, end_entry_q;
  call_code_t  end_code_q;
  logic        end_parked_q;         // it had not been started

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

  logic [LineWidth:0]   scan_q;          // line; Lines: the last one is being looked at
  logic                 look_q;
  logic [LineWidth-1:0] look_line_q;
  card_t [Banks-1:0]    card_q;
  failure_t [Banks-1:0] failure_q;

  logic        twin_found_q, wait0_found_q, wait1_found_q, order_found_q;
  call_entry_t wait0_at_q, wait1_at_q, order_at_q;
  call_code_t  wait0_code_q, wait1_code_q;

  logic [Requesters-1:0][Entries-1:0]         failure_valid_q;
  logic [Requesters-1:0][EntryIndexWidth-1:0] failure_next_q;

  card_t    candidate_card, start_card, end_card;
  card_t [Banks-1:0]    scan_cards, start_cards, end_cards;
  failure_t [Banks-1:0] scan_failures;
  failure_t new_failure;
  logic     keep_failure;
  requester_t end_requester;

  assign candidate_card = '{order: candidate_order, communicator: communicator_q,
                            requester: requester_q, call_id: call_id_q};

  for (genvar b = 0; b < int'(Banks); b++) begin : gen_banks
    (* ram_style = "distributed" *) card_t cards [Lines];
    (* ram_style = "distributed" *) failure_t failures [Requesters*Lines];

    always_ff @(posedge clk_i) begin
      if (state_q == StEnter && entry_q[BankWidth-1:0] == BankWidth'(b)) begin
        cards[entry_q[EntryIndexWidth-1:BankWidth]] <= candidate_card;
      end
    end
    assign scan_cards[b]  = cards[scan_q[LineWidth-1:0]];
    assign end_cards[b]   = cards[end_entry_q[EntryIndexWidth-1:BankWidth]];
    assign start_cards[b] = cards[pick_q[EntryIndexWidth-1:BankWidth]];

    always_ff @(posedge clk_i) begin
      if (keep_failure && failure_next_q[end_requester][BankWidth-1:0] == BankWidth'(b)) begin
        failures[{end_requester, failure_next_q[end_requester][EntryIndexWidth-1:BankWidth]}]
            <= new_failure;
      end
    end
    assign scan_failures[b] = failures[{requester_q, scan_q[LineWidth-1:0]}];
  end

  assign start_card = start_cards[pick_q[BankWidth-1:0]];
  assign end_card   = end_cards[end_entry_q[BankWidth-1:0]];
  assign end_requester = end_card.requester;

  always_ff @(posedge clk_i) begin
    card_q      <= scan_cards;
    failure_q   <= scan_failures;
    look_line_q <= scan_q[LineWidth-1:0];
    look_q      <= state_q == StScan && !scan_q[LineWidth];
    if (state_q == StIdle) begin
      scan_q <= '0;
    end else if (state_q == StScan) begin
      scan_q <= scan_q + (LineWidth+1)'(1);
    end
  end

  logic [Banks-1:0] forget;              // failures of the candidate's id: it is used anew

  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      twin_found_q  <= 1'b0;
      wait0_found_q <= 1'b0;
      wait1_found_q <= 1'b0;
      order_found_q <= 1'b0;
      wait0_code_q  <= '0;
      wait1_code_q  <= '0;
    end else if (look_q) begin
      for (int unsigned b = 0; b < Banks; b++) begin
        automatic call_entry_t at = {look_line_q, BankWidth'(b)};
        if (listed_q[at] && !twin_q[at] && card_q[b].requester == requester_q) begin
          if (card_q[b].call_id == call_id_q && call_id_q != '0) begin
            twin_found_q <= 1'b1;
          end
          if (card_q[b].call_id == wait0_q && wait0_q != '0) begin
            wait0_found_q <= 1'b1;
            wait0_at_q    <= at;
          end
          if (card_q[b].call_id == wait1_q && wait1_q != '0) begin
            wait1_found_q <= 1'b1;
            wait1_at_q    <= at;
          end
        end
        if (tail_q[at] && card_q[b].order == candidate_order
         && card_q[b].communicator == communicator_q) begin
          order_found_q <= 1'b1;
          order_at_q    <= at;
        end
        if (failure_valid_q[requester_q][at]) begin
          if (failure_q[b].call_id == wait0_q) begin
            wait0_code_q <= failure_q[b].code;
          end
          if (failure_q[b].call_id == wait1_q) begin
            wait1_code_q <= failure_q[b].code;
          end
        end
      end
    end
  end

  always_comb begin
    for (int unsigned b = 0; b < Banks; b++) begin
      forget[b] = look_q && failure_q[b].call_id == call_id_q;
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
    above = request_q & above_pick_q;
    pick = '0;
    for (int e = int'(Entries) - 1; e >= 0; e--) begin
      if (above != '0 ? above[e] : request_q[e]) begin
        pick = call_entry_t'(e);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    request_q <= rst_ni ? request : '0;
    for (int unsigned e = 0; e < Entries; e++) begin
      above_pick_q[e] <= call_entry_t'(e) > pick_q;
    end
  end

  // ---- one thing at a time

  logic starts, ends_here;
  assign ends_here = failed_q[pick_q] || place_q[pick_q] == PlaceNone;
  assign starts    = state_q == StStart && !ends_here;
  assign entered   = state_q == StEnter;

  logic end_turn_q;                      // whose end goes first
  logic [1:0] end_grant;
  always_comb begin
    end_grant = '0;
    if (end_valid_i[end_turn_q]) begin
      end_grant[end_turn_q] = 1'b1;
    end else if (end_valid_i[!end_turn_q]) begin
      end_grant[!end_turn_q] = 1'b1;
    end
  end
  assign end_ready_o = state_q == StIdle ? end_grant : '0;

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
          end else if (intake_q == InCandidate) begin
            state_q <= StScan;
          end else if (request_q != '0) begin
            state_q <= StStart;
            pick_q  <= pick;
          end
        end
        StScan: begin
          if (scan_q[LineWidth]) begin
            state_q <= StEnter;
          end
        end
        StStart: state_q <= ends_here ? StEnd : StWait;
        StWait:  state_q <= StSettle;
        StEnter, StEnd: state_q <= StSettle;
        default: state_q <= StIdle;
      endcase
    end
    if (state_q == StStart) begin
      end_entry_q  <= pick_q;
      end_code_q   <= failed_q[pick_q] ? fail_code_q[pick_q] : '0;
      end_parked_q <= 1'b1;
    end else if (state_q == StIdle) begin
      end_entry_q  <= end_grant[1] ? end_i[1].entry : end_i[0].entry;
      end_code_q   <= end_grant[1] ? end_i[1].code : end_i[0].code;
      end_parked_q <= 1'b0;
    end
  end

  // ---- starts

  logic [31:0] start_tag, start_deadline;
  logic [3:0]  start_flags;

  (* ram_style = "distributed" *) logic [67:0] extras [Entries];
  always_ff @(posedge clk_i) begin
    if (state_q == StEnter) begin
      extras[entry_q] <= {algorithm_q[1:0], src_stream_q, dst_stream_q, deadline_q, tag_q};
    end
  end
  assign {start_flags, start_deadline, start_tag} = extras[pick_q];

  always_ff @(posedge clk_i) begin
    slot_start_o   <= rst_ni && starts && place_q[pick_q] == PlaceSlot;
    kernel_start_o <= '0;
    if (rst_ni && starts && place_q[pick_q] == PlaceKernel) begin
      kernel_start_o[kernel_q[pick_q]] <= 1'b1;
    end
    start_o <= '{entry: pick_q, call_id: start_card.call_id, tag: start_tag,
                 deadline_us: start_deadline, mode: start_flags[3:2],
                 src_stream: start_flags[1], dst_stream: start_flags[0]};
  end

  // ---- the table

  // A call that leaves its order, by starting or by failing before, hands on whom it stood behind.
  logic        leaves;
  call_entry_t leaver;
  assign leaver = state_q == StEnd ? end_entry_q : pick_q;
  assign leaves = starts || (state_q == StEnd && end_parked_q);

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
      if (begin_intake && settled_q) begin
        used_q[free_entry_q] <= 1'b1;
      end
      if (state_q == StEnter) begin
        listed_q[entry_q]      <= 1'b1;
        parked_q[entry_q]      <= 1'b1;
        failed_q[entry_q]      <= enter_code != '0;
        twin_q[entry_q]        <= twin_found_q;
        wait0_valid_q[entry_q] <= wait0_found_q;
        wait1_valid_q[entry_q] <= wait1_found_q;
        if (enter_code == '0 && candidate_order != OrderNone) begin
          order_valid_q[entry_q] <= order_found_q;
          tail_q[entry_q]        <= 1'b1;
          if (order_found_q) begin
            tail_q[order_at_q] <= 1'b0;
          end
        end
      end
      if (leaves) begin
        parked_q[leaver] <= 1'b0;
        tail_q[leaver]   <= 1'b0;
        if (tail_q[leaver] && order_valid_q[leaver]) begin
          tail_q[order_entry_q[leaver]] <= 1'b1;
        end
        order_valid_q[leaver] <= 1'b0;
        for (int unsigned e = 0; e < Entries; e++) begin
          if (order_valid_q[e] && order_entry_q[e] == leaver) begin
            order_valid_q[e] <= order_valid_q[leaver];
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
      place_q[entry_q]       <= candidate_place;
      kernel_q[entry_q]      <= root_q[KernelWidth-1:0];
      fail_code_q[entry_q]   <= enter_code;
    end
    for (int unsigned e = 0; e < Entries; e++) begin
      if (leaves && order_valid_q[e] && order_entry_q[e] == leaver) begin
        order_entry_q[e] <= order_entry_q[leaver];
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
  assign keep_failure = state_q == StEnd && end_code_q != '0 && end_card.call_id != '0
                     && !twin_q[end_entry_q];
  assign new_failure  = '{code: end_code_q, call_id: end_card.call_id};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      failure_valid_q <= '0;
      failure_next_q  <= '0;
    end else begin
      if (keep_failure) begin
        failure_valid_q[end_requester][failure_next_q[end_requester]] <= 1'b1;
        failure_next_q[end_requester] <=
            failure_next_q[end_requester] + EntryIndexWidth'(1);
      end
      for (int unsigned b = 0; b < Banks; b++) begin
        if (forget[b]) begin
          failure_valid_q[requester_q][{look_line_q, BankWidth'(b)}] <= 1'b0;
        end
      end
    end
  end

  // ----------------------------------------------------------------------------------------- answers

  call_response_t answer;
  logic [Requesters-1:0] answer_push, answer_pop;
  assign answer = '{code: 16'(end_code_q), call_id: end_card.call_id};

  for (genvar r = 0; r < int'(Requesters); r++) begin : gen_answers
    logic unused_ready;
    logic [CountWidth-1:0] unused_count;
    assign answer_push[r] = state_q == StEnd && end_requester == requester_t'(r);
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
    assign admits = begin_intake && settled_q && requester_pick == requester_t'(r);
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
      free_count_q <= free_count_q - count_t'(begin_intake && settled_q)
                    + count_t'(state_q == StEnd);
    end
    outstanding_o     <= rst_ni ? count_t'(Entries) - free_count_q : '0;
    failed_o          <= rst_ni && state_q == StEnd && end_code_q != '0;
    failed_response_o <= answer;
  end

  logic unused;
  assign unused = |{start_card.order, start_card.communicator, start_card.requester,
                    end_card.order, end_card.communicator, root_q, algorithm_q};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (state_q != StEnd || listed_q[end_entry_q]) else $error("%m: ends what is not there");
      assert (state_q != StEnd || parked_q[end_entry_q] == end_parked_q)
      else $error("%m: ends a call that was not started");
      assert (!starts || parked_q[pick_q]) else $error("%m: starts a call twice");
    end
  end
`endif

endmodule
