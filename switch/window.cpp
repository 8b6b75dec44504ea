#include "switch/window.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/error.hpp"

namespace unisono::slots {
namespace {

[[noreturn]] void invalid(const std::string& text) { throw Error(ErrorCode::kInvalidArgument, text); }

}  // namespace

WindowShape Window::checked(WindowShape shape) {
  const std::string of = "the window of communicator " + std::to_string(shape.communicator) + ": ";
  if (!std::has_single_bit(shape.slots) || shape.slots > kMaxSlots) {
    invalid(of + std::to_string(shape.slots) + " slots; allowed is a power of two up to " + std::to_string(kMaxSlots));
  }
  if (shape.payload_bytes == 0 || shape.payload_bytes % 16 != 0) {
    invalid(of + std::to_string(shape.payload_bytes) + " bytes of payload; allowed is a multiple of 16 from 16 on");
  }
  if (shape.rounds_ahead == 0 || shape.rounds_ahead > 64) {
    invalid(of + std::to_string(shape.rounds_ahead) + " rounds ahead; allowed is 1 to 64");
  }
  if (shape.rank >= shape.ranks) {
    invalid(of + "rank " + std::to_string(shape.rank) + " of " + std::to_string(shape.ranks));
  }
  if (!shape.others) shape.others = std::make_shared<WindowsToSwitch>();
  return shape;
}

Window::Window(const WindowShape& shape, Uplink& uplink)
    : shape_(checked(shape)),
      others_(*shape_.others),
      uplink_(uplink),
      kept_(2 * ahead()),
      payloads_(std::make_unique_for_overwrite<std::byte[]>(kept_.size() * shape_.payload_bytes)),
      generation_(shape_.generation) {}

Window::~Window() { stop(); }

void Window::check(const SlotCall& call) const {
  const std::string of = std::string(name_of(call.collective)) + ", call " + std::to_string(call.sequence) +
                         " of communicator " + std::to_string(shape_.communicator) + ": ";
  if (!carried(call.collective)) {
    invalid(of + "slots carry barrier, bcast, reduce, allreduce, reduce_scatter and allgather; others go by messages");
  }
  const bool data = call.collective != Collective::kBarrier && call.count != 0;
  if (data && bytes_of(call.dtype) == 0) invalid(of + "a datatype is missing");
  // Operators of users have numbers of their own at switches, which say nothing of those of this process.
  const bool has = is_user(call.func) || (call.func != Func::kAvg && is_operator(call.func, call.dtype));
  if (combines(call.collective) ? !has : call.func != Func::kNone) {
    invalid(of + name_of(call.func) + " of " + name_of(call.dtype) + " is no operator that can be aggregated");
  }
  if (call.root >= shape_.ranks) {
    invalid(of + "root " + std::to_string(call.root) + " of " + std::to_string(shape_.ranks) + " ranks");
  }
}

std::optional<std::uint64_t> Window::start(const SlotCall& call, Time now) {
  check(call);
  if (stopped_ || next_call_ - first_call_ == kMostCalls) return std::nullopt;
  Open& open = calls_[next_call_ % kMostCalls];
  open.call = call;
  if (call.collective == Collective::kBarrier) {
    open.call.dtype = Datatype::kNone;
    open.call.count = 0;
  }
  open.turns = CallTurns(open.call, shape_.rank, shape_.ranks, shape_.payload_bytes);
  open.base = end_;
  open.left = open.turns.turns();
  const std::uint64_t begin = end_;
  end_ += open.left;
  due_ = std::min(due_, call.deadline);
  const std::uint64_t number = next_call_++;
  if (resuming_) {
    tick(now);
  } else {
    offer(begin, end_, now);
  }
  return number;
}

bool Window::done(std::uint64_t number) const {
  return number < first_call_ || (number < next_call_ && calls_[number % kMostCalls].left == 0);
}

// ---- what goes up ----

/// Sends those of these turns that may go.
void Window::offer(std::uint64_t from, std::uint64_t to, Time now) {
  to = std::min({to, end_, lacking_ + ahead()});
  for (std::uint64_t turn = from; turn < to; ++turn) {
    offer(turn, now);
    if (turn >= held_) break;
  }
}

void Window::tell_busy() {
  const bool busy = !stopped_ && !failure_ && unanswered_ < built_;
  if (busy == busy_) return;
  busy_ = busy;
  others_.busy(busy);
}

void Window::offer(std::uint64_t turn, Time now) {
  if (resuming_ || failure_ || stopped_ || turn < begin_ || turn >= end_ || turn >= lacking_ + ahead()) return;
  const std::uint32_t part = others_.each(shape_.slots);
  if (part < shape_.slots && turn >= unanswered_ + part) {
    held_ = std::min(held_, turn);
    return;
  }
  if (turn - begin_ >= shape_.slots) {
    const Kept& before = kept(turn - shape_.slots);
    if (before.turn != turn - shape_.slots || !before.answered) return;
  }
  Kept& one = kept(turn);
  if (one.turn != turn) {
    build(turn);
  } else if (one.sends != 0) {
    return;
  }
  send(one, now);
}

/// Makes the contribution to a turn, in place of that of 2 rounds_ahead rounds before, which nobody can lack: this turn
/// may go only because all turns up to ahead() before it have results, and everybody contributed to them only with
/// results of those up to ahead() before them.
void Window::build(std::uint64_t turn) {
  std::uint64_t number = first_call_;
  while (number + 1 < next_call_ && calls_[(number + 1) % kMostCalls].base <= turn) ++number;
  const Open& open = calls_[number % kMostCalls];
  const Chunk chunk = open.turns.chunk(turn - open.base);
  Kept& one = kept(turn);
  one = Kept{};
  one.turn = turn;
  one.call = static_cast<std::uint32_t>(number % kMostCalls);
  SlotFrame& frame = one.head;
  frame = head(SlotKind::kContribute);
  frame.opcode = open.call.collective;
  frame.func = open.call.func;
  frame.dtype = open.call.dtype;
  frame.slot = static_cast<std::uint16_t>(turn & (shape_.slots - 1));
  frame.second = (turn & shape_.slots) != 0;
  frame.turn = turn;
  frame.total = open.call.count;
  frame.call = open.call.sequence;
  frame.root = chunk.root;
  frame.factor = open.call.factor;
  frame.count = chunk.elements;
  if (chunk.gives) {
    const std::size_t size = bytes_of(open.call.dtype);
    frame.bytes = static_cast<std::uint16_t>(chunk.elements * size);
    std::memcpy(payloads_.get() + turn % kept_.size() * shape_.payload_bytes, open.call.src + chunk.from * size,
                frame.bytes);
  }
  built_ = std::max(built_, turn + 1);
}

std::span<const std::byte> Window::payload(const Kept& one) const {
  return {payloads_.get() + one.turn % kept_.size() * shape_.payload_bytes, one.head.bytes};
}

void Window::send(Kept& one, Time now) {
  one.head.generation = generation_;
  if (one.sends != 0) ++counters_.repeated;
  ++counters_.sent;
  one.due = now + timeout(std::max(one.sends, backoff_));
  if (one.sends == 0) one.first_sent = now;
  one.sent = now;
  one.later = 0;
  ++one.sends;
  due_ = std::min(due_, one.due);
  tell_busy();
  uplink_.up(one.head, payload(one));
}

/// The time until a frame that has gone `repeats` times is sent again. What results take has in it what others take to
/// repeat theirs, so members would wait longer the longer they wait: what the switch itself takes to answer bounds it.
/// A switch answers at once, and a repeat that was not needed costs it little.
Span Window::timeout(std::uint32_t repeats) const {
  const auto of = [](const RoundTrip& one, unsigned asked) { return one.timeout(asked, kGrain, Span::zero()); };
  const unsigned doublings = std::min(repeats, kMostDoublings);
  const Span result = of(round_trip_, doublings);
  const Span bounded = answer_.known() ? std::min(result, of(answer_, doublings + kMostOverAnswer)) : result;
  return std::min(bounded, shape_.longest_pause);
}

SlotFrame Window::head(SlotKind kind) const {
  SlotFrame frame{};
  frame.kind = kind;
  frame.generation = generation_;
  frame.communicator = shape_.communicator;
  frame.epoch = shape_.epoch;
  frame.member = shape_.position;
  return frame;
}

void Window::tick(Time now) {
  if (failure_ || stopped_ || now < due_) return;
  due_ = Time::max();
  for (std::uint64_t number = first_call_; number < next_call_; ++number) {
    const Open& open = calls_[number % kMostCalls];
    if (open.left == 0) continue;
    if (now >= open.call.deadline) {
      fail(ErrorCode::kTimeout, place_of(open));
      return;
    }
    due_ = std::min(due_, open.call.deadline);
  }
  if (resuming_) {
    if (now >= resume_due_) send_resume(now);
    due_ = std::min(due_, resume_due_);
    return;
  }
  repeat_what_is_due(now);
}

/// Of what is due only some goes again, the oldest first, until that is answered. If nothing was lost but answers take
/// longer than before, as when others begin to use the same link, the answers of the rest are on their way: repeats of
/// all of it would fill the link, and nothing that went once would be left to measure. Each answer lets twice as many
/// go. The oldest without an answer always may: ranks that ask for different turns might wait for one another.
void Window::repeat_what_is_due(Time now) {
  for (std::uint64_t turn = unanswered_; turn < built_; ++turn) {
    Kept& one = kept(turn);
    if (one.turn != turn || one.sends == 0 || one.answered) continue;
    if (now >= one.due) {
      if (one.asks) {
        may_ask_ = kLeastAsking;
      } else if (asking_ < may_ask_ || turn == unanswered_) {
        one.asks = true;
        ++asking_;
      } else {
        continue;
      }
      send(one, now);
    }
    due_ = std::min(due_, one.due);
  }
}

// ---- what comes down ----

void Window::take(const FrameView& frame, Time now, std::optional<Span> path) {
  const SlotFrame& head = frame.head;
  if (failure_ || stopped_) return;
  if (head.communicator != shape_.communicator || head.epoch != shape_.epoch ||
      (head.member != shape_.position && head.member != kEveryone)) {
    ++counters_.faults;
    return;
  }
  heard_ = true;
  if (path) others_.measured(*path, now);
  switch (head.kind) {
    case SlotKind::kRefuse:
      fail(ErrorCode::kMismatchedCall, "the calls of communicator " + std::to_string(shape_.communicator) +
                                           " are not aggregated in " + shape_.peer + ": " +
                                           sentence_of(refusal_in(frame)));
      return;
    case SlotKind::kRenew:
      if (head.generation < generation_ || (head.generation == generation_ && !resuming_)) {
        ++counters_.late;
        return;
      }
      if (head.generation > generation_) {
        generation_ = head.generation;
        resuming_ = true;
        resume_sends_ = 0;
      }
      send_resume(now);
      return;
    case SlotKind::kBegin:
      take_begin(head, now);
      return;
    case SlotKind::kResult:
      take_result(frame, now);
      return;
    case SlotKind::kMissing:
      take_missing(head, now);
      return;
    default:
      ++counters_.faults;
  }
}

void Window::send_resume(Time now) {
  SlotFrame frame = head(SlotKind::kResume);
  frame.turn = lacking_;
  frame.total = shape_.incarnation;
  resume_due_ = now + timeout(resume_sends_++);
  due_ = std::min(due_, resume_due_);
  uplink_.up(frame, {});
}

/// All members know this generation, and begin where the last of them has no result.
void Window::take_begin(const SlotFrame& head, Time now) {
  if (head.generation != generation_ || head.total != shape_.incarnation || !resuming_) {
    ++counters_.late;
    return;
  }
  if (head.turn > lacking_ || head.turn + kept_.size() < built_) {
    fail(ErrorCode::kInternal, shape_.peer + " begins communicator " + std::to_string(shape_.communicator) +
                                   " at turn " + std::to_string(head.turn) + ", but this rank has results up to turn " +
                                   std::to_string(lacking_) + " and keeps " + std::to_string(kept_.size()) +
                                   " turns below " + std::to_string(built_));
    return;
  }
  resuming_ = false;
  ++counters_.resumed;
  begin_ = head.turn;
  unanswered_ = head.turn;
  for (std::uint64_t turn = begin_; turn < built_; ++turn) {
    Kept& one = kept(turn);
    one.answered = false;
    one.answered_at = {};
    one.asks = false;
    one.sends = 0;
  }
  asking_ = 0;
  may_ask_ = kLeastAsking;
  held_ = kNever;
  offer(begin_, end_, now);
}

void Window::take_result(const FrameView& frame, Time now) {
  const SlotFrame& head = frame.head;
  Kept& one = kept(head.turn);
  if (resuming_ || head.generation != generation_ || one.turn != head.turn || one.sends == 0 || one.answered) {
    if (!resuming_ && head.generation == generation_ && one.turn == head.turn && one.answered) measure_again(one, now);
    ++counters_.late;
    return;
  }
  if (!same_turn(one.head, head)) {
    ++counters_.faults;
    return;
  }
  others_.answered(one.sends > 2);
  measure(one, now);
  if (!one.has_result) {
    store(one, frame);
    if (failure_) return;
  }
  one.answered = true;
  ++counters_.results;
  slide(now);
  offer(head.turn + shape_.slots, now);
  repeat_earlier(head.turn, now);
}

/// Of a turn that was repeated nobody knows which of its frames was answered (Karn's rule), unless the answer comes
/// sooner after the last one than any ever did: then that was sent in vain, and the first one was answered.
void Window::measure(Kept& one, Time now) {
  const bool in_vain = !round_trip_.known() || now - one.sent < round_trip_.least() / 2;
  if (one.sends == 1 || in_vain) {
    round_trip_.add(now - one.first_sent, Span::zero(), now);
    may_ask_ = kLeastAsking;
    backoff_ = 0;
  } else if (one.sends > 2) {
    backoff_ = std::min(one.sends - 1, kMostDoublings);
  }
  one.answered_at = one.sends == 2 ? now : Time{};
  if (!one.asks) return;
  one.asks = false;
  --asking_;
  may_ask_ = std::min(2 * may_ask_, shape_.slots);
  // If the first frame of this turn was answered, the others' answers come about now; if the repeat was, what went
  // before it and has no answer is lost. By when that is known, as long has passed as since the repeat.
  const Time soon = now + std::max<Span>(now - one.sent, kGrain);
  for (std::uint64_t turn = unanswered_; turn < built_; ++turn) {
    Kept& other = kept(turn);
    if (other.turn == turn && other.sends != 0 && !other.answered && other.due < soon) other.due = soon;
  }
  due_ = std::min(due_, soon);
}

/// A second answer: the first one was that of the first frame, and the repeat was in vain. Where answers take longer
/// than they did, every turn goes twice, and no other sample is had. A switch answers a repeat at once.
void Window::measure_again(Kept& one, Time now) {
  if (one.answered_at == Time{}) return;
  round_trip_.add(one.answered_at - one.first_sent, Span::zero(), now);
  answer_.add(now - one.sent, Span::zero(), now);
  one.answered_at = {};
  backoff_ = 0;
}

void Window::store(Kept& one, const FrameView& frame) {
  Open& open = calls_[one.call];
  const Chunk chunk = open.turns.chunk(one.turn - open.base);
  if (chunk.gets) {
    const std::size_t size = bytes_of(open.call.dtype);
    // A rank that gives the data itself has it, and need not be sent it.
    if (frame.payload.empty() && chunk.gives && !combines(open.call.collective)) {
      std::memmove(open.call.dst + chunk.to * size, payload(one).data(), chunk.elements * size);
    } else if (frame.payload.size() != chunk.elements * size) {
      fail(ErrorCode::kInternal, place_of(open) + "; a result came without its data");
      return;
    } else {
      std::memcpy(open.call.dst + chunk.to * size, frame.payload.data(), frame.payload.size());
    }
  }
  one.has_result = true;
  --open.left;
  while (first_call_ < next_call_ && calls_[first_call_ % kMostCalls].left == 0) ++first_call_;
}

/// Passes over what has come, and sends what this allows.
void Window::slide(Time now) {
  while (unanswered_ < built_ && kept(unanswered_).turn == unanswered_ && kept(unanswered_).answered) ++unanswered_;
  const std::uint64_t before = lacking_;
  while (lacking_ < built_ && kept(lacking_).turn == lacking_ && kept(lacking_).has_result) ++lacking_;
  if (lacking_ != before) offer(before + ahead(), lacking_ + ahead(), now);
  if (held_ != kNever) offer(std::exchange(held_, kNever), end_, now);
  tell_busy();
}

/// Results come in the order of turns, by and large: those of later turns say that something of an earlier one is lost.
void Window::repeat_earlier(std::uint64_t turn, Time now) {
  const Time sent = kept(turn).sent;
  for (std::uint64_t earlier = unanswered_; earlier < turn; ++earlier) {
    Kept& one = kept(earlier);
    if (one.turn != earlier || one.sends == 0 || one.answered || one.sent > sent) continue;
    if (++one.later == kReordered) send(one, now);
  }
}

/// A turn waits for others, or for this rank.
void Window::take_missing(const SlotFrame& head, Time now) {
  if (head.generation != generation_ || resuming_) {
    ++counters_.late;
    return;
  }
  Kept& one = kept(head.turn);
  if (head.root == shape_.rank) {
    // Something of it was lost, unless it has just gone; or the call has not been made yet.
    if (one.turn == head.turn && one.sends != 0 && !one.answered && now - one.sent > round_trip_.smoothed()) {
      send(one, now);
    }
    return;
  }
  const bool from_above = head.count == 0 && head.root != kEveryone;  // then it answers nothing of this member
  // Only what went again is answered so; if it did more than once, nobody knows which of these was answered.
  if (one.turn == head.turn && one.sends == 2 && !one.answered && !from_above) {
    answer_.add(now - one.sent, Span::zero(), now);
  }
  // What the switch above has said of the turn holds until it says something else.
  if (head.root == kEveryone && waits_above() && missing_turn_ == head.turn) return;
  missing_turn_ = head.turn;
  missing_rank_ = head.root;
  missing_ = head.count;
}

// ---- without the switch ----

void Window::stop() {
  stopped_ = true;
  tell_busy();
  due_ = Time::max();
}

std::optional<Window::Contribution> Window::contribution(std::uint64_t turn) const {
  const Kept& one = kept_[turn % kept_.size()];
  if (one.turn != turn) return std::nullopt;
  return Contribution{one.head, payload(one), one.has_result};
}

void Window::give(std::uint64_t turn, std::span<const std::byte> result) {
  Kept& one = kept(turn);
  if (one.turn != turn || one.has_result) return;
  store(one, {one.head, result});
  while (lacking_ < built_ && kept(lacking_).turn == lacking_ && kept(lacking_).has_result) ++lacking_;
}

void Window::restore(std::uint64_t number, std::uint64_t turn) {
  const Open& open = calls_[number % kMostCalls];
  if (open.call.src != open.call.dst) return;
  const std::size_t size = bytes_of(open.call.dtype);
  for (turn = std::max(turn, open.base); turn < std::min(built_, open.base + open.turns.turns()); ++turn) {
    const Kept& one = kept(turn);
    const Chunk chunk = open.turns.chunk(turn - open.base);
    if (one.turn != turn || !one.has_result || !chunk.gives || !chunk.gets) continue;
    std::memcpy(open.call.dst + chunk.from * size, payload(one).data(), payload(one).size());
  }
}

std::optional<std::uint32_t> Window::awaited() const {
  if (resuming_ || missing_turn_ == kNever || missing_turn_ < lacking_) return std::nullopt;
  return missing_rank_;
}

// ---- errors ----

void Window::fail(ErrorCode code, const std::string& text) {
  failure_ = WindowFailure{code, text};
  tell_busy();
  due_ = Time::max();
}

std::string Window::place_of(const Open& open) const {
  std::string text = std::string(name_of(open.call.collective)) + ", call " + std::to_string(open.call.sequence) +
                     " of communicator " + std::to_string(shape_.communicator) + ": rank " +
                     std::to_string(shape_.rank) + " has no result of chunk " +
                     std::to_string(std::max(lacking_, open.base) - open.base + 1) + " of " +
                     std::to_string(open.turns.turns()) + " from " + shape_.peer + " by the deadline";
  if (!heard_) {
    return text + "; nothing has come from there: is it running, and does the network let frames of " +
           std::to_string(frame_bytes(shape_.payload_bytes)) + " bytes through?";
  }
  if (resuming_) return text + "; it has begun anew and waits until all members have answered it";
  if (missing_turn_ >= lacking_ && missing_turn_ != kNever) {
    if (missing_rank_ == kEveryone) return text + "; it waits for the switch above it";
    if (waits_above()) {
      return text + "; it waits for the switch above it, and that for rank " + std::to_string(missing_rank_) +
             ", or for ranks behind it that are below the same switch";
    }
    text += "; it waits for rank " + std::to_string(missing_rank_);
    if (missing_ > 1) text += " and " + std::to_string(missing_ - 1) + " more";
    return text + ": has it made this call?";
  }
  return text;
}

}  // namespace unisono::slots
