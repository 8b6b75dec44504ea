#include "engine/mail.hpp"

#include <sys/single_threaded.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/kernels.hpp"
#include "engine/lane_ports.hpp"
#include "network/shm/parking.hpp"

namespace unisono::cclo {
namespace {

constexpr std::uint64_t kUnreachable = ~std::uint64_t{0};
/// Bytes that are copied between two looks at everything else.
constexpr std::uint64_t kBlock = std::uint64_t{256} << 10U;

std::uint64_t head_of(MessageType type, std::uint32_t tag, Datatype dtype, std::uint64_t bytes) {
  return bytes | static_cast<std::uint64_t>(dtype) << 20U | static_cast<std::uint64_t>(type) << 26U |
         std::uint64_t{tag} << 30U;
}
static_assert(encode(MailLine{.bytes = 5, .dtype = Datatype::kFp32, .type = MessageType::kWrite, .tag = 9})[0] ==
              (5U | std::uint64_t{static_cast<unsigned>(Datatype::kFp32)} << 20U |
               std::uint64_t{static_cast<unsigned>(MessageType::kWrite)} << 26U | std::uint64_t{9} << 30U));

MailLine line_of(std::uint64_t head, std::uint64_t flag) { return decode_mail_line({head, flag}); }

template <class T>
void erase(std::vector<T*>& list, T* item) {
  list.erase(std::remove(list.begin(), list.end(), item), list.end());
}

MailOp* find(const std::vector<MailOp*>& list, std::uint32_t id) {
  for (MailOp* op : list) {
    if (op->id == id) return op;
  }
  return nullptr;
}

[[noreturn]] void corrupt(std::uint32_t peer, const char* what) {
  throw Error(ErrorCode::kCorruptMessage,
              "what rank " + std::to_string(peer) + " put into shared memory is no message: " + what);
}

}  // namespace

/// The flag. Held for steps that never wait, so that whoever finds it taken may spin.
class Mail::Turn {
 public:
  explicit Turn(Mail& of) : busy_(of.busy_), alone_(__libc_single_threaded != 0) {
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

Mail::Mail(const shm::LaneSet& lanes, std::shared_ptr<shm::Segment> segment, LaneTraffic traffic, bool one_process,
           std::uint32_t rank, std::uint32_t size, std::uint32_t eager_limit)
    : segment_(std::move(segment)),
      traffic_(traffic),
      one_process_(one_process),
      rank_(rank),
      short_bytes_(std::min<std::uint64_t>(kShort, eager_limit)),
      boxes_(size) {
  guard_ = lanes.touch_guard();
  for (std::uint32_t peer = 0; peer < size; ++peer) {
    Box& box = boxes_[peer];
    box.send = lanes.sender(shm::LaneSpace::kPointToPoint, peer);
    box.receive = lanes.receiver(shm::LaneSpace::kPointToPoint, peer);
    box.answer = lanes.sender(shm::LaneSpace::kAnswers, peer);
    box.answers = lanes.receiver(shm::LaneSpace::kAnswers, peer);
  }
}

std::uint64_t Mail::address_of(const std::byte* data, std::uint64_t bytes) const {
  if (one_process_) return reinterpret_cast<std::uintptr_t>(data);
  const std::uint64_t offset = segment_->offset_of(data, bytes);
  return offset == 0 ? kUnreachable : offset;
}

std::byte* Mail::reach(std::uint64_t address, std::uint64_t bytes) const {
  if (address == kUnreachable) return nullptr;
  if (one_process_) return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): a thread's own
  return segment_->at(address, bytes);
}

/// Publishes one line; false if there is no room for it.
bool Mail::put_line(shm::LaneSender& lane, MessageType type, std::uint32_t tag, Datatype dtype, std::uint32_t id,
                    const std::byte* data, std::uint64_t bytes) {
  if (!lane.has_line()) return false;
  const auto payload = static_cast<std::uint32_t>(bytes);
  if (payload <= shm::kInlineBytes) {
    copy_inline(lane.next().payload.data(), data, payload);
  } else {
    std::byte* cell = lane.cell(payload);
    if (cell == nullptr) return false;
    copy_bytes(cell, data, payload, false);
    lane.take_cell(payload);
  }
  lane.publish(head_of(type, tag, dtype, bytes), id);
  shm::wake_if_parked(*lane.peer);
  return true;
}

// ----------------------------------------------------------------------------------------- the short way

bool Mail::try_send(std::uint32_t peer, std::uint32_t tag, Datatype dtype, const std::byte* data, std::uint64_t bytes) {
  if (bytes > short_bytes_) return false;
  const Turn turn(*this);
  Box& box = boxes_[peer];
  if (!box.outgoing.empty() || !put_line(box.send, MessageType::kEager, tag, dtype, 0, data, bytes)) return false;
  traffic_.add({1, bytes, 0});
  return true;
}

bool Mail::try_receive(std::uint32_t peer, std::uint32_t tag, Datatype dtype, std::byte* data, std::uint64_t bytes,
                       std::uint64_t& received) {
  const Turn turn(*this);
  Box& box = boxes_[peer];
  if (!box.receive.has_line() || !box.letters.empty() || !box.posted.empty()) return false;
  const shm::LaneLine& line = box.receive.next();
  const std::uint64_t head = line.head;
  const std::uint64_t length = head & ((1U << 20U) - 1);
  if (length > bytes || length > kShort || head != head_of(MessageType::kEager, tag, dtype, length)) return false;
  const auto payload = static_cast<std::uint32_t>(length);
  if (payload <= shm::kInlineBytes) {
    copy_inline(data, line.payload.data(), payload);
  } else {
    copy_bytes(data, box.receive.cell(payload), payload, false);
    box.receive.release_cell(payload);
  }
  if (box.receive.release()) shm::wake_if_parked(*box.receive.peer);
  received = length;
  return true;
}

bool Mail::stirs(std::uint32_t peer) const {
  const Box& box = boxes_[peer];
  return box.receive.has_line();
}

// --------------------------------------------------------------------------------------------- operations

void Mail::post(MailOp& op) {
  const Turn turn(*this);
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  Box& box = boxes_[op.peer];
  if (op.sends) {
    box.outgoing.push_back(&op);
    return;
  }
  const auto letter = std::find_if(box.letters.begin(), box.letters.end(),
                                   [&](const Letter& candidate) { return candidate.tag == op.tag; });
  if (letter == box.letters.end()) {
    box.posted.push_back(&op);
    return;
  }
  Letter taken = std::move(*letter);
  box.letters.erase(letter);
  deliver(box, op, std::move(taken));
}

void Mail::withdraw(MailOp& op) {
  const Turn turn(*this);
  if (op.ended.load(std::memory_order_relaxed)) return;
  Box& box = boxes_[op.peer];
  box.outgoing.erase(std::remove(box.outgoing.begin(), box.outgoing.end(), &op), box.outgoing.end());
  erase(box.sending, &op);
  erase(box.posted, &op);
  erase(box.receiving, &op);
  end(op);
}

bool Mail::progress(std::uint32_t peer) {
  const Turn turn(*this);
  Box& box = boxes_[peer];
  bool any = flush_answers(box);
  while (!box.outgoing.empty() && begin_send(box, *box.outgoing.front())) {
    box.outgoing.pop_front();
    any = true;
  }
  any = take_answers(box, peer) || any;
  any = take_lines(box, peer) || any;
  any = advance_sends(box) || any;
  any = advance_receives(box) || any;
  return any;
}

bool Mail::progress() {
  bool any = false;
  for (std::uint32_t peer = 0; peer < boxes_.size(); ++peer) any = progress(peer) || any;
  return any;
}

/// Puts a send on its lane; false if there is no room yet.
bool Mail::begin_send(Box& box, MailOp& op) {
  if (op.bytes <= short_bytes_) {
    if (!put_line(box.send, MessageType::kEager, op.tag, op.dtype, 0, op.data, op.bytes)) return false;
    end(op);
    return true;
  }
  const std::array<std::uint64_t, 2> where = {op.bytes, address_of(op.data, op.bytes)};
  op.id = box.next_id;
  if (!put_line(box.send, MessageType::kRequest, op.tag, op.dtype, op.id,
                reinterpret_cast<const std::byte*>(where.data()), sizeof where)) {
    return false;
  }
  ++box.next_id;
  box.sending.push_back(&op);
  return true;
}

bool Mail::take_lines(Box& box, std::uint32_t peer) {
  bool any = false;
  for (; box.receive.has_line(); any = true) {
    const shm::LaneLine& line = box.receive.next();
    const std::uint64_t head = line.head;
    const std::uint64_t flag = line.flag.load(std::memory_order_relaxed);
    if (!well_formed_mail_line({head, flag})) corrupt(peer, "reserved bits are set");
    const MailLine mail = line_of(head, flag);
    const std::byte* payload = line.payload.data();
    const bool in_cells = mail.bytes > shm::kInlineBytes;
    if (in_cells) {
      payload = box.receive.cell(mail.bytes);
      if (payload == nullptr) corrupt(peer, "its length is beyond all cells");
    }
    switch (mail.type) {
      case MessageType::kEager:
      case MessageType::kRequest: {
        Letter letter;
        letter.tag = mail.tag;
        letter.dtype = mail.dtype;
        letter.bytes = mail.bytes;
        if (mail.type == MessageType::kRequest) {
          std::array<std::uint64_t, 2> where{};
          if (mail.bytes != sizeof where) corrupt(peer, "an announcement of another length");
          std::memcpy(where.data(), payload, sizeof where);
          letter.announced = true;
          letter.id = mail.id;
          letter.bytes = where[0];
          letter.address = where[1];
        }
        const auto receiver =
            std::find_if(box.posted.begin(), box.posted.end(), [&](const MailOp* op) { return op->tag == mail.tag; });
        if (receiver == box.posted.end()) {
          if (!letter.announced) letter.payload.assign(payload, payload + mail.bytes);
          box.letters.push_back(std::move(letter));
        } else {
          MailOp& op = **receiver;
          box.posted.erase(receiver);
          if (letter.announced) {
            deliver(box, op, std::move(letter));
          } else {
            if (!refuse_if_wrong(op, mail.tag, mail.dtype, mail.bytes)) {
              copy_bytes(op.data, payload, mail.bytes, false);
              op.received = mail.bytes;
            }
            end(op);
          }
        }
        break;
      }
      case MessageType::kWrite: {
        MailOp* op = find(box.receiving, mail.id);
        if (op == nullptr) break;  // its receive was withdrawn
        if (op->way != MailOp::Way::kStream || mail.bytes > op->until - op->from) corrupt(peer, "a piece too many");
        copy_bytes(op->data + op->from, payload, mail.bytes, false);
        op->from += mail.bytes;
        break;
      }
      case MessageType::kDone: {
        MailOp* op = find(box.receiving, mail.id);
        if (op != nullptr) op->peer_done = true;
        break;
      }
      default:
        corrupt(peer, "its type is not one of a message");
    }
    if (in_cells) box.receive.release_cell(mail.bytes);
    if (box.receive.release()) shm::wake_if_parked(*box.receive.peer);
  }
  return any;
}

/// Whether a message cannot be what a receive takes; the receive then has its error.
bool Mail::refuse_if_wrong(MailOp& op, std::uint32_t tag, Datatype dtype, std::uint64_t bytes) {
  static_cast<void>(tag);
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

void Mail::deliver(Box& box, MailOp& op, Letter&& letter) {
  if (refuse_if_wrong(op, letter.tag, letter.dtype, letter.bytes)) {
    if (letter.announced) {
      answer(box, MessageType::kControl, letter.id, static_cast<std::uint64_t>(op.code), op.bytes);
    }
    end(op);
    return;
  }
  op.received = letter.bytes;
  if (!letter.announced) {
    copy_bytes(op.data, letter.payload.data(), letter.bytes, false);
    end(op);
    return;
  }
  accept_long(box, op, letter);
}

/// Decides how a long message travels, and tells the sender.
void Mail::accept_long(Box& box, MailOp& op, const Letter& letter) {
  const std::uint64_t bytes = letter.bytes;
  const std::uint64_t own = address_of(op.data, bytes);
  op.remote = reach(letter.address, bytes);
  op.id = letter.id;
  op.from = 0;
  op.until = bytes;
  if (op.remote != nullptr) {
    op.way = MailOp::Way::kRead;
    if (own != kUnreachable) {
      // Each end copies one half; whole lines, so that both never write to one.
      op.from = bytes / 2 / shm::kLineBytes * shm::kLineBytes;
      answer(box, MessageType::kGrant, op.id, own, op.from);
    } else {
      op.peer_done = true;  // has nothing to do
    }
  } else if (own != kUnreachable) {
    op.way = MailOp::Way::kWrite;
    op.copied = true;
    answer(box, MessageType::kGrant, op.id, own, bytes);
  } else {
    op.way = MailOp::Way::kStream;
    op.peer_done = true;  // the last piece says it
    answer(box, MessageType::kGrant, op.id, kUnreachable, 0);
  }
  box.receiving.push_back(&op);
}

bool Mail::advance_receives(Box& box) {
  bool any = false;
  for (std::size_t i = 0; i < box.receiving.size();) {
    MailOp& op = *box.receiving[i];
    if (op.way == MailOp::Way::kRead && !op.copied) {
      const std::uint64_t bytes = std::min(kBlock, op.until - op.from);
      if (!guard_.enter()) throw AccessBanned{};
      copy_bytes(op.data + op.from, op.remote + op.from, bytes, false);
      guard_.leave();
      op.from += bytes;
      op.copied = op.from == op.until;
      any = true;
    }
    if (op.way == MailOp::Way::kStream) op.copied = op.from == op.until;
    if (op.way == MailOp::Way::kRead && op.copied && !op.answered) {
      op.answered = true;
      answer(box, MessageType::kDone, op.id, 0, 0);
    }
    if (op.copied && op.peer_done) {
      box.receiving.erase(box.receiving.begin() + static_cast<std::ptrdiff_t>(i));
      end(op);
      any = true;
    } else {
      ++i;
    }
  }
  return any;
}

// ------------------------------------------------------------------------------------------------ answers

void Mail::answer(Box& box, MessageType type, std::uint32_t id, std::uint64_t first, std::uint64_t second) {
  box.unanswered.push_back({static_cast<std::uint64_t>(type) << 32U | id, first, second});
  flush_answers(box);
}

bool Mail::flush_answers(Box& box) {
  bool any = false;
  while (!box.unanswered.empty()) {
    const auto& [what, first, second] = box.unanswered.front();
    const std::array<std::uint64_t, 2> words = {first, second};
    if (!put_line(box.answer, static_cast<MessageType>(what >> 32U), 0, Datatype::kByte,
                  static_cast<std::uint32_t>(what), reinterpret_cast<const std::byte*>(words.data()), sizeof words)) {
      break;
    }
    box.unanswered.pop_front();
    any = true;
  }
  return any;
}

bool Mail::take_answers(Box& box, std::uint32_t peer) {
  bool any = false;
  for (; box.answers.has_line(); any = true) {
    const shm::LaneLine& line = box.answers.next();
    const MailLine mail = line_of(line.head, line.flag.load(std::memory_order_relaxed));
    std::array<std::uint64_t, 2> words{};
    if (mail.bytes != sizeof words) corrupt(peer, "an answer of another length");
    std::memcpy(words.data(), line.payload.data(), sizeof words);
    if (box.answers.release()) shm::wake_if_parked(*box.answers.peer);
    MailOp* op = find(box.sending, mail.id);
    if (op == nullptr) continue;  // its send was withdrawn
    switch (mail.type) {
      case MessageType::kGrant:
        op->from = 0;
        if (words[0] == kUnreachable) {
          op->way = MailOp::Way::kStream;
          op->until = op->bytes;
          op->peer_done = true;  // nothing more comes
        } else {
          op->way = MailOp::Way::kWrite;
          op->until = words[1];
          op->remote = op->until <= op->bytes ? reach(words[0], op->bytes) : nullptr;
          if (op->remote == nullptr) corrupt(peer, "a grant of memory that is none");
          op->peer_done = op->until == op->bytes;  // who writes all need not hear more
        }
        break;
      case MessageType::kDone:
        op->peer_done = true;
        if (op->way == MailOp::Way::kNone) op->copied = true;  // the receiver has read all of it
        break;
      case MessageType::kControl:
        op->code = words[0] == static_cast<std::uint64_t>(ErrorCode::kTruncated) ? ErrorCode::kTruncated
                                                                                 : ErrorCode::kMismatchedCall;
        op->text = "rank " + std::to_string(peer) + " refused it: " +
                   (op->code == ErrorCode::kTruncated
                        ? "its receive takes at most " + std::to_string(words[1]) + " bytes, the message has " +
                              std::to_string(op->bytes)
                        : std::string("its receive is of another datatype than ") + name_of(op->dtype));
        op->copied = op->peer_done = true;
        break;
      default:
        corrupt(peer, "its type is not one of an answer");
    }
  }
  return any;
}

bool Mail::advance_sends(Box& box) {
  bool any = false;
  for (std::size_t i = 0; i < box.sending.size();) {
    MailOp& op = *box.sending[i];
    if (op.way == MailOp::Way::kWrite && !op.copied) {
      const std::uint64_t bytes = std::min(kBlock, op.until - op.from);
      if (!guard_.enter()) throw AccessBanned{};
      copy_bytes(op.remote + op.from, op.data + op.from, bytes, false);
      guard_.leave();
      op.from += bytes;
      any = true;
      if (op.from == op.until && put_line(box.send, MessageType::kDone, 0, op.dtype, op.id, nullptr, 0)) {
        op.copied = true;
      }
    } else if (op.way == MailOp::Way::kStream && !op.copied) {
      const std::uint64_t bytes =
          std::min<std::uint64_t>(shm::segment_bytes_for(box.send.cell_bytes), op.until - op.from);
      if (put_line(box.send, MessageType::kWrite, 0, op.dtype, op.id, op.data + op.from, bytes)) {
        op.from += bytes;
        op.copied = op.from == op.until;
        any = true;
      }
    }
    if (op.copied && op.peer_done) {
      box.sending.erase(box.sending.begin() + static_cast<std::ptrdiff_t>(i));
      end(op);
      any = true;
    } else {
      ++i;
    }
  }
  return any;
}

}  // namespace unisono::cclo
