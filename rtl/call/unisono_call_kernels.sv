// Calls that a kernel of the user carries out: starts kernels and waits until they are done.
//
// Each kernel has one such call at a time, outside the active slots, so that a kernel which waits for a
// collective of its own cannot keep that from starting. A kernel that was started and whose call has
// failed is waited for, without a call, before it is started again; its `done` is then dropped. A `done`
// that no call awaits is counted, up to 255, for calls that await it later.
// Latency: start to `kernel_start` 2 cycles; `done` to `end` 2 cycles. One end in 2 cycles.

module unisono_call_kernels #(
  parameter int unsigned KernelPorts = 1
) (
  input  logic                                     clk_i,
  input  logic                                     rst_ni,

  output logic [KernelPorts-1:0]                   free_o,
  input  logic [KernelPorts-1:0]                   start_i,
  input  unisono_call_pkg::call_start_t            start_call_i,

  // To each kernel: {tag, call id} of the call that starts it.
  output logic [KernelPorts-1:0]                   kernel_start_valid_o,
  input  logic [KernelPorts-1:0]                   kernel_start_ready_i,
  output logic [KernelPorts-1:0][63:0]             kernel_start_data_o,
  // From each kernel, always taken: it is done, with an error code or 0.
  input  logic [KernelPorts-1:0]                   kernel_done_valid_i,
  input  logic [KernelPorts-1:0][15:0]             kernel_done_code_i,

  output logic                                     deadline_set_o,
  output logic [KernelPorts-1:0]                   deadline_kernel_o,
  output logic [31:0]                              deadline_us_o,
  output logic [KernelPorts-1:0]                   deadline_stop_o,
  input  logic [KernelPorts-1:0]                   deadline_expired_i,

  output logic                                     end_valid_o,
  input  logic                                     end_ready_i,
  output unisono_call_pkg::call_end_t              end_o
);

  import unisono_spec_pkg::*;
  import unisono_call_pkg::*;

  typedef enum logic [1:0] {
    StIdle,
    StStart,       // waits until the kernel takes the start
    StAwait,       // waits until it is done
    StEnd          // waits until its end is taken
  } state_e;

  localparam int unsigned CountWidth = 8;
  localparam int unsigned KernelWidth = KernelPorts > 1 ? $clog2(KernelPorts) : 1;

  logic [KernelPorts-1:0]      ends, taken;
  call_end_t [KernelPorts-1:0] end_of;

  assign deadline_set_o    = start_i != '0;
  assign deadline_kernel_o = start_i;
  assign deadline_us_o     = start_call_i.deadline_us;

  for (genvar k = 0; k < int'(KernelPorts); k++) begin : gen_kernels
    state_e                state_q;
    call_start_t           call_q;
    call_code_t            code_q;
    // A start on offer, which stays there until the kernel takes it, even if its call has failed.
    logic                  offer_q, orphan_q, orphan_run_q;
    logic [63:0]           offer_data_q;
    // The next `done` is that of a call that has failed.
    logic                  lost_q;
    logic [CountWidth-1:0] count_q;
    call_code_t            kept_code_q;   // of the first counted `done` that had one
    call_code_t            done_code;
    logic                  accepted, counted, uses, spare, run;

    // A code that does not fit is none of ours.
    assign done_code = kernel_done_code_i[k][15:8] != '0 ? call_code_t'(ErrorCodeInternal)
                                                         : kernel_done_code_i[k][7:0];

    assign free_o[k]               = state_q == StIdle;
    assign kernel_start_valid_o[k] = offer_q;
    assign kernel_start_data_o[k]  = offer_data_q;
    assign ends[k]                 = state_q == StEnd;
    assign end_of[k]               = '{entry: call_q.entry, code: code_q};
    assign deadline_stop_o[k]      = taken[k];

    logic unused;
    assign unused = |{call_q.deadline_us, call_q.src_stream, call_q.dst_stream, call_q.src_port, call_q.dst_port};

    assign run      = call_q.mode == NopRun[1:0];
    assign accepted = offer_q && kernel_start_ready_i[k];
    assign spare    = kernel_done_valid_i[k] && !lost_q;
    assign uses     = state_q == StAwait && !run && count_q != '0;
    assign counted  = spare && (state_q != StAwait || uses);

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        state_q     <= StIdle;
        offer_q     <= 1'b0;
        orphan_q    <= 1'b0;
        lost_q      <= 1'b0;
        count_q     <= '0;
        kept_code_q <= '0;
      end else begin
        if (counted && !uses && count_q != '1) begin
          count_q <= count_q + CountWidth'(1);
        end else if (uses && !counted) begin
          count_q <= count_q - CountWidth'(1);
        end
        if (counted && (uses || kept_code_q == '0)) begin
          kept_code_q <= done_code;
        end else if (uses) begin
          kept_code_q <= '0;
        end
        if (kernel_done_valid_i[k]) begin
          lost_q <= 1'b0;
        end
        if (accepted) begin
          offer_q  <= 1'b0;
          orphan_q <= 1'b0;
          if (orphan_q && orphan_run_q) begin
            lost_q <= 1'b1;
          end
        end
        unique case (state_q)
          StIdle: begin
            if (start_i[k]) begin
              state_q <= start_call_i.mode == NopAwait[1:0] ? StAwait : StStart;
            end
          end
          // The start before it must have been taken, and what was lost be done.
          StStart: begin
            if (accepted && !orphan_q) begin
              state_q <= run ? StAwait : StEnd;
            end else if (deadline_expired_i[k]) begin
              state_q  <= StEnd;
              orphan_q <= offer_q && !accepted;
              if (!orphan_q) begin
                orphan_run_q <= run;
              end
            end else if (!offer_q && !lost_q) begin
              offer_q <= 1'b1;
            end
          end
          StAwait: begin
            if (uses || spare) begin
              state_q <= StEnd;
            end else if (deadline_expired_i[k]) begin
              state_q <= StEnd;
              lost_q  <= run || lost_q;
            end
          end
          default: begin
            if (taken[k]) begin
              state_q <= StIdle;
            end
          end
        endcase
      end
      if (state_q == StStart && !offer_q) begin
        offer_data_q <= {call_q.tag, call_q.call_id};
      end
      if (state_q == StIdle) begin
        call_q <= start_call_i;
        code_q <= '0;
      end else if (uses) begin
        code_q <= kept_code_q;
      end else if (state_q == StAwait && spare) begin
        code_q <= done_code;
      end else if (deadline_expired_i[k] && (state_q == StAwait
                || (state_q == StStart && !(accepted && !orphan_q)))) begin
        code_q <= call_code_t'(ErrorCodeTimeout);
      end
    end
  end

  // One end on offer at a time, the lowest first: each is taken within a few cycles.
  logic                   end_valid_q;
  logic [KernelWidth-1:0] end_kernel_q;

  always_ff @(posedge clk_i) begin
    end_valid_q <= rst_ni && (end_valid_q ? !end_ready_i : ends != '0);
    if (!end_valid_q) begin
      for (int k = int'(KernelPorts) - 1; k >= 0; k--) begin
        if (ends[k]) begin
          end_kernel_q <= KernelWidth'(k);
        end
      end
    end
  end

  assign end_valid_o = end_valid_q;
  assign end_o       = end_of[end_kernel_q];
  always_comb begin
    taken = '0;
    taken[end_kernel_q] = end_valid_q && end_ready_i;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((start_i & ~free_o) == '0) else $error("%m: start of a kernel that is not free");
      assert (!end_valid_q || ends[end_kernel_q]) else $error("%m: end without a call");
    end
  end
`endif

endmodule
