// A node of a network of cables: SMI's transport, and for each port an end that sends and one that
// receives. This is what kernels of SMI attach to.
//
// Port p sends data by endpoint p and credits by endpoint Ports + p of the transport, and receives
// alike: what `unisono route --ports N` assumes. The queue in front of a receiving end has
// EndpointDepth places, of which a sender with credits may fill EndpointDepth - 4.
//
// A port in Collectives or Reductions has unisono_smi_collective between its ends and the transport:
// broadcast, scatter and gather with the first, reduce with the second.

module unisono_smi_node
  import unisono_plugin_pkg::*;
#(
  parameter int unsigned Links           = 4,
  parameter int unsigned Ports           = 4,
  parameter int unsigned PacketBytes     = 32,
  parameter int unsigned WordBytes       = 32,
  parameter int unsigned Burst           = 8,
  parameter int unsigned VirtualChannels = 1,
  parameter int unsigned MaxRanks        = 128,
  parameter int unsigned Depth           = 16,
  parameter int unsigned LinkDepth       = 16,
  parameter int unsigned EndpointDepth   = 16,
  // Ports with support units, a bit for each, and what their reductions compute.
  parameter int unsigned Collectives     = 0,
  parameter int unsigned Reductions      = 0,
  parameter datatype_mask_t Datatypes    = AllDatatypes,
  parameter func_mask_t  Funcs           = AllFuncs,
  // Places for packets of each child of a reduction.
  parameter int unsigned ChildDepth      = 16,
  localparam int unsigned Width          = PacketBytes * 8,
  localparam int unsigned Channels       = 2 * VirtualChannels,
  localparam int unsigned ChannelBits    = $clog2(Channels),
  localparam int unsigned LaneBits       = $clog2(WordBytes + 1)
) (
  input  logic                               clk_i,
  input  logic                               rst_ni,

  // An image of `unisono route`; see unisono_smi_loader.
  input  logic                               image_valid_i,
  output logic                               image_ready_o,
  input  logic [31:0]                        image_data_i,
  input  logic                               image_last_i,
  output logic                               running_o,
  output unisono_smi_pkg::image_e            image_o,
  output logic [unisono_smi_pkg::RankBits-1:0] rank_o,
  output logic [unisono_smi_pkg::RankBits-1:0] ranks_o,

  // Sending ends; see unisono_smi_push.
  input  logic [Ports-1:0]                   push_open_valid_i,
  output logic [Ports-1:0]                   push_open_ready_o,
  input  unisono_smi_pkg::open_t [Ports-1:0] push_open_i,
  input  logic [Ports-1:0]                   push_valid_i,
  output logic [Ports-1:0]                   push_ready_o,
  input  logic [Ports-1:0][WordBytes*8-1:0]  push_data_i,
  input  logic [Ports-1:0][LaneBits-1:0]     push_count_i,
  input  logic [Ports-1:0]                   push_flush_i,

  // Receiving ends; see unisono_smi_pop.
  input  logic [Ports-1:0]                   pop_open_valid_i,
  output logic [Ports-1:0]                   pop_open_ready_o,
  input  unisono_smi_pkg::open_t [Ports-1:0] pop_open_i,
  output logic [Ports-1:0]                   pop_valid_o,
  input  logic [Ports-1:0]                   pop_ready_i,
  output logic [Ports-1:0][WordBytes*8-1:0]  pop_data_o,
  output logic [Ports-1:0][LaneBits-1:0]     pop_count_o,
  output logic [Ports-1:0]                   pop_last_o,
  output logic [Ports-1:0]                   complaint_valid_o,
  output unisono_smi_pkg::complaint_t [Ports-1:0] complaint_o,

  // Collectives; see unisono_smi_collective. Entries of the tables of members are written in all
  // ports at once. A port without units refuses.
  input  logic [Ports-1:0]                   collective_open_valid_i,
  output logic [Ports-1:0]                   collective_open_ready_o,
  input  unisono_smi_pkg::collective_t [Ports-1:0] collective_open_i,
  output logic [Ports-1:0]                   collective_refused_o,
  output logic [Ports-1:0]                   collective_busy_o,
  input  logic                               member_wr_en_i,
  input  logic [7:0]                         member_wr_address_i,
  input  logic [unisono_smi_pkg::RankBits-1:0] member_wr_rank_i,

  // Two ends that do not agree, for a cycle: noticed by the sending end, the receiving end, the tree
  // of each port.
  output logic [2:0][Ports-1:0]              differ_valid_o,
  output unisono_smi_pkg::differ_t [2:0][Ports-1:0] differ_o,

  // Cables; see unisono_smi_transport.
  output logic [Links-1:0]                   link_valid_o,
  input  logic [Links-1:0]                   link_ready_i,
  output logic [Links-1:0][ChannelBits-1:0]  link_channel_o,
  output logic [Links-1:0][Width-1:0]        link_data_o,
  input  logic [Links-1:0]                   link_up_i,
  input  logic [Links-1:0][Channels-1:0]     link_freed_i,
  input  logic [Links-1:0]                   link_valid_i,
  input  logic [Links-1:0][ChannelBits-1:0]  link_channel_i,
  input  logic [Links-1:0][Width-1:0]        link_data_i,
  output logic [Links-1:0]                   link_up_o,
  output logic [Links-1:0][Channels-1:0]     link_freed_o,

  output logic [31:0]                        strays_o,
  output unisono_smi_pkg::stray_t            first_stray_o
);

  import unisono_smi_pkg::*;

  if (EndpointDepth < 8) begin : gen_bad_depth
    $error("unisono_smi_node: EndpointDepth must be at least 8");
  end

  logic [2*Ports-1:0]            send_valid, send_ready, receive_valid, receive_ready;
  logic [2*Ports-1:0][Width-1:0] send_data, receive_data;
  logic                          run_nq;

  // The ends forget what they had when tables are loaded, as the transport does.
  always_ff @(posedge clk_i) begin
    run_nq <= rst_ni && running_o;
  end

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    localparam bit Reduces  = Reductions[p];
    localparam bit Collects = Collectives[p];

    logic             push_open_valid, push_open_ready, pop_open_valid, pop_open_ready;
    open_t            push_open, pop_open;
    logic             push_valid, push_ready, pop_valid, pop_ready, tell_valid, tell_ready;
    logic             told_valid, told_ready, own_complaint, tree;
    logic [Width-1:0] push_data, pop_data, tell_data, told_data;
    complaint_t       pop_complaint;

    unisono_smi_push #(
      .PacketBytes(PacketBytes),
      .WordBytes  (WordBytes),
      .MaxRanks   (MaxRanks),
      .Window     (EndpointDepth - 4)
    ) u_push (
      .clk_i,
      .rst_ni         (run_nq),
      .rank_i         (rank_o),
      .open_valid_i   (push_open_valid),
      .open_ready_o   (push_open_ready),
      .open_i         (push_open),
      .tree_i         (tree),
      .in_valid_i     (push_valid_i[p]),
      .in_ready_o     (push_ready_o[p]),
      .in_data_i      (push_data_i[p]),
      .in_count_i     (push_count_i[p]),
      .in_flush_i     (push_flush_i[p]),
      .out_valid_o    (push_valid),
      .out_ready_i    (push_ready),
      .out_data_o     (push_data),
      .control_valid_i(told_valid),
      .control_ready_o(told_ready),
      .control_data_i (told_data),
      .differ_valid_o (differ_valid_o[0][p]),
      .differ_o       (differ_o[0][p])
    );

    unisono_smi_pop #(
      .PacketBytes(PacketBytes),
      .WordBytes  (WordBytes),
      .Batch      (EndpointDepth / 4),
      .MaxRanks   (MaxRanks)
    ) u_pop (
      .clk_i,
      .rst_ni           (run_nq),
      .rank_i           (rank_o),
      .open_valid_i     (pop_open_valid),
      .open_ready_o     (pop_open_ready),
      .open_i           (pop_open),
      .tree_i           (tree),
      .in_valid_i       (pop_valid),
      .in_ready_o       (pop_ready),
      .in_data_i        (pop_data),
      .out_valid_o      (pop_valid_o[p]),
      .out_ready_i      (pop_ready_i[p]),
      .out_data_o       (pop_data_o[p]),
      .out_count_o      (pop_count_o[p]),
      .out_last_o       (pop_last_o[p]),
      .control_valid_o  (tell_valid),
      .control_ready_i  (tell_ready),
      .control_data_o   (tell_data),
      .told_valid_i     (told_valid),
      .told_data_i      (told_data),
      .complaint_valid_o(own_complaint),
      .complaint_o      (pop_complaint),
      .differ_valid_o   (differ_valid_o[1][p]),
      .differ_o         (differ_o[1][p])
    );

    if (Reduces || Collects) begin : gen_collective
      logic                foreign_valid;
      logic [RankBits-1:0] foreign;

      unisono_smi_collective #(
        .PacketBytes(PacketBytes),
        .MaxRanks   (MaxRanks),
        .Bcast      (Collects),
        .Reduce     (Reduces),
        .Members    (Collects),
        .Datatypes  (Datatypes),
        .Funcs      (Funcs),
        .Window     (EndpointDepth - 4),
        .ChildDepth (ChildDepth)
      ) u_collective (
        .clk_i,
        .rst_ni                 (run_nq),
        .rank_i                 (rank_o),
        .open_valid_i           (collective_open_valid_i[p]),
        .open_ready_o           (collective_open_ready_o[p]),
        .open_i                 (collective_open_i[p]),
        .refused_o              (collective_refused_o[p]),
        .busy_o                 (collective_busy_o[p]),
        .tree_o                 (tree),
        .member_wr_en_i,
        .member_wr_address_i,
        .member_wr_rank_i,
        .push_open_valid_i      (push_open_valid_i[p]),
        .push_open_ready_o      (push_open_ready_o[p]),
        .push_open_i            (push_open_i[p]),
        .push_open_valid_o      (push_open_valid),
        .push_open_ready_i      (push_open_ready),
        .push_open_o            (push_open),
        .pop_open_valid_i       (pop_open_valid_i[p]),
        .pop_open_ready_o       (pop_open_ready_o[p]),
        .pop_open_i             (pop_open_i[p]),
        .pop_open_valid_o       (pop_open_valid),
        .pop_open_ready_i       (pop_open_ready),
        .pop_open_o             (pop_open),
        .push_valid_i           (push_valid),
        .push_ready_o           (push_ready),
        .push_data_i            (push_data),
        .pop_valid_o            (pop_valid),
        .pop_ready_i            (pop_ready),
        .pop_data_o             (pop_data),
        .tell_valid_i           (tell_valid),
        .tell_ready_o           (tell_ready),
        .tell_data_i            (tell_data),
        .told_valid_o           (told_valid),
        .told_data_o            (told_data),
        .send_valid_o           (send_valid[p]),
        .send_ready_i           (send_ready[p]),
        .send_data_o            (send_data[p]),
        .receive_valid_i        (receive_valid[p]),
        .receive_ready_o        (receive_ready[p]),
        .receive_data_i         (receive_data[p]),
        .send_control_valid_o   (send_valid[Ports+p]),
        .send_control_ready_i   (send_ready[Ports+p]),
        .send_control_data_o    (send_data[Ports+p]),
        .receive_control_valid_i(receive_valid[Ports+p]),
        .receive_control_data_i (receive_data[Ports+p]),
        .differ_valid_o         (differ_valid_o[2][p]),
        .differ_o               (differ_o[2][p]),
        .foreign_valid_o        (foreign_valid),
        .foreign_o              (foreign)
      );
      assign receive_ready[Ports+p] = told_ready;
      // The receiving end has nothing to complain of while packets of a tree come.
      assign complaint_valid_o[p] = own_complaint || foreign_valid;
      assign complaint_o[p]       = own_complaint ? pop_complaint : complaint_t'{
        foreign: 1'b1,
        src:     foreign,
        default: '0
      };
    end else begin : gen_plain
      logic unused_collective;
      assign tree                 = 1'b0;
      assign push_open_valid      = push_open_valid_i[p];
      assign push_open_ready_o[p] = push_open_ready;
      assign push_open            = push_open_i[p];
      assign pop_open_valid       = pop_open_valid_i[p];
      assign pop_open_ready_o[p]  = pop_open_ready;
      assign pop_open             = pop_open_i[p];
      assign send_valid[p]        = push_valid;
      assign push_ready           = send_ready[p];
      assign send_data[p]         = push_data;
      assign pop_valid            = receive_valid[p];
      assign receive_ready[p]     = pop_ready;
      assign pop_data             = receive_data[p];
      assign send_valid[Ports+p]  = tell_valid;
      assign tell_ready           = send_ready[Ports+p];
      assign send_data[Ports+p]   = tell_data;
      assign told_valid           = receive_valid[Ports+p];
      assign receive_ready[Ports+p] = told_ready;
      assign told_data            = receive_data[Ports+p];
      assign complaint_valid_o[p] = own_complaint;
      assign complaint_o[p]       = pop_complaint;

      assign collective_open_ready_o[p] = 1'b1;
      assign collective_refused_o[p]    = collective_open_valid_i[p];
      assign collective_busy_o[p]       = 1'b0;
      assign differ_valid_o[2][p]       = 1'b0;
      assign differ_o[2][p]             = '0;
      assign unused_collective = ^collective_open_i[p];
    end
  end
  if (Collectives == 0) begin : gen_no_members
    logic unused_members;
    assign unused_members = ^{member_wr_en_i, member_wr_address_i, member_wr_rank_i};
  end

  unisono_smi_transport #(
    .Links          (Links),
    .Ports          (Ports),
    .Endpoints      (2 * Ports),
    .PacketBytes    (PacketBytes),
    .Burst          (Burst),
    .VirtualChannels(VirtualChannels),
    .MaxRanks       (MaxRanks),
    .Depth          (Depth),
    .LinkDepth      (LinkDepth),
    .EndpointDepth  (EndpointDepth)
  ) u_transport (
    .clk_i,
    .rst_ni,
    .image_valid_i,
    .image_ready_o,
    .image_data_i,
    .image_last_i,
    .running_o,
    .image_o,
    .rank_o,
    .ranks_o,
    .send_valid_i   (send_valid),
    .send_ready_o   (send_ready),
    .send_data_i    (send_data),
    .receive_valid_o(receive_valid),
    .receive_ready_i(receive_ready),
    .receive_data_o (receive_data),
    .link_valid_o,
    .link_ready_i,
    .link_channel_o,
    .link_data_o,
    .link_up_i,
    .link_freed_i,
    .link_valid_i,
    .link_channel_i,
    .link_data_i,
    .link_up_o,
    .link_freed_o,
    .strays_o,
    .first_stray_o
  );

endmodule
