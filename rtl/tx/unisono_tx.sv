// Tx: completes headers and sends packets to a transport.
//
// Each source gives commands (transmit_t) and, for segment_bytes != 0, a packet of exactly that
// many payload bytes. Tx fills in magic, version, session sequence, owed credits and checksum. The
// control source goes first between packets; data sources take turns, packet by packet. Per channel
// (control, data) packets leave in the order in which their commands were taken.
//
// A command is taken, and its header completed, while earlier packets are still being sent; Queue
// commands of each channel at most.
//
// Latency: 4 cycles from a command's handshake to tx_valid_o of its header word, when idle.
// Throughput: one word per cycle; with DataBytes = 64 a message without payload every cycle.
//
// Restrictions: segment_bytes <= MaxSegment; no trailer; the session's number is below Sessions.

module unisono_tx
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_tx_pkg::*;
#(
  parameter int unsigned DataBytes = 64,    // 8, 16, 32 or 64
  parameter int unsigned Sources   = 2,     // of data
  parameter int unsigned Sessions  = 1024,  // power of two
  parameter int unsigned Queue     = 8,     // power of two, at least 8

  localparam int unsigned SourceBits = $clog2(Sources + 1)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Data sources.
  input  logic      [Sources-1:0]             command_valid_i,
  output logic      [Sources-1:0]             command_ready_o,
  input  transmit_t [Sources-1:0]             command_transmit_i,

  input  logic [Sources-1:0]                  payload_valid_i,
  output logic [Sources-1:0]                  payload_ready_o,
  input  logic [Sources-1:0][DataBytes*8-1:0] payload_data_i,
  input  logic [Sources-1:0][DataBytes-1:0]   payload_keep_i,
  input  logic [Sources-1:0]                  payload_last_i,

  // The control source.
  input  logic                                control_command_valid_i,
  output logic                                control_command_ready_o,
  input  transmit_t                           control_command_transmit_i,

  input  logic                                control_payload_valid_i,
  output logic                                control_payload_ready_o,
  input  logic [DataBytes*8-1:0]              control_payload_data_i,
  input  logic [DataBytes-1:0]                control_payload_keep_i,
  input  logic                                control_payload_last_i,

  // To unisono_credits: takes what is owed; the answer comes 3 cycles after the handshake, which is that of the command.
  // Until then another command may come first, so the question may change.
  output logic                                owed_take_valid_o,
  input  logic                                owed_take_ready_i,
  output communicator_t                       owed_take_communicator_o,
  output rank_t                               owed_take_peer_o,
  input  logic [15:0]                         owed_i,

  // A session is opened: both its channels begin with sequence 0.
  input  logic                                session_open_valid_i,
  output logic                                session_open_ready_o,
  input  session_t                            session_open_session_i,

  // To the transport (unisono_poe_pkg): for each packet one meta word, and a packet of that many
  // bytes. Control has the session's number with the highest bit set.
  output logic                                meta_valid_o,
  input  logic                                meta_ready_i,
  output session_t                            meta_session_o,
  output logic [15:0]                         meta_bytes_o,

  output logic                                tx_valid_o,
  input  logic                                tx_ready_i,
  output logic [DataBytes*8-1:0]              tx_data_o,
  output logic [DataBytes-1:0]                tx_keep_o,
  output logic                                tx_last_o,

  // One cycle: a payload was shorter (long_o low) or longer than its command said. The packet has
  // the announced length nevertheless; its contents are wrong. Number Sources is control.
  output logic                                error_valid_o,
  output logic [SourceBits-1:0]               error_source_o,
  output logic                                error_long_o
);

  if (DataBytes != 8 && DataBytes != 16 && DataBytes != 32 && DataBytes != 64) begin : gen_bad_bytes
    $error("unisono_tx: DataBytes must be 8, 16, 32 or 64");
  end
  if (Sources == 0) begin : gen_bad_sources
    $error("unisono_tx: Sources must be at least 1");
  end
  if (Queue < 8 || 2 ** $clog2(Queue) != Queue) begin : gen_bad_queue
    $error("unisono_tx: Queue must be a power of two, at least 8");
  end
  if (Sessions < 2 || Sessions > 32768 || 2 ** $clog2(Sessions) != Sessions) begin : gen_bad_table
    $error("unisono_tx: Sessions must be a power of two, 2 to 32768");
  end

  localparam int unsigned QueueBits = $clog2(Queue);
  localparam int unsigned HeaderWords = HeaderBytes / DataBytes;
  localparam int unsigned IndexBits = HeaderWords > 1 ? $clog2(HeaderWords) : 1;
  localparam int unsigned ByteBits = $clog2(DataBytes);
  localparam int unsigned CountBits = SegmentWidth - ByteBits + 1;

  typedef logic [SourceBits-1:0] source_t;
  typedef logic [QueueBits:0] level_t;
  typedef logic [QueueBits-1:0] place_t;
  typedef logic [CountBits-1:0] words_t;

  localparam source_t Control = source_t'(Sources);

  // ------------------------------------------------------------------ which command is next
  // Index 1 of a pair: the control channel; 0: data.
  level_t [1:0] taken_q;                 // commands that were taken and whose header has not left
  logic   [1:0] space;
  logic         may_take, chosen, take;
  source_t      choice;
  transmit_t    command;

  assign space[0] = taken_q[0] != level_t'(Queue);
  assign space[1] = taken_q[1] != level_t'(Queue);

  unisono_tx_choice #(.Sources(Sources)) u_choice (
    .clk_i, .rst_ni, .command_valid_i, .command_ready_o, .command_transmit_i, .control_command_valid_i,
    .control_command_ready_o, .control_command_transmit_i, .space_i(space), .may_take_i(may_take), .chosen_o(chosen),
    .choice_o(choice), .command_o(command), .take_o(take)
  );

  // ------------------------------------------------------------------ what is missing in its header
  logic     body_valid, body_control, late_valid, late_control;
  source_t  body_source;
  session_t body_session;
  header_t  body;
  late_t    late_now;

  unisono_tx_complete #(.Sources(Sources), .Sessions(Sessions)) u_complete (
    .clk_i, .rst_ni, .chosen_i(chosen), .choice_i(choice), .command_i(command), .may_take_o(may_take), .take_i(take),
    .owed_take_valid_o, .owed_take_ready_i, .owed_take_communicator_o, .owed_take_peer_o, .owed_i,
    .session_open_valid_i, .session_open_ready_o, .session_open_session_i, .body_valid_o(body_valid),
    .body_control_o(body_control), .body_source_o(body_source), .body_session_o(body_session), .body_o(body),
    .late_valid_o(late_valid), .late_control_o(late_control), .late_o(late_now)
  );

  // ------------------------------------------------------------------ where headers wait
  // The body is written in stage 1, the rest in stage 3, each in the order of the channel. A header that may leave at
  // once takes the rest past the memory.
  typedef struct packed {
    source_t  source;
    session_t session;
    header_t  header;
  } waiting_t;

  (* ram_style = "distributed" *) waiting_t waiting [2*Queue];
  (* ram_style = "distributed" *) late_t    finish  [2*Queue];

  place_t [1:0] body_place_q, finish_place_q, out_place_q;
  level_t [1:0] finished_q;              // headers that are complete and have not left
  logic   [1:0] took, finished, left, complete;

  always_ff @(posedge clk_i) begin
    if (body_valid) waiting[{body_control, body_place_q[body_control]}] <= '{body_source, body_session, body};
    if (late_valid) finish[{late_control, finish_place_q[late_control]}] <= late_now;
  end

  for (genvar c = 0; c < 2; c++) begin : gen_channel
    assign took[c]     = take && (choice == Control) == (c == 1);
    assign finished[c] = late_valid && late_control == (c == 1);
    assign complete[c] = finished_q[c] != '0 || finished[c];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        taken_q[c]        <= '0;
        finished_q[c]     <= '0;
        body_place_q[c]   <= '0;
        finish_place_q[c] <= '0;
        out_place_q[c]    <= '0;
      end else begin
        taken_q[c]    <= taken_q[c] + level_t'(took[c]) - level_t'(left[c]);
        finished_q[c] <= finished_q[c] + level_t'(finished[c]) - level_t'(left[c]);
        if (body_valid && body_control == (c == 1)) body_place_q[c] <= body_place_q[c] + 1'b1;
        if (finished[c]) finish_place_q[c] <= finish_place_q[c] + 1'b1;
        if (left[c]) out_place_q[c] <= out_place_q[c] + 1'b1;
      end
    end
  end

  // ------------------------------------------------------------------ what goes out
  typedef enum logic [1:0] {
    StateHeader,
    StatePayload,
    StatePad,    // the payload was too short: zeros up to the announced length
    StateDrain   // the payload was too long: the rest is taken and dropped
  } state_e;

  state_e               state_q;
  logic [IndexBits-1:0] index_q;         // word of the header
  logic                 channel_q;       // of the header under way, if index_q != 0
  source_t              source_q;
  words_t               words_left_q;    // payload words still to go out
  logic [ByteBits-1:0]  tail_q;          // bytes in the last one, modulo DataBytes
  // The meta word of a header that is alone leaves while that is completed; then nothing comes before it.
  logic                 early_meta, locked_q, locked_channel_q;

  logic     channel, offer, header_last;
  waiting_t next;
  late_t    next_late;
  header_t  header;
  logic [2**IndexBits-1:0][DataBytes*8-1:0] header_words;
  logic [SegmentWidth-1:0] bytes;

  assign channel   = index_q != '0 ? channel_q : locked_q ? locked_channel_q : complete[1];
  assign offer     = state_q == StateHeader && (index_q != '0 || (locked_q ? complete[locked_channel_q] : complete != '0));
  assign next      = waiting[{channel, out_place_q[channel]}];
  assign next_late = finished_q[channel] != '0 ? finish[{channel, out_place_q[channel]}] : late_now;

  always_comb begin
    header                  = next.header;
    header.checksum         = next_late.checksum;
    header.session_sequence = next_late.session_sequence;
    header.credits          = next_late.credits;
  end

  assign header_words = (2 ** IndexBits * DataBytes * 8)'(header);
  assign header_last  = index_q == IndexBits'(HeaderWords - 1);
  assign bytes        = next.header.segment_bytes[SegmentWidth-1:0];

  logic                   word_valid, word_ready, word_last, word;
  logic [DataBytes*8-1:0] word_data;
  logic [DataBytes-1:0]   word_keep, tail_keep;
  logic                   meta, meta_ready;
  logic                   final_word;

  logic                   source_valid, source_last;
  logic [DataBytes*8-1:0] source_data;
  logic [DataBytes-1:0]   source_keep;

  always_comb begin
    source_valid = control_payload_valid_i;
    source_last  = control_payload_last_i;
    source_data  = control_payload_data_i;
    source_keep  = control_payload_keep_i;
    for (int s = 0; s < int'(Sources); s++) begin
      if (source_q == source_t'(s)) begin
        source_valid = payload_valid_i[s];
        source_last  = payload_last_i[s];
        source_data  = payload_data_i[s];
        source_keep  = payload_keep_i[s];
      end
    end
  end

  assign final_word = words_left_q == words_t'(1);

  // Bytes of the last word: tail_q of them, all if it is 0. Of other words it is anything.
  always_comb begin
    tail_keep = 'x;
    if (final_word) begin
      for (int unsigned b = 0; b < DataBytes; b++) begin
        tail_keep[b] = {tail_q == '0, tail_q} > (ByteBits + 1)'(b);
      end
    end
  end

  // The first header word and the meta word leave in the same cycle, if that has not left before. Until then the channel
  // may still change, so neither is offered before both can leave.
  assign meta = offer && index_q == '0 && !locked_q && word_ready && meta_ready;

  assign early_meta = body_valid && taken_q[0] + taken_q[1] == level_t'(1) && state_q == StateHeader && meta_ready;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      locked_q <= 1'b0;
    end else if (early_meta) begin
      locked_q <= 1'b1;
    end else if (word) begin
      locked_q <= 1'b0;
    end
    if (early_meta) locked_channel_q <= body_control;
  end

  always_comb begin
    word_valid = 1'b0;
    word_data  = source_data;
    word_keep  = final_word ? tail_keep : '1;
    word_last  = final_word;
    unique case (state_q)
      StateHeader: begin
        word_valid = meta || (offer && (index_q != '0 || locked_q));
        word_data  = header_words[index_q];
        word_keep  = '1;
        word_last  = header_last && bytes == '0;
      end
      StatePayload: word_valid = source_valid;
      StatePad: begin
        word_valid = 1'b1;
        word_data  = '0;
      end
      default: ;
    endcase
  end

  assign word = word_valid && word_ready;

  logic source_ready;
  assign source_ready = (state_q == StatePayload && word_ready) || state_q == StateDrain;
  assign control_payload_ready_o = source_ready && source_q == Control;
  for (genvar s = 0; s < int'(Sources); s++) begin : gen_ready
    assign payload_ready_o[s] = source_ready && source_q == source_t'(s);
  end

  assign left[0] = state_q == StateHeader && word && header_last && !channel;
  assign left[1] = state_q == StateHeader && word && header_last && channel;

  // What is wrong with the word of the source, if it is wrong.
  logic too_short, too_long;
  assign too_short = source_last && (!final_word || (tail_keep & ~source_keep) != '0);
  assign too_long  = final_word && (!source_last || (source_keep & ~tail_keep) != '0);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q       <= StateHeader;
      index_q       <= '0;
      error_valid_o <= 1'b0;
    end else begin
      error_valid_o <= 1'b0;
      unique case (state_q)
        StateHeader: begin
          if (word) begin
            index_q <= header_last ? '0 : index_q + 1'b1;
            if (header_last && bytes != '0) state_q <= StatePayload;
          end
        end
        StatePayload: begin
          if (word) begin
            error_valid_o <= too_short || too_long;
            if (final_word) state_q <= source_last ? StateHeader : StateDrain;
            else if (source_last) state_q <= StatePad;
          end
        end
        StatePad: if (word && final_word) state_q <= StateHeader;
        default:  if (source_valid && source_last) state_q <= StateHeader;
      endcase
    end
    if (state_q == StateHeader) begin
      if (word && index_q == '0) channel_q <= channel;
      source_q     <= next.source;
      tail_q       <= bytes[ByteBits-1:0];
      words_left_q <= words_t'(bytes[SegmentWidth-1:ByteBits]) +
                      words_t'(bytes[ByteBits-1:0] != '0);
    end else if (word) begin
      words_left_q <= words_left_q - 1'b1;
    end
    error_source_o <= source_q;
    error_long_o   <= too_long;
  end

  unisono_skid #(
    .Width(32)
  ) u_meta (
    .clk_i,
    .rst_ni,
    .in_valid_i (meta || early_meta),
    .in_ready_o (meta_ready),
    .in_data_i  (early_meta ? {body_control, body_session[14:0], body.segment_bytes[15:0] + 16'(HeaderBytes)}
                            : {channel, next.session[14:0], 16'(bytes) + 16'(HeaderBytes)}),
    .out_valid_o(meta_valid_o),
    .out_ready_i(meta_ready_i),
    .out_data_o ({meta_session_o, meta_bytes_o})
  );

  logic unused_user;

  unisono_stream_skid #(
    .DataBytes(DataBytes)
  ) u_out (
    .clk_i,
    .rst_ni,
    .in_valid_i (word_valid),
    .in_ready_o (word_ready),
    .in_data_i  (word_data),
    .in_keep_i  (word_keep),
    .in_last_i  (word_last),
    .in_user_i  (1'b0),
    .out_valid_o(tx_valid_o),
    .out_ready_i(tx_ready_i),
    .out_data_o (tx_data_o),
    .out_keep_o (tx_keep_o),
    .out_last_o (tx_last_o),
    .out_user_o (unused_user)
  );

  logic unused_bits;
  assign unused_bits = ^{unused_user, next.session[15], next.header.checksum, next.header.session_sequence,
                         next.header.credits};

endmodule
