// The lowest one of a vector: whether there is one, where, and the vector with that bit only.
//
// Latency: none (combinational). Two levels of eight, so that 64 bits stay within five LUTs.
// Restrictions: Width is a power of two, 2 to 64.

module unisono_lowest_one #(
  parameter int unsigned Width = 64,
  localparam int unsigned IndexWidth = $clog2(Width)
) (
  input  logic [Width-1:0]      bits_i,
  output logic                  any_o,
  output logic [IndexWidth-1:0] index_o,
  output logic [Width-1:0]      one_o
);

  localparam int unsigned Part = Width < 8 ? Width : 8;
  localparam int unsigned Parts = Width / Part;

  if (Width < 2 || Width > 64 || (Width & (Width - 1)) != 0) begin : gen_check_width
    $error("Width must be a power of two, 2 to 64");
  end

  logic [Parts-1:0] part_any;
  logic [Parts-1:0] part_first;
  logic [Parts-1:0][IndexWidth-1:0] part_index;

  for (genvar p = 0; p < int'(Parts); p++) begin : gen_part
    wire [Part-1:0] own = bits_i[p*Part+:Part];
    assign part_any[p] = |own;
    if (p == 0) begin : gen_first
      assign part_first[p] = part_any[p];
    end else begin : gen_later
      assign part_first[p] = part_any[p] && part_any[p-1:0] == '0;
    end
    for (genvar b = 0; b < int'(Part); b++) begin : gen_bit
      if (b == 0) begin : gen_lowest
        assign one_o[p*Part+b] = part_first[p] && own[b];
      end else begin : gen_higher
        assign one_o[p*Part+b] = part_first[p] && own[b] && own[b-1:0] == '0;
      end
    end
    always_comb begin
      part_index[p] = '0;
      for (int b = int'(Part) - 1; b >= 0; b--) begin
        if (own[b]) part_index[p] = IndexWidth'(p * int'(Part) + b);
      end
    end
  end

  always_comb begin
    index_o = '0;
    for (int p = 0; p < int'(Parts); p++) begin
      if (part_first[p]) index_o |= part_index[p];
    end
  end
  assign any_o = |part_any;

endmodule
