#include "sim/cluster/call_log.hpp"

#include <string>

#include "collectives/algorithm.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint32_t kSlotBytes = 128;
constexpr std::uint32_t kSessionBits = (std::uint32_t{1} << 15U) - 1;

}  // namespace

void CallLog::write(std::uint32_t offset, std::uint32_t value) {
  if (offset >= exchange::kCallSlot && offset < exchange::kCallSlot + kSlotBytes) {
    const std::uint32_t word = (offset - exchange::kCallSlot) / 4;
    const unsigned shift = word % 2 * 32;
    slot_[word / 2] = (slot_[word / 2] & ~(std::uint64_t{0xffffffffU} << shift)) | std::uint64_t{value} << shift;
  } else if (offset >= exchange::kMembers && offset < exchange::kMembers + 4 * members_.size()) {
    members_[(offset - exchange::kMembers) / 4] = value;
  } else if (offset == exchange::kDoorbell) {
    call(slot_);
  }
}

void CallLog::call(std::span<const std::uint64_t, kCallDescriptorWords> descriptor) {
  LoggedCall logged;
  std::array<std::uint64_t, kCallDescriptorWords> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = descriptor[i];
  logged.call = decode_call_descriptor(words);
  for (std::uint32_t rank = 0; rank < registers::kMemberWords; ++rank) {
    const std::size_t at = std::size_t{logged.call.communicator} * registers::kMemberWords + rank;
    if (at >= members_.size() || (members_[at] & registers::kMemberValid) == 0) break;
    const std::uint32_t session = members_[at] & kSessionBits;
    logged.nodes.push_back(session == kSelfSession ? node_ : session);
  }
  calls_.push_back(std::move(logged));
}

std::string name_of(const CallDescriptor& call) {
  std::string operation = unisono::name_of(call.collective);
  // In a nop the number has another meaning.
  if (call.collective == Collective::kNop || call.algorithm == 0 || call.algorithm > algorithms().size()) {
    return operation;
  }
  const Algorithm& algorithm = algorithms()[call.algorithm - 1U];
  return algorithm.collective == call.collective ? operation + " " + algorithm.name : operation;
}

}  // namespace unisono::sim
