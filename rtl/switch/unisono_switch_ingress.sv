// What comes in at a port of a switch's unit: checks who sent it, keeps it until its turn, and gives it to the fold.
//
// A short message, and a request for a long one, joins the queue of its run (calls of a communicator, by their
// sequence). Data of a short message stand in one of EagerBuffers buffers of the communicator; credit says that one is
// free. Data of a message that was granted come as writes, in order, and stand in the run's window of WindowSegments segments;
// the limit says that there is room. Grants of the neighbour are kept, two of a run: it may grant the next message
// before it has the first.
//
// The control looks at one run at a time (look_run_i, look_o 3 cycles later) and changes what it looks at. A read is of
// the segment that is next in the run's window, or of the buffer of the queue's head.
//
// What nobody sends who keeps to the protocol is dropped and counted: of an unknown communicator, from or to another
// rank, an eager message without a buffer, a write without a grant or beyond it.
//
// Latency: 12 cycles from a frame's header to the queue, and one for each word of payload, which is stored when the
// header has been looked at; 4 after a last word that is late. Throughput: a message takes 7 cycles, and one for each
// word.
// Restrictions: look_run_i does not change in the cycle of a command to it. Pops stand 5 cycles apart. A read has room
// in the queue of reads (read_ready_o). A member keeps the rule of runs in unisono_switch_pkg.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_switch_ingress
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_plugin_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned BufferBytes = 4096,  // of a segment, at most; a power of two, at most MaxSegment
  parameter int unsigned WindowSegments      = 4,     // segments of a run; a power of two, at least 2
  parameter int unsigned Depth       = 64,    // messages of a run that wait; a power of two
  localparam int unsigned DataBits = SwitchBytes * 8,
  localparam int unsigned BufferWords = BufferBytes / SwitchBytes
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic                    in_valid_i,
  output logic                    in_ready_o,
  input  logic [DataBits-1:0]     in_data_i,
  input  logic [SwitchBytes-1:0]  in_keep_i,
  input  logic                    in_last_i,

  // The communicator table.
  output logic                    find_valid_o,
  input  logic                    find_ready_i,
  output logic [31:0]             find_number_o,
  output logic [15:0]             find_epoch_o,
  input  logic                    found_valid_i,
  input  logic                    found_i,
  input  unit_entry_t             found_entry_i,
  input  logic                    forget_i,       // entries change

  // What was agreed; who is behind this port. While an entry is opened nothing of it is under way.
  input  logic                    open_valid_i,
  input  run_t                    open_run_i,     // one after the other, all runs of an entry
  input  terms_t                  open_terms_i,
  input  neighbour_t              open_neighbour_i,

  // The control.
  input  run_t                    look_run_i,
  output look_t                   look_o,
  output logic                    read_ready_o,
  input  logic                    pop_i,          // the head is over
  input  logic                    discard_i,      // with pop: its data are not read
  input  logic                    pop_grant_i,    // the neighbour's oldest grant is over
  input  logic                    take_credit_i,
  input  logic                    window_open_i,  // the head is granted, up to `limit`
  input  logic                    window_extended_i,   // with it; nobody else's extension until the window is over
  input  extension_t              window_extension_i,
  input  logic                    window_raise_i, // further
  input  logic                    window_close_i,
  input  switch_bytes_t          window_limit_i,
  output logic [15:0]             window_generation_o,  // of the window of the run looked at
  input  logic                    read_i,
  input  logic                    read_place_i,   // the head's buffer; else the window's next segment
  input  logic [15:0]             read_bytes_i,   // not 0

  output logic                    event_valid_o,  // something of this run has changed
  output run_t                    event_run_o,
  output logic                    freed_valid_o,  // a buffer of the neighbour's is free again
  output unit_entry_t             freed_entry_o,

  // To the fold.
  output logic                    own_valid_o,
  input  logic                    own_ready_i,
  output logic [DataBits-1:0]     own_data_o,
  output logic [SwitchBytes-1:0]  own_keep_o,

  output logic [31:0]             counter_messages_o,
  output logic [31:0]             counter_faults_o,
  output logic [31:0]             counter_bad_frames_o
);

  if (2 ** $clog2(BufferBytes) != BufferBytes || BufferBytes > MaxSegment || BufferBytes < SwitchBytes) begin : gen_bad_bytes
    $error("unisono_switch_ingress: BufferBytes must be a power of two, %0d to %0d", SwitchBytes, MaxSegment);
  end
  if (WindowSegments < 2 || 2 ** $clog2(WindowSegments) != WindowSegments || 2 ** $clog2(Depth) != Depth) begin : gen_bad_window
    $error("unisono_switch_ingress: WindowSegments and Depth must be powers of two, WindowSegments at least 2");
  end

  localparam int unsigned AllRuns = UnitEntries * UnitRuns;
  localparam int unsigned EagerPlaces = UnitEntries * EagerBuffers;
  localparam int unsigned WindowPlaces = AllRuns * WindowSegments;
  localparam int unsigned ExtensionSegments = (WindowFactor - 1) * WindowSegments;
  localparam int unsigned Words = (EagerPlaces + WindowPlaces + Extensions * ExtensionSegments) * BufferWords;
  localparam int unsigned AddressBits = $clog2(Words);
  localparam int unsigned DepthBits = $clog2(Depth);
  localparam int unsigned PlaceBits = $clog2(WindowSegments);
  localparam int unsigned WaitingBits = $bits(waiting_t);
  localparam int unsigned WordBits = $clog2(BufferWords);

  typedef logic [AddressBits-1:0] address_t;
  typedef logic [PlaceBits+$clog2(WindowFactor)-1:0] window_place_t;  // in the ring
  typedef logic [DepthBits:0] pointer_t;

  function automatic address_t eager_address(unit_entry_t entry, buffer_index_t index);
    return address_t'({entry, index}) << WordBits;
  endfunction
  typedef struct packed {
    logic       valid;
    extension_t index;
  } extended_t;

  // The first places of a ring are the run's own, the others the extension's.
  function automatic address_t window_address(run_t run, window_place_t place, extension_t extension);
    if (place < window_place_t'(WindowSegments)) begin
      return address_t'(EagerPlaces * BufferWords) + (address_t'({run, place[PlaceBits-1:0]}) << WordBits);
    end
    return address_t'((EagerPlaces + WindowPlaces - WindowSegments) * BufferWords) +
           ((address_t'(extension) * address_t'(ExtensionSegments) + address_t'(place)) << WordBits);
  endfunction
  function automatic window_place_t place_after(window_place_t place, logic is_extended);
    window_place_t next;
    next = place + 1'b1;
    return is_extended ? next : window_place_t'(next[PlaceBits-1:0]);
  endfunction

  // ---------------------------------------------------------------- parser
  logic                   meta_valid, meta_ready;
  switch_meta_t           meta;
  logic                   payload_valid, payload_ready, payload_last, payload_bad;
  logic [DataBits-1:0]    payload_data;
  logic [9:1][31:0]       parser_faults;

  unisono_switch_parser u_parser (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i,
    .in_keep_i,
    .in_last_i,
    .meta_valid_o       (meta_valid),
    .meta_ready_i       (meta_ready),
    .meta_o             (meta),
    .payload_valid_o    (payload_valid),
    .payload_ready_i    (payload_ready),
    .payload_data_o     (payload_data),
    .payload_keep_o     (),
    .payload_last_o     (payload_last),
    .payload_bad_o      (payload_bad),
    .counter_aggregate_o(),
    .counter_pass_o     (),
    .counter_fault_o    (parser_faults)
  );
  always_comb begin
    counter_bad_frames_o = '0;
    for (int f = 1; f <= 9; f++) counter_bad_frames_o += parser_faults[f];
  end

  // ---------------------------------------------------------------- what is known of entries and runs
  // Each memory has one writer: the control, for the run it looks at, or the arrivals, for theirs; and who opens an
  // entry, while nothing of it is under way.
  (* ram_style = "distributed" *) terms_t         terms_q       [UnitEntries];
  (* ram_style = "distributed" *) neighbour_t     neighbour_q   [UnitEntries];
  (* ram_style = "distributed" *) pointer_t       head_q        [AllRuns];   // control
  (* ram_style = "distributed" *) logic [15:0]    generation_q  [AllRuns];   // control
  (* ram_style = "distributed" *) switch_bytes_t limit_q       [AllRuns];   // control
  (* ram_style = "distributed" *) window_place_t  read_place_q  [AllRuns];   // control
  (* ram_style = "distributed" *) extended_t      extension_q   [AllRuns];   // control
  (* ram_style = "distributed" *) pointer_t       tail_q        [AllRuns];   // arrivals
  (* ram_style = "distributed" *) switch_bytes_t arrived_q     [AllRuns];   // arrivals
  (* ram_style = "distributed" *) window_place_t  write_place_q [AllRuns];   // arrivals
  (* ram_style = "block" *)       logic [WaitingBits:0] queue_q  [AllRuns*Depth];  // and whether it has no data

  logic [AllRuns-1:0] open_q;               // the run's window is open
  logic [AllRuns-1:0] fresh_q;              // and nothing has come to it
  logic [AllRuns-1:0] whole_q;              // all has come to it

  run_t run_q;                              // of the arrival
  logic push, store_segment, judge, accept;

  always_ff @(posedge clk_i) begin
    if (open_valid_i) begin
      terms_q[entry_of(open_run_i)]     <= open_terms_i;
      neighbour_q[entry_of(open_run_i)] <= open_neighbour_i;
    end
  end

  // ---------------------------------------------------------------- arrivals
  typedef enum logic [2:0] {
    StIdle,
    StFind,
    StRead,     // what is known of the entry
    StJudge,
    StStore,    // payload to its place
    StDrop,
    StEnd       // the message is there
  } state_e;

  state_e     state_q;
  header_t    header;
  logic       found_q;
  address_t   write_address_q;
  logic       bad_q, eager_q, write_q;
  logic       changes;                      // the control opens or closes the window
  logic       closed_q;                     // the window, since the segment that comes was judged
  logic       forgotten_q;                  // entries have changed since the look-up began
  buffer_index_t place_q;

  // The entry found last, which is mostly the next one's, too: no look-up then, in which other ports go first.
  logic        last_valid_q, is_last;
  logic [31:0] last_number_q;
  logic [15:0] last_epoch_q;
  unit_entry_t last_entry_q;
  assign is_last = last_valid_q && header.communicator == last_number_q && header.epoch == last_epoch_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || forget_i) last_valid_q <= 1'b0;
    else if (state_q == StFind && found_valid_i) last_valid_q <= found_i && !forgotten_q;
    if (state_q == StFind && found_valid_i) begin
      last_number_q <= header.communicator;
      last_epoch_q  <= header.epoch;
      last_entry_q  <= found_entry_i;
    end
    forgotten_q <= forget_i || (forgotten_q && state_q == StFind);
  end

  assign header        = meta.header;
  assign find_valid_o  = state_q == StIdle && meta_valid && !is_last;
  assign find_number_o = header.communicator;
  assign find_epoch_o  = header.epoch;
  assign meta_ready    = judge;

  logic sound, buffers, late, has_payload, room, is_eager, is_request, is_write, is_grant;

  // Grants, buffers and credit.
  logic          grant_known, grants_full, grant_accepted, has_grant, any_free, buffer_free, has_credit;
  granted_t      grant_in, grant;
  buffer_index_t any_index, free_index;
  waiting_t      look_head_q;
  logic          look_empty_q;               // it has no data: found when it came, for its length is far from here
  logic          free_read, free_pop;
  unit_entry_t   read_entry;
  buffer_index_t read_place;

  assign grant_in = '{
    sequence_: header.sequence_,
    signature: header.signature,
    slot: header.token_slot,
    generation: header.token_generation,
    limit: header.message_bytes
  };
  unisono_switch_grants u_grants (
    .clk_i, .rst_ni, .open_valid_i, .open_run_i, .run_i(run_q), .grant_i(grant_in), .known_o(grant_known),
    .full_o(grants_full), .new_i(grant_accepted && !grant_known), .raise_i(grant_accepted && grant_known),
    .look_run_i, .pop_i(pop_grant_i), .has_grant_o(has_grant), .grant_o(grant)
  );

  // A message is over at once if it is not read, or there is nothing to read.
  assign free_pop = pop_i && !look_head_q.asked && (discard_i || look_empty_q);
  unisono_switch_buffers u_buffers (
    .clk_i, .rst_ni, .open_valid_i, .open_entry_i(entry_of(open_run_i)), .open_credits_i(open_terms_i.credits),
    .entry_i(entry_of(run_q)), .any_o(any_free), .place_o(any_index),
    .take_i(judge && buffers), .take_place_i(free_index), .bad_i(state_q == StEnd && bad_q && eager_q),
    .bad_place_i(place_q), .returns_i(judge && sound), .returned_i(header.credits),
    .look_entry_i(entry_of(look_run_i)), .has_credit_o(has_credit), .take_credit_i, .pop_i(free_pop),
    .pop_holds_i(!look_empty_q), .pop_place_i(look_head_q.place), .read_i(free_read),
    .read_entry_i(read_entry), .read_place_i(read_place), .freed_valid_o, .freed_entry_o
  );

  // Buffers are taken here alone, a judgement at a time, so one that is free stays so; one that has just become free
  // cannot be the one that its credit is for.
  always_ff @(posedge clk_i) {buffer_free, free_index} <= {any_free, any_index};

  // What the memories say of the run, registered.
  pointer_t         my_head_q, my_tail_q;
  switch_bytes_t    my_arrived_q;
  logic             my_open_q, my_fresh_q, my_whole_q;  // as they are now: with what the control has just done
  window_place_t    my_place_q;
  extended_t        my_extension_q;
  always_ff @(posedge clk_i) begin
    my_head_q       <= head_q[run_q];
    my_tail_q       <= tail_q[run_q];
    my_arrived_q    <= fresh_q[run_q] ? '0 : arrived_q[run_q];
    my_open_q       <= changes ? window_open_i : open_q[run_q];
    my_fresh_q      <= (changes && window_open_i) || fresh_q[run_q];
    my_whole_q      <= whole_q[run_q];
    my_place_q      <= fresh_q[run_q] ? '0 : write_place_q[run_q];
    my_extension_q  <= extension_q[run_q];
  end

  assign room = my_tail_q - my_head_q != pointer_t'(Depth);
  assign changes = look_run_i == run_q && (window_open_i || window_close_i);
  unisono_switch_admit u_admit (
    .clk_i, .header_i(header), .terms_i(terms_q[entry_of(run_q)]), .from_i(neighbour_q[entry_of(run_q)]), .run_i(run_q),
    .generation_i(generation_q[run_q]), .limit_i(limit_q[run_q]), .arrived_i(arrived_q[run_q]), .found_i(found_q),
    .open_i(my_open_q), .fresh_i(my_fresh_q), .whole_i(my_whole_q), .room_i(room),
    .buffer_free_i(buffer_free), .grant_known_i(grant_known), .grants_full_i(grants_full), .has_payload_o(has_payload),
    .is_eager_o(is_eager), .is_request_o(is_request), .is_write_o(is_write), .is_grant_o(is_grant), .sound_o(sound),
    .accept_o(accept), .buffers_o(buffers), .late_o(late)
  );

  assign judge = state_q == StJudge;
  assign push  = state_q == StEnd && !bad_q && !write_q;
  assign store_segment = state_q == StEnd && !bad_q && write_q && !closed_q;
  assign grant_accepted = judge && accept && is_grant;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle: begin
          if (meta_valid && is_last) state_q <= StRead;
          else if (meta_valid && find_ready_i) state_q <= StFind;
        end
        StFind: if (found_valid_i) state_q <= StRead;
        StRead: state_q <= StJudge;
        StJudge: begin
          if (!accept) state_q <= has_payload ? StDrop : StIdle;
          else if (has_payload) state_q <= StStore;
          else if (is_eager || is_request || is_write) state_q <= StEnd;
          else state_q <= StIdle;
        end
        StStore: if (payload_valid && payload_last) state_q <= StEnd;
        StDrop:  if (payload_valid && payload_last) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
    end
    if (state_q == StIdle || (state_q == StFind && found_valid_i)) begin
      found_q <= state_q == StIdle || found_i;
      run_q   <= {state_q == StIdle ? last_entry_q : found_entry_i, header.sequence_[$clog2(UnitRuns)-1:0]};
    end
    if (judge) begin
      eager_q <= is_eager && has_payload;
      write_q <= is_write;
      place_q <= free_index;
      write_address_q <= is_write ? window_address(run_q, my_place_q, my_extension_q.index)
                                  : eager_address(entry_of(run_q), free_index);
      bad_q   <= 1'b0;
    end else if (state_q == StStore && payload_valid) begin
      write_address_q <= write_address_q + 1'b1;
      if (payload_last) bad_q <= payload_bad;
    end
  end
  assign payload_ready = state_q == StStore || state_q == StDrop;

  always_ff @(posedge clk_i) begin
    if (changes) closed_q <= 1'b1;
    else if (judge) closed_q <= 1'b0;
  end

  waiting_t arrived;
  header_t  header_q;
  always_ff @(posedge clk_i) begin
    if (judge) header_q <= header;
  end
  assign arrived = '{
    asked: header_q.type_ == MessageTypeRequest,
    place: place_q,
    sequence_: header_q.sequence_,
    signature: header_q.signature,
    dtype: datatype_e'(header_q.dtype[5:0]),
    tag: switch_tag_t'(header_q.tag[SwitchTagWidth-1:0]),
    bytes: header_q.message_bytes
  };
  // Arrivals' memories. A message is in its queue once its tail is written.
  always_ff @(posedge clk_i) begin
    if (push) queue_q[{run_q, my_tail_q[DepthBits-1:0]}] <= {arrived.bytes == '0, arrived};
    if (open_valid_i || push) tail_q[open_valid_i ? open_run_i : run_q] <= open_valid_i ? '0 : my_tail_q + 1'b1;
    if (store_segment) begin
      arrived_q[run_q]     <= my_arrived_q + switch_bytes_t'(header_q.segment_bytes);
      write_place_q[run_q] <= place_after(my_place_q, my_extension_q.valid);
    end
  end

  // ---------------------------------------------------------------- the fold's words
  unisono_switch_reads #(.Words(Words), .MostWords(BufferWords)) u_reads (
    .clk_i, .rst_ni, .write_i(state_q == StStore && payload_valid), .write_address_i(write_address_q),
    .write_data_i(payload_data), .ready_o(read_ready_o), .read_i, .read_eager_i(read_place_i),
    .read_entry_i(entry_of(look_run_i)), .read_place_i(look_head_q.place),
    .read_address_i(read_place_i ? eager_address(entry_of(look_run_i), look_head_q.place)
                                 : window_address(look_run_i, read_place_q[look_run_i],
                                                  extension_q[look_run_i].index)),
    .read_bytes_i, .own_valid_o, .own_ready_i, .own_data_o, .own_keep_o, .freed_o(free_read),
    .freed_entry_o(read_entry), .freed_place_o(read_place)
  );

  // ---------------------------------------------------------------- the state of runs
  always_ff @(posedge clk_i) begin
    if (open_valid_i || pop_i) head_q[open_valid_i ? open_run_i : look_run_i] <= open_valid_i ? '0 : head_q[look_run_i] + 1'b1;
    if (open_valid_i || window_open_i || window_close_i) begin
      generation_q[open_valid_i ? open_run_i : look_run_i] <= open_valid_i ? '0 : generation_q[look_run_i] + 1'b1;
    end
    if (window_open_i || window_raise_i) limit_q[look_run_i] <= window_limit_i;
    if (window_open_i || (read_i && !read_place_i)) begin
      read_place_q[look_run_i] <= window_open_i ? '0
                                                : place_after(read_place_q[look_run_i], extension_q[look_run_i].valid);
    end
    if (window_open_i) extension_q[look_run_i] <= '{window_extended_i, window_extension_i};
  end
  for (genvar r = 0; r < int'(AllRuns); r++) begin : gen_run
    logic opens, mine, looked;
    assign opens  = open_valid_i && open_run_i == run_t'(r);
    assign mine   = run_q == run_t'(r);
    assign looked = look_run_i == run_t'(r);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || opens) begin
        open_q[r]         <= 1'b0;
        fresh_q[r]        <= 1'b0;
        whole_q[r]        <= 1'b0;
      end else begin
        if (looked && (window_open_i || window_close_i)) open_q[r] <= window_open_i;
        if (looked && window_open_i) fresh_q[r] <= 1'b1;
        else if (mine && store_segment) fresh_q[r] <= 1'b0;
        if (mine && store_segment) whole_q[r] <= header_q.last;
      end
    end
  end

  // ---------------------------------------------------------------- what the control sees
  always_ff @(posedge clk_i) begin
    {look_empty_q, look_head_q} <= queue_q[{look_run_i, head_q[look_run_i][DepthBits-1:0]}];
  end
  logic there_q, look_there_q, whole_looked_q;
  waiting_t      head_looked_q;
  switch_bytes_t arrived_looked_q;
  neighbour_t    neighbour_looked_q;
  always_ff @(posedge clk_i) begin
    there_q             <= head_q[look_run_i] != tail_q[look_run_i];
    look_there_q        <= there_q;
    head_looked_q       <= look_head_q;
    arrived_looked_q    <= fresh_q[look_run_i] ? '0 : arrived_q[look_run_i];
    whole_looked_q      <= !fresh_q[look_run_i] && whole_q[look_run_i];
    neighbour_looked_q  <= neighbour_q[entry_of(look_run_i)];
    window_generation_o <= generation_q[look_run_i];
  end
  assign look_o = '{
    there: look_there_q,
    head: head_looked_q,
    has_grant: has_grant,
    grant: grant,
    has_credit: has_credit,
    arrived: arrived_looked_q,
    whole: whole_looked_q,
    neighbour: neighbour_looked_q
  };

  // Messages, segments and grants may let something go on. Nothing waits for credit: who has none is asked.
  // The control looks 2 cycles after an event at the earliest, so it is told of a message before this is in its place:
  // with the last word, or, of one word that is here, when it is judged. If that proves bad, nothing is there to see.
  logic told_q, told_at_judge, told_at_word;
  assign told_at_judge = judge && accept &&
                         (is_grant || ((is_eager || is_request || is_write) &&
                                       (!has_payload || (payload_valid && payload_last))));
  assign told_at_word  = state_q == StStore && payload_valid && payload_last && !told_q;
  always_ff @(posedge clk_i) begin
    event_valid_o <= rst_ni && (told_at_judge || told_at_word);
    told_q        <= told_at_judge || told_at_word || (told_q && state_q == StStore);
    event_run_o   <= run_q;
    if (!rst_ni) begin
      counter_messages_o <= '0;
      counter_faults_o   <= '0;
    end else begin
      counter_messages_o <= counter_messages_o + 32'(push);
      counter_faults_o   <= counter_faults_o + 32'(judge && !accept && !late) + 32'(state_q == StEnd && bad_q);
    end
  end

endmodule
