// What holds of each collective and of each operator, for those who admit calls. Freestanding.
#pragma once

#include <array>
#include <cstdint>

#include "core/generated/spec.hpp"

namespace unisono {

/// What holds of a collective (docs/model.md).
struct CollectiveFacts {
  bool known = false;
  bool reduces = false;         ///< takes an operator
  bool mean = false;            ///< takes avg as well
  bool rooted = false;          ///< root or peer is a rank
  bool in_place = false;        ///< has an in-place form
  bool data = false;            ///< moves elements
  bool vectors = false;         ///< has a count for each rank
  bool local = false;           ///< no message of its own
  bool point_to_point = false;  ///< matched by user tag
};

constexpr CollectiveFacts facts_of(Collective collective) {
  switch (collective) {
    case Collective::kNop:
      return {.known = true, .local = true};
    case Collective::kCopy:
      return {.known = true, .data = true, .local = true};
    case Collective::kCombine:
      return {.known = true, .reduces = true, .data = true, .local = true};
    case Collective::kSend:
    case Collective::kRecv:
      return {.known = true, .rooted = true, .data = true, .point_to_point = true};
    case Collective::kPut:
    case Collective::kGet:
      return {.known = true, .rooted = true, .data = true, .local = true};
    case Collective::kBcast:
      return {.known = true, .rooted = true, .data = true};
    case Collective::kReduce:
      return {.known = true, .reduces = true, .mean = true, .rooted = true, .in_place = true, .data = true};
    case Collective::kAllreduce:
    case Collective::kReduceScatter:
      return {.known = true, .reduces = true, .mean = true, .in_place = true, .data = true};
    case Collective::kScan:
    case Collective::kExscan:
      return {.known = true, .reduces = true, .in_place = true, .data = true};
    case Collective::kAllgather:
    case Collective::kAlltoall:
      return {.known = true, .in_place = true, .data = true};
    case Collective::kGather:
    case Collective::kScatter:
      return {.known = true, .rooted = true, .in_place = true, .data = true};
    case Collective::kGatherv:
    case Collective::kScatterv:
      return {.known = true, .rooted = true, .in_place = true, .data = true, .vectors = true};
    case Collective::kAllgatherv:
    case Collective::kAlltoallv:
      return {.known = true, .in_place = true, .data = true, .vectors = true};
    case Collective::kReduceScatterv:
      return {.known = true, .reduces = true, .mean = true, .in_place = true, .data = true, .vectors = true};
    case Collective::kBarrier:
      return {.known = true};
    case Collective::kProgram:
      return {.known = true, .rooted = true, .in_place = true};
  }
  return {};
}

namespace facts_detail {

constexpr std::uint32_t bit(Func func) { return std::uint32_t{1} << static_cast<std::uint32_t>(func); }

constexpr std::uint32_t functions_of(Datatype dtype) {
  const std::uint32_t arithmetic = bit(Func::kSum) | bit(Func::kProd);
  const std::uint32_t order = bit(Func::kMin) | bit(Func::kMax);
  const std::uint32_t logical = bit(Func::kLogicalAnd) | bit(Func::kLogicalOr) | bit(Func::kLogicalXor);
  const std::uint32_t bitwise = bit(Func::kBitwiseAnd) | bit(Func::kBitwiseOr) | bit(Func::kBitwiseXor);
  const std::uint32_t mean = bit(Func::kAvg);
  switch (dtype) {
    case Datatype::kNone:
      return 0;
    case Datatype::kByte:
      return bitwise;
    case Datatype::kInt8:
    case Datatype::kInt16:
    case Datatype::kInt32:
    case Datatype::kInt64:
    case Datatype::kUint8:
    case Datatype::kUint16:
    case Datatype::kUint32:
    case Datatype::kUint64:
      return arithmetic | order | logical | bitwise;
    case Datatype::kFp16:
    case Datatype::kBf16:
    case Datatype::kFp32:
    case Datatype::kFp64:
      return arithmetic | order | mean;
    case Datatype::kComplex64:
    case Datatype::kComplex128:
      return arithmetic | mean;
    case Datatype::kBool:
      return order | logical | bitwise;
    case Datatype::kFp32Int32:
    case Datatype::kFp64Int32:
    case Datatype::kInt32Int32:
    case Datatype::kInt64Int64:
      return bit(Func::kMinloc) | bit(Func::kMaxloc);
  }
  return 0;
}

}  // namespace facts_detail

/// By datatype, the built-in operators that are defined on it: bit n is that of Func n (docs/model.md, "Arithmetic").
inline constexpr auto kOperatorsOn = [] {
  std::array<std::uint32_t, kAllDatatype.size()> table{};
  for (const Datatype dtype : kAllDatatype) {
    table[static_cast<std::size_t>(dtype)] = facts_detail::functions_of(dtype);
  }
  return table;
}();

}  // namespace unisono
