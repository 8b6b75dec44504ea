#include "engine/point_to_point.hpp"

#include <sys/single_threaded.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/kernel_values.hpp"
#include "engine/kernels.hpp"
#include "network/shm/parking.hpp"

namespace unisono::cclo {
namespace {

using shm::Reach;

/// Bytes that are copied between two looks at everything else.
constexpr std::uint64_t kBlock = std::uint64_t{256} << 10U;

std::uint64_t head_of(MessageType type, std::uint32_t tag, Datatype dtype, std::uint64_t bytes) {
  return bytes | static_cast<std::uint64_t>(dtype) << 20U | static_cast<std::uint64_t>(type) << 26U |
         std::uint64_t{tag} << 30U;
}
static_assert(encode(MessageLine{.bytes = 5, .dtype = Datatype::kFp32, .type = MessageType::kWrite, .tag = 9})[0] ==
              (5U | std::uint64_t{static_cast<unsigned>(Datatype::kFp32)} << 20U |
               std::uint64_t{static_cast<unsigned>(MessageType::kWrite)} << 26U | std::uint64_t{9} << 30U));

MessageLine line_of(std::uint64_t head, std::uint64_t flag) { return decode_message_line({head, flag}); }

/// Whether it was there.
template <class T>
bool erase(std::vector<T*>& list, T* item) {
  return std::erase(list, item) != 0;
}

Transfer* find(const std::vector<Transfer*>& list, std::uint32_t id) {
  for (Transfer* op : list) {
    if (op->id == id) return op;
  }
  return nullptr;
}

[[noreturn]] void corrupt(std::uint32_t peer, const char* what) {
  throw Error(ErrorCode::kCorruptMessage,
              "what rank " + std::to_string(peer) + " put into shared memory is no message: " + what);
}

}  // namespace

/// The flag. Held for steps that never wait, so that a thread that finds it taken may spin.
class PointToPoint::Turn {
 public:
  explicit Turn(const PointToPoint& of) : busy_(of.busy_), alone_(__libc_single_threaded != 0) {
    if (alone_) return;
    while (busy_.exchange(true, std::memory_order_acquire)) {
      while (busy_.load(std::memory_order_relaxed)) sched_yield();
    }
  }
  ~Turn() {
    if (!alone_) busy_.store(false, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic<bool>& busy_;
  bool alone_;
};

PointToPoint::PointToPoint(const PointToPointWays& ways, std::uint32_t size)
    : segment_(ways.segment),
      copy_(ways.copy),
      endpoints_(ways.endpoints),
      traffic_(ways.traffic),
      one_process_(ways.one_process),
      short_bytes_(std::min<std::uint64_t>(kShort, ways.eager_limit)),
      most_kept_(ways.most_kept),
      peers_(size) {
  guard_ = ways.lanes.touch_guard();
  for (std::uint32_t peer = 0; peer < size; ++peer) {
    PeerQueues& queues = peers_[peer];
    queues.peer = peer;
    queues.send = ways.lanes.sender(shm::LaneSpace::kPointToPoint, peer);
    queues.receive = ways.lanes.receiver(shm::LaneSpace::kPointToPoint, peer);
    queues.answer = ways.lanes.sender(shm::LaneSpace::kAnswers, peer);
    queues.answers = ways.lanes.receiver(shm::LaneSpace::kAnswers, peer);
  }
}

/// Whether the kernel may copy a message of a peer: it can, and that is faster.
bool PointToPoint::may_copy(std::uint32_t peer, std::uint64_t bytes) const {
  return copy_ != nullptr && bytes >= segment_->geometry().copy_from.one_way && copy_->reaches(endpoints_[peer]);
}

/// The word that says where a buffer is; `by_copy`: the peer may be shown ordinary memory.
std::uint64_t PointToPoint::address_of(const std::byte* data, std::uint64_t bytes, bool by_copy) const {
  if (one_process_) return reinterpret_cast<std::uintptr_t>(data);
  const std::uint64_t offset = segment_->offset_of(data, bytes);
  if (offset != 0) return offset;
  return by_copy ? Reach::copied(data) : Reach::kNone;
}

Transfer::Far PointToPoint::reach(std::uint64_t word, std::uint64_t bytes, bool by_copy) const {
  if (word == Reach::kNone) return {};
  if (one_process_)
    return {reinterpret_cast<std::byte*>(word), 0};  // NOLINT(performance-no-int-to-ptr): a thread's own
  if (Reach::by_copy(word)) return {nullptr, by_copy ? Reach::address(word) : 0};
  return {segment_->at(word, bytes), 0};
}

/// Copies to where a peer reads it.
void PointToPoint::store_for(PeerQueues& queues, std::byte* out, const std::byte* in, std::uint64_t bytes) {
  if (bytes < shm::StorePace::kLeastBytes) return copy_bytes(out, in, bytes, false);
  queues.pace.store(bytes, [&](bool past_caches) { copy_bytes(out, in, bytes, past_caches); });
}

/// Publishes one line; false if there is no room for it.
bool PointToPoint::put_line(PeerQueues& queues, shm::LaneSender& lane, const LineHead& head, const std::byte* data,
                            std::uint64_t bytes) {
  if (!lane.has_line()) return false;
  const auto payload = static_cast<std::uint32_t>(bytes);
  if (payload <= shm::kInlineBytes) {
    copy_inline(lane.next().payload.data(), data, payload);
  } else {
    std::byte* cell = lane.cell(payload);
    if (cell == nullptr) return false;
    store_for(queues, cell, data, payload);
    lane.take_cell(payload);
  }
  lane.publish(head_of(head.type, head.tag, head.dtype, bytes), head.id);
  shm::wake_if_parked(*lane.peer);
  return true;
}

// ----------------------------------------------------------------------------------------- the short way

bool PointToPoint::try_send(std::uint32_t peer, std::uint32_t tag, Datatype dtype, const std::byte* data,
                            std::uint64_t bytes) {
  if (bytes > short_bytes_) return false;
  const Turn turn(*this);
  PeerQueues& queues = peers_[peer];
  if (!queues.outgoing.empty() || queues.send.full ||
      !put_line(queues, queues.send, {MessageType::kEager, tag, dtype, 0}, data, bytes)) {
    return false;
  }
  traffic_.add({1, bytes, 0});
  return true;
}

bool PointToPoint::try_receive(std::uint32_t peer, std::uint32_t tag, Datatype dtype, std::byte* data,
                               std::uint64_t bytes, std::uint64_t& received) {
  const Turn turn(*this);
  PeerQueues& queues = peers_[peer];
  if (!queues.receive.has_line() || queues.queued != 0 || matcher_.oldest_wildcard() != nullptr) return false;
  const shm::LaneLine& line = queues.receive.next();
  const std::uint64_t head = line.head;
  const std::uint64_t length = head & ((1U << 20U) - 1);
  if (length > bytes || length > kShort || head != head_of(MessageType::kEager, tag, dtype, length)) return false;
  const auto payload = static_cast<std::uint32_t>(length);
  if (payload <= shm::kInlineBytes) {
    copy_inline(data, line.payload.data(), payload);
  } else {
    copy_bytes(data, queues.receive.cell(payload), payload, false);
    queues.receive.release_cell(payload);
  }
  if (queues.receive.release()) shm::wake_if_parked(*queues.receive.peer);
  received = length;
  return true;
}

bool PointToPoint::stirs(std::uint32_t peer) { return peers_[peer].receive.stirs(); }

// --------------------------------------------------------------------------------------------- operations

void PointToPoint::post(Transfer& op) {
  const Turn turn(*this);
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  if (op.sends) {
    peers_[op.peer].outgoing.push_back(&op);
    return;
  }
  UnexpectedMessage* const message = matcher_.post(op);
  if (message == nullptr) {
    if (!op.wanted.any_source) ++peers_[op.wanted.source].queued;
    return;
  }
  PeerQueues& queues = peers_[message->source];
  KeptMessage* const came = unkeep(*message);
  matched(op, came->source, came->tag);
  deliver(queues, op, *came, came->payload.data());
  recycle(came);
}

bool PointToPoint::withdraw(Transfer& op) {
  const Turn turn(*this);
  if (op.ended.load(std::memory_order_relaxed)) return false;
  bool shown = false;
  if (Matcher::posted(op)) {
    matcher_.withdraw(op);
    if (!op.wanted.any_source) --peers_[op.wanted.source].queued;
  } else {
    PeerQueues& queues = peers_[op.peer];
    queues.outgoing.erase(std::remove(queues.outgoing.begin(), queues.outgoing.end(), &op), queues.outgoing.end());
    shown = erase(queues.sending, &op) || erase(queues.receiving, &op);
  }
  end(op);
  return shown;
}

bool PointToPoint::progress(std::uint32_t peer) {
  const Turn turn(*this);
  return advance(peers_[peer]);
}

bool PointToPoint::progress_all(std::uint32_t polled) {
  const Turn turn(*this);
  const auto size = static_cast<std::uint32_t>(peers_.size());
  bool any = false;
  for (std::uint32_t i = std::min(polled, size); i != 0; --i) {
    PeerQueues& queues = peers_[next_poll_];
    next_poll_ = next_poll_ + 1 == size ? 0 : next_poll_ + 1;
    if (due(queues)) any = advance(queues) || any;
  }
  return any;
}

std::optional<MessageStatus> PointToPoint::look_for(const Wanted& wanted) const {
  const Turn turn(*this);
  const UnexpectedMessage* const message = matcher_.find(wanted);
  if (message == nullptr) return std::nullopt;
  const auto& came = static_cast<const KeptMessage&>(*message);
  return MessageStatus{came.source, came.tag, came.bytes, came.dtype};
}

std::string PointToPoint::unexpected_text() const {
  const Turn turn(*this);
  return matcher_.unexpected_text();
}

std::uint64_t PointToPoint::kept() const {
  const Turn turn(*this);
  return kept_;
}

/// Whether there may be something to do for a peer.
bool PointToPoint::due(const PeerQueues& queues) {
  return queues.receive.has_line() || queues.answers.has_line() || !queues.outgoing.empty() ||
         !queues.sending.empty() || !queues.receiving.empty() || !queues.unanswered.empty();
}

bool PointToPoint::advance(PeerQueues& queues) {
  bool any = flush_answers(queues);
  while (!queues.outgoing.empty() && begin_send(queues, *queues.outgoing.front())) {
    queues.outgoing.pop_front();
    any = true;
  }
  any = take_answers(queues, queues.peer) || any;
  any = take_lines(queues, queues.peer) || any;
  any = advance_sends(queues) || any;
  any = advance_receives(queues) || any;
  return any;
}

/// Puts a send on its lane; false if there is no room yet.
bool PointToPoint::begin_send(PeerQueues& queues, Transfer& op) {
  if (queues.send.full) queues.send.look();
  if (op.bytes <= short_bytes_ && !queues.send.full) {
    if (!put_line(queues, queues.send, {MessageType::kEager, op.tag, op.dtype, 0}, op.data, op.bytes)) return false;
    end(op);
    return true;
  }
  const bool by_copy = may_copy(op.peer, op.bytes);
  const std::array<std::uint64_t, 3> where = {op.bytes, address_of(op.data, op.bytes, by_copy), by_copy ? 1U : 0U};
  op.id = queues.next_id;
  if (!put_line(queues, queues.send, {MessageType::kRequest, op.tag, op.dtype, op.id},
                reinterpret_cast<const std::byte*>(where.data()), sizeof where)) {
    return false;
  }
  ++queues.next_id;
  queues.sending.push_back(&op);
  return true;
}

bool PointToPoint::take_lines(PeerQueues& queues, std::uint32_t peer) {
  bool any = false;
  // So many at a time: a sender that never stops does not keep this rank from the others.
  for (std::uint32_t line_count = 0; line_count < shm::kLaneLines && queues.receive.has_line();
       ++line_count, any = true) {
    const shm::LaneLine& line = queues.receive.next();
    const std::uint64_t head = line.head;
    const std::uint64_t flag = line.flag.load(std::memory_order_relaxed);
    if (!well_formed_message_line({head, flag})) corrupt(peer, "reserved bits are set");
    const MessageLine message = line_of(head, flag);
    const std::byte* payload = line.payload.data();
    const bool in_cells = message.bytes > shm::kInlineBytes;
    if (in_cells) {
      payload = queues.receive.cell(message.bytes);
      if (payload == nullptr) corrupt(peer, "its length is beyond all cells");
    }
    switch (message.type) {
      case MessageType::kEager:
      case MessageType::kRequest:
        take_message(queues, message, payload);
        break;
      case MessageType::kControl: {
        std::array<std::uint64_t, 2> part{};
        if (message.bytes != sizeof part) corrupt(peer, "a piece announced at another length");
        std::memcpy(part.data(), payload, sizeof part);
        Transfer* op = find(queues.receiving, message.id);
        if (op == nullptr) break;  // its receive was withdrawn
        if (part[0] > part[1] || part[1] > op->received) corrupt(peer, "a piece beyond the message");
        op->arriving = {part[0], part[1]};
        break;
      }
      case MessageType::kWrite: {
        Transfer* op = find(queues.receiving, message.id);
        if (op == nullptr) break;  // its receive was withdrawn
        Transfer::Part& part = op->arriving;
        if (message.bytes > part.until - part.from) corrupt(peer, "a piece too many");
        copy_bytes(op->data + part.from, payload, message.bytes, false);
        part.from += message.bytes;
        // What this rank was to copy ends where the message does. The sender's own part may come before or after it.
        if (part.from == op->until && !op->remote.there()) op->own_done = true;
        break;
      }
      case MessageType::kDone: {
        Transfer* op = find(queues.receiving, message.id);
        if (op != nullptr) op->peer_done = true;
        break;
      }
      default:
        corrupt(peer, "its type is not one of a message");
    }
    if (in_cells) queues.receive.release_cell(message.bytes);
    if (queues.receive.release()) shm::wake_if_parked(*queues.receive.peer);
  }
  return any;
}

/// A message has come, or one is announced.
void PointToPoint::take_message(PeerQueues& queues, const MessageLine& message, const std::byte* payload) {
  KeptMessage came;
  came.source = queues.peer;
  came.tag = message.tag;
  came.dtype = message.dtype;
  came.bytes = message.bytes;
  if (message.type == MessageType::kRequest) {
    std::array<std::uint64_t, 3> where{};
    if (message.bytes != sizeof where) corrupt(queues.peer, "an announcement of another length");
    std::memcpy(where.data(), payload, sizeof where);
    came.announced = true;
    came.id = message.id;
    came.bytes = where[0];
    came.address = where[1];
    came.may_copy = where[2] != 0;
  }
  PostedReceive* const receive = matcher_.arrive(queues.peer, message.tag);
  if (receive == nullptr) {
    keep(queues, came, payload);
    return;
  }
  auto& op = static_cast<Transfer&>(*receive);
  if (!op.wanted.any_source) --queues.queued;
  matched(op, queues.peer, message.tag);
  deliver(queues, op, came, payload);
}

void PointToPoint::keep(PeerQueues& queues, const KeptMessage& came, const std::byte* payload) {
  if (free_messages_.empty()) free_messages_.push_back(&messages_.emplace_back());
  KeptMessage& kept = *free_messages_.back();
  kept = came;
  if (!came.announced) kept.payload.assign(payload, payload + came.bytes);
  free_messages_.pop_back();
  matcher_.keep(kept);
  ++queues.queued;
  kept_ += kept.cost();
  if (kept_ > most_kept_ && !queues.full) {
    queues.full = true;
    ++full_;
    queues.receive.tail->full.store(1, std::memory_order_relaxed);
  }
}

/// A message that is not kept any longer; to be recycled.
PointToPoint::KeptMessage* PointToPoint::unkeep(UnexpectedMessage& message) {
  auto& came = static_cast<KeptMessage&>(message);
  --peers_[came.source].queued;
  kept_ -= came.cost();
  if (full_ != 0 && kept_ <= most_kept_ / 2) {
    for (PeerQueues& queues : peers_) {
      if (!queues.full) continue;
      queues.full = false;
      queues.receive.tail->full.store(0, std::memory_order_relaxed);
    }
    full_ = 0;
  }
  return &came;
}

void PointToPoint::recycle(KeptMessage* came) {
  came->payload = {};
  free_messages_.push_back(came);
}

/// A receive has its message. What it named itself stays untouched: its owner reads that meanwhile.
void PointToPoint::matched(Transfer& op, std::uint32_t source, std::uint32_t tag) {
  if (op.wanted.any_source) op.peer = source;
  if (op.wanted.any_tag) op.tag = tag;
  op.matched.store(true, std::memory_order_release);
}

/// Whether a message cannot be what a receive takes; the receive then has its error.
bool PointToPoint::refuse_if_wrong(Transfer& op, Datatype dtype, std::uint64_t bytes) {
  if (dtype != op.dtype) {
    op.code = ErrorCode::kMismatchedCall;
    op.text =
        "rank " + std::to_string(op.peer) + " sent " + name_of(dtype) + "; the receive is of " + name_of(op.dtype);
    return true;
  }
  if (bytes > op.bytes) {
    op.code = ErrorCode::kTruncated;
    op.text = "rank " + std::to_string(op.peer) + " sent " + std::to_string(bytes) +
              " bytes; the receive takes at most " + std::to_string(op.bytes);
    return true;
  }
  return false;
}

void PointToPoint::deliver(PeerQueues& queues, Transfer& op, const KeptMessage& came, const std::byte* payload) {
  if (refuse_if_wrong(op, came.dtype, came.bytes)) {
    if (came.announced) {
      answer(queues, MessageType::kControl, came.id, static_cast<std::uint64_t>(op.code), op.bytes);
    }
    end(op);
    return;
  }
  op.received = came.bytes;
  if (!came.announced) {
    copy_bytes(op.data, payload, came.bytes, false);
    end(op);
    return;
  }
  if (came.bytes == 0) {  // nothing has to travel
    answer(queues, MessageType::kDone, came.id, 0, 0);
    end(op);
    return;
  }
  accept_long(queues, op, came);
}

/// Decides how a long message travels, and tells the sender.
void PointToPoint::accept_long(PeerQueues& queues, Transfer& op, const KeptMessage& came) {
  const std::uint64_t bytes = came.bytes;
  const bool by_copy = came.may_copy && may_copy(queues.peer, bytes);
  const std::uint64_t own = address_of(op.data, bytes, by_copy);
  op.remote = reach(came.address, bytes, by_copy);
  op.id = came.id;
  op.from = 0;
  op.until = bytes;
  op.copies = op.remote.there();
  if (op.copies && own != Reach::kNone) {
    // Each end copies one half; whole lines, so that both never write to one.
    op.from = bytes / 2 / shm::kLineBytes * shm::kLineBytes;
    answer(queues, MessageType::kGrant, op.id, own, op.from);
  } else if (op.copies) {
    op.peer_done = true;  // has nothing to do
  } else if (own != Reach::kNone) {
    op.own_done = true;
    answer(queues, MessageType::kGrant, op.id, own, bytes);
  } else {
    await_stream(queues, op);
  }
  queues.receiving.push_back(&op);
}

/// Has the sender stream what this rank does not copy, or cannot.
void PointToPoint::await_stream(PeerQueues& queues, Transfer& op) {
  // Without a part of its own, this rank has nothing to tell the sender afterwards.
  if (op.from == 0) {
    op.copies = false;
    op.peer_done = true;
  }
  // All but a whole message is announced by the sender; a part of its own may be on its way meanwhile.
  if (op.from == 0) op.arriving = {0, op.until};
  op.remote = {};
  answer(queues, MessageType::kGrant, op.id, Reach::kNone, op.from);
}

/// Copies the next piece of this rank's part. False if the kernel refuses it.
bool PointToPoint::copy_piece(PeerQueues& queues, Transfer& op) {
  const std::uint64_t bytes = std::min(kBlock, op.until - op.from);
  if (bytes == 0) return true;
  if (!guard_.enter()) throw AccessBanned{};
  bool done = true;
  std::byte* const own = op.data + op.from;
  if (op.remote.mapped != nullptr) {
    if (op.sends) {
      store_for(queues, op.remote.mapped + op.from, own, bytes);
    } else {
      copy_bytes(own, op.remote.mapped + op.from, bytes, false);
    }
  } else {
    const std::uint32_t endpoint = endpoints_[queues.peer];
    const std::uint64_t address = op.remote.address + op.from;
    done =
        (op.sends ? copy_->store(endpoint, address, own, bytes) : copy_->fetch(endpoint, address, own, bytes)).done();
  }
  guard_.leave();
  if (done) op.from += bytes;
  return done;
}

bool PointToPoint::advance_receives(PeerQueues& queues) {
  bool any = false;
  for (std::size_t i = 0; i < queues.receiving.size();) {
    Transfer& op = *queues.receiving[i];
    if (op.remote.there() && !op.own_done) {
      if (!copy_piece(queues, op)) {
        await_stream(queues, op);
      } else {
        op.own_done = op.from == op.until;
      }
      any = true;
    }
    if (op.copies && op.own_done && !op.answered) {
      op.answered = true;
      answer(queues, MessageType::kDone, op.id, 0, 0);
    }
    if (op.own_done && op.peer_done) {
      queues.receiving.erase(queues.receiving.begin() + static_cast<std::ptrdiff_t>(i));
      end(op);
      any = true;
    } else {
      ++i;
    }
  }
  return any;
}

// ------------------------------------------------------------------------------------------------ answers

void PointToPoint::answer(PeerQueues& queues, MessageType type, std::uint32_t id, std::uint64_t first,
                          std::uint64_t second) {
  queues.unanswered.push_back({static_cast<std::uint64_t>(type) << 32U | id, first, second});
  flush_answers(queues);
}

bool PointToPoint::flush_answers(PeerQueues& queues) {
  bool any = false;
  while (!queues.unanswered.empty()) {
    const auto& [what, first, second] = queues.unanswered.front();
    const std::array<std::uint64_t, 2> words = {first, second};
    if (!put_line(queues, queues.answer,
                  {static_cast<MessageType>(what >> 32U), 0, Datatype::kByte, static_cast<std::uint32_t>(what)},
                  reinterpret_cast<const std::byte*>(words.data()), sizeof words)) {
      break;
    }
    queues.unanswered.pop_front();
    any = true;
  }
  return any;
}

bool PointToPoint::take_answers(PeerQueues& queues, std::uint32_t peer) {
  bool any = false;
  for (; queues.answers.has_line(); any = true) {
    const shm::LaneLine& line = queues.answers.next();
    const MessageLine message = line_of(line.head, line.flag.load(std::memory_order_relaxed));
    std::array<std::uint64_t, 2> words{};
    if (message.bytes != sizeof words) corrupt(peer, "an answer of another length");
    std::memcpy(words.data(), line.payload.data(), sizeof words);
    if (queues.answers.release()) shm::wake_if_parked(*queues.answers.peer);
    Transfer* op = find(queues.sending, message.id);
    if (op == nullptr) continue;  // its send was withdrawn
    switch (message.type) {
      case MessageType::kGrant:
        take_grant(queues, *op, words[0], words[1]);
        break;
      case MessageType::kDone:
        op->peer_done = true;
        if (!op->copies) op->own_done = true;  // the receiver has read all of it
        break;
      case MessageType::kControl:
        op->code = words[0] == static_cast<std::uint64_t>(ErrorCode::kTruncated) ? ErrorCode::kTruncated
                                                                                 : ErrorCode::kMismatchedCall;
        op->text = "rank " + std::to_string(peer) + " refused it: " +
                   (op->code == ErrorCode::kTruncated
                        ? "its receive takes at most " + std::to_string(words[1]) + " bytes, the message has " +
                              std::to_string(op->bytes)
                        : std::string("its receive is of another datatype than ") + name_of(op->dtype));
        op->own_done = op->peer_done = true;
        op->streams = 0;
        break;
      default:
        corrupt(peer, "its type is not one of an answer");
    }
  }
  return any;
}

/// The receiver wants this rank to write the first `bytes`, or to stream what follows them.
void PointToPoint::take_grant(PeerQueues& queues, Transfer& op, std::uint64_t word, std::uint64_t bytes) {
  if (bytes > op.bytes) corrupt(queues.peer, "a grant beyond the message");
  if (word == Reach::kNone) {
    if (op.asked) corrupt(queues.peer, "a grant too many");
    op.asked = true;
    op.parts[op.streams++] = {bytes, op.bytes, bytes == 0, false};
    if (!op.copies && bytes == 0) op.peer_done = true;  // nothing more comes
    if (!op.copies) op.own_done = true;
    return;
  }
  if (op.copies || op.streams != 0) corrupt(queues.peer, "a second grant of memory");
  op.remote = reach(word, op.bytes, copy_ != nullptr && copy_->reaches(endpoints_[queues.peer]));
  if (!op.remote.there()) corrupt(queues.peer, "a grant of memory that is none");
  op.copies = true;
  op.from = 0;
  op.until = bytes;
  op.peer_done = bytes == op.bytes;  // a peer that writes all need not hear more
}

/// Sends the next piece of the first part that goes through cells; true if it did.
bool PointToPoint::stream(PeerQueues& queues, Transfer& op) {
  Transfer::Part& part = op.parts[0];
  if (!part.announced) {
    const std::array<std::uint64_t, 2> where = {part.from, part.until};
    if (!put_line(queues, queues.send, {MessageType::kControl, 0, op.dtype, op.id},
                  reinterpret_cast<const std::byte*>(where.data()), sizeof where)) {
      return false;
    }
    part.announced = true;
  }
  const std::uint64_t bytes =
      std::min<std::uint64_t>(shm::segment_bytes_for(queues.send.cell_bytes), part.until - part.from);
  if (bytes != 0) {
    if (!put_line(queues, queues.send, {MessageType::kWrite, 0, op.dtype, op.id}, op.data + part.from, bytes))
      return false;
    part.from += bytes;
  }
  if (part.from != part.until) return true;
  if (part.own) {
    if (!put_line(queues, queues.send, {MessageType::kDone, 0, op.dtype, op.id}, nullptr, 0)) return false;
    op.own_done = true;
  }
  part = op.parts[1];
  --op.streams;
  return true;
}

bool PointToPoint::advance_sends(PeerQueues& queues) {
  bool any = false;
  for (std::size_t i = 0; i < queues.sending.size();) {
    Transfer& op = *queues.sending[i];
    if (op.remote.there() && !op.own_done) {
      const std::uint64_t before = op.from;
      if (!copy_piece(queues, op)) {
        // A grant of the receiver's part may stand there already.
        op.parts[op.streams++] = {op.from, op.until, false, true};
        op.remote = {};
        any = true;
      } else if (op.from == op.until &&
                 put_line(queues, queues.send, {MessageType::kDone, 0, op.dtype, op.id}, nullptr, 0)) {
        op.own_done = true;
        any = true;
      }
      any = any || op.from != before;
    } else if (op.streams != 0) {
      any = stream(queues, op) || any;
    }
    if (op.own_done && op.peer_done && op.streams == 0) {
      queues.sending.erase(queues.sending.begin() + static_cast<std::ptrdiff_t>(i));
      end(op);
      any = true;
    } else {
      ++i;
    }
  }
  return any;
}

}  // namespace unisono::cclo
