#include "engine/mail.hpp"

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
constexpr std::uint64_t kBlock = shm::KernelCopy::kPiece;

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

Mail::Mail(const MailWays& ways, std::uint32_t size)
    : segment_(ways.segment),
      copy_(ways.copy),
      endpoints_(ways.endpoints),
      traffic_(ways.traffic),
      one_process_(ways.one_process),
      short_bytes_(std::min<std::uint64_t>(kShort, ways.eager_limit)),
      boxes_(size) {
  guard_ = ways.lanes.touch_guard();
  for (std::uint32_t peer = 0; peer < size; ++peer) {
    Box& box = boxes_[peer];
    box.peer = peer;
    box.send = ways.lanes.sender(shm::LaneSpace::kPointToPoint, peer);
    box.receive = ways.lanes.receiver(shm::LaneSpace::kPointToPoint, peer);
    box.answer = ways.lanes.sender(shm::LaneSpace::kAnswers, peer);
    box.answers = ways.lanes.receiver(shm::LaneSpace::kAnswers, peer);
  }
}

/// Whether the kernel may copy a message of a peer: it can, and that is faster.
bool Mail::may_copy(std::uint32_t peer, std::uint64_t bytes) const {
  return copy_ != nullptr && bytes >= segment_->geometry().copy_from.one_way && copy_->reaches(endpoints_[peer]);
}

/// The word that says where a buffer is; `by_copy`: the peer may be shown ordinary memory.
std::uint64_t Mail::address_of(const std::byte* data, std::uint64_t bytes, bool by_copy) const {
  if (one_process_) return reinterpret_cast<std::uintptr_t>(data);
  const std::uint64_t offset = segment_->offset_of(data, bytes);
  if (offset != 0) return offset;
  return by_copy ? Reach::copied(data) : Reach::kNone;
}

MailOp::Far Mail::reach(std::uint64_t word, std::uint64_t bytes, bool by_copy) const {
  if (word == Reach::kNone) return {};
  if (one_process_)
    return {reinterpret_cast<std::byte*>(word), 0};  // NOLINT(performance-no-int-to-ptr): a thread's own
  if (Reach::by_copy(word)) return {nullptr, by_copy ? Reach::address(word) : 0};
  return {segment_->at(word, bytes), 0};
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
  const bool by_copy = may_copy(op.peer, op.bytes);
  const std::array<std::uint64_t, 3> where = {op.bytes, address_of(op.data, op.bytes, by_copy), by_copy ? 1U : 0U};
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
          std::array<std::uint64_t, 3> where{};
          if (mail.bytes != sizeof where) corrupt(peer, "an announcement of another length");
          std::memcpy(where.data(), payload, sizeof where);
          letter.announced = true;
          letter.id = mail.id;
          letter.bytes = where[0];
          letter.address = where[1];
          letter.may_copy = where[2] != 0;
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
      case MessageType::kControl: {
        std::array<std::uint64_t, 2> part{};
        if (mail.bytes != sizeof part) corrupt(peer, "a piece announced at another length");
        std::memcpy(part.data(), payload, sizeof part);
        MailOp* op = find(box.receiving, mail.id);
        if (op == nullptr) break;  // its receive was withdrawn
        if (part[0] > part[1] || part[1] > op->received) corrupt(peer, "a piece beyond the message");
        op->arriving = {part[0], part[1]};
        break;
      }
      case MessageType::kWrite: {
        MailOp* op = find(box.receiving, mail.id);
        if (op == nullptr) break;  // its receive was withdrawn
        MailOp::Part& part = op->arriving;
        if (mail.bytes > part.until - part.from) corrupt(peer, "a piece too many");
        copy_bytes(op->data + part.from, payload, mail.bytes, false);
        part.from += mail.bytes;
        // What this rank was to copy ends where the message does. The sender's own part may come before or after it.
        if (part.from == op->until && !op->remote.there()) op->own_done = true;
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
  const bool by_copy = letter.may_copy && may_copy(box.peer, bytes);
  const std::uint64_t own = address_of(op.data, bytes, by_copy);
  op.remote = reach(letter.address, bytes, by_copy);
  op.id = letter.id;
  op.from = 0;
  op.until = bytes;
  op.copies = op.remote.there();
  if (op.copies && own != Reach::kNone) {
    // Each end copies one half; whole lines, so that both never write to one.
    op.from = bytes / 2 / shm::kLineBytes * shm::kLineBytes;
    answer(box, MessageType::kGrant, op.id, own, op.from);
  } else if (op.copies) {
    op.peer_done = true;  // has nothing to do
  } else if (own != Reach::kNone) {
    op.own_done = true;
    answer(box, MessageType::kGrant, op.id, own, bytes);
  } else {
    await_stream(box, op);
  }
  box.receiving.push_back(&op);
}

/// Has the sender stream what this rank does not copy, or cannot.
void Mail::await_stream(Box& box, MailOp& op) {
  // Without a part of its own, this rank has nothing to tell the sender afterwards.
  if (op.from == 0) {
    op.copies = false;
    op.peer_done = true;
  }
  // All but a whole message is announced by the sender; a part of its own may be on its way meanwhile.
  if (op.from == 0) op.arriving = {0, op.until};
  op.remote = {};
  answer(box, MessageType::kGrant, op.id, Reach::kNone, op.from);
}

/// Copies the next piece of this rank's part. False if the kernel refuses it.
bool Mail::copy_piece(Box& box, MailOp& op) {
  const std::uint64_t bytes = std::min(kBlock, op.until - op.from);
  if (bytes == 0) return true;
  if (!guard_.enter()) throw AccessBanned{};
  bool done = true;
  std::byte* const own = op.data + op.from;
  if (op.remote.mapped != nullptr) {
    if (op.sends) {
      copy_bytes(op.remote.mapped + op.from, own, bytes, false);
    } else {
      copy_bytes(own, op.remote.mapped + op.from, bytes, false);
    }
  } else {
    const std::uint32_t endpoint = endpoints_[box.peer];
    const std::uint64_t address = op.remote.address + op.from;
    done =
        (op.sends ? copy_->store(endpoint, address, own, bytes) : copy_->fetch(endpoint, address, own, bytes)).done();
  }
  guard_.leave();
  if (done) op.from += bytes;
  return done;
}

bool Mail::advance_receives(Box& box) {
  bool any = false;
  for (std::size_t i = 0; i < box.receiving.size();) {
    MailOp& op = *box.receiving[i];
    if (op.remote.there() && !op.own_done) {
      if (!copy_piece(box, op)) {
        await_stream(box, op);
      } else {
        op.own_done = op.from == op.until;
      }
      any = true;
    }
    if (op.copies && op.own_done && !op.answered) {
      op.answered = true;
      answer(box, MessageType::kDone, op.id, 0, 0);
    }
    if (op.own_done && op.peer_done) {
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
        take_grant(box, *op, words[0], words[1]);
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
void Mail::take_grant(Box& box, MailOp& op, std::uint64_t word, std::uint64_t bytes) {
  if (bytes > op.bytes) corrupt(box.peer, "a grant beyond the message");
  if (word == Reach::kNone) {
    if (op.asked) corrupt(box.peer, "a grant too many");
    op.asked = true;
    op.parts[op.streams++] = {bytes, op.bytes, bytes == 0, false};
    if (!op.copies && bytes == 0) op.peer_done = true;  // nothing more comes
    if (!op.copies) op.own_done = true;
    return;
  }
  if (op.copies || op.streams != 0) corrupt(box.peer, "a second grant of memory");
  op.remote = reach(word, op.bytes, copy_ != nullptr && copy_->reaches(endpoints_[box.peer]));
  if (!op.remote.there()) corrupt(box.peer, "a grant of memory that is none");
  op.copies = true;
  op.from = 0;
  op.until = bytes;
  op.peer_done = bytes == op.bytes;  // who writes all need not hear more
}

/// Sends the next piece of the first part that goes through cells; true if it did.
bool Mail::stream(Box& box, MailOp& op) {
  MailOp::Part& part = op.parts[0];
  if (!part.announced) {
    const std::array<std::uint64_t, 2> where = {part.from, part.until};
    if (!put_line(box.send, MessageType::kControl, 0, op.dtype, op.id, reinterpret_cast<const std::byte*>(where.data()),
                  sizeof where)) {
      return false;
    }
    part.announced = true;
  }
  const std::uint64_t bytes =
      std::min<std::uint64_t>(shm::segment_bytes_for(box.send.cell_bytes), part.until - part.from);
  if (bytes != 0) {
    if (!put_line(box.send, MessageType::kWrite, 0, op.dtype, op.id, op.data + part.from, bytes)) return false;
    part.from += bytes;
  }
  if (part.from != part.until) return true;
  if (part.own) {
    if (!put_line(box.send, MessageType::kDone, 0, op.dtype, op.id, nullptr, 0)) return false;
    op.own_done = true;
  }
  part = op.parts[1];
  --op.streams;
  return true;
}

bool Mail::advance_sends(Box& box) {
  bool any = false;
  for (std::size_t i = 0; i < box.sending.size();) {
    MailOp& op = *box.sending[i];
    if (op.remote.there() && !op.own_done) {
      const std::uint64_t before = op.from;
      if (!copy_piece(box, op)) {
        // A grant of the receiver's part may stand there already.
        op.parts[op.streams++] = {op.from, op.until, false, true};
        op.remote = {};
        any = true;
      } else if (op.from == op.until && put_line(box.send, MessageType::kDone, 0, op.dtype, op.id, nullptr, 0)) {
        op.own_done = true;
        any = true;
      }
      any = any || op.from != before;
    } else if (op.streams != 0) {
      any = stream(box, op) || any;
    }
    if (op.own_done && op.peer_done && op.streams == 0) {
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
