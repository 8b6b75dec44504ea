// Those instructions that go along with the one of the cycle: up to two, each while those before it go on to it.
//
// The first of them may be a take of lanes, if unisono_handler_access has room for it; else each is one that
// unisono_handler_second executes. One instruction of a cycle may use the counter of a loop.
//
// Combinational. Throughput: two instructions per cycle beside the first one.
module unisono_handler_along
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
(
  input  instruction_t [Along:0] words_i,  // the instruction of the cycle, and those behind it
  input  logic                   complete_i,  // it is its last cycle
  input  logic                   goes_i,  // where it branches to
  input  logic                   true_i,  // it compares, and it is so
  input  logic [31:0]            left_i,  // of the budget, with the instruction itself
  input  logic                   land_i,  // a scalar lands
  input  logic [5:0]             land_to_i,
  output logic [Along-1:0][AlongReads-1:0][5:0] reads_o,  // of select rc, of others rd; rb; ra
  input  cell_t [Along-1:0][AlongReads-1:0]     scalars_i,
  input  infos_t                 info_i,

  output logic                   take_free_o,  // a take waits for nothing
  input  logic                   take_fits_i,
  output logic [Along-1:0]       along_o,  // goes along
  output logic [Along-1:0]       writes_o,  // a scalar
  output logic [Along-1:0][5:0]  to_o,
  output cell_t [Along-1:0]      data_o,
  output logic                   jumps_o,  // the last one that goes along, to
  output logic [13:0]            target_o,

  // The counter of the loop that is entered, or gone round, of all the cycle's instructions.
  output logic [5:0]             loop_o,
  input  logic [31:0]            loop_i,
  input  logic                   loop_first_i,  // the first one may change it
  output logic                   loop_write_o,
  output logic [31:0]            loop_data_o
);

  instruction_t word, behind, third;
  work_e work;
  logic loops, goes_on;
  before_t said, said_behind, said_third;
  assign {third, behind, word} = words_i;
  assign work = work_of(word.op, word.element);
  assign loops = word.op == OpEnter || word.op == OpAgain;
  assign goes_on = work != WorkFlow || word.op == OpEnter || ((word.op == OpBranch || word.op == OpAgain) && !goes_i);
  assign said = '{op_writes(word), word.rd[5:0], compares(word), true_i};

  for (genvar i = 0; i < int'(Along); i++) begin : gen_reads
    assign reads_o[i] = {words_i[i+1].op == OpSelect ? words_i[i+1].imm[13:8] : words_i[i+1].rd[5:0],
                         words_i[i+1].imm[5:0], words_i[i+1].ra[5:0]};
  end

  logic behind_fits, behind_jumps, behind_loops, behind_counts;
  logic [31:0] behind_count;
  unisono_handler_second #(
    .Before(1)
  ) u_behind (
    .word_i      (behind),
    .before_i    (said),
    .room_i      (goes_on && left_i != 32'd1),
    .looped_i    (loops),
    .land_i,
    .land_to_i,
    .scalars_i   (scalars_i[0]),
    .loop_i,
    .info_i,
    .free_o      (take_free_o),
    .fits_o      (behind_fits),
    .said_o      (said_behind),
    .data_o      (data_o[0]),
    .jumps_o     (behind_jumps),
    .loops_o     (behind_loops),
    .loop_write_o(behind_counts),
    .loop_data_o (behind_count)
  );

  logic third_free, third_fits, third_jumps, third_loops, third_counts;
  logic [31:0] third_count;
  unisono_handler_second #(
    .Before(2)
  ) u_third (
    .word_i      (third),
    .before_i    ({said_behind, said}),
    .room_i      (!behind_jumps && left_i != 32'd2),
    .looped_i    (loops || behind_loops),
    .land_i,
    .land_to_i,
    .scalars_i   (scalars_i[1]),
    .loop_i,
    .info_i,
    .free_o      (third_free),
    .fits_o      (third_fits),
    .said_o      (said_third),
    .data_o      (data_o[1]),
    .jumps_o     (third_jumps),
    .loops_o     (third_loops),
    .loop_write_o(third_counts),
    .loop_data_o (third_count)
  );
  logic unused_third;
  assign unused_third = ^{third_free, third_loops, said_third};

  logic along, along_third;
  assign along = complete_i && (behind_fits || (take_free_o && take_fits_i));
  assign along_third = along && third_fits;
  assign along_o = {along_third, along};
  assign writes_o = {along_third && said_third.writes, along && said_behind.writes};
  assign to_o = {third.rd[5:0], behind.rd[5:0]};
  assign jumps_o = along_third ? third_jumps : along && behind_jumps;
  assign target_o = behind_jumps ? behind.imm[13:0] : third.imm[13:0];

  assign loop_o = loops ? word.rd[5:0] : behind_loops ? behind.rd[5:0] : third.rd[5:0];
  always_comb begin
    loop_write_o = (along && behind_counts) || (along_third && third_counts);
    loop_data_o = behind_counts ? behind_count : third_count;
    if (loops) begin
      loop_write_o = loop_first_i && (word.op == OpEnter || (goes_i && loop_i != '0));
      loop_data_o = word.op == OpEnter ? word.imm : loop_i - 32'd1;
    end
  end

endmodule
