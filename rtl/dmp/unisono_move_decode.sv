// Checks a move as far as it shows by itself what is wrong with it, and says what the move needs.
//
// The checks are those of core/program_check.cpp, in groups (reason_e), and after them what
// `Capability` lacks. Not checked, because other blocks know: moves before the first (scoreboard),
// the producer of a segment dependency, and bounds of regions (dispatcher), and that an end is the
// last move.
//
// Latency: 1 cycle. Throughput: a move per cycle.
// Restrictions: Ranks is a power of two, at most 64. The masks of lists hold the members as the
// pool lists them; a list that names a rank twice must have been refused before.

module unisono_move_decode
  import unisono_spec_pkg::*;
  import unisono_move_decode_pkg::*;
#(
  parameter int unsigned Ranks = unisono_cclo_pkg::Ranks,
  parameter int unsigned SlotWidth = unisono_cclo_pkg::SlotWidth,
  // What the engine can do, as in its capability word. The default: messages, lists, loaded
  // programs, all functions but the user's.
  parameter logic [CapabilityWidth-1:0] Capability = 64'h0dc3_7fff_ffff_ff01,
  // Ports that there are, if there are streams; those of peers are not reached in this version.
  parameter int unsigned StreamPorts = MaxStreamPorts,
  // Whether peers' windows are read; they are written if the capability says so.
  parameter bit Gets = 1'b0,
  localparam int unsigned RankWidth = $clog2(Ranks)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 in_valid_i,
  output logic                 in_ready_o,
  input  logic [SlotWidth-1:0] in_slot_i,
  input  move_t                in_move_i,
  input  logic [Ranks-1:0]     list_receives_i,     // members of op1's list, if its peer is one
  input  logic [Ranks-1:0]     list_sends_i,        // members of the remote result's list
  input  logic [RankWidth:0]   size_i,              // ranks of the communicator

  output logic                 out_valid_o,
  input  logic                 out_ready_i,
  output logic [SlotWidth-1:0] out_slot_o,
  output move_t                out_move_o,
  output logic [Ranks-1:0]     out_receives_o,      // peers of whom a message arrives
  output logic [Ranks-1:0]     out_sends_o,         // peers to whom a message goes
  output logic                 out_needs_op0_o,     // elements are read from op0
  output logic                 out_needs_op1_memory_o,
  output logic                 out_has_local_o,     // elements are written locally
  output logic                 out_exists_o,        // something to do; else complete at once
  output logic [5:0]           out_distance_o,      // the greater segment dependency
  output logic                 out_malformed_o,     // refused, for whatever reason
  output reason_e              out_reason_o,
  output error_code_e          out_error_o
);

  localparam capability_t Able = capability_t'(Capability);
  // Lists are looked at in parts, so that the levels of logic stay few.
  localparam int unsigned Part = Ranks < 8 ? Ranks : 8;
  localparam int unsigned Parts = Ranks / Part;
  localparam int unsigned PartWidth = $clog2(Part);

  if (Ranks > 64 || Ranks < 2 || (Ranks & (Ranks - 1)) != 0) begin : gen_check_ranks
    $error("Ranks must be a power of two, 2 to 64");
  end
  if (Able.casts || Able.strides) begin : gen_check_capability
    $error("casts and strided moves are not part of this version");
  end

  move_t m;
  assign m = in_move_i;

  function automatic logic is_one_of(func_e func, func_e first, func_e last);
    return func >= first && func <= last;
  endfunction

  // Rule 27 of the model. The user's operators are defined where the capability says that there are
  // any.
  function automatic logic is_defined(func_e func, datatype_e dtype);
    logic integer_type, real_type, complex_type, pair_type;
    integer_type = dtype inside {DatatypeInt8, DatatypeInt16, DatatypeInt32, DatatypeInt64,
                                 DatatypeUint8, DatatypeUint16, DatatypeUint32, DatatypeUint64};
    real_type = dtype inside {DatatypeFp16, DatatypeBf16, DatatypeFp32, DatatypeFp64};
    complex_type = dtype inside {DatatypeComplex64, DatatypeComplex128};
    pair_type = dtype inside {DatatypeFp32Int32, DatatypeFp64Int32, DatatypeInt32Int32,
                              DatatypeInt64Int64};
    case (func)
      FuncSum, FuncProd: return integer_type || real_type || complex_type;
      FuncMin, FuncMax: return integer_type || real_type || dtype == DatatypeBool;
      FuncLogicalAnd, FuncLogicalOr, FuncLogicalXor: return integer_type || dtype == DatatypeBool;
      FuncBitwiseAnd, FuncBitwiseOr, FuncBitwiseXor:
        return integer_type || dtype == DatatypeBool || dtype == DatatypeByte;
      FuncMinloc, FuncMaxloc: return pair_type;
      FuncAvg: return real_type || complex_type;
      FuncNone: return 1'b0;
      default: return dtype != DatatypeNone;
    endcase
  endfunction

  function automatic logic can_be_reached(region_e region);
    return region inside {RegionSrc, RegionDst, RegionWindow};
  endfunction

  logic moves, empty, exists, arrives, fetches, sends, puts, has0, has1;
  logic list1, list_out, fan_in, several;
  assign moves = m.kind == MoveKindMove;
  assign empty = !m.count_indirect && m.count == '0;
  assign exists = moves && (!empty || m.signal);
  assign arrives = m.op1.kind == OperandKindArrival;
  assign fetches = m.op1.kind == OperandKindRemoteMemory;
  assign sends = m.remote.kind == RemoteKindMessage;
  assign puts = m.remote.kind == RemoteKindMemory;
  assign has0 = m.op0.kind != OperandKindNone;
  assign has1 = m.op1.kind != OperandKindNone;
  assign list1 = m.arrival.mode != PeerModeRank;
  assign list_out = m.remote.mode != PeerModeRank;
  assign fan_in = (arrives || fetches) && list1;
  assign several = has_several(list_receives_i);

  logic [Ranks-1:0] one_receives, one_sends;
  assign one_receives = Ranks'(1) << m.arrival.peer[RankWidth-1:0];
  assign one_sends = Ranks'(1) << m.remote.peer[RankWidth-1:0];

  // More than one member: in a part, or in two parts.
  function automatic logic has_several(logic [Ranks-1:0] list);
    logic [Parts-1:0] any, more;
    for (int p = 0; p < int'(Parts); p++) begin
      any[p] = |list[p*Part+:Part];
      more[p] = (list[p*Part+:Part] & (list[p*Part+:Part] - 1'b1)) != '0;
    end
    return more != '0 || (any & (any - 1'b1)) != '0;
  endfunction

  // A member that is no rank of the communicator. A part is beyond its end, or holds it.
  function automatic logic has_stranger(logic [Ranks-1:0] list, logic [RankWidth:0] size);
    logic [Parts-1:0] found;
    for (int p = 0; p < int'(Parts); p++) begin
      logic [Part-1:0] outside;
      for (int k = 0; k < int'(Part); k++) begin
        outside[k] = list[p*Part+k] &&
                     (32'(size) >> PartWidth < p || 32'(size[PartWidth-1:0]) <= k);
      end
      found[p] = 32'(size) >> PartWidth <= p && outside != '0;
    end
    return found != '0;
  endfunction

  function automatic logic is_member(logic [23:0] peer, logic [RankWidth:0] size);
    return peer < 24'(size);
  endfunction

  function automatic logic is_list(logic [Ranks-1:0] list, logic [RankWidth:0] size);
    return list != '0 && !has_stranger(list, size);
  endfunction

  function automatic logic bad_port(operand_kind_e kind, logic [47:0] port);
    return kind == OperandKindStream && port >= 48'(MaxStreamPorts);
  endfunction

  function automatic logic lacks_port(operand_kind_e kind, logic [47:0] port);
    return kind == OperandKindStream && (!Able.streams || port >= 48'(StreamPorts));
  endfunction

  // `word` is the lowest bits of the offset in params.
  function automatic logic bad_params(operand_kind_e kind, logic indirect, logic [2:0] word);
    return kind == OperandKindMemory && indirect && word != '0;
  endfunction

  // Of remote memory an engine does what put and get need: what stands here goes to one peer's window, or what stands
  // there comes here.
  logic plain, plain_put, plain_get, own_window;
  assign plain_put = has0 && !has1 && m.func == FuncNone && m.local_.kind == OperandKindNone && !list_out &&
                     m.remote_address.result_region == RegionWindow;
  assign plain_get = !has0 && m.func == FuncNone && m.local_.kind == OperandKindMemory &&
                     m.remote.kind == RemoteKindNone && !list1 && m.remote_address.region == RegionWindow &&
                     m.segment_dependency0 == '0 && m.segment_dependency1 == '0;
  assign plain = fetches ? plain_get && Gets : plain_put;
  // An operand that stands in this rank's own window.
  function automatic logic in_window(operand_kind_e kind, region_e region);
    return kind == OperandKindMemory && region == RegionWindow;
  endfunction
  assign own_window = in_window(m.op0.kind, m.op0.region) || in_window(m.op1.kind, m.op1.region) ||
                      in_window(m.local_.kind, m.local_.region);

  logic bad_peer1, bad_peer_out, bad_func, undefined, bad_count, lacks_func;
  logic [3:0] func_bit;

  always_comb begin
    bad_peer1 = 1'b0;
    if (moves && (arrives || fetches)) begin
      bad_peer1 = list1 ? !is_list(list_receives_i, size_i) : !is_member(m.arrival.peer, size_i);
      if (fetches && m.arrival.mode == PeerModeAny) bad_peer1 = 1'b1;
    end
    bad_peer_out = 1'b0;
    if (moves && m.remote.kind != RemoteKindNone) begin
      bad_peer_out = list_out ? !is_list(list_sends_i, size_i) || m.remote.kind == RemoteKindStream
                              : !is_member(m.remote.peer, size_i);
      if (m.remote.mode == PeerModeAny) bad_peer_out = 1'b1;
    end

    // With two operands, or several messages, there is a function; with one there is none, or a
    // mean.
    if (m.func == FuncNone) begin
      bad_func = (has0 && has1) || (fan_in && !empty && several);
    end else if (m.func == FuncAvg) begin
      bad_func = has0 == has1 || fan_in;
    end else begin
      bad_func = !(has0 && has1) && !fan_in;
    end
    undefined = m.func != FuncNone && !empty && !is_defined(m.func, m.dtype);
    bad_count = !empty && ((!has0 && !has1) || m.dtype == DatatypeNone ||
                           (m.local_.kind == OperandKindNone && m.remote.kind == RemoteKindNone));

    func_bit = is_one_of(m.func, FuncUser0, FuncOrdered7) ? 4'd15 : m.func[3:0];
    lacks_func = m.func != FuncNone && !empty && !(Able.funcs[func_bit] && m.dtype < 6'd24 &&
                                                   Able.datatypes[m.dtype[4:0]]);
  end

  // Each check by itself, at the place of its reason; then the first that failed. A chain of
  // conditions would be as deep as it is long. The check of peers takes longest, and joins last.
  localparam int unsigned Reasons = 32;
  logic [Reasons-1:0] fails;
  always_comb begin
    fails = '0;
    fails[ReasonOperand] = m.op0.kind inside {OperandKindArrival, OperandKindRemoteMemory} ||
                           m.op1.kind == OperandKindStream ||
                           m.local_.kind inside {OperandKindArrival, OperandKindRemoteMemory};
    fails[ReasonCast] = m.op0.cast != CastNone || m.op1.cast != CastNone ||
                        m.local_.cast != CastNone || m.remote.cast != CastNone;
    fails[ReasonPort] = bad_port(m.op0.kind, m.op0.offset) ||
                        bad_port(m.local_.kind, m.local_.offset) ||
                        (m.remote.kind == RemoteKindStream && 32'(m.remote.port) >= MaxStreamPorts);
    fails[ReasonParams] = bad_params(m.op0.kind, m.op0.indirect, m.op0.offset[2:0]) ||
                          bad_params(m.op1.kind, m.op1.indirect, m.op1.offset[2:0]) ||
                          bad_params(m.local_.kind, m.local_.indirect, m.local_.offset[2:0]) ||
                          (m.count_indirect && m.count[2:0] != '0);
    fails[ReasonStrided] = m.remote_address.strided;
    fails[ReasonRegion] = (fetches && !can_be_reached(m.remote_address.region)) ||
                          (puts && !can_be_reached(m.remote_address.result_region));
    fails[ReasonFunc] = bad_func;
    fails[ReasonUndefined] = undefined;
    fails[ReasonCount] = bad_count;
    fails[ReasonSignal] = m.signal && !arrives && !sends;
    // What goes to several peers is read for each, from op0 or from the local result. A stream gives its elements once.
    fails[ReasonNoStreams] = lacks_port(m.op0.kind, m.op0.offset) || lacks_port(m.local_.kind, m.local_.offset) ||
                             m.remote.kind == RemoteKindStream ||
                             (sends && list_out && (m.local_.kind == OperandKindStream ||
                                                    (m.op0.kind == OperandKindStream &&
                                                     m.local_.kind != OperandKindMemory)));
    fails[ReasonNoRemoteMemory] = ((fetches || puts) && !(Able.remote_memory && plain)) || own_window;
    fails[ReasonNoLists] = !Able.lists && m.remote.kind != RemoteKindNone && list_out;
    fails[ReasonNoFanIn] = !Able.fan_in && fan_in;
    fails[ReasonNoFunc] = lacks_func;
    fails[ReasonNoRendezvous] = !Able.rendezvous && m.protocol == ProtocolRendezvous &&
                                (arrives || sends);
    // The checks above are for moves; these are for all.
    if (!moves) fails = '0;
    fails[ReasonFields] = !move_well_formed(m);
    fails[ReasonDistance] = m.segment_dependency0[5] || m.segment_dependency1[5];
  end

  logic malformed, fails_other, fails_peer;
  logic [$clog2(Reasons)-1:0] other, first;
  logic [Reasons-1:0] unused_one;
  unisono_lowest_one #(.Width(Reasons)) u_other (
    .bits_i(fails), .any_o(fails_other), .index_o(other), .one_o(unused_one)
  );
  assign fails_peer = bad_peer1 || bad_peer_out;
  assign malformed = fails_other || fails_peer;
  assign first = fails_peer && fails[ReasonPeer-1:0] == '0 ? ReasonPeer : other;

  logic out_valid_q;
  assign in_ready_o = !out_valid_q || out_ready_i;
  assign out_valid_o = out_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q <= 1'b0;
    end else if (in_ready_o) begin
      out_valid_q <= in_valid_i;
    end
    if (in_ready_o && in_valid_i) begin
      out_slot_o <= in_slot_i;
      out_move_o <= in_move_i;
      out_receives_o <= exists && arrives ? (list1 ? list_receives_i : one_receives) : '0;
      out_sends_o <= exists && sends ? (list_out ? list_sends_i : one_sends) : '0;
      out_needs_op0_o <= moves && !empty && has0;
      out_needs_op1_memory_o <= moves && !empty && m.op1.kind == OperandKindMemory;
      out_has_local_o <= moves && !empty && m.local_.kind != OperandKindNone;
      out_exists_o <= exists;
      out_distance_o <= m.segment_dependency0 > m.segment_dependency1 ? m.segment_dependency0
                                                                      : m.segment_dependency1;
      out_malformed_o <= malformed;
      out_reason_o <= reason_e'(first);
      out_error_o <= fails_peer || fails[ReasonNoStreams-1:0] != '0 ? ErrorCodeMalformedProgram :
                     fails_other ? ErrorCodeUnsupported : ErrorCodeOk;
    end
  end

endmodule
