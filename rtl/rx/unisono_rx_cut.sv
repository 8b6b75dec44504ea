// Cuts packets into headers and payloads.
//
// A packet is cut by the length that the transport has announced. One that ends before, or goes on behind it, is
// broken: if its header is not over yet, this is told with the header; else its payload is cut, or filled with zeros up
// to the announced length, and that it is wrong is told when it is found.
//
// Latency: a header is there in the cycle after its last word; a word of payload goes on in its cycle. Throughput: a
// word per cycle; with DataBytes = 64 a packet without payload every cycle. Restrictions: no word is taken before its
// packet's meta word; a packet with bytes == 0 has no words.

module unisono_rx_cut
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_rx_pkg::*;
#(
  parameter int unsigned DataBytes = 64   // 8, 16, 32 or 64
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // From the transport.
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

  // There is room for a header, for a word of payload. A header's place is taken with its last word (`done_o`).
  input  logic                   header_space_i,
  input  logic                   payload_space_i,
  output logic                   done_o,
  output logic                   header_valid_o,
  output rx_header_t             header_o,
  output logic                   push_o,
  output logic                   push_last_o,
  output logic [DataBytes-1:0]   push_keep_o,
  output logic [DataBytes*8-1:0] push_data_o,

  // A payload has another length than announced.
  output logic                   wrong_o,
  output session_t               wrong_session_o
);

  localparam int unsigned HeaderWords = HeaderBytes / DataBytes;
  localparam int unsigned IndexBits = HeaderWords > 1 ? $clog2(HeaderWords) : 1;
  localparam int unsigned ByteBits = $clog2(DataBytes);
  localparam int unsigned CountBits = 16 - ByteBits + 1;

  typedef logic [CountBits-1:0] words_t;

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

  logic                 word;            // a word is taken
  logic                 empty;           // a packet without words
  logic                 header_done;     // this cycle's word, or none, ends the header
  logic                 header_full;     // the header is complete
  logic                 last_expected;   // the packet should end with this header word
  logic                 broken;

  assign empty         = in_q == InHeader && meta_valid && header_space_i && !some;
  assign last_expected = fits[index_q];
  assign header_full   = index_q == IndexBits'(HeaderWords - 1) && long;

  always_comb begin
    unique case (in_q)
      InHeader:  rx_ready_o = meta_valid && header_space_i && some;
      InPayload: rx_ready_o = payload_space_i;
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
  logic                   final_word;
  logic [15:0]            payload_bytes;

  assign payload_bytes = meta_bytes - 16'(HeaderBytes);
  assign final_word    = words_left_q == words_t'(1);
  assign push_o        = (in_q == InPayload && word) || (in_q == InPad && payload_space_i);
  assign push_data_o   = in_q == InPad ? '0 : rx_data_i;
  assign push_keep_o   = final_word ? tail_keep_q : '1;
  assign wrong_o       = in_q == InPayload && word &&
                         (rx_last_i != final_word || (rx_last_i && rx_keep_i != push_keep_o));

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
        InPad: if (push_o && final_word) in_q <= InHeader;
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
    end else if (push_o) begin
      words_left_q <= words_left_q - 1'b1;
    end
  end

  // The whole header.
  typedef logic [HeaderWords-1:0][DataBytes*8-1:0] words_of_header_t;

  logic             valid1_q, short1_q, error1_q, payload1_q;
  words_of_header_t words1_q;
  session_t         session1_q;
  logic [15:0]      bytes1_q;

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

  assign done_o          = header_done;
  assign header_valid_o  = valid1_q;
  assign header_o        = '{is_short: short1_q, broken: error1_q, payload: payload1_q, session: session1_q,
                             bytes: bytes1_q, header: words1_q};
  assign push_last_o     = final_word;
  assign wrong_session_o = session_q;

endmodule
