// First-in first-out queue of words of any width between two valid/ready channels.
//
// Holds exactly Depth words. Up to 64 words lie in LUTRAM, more in block RAM (BlockRam chooses
// otherwise); both have a registered output.
// Latency: 1 cycle with LUTRAM (a word that finds the queue empty goes straight to the output
// register), 3 with block RAM. Throughput: 1 word per cycle.
// in_ready_o comes from a register: a full queue refuses a word even in a cycle in which one
// leaves, and takes one in the next. Depth is at least 2, or 4 with block RAM.

module unisono_fifo #(
  parameter int unsigned Width      = 64,
  parameter int unsigned Depth      = 32,
  parameter bit          BlockRam   = Depth > 64,
  localparam int unsigned CountBits = $clog2(Depth + 1)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 in_valid_i,
  output logic                 in_ready_o,
  input  logic [Width-1:0]     in_data_i,

  output logic                 out_valid_o,
  input  logic                 out_ready_i,
  output logic [Width-1:0]     out_data_o,

  // Words inside, including the one on offer.
  output logic [CountBits-1:0] count_o
);

  // A word spends Latency cycles inside; with fewer cells than that plus one, some would wait.
  if (Depth < (BlockRam ? 4 : 2)) begin : gen_bad_depth
    $error("unisono_fifo: Depth must be at least 2, or 4 with block RAM");
  end

  localparam int unsigned AddressBits = $clog2(Depth);
  localparam logic [AddressBits-1:0] LastAddress = AddressBits'(Depth - 1);

  logic push, pop;
  assign push = in_valid_i && in_ready_o;
  assign pop  = out_valid_o && out_ready_i;

  // All words inside, and whether there is room for another.
  logic [CountBits-1:0] count_d, count_q;
  logic                 ready_q;

  always_comb begin
    count_d = count_q;
    if (push && !pop) begin
      count_d = count_q + CountBits'(1);
    end else if (!push && pop) begin
      count_d = count_q - CountBits'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
      ready_q <= 1'b1;
    end else begin
      count_q <= count_d;
      // Invariant: ready_q tells that count_q is not Depth. A word that leaves always makes room, and
      // is what comes latest.
      ready_q <= pop || (push ? count_q != CountBits'(Depth - 1) : ready_q);
    end
  end

  assign in_ready_o = ready_q;
  assign count_o    = count_q;

  // The words in the memory, which are those not yet in a register on their way out.
  logic [AddressBits-1:0] wr_addr_q, rd_addr_q;
  logic [CountBits-1:0]   stored_q;
  logic                   store, fetch, avail_q;

  function automatic logic [AddressBits-1:0] next(input logic [AddressBits-1:0] address);
    return address == LastAddress ? '0 : address + AddressBits'(1);
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_addr_q <= '0;
      rd_addr_q <= '0;
      stored_q  <= '0;
      avail_q   <= 1'b0;
    end else begin
      if (store) begin
        wr_addr_q <= next(wr_addr_q);
      end
      if (fetch) begin
        rd_addr_q <= next(rd_addr_q);
      end
      if (store && !fetch) begin
        stored_q <= stored_q + CountBits'(1);
        avail_q  <= 1'b1;
      end else if (!store && fetch) begin
        stored_q <= stored_q - CountBits'(1);
        avail_q  <= stored_q != CountBits'(1);
      end
    end
  end

  if (BlockRam) begin : gen_block
    assign store = push;

    unisono_ram_reader #(
      .Width   (Width),
      .Depth   (Depth),
      .BlockRam(1'b1)
    ) u_reader (
      .clk_i,
      .rst_ni,
      .wr_en_i    (store),
      .wr_addr_i  (wr_addr_q),
      .wr_data_i  (in_data_i),
      .avail_i    (avail_q),
      .rd_addr_i  (rd_addr_q),
      .fetch_o    (fetch),
      .out_valid_o,
      .out_ready_i,
      .out_data_o
    );
  end else begin : gen_lutram
    (* ram_style = "distributed" *) logic [Width-1:0] mem [Depth];
    logic [Width-1:0] out_data_q;
    logic             out_valid_q, out_free;

    assign out_free = out_ready_i || !out_valid_q;
    assign fetch    = avail_q && out_free;
    // A word passes the memory when that is empty and the output register takes it at once.
    assign store    = push && (avail_q || !out_free);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        out_valid_q <= 1'b0;
      end else if (out_free) begin
        out_valid_q <= avail_q || push;
      end
    end

    always_ff @(posedge clk_i) begin
      if (store) begin
        mem[wr_addr_q] <= in_data_i;
      end
    end

    always_ff @(posedge clk_i) begin
      if (out_free) begin
        out_data_q <= avail_q ? mem[rd_addr_q] : in_data_i;
      end
    end

    assign out_valid_o = out_valid_q;
    assign out_data_o  = out_data_q;
  end

`ifndef SYNTHESIS
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_in (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i (in_data_i)
  );
  unisono_handshake_check #(
    .Width(Width)
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_data_o)
  );
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (32'(count_q) <= Depth) else $error("%m: more words than Depth");
      assert (ready_q == (32'(count_q) != Depth)) else $error("%m: ready disagrees with the count");
      assert (stored_q <= count_q) else $error("%m: more words stored than inside");
      assert (avail_q == (stored_q != '0)) else $error("%m: avail disagrees with the count");
    end
  end
`endif

endmodule
