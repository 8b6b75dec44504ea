// Executes an instruction in the same cycle as those before it: one that takes a cycle, of scalars or of where the
// function goes on.
//
// It goes along in the last cycle of the first one, if it reads nothing that those before it in the cycle write, or that
// lands in this cycle, and writes another scalar. A branch may read what a comparison before it says. It never goes
// along where it would be stopped: then it goes by itself in the next cycle.
//
// Combinational: who has it writes what it says. Throughput: an instruction per cycle.
module unisono_handler_second
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned Before = 1  // instructions before it in the cycle
) (
  input  instruction_t         word_i,
  input  before_t [Before-1:0] before_i,
  input  logic                 room_i,  // it is the next one, and in the budget
  input  logic                 looped_i,  // the counter of a loop is used already
  input  logic                 land_i,  // a scalar lands
  input  logic [5:0]           land_to_i,
  input  cell_t [2:0]          scalars_i,  // of select rc, of others rd; rb; ra
  input  logic [31:0]          loop_i,
  input  infos_t               info_i,

  output logic                 free_o,  // it waits for nothing
  output logic                 fits_o,  // and goes along
  // If it goes along.
  output before_t              said_o,
  output cell_t                data_o,
  output logic                 jumps_o,  // to its number
  output logic                 loops_o,  // uses the counter of a loop
  output logic                 loop_write_o,
  output logic [31:0]          loop_data_o
);

  cell_t sa, sb, b;
  assign {sb, sa} = scalars_i[1:0];
  always_comb begin
    b = sb;
    if (word_i.immediate || word_i.op == OpSet || word_i.op == OpSetHigh) b = {{32{word_i.imm[31]}}, word_i.imm};
    if (word_i.op == OpInfo) b = word_i.imm[2:0] < 3'd6 ? 64'(info_i[word_i.imm[2:0]]) : '0;
  end
  unisono_handler_alu u_alu (
    .op_i     (word_i.op),
    .element_i(word_i.element),
    .aux_i    (word_i.aux),
    .a_i      (sa),
    .b_i      (b),
    .c_i      (scalars_i[2]),
    .result_o (data_o)
  );

  // What it reads is there; a branch's condition also where it is a comparison's.
  logic flows, waits, zero;
  assign flows = work_of(word_i.op, word_i.element) == WorkFlow && word_i.op != OpEnd;
  always_comb begin
    zero = sa == '0;
    waits = land_i && reads(word_i, 1'b0, land_to_i);
    for (int unsigned i = 0; i < Before; i++) begin
      if (before_i[i].writes && reads(word_i, 1'b0, before_i[i].to)) begin
        if (flows && before_i[i].compares) zero = !before_i[i].true_;
        else waits = 1'b1;
      end
      if (before_i[i].writes && op_writes(word_i) && word_i.rd[5:0] == before_i[i].to) waits = 1'b1;
    end
  end

  logic again, goes, kind;
  assign again = word_i.op == OpAgain;
  assign goes = word_i.aux[1] || zero == word_i.aux[0];
  assign kind = flows || (work_of(word_i.op, word_i.element) == WorkAlu && !word_i.vector_ && word_i.op != OpNone);
  assign free_o = room_i && !waits;
  assign fits_o = free_o && kind && !(loops_o && looped_i) && !(again && goes && loop_i == '0);
  assign said_o = '{!flows && !word_i.vector_, word_i.rd[5:0], compares(word_i), data_o[0]};
  assign jumps_o = word_i.op == OpJump || ((word_i.op == OpBranch || again) && goes);
  assign loops_o = word_i.op == OpEnter || again;
  assign loop_write_o = word_i.op == OpEnter || (again && goes);
  assign loop_data_o = word_i.op == OpEnter ? word_i.imm : loop_i - 32'd1;

endmodule
