// Generated from spec/ by `python -m spec.generator`. Do not edit.
//
// Bit 0 of a record is the lowest bit of its first field, hence the last member of the struct.
// A member whose name would be a keyword of SystemVerilog ends in an underscore.

package unisono_spec_pkg;

  // A design uses only a part of the specification.
  // verilator lint_off UNUSEDPARAM

  // Element types of buffers, moves and messages.
  typedef enum logic [5:0] {
    // no element type (barrier, signal)
    DatatypeNone = 6'd0,
    // uninterpreted byte; has bitwise operators only
    DatatypeByte = 6'd1,
    // two's complement 32-bit integer; arithmetic wraps
    DatatypeInt32 = 6'd2,
    // two's complement 64-bit integer; arithmetic wraps
    DatatypeInt64 = 6'd3,
    // IEEE 754 binary16; accumulates in fp32 within a move
    DatatypeFp16 = 6'd4,
    // bfloat16; accumulates in fp32 within a move
    DatatypeBf16 = 6'd5,
    // IEEE 754 binary32
    DatatypeFp32 = 6'd6,
    // IEEE 754 binary64
    DatatypeFp64 = 6'd7,
    // complex number of two fp32: real part, imaginary part
    DatatypeComplex64 = 6'd8,
    // complex number of two fp64: real part, imaginary part
    DatatypeComplex128 = 6'd9,
    // two's complement 8-bit integer; arithmetic wraps
    DatatypeInt8 = 6'd10,
    // unsigned 8-bit integer; arithmetic wraps
    DatatypeUint8 = 6'd11,
    // two's complement 16-bit integer; arithmetic wraps
    DatatypeInt16 = 6'd12,
    // unsigned 16-bit integer; arithmetic wraps
    DatatypeUint16 = 6'd13,
    // unsigned 32-bit integer; arithmetic wraps
    DatatypeUint32 = 6'd14,
    // unsigned 64-bit integer; arithmetic wraps
    DatatypeUint64 = 6'd15,
    // truth value: 0 is false, any other byte true; results are 0 or 1
    DatatypeBool = 6'd16,
    // pair for minloc and maxloc: fp32 value, int32 index
    DatatypeFp32Int32 = 6'd17,
    // pair: fp64 value, int32 index, 4 bytes of padding (zero in results)
    DatatypeFp64Int32 = 6'd18,
    // pair: int32 value, int32 index
    DatatypeInt32Int32 = 6'd19,
    // pair: int64 value, int64 index
    DatatypeInt64Int64 = 6'd20
  } datatype_e;

  // Whether `value` is one of the enumerators of datatype_e.
  function automatic logic datatype_known(logic [5:0] value);
    case (value)
      DatatypeNone, DatatypeByte, DatatypeInt32, DatatypeInt64, DatatypeFp16, DatatypeBf16,
      DatatypeFp32, DatatypeFp64, DatatypeComplex64, DatatypeComplex128, DatatypeInt8,
      DatatypeUint8, DatatypeInt16, DatatypeUint16, DatatypeUint32, DatatypeUint64, DatatypeBool,
      DatatypeFp32Int32, DatatypeFp64Int32, DatatypeInt32Int32, DatatypeInt64Int64: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Attribute `bytes` of a datatype; 0 for a value that is none.
  function automatic int unsigned datatype_bytes(datatype_e value);
    case (value)
      DatatypeNone: return 32'd0;
      DatatypeByte: return 32'd1;
      DatatypeInt32: return 32'd4;
      DatatypeInt64: return 32'd8;
      DatatypeFp16: return 32'd2;
      DatatypeBf16: return 32'd2;
      DatatypeFp32: return 32'd4;
      DatatypeFp64: return 32'd8;
      DatatypeComplex64: return 32'd8;
      DatatypeComplex128: return 32'd16;
      DatatypeInt8: return 32'd1;
      DatatypeUint8: return 32'd1;
      DatatypeInt16: return 32'd2;
      DatatypeUint16: return 32'd2;
      DatatypeUint32: return 32'd4;
      DatatypeUint64: return 32'd8;
      DatatypeBool: return 32'd1;
      DatatypeFp32Int32: return 32'd8;
      DatatypeFp64Int32: return 32'd16;
      DatatypeInt32Int32: return 32'd8;
      DatatypeInt64Int64: return 32'd16;
      default: return 32'd0;
    endcase
  endfunction

  // Function of a move; the reduction operators.
  typedef enum logic [7:0] {
    // no function: the one operand present passes through
    FuncNone = 8'd0,
    // addition
    FuncSum = 8'd1,
    // multiplication
    FuncProd = 8'd2,
    // IEEE 754-2019 minimum: NaN propagates, -0 < +0
    FuncMin = 8'd3,
    // IEEE 754-2019 maximum: NaN propagates, -0 < +0
    FuncMax = 8'd4,
    // 1 if both operands are not 0, otherwise 0
    FuncLogicalAnd = 8'd5,
    // 1 if an operand is not 0, otherwise 0
    FuncLogicalOr = 8'd6,
    // 1 if one operand is 0 and the other is not, otherwise 0
    FuncLogicalXor = 8'd7,
    // bits that both operands have
    FuncBitwiseAnd = 8'd8,
    // bits that an operand has
    FuncBitwiseOr = 8'd9,
    // bits that one operand has
    FuncBitwiseXor = 8'd10,
    // the pair of the lesser value; of equal values, that of the lower index
    FuncMinloc = 8'd11,
    // the pair of the greater value; of equal values, that of the lower index
    FuncMaxloc = 8'd12,
    // of a call: sum, divided once by the number of ranks; of a move: the one operand, divided by
    // it
    FuncAvg = 8'd13,
    // an operator of the user that commutes
    FuncUser0 = 8'd16,
    // an operator of the user that commutes
    FuncUser1 = 8'd17,
    // an operator of the user that commutes
    FuncUser2 = 8'd18,
    // an operator of the user that commutes
    FuncUser3 = 8'd19,
    // an operator of the user that commutes
    FuncUser4 = 8'd20,
    // an operator of the user that commutes
    FuncUser5 = 8'd21,
    // an operator of the user that commutes
    FuncUser6 = 8'd22,
    // an operator of the user that commutes
    FuncUser7 = 8'd23,
    // an operator of the user that does not commute
    FuncOrdered0 = 8'd24,
    // an operator of the user that does not commute
    FuncOrdered1 = 8'd25,
    // an operator of the user that does not commute
    FuncOrdered2 = 8'd26,
    // an operator of the user that does not commute
    FuncOrdered3 = 8'd27,
    // an operator of the user that does not commute
    FuncOrdered4 = 8'd28,
    // an operator of the user that does not commute
    FuncOrdered5 = 8'd29,
    // an operator of the user that does not commute
    FuncOrdered6 = 8'd30,
    // an operator of the user that does not commute
    FuncOrdered7 = 8'd31
  } func_e;

  // Whether `value` is one of the enumerators of func_e.
  function automatic logic func_known(logic [7:0] value);
    case (value)
      FuncNone, FuncSum, FuncProd, FuncMin, FuncMax, FuncLogicalAnd, FuncLogicalOr, FuncLogicalXor,
      FuncBitwiseAnd, FuncBitwiseOr, FuncBitwiseXor, FuncMinloc, FuncMaxloc, FuncAvg, FuncUser0,
      FuncUser1, FuncUser2, FuncUser3, FuncUser4, FuncUser5, FuncUser6, FuncUser7, FuncOrdered0,
      FuncOrdered1, FuncOrdered2, FuncOrdered3, FuncOrdered4, FuncOrdered5, FuncOrdered6,
      FuncOrdered7: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // What a call asks for.
  typedef enum logic [7:0] {
    // an empty program; measures the cost of a call
    CollectiveNop = 8'd0,
    // dst = src on one rank
    CollectiveCopy = 8'd1,
    // dst = func(src, dst) on one rank
    CollectiveCombine = 8'd2,
    // point-to-point message to a peer
    CollectiveSend = 8'd3,
    // point-to-point message from a peer
    CollectiveRecv = 8'd4,
    // write into a peer's window
    CollectivePut = 8'd5,
    // read from a peer's window
    CollectiveGet = 8'd6,
    // the root's dst to every rank's dst
    CollectiveBcast = 8'd7,
    // func over all ranks' src into the root's dst
    CollectiveReduce = 8'd8,
    // func over all ranks' src into every dst
    CollectiveAllreduce = 8'd9,
    // func over all ranks' src (size blocks); block r into rank r's dst
    CollectiveReduceScatter = 8'd10,
    // every rank's src block into every dst, by rank
    CollectiveAllgather = 8'd11,
    // every rank's src block into the root's dst, by rank
    CollectiveGather = 8'd12,
    // block r of the root's src into rank r's dst
    CollectiveScatter = 8'd13,
    // gather with a count and displacement per rank
    CollectiveGatherv = 8'd14,
    // scatter with a count and displacement per rank
    CollectiveScatterv = 8'd15,
    // allgather with a count and displacement per rank
    CollectiveAllgatherv = 8'd16,
    // block j of rank i's src into block i of rank j's dst
    CollectiveAlltoall = 8'd17,
    // alltoall with counts and displacements per pair
    CollectiveAlltoallv = 8'd18,
    // func over src of ranks 0..r into rank r's dst
    CollectiveScan = 8'd19,
    // func over src of ranks 0..r-1 into rank r's dst; rank 0's dst is untouched
    CollectiveExscan = 8'd20,
    // no rank leaves before every rank has entered
    CollectiveBarrier = 8'd21,
    // reduce_scatter with a count and displacement per rank
    CollectiveReduceScatterv = 8'd22,
    // a program given by the user
    CollectiveProgram = 8'd31
  } collective_e;

  // Whether `value` is one of the enumerators of collective_e.
  function automatic logic collective_known(logic [7:0] value);
    case (value)
      CollectiveNop, CollectiveCopy, CollectiveCombine, CollectiveSend, CollectiveRecv,
      CollectivePut, CollectiveGet, CollectiveBcast, CollectiveReduce, CollectiveAllreduce,
      CollectiveReduceScatter, CollectiveAllgather, CollectiveGather, CollectiveScatter,
      CollectiveGatherv, CollectiveScatterv, CollectiveAllgatherv, CollectiveAlltoall,
      CollectiveAlltoallv, CollectiveScan, CollectiveExscan, CollectiveBarrier,
      CollectiveReduceScatterv, CollectiveProgram: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Memory a program may name. Bound by the call, so a program holds no address.
  typedef enum logic [4:0] {
    // the call's source buffer
    RegionSrc = 5'd0,
    // the call's destination buffer
    RegionDst = 5'd1,
    // temporary memory of the size the algorithm asks for
    RegionScratch = 5'd2,
    // 64-bit little-endian words that indirect counts and offsets read
    RegionParams = 5'd3,
    // memory exposed to peers for put and get
    RegionWindow = 5'd4
  } region_e;

  // Whether `value` is one of the enumerators of region_e.
  function automatic logic region_known(logic [4:0] value);
    case (value)
      RegionSrc, RegionDst, RegionScratch, RegionParams, RegionWindow: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // What an instruction is.
  typedef enum logic [3:0] {
    // does nothing, completes at once when its dependencies have
    MoveKindNop = 4'd0,
    // result = func(op0, op1)
    MoveKindMove = 4'd1,
    // end of a stored program
    MoveKindEnd = 4'd2
  } move_kind_e;

  // Whether `value` is one of the enumerators of move_kind_e.
  function automatic logic move_kind_known(logic [3:0] value);
    case (value)
      MoveKindNop, MoveKindMove, MoveKindEnd: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Where an operand comes from, or a local result goes.
  typedef enum logic [2:0] {
    // absent
    OperandKindNone = 3'd0,
    // local memory: region and byte offset
    OperandKindMemory = 3'd1,
    // a kernel's stream: offset holds the port
    OperandKindStream = 3'd2,
    // op1 only: a message as it arrives (peer and tag in the arrival word)
    OperandKindArrival = 3'd3,
    // op1 only: memory of the peer in the arrival word, address in the remote-memory word
    OperandKindRemoteMemory = 3'd4
  } operand_kind_e;

  // Whether `value` is one of the enumerators of operand_kind_e.
  function automatic logic operand_kind_known(logic [2:0] value);
    case (value)
      OperandKindNone, OperandKindMemory, OperandKindStream, OperandKindArrival,
      OperandKindRemoteMemory: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Where a remote result goes.
  typedef enum logic [2:0] {
    // no remote result
    RemoteKindNone = 3'd0,
    // a message, matched by an arrival of the peer's program
    RemoteKindMessage = 3'd1,
    // memory of the peer (address in the remote-memory word)
    RemoteKindMemory = 3'd2,
    // a stream port of the peer
    RemoteKindStream = 3'd3
  } remote_kind_e;

  // Whether `value` is one of the enumerators of remote_kind_e.
  function automatic logic remote_kind_known(logic [2:0] value);
    case (value)
      RemoteKindNone, RemoteKindMessage, RemoteKindMemory, RemoteKindStream: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // How a peer field is read.
  typedef enum logic [1:0] {
    // the field is one rank
    PeerModeRank = 2'd0,
    // the field is the index of a list in the constant pool; arrivals combine in listed order
    PeerModeList = 2'd1,
    // as list, arrivals combine in any order
    PeerModeAny = 2'd2
  } peer_mode_e;

  // Whether `value` is one of the enumerators of peer_mode_e.
  function automatic logic peer_mode_known(logic [1:0] value);
    case (value)
      PeerModeRank, PeerModeList, PeerModeAny: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Message synchronisation (ACCL+ section 4.2.3).
  typedef enum logic [1:0] {
    // by the message's bytes and the communicator's eager limit
    ProtocolAuto = 2'd0,
    // sent at once, against receive-buffer credit
    ProtocolEager = 2'd1,
    // sent when the receiver has granted a landing area
    ProtocolRendezvous = 2'd2
  } protocol_e;

  // Whether `value` is one of the enumerators of protocol_e.
  function automatic logic protocol_known(logic [1:0] value);
    case (value)
      ProtocolAuto, ProtocolEager, ProtocolRendezvous: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Conversion at a slot.
  typedef enum logic [1:0] {
    // the move's datatype
    CastNone = 2'd0,
    // between the move's datatype and the call's wire datatype
    CastWire = 2'd1
  } cast_e;

  // Whether `value` is one of the enumerators of cast_e.
  function automatic logic cast_known(logic [1:0] value);
    case (value)
      CastNone, CastWire: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Type of a message on the wire.
  typedef enum logic [3:0] {
    // data sent against credit
    MessageTypeEager = 4'd0,
    // asks for a grant (rendezvous), or announces eager data without credit
    MessageTypeRequest = 4'd1,
    // names a landing area by token, and how far the sender may write into it
    MessageTypeGrant = 4'd2,
    // data into a granted landing area: token and offset
    MessageTypeWrite = 4'd3,
    // all data of a token has been written (transports whose writes bypass the engine)
    MessageTypeDone = 4'd4,
    // returns receive-buffer credits
    MessageTypeCredit = 4'd5,
    // membership, revocation, errors
    MessageTypeControl = 4'd6,
    // reduced in the network
    MessageTypeAggregate = 4'd7
  } message_type_e;

  // Whether `value` is one of the enumerators of message_type_e.
  function automatic logic message_type_known(logic [3:0] value);
    case (value)
      MessageTypeEager, MessageTypeRequest, MessageTypeGrant, MessageTypeWrite, MessageTypeDone,
      MessageTypeCredit, MessageTypeControl, MessageTypeAggregate: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Kind of a control message; it travels in the header's tag.
  typedef enum logic [3:0] {
    // not sent
    ControlKindNone = 4'd0,
    // the communicator has failed; token_generation: error code; offset: 1 if it is passed on;
    // payload: the reason
    ControlKindRevoke = 4'd1,
    // a send was refused by its receiver; token_generation: error code; payload: the sentence
    ControlKindReject = 4'd2,
    // asks for bytes of the window: offset, message_bytes and a landing token; payload: its limit,
    // without one all may come; then a reach, if the landing area may be written to
    ControlKindGet = 4'd3,
    // raises the limit of a get
    ControlKindGetMore = 4'd4,
    // a get was refused; token of the landing area; offset: error code
    ControlKindGetFailed = 4'd5,
    // a put stands in memory, or was refused; sequence: the put's; token_generation: error code
    ControlKindPutDone = 4'd6,
    // asks whether a rank has entered a collective call
    ControlKindProbe = 4'd7,
    // yes
    ControlKindEntered = 4'd8,
    // ranks called different operations; payload: what the sender of this message called
    ControlKindMismatch = 4'd9,
    // a rank's word in an agreement of those that are left; sequence: which agreement; offset:
    // round; signature: what it is for; payload: two 64-bit words, then a bit for each rank that is
    // gone; in communicators of more than 16 ranks, a TreeWord (engine/tree_word.hpp)
    ControlKindAgree = 4'd10
  } control_kind_e;

  // Whether `value` is one of the enumerators of control_kind_e.
  function automatic logic control_kind_known(logic [3:0] value);
    case (value)
      ControlKindNone, ControlKindRevoke, ControlKindReject, ControlKindGet, ControlKindGetMore,
      ControlKindGetFailed, ControlKindPutDone, ControlKindProbe, ControlKindEntered,
      ControlKindMismatch, ControlKindAgree: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // What a frame between a member and a switch that aggregates is (docs/switch-protocol.md).
  typedef enum logic [7:0] {
    // not sent
    SlotKindNone = 8'd0,
    // up: a member's share in a turn
    SlotKindContribute = 8'd1,
    // down: the turn is complete; payload: its result, for those who get it
    SlotKindResult = 8'd2,
    // up: the member knows the generation; turn: the first that it has no result of; total: its
    // incarnation
    SlotKindResume = 8'd3,
    // down: all members have resumed; turn: where all of them begin; total: the incarnation that it
    // is for
    SlotKindBegin = 8'd4,
    // down: a generation has begun that the member may not know; it resumes
    SlotKindRenew = 8'd5,
    // down: the turn waits; count: for how many children, root: the lowest rank below the first of
    // them or, to a child that is one of them, below itself; all bits set: for the switch above
    SlotKindMissing = 8'd6,
    // either way: members do not agree, and the pool is closed; payload: a slot_refusal
    SlotKindRefuse = 8'd7
  } slot_kind_e;

  // Whether `value` is one of the enumerators of slot_kind_e.
  function automatic logic slot_kind_known(logic [7:0] value);
    case (value)
      SlotKindNone, SlotKindContribute, SlotKindResult, SlotKindResume, SlotKindBegin,
      SlotKindRenew, SlotKindMissing, SlotKindRefuse: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // What members of a pool of slots do not agree on, or what the switch does not do.
  typedef enum logic [7:0] {
    // nothing
    SlotFieldNone = 8'd0,
    // the collective
    SlotFieldOpcode = 8'd1,
    // the operator
    SlotFieldFunc = 8'd2,
    // the datatype
    SlotFieldDtype = 8'd3,
    // elements of the call
    SlotFieldTotal = 8'd4,
    // elements of the chunk
    SlotFieldCount = 8'd5,
    // the sequence of the call
    SlotFieldCall = 8'd6,
    // the root, or the owner of the block
    SlotFieldRoot = 8'd7,
    // one rank sends a payload of another length than the turn has; both values are bytes
    SlotFieldPayload = 8'd8,
    // the switch lacks the operator on the datatype; the values are func and dtype
    SlotFieldOperator = 8'd9,
    // the operator's bits depend on the order, and the pool has no room to keep it; the values are
    // func and dtype
    SlotFieldOrder = 8'd10,
    // what the result is multiplied by (post_scale); the values are digests
    SlotFieldFactor = 8'd11
  } slot_field_e;

  // Whether `value` is one of the enumerators of slot_field_e.
  function automatic logic slot_field_known(logic [7:0] value);
    case (value)
      SlotFieldNone, SlotFieldOpcode, SlotFieldFunc, SlotFieldDtype, SlotFieldTotal, SlotFieldCount,
      SlotFieldCall, SlotFieldRoot, SlotFieldPayload, SlotFieldOperator, SlotFieldOrder,
      SlotFieldFactor: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Performance counters of an engine in hardware, 64 bits each at `counters` in exchange memory.
  // They count from power-up; a soft reset leaves them.
  typedef enum logic [5:0] {
    // cycles of the engine's clock
    CounterCycles = 6'd0,
    // cycles in which a call is active
    CounterBusy = 6'd1,
    // words of call descriptors taken from kernels' streams
    CounterDescriptorWords = 6'd2,
    // calls that the microcontroller has begun
    CounterCalls = 6'd3,
    // calls that ended well
    CounterCallsCompleted = 6'd4,
    // calls that ended with an error
    CounterCallsFailed = 6'd5,
    // answers given to kernels
    CounterAnswers = 6'd6,
    // items of work given to the microcontroller
    CounterCpuItems = 6'd7,
    // cycles in which the microcontroller has an item to work on
    CounterCpuBusy = 6'd8,
    // moves that the microcontroller emitted, or that were replayed
    CounterMoves = 6'd9,
    // moves that entered the window of their call
    CounterMovesEntered = 6'd10,
    // moves whose dependencies were complete
    CounterMovesIssued = 6'd11,
    // moves complete, and all moves before them
    CounterMovesRetired = 6'd12,
    // jobs given to the compute lane
    CounterComputeJobs = 6'd13,
    // jobs given to the send lane
    CounterSendJobs = 6'd14,
    // jobs of the compute lane that have ended
    CounterJobsEnded = 6'd15,
    // segments with data or a signal that Tx took from the lanes
    CounterSegmentsSent = 6'd16,
    // requests for a grant
    CounterRequestsSent = 6'd17,
    // grants
    CounterGrantsSent = 6'd18,
    // messages that only return credits
    CounterCreditsSent = 6'd19,
    // segments with data or a signal that passed Rx
    CounterSegmentsReceived = 6'd20,
    // requests of peers
    CounterRequestsReceived = 6'd21,
    // grants of peers
    CounterGrantsReceived = 6'd22,
    // segments written to a receive buffer
    CounterSegmentsBuffered = 6'd23,
    // segments that went from Rx to the compute lane, past the buffers
    CounterSegmentsBypassed = 6'd24,
    // messages that Rx refused
    CounterRxFaults = 6'd25,
    // largest number of receive buffers in use at once; not a count of events
    CounterBuffersHigh = 6'd26,
    // words, headers included, that Tx gave to the transports
    CounterTxWords = 6'd27,
    // words, headers included, that Rx took from the transports
    CounterRxWords = 6'd28,
    // words that left at the MAC
    CounterMacTxWords = 6'd29,
    // words that came in at the MAC
    CounterMacRxWords = 6'd30,
    // words read from memory as first operand
    CounterOp0Words = 6'd31,
    // words read from memory as second operand or from receive buffers, and params
    CounterOp1Words = 6'd32,
    // words read from memory by the send lane
    CounterSendWords = 6'd33,
    // words of local results
    CounterResultWords = 6'd34,
    // words written to receive buffers
    CounterBufferWords = 6'd35,
    // cycles in which a lane lacks a word that memory has not delivered
    CounterStallRead = 6'd36,
    // cycles in which memory does not take a word that is written
    CounterStallWrite = 6'd37,
    // cycles in which Tx has begun a message and no lane has a word of it
    CounterStallTxData = 6'd38,
    // cycles in which a transport does not take a word of Tx
    CounterStallTxNetwork = 6'd39,
    // cycles in which the dispatcher has a job and the lane's queue is full
    CounterStallLane = 6'd40,
    // cycles in which a move waits because its peer has given no credit
    CounterStallCredit = 6'd41,
    // cycles in which a move waits for its peer to grant more of a long message
    CounterStallGrant = 6'd42,
    // cycles in which a move waits for room in its transport, or for the message before it
    CounterStallSpace = 6'd43,
    // cycles in which a move waits for a segment from a peer
    CounterStallArrival = 6'd44,
    // cycles in which a move waits for the move that it follows by segments
    CounterStallProducer = 6'd45,
    // cycles in which the microcontroller is idle, and a program has more moves than its window has
    // room
    CounterStallWindow = 6'd46
  } counter_e;

  // Whether `value` is one of the enumerators of counter_e.
  function automatic logic counter_known(logic [5:0] value);
    case (value)
      CounterCycles, CounterBusy, CounterDescriptorWords, CounterCalls, CounterCallsCompleted,
      CounterCallsFailed, CounterAnswers, CounterCpuItems, CounterCpuBusy, CounterMoves,
      CounterMovesEntered, CounterMovesIssued, CounterMovesRetired, CounterComputeJobs,
      CounterSendJobs, CounterJobsEnded, CounterSegmentsSent, CounterRequestsSent,
      CounterGrantsSent, CounterCreditsSent, CounterSegmentsReceived, CounterRequestsReceived,
      CounterGrantsReceived, CounterSegmentsBuffered, CounterSegmentsBypassed, CounterRxFaults,
      CounterBuffersHigh, CounterTxWords, CounterRxWords, CounterMacTxWords, CounterMacRxWords,
      CounterOp0Words, CounterOp1Words, CounterSendWords, CounterResultWords, CounterBufferWords,
      CounterStallRead, CounterStallWrite, CounterStallTxData, CounterStallTxNetwork,
      CounterStallLane, CounterStallCredit, CounterStallGrant, CounterStallSpace,
      CounterStallArrival, CounterStallProducer, CounterStallWindow: return 1'b1;
      default: return 1'b0;
    endcase
  endfunction

  // Result of every operation.
  typedef enum logic [15:0] {
    // success
    ErrorCodeOk = 16'd0,
    // an argument is outside what is allowed
    ErrorCodeInvalidArgument = 16'd1,
    // a count or displacement is negative or too large
    ErrorCodeInvalidCount = 16'd2,
    // the datatype is unknown, or the operation does not take it
    ErrorCodeInvalidDatatype = 16'd3,
    // the reduction operator is unknown, or does not take this datatype
    ErrorCodeInvalidOp = 16'd4,
    // the root or peer is not a rank of the communicator
    ErrorCodeInvalidRoot = 16'd5,
    // a buffer holds fewer elements than the call needs
    ErrorCodeBufferTooSmall = 16'd6,
    // a buffer that the call writes is read-only
    ErrorCodeReadOnlyBuffer = 16'd7,
    // source and destination overlap and the call is not in place
    ErrorCodeOverlappingBuffers = 16'd8,
    // no algorithm of that name for this collective
    ErrorCodeUnknownAlgorithm = 16'd9,
    // the algorithm's restrictions, or an engine of some member, do not admit the call
    ErrorCodeUnsupported = 16'd10,
    // a program breaks a rule of the model
    ErrorCodeMalformedProgram = 16'd11,
    // the communicator was freed
    ErrorCodeFreedCommunicator = 16'd12,
    // the communicator was revoked after an error on some rank
    ErrorCodeRevoked = 16'd13,
    // a deadline passed
    ErrorCodeTimeout = 16'd14,
    // a member process ended while the communicator was in use
    ErrorCodePeerDead = 16'd15,
    // ranks called different operations, or the same with different arguments
    ErrorCodeMismatchedCall = 16'd16,
    // a message is longer than the receive that matched it
    ErrorCodeTruncated = 16'd17,
    // a message failed its checks
    ErrorCodeCorruptMessage = 16'd18,
    // memory could not be had
    ErrorCodeOutOfMemory = 16'd19,
    // the job could not be joined
    ErrorCodeBootstrap = 16'd20,
    // used in a child of fork, or after close
    ErrorCodeWrongProcess = 16'd21,
    // a fixed limit was reached
    ErrorCodeCapacity = 16'd22,
    // an invariant of Unisono does not hold
    ErrorCodeInternal = 16'd23,
    // the device of this rank does not answer any more
    ErrorCodeDeviceLost = 16'd24,
    // the network lost messages or delivered them out of order, and its transport repeats none
    ErrorCodeFramesLost = 16'd25,
    // the network is cut, and the larger part of the job goes on without this rank
    ErrorCodePartitioned = 16'd26
  } error_code_e;

  // Numbers every engine agrees on.

  // version of the C interface
  localparam int unsigned AbiVersion = 32'd1;
  // version of the message header
  localparam int unsigned WireVersion = 32'd1;
  // first 16 bits of every message: 'NU' in memory order
  localparam int unsigned Magic = 32'd21838;
  // moves of one call that may be in flight
  localparam int unsigned Window = 32'd32;
  // most moves one generation step emits
  localparam int unsigned MovesPerStep = 32'd16;
  // ranks a peer field can name (24 bits)
  localparam int unsigned MaxRanks = 32'd16777216;
  // largest element count of a move (40 bits)
  localparam longint unsigned MaxCount = 64'd1099511627775;
  // largest step tag (24 bits)
  localparam int unsigned MaxTag = 32'd16777215;
  // largest tag of a send or receive
  localparam int unsigned MaxUserTag = 32'd2147483647;
  // calls an RTL engine executes at once
  localparam int unsigned MaxActiveCalls = 32'd8;
  // calls queued in an engine, parked ones included
  localparam int unsigned MaxOutstandingCalls = 32'd32;
  // bytes of one data-path word
  localparam int unsigned WordBytes = 32'd64;
  // bytes of the logical message header
  localparam int unsigned HeaderBytes = 32'd64;
  // bytes of a move's interchange form
  localparam int unsigned MoveBytes = 32'd64;
  // stream ports of one engine
  localparam int unsigned MaxStreamPorts = 32'd16;
  // programs that a device holds at once
  localparam int unsigned LoadedPrograms = 32'd8;
  // moves of each that a device holds itself; those after them stand in its memory
  localparam int unsigned LoadedMoves = 32'd32;
  // moves of each, on one rank
  localparam int unsigned ProgramMoves = 32'd4096;
  // words of its peer lists
  localparam int unsigned LoadedWords = 32'd64;
  // first 16 bits of every frame between a member and a switch: 'SL' in memory order
  localparam int unsigned SlotMagic = 32'd19539;
  // version of that protocol
  localparam int unsigned SlotProtocol = 32'd1;
  // bytes of a slot frame before its payload
  localparam int unsigned SlotFrameBytes = 32'd64;
  // slots of one communicator in a switch; a power of two
  localparam int unsigned MaxSlots = 32'd32768;
  // session of a device's transport that leads back to itself; those of the network are below
  localparam int unsigned SelfSession = 32'd64;
  // token slot of what names no landing area but the communicator's window: a put's data, request,
  // grant, done
  localparam int unsigned WindowSlot = 32'd65535;
  // largest offset of a put or get in a window: 2^47 - 1
  localparam longint unsigned MaxWindowOffset = 64'd140737488355327;

  // One operand, or the local result, of a move.
  typedef struct packed {
    logic [4:0] reserved0;
    // byte offset in the region; stream port for streams
    logic [47:0] offset;
    // offset is a byte offset into params, where the 64-bit byte offset stands
    logic indirect;
    // memory region
    region_e region;
    // conversion at this slot
    cast_e cast;
    // source or destination
    operand_kind_e kind;
  } operand_t;

  localparam int unsigned OperandWidth = 64;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic operand_well_formed(operand_t value);
    return operand_kind_known(value.kind) &&
           cast_known(value.cast) &&
           region_known(value.region) &&
           value.reserved0 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Which message, or which peers' memory, op1 is.
  typedef struct packed {
    logic [13:0] reserved0;
    // step tag the message must carry
    logic [23:0] tag;
    // how peer is read
    peer_mode_e mode;
    // rank, or pool index of a list
    logic [23:0] peer;
  } arrival_t;

  localparam int unsigned ArrivalWidth = 64;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic arrival_well_formed(arrival_t value);
    return peer_mode_known(value.mode) &&
           value.reserved0 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Where the remote result goes.
  typedef struct packed {
    logic reserved0;
    // stream port of the peer
    logic [7:0] port;
    // step tag
    logic [23:0] tag;
    // how peer is read (rank or list)
    peer_mode_e mode;
    // rank, or pool index of a list
    logic [23:0] peer;
    // conversion at this slot
    cast_e cast;
    // message, memory or stream
    remote_kind_e kind;
  } remote_t;

  localparam int unsigned RemoteWidth = 64;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic remote_well_formed(remote_t value);
    return remote_kind_known(value.kind) &&
           cast_known(value.cast) &&
           peer_mode_known(value.mode) &&
           value.reserved0 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Address in the memory of each peer, for op1 remote_memory, a remote result to memory, or both.
  typedef struct packed {
    // byte offset in either region, the same at every peer
    logic [47:0] offset;
    logic [4:0] reserved0;
    // region that the remote result writes
    region_e result_region;
    // reserved for two-dimensional strides; zero in this version
    logic strided;
    // region that op1 reads
    region_e region;
  } remote_address_t;

  localparam int unsigned RemoteAddressWidth = 64;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic remote_address_well_formed(remote_address_t value);
    return region_known(value.region) &&
           region_known(value.result_region) &&
           value.reserved0 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // One instruction: result = func(op0, op1), delivered locally, remotely, or both (ACCL+ section
  // 4.2.1).
  typedef struct packed {
    // address in the peer's memory
    remote_address_t remote_address;
    // remote result
    remote_t remote;
    // local result: none, memory or stream
    operand_t local_;
    // peer of op1
    arrival_t arrival;
    // second operand: none, memory, arrival or remote memory
    operand_t op1;
    // first operand: none, memory or stream
    operand_t op0;
    logic [11:0] reserved1;
    // a second one
    logic [5:0] segment_dependency1;
    // distance back to a move whose element k must be done before element k here; 0 = none
    logic [5:0] segment_dependency0;
    // elements
    logic [39:0] count;
    // bit i: waits until move n-1-i has completed
    logic [31:0] dependencies;
    logic [3:0] reserved0;
    // count is a byte offset into params, where the 64-bit count stands
    logic count_indirect;
    // message is sent, or awaited, although count is 0
    logic signal;
    // result = func(op1, op0)
    logic swap;
    // log2 of the preferred segment in bytes; 0 leaves it to the engine
    logic [4:0] log2_segment;
    // of the remote result and of the arrival
    protocol_e protocol;
    // element type
    datatype_e dtype;
    // function of the two operands; none if one operand is present
    func_e func;
    // instruction kind
    move_kind_e kind;
  } move_t;

  localparam int unsigned MoveWidth = 512;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic move_well_formed(move_t value);
    return move_kind_known(value.kind) &&
           func_known(value.func) &&
           datatype_known(value.dtype) &&
           protocol_known(value.protocol) &&
           value.reserved0 == '0 &&
           value.reserved1 == '0 &&
           operand_well_formed(value.op0) &&
           operand_well_formed(value.op1) &&
           arrival_well_formed(value.arrival) &&
           operand_well_formed(value.local_) &&
           remote_well_formed(value.remote) &&
           remote_address_well_formed(value.remote_address);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Logical header of every message (64 bytes).
  typedef struct packed {
    // CRC-32C of the 60 bytes before it
    logic [31:0] checksum;
    // CRC-32C of the call's agreed fields
    logic [31:0] signature;
    // grant token: generation of the slot
    logic [15:0] token_generation;
    // of this segment in the message
    logic [47:0] offset;
    // grant token: slot of the landing area
    logic [15:0] token_slot;
    // payload bytes of the whole message; in a grant, the end of what may be written
    logic [47:0] message_bytes;
    // counts messages of the session
    logic [31:0] session_sequence;
    // payload bytes of this segment
    logic [31:0] segment_bytes;
    // step tag, or user tag for point to point
    logic [31:0] tag;
    // collective sequence, or per-pair sequence for point to point
    logic [31:0] sequence_;
    // rank that receives, in the communicator
    logic [31:0] destination;
    // rank that sends, in the communicator
    logic [31:0] source;
    // stream port
    logic [15:0] port;
    // communicator epoch
    logic [15:0] epoch;
    // communicator number
    logic [31:0] communicator;
    // receive-buffer credits returned
    logic [15:0] credits;
    logic [9:0] reserved0;
    // may be reduced in the network
    logic aggregate;
    // a CRC-32C of the payload follows it
    logic trailer;
    // goes to a stream port
    logic stream;
    // matched in the point-to-point space
    logic point_to_point;
    // last segment of its message
    logic last;
    // first segment of its message
    logic first;
    // wire datatype (datatype_e, zero-extended)
    logic [7:0] dtype;
    // message type
    message_type_e type_;
    // wire version
    logic [3:0] version;
    // 0x554e
    logic [15:0] magic;
  } header_t;

  localparam int unsigned HeaderWidth = 512;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic header_well_formed(header_t value);
    return message_type_known(value.type_) &&
           value.dtype < 8'd64 && datatype_known(value.dtype[5:0]) &&
           value.reserved0 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Compressed header for connection-oriented transports (32 bytes). Source, destination, magic,
  // version and session sequence are the connection's.
  typedef struct packed {
    // signature in eager and request; token (generation << 16 | slot) in grant, write and done
    logic [31:0] token_or_signature;
    // as in header
    logic [31:0] segment_bytes;
    // low 16 bits of the signature in grant, write and done; else zero
    logic [15:0] signature_low;
    // message bytes in a first segment and in a grant, offset in the others
    logic [47:0] message_or_offset;
    // as in header
    logic [31:0] tag;
    // as in header
    logic [31:0] sequence_;
    // credits returned
    logic [15:0] credits;
    // stream port
    logic [7:0] port;
    // epoch, low 8 bits
    logic [7:0] epoch;
    // communicator number, low 16 bits
    logic [15:0] communicator;
    // as in header
    logic aggregate;
    // as in header
    logic trailer;
    // wire datatype
    datatype_e dtype;
    // as in header
    logic stream;
    // as in header
    logic point_to_point;
    // as in header
    logic last;
    // as in header
    logic first;
    // message type
    message_type_e type_;
  } header_connection_t;

  localparam int unsigned HeaderConnectionWidth = 256;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic header_connection_well_formed(header_connection_t value);
    return message_type_known(value.type_) &&
           datatype_known(value.dtype);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Header of a message that shares a cache line with its payload, behind 48 bytes of it. The lane
  // gives sender, receiver, communicator and order.
  typedef struct packed {
    // digest of the communicator's collective calls up to this one: signatures, chained
    logic [31:0] signature;
    // number of the line in its lane, from 1; the word with it is written last and publishes the
    // line
    logic [31:0] flag;
    logic [3:0] reserved0;
    // eager: data; request: addresses of the regions of a call with direct access, or a message
    // that is lent
    message_type_e type_;
    // step tag, or user tag for point to point
    logic [23:0] tag;
    // payload bytes; up to 48 stand in the line, more in the lane's cells
    logic [31:0] bytes;
  } header_line_t;

  localparam int unsigned HeaderLineWidth = 128;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic header_line_well_formed(header_line_t value);
    return message_type_known(value.type_) &&
           value.reserved0 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Header of a point-to-point message on a lane, behind 48 bytes of payload. The lane gives
  // sender, receiver, communicator and order.
  typedef struct packed {
    // of a long message, in all lines that concern it
    logic [31:0] id;
    // number of the line in its lane, from 1; the word with it is written last and publishes the
    // line
    logic [31:0] flag;
    logic [1:0] reserved0;
    // user tag; those beyond max_user_tag are the library's own
    logic [31:0] tag;
    // eager: a whole message; request: a long one is announced; write: a piece of it; done: it was
    // written; grant, done, control: answers
    message_type_e type_;
    // element type
    datatype_e dtype;
    // payload bytes; up to 48 stand in the line, more in the lane's cells
    logic [19:0] bytes;
  } message_line_t;

  localparam int unsigned MessageLineWidth = 128;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic message_line_well_formed(message_line_t value);
    return datatype_known(value.dtype) &&
           message_type_known(value.type_) &&
           value.reserved0 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Frame between a member and a switch that aggregates (64 bytes, docs/switch-protocol.md). A
  // payload follows, and a CRC-32C of the payload.
  typedef struct packed {
    // CRC-32C of the 60 bytes before it
    logic [31:0] checksum;
    // up: position of the child at its switch; down: the same, or all bits set for all children
    logic [31:0] member;
    // digest of what the result is multiplied by afterwards, by the members; 0: by nothing
    logic [15:0] factor;
    // bytes of payload
    logic [15:0] bytes;
    // elements of the chunk
    logic [31:0] count;
    // rank that gives or gets the data, where it is one
    logic [31:0] root;
    // collective sequence of the call
    logic [31:0] call;
    // elements of the whole call; in resume and begin, the member's incarnation
    logic [63:0] total;
    // number of the chunk, over all calls of the communicator
    logic [63:0] turn;
    // which version of the slot: turn divided by slots, modulo 2
    logic second;
    // turn modulo slots
    logic [14:0] slot;
    // communicator epoch
    logic [15:0] epoch;
    // communicator number
    logic [31:0] communicator;
    // of the pool that the frame goes to or comes from; 0: the member knows none yet
    logic [63:0] generation;
    logic [7:0] reserved0;
    // element type (datatype_e, zero-extended)
    logic [7:0] dtype;
    // operator; none where nothing is combined
    func_e func;
    // the collective; like the fields down to count, zero where kind concerns no turn
    collective_e opcode;
    // what it is
    slot_kind_e kind;
    // slot_protocol
    logic [7:0] version;
    // slot_magic
    logic [15:0] magic;
  } slot_frame_t;

  localparam int unsigned SlotFrameWidth = 512;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic slot_frame_well_formed(slot_frame_t value);
    return slot_kind_known(value.kind) &&
           collective_known(value.opcode) &&
           func_known(value.func) &&
           value.dtype < 8'd64 && datatype_known(value.dtype[5:0]) &&
           value.reserved0 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Payload of a slot frame refuse: two ranks, and what they do not agree on. The same rank twice:
  // what the switch does not do for it.
  typedef struct packed {
    // what the second says
    logic [63:0] second_value;
    // what the first says
    logic [63:0] first_value;
    // another rank
    logic [31:0] second;
    // a rank
    logic [31:0] first;
    // sequence of the call
    logic [31:0] call;
    logic [23:0] reserved0;
    // which field
    slot_field_e field;
  } slot_refusal_t;

  localparam int unsigned SlotRefusalWidth = 256;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic slot_refusal_well_formed(slot_refusal_t value);
    return slot_field_known(value.field) &&
           value.reserved0 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Call descriptor, one request to an engine (128 bytes). Addresses are byte addresses in the
  // engine's memory.
  typedef struct packed {
    logic [63:0] reserved2;
    // put, get: byte offset in the peer's window, less than 2^47
    logic [63:0] window_offset;
    // slot of a loaded program, for collective program
    logic [31:0] program_;
    // a second one
    logic [31:0] wait_for1;
    // call id that must complete first; 0 = none
    logic [31:0] wait_for0;
    // number the requester gives the call
    logic [31:0] call_id;
    // bytes bound to params
    logic [63:0] params_bytes;
    // params
    logic [63:0] params_address;
    // bytes bound to scratch
    logic [63:0] scratch_bytes;
    // scratch
    logic [63:0] scratch_address;
    // bytes bound to dst
    logic [63:0] dst_bytes;
    // destination
    logic [63:0] dst_address;
    // bytes bound to src
    logic [63:0] src_bytes;
    // source
    logic [63:0] src_address;
    // elements (per block for gather, scatter, allgather, alltoall, reduce_scatter)
    logic [63:0] count;
    // microseconds until the call fails; 0 = the communicator's timeout
    logic [31:0] deadline_us;
    // user tag
    logic [31:0] tag;
    // root, or peer for point to point
    logic [31:0] root;
    // communicator number
    logic [31:0] communicator;
    logic [7:0] reserved1;
    // radix of an algorithm that takes one; 0 = its default, and all that engines without `radices`
    // take
    logic [7:0] radix;
    logic [2:0] reserved0;
    // dst is a stream; dst_address holds the port
    logic dst_stream;
    // src is a stream; src_address holds the port
    logic src_stream;
    // dst is in host memory
    logic dst_host;
    // src is in host memory
    logic src_host;
    // input stands in dst
    logic in_place;
    // element type on the wire; none = dtype (datatype_e, zero-extended)
    logic [7:0] wire_dtype;
    // element type (datatype_e, zero-extended)
    logic [7:0] dtype;
    // reduction operator
    func_e func;
    // index in the algorithm table plus one; 0 = automatic
    logic [7:0] algorithm;
    // what is asked for
    collective_e collective;
  } call_descriptor_t;

  localparam int unsigned CallDescriptorWidth = 1024;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic call_descriptor_well_formed(call_descriptor_t value);
    return collective_known(value.collective) &&
           func_known(value.func) &&
           value.dtype < 8'd64 && datatype_known(value.dtype[5:0]) &&
           value.wire_dtype < 8'd64 && datatype_known(value.wire_dtype[5:0]) &&
           value.reserved0 == '0 &&
           value.reserved1 == '0 &&
           value.reserved2 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Capability word of an engine. A communicator uses the intersection over its members.
  typedef struct packed {
    // long messages point to point begin on credit, before they are granted
    logic openings;
    // algorithms that take a radix, with any; else with their default
    logic radices;
    // lanes: messages in single cache lines of memory that all members share
    logic lanes;
    // largest segment in bytes, log2
    logic [4:0] log2_max_segment;
    // loaded programs
    logic programs;
    // rendezvous protocol
    logic rendezvous;
    // wire casts
    logic casts;
    // two-dimensional moves
    logic strides;
    // put and get
    logic remote_memory;
    // stream operands and results
    logic streams;
    // arrivals from a list of peers
    logic fan_in;
    // peer lists
    logic lists;
    // bit n: func n; bit 15: operators of the user
    logic [15:0] funcs;
    // bit n: datatype n can be reduced
    logic [23:0] datatypes;
    // of this word
    logic [7:0] version;
  } capability_t;

  localparam int unsigned CapabilityWidth = 64;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic capability_well_formed(capability_t value);
    return 1'b1;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // What became of one move, told when it retires. Times are cycles of the engine's clock since
  // power-up, modulo 2^48.
  typedef struct packed {
    // of the communicator's collectives, or of the pair
    logic [31:0] sequence_;
    // number of its communicator
    logic [31:0] communicator;
    logic [10:0] reserved1;
    // for the move that it follows
    logic waited_producer;
    // for a segment from a peer
    logic waited_arrival;
    // for room in the transport, or the message before it
    logic waited_space;
    // for a grant
    logic waited_grant;
    // it had to wait for credit
    logic waited_credit;
    // of its result
    logic [47:0] bytes;
    logic [2:0] reserved0;
    // it has a local result
    logic writes;
    // the second operand is in memory
    logic reads1;
    // the first operand is in memory
    logic reads0;
    // the result is sent to a peer
    logic sends;
    // an operand arrives from a peer
    logic receives;
    // its element type (datatype_e, zero-extended)
    logic [7:0] dtype;
    // it and all moves before it were complete
    logic [47:0] retired;
    // jobs given to lanes for it; 65535 also stands for more
    logic [15:0] segments;
    // its last segment had ended: its result is visible, its sources may change
    logic [47:0] completed;
    // rank that it receives from; index of a list if there are several
    logic [15:0] source;
    // its first segment was given to a lane; 0 if it needed none
    logic [47:0] began;
    // rank that it sends to; index of a list if it sends to several
    logic [15:0] destination;
    // its dependencies were complete, and the dispatcher took it
    logic [47:0] issued;
    // its function
    func_e func;
    // of the call among the active ones
    logic [7:0] slot;
    // it entered its window
    logic [47:0] entered;
    // position of the move in its program
    logic [31:0] index;
    // number that the requester gave the call
    logic [31:0] call_id;
  } move_record_t;

  localparam int unsigned MoveRecordWidth = 512;

  // Whether reserved bits are zero and all enumerators known. Plain numbers are not looked at.
  // verilator lint_off UNUSEDSIGNAL
  function automatic logic move_record_well_formed(move_record_t value);
    return func_known(value.func) &&
           value.dtype < 8'd64 && datatype_known(value.dtype[5:0]) &&
           value.reserved0 == '0 &&
           value.reserved1 == '0;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // Exchange memory: byte offset and bytes of each register.

  localparam int unsigned ExchangeBytes = 32'd16384;
  // ro: 0x554e4953 ('UNIS')
  localparam int unsigned ExchangeIdentityOffset = 32'h0000;
  localparam int unsigned ExchangeIdentityBytes = 32'd4;
  // ro: abi_version << 16 | wire_version
  localparam int unsigned ExchangeVersionOffset = 32'h0004;
  localparam int unsigned ExchangeVersionBytes = 32'd4;
  // ro: capability word
  localparam int unsigned ExchangeCapabilityOffset = 32'h0008;
  localparam int unsigned ExchangeCapabilityBytes = 32'd8;
  // rw: bit 0 soft reset (falls by itself), bit 1 run
  localparam int unsigned ExchangeControlOffset = 32'h0010;
  localparam int unsigned ExchangeControlBytes = 32'd4;
  // rw: bit 0 ready, 1 a call failed (1 clears), 2 call_slot taken, 3 completion waits, 4 failure
  // waits for the cpu
  localparam int unsigned ExchangeStatusOffset = 32'h0014;
  localparam int unsigned ExchangeStatusBytes = 32'd4;
  // ro: error code of the last failed call
  localparam int unsigned ExchangeErrorOffset = 32'h0018;
  localparam int unsigned ExchangeErrorBytes = 32'd4;
  // ro: call_id of that call
  localparam int unsigned ExchangeErrorCallOffset = 32'h001c;
  localparam int unsigned ExchangeErrorCallBytes = 32'd4;
  // wo: a write submits the call descriptor at call_slot
  localparam int unsigned ExchangeDoorbellOffset = 32'h0020;
  localparam int unsigned ExchangeDoorbellBytes = 32'd4;
  // ro: call_id of the oldest completion that was not yet read, 0 if there is none; a read pops it
  localparam int unsigned ExchangeCompletedOffset = 32'h0024;
  localparam int unsigned ExchangeCompletedBytes = 32'd4;
  // ro: of the completion that completed gave last: error code in bits 0 to 15, bit 31 set; 0 if it
  // gave none
  localparam int unsigned ExchangeCompletedCodeOffset = 32'h0028;
  localparam int unsigned ExchangeCompletedCodeBytes = 32'd4;
  // ro: bits 0 to 7: calls admitted and not completed; bits 8 to 15: one for each active slot
  localparam int unsigned ExchangeCallsOffset = 32'h002c;
  localparam int unsigned ExchangeCallsBytes = 32'd4;
  // rw: largest eager message in bytes
  localparam int unsigned ExchangeEagerLimitOffset = 32'h0040;
  localparam int unsigned ExchangeEagerLimitBytes = 32'd4;
  // rw: largest segment in bytes
  localparam int unsigned ExchangeSegmentBytesOffset = 32'h0044;
  localparam int unsigned ExchangeSegmentBytesBytes = 32'd4;
  // rw: receive buffers per peer
  localparam int unsigned ExchangeRxBufferCountOffset = 32'h0048;
  localparam int unsigned ExchangeRxBufferCountBytes = 32'd4;
  // rw: bytes of one receive buffer
  localparam int unsigned ExchangeRxBufferBytesOffset = 32'h004c;
  localparam int unsigned ExchangeRxBufferBytesBytes = 32'd4;
  // rw: default deadline of a call, microseconds; 0 = the longest there is
  localparam int unsigned ExchangeTimeoutUsOffset = 32'h0050;
  localparam int unsigned ExchangeTimeoutUsBytes = 32'd4;
  // rw: byte address in the microcontroller's memory; grows by 4 with each access to firmware_data
  localparam int unsigned ExchangeFirmwareAddressOffset = 32'h0060;
  localparam int unsigned ExchangeFirmwareAddressBytes = 32'd4;
  // rw: the word there; only whole words, and only while control says not to run
  localparam int unsigned ExchangeFirmwareDataOffset = 32'h0064;
  localparam int unsigned ExchangeFirmwareDataBytes = 32'd4;
  // rw: begin of a window, memory that peers put to and get from; a communicator's last word takes
  // it
  localparam int unsigned ExchangeWindowAddressOffset = 32'h0068;
  localparam int unsigned ExchangeWindowAddressBytes = 32'd8;
  // rw: bytes of it; 0 = none
  localparam int unsigned ExchangeWindowBytesOffset = 32'h0070;
  localparam int unsigned ExchangeWindowBytesBytes = 32'd8;
  // rw: call descriptor written by the host
  localparam int unsigned ExchangeCallSlotOffset = 32'h0100;
  localparam int unsigned ExchangeCallSlotBytes = 32'd128;
  // ro: performance counters, 64 bits each, in the order of `counter`
  localparam int unsigned ExchangeCountersOffset = 32'h0200;
  localparam int unsigned ExchangeCountersBytes = 32'd512;
  // rw: registers of the transport: a word for each session, then counters and limits
  localparam int unsigned ExchangeTransportOffset = 32'h0400;
  localparam int unsigned ExchangeTransportBytes = 32'd1024;
  // rw: loads programs: slot, list, move, signature, address (2) and number of moves in memory;
  // docs/rtl/replay.md
  localparam int unsigned ExchangeProgramsOffset = 32'h0800;
  localparam int unsigned ExchangeProgramsBytes = 32'd32;
  // ro: state of the receive buffers
  localparam int unsigned ExchangeRxBuffersOffset = 32'h1000;
  localparam int unsigned ExchangeRxBuffersBytes = 32'd4096;
  // rw: 16 words each: 8 for the microcontroller, 8 for the data path; the last: take (1) or give
  // up (0) a window
  localparam int unsigned ExchangeCommunicatorsOffset = 32'h2000;
  localparam int unsigned ExchangeCommunicatorsBytes = 32'd1024;
  // rw: a word for each rank of each communicator: the transport's session that leads there
  localparam int unsigned ExchangeMembersOffset = 32'h3000;
  localparam int unsigned ExchangeMembersBytes = 32'd4096;

  // verilator lint_on UNUSEDPARAM

endpackage : unisono_spec_pkg
