// Proof of unisono_memory_crossbar_write, for all traffic of two writers on two channels: as long as
// a request was granted whose data is not yet sent, some writer can send, so there is no deadlock;
// a channel gets the data of bursts in the order of their requests; no writer's answer goes to
// another.

module unisono_memory_crossbar_write_proof #(
  parameter int unsigned Writers  = 2,
  parameter int unsigned Channels = 2
) (
  input logic                     clk_i,
  input logic                     rst_ni,
  input logic [Writers-1:0][3:0]  s_axi_awaddr,
  input logic [Writers-1:0]       s_axi_awvalid,
  input logic [Writers-1:0]       s_axi_wlast,
  input logic [Writers-1:0]       s_axi_wvalid,
  input logic [Channels-1:0]      m_axi_awready,
  input logic [Channels-1:0]      m_axi_wready,
  input logic [Channels-1:0][1:0] m_axi_bid,
  input logic [Channels-1:0]      m_axi_bvalid
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;
  always_ff @(posedge clk_i) if (!started_q) assume (!rst_ni);

  logic [Writers-1:0]        awready, wready, bvalid;
  logic [Writers-1:0][0:0]   bid;
  logic [Writers-1:0][1:0]   bresp;
  logic [Channels-1:0][1:0]  m_awid;
  logic [Channels-1:0][3:0]  m_awaddr;
  logic [Channels-1:0][7:0]  m_awlen;
  logic [Channels-1:0][2:0]  m_awsize;
  logic [Channels-1:0][1:0]  m_awburst;
  logic [Channels-1:0]       m_awvalid, m_wlast, m_wvalid, m_bready;
  logic [Channels-1:0][15:0] m_wdata;
  logic [Channels-1:0][1:0]  m_wstrb;
  logic [Writers-1:0][15:0]  wdata;

  // Data says whose it is.
  for (genvar w = 0; w < Writers; w++) begin : gen_data
    assign wdata[w] = 16'(w);
  end

  unisono_memory_crossbar_write #(
    .Writers        (Writers),
    .Channels       (Channels),
    .DataBytes      (2),
    .AddressWidth   (4),
    .IdWidth        (1),
    .InterleaveBytes(4)
  ) u_dut (
    .clk_i,
    .rst_ni,
    .s_axi_awid   ('0),
    .s_axi_awaddr,
    .s_axi_awlen  ('0),
    .s_axi_awvalid,
    .s_axi_awready(awready),
    .s_axi_wdata  (wdata),
    .s_axi_wstrb  ('1),
    .s_axi_wlast,
    .s_axi_wvalid,
    .s_axi_wready (wready),
    .s_axi_bid    (bid),
    .s_axi_bresp  (bresp),
    .s_axi_bvalid (bvalid),
    .s_axi_bready ('1),
    .m_axi_awid   (m_awid),
    .m_axi_awaddr (m_awaddr),
    .m_axi_awlen  (m_awlen),
    .m_axi_awsize (m_awsize),
    .m_axi_awburst(m_awburst),
    .m_axi_awvalid(m_awvalid),
    .m_axi_awready,
    .m_axi_wdata  (m_wdata),
    .m_axi_wstrb  (m_wstrb),
    .m_axi_wlast  (m_wlast),
    .m_axi_wvalid (m_wvalid),
    .m_axi_wready,
    .m_axi_bid,
    .m_axi_bresp  ('0),
    .m_axi_bvalid,
    .m_axi_bready (m_bready)
  );

  always_ff @(posedge clk_i) begin
    for (int unsigned w = 0; w < Writers; w++) begin
      assume (!s_axi_awvalid[w] || s_axi_awaddr[w][0] == 1'b0);
    end
  end

  // Per writer: bursts whose requests were granted and whose data is not yet sent.
  logic [Writers-1:0][1:0] granted_q;

  always_ff @(posedge clk_i) begin
    for (int unsigned w = 0; w < Writers; w++) begin
      if (!rst_ni) begin
        granted_q[w] <= '0;
      end else begin
        granted_q[w] <= granted_q[w] + 2'(s_axi_awvalid[w] && awready[w]) -
                        2'(s_axi_wvalid[w] && wready[w] && s_axi_wlast[w]);
      end
    end
  end

  for (genvar w = 0; w < Writers; w++) begin : gen_writer
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        at_most_two: assert (granted_q[w] <= 2'd2);
        no_data_before_request: assert (!wready[w] || granted_q[w] != '0);
        own_answer: assert (!bvalid[w] || (m_axi_bvalid[0] && m_axi_bid[0][1] == 1'(w)) ||
                            (m_axi_bvalid[1] && m_axi_bid[1][1] == 1'(w)));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      progress: assert (granted_q == '0 || m_axi_wready != '1 || wready != '0);
    end
  end

  for (genvar c = 0; c < Channels; c++) begin : gen_channel
    // Writers whose requests this channel took, oldest first.
    logic [1:0] count_q;
    logic       first_q, second_q;
    logic       push, pop, pusher;
    assign push   = (s_axi_awvalid[0] && awready[0] && s_axi_awaddr[0][2] == 1'(c)) ||
                    (s_axi_awvalid[1] && awready[1] && s_axi_awaddr[1][2] == 1'(c));
    assign pusher = !(s_axi_awvalid[0] && awready[0] && s_axi_awaddr[0][2] == 1'(c));
    assign pop    = m_wvalid[c] && m_axi_wready[c] && m_wlast[c];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        count_q <= '0;
      end else begin
        count_q <= count_q + 2'(push) - 2'(pop);
        if (pop) begin
          first_q <= second_q;
        end
        if (push && (count_q == 2'd0 || (count_q == 2'd1 && pop))) begin
          first_q <= pusher;
        end else if (push) begin
          second_q <= pusher;
        end
      end
    end

    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        room: assert (count_q <= 2'd2);
        in_order: assert (!m_wvalid[c] || (count_q != '0 && m_wdata[c][0] == first_q));
        // A beat moves on both sides or on neither.
        one_writer: assert (!(m_wvalid[c] && m_axi_wready[c]) || wready[m_wdata[c][0]]);
      end
    end
  end

endmodule
