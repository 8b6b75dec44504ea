// A port's cell of the fold: one word of adders. It combines the port's own word with the running value of the
// children before it, or begins with its own word.
//
// A word takes the time of in_pace_i, and all words of a fold have the pace of its function's plugin, those that pass,
// too. Who gives words sees to it that those of different paces do not meet at the end. A first word of a sum passes as
// the sum of it and -0, which it is, bit for bit; NaN becomes quiet, as it would with the next word.
//
// Sums and products of fp16 and bf16 round once, at the end of a fold: such words (in_wide_i) are combined as fp32, twice
// as many bits. A second array of adders has the upper half; the first one has none for 16 bits, which no fold adds.
//
// Latency: pace_latency: 3 cycles, 8 of floating-point sums, 11 of products; and 1 for the input register.
// Throughput: one word per cycle. No back-pressure.
// Restrictions: in_pace_i is that of in_func_i and in_dtype_i, but for words of one port. in_func_i is built, and defined
// on in_dtype_i. in_wide_i only for sums and products of fp16 and bf16.

// The upper half goes along with the lower one, which says when it is there; without halves nobody looks at it.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off PINCONNECTEMPTY

module unisono_switch_fold
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
  import unisono_switch_pkg::*;
#(
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t Funcs = SwitchFuncs,
  // Behind a crossbar: without it, the way to the plugins' first registers is too long for 250 MHz.
  parameter bit InputRegister = 1'b1,
  parameter int unsigned UserBits = 1,
  localparam int unsigned DataBits = SwitchBytes * 8
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   in_valid_i,
  input  logic                   in_first_i,    // there is no running value
  input  logic [DataBits-1:0]    in_running_i,  // the first operand
  input  logic [DataBits-1:0]    in_running_upper_i,  // with in_wide_i: of the upper half of the own word
  input  logic [DataBits-1:0]    in_own_i,      // the second
  input  logic [SwitchBytes-1:0] in_keep_i,     // of the own word
  input  func_e                  in_func_i,
  input  datatype_e              in_dtype_i,    // of the call
  input  pace_e                  in_pace_i,
  input  logic                   in_wide_i,
  input  logic                   in_last_i,
  input  logic [UserBits-1:0]    in_user_i,

  output logic                   out_valid_o,
  output logic [DataBits-1:0]    out_data_o,
  output logic [DataBits-1:0]    out_upper_o,   // with in_wide_i
  output logic [SwitchBytes-1:0] out_keep_o,    // of the own word
  output logic                   out_last_o,
  output logic [UserBits-1:0]    out_user_o
);

  localparam int unsigned SideBits = SwitchBytes + 1 + UserBits;
  localparam int unsigned Units = 3;
  localparam int unsigned Alu = 0;
  localparam int unsigned Sum = 1;
  localparam int unsigned Prod = 2;
  localparam bit HasSum = Funcs[1] && float_mask(Datatypes) != '0;
  localparam bit HasProd = Funcs[2] && (Datatypes & ProdDatatypes) != '0;
  localparam bit HasHalves = (Datatypes & HalfDatatypes) != '0 && (Funcs[1] || Funcs[2]);

  // ---------------------------------------------------------------- operands
  logic [1:0][DataBits-1:0] half;     // of the own word, as fp32
  logic                     wide;

  assign wide = HasHalves && in_wide_i;

  typedef struct packed {
    logic                   first;
    logic                   wide;
    logic [DataBits-1:0]    running;
    logic [DataBits-1:0]    running_upper;
    logic [DataBits-1:0]    own;
    logic [DataBits-1:0]    own_upper;
    logic [SwitchBytes-1:0] keep;
    func_e                  func;     // of this word: one that passes as it is has none
    datatype_e              dtype;
    pace_e                  pace;
    logic                   last;
    logic [UserBits-1:0]    user;
  } operands_t;

  // What leaves a number as it is, where a first word passes by a plugin of floating point.
  typedef logic [DataBits-1:0] word_t;
  function automatic word_t neutral(logic is_product, logic is_double);
    if (is_product) return {SwitchBytes / 4{32'h3f80_0000}};
    return is_double ? {SwitchBytes / 8{64'h8000_0000_0000_0000}} : {SwitchBytes / 4{32'h8000_0000}};
  endfunction

  operands_t    in, word;
  logic         word_valid;
  logic         passes;               // as it is
  unit_e        in_unit;
  logic [Units-1:0] in_enable, word_enable;

  assign passes = in_first_i && !(HasSum && in_pace_i == PaceSum) && !(HasProd && in_pace_i == PaceProd && wide);
  always_comb begin
    in = '{
      first: in_first_i,
      wide: wide,
      running: in_running_i,
      running_upper: in_running_upper_i,
      own: wide ? half[0] : in_own_i,
      own_upper: half[1],
      keep: in_keep_i,
      func: passes ? FuncNone : in_func_i,
      dtype: wide ? DatatypeFp32 : in_dtype_i,
      pace: in_pace_i,
      last: in_last_i,
      user: in_user_i
    };
    if (in_first_i) begin
      in.running       = neutral(HasProd && in_pace_i == PaceProd, !wide && float_of(in_dtype_i) == FloatFp64);
      in.running_upper = neutral(HasProd && in_pace_i == PaceProd, 1'b0);
    end
  end
  assign in_unit = unit_of(in.func, in.dtype);
  always_comb begin
    in_enable = '0;
    if (HasSum && in_unit == UnitSum) in_enable[Sum] = 1'b1;
    else if (HasProd && in_unit == UnitProd) in_enable[Prod] = 1'b1;
    else in_enable[Alu] = 1'b1;
  end

  if (InputRegister) begin : gen_register
    operands_t        word_q;
    logic             word_valid_q;
    logic [Units-1:0] word_enable_q;
    always_ff @(posedge clk_i) begin
      word_valid_q <= rst_ni && in_valid_i;
      if (in_valid_i) begin
        word_q        <= in;
        word_enable_q <= in_enable;
      end
    end
    assign {word_valid, word, word_enable} = {word_valid_q, word_q, word_enable_q};
  end else begin : gen_no_register
    assign {word_valid, word, word_enable} = {in_valid_i, in, in_enable};
  end

  for (genvar u = 0; u < 2; u++) begin : gen_half
    if (HasHalves) begin : gen_widen
      logic [SwitchBytes-1:0] unused_keep;
      unisono_half_widen #(
        .DataBytes(SwitchBytes)
      ) u_half (
        .wanted_i(in_wide_i),
        .upper_i (1'(u)),
        .brain_i (in_dtype_i == DatatypeBf16),
        .data_i  (in_own_i),
        .keep_i  (in_keep_i),
        .data_o  (half[u]),
        .keep_o  (unused_keep)
      );
    end else begin : gen_no_widen
      assign half[u] = '0;
    end
  end

  // ---------------------------------------------------------------- plugins
  // What the first plugin gives leaves at once, or after the time of products.
  localparam int unsigned Exits = 4;
  localparam int unsigned AluAsProd = 3;
  logic [Exits-1:0]               valid;
  logic [Exits-1:0][DataBits-1:0] data;
  logic [Exits-1:0][SideBits-1:0] side;
  logic [Units-1:0][DataBits-1:0] upper;
  assign upper[Alu] = '0;

  // Halves are combined as fp32, even where no datatype of the mask is that.
  localparam datatype_mask_t Fp32 = datatype_mask_t'(1 << DatatypeFp32);
  localparam datatype_mask_t Built = HasHalves ? (Datatypes & ~HalfDatatypes) | Fp32 : Datatypes;

  logic  early_valid;
  pace_e early_pace;
  unisono_plugin_alu #(
    .DataBytes(SwitchBytes),
    .UserBits ($bits(pace_e) + UserBits),
    .Datatypes(Datatypes),
    .Funcs    (Funcs)
  ) u_alu (
    .clk_i,
    .rst_ni,
    .enable_i(word_valid && word_enable[Alu]),
    .op0_i   (word.running),
    .op1_i   (word.own),
    .func_i  (word.func),
    .dtype_i (word.dtype),
    .swap_i  (1'b0),
    .use0_i  (!word.first),
    .use1_i  (1'b1),
    .keep_i  (word.keep),
    .last_i  (word.last),
    .user_i  ({word.pace, word.user}),
    .valid_o (early_valid),
    .data_o  (data[Alu]),
    .keep_o  (side[Alu][SideBits-1-:SwitchBytes]),
    .last_o  (side[Alu][UserBits]),
    .user_o  ({early_pace, side[Alu][UserBits-1:0]})
  );
  assign valid[Alu] = early_valid && early_pace == PaceAlu;

  // Words that pass in the time of products.
  if (HasProd) begin : gen_as_prod
    localparam int unsigned Cycles = ProdLatency - AluLatency;
    logic [Cycles-1:0] prod_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) prod_q <= '0;
      else prod_q <= {prod_q[Cycles-2:0], early_valid && early_pace == PaceProd};
    end
    unisono_plugin_delay #(
      .Width (DataBits + SideBits),
      .Cycles(Cycles)
    ) u_delay (
      .clk_i,
      .d_i({side[Alu], data[Alu]}),
      .q_o({side[AluAsProd], data[AluAsProd]})
    );
    assign valid[AluAsProd] = prod_q[Cycles-1];
  end else begin : gen_not_as_prod
    assign {valid[AluAsProd], data[AluAsProd], side[AluAsProd]} = '0;
  end

  if (HasSum) begin : gen_sum
    unisono_plugin_sum #(
      .DataBytes(SwitchBytes),
      .UserBits (UserBits),
      .Datatypes(Built)
    ) u_sum (
      .clk_i,
      .rst_ni,
      .enable_i(word_valid && word_enable[Sum]),
      .op0_i   (word.running),
      .op1_i   (word.own),
      .func_i  (word.func),
      .dtype_i (word.dtype),
      .swap_i  (1'b0),
      .use0_i  (1'b1),
      .use1_i  (1'b1),
      .keep_i  (word.keep),
      .last_i  (word.last),
      .user_i  (word.user),
      .valid_o (valid[Sum]),
      .data_o  (data[Sum]),
      .keep_o  (side[Sum][SideBits-1-:SwitchBytes]),
      .last_o  (side[Sum][UserBits]),
      .user_o  (side[Sum][UserBits-1:0])
    );
    if (HasHalves) begin : gen_upper
      unisono_plugin_sum #(
        .DataBytes(SwitchBytes),
        .Datatypes(Fp32)
      ) u_upper (
        .clk_i,
        .rst_ni,
        .enable_i(word_valid && word_enable[Sum] && word.wide),
        .op0_i   (word.running_upper),
        .op1_i   (word.own_upper),
        .func_i  (word.func),
        .dtype_i (word.dtype),
        .swap_i  (1'b0),
        .use0_i  (1'b1),
        .use1_i  (1'b1),
        .keep_i  ('0),
        .last_i  (1'b0),
        .user_i  (1'b0),
        .valid_o (),
        .data_o  (upper[Sum]),
        .keep_o  (),
        .last_o  (),
        .user_o  ()
      );
    end else begin : gen_no_upper
      assign upper[Sum] = '0;
    end
  end else begin : gen_no_sum
    assign {valid[Sum], data[Sum], side[Sum], upper[Sum]} = '0;
  end

  if (HasProd) begin : gen_prod
    unisono_plugin_prod #(
      .DataBytes(SwitchBytes),
      .UserBits (UserBits),
      .Datatypes(Built)
    ) u_prod (
      .clk_i,
      .rst_ni,
      .enable_i(word_valid && word_enable[Prod]),
      .op0_i   (word.running),
      .op1_i   (word.own),
      .func_i  (word.func),
      .dtype_i (word.dtype),
      .swap_i  (1'b0),
      .use0_i  (1'b1),
      .use1_i  (1'b1),
      .keep_i  (word.keep),
      .last_i  (word.last),
      .user_i  (word.user),
      .valid_o (valid[Prod]),
      .data_o  (data[Prod]),
      .keep_o  (side[Prod][SideBits-1-:SwitchBytes]),
      .last_o  (side[Prod][UserBits]),
      .user_o  (side[Prod][UserBits-1:0])
    );
    if (HasHalves) begin : gen_upper
      unisono_plugin_prod #(
        .DataBytes(SwitchBytes),
        .Datatypes(Fp32)
      ) u_upper (
        .clk_i,
        .rst_ni,
        .enable_i(word_valid && word_enable[Prod] && word.wide),
        .op0_i   (word.running_upper),
        .op1_i   (word.own_upper),
        .func_i  (word.func),
        .dtype_i (word.dtype),
        .swap_i  (1'b0),
        .use0_i  (1'b1),
        .use1_i  (1'b1),
        .keep_i  ('0),
        .last_i  (1'b0),
        .user_i  (1'b0),
        .valid_o (),
        .data_o  (upper[Prod]),
        .keep_o  (),
        .last_o  (),
        .user_o  ()
      );
    end else begin : gen_no_upper
      assign upper[Prod] = '0;
    end
  end else begin : gen_no_prod
    assign {valid[Prod], data[Prod], side[Prod], upper[Prod]} = '0;
  end

  // At most one has a result.
  always_comb begin
    out_valid_o = valid != '0;
    {out_keep_o, out_last_o, out_user_o, out_data_o} = '0;
    for (int unsigned u = 0; u < Exits; u++) begin
      {out_keep_o, out_last_o, out_user_o, out_data_o} |= {side[u], data[u]} & {(DataBits + SideBits) {valid[u]}};
    end
    out_upper_o = HasProd && valid[Prod] ? upper[Prod] : upper[Sum];
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((valid & (valid - 1'b1)) == '0) else $error("%m: two words leave at once");
      assert (!in_valid_i || in.func == FuncNone || in_pace_i == pace_of(in.func, in.dtype))
        else $error("%m: func %0d of dtype %0d has another pace", in.func, in.dtype);
      assert (!in_valid_i || is_supported(Datatypes | Built, Funcs, '0, in.func, in.dtype))
        else $error("%m: func %0d of dtype %0d is not built", in.func, in.dtype);
      assert (!in_valid_i || !in_wide_i || (HasHalves && rounds_once(in_func_i, in_dtype_i)))
        else $error("%m: func %0d of dtype %0d does not round once", in_func_i, in_dtype_i);
    end
  end
`endif

endmodule
