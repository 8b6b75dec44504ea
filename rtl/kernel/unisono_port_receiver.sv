// Receives what peers send to stream ports: for each such message it gives the call that takes it.
//
// A message to a port has a tag of its own (StreamTag + port). Rx tells of it when its header is handed over: the
// message itself, or its sender's request, stands in the engine until a receive takes it. That receive is made here, as
// a descriptor on a call stream like a kernel's; its destination is the port. A port has one of them at a time, so a
// kernel that takes nothing holds up the messages of its port, and no other port's.
//
// Messages of a port are received in the order in which their headers came. Those of a communicator that has begun
// anew since are forgotten, as the engine forgets the messages.
//
// Latency: 4 cycles from the header to the first word of the call, if the port is free. Throughput: a call in
// 1024 / (8 DataBytes) + 1 cycles. What is known of a message waits in a queue of its port, which has as many places as
// the engine has receive buffers: each of these messages has one, or has been taken.

// A queue's count is not needed.
// verilator lint_off PINCONNECTEMPTY

module unisono_port_receiver
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned StreamPorts = 2,
  parameter int unsigned DataBytes = 64,
  parameter int unsigned Depth = 1024 + 32,
  localparam int unsigned PortWidth = StreamPorts > 1 ? $clog2(StreamPorts) : 1
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A header is handed over in this cycle.
  input  logic          heard_valid_i,
  input  received_t     heard_i,
  // A communicator begins anew.
  input  logic          begins_valid_i,
  input  communicator_t begins_communicator_i,

  // Calls, and their ends.
  output logic                             call_valid_o,
  input  logic                             call_ready_i,
  output logic [DataBytes*8-1:0]           call_data_o,
  output logic                             call_last_o,
  input  logic                             answer_valid_i,
  input  unisono_call_pkg::call_response_t answer_i
);

  if (StreamPorts < 1 || StreamPorts > MaxStreamPorts) begin : gen_bad_ports
    $error("unisono_port_receiver: StreamPorts must be between 1 and 16");
  end
  if (CallDescriptorWidth % (DataBytes * 8) != 0) begin : gen_bad_width
    $error("unisono_port_receiver: a descriptor must be whole words");
  end

  localparam logic [27:0] StreamTag = 28'hffff000;  // in front of the port's four bits; see core/reserved_tags.hpp
  localparam int unsigned Words = CallDescriptorWidth / (DataBytes * 8);
  localparam int unsigned WordWidth = Words > 1 ? $clog2(Words) : 1;

  // What is known of a message.
  typedef struct packed {
    logic [7:0]    life;           // of the communicator
    communicator_t communicator;
    rank_t         source;
    logic [7:0]    dtype;
    logic [47:0]   bytes;
  } message_t;

  // Of a header no more is looked at.
  // verilator lint_off UNUSEDSIGNAL
  header_t header;
  // verilator lint_on UNUSEDSIGNAL
  assign header = heard_i.header;

  logic [7:0] life_q [Communicators];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int unsigned c = 0; c < Communicators; c++) life_q[c] <= '0;
    end else if (begins_valid_i) begin
      life_q[begins_communicator_i] <= life_q[begins_communicator_i] + 8'd1;
    end
  end

  logic for_port;
  message_t heard;
  assign for_port = heard_valid_i && header.point_to_point && header.tag[31:4] == StreamTag
      && 32'(header.tag[3:0]) < StreamPorts
      && (header.type_ == MessageTypeRequest || (header.type_ == MessageTypeEager && header.first));
  assign heard = '{life: life_q[heard_i.communicator], communicator: heard_i.communicator, source: heard_i.source,
                   dtype: header.dtype, bytes: header.message_bytes};

  // ------------------------------------------------------------------------------------------- queues

  logic [StreamPorts-1:0] there, takes, busy_q, room;
  message_t [StreamPorts-1:0] next;
  for (genvar p = 0; p < int'(StreamPorts); p++) begin : gen_ports
    logic fits, fits_ready;
    assign fits = for_port && header.tag[3:0] == 4'(p);
    assign room[p] = !fits || fits_ready;
    unisono_fifo #(.Width($bits(message_t)), .Depth(Depth)) u_queue (
      .clk_i, .rst_ni,
      .in_valid_i(fits), .in_ready_o(fits_ready), .in_data_i(heard),
      .out_valid_o(there[p]), .out_ready_i(takes[p]), .out_data_o(next[p]), .count_o()
    );
  end

  // ------------------------------------------------------------------------------------------- calls

  logic [PortWidth-1:0] chosen;
  logic found, old, offers_q, ended;
  logic [WordWidth-1:0] word_q;
  call_descriptor_t call_d;
  logic [CallDescriptorWidth-1:0] call_q;
  message_t message;

  // The first port that has a message and no call; a forgotten message leaves whether its port has one or not.
  always_comb begin
    found = 1'b0;
    chosen = '0;
    for (int unsigned p = 0; p < StreamPorts; p++) begin
      if (!found && there[p] && (!busy_q[p] || next[p].life != life_q[next[p].communicator])) begin
        found = 1'b1;
        chosen = PortWidth'(p);
      end
    end
  end
  assign message = next[chosen];
  assign old = message.life != life_q[message.communicator];
  assign takes = found && !offers_q ? StreamPorts'(1) << chosen : '0;

  logic [2:0] log2_bytes;
  always_comb begin
    unique case (datatype_bytes(datatype_e'(message.dtype[$bits(datatype_e)-1:0])))
      32'd2: log2_bytes = 3'd1;
      32'd4: log2_bytes = 3'd2;
      32'd8: log2_bytes = 3'd3;
      32'd16: log2_bytes = 3'd4;
      default: log2_bytes = 3'd0;
    endcase
  end
  always_comb begin
    call_d = '0;
    call_d.collective = CollectiveRecv;
    call_d.communicator = 32'(message.communicator);
    call_d.dtype = message.dtype;
    call_d.count = 64'(message.bytes) >> log2_bytes;
    call_d.root = 32'(message.source);
    call_d.tag = {StreamTag, 4'(chosen)};
    call_d.dst_stream = 1'b1;
    call_d.dst_address = 64'(chosen);
    call_d.call_id = 32'(chosen) + 32'd1;
  end

  assign ended = call_valid_o && call_ready_i && call_last_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      offers_q <= 1'b0;
      word_q <= '0;
      busy_q <= '0;
    end else begin
      if (found && !offers_q && !old) offers_q <= 1'b1;
      else if (ended) offers_q <= 1'b0;
      if (call_valid_o && call_ready_i) word_q <= call_last_o ? '0 : word_q + WordWidth'(1);
      for (int unsigned p = 0; p < StreamPorts; p++) begin
        if (answer_valid_i && answer_i.call_id == p + 1) busy_q[p] <= 1'b0;
        else if (takes[p] && !old) busy_q[p] <= 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (found && !offers_q) call_q <= call_d;
    else if (call_valid_o && call_ready_i) call_q <= call_q >> (DataBytes * 8);
  end

  assign call_valid_o = offers_q;
  assign call_data_o = call_q[DataBytes*8-1:0];
  assign call_last_o = word_q == WordWidth'(Words - 1);

  // How a receive has ended concerns its sender, and who reads at the port: the packet is cut.
  logic unused;
  assign unused = &{1'b0, answer_i.code, heard_i.session};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert (room == '1) else $error("%m: a port's messages are more than the engine has buffers");
  end
`endif

endmodule
