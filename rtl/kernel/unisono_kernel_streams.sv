// Everything between the engine and the streams of kernels: gate, source and sink; or, without ports, nothing.
//
// Latency, throughput: see its parts.

// Not every input is needed without ports.
// verilator lint_off UNUSEDSIGNAL

module unisono_kernel_streams
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
#(
  parameter int unsigned StreamPorts = 0,
  parameter int unsigned DataBytes = 64,
  parameter int unsigned Depth = 256,              // words in the queue of a port
  localparam int unsigned Wires = StreamPorts > 0 ? StreamPorts : 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Kernels.
  input  logic [Wires-1:0]                  in_valid_i,
  output logic [Wires-1:0]                  in_ready_o,
  input  logic [Wires-1:0][DataBytes*8-1:0] in_data_i,
  input  logic [Wires-1:0][DataBytes-1:0]   in_keep_i,
  output logic [Wires-1:0]                  out_valid_o,
  input  logic [Wires-1:0]                  out_ready_i,
  output logic [Wires-1:0][DataBytes*8-1:0] out_data_o,
  output logic [Wires-1:0][DataBytes-1:0]   out_keep_o,
  output logic [Wires-1:0]                  out_last_o,
  output logic [Wires-1:0]                  out_cut_o,

  // Moves, and the dispatcher; see unisono_stream_gate.
  input  logic           push_valid_i,
  input  move_id_t       push_id_i,
  input  logic           push_source_i,
  input  stream_port_t   push_source_port_i,
  input  logic           push_sink_i,
  input  stream_port_t   push_sink_port_i,
  output stream_ticket_t push_source_ticket_o,
  output stream_ticket_t push_sink_ticket_o,
  input  logic  close_valid_i,
  input  slot_t close_slot_i,
  input  logic  clear_valid_i,
  input  slot_t clear_slot_i,
  input  move_id_t       ask_id_i,
  input  stream_use_t    ask_source_i,
  input  stream_use_t    ask_sink_i,
  input  message_bytes_t ask_bytes_i,
  output logic           ready_o,
  input  logic           wait_i,
  input  logic           take_source_i,
  input  logic           take_sink_i,
  input  segment_bytes_t take_bytes_i,
  input  logic           take_first_i,
  input  logic           take_last_i,
  output logic           kick_valid_o,
  input  logic           kick_ready_i,
  output move_id_t       kick_id_o,

  // The lane.
  input  logic           command_valid_i,
  output logic           command_ready_o,
  input  stream_port_t   command_port_i,
  input  segment_bytes_t command_bytes_i,
  output logic                   source_valid_o,
  input  logic                   source_ready_i,
  output logic [DataBytes*8-1:0] source_data_o,
  output logic [DataBytes-1:0]   source_keep_o,
  output logic                   source_last_o,
  input  logic                   sink_valid_i,
  output logic                   sink_ready_o,
  input  logic [DataBytes*8-1:0] sink_data_i,
  input  logic [DataBytes-1:0]   sink_keep_i,
  input  logic                   sink_last_i,
  input  stream_port_t           sink_port_i,
  input  logic                   sink_starts_i,
  input  logic                   sink_ends_i
);

  if (StreamPorts == 0) begin : gen_none
    assign in_ready_o = '0;
    assign out_valid_o = '0;
    assign out_data_o = '0;
    assign out_keep_o = '0;
    assign out_last_o = '0;
    assign out_cut_o = '0;
    assign push_source_ticket_o = '0;
    assign push_sink_ticket_o = '0;
    assign ready_o = 1'b1;
    assign kick_valid_o = 1'b0;
    assign kick_id_o = '0;
    assign command_ready_o = 1'b1;
    assign source_valid_o = 1'b0;
    assign source_data_o = '0;
    assign source_keep_o = '0;
    assign source_last_o = 1'b0;
    assign sink_ready_o = 1'b1;
  end else begin : gen_ports
    logic [StreamPorts-1:0] filled, drained;
    logic [StreamPorts-1:0][$clog2(DataBytes):0] filled_bytes;

    unisono_stream_gate #(.StreamPorts(StreamPorts), .DataBytes(DataBytes), .Depth(Depth)) u_gate (
      .clk_i, .rst_ni,
      .push_valid_i, .push_id_i, .push_source_i, .push_source_port_i, .push_sink_i, .push_sink_port_i,
      .push_source_ticket_o, .push_sink_ticket_o,
      .close_valid_i, .close_slot_i, .clear_valid_i, .clear_slot_i,
      .ask_id_i, .ask_source_i, .ask_sink_i, .ask_bytes_i, .ready_o, .wait_i,
      .take_source_i, .take_sink_i, .take_bytes_i, .take_first_i, .take_last_i,
      .kick_valid_o, .kick_ready_i, .kick_id_o,
      .filled_i(filled), .filled_bytes_i(filled_bytes), .drained_i(drained)
    );
    unisono_stream_source #(.StreamPorts(StreamPorts), .DataBytes(DataBytes), .Depth(Depth)) u_source (
      .clk_i, .rst_ni,
      .in_valid_i, .in_ready_o, .in_data_i, .in_keep_i, .filled_o(filled), .filled_bytes_o(filled_bytes),
      .command_valid_i, .command_ready_o, .command_port_i, .command_bytes_i,
      .out_valid_o(source_valid_o), .out_ready_i(source_ready_i), .out_data_o(source_data_o),
      .out_keep_o(source_keep_o), .out_last_o(source_last_o)
    );
    unisono_stream_sink #(.StreamPorts(StreamPorts), .DataBytes(DataBytes), .Depth(Depth)) u_sink (
      .clk_i, .rst_ni,
      .in_valid_i(sink_valid_i), .in_ready_o(sink_ready_o), .in_data_i(sink_data_i), .in_keep_i(sink_keep_i),
      .in_last_i(sink_last_i), .in_port_i(sink_port_i), .in_starts_i(sink_starts_i), .in_ends_i(sink_ends_i),
      .out_valid_o, .out_ready_i, .out_data_o, .out_keep_o, .out_last_o, .out_cut_o, .drained_o(drained)
    );
  end

endmodule
