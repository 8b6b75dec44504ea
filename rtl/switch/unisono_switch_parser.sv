// The parser of a switch's port: cuts frames into header and payload, checks each header once, and drops what is not
// sound.
//
// In this order, the first that does not hold is the frame's fault:
//   FaultShort     its first word is full
//   FaultMagic, FaultVersion
//   FaultReserved  reserved bits are zero, type and datatype known; what is for the switch is of type eager or
//                  aggregate, goes neither to a stream port nor from point to point, has a step tag and no trailer
//   FaultChecksum
//   FaultShort     it goes on after its header if, and only if, the header says so
//   FaultLength    the segment is at most MaxSegment and lies within its message
//
// A sound frame gives one switch_meta_t, then its payload if it has one: with the trailer, in frames that pass through.
// A bad frame is dropped whole and counted. Whether a payload is as long as its header says is known only at its end;
// the parser does not wait for it. If it is not, the payload is cut to that length, or ends where the frame ends, and
// its last word has payload_bad_o: whoever has taken it must forget it. This is counted as FaultShort.
//
// Latency: 5 cycles from the handshake of the header to meta_valid_o. Throughput: one word per cycle, with frames
// without payload one frame per cycle.
// A payload's first word does not come before its header. Outputs are registered.

module unisono_switch_parser
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Queue        = 16,  // headers under check or waiting; power of two, >= 8
  parameter int unsigned PayloadWords = 32   // that wait; power of two, >= 16
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,

  input  logic                     in_valid_i,
  output logic                     in_ready_o,
  input  logic [SwitchBytes*8-1:0] in_data_i,
  input  logic [SwitchBytes-1:0]   in_keep_i,
  input  logic                     in_last_i,

  output logic                     meta_valid_o,
  input  logic                     meta_ready_i,
  output switch_meta_t             meta_o,

  output logic                     payload_valid_o,
  input  logic                     payload_ready_i,
  output logic [SwitchBytes*8-1:0] payload_data_o,
  output logic [SwitchBytes-1:0]   payload_keep_o,
  output logic                     payload_last_o,
  output logic                     payload_bad_o,         // with last

  output logic [31:0]              counter_aggregate_o,   // sound frames for the switch
  output logic [31:0]              counter_pass_o,        // and others
  output logic [9:1][31:0]         counter_fault_o        // by fault_e
);

  if (Queue < 8 || 2 ** $clog2(Queue) != Queue) begin : gen_bad_queue
    $error("unisono_switch_parser: Queue must be a power of two, at least 8");
  end
  if (PayloadWords < 16 || 2 ** $clog2(PayloadWords) != PayloadWords) begin : gen_bad_words
    $error("unisono_switch_parser: PayloadWords must be a power of two, at least 16");
  end

  localparam int unsigned ByteBits = $clog2(SwitchBytes);
  localparam int unsigned CountBits = SegmentWidth + 1 - ByteBits;
  localparam int unsigned PlaceBits = $clog2(Queue);
  localparam int unsigned WordBits = $clog2(PayloadWords);
  localparam int unsigned TrailerBytes = 4;

  typedef logic [PlaceBits-1:0] queue_place_t;
  typedef logic [PlaceBits:0] level_t;
  typedef logic [CountBits-1:0] words_t;
  typedef logic [SegmentWidth:0] bytes_t;  // of a segment and a trailer, not beyond what may be

  // ------------------------------------------------------- cutting frames into header and payload
  typedef enum logic [1:0] {
    InHeader,
    InPayload,
    InDrop     // the frame was too long: the rest is dropped
  } in_e;

  in_e                    in_q;
  header_t                in_header;
  bytes_t                 in_bytes;        // behind the header, as it says
  logic                   in_some;         // there are some
  words_t                 words_left_q;
  logic [SwitchBytes-1:0] tail_keep_q;     // bytes of the payload's last word

  level_t                 held_q;          // headers from their handshake on until they leave
  logic                   header_space, payload_space, word, header_word, push, final_word, wrong_end;

  assign in_header    = in_data_i;
  assign in_bytes     = bytes_t'(in_header.segment_bytes[SegmentWidth-1:0]) +
                        (in_header.trailer ? bytes_t'(TrailerBytes) : '0);
  assign in_some      = in_header.segment_bytes != '0 || in_header.trailer;
  assign header_space = !held_q[PlaceBits];  // Queue is a power of two, and never exceeded

  always_comb begin
    unique case (in_q)
      InHeader:  in_ready_o = header_space;
      InPayload: in_ready_o = payload_space;
      default:   in_ready_o = 1'b1;
    endcase
  end

  assign word        = in_valid_i && in_ready_o;
  assign header_word = word && in_q == InHeader;
  assign push        = word && in_q == InPayload;
  assign final_word  = words_left_q == words_t'(1);
  assign wrong_end   = final_word ? !in_last_i || in_keep_i != tail_keep_q : in_last_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_q <= InHeader;
    end else begin
      unique case (in_q)
        // What goes on where the header says it does not is dropped here, all other bad frames behind the check.
        InHeader: if (word && !in_last_i) in_q <= in_some ? InPayload : InDrop;
        InPayload: begin
          if (word && in_last_i) in_q <= InHeader;
          else if (word && final_word) in_q <= InDrop;
        end
        default: if (in_valid_i && in_last_i) in_q <= InHeader;
      endcase
    end
    if (in_q == InHeader) begin
      for (int unsigned b = 0; b < SwitchBytes; b++) begin
        tail_keep_q[b] <= in_bytes[ByteBits-1:0] == '0 || b < 32'(in_bytes[ByteBits-1:0]);
      end
      words_left_q <= words_t'(in_bytes >> ByteBits) + words_t'(in_bytes[ByteBits-1:0] != '0);
      // Beyond what may be, a segment is dropped; its end is where the frame ends.
      if (in_header.segment_bytes > 32'(MaxSegment)) words_left_q <= '0;
    end else if (push && words_left_q != '0) begin
      words_left_q <= words_left_q - 1'b1;
    end
  end

  // ------------------------------------------------------------------ stage 1: the header
  logic    valid1_q, short1_q, payload1_q, length_wrong1_q;
  header_t header1_q;

  always_ff @(posedge clk_i) begin
    valid1_q        <= rst_ni && header_word;
    short1_q        <= in_keep_i != '1;
    payload1_q      <= !in_last_i && in_some;
    length_wrong1_q <= in_last_i == in_some;
    if (in_q == InHeader) header1_q <= in_header;
  end

  // ------------------------------------------------------------------ stages 2 and 3: the checks
  typedef struct packed {
    logic        length_wrong;
    logic        segment_fits;
    logic [31:0] checksum;
    fault_e      fault;
  } check_t;

  check_t      check1, check2_q, check3_q;
  logic        valid2_q, valid3_q, carries2_q, first_wrong2_q, last2_q, extent_wrong3_q;
  logic        payload2_q, payload3_q;
  logic [48:0] end2_q;
  logic [47:0] message2_q;
  logic [31:0] crc;
  fault_e      verdict;

  // Whether the rest of a header fits its flag `aggregate`.
  logic carriable;
  assign carriable = header1_q.type_ inside {MessageTypeEager, MessageTypeAggregate} && !header1_q.stream &&
                     !header1_q.point_to_point && !header1_q.trailer &&
                     header1_q.tag[31:SwitchTagWidth] == '0;

  always_comb begin
    check1.length_wrong = length_wrong1_q;
    check1.segment_fits = header1_q.segment_bytes <= 32'(MaxSegment);
    check1.checksum     = header1_q.checksum;
    if (short1_q) check1.fault = FaultShort;
    else if (header1_q.magic != 16'(Magic)) check1.fault = FaultMagic;
    else if (header1_q.version != 4'(WireVersion)) check1.fault = FaultVersion;
    else if (!header_well_formed(header1_q) || (header1_q.aggregate && !carriable)) check1.fault = FaultReserved;
    else check1.fault = FaultNone;
  end

  always_ff @(posedge clk_i) begin
    valid2_q       <= rst_ni && valid1_q;
    payload2_q     <= payload1_q;
    check2_q       <= check1;
    carries2_q     <= header1_q.type_ inside {MessageTypeEager, MessageTypeWrite, MessageTypeAggregate};
    first_wrong2_q <= header1_q.first && header1_q.offset != '0;
    last2_q        <= header1_q.last;
    end2_q         <= 49'(header1_q.offset) + 49'(header1_q.segment_bytes);
    message2_q     <= header1_q.message_bytes;

    valid3_q        <= rst_ni && valid2_q;
    payload3_q      <= payload2_q;
    check3_q        <= check2_q;
    extent_wrong3_q <= carries2_q && (end2_q > {1'b0, message2_q} || first_wrong2_q ||
                                      (last2_q && end2_q != {1'b0, message2_q}));
  end

  unisono_crc32c u_crc (
    .clk_i,
    .valid_i(valid1_q),
    .data_i (header1_q[479:0]),
    .crc_o  (crc)
  );

  always_comb begin
    if (check3_q.fault != FaultNone) verdict = check3_q.fault;
    else if (crc != check3_q.checksum) verdict = FaultChecksum;
    else if (check3_q.length_wrong) verdict = FaultShort;
    else if (!check3_q.segment_fits || extent_wrong3_q) verdict = FaultLength;
    else verdict = FaultNone;
  end

  // --------------------------------------------------------------- where headers and payloads wait
  typedef struct packed {
    logic   payload;                     // words of it are in the payload's memory
    fault_e fault;
  } verdict_t;

  typedef struct packed {
    logic                     bad;
    logic                     last;
    logic [SwitchBytes-1:0]   keep;
    logic [SwitchBytes*8-1:0] data;
  } word_t;

  (* ram_style = "distributed" *) header_t  waiting  [Queue];
  (* ram_style = "distributed" *) verdict_t verdicts [Queue];
  (* ram_style = "distributed" *) word_t    payload  [PayloadWords];

  queue_place_t      header_place_q, verdict_place_q, out_place_q;
  level_t            judged_q;           // headers with a verdict that have not left
  logic [WordBits:0] write_place_q, read_place_q;
  logic              leave, pop;

  // Full: the places differ in the bit above an address alone.
  assign payload_space = (write_place_q ^ read_place_q) != (WordBits + 1)'(PayloadWords);

  always_ff @(posedge clk_i) begin
    if (valid1_q) waiting[header_place_q] <= header1_q;
    if (valid3_q) verdicts[verdict_place_q] <= '{payload3_q, verdict};
    if (push) begin
      payload[write_place_q[WordBits-1:0]] <= '{
          wrong_end, final_word || in_last_i, final_word ? tail_keep_q & in_keep_i : in_keep_i, in_data_i};
    end
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
      held_q          <= held_q + level_t'(header_word) - level_t'(leave);
      judged_q        <= judged_q + level_t'(valid3_q) - level_t'(leave);
      header_place_q  <= header_place_q + queue_place_t'(valid1_q);
      verdict_place_q <= verdict_place_q + queue_place_t'(valid3_q);
      out_place_q     <= out_place_q + queue_place_t'(leave);
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

  out_e     out_q;
  header_t  next;
  verdict_t judged;
  word_t    next_word;
  logic     word_there, good, meta_ready, payload_ready, cut;

  assign next       = waiting[out_place_q];
  assign judged     = verdicts[out_place_q];
  assign next_word  = payload[read_place_q[WordBits-1:0]];
  assign word_there = write_place_q != read_place_q;

  assign good  = judged.fault == FaultNone;
  assign leave = out_q == OutHeader && judged_q != '0 && (!good || meta_ready);
  assign pop   = word_there && ((out_q == OutPass && payload_ready) || out_q == OutDrop);
  assign cut   = pop && out_q == OutPass && next_word.last && next_word.bad;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q <= OutHeader;
    end else if (out_q == OutHeader) begin
      if (leave && judged.payload) out_q <= good ? OutPass : OutDrop;
    end else if (pop && next_word.last) begin
      out_q <= OutHeader;
    end
  end

  unisono_skid #(
    .Width($bits(switch_meta_t))
  ) u_meta (
    .clk_i,
    .rst_ni,
    .in_valid_i (leave && good),
    .in_ready_o (meta_ready),
    .in_data_i  ({next.aggregate, next}),
    .out_valid_o(meta_valid_o),
    .out_ready_i(meta_ready_i),
    .out_data_o (meta_o)
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
    .out_data_o ({payload_bad_o, payload_last_o, payload_keep_o, payload_data_o})
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counter_aggregate_o <= '0;
      counter_pass_o      <= '0;
      counter_fault_o     <= '0;
    end else begin
      counter_aggregate_o <= counter_aggregate_o + 32'(leave && good && next.aggregate);
      counter_pass_o      <= counter_pass_o + 32'(leave && good && !next.aggregate);
      for (int f = 1; f <= 9; f++) begin
        counter_fault_o[f] <= counter_fault_o[f] + 32'(leave && judged.fault == fault_e'(f)) +
                              32'(cut && fault_e'(f) == FaultShort);
      end
    end
  end

`ifndef SYNTHESIS
  unisono_stream_check #(
    .DataBytes(SwitchBytes)
  ) u_check_in (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i (in_data_i),
    .keep_i (in_keep_i),
    .last_i (in_last_i),
    .user_i (1'b0)
  );
`endif

endmodule
