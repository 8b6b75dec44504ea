// The place for handlers in a switch: a station, and the way of its frames to their ports.
//
// A frame goes to the first port that the table names for its address; one that none is named for is dropped and
// counted. All words of a frame are here before its first one leaves, so it holds a link only as long as that takes it.
//
// Control port: that of the station, and word 0xfff: frames that went nowhere.
//
// Latency: that of the station, and 1 cycle. Throughput: a word per cycle.
module unisono_switch_station
  import unisono_handler_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned   Ports = 8,
  parameter int unsigned   Addresses = 256,  // in the table, from 0 on; a power of two
  parameter int unsigned   Machines = 1,  // of the station, as what follows
  parameter int unsigned   Format = 0,
  parameter int unsigned   Messages = 16,
  parameter int unsigned   Columns = 16,
  parameter int unsigned   Words = 1024,
  parameter int unsigned   MemoryBytes = 65536,
  parameter element_mask_t Elements = '1,
  parameter int unsigned   Banks = 16,
  localparam int unsigned  DataBits = SwitchBytes * 8
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  input  logic                              reg_valid_i,
  input  logic                              reg_write_i,
  input  logic [11:0]                       reg_word_i,
  input  logic [31:0]                       reg_data_i,
  output logic                              reg_valid_o,  // 2 cycles later
  output logic [31:0]                       reg_data_o,

  input  logic                              table_valid_i,  // one address' ports
  input  node_t                             table_address_i,
  input  logic [Ports-1:0]                  table_ports_i,

  input  logic [Ports-1:0]                  in_valid_i,  // of frames that are for handlers
  output logic [Ports-1:0]                  in_ready_o,
  input  logic [Ports-1:0][DataBits-1:0]    in_data_i,
  input  logic [Ports-1:0][SwitchBytes-1:0] in_keep_i,
  input  logic [Ports-1:0]                  in_last_i,
  input  logic [Ports-1:0]                  in_bad_i,

  output logic [Ports-1:0]                  out_valid_o,
  input  logic [Ports-1:0]                  out_ready_i,
  output logic [Ports-1:0][DataBits-1:0]    out_data_o,
  output logic [Ports-1:0][SwitchBytes-1:0] out_keep_o,
  output logic [Ports-1:0]                  out_last_o,
  output node_t [Ports-1:0]                 out_address_o
);

  localparam int unsigned AddressBits = $clog2(Addresses);
  localparam int unsigned DestBits = $clog2(Ports + 1);

  logic frame_valid, frame_ready, frame_last;
  logic [DataBits-1:0] frame_data;
  logic [SwitchBytes-1:0] frame_keep;
  node_t frame_address;
  logic answer_valid, unused_busy;
  logic [31:0] answer;
  unisono_handler_station #(
    .Format     (Format),
    .Ports      (Ports),
    .Machines   (Machines),
    .Messages   (Messages),
    .Columns    (Columns),
    .Words      (Words),
    .MemoryBytes(MemoryBytes),
    .Elements   (Elements),
    .Banks      (Banks)
  ) u_station (
    .clk_i,
    .rst_ni,
    .reg_valid_i,
    .reg_write_i,
    .reg_word_i,
    .reg_data_i,
    .reg_valid_o  (answer_valid),
    .reg_data_o   (answer),
    .in_valid_i,
    .in_ready_o,
    .in_data_i,
    .in_keep_i,
    .in_last_i,
    .in_bad_i,
    .out_valid_o  (frame_valid),
    .out_ready_i  (frame_ready),
    .out_data_o   (frame_data),
    .out_keep_o   (frame_keep),
    .out_last_o   (frame_last),
    .out_address_o(frame_address),
    .busy_o       (unused_busy)
  );

  // To which port: beyond the last one is none.
  (* ram_style = "distributed" *) logic [DestBits-1:0] table_q [Addresses];
  logic [DestBits-1:0] first, dest;
  always_comb begin
    first = DestBits'(Ports);
    for (int unsigned p = Ports; p > 0; p--) if (table_ports_i[p-1]) first = DestBits'(p - 1);
  end
  always_ff @(posedge clk_i) begin
    if (table_valid_i && 32'(table_address_i) < Addresses) table_q[table_address_i[AddressBits-1:0]] <= first;
  end
  assign dest = 32'(frame_address) < Addresses ? table_q[frame_address[AddressBits-1:0]] : DestBits'(Ports);

  logic stray;
  logic [Ports-1:0][DestBits-1:0] unused_dest;
  unisono_stream_demux #(
    .Outputs  (Ports),
    .DataBytes(SwitchBytes),
    .UserBits ($bits(node_t)),
    .DestBits (DestBits)
  ) u_demux (
    .clk_i,
    .rst_ni,
    .in_valid_i (frame_valid),
    .in_ready_o (frame_ready),
    .in_data_i  (frame_data),
    .in_keep_i  (frame_keep),
    .in_last_i  (frame_last),
    .in_user_i  (frame_address),
    .in_dest_i  (dest),
    .out_valid_o,
    .out_ready_i,
    .out_data_o,
    .out_keep_o,
    .out_last_o,
    .out_user_o (out_address_o),
    .out_dest_o (unused_dest),
    .stray_o    (stray)
  );

  logic [31:0] counter_lost_q;
  logic [1:0] lost_asked_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) counter_lost_q <= '0;
    else counter_lost_q <= counter_lost_q + 32'(stray);
    lost_asked_q <= {lost_asked_q[0], reg_word_i == 12'hfff};
  end
  assign reg_valid_o = answer_valid;
  assign reg_data_o = lost_asked_q[1] ? counter_lost_q : answer;

endmodule
