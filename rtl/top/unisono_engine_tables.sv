// What the engine knows of communicators and members: written by registers, asked by Rx, Tx, the core, and for contexts
// that are loaded; and the memory that the peers of each communicator may reach.
//
// Four questions about peers can be asked at once, so there are two copies of the table of members. Writing 1 to a
// communicator's word 6 makes it begin anew: its credits are set up, and it has no window. Writing 1 to its word 7
// makes its window what is given in that cycle; 0: it has none.
//
// Latency: answers about peers 1 cycle, about entries and windows none. Throughput: a question of each kind per cycle.

// Not every output of a part is needed here.
// verilator lint_off PINCONNECTEMPTY

module unisono_engine_tables
  import unisono_cclo_pkg::*;
  import unisono_core_pkg::*;
#(
  localparam int unsigned RegWidth = 11
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Registers; see unisono_communicators.
  input  logic                reg_valid_i, reg_write_i,
  output logic                reg_ready_o,
  input  logic [RegWidth-1:0] reg_word_i,
  input  logic [31:0]         reg_data_i,
  output logic                reg_valid_o,
  output logic [31:0]         reg_data_o,
  // Of a window's bytes 48 bits count.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [63:0]         window_address_i, window_bytes_i,
  // verilator lint_on UNUSEDSIGNAL

  // A communicator begins anew, with so many buffers of each peer.
  output logic                begins_valid_o,
  input  logic                begins_ready_i,           // no register is written before
  output communicator_t       begins_communicator_o,
  output logic [15:0]         begins_buffers_o,

  // Questions: which communicator a header names, the entry of one; members, one cycle later.
  input  logic                find_valid_i,
  input  logic [31:0]         find_number_i,
  input  logic [15:0]         find_epoch_i,
  output logic                found_o,
  output communicator_t       found_communicator_o,
  input  communicator_t       rx_communicator_i,
  output communicator_entry_t rx_entry_o,
  input  member_t [3:0]       members_i,
  output peer_entry_t [3:0]   peers_o,

  // In the same cycle: entries, and the window of a communicator with its longest segment.
  input  communicator_t       entry_communicator_i [2],
  output communicator_entry_t entry_o [2],
  input  communicator_t       window_communicator_i,
  output binding_t            window_o,
  output segment_bytes_t      window_segment_o
);

  logic [1:0] table_ready;
  logic take, of_communicator;
  communicator_t communicator;
  logic [2:0] word;

  assign reg_ready_o = &table_ready && begins_ready_i;
  assign take = reg_valid_i && reg_ready_o;
  assign communicator = communicator_t'(reg_word_i[3+:CommunicatorWidth]);
  assign word = reg_word_i[2:0];
  assign of_communicator = take && reg_write_i && !reg_word_i[RegWidth-1];
  assign begins_valid_o = of_communicator && word == 3'd6 && reg_data_i[0];
  assign begins_communicator_o = communicator;

  unisono_communicators u_slot_table (
    .clk_i, .rst_ni,
    .reg_valid_i(take), .reg_ready_o(table_ready[0]), .reg_write_i, .reg_word_i, .reg_data_i,
    .reg_valid_o, .reg_data_o,
    .find_valid_i(1'b0), .find_number_i('0), .find_epoch_i('0), .found_valid_o(), .found_o(),
    .found_communicator_o(), .entry_communicator_i('0), .entry_valid_o(), .entry_o(),
    .tx_communicator_i(members_i[0].communicator), .tx_rank_i(members_i[0].peer), .tx_peer_o(peers_o[0]),
    .rx_communicator_i(members_i[1].communicator), .rx_rank_i(members_i[1].peer), .rx_peer_o(peers_o[1])
  );

  unisono_communicators u_rx_table (
    .clk_i, .rst_ni,
    .reg_valid_i(take), .reg_ready_o(table_ready[1]), .reg_write_i, .reg_word_i, .reg_data_i,
    .reg_valid_o(), .reg_data_o(),
    .find_valid_i, .find_number_i, .find_epoch_i, .found_valid_o(), .found_o, .found_communicator_o,
    .entry_communicator_i(rx_communicator_i), .entry_valid_o(), .entry_o(rx_entry_o),
    .tx_communicator_i(members_i[2].communicator), .tx_rank_i(members_i[2].peer), .tx_peer_o(peers_o[2]),
    .rx_communicator_i(members_i[3].communicator), .rx_rank_i(members_i[3].peer), .rx_peer_o(peers_o[3])
  );

  unisono_communicator_entries #(.Ports(2)) u_entries (
    .clk_i, .write_i(of_communicator), .communicator_i(communicator), .word_i(word), .data_i(reg_data_i),
    .asked_i(entry_communicator_i), .entry_o
  );

  // A communicator that becomes valid begins with fresh credits; its buffers were written before.
  logic [15:0] rx_buffers_q [Communicators];
  (* ram_style = "distributed" *) binding_t windows_q [Communicators];
  (* ram_style = "distributed" *) segment_bytes_t window_segments_q [Communicators];
  logic window_write;
  assign window_write = of_communicator && (word == 3'd7 || begins_valid_o);
  always_ff @(posedge clk_i) begin
    if (window_write) begin
      windows_q[communicator] <= '{bytes: begins_valid_o || !reg_data_i[0] ? '0 : window_bytes_i[47:0],
                                   address: window_address_i};
    end
    if (of_communicator && word == 3'd3) window_segments_q[communicator] <= segment_bytes_t'(reg_data_i);
    if (of_communicator && word == 3'd4) rx_buffers_q[communicator] <= reg_data_i[15:0];
  end
  assign begins_buffers_o = rx_buffers_q[communicator];
  assign window_o = windows_q[window_communicator_i];
  assign window_segment_o = window_segments_q[window_communicator_i];

endmodule
