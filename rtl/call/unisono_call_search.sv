// Searches the entries and the failures that are remembered for what a candidate has to wait for.
//
// It finds in the entries: whether an outstanding call of the same requester has its id (its *twin*), the two that it
// names to wait for, and the last call of its order that has not started; in the requester's failures: how the two
// have failed, if they have. They stand in lines of four; lines in which there is nothing are left out.
//
// A ring for each requester keeps the failures. What falls out of it has been read by the requester, because at most as
// many calls as the ring holds are outstanding or unanswered. A failure is forgotten when its id is used anew.
//
// Latency: the first line is read in the last cycle before scan_i, so that the search takes a cycle for each line, at
// least one; what it found is there one cycle after the last. Throughput: one search at a time.

module unisono_call_search
  import unisono_call_pkg::*;
#(
  parameter int unsigned Requesters = 2,
  localparam int unsigned RequesterWidth = $clog2(Requesters)
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic                      idle_i,          // nothing is searched; the first line is read
  input  logic                      scan_i,
  output logic                      last_o,          // no line is left behind those that have been read

  // The candidate: what is searched for, and what becomes an entry. Of it only this is looked at.
  // verilator lint_off UNUSEDSIGNAL
  input  call_candidate_t           candidate_i,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [RequesterWidth-1:0] requester_i,
  input  logic                      enter_i,
  input  call_entry_t               entry_i,

  // The entries: in the table, refused because of a twin, last of their order.
  input  logic [Entries-1:0]        listed_i,
  input  logic [Entries-1:0]        twin_i,
  input  logic [Entries-1:0]        tail_i,

  // A call ends.
  input  logic                      end_valid_i,
  input  call_entry_t               end_entry_i,
  input  logic [RequesterWidth-1:0] end_requester_i,
  input  logic [31:0]               end_id_i,
  input  call_code_t                end_code_i,

  output call_found_t               found_o
);

  localparam int unsigned Banks = 4;
  localparam int unsigned BankWidth = $clog2(Banks);
  localparam int unsigned Lines = Entries / Banks;
  localparam int unsigned LineWidth = $clog2(Lines);

  typedef logic [RequesterWidth-1:0] requester_t;

  // What the search looks at: an entry, or a failure.
  typedef struct packed {
    call_order_e order;
    communicator_place_t communicator;
    requester_t  requester;
    logic [31:0] call_id;
  } card_t;

  localparam int unsigned AuxWidth = $bits(card_t) - 32;

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
  logic       keep_failure;
  logic [EntryIndexWidth-1:0] failure_next;
  logic [RequesterWidth+LineWidth:0] write_line;
  logic [BankWidth-1:0] write_bank;
  assign failure_next  = failure_next_q[end_requester_i];

  assign candidate_card = '{order: candidate_i.order, communicator: candidate_i.communicator,
                            requester: requester_i, call_id: candidate_i.call_id};
  assign written_card   = enter_i ? candidate_card : card_t'({AuxWidth'(end_code_i), end_id_i});
  assign write_line     = enter_i ? {1'b0, requester_t'(0), entry_i[EntryIndexWidth-1:BankWidth]}
                                  : {1'b1, end_requester_i, failure_next[EntryIndexWidth-1:BankWidth]};
  assign write_bank     = enter_i ? entry_i[BankWidth-1:0] : failure_next[BankWidth-1:0];

  always_ff @(posedge clk_i) begin
    for (int unsigned l = 0; l < Lines; l++) begin
      line_used_q[l] <= rst_ni && (listed_i[l*Banks+:Banks] != '0
                     || (enter_i && entry_i[EntryIndexWidth-1:BankWidth] == LineWidth'(l)));
      for (int unsigned r = 0; r < Requesters; r++) begin
        line_failed_q[r][l] <= rst_ni && (failure_valid_q[r][l*Banks+:Banks] != '0
                            || (keep_failure && end_requester_i == requester_t'(r)
                                && failure_next[EntryIndexWidth-1:BankWidth] == LineWidth'(l)));
      end
    end
  end

  // The first line is read when the search begins, if it does.
  assign lines = idle_i ? {line_failed_q[requester_i], line_used_q} : left_q;
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
      if ((enter_i || keep_failure) && write_bank == BankWidth'(b)) begin
        cards[write_line] <= written_card;
      end
    end
    assign cards_read[b] = cards[{line[LineWidth], line[LineWidth] ? requester_i : '0, line[LineWidth-1:0]}];
  end

  always_ff @(posedge clk_i) begin
    card_q      <= cards_read;
    look_line_q <= line;
    look_q      <= rst_ni && (idle_i || scan_i) && lines != '0;
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
      is_id[b]    = card_q[b].call_id == candidate_i.call_id;
      is_wait0[b] = card_q[b].call_id == candidate_i.wait0;
      is_wait1[b] = card_q[b].call_id == candidate_i.wait1;
      mine[b]     = listed_i[at] && !twin_i[at] && card_q[b].requester == requester_i;
      failure[b]  = failure_valid_q[requester_i][at];
      tails[b]    = tail_i[at] && card_q[b].order == candidate_i.order
                    && card_q[b].communicator == candidate_i.communicator;
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
  assign searches          = scan_i && look_q && !look_line_q[LineWidth];
  assign searches_failures = scan_i && look_q && look_line_q[LineWidth];

  always_ff @(posedge clk_i) begin
    if (idle_i) begin
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
        twin_found_q <= candidate_i.call_id != '0;
      end
      if (waits0 != '0) begin
        wait0_found_q <= candidate_i.wait0 != '0;
        wait0_at_q    <= {look_line_q[LineWidth-1:0], wait0_bank};
      end
      if (waits1 != '0) begin
        wait1_found_q <= candidate_i.wait1 != '0;
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

  assign last_o  = left_q == '0;
  assign found_o = '{twin: twin_found_q, wait0: wait0_found_q, wait1: wait1_found_q, order: order_found_q,
                     wait0_at: wait0_at_q, wait1_at: wait1_at_q, order_at: order_at_q,
                     wait0_code: wait0_code_q, wait1_code: wait1_code_q};

  // ----------------------------------------------------------------------------- failures that are kept

  // A ring for each requester. What falls out of it has been read by the requester, because at most as
  // many calls as the ring holds are outstanding or unanswered.
  assign keep_failure = end_valid_i && end_code_i != '0 && end_id_i != '0 && !twin_i[end_entry_i];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      failure_valid_q <= '0;
      failure_next_q  <= '0;
    end else begin
      if (keep_failure) begin
        failure_valid_q[end_requester_i][failure_next_q[end_requester_i]] <= 1'b1;
        failure_next_q[end_requester_i] <=
            failure_next_q[end_requester_i] + EntryIndexWidth'(1);
      end
      for (int unsigned b = 0; b < Banks; b++) begin
        // The candidate's id is used anew.
        if (searches_failures && is_id[b]) begin
          failure_valid_q[requester_i][{look_line_q[LineWidth-1:0], BankWidth'(b)}] <= 1'b0;
        end
      end
    end
  end

endmodule
