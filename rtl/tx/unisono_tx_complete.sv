// Completes headers: magic number, version, the session's sequence, owed credits, checksum.
//
// A header comes in two: its body in the cycle after its command was taken, the rest 2 cycles later. What is owed is
// asked for with the command. The checksum is that of the body and that of the rest, which are found one by one.
//
// Latency: 1 and 3 cycles. Throughput: a command per cycle, but while a session is opened, which takes 2 cycles.
// Restrictions: no command is taken while a session is opened, or before all sequences are 0 after a reset; what is
// owed comes 3 cycles after the command.

module unisono_tx_complete
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_tx_pkg::*;
#(
  parameter int unsigned Sources  = 2,
  parameter int unsigned Sessions = 1024,          // power of two
  localparam int unsigned SourceBits = $clog2(Sources + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // The command that is chosen; it may be taken, it is.
  input  logic                  chosen_i,
  input  logic [SourceBits-1:0] choice_i,          // Sources: control
  input  transmit_t             command_i,
  output logic                  may_take_o,
  input  logic                  take_i,

  // To unisono_credits.
  output logic                  owed_take_valid_o,
  input  logic                  owed_take_ready_i,
  output communicator_t         owed_take_communicator_o,
  output rank_t                 owed_take_peer_o,
  input  logic [15:0]           owed_i,

  input  logic                  session_open_valid_i,
  output logic                  session_open_ready_o,
  // Its number is below Sessions.
  // verilator lint_off UNUSEDSIGNAL
  input  session_t              session_open_session_i,
  // verilator lint_on UNUSEDSIGNAL

  output logic                  body_valid_o,
  output logic                  body_control_o,
  output logic [SourceBits-1:0] body_source_o,
  output session_t              body_session_o,
  output header_t               body_o,            // without what comes with the rest
  output logic                  late_valid_o,
  output logic                  late_control_o,
  output late_t                 late_o
);

  localparam int unsigned SessionBits = $clog2(Sessions);

  typedef logic [SourceBits-1:0] source_t;
  localparam source_t Control = source_t'(Sources);

  logic      valid1_q;
  transmit_t command1_q;
  source_t   source1_q;
  logic      control1;
  header_t   body;

  logic opening_q;                       // the second channel of a session is being set to 0
  logic sequence_ready;
  logic open;

  assign control1                 = source1_q == Control;
  // Nothing is taken while a session is opened.
  assign owed_take_valid_o        = chosen_i && sequence_ready && !session_open_valid_i;
  assign may_take_o               = sequence_ready && !session_open_valid_i && owed_take_ready_i;
  assign owed_take_communicator_o = command_i.communicator;
  assign owed_take_peer_o         = command_i.peer;

  always_ff @(posedge clk_i) begin
    valid1_q <= rst_ni && take_i;
    if (take_i) begin
      command1_q <= command_i;
      source1_q  <= choice_i;
    end
  end

  always_comb begin
    body                  = command1_q.header;
    body.magic            = 16'(Magic);
    body.version          = 4'(WireVersion);
    body.reserved0        = '0;
    body.trailer          = 1'b0;
    body.credits          = '0;
    body.session_sequence = '0;
    body.checksum         = '0;
  end

  // Stages 2 and 3: sequence, credits, checksum.
  logic [SessionBits:0] sequence_address;
  logic                 sequence_update;
  logic [31:0]          sequence_now, sequence_next;
  logic                 unused_sequence;
  logic [31:0]          unused_observed;
  logic                 clear1_q, clear2_q;

  assign open                 = session_open_valid_i && sequence_ready;
  assign session_open_ready_o = opening_q;
  assign sequence_update      = take_i || open;
  assign sequence_address     = open ? {session_open_session_i[SessionBits-1:0], opening_q} :
                                       {command_i.session[SessionBits-1:0], choice_i == Control};
  assign sequence_next        = clear2_q ? 32'd0 : sequence_now + 32'd1;

  always_ff @(posedge clk_i) begin
    opening_q <= rst_ni && open && !opening_q;
    clear1_q <= open;
    clear2_q <= clear1_q;
  end

  unisono_update_ram #(
    .Entries (2 * Sessions),
    .Width   (32),
    .Observer(1'b0)
  ) u_sequence (
    .clk_i,
    .rst_ni,
    .ready_o          (sequence_ready),
    .update_valid_i   (sequence_update),
    .update_address_i (sequence_address),
    .update_valid_o   (unused_sequence),
    .update_data_o    (sequence_now),
    .update_next_i    (sequence_next),
    .observe_address_i('0),
    .observe_data_o   (unused_observed)
  );

  logic        valid2_q, valid3_q;
  logic [31:0] body_crc, late_crc;
  logic [31:0] sequence3_q;
  header_t     late;

  unisono_crc32c u_body_crc (
    .clk_i,
    .valid_i(valid1_q),
    .data_i (body[479:0]),
    .crc_o  (body_crc)
  );

  always_comb begin
    late                  = '0;
    late.credits          = owed_i;
    late.session_sequence = sequence3_q;
  end

  unisono_crc32c #(
    .Stages(0),
    .Linear(1'b1)
  ) u_late_crc (
    .clk_i,
    .valid_i(valid3_q),
    .data_i (late[479:0]),
    .crc_o  (late_crc)
  );

  logic control2_q, control3_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid2_q <= 1'b0;
      valid3_q <= 1'b0;
    end else begin
      valid2_q <= valid1_q;
      valid3_q <= valid2_q;
    end
    control2_q  <= control1;
    control3_q  <= control2_q;
    sequence3_q <= sequence_now;
  end

  assign body_valid_o   = valid1_q;
  assign body_control_o = control1;
  assign body_source_o  = source1_q;
  assign body_session_o = command1_q.session;
  assign body_o         = body;
  assign late_valid_o   = valid3_q;
  assign late_control_o = control3_q;
  assign late_o         = '{body_crc ^ late_crc, sequence3_q, owed_i};

  logic unused_bits;
  assign unused_bits = ^{unused_sequence, unused_observed, command1_q.control, command1_q.communicator,
                         command1_q.peer, body[511:480], late[511:480]};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && valid1_q) begin
      assert (command1_q.header.segment_bytes <= 32'(MaxSegment))
      else $error("%m: a segment of %0d bytes", command1_q.header.segment_bytes);
      assert (!command1_q.header.trailer && command1_q.control == control1)
      else $error("%m: a command with a trailer, or of the other channel");
      assert (32'(command1_q.session) < 32'(Sessions))
      else $error("%m: session %0d is beyond the table", command1_q.session);
    end
  end
`endif

endmodule
