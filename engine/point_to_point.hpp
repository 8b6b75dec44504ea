// Point-to-point messages over lanes, blocking and not, with matching by tag.
//
// A short message is one line, with cells if need be, and is sent as soon as there is room. A long one is announced by
// a line that says where it stands. When a receive matches, the receiver decides how it travels: if both ends can be
// reached, sender and receiver copy one half each; if one end can, the one that reaches the other copies all; else the
// sender streams it through the cells. Memory of arenas is reached by its mapping, ordinary memory by kernel copy, from
// the length on from which that is faster here. Where the kernel refuses a copy half-way, the rest is streamed.
//
// Which receive takes which message is the matcher's to say (matcher.hpp). Lines are taken in the order of the lane,
// and so messages of a pair with matching tags never overtake each other. A short message that nobody has asked for is
// copied and kept. When a communicator keeps more than it should, it says so in its lanes: then senders announce short
// messages as well, and what is announced stays where it is until it is received. So a rank keeps a bounded number of
// bytes, and of each send in flight a few words.
//
// All state is guarded by one flag that is held for short steps only, never while waiting: one thread may wait for a
// message while another sends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/generated/spec.hpp"
#include "engine/counters.hpp"
#include "engine/engine.hpp"
#include "engine/matcher.hpp"
#include "network/shm/kernel_copy.hpp"
#include "network/shm/lanes.hpp"
#include "network/shm/segment.hpp"
#include "network/shm/store_pace.hpp"

namespace unisono::cclo {

/// One send or receive. Stays where it is from `post` until it has ended; read by its owner once `ended` is true.
struct Transfer : PostedReceive {  // what is posted is of receives: whom they take a message of
  bool sends = false;
  std::uint32_t peer = 0;            ///< of a receive of any source, once it is `matched`
  std::uint32_t tag = 0;             ///< likewise
  std::atomic<bool> matched{false};  ///< of a receive: the message is known
  Datatype dtype = Datatype::kByte;
  std::byte* data = nullptr;  ///< of a send only read
  std::uint64_t bytes = 0;    ///< of the message, or that the receive can take
  std::atomic<bool> ended{false};
  ErrorCode code = ErrorCode::kOk;
  std::string text;            ///< on failure
  std::uint64_t received = 0;  ///< bytes

  /// Whether it waits for a message of any rank.
  bool of_anybody() const { return wanted.any_source && !matched.load(std::memory_order_acquire); }
  MessageStatus status() const { return {peer, tag, received, dtype}; }

  // Of a long message.
  struct Part {  ///< bytes from .. until of it, that the sender streams
    std::uint64_t from = 0;
    std::uint64_t until = 0;
    bool announced = true;  ///< the receiver knows what comes
    bool own = false;       ///< the sender was to copy it, and could not
  };
  struct Far {  ///< the other end's memory
    std::byte* mapped = nullptr;
    std::uint64_t address = 0;  ///< if it is not mapped: in the other process, for kernel copy
    bool there() const { return mapped != nullptr || address != 0; }
  };
  std::uint32_t id = 0;
  Far remote;
  std::uint64_t from = 0;   ///< what this rank copies itself: from ..
  std::uint64_t until = 0;  ///< .. until
  std::array<Part, 2> parts;
  std::uint32_t streams = 0;  ///< of the parts, still to be sent
  bool asked = false;         ///< the receiver has asked for a part through cells
  Part arriving;              ///< what the receiver awaits through cells
  bool copies = false;        ///< this rank has a part to copy, or had
  bool own_done = false;      ///< this rank's part is where it belongs
  bool peer_done = false;     ///< so is the other's
  bool answered = false;      ///< the receiver has said so
};

/// What messages of one communicator travel by.
struct PointToPointWays {
  const shm::LaneSet& lanes;  ///< open
  std::shared_ptr<shm::Segment> segment;
  shm::KernelCopy* copy = nullptr;             ///< null: there is none. Outlives the messages
  std::span<const std::uint32_t> endpoints{};  ///< by rank. Outlives the messages
  LaneTraffic traffic;
  bool one_process = false;              ///< every address can be reached
  std::uint32_t eager_limit = 0;         ///< longer messages, or those beyond kShort, are announced
  std::uint64_t most_kept = 16U << 20U;  ///< bytes of short messages that are kept before senders are told to announce
};

/// The messages of one communicator. Thread-safe.
class PointToPoint {
 public:
  PointToPoint(const PointToPointWays& ways, std::uint32_t size);

  /// Sends a short message at once; false, having done nothing, if that is not possible now.
  bool try_send(std::uint32_t peer, std::uint32_t tag, Datatype dtype, const std::byte* data, std::uint64_t bytes);
  /// Takes a message of at most `bytes` that is there and is the one wanted; false, having done nothing, if not.
  bool try_receive(std::uint32_t peer, std::uint32_t tag, Datatype dtype, std::byte* data, std::uint64_t bytes,
                   std::uint64_t& received);

  /// Enters an operation. Operations of a pair begin in this order.
  void post(Transfer& op);
  /// Takes back an operation that has not ended, because its call has failed. What it shared with the peer is lost.
  /// Whether the peer may be at its memory.
  bool withdraw(Transfer& op);
  /// Does what can be done for the messages of one peer; or of all, of whom `polled` have their turn at a time. Returns
  /// whether anything was done. Throws Error(kCorruptMessage), or AccessBanned.
  bool progress(std::uint32_t peer);
  bool progress_all(std::uint32_t polled);
  /// The message that a receive would get now; it stays.
  std::optional<MessageStatus> look_for(const Wanted& wanted) const;
  /// What nobody has asked for, in words; empty if there is nothing.
  std::string unexpected_text() const;
  /// Bytes of short messages that are kept.
  std::uint64_t kept() const;
  /// Whether a message of a peer has come; without the flag, for polls.
  bool stirs(std::uint32_t peer);
  /// Operations in flight.
  bool idle() const { return in_flight_.load(std::memory_order_relaxed) == 0; }

  /// Longest message that is sent without being announced, whatever the communicator's eager limit: it must fit the
  /// cells with room to spare.
  static constexpr std::uint64_t kShort = 8192;

 private:
  struct KeptMessage : UnexpectedMessage {  ///< a message that nobody has asked for yet
    Datatype dtype = Datatype::kByte;
    std::uint64_t bytes = 0;
    std::vector<std::byte> payload;
    bool announced = false;  ///< a long one: only this much is known of it
    std::uint32_t id = 0;
    std::uint64_t address = 0;
    bool may_copy = false;  ///< the sender passed its trial of kernel copy with this rank
    /// What it counts for. One that is announced costs its sender a send in flight, of which there are not too many.
    std::uint64_t cost() const { return announced ? 0 : sizeof(KeptMessage) + bytes; }
  };
  struct LineHead {
    MessageType type;
    std::uint32_t tag;
    Datatype dtype;
    std::uint32_t id;
  };
  struct PeerQueues {  ///< everything between this rank and one peer
    std::uint32_t peer = 0;
    shm::LaneSender send, answer;
    shm::LaneReceiver receive, answers;
    shm::StorePace pace;               ///< of what is sent
    std::deque<Transfer*> outgoing;    ///< sends that are not on the lane
    std::vector<Transfer*> sending;    ///< long ones that are announced
    std::vector<Transfer*> receiving;  ///< of long ones
    std::uint32_t queued = 0;          ///< receives posted for this peer, and messages of it that are kept
    bool full = false;                 ///< it was told to announce short messages, too
    std::deque<std::array<std::uint64_t, 3>> unanswered;  ///< answers that found no room: type and id, two words
    std::uint32_t next_id = 0;
  };
  class Turn;

  static void store_for(PeerQueues& queues, std::byte* out, const std::byte* in, std::uint64_t bytes);
  bool put_line(PeerQueues& queues, shm::LaneSender& lane, const LineHead& head, const std::byte* data,
                std::uint64_t bytes);
  bool advance(PeerQueues& queues);
  static bool due(const PeerQueues& queues);
  bool begin_send(PeerQueues& queues, Transfer& op);
  bool take_lines(PeerQueues& queues, std::uint32_t peer);
  bool take_answers(PeerQueues& queues, std::uint32_t peer);
  bool advance_sends(PeerQueues& queues);
  bool advance_receives(PeerQueues& queues);
  void take_message(PeerQueues& queues, const MessageLine& message, const std::byte* payload);
  void keep(PeerQueues& queues, const KeptMessage& came, const std::byte* payload);
  KeptMessage* unkeep(UnexpectedMessage& message);
  void recycle(KeptMessage* came);
  void matched(Transfer& op, std::uint32_t source, std::uint32_t tag);
  void deliver(PeerQueues& queues, Transfer& op, const KeptMessage& came, const std::byte* payload);
  void answer(PeerQueues& queues, MessageType type, std::uint32_t id, std::uint64_t first, std::uint64_t second);
  bool flush_answers(PeerQueues& queues);
  void accept_long(PeerQueues& queues, Transfer& op, const KeptMessage& came);
  static bool refuse_if_wrong(Transfer& op, Datatype dtype, std::uint64_t bytes);
  void end(Transfer& op) {
    if (op.sends && op.code == ErrorCode::kOk) traffic_.add({1, op.bytes, 0});
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    op.ended.store(true, std::memory_order_release);
  }
  void await_stream(PeerQueues& queues, Transfer& op);
  bool stream(PeerQueues& queues, Transfer& op);
  void take_grant(PeerQueues& queues, Transfer& op, std::uint64_t word, std::uint64_t bytes);
  bool copy_piece(PeerQueues& queues, Transfer& op);
  bool may_copy(std::uint32_t peer, std::uint64_t bytes) const;
  std::uint64_t address_of(const std::byte* data, std::uint64_t bytes, bool by_copy) const;
  Transfer::Far reach(std::uint64_t word, std::uint64_t bytes, bool by_copy) const;

  std::shared_ptr<shm::Segment> segment_;
  shm::KernelCopy* copy_;
  std::span<const std::uint32_t> endpoints_;
  LaneTraffic traffic_;
  bool one_process_;
  std::uint64_t short_bytes_;
  std::uint64_t most_kept_;
  std::vector<PeerQueues> peers_;  ///< by rank
  Matcher matcher_;
  std::deque<KeptMessage> messages_;  ///< as many as there were at once
  std::vector<KeptMessage*> free_messages_;
  std::uint64_t kept_ = 0;       ///< bytes
  std::uint32_t full_ = 0;       ///< peers that were told to announce
  std::uint32_t next_poll_ = 0;  ///< whose turn it is
  shm::TouchGuard guard_;
  mutable std::atomic<bool> busy_{false};
  std::atomic<std::uint32_t> in_flight_{0};
};

}  // namespace unisono::cclo
