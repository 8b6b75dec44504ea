// What is known of each pair of a call and a peer: one record, which counts only while the call that wrote it is there.
//
// A record carries the epoch of the call that wrote it; with another epoch than the slot's present one it is not known,
// and of it only the generation counts. So a call is forgotten in one cycle. No call has epoch 0. The last epoch of a
// slot is followed by the first; before that, and after a reset, the records must be made void one by one, so that none
// has an epoch that is used again.
//
// The record stays at the output until the next one is read. Epochs stand twice, to be read beside each other: for the
// pair that is under way in the next cycle, with its record, and for the next epoch.
//
// Latency: 1 cycle. Throughput: one record is read and one written per cycle.
// Restrictions: the pair that is read is the one under way in the next cycle. It is not read in the cycle in which it
// is written.

module unisono_rbm_records
  import unisono_cclo_pkg::*;
  import unisono_dmp_pkg::*;
  import unisono_rbm_pkg::*;
#(
  parameter int unsigned EpochWidth = 12
) (
  input  logic clk_i,

  input  pair_t   next_pair_i,                       // under way in the next cycle
  input  logic    read_i,
  input  pair_t   read_pair_i,
  output record_t record_o,
  output logic    known_o,

  input  logic    write_i,
  input  logic    write_void_i,                      // it is not known afterwards
  input  pair_t   write_pair_i,
  input  record_t write_record_i,

  input  logic    forget_i,                          // the call in this slot is no more
  input  slot_t   forget_slot_i,
  output logic    last_o                             // its records must be made void first
);

  if (EpochWidth < 2) begin : gen_bad_epoch_width
    $error("unisono_rbm_records: EpochWidth must be at least 2");
  end

  typedef logic [EpochWidth-1:0] epoch_t;
  (* ram_style = "distributed" *) epoch_t epoch_q [Calls];
  (* ram_style = "distributed" *) epoch_t epoch_next_q [Calls];
  logic [Calls-1:0] epoch_over_q;                    // a slot has the last one
  epoch_t record_epoch, own_epoch_q, next_epoch;

  // A reset is followed by a wipe of all records, so whatever epochs there are may go on.
  initial begin
    for (int s = 0; s < int'(Calls); s++) begin
      epoch_q[s] = epoch_t'(1);
      epoch_next_q[s] = epoch_t'(2);
    end
  end
  initial epoch_over_q = '0;
  assign next_epoch = epoch_next_q[forget_slot_i];
  assign last_o = epoch_over_q[forget_slot_i];
  always_ff @(posedge clk_i) begin
    own_epoch_q <= epoch_q[next_pair_i.slot];
    if (forget_i) epoch_q[forget_slot_i] <= next_epoch;
  end
  always_ff @(posedge clk_i) begin
    if (forget_i) epoch_next_q[forget_slot_i] <= next_epoch == '1 ? epoch_t'(1) : next_epoch + 1'b1;
    if (forget_i) epoch_over_q[forget_slot_i] <= next_epoch == '1;
  end

  unisono_ram_sdp #(.Width(EpochWidth + $bits(record_t)), .Depth(Pairs)) u_records (
    .clk_i, .wr_en_i(write_i), .wr_addr_i(write_pair_i),
    .wr_data_i({write_void_i ? epoch_t'(0) : own_epoch_q, write_record_i}),
    .rd_en_i(read_i), .rd_addr_i(read_pair_i), .rd_out_en_i(1'b1), .rd_data_o({record_epoch, record_o})
  );
  assign known_o = record_epoch == own_epoch_q;

  `ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    assert (!read_i || read_pair_i == next_pair_i) else $error("a record is read of another pair than the next");
    assert (!read_i || !write_i || read_pair_i != write_pair_i) else $error("a record is read that is just written");
  end
  `endif

endmodule
