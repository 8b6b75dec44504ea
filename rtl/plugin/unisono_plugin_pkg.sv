// What a reduction plugin is, and which of them computes what.
//
// A plugin combines one word of each operand per cycle. It has a fixed latency, no back-pressure
// and no memory from word to word unless it says so; unisono_plugin_array puts valid and ready
// around all of them. The ports of a plugin are listed in docs/rtl/plugin_array.md.
//
// This package holds what plugins and their surroundings must agree on: latencies, the formats of
// floating point, the table of what is supported, and the capability word made from it.

package unisono_plugin_pkg;

  import unisono_spec_pkg::*;

  // A design uses only a part of this package, and functions only look at some bits of what they
  // get.
  // verilator lint_off UNUSEDPARAM
  // verilator lint_off UNUSEDSIGNAL

  // Bit n: datatype n, function n. As in the capability record, but for the operators of the user.
  typedef logic [23:0] datatype_mask_t;
  typedef logic [31:0] func_mask_t;

  localparam datatype_mask_t AllDatatypes = 24'h1f_fffe;
  // Everything that the plugins of this folder compute: no avg, no operators of the user.
  localparam func_mask_t AllFuncs = 32'h0000_1ffe;

  // Of these there are products: not of complex numbers.
  localparam datatype_mask_t ProdDatatypes = 24'h00_fcfc;

  // Cycles from the operands of a word to its result.
  localparam int unsigned AluLatency = 3;
  localparam int unsigned SumLatency = 8;
  localparam int unsigned ProdLatency = 11;

  // Of unisono_multiply_array: a step for every 17 bits, and then a row for every 26 to be added.
  function automatic int unsigned multiply_array_latency(int unsigned width);
    return (width + 16) / 17 + (width + 25) / 26 - 1;
  endfunction

  // Of unisono_multiply.
  function automatic int unsigned multiply_latency(int unsigned width);
    return 5 + multiply_array_latency(width);
  endfunction

  // Which plugin computes a function of a datatype.
  typedef enum logic [2:0] {
    UnitNone = 3'd0,
    // passes, integer sum, min, max, logical, bitwise, minloc, maxloc
    UnitAlu = 3'd1,
    // sum of floating point and complex numbers
    UnitSum = 3'd2,
    // product of floating point and integers
    UnitProd = 3'd3,
    // an operator of the user
    UnitUser = 3'd4
  } unit_e;

  function automatic logic is_user_func(func_e func);
    return func[7:4] == 4'd1;
  endfunction

  function automatic logic is_integer(datatype_e dtype);
    case (dtype)
      DatatypeInt8, DatatypeUint8, DatatypeInt16, DatatypeUint16, DatatypeInt32, DatatypeUint32,
      DatatypeInt64, DatatypeUint64: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  function automatic logic is_signed(datatype_e dtype);
    case (dtype)
      DatatypeInt8, DatatypeInt16, DatatypeInt32, DatatypeInt64: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  function automatic logic is_float(datatype_e dtype);
    case (dtype)
      DatatypeFp16, DatatypeBf16, DatatypeFp32, DatatypeFp64: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  function automatic logic is_complex(datatype_e dtype);
    return dtype == DatatypeComplex64 || dtype == DatatypeComplex128;
  endfunction

  function automatic logic is_pair(datatype_e dtype);
    case (dtype)
      DatatypeFp32Int32, DatatypeFp64Int32, DatatypeInt32Int32, DatatypeInt64Int64: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Whether a built-in function of two operands is defined on a datatype: rule 27 of docs/model.md.
  function automatic logic is_defined(func_e func, datatype_e dtype);
    case (func)
      FuncSum, FuncProd: return is_integer(dtype) || is_float(dtype) || is_complex(dtype);
      FuncMin, FuncMax: return is_integer(dtype) || is_float(dtype) || dtype == DatatypeBool;
      FuncLogicalAnd, FuncLogicalOr, FuncLogicalXor:
        return is_integer(dtype) || dtype == DatatypeBool;
      FuncBitwiseAnd, FuncBitwiseOr, FuncBitwiseXor:
        return is_integer(dtype) || dtype == DatatypeBool || dtype == DatatypeByte;
      FuncMinloc, FuncMaxloc: return is_pair(dtype);
      default: return 1'b0;
    endcase
  endfunction

  // The plugin for a function of a datatype, UnitNone if there is none. FuncNone passes anything.
  function automatic unit_e unit_of(func_e func, datatype_e dtype);
    if (func == FuncNone) return UnitAlu;
    if (is_user_func(func)) return dtype == DatatypeNone ? UnitNone : UnitUser;
    if (!is_defined(func, dtype)) return UnitNone;
    case (func)
      FuncSum: return is_float(dtype) || is_complex(dtype) ? UnitSum : UnitAlu;
      FuncProd: return is_complex(dtype) ? UnitNone : UnitProd;
      default: return UnitAlu;
    endcase
  endfunction

  // Whether an array built with these masks computes a function of a datatype. `user_funcs` bit n:
  // a plugin of the user is attached for FuncUser0 + n.
  function automatic logic is_supported(datatype_mask_t datatypes, func_mask_t funcs,
                                        logic [15:0] user_funcs, func_e func, datatype_e dtype);
    if (func == FuncNone) return 1'b1;
    if (!datatype_known(dtype) || dtype == DatatypeNone) return 1'b0;
    if (is_user_func(func)) return user_funcs[func[3:0]];
    if (!func_known(func)) return 1'b0;
    return datatypes[dtype[4:0]] && funcs[func[4:0]] && unit_of(func, dtype) != UnitNone;
  endfunction

  // Fields `funcs` and `datatypes` of the capability word. The word has no bit for a pair of both,
  // so a datatype counts only if every function of the mask that is defined on it is computed, and
  // at least one is.
  function automatic logic [15:0] capability_funcs(func_mask_t funcs, logic [15:0] user_funcs);
    return {user_funcs != '0, 2'b0, funcs[12:0] & AllFuncs[12:0]};
  endfunction

  function automatic datatype_mask_t capability_datatypes(datatype_mask_t datatypes,
                                                          func_mask_t funcs);
    datatype_mask_t result;
    for (int unsigned d = 0; d < 24; d++) begin
      logic any;
      logic all;
      any = 1'b0;
      all = 1'b1;
      for (int unsigned f = 1; f < 16; f++) begin
        if (funcs[f[4:0]] && is_defined(func_e'(f[7:0]), datatype_e'(d[5:0]))) begin
          any = 1'b1;
          all &= is_supported(datatypes, funcs, '0, func_e'(f[7:0]), datatype_e'(d[5:0]));
        end
      end
      result[d[4:0]] = any && all;
    end
    return result;
  endfunction

  // Bytes that compute together: elements, but the parts of complex numbers.
  function automatic logic [3:0] part_bytes(datatype_e dtype);
    case (dtype)
      DatatypeComplex64: return 4'd4;
      DatatypeComplex128: return 4'd8;
      default: return 4'(datatype_bytes(dtype) > 8 ? 32'd8 : datatype_bytes(dtype));
    endcase
  endfunction

  // Formats of floating point. The order is used: bit 1 tells 16-bit formats from the others.
  typedef enum logic [1:0] {
    FloatFp64 = 2'd0,
    FloatFp32 = 2'd1,
    FloatFp16 = 2'd2,
    FloatBf16 = 2'd3
  } float_e;

  // Bit f: format f.
  typedef logic [3:0] float_mask_t;

  function automatic float_e float_of(datatype_e dtype);
    case (dtype)
      DatatypeFp32, DatatypeComplex64: return FloatFp32;
      DatatypeFp16: return FloatFp16;
      DatatypeBf16: return FloatBf16;
      default: return FloatFp64;
    endcase
  endfunction

  // Formats that a mask of datatypes asks for.
  function automatic float_mask_t float_mask(datatype_mask_t datatypes);
    return {datatypes[5'(DatatypeBf16)], datatypes[5'(DatatypeFp16)],
            datatypes[5'(DatatypeFp32)] | datatypes[5'(DatatypeComplex64)],
            datatypes[5'(DatatypeFp64)] | datatypes[5'(DatatypeComplex128)]};
  endfunction

  // The given format if the mask has it, otherwise some that it has: lets a lane for few formats
  // shrink to what these need. `formats` must be constant.
  function automatic float_e float_limit(float_e float, float_mask_t formats);
    logic half;
    half = (float[1] || formats[1:0] == '0) && formats[3:2] != '0;
    if (half) return formats[3] && (float[0] || !formats[2]) ? FloatBf16 : FloatFp16;
    return formats[1] && (float[0] || !formats[0]) ? FloatFp32 : FloatFp64;
  endfunction

  // Bits of the exponent, and of the significand with its hidden bit, of the largest of some
  // formats.
  function automatic int unsigned float_exp_bits(float_mask_t formats);
    return formats[0] ? 11 : formats[1] || formats[3] ? 8 : 5;
  endfunction

  function automatic int unsigned float_sig_bits(float_mask_t formats);
    return formats[0] ? 53 : formats[1] ? 24 : formats[2] ? 11 : 8;
  endfunction

  // A number of any format taken apart: the exponent as it stands, to the right; the fraction to
  // the left. So all formats have their leading bit in one place, and share what follows.
  typedef struct packed {
    logic        sign;
    logic [10:0] exp;
    logic [51:0] frac;
  } float_t;

  // The bits above an element's are not looked at.
  function automatic float_t float_unpack(logic [63:0] raw, float_e float);
    case (float)
      FloatFp64: return raw;
      FloatFp32: return {raw[31], 3'b0, raw[30:0], 29'b0};
      FloatFp16: return {raw[15], 6'b0, raw[14:0], 42'b0};
      default: return {raw[15], 3'b0, raw[14:0], 45'b0};
    endcase
  endfunction

  function automatic logic [63:0] float_pack(float_t value, float_e float);
    case (float)
      FloatFp64: return value;
      FloatFp32: return {32'b0, value.sign, value.exp[7:0], value.frac[51:29]};
      FloatFp16: return {48'b0, value.sign, value.exp[4:0], value.frac[51:42]};
      default: return {48'b0, value.sign, value.exp[7:0], value.frac[51:45]};
    endcase
  endfunction

  // The exponent of infinity and NaN.
  function automatic logic [10:0] float_exp_max(float_e float);
    case (float)
      FloatFp64: return 11'h7ff;
      FloatFp16: return 11'h01f;
      default: return 11'h0ff;
    endcase
  endfunction

  // What unisono_alu_chunk does with its 8 bytes. A *part* is what computes together: an element,
  // or the value or index of a pair.
  typedef enum logic [2:0] {
    AluRowSum = 3'd0,
    AluRowAnd = 3'd1,
    AluRowOr = 3'd2,
    AluRowXor = 3'd3,
    // also where the operands are compared: the first one goes on
    AluRowOp0 = 3'd4,
    AluRowOp1 = 3'd5,
    AluRowZero = 3'd6
  } alu_row_e;

  typedef struct packed {
    alu_row_e row;
    // the adder subtracts, and each part's result is one of the operands
    logic compare;
    // the greater one
    logic greater;
    // log2 of the bytes of a part
    logic [1:0] size;
    // parts are signed, or floating point; [1] the upper four bytes, [0] the lower ones
    logic is_signed;
    logic [1:0] is_float;
    float_e format;
    // truth values: 0 none, 1 and, 2 or, 3 xor
    logic [1:0] logical;
    // the chunk is a pair of 4-byte parts; half a pair of 8-byte parts
    logic pair8;
    logic pair16;
    // bytes 4 to 7 of the result are zero
    logic pad;
  } alu_control_t;

  // What a stream cast does with the words of a packet.
  typedef enum logic [1:0] {
    // words pass as they are
    CastModePass = 2'd0,
    // fp32 on the wide side, fp16 on the narrow one
    CastModeFp16 = 2'd1,
    // fp32 on the wide side, bf16 on the narrow one
    CastModeBf16 = 2'd2
  } cast_mode_e;

  // fp16 to fp32, exactly. A signalling NaN stays one.
  function automatic logic [31:0] widen_fp16(logic [15:0] half);
    logic [3:0] zeros;
    logic [9:0] shifted;
    zeros = 4'd10;
    for (int unsigned i = 0; i < 10; i++) if (half[i]) zeros = 4'(9 - i);
    // A subnormal becomes normal: its leading one turns into the hidden bit.
    shifted = half[9:0] << (zeros + 4'd1);
    if (half[14:10] == 5'h1f) return {half[15], 8'hff, half[9:0], 13'b0};
    if (half[14:10] != 5'd0) return {half[15], 8'd112 + 8'(half[14:10]), half[9:0], 13'b0};
    if (half[9:0] == '0) return {half[15], 31'b0};
    return {half[15], 8'd112 - 8'(zeros), shifted, 13'b0};
  endfunction

  // bf16 to fp32, exactly.
  function automatic logic [31:0] widen_bf16(logic [15:0] brain);
    return {brain, 16'b0};
  endfunction

  // fp32 to the nearest bf16, ties to even. NaN becomes quiet and keeps its sign and upper payload.
  function automatic logic [15:0] narrow_bf16(logic [31:0] value);
    logic round;
    if (value[30:23] == 8'hff && value[22:0] != '0) return value[31:16] | 16'h0040;
    round = value[15] && (value[16] || value[14:0] != '0);
    return value[31:16] + 16'(round);
  endfunction

  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNUSEDPARAM

endpackage
