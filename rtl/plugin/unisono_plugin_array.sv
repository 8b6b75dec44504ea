// The reduction plugins of a compute lane, behind one valid/ready stream of operand pairs.
//
// No plugin can be stopped. A word is let in only when the output queue has a place for its result
// (a credit), so no stall ever reaches the lanes. Plugins have different latencies, and results
// leave in order: a word for a faster plugin waits until it cannot overtake those before it; while
// the function stays the same there is no gap.
//
// Latency: the plugin's, and 2 cycles. Throughput: one word per cycle; a change from a plugin of
// latency l to one of latency k < l costs l - k cycles.
// A word with a function that is not built leaves with `out_refused_o` set and its data undefined.
// See docs/rtl/plugin_array.md, also for the plugins of the user.

module unisono_plugin_array
  import unisono_spec_pkg::*;
  import unisono_plugin_pkg::*;
#(
  // A multiple of 16.
  parameter int unsigned DataBytes = 64,
  parameter int unsigned UserBits = 1,
  // What the built-in plugins compute.
  parameter datatype_mask_t Datatypes = AllDatatypes,
  parameter func_mask_t Funcs = AllFuncs,
  // Places for plugins of the user. Slot s has 16 bits of SlotFuncs and 8 of SlotLatency: it
  // computes FuncUser0 + n for each bit n of its mask, after its latency. Without any, leave the
  // mask 0 and tie the plug_..._i to 0.
  parameter int unsigned Slots = 1,
  parameter logic [16*Slots-1:0] SlotFuncs = '0,
  parameter logic [8*Slots-1:0] SlotLatency = {Slots{8'd1}},
  // Results in flight and waiting. One word per cycle needs the largest latency and 2.
  parameter int unsigned Depth = 32
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  input  logic                              in_valid_i,
  output logic                              in_ready_o,
  input  logic [DataBytes*8-1:0]            in_op0_i,
  input  logic [DataBytes*8-1:0]            in_op1_i,
  input  logic [7:0]                        in_func_i,
  input  logic [5:0]                        in_dtype_i,
  input  logic                              in_swap_i,
  input  logic                              in_use0_i,
  input  logic                              in_use1_i,
  input  logic [DataBytes-1:0]              in_keep_i,
  input  logic                              in_last_i,
  input  logic [UserBits-1:0]               in_user_i,

  output logic                              out_valid_o,
  input  logic                              out_ready_i,
  output logic [DataBytes*8-1:0]            out_data_o,
  output logic [DataBytes-1:0]              out_keep_o,
  output logic                              out_last_o,
  output logic [UserBits-1:0]               out_user_o,
  output logic                              out_refused_o,

  // To the plugins of the user: all see the operands, one is enabled.
  output logic [Slots-1:0]                  plug_enable_o,
  output logic [DataBytes*8-1:0]            plug_op0_o,
  output logic [DataBytes*8-1:0]            plug_op1_o,
  output logic [7:0]                        plug_func_o,
  output logic [5:0]                        plug_dtype_o,
  output logic                              plug_swap_o,
  output logic                              plug_use0_o,
  output logic                              plug_use1_o,
  output logic [DataBytes-1:0]              plug_keep_o,
  output logic                              plug_last_o,
  output logic [UserBits-1:0]               plug_user_o,
  // From them.
  input  logic [Slots-1:0]                  plug_valid_i,
  input  logic [Slots-1:0][DataBytes*8-1:0] plug_data_i,
  input  logic [Slots-1:0][DataBytes-1:0]   plug_keep_i,
  input  logic [Slots-1:0]                  plug_last_i,
  input  logic [Slots-1:0][UserBits-1:0]    plug_user_i,

  // Constant: fields of the capability word.
  output datatype_mask_t                    capability_datatypes_o,
  output logic [15:0]                       capability_funcs_o,
  // No word is inside.
  output logic                              idle_o
);

  localparam int unsigned DataBits = DataBytes * 8;
  localparam int unsigned SideBits = DataBytes + 1 + UserBits;
  localparam int unsigned CreditBits = $clog2(Depth + 1);
  localparam int unsigned LatencyBits = 8;
  // Built-in plugins, then the user's.
  localparam int unsigned Units = 3 + Slots;
  localparam int unsigned Alu = 0;
  localparam int unsigned Sum = 1;
  localparam int unsigned Prod = 2;

  function automatic logic [15:0] all_slot_funcs();
    logic [15:0] result;
    result = '0;
    for (int unsigned slot = 0; slot < Slots; slot++) result |= SlotFuncs[16*slot+:16];
    return result;
  endfunction

  function automatic logic slots_are_good();
    logic [15:0] seen;
    seen = '0;
    for (int unsigned s = 0; s < Slots; s++) begin
      if ((seen & SlotFuncs[16*s+:16]) != '0 || SlotLatency[8*s+:8] == '0) return 1'b0;
      seen |= SlotFuncs[16*s+:16];
    end
    return 1'b1;
  endfunction

  localparam logic [15:0] UserFuncs = all_slot_funcs();

  if (Slots == 0 || !slots_are_good()) begin : gen_bad_slots
    $error("unisono_plugin_array: a latency of 0, a function in two slots, or no slot");
  end

  assign capability_datatypes_o = capability_datatypes(Datatypes, Funcs);
  assign capability_funcs_o = capability_funcs(Funcs, UserFuncs);

  // The word that waits to be let in, and where it goes.
  logic held_q, issue;
  logic [DataBits-1:0] op0_q, op1_q;
  func_e func_q;
  datatype_e dtype_q;
  logic swap_q, use0_q, use1_q, last_q, refused_q;
  logic [DataBytes-1:0] keep_q;
  logic [UserBits-1:0] user_q;
  logic [Units-1:0] unit_q, unit_d;
  logic [LatencyBits-1:0] latency_q, latency_d;

  // A word that is refused goes the shortest way.
  func_e in_func;
  datatype_e in_dtype;
  logic supported;
  assign in_func = func_e'(in_func_i);
  assign in_dtype = datatype_e'(in_dtype_i);
  assign supported = is_supported(Datatypes, Funcs, UserFuncs, in_func, in_dtype);
  always_comb begin
    unit_d = '0;
    unit_d[Alu] = 1'b1;
    latency_d = LatencyBits'(AluLatency);
    if (supported) begin
      case (unit_of(in_func, in_dtype))
        UnitSum: begin
          unit_d = Units'(1) << Sum;
          latency_d = LatencyBits'(SumLatency);
        end
        UnitProd: begin
          unit_d = Units'(1) << Prod;
          latency_d = LatencyBits'(ProdLatency);
        end
        UnitUser: begin
          unit_d[Alu] = 1'b0;
          for (int unsigned s = 0; s < Slots; s++) begin
            if (SlotFuncs[16*s+32'(in_func_i[3:0])]) begin
              unit_d[3+s] = 1'b1;
              latency_d = SlotLatency[8*s+:8];
            end
          end
        end
        default: ;
      endcase
    end
  end

  assign in_ready_o = !held_q || issue;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) held_q <= 1'b0;
    else if (in_ready_o) held_q <= in_valid_i;
  end
  // What is here without `held_q` is of no use to anyone.
  logic clk_in;
  unisono_clock_gate u_gate (
    .clk_i,
    .enable_i(in_ready_o && in_valid_i),
    .clk_o   (clk_in)
  );
  always_ff @(posedge clk_in) begin
    if (in_ready_o) begin
      op0_q <= in_op0_i;
      op1_q <= in_op1_i;
      func_q <= in_func;
      dtype_q <= in_dtype;
      swap_q <= in_swap_i;
      use0_q <= in_use0_i;
      use1_q <= in_use1_i;
      keep_q <= in_keep_i;
      last_q <= in_last_i;
      user_q <= in_user_i;
      refused_q <= !supported;
      unit_q <= unit_d;
      latency_q <= latency_d;
    end
  end

  // `busy_q` cycles from now the newest result comes out. Invariant: the credits, the words in the
  // plugins and those in the queue are Depth together.
  logic [LatencyBits-1:0] busy_q;
  logic [CreditBits-1:0] credit_q;
  logic credit_back;
  assign issue = held_q && credit_q != '0 && latency_q > busy_q;
  assign credit_back = out_valid_o && out_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= '0;
      credit_q <= CreditBits'(Depth);
    end else begin
      if (issue) busy_q <= latency_q - LatencyBits'(1);
      else if (busy_q != '0) busy_q <= busy_q - LatencyBits'(1);
      credit_q <= credit_q - CreditBits'(issue) + CreditBits'(credit_back);
    end
  end
  assign idle_o = !held_q && credit_q == CreditBits'(Depth);

  assign plug_op0_o = op0_q;
  assign plug_op1_o = op1_q;
  assign plug_func_o = func_q;
  assign plug_dtype_o = dtype_q;
  assign plug_swap_o = swap_q;
  assign plug_use0_o = use0_q;
  assign plug_use1_o = use1_q;
  assign plug_keep_o = keep_q;
  assign plug_last_o = last_q;
  assign plug_user_o = user_q;
  assign plug_enable_o = unit_q[3+:Slots] & {Slots{issue}};

  // Only the shortest way is taken by words that are refused.
  logic [Units-1:0] valid;
  logic [Units-1:0][DataBits-1:0] data;
  logic [Units-1:0][SideBits-1:0] side;
  logic refused;

  unisono_plugin_alu #(
    .DataBytes(DataBytes),
    .UserBits (UserBits + 1),
    .Datatypes(Datatypes),
    .Funcs    (Funcs)
  ) u_alu (
    .clk_i,
    .rst_ni,
    .enable_i(unit_q[Alu] && issue),
    .op0_i   (op0_q),
    .op1_i   (op1_q),
    .func_i  (func_q),
    .dtype_i (dtype_q),
    .swap_i  (swap_q),
    .use0_i  (use0_q),
    .use1_i  (use1_q),
    .keep_i  (keep_q),
    .last_i  (last_q),
    .user_i  ({refused_q, user_q}),
    .valid_o (valid[Alu]),
    .data_o  (data[Alu]),
    .keep_o  (side[Alu][SideBits-1-:DataBytes]),
    .last_o  (side[Alu][UserBits]),
    .user_o  ({refused, side[Alu][UserBits-1:0]})
  );

  localparam bit HasSum = Funcs[1] && float_mask(Datatypes) != '0;
  if (HasSum) begin : gen_sum
    unisono_plugin_sum #(
      .DataBytes(DataBytes),
      .UserBits (UserBits),
      .Datatypes(Datatypes)
    ) u_sum (
      .clk_i,
      .rst_ni,
      .enable_i(unit_q[Sum] && issue),
      .op0_i   (op0_q),
      .op1_i   (op1_q),
      .func_i  (func_q),
      .dtype_i (dtype_q),
      .swap_i  (swap_q),
      .use0_i  (use0_q),
      .use1_i  (use1_q),
      .keep_i  (keep_q),
      .last_i  (last_q),
      .user_i  (user_q),
      .valid_o (valid[Sum]),
      .data_o  (data[Sum]),
      .keep_o  (side[Sum][SideBits-1-:DataBytes]),
      .last_o  (side[Sum][UserBits]),
      .user_o  (side[Sum][UserBits-1:0])
    );
  end else begin : gen_no_sum
    assign {valid[Sum], data[Sum], side[Sum]} = '0;
  end

  localparam bit HasProd = Funcs[2] && (Datatypes & ProdDatatypes) != '0;
  if (HasProd) begin : gen_prod
    unisono_plugin_prod #(
      .DataBytes(DataBytes),
      .UserBits (UserBits),
      .Datatypes(Datatypes)
    ) u_prod (
      .clk_i,
      .rst_ni,
      .enable_i(unit_q[Prod] && issue),
      .op0_i   (op0_q),
      .op1_i   (op1_q),
      .func_i  (func_q),
      .dtype_i (dtype_q),
      .swap_i  (swap_q),
      .use0_i  (use0_q),
      .use1_i  (use1_q),
      .keep_i  (keep_q),
      .last_i  (last_q),
      .user_i  (user_q),
      .valid_o (valid[Prod]),
      .data_o  (data[Prod]),
      .keep_o  (side[Prod][SideBits-1-:DataBytes]),
      .last_o  (side[Prod][UserBits]),
      .user_o  (side[Prod][UserBits-1:0])
    );
  end else begin : gen_no_prod
    assign {valid[Prod], data[Prod], side[Prod]} = '0;
  end

  logic [Slots-1:0] slot_valid;
  logic [Slots-1:0][SideBits-1:0] slot_side;
  always_comb begin
    for (int unsigned s = 0; s < Slots; s++) begin
      slot_valid[s] = plug_valid_i[s] && SlotFuncs[16*s+:16] != '0;
      slot_side[s] = {plug_keep_i[s], plug_last_i[s], plug_user_i[s]};
    end
  end
  assign valid[Units-1:3] = slot_valid;
  assign data[Units-1:3] = plug_data_i;
  assign side[Units-1:3] = slot_side;

  // At most one plugin has a result.
  logic [DataBits+SideBits:0] result;
  always_comb begin
    result = '0;
    for (int unsigned u = 0; u < Units; u++) begin
      result[DataBits+SideBits-1:0] |= {side[u], data[u]} & {(DataBits + SideBits) {valid[u]}};
    end
    result[DataBits+SideBits] = valid[Alu] && refused;
  end

  // A place is certain.
  logic queue_ready;
  logic [CreditBits-1:0] unused_count;
  unisono_fifo #(
    .Width(DataBits + SideBits + 1),
    .Depth(Depth)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .in_valid_i (valid != '0),
    .in_ready_o (queue_ready),
    .in_data_i  (result),
    .out_valid_o,
    .out_ready_i,
    .out_data_o ({out_refused_o, out_keep_o, out_last_o, out_user_o, out_data_o}),
    .count_o    (unused_count)
  );

`ifndef SYNTHESIS
  // Bit n: a result is due n + 1 cycles from now.
  logic [255:0] due_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      due_q <= '0;
    end else begin
      due_q <= (due_q >> 1) | (issue ? 256'd1 << (latency_q - LatencyBits'(1)) : '0);
      assert ((valid != '0) == due_q[0])
        else $error("%m: a plugin keeps not to its latency (valid %b, due %b)", valid, due_q[0]);
      assert ($onehot0(valid)) else $error("%m: two plugins have a result at once");
      assert (valid == '0 || queue_ready) else $error("%m: a result without a place");
      assert (!held_q || $onehot(unit_q)) else $error("%m: a word for no plugin, or for two");
      assert (!(in_valid_i && in_func_i == 8'(FuncNone)) || (in_use0_i != in_use1_i))
        else $error("%m: no function, and not one operand");
    end
  end
  unisono_handshake_check #(
    .Width(2 * DataBits + SideBits + 17)
  ) u_check_in (
    .clk_i,
    .rst_ni,
    .valid_i(in_valid_i),
    .ready_i(in_ready_o),
    .data_i ({in_op0_i, in_op1_i, in_func_i, in_dtype_i, in_swap_i, in_use0_i, in_use1_i,
              in_keep_i, in_last_i, in_user_i})
  );
`else
  logic unused;
  assign unused = queue_ready;
`endif

endmodule
