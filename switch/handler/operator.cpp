#include "switch/handler/operator.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"
#include "switch/handler/binary.hpp"
#include "switch/handler/sentence.hpp"

namespace unisono::handler {
namespace {

constexpr std::size_t kShapeWords = 5;

Program program_in(std::span<const std::byte> binary) {
  if (binary.size() > kMostOperatorBinary) {
    throw Error(ErrorCode::kMalformedProgram,
                formatted("operator: its binary has {} bytes; allowed are {}", binary.size(), kMostOperatorBinary));
  }
  return parse_binary(binary);
}

OperatorShape shape_in(const Program& program) {
  const std::optional<OperatorShape> shape = operator_shape(program);
  if (!shape) {
    throw Error(ErrorCode::kMalformedProgram,
                formatted("operator: {} is none; write it with US_OPERATOR of unisono_operator.h", program.source));
  }
  return *shape;
}

}  // namespace

std::optional<OperatorShape> operator_shape(const Program& program) {
  std::array<std::uint32_t, kShapeWords> words{};
  // Zeros at the end are not in the binary.
  if (program.data.empty()) return std::nullopt;
  std::memcpy(words.data(), program.data.data(), std::min(sizeof words, program.data.size()));
  const OperatorShape shape{words[1], words[2], words[3], words[4]};
  const std::uint64_t bytes = std::uint64_t{shape.element_bytes} * shape.block;
  const auto within = [&](std::uint32_t at) {
    return at >= sizeof words && at <= program.memory_bytes && bytes <= program.memory_bytes - at;
  };
  const bool apart = shape.left + bytes <= shape.right || shape.right + bytes <= shape.left;
  const bool sound = words[0] == kOperatorMagic && shape.element_bytes >= 1 &&
                     shape.element_bytes <= kMostElementBytes &&
                     shape.block >= kLeastOperatorBlock / shape.element_bytes && shape.block <= kMostPayloadBytes &&
                     program.memory_bytes <= kMostOperatorMemory && within(shape.left) && within(shape.right) &&
                     apart && program.entries[static_cast<std::size_t>(Function::kPayload)] != kNoFunction &&
                     program.entries[static_cast<std::size_t>(Function::kHeader)] == kNoFunction &&
                     program.entries[static_cast<std::size_t>(Function::kCompletion)] == kNoFunction;
  return sound ? std::optional(shape) : std::nullopt;
}

Operator::Operator(std::span<const std::byte> binary)
    : program_(program_in(binary)), code_(program_), shape_(shape_in(program_)), memory_(program_.memory_bytes) {}

bool Operator::fold(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count,
                    std::string& why) const {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t done = 0; done < count; done += shape_.block) {
    const std::size_t at = done * shape_.element_bytes;
    std::uint64_t budget = kOperatorBudget;
    if (!fold_block(a + at, b + at, out + at, std::min<std::uint64_t>(shape_.block, count - done), budget, why)) {
      return false;
    }
  }
  return true;
}

bool Operator::fold(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count, std::uint64_t& budget,
                    std::string& why) const {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t done = 0; done < count; done += shape_.block) {
    const std::size_t at = done * shape_.element_bytes;
    if (!fold_block(a + at, b + at, out + at, std::min<std::uint64_t>(shape_.block, count - done), budget, why)) {
      return false;
    }
  }
  return true;
}

/// Under the lock.
bool Operator::fold_block(const std::byte* a, const std::byte* b, std::byte* out, std::uint64_t count,
                          std::uint64_t& budget, std::string& why) const {
  const std::size_t bytes = count * shape_.element_bytes;
  std::memcpy(memory_.data(), program_.data.data(), program_.data.size());
  std::memset(memory_.data() + program_.data.size(), 0, memory_.size() - program_.data.size());
  std::memcpy(memory_.data() + shape_.left, a, bytes);
  std::memcpy(memory_.data() + shape_.right, b, bytes);
  Surroundings around;
  around.memory = memory_;
  around.info[static_cast<std::size_t>(Info::kLength)] = static_cast<std::uint32_t>(count);
  const Outcome outcome = code_.run(Function::kPayload, around, budget);
  budget -= std::min(budget, outcome.executed);
  if (outcome.stop != Stop::kNone || outcome.verdict != kGoOn) {
    why = sentence_of(program_, Function::kPayload, around, outcome);
    // Of a message the rest may be dropped; of operands there is no rest.
    if (why.empty())
      why = formatted("{}: it gives {}, not US_GO_ON", place_of(program_, outcome.word), outcome.verdict);
    return false;
  }
  std::memcpy(out, memory_.data() + shape_.left, bytes);
  return true;
}

}  // namespace unisono::handler
