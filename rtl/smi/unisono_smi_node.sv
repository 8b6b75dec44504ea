// A node of a network of cables: SMI's transport, and for each port an end that sends and one that
// receives. This is what kernels of SMI attach to.
//
// Port p sends data by endpoint p and credits by endpoint Ports + p of the transport, and receives
// alike: what `unisono route --ports N` assumes. The queue in front of a receiving end has
// EndpointDepth places, of which a sender with credits may fill EndpointDepth - 4.

module unisono_smi_node #(
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
    unisono_smi_push #(
      .PacketBytes(PacketBytes),
      .WordBytes  (WordBytes),
      .MaxRanks   (MaxRanks),
      .Window     (EndpointDepth - 4)
    ) u_push (
      .clk_i,
      .rst_ni         (run_nq),
      .rank_i         (rank_o),
      .open_valid_i   (push_open_valid_i[p]),
      .open_ready_o   (push_open_ready_o[p]),
      .open_i         (push_open_i[p]),
      .in_valid_i     (push_valid_i[p]),
      .in_ready_o     (push_ready_o[p]),
      .in_data_i      (push_data_i[p]),
      .in_count_i     (push_count_i[p]),
      .in_flush_i     (push_flush_i[p]),
      .out_valid_o    (send_valid[p]),
      .out_ready_i    (send_ready[p]),
      .out_data_o     (send_data[p]),
      .control_valid_i(receive_valid[Ports+p]),
      .control_ready_o(receive_ready[Ports+p]),
      .control_data_i (receive_data[Ports+p])
    );

    unisono_smi_pop #(
      .PacketBytes(PacketBytes),
      .WordBytes  (WordBytes),
      .Batch      (EndpointDepth / 4)
    ) u_pop (
      .clk_i,
      .rst_ni           (run_nq),
      .rank_i           (rank_o),
      .open_valid_i     (pop_open_valid_i[p]),
      .open_ready_o     (pop_open_ready_o[p]),
      .open_i           (pop_open_i[p]),
      .in_valid_i       (receive_valid[p]),
      .in_ready_o       (receive_ready[p]),
      .in_data_i        (receive_data[p]),
      .out_valid_o      (pop_valid_o[p]),
      .out_ready_i      (pop_ready_i[p]),
      .out_data_o       (pop_data_o[p]),
      .out_count_o      (pop_count_o[p]),
      .out_last_o       (pop_last_o[p]),
      .control_valid_o  (send_valid[Ports+p]),
      .control_ready_i  (send_ready[Ports+p]),
      .control_data_o   (send_data[Ports+p]),
      .complaint_valid_o(complaint_valid_o[p]),
      .complaint_o      (complaint_o[p])
    );
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
