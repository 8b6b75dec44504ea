// What the runs of a switch waited for when they were looked at last: for people, if a call does not come to its end.
//
// Each run has a record for each way, up and down: which call, and ports from which something must come. The control
// notes one whenever it leaves a run that cannot go on, or goes on.
//
// Latency: a read is answered 2 cycles after it. Throughput: one note and one read per cycle.

module unisono_switch_waits
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports = 8,      // 4 to 28
  localparam int unsigned WordWidth = RunWidth + 3
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 open_valid_i,  // the run waits for nothing
  input  run_t                 open_run_i,

  input  logic                 note_valid_i,
  input  way_t                 note_way_i,
  input  logic                 note_waits_i,  // 0: for nothing
  input  logic                 note_takes_i,  // for ports that must take, or else for some that must give
  input  logic [4:0]           note_opcode_i,
  input  logic [31:0]          note_sequence_i,
  input  logic [Ports-1:0]     note_ports_i,

  // Word w of way y at 4 * y + w: 0 sequence; 1 [31] it waits, [5] for ports to take, [4:0] opcode; 2 ports.
  input  logic                 read_valid_i,
  input  logic [WordWidth-1:0] read_word_i,
  output logic                 read_valid_o,
  output logic [31:0]          read_data_o
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_waits: Ports must be 4 to %0d", MaxPorts);
  end

  typedef struct packed {
    logic             takes;
    logic [4:0]       opcode;
    logic [31:0]      sequence_;
    logic [Ports-1:0] ports;
  } record_t;

  (* ram_style = "distributed" *) record_t records_q [Ways];
  logic [Ways-1:0] waits_q;
  record_t         record_q;
  logic            waits_now_q, read_q;
  logic [1:0]      field_q;

  for (genvar w = 0; w < int'(Ways); w++) begin : gen_way
    always_ff @(posedge clk_i) begin
      if (!rst_ni || (open_valid_i && open_run_i == run_t'(w >> 1))) waits_q[w] <= 1'b0;
      else if (note_valid_i && note_way_i == way_t'(w)) waits_q[w] <= note_waits_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (note_valid_i) records_q[note_way_i] <= '{note_takes_i, note_opcode_i, note_sequence_i, note_ports_i};
    record_q    <= records_q[read_word_i[WordWidth-1:2]];
    waits_now_q <= waits_q[read_word_i[WordWidth-1:2]];
    field_q     <= read_word_i[1:0];
    unique case (field_q)
      2'd0:    read_data_o <= record_q.sequence_;
      2'd1:    read_data_o <= {waits_now_q, 25'd0, record_q.takes, record_q.opcode};
      2'd2:    read_data_o <= 32'(record_q.ports);
      default: read_data_o <= '0;
    endcase
    read_q       <= rst_ni && read_valid_i;
    read_valid_o <= rst_ni && read_q;
  end

endmodule
