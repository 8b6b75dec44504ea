// Rx: takes packets from a transport, checks each header once, and passes what is sound.
//
// In this order, the first that does not hold is the packet's fault:
//   FaultShort         at least 64 bytes
//   FaultTransport     the transport reports no error, and the packet has the announced length
//   FaultMagic, FaultVersion
//   FaultReserved      reserved bits are zero, type and datatype known, no trailer
//   FaultChecksum
//   FaultShort         the packet is as long as the header says
//   FaultLength        the segment is at most MaxSegment and lies within its message
//   FaultCommunicator  communicator and epoch are known
//   FaultLength        the segment is at most what the communicator has agreed
//   FaultMember        destination is this rank, source is the session's other end
//
// A sound packet gives one received_t, then its payload if it has one; its credits go to
// unisono_credits. Messages of type credit end here. A bad packet is dropped whole, counted and
// reported.
//
// Latency: 6 cycles from the handshake of the header's last word to received_valid_o.
// Throughput: one word per cycle; with DataBytes = 64 a packet without payload every cycle.
//
// Restrictions: no word is taken before its packet's meta word; a packet with bytes == 0 has no
// words. If a packet goes on after its header in another length than announced, its payload is cut
// or filled with zeros, counted and reported as FaultTransport; this is an error of the transport's
// hardware, not of the network.

module unisono_rx
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned DataBytes    = 64,  // 8, 16, 32 or 64
  parameter int unsigned Queue        = 16,  // headers under check or waiting; power of two, >= 8
  parameter int unsigned PayloadWords = 32   // that wait; power of two, >= 16
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // From the transport: for each packet one meta word, and a packet of that many bytes.
  input  logic                   meta_valid_i,
  output logic                   meta_ready_o,
  input  session_t               meta_session_i,
  input  logic [15:0]            meta_bytes_i,
  input  logic                   meta_error_i,

  input  logic                   rx_valid_i,
  output logic                   rx_ready_o,
  input  logic [DataBytes*8-1:0] rx_data_i,
  input  logic [DataBytes-1:0]   rx_keep_i,
  input  logic                   rx_last_i,

  // To unisono_communicators. Which communicator: the answer 2 cycles after the request; what is known
  // of it and of a member: 1 cycle. Answers come from registers.
  output logic                   find_valid_o,
  output logic [31:0]            find_number_o,
  output logic [15:0]            find_epoch_o,
  input  logic                   found_i,
  input  communicator_t          found_communicator_i,
  output communicator_t          entry_communicator_o,
  input  communicator_entry_t    entry_i,
  output communicator_t          peer_communicator_o,
  output rank_t                  peer_rank_o,
  input  peer_entry_t            peer_i,

  // Sound packets. A payload's first word does not come before its header.
  output logic                   received_valid_o,
  input  logic                   received_ready_i,
  output received_t              received_message_o,

  output logic                   payload_valid_o,
  input  logic                   payload_ready_i,
  output logic [DataBytes*8-1:0] payload_data_o,
  output logic [DataBytes-1:0]   payload_keep_o,
  output logic                   payload_last_o,

  // Credits that a header returned, not 0.
  output logic                   returned_valid_o,
  input  logic                   returned_ready_i,
  output communicator_t          returned_communicator_o,
  output rank_t                  returned_peer_o,
  output logic [15:0]            returned_credits_o,

  // Faults, not all: behind the one that is offered waits only the newest.
  output logic                   fault_valid_o,
  input  logic                   fault_ready_i,
  output fault_e                 fault_code_o,
  output session_t               fault_session_o,
  output logic [31:0]            fault_communicator_o,  // as it came

  output logic [31:0]            counter_good_o,
  output logic [9:1][31:0]       counter_fault_o        // by fault_e
);

  if (DataBytes != 8 && DataBytes != 16 && DataBytes != 32 && DataBytes != 64) begin : gen_bad_bytes
    $error("unisono_rx: DataBytes must be 8, 16, 32 or 64");
  end
  if (Queue < 8 || 2 ** $clog2(Queue) != Queue) begin : gen_bad_queue
    $error("unisono_rx: Queue must be a power of two, at least 8");
  end
  if (PayloadWords < 16 || 2 ** $clog2(PayloadWords) != PayloadWords) begin : gen_bad_words
    $error("unisono_rx: PayloadWords must be a power of two, at least 16");
  end

  localparam int unsigned HeaderWords = HeaderBytes / DataBytes;
  localparam int unsigned IndexBits = HeaderWords > 1 ? $clog2(HeaderWords) : 1;
  localparam int unsigned ByteBits = $clog2(DataBytes);
  localparam int unsigned CountBits = 16 - ByteBits + 1;
  localparam int unsigned PlaceBits = $clog2(Queue);
  localparam int unsigned WordBits = $clog2(PayloadWords);

  typedef logic [PlaceBits-1:0] place_t;
  typedef logic [PlaceBits:0] level_t;
  typedef logic [CountBits-1:0] words_t;

  // ------------------------------------------------------------------ meta words
  logic        meta_valid, meta_take;
  session_t    meta_session;
  logic [15:0] meta_bytes;
  logic        meta_error;
  // What follows from the length is found before the register, so that it does not stand before the
  // choice of what to do with a word.
  logic                   meta_some, some, meta_long, long;
  logic [HeaderWords-1:0] meta_fits, fits;    // all of the packet is in words 0 to w

  assign meta_some = meta_bytes_i != 16'd0;
  assign meta_long = meta_bytes_i >= 16'(HeaderBytes);
  for (genvar w = 0; w < HeaderWords; w++) begin : gen_fits
    assign meta_fits[w] = meta_bytes_i <= 16'((w + 1) * DataBytes);
  end

  unisono_skid #(
    .Width(33 + 2 + HeaderWords)
  ) u_meta (
    .clk_i,
    .rst_ni,
    .in_valid_i (meta_valid_i),
    .in_ready_o (meta_ready_o),
    .in_data_i  ({meta_session_i, meta_bytes_i, meta_error_i, meta_some, meta_long, meta_fits}),
    .out_valid_o(meta_valid),
    .out_ready_i(meta_take),
    .out_data_o ({meta_session, meta_bytes, meta_error, some, long, fits})
  );

  // ------------------------------------------------------- cutting packets into header and payload
  typedef enum logic [1:0] {
    InHeader,
    InPayload,
    InPad,    // the packet was too short: zeros up to the announced length
    InDrop    // the packet was too long: the rest is dropped
  } in_e;

  in_e                  in_q;
  logic [IndexBits-1:0] index_q;
  words_t               words_left_q;
  logic [DataBytes-1:0] tail_keep_q;     // bytes of the payload's last word
  session_t             session_q;       // of the payload under way

  level_t               held_q;          // headers from their last word on until they leave
  logic                 header_space, payload_space;
  logic                 word;            // a word is taken
  logic                 empty;           // a packet without words
  logic                 header_done;     // this cycle's word, or none, ends the header
  logic                 header_full;     // the header is complete
  logic                 last_expected;   // the packet should end with this header word
  logic                 broken;

  assign header_space  = !held_q[PlaceBits];  // Queue is a power of two, and never exceeded
  assign empty         = in_q == InHeader && meta_valid && header_space && !some;
  assign last_expected = fits[index_q];
  assign header_full   = index_q == IndexBits'(HeaderWords - 1) && long;

  always_comb begin
    unique case (in_q)
      InHeader:  rx_ready_o = meta_valid && header_space && some;
      InPayload: rx_ready_o = payload_space;
      InPad:     rx_ready_o = 1'b0;
      default:   rx_ready_o = 1'b1;
    endcase
  end

  assign word = rx_valid_i && rx_ready_o;
  assign header_done = empty || (in_q == InHeader && word &&
                                 (rx_last_i || last_expected || header_full));
  assign broken = !empty && (rx_last_i != last_expected ||
                             (rx_last_i && header_full && rx_keep_i != '1));
  assign meta_take = header_done;

  // Payload words.
  logic                   final_word, push, wrong_length;
  logic [DataBytes-1:0]   push_keep;
  logic [DataBytes*8-1:0] push_data;
  logic [15:0]            payload_bytes;

  assign payload_bytes = meta_bytes - 16'(HeaderBytes);
  assign final_word    = words_left_q == words_t'(1);
  assign push          = (in_q == InPayload && word) || (in_q == InPad && payload_space);
  assign push_data     = in_q == InPad ? '0 : rx_data_i;
  assign push_keep     = final_word ? tail_keep_q : '1;
  assign wrong_length  = in_q == InPayload && word &&
                         (rx_last_i != final_word || (rx_last_i && rx_keep_i != push_keep));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_q    <= InHeader;
      index_q <= '0;
    end else begin
      unique case (in_q)
        InHeader: begin
          if (header_done) begin
            index_q <= '0;
            if (!empty && !rx_last_i) in_q <= last_expected ? InDrop : InPayload;
          end else if (word) begin
            index_q <= index_q + 1'b1;
          end
        end
        InPayload: begin
          if (word && final_word) in_q <= rx_last_i ? InHeader : InDrop;
          else if (word && rx_last_i) in_q <= InPad;
        end
        InPad: if (push && final_word) in_q <= InHeader;
        default: if (rx_valid_i && rx_last_i) in_q <= InHeader;
      endcase
    end
    if (in_q == InHeader && rx_valid_i) begin
      session_q    <= meta_session;
      for (int unsigned b = 0; b < DataBytes; b++) begin
        tail_keep_q[b] <= payload_bytes[ByteBits-1:0] == '0 ||
                          b < 32'(payload_bytes[ByteBits-1:0]);
      end
      words_left_q <= words_t'(payload_bytes[15:ByteBits]) +
                      words_t'(payload_bytes[ByteBits-1:0] != '0);
    end else if (push) begin
      words_left_q <= words_left_q - 1'b1;
    end
  end

  // ------------------------------------------------------------------ stage 1: the whole header
  typedef logic [HeaderWords-1:0][DataBytes*8-1:0] words_of_header_t;

  logic             valid1_q, short1_q, error1_q, payload1_q;
  words_of_header_t words1_q;
  session_t         session1_q;
  logic [15:0]      bytes1_q;
  header_t          header1;

  assign header1 = words1_q;

  for (genvar w = 0; w < HeaderWords; w++) begin : gen_word
    always_ff @(posedge clk_i) begin
      if (in_q == InHeader && index_q == IndexBits'(w)) words1_q[w] <= rx_data_i;
    end
  end

  always_ff @(posedge clk_i) begin
    valid1_q   <= rst_ni && header_done;
    short1_q   <= !long;
    error1_q   <= meta_error || broken;
    payload1_q <= !rx_last_i && !last_expected && !empty;
    session1_q <= meta_session;
    bytes1_q   <= payload_bytes;
  end

  assign find_valid_o  = valid1_q;
  assign find_number_o = header1.communicator;
  assign find_epoch_o  = header1.epoch;

  // ------------------------------------------------------------------ stages 2 to 4: the checks
  typedef struct packed {
    session_t    session;
    rank_t       source;
    logic        source_fits;
    rank_t       destination;
    logic        destination_fits;
    segment_bytes_t segment;
    logic        segment_fits;
    logic        length_right;
    logic [31:0] checksum;
    fault_e      fault;
  } check_t;

  check_t      check1, check2_q, check3_q;
  logic        valid2_q, valid3_q, valid4_q;
  logic        carries2_q, first_wrong2_q, last2_q;
  logic [48:0] end2_q;
  logic [47:0] message2_q;
  logic        extent_wrong3_q;
  logic [31:0] crc;

  always_comb begin
    check1.session          = session1_q;
    check1.source           = header1.source[RankWidth-1:0];
    check1.source_fits      = header1.source[31:RankWidth] == '0;
    check1.destination      = header1.destination[RankWidth-1:0];
    check1.destination_fits = header1.destination[31:RankWidth] == '0;
    check1.segment          = header1.segment_bytes[SegmentWidth-1:0];
    check1.segment_fits     = header1.segment_bytes <= 32'(MaxSegment);
    check1.length_right     = header1.segment_bytes == 32'(bytes1_q);
    check1.checksum         = header1.checksum;
    if (short1_q) check1.fault = FaultShort;
    else if (error1_q) check1.fault = FaultTransport;
    else if (header1.magic != 16'(Magic)) check1.fault = FaultMagic;
    else if (header1.version != 4'(WireVersion)) check1.fault = FaultVersion;
    else if (!header_well_formed(header1) || header1.trailer) check1.fault = FaultReserved;
    else check1.fault = FaultNone;
  end

  always_ff @(posedge clk_i) begin
    check2_q       <= check1;
    carries2_q     <= header1.type_ inside {MessageTypeEager, MessageTypeWrite,
                                            MessageTypeAggregate};
    first_wrong2_q <= header1.first && header1.offset != '0;
    last2_q        <= header1.last;
    end2_q         <= 49'(header1.offset) + 49'(header1.segment_bytes);
    message2_q     <= header1.message_bytes;

    check3_q        <= check2_q;
    extent_wrong3_q <= carries2_q && (end2_q > {1'b0, message2_q} || first_wrong2_q ||
                                      (last2_q && end2_q != {1'b0, message2_q}));
  end

  unisono_crc32c u_crc (
    .clk_i,
    .valid_i(valid1_q),
    .data_i (header1[479:0]),
    .crc_o  (crc)
  );

  // Stage 3: the checksum is known, and whether there is such a communicator.
  fault_e fault3;

  always_comb begin
    if (check3_q.fault != FaultNone) fault3 = check3_q.fault;
    else if (crc != check3_q.checksum) fault3 = FaultChecksum;
    else if (!check3_q.length_right) fault3 = FaultShort;
    else if (!check3_q.segment_fits || extent_wrong3_q) fault3 = FaultLength;
    else if (!found_i) fault3 = FaultCommunicator;
    else fault3 = FaultNone;
  end

  assign entry_communicator_o = found_communicator_i;
  assign peer_communicator_o  = found_communicator_i;
  assign peer_rank_o          = check3_q.source;

  // Stage 4: so are the communicator's limits and its member.
  check_t        check4_q;
  communicator_t communicator4_q;
  fault_e        verdict;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid2_q <= 1'b0;
      valid3_q <= 1'b0;
      valid4_q <= 1'b0;
    end else begin
      valid2_q <= valid1_q;
      valid3_q <= valid2_q;
      valid4_q <= valid3_q;
    end
    check4_q        <= check3_q;
    check4_q.fault  <= fault3;
    communicator4_q <= found_communicator_i;
  end

  logic source_right, destination_right;

  // Whichever channel a message came by, its session is its member's.
  assign source_right      = check4_q.source_fits && {1'b0, check4_q.source} < entry_i.size &&
                             peer_i.valid && peer_i.session[14:0] == check4_q.session[14:0];
  assign destination_right = check4_q.destination_fits && check4_q.destination == entry_i.rank;

  always_comb begin
    if (check4_q.fault != FaultNone) verdict = check4_q.fault;
    else if (32'(check4_q.segment) > entry_i.segment_bytes) verdict = FaultLength;
    else if (!source_right || !destination_right) verdict = FaultMember;
    else verdict = FaultNone;
  end

  logic unused_bits;
  assign unused_bits = ^{entry_i.number, entry_i.epoch, entry_i.eager_limit, entry_i.rx_buffers, entry_i.members,
                         peer_i.session[15], check4_q.session[15], check4_q.segment_fits,
                         check4_q.length_right, check4_q.checksum};

  // --------------------------------------------------------------- where headers and payloads wait
  typedef struct packed {
    logic     payload;                   // words of it are in the payload's memory
    session_t session;
    header_t  header;
  } waiting_t;

  typedef struct packed {
    fault_e        fault;
    communicator_t communicator;
  } verdict_t;

  typedef struct packed {
    logic                   last;
    logic [DataBytes-1:0]   keep;
    logic [DataBytes*8-1:0] data;
  } word_t;

  (* ram_style = "distributed" *) waiting_t waiting  [Queue];
  (* ram_style = "distributed" *) verdict_t verdicts [Queue];
  (* ram_style = "distributed" *) word_t    payload  [PayloadWords];

  place_t            header_place_q, verdict_place_q, out_place_q;
  level_t            judged_q;           // headers with a verdict that have not left
  logic [WordBits:0] write_place_q, read_place_q;
  logic              leave, pop;

  // Full: the places differ in the bit above an address alone.
  assign payload_space = (write_place_q ^ read_place_q) != (WordBits + 1)'(PayloadWords);

  always_ff @(posedge clk_i) begin
    if (valid1_q) waiting[header_place_q] <= '{payload1_q, session1_q, header1};
    if (valid4_q) verdicts[verdict_place_q] <= '{verdict, communicator4_q};
    if (push) payload[write_place_q[WordBits-1:0]] <= '{final_word, push_keep, push_data};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q          <= '0;
      judged_q        <= '0;
      header_place_q  <= '0;
      verdict_place_q <= '0;
      out_place_q     <= '0;
      write_place_q   <= '0;
      read_place_q    <= '0;
    end else begin
      held_q          <= held_q + level_t'(header_done) - level_t'(leave);
      judged_q        <= judged_q + level_t'(valid4_q) - level_t'(leave);
      header_place_q  <= header_place_q + place_t'(valid1_q);
      verdict_place_q <= verdict_place_q + place_t'(valid4_q);
      out_place_q     <= out_place_q + place_t'(leave);
      write_place_q   <= write_place_q + (WordBits + 1)'(push);
      read_place_q    <= read_place_q + (WordBits + 1)'(pop);
    end
  end

  // ------------------------------------------------------------------ what goes out
  typedef enum logic [1:0] {
    OutHeader,
    OutPass,
    OutDrop
  } out_e;

  out_e      out_q;
  waiting_t  next;
  verdict_t  judged;
  word_t     next_word;
  received_t message;
  logic      word_there, good, credit_only, pays, refused;
  logic      received_ready, payload_ready, returned_ready;

  assign next       = waiting[out_place_q];
  assign judged     = verdicts[out_place_q];
  assign next_word  = payload[read_place_q[WordBits-1:0]];
  assign word_there = write_place_q != read_place_q;

  assign good        = judged.fault == FaultNone;
  assign credit_only = next.header.type_ == MessageTypeCredit;
  assign pays        = good && next.header.credits != '0;

  // A header leaves when everything that it goes to has room.
  assign leave = out_q == OutHeader && judged_q != '0 &&
                 (!good || ((credit_only || received_ready) && (!pays || returned_ready)));
  assign pop   = word_there && ((out_q == OutPass && payload_ready) || out_q == OutDrop);
  assign refused = leave && !good;

  assign message.session      = {1'b0, next.session[14:0]};
  assign message.header       = next.header;
  assign message.communicator = judged.communicator;
  assign message.source       = next.header.source[RankWidth-1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q <= OutHeader;
    end else if (out_q == OutHeader) begin
      if (leave && next.payload) out_q <= good && !credit_only ? OutPass : OutDrop;
    end else if (pop && next_word.last) begin
      out_q <= OutHeader;
    end
  end

  unisono_skid #(
    .Width($bits(received_t))
  ) u_received (
    .clk_i,
    .rst_ni,
    .in_valid_i (leave && good && !credit_only),
    .in_ready_o (received_ready),
    .in_data_i  (message),
    .out_valid_o(received_valid_o),
    .out_ready_i(received_ready_i),
    .out_data_o (received_message_o)
  );

  unisono_skid #(
    .Width(16 + CommunicatorWidth + RankWidth)
  ) u_returned (
    .clk_i,
    .rst_ni,
    .in_valid_i (leave && pays),
    .in_ready_o (returned_ready),
    .in_data_i  ({next.header.credits, judged.communicator, message.source}),
    .out_valid_o(returned_valid_o),
    .out_ready_i(returned_ready_i),
    .out_data_o ({returned_credits_o, returned_communicator_o, returned_peer_o})
  );

  unisono_skid #(
    .Width($bits(word_t))
  ) u_payload (
    .clk_i,
    .rst_ni,
    .in_valid_i (out_q == OutPass && word_there),
    .in_ready_o (payload_ready),
    .in_data_i  (next_word),
    .out_valid_o(payload_valid_o),
    .out_ready_i(payload_ready_i),
    .out_data_o ({payload_last_o, payload_keep_o, payload_data_o})
  );

  // ------------------------------------------------------------------ faults
  typedef struct packed {
    fault_e      fault;
    session_t    session;
    logic [31:0] communicator;
  } report_t;

  logic    newest_valid_q, report_valid_q;
  report_t newest_q, report_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counter_good_o  <= '0;
      counter_fault_o <= '0;
      newest_valid_q  <= 1'b0;
      report_valid_q  <= 1'b0;
    end else begin
      if (leave && good) counter_good_o <= counter_good_o + 32'd1;
      for (int f = 1; f <= 9; f++) begin
        counter_fault_o[f] <= counter_fault_o[f] + 32'(refused && judged.fault == fault_e'(f)) +
                              32'(wrong_length && fault_e'(f) == FaultTransport);
      end
      if (wrong_length || refused) newest_valid_q <= 1'b1;
      else if (!report_valid_q || fault_ready_i) newest_valid_q <= 1'b0;
      if (!report_valid_q || fault_ready_i) report_valid_q <= newest_valid_q;
    end
    if (wrong_length) newest_q <= '{FaultTransport, session_q, 32'd0};
    else if (refused) newest_q <= '{judged.fault, next.session, next.header.communicator};
    if (!report_valid_q || fault_ready_i) report_q <= newest_q;
  end

  assign fault_valid_o        = report_valid_q;
  assign fault_code_o         = report_q.fault;
  assign fault_session_o      = report_q.session;
  assign fault_communicator_o = report_q.communicator;

endmodule
