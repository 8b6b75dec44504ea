// A port's cell of the fold: one word of adders. It combines the port's own word with the running value of the
// children before it, or begins with its own word.
//
// All functions take the same time, so that words of different aggregations never meet behind it, and none overtakes
// another. Sums and products of fp16 and bf16 round once, at the end of a fold: such words are combined as fp32, each
// own word in two halves (in_wide_i, in_upper_i), and running values are fp32.
//
// Latency: fold_latency(Funcs, InputRegister): 8 cycles, or 11 if products are built, and 1 for the input register.
// Throughput: one word per cycle. No back-pressure.
// Restrictions: in_func_i is built, and defined on in_dtype_i. in_wide_i only for sums and products of fp16 and bf16.

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

  // From the plugins' operands on.
  localparam int unsigned Latency = fold_latency(Funcs, 1'b0);
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
  logic [Units-1:0]               valid;
  logic [Units-1:0][DataBits-1:0] data;
  logic [Units-1:0][SideBits-1:0] side;

  logic                early_valid;
  logic [DataBits-1:0] early_data;
  logic [SideBits-1:0] early_side;

  // With halves, fp32 is needed even where no datatype of the mask is.
  localparam datatype_mask_t Built = HasHalves ? Datatypes | datatype_mask_t'(1 << DatatypeFp32) : Datatypes;

  unisono_plugin_alu #(
    .DataBytes(SwitchBytes),
    .UserBits (UserBits),
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
    .user_i  (word.user),
    .valid_o (early_valid),
    .data_o  (early_data),
    .keep_o  (early_side[SideBits-1-:SwitchBytes]),
    .last_o  (early_side[UserBits]),
    .user_o  (early_side[UserBits-1:0])
  );

  logic [Latency-AluLatency-1:0] alu_valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) alu_valid_q <= '0;
    else alu_valid_q <= {alu_valid_q[Latency-AluLatency-2:0], early_valid};
  end
  assign valid[Alu] = alu_valid_q[Latency-AluLatency-1];

  unisono_plugin_delay #(
    .Width (DataBits + SideBits),
    .Cycles(Latency - AluLatency)
  ) u_delay (
    .clk_i,
    .d_i({early_side, early_data}),
    .q_o({side[Alu], data[Alu]})
  );

  if (HasSum) begin : gen_sum
    logic                sum_valid;
    logic [DataBits-1:0] sum_data;
    logic [SideBits-1:0] sum_side;
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
      .valid_o (sum_valid),
      .data_o  (sum_data),
      .keep_o  (sum_side[SideBits-1-:SwitchBytes]),
      .last_o  (sum_side[UserBits]),
      .user_o  (sum_side[UserBits-1:0])
    );
    if (Latency > SumLatency) begin : gen_wait
      logic [Latency-SumLatency-1:0] sum_valid_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) sum_valid_q <= '0;
        else sum_valid_q <= {sum_valid_q[Latency-SumLatency-2:0], sum_valid};
      end
      assign valid[Sum] = sum_valid_q[Latency-SumLatency-1];
      unisono_plugin_delay #(
        .Width (DataBits + SideBits),
        .Cycles(Latency - SumLatency)
      ) u_wait (
        .clk_i,
        .d_i({sum_side, sum_data}),
        .q_o({side[Sum], data[Sum]})
      );
    end else begin : gen_no_wait
      assign {valid[Sum], data[Sum], side[Sum]} = {sum_valid, sum_data, sum_side};
    end
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
    for (int unsigned u = 0; u < Units; u++) begin
      {out_keep_o, out_last_o, out_user_o, out_data_o} |= {side[u], data[u]} & {(DataBits + SideBits) {valid[u]}};
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((valid & (valid - 1'b1)) == '0) else $error("%m: two plugins have a result at once");
      assert (!in_valid_i || is_supported(Built, Funcs, '0, in.func, in.dtype))
        else $error("%m: func %0d of dtype %0d is not built", in.func, in.dtype);
      assert (!in_valid_i || !in_wide_i || (HasHalves && rounds_once(in_func_i, in_dtype_i)))
        else $error("%m: func %0d of dtype %0d does not round once", in_func_i, in_dtype_i);
    end
  end
`endif

endmodule
