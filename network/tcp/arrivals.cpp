#include "network/tcp/arrivals.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/frame_fault.hpp"

namespace unisono::tcp {

namespace {

constexpr std::size_t kFirstBytes = 4096;
/// So little is moved to the front at any time.
constexpr std::size_t kLittle = 1024;
/// Of a frame that lacks more than this, only the rest is asked for, and the header after it: what follows then begins
/// at the front, and no large piece is ever moved.
constexpr std::size_t kLarge = std::size_t{16} * 1024;
/// In place of the magic number: the payload lies elsewhere, and its address behind the header.
constexpr std::uint16_t kElsewhere = static_cast<std::uint16_t>(~static_cast<std::uint16_t>(kMagic));
constexpr std::size_t kElsewhereBytes = kHeaderBytes + 64;
/// Numbers of frames count up to this, and begin anew.
constexpr std::uint32_t kNumbers = kControlMark - 1;

/// Whether a number is behind another one: of those that there can be at once, all are within half of all numbers.
bool is_behind(std::uint32_t number, std::uint32_t other) { return ((number - other) & kNumbers) > kNumbers / 2; }

std::array<std::byte, 64> make_bye() {
  constexpr std::string_view kText = "BYE: this endpoint of Unisono leaves its job in good order.";
  std::array<std::byte, 64> bytes{};
  std::memcpy(bytes.data(), kText.data(), kText.size());
  return bytes;
}

}  // namespace

const std::array<std::byte, 64> kBye = make_bye();

Header Arrivals::header_at(std::size_t at) const {
  HeaderWords words;
  std::memcpy(words.data(), memory_.get() + at, sizeof words);
  return decode_header(words);
}

std::size_t Arrivals::held_bytes(const Header& header) {
  return header.magic == kElsewhere ? kElsewhereBytes : kHeaderBytes + header.segment_bytes;
}

std::byte* Arrivals::address_at(std::size_t at) const {
  std::byte* address = nullptr;
  std::memcpy(&address, memory_.get() + at + kHeaderBytes, sizeof address);
  return address;
}

std::byte* Arrivals::landing_of(const Header& header) const {
  if (landings_ == nullptr) return nullptr;
  Header plain = header;
  plain.magic = static_cast<std::uint16_t>(kMagic);
  return landings_->landing(peer_, plain);
}

void Arrivals::begin_landing(Header header) {
  if (landings_ == nullptr || !is_of(0, header) || capacity_ - frontier_ < kElsewhereBytes) return;
  std::byte* const place = landing_of(header);
  if (place == nullptr) return;
  std::byte* const frame = memory_.get() + frontier_;
  landed_ = end_ - frontier_ - kHeaderBytes;
  if (landed_ != 0) std::memcpy(place, frame + kHeaderBytes, landed_);
  header.magic = kElsewhere;
  const HeaderWords words = encode(header);
  std::memcpy(frame, words.data(), sizeof words);
  std::memcpy(frame + kHeaderBytes, &place, sizeof place);
  end_ = frontier_ + kElsewhereBytes;
  landing_ = true;
}

std::span<std::byte> Arrivals::landing() {
  if (!landing_) return {};
  const Header header = header_at(frontier_);
  std::byte* const place = address_at(frontier_);
  const std::size_t rest = header.segment_bytes - landed_;
  if (place != nullptr && landing_of(header) == place) return {place + landed_, rest};
  // Nobody awaits it any more: the rest goes nowhere.
  std::memset(memory_.get() + frontier_ + kHeaderBytes, 0, sizeof(void*));
  if (nowhere_ == nullptr) nowhere_ = allocate_aligned(kMaxDataPayload);
  return {nowhere_.get(), rest};
}

void Arrivals::compact(std::size_t larger) {
  const std::size_t begin = std::min(cursor_[0], cursor_[1]);
  if (larger > capacity_) {
    AlignedMemory memory = allocate_aligned(larger);
    if (end_ != begin) std::memcpy(memory.get(), memory_.get() + begin, end_ - begin);
    memory_ = std::move(memory);
    capacity_ = larger;
  } else if (begin != 0) {
    std::memmove(memory_.get(), memory_.get() + begin, end_ - begin);
  }
  end_ -= begin;
  frontier_ -= begin;
  for (std::size_t& cursor : cursor_) cursor -= begin;
}

std::span<std::byte> Arrivals::room() {
  if (!fault_.empty() || bye_) return {};
  // Behind a message that lands only the next header is read, for the message after it may land, too.
  if (landing_) return {memory_.get() + end_, std::min(capacity_ - end_, kHeaderBytes)};
  const std::size_t begin = std::min(cursor_[0], cursor_[1]);
  const std::size_t missing = awaited_ - (end_ - frontier_);
  // A message that was peeked stays where it is.
  if (!peeked()) {
    const bool short_of_memory = end_ - begin + missing > capacity_ || (filled_ && capacity_ < kMostBytes);
    if (short_of_memory) {
      const std::size_t need = std::bit_ceil(end_ - begin + missing);
      const std::size_t larger = std::min(std::max({need, 2 * capacity_, kFirstBytes}), kMostBytes);
      if (larger > capacity_ || begin != 0) compact(larger);
      filled_ = false;
    } else if (begin != 0 && (end_ - begin <= kLittle || capacity_ - end_ < missing)) {
      compact(0);
    }
  }
  const std::size_t most = landed_last_ ? missing : missing >= kLarge ? missing + kHeaderBytes : capacity_;
  return {memory_.get() + end_, std::min(capacity_ - end_, most)};
}

bool Arrivals::received(std::size_t bytes) {
  if (landing_) {
    const std::size_t rest = header_at(frontier_).segment_bytes - landed_;
    const std::size_t part = std::min(rest, bytes);
    landed_ += part;
    bytes -= part;
  }
  end_ += bytes;
  filled_ = !landing_ && end_ == capacity_;
  bool whole = false;
  while (advance_frontier()) whole = true;
  return whole;
}

bool Arrivals::advance_frontier() {
  if (!fault_.empty()) return false;
  if (landing_) {
    if (landed_ < header_at(frontier_).segment_bytes) return false;
    landing_ = false;
    landed_last_ = true;
    sequence_[0] = header_at(frontier_).session_sequence + 1;
    frontier_ += kElsewhereBytes;
    awaited_ = kHeaderBytes;
    return true;
  }
  if (end_ - frontier_ < awaited_) return false;
  if (bye_) {
    // Reached with nothing behind the farewell, too: then nothing is awaited.
    if (end_ != frontier_) fault_ = "it goes on after its farewell";
    return false;
  }
  HeaderWords words;
  std::memcpy(words.data(), memory_.get() + frontier_, sizeof words);
  const Header header = decode_header(words);
  if (awaited_ == kHeaderBytes) {
    if (header.magic != kMagic && std::memcmp(memory_.get() + frontier_, kBye.data(), kBye.size()) == 0) {
      bye_ = true;
      awaited_ = 0;
      end_ -= kHeaderBytes;
      if (end_ != frontier_) fault_ = "it goes on after its farewell";
      return false;
    }
    fault_ = examine(words, header);
    if (!fault_.empty()) return false;
    awaited_ += header.segment_bytes;
    if (end_ - frontier_ < awaited_) {
      if (awaited_ - (end_ - frontier_) >= kLarge) begin_landing(header);
      return false;
    }
  }
  sequence_[is_of(0, header) ? 0 : 1] = header.session_sequence + 1;
  landed_last_ = false;
  frontier_ += awaited_;
  awaited_ = kHeaderBytes;
  return true;
}

std::string Arrivals::examine(const HeaderWords& words, const Header& header) const {
  const bool control = is_of(1, header);
  std::uint32_t expected = (sequence_[control ? 1 : 0] & ~kControlMark) | (control ? kControlMark : 0);
  if (next_ != nullptr) {
    if (control && only_data_) return "it is a control message on a connection for data alone";
    // Of a gap the other connections know.
    if (!control && !is_behind(header.session_sequence, expected)) expected = header.session_sequence;
  }
  return fault_of(words, header, expected, control ? kMaxControlPayload : kMaxDataPayload);
}

void Arrivals::skip(std::size_t lane) {
  while (cursor_[lane] != frontier_) {
    const Header header = header_at(cursor_[lane]);
    if (is_of(lane, header)) return;
    cursor_[lane] += held_bytes(header);
  }
}

bool Arrivals::is_stray(std::size_t at) const {
  const Header header = header_at(at);
  if (header.magic != kElsewhere) return false;
  std::byte* const place = address_at(at);
  return place == nullptr || landing_of(header) != place;
}

void Arrivals::share(std::uint32_t& next, bool only_data) {
  next_ = &next;
  only_data_ = only_data;
}

std::uint32_t Arrivals::next_data() {
  skip(0);
  return cursor_[0] == frontier_ ? sequence_[0] & kNumbers : header_at(cursor_[0]).session_sequence;
}

bool Arrivals::waits_for_others() {
  skip(0);
  if (next_ == nullptr || cursor_[0] == frontier_) return false;
  const std::uint32_t number = header_at(cursor_[0]).session_sequence;
  if (is_behind(number, *next_) && fault_.empty()) {
    fault_ = formatted("its connections have two messages with the number {}", number);
  }
  return number != *next_;
}

void Arrivals::pass_turn() {
  if (next_ != nullptr) *next_ = (*next_ + 1) & kNumbers;
}

bool Arrivals::peek(Lane lane, Incoming& incoming) {
  const std::size_t index = index_of(lane);
  skip(index);
  while (cursor_[index] != frontier_ && is_stray(cursor_[index]) && has_turn(cursor_[index])) {
    cursor_[index] += kElsewhereBytes;
    pass_turn();
    skip(index);
  }
  peeked_[index] = cursor_[index] != frontier_ && (index != 0 || has_turn(cursor_[index]));
  if (!peeked_[index]) return false;
  const std::size_t at = cursor_[index];
  incoming.header = header_at(at);
  const bool elsewhere = incoming.header.magic == kElsewhere;
  incoming.header.magic = static_cast<std::uint16_t>(kMagic);
  incoming.header.session_sequence &= ~kControlMark;
  incoming.payload = {elsewhere ? address_at(at) : memory_.get() + at + kHeaderBytes, incoming.header.segment_bytes};
  return true;
}

void Arrivals::release(Lane lane) {
  const std::size_t index = index_of(lane);
  if (!peeked_[index]) throw Error(ErrorCode::kInternal, "a message was released that had not been looked at");
  peeked_[index] = false;
  if (index == 0) pass_turn();
  cursor_[index] += held_bytes(header_at(cursor_[index]));
  // Both lanes pass what the other one has taken, or it would stay in memory until they are looked at.
  skip(index);
  if (!peeked_[1 - index]) skip(1 - index);
  if (cursor_[0] == end_ && cursor_[1] == end_) end_ = frontier_ = cursor_[0] = cursor_[1] = 0;
}

}  // namespace unisono::tcp
