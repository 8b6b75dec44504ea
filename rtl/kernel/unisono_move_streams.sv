// Gives moves the streams that their call has bound to src or dst.
//
// A program names regions, not addresses. A call whose src (or dst) is a stream binds that region to a port; here the
// operands of its moves that name the region become operands of the port. A stream has no offsets, so this is right
// only for programs that go through the region once, from its begin to its end, in the order of their moves: others
// are refused with `unsupported`. A dst that is read (the root's of a broadcast) is a stream to the engine, one that is
// written a stream to the kernel; it cannot be both.
//
// Latency: none, 1 cycle for a refusal. fail_valid_o stands while the move that goes on in place of a refused one is
// offered.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL

module unisono_move_streams
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // Which regions of the active calls are streams, and their ports.
  input  logic [Calls-1:0] src_stream_i,
  input  logic [Calls-1:0] dst_stream_i,
  input  stream_port_t [Calls-1:0] src_port_i,
  input  stream_port_t [Calls-1:0] dst_port_i,
  // A slot's call is over: its next one begins anew.
  input  logic  clear_valid_i,
  input  slot_t clear_slot_i,

  input  logic  in_valid_i,
  output logic  in_ready_o,
  input  slot_t in_slot_i,
  input  move_t in_move_i,
  input  logic  in_end_i,

  output logic  out_valid_o,
  input  logic  out_ready_i,
  output move_t out_move_o,

  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o
);

  logic refused_d, refused_q;                   // the move that is offered stands in place of a refused one

  // How far a call's program is in each region, and which way its dst goes.
  typedef struct packed {
    logic reads_dst;
    logic writes_dst;
    message_bytes_t src;
    message_bytes_t dst;
  } place_t;
  place_t place_q [Calls];
  place_t place, place_new;
  assign place = place_q[in_slot_i];

  move_t m;
  assign m = in_move_i;

  function automatic logic names(operand_t operand, region_e region);
    return operand.kind == OperandKindMemory && operand.region == region;
  endfunction

  logic src, dst, src0, dst0, src1, dst1, srcl, dstl, concerns, empty, bad, goes;
  assign src = src_stream_i[in_slot_i];
  assign dst = dst_stream_i[in_slot_i];
  assign src0 = src && names(m.op0, RegionSrc);
  assign src1 = src && names(m.op1, RegionSrc);
  assign srcl = src && names(m.local_, RegionSrc);
  assign dst0 = dst && names(m.op0, RegionDst);
  assign dst1 = dst && names(m.op1, RegionDst);
  assign dstl = dst && names(m.local_, RegionDst);
  assign concerns = !in_end_i && m.kind == MoveKindMove && (src0 || src1 || srcl || dst0 || dst1 || dstl);
  assign empty = m.count == '0;

  message_bytes_t bytes;
  always_comb begin
    case (datatype_bytes(m.dtype))
      32'd2: bytes = {7'b0, m.count, 1'b0};
      32'd4: bytes = {6'b0, m.count, 2'b0};
      32'd8: bytes = {5'b0, m.count, 3'b0};
      32'd16: bytes = {4'b0, m.count, 4'b0};
      default: bytes = {8'b0, m.count};
    endcase
  end

  assign bad = src1 || srcl || dst1 || (dst0 && dstl) || (src0 && m.op0.offset != place.src) ||
               (dst0 && (m.op0.offset != place.dst || place.writes_dst)) ||
               (dstl && (m.local_.offset != place.dst || place.reads_dst));

  always_comb begin
    place_new = place;
    if (src0) place_new.src = place.src + bytes;
    if (dst0 || dstl) place_new.dst = place.dst + bytes;
    place_new.reads_dst = place.reads_dst || dst0;
    place_new.writes_dst = place.writes_dst || dstl;
  end

  assign goes = in_valid_i && concerns && !empty && !bad && !refused_q;
  assign out_valid_o = refused_q || (in_valid_i && !(concerns && !empty && bad));
  assign in_ready_o = out_valid_o && out_ready_i;
  assign refused_d = refused_q ? !out_ready_i : in_valid_i && concerns && !empty && bad;
  assign fail_valid_o = refused_q;
  assign fail_slot_o = in_slot_i;
  assign fail_code_o = ErrorCodeUnsupported;

  always_comb begin
    out_move_o = m;
    if (refused_q) begin
      // A move that does nothing goes on in its place, until the call is cleared.
      out_move_o = '0;
      out_move_o.kind = MoveKindMove;
    end else if (concerns && empty) begin
      // Nothing is read or written, so it does not matter where.
      if (src0 || dst0) out_move_o.op0.offset = '0;
      if (src1 || dst1) out_move_o.op1.offset = '0;
      if (srcl || dstl) out_move_o.local_.offset = '0;
    end else if (concerns) begin
      // All else stays, such as a cast, which is refused behind this block.
      if (src0 || dst0) begin
        out_move_o.op0.kind = OperandKindStream;
        out_move_o.op0.region = RegionSrc;
        out_move_o.op0.offset = src0 ? 48'(src_port_i[in_slot_i]) : 48'(dst_port_i[in_slot_i]);
      end
      if (dstl) begin
        out_move_o.local_.kind = OperandKindStream;
        out_move_o.local_.region = RegionSrc;
        out_move_o.local_.offset = 48'(dst_port_i[in_slot_i]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    refused_q <= rst_ni && refused_d;
  end

  for (genvar s = 0; s < int'(Calls); s++) begin : gen_place
    always_ff @(posedge clk_i) begin
      if (!rst_ni || (clear_valid_i && clear_slot_i == slot_t'(s))) begin
        place_q[s] <= '0;
      end else if (goes && out_ready_i && in_slot_i == slot_t'(s)) begin
        place_q[s] <= place_new;
      end
    end
  end

endmodule
