// What the engine knows of its communicators and their members. Software writes it through a
// register port; the data path looks it up.
//
// Words of the register port (32 bits each):
//   communicator c, word 8 * c + ...
//     0  number              3  segment_bytes
//     1  epoch [15:0]        4  rx_buffers [15:0], kept [30:16], opens [31]
//     2  eager_limit         5  size [15:0], rank [31:16]
//     6  bit 0: valid. Write it last; write 0 before a change.     7  reads 0
//   member r of communicator c, word 1024 + 64 * c + r (Communicators * 8 <= 1024)
//     session [15:0], bit 31: valid
//
// Latency: find 2 cycles, entry 1, peers 1; a register read 2. Throughput: one look-up per port and
// cycle, one register access per cycle. No back-pressure: answers come after their latency. After
// reset no communicator is valid; members are made invalid one per cycle, and reg_ready_o is low
// meanwhile.
// Restrictions: number and epoch of valid communicators differ. Sizes are powers of two.

module unisono_communicators
  import unisono_cclo_pkg::*;
#(
  localparam int unsigned MemberBase = 1024,
  localparam int unsigned RegWidth = 11
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                reg_valid_i,
  output logic                reg_ready_o,
  input  logic                reg_write_i,
  input  logic [RegWidth-1:0] reg_word_i,
  input  logic [31:0]         reg_data_i,
  output logic                reg_valid_o,     // two cycles after a read was taken
  output logic [31:0]         reg_data_o,

  // Which communicator a message is of.
  input  logic                find_valid_i,
  input  logic [31:0]         find_number_i,
  input  logic [15:0]         find_epoch_i,
  output logic                found_valid_o,
  output logic                found_o,
  output communicator_t       found_communicator_o,

  // What is known of a communicator.
  input  communicator_t       entry_communicator_i,
  output logic                entry_valid_o,
  output communicator_entry_t entry_o,

  // How a member is reached: for Tx, and for the check in Rx.
  input  communicator_t       tx_communicator_i,
  input  rank_t               tx_rank_i,
  output peer_entry_t         tx_peer_o,
  input  communicator_t       rx_communicator_i,
  input  rank_t               rx_rank_i,
  output peer_entry_t         rx_peer_o
);

  localparam int unsigned Members = Communicators * Ranks;
  localparam int unsigned MemberWidth = $clog2(Members);
  typedef logic [MemberWidth-1:0] member_t;

  if (Communicators * 8 > MemberBase ||
      MemberBase + Members > (1 << RegWidth)) begin : gen_check_map
    $error("the tables do not fit the register map");
  end

  // -----------------------------------------------------------------------------------------------
  // Register port.

  logic sweeping_q, take, write, of_members, write_communicator, write_member;
  member_t sweep_q, member;
  communicator_t communicator;
  logic [2:0] word;

  assign reg_ready_o = !sweeping_q;
  assign take = reg_valid_i && reg_ready_o;
  assign write = take && reg_write_i;
  assign of_members = reg_word_i[RegWidth-1];
  assign communicator = reg_word_i[3+:CommunicatorWidth];
  assign word = reg_word_i[2:0];
  assign member = reg_word_i[MemberWidth-1:0];
  // Words between the tables do nothing and read 0.
  wire in_communicators = !of_members && reg_word_i[RegWidth-2:3+CommunicatorWidth] == '0;
  assign write_communicator = write && in_communicators;
  assign write_member = write && of_members;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweeping_q <= 1'b1;
      sweep_q <= '0;
    end else if (sweeping_q) begin
      sweeping_q <= sweep_q != '1;
      sweep_q <= sweep_q + 1'b1;
    end
  end

  // -----------------------------------------------------------------------------------------------
  // Communicators: number, epoch and valid are compared all at once, so they are flip-flops; the
  // rest is memory.

  logic [Communicators-1:0][31:0] number_q;
  logic [Communicators-1:0][15:0] epoch_q;
  logic [Communicators-1:0] valid_q;
  (* ram_style = "distributed" *) logic [31:0] eager_limit_q [Communicators];
  (* ram_style = "distributed" *) logic [31:0] segment_bytes_q [Communicators];
  (* ram_style = "distributed" *) logic [31:0] rx_buffers_q [Communicators];
  (* ram_style = "distributed" *) logic [RankWidth:0] size_q [Communicators];
  (* ram_style = "distributed" *) logic [RankWidth:0] members_q [Communicators];
  (* ram_style = "distributed" *) rank_t rank_q [Communicators];

  for (genvar c = 0; c < int'(Communicators); c++) begin : gen_communicator
    wire own = write_communicator && communicator == communicator_t'(c);
    always_ff @(posedge clk_i) begin
      if (own && word == 3'd0) number_q[c] <= reg_data_i;
      if (own && word == 3'd1) epoch_q[c] <= reg_data_i[15:0];
      if (!rst_ni) begin
        valid_q[c] <= 1'b0;
      end else if (own && word == 3'd6) begin
        valid_q[c] <= reg_data_i[0];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (write_communicator && word == 3'd2) eager_limit_q[communicator] <= reg_data_i;
  end
  always_ff @(posedge clk_i) begin
    if (write_communicator && word == 3'd3) segment_bytes_q[communicator] <= reg_data_i;
  end
  always_ff @(posedge clk_i) begin
    if (write_communicator && word == 3'd4) rx_buffers_q[communicator] <= reg_data_i;
  end
  always_ff @(posedge clk_i) begin
    if (write_communicator && word == 3'd5) size_q[communicator] <= reg_data_i[RankWidth:0];
  end
  always_ff @(posedge clk_i) begin
    if (write_communicator && word == 3'd5) members_q[communicator] <= reg_data_i[8+:RankWidth+1];
  end
  always_ff @(posedge clk_i) begin
    if (write_communicator && word == 3'd5) rank_q[communicator] <= reg_data_i[16+:RankWidth];
  end

  always_ff @(posedge clk_i) begin
    entry_valid_o <= rst_ni && valid_q[entry_communicator_i];
    entry_o <= '{
      number: number_q[entry_communicator_i],
      epoch: epoch_q[entry_communicator_i],
      eager_limit: eager_limit_q[entry_communicator_i],
      segment_bytes: segment_bytes_q[entry_communicator_i],
      rx_buffers: rx_buffers_q[entry_communicator_i][15:0],
      opens: rx_buffers_q[entry_communicator_i][31],
      kept: rx_buffers_q[entry_communicator_i][30:16],
      size: size_q[entry_communicator_i],
      members: members_q[entry_communicator_i],
      rank: rank_q[entry_communicator_i]
    };
  end

  // Each comparison has a cycle to itself, the choice the next.
  logic [Communicators-1:0] match_q;
  logic find_valid_q;
  communicator_t match_communicator;
  always_comb begin
    match_communicator = '0;
    for (int c = 0; c < int'(Communicators); c++) begin
      if (match_q[c]) match_communicator |= communicator_t'(c);
    end
  end
  always_ff @(posedge clk_i) begin
    for (int c = 0; c < int'(Communicators); c++) begin
      match_q[c] <= valid_q[c] && number_q[c] == find_number_i && epoch_q[c] == find_epoch_i;
    end
    find_valid_q <= rst_ni && find_valid_i;
    found_valid_o <= rst_ni && find_valid_q;
    found_o <= |match_q;
    found_communicator_o <= match_communicator;
  end

  // -----------------------------------------------------------------------------------------------
  // Members: three copies, one for each reader.

  (* ram_style = "block" *) peer_entry_t tx_member_q [Members];
  (* ram_style = "block" *) peer_entry_t rx_member_q [Members];
  (* ram_style = "block" *) peer_entry_t reg_member_q [Members];
  peer_entry_t tx_read_q, rx_read_q, reg_read_q, member_d;
  member_t member_write;
  wire member_enable = sweeping_q || write_member;
  assign member_write = sweeping_q ? sweep_q : member;
  assign member_d = sweeping_q ? '0 : '{valid: reg_data_i[31], session: reg_data_i[15:0]};

  always_ff @(posedge clk_i) begin
    if (member_enable) tx_member_q[member_write] <= member_d;
    tx_read_q <= tx_member_q[{tx_communicator_i, tx_rank_i}];
  end
  always_ff @(posedge clk_i) begin
    if (member_enable) rx_member_q[member_write] <= member_d;
    rx_read_q <= rx_member_q[{rx_communicator_i, rx_rank_i}];
  end
  always_ff @(posedge clk_i) begin
    if (member_enable) reg_member_q[member_write] <= member_d;
    reg_read_q <= reg_member_q[member];
  end

  // Members of an earlier life of the engine must not be seen while they are swept away.
  logic swept_q;
  always_ff @(posedge clk_i) swept_q <= rst_ni && !sweeping_q;
  assign tx_peer_o = '{valid: tx_read_q.valid && swept_q, session: tx_read_q.session};
  assign rx_peer_o = '{valid: rx_read_q.valid && swept_q, session: rx_read_q.session};

  // -----------------------------------------------------------------------------------------------
  // Register reads.

  logic read_q, read_members_q;
  logic [31:0] read_data_q, read_data_d;
  always_comb begin
    unique case (word)
      3'd0: read_data_d = number_q[communicator];
      3'd1: read_data_d = 32'(epoch_q[communicator]);
      3'd2: read_data_d = eager_limit_q[communicator];
      3'd3: read_data_d = segment_bytes_q[communicator];
      3'd4: read_data_d = rx_buffers_q[communicator];
      3'd5: read_data_d = {16'(rank_q[communicator]), 8'(members_q[communicator]), 8'(size_q[communicator])};
      3'd6: read_data_d = 32'(valid_q[communicator]);
      default: read_data_d = '0;
    endcase
    if (!in_communicators) read_data_d = '0;
  end
  always_ff @(posedge clk_i) begin
    read_q <= rst_ni && take && !reg_write_i;
    read_members_q <= of_members;
    read_data_q <= read_data_d;
    reg_valid_o <= rst_ni && read_q;
    reg_data_o <= read_members_q ? {reg_read_q.valid, 15'd0, reg_read_q.session} : read_data_q;
  end

endmodule
