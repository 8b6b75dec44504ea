// Gives moves the streams that their call has bound to src or dst.
//
// A program names regions, not addresses. A call whose src (or dst) is a stream binds that region to a port; here the
// operands of its moves that name the region become operands of the port. A stream has no offsets, so this is right
// only for programs that go through the region once, from its begin to its end, in the order of their moves: others
// are refused with `unsupported`. A dst that is read (the root's of a broadcast) is a stream to the engine, one that is
// written a stream to the kernel; it cannot be both.
//
// Latency: none for moves that name no such region, 3 cycles for the others (5 if it names both), 1 for a refusal.
// fail_valid_o stands while the move that goes on in place of a refused one is offered.

// Records carry more than one block looks at, and not every output of a part is needed here.
// verilator lint_off UNUSEDSIGNAL

module unisono_move_streams
  import unisono_spec_pkg::*;
  import unisono_cclo_pkg::*;
(
  input  logic clk_i,
  input  logic rst_ni,

  // Which regions of the active calls are streams.
  input  logic [Calls-1:0] src_stream_i,
  input  logic [Calls-1:0] dst_stream_i,
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

  // Where a region stands, here the port: asked while high, answered one cycle after it was granted.
  output logic     binding_valid_o,
  input  logic     binding_ready_i,
  output slot_t    binding_slot_o,
  output region_e  binding_region_o,
  input  binding_t binding_i,

  output logic        fail_valid_o,
  output slot_t       fail_slot_o,
  output error_code_e fail_code_o
);

  typedef enum logic [2:0] { Look, AskSrc, HaveSrc, AskDst, HaveDst, Offer, Refused } state_e;
  state_e state_d, state_q;
  logic [47:0] src_port_d, src_port_q, dst_port_d, dst_port_q;

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

  logic src, dst, src0, dst0, src1, dst1, srcl, dstl, concerns, empty, bad;
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

  assign in_ready_o = out_valid_o && out_ready_i;
  assign binding_slot_o = in_slot_i;
  assign binding_valid_o = state_q == AskSrc || state_q == AskDst;
  assign binding_region_o = state_q == AskSrc ? RegionSrc : RegionDst;
  assign fail_valid_o = state_q == Refused;
  assign fail_slot_o = in_slot_i;
  assign fail_code_o = ErrorCodeUnsupported;

  always_comb begin
    state_d = state_q;
    src_port_d = src_port_q;
    dst_port_d = dst_port_q;
    out_move_o = m;
    out_valid_o = 1'b0;
    unique case (state_q)
      Look: if (in_valid_i && concerns && !empty) begin
        state_d = bad ? Refused : src0 ? AskSrc : AskDst;
      end else begin
        out_valid_o = in_valid_i;
        // Nothing is read or written, so it does not matter where.
        if (concerns && (src0 || dst0)) out_move_o.op0.offset = '0;
        if (concerns && (src1 || dst1)) out_move_o.op1.offset = '0;
        if (concerns && (srcl || dstl)) out_move_o.local_.offset = '0;
      end
      AskSrc: if (binding_ready_i) state_d = HaveSrc;
      HaveSrc: begin
        src_port_d = binding_i.address[47:0];
        state_d = dst0 || dstl ? AskDst : Offer;
      end
      AskDst: if (binding_ready_i) state_d = HaveDst;
      HaveDst: begin
        dst_port_d = binding_i.address[47:0];
        state_d = Offer;
      end
      Offer: begin
        out_valid_o = 1'b1;
        // All else stays, such as a cast, which is refused behind this block.
        if (src0 || dst0) begin
          out_move_o.op0.kind = OperandKindStream;
          out_move_o.op0.region = RegionSrc;
          out_move_o.op0.offset = src0 ? src_port_q : dst_port_q;
        end
        if (dstl) begin
          out_move_o.local_.kind = OperandKindStream;
          out_move_o.local_.region = RegionSrc;
          out_move_o.local_.offset = dst_port_q;
        end
        if (out_ready_i) state_d = Look;
      end
      default: begin
        // A move that does nothing goes on in its place, until the call is cleared.
        out_valid_o = 1'b1;
        out_move_o = '0;
        out_move_o.kind = MoveKindMove;
        if (out_ready_i) state_d = Look;
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= Look;
      src_port_q <= '0;
      dst_port_q <= '0;
    end else begin
      state_q <= state_d;
      src_port_q <= src_port_d;
      dst_port_q <= dst_port_d;
    end
  end

  for (genvar s = 0; s < int'(Calls); s++) begin : gen_place
    always_ff @(posedge clk_i) begin
      if (!rst_ni || (clear_valid_i && clear_slot_i == slot_t'(s))) begin
        place_q[s] <= '0;
      end else if (state_q == Offer && out_ready_i && in_slot_i == slot_t'(s)) begin
        place_q[s] <= place_new;
      end
    end
  end

endmodule
