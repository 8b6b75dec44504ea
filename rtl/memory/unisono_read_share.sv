// Two users of one reader of memory: each gets the words of its own commands.
//
// Commands of user 1 go first, for they are few. A word waits for the user whose command it answers, so each must take
// its words whatever the other does.
//
// Latency: none. Throughput: the reader's; at most Depth commands are under way.

module unisono_read_share
  import unisono_cclo_pkg::*;
#(
  parameter int unsigned Depth = 16
) (
  input  logic clk_i,
  input  logic rst_ni,

  input  logic           command0_valid_i,
  output logic           command0_ready_o,
  input  address_t       command0_address_i,
  input  segment_bytes_t command0_bytes_i,
  output logic           out0_valid_o,
  input  logic           out0_ready_i,

  input  logic           command1_valid_i,
  output logic           command1_ready_o,
  input  address_t       command1_address_i,
  input  segment_bytes_t command1_bytes_i,
  output logic           out1_valid_o,
  input  logic           out1_ready_i,

  // The reader; its words go to both, and are valid for one.
  output logic           read_command_valid_o,
  input  logic           read_command_ready_i,
  output address_t       read_command_address_o,
  output segment_bytes_t read_command_bytes_o,
  input  logic           read_valid_i,
  output logic           read_ready_o,
  input  logic           read_last_i
);

  logic room, owed, user;
  assign read_command_valid_o = (command0_valid_i || command1_valid_i) && room;
  assign read_command_address_o = command1_valid_i ? command1_address_i : command0_address_i;
  assign read_command_bytes_o = command1_valid_i ? command1_bytes_i : command0_bytes_i;
  assign command0_ready_o = read_command_ready_i && room && !command1_valid_i;
  assign command1_ready_o = read_command_ready_i && room;

  logic [$clog2(Depth+1)-1:0] unused_count;
  unisono_fifo #(.Width(1), .Depth(Depth)) u_users (
    .clk_i, .rst_ni, .in_valid_i(read_command_valid_o && read_command_ready_i), .in_ready_o(room), .in_data_i(command1_valid_i),
    .out_valid_o(owed), .out_ready_i(read_valid_i && read_ready_o && read_last_i), .out_data_o(user),
    .count_o(unused_count)
  );
  logic unused;
  assign unused = ^unused_count;

  assign out0_valid_o = owed && read_valid_i && !user;
  assign out1_valid_o = owed && read_valid_i && user;
  assign read_ready_o = owed && (user ? out1_ready_i : out0_ready_i);

endmodule
