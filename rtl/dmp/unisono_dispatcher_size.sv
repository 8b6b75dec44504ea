// How much of a move may go: a segment of what is left, or the segment that has come, within what its peer has granted.
//
// Grants are given in segments, which are multiples of 16, so what is granted are whole elements. What only reads
// memory is cut short where the grant ends; the segment of an arrival, and what several peers get, waits until all of
// it is granted.
//
// Latency: what is left is known one cycle after its run; where that ends, and whether with its message, one cycle
// after Credit, Size or Open; whether there is a grant, one cycle after its pair. Throughput: one look at a time.

module unisono_dispatcher_size
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_look_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  input  step_e          step_i,
  // What is cut, and whether it waits for a grant; other fields are of others.
  // verilator lint_off UNUSEDSIGNAL
  input  run_t           run_i,
  // verilator lint_on UNUSEDSIGNAL
  input  message_bytes_t position_i,
  input  segment_bytes_t segment_bytes_i,      // of what has come for an arrival

  // The run, and where it is, are there in the next cycle.
  input  logic           measures_i,
  input  message_bytes_t next_bytes_i,
  input  segment_bytes_t next_segment_i,
  input  message_bytes_t next_position_i,
  // A segment has come for it.
  input  logic           arrives_i,
  input  segment_bytes_t arrives_bytes_i,
  // Of the move in Decode: what goes on to space from there is one segment.
  input  message_bytes_t issued_bytes_i,
  input  segment_bytes_t issued_segment_i,

  input  logic           granted_i,
  input  logic           parity_i,
  // Its slot and generation are of the job.
  // verilator lint_off UNUSEDSIGNAL
  input  grant_t         grant_i,
  // verilator lint_on UNUSEDSIGNAL

  output size_t          size_o
);

  segment_bytes_t piece_q, own, allowed;
  message_bytes_t end_q, after_q, left, next_end;
  logic last_q, granted_q, parity_q, exceeds, shortens, waits, issued_goes_on;

  assign issued_goes_on = issued_bytes_i > message_bytes_t'(issued_segment_i);
  assign left = next_bytes_i - next_position_i;
  assign next_end = next_position_i + message_bytes_t'(next_segment_i);
  assign own = run_i.arrival ? segment_bytes_i : piece_q;

  assign allowed = segment_bytes_t'(grant_i.limit - position_i);
  assign exceeds = end_q > grant_i.limit;
  assign waits = own == '0 || (exceeds && (run_i.arrival || run_i.fan_out || grant_i.limit <= position_i));
  assign shortens = step_i == StepSize && run_i.send && !run_i.eager && exceeds && !run_i.arrival && !run_i.fan_out;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      piece_q <= '0;
      end_q <= '0;
      after_q <= '0;
      last_q <= 1'b0;
    end else begin
      if (measures_i) begin
        piece_q <= left < message_bytes_t'(next_segment_i) ? segment_bytes_t'(left) : next_segment_i;
        end_q <= next_end > next_bytes_i ? next_bytes_i : next_end;
      end else if (arrives_i) begin
        end_q <= position_i + message_bytes_t'(arrives_bytes_i);
      end
      if (step_i == StepCredit || step_i == StepSize || step_i == StepOpen) begin
        after_q <= shortens ? grant_i.limit : end_q;
        last_q <= shortens ? grant_i.limit == run_i.bytes : end_q == run_i.bytes;
      end else if (step_i == StepDecode) begin
        after_q <= issued_goes_on ? message_bytes_t'(issued_segment_i) : issued_bytes_i;
        last_q <= !issued_goes_on;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    granted_q <= granted_i;
    parity_q <= parity_i;
  end

  assign size_o = '{own: own, sized: shortens ? allowed : own, end_: end_q, after: after_q, last: last_q,
                    granted: granted_q, parity: parity_q, waits: !granted_q || (run_i.bytes != '0 && waits)};

endmodule
