// What goes out at a port of a switch's unit: makes frames of what the control sends and of what the fold gives.
//
// Grants and credit go before other messages, which go in their order. Data come from the fold in the same order. A frame begins when its first word is there, and the
// egress has room for all of it: ready_o says so before the control sends. Each header takes with it all credit that the
// neighbour is owed; when half of what it may have is owed, credit goes in a message of its own.
//
// Latency: 7 cycles from send_i to the header; with data, not before 4 cycles after their first word. Throughput: one
// word per cycle; between frames 6 cycles.
// Restrictions: send_i only while ready_o was high in the cycle before, and 3 cycles after the last one or later. A
// message with data is followed by exactly its data. The addresses behind a port differ in their low 8 bits.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_switch_egress
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned BufferBytes = 4096,  // of a segment, at most
  parameter int unsigned Buffers     = 4,     // segments that wait; a power of two
  localparam int unsigned DataBits = SwitchBytes * 8
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   open_valid_i,
  input  unit_entry_t            open_entry_i,
  input  terms_t                 open_terms_i,
  input  neighbour_t             open_neighbour_i,

  // The control; a message with data goes by the neighbour's grant `token_i`, if it has one.
  output logic                   ready_o,       // room for two messages, one of them with data
  input  logic                   send_i,
  input  send_t                  message_i,
  input  granted_t               token_i,

  input  logic                   freed_valid_i, // a buffer of the neighbour's is free again
  input  unit_entry_t            freed_entry_i,

  input  logic                   data_valid_i,  // always taken
  input  logic [DataBits-1:0]    data_i,

  output logic                   out_valid_o,
  input  logic                   out_ready_i,
  output logic [DataBits-1:0]    out_data_o,
  output logic [SwitchBytes-1:0] out_keep_o,
  output logic                   out_last_o,
  output node_t                  out_address_o, // of the frame
  output logic                   out_control_o  // it goes on the channel for control
);

  localparam int unsigned BufferWords = BufferBytes / SwitchBytes;
  localparam int unsigned Words = Buffers * BufferWords;
  localparam int unsigned WordsWidth = $clog2(Words + 1);
  localparam int unsigned ByteBits = $clog2(SwitchBytes);
  localparam int unsigned Sends = 16;

  typedef logic [WordsWidth-1:0] words_t;

  function automatic words_t words_of(logic [15:0] bytes);
    return words_t'((17'(bytes) + 17'(SwitchBytes - 1)) >> ByteBits);
  endfunction

  // ---------------------------------------------------------------- what waits
  typedef struct packed {
    send_t message;
    granted_t token;
  } item_t;

  item_t  item, grant, own;
  logic   item_valid, item_ready, item_room, grant_valid, grant_ready, grant_room, sends_grant;
  logic [$clog2(Sends+1)-1:0] items, grants;
  words_t space_q;                          // words that nobody has been promised

  unisono_fifo #(
    .Width($bits(item_t)),
    .Depth(Sends)
  ) u_items (
    .clk_i,
    .rst_ni,
    .in_valid_i (send_i && !sends_grant),
    .in_ready_o (item_room),
    .in_data_i  ({message_i, token_i}),
    .out_valid_o(item_valid),
    .out_ready_i(item_ready),
    .out_data_o (item),
    .count_o    (items)
  );
  // They are on another channel, so they may overtake.
  assign sends_grant = message_i.kind == MessageTypeGrant;
  unisono_fifo #(
    .Width($bits(item_t)),
    .Depth(Sends)
  ) u_grants (
    .clk_i,
    .rst_ni,
    .in_valid_i (send_i && sends_grant),
    .in_ready_o (grant_room),
    .in_data_i  ({message_i, token_i}),
    .out_valid_o(grant_valid),
    .out_ready_i(grant_ready),
    .out_data_o (grant),
    .count_o    (grants)
  );

  logic                data_valid, data_ready, data_room;
  logic [DataBits-1:0] next_data;

  unisono_fifo #(
    .Width   (DataBits),
    .Depth   (Words),
    .BlockRam(1'b1)
  ) u_data (
    .clk_i,
    .rst_ni,
    .in_valid_i (data_valid_i),
    .in_ready_o (data_room),
    .in_data_i  (data_i),
    .out_valid_o(data_valid),
    .out_ready_i(data_ready),
    .out_data_o (next_data),
    .count_o    ()
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      space_q <= words_t'(Words);
      ready_o <= 1'b0;
    end else begin
      space_q <= space_q - (send_i ? words_of(message_i.segment_bytes) : '0) + words_t'(data_valid && data_ready);
      ready_o <= items < 5'(Sends - 4) && grants < 5'(Sends - 4) && space_q >= words_t'(2 * BufferWords);
    end
  end

  // ---------------------------------------------------------------- entries
  (* ram_style = "distributed" *) terms_t     terms_q     [UnitEntries];
  (* ram_style = "distributed" *) neighbour_t neighbour_q [UnitEntries];
  logic [UnitEntries-1:0][15:0] owed_q;
  logic [UnitEntries-1:0][15:0] threshold_q;
  logic [UnitEntries-1:0]       due_q;      // credit goes in a message of its own

  always_ff @(posedge clk_i) begin
    if (open_valid_i) begin
      terms_q[open_entry_i]     <= open_terms_i;
      neighbour_q[open_entry_i] <= open_neighbour_i;
    end
  end

  // ---------------------------------------------------------------- frames
  typedef enum logic [2:0] {
    StIdle,
    StEntry,    // what is known of the entry
    StSequence,
    StHeader,   // the header, but for its checksum
    StCheck1,
    StCheck2,
    StSend,
    StData
  } state_e;

  state_e     state_q;
  logic       credit_only;
  unit_entry_t due_entry;
  terms_t     my_terms_q;
  neighbour_t to_q;
  header_t    header, header_q;
  logic [31:0] crc;
  words_t     left_q;
  logic       take_owed;
  // Of sessions, by address and channel: the frames sent so far.
  logic [31:0] sequence_d, sequence_q;
  (* ram_style = "distributed" *) logic [31:0] sequences_q [512];
  logic [511:0] begun_q;
  logic [8:0] session;

  always_comb begin
    due_entry = '0;
    for (int e = int'(UnitEntries) - 1; e >= 0; e--) if (due_q[e]) due_entry = unit_entry_t'(e);
  end
  assign credit_only = due_q != '0;

  assign grant_ready = state_q == StIdle && !credit_only;
  assign item_ready  = state_q == StIdle && !credit_only && !grant_valid;
  assign take_owed  = state_q == StEntry;
  assign session    = {to_q.address[7:0], out_control_o};
  assign sequence_d = begun_q[session] ? sequences_q[session] : '0;

  logic is_grant, carries, by_token, is_control;
  assign is_grant   = own.message.kind == MessageTypeGrant;
  assign carries    = own.message.kind == MessageTypeEager || own.message.kind == MessageTypeWrite;
  assign by_token   = carries && own.message.by_grant;
  assign is_control = is_grant || own.message.kind == MessageTypeCredit;

  logic [15:0] owed_now_q;

  always_comb begin
    header = '0;
    header.magic         = 16'(Magic);
    header.version       = 4'(WireVersion);
    header.type_         = by_token ? MessageTypeWrite : own.message.kind;
    header.dtype         = 8'(own.message.dtype);
    header.first         = own.message.first;
    header.last          = own.message.last;
    header.credits       = owed_now_q;
    header.communicator  = my_terms_q.communicator;
    header.epoch         = my_terms_q.epoch;
    header.source        = 32'(my_terms_q.rank);
    header.destination   = 32'(to_q.rank);
    header.sequence_     = own.message.sequence_;
    header.tag           = 32'(own.message.tag);
    header.segment_bytes = 32'(own.message.segment_bytes);
    header.session_sequence = sequence_q;
    header.message_bytes = own.message.message_bytes;
    header.offset        = own.message.offset;
    header.token_slot    = by_token ? own.token.slot : own.message.token_slot;
    header.token_generation = by_token ? own.token.generation : own.message.token_generation;
    header.signature     = own.message.signature;
    // Without data, checksum and what is for the neighbour alone.
    if (own.message.kind == MessageTypeCredit) begin
      header.dtype     = '0;
      header.tag       = '0;
      header.sequence_ = '0;
    end
  end

  unisono_crc32c u_crc (
    .clk_i,
    .valid_i(state_q == StHeader),
    .data_i (header[479:0]),
    .crc_o  (crc)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= StIdle;
    end else begin
      unique case (state_q)
        StIdle: if (credit_only || grant_valid || item_valid) state_q <= StEntry;
        StEntry: begin
          // What was owed may have gone with another header.
          state_q <= own.message.kind == MessageTypeCredit && owed_q[own.message.entry] == '0 ? StIdle : StSequence;
        end
        StSequence: state_q <= StHeader;
        StHeader: state_q <= StCheck1;
        StCheck1: state_q <= StCheck2;
        StCheck2: if (own.message.segment_bytes == '0 || data_valid) state_q <= StSend;
        StSend: if (out_ready_i) state_q <= own.message.segment_bytes == '0 ? StIdle : StData;
        default: if (data_valid && out_ready_i && left_q == words_t'(1)) state_q <= StIdle;
      endcase
    end
    if (state_q == StIdle) begin
      own <= grant_valid ? grant : item;
      if (credit_only) begin
        own.message       <= '0;
        own.message.kind  <= MessageTypeCredit;
        own.message.first <= 1'b1;
        own.message.last  <= 1'b1;
        own.message.entry <= due_entry;
      end
    end
    if (state_q == StEntry) begin
      my_terms_q <= terms_q[own.message.entry];
      to_q       <= neighbour_q[own.message.entry];
      owed_now_q <= owed_q[own.message.entry];
      out_control_o <= is_control;
    end
    if (state_q == StSequence) sequence_q <= sequence_d;
    if (state_q == StHeader) header_q <= header;
    if (state_q == StCheck2) left_q <= words_of(own.message.segment_bytes);
    else if (state_q == StData && data_valid && out_ready_i) left_q <= left_q - words_t'(1);
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StHeader) sequences_q[session] <= sequence_q + 32'd1;
    if (!rst_ni) begun_q <= '0;
    else if (state_q == StHeader) begun_q[session] <= 1'b1;
  end

  // CRC's result stands until the next header.
  logic [31:0] crc_q;
  always_ff @(posedge clk_i) begin
    if (state_q == StCheck2) crc_q <= crc;
  end

  assign data_ready    = state_q == StData && out_ready_i;
  assign out_valid_o   = state_q == StSend || (state_q == StData && data_valid);
  assign out_last_o    = state_q == StSend ? own.message.segment_bytes == '0 : left_q == words_t'(1);
  assign out_address_o = to_q.address;
  always_comb begin
    out_data_o = next_data;
    if (state_q == StSend) out_data_o = {crc_q, header_q[479:0]};
    for (int unsigned b = 0; b < SwitchBytes; b++) begin
      out_keep_o[b] = state_q == StSend || left_q != words_t'(1) || own.message.segment_bytes[ByteBits-1:0] == '0 ||
                      b < 32'(own.message.segment_bytes[ByteBits-1:0]);
    end
  end

  // ---------------------------------------------------------------- credit
  for (genvar e = 0; e < int'(UnitEntries); e++) begin : gen_entry
    logic opens, freed, takes;
    logic [15:0] owed;
    assign opens = open_valid_i && open_entry_i == unit_entry_t'(e);
    assign freed = freed_valid_i && freed_entry_i == unit_entry_t'(e);
    assign takes = take_owed && own.message.entry == unit_entry_t'(e);
    assign owed  = (takes ? '0 : owed_q[e]) + 16'(freed);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || opens) begin
        owed_q[e] <= '0;
        due_q[e]  <= 1'b0;
      end else begin
        owed_q[e] <= owed;
        due_q[e]  <= (due_q[e] && !takes) || (freed && 17'(owed) << 1 >= 17'(threshold_q[e]));
      end
      if (opens) threshold_q[e] <= open_terms_i.credits;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!send_i || (sends_grant ? grant_room : item_room)) else $error("%m: a message comes without room");
      assert (!data_valid_i || data_room) else $error("%m: data come without room");
    end
  end
`endif

endmodule
