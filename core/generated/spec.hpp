// Generated from spec/ by `python -m spec.generator`. Do not edit.
// Freestanding: compiles for the host and for RV32 without a library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace unisono {

/// Element types of buffers, moves and messages.
enum class Datatype : std::uint8_t {
  kNone = 0,  ///< no element type (barrier, signal)
  kByte = 1,  ///< uninterpreted byte; has bitwise operators only
  kInt32 = 2,  ///< two's complement 32-bit integer; arithmetic wraps
  kInt64 = 3,  ///< two's complement 64-bit integer; arithmetic wraps
  kFp16 = 4,  ///< IEEE 754 binary16; accumulates in fp32 within a move
  kBf16 = 5,  ///< bfloat16; accumulates in fp32 within a move
  kFp32 = 6,  ///< IEEE 754 binary32
  kFp64 = 7,  ///< IEEE 754 binary64
  kComplex64 = 8,  ///< complex number of two fp32: real part, imaginary part
  kComplex128 = 9,  ///< complex number of two fp64: real part, imaginary part
  kInt8 = 10,  ///< two's complement 8-bit integer; arithmetic wraps
  kUint8 = 11,  ///< unsigned 8-bit integer; arithmetic wraps
  kInt16 = 12,  ///< two's complement 16-bit integer; arithmetic wraps
  kUint16 = 13,  ///< unsigned 16-bit integer; arithmetic wraps
  kUint32 = 14,  ///< unsigned 32-bit integer; arithmetic wraps
  kUint64 = 15,  ///< unsigned 64-bit integer; arithmetic wraps
  kBool = 16,  ///< truth value: 0 is false, any other byte true; results are 0 or 1
  kFp32Int32 = 17,  ///< pair for minloc and maxloc: fp32 value, int32 index
  kFp64Int32 = 18,  ///< pair: fp64 value, int32 index, 4 bytes of padding (zero in results)
  kInt32Int32 = 19,  ///< pair: int32 value, int32 index
  kInt64Int64 = 20,  ///< pair: int64 value, int64 index
};

/// Name of a datatype as users write it; "?" for a value that is none.
constexpr const char* name_of(Datatype value) {
  switch (value) {
    case Datatype::kNone: return "none";
    case Datatype::kByte: return "byte";
    case Datatype::kInt32: return "int32";
    case Datatype::kInt64: return "int64";
    case Datatype::kFp16: return "fp16";
    case Datatype::kBf16: return "bf16";
    case Datatype::kFp32: return "fp32";
    case Datatype::kFp64: return "fp64";
    case Datatype::kComplex64: return "complex64";
    case Datatype::kComplex128: return "complex128";
    case Datatype::kInt8: return "int8";
    case Datatype::kUint8: return "uint8";
    case Datatype::kInt16: return "int16";
    case Datatype::kUint16: return "uint16";
    case Datatype::kUint32: return "uint32";
    case Datatype::kUint64: return "uint64";
    case Datatype::kBool: return "bool";
    case Datatype::kFp32Int32: return "fp32_int32";
    case Datatype::kFp64Int32: return "fp64_int32";
    case Datatype::kInt32Int32: return "int32_int32";
    case Datatype::kInt64Int64: return "int64_int64";
  }
  return "?";
}

/// Whether `value` is one of Datatype's enumerators.
constexpr bool is_known(Datatype value) { return name_of(value)[0] != '?'; }

/// All enumerators of Datatype, in order of value.
inline constexpr std::array<Datatype, 21> kAllDatatype{Datatype::kNone, Datatype::kByte, Datatype::kInt32, Datatype::kInt64, Datatype::kFp16, Datatype::kBf16, Datatype::kFp32, Datatype::kFp64, Datatype::kComplex64, Datatype::kComplex128, Datatype::kInt8, Datatype::kUint8, Datatype::kInt16, Datatype::kUint16, Datatype::kUint32, Datatype::kUint64, Datatype::kBool, Datatype::kFp32Int32, Datatype::kFp64Int32, Datatype::kInt32Int32, Datatype::kInt64Int64};

/// Attribute `bytes` of a datatype.
constexpr std::uint32_t bytes_of(Datatype value) {
  switch (value) {
    case Datatype::kNone: return 0;
    case Datatype::kByte: return 1;
    case Datatype::kInt32: return 4;
    case Datatype::kInt64: return 8;
    case Datatype::kFp16: return 2;
    case Datatype::kBf16: return 2;
    case Datatype::kFp32: return 4;
    case Datatype::kFp64: return 8;
    case Datatype::kComplex64: return 8;
    case Datatype::kComplex128: return 16;
    case Datatype::kInt8: return 1;
    case Datatype::kUint8: return 1;
    case Datatype::kInt16: return 2;
    case Datatype::kUint16: return 2;
    case Datatype::kUint32: return 4;
    case Datatype::kUint64: return 8;
    case Datatype::kBool: return 1;
    case Datatype::kFp32Int32: return 8;
    case Datatype::kFp64Int32: return 16;
    case Datatype::kInt32Int32: return 8;
    case Datatype::kInt64Int64: return 16;
  }
  return 0;
}

/// Function of a move; the reduction operators.
enum class Func : std::uint8_t {
  kNone = 0,  ///< no function: the one operand present passes through
  kSum = 1,  ///< addition
  kProd = 2,  ///< multiplication
  kMin = 3,  ///< IEEE 754-2019 minimum: NaN propagates, -0 < +0
  kMax = 4,  ///< IEEE 754-2019 maximum: NaN propagates, -0 < +0
  kLogicalAnd = 5,  ///< 1 if both operands are not 0, otherwise 0
  kLogicalOr = 6,  ///< 1 if an operand is not 0, otherwise 0
  kLogicalXor = 7,  ///< 1 if one operand is 0 and the other is not, otherwise 0
  kBitwiseAnd = 8,  ///< bits that both operands have
  kBitwiseOr = 9,  ///< bits that an operand has
  kBitwiseXor = 10,  ///< bits that one operand has
  kMinloc = 11,  ///< the pair of the lesser value; of equal values, that of the lower index
  kMaxloc = 12,  ///< the pair of the greater value; of equal values, that of the lower index
  kAvg = 13,  ///< of a call: sum, divided once by the number of ranks; of a move: the one operand, divided by it
  kUser0 = 16,  ///< an operator of the user that commutes
  kUser1 = 17,  ///< an operator of the user that commutes
  kUser2 = 18,  ///< an operator of the user that commutes
  kUser3 = 19,  ///< an operator of the user that commutes
  kUser4 = 20,  ///< an operator of the user that commutes
  kUser5 = 21,  ///< an operator of the user that commutes
  kUser6 = 22,  ///< an operator of the user that commutes
  kUser7 = 23,  ///< an operator of the user that commutes
  kOrdered0 = 24,  ///< an operator of the user that does not commute
  kOrdered1 = 25,  ///< an operator of the user that does not commute
  kOrdered2 = 26,  ///< an operator of the user that does not commute
  kOrdered3 = 27,  ///< an operator of the user that does not commute
  kOrdered4 = 28,  ///< an operator of the user that does not commute
  kOrdered5 = 29,  ///< an operator of the user that does not commute
  kOrdered6 = 30,  ///< an operator of the user that does not commute
  kOrdered7 = 31,  ///< an operator of the user that does not commute
};

/// Name of a func as users write it; "?" for a value that is none.
constexpr const char* name_of(Func value) {
  switch (value) {
    case Func::kNone: return "none";
    case Func::kSum: return "sum";
    case Func::kProd: return "prod";
    case Func::kMin: return "min";
    case Func::kMax: return "max";
    case Func::kLogicalAnd: return "logical_and";
    case Func::kLogicalOr: return "logical_or";
    case Func::kLogicalXor: return "logical_xor";
    case Func::kBitwiseAnd: return "bitwise_and";
    case Func::kBitwiseOr: return "bitwise_or";
    case Func::kBitwiseXor: return "bitwise_xor";
    case Func::kMinloc: return "minloc";
    case Func::kMaxloc: return "maxloc";
    case Func::kAvg: return "avg";
    case Func::kUser0: return "user0";
    case Func::kUser1: return "user1";
    case Func::kUser2: return "user2";
    case Func::kUser3: return "user3";
    case Func::kUser4: return "user4";
    case Func::kUser5: return "user5";
    case Func::kUser6: return "user6";
    case Func::kUser7: return "user7";
    case Func::kOrdered0: return "ordered0";
    case Func::kOrdered1: return "ordered1";
    case Func::kOrdered2: return "ordered2";
    case Func::kOrdered3: return "ordered3";
    case Func::kOrdered4: return "ordered4";
    case Func::kOrdered5: return "ordered5";
    case Func::kOrdered6: return "ordered6";
    case Func::kOrdered7: return "ordered7";
  }
  return "?";
}

/// Whether `value` is one of Func's enumerators.
constexpr bool is_known(Func value) { return name_of(value)[0] != '?'; }

/// All enumerators of Func, in order of value.
inline constexpr std::array<Func, 30> kAllFunc{Func::kNone, Func::kSum, Func::kProd, Func::kMin, Func::kMax, Func::kLogicalAnd, Func::kLogicalOr, Func::kLogicalXor, Func::kBitwiseAnd, Func::kBitwiseOr, Func::kBitwiseXor, Func::kMinloc, Func::kMaxloc, Func::kAvg, Func::kUser0, Func::kUser1, Func::kUser2, Func::kUser3, Func::kUser4, Func::kUser5, Func::kUser6, Func::kUser7, Func::kOrdered0, Func::kOrdered1, Func::kOrdered2, Func::kOrdered3, Func::kOrdered4, Func::kOrdered5, Func::kOrdered6, Func::kOrdered7};

/// What a call asks for.
enum class Collective : std::uint8_t {
  kNop = 0,  ///< an empty program; measures the cost of a call
  kCopy = 1,  ///< dst = src on one rank
  kCombine = 2,  ///< dst = func(src, dst) on one rank
  kSend = 3,  ///< point-to-point message to a peer
  kRecv = 4,  ///< point-to-point message from a peer
  kPut = 5,  ///< write into a peer's window
  kGet = 6,  ///< read from a peer's window
  kBcast = 7,  ///< the root's dst to every rank's dst
  kReduce = 8,  ///< func over all ranks' src into the root's dst
  kAllreduce = 9,  ///< func over all ranks' src into every dst
  kReduceScatter = 10,  ///< func over all ranks' src (size blocks); block r into rank r's dst
  kAllgather = 11,  ///< every rank's src block into every dst, by rank
  kGather = 12,  ///< every rank's src block into the root's dst, by rank
  kScatter = 13,  ///< block r of the root's src into rank r's dst
  kGatherv = 14,  ///< gather with a count and displacement per rank
  kScatterv = 15,  ///< scatter with a count and displacement per rank
  kAllgatherv = 16,  ///< allgather with a count and displacement per rank
  kAlltoall = 17,  ///< block j of rank i's src into block i of rank j's dst
  kAlltoallv = 18,  ///< alltoall with counts and displacements per pair
  kScan = 19,  ///< func over src of ranks 0..r into rank r's dst
  kExscan = 20,  ///< func over src of ranks 0..r-1 into rank r's dst; rank 0's dst is untouched
  kBarrier = 21,  ///< no rank leaves before every rank has entered
  kReduceScatterv = 22,  ///< reduce_scatter with a count and displacement per rank
  kProgram = 31,  ///< a program given by the user
};

/// Name of a collective as users write it; "?" for a value that is none.
constexpr const char* name_of(Collective value) {
  switch (value) {
    case Collective::kNop: return "nop";
    case Collective::kCopy: return "copy";
    case Collective::kCombine: return "combine";
    case Collective::kSend: return "send";
    case Collective::kRecv: return "recv";
    case Collective::kPut: return "put";
    case Collective::kGet: return "get";
    case Collective::kBcast: return "bcast";
    case Collective::kReduce: return "reduce";
    case Collective::kAllreduce: return "allreduce";
    case Collective::kReduceScatter: return "reduce_scatter";
    case Collective::kAllgather: return "allgather";
    case Collective::kGather: return "gather";
    case Collective::kScatter: return "scatter";
    case Collective::kGatherv: return "gatherv";
    case Collective::kScatterv: return "scatterv";
    case Collective::kAllgatherv: return "allgatherv";
    case Collective::kAlltoall: return "alltoall";
    case Collective::kAlltoallv: return "alltoallv";
    case Collective::kScan: return "scan";
    case Collective::kExscan: return "exscan";
    case Collective::kBarrier: return "barrier";
    case Collective::kReduceScatterv: return "reduce_scatterv";
    case Collective::kProgram: return "program";
  }
  return "?";
}

/// Whether `value` is one of Collective's enumerators.
constexpr bool is_known(Collective value) { return name_of(value)[0] != '?'; }

/// All enumerators of Collective, in order of value.
inline constexpr std::array<Collective, 24> kAllCollective{Collective::kNop, Collective::kCopy, Collective::kCombine, Collective::kSend, Collective::kRecv, Collective::kPut, Collective::kGet, Collective::kBcast, Collective::kReduce, Collective::kAllreduce, Collective::kReduceScatter, Collective::kAllgather, Collective::kGather, Collective::kScatter, Collective::kGatherv, Collective::kScatterv, Collective::kAllgatherv, Collective::kAlltoall, Collective::kAlltoallv, Collective::kScan, Collective::kExscan, Collective::kBarrier, Collective::kReduceScatterv, Collective::kProgram};

/// Memory a program may name. Bound by the call, so a program holds no address.
enum class Region : std::uint8_t {
  kSrc = 0,  ///< the call's source buffer
  kDst = 1,  ///< the call's destination buffer
  kScratch = 2,  ///< temporary memory of the size the algorithm asks for
  kParams = 3,  ///< 64-bit little-endian words that indirect counts and offsets read
  kWindow = 4,  ///< memory exposed to peers for put and get
};

/// Name of a region as users write it; "?" for a value that is none.
constexpr const char* name_of(Region value) {
  switch (value) {
    case Region::kSrc: return "src";
    case Region::kDst: return "dst";
    case Region::kScratch: return "scratch";
    case Region::kParams: return "params";
    case Region::kWindow: return "window";
  }
  return "?";
}

/// Whether `value` is one of Region's enumerators.
constexpr bool is_known(Region value) { return name_of(value)[0] != '?'; }

/// All enumerators of Region, in order of value.
inline constexpr std::array<Region, 5> kAllRegion{Region::kSrc, Region::kDst, Region::kScratch, Region::kParams, Region::kWindow};

/// What an instruction is.
enum class MoveKind : std::uint8_t {
  kNop = 0,  ///< does nothing, completes at once when its dependencies have
  kMove = 1,  ///< result = func(op0, op1)
  kEnd = 2,  ///< end of a stored program
};

/// Name of a move kind as users write it; "?" for a value that is none.
constexpr const char* name_of(MoveKind value) {
  switch (value) {
    case MoveKind::kNop: return "nop";
    case MoveKind::kMove: return "move";
    case MoveKind::kEnd: return "end";
  }
  return "?";
}

/// Whether `value` is one of MoveKind's enumerators.
constexpr bool is_known(MoveKind value) { return name_of(value)[0] != '?'; }

/// All enumerators of MoveKind, in order of value.
inline constexpr std::array<MoveKind, 3> kAllMoveKind{MoveKind::kNop, MoveKind::kMove, MoveKind::kEnd};

/// Where an operand comes from, or a local result goes.
enum class OperandKind : std::uint8_t {
  kNone = 0,  ///< absent
  kMemory = 1,  ///< local memory: region and byte offset
  kStream = 2,  ///< a kernel's stream: offset holds the port
  kArrival = 3,  ///< op1 only: a message as it arrives (peer and tag in the arrival word)
  kRemoteMemory = 4,  ///< op1 only: memory of the peer in the arrival word, address in the remote-memory word
};

/// Name of a operand kind as users write it; "?" for a value that is none.
constexpr const char* name_of(OperandKind value) {
  switch (value) {
    case OperandKind::kNone: return "none";
    case OperandKind::kMemory: return "memory";
    case OperandKind::kStream: return "stream";
    case OperandKind::kArrival: return "arrival";
    case OperandKind::kRemoteMemory: return "remote_memory";
  }
  return "?";
}

/// Whether `value` is one of OperandKind's enumerators.
constexpr bool is_known(OperandKind value) { return name_of(value)[0] != '?'; }

/// All enumerators of OperandKind, in order of value.
inline constexpr std::array<OperandKind, 5> kAllOperandKind{OperandKind::kNone, OperandKind::kMemory, OperandKind::kStream, OperandKind::kArrival, OperandKind::kRemoteMemory};

/// Where a remote result goes.
enum class RemoteKind : std::uint8_t {
  kNone = 0,  ///< no remote result
  kMessage = 1,  ///< a message, matched by an arrival of the peer's program
  kMemory = 2,  ///< memory of the peer (address in the remote-memory word)
  kStream = 3,  ///< a stream port of the peer
};

/// Name of a remote kind as users write it; "?" for a value that is none.
constexpr const char* name_of(RemoteKind value) {
  switch (value) {
    case RemoteKind::kNone: return "none";
    case RemoteKind::kMessage: return "message";
    case RemoteKind::kMemory: return "memory";
    case RemoteKind::kStream: return "stream";
  }
  return "?";
}

/// Whether `value` is one of RemoteKind's enumerators.
constexpr bool is_known(RemoteKind value) { return name_of(value)[0] != '?'; }

/// All enumerators of RemoteKind, in order of value.
inline constexpr std::array<RemoteKind, 4> kAllRemoteKind{RemoteKind::kNone, RemoteKind::kMessage, RemoteKind::kMemory, RemoteKind::kStream};

/// How a peer field is read.
enum class PeerMode : std::uint8_t {
  kRank = 0,  ///< the field is one rank
  kList = 1,  ///< the field is the index of a list in the constant pool; arrivals combine in listed order
  kAny = 2,  ///< as list, arrivals combine in any order
};

/// Name of a peer mode as users write it; "?" for a value that is none.
constexpr const char* name_of(PeerMode value) {
  switch (value) {
    case PeerMode::kRank: return "rank";
    case PeerMode::kList: return "list";
    case PeerMode::kAny: return "any";
  }
  return "?";
}

/// Whether `value` is one of PeerMode's enumerators.
constexpr bool is_known(PeerMode value) { return name_of(value)[0] != '?'; }

/// All enumerators of PeerMode, in order of value.
inline constexpr std::array<PeerMode, 3> kAllPeerMode{PeerMode::kRank, PeerMode::kList, PeerMode::kAny};

/// Message synchronisation (ACCL+ section 4.2.3).
enum class Protocol : std::uint8_t {
  kAuto = 0,  ///< by the message's bytes and the communicator's eager limit
  kEager = 1,  ///< sent at once, against receive-buffer credit
  kRendezvous = 2,  ///< sent when the receiver has granted a landing area
};

/// Name of a protocol as users write it; "?" for a value that is none.
constexpr const char* name_of(Protocol value) {
  switch (value) {
    case Protocol::kAuto: return "auto";
    case Protocol::kEager: return "eager";
    case Protocol::kRendezvous: return "rendezvous";
  }
  return "?";
}

/// Whether `value` is one of Protocol's enumerators.
constexpr bool is_known(Protocol value) { return name_of(value)[0] != '?'; }

/// All enumerators of Protocol, in order of value.
inline constexpr std::array<Protocol, 3> kAllProtocol{Protocol::kAuto, Protocol::kEager, Protocol::kRendezvous};

/// Conversion at a slot.
enum class Cast : std::uint8_t {
  kNone = 0,  ///< the move's datatype
  kWire = 1,  ///< between the move's datatype and the call's wire datatype
};

/// Name of a cast as users write it; "?" for a value that is none.
constexpr const char* name_of(Cast value) {
  switch (value) {
    case Cast::kNone: return "none";
    case Cast::kWire: return "wire";
  }
  return "?";
}

/// Whether `value` is one of Cast's enumerators.
constexpr bool is_known(Cast value) { return name_of(value)[0] != '?'; }

/// All enumerators of Cast, in order of value.
inline constexpr std::array<Cast, 2> kAllCast{Cast::kNone, Cast::kWire};

/// Type of a message on the wire.
enum class MessageType : std::uint8_t {
  kEager = 0,  ///< data sent against credit
  kRequest = 1,  ///< asks for a grant (rendezvous), or announces eager data without credit
  kGrant = 2,  ///< names a landing area by token, and how far the sender may write into it
  kWrite = 3,  ///< data into a granted landing area: token and offset
  kDone = 4,  ///< all data of a token has been written (transports whose writes bypass the engine)
  kCredit = 5,  ///< returns receive-buffer credits
  kControl = 6,  ///< membership, revocation, errors
  kAggregate = 7,  ///< reduced in the network
};

/// Name of a message type as users write it; "?" for a value that is none.
constexpr const char* name_of(MessageType value) {
  switch (value) {
    case MessageType::kEager: return "eager";
    case MessageType::kRequest: return "request";
    case MessageType::kGrant: return "grant";
    case MessageType::kWrite: return "write";
    case MessageType::kDone: return "done";
    case MessageType::kCredit: return "credit";
    case MessageType::kControl: return "control";
    case MessageType::kAggregate: return "aggregate";
  }
  return "?";
}

/// Whether `value` is one of MessageType's enumerators.
constexpr bool is_known(MessageType value) { return name_of(value)[0] != '?'; }

/// All enumerators of MessageType, in order of value.
inline constexpr std::array<MessageType, 8> kAllMessageType{MessageType::kEager, MessageType::kRequest, MessageType::kGrant, MessageType::kWrite, MessageType::kDone, MessageType::kCredit, MessageType::kControl, MessageType::kAggregate};

/// Kind of a control message; it travels in the header's tag.
enum class ControlKind : std::uint8_t {
  kNone = 0,  ///< not sent
  kRevoke = 1,  ///< the communicator has failed; token_generation: error code; offset: 1 if it is passed on; payload: the reason
  kReject = 2,  ///< a send was refused by its receiver; token_generation: error code; payload: the sentence
  kGet = 3,  ///< asks for bytes of the window: offset, message_bytes and a landing token; payload: its limit, without one all may come; then a reach, if the landing area may be written to
  kGetMore = 4,  ///< raises the limit of a get
  kGetFailed = 5,  ///< a get was refused; token of the landing area; offset: error code
  kPutDone = 6,  ///< a put stands in memory, or was refused; sequence: the put's; token_generation: error code
  kProbe = 7,  ///< asks whether a rank has entered a collective call
  kEntered = 8,  ///< yes
  kMismatch = 9,  ///< ranks called different operations; payload: what the sender of this message called
  kAgree = 10,  ///< a rank's word in an agreement of those that are left; sequence: which agreement; offset: round; signature: what it is for; payload: two 64-bit words, then a bit for each rank that is gone; in communicators of more than 16 ranks, a TreeWord (engine/tree_word.hpp)
};

/// Name of a control kind as users write it; "?" for a value that is none.
constexpr const char* name_of(ControlKind value) {
  switch (value) {
    case ControlKind::kNone: return "none";
    case ControlKind::kRevoke: return "revoke";
    case ControlKind::kReject: return "reject";
    case ControlKind::kGet: return "get";
    case ControlKind::kGetMore: return "get_more";
    case ControlKind::kGetFailed: return "get_failed";
    case ControlKind::kPutDone: return "put_done";
    case ControlKind::kProbe: return "probe";
    case ControlKind::kEntered: return "entered";
    case ControlKind::kMismatch: return "mismatch";
    case ControlKind::kAgree: return "agree";
  }
  return "?";
}

/// Whether `value` is one of ControlKind's enumerators.
constexpr bool is_known(ControlKind value) { return name_of(value)[0] != '?'; }

/// All enumerators of ControlKind, in order of value.
inline constexpr std::array<ControlKind, 11> kAllControlKind{ControlKind::kNone, ControlKind::kRevoke, ControlKind::kReject, ControlKind::kGet, ControlKind::kGetMore, ControlKind::kGetFailed, ControlKind::kPutDone, ControlKind::kProbe, ControlKind::kEntered, ControlKind::kMismatch, ControlKind::kAgree};

/// What a frame between a member and a switch that aggregates is (docs/switch-protocol.md).
enum class SlotKind : std::uint8_t {
  kNone = 0,  ///< not sent
  kContribute = 1,  ///< up: a member's share in a turn
  kResult = 2,  ///< down: the turn is complete; payload: its result, for those who get it
  kResume = 3,  ///< up: the member knows the generation; turn: the first that it has no result of; total: its incarnation
  kBegin = 4,  ///< down: all members have resumed; turn: where all of them begin; total: the incarnation that it is for
  kRenew = 5,  ///< down: a generation has begun that the member may not know; it resumes
  kMissing = 6,  ///< down: the turn waits; count: for how many children, root: the lowest rank below the first of them or, to a child that is one of them, below itself; all bits set: for the switch above
  kRefuse = 7,  ///< either way: members do not agree, and the pool is closed; payload: a slot_refusal
};

/// Name of a slot kind as users write it; "?" for a value that is none.
constexpr const char* name_of(SlotKind value) {
  switch (value) {
    case SlotKind::kNone: return "none";
    case SlotKind::kContribute: return "contribute";
    case SlotKind::kResult: return "result";
    case SlotKind::kResume: return "resume";
    case SlotKind::kBegin: return "begin";
    case SlotKind::kRenew: return "renew";
    case SlotKind::kMissing: return "missing";
    case SlotKind::kRefuse: return "refuse";
  }
  return "?";
}

/// Whether `value` is one of SlotKind's enumerators.
constexpr bool is_known(SlotKind value) { return name_of(value)[0] != '?'; }

/// All enumerators of SlotKind, in order of value.
inline constexpr std::array<SlotKind, 8> kAllSlotKind{SlotKind::kNone, SlotKind::kContribute, SlotKind::kResult, SlotKind::kResume, SlotKind::kBegin, SlotKind::kRenew, SlotKind::kMissing, SlotKind::kRefuse};

/// What members of a pool of slots do not agree on, or what the switch does not do.
enum class SlotField : std::uint8_t {
  kNone = 0,  ///< nothing
  kOpcode = 1,  ///< the collective
  kFunc = 2,  ///< the operator
  kDtype = 3,  ///< the datatype
  kTotal = 4,  ///< elements of the call
  kCount = 5,  ///< elements of the chunk
  kCall = 6,  ///< the sequence of the call
  kRoot = 7,  ///< the root, or the owner of the block
  kPayload = 8,  ///< one rank sends a payload of another length than the turn has; both values are bytes
  kOperator = 9,  ///< the switch lacks the operator on the datatype; the values are func and dtype
  kOrder = 10,  ///< the operator's bits depend on the order, and the pool has no room to keep it; the values are func and dtype
  kFactor = 11,  ///< what the result is multiplied by (post_scale); the values are digests
};

/// Name of a slot field as users write it; "?" for a value that is none.
constexpr const char* name_of(SlotField value) {
  switch (value) {
    case SlotField::kNone: return "none";
    case SlotField::kOpcode: return "opcode";
    case SlotField::kFunc: return "func";
    case SlotField::kDtype: return "dtype";
    case SlotField::kTotal: return "total";
    case SlotField::kCount: return "count";
    case SlotField::kCall: return "call";
    case SlotField::kRoot: return "root";
    case SlotField::kPayload: return "payload";
    case SlotField::kOperator: return "operator";
    case SlotField::kOrder: return "order";
    case SlotField::kFactor: return "factor";
  }
  return "?";
}

/// Whether `value` is one of SlotField's enumerators.
constexpr bool is_known(SlotField value) { return name_of(value)[0] != '?'; }

/// All enumerators of SlotField, in order of value.
inline constexpr std::array<SlotField, 12> kAllSlotField{SlotField::kNone, SlotField::kOpcode, SlotField::kFunc, SlotField::kDtype, SlotField::kTotal, SlotField::kCount, SlotField::kCall, SlotField::kRoot, SlotField::kPayload, SlotField::kOperator, SlotField::kOrder, SlotField::kFactor};

/// Performance counters of an engine in hardware, 64 bits each at `counters` in exchange memory. They count from power-up; a soft reset leaves them.
enum class Counter : std::uint8_t {
  kCycles = 0,  ///< cycles of the engine's clock
  kBusy = 1,  ///< cycles in which a call is active
  kDescriptorWords = 2,  ///< words of call descriptors taken from kernels' streams
  kCalls = 3,  ///< calls that the microcontroller has begun
  kCallsCompleted = 4,  ///< calls that ended well
  kCallsFailed = 5,  ///< calls that ended with an error
  kAnswers = 6,  ///< answers given to kernels
  kCpuItems = 7,  ///< items of work given to the microcontroller
  kCpuBusy = 8,  ///< cycles in which the microcontroller has an item to work on
  kMoves = 9,  ///< moves that the microcontroller emitted, or that were replayed
  kMovesEntered = 10,  ///< moves that entered the window of their call
  kMovesIssued = 11,  ///< moves whose dependencies were complete
  kMovesRetired = 12,  ///< moves complete, and all moves before them
  kComputeJobs = 13,  ///< jobs given to the compute lane
  kSendJobs = 14,  ///< jobs given to the send lane
  kJobsEnded = 15,  ///< jobs of the compute lane that have ended
  kSegmentsSent = 16,  ///< segments with data or a signal that Tx took from the lanes
  kRequestsSent = 17,  ///< requests for a grant
  kGrantsSent = 18,  ///< grants
  kCreditsSent = 19,  ///< messages that only return credits
  kSegmentsReceived = 20,  ///< segments with data or a signal that passed Rx
  kRequestsReceived = 21,  ///< requests of peers
  kGrantsReceived = 22,  ///< grants of peers
  kSegmentsBuffered = 23,  ///< segments written to a receive buffer
  kSegmentsBypassed = 24,  ///< segments that went from Rx to the compute lane, past the buffers
  kRxFaults = 25,  ///< messages that Rx refused
  kBuffersHigh = 26,  ///< largest number of receive buffers in use at once; not a count of events
  kTxWords = 27,  ///< words, headers included, that Tx gave to the transports
  kRxWords = 28,  ///< words, headers included, that Rx took from the transports
  kMacTxWords = 29,  ///< words that left at the MAC
  kMacRxWords = 30,  ///< words that came in at the MAC
  kOp0Words = 31,  ///< words read from memory as first operand
  kOp1Words = 32,  ///< words read from memory as second operand or from receive buffers, and params
  kSendWords = 33,  ///< words read from memory by the send lane
  kResultWords = 34,  ///< words of local results
  kBufferWords = 35,  ///< words written to receive buffers
  kStallRead = 36,  ///< cycles in which a lane lacks a word that memory has not delivered
  kStallWrite = 37,  ///< cycles in which memory does not take a word that is written
  kStallTxData = 38,  ///< cycles in which Tx has begun a message and no lane has a word of it
  kStallTxNetwork = 39,  ///< cycles in which a transport does not take a word of Tx
  kStallLane = 40,  ///< cycles in which the dispatcher has a job and the lane's queue is full
  kStallCredit = 41,  ///< cycles in which a move waits because its peer has given no credit
  kStallGrant = 42,  ///< cycles in which a move waits for its peer to grant more of a long message
  kStallSpace = 43,  ///< cycles in which a move waits for room in its transport, or for the message before it
  kStallArrival = 44,  ///< cycles in which a move waits for a segment from a peer
  kStallProducer = 45,  ///< cycles in which a move waits for the move that it follows by segments
  kStallWindow = 46,  ///< cycles in which the microcontroller is idle, and a program has more moves than its window has room
};

/// Name of a counter as users write it; "?" for a value that is none.
constexpr const char* name_of(Counter value) {
  switch (value) {
    case Counter::kCycles: return "cycles";
    case Counter::kBusy: return "busy";
    case Counter::kDescriptorWords: return "descriptor_words";
    case Counter::kCalls: return "calls";
    case Counter::kCallsCompleted: return "calls_completed";
    case Counter::kCallsFailed: return "calls_failed";
    case Counter::kAnswers: return "answers";
    case Counter::kCpuItems: return "cpu_items";
    case Counter::kCpuBusy: return "cpu_busy";
    case Counter::kMoves: return "moves";
    case Counter::kMovesEntered: return "moves_entered";
    case Counter::kMovesIssued: return "moves_issued";
    case Counter::kMovesRetired: return "moves_retired";
    case Counter::kComputeJobs: return "compute_jobs";
    case Counter::kSendJobs: return "send_jobs";
    case Counter::kJobsEnded: return "jobs_ended";
    case Counter::kSegmentsSent: return "segments_sent";
    case Counter::kRequestsSent: return "requests_sent";
    case Counter::kGrantsSent: return "grants_sent";
    case Counter::kCreditsSent: return "credits_sent";
    case Counter::kSegmentsReceived: return "segments_received";
    case Counter::kRequestsReceived: return "requests_received";
    case Counter::kGrantsReceived: return "grants_received";
    case Counter::kSegmentsBuffered: return "segments_buffered";
    case Counter::kSegmentsBypassed: return "segments_bypassed";
    case Counter::kRxFaults: return "rx_faults";
    case Counter::kBuffersHigh: return "buffers_high";
    case Counter::kTxWords: return "tx_words";
    case Counter::kRxWords: return "rx_words";
    case Counter::kMacTxWords: return "mac_tx_words";
    case Counter::kMacRxWords: return "mac_rx_words";
    case Counter::kOp0Words: return "op0_words";
    case Counter::kOp1Words: return "op1_words";
    case Counter::kSendWords: return "send_words";
    case Counter::kResultWords: return "result_words";
    case Counter::kBufferWords: return "buffer_words";
    case Counter::kStallRead: return "stall_read";
    case Counter::kStallWrite: return "stall_write";
    case Counter::kStallTxData: return "stall_tx_data";
    case Counter::kStallTxNetwork: return "stall_tx_network";
    case Counter::kStallLane: return "stall_lane";
    case Counter::kStallCredit: return "stall_credit";
    case Counter::kStallGrant: return "stall_grant";
    case Counter::kStallSpace: return "stall_space";
    case Counter::kStallArrival: return "stall_arrival";
    case Counter::kStallProducer: return "stall_producer";
    case Counter::kStallWindow: return "stall_window";
  }
  return "?";
}

/// Whether `value` is one of Counter's enumerators.
constexpr bool is_known(Counter value) { return name_of(value)[0] != '?'; }

/// All enumerators of Counter, in order of value.
inline constexpr std::array<Counter, 47> kAllCounter{Counter::kCycles, Counter::kBusy, Counter::kDescriptorWords, Counter::kCalls, Counter::kCallsCompleted, Counter::kCallsFailed, Counter::kAnswers, Counter::kCpuItems, Counter::kCpuBusy, Counter::kMoves, Counter::kMovesEntered, Counter::kMovesIssued, Counter::kMovesRetired, Counter::kComputeJobs, Counter::kSendJobs, Counter::kJobsEnded, Counter::kSegmentsSent, Counter::kRequestsSent, Counter::kGrantsSent, Counter::kCreditsSent, Counter::kSegmentsReceived, Counter::kRequestsReceived, Counter::kGrantsReceived, Counter::kSegmentsBuffered, Counter::kSegmentsBypassed, Counter::kRxFaults, Counter::kBuffersHigh, Counter::kTxWords, Counter::kRxWords, Counter::kMacTxWords, Counter::kMacRxWords, Counter::kOp0Words, Counter::kOp1Words, Counter::kSendWords, Counter::kResultWords, Counter::kBufferWords, Counter::kStallRead, Counter::kStallWrite, Counter::kStallTxData, Counter::kStallTxNetwork, Counter::kStallLane, Counter::kStallCredit, Counter::kStallGrant, Counter::kStallSpace, Counter::kStallArrival, Counter::kStallProducer, Counter::kStallWindow};

/// Result of every operation.
enum class ErrorCode : std::uint16_t {
  kOk = 0,  ///< success
  kInvalidArgument = 1,  ///< an argument is outside what is allowed
  kInvalidCount = 2,  ///< a count or displacement is negative or too large
  kInvalidDatatype = 3,  ///< the datatype is unknown, or the operation does not take it
  kInvalidOp = 4,  ///< the reduction operator is unknown, or does not take this datatype
  kInvalidRoot = 5,  ///< the root or peer is not a rank of the communicator
  kBufferTooSmall = 6,  ///< a buffer holds fewer elements than the call needs
  kReadOnlyBuffer = 7,  ///< a buffer that the call writes is read-only
  kOverlappingBuffers = 8,  ///< source and destination overlap and the call is not in place
  kUnknownAlgorithm = 9,  ///< no algorithm of that name for this collective
  kUnsupported = 10,  ///< the algorithm's restrictions, or an engine of some member, do not admit the call
  kMalformedProgram = 11,  ///< a program breaks a rule of the model
  kFreedCommunicator = 12,  ///< the communicator was freed
  kRevoked = 13,  ///< the communicator was revoked after an error on some rank
  kTimeout = 14,  ///< a deadline passed
  kPeerDead = 15,  ///< a member process ended while the communicator was in use
  kMismatchedCall = 16,  ///< ranks called different operations, or the same with different arguments
  kTruncated = 17,  ///< a message is longer than the receive that matched it
  kCorruptMessage = 18,  ///< a message failed its checks
  kOutOfMemory = 19,  ///< memory could not be had
  kBootstrap = 20,  ///< the job could not be joined
  kWrongProcess = 21,  ///< used in a child of fork, or after close
  kCapacity = 22,  ///< a fixed limit was reached
  kInternal = 23,  ///< an invariant of Unisono does not hold
  kDeviceLost = 24,  ///< the device of this rank does not answer any more
  kFramesLost = 25,  ///< the network lost messages or delivered them out of order, and its transport repeats none
  kPartitioned = 26,  ///< the network is cut, and the larger part of the job goes on without this rank
};

/// Name of an error code.
constexpr const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk: return "ok";
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kInvalidCount: return "invalid_count";
    case ErrorCode::kInvalidDatatype: return "invalid_datatype";
    case ErrorCode::kInvalidOp: return "invalid_op";
    case ErrorCode::kInvalidRoot: return "invalid_root";
    case ErrorCode::kBufferTooSmall: return "buffer_too_small";
    case ErrorCode::kReadOnlyBuffer: return "read_only_buffer";
    case ErrorCode::kOverlappingBuffers: return "overlapping_buffers";
    case ErrorCode::kUnknownAlgorithm: return "unknown_algorithm";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kMalformedProgram: return "malformed_program";
    case ErrorCode::kFreedCommunicator: return "freed_communicator";
    case ErrorCode::kRevoked: return "revoked";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kPeerDead: return "peer_dead";
    case ErrorCode::kMismatchedCall: return "mismatched_call";
    case ErrorCode::kTruncated: return "truncated";
    case ErrorCode::kCorruptMessage: return "corrupt_message";
    case ErrorCode::kOutOfMemory: return "out_of_memory";
    case ErrorCode::kBootstrap: return "bootstrap";
    case ErrorCode::kWrongProcess: return "wrong_process";
    case ErrorCode::kCapacity: return "capacity";
    case ErrorCode::kInternal: return "internal";
    case ErrorCode::kDeviceLost: return "device_lost";
    case ErrorCode::kFramesLost: return "frames_lost";
    case ErrorCode::kPartitioned: return "partitioned";
  }
  return "?";
}

/// What an error code means.
constexpr const char* meaning_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk: return "success";
    case ErrorCode::kInvalidArgument: return "an argument is outside what is allowed";
    case ErrorCode::kInvalidCount: return "a count or displacement is negative or too large";
    case ErrorCode::kInvalidDatatype: return "the datatype is unknown, or the operation does not take it";
    case ErrorCode::kInvalidOp: return "the reduction operator is unknown, or does not take this datatype";
    case ErrorCode::kInvalidRoot: return "the root or peer is not a rank of the communicator";
    case ErrorCode::kBufferTooSmall: return "a buffer holds fewer elements than the call needs";
    case ErrorCode::kReadOnlyBuffer: return "a buffer that the call writes is read-only";
    case ErrorCode::kOverlappingBuffers: return "source and destination overlap and the call is not in place";
    case ErrorCode::kUnknownAlgorithm: return "no algorithm of that name for this collective";
    case ErrorCode::kUnsupported: return "the algorithm's restrictions, or an engine of some member, do not admit the call";
    case ErrorCode::kMalformedProgram: return "a program breaks a rule of the model";
    case ErrorCode::kFreedCommunicator: return "the communicator was freed";
    case ErrorCode::kRevoked: return "the communicator was revoked after an error on some rank";
    case ErrorCode::kTimeout: return "a deadline passed";
    case ErrorCode::kPeerDead: return "a member process ended while the communicator was in use";
    case ErrorCode::kMismatchedCall: return "ranks called different operations, or the same with different arguments";
    case ErrorCode::kTruncated: return "a message is longer than the receive that matched it";
    case ErrorCode::kCorruptMessage: return "a message failed its checks";
    case ErrorCode::kOutOfMemory: return "memory could not be had";
    case ErrorCode::kBootstrap: return "the job could not be joined";
    case ErrorCode::kWrongProcess: return "used in a child of fork, or after close";
    case ErrorCode::kCapacity: return "a fixed limit was reached";
    case ErrorCode::kInternal: return "an invariant of Unisono does not hold";
    case ErrorCode::kDeviceLost: return "the device of this rank does not answer any more";
    case ErrorCode::kFramesLost: return "the network lost messages or delivered them out of order, and its transport repeats none";
    case ErrorCode::kPartitioned: return "the network is cut, and the larger part of the job goes on without this rank";
  }
  return "?";
}

/// What to do about an error.
constexpr const char* advice_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk: return "";
    case ErrorCode::kInvalidArgument: return "";
    case ErrorCode::kInvalidCount: return "Pass a count between 0 and the limit the message names.";
    case ErrorCode::kInvalidDatatype: return "`unisono algorithms` and the datatype table list what is accepted.";
    case ErrorCode::kInvalidOp: return "";
    case ErrorCode::kInvalidRoot: return "Ranks count from 0 to size-1.";
    case ErrorCode::kBufferTooSmall: return "";
    case ErrorCode::kReadOnlyBuffer: return "Pass a writable array.";
    case ErrorCode::kOverlappingBuffers: return "Pass disjoint buffers, or ask for the in-place form.";
    case ErrorCode::kUnknownAlgorithm: return "`unisono algorithms` lists the names.";
    case ErrorCode::kUnsupported: return "Leave the algorithm to automatic choice, or change the call.";
    case ErrorCode::kMalformedProgram: return "Run `unisono check` on it: the report names rank and move.";
    case ErrorCode::kFreedCommunicator: return "Use a live communicator.";
    case ErrorCode::kRevoked: return "Read the first rank's error; create a new communicator.";
    case ErrorCode::kTimeout: return "See who has not arrived; if the peers are only slow, raise the timeout.";
    case ErrorCode::kPeerDead: return "Look for that rank's own error or exit status.";
    case ErrorCode::kMismatchedCall: return "Compare the two descriptors in the message.";
    case ErrorCode::kTruncated: return "Receive at least as many elements as are sent.";
    case ErrorCode::kCorruptMessage: return "A member's memory or version differs; the communicator is revoked.";
    case ErrorCode::kOutOfMemory: return "Use smaller buffers, or raise the limit.";
    case ErrorCode::kBootstrap: return "Start the program with `unisono run`, or check UNISONO_* in the environment.";
    case ErrorCode::kWrongProcess: return "Create a context in this process.";
    case ErrorCode::kCapacity: return "";
    case ErrorCode::kInternal: return "Please report it with the message.";
    case ErrorCode::kDeviceLost: return "Look for the message of the simulated cluster or the driver of the card; start the job again.";
    case ErrorCode::kFramesLost: return "Run on a network without `loss`, `reorder`, `corrupt` and `down`, and with room in its buffers (`policy = pause`), or over a transport that repeats; then start the job again.";
    case ErrorCode::kPartitioned: return "End this process: what it computes from here on is not part of the job. Look for what has cut the network, then start the job again.";
  }
  return "?";
}

/// Numbers every engine agrees on.
inline constexpr std::uint64_t kAbiVersion = 1;  ///< version of the C interface
inline constexpr std::uint64_t kWireVersion = 1;  ///< version of the message header
inline constexpr std::uint64_t kMagic = 21838;  ///< first 16 bits of every message: 'NU' in memory order
inline constexpr std::uint64_t kWindow = 32;  ///< moves of one call that may be in flight
inline constexpr std::uint64_t kMovesPerStep = 16;  ///< most moves one generation step emits
inline constexpr std::uint64_t kMaxRanks = 16777216;  ///< ranks a peer field can name (24 bits)
inline constexpr std::uint64_t kMaxCount = 1099511627775;  ///< largest element count of a move (40 bits)
inline constexpr std::uint64_t kMaxTag = 16777215;  ///< largest step tag (24 bits)
inline constexpr std::uint64_t kMaxUserTag = 2147483647;  ///< largest tag of a send or receive
inline constexpr std::uint64_t kMaxActiveCalls = 8;  ///< calls an RTL engine executes at once
inline constexpr std::uint64_t kMaxOutstandingCalls = 32;  ///< calls queued in an engine, parked ones included
inline constexpr std::uint64_t kWordBytes = 64;  ///< bytes of one data-path word
inline constexpr std::uint64_t kHeaderBytes = 64;  ///< bytes of the logical message header
inline constexpr std::uint64_t kMoveBytes = 64;  ///< bytes of a move's interchange form
inline constexpr std::uint64_t kMaxStreamPorts = 16;  ///< stream ports of one engine
inline constexpr std::uint64_t kLoadedPrograms = 8;  ///< programs that a device holds at once
inline constexpr std::uint64_t kLoadedMoves = 32;  ///< moves of each that a device holds itself; those after them stand in its memory
inline constexpr std::uint64_t kProgramMoves = 4096;  ///< moves of each, on one rank
inline constexpr std::uint64_t kLoadedWords = 64;  ///< words of its peer lists
inline constexpr std::uint64_t kSlotMagic = 19539;  ///< first 16 bits of every frame between a member and a switch: 'SL' in memory order
inline constexpr std::uint64_t kSlotProtocol = 1;  ///< version of that protocol
inline constexpr std::uint64_t kSlotFrameBytes = 64;  ///< bytes of a slot frame before its payload
inline constexpr std::uint64_t kMaxSlots = 32768;  ///< slots of one communicator in a switch; a power of two
inline constexpr std::uint64_t kSelfSession = 64;  ///< session of a device's transport that leads back to itself; those of the network are below
inline constexpr std::uint64_t kWindowSlot = 65535;  ///< token slot of what names no landing area but the communicator's window: a put's data, request, grant, done
inline constexpr std::uint64_t kMaxWindowOffset = 140737488355327;  ///< largest offset of a put or get in a window: 2^47 - 1

/// One operand, or the local result, of a move.
struct Operand {
  OperandKind kind{};  ///< source or destination
  Cast cast{};  ///< conversion at this slot
  Region region{};  ///< memory region
  bool indirect{};  ///< offset is a byte offset into params, where the 64-bit byte offset stands
  std::uint64_t offset{};  ///< byte offset in the region; stream port for streams
  friend constexpr bool operator==(const Operand&, const Operand&) = default;
};

/// Encoded form of Operand: 1 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 1> encode(const Operand& value) {
  std::array<std::uint64_t, 1> words{};
  words[0] |= (static_cast<std::uint64_t>(value.kind) & 0x7U) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.cast) & 0x3U) << 3U;
  words[0] |= (static_cast<std::uint64_t>(value.region) & 0x1fU) << 5U;
  words[0] |= (static_cast<std::uint64_t>(value.indirect) & 0x1U) << 10U;
  words[0] |= (static_cast<std::uint64_t>(value.offset) & 0xffffffffffffULL) << 11U;
  return words;
}

/// Decodes a Operand without checking; see `well_formed_operand`.
constexpr Operand decode_operand(const std::array<std::uint64_t, 1>& words) {
  Operand value{};
  value.kind = static_cast<OperandKind>((words[0]) & 0x7U);
  value.cast = static_cast<Cast>((words[0] >> 3U) & 0x3U);
  value.region = static_cast<Region>((words[0] >> 5U) & 0x1fU);
  value.indirect = ((words[0] >> 10U) & 0x1U) != 0;
  value.offset = static_cast<std::uint64_t>((words[0] >> 11U) & 0xffffffffffffULL);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const Operand& value) {
  return is_known(value.kind) &&
         is_known(value.cast) &&
         is_known(value.region) &&
         value.offset <= 0xffffffffffffULL;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_operand(const std::array<std::uint64_t, 1>& words) {
  const Operand value = decode_operand(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kOperandWords = 1;

/// Which message, or which peers' memory, op1 is.
struct Arrival {
  std::uint32_t peer{};  ///< rank, or pool index of a list
  PeerMode mode{};  ///< how peer is read
  std::uint32_t tag{};  ///< step tag the message must carry
  friend constexpr bool operator==(const Arrival&, const Arrival&) = default;
};

/// Encoded form of Arrival: 1 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 1> encode(const Arrival& value) {
  std::array<std::uint64_t, 1> words{};
  words[0] |= (static_cast<std::uint64_t>(value.peer) & 0xffffffU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.mode) & 0x3U) << 24U;
  words[0] |= (static_cast<std::uint64_t>(value.tag) & 0xffffffU) << 26U;
  return words;
}

/// Decodes a Arrival without checking; see `well_formed_arrival`.
constexpr Arrival decode_arrival(const std::array<std::uint64_t, 1>& words) {
  Arrival value{};
  value.peer = static_cast<std::uint32_t>((words[0]) & 0xffffffU);
  value.mode = static_cast<PeerMode>((words[0] >> 24U) & 0x3U);
  value.tag = static_cast<std::uint32_t>((words[0] >> 26U) & 0xffffffU);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const Arrival& value) {
  return value.peer <= 0xffffffU &&
         is_known(value.mode) &&
         value.tag <= 0xffffffU;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_arrival(const std::array<std::uint64_t, 1>& words) {
  const Arrival value = decode_arrival(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kArrivalWords = 1;

/// Where the remote result goes.
struct Remote {
  RemoteKind kind{};  ///< message, memory or stream
  Cast cast{};  ///< conversion at this slot
  std::uint32_t peer{};  ///< rank, or pool index of a list
  PeerMode mode{};  ///< how peer is read (rank or list)
  std::uint32_t tag{};  ///< step tag
  std::uint8_t port{};  ///< stream port of the peer
  friend constexpr bool operator==(const Remote&, const Remote&) = default;
};

/// Encoded form of Remote: 1 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 1> encode(const Remote& value) {
  std::array<std::uint64_t, 1> words{};
  words[0] |= (static_cast<std::uint64_t>(value.kind) & 0x7U) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.cast) & 0x3U) << 3U;
  words[0] |= (static_cast<std::uint64_t>(value.peer) & 0xffffffU) << 5U;
  words[0] |= (static_cast<std::uint64_t>(value.mode) & 0x3U) << 29U;
  words[0] |= (static_cast<std::uint64_t>(value.tag) & 0xffffffU) << 31U;
  words[0] |= (static_cast<std::uint64_t>(value.port) & 0xffU) << 55U;
  return words;
}

/// Decodes a Remote without checking; see `well_formed_remote`.
constexpr Remote decode_remote(const std::array<std::uint64_t, 1>& words) {
  Remote value{};
  value.kind = static_cast<RemoteKind>((words[0]) & 0x7U);
  value.cast = static_cast<Cast>((words[0] >> 3U) & 0x3U);
  value.peer = static_cast<std::uint32_t>((words[0] >> 5U) & 0xffffffU);
  value.mode = static_cast<PeerMode>((words[0] >> 29U) & 0x3U);
  value.tag = static_cast<std::uint32_t>((words[0] >> 31U) & 0xffffffU);
  value.port = static_cast<std::uint8_t>((words[0] >> 55U) & 0xffU);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const Remote& value) {
  return is_known(value.kind) &&
         is_known(value.cast) &&
         value.peer <= 0xffffffU &&
         is_known(value.mode) &&
         value.tag <= 0xffffffU;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_remote(const std::array<std::uint64_t, 1>& words) {
  const Remote value = decode_remote(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kRemoteWords = 1;

/// Address in the memory of each peer, for op1 remote_memory, a remote result to memory, or both.
struct RemoteAddress {
  Region region{};  ///< region that op1 reads
  bool strided{};  ///< reserved for two-dimensional strides; zero in this version
  Region result_region{};  ///< region that the remote result writes
  std::uint64_t offset{};  ///< byte offset in either region, the same at every peer
  friend constexpr bool operator==(const RemoteAddress&, const RemoteAddress&) = default;
};

/// Encoded form of RemoteAddress: 1 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 1> encode(const RemoteAddress& value) {
  std::array<std::uint64_t, 1> words{};
  words[0] |= (static_cast<std::uint64_t>(value.region) & 0x1fU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.strided) & 0x1U) << 5U;
  words[0] |= (static_cast<std::uint64_t>(value.result_region) & 0x1fU) << 6U;
  words[0] |= (static_cast<std::uint64_t>(value.offset) & 0xffffffffffffULL) << 16U;
  return words;
}

/// Decodes a RemoteAddress without checking; see `well_formed_remote_address`.
constexpr RemoteAddress decode_remote_address(const std::array<std::uint64_t, 1>& words) {
  RemoteAddress value{};
  value.region = static_cast<Region>((words[0]) & 0x1fU);
  value.strided = ((words[0] >> 5U) & 0x1U) != 0;
  value.result_region = static_cast<Region>((words[0] >> 6U) & 0x1fU);
  value.offset = static_cast<std::uint64_t>((words[0] >> 16U) & 0xffffffffffffULL);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const RemoteAddress& value) {
  return is_known(value.region) &&
         is_known(value.result_region) &&
         value.offset <= 0xffffffffffffULL;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_remote_address(const std::array<std::uint64_t, 1>& words) {
  const RemoteAddress value = decode_remote_address(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kRemoteAddressWords = 1;

/// One instruction: result = func(op0, op1), delivered locally, remotely, or both (ACCL+ section 4.2.1).
struct Move {
  MoveKind kind{};  ///< instruction kind
  Func func{};  ///< function of the two operands; none if one operand is present
  Datatype dtype{};  ///< element type
  Protocol protocol{};  ///< of the remote result and of the arrival
  std::uint8_t log2_segment{};  ///< log2 of the preferred segment in bytes; 0 leaves it to the engine
  bool swap{};  ///< result = func(op1, op0)
  bool signal{};  ///< message is sent, or awaited, although count is 0
  bool count_indirect{};  ///< count is a byte offset into params, where the 64-bit count stands
  std::uint32_t dependencies{};  ///< bit i: waits until move n-1-i has completed
  std::uint64_t count{};  ///< elements
  std::uint8_t segment_dependency0{};  ///< distance back to a move whose element k must be done before element k here; 0 = none
  std::uint8_t segment_dependency1{};  ///< a second one
  Operand op0{};  ///< first operand: none, memory or stream
  Operand op1{};  ///< second operand: none, memory, arrival or remote memory
  Arrival arrival{};  ///< peer of op1
  Operand local{};  ///< local result: none, memory or stream
  Remote remote{};  ///< remote result
  RemoteAddress remote_address{};  ///< address in the peer's memory
  friend constexpr bool operator==(const Move&, const Move&) = default;
};

/// Encoded form of Move: 8 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 8> encode(const Move& value) {
  std::array<std::uint64_t, 8> words{};
  words[0] |= (static_cast<std::uint64_t>(value.kind) & 0xfU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.func) & 0xffU) << 4U;
  words[0] |= (static_cast<std::uint64_t>(value.dtype) & 0x3fU) << 12U;
  words[0] |= (static_cast<std::uint64_t>(value.protocol) & 0x3U) << 18U;
  words[0] |= (static_cast<std::uint64_t>(value.log2_segment) & 0x1fU) << 20U;
  words[0] |= (static_cast<std::uint64_t>(value.swap) & 0x1U) << 25U;
  words[0] |= (static_cast<std::uint64_t>(value.signal) & 0x1U) << 26U;
  words[0] |= (static_cast<std::uint64_t>(value.count_indirect) & 0x1U) << 27U;
  words[0] |= (static_cast<std::uint64_t>(value.dependencies) & 0xffffffffU) << 32U;
  words[1] |= (static_cast<std::uint64_t>(value.count) & 0xffffffffffULL) << 0U;
  words[1] |= (static_cast<std::uint64_t>(value.segment_dependency0) & 0x3fU) << 40U;
  words[1] |= (static_cast<std::uint64_t>(value.segment_dependency1) & 0x3fU) << 46U;
  { const auto nested = encode(value.op0);
    words[2] = nested[0];
  }
  { const auto nested = encode(value.op1);
    words[3] = nested[0];
  }
  { const auto nested = encode(value.arrival);
    words[4] = nested[0];
  }
  { const auto nested = encode(value.local);
    words[5] = nested[0];
  }
  { const auto nested = encode(value.remote);
    words[6] = nested[0];
  }
  { const auto nested = encode(value.remote_address);
    words[7] = nested[0];
  }
  return words;
}

/// Decodes a Move without checking; see `well_formed_move`.
constexpr Move decode_move(const std::array<std::uint64_t, 8>& words) {
  Move value{};
  value.kind = static_cast<MoveKind>((words[0]) & 0xfU);
  value.func = static_cast<Func>((words[0] >> 4U) & 0xffU);
  value.dtype = static_cast<Datatype>((words[0] >> 12U) & 0x3fU);
  value.protocol = static_cast<Protocol>((words[0] >> 18U) & 0x3U);
  value.log2_segment = static_cast<std::uint8_t>((words[0] >> 20U) & 0x1fU);
  value.swap = ((words[0] >> 25U) & 0x1U) != 0;
  value.signal = ((words[0] >> 26U) & 0x1U) != 0;
  value.count_indirect = ((words[0] >> 27U) & 0x1U) != 0;
  value.dependencies = static_cast<std::uint32_t>((words[0] >> 32U) & 0xffffffffU);
  value.count = static_cast<std::uint64_t>((words[1]) & 0xffffffffffULL);
  value.segment_dependency0 = static_cast<std::uint8_t>((words[1] >> 40U) & 0x3fU);
  value.segment_dependency1 = static_cast<std::uint8_t>((words[1] >> 46U) & 0x3fU);
  value.op0 = decode_operand({words[2]});
  value.op1 = decode_operand({words[3]});
  value.arrival = decode_arrival({words[4]});
  value.local = decode_operand({words[5]});
  value.remote = decode_remote({words[6]});
  value.remote_address = decode_remote_address({words[7]});
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const Move& value) {
  return is_known(value.kind) &&
         is_known(value.func) &&
         is_known(value.dtype) &&
         is_known(value.protocol) &&
         value.log2_segment <= 0x1fU &&
         value.count <= 0xffffffffffULL &&
         value.segment_dependency0 <= 0x3fU &&
         value.segment_dependency1 <= 0x3fU &&
         fits(value.op0) &&
         fits(value.op1) &&
         fits(value.arrival) &&
         fits(value.local) &&
         fits(value.remote) &&
         fits(value.remote_address);
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_move(const std::array<std::uint64_t, 8>& words) {
  const Move value = decode_move(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kMoveWords = 8;

/// Logical header of every message (64 bytes).
struct Header {
  std::uint16_t magic{};  ///< 0x554e
  std::uint8_t version{};  ///< wire version
  MessageType type{};  ///< message type
  Datatype dtype{};  ///< wire datatype
  bool first{};  ///< first segment of its message
  bool last{};  ///< last segment of its message
  bool point_to_point{};  ///< matched in the point-to-point space
  bool stream{};  ///< goes to a stream port
  bool trailer{};  ///< a CRC-32C of the payload follows it
  bool aggregate{};  ///< may be reduced in the network
  std::uint16_t credits{};  ///< receive-buffer credits returned
  std::uint32_t communicator{};  ///< communicator number
  std::uint16_t epoch{};  ///< communicator epoch
  std::uint16_t port{};  ///< stream port
  std::uint32_t source{};  ///< rank that sends, in the communicator
  std::uint32_t destination{};  ///< rank that receives, in the communicator
  std::uint32_t sequence{};  ///< collective sequence, or per-pair sequence for point to point
  std::uint32_t tag{};  ///< step tag, or user tag for point to point
  std::uint32_t segment_bytes{};  ///< payload bytes of this segment
  std::uint32_t session_sequence{};  ///< counts messages of the session
  std::uint64_t message_bytes{};  ///< payload bytes of the whole message; in a grant, the end of what may be written
  std::uint16_t token_slot{};  ///< grant token: slot of the landing area
  std::uint64_t offset{};  ///< of this segment in the message
  std::uint16_t token_generation{};  ///< grant token: generation of the slot
  std::uint32_t signature{};  ///< CRC-32C of the call's agreed fields
  std::uint32_t checksum{};  ///< CRC-32C of the 60 bytes before it
  friend constexpr bool operator==(const Header&, const Header&) = default;
};

/// Encoded form of Header: 8 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 8> encode(const Header& value) {
  std::array<std::uint64_t, 8> words{};
  words[0] |= (static_cast<std::uint64_t>(value.magic) & 0xffffU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.version) & 0xfU) << 16U;
  words[0] |= (static_cast<std::uint64_t>(value.type) & 0xfU) << 20U;
  words[0] |= (static_cast<std::uint64_t>(value.dtype) & 0xffU) << 24U;
  words[0] |= (static_cast<std::uint64_t>(value.first) & 0x1U) << 32U;
  words[0] |= (static_cast<std::uint64_t>(value.last) & 0x1U) << 33U;
  words[0] |= (static_cast<std::uint64_t>(value.point_to_point) & 0x1U) << 34U;
  words[0] |= (static_cast<std::uint64_t>(value.stream) & 0x1U) << 35U;
  words[0] |= (static_cast<std::uint64_t>(value.trailer) & 0x1U) << 36U;
  words[0] |= (static_cast<std::uint64_t>(value.aggregate) & 0x1U) << 37U;
  words[0] |= (static_cast<std::uint64_t>(value.credits) & 0xffffU) << 48U;
  words[1] |= (static_cast<std::uint64_t>(value.communicator) & 0xffffffffU) << 0U;
  words[1] |= (static_cast<std::uint64_t>(value.epoch) & 0xffffU) << 32U;
  words[1] |= (static_cast<std::uint64_t>(value.port) & 0xffffU) << 48U;
  words[2] |= (static_cast<std::uint64_t>(value.source) & 0xffffffffU) << 0U;
  words[2] |= (static_cast<std::uint64_t>(value.destination) & 0xffffffffU) << 32U;
  words[3] |= (static_cast<std::uint64_t>(value.sequence) & 0xffffffffU) << 0U;
  words[3] |= (static_cast<std::uint64_t>(value.tag) & 0xffffffffU) << 32U;
  words[4] |= (static_cast<std::uint64_t>(value.segment_bytes) & 0xffffffffU) << 0U;
  words[4] |= (static_cast<std::uint64_t>(value.session_sequence) & 0xffffffffU) << 32U;
  words[5] |= (static_cast<std::uint64_t>(value.message_bytes) & 0xffffffffffffULL) << 0U;
  words[5] |= (static_cast<std::uint64_t>(value.token_slot) & 0xffffU) << 48U;
  words[6] |= (static_cast<std::uint64_t>(value.offset) & 0xffffffffffffULL) << 0U;
  words[6] |= (static_cast<std::uint64_t>(value.token_generation) & 0xffffU) << 48U;
  words[7] |= (static_cast<std::uint64_t>(value.signature) & 0xffffffffU) << 0U;
  words[7] |= (static_cast<std::uint64_t>(value.checksum) & 0xffffffffU) << 32U;
  return words;
}

/// Decodes a Header without checking; see `well_formed_header`.
constexpr Header decode_header(const std::array<std::uint64_t, 8>& words) {
  Header value{};
  value.magic = static_cast<std::uint16_t>((words[0]) & 0xffffU);
  value.version = static_cast<std::uint8_t>((words[0] >> 16U) & 0xfU);
  value.type = static_cast<MessageType>((words[0] >> 20U) & 0xfU);
  value.dtype = static_cast<Datatype>((words[0] >> 24U) & 0xffU);
  value.first = ((words[0] >> 32U) & 0x1U) != 0;
  value.last = ((words[0] >> 33U) & 0x1U) != 0;
  value.point_to_point = ((words[0] >> 34U) & 0x1U) != 0;
  value.stream = ((words[0] >> 35U) & 0x1U) != 0;
  value.trailer = ((words[0] >> 36U) & 0x1U) != 0;
  value.aggregate = ((words[0] >> 37U) & 0x1U) != 0;
  value.credits = static_cast<std::uint16_t>((words[0] >> 48U) & 0xffffU);
  value.communicator = static_cast<std::uint32_t>((words[1]) & 0xffffffffU);
  value.epoch = static_cast<std::uint16_t>((words[1] >> 32U) & 0xffffU);
  value.port = static_cast<std::uint16_t>((words[1] >> 48U) & 0xffffU);
  value.source = static_cast<std::uint32_t>((words[2]) & 0xffffffffU);
  value.destination = static_cast<std::uint32_t>((words[2] >> 32U) & 0xffffffffU);
  value.sequence = static_cast<std::uint32_t>((words[3]) & 0xffffffffU);
  value.tag = static_cast<std::uint32_t>((words[3] >> 32U) & 0xffffffffU);
  value.segment_bytes = static_cast<std::uint32_t>((words[4]) & 0xffffffffU);
  value.session_sequence = static_cast<std::uint32_t>((words[4] >> 32U) & 0xffffffffU);
  value.message_bytes = static_cast<std::uint64_t>((words[5]) & 0xffffffffffffULL);
  value.token_slot = static_cast<std::uint16_t>((words[5] >> 48U) & 0xffffU);
  value.offset = static_cast<std::uint64_t>((words[6]) & 0xffffffffffffULL);
  value.token_generation = static_cast<std::uint16_t>((words[6] >> 48U) & 0xffffU);
  value.signature = static_cast<std::uint32_t>((words[7]) & 0xffffffffU);
  value.checksum = static_cast<std::uint32_t>((words[7] >> 32U) & 0xffffffffU);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const Header& value) {
  return value.version <= 0xfU &&
         is_known(value.type) &&
         is_known(value.dtype) &&
         value.message_bytes <= 0xffffffffffffULL &&
         value.offset <= 0xffffffffffffULL;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_header(const std::array<std::uint64_t, 8>& words) {
  const Header value = decode_header(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kHeaderWords = 8;

/// Compressed header for connection-oriented transports (32 bytes). Source, destination, magic, version and session sequence are the connection's.
struct HeaderConnection {
  MessageType type{};  ///< message type
  bool first{};  ///< as in header
  bool last{};  ///< as in header
  bool point_to_point{};  ///< as in header
  bool stream{};  ///< as in header
  Datatype dtype{};  ///< wire datatype
  bool trailer{};  ///< as in header
  bool aggregate{};  ///< as in header
  std::uint16_t communicator{};  ///< communicator number, low 16 bits
  std::uint8_t epoch{};  ///< epoch, low 8 bits
  std::uint8_t port{};  ///< stream port
  std::uint16_t credits{};  ///< credits returned
  std::uint32_t sequence{};  ///< as in header
  std::uint32_t tag{};  ///< as in header
  std::uint64_t message_or_offset{};  ///< message bytes in a first segment and in a grant, offset in the others
  std::uint16_t signature_low{};  ///< low 16 bits of the signature in grant, write and done; else zero
  std::uint32_t segment_bytes{};  ///< as in header
  std::uint32_t token_or_signature{};  ///< signature in eager and request; token (generation << 16 | slot) in grant, write and done
  friend constexpr bool operator==(const HeaderConnection&, const HeaderConnection&) = default;
};

/// Encoded form of HeaderConnection: 4 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 4> encode(const HeaderConnection& value) {
  std::array<std::uint64_t, 4> words{};
  words[0] |= (static_cast<std::uint64_t>(value.type) & 0xfU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.first) & 0x1U) << 4U;
  words[0] |= (static_cast<std::uint64_t>(value.last) & 0x1U) << 5U;
  words[0] |= (static_cast<std::uint64_t>(value.point_to_point) & 0x1U) << 6U;
  words[0] |= (static_cast<std::uint64_t>(value.stream) & 0x1U) << 7U;
  words[0] |= (static_cast<std::uint64_t>(value.dtype) & 0x3fU) << 8U;
  words[0] |= (static_cast<std::uint64_t>(value.trailer) & 0x1U) << 14U;
  words[0] |= (static_cast<std::uint64_t>(value.aggregate) & 0x1U) << 15U;
  words[0] |= (static_cast<std::uint64_t>(value.communicator) & 0xffffU) << 16U;
  words[0] |= (static_cast<std::uint64_t>(value.epoch) & 0xffU) << 32U;
  words[0] |= (static_cast<std::uint64_t>(value.port) & 0xffU) << 40U;
  words[0] |= (static_cast<std::uint64_t>(value.credits) & 0xffffU) << 48U;
  words[1] |= (static_cast<std::uint64_t>(value.sequence) & 0xffffffffU) << 0U;
  words[1] |= (static_cast<std::uint64_t>(value.tag) & 0xffffffffU) << 32U;
  words[2] |= (static_cast<std::uint64_t>(value.message_or_offset) & 0xffffffffffffULL) << 0U;
  words[2] |= (static_cast<std::uint64_t>(value.signature_low) & 0xffffU) << 48U;
  words[3] |= (static_cast<std::uint64_t>(value.segment_bytes) & 0xffffffffU) << 0U;
  words[3] |= (static_cast<std::uint64_t>(value.token_or_signature) & 0xffffffffU) << 32U;
  return words;
}

/// Decodes a HeaderConnection without checking; see `well_formed_header_connection`.
constexpr HeaderConnection decode_header_connection(const std::array<std::uint64_t, 4>& words) {
  HeaderConnection value{};
  value.type = static_cast<MessageType>((words[0]) & 0xfU);
  value.first = ((words[0] >> 4U) & 0x1U) != 0;
  value.last = ((words[0] >> 5U) & 0x1U) != 0;
  value.point_to_point = ((words[0] >> 6U) & 0x1U) != 0;
  value.stream = ((words[0] >> 7U) & 0x1U) != 0;
  value.dtype = static_cast<Datatype>((words[0] >> 8U) & 0x3fU);
  value.trailer = ((words[0] >> 14U) & 0x1U) != 0;
  value.aggregate = ((words[0] >> 15U) & 0x1U) != 0;
  value.communicator = static_cast<std::uint16_t>((words[0] >> 16U) & 0xffffU);
  value.epoch = static_cast<std::uint8_t>((words[0] >> 32U) & 0xffU);
  value.port = static_cast<std::uint8_t>((words[0] >> 40U) & 0xffU);
  value.credits = static_cast<std::uint16_t>((words[0] >> 48U) & 0xffffU);
  value.sequence = static_cast<std::uint32_t>((words[1]) & 0xffffffffU);
  value.tag = static_cast<std::uint32_t>((words[1] >> 32U) & 0xffffffffU);
  value.message_or_offset = static_cast<std::uint64_t>((words[2]) & 0xffffffffffffULL);
  value.signature_low = static_cast<std::uint16_t>((words[2] >> 48U) & 0xffffU);
  value.segment_bytes = static_cast<std::uint32_t>((words[3]) & 0xffffffffU);
  value.token_or_signature = static_cast<std::uint32_t>((words[3] >> 32U) & 0xffffffffU);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const HeaderConnection& value) {
  return is_known(value.type) &&
         is_known(value.dtype) &&
         value.message_or_offset <= 0xffffffffffffULL;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_header_connection(const std::array<std::uint64_t, 4>& words) {
  const HeaderConnection value = decode_header_connection(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kHeaderConnectionWords = 4;

/// Header of a message that shares a cache line with its payload, behind 48 bytes of it. The lane gives sender, receiver, communicator and order.
struct HeaderLine {
  std::uint32_t bytes{};  ///< payload bytes; up to 48 stand in the line, more in the lane's cells
  std::uint32_t tag{};  ///< step tag, or user tag for point to point
  MessageType type{};  ///< eager: data; request: addresses of the regions of a call with direct access, or a message that is lent
  std::uint32_t flag{};  ///< number of the line in its lane, from 1; the word with it is written last and publishes the line
  std::uint32_t signature{};  ///< digest of the communicator's collective calls up to this one: signatures, chained
  friend constexpr bool operator==(const HeaderLine&, const HeaderLine&) = default;
};

/// Encoded form of HeaderLine: 2 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 2> encode(const HeaderLine& value) {
  std::array<std::uint64_t, 2> words{};
  words[0] |= (static_cast<std::uint64_t>(value.bytes) & 0xffffffffU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.tag) & 0xffffffU) << 32U;
  words[0] |= (static_cast<std::uint64_t>(value.type) & 0xfU) << 56U;
  words[1] |= (static_cast<std::uint64_t>(value.flag) & 0xffffffffU) << 0U;
  words[1] |= (static_cast<std::uint64_t>(value.signature) & 0xffffffffU) << 32U;
  return words;
}

/// Decodes a HeaderLine without checking; see `well_formed_header_line`.
constexpr HeaderLine decode_header_line(const std::array<std::uint64_t, 2>& words) {
  HeaderLine value{};
  value.bytes = static_cast<std::uint32_t>((words[0]) & 0xffffffffU);
  value.tag = static_cast<std::uint32_t>((words[0] >> 32U) & 0xffffffU);
  value.type = static_cast<MessageType>((words[0] >> 56U) & 0xfU);
  value.flag = static_cast<std::uint32_t>((words[1]) & 0xffffffffU);
  value.signature = static_cast<std::uint32_t>((words[1] >> 32U) & 0xffffffffU);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const HeaderLine& value) {
  return value.tag <= 0xffffffU &&
         is_known(value.type);
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_header_line(const std::array<std::uint64_t, 2>& words) {
  const HeaderLine value = decode_header_line(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kHeaderLineWords = 2;

/// Header of a point-to-point message on a lane, behind 48 bytes of payload. The lane gives sender, receiver, communicator and order.
struct MessageLine {
  std::uint32_t bytes{};  ///< payload bytes; up to 48 stand in the line, more in the lane's cells
  Datatype dtype{};  ///< element type
  MessageType type{};  ///< eager: a whole message; request: a long one is announced; write: a piece of it; done: it was written; grant, done, control: answers
  std::uint32_t tag{};  ///< user tag; those beyond max_user_tag are the library's own
  std::uint32_t flag{};  ///< number of the line in its lane, from 1; the word with it is written last and publishes the line
  std::uint32_t id{};  ///< of a long message, in all lines that concern it
  friend constexpr bool operator==(const MessageLine&, const MessageLine&) = default;
};

/// Encoded form of MessageLine: 2 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 2> encode(const MessageLine& value) {
  std::array<std::uint64_t, 2> words{};
  words[0] |= (static_cast<std::uint64_t>(value.bytes) & 0xfffffU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.dtype) & 0x3fU) << 20U;
  words[0] |= (static_cast<std::uint64_t>(value.type) & 0xfU) << 26U;
  words[0] |= (static_cast<std::uint64_t>(value.tag) & 0xffffffffU) << 30U;
  words[1] |= (static_cast<std::uint64_t>(value.flag) & 0xffffffffU) << 0U;
  words[1] |= (static_cast<std::uint64_t>(value.id) & 0xffffffffU) << 32U;
  return words;
}

/// Decodes a MessageLine without checking; see `well_formed_message_line`.
constexpr MessageLine decode_message_line(const std::array<std::uint64_t, 2>& words) {
  MessageLine value{};
  value.bytes = static_cast<std::uint32_t>((words[0]) & 0xfffffU);
  value.dtype = static_cast<Datatype>((words[0] >> 20U) & 0x3fU);
  value.type = static_cast<MessageType>((words[0] >> 26U) & 0xfU);
  value.tag = static_cast<std::uint32_t>((words[0] >> 30U) & 0xffffffffU);
  value.flag = static_cast<std::uint32_t>((words[1]) & 0xffffffffU);
  value.id = static_cast<std::uint32_t>((words[1] >> 32U) & 0xffffffffU);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const MessageLine& value) {
  return value.bytes <= 0xfffffU &&
         is_known(value.dtype) &&
         is_known(value.type);
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_message_line(const std::array<std::uint64_t, 2>& words) {
  const MessageLine value = decode_message_line(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kMessageLineWords = 2;

/// Frame between a member and a switch that aggregates (64 bytes, docs/switch-protocol.md). A payload follows, and a CRC-32C of the payload.
struct SlotFrame {
  std::uint16_t magic{};  ///< slot_magic
  std::uint8_t version{};  ///< slot_protocol
  SlotKind kind{};  ///< what it is
  Collective opcode{};  ///< the collective; like the fields down to count, zero where kind concerns no turn
  Func func{};  ///< operator; none where nothing is combined
  Datatype dtype{};  ///< element type
  std::uint64_t generation{};  ///< of the pool that the frame goes to or comes from; 0: the member knows none yet
  std::uint32_t communicator{};  ///< communicator number
  std::uint16_t epoch{};  ///< communicator epoch
  std::uint16_t slot{};  ///< turn modulo slots
  bool second{};  ///< which version of the slot: turn divided by slots, modulo 2
  std::uint64_t turn{};  ///< number of the chunk, over all calls of the communicator
  std::uint64_t total{};  ///< elements of the whole call; in resume and begin, the member's incarnation
  std::uint32_t call{};  ///< collective sequence of the call
  std::uint32_t root{};  ///< rank that gives or gets the data, where it is one
  std::uint32_t count{};  ///< elements of the chunk
  std::uint16_t bytes{};  ///< bytes of payload
  std::uint16_t factor{};  ///< digest of what the result is multiplied by afterwards, by the members; 0: by nothing
  std::uint32_t member{};  ///< up: position of the child at its switch; down: the same, or all bits set for all children
  std::uint32_t checksum{};  ///< CRC-32C of the 60 bytes before it
  friend constexpr bool operator==(const SlotFrame&, const SlotFrame&) = default;
};

/// Encoded form of SlotFrame: 8 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 8> encode(const SlotFrame& value) {
  std::array<std::uint64_t, 8> words{};
  words[0] |= (static_cast<std::uint64_t>(value.magic) & 0xffffU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.version) & 0xffU) << 16U;
  words[0] |= (static_cast<std::uint64_t>(value.kind) & 0xffU) << 24U;
  words[0] |= (static_cast<std::uint64_t>(value.opcode) & 0xffU) << 32U;
  words[0] |= (static_cast<std::uint64_t>(value.func) & 0xffU) << 40U;
  words[0] |= (static_cast<std::uint64_t>(value.dtype) & 0xffU) << 48U;
  words[1] |= static_cast<std::uint64_t>(value.generation) << 0U;
  words[2] |= (static_cast<std::uint64_t>(value.communicator) & 0xffffffffU) << 0U;
  words[2] |= (static_cast<std::uint64_t>(value.epoch) & 0xffffU) << 32U;
  words[2] |= (static_cast<std::uint64_t>(value.slot) & 0x7fffU) << 48U;
  words[2] |= (static_cast<std::uint64_t>(value.second) & 0x1U) << 63U;
  words[3] |= static_cast<std::uint64_t>(value.turn) << 0U;
  words[4] |= static_cast<std::uint64_t>(value.total) << 0U;
  words[5] |= (static_cast<std::uint64_t>(value.call) & 0xffffffffU) << 0U;
  words[5] |= (static_cast<std::uint64_t>(value.root) & 0xffffffffU) << 32U;
  words[6] |= (static_cast<std::uint64_t>(value.count) & 0xffffffffU) << 0U;
  words[6] |= (static_cast<std::uint64_t>(value.bytes) & 0xffffU) << 32U;
  words[6] |= (static_cast<std::uint64_t>(value.factor) & 0xffffU) << 48U;
  words[7] |= (static_cast<std::uint64_t>(value.member) & 0xffffffffU) << 0U;
  words[7] |= (static_cast<std::uint64_t>(value.checksum) & 0xffffffffU) << 32U;
  return words;
}

/// Decodes a SlotFrame without checking; see `well_formed_slot_frame`.
constexpr SlotFrame decode_slot_frame(const std::array<std::uint64_t, 8>& words) {
  SlotFrame value{};
  value.magic = static_cast<std::uint16_t>((words[0]) & 0xffffU);
  value.version = static_cast<std::uint8_t>((words[0] >> 16U) & 0xffU);
  value.kind = static_cast<SlotKind>((words[0] >> 24U) & 0xffU);
  value.opcode = static_cast<Collective>((words[0] >> 32U) & 0xffU);
  value.func = static_cast<Func>((words[0] >> 40U) & 0xffU);
  value.dtype = static_cast<Datatype>((words[0] >> 48U) & 0xffU);
  value.generation = static_cast<std::uint64_t>(words[1]);
  value.communicator = static_cast<std::uint32_t>((words[2]) & 0xffffffffU);
  value.epoch = static_cast<std::uint16_t>((words[2] >> 32U) & 0xffffU);
  value.slot = static_cast<std::uint16_t>((words[2] >> 48U) & 0x7fffU);
  value.second = ((words[2] >> 63U) & 0x1U) != 0;
  value.turn = static_cast<std::uint64_t>(words[3]);
  value.total = static_cast<std::uint64_t>(words[4]);
  value.call = static_cast<std::uint32_t>((words[5]) & 0xffffffffU);
  value.root = static_cast<std::uint32_t>((words[5] >> 32U) & 0xffffffffU);
  value.count = static_cast<std::uint32_t>((words[6]) & 0xffffffffU);
  value.bytes = static_cast<std::uint16_t>((words[6] >> 32U) & 0xffffU);
  value.factor = static_cast<std::uint16_t>((words[6] >> 48U) & 0xffffU);
  value.member = static_cast<std::uint32_t>((words[7]) & 0xffffffffU);
  value.checksum = static_cast<std::uint32_t>((words[7] >> 32U) & 0xffffffffU);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const SlotFrame& value) {
  return is_known(value.kind) &&
         is_known(value.opcode) &&
         is_known(value.func) &&
         is_known(value.dtype) &&
         value.slot <= 0x7fffU;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_slot_frame(const std::array<std::uint64_t, 8>& words) {
  const SlotFrame value = decode_slot_frame(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kSlotFrameWords = 8;

/// Payload of a slot frame refuse: two ranks, and what they do not agree on. The same rank twice: what the switch does not do for it.
struct SlotRefusal {
  SlotField field{};  ///< which field
  std::uint32_t call{};  ///< sequence of the call
  std::uint32_t first{};  ///< a rank
  std::uint32_t second{};  ///< another rank
  std::uint64_t first_value{};  ///< what the first says
  std::uint64_t second_value{};  ///< what the second says
  friend constexpr bool operator==(const SlotRefusal&, const SlotRefusal&) = default;
};

/// Encoded form of SlotRefusal: 4 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 4> encode(const SlotRefusal& value) {
  std::array<std::uint64_t, 4> words{};
  words[0] |= (static_cast<std::uint64_t>(value.field) & 0xffU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.call) & 0xffffffffU) << 32U;
  words[1] |= (static_cast<std::uint64_t>(value.first) & 0xffffffffU) << 0U;
  words[1] |= (static_cast<std::uint64_t>(value.second) & 0xffffffffU) << 32U;
  words[2] |= static_cast<std::uint64_t>(value.first_value) << 0U;
  words[3] |= static_cast<std::uint64_t>(value.second_value) << 0U;
  return words;
}

/// Decodes a SlotRefusal without checking; see `well_formed_slot_refusal`.
constexpr SlotRefusal decode_slot_refusal(const std::array<std::uint64_t, 4>& words) {
  SlotRefusal value{};
  value.field = static_cast<SlotField>((words[0]) & 0xffU);
  value.call = static_cast<std::uint32_t>((words[0] >> 32U) & 0xffffffffU);
  value.first = static_cast<std::uint32_t>((words[1]) & 0xffffffffU);
  value.second = static_cast<std::uint32_t>((words[1] >> 32U) & 0xffffffffU);
  value.first_value = static_cast<std::uint64_t>(words[2]);
  value.second_value = static_cast<std::uint64_t>(words[3]);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const SlotRefusal& value) {
  return is_known(value.field);
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_slot_refusal(const std::array<std::uint64_t, 4>& words) {
  const SlotRefusal value = decode_slot_refusal(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kSlotRefusalWords = 4;

/// Call descriptor, one request to an engine (128 bytes). Addresses are byte addresses in the engine's memory.
struct CallDescriptor {
  Collective collective{};  ///< what is asked for
  std::uint8_t algorithm{};  ///< index in the algorithm table plus one; 0 = automatic
  Func func{};  ///< reduction operator
  Datatype dtype{};  ///< element type
  Datatype wire_dtype{};  ///< element type on the wire; none = dtype
  bool in_place{};  ///< input stands in dst
  bool src_host{};  ///< src is in host memory
  bool dst_host{};  ///< dst is in host memory
  bool src_stream{};  ///< src is a stream; src_address holds the port
  bool dst_stream{};  ///< dst is a stream; dst_address holds the port
  std::uint8_t radix{};  ///< radix of an algorithm that takes one; 0 = its default, and all that engines without `radices` take
  std::uint32_t communicator{};  ///< communicator number
  std::uint32_t root{};  ///< root, or peer for point to point
  std::uint32_t tag{};  ///< user tag
  std::uint32_t deadline_us{};  ///< microseconds until the call fails; 0 = the communicator's timeout
  std::uint64_t count{};  ///< elements (per block for gather, scatter, allgather, alltoall, reduce_scatter)
  std::uint64_t src_address{};  ///< source
  std::uint64_t src_bytes{};  ///< bytes bound to src
  std::uint64_t dst_address{};  ///< destination
  std::uint64_t dst_bytes{};  ///< bytes bound to dst
  std::uint64_t scratch_address{};  ///< scratch
  std::uint64_t scratch_bytes{};  ///< bytes bound to scratch
  std::uint64_t params_address{};  ///< params
  std::uint64_t params_bytes{};  ///< bytes bound to params
  std::uint32_t call_id{};  ///< number the requester gives the call
  std::uint32_t wait_for0{};  ///< call id that must complete first; 0 = none
  std::uint32_t wait_for1{};  ///< a second one
  std::uint32_t program{};  ///< slot of a loaded program, for collective program
  std::uint64_t window_offset{};  ///< put, get: byte offset in the peer's window, less than 2^47
  friend constexpr bool operator==(const CallDescriptor&, const CallDescriptor&) = default;
};

/// Encoded form of CallDescriptor: 16 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 16> encode(const CallDescriptor& value) {
  std::array<std::uint64_t, 16> words{};
  words[0] |= (static_cast<std::uint64_t>(value.collective) & 0xffU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.algorithm) & 0xffU) << 8U;
  words[0] |= (static_cast<std::uint64_t>(value.func) & 0xffU) << 16U;
  words[0] |= (static_cast<std::uint64_t>(value.dtype) & 0xffU) << 24U;
  words[0] |= (static_cast<std::uint64_t>(value.wire_dtype) & 0xffU) << 32U;
  words[0] |= (static_cast<std::uint64_t>(value.in_place) & 0x1U) << 40U;
  words[0] |= (static_cast<std::uint64_t>(value.src_host) & 0x1U) << 41U;
  words[0] |= (static_cast<std::uint64_t>(value.dst_host) & 0x1U) << 42U;
  words[0] |= (static_cast<std::uint64_t>(value.src_stream) & 0x1U) << 43U;
  words[0] |= (static_cast<std::uint64_t>(value.dst_stream) & 0x1U) << 44U;
  words[0] |= (static_cast<std::uint64_t>(value.radix) & 0xffU) << 48U;
  words[1] |= (static_cast<std::uint64_t>(value.communicator) & 0xffffffffU) << 0U;
  words[1] |= (static_cast<std::uint64_t>(value.root) & 0xffffffffU) << 32U;
  words[2] |= (static_cast<std::uint64_t>(value.tag) & 0xffffffffU) << 0U;
  words[2] |= (static_cast<std::uint64_t>(value.deadline_us) & 0xffffffffU) << 32U;
  words[3] |= static_cast<std::uint64_t>(value.count) << 0U;
  words[4] |= static_cast<std::uint64_t>(value.src_address) << 0U;
  words[5] |= static_cast<std::uint64_t>(value.src_bytes) << 0U;
  words[6] |= static_cast<std::uint64_t>(value.dst_address) << 0U;
  words[7] |= static_cast<std::uint64_t>(value.dst_bytes) << 0U;
  words[8] |= static_cast<std::uint64_t>(value.scratch_address) << 0U;
  words[9] |= static_cast<std::uint64_t>(value.scratch_bytes) << 0U;
  words[10] |= static_cast<std::uint64_t>(value.params_address) << 0U;
  words[11] |= static_cast<std::uint64_t>(value.params_bytes) << 0U;
  words[12] |= (static_cast<std::uint64_t>(value.call_id) & 0xffffffffU) << 0U;
  words[12] |= (static_cast<std::uint64_t>(value.wait_for0) & 0xffffffffU) << 32U;
  words[13] |= (static_cast<std::uint64_t>(value.wait_for1) & 0xffffffffU) << 0U;
  words[13] |= (static_cast<std::uint64_t>(value.program) & 0xffffffffU) << 32U;
  words[14] |= static_cast<std::uint64_t>(value.window_offset) << 0U;
  return words;
}

/// Decodes a CallDescriptor without checking; see `well_formed_call_descriptor`.
constexpr CallDescriptor decode_call_descriptor(const std::array<std::uint64_t, 16>& words) {
  CallDescriptor value{};
  value.collective = static_cast<Collective>((words[0]) & 0xffU);
  value.algorithm = static_cast<std::uint8_t>((words[0] >> 8U) & 0xffU);
  value.func = static_cast<Func>((words[0] >> 16U) & 0xffU);
  value.dtype = static_cast<Datatype>((words[0] >> 24U) & 0xffU);
  value.wire_dtype = static_cast<Datatype>((words[0] >> 32U) & 0xffU);
  value.in_place = ((words[0] >> 40U) & 0x1U) != 0;
  value.src_host = ((words[0] >> 41U) & 0x1U) != 0;
  value.dst_host = ((words[0] >> 42U) & 0x1U) != 0;
  value.src_stream = ((words[0] >> 43U) & 0x1U) != 0;
  value.dst_stream = ((words[0] >> 44U) & 0x1U) != 0;
  value.radix = static_cast<std::uint8_t>((words[0] >> 48U) & 0xffU);
  value.communicator = static_cast<std::uint32_t>((words[1]) & 0xffffffffU);
  value.root = static_cast<std::uint32_t>((words[1] >> 32U) & 0xffffffffU);
  value.tag = static_cast<std::uint32_t>((words[2]) & 0xffffffffU);
  value.deadline_us = static_cast<std::uint32_t>((words[2] >> 32U) & 0xffffffffU);
  value.count = static_cast<std::uint64_t>(words[3]);
  value.src_address = static_cast<std::uint64_t>(words[4]);
  value.src_bytes = static_cast<std::uint64_t>(words[5]);
  value.dst_address = static_cast<std::uint64_t>(words[6]);
  value.dst_bytes = static_cast<std::uint64_t>(words[7]);
  value.scratch_address = static_cast<std::uint64_t>(words[8]);
  value.scratch_bytes = static_cast<std::uint64_t>(words[9]);
  value.params_address = static_cast<std::uint64_t>(words[10]);
  value.params_bytes = static_cast<std::uint64_t>(words[11]);
  value.call_id = static_cast<std::uint32_t>((words[12]) & 0xffffffffU);
  value.wait_for0 = static_cast<std::uint32_t>((words[12] >> 32U) & 0xffffffffU);
  value.wait_for1 = static_cast<std::uint32_t>((words[13]) & 0xffffffffU);
  value.program = static_cast<std::uint32_t>((words[13] >> 32U) & 0xffffffffU);
  value.window_offset = static_cast<std::uint64_t>(words[14]);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const CallDescriptor& value) {
  return is_known(value.collective) &&
         is_known(value.func) &&
         is_known(value.dtype) &&
         is_known(value.wire_dtype);
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_call_descriptor(const std::array<std::uint64_t, 16>& words) {
  const CallDescriptor value = decode_call_descriptor(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kCallDescriptorWords = 16;

/// Capability word of an engine. A communicator uses the intersection over its members.
struct Capability {
  std::uint8_t version{};  ///< of this word
  std::uint32_t datatypes{};  ///< bit n: datatype n can be reduced
  std::uint16_t funcs{};  ///< bit n: func n; bit 15: operators of the user
  bool lists{};  ///< peer lists
  bool fan_in{};  ///< arrivals from a list of peers
  bool streams{};  ///< stream operands and results
  bool remote_memory{};  ///< put and get
  bool strides{};  ///< two-dimensional moves
  bool casts{};  ///< wire casts
  bool rendezvous{};  ///< rendezvous protocol
  bool programs{};  ///< loaded programs
  std::uint8_t log2_max_segment{};  ///< largest segment in bytes, log2
  bool lanes{};  ///< lanes: messages in single cache lines of memory that all members share
  bool radices{};  ///< algorithms that take a radix, with any; else with their default
  bool openings{};  ///< long messages point to point begin on credit, before they are granted
  friend constexpr bool operator==(const Capability&, const Capability&) = default;
};

/// Encoded form of Capability: 1 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 1> encode(const Capability& value) {
  std::array<std::uint64_t, 1> words{};
  words[0] |= (static_cast<std::uint64_t>(value.version) & 0xffU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.datatypes) & 0xffffffU) << 8U;
  words[0] |= (static_cast<std::uint64_t>(value.funcs) & 0xffffU) << 32U;
  words[0] |= (static_cast<std::uint64_t>(value.lists) & 0x1U) << 48U;
  words[0] |= (static_cast<std::uint64_t>(value.fan_in) & 0x1U) << 49U;
  words[0] |= (static_cast<std::uint64_t>(value.streams) & 0x1U) << 50U;
  words[0] |= (static_cast<std::uint64_t>(value.remote_memory) & 0x1U) << 51U;
  words[0] |= (static_cast<std::uint64_t>(value.strides) & 0x1U) << 52U;
  words[0] |= (static_cast<std::uint64_t>(value.casts) & 0x1U) << 53U;
  words[0] |= (static_cast<std::uint64_t>(value.rendezvous) & 0x1U) << 54U;
  words[0] |= (static_cast<std::uint64_t>(value.programs) & 0x1U) << 55U;
  words[0] |= (static_cast<std::uint64_t>(value.log2_max_segment) & 0x1fU) << 56U;
  words[0] |= (static_cast<std::uint64_t>(value.lanes) & 0x1U) << 61U;
  words[0] |= (static_cast<std::uint64_t>(value.radices) & 0x1U) << 62U;
  words[0] |= (static_cast<std::uint64_t>(value.openings) & 0x1U) << 63U;
  return words;
}

/// Decodes a Capability without checking; see `well_formed_capability`.
constexpr Capability decode_capability(const std::array<std::uint64_t, 1>& words) {
  Capability value{};
  value.version = static_cast<std::uint8_t>((words[0]) & 0xffU);
  value.datatypes = static_cast<std::uint32_t>((words[0] >> 8U) & 0xffffffU);
  value.funcs = static_cast<std::uint16_t>((words[0] >> 32U) & 0xffffU);
  value.lists = ((words[0] >> 48U) & 0x1U) != 0;
  value.fan_in = ((words[0] >> 49U) & 0x1U) != 0;
  value.streams = ((words[0] >> 50U) & 0x1U) != 0;
  value.remote_memory = ((words[0] >> 51U) & 0x1U) != 0;
  value.strides = ((words[0] >> 52U) & 0x1U) != 0;
  value.casts = ((words[0] >> 53U) & 0x1U) != 0;
  value.rendezvous = ((words[0] >> 54U) & 0x1U) != 0;
  value.programs = ((words[0] >> 55U) & 0x1U) != 0;
  value.log2_max_segment = static_cast<std::uint8_t>((words[0] >> 56U) & 0x1fU);
  value.lanes = ((words[0] >> 61U) & 0x1U) != 0;
  value.radices = ((words[0] >> 62U) & 0x1U) != 0;
  value.openings = ((words[0] >> 63U) & 0x1U) != 0;
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const Capability& value) {
  return value.datatypes <= 0xffffffU &&
         value.log2_max_segment <= 0x1fU;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_capability(const std::array<std::uint64_t, 1>& words) {
  const Capability value = decode_capability(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kCapabilityWords = 1;

/// What became of one move, told when it retires. Times are cycles of the engine's clock since power-up, modulo 2^48.
struct MoveRecord {
  std::uint32_t call_id{};  ///< number that the requester gave the call
  std::uint32_t index{};  ///< position of the move in its program
  std::uint64_t entered{};  ///< it entered its window
  std::uint8_t slot{};  ///< of the call among the active ones
  Func func{};  ///< its function
  std::uint64_t issued{};  ///< its dependencies were complete, and the dispatcher took it
  std::uint16_t destination{};  ///< rank that it sends to; index of a list if it sends to several
  std::uint64_t began{};  ///< its first segment was given to a lane; 0 if it needed none
  std::uint16_t source{};  ///< rank that it receives from; index of a list if there are several
  std::uint64_t completed{};  ///< its last segment had ended: its result is visible, its sources may change
  std::uint16_t segments{};  ///< jobs given to lanes for it; 65535 also stands for more
  std::uint64_t retired{};  ///< it and all moves before it were complete
  Datatype dtype{};  ///< its element type
  bool receives{};  ///< an operand arrives from a peer
  bool sends{};  ///< the result is sent to a peer
  bool reads0{};  ///< the first operand is in memory
  bool reads1{};  ///< the second operand is in memory
  bool writes{};  ///< it has a local result
  std::uint64_t bytes{};  ///< of its result
  bool waited_credit{};  ///< it had to wait for credit
  bool waited_grant{};  ///< for a grant
  bool waited_space{};  ///< for room in the transport, or the message before it
  bool waited_arrival{};  ///< for a segment from a peer
  bool waited_producer{};  ///< for the move that it follows
  std::uint32_t communicator{};  ///< number of its communicator
  std::uint32_t sequence{};  ///< of the communicator's collectives, or of the pair
  friend constexpr bool operator==(const MoveRecord&, const MoveRecord&) = default;
};

/// Encoded form of MoveRecord: 8 little-endian 64-bit words. Values must satisfy `fits`.
constexpr std::array<std::uint64_t, 8> encode(const MoveRecord& value) {
  std::array<std::uint64_t, 8> words{};
  words[0] |= (static_cast<std::uint64_t>(value.call_id) & 0xffffffffU) << 0U;
  words[0] |= (static_cast<std::uint64_t>(value.index) & 0xffffffffU) << 32U;
  words[1] |= (static_cast<std::uint64_t>(value.entered) & 0xffffffffffffULL) << 0U;
  words[1] |= (static_cast<std::uint64_t>(value.slot) & 0xffU) << 48U;
  words[1] |= (static_cast<std::uint64_t>(value.func) & 0xffU) << 56U;
  words[2] |= (static_cast<std::uint64_t>(value.issued) & 0xffffffffffffULL) << 0U;
  words[2] |= (static_cast<std::uint64_t>(value.destination) & 0xffffU) << 48U;
  words[3] |= (static_cast<std::uint64_t>(value.began) & 0xffffffffffffULL) << 0U;
  words[3] |= (static_cast<std::uint64_t>(value.source) & 0xffffU) << 48U;
  words[4] |= (static_cast<std::uint64_t>(value.completed) & 0xffffffffffffULL) << 0U;
  words[4] |= (static_cast<std::uint64_t>(value.segments) & 0xffffU) << 48U;
  words[5] |= (static_cast<std::uint64_t>(value.retired) & 0xffffffffffffULL) << 0U;
  words[5] |= (static_cast<std::uint64_t>(value.dtype) & 0xffU) << 48U;
  words[5] |= (static_cast<std::uint64_t>(value.receives) & 0x1U) << 56U;
  words[5] |= (static_cast<std::uint64_t>(value.sends) & 0x1U) << 57U;
  words[5] |= (static_cast<std::uint64_t>(value.reads0) & 0x1U) << 58U;
  words[5] |= (static_cast<std::uint64_t>(value.reads1) & 0x1U) << 59U;
  words[5] |= (static_cast<std::uint64_t>(value.writes) & 0x1U) << 60U;
  words[6] |= (static_cast<std::uint64_t>(value.bytes) & 0xffffffffffffULL) << 0U;
  words[6] |= (static_cast<std::uint64_t>(value.waited_credit) & 0x1U) << 48U;
  words[6] |= (static_cast<std::uint64_t>(value.waited_grant) & 0x1U) << 49U;
  words[6] |= (static_cast<std::uint64_t>(value.waited_space) & 0x1U) << 50U;
  words[6] |= (static_cast<std::uint64_t>(value.waited_arrival) & 0x1U) << 51U;
  words[6] |= (static_cast<std::uint64_t>(value.waited_producer) & 0x1U) << 52U;
  words[7] |= (static_cast<std::uint64_t>(value.communicator) & 0xffffffffU) << 0U;
  words[7] |= (static_cast<std::uint64_t>(value.sequence) & 0xffffffffU) << 32U;
  return words;
}

/// Decodes a MoveRecord without checking; see `well_formed_move_record`.
constexpr MoveRecord decode_move_record(const std::array<std::uint64_t, 8>& words) {
  MoveRecord value{};
  value.call_id = static_cast<std::uint32_t>((words[0]) & 0xffffffffU);
  value.index = static_cast<std::uint32_t>((words[0] >> 32U) & 0xffffffffU);
  value.entered = static_cast<std::uint64_t>((words[1]) & 0xffffffffffffULL);
  value.slot = static_cast<std::uint8_t>((words[1] >> 48U) & 0xffU);
  value.func = static_cast<Func>((words[1] >> 56U) & 0xffU);
  value.issued = static_cast<std::uint64_t>((words[2]) & 0xffffffffffffULL);
  value.destination = static_cast<std::uint16_t>((words[2] >> 48U) & 0xffffU);
  value.began = static_cast<std::uint64_t>((words[3]) & 0xffffffffffffULL);
  value.source = static_cast<std::uint16_t>((words[3] >> 48U) & 0xffffU);
  value.completed = static_cast<std::uint64_t>((words[4]) & 0xffffffffffffULL);
  value.segments = static_cast<std::uint16_t>((words[4] >> 48U) & 0xffffU);
  value.retired = static_cast<std::uint64_t>((words[5]) & 0xffffffffffffULL);
  value.dtype = static_cast<Datatype>((words[5] >> 48U) & 0xffU);
  value.receives = ((words[5] >> 56U) & 0x1U) != 0;
  value.sends = ((words[5] >> 57U) & 0x1U) != 0;
  value.reads0 = ((words[5] >> 58U) & 0x1U) != 0;
  value.reads1 = ((words[5] >> 59U) & 0x1U) != 0;
  value.writes = ((words[5] >> 60U) & 0x1U) != 0;
  value.bytes = static_cast<std::uint64_t>((words[6]) & 0xffffffffffffULL);
  value.waited_credit = ((words[6] >> 48U) & 0x1U) != 0;
  value.waited_grant = ((words[6] >> 49U) & 0x1U) != 0;
  value.waited_space = ((words[6] >> 50U) & 0x1U) != 0;
  value.waited_arrival = ((words[6] >> 51U) & 0x1U) != 0;
  value.waited_producer = ((words[6] >> 52U) & 0x1U) != 0;
  value.communicator = static_cast<std::uint32_t>((words[7]) & 0xffffffffU);
  value.sequence = static_cast<std::uint32_t>((words[7] >> 32U) & 0xffffffffU);
  return value;
}

/// Whether every field holds a value its width and type allow.
constexpr bool fits(const MoveRecord& value) {
  return value.entered <= 0xffffffffffffULL &&
         is_known(value.func) &&
         value.issued <= 0xffffffffffffULL &&
         value.began <= 0xffffffffffffULL &&
         value.completed <= 0xffffffffffffULL &&
         value.retired <= 0xffffffffffffULL &&
         is_known(value.dtype) &&
         value.bytes <= 0xffffffffffffULL;
}

/// Whether encoded words are a legal value: reserved bits zero, enumerators known.
constexpr bool well_formed_move_record(const std::array<std::uint64_t, 8>& words) {
  const MoveRecord value = decode_move_record(words);
  return fits(value) && encode(value) == words;
}

inline constexpr std::size_t kMoveRecordWords = 8;

/// Byte offsets in exchange memory.
namespace exchange {
inline constexpr std::uint32_t kBytes = 16384;
inline constexpr std::uint32_t kIdentity = 0x0000;  ///< 0x554e4953 ('UNIS')
inline constexpr std::uint32_t kVersion = 0x0004;  ///< abi_version << 16 | wire_version
inline constexpr std::uint32_t kCapability = 0x0008;  ///< capability word
inline constexpr std::uint32_t kControl = 0x0010;  ///< bit 0 soft reset (falls by itself), bit 1 run
inline constexpr std::uint32_t kStatus = 0x0014;  ///< bit 0 ready, 1 a call failed (1 clears), 2 call_slot taken, 3 completion waits, 4 failure waits for the cpu
inline constexpr std::uint32_t kError = 0x0018;  ///< error code of the last failed call
inline constexpr std::uint32_t kErrorCall = 0x001c;  ///< call_id of that call
inline constexpr std::uint32_t kDoorbell = 0x0020;  ///< a write submits the call descriptor at call_slot
inline constexpr std::uint32_t kCompleted = 0x0024;  ///< call_id of the oldest completion that was not yet read, 0 if there is none; a read pops it
inline constexpr std::uint32_t kCompletedCode = 0x0028;  ///< of the completion that completed gave last: error code in bits 0 to 15, bit 31 set; 0 if it gave none
inline constexpr std::uint32_t kCalls = 0x002c;  ///< bits 0 to 7: calls admitted and not completed; bits 8 to 15: one for each active slot
inline constexpr std::uint32_t kEagerLimit = 0x0040;  ///< largest eager message in bytes
inline constexpr std::uint32_t kSegmentBytes = 0x0044;  ///< largest segment in bytes
inline constexpr std::uint32_t kRxBufferCount = 0x0048;  ///< receive buffers per peer
inline constexpr std::uint32_t kRxBufferBytes = 0x004c;  ///< bytes of one receive buffer
inline constexpr std::uint32_t kTimeoutUs = 0x0050;  ///< default deadline of a call, microseconds; 0 = the longest there is
inline constexpr std::uint32_t kFirmwareAddress = 0x0060;  ///< byte address in the microcontroller's memory; grows by 4 with each access to firmware_data
inline constexpr std::uint32_t kFirmwareData = 0x0064;  ///< the word there; only whole words, and only while control says not to run
inline constexpr std::uint32_t kWindowAddress = 0x0068;  ///< begin of a window, memory that peers put to and get from; a communicator's last word takes it
inline constexpr std::uint32_t kWindowBytes = 0x0070;  ///< bytes of it; 0 = none
inline constexpr std::uint32_t kCallSlot = 0x0100;  ///< call descriptor written by the host
inline constexpr std::uint32_t kCounters = 0x0200;  ///< performance counters, 64 bits each, in the order of `counter`
inline constexpr std::uint32_t kTransport = 0x0400;  ///< registers of the transport: a word for each session, then counters and limits
inline constexpr std::uint32_t kPrograms = 0x0800;  ///< loads programs: slot, list, move, signature, address (2) and number of moves in memory; docs/rtl/replay.md
inline constexpr std::uint32_t kRxBuffers = 0x1000;  ///< state of the receive buffers
inline constexpr std::uint32_t kCommunicators = 0x2000;  ///< 16 words each: 8 for the microcontroller, 8 for the data path; the last: take (1) or give up (0) a window
inline constexpr std::uint32_t kMembers = 0x3000;  ///< a word for each rank of each communicator: the transport's session that leads there
}  // namespace exchange

}  // namespace unisono
