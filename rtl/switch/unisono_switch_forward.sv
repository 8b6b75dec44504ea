// Passes frames on that are not for the switch: each to the port, or the ports, of its destination.
//
// A frame begins to leave while it comes (cut-through). A table says for each address to which ports its frames go: one,
// several (a group), or none, for which a frame is dropped and counted. No frame goes back by the port by which it came.
//
// A word of a group's frame is taken by each of its ports when that is free, and its input goes on when all have it. One
// group's frame is under way at a time: two of them could hold a port each for which the other one waits. What goes to
// one port holds nothing else while it waits, so it always comes to its end. Where other forwards lead to the same links,
// one of all of them has a group's frame under way at a time: group_may_i is for those.
//
// A damaged frame leaves damaged: its last word has no bytes.
//
// Latency: 2 cycles, of a group's frame 3. Throughput: a word per cycle at each input and each output; between two
// groups' frames 2 cycles. In order from each input to each output. Outputs are registered.

// verilator lint_off PINCONNECTEMPTY

module unisono_switch_forward
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,        // 4 to MaxPorts
  parameter int unsigned Addresses = 256,  // in the table, from 0 on; a power of two
  parameter int unsigned Queue = 32,       // words that wait at each input, at least 2
  localparam int unsigned DataBits = SwitchBytes * 8
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  // Every address of which frames may come is written once before they do. Others go nowhere.
  input  logic                              table_valid_i,
  input  node_t                             table_address_i,
  input  logic [Ports-1:0]                  table_ports_i,

  output logic                              group_wants_o,  // a group's frame is to begin
  input  logic                              group_may_i,    // it may
  output logic                              group_busy_o,   // one is under way

  input  logic [Ports-1:0]                  in_valid_i,
  output logic [Ports-1:0]                  in_ready_o,
  input  logic [Ports-1:0][DataBits-1:0]    in_data_i,
  input  logic [Ports-1:0][SwitchBytes-1:0] in_keep_i,
  input  logic [Ports-1:0]                  in_last_i,
  input  logic [Ports-1:0]                  in_bad_i,      // with last: the frame is damaged, and so is what goes on
  input  node_t [Ports-1:0]                 in_address_i,  // constant over a frame

  output logic [Ports-1:0]                  out_valid_o,
  input  logic [Ports-1:0]                  out_ready_i,
  output logic [Ports-1:0][DataBits-1:0]    out_data_o,
  output logic [Ports-1:0][SwitchBytes-1:0] out_keep_o,
  output logic [Ports-1:0]                  out_last_o,
  output logic [Ports-1:0]                  out_bad_o,
  output node_t [Ports-1:0]                 out_address_o,

  output logic [Ports-1:0][31:0]            counter_passed_o,  // frames that came by this port, and went on
  output logic [Ports-1:0][31:0]            counter_strays_o   // and that went nowhere
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_forward: Ports must be 4 to %0d", MaxPorts);
  end
  if (Addresses < 2 || Addresses > 65536 || 2 ** $clog2(Addresses) != Addresses) begin : gen_bad_addresses
    $error("unisono_switch_forward: Addresses must be a power of two, 2 to 65536");
  end

  localparam int unsigned AddressBits = $clog2(Addresses);
  localparam int unsigned NodeBits = $bits(node_t);

  typedef logic [Ports-1:0] ports_t;

  // What waits at each input, and to where it goes.
  ports_t                            there, last, many, pop, may;
  logic [Ports-1:0][DataBits-1:0]    data;
  logic [Ports-1:0][SwitchBytes-1:0] keep;
  node_t [Ports-1:0]                 address;
  ports_t [Ports-1:0]                ways, taken_q, taken;  // [input][output]

  // One group's frame at a time.
  logic   group_q;
  ports_t holder_q, next_holder;
  unisono_round_robin #(
    .Requests(Ports)
  ) u_group (
    .clk_i,
    .rst_ni,
    .request_i(there & many),
    .advance_i(!group_q && group_may_i),
    .grant_o  (next_holder),
    .index_o  ()
  );
  assign group_wants_o = !group_q && next_holder != '0;
  assign group_busy_o  = group_q;
  assign may = ~many | (group_q ? holder_q : '0);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) group_q <= 1'b0;
    else if (!group_q) group_q <= group_wants_o && group_may_i;
    else if ((holder_q & pop & last) != '0) group_q <= 1'b0;
    if (!group_q) holder_q <= next_holder;
  end

  for (genvar i = 0; i < int'(Ports); i++) begin : gen_in
    (* ram_style = "distributed" *) ports_t table_q [Addresses];
    always_ff @(posedge clk_i) begin
      if (table_valid_i && 32'(table_address_i) < Addresses) table_q[table_address_i[AddressBits-1:0]] <= table_ports_i;
    end

    ports_t to;
    logic   stray;
    always_comb begin
      to = table_q[in_address_i[i][AddressBits-1:0]] & ~(ports_t'(1) << i);
      if (32'(in_address_i[i]) >= Addresses) to = '0;
    end
    assign stray = to == '0;

    unisono_stream_fifo #(
      .DataBytes(SwitchBytes),
      .UserBits (1 + Ports + NodeBits),
      .Depth    (Queue)
    ) u_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (in_valid_i[i] && !stray),
      .in_ready_o (in_ready_o[i]),
      .in_data_i  (in_data_i[i]),
      .in_keep_i  (in_bad_i[i] && in_last_i[i] ? '0 : in_keep_i[i]),
      .in_last_i  (in_last_i[i]),
      .in_user_i  ({(to & (to - ports_t'(1))) != '0, to, in_address_i[i]}),
      .out_valid_o(there[i]),
      .out_ready_i(pop[i]),
      .out_data_o (data[i]),
      .out_keep_o (keep[i]),
      .out_last_o (last[i]),
      .out_user_o ({many[i], ways[i], address[i]}),
      .count_o    ()
    );

    // A word leaves its queue when the last of its ports has taken it.
    assign pop[i] = there[i] && may[i] && (ways[i] & ~taken[i]) == '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) taken_q[i] <= '0;
      else taken_q[i] <= pop[i] ? '0 : taken[i];

      if (!rst_ni) begin
        counter_passed_o[i] <= '0;
        counter_strays_o[i] <= '0;
      end else begin
        counter_passed_o[i] <= counter_passed_o[i] + 32'(pop[i] && last[i]);
        counter_strays_o[i] <= counter_strays_o[i] + 32'(in_valid_i[i] && in_ready_o[i] && in_last_i[i] && stray);
      end
    end
  end

  // Each output takes from the inputs in turn, a frame at a time.
  ports_t [Ports-1:0] offers, takes;  // [output][input]
  for (genvar i = 0; i < int'(Ports); i++) begin : gen_taken
    always_comb begin
      taken[i] = taken_q[i];
      for (int o = 0; o < int'(Ports); o++) if (offers[o][i] && takes[o][i]) taken[i][o] = 1'b1;
    end
  end
  for (genvar o = 0; o < int'(Ports); o++) begin : gen_out
    for (genvar i = 0; i < int'(Ports); i++) begin : gen_from
      assign offers[o][i] = there[i] && may[i] && ways[i][o] && !taken_q[i][o];
    end
    unisono_stream_arbiter #(
      .Inputs   (Ports),
      .DataBytes(SwitchBytes),
      .UserBits (NodeBits)
    ) u_arbiter (
      .clk_i,
      .rst_ni,
      .in_valid_i  (offers[o]),
      .in_ready_o  (takes[o]),
      .in_data_i   (data),
      .in_keep_i   (keep),
      .in_last_i   (last),
      .in_user_i   (address),
      .out_valid_o (out_valid_o[o]),
      .out_ready_i (out_ready_i[o]),
      .out_data_o  (out_data_o[o]),
      .out_keep_o  (out_keep_o[o]),
      .out_last_o  (out_last_o[o]),
      .out_user_o  (out_address_o[o]),
      .out_source_o()
    );
    // A damaged frame ends in a word without bytes.
    assign out_bad_o[o] = out_last_o[o] && out_keep_o[o] == '0;
  end

`ifndef SYNTHESIS
  // A group's frame that has begun is the holder's; so no two inputs hold ports for which both wait.
  ports_t begun_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      begun_q <= '0;
    end else begin
      begun_q <= (begun_q | (there & may)) & ~(pop & last);
      assert ($onehot0(begun_q & many)) else $error("%m: two groups' frames are under way");
      assert (!group_q || $onehot(holder_q)) else $error("%m: the token of groups is nobody's");
    end
  end
`endif

endmodule
