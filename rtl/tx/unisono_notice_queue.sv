// A queue of numbers in which each number stands at most once.
//
// Whoever has something to say about entry i pushes i. If i is still waiting, nothing is added: the
// one notice stands for all that came before it was taken. So the queue never overflows, a push is
// never refused, and after every push of i a notice of i leaves the queue.
//
// Latency: 3 cycles. Throughput: one push and one pop per cycle. After a reset Entries cycles pass
// in which nothing may be pushed (ready_o is low).

module unisono_notice_queue #(
  parameter int unsigned Entries = 1024,

  localparam int unsigned Bits = $clog2(Entries)
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  output logic            ready_o,

  input  logic            push_i,
  input  logic [Bits-1:0] push_number_i,

  output logic            out_valid_o,
  input  logic            out_ready_i,
  output logic [Bits-1:0] out_number_o
);

  if (Entries < 2 || 2 ** Bits != Entries) begin : gen_bad_entries
    $error("unisono_notice_queue: Entries must be a power of two, at least 2");
  end

  logic            clearing_q;
  logic [Bits-1:0] clear_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q    <= '0;
    end else if (clearing_q) begin
      clear_q    <= clear_q + 1'b1;
      clearing_q <= clear_q != '1;
    end
  end

  assign ready_o = !clearing_q;

  // A number waits if its two bits differ: the one is turned by pushes, the other follows at pops,
  // so each memory has one writer.
  (* ram_style = "distributed" *) logic pushed [Entries];
  (* ram_style = "distributed" *) logic popped [Entries];

  (* ram_style = "block" *) logic [Bits-1:0] queue [Entries];

  logic [Bits:0]   head_q, tail_q;     // one bit more than an address: full and empty differ
  logic            read_valid_q;       // queue_q is the oldest number
  logic [Bits-1:0] queue_q;
  logic            pop, add, waits;

  // The number in queue_q still waits until the output takes it.
  logic            out_valid_q;
  logic [Bits-1:0] out_q;
  logic            out_free;
  assign out_free = !out_valid_q || out_ready_i;
  assign pop      = read_valid_q && out_free;

  assign waits = pushed[push_number_i] != popped[push_number_i];
  // A number that moves to the output in this cycle counts as waiting: its notice is yet to leave.
  assign add   = push_i && !waits;

  always_ff @(posedge clk_i) begin
    if (clearing_q) begin
      pushed[clear_q] <= 1'b0;
    end else if (add) begin
      pushed[push_number_i] <= !pushed[push_number_i];
    end
    if (clearing_q) begin
      popped[clear_q] <= 1'b0;
    end else if (pop) begin
      popped[queue_q] <= pushed[queue_q];
    end
  end

  logic read;
  assign read = head_q != tail_q && (!read_valid_q || pop);

  always_ff @(posedge clk_i) begin
    if (add) queue[tail_q[Bits-1:0]] <= push_number_i;
    if (read) queue_q <= queue[head_q[Bits-1:0]];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q       <= '0;
      tail_q       <= '0;
      read_valid_q <= 1'b0;
      out_valid_q  <= 1'b0;
    end else begin
      if (add) tail_q <= tail_q + 1'b1;
      if (read) head_q <= head_q + 1'b1;
      read_valid_q <= read || (read_valid_q && !pop);
      if (out_free) out_valid_q <= read_valid_q;
    end
    if (out_free) out_q <= queue_q;
  end

  assign out_valid_o  = out_valid_q;
  assign out_number_o = out_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && push_i) begin
      assert (ready_o)
      else $error("unisono_notice_queue: a push while the queue is being cleared");
    end
    if (rst_ni) begin
      assert (tail_q - head_q <= (Bits + 1)'(Entries))
      else $error("unisono_notice_queue: more numbers than there are");
    end
  end
  unisono_handshake_check #(
    .Width($bits(out_number_o))
  ) u_check_out (
    .clk_i,
    .rst_ni,
    .valid_i(out_valid_o),
    .ready_i(out_ready_i),
    .data_i (out_number_o)
  );
`endif

endmodule
