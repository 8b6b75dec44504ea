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
  import unisono_rx_pkg::*;
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

  localparam int unsigned PlaceBits = $clog2(Queue);
  localparam int unsigned WordBits = $clog2(PayloadWords);

  typedef logic [PlaceBits-1:0] place_t;
  typedef logic [PlaceBits:0] level_t;

  // ------------------------------------------------------- cutting packets, and checking headers
  level_t                 held_q;        // headers from their last word on until they leave
  logic                   payload_space, header_done, header_valid, judged_valid;
  rx_header_t             header;
  rx_verdict_t            verdict;
  logic                   push, push_last, wrong_length;
  logic [DataBytes-1:0]   push_keep;
  logic [DataBytes*8-1:0] push_data;
  session_t               wrong_session;

  unisono_rx_cut #(.DataBytes(DataBytes)) u_cut (
    .clk_i, .rst_ni, .meta_valid_i, .meta_ready_o, .meta_session_i, .meta_bytes_i, .meta_error_i, .rx_valid_i,
    .rx_ready_o, .rx_data_i, .rx_keep_i, .rx_last_i,
    .header_space_i(!held_q[PlaceBits]),   // Queue is a power of two, and never exceeded
    .payload_space_i(payload_space), .done_o(header_done), .header_valid_o(header_valid), .header_o(header),
    .push_o(push), .push_last_o(push_last), .push_keep_o(push_keep), .push_data_o(push_data),
    .wrong_o(wrong_length), .wrong_session_o(wrong_session)
  );

  unisono_rx_check u_check (
    .clk_i, .rst_ni, .valid_i(header_valid), .header_i(header), .find_valid_o, .find_number_o, .find_epoch_o,
    .found_i, .found_communicator_i, .entry_communicator_o, .entry_i, .peer_communicator_o, .peer_rank_o, .peer_i,
    .verdict_valid_o(judged_valid), .verdict_o(verdict)
  );

  // --------------------------------------------------------------- where headers and payloads wait
  typedef struct packed {
    logic     payload;                   // words of it are in the payload's memory
    session_t session;
    header_t  header;
  } waiting_t;

  typedef struct packed {
    logic                   last;
    logic [DataBytes-1:0]   keep;
    logic [DataBytes*8-1:0] data;
  } word_t;

  (* ram_style = "distributed" *) waiting_t waiting  [Queue];
  (* ram_style = "distributed" *) rx_verdict_t verdicts [Queue];
  (* ram_style = "distributed" *) word_t    payload  [PayloadWords];

  place_t            header_place_q, verdict_place_q, out_place_q;
  level_t            judged_q;           // headers with a verdict that have not left
  logic [WordBits:0] write_place_q, read_place_q;
  logic              leave, pop;

  // Full: the places differ in the bit above an address alone.
  assign payload_space = (write_place_q ^ read_place_q) != (WordBits + 1)'(PayloadWords);

  always_ff @(posedge clk_i) begin
    if (header_valid) waiting[header_place_q] <= '{header.payload, header.session, header.header};
    if (judged_valid) verdicts[verdict_place_q] <= verdict;
    if (push) payload[write_place_q[WordBits-1:0]] <= '{push_last, push_keep, push_data};
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
      judged_q        <= judged_q + level_t'(judged_valid) - level_t'(leave);
      header_place_q  <= header_place_q + place_t'(header_valid);
      verdict_place_q <= verdict_place_q + place_t'(judged_valid);
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
  rx_verdict_t judged;
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

  unisono_rx_faults u_faults (
    .clk_i, .rst_ni, .good_i(leave && good), .refused_i(refused), .fault_i(judged.fault), .session_i(next.session),
    .communicator_i(next.header.communicator), .wrong_i(wrong_length), .wrong_session_i(wrong_session),
    .fault_valid_o, .fault_ready_i, .fault_code_o, .fault_session_o, .fault_communicator_o, .counter_good_o,
    .counter_fault_o
  );

endmodule
