// What the control of a switch has its ports do, from what it has decided.
//
// Latency: none.

// Records carry more than one block looks at.
// verilator lint_off UNUSEDSIGNAL

module unisono_switch_commands
  import unisono_spec_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8            // 4 to MaxPorts
) (
  // What is decided: at most one of these.
  input  logic                   throws_i,     // what came of a run that has failed is thrown away
  input  logic                   asks_i,       // receivers are asked
  input  logic                   windows_i,    // senders are granted, or further
  input  logic                   segments_i,   // a segment goes
  input  logic                   read_all_i,   // it has been read
  input  logic                   over_i,       // the message is over
  input  logic                   fails_i,      // the run ends

  // Of the run.
  input  run_t                   run_i,
  input  logic [Ports-1:0]       neighbours_i,
  input  logic [Ports-1:0]       thrown_i,
  input  logic [Ports-1:0]       thrown_grants_i,
  input  logic [31:0]            fail_sequence_i,
  input  logic [31:0]            fail_signature_i,
  input  logic [Ports-1:0][15:0] generation_i,

  // Of the message.
  input  transfer_t              message_i,
  input  logic                   immediate_i,
  input  logic [Ports-1:0]       in_i,
  input  logic [Ports-1:0]       in_place_i,
  input  logic [Ports-1:0]       out_i,
  input  logic [Ports-1:0]       out_eager_i,
  input  logic [Ports-1:0]       by_grant_i,
  input  logic [Ports-1:0]       by_write_i,
  input  logic [Ports-1:0]       asked_i,
  input  logic [15:0]            length_i,     // of the segment
  input  logic                   last_i,
  input  switch_bytes_t          window_end_i,

  // To the ports.
  output logic [Ports-1:0]       pop_o,
  output logic [Ports-1:0]       pop_grant_o,
  output logic [Ports-1:0]       take_credit_o,
  output logic [Ports-1:0]       window_open_o,
  output logic [Ports-1:0]       window_raise_o,
  output logic [Ports-1:0]       window_close_o,
  output logic [Ports-1:0]       read_o,
  output logic [Ports-1:0]       send_o,
  output send_t                  send_message_o,
  output logic [Ports-1:0][15:0] send_generation_o
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_commands: Ports must be 4 to %0d", MaxPorts);
  end

  always_comb begin
    // A head whose buffer has been read is over at once, or it might be thrown away with a call that fails meanwhile.
    pop_o = '0;
    if (throws_i) pop_o = thrown_i;
    else if (over_i) pop_o = immediate_i ? in_i : by_write_i;
    else if (read_all_i) pop_o = in_place_i;
    pop_grant_o    = throws_i ? thrown_grants_i : (over_i ? by_grant_i : '0);
    take_credit_o  = asks_i ? out_eager_i : (segments_i && immediate_i ? out_i : '0);
    window_open_o  = windows_i && !message_i.granted ? by_write_i : '0;
    window_raise_o = windows_i && message_i.granted ? by_write_i : '0;
    window_close_o = fails_i ? neighbours_i : '0;
    read_o         = segments_i && length_i != '0 ? in_i : '0;
  end

  always_comb begin
    send_o          = '0;
    send_message_o  = '0;
    send_message_o.entry         = entry_of(run_i);
    send_message_o.dtype         = message_i.dtype;
    send_message_o.tag           = message_i.tag;
    send_message_o.tag.down      = message_i.goes_down;
    send_message_o.sequence_     = message_i.sequence_;
    send_message_o.signature     = message_i.signature;
    send_message_o.message_bytes = message_i.bytes;
    send_message_o.first         = 1'b1;
    send_message_o.last          = 1'b1;
    if (asks_i) begin
      send_o = asked_i;
      send_message_o.kind = MessageTypeRequest;
    end else if (windows_i) begin
      send_o = by_write_i;
      send_message_o.kind          = MessageTypeGrant;
      send_message_o.tag           = message_i.tag;
      send_message_o.message_bytes = window_end_i;
      send_message_o.token_slot    = 16'(run_i);
    end else if (segments_i) begin
      send_o = out_i;
      send_message_o.kind          = MessageTypeEager;
      send_message_o.first         = message_i.done == '0;
      send_message_o.last          = last_i;
      send_message_o.offset        = message_i.done;
      send_message_o.segment_bytes = length_i;
    end else if (fails_i) begin
      // A signature that is nobody's.
      send_o = neighbours_i;
      send_message_o.kind          = MessageTypeGrant;
      send_message_o.dtype         = DatatypeNone;
      send_message_o.tag           = '0;
      send_message_o.sequence_     = fail_sequence_i;
      send_message_o.signature     = ~fail_signature_i;
      send_message_o.message_bytes = '0;
    end
  end
  // The opening of a window makes its generation.
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_generation
    assign send_generation_o[p] = windows_i ? generation_i[p] + 16'(!message_i.granted) : '0;
  end

endmodule
