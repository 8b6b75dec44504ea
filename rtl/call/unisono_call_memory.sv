// The descriptors of all outstanding calls: written four rows at a time at admission, read while calls are active.
//
// The microcontroller reads rows, the microcode memory four at a time, the dispatcher bindings: address and bytes of
// a region. Each of four columns is a memory, so four rows that stand together are one access. Nothing is copied
// when a call becomes active; a slot is a pointer to its descriptor.
// Latency: both read ports answer in the cycle after the address. Throughput: one read of each kind and
// four rows written per cycle. A descriptor may be read from the cycle after its last row was written.

module unisono_call_memory (
  input  logic                                       clk_i,

  input  logic                                       write_i,
  input  unisono_call_pkg::call_entry_t              write_entry_i,
  input  unisono_call_pkg::call_quad_index_t         write_quad_i,
  input  unisono_call_pkg::call_quad_t               write_data_i,

  // Of each active slot: its descriptor, and whether src and dst are streams, hence no memory.
  input  unisono_call_pkg::call_entry_t [unisono_cclo_pkg::Calls-1:0] slot_entry_i,
  input  logic [unisono_cclo_pkg::Calls-1:0]         src_stream_i,
  input  logic [unisono_cclo_pkg::Calls-1:0]         dst_stream_i,

  // The port of microcontroller and microcode memory: the row, and the four rows among which it is.
  input  unisono_cclo_pkg::slot_t                    row_slot_i,
  input  unisono_call_pkg::call_row_t                row_i,
  output logic [63:0]                                row_data_o,
  output unisono_call_pkg::call_quad_t               quad_data_o,

  // The dispatcher's port. bytes == 0: not bound. Of the window, which is a peer's, address is what the call adds to
  // offsets in it.
  input  unisono_cclo_pkg::slot_t                    binding_slot_i,
  input  unisono_spec_pkg::region_e                  binding_region_i,
  output unisono_cclo_pkg::binding_t                 binding_o
);

  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
  import unisono_call_pkg::*;

  localparam call_quad_index_t FirstQuad = 2'd1;   // that of src and dst
  localparam call_quad_index_t WindowQuad = 2'd3;  // that of window_offset, which stands where dst does in its

  logic [EntryIndexWidth+QuadIndexWidth-1:0] write_address, row_address, binding_address;
  assign write_address   = {write_entry_i, write_quad_i};
  assign row_address     = {slot_entry_i[row_slot_i], row_i[RowWidth-1:2]};
  assign binding_address = {slot_entry_i[binding_slot_i],
                            binding_region_i == RegionWindow ? WindowQuad : FirstQuad + 2'(binding_region_i[1])};

  call_quad_t quad_q, binding_q;
  for (genvar c = 0; c < int'(QuadRows); c++) begin : gen_columns
    // What neither port reads is left out by synthesis.
    (* ram_style = "block" *) logic [63:0] rows [Entries*Quads];
    always_ff @(posedge clk_i) begin
      if (write_i) begin
        rows[write_address] <= write_data_i[c];
      end
    end
    always_ff @(posedge clk_i) begin
      quad_q[c]    <= rows[row_address];
      binding_q[c] <= rows[binding_address];
    end
  end

  logic [1:0] row_select_q;
  logic       second_q, bound_q;

  always_ff @(posedge clk_i) begin
    row_select_q <= row_i[1:0];
    second_q     <= binding_region_i == RegionWindow || binding_region_i[0];
    unique case (binding_region_i)
      RegionSrc:     bound_q <= !src_stream_i[binding_slot_i];
      RegionDst:     bound_q <= !dst_stream_i[binding_slot_i];
      RegionScratch: bound_q <= 1'b1;
      RegionParams:  bound_q <= 1'b1;
      default:       bound_q <= 1'b0;
    endcase
  end

  assign row_data_o  = quad_q[row_select_q];
  assign quad_data_o = quad_q;

  always_comb begin
    binding_o.address = second_q ? binding_q[2] : binding_q[0];
    binding_o.bytes   = !bound_q ? '0 : second_q ? binding_q[3][47:0] : binding_q[1][47:0];
  end

  logic unused;
  assign unused = |{binding_q[1][63:48], binding_q[3][63:48]};

endmodule
