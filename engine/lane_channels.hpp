// The lanes of one communicator from one rank's side, as the executor's channels.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/loans.hpp"
#include "engine/lower.hpp"
#include "network/shm/lanes.hpp"
#include "network/shm/parking.hpp"

namespace unisono::cclo {

/// As memcpy, for at most kInlineBytes bytes: no call, few branches.
inline void copy_inline(std::byte* out, const std::byte* in, std::uint32_t bytes) {
  if (bytes >= 16) {
    std::byte head[16];
    std::byte middle[16];
    std::byte tail[16];
    const std::uint32_t second = bytes >= 32 ? 16 : 0;
    std::memcpy(head, in, 16);
    std::memcpy(middle, in + second, 16);
    std::memcpy(tail, in + bytes - 16, 16);
    std::memcpy(out, head, 16);
    std::memcpy(out + second, middle, 16);
    std::memcpy(out + bytes - 16, tail, 16);
  } else if (bytes >= 8) {
    std::uint64_t head;
    std::uint64_t tail;
    std::memcpy(&head, in, 8);
    std::memcpy(&tail, in + bytes - 8, 8);
    std::memcpy(out, &head, 8);
    std::memcpy(out + bytes - 8, &tail, 8);
  } else if (bytes >= 4) {
    std::uint32_t head;
    std::uint32_t tail;
    std::memcpy(&head, in, 4);
    std::memcpy(&tail, in + bytes - 4, 4);
    std::memcpy(out, &head, 4);
    std::memcpy(out + bytes - 4, &tail, 4);
  } else {
    for (std::uint32_t i = 0; i < bytes; ++i) out[i] = in[i];
  }
}

/// One rank's ends of all lanes of a communicator's collective space.
///
/// A message of more than `segment_bytes` is cut into segments of exactly that size and a rest; each takes a line, and,
/// beyond 48 bytes, cells. The framing is the same for both forms of a program, so each rank may choose its own.
/// Channels of executor.hpp; what is not awaited throws LaneFault.
class alignas(shm::kLineBytes) LaneChannels {
 public:
  static constexpr bool kTraced = false;

  void open(const shm::LaneSet& lanes, shm::LaneSpace space, std::uint32_t rank, std::uint32_t size) {
    rank_ = rank;
    segment_bytes_ = shm::segment_bytes_for(lanes.cell_bytes(space));
    most_straight_bytes_ = lanes.cell_bytes(space) / 4;
    send.reserve(size);
    receive.reserve(size);
    for (std::uint32_t peer = 0; peer < size; ++peer) {
      send.push_back(lanes.sender(space, peer));
      receive.push_back(lanes.receiver(space, peer));
    }
  }

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(send.size()); }
  std::uint32_t segment_bytes() const { return segment_bytes_; }
  /// Whether all that a program sends over one lane finds room in it at once: then it may run in the straight form.
  bool holds(const LoweredProgram& program) const {
    // Beyond what this program sends, the receiver may owe the report of an eighth of the cells and of some lines, and
    // a payload may leave a gap at the end of the ring.
    return program.most_lane_bytes <= most_straight_bytes_ && program.most_lane_messages <= shm::kLaneLines / 2;
  }
  static constexpr std::uint64_t head(std::uint64_t bytes, std::uint32_t tag) {
    return bytes | std::uint64_t{tag} << 32U;
  }
  /// The head of a line with a Loan.
  static std::uint64_t loan_head(std::uint32_t tag) {
    return encode(HeaderLine{.bytes = sizeof(Loan), .tag = tag, .type = MessageType::kRequest})[0];
  }

  static constexpr std::uint64_t inline_bytes() { return shm::kInlineBytes; }
  std::uint64_t segment_of(const Action& action) const {
    constexpr std::uint64_t kLocalBlock = std::uint64_t{256} * 1024;
    // A lender that comes while this rank copies for itself is to hear soon where it may help.
    constexpr std::uint64_t kLocalBlockOfBorrowers = std::uint64_t{16} * 1024;
    if (action.from.count != 0 || action.forward.count != 0) return segment_bytes_;
    return loans.lends() && action.reach.count + action.write.count == 0 ? kLocalBlockOfBorrowers : kLocalBlock;
  }

  shm::LaneSender& sender(std::uint32_t peer) { return send[peer]; }
  shm::LaneReceiver& receiver(std::uint32_t peer) { return receive[peer]; }
  bool has_line(shm::LaneSender& lane, std::uint64_t /*bytes*/) {
    if (lane.has_line()) [[likely]]
      return true;
    stuck = {};
    return false;
  }
  void send_line(shm::LaneSender& lane, const std::byte* data, std::uint64_t bytes, std::uint32_t tag) const {
    copy_inline(lane.next().payload.data(), data, static_cast<std::uint32_t>(bytes));
    lane.publish(head(bytes, tag), digest);
    shm::wake_if_parked(*lane.peer);
  }
  const std::byte* arrived_line(shm::LaneReceiver& lane, std::uint64_t bytes, std::uint32_t tag) {
    const shm::LaneLine& line = lane.next();
    return has_come(lane, line, bytes, tag) ? line.payload.data() : nullptr;
  }
  void taken_line(shm::LaneReceiver& lane, std::uint64_t /*bytes*/) const {
    if (lane.release()) shm::wake_if_parked(*lane.peer);
  }

  const std::byte* arrived(std::uint32_t peer, std::uint64_t bytes, std::uint32_t tag) {
    shm::LaneReceiver& lane = receive[peer];
    const shm::LaneLine& line = lane.next();
    if (!has_come(lane, line, bytes, tag)) return nullptr;
    return bytes <= shm::kInlineBytes ? line.payload.data() : lane.cell(static_cast<std::uint32_t>(bytes));
  }
  void taken(std::uint32_t peer, std::uint64_t bytes) {
    shm::LaneReceiver& lane = receive[peer];
    if (bytes > shm::kInlineBytes) lane.release_cell(static_cast<std::uint32_t>(bytes));
    if (lane.release()) shm::wake_if_parked(*lane.peer);
  }
  std::byte* room(std::uint32_t peer, std::uint64_t bytes) {
    shm::LaneSender& lane = send[peer];
    std::byte* place = nullptr;
    if (lane.has_line()) {
      place = bytes <= shm::kInlineBytes ? lane.next().payload.data() : lane.cell(static_cast<std::uint32_t>(bytes));
    }
    if (place == nullptr) stuck = {};
    return place;
  }
  void sent(std::uint32_t peer, std::uint64_t bytes, std::uint32_t tag) {
    shm::LaneSender& lane = send[peer];
    if (bytes > shm::kInlineBytes) lane.take_cell(static_cast<std::uint32_t>(bytes));
    lane.publish(head(bytes, tag), digest);
    shm::wake_if_parked(*lane.peer);
  }
  bool has_message(std::uint32_t peer) const {
    const shm::LaneReceiver& lane = receive[peer];
    return lane.has_line() && (lane.next().head >> 56U) == 0;
  }

  std::uint64_t least_lent() const { return loans.least; }
  LoanState lend(std::uint32_t peer, const std::byte* data, std::uint64_t bytes, std::uint32_t tag);
  LoanState lent(std::uint32_t peer, const std::byte* data);
  LoanState borrow(std::uint32_t peer, std::byte* out, std::uint64_t bytes, std::uint32_t tag, bool shared);
  bool limit_loans(LoanWork work) {
    loan_work_ = work;
    return std::exchange(left_, false);
  }

  /// What the last thing that was not possible waits for: nothing before the word's low half is this. Null: no one word
  /// tells.
  struct Stuck {
    const std::atomic<std::uint64_t>* word = nullptr;
    std::uint32_t value = 0;
    bool still() const {
      return word != nullptr && static_cast<std::uint32_t>(word->load(std::memory_order_acquire)) != value;
    }
  };

  std::vector<shm::LaneSender> send;       ///< by rank
  std::vector<shm::LaneReceiver> receive;  ///< by rank
  std::uint32_t digest = 0;                ///< of the communicator's calls up to the present one

 private:
  bool has_come(const shm::LaneReceiver& lane, const shm::LaneLine& line, std::uint64_t bytes, std::uint32_t tag) {
    if (!is_there(lane, line)) return false;
    return line.head == head(bytes, tag) || is_streamed(peer_of(lane), bytes, tag);
  }
  bool is_there(const shm::LaneReceiver& lane, const shm::LaneLine& line) {
    const std::uint64_t flag = line.flag.load(std::memory_order_acquire);
    const std::uint64_t awaited = lane.awaited(digest);
    if (flag == awaited) [[likely]]
      return true;
    stuck = {&line.flag, static_cast<std::uint32_t>(awaited)};
    if (static_cast<std::uint32_t>(flag) != static_cast<std::uint32_t>(awaited)) return false;
    throw LaneFault{peer_of(lane), true};
  }
  [[gnu::noinline]] bool is_streamed(std::uint32_t peer, std::uint64_t bytes, std::uint32_t tag);
  std::uint32_t peer_of(const shm::LaneReceiver& lane) const {
    return static_cast<std::uint32_t>(&lane - receive.data());
  }

  std::uint32_t rank_ = 0;
  std::uint32_t segment_bytes_ = 0;
  std::uint32_t most_straight_bytes_ = 0;  ///< see `holds`
  LoanWork loan_work_ = LoanWork::kAll;    ///< see `limit_loans`
  bool left_ = false;                      ///< likewise
  std::uint16_t polls_left_ = 0;           ///< for lenders that are free, see Loan::kFree

 public:
  // Behind what every call uses.
  Stuck stuck;
  Loans loans;
};

}  // namespace unisono::cclo
