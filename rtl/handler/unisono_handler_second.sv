// Executes an instruction in the same cycle as the one before it: one that takes a cycle, of scalars or of where the
// function goes on.
//
// It goes along in the first one's last cycle, if it reads nothing that the first one writes, or that lands in this
// cycle, and writes another scalar; never where it would be stopped: then it goes by itself in the next cycle. The
// first one may be any but those that change where the function goes on; a branch that is not taken may be.
//
// Combinational: who has it writes what it says. Throughput: an instruction per cycle.
module unisono_handler_second
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
(
  input  instruction_t first_i,
  input  instruction_t word_i,
  input  logic         taken_i,  // the first one is a branch that is taken
  input  logic         room_i,  // in the budget
  input  logic         land_i,  // a scalar lands
  input  logic [5:0]   land_to_i,
  input  cell_t [3:0]  scalars_i,  // rd, rc, rb, ra
  input  logic [31:0]  loop_i,
  input  infos_t       info_i,

  output logic         fits_o,
  // If it goes along.
  output logic         write_o,
  output cell_t        data_o,
  output logic         jumps_o,  // to its number
  output logic         loop_write_o,
  output logic [31:0]  loop_data_o
);

  cell_t sa, sb, sc, sd, a, b, c;
  assign {sd, sc, sb, sa} = scalars_i;
  assign a = sa;
  always_comb begin
    b = sb;
    if (word_i.immediate || word_i.op == OpSet || word_i.op == OpSetHigh) b = {{32{word_i.imm[31]}}, word_i.imm};
    if (word_i.op == OpInfo) b = word_i.imm[2:0] < 3'd6 ? 64'(info_i[word_i.imm[2:0]]) : '0;
    c = word_i.op == OpSelect ? sc : sd;
  end
  unisono_handler_alu u_alu (
    .op_i     (word_i.op),
    .element_i(word_i.element),
    .aux_i    (word_i.aux),
    .a_i      (a),
    .b_i      (b),
    .c_i      (c),
    .result_o (data_o)
  );

  logic flows, again, goes;
  assign flows = word_i.op == OpJump || word_i.op == OpBranch || word_i.op == OpEnter || word_i.op == OpAgain;
  assign again = word_i.op == OpAgain;
  assign goes = word_i.aux[1] || (sa == '0) == word_i.aux[0];
  assign write_o = !flows;
  assign jumps_o = word_i.op == OpJump || ((word_i.op == OpBranch || again) && goes);
  assign loop_write_o = word_i.op == OpEnter || (again && goes);
  assign loop_data_o = word_i.op == OpEnter ? word_i.imm : loop_i - 32'd1;

  // What the first one writes, if that is a scalar.
  logic [31:0] form;
  logic writes, kind, plain;
  assign form = op_form(first_i.op);
  assign writes = form[0] && !(first_i.vector_ && form[5]);
  assign kind = flows || (work_of(word_i.op, word_i.element) == WorkAlu && !word_i.vector_ && word_i.op != OpNone);
  assign plain = work_of(first_i.op, first_i.element) != WorkFlow || (first_i.op == OpBranch && !taken_i);
  assign fits_o = kind && plain && room_i && !(again && goes && loop_i == '0)
                && !(writes && (reads(word_i, 1'b0, first_i.rd[5:0]) || (write_o && word_i.rd[5:0] == first_i.rd[5:0])))
                && !(land_i && reads(word_i, 1'b0, land_to_i));

  logic unused_first;
  assign unused_first = ^{form[31:6], form[4:1], first_i.ra, first_i.imm, first_i.immediate, first_i.aux,
                          first_i.rd[7:6]};

endmodule
