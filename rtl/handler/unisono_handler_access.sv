// Where instructions reach memory and payload: addresses, whether they are within, and what lands.
//
// Of the instruction of the cycle, and with 16 columns of a take_lanes that goes along: beside an instruction that does
// not take, or beside one that takes lanes right before its own, which one read of the payload brings with them.
//
// Latency: an address is combinational; what is read lands in the cycle after it. Throughput: a beat per cycle.
module unisono_handler_access
  import unisono_handler_isa_pkg::*;
  import unisono_handler_pkg::*;
#(
  parameter int unsigned  Columns = 16,
  parameter int unsigned  MemoryBytes = 65536,
  localparam int unsigned Beats = 16 / Columns,
  localparam int unsigned BeatBits = Beats > 1 ? $clog2(Beats) : 1,
  localparam int unsigned AddressBits = $clog2(MemoryBytes),
  localparam int unsigned Window = Columns > 8 ? 8 * Columns : 64
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  instruction_t           word_i,
  input  logic [6:0]             beat_i,
  input  cell_t                  base_i,  // its scalar
  input  cell_t [Columns-1:0]    stored_i,
  input  logic                   go_i,  // it works, and is not stopped
  output logic                   outside_o,
  // verilator lint_off UNUSEDSIGNAL
  input  instruction_t           behind_i,  // the instruction behind it
  // verilator lint_on UNUSEDSIGNAL
  input  cell_t                  behind_base_i,
  input  logic                   behind_go_i,  // goes along, if `behind_fits_o`
  output logic                   behind_fits_o,
  input  logic [31:0]            length_i,  // of the payload
  input  logic [24:0]            memory_bytes_i,

  // What lands, of the instruction and of that which went along.
  output logic                   waits_o,  // the instruction reads what lands: of the former
  output logic                   behind_waits_o,  // of the latter
  output logic                   land_scalar_o,
  output logic [1:0][Columns-1:0] land_lanes_o,
  output logic [1:0][5:0]        land_to_o,
  output logic [1:0][BeatBits-1:0] land_beat_o,
  output cell_t [1:0][Columns-1:0] landing_o,

  // Tables reach memory while the instruction does not.
  input  logic                   table_rd_i,
  input  logic [AddressBits-1:0] table_rd_address_i,
  input  logic                   table_wr_i,
  input  logic [AddressBits-1:0] table_wr_address_i,
  input  logic [1:0]             table_wr_size_i,
  input  cell_t                  table_wr_data_i,

  output logic                   rd_en_o,
  output logic [AddressBits-1:0] rd_address_o,
  input  logic [Window*8-1:0]    rd_data_i,  // a cycle later
  output logic                   wr_en_o,
  output logic [AddressBits-1:0] wr_address_o,
  output logic [Window-1:0]      wr_mask_o,
  output logic [Window*8-1:0]    wr_data_o,
  output logic                   take_en_o,
  output logic [12:0]            take_address_o,
  input  logic [Window*8-1:0]    take_data_i  // a cycle later
);

  // Lanes that the payload has from an address on, which is within it.
  function automatic logic [4:0] present_at(cell_t offset, cell_t limit, logic [1:0] lane_size);
    cell_t left;
    left = (limit - offset) >> lane_size;
    return left > 64'd16 ? 5'd16 : left[4:0];
  endfunction

  // `span` is how many bytes from the address on must be within.
  work_e work;
  logic [1:0] size;
  cell_t offset, limit, length;
  logic [7:0] span;
  logic [4:0] present;
  logic loads, takes;
  assign work = work_of(word_i.op, word_i.element);
  assign size = size_of(word_i.element);
  assign loads = go_i && work == WorkLoad;
  assign takes = go_i && work == WorkTake;
  assign offset = base_i + {{32{word_i.imm[31]}}, word_i.imm};
  assign length = 64'(length_i);
  assign limit = work == WorkTake ? length : 64'(memory_bytes_i);
  assign span = word_i.op == OpTakeLanes ? 8'd0 : (word_i.vector_ ? 8'd16 : 8'd1) << size;
  assign outside_o = 64'(span) > limit || offset > limit - 64'(span);
  assign present = word_i.op != OpTakeLanes ? 5'd16 : present_at(offset, limit, size);

  // The take behind: bytes of the instruction's own, where both are read at once.
  logic [1:0] behind_size;
  cell_t behind_offset;
  logic [4:0] behind_present;
  logic beside, next_to, along;
  logic [6:0] apart;
  assign behind_size = size_of(behind_i.element);
  assign behind_offset = behind_base_i + {{32{behind_i.imm[31]}}, behind_i.imm};
  assign behind_present = present_at(behind_offset, length, behind_size);
  assign apart = 7'd16 << size;
  assign beside = work == WorkTake;
  assign next_to = word_i.vector_ && size != 2'd3 && behind_size != 2'd3 && word_i.ra[5:0] == behind_i.ra[5:0]
                 && behind_i.imm == word_i.imm + 32'(apart);
  assign behind_fits_o = Beats == 1 && behind_i.op == OpTakeLanes && behind_offset <= length && (!beside || next_to);
  assign along = behind_go_i && behind_fits_o;

  logic taken_q;
  logic [1:0] apart_q;  // 0, 16, 32, or 64 bytes
  logic [Window*8-1:0] behind_read;
  always_ff @(posedge clk_i) begin
    taken_q <= beside;
    apart_q <= beside ? size + 2'd1 : 2'd0;
  end
  always_comb begin
    case (apart_q)
      2'd1: behind_read = take_data_i >> 128;
      2'd2: behind_read = take_data_i >> 256;
      2'd3: behind_read = take_data_i >> 512;
      default: behind_read = take_data_i;
    endcase
  end

  unisono_handler_landing #(
    .Columns(Columns)
  ) u_landing (
    .clk_i,
    .rst_ni,
    .fetch_i   (loads || takes),
    .vector_i  (word_i.vector_),
    .element_i (word_i.element),
    .to_i      (word_i.rd[5:0]),
    .beat_i    (BeatBits'(beat_i)),
    .present_i (present),
    .read_i    (taken_q ? take_data_i : rd_data_i),
    .now_i     (word_i),
    .waits_o,
    .scalar_o  (land_scalar_o),
    .lanes_o   (land_lanes_o[0]),
    .to_o      (land_to_o[0]),
    .beat_o    (land_beat_o[0]),
    .elements_o(landing_o[0])
  );
  if (Beats == 1) begin : gen_along
    logic unused_scalar;
    unisono_handler_landing #(
      .Columns(Columns)
    ) u_landing (
      .clk_i,
      .rst_ni,
      .fetch_i   (along),
      .vector_i  (1'b1),
      .element_i (behind_i.element),
      .to_i      (behind_i.rd[5:0]),
      .beat_i    ('0),
      .present_i (behind_present),
      .read_i    (behind_read),
      .now_i     (word_i),
      .waits_o   (behind_waits_o),
      .scalar_o  (unused_scalar),
      .lanes_o   (land_lanes_o[1]),
      .to_o      (land_to_o[1]),
      .beat_o    (land_beat_o[1]),
      .elements_o(landing_o[1])
    );
  end else begin : gen_alone
    logic unused_behind;
    assign unused_behind = ^{behind_present, behind_read};
    assign {behind_waits_o, land_lanes_o[1], land_to_o[1], land_beat_o[1], landing_o[1]} = '0;
  end

  // A beat has `Columns` elements.
  logic [AddressBits-1:0] ahead;
  logic stores;
  assign ahead = AddressBits'(32'(beat_i) * Columns) << size;
  assign stores = go_i && work == WorkStore;
  always_comb begin
    rd_en_o = table_rd_i || loads;
    rd_address_o = table_rd_i ? table_rd_address_i : AddressBits'(offset) + ahead;
    take_en_o = takes || along;
    take_address_o = beside ? 13'(offset) + 13'(ahead) : 13'(behind_offset);
    wr_en_o = table_wr_i || stores;
    wr_address_o = table_wr_i ? table_wr_address_i : AddressBits'(offset) + ahead;
    wr_data_o = table_wr_i ? (Window * 8)'(table_wr_data_i)
                           : (Window * 8)'(packed_of((Lanes * CellBits)'(stored_i), size));
    wr_mask_o = ~({Window{1'b1}}
                  << (table_wr_i ? 32'd1 << table_wr_size_i : 32'(word_i.vector_ ? Columns : 1) << size));
  end

endmodule
