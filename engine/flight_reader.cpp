#include "engine/flight_reader.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/facts.hpp"

namespace unisono::cclo {

bool SeenCall::has_root() const {
  const CollectiveFacts facts = facts_of(collective);
  return facts.rooted && facts.kind == CallKind::kCollective;
}

std::optional<SeenCall> read(const CallRecord& record, std::uint64_t position) {
  const std::uint64_t head = record.head.load(std::memory_order_acquire);
  const std::uint64_t count = record.count.load(std::memory_order_acquire);
  const std::uint64_t peer = record.peer.load(std::memory_order_acquire);
  const std::uint64_t algorithm_and_factor = record.algorithm.load(std::memory_order_acquire);
  const std::uint64_t after = record.head.load(std::memory_order_relaxed);
  constexpr std::uint64_t kState = std::uint64_t{0xff} << kRecordedStateShift;
  if ((head & ~kState) != (after & ~kState)) return std::nullopt;  // it is being written
  const std::uint64_t algorithm = algorithm_and_factor & 0x7fffffffU;
  SeenCall call;
  call.position = position;
  call.sequence = static_cast<std::uint32_t>(head);
  call.state = static_cast<RecordedState>(head >> kRecordedStateShift & 0xffU);
  call.collective = static_cast<Collective>(head >> 40U & 0xffU);
  call.func = static_cast<Func>(head >> 48U & 0xffU);
  call.dtype = static_cast<Datatype>(head >> 56U & 0xffU);
  if (call.state == RecordedState::kNone || call.state > RecordedState::kFailed || !is_known(call.collective) ||
      !is_known(call.func) || !is_known(call.dtype)) {
    return std::nullopt;
  }
  call.count = count & ((std::uint64_t{1} << kRecordedCountBits) - 1);
  call.in_place = (count & kRecordedInPlace) != 0;
  call.point_to_point = (count & kRecordedPointToPoint) != 0;
  call.local = (count & kRecordedLocal) != 0;
  call.any_source = (count & kRecordedAnySource) != 0;
  call.any_tag = (count & kRecordedAnyTag) != 0;
  call.probe = (count & kRecordedProbe) != 0;
  call.peer = static_cast<std::uint32_t>(peer);
  (call.collective_of_all() ? call.signature : call.tag) = static_cast<std::uint32_t>(peer >> 32U);
  call.post_scale = std::bit_cast<float>(static_cast<std::uint32_t>(algorithm_and_factor >> 32U) ^
                                         std::bit_cast<std::uint32_t>(1.0F));
  if (algorithm != 0 && algorithm <= algorithms().size()) {
    const Algorithm& entry = algorithms()[algorithm - 1];
    if (entry.collective == call.collective) call.algorithm = &entry;
  }
  return call;
}

bool is_of(const CommunicatorRecord& record, std::uint32_t number, std::uint16_t epoch) {
  const std::uint64_t identity = record.identity.load(std::memory_order_acquire);
  return identity >> 48U != 0 && identity << 16U == (number | std::uint64_t{epoch} << 32U) << 16U;
}

std::optional<SeenCommunicator> read(const CommunicatorRecord& record) {
  const std::uint64_t identity = record.identity.load(std::memory_order_acquire);
  const std::uint64_t use = identity >> 48U;
  if (use != kRecordInUse && use != kRecordLeft) return std::nullopt;
  SeenCommunicator seen;
  if (use == kRecordLeft) {
    const std::uint64_t left = record.left.load(std::memory_order_relaxed);
    seen.left = {static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(left >> 32U)};
  }
  seen.number = static_cast<std::uint32_t>(identity);
  seen.epoch = static_cast<std::uint16_t>(identity >> 32U);
  seen.name = name_in(record);
  const std::uint64_t place = record.place.load(std::memory_order_relaxed);
  seen.rank = static_cast<std::uint32_t>(place);
  seen.size = static_cast<std::uint32_t>(place >> 32U);
  if (seen.rank >= seen.size) return std::nullopt;
  seen.revoked = record.revoked.load(std::memory_order_relaxed) != 0;
  const std::uint64_t begun = record.begun.load(std::memory_order_relaxed);
  for (std::uint64_t position = begun > kRecordedCalls ? begun - kRecordedCalls : 0; position != begun; ++position) {
    if (const auto call = read(record.calls[position % kRecordedCalls], position)) seen.calls.push_back(*call);
  }
  if (const std::uint64_t waiting = record.waiting.load(std::memory_order_acquire); waiting != 0) {
    seen.waiting = waiting - 1;
    seen.since = record.since.load(std::memory_order_relaxed);
    for (std::uint32_t rank = 0; rank < std::min(seen.size, kRecordedRanks); ++rank) {
      if ((record.awaited[rank / 64].load(std::memory_order_relaxed) >> rank % 64 & 1U) != 0) {
        seen.awaited.push_back(rank);
      }
    }
    std::array<std::uint64_t, std::tuple_size_v<decltype(record.phase)>> text{};
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = record.phase[i].load(std::memory_order_relaxed);
    seen.phase.assign(reinterpret_cast<const char*>(text.data()), sizeof text);
    seen.phase.resize(std::strlen(seen.phase.c_str()));
    for (char& character : seen.phase) {
      if (character < ' ' || character > '~') character = '?';
    }
  }
  return seen;
}

}  // namespace unisono::cclo
