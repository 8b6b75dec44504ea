// Counts packets, sound ones and those with each fault, and reports faults: behind the one that is offered waits only
// the newest.
//
// Latency: 2 cycles from a fault to its report. Throughput: a packet per cycle, and beside it a payload of a wrong
// length, which goes before it in the report.

module unisono_rx_faults
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             good_i,
  input  logic             refused_i,
  input  fault_e           fault_i,
  input  session_t         session_i,
  input  logic [31:0]      communicator_i,
  input  logic             wrong_i,
  input  session_t         wrong_session_i,

  output logic             fault_valid_o,
  input  logic             fault_ready_i,
  output fault_e           fault_code_o,
  output session_t         fault_session_o,
  output logic [31:0]      fault_communicator_o,

  output logic [31:0]      counter_good_o,
  output logic [9:1][31:0] counter_fault_o
);

  typedef struct packed {
    fault_e      fault;
    session_t    session;
    logic [31:0] communicator;
  } report_t;

  logic    newest_valid_q, report_valid_q;
  report_t newest_q, report_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      counter_good_o  <= '0;
      counter_fault_o <= '0;
      newest_valid_q  <= 1'b0;
      report_valid_q  <= 1'b0;
    end else begin
      if (good_i) counter_good_o <= counter_good_o + 32'd1;
      for (int f = 1; f <= 9; f++) begin
        counter_fault_o[f] <= counter_fault_o[f] + 32'(refused_i && fault_i == fault_e'(f)) +
                              32'(wrong_i && fault_e'(f) == FaultTransport);
      end
      if (wrong_i || refused_i) newest_valid_q <= 1'b1;
      else if (!report_valid_q || fault_ready_i) newest_valid_q <= 1'b0;
      if (!report_valid_q || fault_ready_i) report_valid_q <= newest_valid_q;
    end
    if (wrong_i) newest_q <= '{FaultTransport, wrong_session_i, 32'd0};
    else if (refused_i) newest_q <= '{fault_i, session_i, communicator_i};
    if (!report_valid_q || fault_ready_i) report_q <= newest_q;
  end

  assign fault_valid_o        = report_valid_q;
  assign fault_code_o         = report_q.fault;
  assign fault_session_o      = report_q.session;
  assign fault_communicator_o = report_q.communicator;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) good_or_refused: assert (!(good_i && refused_i));
  end
`endif

endmodule
