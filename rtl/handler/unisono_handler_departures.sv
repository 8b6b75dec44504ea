// Packets go out as frames: each with the headers of its message's first packet, in which numbers, lengths, where it
// goes, and checksums are new. An item that closes a message is a frame, too, whose payload is the status.
//
//   items ─► in turn ─┬─► sum, length ─► headers ─┐
//                     └─► words that wait ────────┴─► frames
//
// Headers are made while the frame before goes. When the frame of an end has left, its message's place is free.
//
// Latency: 14 cycles from a packet's last word to its frame's first. Throughput: a word per cycle and a cycle for each
// frame; of frames below 8 words one in 8 cycles.

// verilator lint_off PINCONNECTEMPTY

module unisono_handler_departures
  import unisono_spec_pkg::*;
  import unisono_handler_station_pkg::*;
#(
  parameter int unsigned  Format = 1,  // format_e
  parameter int unsigned  Machines = 1,
  parameter int unsigned  Messages = 16,  // of each slot
  parameter int unsigned  Queue = 256,  // words that wait: a power of two, at least 256
  localparam int unsigned IndexBits = $clog2(Messages),
  localparam int unsigned PlaceBits = $clog2(MostMachines) + IndexBits,
  localparam int unsigned UserBits = PlaceBits + $bits(about_t)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  input  way_t [Machines-1:0]                 ways_i,  // of each slot
  input  logic [Machines-1:0]                 in_valid_i,
  output logic [Machines-1:0]                 in_ready_o,
  input  logic [Machines-1:0][FrameBits-1:0]  in_data_i,
  input  logic [Machines-1:0][FrameBytes-1:0] in_keep_i,
  input  logic [Machines-1:0]                 in_last_i,
  input  logic [Machines-1:0][UserBits-1:0]   in_user_i,  // place, about_t

  output logic [IndexBits-1:0]                template_place_o,
  input  logic [Machines-1:0][FrameBits-1:0]  templates_i,  // in the same cycle: of each slot
  output logic [Machines-1:0]                 free_valid_o,
  output logic [IndexBits-1:0]                free_place_o,

  output logic                                out_valid_o,
  input  logic                                out_ready_i,
  output frame_word_t                         out_data_o,
  output logic [FrameBytes-1:0]               out_keep_o,
  output logic                                out_last_o,
  output logic [15:0]                         out_address_o,
  output logic [31:0]                         counter_sent_o
);

  localparam int unsigned PacketsDepth = 16;
  localparam int unsigned SlotBits = $clog2(MostMachines);
  localparam int unsigned MachineBits = Machines > 1 ? $clog2(Machines) : 1;

  typedef struct packed {
    logic [PlaceBits-1:0] place;
    about_t               about;
  } user_t;

  // What is known of a packet when it has come whole.
  typedef struct packed {
    logic [PlaceBits-1:0] place;
    logic                 closes;
    logic [23:0]          packet;
    logic [23:0]          packets;
    logic [13:0]          bytes;
    logic [15:0]          sum;
  } whole_t;

  // ---------------------------------------------------------------- words wait, and are added up
  logic item_valid, item_ready, item_last, take;
  frame_word_t item_data;
  logic [FrameBytes-1:0] item_keep, keep;
  // verilator lint_off UNUSEDSIGNAL
  user_t item_user;
  // verilator lint_on UNUSEDSIGNAL
  unisono_stream_arbiter #(
    .Inputs   (Machines),
    .DataBytes(FrameBytes),
    .UserBits (UserBits)
  ) u_turns (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i,
    .in_keep_i,
    .in_last_i,
    .in_user_i,
    .out_valid_o (item_valid),
    .out_ready_i (item_ready),
    .out_data_o  (item_data),
    .out_keep_o  (item_keep),
    .out_last_o  (item_last),
    .out_user_o  (item_user),
    .out_source_o()
  );

  logic words_valid, words_ready, words_in_ready, words_last;
  frame_word_t words_data;
  logic [FrameBytes-1:0] words_keep;
  logic [4:0] packets_q;  // that have begun, and have no header yet
  logic whole_valid, whole_ready, unused_whole_ready;
  whole_t whole_in, whole;
  assign keep = item_user.about.closes ? FrameBytes'((1 << StatusBytes) - 1) : item_keep;
  assign item_ready = words_in_ready && 32'(packets_q) < PacketsDepth;
  assign take = item_valid && item_ready;
  unisono_stream_fifo #(
    .DataBytes(FrameBytes),
    .Depth    (Queue)
  ) u_words (
    .clk_i,
    .rst_ni,
    .in_valid_i (item_valid && 32'(packets_q) < PacketsDepth),
    .in_ready_o (words_in_ready),
    .in_data_i  (item_data),
    .in_keep_i  (keep),
    .in_last_i  (item_last),
    .in_user_i  (1'b0),
    .out_valid_o(words_valid),
    .out_ready_i(words_ready),
    .out_data_o (words_data),
    .out_keep_o (words_keep),
    .out_last_o (words_last),
    .out_user_o (),
    .count_o    ()
  );

  logic sum_valid;
  logic [15:0] sum;
  unisono_handler_checksum u_sum (
    .clk_i,
    .rst_ni,
    .valid_i(take),
    .data_i (item_data),
    .keep_i (keep),
    .last_i (item_last),
    .valid_o(sum_valid),
    .sum_o  (sum)
  );
  // What goes with the sum takes as long as it does.
  logic [7:0] number_q;  // words of the packet that have come
  whole_t [3:0] late_q;
  always_comb begin
    whole_in = late_q[3];
    whole_in.sum = sum;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      number_q <= '0;
      packets_q <= '0;
    end else begin
      if (take) number_q <= item_last ? '0 : number_q + 8'd1;
      packets_q <= packets_q + 5'(take && item_last) - 5'(whole_valid && whole_ready);
    end
    late_q <= {late_q[2:0], whole_t'{item_user.place, item_user.about.closes, item_user.about.packet,
                                     item_user.about.packets, {number_q[7:0], 6'd0} + 14'(kept_of(keep)), 16'd0}};
  end
  unisono_fifo #(
    .Width($bits(whole_t)),
    .Depth(PacketsDepth)
  ) u_wholes (
    .clk_i,
    .rst_ni,
    .in_valid_i (sum_valid),
    .in_ready_o (unused_whole_ready),
    .in_data_i  (whole_in),
    .out_valid_o(whole_valid),
    .out_ready_i(whole_ready),
    .out_data_o (whole),
    .count_o    ()
  );

  // ---------------------------------------------------------------- headers
  // A header at a time: its template, what is new, sums, checksums.
  logic [2:0] step_q;
  // verilator lint_off UNUSEDSIGNAL
  logic [SlotBits-1:0] slot;  // less than Machines
  // verilator lint_on UNUSEDSIGNAL
  frame_word_t template_q, header_q;
  way_t way_q;
  rewrite_t rewrite;
  whole_t whole_q;
  logic [15:0] address_q, ip_q, udp_q;
  logic [31:0] ip_low_q, ip_high_q;
  logic [3:0][31:0] udp_parts_q;
  logic [31:0] crc;
  logic header_valid_q, header_ready;
  assign slot = whole.place[PlaceBits-1:IndexBits];
  assign template_place_o = whole.place[IndexBits-1:0];
  assign whole_ready = step_q == 3'd0;
  always_comb begin
    rewrite.way = way_q;
    rewrite.kind = whole_q.closes ? KindEnd : KindPacket;
    rewrite.packet = whole_q.packet;
    rewrite.packets = whole_q.packets;
    rewrite.bytes = whole_q.bytes;
  end
  unisono_crc32c u_crc (
    .clk_i,
    .valid_i(Format == 32'(FormatEngine) && step_q == 3'd2),
    .data_i (header_q[479:0]),
    .crc_o  (crc)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= '0;
      header_valid_q <= 1'b0;
    end else begin
      if (header_ready) header_valid_q <= 1'b0;
      case (step_q)
        3'd0: if (whole_valid) step_q <= 3'd1;
        3'd6: begin
          if (!header_valid_q || header_ready) begin
            step_q <= '0;
            header_valid_q <= 1'b1;
          end
        end
        default: step_q <= step_q + 3'd1;
      endcase
    end
    case (step_q)
      3'd0: begin
        whole_q <= whole;
        template_q <= templates_i[MachineBits'(slot)];
        way_q <= ways_i[MachineBits'(slot)];
      end
      3'd1: begin
        header_q <= rewritten(format_e'(Format), template_q, rewrite);
        address_q <= address_of(format_e'(Format), template_q, way_q);
      end
      3'd2: begin
        ip_low_q <= sum_of(header_q, 14, 24);
        ip_high_q <= sum_of(header_q, 24, 34);
        for (int unsigned i = 0; i < 4; i++) udp_parts_q[i] <= sum_of(header_q, 26 + 10 * i, 36 + 10 * i);
      end
      3'd3: begin
        ip_q <= folded(ip_low_q + ip_high_q);
        // UDP's sum is over addresses, protocol, length, and headers from the ports on.
        udp_q <= folded((udp_parts_q[0] + udp_parts_q[1]) + (udp_parts_q[2] + udp_parts_q[3])
                        + (32'h1100 + 32'(header_q[8*38+:16])));
      end
      3'd4: udp_q <= folded(32'(udp_q) + 32'(whole_q.sum));
      // CRC-32C has come; of UDP, 0 says that there is no checksum, and all ones is the same number.
      3'd5: begin
        if (Format == 32'(FormatEngine)) begin
          header_q[FrameBits-1-:32] <= crc;
        end else begin
          header_q[8*24+:16] <= ~ip_q;
          header_q[8*40+:16] <= udp_q == '1 ? '1 : ~udp_q;
        end
      end
      default: ;
    endcase
  end

  // ---------------------------------------------------------------- frames
  typedef struct packed {
    logic [PlaceBits-1:0] place;
    logic                 closes;
    logic [15:0]          address;
    frame_word_t          header;
  } ready_t;
  ready_t ready_q;
  logic payload_q, room, header_go, word_go;
  always_ff @(posedge clk_i) begin
    if (step_q == 3'd6 && (!header_valid_q || header_ready)) begin
      ready_q <= '{whole_q.place, whole_q.closes, address_q, header_q};
    end
  end
  assign room = !out_valid_o || out_ready_i;
  assign header_go = room && !payload_q && header_valid_q;
  assign header_ready = header_go;
  // Its words have come before its header is made.
  assign word_go = room && payload_q && words_valid;
  assign words_ready = room && payload_q;
  logic closes_q;
  // verilator lint_off UNUSEDSIGNAL
  logic [SlotBits-1:0] free_slot_q;
  // verilator lint_on UNUSEDSIGNAL
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_o <= 1'b0;
      payload_q <= 1'b0;
      free_valid_o <= '0;
      counter_sent_o <= '0;
    end else begin
      if (room) out_valid_o <= header_go || word_go;
      if (header_go) payload_q <= 1'b1;
      else if (word_go && words_last) payload_q <= 1'b0;
      free_valid_o <= '0;
      if (word_go && words_last && closes_q) free_valid_o[MachineBits'(free_slot_q)] <= 1'b1;
      counter_sent_o <= counter_sent_o + 32'(out_valid_o && out_ready_i && out_last_o);
    end
    if (header_go) begin
      {free_slot_q, free_place_o} <= ready_q.place;
      closes_q <= ready_q.closes;
      out_address_o <= ready_q.address;
    end
    if (room) begin
      out_data_o <= payload_q ? words_data : ready_q.header;
      out_keep_o <= payload_q ? words_keep : '1;
      out_last_o <= payload_q && words_last;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && sum_valid) assert (unused_whole_ready) else $error("%m: no room for what is known of a packet");
    if (rst_ni && take) begin
      assert (keep != '0) else $error("%m: a packet without bytes");
      assert (32'(item_user.place) < Machines * Messages) else $error("%m: there is no such slot");
    end
  end
`else
  logic unused;
  assign unused = unused_whole_ready;
`endif

endmodule
