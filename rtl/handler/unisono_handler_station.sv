// A place for handlers in a switch: frames in, machines in a row, frames out (docs/rtl/handler_station.md).
//
//   ports ─► arrivals ─┬─► ledger 0 ─► stage 0 ─┬───────────────► departures ─► frames
//                      │                        └─► (its slot goes on)  ▲
//                      └─► ledger 1 ─► stage 1 ◄┘──────────────────────┘
//
// Arrivals check frames and keep them for their slots, ledgers keep the order of messages, stages run handlers, and
// departures put headers before what these write. A slot is a machine, and its memory. What a machine writes leaves, or
// is the next machine's packet.
//
// Control port: words of 32 bits, bits 11 to 8 the slot; reads are answered 2 cycles later.
//     0x0  address of what is loaded             (unisono_handler_pkg: load_e)
//     0x1  its bits 31 to 0
//     0x2  its bits 63 to 32
//     0x3  write: loads it as this kind; the next address goes on by itself for words and memory
//          read: 0 a transfer waits, 1 a handler is loaded, 3:2 why it was refused, 4 its machine works
//     0x4, 0x5  bits 31 to 0 and 63 to 32 of memory that was read
//     0x6  31 to a named address: 15:0; 30 back to the sender; 29 on to the next machine
//     0x8 to 0xf    messages, refused, copies, strays; messages that went to their end, dropped, failed; packets written
//     0x10  instructions
//     0x11 to 0x14  status of the last function that failed; 0x15 its packet's source, 0x16 tag
//     0x20  of all slots: 2^n cycles are a tick of patience, n at most 31; 28 after a reset; 0: no ticks (slot 0)
//     0x21 to 0x25  of all slots: frames sound; bad headers, lengths, checksums; frames sent (slot 0)
//
// Latency from a frame's last word to the first one of its message's end, with a handler that does nothing: 33 cycles.
// Throughput: a word per cycle in and out, for all machines together.

module unisono_handler_station
  import unisono_handler_pkg::*;
  import unisono_handler_station_pkg::*;
#(
  parameter int unsigned   Format = 1,  // format_e
  parameter int unsigned   Ports = 1,
  parameter int unsigned   Machines = 1,  // 1 to MostMachines
  parameter int unsigned   Messages = 16,  // places of each slot, one of them for refusals: a power of two, 2 to 64
  parameter int unsigned   InQueue = 512,  // words of frames that wait for each slot: a power of two, at least 256
  parameter int unsigned   OutQueue = 256,  // words that each machine has written, and that leave: likewise
  parameter int unsigned   Columns = 16,  // of each machine, as what follows
  parameter int unsigned   Words = 1024,
  parameter int unsigned   MemoryBytes = 65536,
  parameter element_mask_t Elements = '1,
  parameter int unsigned   Banks = 16
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic                             reg_valid_i,
  input  logic                             reg_write_i,
  input  logic [11:0]                      reg_word_i,
  input  logic [31:0]                      reg_data_i,
  output logic                             reg_valid_o,
  output logic [31:0]                      reg_data_o,

  input  logic [Ports-1:0]                 in_valid_i,
  output logic [Ports-1:0]                 in_ready_o,
  input  logic [Ports-1:0][FrameBits-1:0]  in_data_i,
  input  logic [Ports-1:0][FrameBytes-1:0] in_keep_i,
  input  logic [Ports-1:0]                 in_last_i,
  input  logic [Ports-1:0]                 in_bad_i,

  output logic                             out_valid_o,
  input  logic                             out_ready_i,
  output frame_word_t                      out_data_o,
  output logic [FrameBytes-1:0]            out_keep_o,
  output logic                             out_last_o,
  output logic [15:0]                      out_address_o,
  output logic                             busy_o  // of the machines
);

  localparam int unsigned IndexBits = $clog2(Messages);
  localparam int unsigned PlaceBits = $clog2(MostMachines) + IndexBits;
  localparam int unsigned UserBits = PlaceBits + $bits(about_t);
  localparam int unsigned MachineBits = Machines > 1 ? $clog2(Machines) : 1;

  // ---------------------------------------------------------------- registers
  logic write;
  logic [3:0] reg_slot;
  logic [7:0] reg_word;
  logic [5:0] patience_q;
  logic [31:0] time_q;
  logic tick_q, tick;
  assign write = reg_valid_i && reg_write_i;
  assign {reg_slot, reg_word} = reg_word_i;
  assign tick = patience_q != '0 && time_q[5'(patience_q)];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      patience_q <= 6'd28;                // 2 to 3 seconds at 250 MHz: a packet that is lost holds no place for ever
      time_q <= '0;
      tick_q <= 1'b0;
    end else begin
      if (write && reg_slot == '0 && reg_word == 8'h20) patience_q <= reg_data_i[5:0];
      time_q <= tick ? '0 : time_q + 32'd1;
      tick_q <= tick;
    end
  end

  // ---------------------------------------------------------------- frames in
  logic [Machines-1:0] frame_valid, frame_ready, frame_last;
  logic [Machines-1:0][FrameBits-1:0] frame_data;
  logic [Machines-1:0][FrameBytes-1:0] frame_keep;
  logic [31:0] counter_sound, counter_bad_header, counter_bad_length, counter_bad_checksum, counter_sent;
  unisono_handler_arrivals #(
    .Format  (Format),
    .Ports   (Ports),
    .Machines(Machines),
    .Queue   (InQueue)
  ) u_arrivals (
    .clk_i,
    .rst_ni,
    .in_valid_i,
    .in_ready_o,
    .in_data_i,
    .in_keep_i,
    .in_last_i,
    .in_bad_i,
    .out_valid_o           (frame_valid),
    .out_ready_i           (frame_ready),
    .out_data_o            (frame_data),
    .out_keep_o            (frame_keep),
    .out_last_o            (frame_last),
    .counter_sound_o       (counter_sound),
    .counter_bad_header_o  (counter_bad_header),
    .counter_bad_length_o  (counter_bad_length),
    .counter_bad_checksum_o(counter_bad_checksum)
  );

  // ---------------------------------------------------------------- the row
  way_t [Machines-1:0] ways_q;
  logic [Machines-1:0] leaves_valid, leaves_ready, leaves_last, goes_valid, goes_ready, written_valid, written_ready;
  logic [Machines-1:0][FrameBits-1:0] written_data;
  logic [Machines-1:0][FrameBytes-1:0] written_keep;
  logic [Machines-1:0][UserBits-1:0] written_user;
  logic [Machines-1:0][FrameBits-1:0] templates;
  logic [Machines-1:0] free_valid, busy, load_waits;
  logic [IndexBits-1:0] template_place, free_place;
  logic [Machines-1:0][31:0] answers;
  assign busy_o = busy != '0;
  for (genvar m = 0; m < int'(Machines); m++) begin : gen_machine
    localparam int unsigned Ways = m == 0 ? 1 : 2;

    logic loaded, own_valid, own_ready, own_last;
    frame_word_t own_data;
    logic [FrameBytes-1:0] own_keep;
    logic [IndexBits-1:0] own_place;
    about_t own_about;
    logic [31:0] messages, refusals, copies, strays, done, dropped, failed, outputs, executed;
    unisono_handler_ledger #(
      .Format  (Format),
      .Slot    (m),
      .Messages(Messages)
    ) u_ledger (
      .clk_i,
      .rst_ni,
      .loaded_i          (loaded),
      .tick_i            (tick_q),
      .free_valid_i      (free_valid[m]),
      .free_place_i      (free_place),
      .template_place_i  (template_place),
      .template_o        (templates[m]),
      .in_valid_i        (frame_valid[m]),
      .in_ready_o        (frame_ready[m]),
      .in_data_i         (frame_data[m]),
      .in_keep_i         (frame_keep[m]),
      .in_last_i         (frame_last[m]),
      .out_valid_o       (own_valid),
      .out_ready_i       (own_ready),
      .out_data_o        (own_data),
      .out_keep_o        (own_keep),
      .out_last_o        (own_last),
      .out_place_o       (own_place),
      .out_about_o       (own_about),
      .counter_messages_o(messages),
      .counter_refused_o (refusals),
      .counter_copies_o  (copies),
      .counter_strays_o  (strays)
    );

    logic [Ways-1:0] in_valid, in_ready, in_last;
    logic [Ways-1:0][FrameBits-1:0] in_data;
    logic [Ways-1:0][FrameBytes-1:0] in_keep;
    logic [Ways-1:0][UserBits-1:0] in_user;
    assign in_valid[0] = own_valid;
    assign own_ready = in_ready[0];
    assign in_data[0] = own_data;
    assign in_keep[0] = own_keep;
    assign in_last[0] = own_last;
    assign in_user[0] = {PlaceBits'(m << IndexBits) | PlaceBits'(own_place), own_about};
    if (m > 0) begin : gen_before
      assign in_valid[1] = goes_valid[m-1];
      assign goes_ready[m-1] = in_ready[1];
      assign in_data[1] = written_data[m-1];
      assign in_keep[1] = written_keep[m-1];
      assign in_last[1] = leaves_last[m-1];
      assign in_user[1] = written_user[m-1];
    end
    if (m == int'(Machines) - 1) begin : gen_last
      logic unused_goes;
      assign unused_goes = goes_valid[m];
      assign goes_ready[m] = 1'b0;
    end

    // The loader: a transfer waits until the machine is between two packets.
    logic load_wait_q, load_ready, read_valid;
    logic [2:0] load_what_q;
    logic [31:0] load_address_q;
    logic [63:0] load_data_q, read_data, read_q;
    logic [1:0] refused;
    status_t failure;
    logic [15:0] failure_source;
    logic [31:0] failure_tag;
    logic mine;
    assign mine = write && reg_slot == 4'(m);
    assign load_waits[m] = load_wait_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        load_wait_q <= 1'b0;
        ways_q[m] <= '0;
      end else begin
        if (load_ready) load_wait_q <= 1'b0;
        if (mine && reg_word == 8'h3) load_wait_q <= 1'b1;
        // The last one has no machine behind it.
        if (mine && reg_word == 8'h6) begin
          ways_q[m] <= '{reg_data_i[31], reg_data_i[30], reg_data_i[29] && m != int'(Machines) - 1, reg_data_i[15:0]};
        end
      end
      if (load_wait_q && load_ready) begin
        case (load_e'(load_what_q))
          LoadWord: load_address_q <= load_address_q + 32'd1;
          LoadMemory, LoadRead: load_address_q <= load_address_q + 32'd8;
          default: ;
        endcase
      end
      if (mine) begin
        case (reg_word)
          8'h0: load_address_q <= reg_data_i;
          8'h1: load_data_q[31:0] <= reg_data_i;
          8'h2: load_data_q[63:32] <= reg_data_i;
          8'h3: load_what_q <= reg_data_i[2:0];
          default: ;
        endcase
      end
      if (read_valid) read_q <= read_data;
    end

    unisono_handler_stage #(
      .Slot       (m),
      .Messages   (Messages),
      .Queue      (OutQueue),
      .Columns    (Columns),
      .Words      (Words),
      .MemoryBytes(MemoryBytes),
      .Elements   (Elements),
      .Banks      (Banks)
    ) u_stage (
      .clk_i,
      .rst_ni,
      .load_valid_i      (load_wait_q),
      .load_ready_o      (load_ready),
      .load_what_i       (load_what_q),
      .load_address_i    (load_address_q),
      .load_data_i       (load_data_q),
      .load_read_valid_o (read_valid),
      .load_read_data_o  (read_data),
      .loaded_o          (loaded),
      .refused_o         (refused),
      .in_valid_i        (in_valid),
      .in_ready_o        (in_ready),
      .in_data_i         (in_data),
      .in_keep_i         (in_keep),
      .in_last_i         (in_last),
      .in_user_i         (in_user),
      .out_valid_o       (written_valid[m]),
      .out_ready_i       (written_ready[m]),
      .out_data_o        (written_data[m]),
      .out_keep_o        (written_keep[m]),
      .out_last_o        (leaves_last[m]),
      .out_user_o        (written_user[m]),
      .counter_done_o    (done),
      .counter_dropped_o (dropped),
      .counter_failed_o  (failed),
      .counter_outputs_o (outputs),
      .counter_executed_o(executed),
      .failure_o         (failure),
      .failure_source_o  (failure_source),
      .failure_tag_o     (failure_tag),
      .busy_o            (busy[m])
    );
    assign goes_valid[m] = written_valid[m] && ways_q[m].goes_on;
    assign leaves_valid[m] = written_valid[m] && !ways_q[m].goes_on;
    assign written_ready[m] = ways_q[m].goes_on ? goes_ready[m] : leaves_ready[m];

    always_comb begin
      answers[m] = '0;
      case (reg_word)
        8'h3: answers[m] = {27'd0, busy[m], refused, loaded, load_wait_q};
        8'h4: answers[m] = read_q[31:0];
        8'h5: answers[m] = read_q[63:32];
        8'h6: answers[m] = {ways_q[m].named, ways_q[m].back, ways_q[m].goes_on, 13'd0, ways_q[m].address};
        8'h8: answers[m] = messages;
        8'h9: answers[m] = refusals;
        8'ha: answers[m] = copies;
        8'hb: answers[m] = strays;
        8'hc: answers[m] = done;
        8'hd: answers[m] = dropped;
        8'he: answers[m] = failed;
        8'hf: answers[m] = outputs;
        8'h10: answers[m] = executed;
        8'h11: answers[m] = failure[31:0];
        8'h12: answers[m] = failure.verdict;
        8'h13: answers[m] = failure.word;
        8'h14: answers[m] = failure.packet;
        8'h15: answers[m] = 32'(failure_source);
        8'h16: answers[m] = failure_tag;
        default: ;
      endcase
    end
  end

  // ---------------------------------------------------------------- frames out
  unisono_handler_departures #(
    .Format  (Format),
    .Machines(Machines),
    .Messages(Messages),
    .Queue   (OutQueue)
  ) u_departures (
    .clk_i,
    .rst_ni,
    .ways_i          (ways_q),
    .in_valid_i      (leaves_valid),
    .in_ready_o      (leaves_ready),
    .in_data_i       (written_data),
    .in_keep_i       (written_keep),
    .in_last_i       (leaves_last),
    .in_user_i       (written_user),
    .template_place_o(template_place),
    .templates_i     (templates),
    .free_valid_o    (free_valid),
    .free_place_o    (free_place),
    .out_valid_o,
    .out_ready_i,
    .out_data_o,
    .out_keep_o,
    .out_last_o,
    .out_address_o,
    .counter_sent_o  (counter_sent)
  );

  // Answers: of the slot, and of all of them.
  logic [31:0] answer_q, common;
  logic asked_q;
  always_comb begin
    case (reg_word)
      8'h20: common = 32'(patience_q);
      8'h21: common = counter_sound;
      8'h22: common = counter_bad_header;
      8'h23: common = counter_bad_length;
      8'h24: common = counter_bad_checksum;
      8'h25: common = counter_sent;
      default: common = 32'(reg_slot) < Machines ? answers[MachineBits'(reg_slot)] : '0;
    endcase
  end
  always_ff @(posedge clk_i) begin
    asked_q <= rst_ni && reg_valid_i && !reg_write_i;
    answer_q <= common;
    reg_valid_o <= rst_ni && asked_q;
    reg_data_o <= answer_q;
  end

`ifndef SYNTHESIS
  // Software reads word 0x3 first.
  always_ff @(posedge clk_i) begin
    if (rst_ni && write && reg_word <= 8'h3 && 32'(reg_slot) < Machines) begin
      assert (!load_waits[MachineBits'(reg_slot)]) else $error("%m: a transfer is written while another one waits");
    end
  end
`else
  logic unused;
  assign unused = ^load_waits;
`endif

endmodule
