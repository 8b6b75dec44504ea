#include "engine/recorder.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/signature.hpp"

namespace unisono::cclo {

RecordEntry RecordEntry::of(const Call& call, std::uint32_t tag_or_signature, std::uint64_t flags, double post_scale) {
  constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kRecordedCountBits) - 1;
  RecordEntry entry;
  entry.head = static_cast<std::uint64_t>(call.collective) << 40U | static_cast<std::uint64_t>(call.func) << 48U |
               static_cast<std::uint64_t>(call.dtype) << 56U;
  entry.count = (call.count & kCountMask) | flags | (call.in_place ? kRecordedInPlace : 0);
  entry.peer = call.root | std::uint64_t{tag_or_signature} << 32U;
  entry.algorithm = std::uint64_t{short_factor_bits(post_scale)} << 32U;
  return entry;
}

CallRecorder::CallRecorder(CommunicatorRecord* records, std::uint32_t number, std::uint16_t epoch, std::uint32_t rank,
                           std::uint32_t size) {
  for (std::uint32_t i = 0; records != nullptr && i < kRecordedCommunicators && record_ == nullptr; ++i) {
    if (records[i].identity.load(std::memory_order_relaxed) == 0) record_ = &records[i];
  }
  for (std::uint32_t i = 0; records != nullptr && i < kRecordedCommunicators && record_ == nullptr; ++i) {
    if (records[i].identity.load(std::memory_order_relaxed) >> 48U == kRecordLeft) record_ = &records[i];
  }
  if (record_ == nullptr) {
    own_ = std::make_unique<CommunicatorRecord>();
    record_ = own_.get();
  }
  record_->identity.store(0, std::memory_order_release);
  for (CallRecord& call : record_->calls) call.head.store(0, std::memory_order_relaxed);
  record_->begun.store(0, std::memory_order_relaxed);
  record_->revoked.store(0, std::memory_order_relaxed);
  record_->waiting.store(0, std::memory_order_relaxed);
  name({});
  record_->place.store(rank | std::uint64_t{size} << 32U, std::memory_order_relaxed);
  record_->identity.store(number | std::uint64_t{epoch} << 32U | kRecordInUse << 48U, std::memory_order_release);
}

CallRecorder::~CallRecorder() {
  if (!left_) record_->identity.store(0, std::memory_order_release);
}

void CallRecorder::leave(std::uint32_t calls, std::uint32_t digest) {
  left_ = true;
  record_->left.store(calls | std::uint64_t{digest} << 32U, std::memory_order_relaxed);
  const std::uint64_t identity = record_->identity.load(std::memory_order_relaxed);
  record_->identity.store((identity & ~(~std::uint64_t{0} << 48U)) | kRecordLeft << 48U, std::memory_order_seq_cst);
}

void CallRecorder::name(std::string_view name) {
  std::array<std::uint64_t, kRecordedName / 8> text{};
  std::copy_n(name.data(), std::min<std::size_t>(name.size(), kRecordedName), reinterpret_cast<char*>(text.data()));
  for (std::size_t i = 0; i < text.size(); ++i) record_->name[i].store(text[i], std::memory_order_relaxed);
}

std::string CallRecorder::title() const {
  const auto number = static_cast<std::uint32_t>(record_->identity.load(std::memory_order_relaxed));
  return title_of(number, name_in(*record_));
}

void CallRecorder::wait(const RecordMark& mark, std::chrono::steady_clock::time_point since, const char* phase,
                        std::span<const std::uint32_t> awaited) {
  const std::uint64_t reported = record_->waiting.load(std::memory_order_relaxed);
  if (reported != 0 && reported != mark.position + 1) return;
  std::array<std::uint64_t, 4> ranks{};
  for (const std::uint32_t rank : awaited) {
    if (rank < kRecordedRanks) ranks[rank / 64] |= std::uint64_t{1} << rank % 64;
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) record_->awaited[i].store(ranks[i], std::memory_order_relaxed);
  std::array<std::uint64_t, 10> text{};
  static_assert(text.size() == std::tuple_size_v<decltype(record_->phase)>);
  std::memcpy(text.data(), phase, std::min(std::strlen(phase), sizeof text));
  for (std::size_t i = 0; i < text.size(); ++i) record_->phase[i].store(text[i], std::memory_order_relaxed);
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(since.time_since_epoch()).count();
  record_->since.store(static_cast<std::uint64_t>(nanoseconds), std::memory_order_relaxed);
  record_->waiting.store(mark.position + 1, std::memory_order_release);
}

void CallRecorder::waits_no_more(const RecordMark& mark) {
  if (record_->waiting.load(std::memory_order_relaxed) == mark.position + 1) {
    record_->waiting.store(0, std::memory_order_release);
  }
}

}  // namespace unisono::cclo
