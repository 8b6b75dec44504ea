// A switch: passes frames on between its ports, and takes part in collectives.
//
//   link p ─► whose? ─► the unit ────────────────┐
//                └────► handlers ────────────────┤
//                └────► forward, data ───────────┼─► in turn ─► link p
//                └────► forward, control ────────┘
//
// What is for the switch's own address goes to unisono_switch_unit, what is for that of its handlers to
// unisono_switch_station, all else to the ports of its destination, by unisono_switch_forward. Data and control have
// forwards of their own, so that control is never behind data that waits.
//
// Control port: that of the unit, but words with bit 14:
//     0x4000 + address  ports to which frames for this address go, a bit each; address < Addresses <= 8192
//     0x6000            this switch's own address
//     0x6001            that of its handlers; until it is written there is none
//     0x7000 + word     of unisono_switch_station
// But for the last ones these are only written.
//
// Latency of a frame that passes: 3 cycles, of a group's 4. Throughput: a word per cycle at each port.

// verilator lint_off PINCONNECTEMPTY

module unisono_switch
  import unisono_handler_pkg::element_mask_t;
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,             // 4 to MaxPorts
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t Funcs = SwitchFuncs,
  parameter int unsigned BufferBytes = 4096,    // of a segment, at most; a power of two
  parameter int unsigned WindowSegments = 4,    // segments of a run
  parameter int unsigned Addresses = 256,       // of the network; a power of two, 8192 at most
  parameter int unsigned Queue = 32,            // words that wait at each port, of data and of control
  parameter int unsigned Handlers = 0,          // machines of handlers; 0: no place for them
  parameter int unsigned HandlerFormat = 0,     // of the station, as what follows
  parameter int unsigned HandlerMessages = 16,
  parameter int unsigned HandlerColumns = 16,
  parameter int unsigned HandlerWords = 1024,
  parameter int unsigned HandlerMemoryBytes = 65536,
  parameter element_mask_t HandlerElements = '1,
  parameter int unsigned HandlerBanks = 16,
  localparam int unsigned DataBits = SwitchBytes * 8
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  input  logic                              reg_valid_i,   // not while an entry is being opened
  input  logic                              reg_write_i,
  input  logic [15:0]                       reg_word_i,
  input  logic [31:0]                       reg_data_i,
  output logic                              reg_valid_o,
  output logic [31:0]                       reg_data_o,

  input  logic [Ports-1:0]                  in_valid_i,
  output logic [Ports-1:0]                  in_ready_o,    // for a frame of this channel and address
  input  logic [Ports-1:0][DataBits-1:0]    in_data_i,
  input  logic [Ports-1:0][SwitchBytes-1:0] in_keep_i,
  input  logic [Ports-1:0]                  in_last_i,
  input  logic [Ports-1:0]                  in_bad_i,      // with last: the frame is damaged
  input  node_t [Ports-1:0]                 in_address_i,  // constant over a frame, as the channel is
  input  logic [Ports-1:0]                  in_control_i,  // it comes on the channel for control

  output logic [Ports-1:0]                  out_valid_o,
  input  logic [Ports-1:0]                  out_ready_i,
  output logic [Ports-1:0][DataBits-1:0]    out_data_o,
  output logic [Ports-1:0][SwitchBytes-1:0] out_keep_o,
  output logic [Ports-1:0]                  out_last_o,
  output logic [Ports-1:0]                  out_bad_o,
  output node_t [Ports-1:0]                 out_address_o,
  output logic [Ports-1:0]                  out_control_o,

  output logic [31:0]                       counter_messages_o,    // as of the unit
  output logic [31:0]                       counter_mismatches_o,
  output logic [Ports-1:0][31:0]            counter_arrived_o,
  output logic [Ports-1:0][31:0]            counter_faults_o,
  output logic [Ports-1:0][31:0]            counter_bad_frames_o,
  output logic [Ports-1:0][31:0]            counter_passed_o,      // frames that came by this port, and went on
  output logic [Ports-1:0][31:0]            counter_strays_o       // and that went nowhere
);

  if (Addresses > 8192) begin : gen_bad_addresses
    $error("unisono_switch: Addresses must be 8192 at most");
  end

  localparam int unsigned NodeBits = $bits(node_t);
  localparam int unsigned Channels = 2;  // data, control
  localparam int unsigned Sources = Channels + 1 + (Handlers > 0 ? 1 : 0);  // of a link's frames

  typedef logic [Ports-1:0] ports_t;

  // ---------------------------------------------------------------- registers
  logic  own_word, way_word, unit_reg_valid, station_reg_valid;
  node_t own_q;
  logic [31:0] unit_reg_data, station_reg_data;
  assign own_word = reg_valid_i && reg_write_i && reg_word_i[15:12] == 4'b0110 && !reg_word_i[0];
  assign reg_valid_o = unit_reg_valid || station_reg_valid;
  assign reg_data_o = station_reg_valid ? station_reg_data : unit_reg_data;
  assign way_word = reg_valid_i && reg_write_i && reg_word_i[15:13] == 3'b010;
  always_ff @(posedge clk_i) if (own_word) own_q <= node_t'(reg_data_i);

  // ---------------------------------------------------------------- whose a frame is
  ports_t                            mine, handled, unit_valid, unit_ready, station_valid, station_ready;
  logic [Ports-1:0][SwitchBytes-1:0] unit_keep;
  ports_t [Channels-1:0]             pass_valid, pass_ready;
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_whose
    assign mine[p]       = in_address_i[p] == own_q;
    assign unit_valid[p] = in_valid_i[p] && mine[p];
    for (genvar c = 0; c < int'(Channels); c++) begin : gen_channel
      assign pass_valid[c][p] = in_valid_i[p] && !mine[p] && !handled[p] && in_control_i[p] == 1'(c);
    end
    assign station_valid[p] = in_valid_i[p] && handled[p];
    assign in_ready_o[p] = mine[p] ? unit_ready[p] : handled[p] ? station_ready[p] : pass_ready[in_control_i[p]][p];
    // To the unit a damaged frame is one that is not as long as its header says.
    always_comb begin
      unit_keep[p] = in_keep_i[p];
      if (in_bad_i[p] && in_last_i[p]) unit_keep[p] = in_keep_i[p][1] ? SwitchBytes'(1) : SwitchBytes'(3);
    end
  end

  ports_t                            made_valid, made_ready, made_last, made_control;
  logic [Ports-1:0][DataBits-1:0]    made_data;
  logic [Ports-1:0][SwitchBytes-1:0] made_keep;
  node_t [Ports-1:0]                 made_address;
  unisono_switch_unit #(
    .Ports         (Ports),
    .Datatypes     (Datatypes),
    .Funcs         (Funcs),
    .BufferBytes   (BufferBytes),
    .WindowSegments(WindowSegments)
  ) u_unit (
    .clk_i,
    .rst_ni,
    .reg_valid_i  (reg_valid_i && (reg_word_i[15] || !reg_word_i[14])),
    .reg_write_i,
    .reg_word_i,
    .reg_data_i,
    .reg_valid_o  (unit_reg_valid),
    .reg_data_o   (unit_reg_data),
    .in_valid_i   (unit_valid),
    .in_ready_o   (unit_ready),
    .in_data_i,
    .in_keep_i    (unit_keep),
    .in_last_i,
    .out_valid_o  (made_valid),
    .out_ready_i  (made_ready),
    .out_data_o   (made_data),
    .out_keep_o   (made_keep),
    .out_last_o   (made_last),
    .out_address_o(made_address),
    .out_control_o(made_control),
    .counter_messages_o,
    .counter_mismatches_o,
    .counter_arrived_o,
    .counter_faults_o,
    .counter_bad_frames_o
  );

  ports_t [Channels-1:0]                            on_valid, on_ready, on_last;
  logic [Channels-1:0][Ports-1:0][DataBits-1:0]     on_data;
  logic [Channels-1:0][Ports-1:0][SwitchBytes-1:0]  on_keep;
  node_t [Channels-1:0][Ports-1:0]                  on_address;
  logic [Channels-1:0][Ports-1:0][31:0]             passed, strays;

  // Groups' frames on both channels share the links, so one of both is under way at a time.
  logic [Channels-1:0] group_wants, group_may, group_busy, group_next;
  unisono_round_robin #(
    .Requests(Channels)
  ) u_groups (
    .clk_i,
    .rst_ni,
    .request_i(group_wants),
    .advance_i(group_busy == '0),
    .grant_o  (group_next),
    .index_o  ()
  );
  assign group_may = group_busy == '0 ? group_next : '0;
  for (genvar c = 0; c < int'(Channels); c++) begin : gen_forward
    ports_t unused_bad;
    unisono_switch_forward #(
      .Ports    (Ports),
      .Addresses(Addresses),
      .Queue    (Queue)
    ) u_forward (
      .clk_i,
      .rst_ni,
      .table_valid_i   (way_word),
      .table_address_i (node_t'(reg_word_i[12:0])),
      .table_ports_i   (ports_t'(reg_data_i)),
      .group_wants_o   (group_wants[c]),
      .group_may_i     (group_may[c]),
      .group_busy_o    (group_busy[c]),
      .in_valid_i      (pass_valid[c]),
      .in_ready_o      (pass_ready[c]),
      .in_data_i,
      .in_keep_i,
      .in_last_i,
      .in_bad_i,
      .in_address_i,
      .out_valid_o     (on_valid[c]),
      .out_ready_i     (on_ready[c]),
      .out_data_o      (on_data[c]),
      .out_keep_o      (on_keep[c]),
      .out_last_o      (on_last[c]),
      .out_bad_o       (unused_bad),
      .out_address_o   (on_address[c]),
      .counter_passed_o(passed[c]),
      .counter_strays_o(strays[c])
    );
  end

  // ---------------------------------------------------------------- handlers
  ports_t                            led_valid, led_ready, led_last;
  logic [Ports-1:0][DataBits-1:0]    led_data;
  logic [Ports-1:0][SwitchBytes-1:0] led_keep;
  node_t [Ports-1:0]                 led_address;
  if (Handlers > 0) begin : gen_handlers
    logic  open_q;
    node_t station_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        open_q <= 1'b0;
      end else if (reg_valid_i && reg_write_i && reg_word_i[15:12] == 4'b0110 && reg_word_i[0]) begin
        open_q    <= 1'b1;
        station_q <= node_t'(reg_data_i);
      end
    end
    for (genvar p = 0; p < int'(Ports); p++) begin : gen_handled
      assign handled[p] = open_q && in_address_i[p] == station_q && !mine[p];
    end
    unisono_switch_station #(
      .Ports      (Ports),
      .Addresses  (Addresses),
      .Machines   (Handlers),
      .Format     (HandlerFormat),
      .Messages   (HandlerMessages),
      .Columns    (HandlerColumns),
      .Words      (HandlerWords),
      .MemoryBytes(HandlerMemoryBytes),
      .Elements   (HandlerElements),
      .Banks      (HandlerBanks)
    ) u_station (
      .clk_i,
      .rst_ni,
      .reg_valid_i    (reg_valid_i && reg_word_i[15:12] == 4'b0111),
      .reg_write_i,
      .reg_word_i     (reg_word_i[11:0]),
      .reg_data_i,
      .reg_valid_o    (station_reg_valid),
      .reg_data_o     (station_reg_data),
      .table_valid_i  (way_word),
      .table_address_i(node_t'(reg_word_i[12:0])),
      .table_ports_i  (ports_t'(reg_data_i)),
      .in_valid_i     (station_valid),
      .in_ready_o     (station_ready),
      .in_data_i,
      .in_keep_i,
      .in_last_i,
      .in_bad_i,
      .out_valid_o    (led_valid),
      .out_ready_i    (led_ready),
      .out_data_o     (led_data),
      .out_keep_o     (led_keep),
      .out_last_o     (led_last),
      .out_address_o  (led_address)
    );
  end else begin : gen_no_handlers
    logic unused;
    assign handled = '0;
    assign {station_ready, led_valid, led_last} = '0;
    assign {led_data, led_keep, led_address} = '0;
    assign station_reg_valid = 1'b0;
    assign station_reg_data = '0;
    assign unused = ^{station_valid, led_valid, led_ready, led_last, led_data, led_keep, led_address};
  end

  // ---------------------------------------------------------------- links
  for (genvar p = 0; p < int'(Ports); p++) begin : gen_link
    // With handlers theirs are the last one.
    logic [Sources-1:0]                  link_valid, link_ready, link_last;
    logic [Sources-1:0][DataBits-1:0]    link_data;
    logic [Sources-1:0][SwitchBytes-1:0] link_keep;
    logic [Sources-1:0][NodeBits:0]      link_user;
    for (genvar c = 0; c < int'(Channels); c++) begin : gen_pass
      assign link_valid[c]  = on_valid[c][p];
      assign on_ready[c][p] = link_ready[c];
      assign link_data[c]   = on_data[c][p];
      assign link_keep[c]   = on_keep[c][p];
      assign link_last[c]   = on_last[c][p];
      assign link_user[c]   = {1'(c), on_address[c][p]};
    end
    assign link_valid[Channels] = made_valid[p];
    assign made_ready[p]        = link_ready[Channels];
    assign link_data[Channels]  = made_data[p];
    assign link_keep[Channels]  = made_keep[p];
    assign link_last[Channels]  = made_last[p];
    assign link_user[Channels]  = {made_control[p], made_address[p]};
    if (Handlers > 0) begin : gen_led
      assign link_valid[Channels+1] = led_valid[p];
      assign led_ready[p]           = link_ready[Channels+1];
      assign link_data[Channels+1]  = led_data[p];
      assign link_keep[Channels+1]  = led_keep[p];
      assign link_last[Channels+1]  = led_last[p];
      assign link_user[Channels+1]  = {1'b0, led_address[p]};
    end else begin : gen_not_led
      assign led_ready[p] = 1'b0;
    end
    unisono_stream_arbiter #(
      .Inputs   (Sources),
      .DataBytes(SwitchBytes),
      .UserBits (NodeBits + 1)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .in_valid_i  (link_valid),
      .in_ready_o  (link_ready),
      .in_data_i   (link_data),
      .in_keep_i   (link_keep),
      .in_last_i   (link_last),
      .in_user_i   (link_user),
      .out_valid_o (out_valid_o[p]),
      .out_ready_i (out_ready_i[p]),
      .out_data_o  (out_data_o[p]),
      .out_keep_o  (out_keep_o[p]),
      .out_last_o  (out_last_o[p]),
      .out_user_o  ({out_control_o[p], out_address_o[p]}),
      .out_source_o()
    );
    assign out_bad_o[p]        = out_last_o[p] && out_keep_o[p] == '0;
    assign counter_passed_o[p] = passed[1][p] + passed[0][p];
    assign counter_strays_o[p] = strays[1][p] + strays[0][p];
  end

endmodule
