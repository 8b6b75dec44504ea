// What a switch knows of its communicators: their entries (switch/entry.hpp), written by software word by word, found
// by number and epoch.
//
// Words of the control port (32 bits each), entry e at word 64 * e + ...
//     0  communicator                       4  members below this switch
//     1  epoch [15:0], ports [31:16]        5  up [15:0] (0xffff: none), first port [31:16]
//     2  members                            6  shares
//     3  position of the first below        7  bit 0: valid
//     8 + 2 * i  port i: position of the first member behind it
//     9 + 2 * i  port i: members behind it [30:0], a switch is [31]
// These are the bytes of EntryHead and of its PortEntry, but for word 7, which is reserved there. Software writes 0 to
// word 7 before it changes another word, and 1 when all others are written. An entry with a number that does not fit
// the switch does not become valid, which software sees when it reads word 7.
//
// Latency: find 3 cycles; a read by the control port 2. Throughput: one look-up and one access per cycle. No
// back-pressure. After reset no entry is valid. A look-up in the cycle of a write, and in the two before it, may see
// what is being written; no entry is valid then.
// Restrictions: number and epoch of valid entries differ. Words of an entry that becomes valid have all been written,
// but for those of ports beyond its number.

module unisono_switch_table
  import unisono_switch_pkg::*;
#(
  parameter int unsigned Ports   = MaxPorts,  // 4 to MaxPorts
  parameter int unsigned Entries = 64,        // communicators; a power of two, 2 to 64
  localparam int unsigned EntryWidth = $clog2(Entries),
  localparam int unsigned WordWidth = EntryWidth + 6
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic                    reg_valid_i,
  input  logic                    reg_write_i,
  input  logic [WordWidth-1:0]    reg_word_i,
  input  logic [31:0]             reg_data_i,
  output logic                    reg_valid_o,  // two cycles after a read was taken
  output logic [31:0]             reg_data_o,

  input  logic                    find_valid_i,
  input  logic [31:0]             find_number_i,
  input  logic [15:0]             find_epoch_i,
  output logic                    found_valid_o,
  output logic                    found_o,
  output logic [EntryWidth-1:0]   found_entry_o,
  output entry_head_t             found_head_o,
  output port_entry_t [Ports-1:0] found_ports_o,

  // The fields of an entry, one cycle later.
  input  logic [EntryWidth-1:0]   look_entry_i,
  output entry_head_t             look_head_o,
  output port_entry_t [Ports-1:0] look_ports_o
);

  if (Ports < 4 || Ports > MaxPorts) begin : gen_bad_ports
    $error("unisono_switch_table: Ports must be 4 to %0d", MaxPorts);
  end
  if (Entries < 2 || Entries > 64 || 2 ** EntryWidth != Entries) begin : gen_bad_entries
    $error("unisono_switch_table: Entries must be a power of two, 2 to 64");
  end

  typedef logic [EntryWidth-1:0] entry_t;

  // ------------------------------------------------------------------------------ control port
  logic       write;
  entry_t     entry;
  logic [5:0] word;
  logic       of_port;
  port_t      port;        // of whose entry it is
  logic       fits;        // the number in the word is one that the switch can hold

  assign write = reg_valid_i && reg_write_i;
  assign entry = reg_word_i[6+:EntryWidth];
  assign word  = reg_word_i[5:0];
  assign of_port = word[5:3] != '0;
  assign port  = port_t'((word - 6'd8) >> 1);

  always_comb begin
    fits = 1'b1;
    if (of_port) begin
      if (32'(port) >= Ports) fits = 1'b1;  // a word that nobody reads
      else if (word[0]) fits = reg_data_i[30:0] <= 31'(MaxMembers);
      else fits = reg_data_i < 32'(MaxMembers);
    end else begin
      unique case (word[2:0])
        3'd1: fits = reg_data_i[31:16] <= 16'(Ports);
        3'd2, 3'd4, 3'd6: fits = reg_data_i <= 32'(MaxMembers);
        3'd3: fits = reg_data_i < 32'(MaxMembers);
        3'd5: fits = (reg_data_i[15:0] == '1 || reg_data_i[15:0] < 16'(Ports)) && reg_data_i[31:16] < 16'(Ports);
        default: fits = 1'b1;
      endcase
    end
  end

  // Number, epoch and valid are compared all at once, so they are flip-flops; the rest is memory.
  logic [Entries-1:0][31:0] number_q;
  logic [Entries-1:0][15:0] epoch_q;
  logic [Entries-1:0]       valid_q, unfit_q;

  for (genvar e = 0; e < int'(Entries); e++) begin : gen_entry
    wire own = write && entry == entry_t'(e);
    always_ff @(posedge clk_i) begin
      if (own && word == 6'd0) number_q[e] <= reg_data_i;
      if (own && word == 6'd1) epoch_q[e] <= reg_data_i[15:0];
      if (!rst_ni) begin
        valid_q[e] <= 1'b0;
        unfit_q[e] <= 1'b0;
      end else if (own && word == 6'd7) begin
        valid_q[e] <= reg_data_i[0] && !unfit_q[e];
        unfit_q[e] <= unfit_q[e] && reg_data_i[0];
      end else if (own) begin
        unfit_q[e] <= unfit_q[e] || !fits;
      end
    end
  end

  // What a word holds of the entry's fields; each word has a memory of its own.
  (* ram_style = "distributed" *) port_count_t ports_q [Entries];
  (* ram_style = "distributed" *) count_t members_q [Entries];
  (* ram_style = "distributed" *) place_t first_q [Entries];
  (* ram_style = "distributed" *) count_t count_q [Entries];
  (* ram_style = "distributed" *) logic [2*PortWidth:0] up_q [Entries];
  (* ram_style = "distributed" *) count_t shares_q [Entries];

  always_ff @(posedge clk_i) begin
    if (write && word == 6'd1) ports_q[entry] <= reg_data_i[16+:$bits(port_count_t)];
  end
  always_ff @(posedge clk_i) begin
    if (write && word == 6'd2) members_q[entry] <= count_t'(reg_data_i);
  end
  always_ff @(posedge clk_i) begin
    if (write && word == 6'd3) first_q[entry] <= place_t'(reg_data_i);
  end
  always_ff @(posedge clk_i) begin
    if (write && word == 6'd4) count_q[entry] <= count_t'(reg_data_i);
  end
  always_ff @(posedge clk_i) begin
    if (write && word == 6'd5) begin
      up_q[entry] <= {reg_data_i[16+:PortWidth], reg_data_i[15:0] != '1, reg_data_i[0+:PortWidth]};
    end
  end
  always_ff @(posedge clk_i) begin
    if (write && word == 6'd6) shares_q[entry] <= count_t'(reg_data_i);
  end

  // ------------------------------------------------------------------------------ look-up
  // Each comparison has a cycle to itself, the choice the next, the memories the third.
  logic [Entries-1:0] match_q;
  logic               find1_q, find2_q, found2_q;
  entry_t             match_entry, entry2_q;

  always_comb begin
    match_entry = '0;
    for (int e = 0; e < int'(Entries); e++) begin
      if (match_q[e]) match_entry |= entry_t'(e);
    end
  end

  always_ff @(posedge clk_i) begin
    for (int e = 0; e < int'(Entries); e++) begin
      match_q[e] <= valid_q[e] && number_q[e] == find_number_i && epoch_q[e] == find_epoch_i;
    end
    find1_q       <= rst_ni && find_valid_i;
    find2_q       <= rst_ni && find1_q;
    found_valid_o <= rst_ni && find2_q;
    found2_q      <= |match_q;
    entry2_q      <= match_entry;
    // An entry whose valid bit has fallen meanwhile is being changed.
    found_o       <= found2_q && valid_q[entry2_q];
    found_entry_o <= entry2_q;
    found_head_o.ports   <= ports_q[entry2_q];
    found_head_o.members <= members_q[entry2_q];
    found_head_o.first   <= first_q[entry2_q];
    found_head_o.count   <= count_q[entry2_q];
    found_head_o.shares  <= shares_q[entry2_q];
    {found_head_o.first_port, found_head_o.has_up, found_head_o.up} <= up_q[entry2_q];

    look_head_o.ports   <= ports_q[look_entry_i];
    look_head_o.members <= members_q[look_entry_i];
    look_head_o.first   <= first_q[look_entry_i];
    look_head_o.count   <= count_q[look_entry_i];
    look_head_o.shares  <= shares_q[look_entry_i];
    {look_head_o.first_port, look_head_o.has_up, look_head_o.up} <= up_q[look_entry_i];
  end

  for (genvar p = 0; p < int'(Ports); p++) begin : gen_port
    (* ram_style = "distributed" *) place_t port_first_q [Entries];
    (* ram_style = "distributed" *) logic [PlaceWidth+1:0] port_count_q [Entries];
    always_ff @(posedge clk_i) begin
      if (write && word == 6'(8 + 2 * p)) port_first_q[entry] <= place_t'(reg_data_i);
    end
    always_ff @(posedge clk_i) begin
      if (write && word == 6'(9 + 2 * p)) port_count_q[entry] <= {reg_data_i[31], count_t'(reg_data_i)};
    end
    always_ff @(posedge clk_i) begin
      found_ports_o[p] <= {port_count_q[entry2_q], port_first_q[entry2_q]};
      look_ports_o[p]  <= {port_count_q[look_entry_i], port_first_q[look_entry_i]};
    end
  end

  // ------------------------------------------------------------------------------ reads
  // A copy of what was written, but for valid.
  (* ram_style = "block" *) logic [31:0] word_q [Entries*64];
  logic        read_q, read_valid_word_q, read_valid_q;
  logic [31:0] read_word_q;

  always_ff @(posedge clk_i) begin
    if (write) word_q[reg_word_i] <= reg_data_i;
    read_word_q <= word_q[reg_word_i];
  end
  always_ff @(posedge clk_i) begin
    read_q            <= rst_ni && reg_valid_i && !reg_write_i;
    read_valid_word_q <= word == 6'd7;
    read_valid_q      <= valid_q[entry];
    reg_valid_o       <= rst_ni && read_q;
    reg_data_o        <= read_valid_word_q ? 32'(read_valid_q) : read_word_q;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((match_q & (match_q - 1'b1)) == '0) else $error("%m: two valid entries have one number and epoch");
      assert (!(write && word != 6'd7 && valid_q[entry])) else $error("%m: an entry is changed while it is valid");
    end
  end
`endif

endmodule
