// Memory behind the three AXI4 masters of an engine, for simulation: INCR bursts of whole words, in order.
//
// Latency: 4 cycles to the first word of a burst. Throughput: a word per cycle and port.

module unisono_ip_memory #(
  parameter int unsigned Words = 65536,  // of 64 bytes
  localparam int unsigned Ports = 3
) (
  input  logic                    aclk,
  input  logic                    aresetn,

  input  logic [Ports-1:0][3:0]   arid,
  input  logic [Ports-1:0][63:0]  araddr,
  input  logic [Ports-1:0][7:0]   arlen,
  input  logic [Ports-1:0]        arvalid,
  output logic [Ports-1:0]        arready,
  output logic [Ports-1:0][3:0]   rid,
  output logic [Ports-1:0][511:0] rdata,
  output logic [Ports-1:0][1:0]   rresp,
  output logic [Ports-1:0]        rlast,
  output logic [Ports-1:0]        rvalid,
  input  logic [Ports-1:0]        rready,
  input  logic [Ports-1:0][3:0]   awid,
  input  logic [Ports-1:0][63:0]  awaddr,
  input  logic [Ports-1:0]        awvalid,
  output logic [Ports-1:0]        awready,
  input  logic [Ports-1:0][511:0] wdata,
  input  logic [Ports-1:0][63:0]  wstrb,
  input  logic [Ports-1:0]        wlast,
  input  logic [Ports-1:0]        wvalid,
  output logic [Ports-1:0]        wready,
  output logic [Ports-1:0][3:0]   bid,
  output logic [Ports-1:0][1:0]   bresp,
  output logic [Ports-1:0]        bvalid,
  input  logic [Ports-1:0]        bready
);

  localparam logic [1:0] SlaveError = 2'b10;
  localparam int unsigned Latency = 4;

  logic [511:0] mem [Words];

  // One burst at a time and direction for each port. An address beyond the memory is answered with an error.
  logic [Ports-1:0] reading_q, writing_q;
  logic [Ports-1:0][3:0] wait_q;
  logic [Ports-1:0][57:0] read_at_q, write_at_q;
  logic [Ports-1:0][7:0] left_q;
  logic [Ports-1:0][3:0] rid_q, bid_q;
  logic [Ports-1:0] answer_q, outside_q;

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_port
    assign arready[p] = !reading_q[p];
    assign rvalid[p] = reading_q[p] && wait_q[p] == '0;
    assign rid[p] = rid_q[p];
    assign rlast[p] = left_q[p] == '0;
    assign rdata[p] = read_at_q[p] < 58'(Words) ? mem[read_at_q[p][$clog2(Words)-1:0]] : '0;
    assign rresp[p] = read_at_q[p] < 58'(Words) ? 2'b00 : SlaveError;
    assign awready[p] = !writing_q[p] && !answer_q[p];
    assign wready[p] = writing_q[p];
    assign bvalid[p] = answer_q[p];
    assign bid[p] = bid_q[p];
    assign bresp[p] = outside_q[p] ? SlaveError : 2'b00;
  end

  always_ff @(posedge aclk) begin
    if (!aresetn) begin
      reading_q <= '0;
      writing_q <= '0;
      answer_q <= '0;
    end else begin
      for (int unsigned p = 0; p < Ports; p++) begin
        if (arvalid[p] && arready[p]) begin
          reading_q[p] <= 1'b1;
          wait_q[p] <= 4'(Latency - 1);
          read_at_q[p] <= araddr[p][63:6];
          left_q[p] <= arlen[p];
          rid_q[p] <= arid[p];
        end else if (reading_q[p] && wait_q[p] != '0) begin
          wait_q[p] <= wait_q[p] - 4'd1;
        end else if (rvalid[p] && rready[p]) begin
          read_at_q[p] <= read_at_q[p] + 58'd1;
          left_q[p] <= left_q[p] - 8'd1;
          if (rlast[p]) reading_q[p] <= 1'b0;
        end
        if (awvalid[p] && awready[p]) begin
          writing_q[p] <= 1'b1;
          write_at_q[p] <= awaddr[p][63:6];
          bid_q[p] <= awid[p];
          outside_q[p] <= 1'b0;
        end else if (wvalid[p] && wready[p]) begin
          if (write_at_q[p] >= 58'(Words)) outside_q[p] <= 1'b1;
          write_at_q[p] <= write_at_q[p] + 58'd1;
          writing_q[p] <= !wlast[p];
          answer_q[p] <= wlast[p];
        end else if (bvalid[p] && bready[p]) begin
          answer_q[p] <= 1'b0;
        end
      end
    end
  end

  always_ff @(posedge aclk) begin
    for (int unsigned p = 0; p < Ports; p++) begin
      for (int unsigned b = 0; b < 64; b++) begin
        if (wvalid[p] && wready[p] && wstrb[p][b] && write_at_q[p] < 58'(Words)) begin
          mem[write_at_q[p][$clog2(Words)-1:0]][8*b+:8] <= wdata[p][8*b+:8];
        end
      end
    end
  end

endmodule
