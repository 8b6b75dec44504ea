// A port's cell of the fold: one word of adders. It combines the port's own word with the running value of the
// children before it, or begins with its own word.
//
// A word takes the time of in_pace_i, and all words of a fold have the pace of its function's plugin, those that pass,
// too. Who gives words sees to it that those of different paces do not meet at the end. Sums and products of fp16 and bf16 round once, at the end of a fold: such words are combined as fp32, each
// own word in two halves (in_wide_i, in_upper_i), and running values are fp32.
//
// Latency: pace_latency: 3 cycles, 8 of floating-point sums, 11 of products; and 1 for the input register.
// Throughput: one word per cycle. No back-pressure.
// Restrictions: in_pace_i is that of in_func_i and in_dtype_i, but for words that pass. in_func_i is built, and defined on in_dtype_i. in_wide_i only for sums and products of fp16 and bf16.

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
  input  logic [DataBits-1:0]    in_own_i,      // the second
  input  logic [SwitchBytes-1:0] in_keep_i,     // of the own word
  input  func_e                  in_func_i,
  input  datatype_e              in_dtype_i,    // of the call
  input  pace_e                  in_pace_i,
  input  logic                   in_wide_i,
  input  logic                   in_upper_i,    // which half of the own word
  input  logic                   in_last_i,
  input  logic [UserBits-1:0]    in_user_i,

  output logic                   out_valid_o,
  output logic [DataBits-1:0]    out_data_o,
  output logic [SwitchBytes-1:0] out_keep_o,    // with in_wide_i, of the numbers of fp32
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
  logic [DataBits-1:0]    half;
  logic [SwitchBytes-1:0] half_keep;
  logic                   wide;

  assign wide = HasHalves && in_wide_i;

  typedef struct packed {
    logic                   first;
    logic [DataBits-1:0]    running;
    logic [DataBits-1:0]    own;
    logic [SwitchBytes-1:0] keep;
    func_e                  func;     // of this word: the first one passes
    datatype_e              dtype;
    pace_e                  pace;
    logic                   last;
    logic [UserBits-1:0]    user;
  } operands_t;

  operands_t    in, word;
  logic         word_valid;
  unit_e        in_unit;
  logic [Units-1:0] in_enable, word_enable;

  assign in = '{
    first: in_first_i,
    running: in_running_i,
    own: wide ? half : in_own_i,
    keep: wide ? half_keep : in_keep_i,
    func: in_first_i ? FuncNone : in_func_i,
    dtype: wide ? DatatypeFp32 : in_dtype_i,
    pace: in_pace_i,
    last: in_last_i,
    user: in_user_i
  };
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

  if (HasHalves) begin : gen_half
    unisono_half_widen #(
      .DataBytes(SwitchBytes)
    ) u_half (
      .wanted_i(in_wide_i),
      .upper_i (in_upper_i),
      .brain_i (in_dtype_i == DatatypeBf16),
      .data_i  (in_own_i),
      .keep_i  (in_keep_i),
      .data_o  (half),
      .keep_o  (half_keep)
    );
  end else begin : gen_no_half
    assign {half, half_keep} = '0;
    logic unused;
    assign unused = ^{in_wide_i, in_upper_i};
  end

  // ---------------------------------------------------------------- plugins
  // What the first plugin gives leaves at once, or after the time of one of the others.
  localparam int unsigned Exits = 3 + Paces - 1;
  localparam int unsigned AluAsSum = 3;
  localparam int unsigned AluAsProd = 4;
  logic [Exits-1:0]               valid;
  logic [Exits-1:0][DataBits-1:0] data;
  logic [Exits-1:0][SideBits-1:0] side;

  // With halves, fp32 is needed even where no datatype of the mask is.
  localparam datatype_mask_t Built = HasHalves ? Datatypes | datatype_mask_t'(1 << DatatypeFp32) : Datatypes;

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

  // The time of sums, and then of products.
  logic                        slow_valid;
  logic [DataBits-1:0]         slow_data;
  logic [SideBits-1:0]         slow_side;
  if (HasSum) begin : gen_as_sum
    localparam int unsigned Cycles = SumLatency - AluLatency;
    logic [Cycles-1:0] sum_q, prod_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        sum_q  <= '0;
        prod_q <= '0;
      end else begin
        sum_q  <= {sum_q[Cycles-2:0], early_valid && early_pace == PaceSum};
        prod_q <= {prod_q[Cycles-2:0], early_valid && early_pace == PaceProd};
      end
    end
    unisono_plugin_delay #(
      .Width (DataBits + SideBits),
      .Cycles(Cycles)
    ) u_delay (
      .clk_i,
      .d_i({side[Alu], data[Alu]}),
      .q_o({slow_side, slow_data})
    );
    assign slow_valid = prod_q[Cycles-1];
    assign {valid[AluAsSum], data[AluAsSum], side[AluAsSum]} = {sum_q[Cycles-1], slow_data, slow_side};
  end else begin : gen_not_as_sum
    assign {slow_valid, slow_data, slow_side} = {early_valid && early_pace == PaceProd, data[Alu], side[Alu]};
    assign {valid[AluAsSum], data[AluAsSum], side[AluAsSum]} = '0;
  end
  if (HasProd) begin : gen_as_prod
    localparam int unsigned Cycles = ProdLatency - (HasSum ? SumLatency : AluLatency);
    logic [Cycles-1:0] prod_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) prod_q <= '0;
      else prod_q <= {prod_q[Cycles-2:0], slow_valid};
    end
    unisono_plugin_delay #(
      .Width (DataBits + SideBits),
      .Cycles(Cycles)
    ) u_delay (
      .clk_i,
      .d_i({slow_side, slow_data}),
      .q_o({side[AluAsProd], data[AluAsProd]})
    );
    assign valid[AluAsProd] = prod_q[Cycles-1];
  end else begin : gen_not_as_prod
    assign {valid[AluAsProd], data[AluAsProd], side[AluAsProd]} = '0;
    logic unused;
    assign unused = ^{slow_valid, slow_data, slow_side};
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
  end else begin : gen_no_sum
    assign {valid[Sum], data[Sum], side[Sum]} = '0;
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
  end else begin : gen_no_prod
    assign {valid[Prod], data[Prod], side[Prod]} = '0;
  end

  // At most one has a result.
  always_comb begin
    out_valid_o = valid != '0;
    {out_keep_o, out_last_o, out_user_o, out_data_o} = '0;
    for (int unsigned u = 0; u < Exits; u++) begin
      {out_keep_o, out_last_o, out_user_o, out_data_o} |= {side[u], data[u]} & {(DataBits + SideBits) {valid[u]}};
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((valid & (valid - 1'b1)) == '0) else $error("%m: two words leave at once");
      assert (!in_valid_i || in.func == FuncNone || in_pace_i == pace_of(in.func, in.dtype))
        else $error("%m: func %0d of dtype %0d has another pace", in.func, in.dtype);
      assert (!in_valid_i || is_supported(Built, Funcs, '0, in.func, in.dtype))
        else $error("%m: func %0d of dtype %0d is not built", in.func, in.dtype);
      assert (!in_valid_i || !in_wide_i || (HasHalves && rounds_once(in_func_i, in_dtype_i)))
        else $error("%m: func %0d of dtype %0d does not round once", in_func_i, in_dtype_i);
    end
  end
`endif

endmodule
