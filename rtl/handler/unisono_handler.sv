// A machine of handlers (docs/handlers.md): runs a handler's functions on packets that pass, with the bits of the
// interpreter.
//
// Of each packet: the header function if it is its message's first, the payload function, the completion function if it
// is the last. A verdict other than 0, or a stop, ends what is done with the packet. With `Places` it ends its message,
// too: of the others of its place nothing runs, until a message's last packet has passed. Without, that is for whoever
// sends packets here, who reads outcomes. What a function writes leaves as a packet before its outcome does.
//
// A packet that closes is none: only the completion function runs, as after the packet before. One that is skipped
// passes without any function, also if no handler is loaded. `done_*` says of each packet when it has passed.
//
// While the next packet comes, functions work on the one before. Throughput follows from the instructions:
// docs/rtl/handler.md has their cycles.
module unisono_handler
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned   Columns = 16,  // lanes that are computed at once: 1, 2, 4, 8 or 16
  parameter int unsigned   Words = 1024,  // room for a handler's instructions: a multiple of 4, 16384 at most
  parameter int unsigned   MemoryBytes = 65536,  // and for its memory: a power of two, 256 to 2^24
  parameter element_mask_t Elements = '1,  // that are built in: bit e for element e; i64 is
  parameter int unsigned   Banks = 16,  // entries of a table in a cycle: 1, and with 16 columns 8 or 16
  parameter int unsigned   Places = 0,  // messages at once, of which one that ends early is known here; 0: of none
  localparam int unsigned  PlaceBits = Places > 1 ? $clog2(Places) : 1
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         load_valid_i,
  output logic         load_ready_o,  // between two packets
  input  logic [2:0]   load_what_i,  // load_e
  input  logic [31:0]  load_address_i,
  input  logic [63:0]  load_data_i,
  output logic         load_read_valid_o,
  output logic [63:0]  load_read_data_o,
  output logic         loaded_o,
  output logic [1:0]   refused_o,  // refused_e

  input  logic         in_valid_i,
  output logic         in_ready_o,
  input  logic [511:0] in_data_i,
  input  logic [63:0]  in_keep_i,
  input  logic         in_last_i,
  input  logic [23:0]  in_packet_i,  // number of the packet in its message, from 0
  input  logic [24:0]  in_packets_i,  // of the message
  input  logic [23:0]  in_source_i,
  input  logic [24:0]  in_ranks_i,
  input  logic [31:0]  in_tag_i,
  input  logic [PlaceBits-1:0] in_place_i,
  input  logic         in_closes_i,  // one word, whose bytes are not looked at
  input  logic         in_skip_i,

  output logic         out_valid_o,
  input  logic         out_ready_i,
  output logic [511:0] out_data_o,
  output logic [63:0]  out_keep_o,
  output logic         out_last_o,
  output logic         out_failed_o,  // with the last word: it is of no use
  output logic [PlaceBits-1:0] out_place_o,  // of the packet from which it was written

  output logic         outcome_valid_o,
  input  logic         outcome_ready_i,
  output logic [1:0]   outcome_function_o,  // function_e
  output logic [3:0]   outcome_stop_o,  // stop_e
  output logic [31:0]  outcome_verdict_o,
  output logic [13:0]  outcome_word_o,  // where it ended or was stopped
  output logic [31:0]  outcome_executed_o,
  output logic [16:0]  outcome_output_bytes_o,
  output logic [31:0]  outcome_source_o,  // whose packet it was
  output logic [31:0]  outcome_tag_o,
  output logic [31:0]  outcome_packet_o,

  output logic         done_valid_o,  // a packet has passed; for a cycle, in which its last outcome is there
  output logic [PlaceBits-1:0] done_place_o,
  output logic         done_last_o,  // it was its message's last, or closed it
  output logic         done_failed_o,  // its last function was stopped, or gave another verdict than 0
  output logic         busy_o
);

  localparam int unsigned WordBits = $clog2(Words);
  localparam int unsigned AddressBits = $clog2(MemoryBytes);
  localparam int unsigned Window = Columns > 8 ? 8 * Columns : 64;

  if (Words < 8 || Words % 4 != 0 || Words > MostWords || MemoryBytes < 256
      || MemoryBytes > MostMemoryBytes) begin : gen_bad_room
    $error("unisono_handler: Words must be a multiple of 4, 8 to %0d, MemoryBytes 256 to %0d", MostWords, MostMemoryBytes);
  end
  if (!Elements[3]) begin : gen_bad_elements
    $error("unisono_handler: Elements must have i64, of which all flow is");
  end

  // The handler.
  logic running, tables_busy, free, load;
  logic [Functions-1:0] has;
  logic [Functions-1:0][13:0] entry;
  logic [24:0] memory_bytes;
  logic [31:0] budget;
  refused_e refused;
  logic word_wr, load_wr, load_rd;
  logic [WordBits-1:0] word_wr_address;
  cell_t word_wr_data, load_data;
  logic [AddressBits-1:0] load_address;
  assign load_ready_o = free;
  assign load = load_valid_i && load_ready_o;
  assign refused_o = refused;
  unisono_handler_loader #(
    .Words      (Words),
    .MemoryBytes(MemoryBytes),
    .Elements   (Elements)
  ) u_loader (
    .clk_i,
    .rst_ni,
    .valid_i       (load),
    .what_i        (load_e'(load_what_i)),
    .address_i     (load_address_i),
    .data_i        (load_data_i),
    .read_valid_o  (load_read_valid_o),
    .loaded_o,
    .refused_o     (refused),
    .has_o         (has),
    .entry_o       (entry),
    .memory_bytes_o(memory_bytes),
    .budget_o      (budget),
    .word_en_o     (word_wr),
    .word_address_o(word_wr_address),
    .word_o        (word_wr_data),
    .wr_en_o       (load_wr),
    .rd_en_o       (load_rd),
    .address_o     (load_address),
    .data_o        (load_data)
  );

  // Four banks: of words that follow one another as many are read at once as go in a cycle.
  logic word_rd;
  // verilator lint_off UNUSEDSIGNAL
  logic [13:0] word_rd_address;  // beyond `Words` is none
  // verilator lint_on UNUSEDSIGNAL
  logic [1:0] bank_q;
  cell_t [3:0] words;
  instruction_t [Along:0] instructions;
  for (genvar w = 0; w < 4; w++) begin : gen_words
    unisono_ram_sdp #(
      .Width(CellBits),
      .Depth(Words / 4)
    ) u_words (
      .clk_i,
      .wr_en_i    (word_wr && word_wr_address[1:0] == 2'(w)),
      .wr_addr_i  (word_wr_address[WordBits-1:2]),
      .wr_data_i  (word_wr_data),
      .rd_en_i    (word_rd),
      .rd_out_en_i(1'b0),
      .rd_addr_i  ((WordBits - 2)'((word_rd_address + 14'(3 - w)) >> 2)),
      .rd_data_o  (words[w])
    );
  end
  always_ff @(posedge clk_i) if (word_rd) bank_q <= word_rd_address[1:0];
  always_comb begin
    for (int unsigned i = 0; i <= Along; i++) instructions[i] = instruction_t'(words[2'(32'(bank_q) + i)]);
  end

  // Packets.
  typedef struct packed {
    logic skip;
    logic closes;
    logic last;
    logic first;
  } ends_t;
  ends_t in_ends, ends, ends_next;
  logic [PlaceBits-1:0] place;
  // verilator lint_off UNUSEDSIGNAL
  logic [PlaceBits-1:0] place_next;
  logic [159:0] about_next;
  // verilator lint_on UNUSEDSIGNAL
  assign in_ends.skip = in_skip_i;
  assign in_ends.closes = in_closes_i;
  assign in_ends.last = in_closes_i || 25'(in_packet_i) + 25'd1 == in_packets_i;
  assign in_ends.first = !in_closes_i && in_packet_i == '0;

  logic there, there_next, packet_done;
  logic [13:0] length;
  logic [31:0] packet, packets, source, ranks, tag;
  logic take_en;
  logic [12:0] take_address;
  logic [Window*8-1:0] taken;
  unisono_handler_payload #(
    .Window   (Window),
    .AboutBits(PlaceBits + 5 * 32),
    .EndsBits ($bits(ends_t))
  ) u_payload (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i,
    .in_keep_i,
    .in_last_i,
    .in_about_i    ({in_place_i, 32'(in_packet_i), 32'(in_packets_i), 32'(in_source_i), 32'(in_ranks_i), in_tag_i}),
    .in_ends_i     (in_ends),
    .there_o       (there),
    .there_next_o  (there_next),
    .done_i        (packet_done),
    .length_o      (length),
    .about_o       ({place, packet, packets, source, ranks, tag}),
    .ends_o        (ends),
    .about_next_o  ({place_next, about_next}),
    .ends_next_o   (ends_next),
    .take_en_i     (take_en),
    .take_address_i(take_address),
    .take_data_o   (taken)
  );

  // The functions that a packet asks for: the first of them, or of those that are left.
  typedef struct packed {
    logic       any;
    logic [1:0] which;
  } asked_t;
  function automatic asked_t asked_of(logic [Functions-1:0] asked, logic [1:0] from);
    asked_of = '0;
    for (int unsigned f = Functions; f > 0; f--) begin
      if (asked[f-1] && f - 1 >= 32'(from)) asked_of = '{1'b1, 2'(f - 1)};
    end
  endfunction

  // A function may start in the cycle in which the one before it is over: that of the next packet, too.
  logic core_free, over, last, may_start, start;
  logic [1:0] next_q, now;
  asked_t of_this, of_next;
  function_e function_q;
  infos_t info;
  outcome_t outcome;
  logic skips, skips_next;
  assign of_this = asked_of(has & {ends.last, !ends.closes, ends.first} & {Functions{!skips}}, next_q);
  assign of_next = asked_of(has & {ends_next.last, !ends_next.closes, ends_next.first} & {Functions{!skips_next}},
                            2'd0);
  assign packet_done = there && core_free && (skips || (loaded_o && (!of_this.any || (over && last))));
  // The loader comes between two packets.
  assign may_start = loaded_o && core_free && !(load_valid_i && (packet_done || next_q == '0));
  assign start = may_start && (packet_done ? over && there_next && of_next.any : there && of_this.any);
  assign now = packet_done ? of_next.which : of_this.which;
  assign free = !running && !tables_busy && next_q == '0 && !outcome_valid_o;
  assign busy_o = running || tables_busy || there || outcome_valid_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) next_q <= '0;
    else if (start) next_q <= now + 2'd1;
    else if (packet_done) next_q <= '0;
    if (start) function_q <= function_e'(now);
  end

  // Messages that have ended early: from that function's last cycle until their last packet has passed.
  if (Places > 0) begin : gen_places
    logic [Places-1:0] dropped_q;
    assign skips = ends.skip || dropped_q[place];
    assign skips_next = ends_next.skip || dropped_q[place_next] || (over && last && place_next == place);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) dropped_q <= '0;
      else if (packet_done && ends.last) dropped_q[place] <= 1'b0;
      else if (over && last) dropped_q[place] <= 1'b1;
    end
  end else begin : gen_no_places
    assign skips = ends.skip;
    assign skips_next = ends_next.skip;
  end
  always_ff @(posedge clk_i) begin
    done_valid_o <= rst_ni && packet_done;
    if (packet_done) begin
      done_place_o <= place;
      done_last_o <= ends.last;
      done_failed_o <= over && last;
    end
    if (!out_valid_o || out_ready_i) out_place_o <= place;
  end
  always_comb begin
    info = '0;
    info[InfoLength] = function_q == FunctionPayload ? 32'(length) : '0;
    info[InfoPacket] = packet;
    info[InfoPackets] = packets;
    info[InfoSource] = source;
    info[InfoRanks] = ranks;
    info[InfoTag] = tag;
  end

  logic core_rd, core_wr;
  logic [AddressBits-1:0] core_rd_address, core_wr_address;
  logic core_groups;
  logic [Window/8-1:0] group_rd_en;
  logic [Window/8-1:0][AddressBits-$clog2(Window)-1:0] group_rd_row, group_wr_row;
  cell_t [Window/8-1:0] group_rd_data, group_wr_data;
  logic [Window/8-1:0][7:0] group_wr_mask;
  logic [Window-1:0] core_wr_mask;
  logic [Window*8-1:0] core_wr_data, memory;
  logic push_valid, push_ready, at_end, end_failed, flushed;
  logic [6:0] push_bytes;
  logic [511:0] push_data;
  unisono_handler_core #(
    .Columns    (Columns),
    .MemoryBytes(MemoryBytes),
    .Elements   (Elements),
    .Banks      (Banks)
  ) u_core (
    .clk_i,
    .rst_ni,
    .start_i        (start),
    .function_i     (function_e'(now)),
    .entry_i        (entry[now]),
    .info_i         (info),
    .memory_bytes_i (memory_bytes),
    .budget_i       (budget),
    .running_o      (running),
    .free_o         (core_free),
    .over_o         (over),
    .last_o         (last),
    .tables_busy_o  (tables_busy),
    .outcome_valid_o,
    .outcome_ready_i,
    .outcome_o      (outcome),
    .word_en_o      (word_rd),
    .word_address_o (word_rd_address),
    .words_i        (instructions),
    .rd_en_o        (core_rd),
    .rd_address_o   (core_rd_address),
    .rd_data_i      (memory),
    .wr_en_o        (core_wr),
    .wr_address_o   (core_wr_address),
    .wr_mask_o      (core_wr_mask),
    .wr_data_o      (core_wr_data),
    .groups_o       (core_groups),
    .group_rd_en_o  (group_rd_en),
    .group_rd_row_o (group_rd_row),
    .group_rd_data_i(group_rd_data),
    .group_wr_mask_o(group_wr_mask),
    .group_wr_row_o (group_wr_row),
    .group_wr_data_o(group_wr_data),
    .take_en_o      (take_en),
    .take_address_o (take_address),
    .take_data_i    (taken),
    .push_valid_o   (push_valid),
    .push_ready_i   (push_ready),
    .push_bytes_o   (push_bytes),
    .push_data_o    (push_data),
    .end_o          (at_end),
    .end_failed_o   (end_failed),
    .ended_i        (flushed)
  );
  assign outcome_function_o = outcome.function_;
  assign outcome_stop_o = outcome.stop;
  assign outcome_verdict_o = outcome.verdict;
  assign outcome_word_o = outcome.word;
  assign outcome_executed_o = outcome.executed;
  assign outcome_output_bytes_o = outcome.output_bytes;
  always_ff @(posedge clk_i) begin
    if (over) begin
      outcome_source_o <= source;
      outcome_tag_o <= tag;
      outcome_packet_o <= packet;
    end
  end

  unisono_handler_window #(
    .Bytes (MemoryBytes),
    .Window(Window)
  ) u_memory (
    .clk_i,
    .wr_en_i     (load_wr || core_wr),
    .wr_address_i(load_wr ? load_address : core_wr_address),
    .wr_mask_i   (load_wr ? Window'(8'hff) : core_wr_mask),
    .wr_data_i   (load_wr ? (Window * 8)'(load_data) : core_wr_data),
    .rd_en_i     (load_rd || core_rd),
    .rd_address_i(load_rd ? load_address : core_rd_address),
    .rd_data_o   (memory),
    .groups_i       (core_groups),
    .group_rd_en_i  (group_rd_en),
    .group_rd_row_i (group_rd_row),
    .group_rd_data_o(group_rd_data),
    .group_wr_mask_i(group_wr_mask),
    .group_wr_row_i (group_wr_row),
    .group_wr_data_i(group_wr_data)
  );
  assign load_read_data_o = memory[63:0];

  unisono_handler_output u_output (
    .clk_i,
    .rst_ni,
    .push_valid_i(push_valid),
    .push_ready_o(push_ready),
    .push_bytes_i(push_bytes),
    .push_data_i (push_data),
    .end_i       (at_end),
    .end_failed_i(end_failed),
    .ended_o     (flushed),
    .out_valid_o,
    .out_ready_i,
    .out_data_o,
    .out_keep_o,
    .out_last_o,
    .out_failed_o
  );

endmodule
