// Which command is next: control's before those of the data sources, which take turns.
//
// Latency: none. Throughput: a command per cycle.

module unisono_tx_choice
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned Sources = 2,              // of data
  localparam int unsigned SourceBits = $clog2(Sources + 1)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic      [Sources-1:0] command_valid_i,
  output logic      [Sources-1:0] command_ready_o,
  input  transmit_t [Sources-1:0] command_transmit_i,
  input  logic                    control_command_valid_i,
  output logic                    control_command_ready_o,
  input  transmit_t               control_command_transmit_i,

  input  logic [1:0]              space_i,         // for a command of control (1), of data (0)
  input  logic                    may_take_i,      // the command that is chosen is taken

  output logic                    chosen_o,
  output logic [SourceBits-1:0]   choice_o,        // Sources: control
  output transmit_t               command_o,
  output logic                    take_o
);

  typedef logic [SourceBits-1:0] source_t;
  localparam source_t Control = source_t'(Sources);

  source_t turn_q;                                 // the data source that has the first choice

  always_comb begin
    choice_o = Control;
    chosen_o = 1'b0;
    if (control_command_valid_i && space_i[1]) begin
      chosen_o = 1'b1;
    end else if (space_i[0]) begin
      // The first that offers, counted from turn_q on: later assignments win.
      for (int s = int'(Sources) - 1; s >= 0; s--) begin
        if (command_valid_i[s] && source_t'(s) < turn_q) begin
          choice_o = source_t'(s);
          chosen_o = 1'b1;
        end
      end
      for (int s = int'(Sources) - 1; s >= 0; s--) begin
        if (command_valid_i[s] && source_t'(s) >= turn_q) begin
          choice_o = source_t'(s);
          chosen_o = 1'b1;
        end
      end
    end
    command_o = control_command_transmit_i;
    for (int s = 0; s < int'(Sources); s++) begin
      if (choice_o == source_t'(s)) command_o = command_transmit_i[s];
    end
    control_command_ready_o = may_take_i && chosen_o && choice_o == Control;
    for (int s = 0; s < int'(Sources); s++) begin
      command_ready_o[s] = may_take_i && chosen_o && choice_o == source_t'(s);
    end
  end

  assign take_o = chosen_o && may_take_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= '0;
    end else if (take_o && choice_o != Control) begin
      turn_q <= choice_o == source_t'(Sources - 1) ? '0 : choice_o + 1'b1;
    end
  end

endmodule
