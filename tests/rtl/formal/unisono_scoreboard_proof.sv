// Proof of unisono_scoreboard: what issues may issue, once; moves retire complete and in order; a window
// never holds more than it has places for; a cleared call is empty.
//
// Any slot may be watched, and in it any two moves of one program, A and a later B. Of the watched slot the
// proof keeps how far each entry of the window is; of A what events have said, and what B waits for it. As
// slot and moves are free, what holds for them holds for all. Events of the watched slot keep the rules of
// the module; those of other slots, and of other generations, may be any.

module unisono_scoreboard_proof #(
  parameter int unsigned Calls = 2,
  parameter int unsigned Window = 4,
  parameter int unsigned Ranks = 2,
  parameter int unsigned Rows = 2,
  parameter int unsigned GenerationWidth = 2,
  parameter bit          CheckIssue = 1'b1,    // without: only the window, its order and its numbers
  parameter bit          CheckWaits = 1'b1,    // with: also that B waits for what it names
  parameter bit          CheckLemmas = 1'b1,   // with: also lemmas of the module's inside
  parameter bit          CheckPairs = 1'b1,    // with: also that B waits for moves with the same peer
  localparam int unsigned SlotWidth = $clog2(Calls),
  localparam int unsigned EntryWidth = $clog2(Window),
  localparam int unsigned IdWidth = SlotWidth + EntryWidth
) (
  input logic                       clk_i,
  input logic                       rst_ni,
  input logic [SlotWidth-1:0]       watch_i,
  input logic                       mark_a_i,
  input logic                       mark_b_i,
  input logic                       push_valid_i,
  input logic [SlotWidth-1:0]       push_slot_i,
  input logic [Window-1:0]          push_dependencies_i,
  input logic [Window-1:0]          push_streams_i,
  input logic [EntryWidth:0]        push_distance_i,
  input logic [Ranks-1:0]           push_receives_i,
  input logic [Ranks-1:0]           push_sends_i,
  input logic                       push_trivial_i,
  input logic                       issue_ready_i,
  input logic                       consumed_valid_i,
  input logic [IdWidth-1:0]         consumed_id_i,
  input logic [GenerationWidth-1:0] consumed_generation_i,
  input logic                       sent_valid_i,
  input logic [IdWidth-1:0]         sent_id_i,
  input logic [GenerationWidth-1:0] sent_generation_i,
  input logic                       complete_valid_i,
  input logic [IdWidth-1:0]         complete_id_i,
  input logic [GenerationWidth-1:0] complete_generation_i,
  input logic                       close_valid_i,
  input logic [SlotWidth-1:0]       close_slot_i,
  input logic                       finished_ready_i,
  input logic                       clear_valid_i,
  input logic [SlotWidth-1:0]       clear_slot_i
);

  typedef logic [SlotWidth-1:0] slot_t;
  typedef logic [EntryWidth-1:0] entry_t;
  typedef logic [EntryWidth:0] count_t;

  logic push_ready, error_valid, issue_valid, retired_valid, finished_valid;
  entry_t push_entry;
  logic [IdWidth-1:0] error_id, issue_id, retired_id;
  logic [GenerationWidth-1:0] issue_generation;
  slot_t finished_slot;
  logic [Calls-1:0][EntryWidth:0] room;
  logic [Calls-1:0] empty;
  logic [Calls-1:0][GenerationWidth-1:0] generation;

  unisono_scoreboard #(
    .Calls(Calls), .Window(Window), .Ranks(Ranks), .Rows(Rows), .GenerationWidth(GenerationWidth)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .push_valid_i,
    .push_ready_o      (push_ready),
    .push_slot_i,
    .push_dependencies_i,
    .push_streams_i,
    .push_distance_i,
    .push_receives_i,
    .push_sends_i,
    .push_trivial_i,
    .push_entry_o      (push_entry),
    .error_valid_o     (error_valid),
    .error_id_o        (error_id),
    .issue_valid_o     (issue_valid),
    .issue_ready_i,
    .issue_id_o        (issue_id),
    .issue_generation_o(issue_generation),
    .consumed_valid_i,
    .consumed_id_i,
    .consumed_generation_i,
    .sent_valid_i,
    .sent_id_i,
    .sent_generation_i,
    .complete_valid_i,
    .complete_id_i,
    .complete_generation_i,
    .retired_valid_o   (retired_valid),
    .retired_id_o      (retired_id),
    .close_valid_i,
    .close_slot_i,
    .finished_valid_o  (finished_valid),
    .finished_ready_i,
    .finished_slot_o   (finished_slot),
    .clear_valid_i,
    .clear_slot_i,
    .room_o            (room),
    .empty_o           (empty),
    .generation_o      (generation)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_comb begin
    reset_once: assume (rst_ni == started_q);
  end

  slot_t watch_q;
  always_ff @(posedge clk_i) if (!started_q) watch_q <= watch_i;

  // ------------------------------------------------------------------------------- the watched slot
  logic push, issued, retired, clear, finish, consumed, sent, complete, forget;
  entry_t issue_entry, retired_entry, consumed_entry, sent_entry, complete_entry;
  logic [GenerationWidth-1:0] own_generation;
  assign own_generation = generation[watch_q];
  assign push = push_valid_i && push_ready && push_slot_i == watch_q;
  assign issue_entry = issue_id[EntryWidth-1:0];
  assign issued = issue_valid && issue_ready_i && issue_id[IdWidth-1:EntryWidth] == watch_q;
  assign retired_entry = retired_id[EntryWidth-1:0];
  assign retired = retired_valid && retired_id[IdWidth-1:EntryWidth] == watch_q;
  assign clear = clear_valid_i && clear_slot_i == watch_q;
  assign finish = finished_valid && finished_ready_i && finished_slot == watch_q;
  assign forget = clear || finish;
  assign consumed = consumed_valid_i && consumed_id_i[IdWidth-1:EntryWidth] == watch_q &&
                    consumed_generation_i == own_generation;
  assign consumed_entry = consumed_id_i[EntryWidth-1:0];
  assign sent = sent_valid_i && sent_id_i[IdWidth-1:EntryWidth] == watch_q &&
                sent_generation_i == own_generation;
  assign sent_entry = sent_id_i[EntryWidth-1:0];
  assign complete = complete_valid_i && complete_id_i[IdWidth-1:EntryWidth] == watch_q &&
                    complete_generation_i == own_generation;
  assign complete_entry = complete_id_i[EntryWidth-1:0];

  // Moves that have come and not left; those of the cycle in which a move is said to have left are
  // without it. Each entry's move: must not issue, has issued, may still be told to be consumed or sent, is
  // complete.
  count_t held_q, held;
  entry_t head_q, head;
  logic [Window-1:0] silent_q, malformed_q, issued_q, consumed_q, sent_q, complete_q;
  logic lapped_q, closed_q;
  entry_t tail;
  assign held = held_q - count_t'(retired);
  assign head = head_q + entry_t'(retired);
  assign tail = head_q + held_q[EntryWidth-1:0];

  // Move number n reaches n moves back, until Window moves have come.
  logic malformed;
  assign malformed = !lapped_q && (push_distance_i > {1'b0, tail} ||
                                   (push_dependencies_i & ({Window{1'b1}} << tail)) != '0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || forget) begin
      held_q <= '0;
      head_q <= '0;
      lapped_q <= 1'b0;
      closed_q <= 1'b0;
    end else begin
      held_q <= held + count_t'(push);
      head_q <= head;
      if (push && tail == '1) lapped_q <= 1'b1;
      if (close_valid_i && close_slot_i == watch_q) closed_q <= 1'b1;
    end
    if (issued) issued_q[issue_entry] <= 1'b1;
    if (consumed) consumed_q[consumed_entry] <= 1'b1;
    if (sent) sent_q[sent_entry] <= 1'b1;
    if (complete) complete_q[complete_entry] <= 1'b1;
    if (push) begin
      silent_q[tail] <= push_trivial_i;
      malformed_q[tail] <= malformed;
      issued_q[tail] <= 1'b0;
      consumed_q[tail] <= 1'b0;
      sent_q[tail] <= 1'b0;
      complete_q[tail] <= 1'b0;
    end
  end

  // What the module asks of its users: events of moves that have issued and are not complete, each once.
  function automatic logic lives(entry_t entry, entry_t first, count_t count);
    return {1'b0, entry_t'(entry - first)} < count;
  endfunction
  always_comb if (rst_ni && started_q) begin
    if (consumed) begin
      consumed_once: assume (lives(consumed_entry, head, held) && issued_q[consumed_entry] &&
                             !consumed_q[consumed_entry] && !complete_q[consumed_entry]);
    end
    if (sent) begin
      sent_once: assume (lives(sent_entry, head, held) && issued_q[sent_entry] && !sent_q[sent_entry] &&
                         !complete_q[sent_entry]);
    end
    if (complete) begin
      complete_once: assume (lives(complete_entry, head, held) && issued_q[complete_entry] &&
                             !complete_q[complete_entry]);
    end
    if (closed_q) begin
      nothing_after_close: assume (!(push_valid_i && push_slot_i == watch_q));
    end
    if (close_valid_i && close_slot_i == watch_q && push_valid_i && push_slot_i == watch_q) begin
      close_after_last: assume (push_ready);
    end
  end

  // ----------------------------------------------------------------------------------------- A and B
  logic a_q, b_q, a_gone_q;
  entry_t a_entry_q, b_entry_q, since_q;
  logic [Ranks-1:0] a_receives_q, a_sends_q;
  logic a_issued_q, a_consumed_q, a_sent_q, a_complete_q;
  logic waits_complete_q, waits_sent_q, waits_consumed_q, waits_issued_q;
  logic far_q;                                  // A is too far back to be named
  logic a_here;
  assign a_here = a_q && !a_gone_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || forget) begin
      a_q <= 1'b0;
      b_q <= 1'b0;
    end else begin
      if (push && mark_a_i && !a_q && !push_trivial_i) begin
        a_q <= 1'b1;
        a_gone_q <= 1'b0;
        a_entry_q <= tail;
        a_receives_q <= push_receives_i;
        a_sends_q <= push_sends_i;
        a_issued_q <= 1'b0;
        a_consumed_q <= 1'b0;
        a_sent_q <= 1'b0;
        a_complete_q <= 1'b0;
        since_q <= '0;
        far_q <= 1'b0;
      end else begin
        if (a_q && push && !far_q) begin
          since_q <= since_q + 1'b1;
          far_q <= since_q == entry_t'(Window - 2);
        end
        if (a_here && retired && retired_entry == a_entry_q) a_gone_q <= 1'b1;
        if (a_here && issued && issue_entry == a_entry_q) a_issued_q <= 1'b1;
        if (a_here && consumed && consumed_entry == a_entry_q) a_consumed_q <= 1'b1;
        if (a_here && sent && sent_entry == a_entry_q) a_sent_q <= 1'b1;
        if (a_here && complete && complete_entry == a_entry_q) a_complete_q <= 1'b1;
      end
      if (a_q && !b_q && push && mark_b_i) begin
        b_q <= 1'b1;
        b_entry_q <= tail;
        // Bit i names the move i + 1 before.
        waits_complete_q <= !far_q && push_dependencies_i[since_q];
        waits_issued_q <= !far_q && push_streams_i[since_q];
        waits_sent_q <= (a_sends_q & push_sends_i) != '0;
        waits_consumed_q <= (a_receives_q & push_receives_i) != '0;
      end else if (b_q && retired && retired_entry == b_entry_q) begin
        b_q <= 1'b0;
      end
    end
  end

  // -------------------------------------------------------------------------------------- what holds
  logic offered_q, kept_q;
  logic [IdWidth-1:0] offered_id_q;
  always_ff @(posedge clk_i) begin
    offered_q <= rst_ni && issue_valid && !issue_ready_i &&
                 !(clear_valid_i && clear_slot_i == issue_id[IdWidth-1:EntryWidth]);
    offered_id_q <= issue_id;
    kept_q <= rst_ni && clear;
  end

  // Lemmas of the module's inside, which make the proof of the window short: [head, armed) and
  // [armed, tail) are parts of the window, and the latter are on their way to be armed.
  count_t head_number, armed_number, tail_number, on_way;
  assign head_number = u_dut.head_q[watch_q];
  assign armed_number = u_dut.armed_q[watch_q];
  assign tail_number = u_dut.tail_q[watch_q];
  count_t [3:0] ahead;                          // moves that are nearer than a stage
  always_comb begin
    ahead = '0;
    for (int i = 0; i < 4; i++) begin
      // Stage 3 stands for the beat, from which all three are ahead.
      for (int j = i == 3 ? 0 : i + 1; j < 3; j++) begin
        ahead[i] += count_t'(u_dut.u_push.look_valid_q[j] && u_dut.u_push.look_q[j].last &&
                             u_dut.u_push.look_q[j].slot == watch_q);
      end
    end
  end
  always_comb begin
    on_way = count_t'(u_dut.u_push.beat_valid_q && u_dut.u_push.beat_slot_q == watch_q);
    for (int i = 0; i < 3; i++) begin
      on_way += count_t'(u_dut.u_push.look_valid_q[i] && u_dut.u_push.look_q[i].last &&
                         u_dut.u_push.look_q[i].slot == watch_q);
    end
  end
  always_ff @(posedge clk_i) begin
    if (CheckLemmas && rst_ni && started_q) begin
      lemma_way: assert (tail_number - armed_number == on_way);
      lemma_held: assert (tail_number - head_number == held);
      lemma_armed: assert (armed_number - head_number <= count_t'(Window));
      lemma_head: assert (head_number[EntryWidth-1:0] == head);
      lemma_closed: assert (u_dut.closed_q[watch_q] == closed_q);
    end
  end

  // Lemmas of each place of [head, armed): its bits say what has happened to its move; and the move waits,
  // or is about to issue, or has issued, or had nothing to issue and is complete.
  localparam int unsigned Units = Calls * Window / Rows;
  for (genvar e = 0; e < int'(Window); e++) begin : gen_entry
    localparam int unsigned Row = e % Rows;
    logic [SlotWidth+EntryWidth-1:0] place;
    logic [$clog2(Units)-1:0] unit;
    logic armed, unissued, unconsumed, unsent, incomplete, waits, drains, direct, tested, trivial;
    assign place = {watch_q, entry_t'(e)};
    assign unit = $clog2(Units)'((e / Rows) * Calls + 32'(watch_q));
    assign armed = lives(entry_t'(e), head_number[EntryWidth-1:0], armed_number - head_number);
    assign unissued = u_dut.u_unissued.up_q[place] ^ u_dut.u_unissued.down_q[place];
    assign unconsumed = u_dut.u_unconsumed.up_q[place] ^ u_dut.u_unconsumed.down_q[place];
    assign unsent = u_dut.u_unsent.up_q[place] ^ u_dut.u_unsent.down_q[place];
    assign incomplete = u_dut.u_incomplete.up_q[place] ^ u_dut.u_incomplete.down_q[place];
    assign waits = u_dut.u_rows.waits_q[unit][Row] ^ u_dut.u_rows.taken_q[unit][Row];
    assign drains = u_dut.drain_ready_q[Row] && u_dut.drain_unit_q == unit;
    assign direct = u_dut.direct_q && u_dut.direct_id_q == place;
    assign tested = u_dut.u_rows.test_valid_q && u_dut.u_rows.test_unit_q == unit && u_dut.u_rows.waiting_q[Row];
    // Entries of a row are numbered from the first of its group.
    entry_t column;
    logic [2:0] level;
    logic [Window-1:0][2:0] levels;
    assign column = a_entry_q - entry_t'(e / Rows * Rows);
    assign levels = u_dut.u_rows.gen_test[Row].levels_q[unit][3*Window-1:0];
    assign level = levels[column];
    assign trivial = u_dut.u_rows.gen_test[Row].levels_q[unit][3*Window];
    always_ff @(posedge clk_i) begin
      if (CheckLemmas && CheckIssue && rst_ni && started_q) begin
        if (armed) begin
          lemma_unissued: assert (unissued == (!issued_q[e] || (u_dut.issued_q && u_dut.issued_slot_q == watch_q &&
                                                                u_dut.issued_entry_q == entry_t'(e))));
          lemma_unconsumed: assert (unconsumed == !consumed_q[e]);
          lemma_unsent: assert (unsent == !sent_q[e]);
          if (!silent_q[e] || malformed_q[e]) lemma_incomplete: assert (incomplete == !complete_q[e]);
          lemma_trivial: assert (trivial == silent_q[e]);
          if (malformed_q[e]) lemma_malformed: assert (!waits && !drains && !direct && !issued_q[e] && !complete_q[e]);
          else begin
            lemma_one: assert (3'(waits) + 3'(drains) + 3'(direct) + 3'(issued_q[e]) + 3'(silent_q[e] && !incomplete) == 3'd1);
          end
          if (silent_q[e]) lemma_silent: assert (!issued_q[e] && !direct);
          if (complete_q[e]) lemma_complete: assert (issued_q[e]);
          if (drains) lemma_drain_trivial: assert (u_dut.drain_trivial_q[Row] == silent_q[e]);
        end
        if (!armed && lives(entry_t'(e), head, held)) begin
          lemma_fresh: assert (!issued_q[e] && !consumed_q[e] && !sent_q[e] && !complete_q[e]);
        end
        if (tested) lemma_tested: assert (armed && waits);
        if (CheckWaits && b_q && b_entry_q == entry_t'(e) && armed && a_here) begin
          if (waits_complete_q) lemma_row_complete: assert (level == 3'd4);
          if (waits_issued_q) lemma_row_issued: assert (level != 3'd0);
          if (tested && waits_complete_q && !a_complete_q) lemma_blocked: assert (u_dut.u_rows.blocked[Row]);
          if (tested && waits_issued_q && !a_issued_q) lemma_follows: assert (u_dut.u_rows.blocked[Row]);
          if (drains || direct || issued_q[e]) begin
            lemma_drain_waits: assert ((!waits_complete_q || a_complete_q) && (!waits_issued_q || a_issued_q));
          end
        end
        if (u_dut.u_rows.test_valid_q && u_dut.u_rows.test_unit_q == unit) begin
          lemma_taken: assert (u_dut.u_rows.taken_word_q[Row] == u_dut.u_rows.taken_q[unit][Row]);
        end
        if (drains || direct) lemma_drains: assert (armed);
      end
    end
  end
  for (genvar i = 0; i < 3; i++) begin : gen_look
    entry_t entry;
    entry_t column;
    assign entry = u_dut.u_push.look_q[i].entry;
    assign column = a_entry_q - entry_t'(32'(b_entry_q) / Rows * Rows);
    always_ff @(posedge clk_i) begin
      if (CheckLemmas && CheckIssue && rst_ni && started_q && u_dut.u_push.look_valid_q[i] &&
          u_dut.u_push.look_q[i].slot == watch_q) begin
        lemma_look: assert (entry == entry_t'(armed_number + ahead[i]) &&
                            u_dut.u_push.look_q[i].trivial == silent_q[entry] &&
                            u_dut.u_push.look_q[i].malformed == malformed_q[entry]);
        if (CheckWaits && b_q && entry == b_entry_q && a_here) begin
          lemma_look_waits: assert (u_dut.u_push.look_q[i].relative[column] == waits_complete_q &&
                                    u_dut.u_push.look_q[i].streams[column] == waits_issued_q);
        end
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (CheckLemmas && CheckIssue && rst_ni && started_q) begin
      if (CheckWaits && a_q && a_gone_q) lemma_gone: assert (a_complete_q && a_issued_q);
      if (CheckWaits && a_here) begin
        lemma_a: assert (a_issued_q == issued_q[a_entry_q] && a_complete_q == complete_q[a_entry_q] &&
                         !silent_q[a_entry_q] && lives(a_entry_q, head_q, held_q));
      end
      if (CheckWaits && b_q) lemma_b: assert (lives(b_entry_q, head_q, held_q));
      if (CheckWaits && b_q) lemma_both: assert (a_q);
      if (CheckWaits && a_here && b_q) begin
        lemma_order: assert (entry_t'(a_entry_q - head_q) < entry_t'(b_entry_q - head_q));
      end
      if (CheckWaits && a_here && !b_q && !far_q) begin
        lemma_since: assert (entry_t'(tail - a_entry_q - 1'b1) == since_q);
      end
      if (CheckWaits && a_here && b_q && u_dut.u_push.beat_valid_q && u_dut.u_push.beat_slot_q == watch_q &&
          u_dut.u_push.beat_entry_q == b_entry_q) begin
        lemma_beat_waits: assert (
          u_dut.u_push.beat_dependencies_q[entry_t'(b_entry_q - a_entry_q - 1'b1)] == waits_complete_q &&
          u_dut.u_push.beat_streams_q[entry_t'(b_entry_q - a_entry_q - 1'b1)] == waits_issued_q);
      end
      lemma_lapped: assert (u_dut.lapped_q[watch_q] == lapped_q);
      if (u_dut.u_push.beat_valid_q && u_dut.u_push.beat_slot_q == watch_q) begin
        lemma_beat: assert (u_dut.u_push.beat_entry_q == entry_t'(armed_number + ahead[3]) &&
                            u_dut.u_push.beat_trivial_q == silent_q[u_dut.u_push.beat_entry_q]);
        lemma_beat_malformed: assert ((u_dut.u_push.beat_first_q ? u_dut.u_push.malformed
                                                                 : u_dut.u_push.beat_malformed_q) ==
                                      malformed_q[u_dut.u_push.beat_entry_q]);
      end
      lemma_units: assert (!(u_dut.u_rows.window_valid_q && u_dut.u_rows.test_valid_q &&
                             u_dut.u_rows.window_unit_q == u_dut.u_rows.test_unit_q));
    end
  end

  logic issue;                                  // of the watched slot
  assign issue = issue_valid && issue_id[IdWidth-1:EntryWidth] == watch_q;
  always_ff @(posedge clk_i) begin
    if (rst_ni && started_q) begin
      window_never_over: assert (held <= count_t'(Window));
      room_is_right: assert (room[watch_q] == count_t'(Window) - held);
      empty_is_right: assert (empty[watch_q] == (held == '0));
      if (kept_q) cleared_is_empty: assert (empty[watch_q] && !retired);
      if (CheckIssue && kept_q) cleared_is_silent: assert (!issue);
      if (push) entry_is_next: assert (push_entry == tail && held < count_t'(Window));
      if (retired) begin
        retired_held: assert (held_q != '0);
        retired_in_order: assert (retired_entry == head_q);
        if (CheckIssue) begin
          retired_complete: assert (!malformed_q[retired_entry] &&
                                    (complete_q[retired_entry] || silent_q[retired_entry]));
        end
      end
      if (finished_valid && finished_slot == watch_q) begin
        finished_closed_and_empty: assert (closed_q && held == '0);
      end
      if (CheckIssue && offered_q) offer_stays: assert (issue_valid && issue_id == offered_id_q);
      if (CheckIssue && issue) begin
        issued_inside: assert (lives(issue_entry, head, held));
        issued_once: assert (!issued_q[issue_entry]);
        issued_sound: assert (!silent_q[issue_entry] && !malformed_q[issue_entry]);
        issued_generation: assert (issue_generation == own_generation);
        if (b_q && issue_entry == b_entry_q) begin
          if (CheckWaits && waits_complete_q) after_complete: assert (a_complete_q);
          if (CheckPairs && waits_sent_q) after_sent: assert (a_sent_q || a_complete_q);
          if (CheckPairs && waits_consumed_q) after_consumed: assert (a_consumed_q || a_sent_q || a_complete_q);
          if (CheckWaits && waits_issued_q) after_issued: assert (a_issued_q);
        end
      end
      if (CheckIssue && error_valid && error_id[IdWidth-1:EntryWidth] == watch_q) begin
        error_is_malformed: assert (malformed_q[error_id[EntryWidth-1:0]]);
      end
    end
  end

endmodule
