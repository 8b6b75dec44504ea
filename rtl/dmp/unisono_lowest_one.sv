// The lowest one of a vector: whether there is one, where, and the vector with that bit only.
//
// Latency: none (combinational). A tree with four branches at each node, so that 64 bits are through in four LUTs.
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

  if (Width < 2 || Width > 64 || (Width & (Width - 1)) != 0) begin : gen_check_width
    $error("Width must be a power of two, 2 to 64");
  end

  // Of four: which is the lowest, 0 if there is none. Each bit is one LUT.
  function automatic logic [1:0] lowest(logic [3:0] of);
    return {of[1:0] == '0 && of[3:2] != '0, !of[0] && (of[1] || (!of[2] && of[3]))};
  endfunction

  // Missing bits are zero, and what they would take goes away.
  logic [63:0] bits;
  logic [15:0] some;                     // of each four bits
  logic [3:0] many;                      // of each sixteen
  logic [15:0][1:0] place;               // of the lowest of four bits
  logic [3:0][3:0] wide;                 // of the lowest of sixteen
  logic [5:0] index;
  logic [63:0] one;
  assign bits = 64'(bits_i);

  for (genvar p = 0; p < 16; p++) begin : gen_four
    assign some[p] = bits[4*p+:4] != '0;
    assign place[p] = lowest(bits[4*p+:4]);
  end
  for (genvar p = 0; p < 4; p++) begin : gen_sixteen
    logic [1:0] group;
    assign many[p] = some[4*p+:4] != '0;
    assign group = lowest(some[4*p+:4]);
    assign wide[p] = {group, place[4*p + int'(group)]};
  end
  assign index = {lowest(many), wide[lowest(many)]};

  // A bit has no other below it in its four, its four none below it in their sixteen, and these none below.
  for (genvar b = 0; b < 64; b++) begin : gen_bit
    localparam int unsigned Four = b / 4;
    localparam int unsigned Sixteen = b / 16;
    logic first_bit, first_four, first_sixteen;
    assign first_bit = (bits[4*Four+:4] & 4'((1 << (b % 4)) - 1)) == '0;
    assign first_four = (some[4*Sixteen+:4] & 4'((1 << (Four % 4)) - 1)) == '0;
    assign first_sixteen = (many & 4'((1 << Sixteen) - 1)) == '0;
    assign one[b] = bits[b] && first_bit && first_four && first_sixteen;
  end

  assign any_o = many != '0;
  assign index_o = index[IndexWidth-1:0];
  assign one_o = one[Width-1:0];

  // Wider than a small Width needs.
  logic unused;
  assign unused = ^{1'b0, index, one};

endmodule
