// A memory whose entries are read, changed and written back, one per cycle, and watched by a second
// reader. Both see every earlier change, however close it came.
//
// Cycle 0: address. Cycle 2: value, and in the same cycle the new value is given, which is written.
// Values shown in a cycle hold all changes of earlier cycles and none of the same or later ones.
// Throughput: one change and one look per cycle. After a reset every entry is written with zero,
// one per cycle; ready_o is low meanwhile, and update_valid_i must be.
//
// The memory is a simple dual-port block RAM, two with the observer.

module unisono_update_ram #(
  parameter int unsigned Entries  = 1024,
  parameter int unsigned Width    = 16,
  // 0: there is no second reader, and observe_data_o is zero.
  parameter bit          Observer = 1'b1,

  localparam int unsigned AddressBits = $clog2(Entries)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  output logic                   ready_o,

  input  logic                   update_valid_i,
  input  logic [AddressBits-1:0] update_address_i,
  output logic                   update_valid_o,
  output logic [Width-1:0]       update_data_o,
  input  logic [Width-1:0]       update_next_i,

  input  logic [AddressBits-1:0] observe_address_i,
  output logic [Width-1:0]       observe_data_o
);

  if (Entries < 2 || 2 ** AddressBits != Entries) begin : gen_bad_entries
    $error("unisono_update_ram: Entries must be a power of two, at least 2");
  end

  // ------------------------------------------------------------------ clearing after a reset
  logic                 clearing_q;
  logic [AddressBits-1:0] clear_address_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clearing_q      <= 1'b1;
      clear_address_q <= '0;
    end else if (clearing_q) begin
      clear_address_q <= clear_address_q + 1'b1;
      clearing_q      <= clear_address_q != '1;
    end
  end

  assign ready_o = !clearing_q;

  // ------------------------------------------------------------------ the stages of a change
  logic                   valid1_q, valid2_q;
  logic [AddressBits-1:0] address1_q, address2_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
    end else begin
      valid1_q <= update_valid_i;
      valid2_q <= valid1_q;
    end
    address1_q <= update_address_i;
    address2_q <= address1_q;
  end

  assign update_valid_o = valid2_q;

  // What was written last; the memory shows it one cycle too late to a read that it met.
  logic                   written_valid_q;
  logic [AddressBits-1:0] written_address_q;
  logic [Width-1:0]       written_data_q;

  always_ff @(posedge clk_i) begin
    written_valid_q   <= rst_ni && valid2_q;
    written_address_q <= address2_q;
    written_data_q    <= update_next_i;
  end

  logic                   write;
  logic [AddressBits-1:0] write_address;
  logic [Width-1:0]       write_data;

  assign write         = clearing_q || valid2_q;
  assign write_address = clearing_q ? clear_address_q : address2_q;
  assign write_data    = clearing_q ? '0 : update_next_i;

  // ------------------------------------------------------------------ two readers
  localparam int unsigned Readers = Observer ? 2 : 1;

  logic [1:0][AddressBits-1:0] address;
  logic [1:0][Width-1:0]       value;

  assign address = {observe_address_i, update_address_i};

  for (genvar r = 0; r < int'(Readers); r++) begin : gen_reader
    (* ram_style = "block" *) logic [Width-1:0] memory [Entries];
    logic [Width-1:0]       read_q;
    logic [AddressBits-1:0] read_address_q;
    logic [Width-1:0]       data_q;
    logic                   hit_q;

    always_ff @(posedge clk_i) begin
      if (write) memory[write_address] <= write_data;
      read_q <= memory[address[r]];
    end

    // Cycle 1: a change that was written while this read went on is taken from the register; one
    // that is being made right now will be there in cycle 2.
    always_ff @(posedge clk_i) begin
      read_address_q <= address[r];
      data_q <= written_valid_q && written_address_q == read_address_q ? written_data_q : read_q;
      hit_q  <= valid2_q && address2_q == read_address_q;
    end

    assign value[r] = hit_q ? written_data_q : data_q;
  end

  if (!Observer) begin : gen_no_observer
    assign value[1] = '0;
    logic unused_address;
    assign unused_address = ^address[1];
  end

  assign update_data_o  = value[0];
  assign observe_data_o = value[1];

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && update_valid_i) begin
      assert (ready_o)
      else $error("unisono_update_ram: a change while the memory is being cleared");
    end
  end
`endif

endmodule
