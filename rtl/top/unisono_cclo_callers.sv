// Who gives calls besides the host: kernels, and behind them, where there are stream ports, what receives messages to
// them. That one is no kernel: a call that starts one of its number ends at once.
//
// Latency, throughput: none of its own for kernels; see unisono_port_receiver.

module unisono_cclo_callers
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_call_pkg::call_response_t;
#(
  parameter int unsigned DataBytes = 64,
  parameter int unsigned KernelPorts = 1,
  parameter int unsigned StreamPorts = 0,
  localparam int unsigned Callers = StreamPorts > 0 ? KernelPorts + 1 : KernelPorts
) (
  // Without stream ports nothing here has a clock, or hears what comes.
  // verilator lint_off UNUSEDSIGNAL
  input  logic                                    clk_i,
  input  logic                                    rst_ni,

  // A header is handed over in this cycle; a communicator begins anew.
  input  logic                                    heard_valid_i,
  input  received_t                               heard_i,
  input  logic                                    begins_valid_i,
  input  communicator_t                           begins_communicator_i,
  // verilator lint_on UNUSEDSIGNAL

  // Kernels; see unisono_call_front.
  input  logic [KernelPorts-1:0]                  call_valid_i, call_last_i,
  output logic [KernelPorts-1:0]                  call_ready_o,
  input  logic [KernelPorts-1:0][DataBytes*8-1:0] call_data_i,
  input  logic [KernelPorts-1:0][DataBytes-1:0]   call_keep_i,
  output logic [KernelPorts-1:0]                  answer_valid_o,
  input  logic [KernelPorts-1:0]                  answer_ready_i,
  output call_response_t [KernelPorts-1:0]        answer_data_o,
  output logic [KernelPorts-1:0]                  start_valid_o,
  input  logic [KernelPorts-1:0]                  start_ready_i,
  output logic [KernelPorts-1:0][63:0]            start_data_o,
  input  logic [KernelPorts-1:0]                  done_valid_i,
  input  logic [KernelPorts-1:0][15:0]            done_code_i,

  // All of them.
  output logic [Callers-1:0]                      all_valid_o, all_last_o,
  input  logic [Callers-1:0]                      all_ready_i,
  output logic [Callers-1:0][DataBytes*8-1:0]     all_data_o,
  output logic [Callers-1:0][DataBytes-1:0]       all_keep_o,
  input  logic [Callers-1:0]                      all_answer_valid_i,
  output logic [Callers-1:0]                      all_answer_ready_o,
  input  call_response_t [Callers-1:0]            all_answer_data_i,
  input  logic [Callers-1:0]                      all_start_valid_i,
  output logic [Callers-1:0]                      all_start_ready_o,
  // What is to be started there counts for kernels alone.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [Callers-1:0][63:0]                all_start_data_i,
  // verilator lint_on UNUSEDSIGNAL
  output logic [Callers-1:0]                      all_done_valid_o,
  output logic [Callers-1:0][15:0]                all_done_code_o
);

  assign all_valid_o[KernelPorts-1:0] = call_valid_i;
  assign all_last_o[KernelPorts-1:0] = call_last_i;
  assign all_data_o[KernelPorts-1:0] = call_data_i;
  assign all_keep_o[KernelPorts-1:0] = call_keep_i;
  assign all_answer_ready_o[KernelPorts-1:0] = answer_ready_i;
  assign all_start_ready_o[KernelPorts-1:0] = start_ready_i;
  assign all_done_valid_o[KernelPorts-1:0] = done_valid_i;
  assign all_done_code_o[KernelPorts-1:0] = done_code_i;
  assign call_ready_o = all_ready_i[KernelPorts-1:0];
  assign answer_valid_o = all_answer_valid_i[KernelPorts-1:0];
  assign answer_data_o = all_answer_data_i[KernelPorts-1:0];
  assign start_valid_o = all_start_valid_i[KernelPorts-1:0];
  assign start_data_o = all_start_data_i[KernelPorts-1:0];

  if (StreamPorts > 0) begin : gen_port_receiver
    unisono_port_receiver #(
      .StreamPorts(StreamPorts), .DataBytes(DataBytes), .Depth(unisono_dmp_pkg::Buffers + 32)
    ) u_port_receiver (
      .clk_i, .rst_ni, .heard_valid_i, .heard_i, .begins_valid_i, .begins_communicator_i,
      .call_valid_o(all_valid_o[KernelPorts]), .call_ready_i(all_ready_i[KernelPorts]),
      .call_data_o(all_data_o[KernelPorts]), .call_last_o(all_last_o[KernelPorts]),
      .answer_valid_i(all_answer_valid_i[KernelPorts]), .answer_i(all_answer_data_i[KernelPorts])
    );
    assign all_keep_o[KernelPorts] = '1;
    assign all_answer_ready_o[KernelPorts] = 1'b1;

    localparam error_code_e NoKernel = ErrorCodeInvalidArgument;
    logic asked_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) asked_q <= 1'b0;
      else asked_q <= all_start_valid_i[KernelPorts] && !asked_q;
    end
    assign all_start_ready_o[KernelPorts] = !asked_q;
    assign all_done_valid_o[KernelPorts] = asked_q;
    assign all_done_code_o[KernelPorts] = NoKernel;
  end

endmodule
