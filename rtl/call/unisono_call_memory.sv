// The descriptors of all outstanding calls: written row by row at admission, read while calls are active.
//
// The microcontroller reads rows, the dispatcher reads bindings: address and bytes of a region stand in
// two rows beside each other, so even and odd rows have a memory each. Nothing is copied when a call
// becomes active; a slot is a pointer to its descriptor.
// Latency: both read ports answer in the cycle after the address. Throughput: one read of each kind and
// one row written per cycle. A descriptor may be read from the cycle after its last row was written.

module unisono_call_memory (
  input  logic                                       clk_i,

  input  logic                                       write_i,
  input  unisono_call_pkg::call_entry_t              write_entry_i,
  input  unisono_call_pkg::call_row_t                write_row_i,
  input  logic [63:0]                                write_data_i,

  // Of each active slot: its descriptor, and whether src and dst are streams, hence no memory.
  input  unisono_call_pkg::call_entry_t [unisono_cclo_pkg::Calls-1:0] slot_entry_i,
  input  logic [unisono_cclo_pkg::Calls-1:0]         src_stream_i,
  input  logic [unisono_cclo_pkg::Calls-1:0]         dst_stream_i,

  // The microcontroller's port.
  input  unisono_cclo_pkg::slot_t                    row_slot_i,
  input  unisono_call_pkg::call_row_t                row_i,
  output logic [63:0]                                row_data_o,

  // The dispatcher's port. bytes == 0: not bound. Of the window, which is a peer's, address is what the call adds to
  // offsets in it.
  input  unisono_cclo_pkg::slot_t                    binding_slot_i,
  input  unisono_spec_pkg::region_e                  binding_region_i,
  output unisono_cclo_pkg::binding_t                 binding_o
);

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_call_pkg::*;

  localparam int unsigned PairWidth = RowWidth - 1;
  localparam int unsigned Pairs = Entries * DescriptorRows / 2;
  localparam logic [PairWidth-1:0] FirstPair = PairWidth'(2);  // that of src
  localparam logic [PairWidth-1:0] WindowPair = PairWidth'(7);  // that of window_offset

  (* ram_style = "block" *) logic [63:0] even [Pairs];
  (* ram_style = "block" *) logic [63:0] odd [Pairs];

  logic [EntryIndexWidth+PairWidth-1:0] write_address, row_address, binding_address;
  assign write_address   = {write_entry_i, write_row_i[RowWidth-1:1]};
  assign row_address     = {slot_entry_i[row_slot_i], row_i[RowWidth-1:1]};
  assign binding_address = {slot_entry_i[binding_slot_i],
                            binding_region_i == RegionWindow ? WindowPair
                                                             : FirstPair + PairWidth'(binding_region_i[1:0])};

  always_ff @(posedge clk_i) begin
    if (write_i && !write_row_i[0]) begin
      even[write_address] <= write_data_i;
    end
    if (write_i && write_row_i[0]) begin
      odd[write_address] <= write_data_i;
    end
  end

  logic [63:0] row_even_q, row_odd_q, binding_even_q;
  logic [47:0] binding_odd_q;
  logic        row_odd_select_q, bound_q;

  always_ff @(posedge clk_i) begin
    row_even_q     <= even[row_address];
    row_odd_q      <= odd[row_address];
    binding_even_q <= even[binding_address];
    binding_odd_q  <= odd[binding_address][47:0];
  end

  always_ff @(posedge clk_i) begin
    row_odd_select_q <= row_i[0];
    unique case (binding_region_i)
      RegionSrc:     bound_q <= !src_stream_i[binding_slot_i];
      RegionDst:     bound_q <= !dst_stream_i[binding_slot_i];
      RegionScratch: bound_q <= 1'b1;
      RegionParams:  bound_q <= 1'b1;
      default:       bound_q <= 1'b0;
    endcase
  end

  assign row_data_o = row_odd_select_q ? row_odd_q : row_even_q;

  always_comb begin
    binding_o.address = binding_even_q;
    binding_o.bytes   = bound_q ? binding_odd_q : '0;
  end

endmodule
