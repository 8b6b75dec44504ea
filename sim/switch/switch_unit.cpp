#include "sim/switch/switch_unit.hpp"

#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/header.hpp"
#include "core/text.hpp"

namespace unisono::sim {

namespace {

void add(SwitchCounters& to, const SwitchCounters& more) {
  to.calls += more.calls;
  to.messages += more.messages;
  to.bytes += more.bytes;
  to.mismatches += more.mismatches;
  to.faults += more.faults;
}

}  // namespace

SwitchUnit::SwitchUnit(Network& network, std::uint32_t unit) : network_(network), unit_(unit) {}

void SwitchUnit::take(const UnitFrame& frame) {
  HeaderWords words{};
  if (frame.data.size() < sizeof words) {
    ++dropped_;
    return;
  }
  std::memcpy(words.data(), frame.data.data(), sizeof words);
  if (check_header(words) != HeaderFault::kNone) {
    ++dropped_;
    return;
  }
  const Header header = decode_header(words);
  const auto found = communicators_.find({header.communicator, header.epoch});
  if (header.trailer || header.segment_bytes != frame.data.size() - sizeof words || found == communicators_.end()) {
    ++dropped_;
    return;
  }
  found->second->take(frame.source, header, frame.data.subspan(sizeof words));
}

bool SwitchUnit::has(std::uint32_t communicator, std::uint16_t epoch) const {
  return communicators_.count({communicator, epoch}) != 0;
}

void SwitchUnit::make(SwitchEntry entry) {
  const Key key{entry.communicator, entry.epoch};
  communicators_[key] = std::make_unique<SwitchCommunicator>(std::move(entry), static_cast<SwitchOutlet&>(*this));
}

void SwitchUnit::free(std::uint32_t communicator, std::uint16_t epoch) {
  const auto found = communicators_.find({communicator, epoch});
  if (found == communicators_.end()) return;
  add(past_, found->second->counters());
  communicators_.erase(found);
}

SwitchCounters SwitchUnit::counters() const {
  SwitchCounters all = past_;
  for (const auto& [key, communicator] : communicators_) add(all, communicator->counters());
  return all;
}

std::string SwitchUnit::waiting(std::uint32_t communicator, std::uint16_t epoch) const {
  const auto found = communicators_.find({communicator, epoch});
  return found == communicators_.end() ? std::string() : found->second->waiting();
}

void SwitchUnit::send(std::uint32_t address, bool control, const Header& header, std::span<const std::byte> payload) {
  Header sealed = header;
  sealed.session_sequence = sequences_[{address, control}]++;
  seal(sealed);
  const HeaderWords words = encode(sealed);
  frame_.resize(sizeof words + payload.size());
  std::memcpy(frame_.data(), words.data(), sizeof words);
  if (!payload.empty()) std::memcpy(frame_.data() + sizeof words, payload.data(), payload.size());
  network_.send_from(unit_, address, control ? 1 : 0, frame_);
}

std::uint16_t SwitchUnit::take_token() {
  if (!tokens_.empty()) {
    const std::uint16_t slot = tokens_.back();
    tokens_.pop_back();
    return slot;
  }
  if (next_token_ == kWindowSlot) {
    throw Error(ErrorCode::kInternal, formatted("switch {}: all landing areas are in use", network_.unit(unit_).name));
  }
  return next_token_++;
}

}  // namespace unisono::sim
