#include "network/udp/sender.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace unisono::udp {

namespace {

/// So much goes at once whatever the pace is: sleeps are not shorter, and the kernel cuts it into datagrams.
constexpr double kBurst = 128.0 * 1024;
constexpr double kBurstSeconds = 1e-3;
constexpr std::uint64_t kMostThreshold = 256;
/// So many long datagrams are lost, and none as long has come meanwhile: the path takes no long ones, it is not by
/// chance.
constexpr unsigned kMostLongLosses = 6;
/// Pieces for packets of 9000 and of 1500 bytes, and for the shortest that a path may demand.
constexpr std::array<std::size_t, 3> kPieces{8832, 1344, Sender::kLeastPiece};
/// New data take half of the table of what is in flight, for pieces that are sent again may be cut; then what is sent
/// again, and questions for as long as they have no answer.
constexpr std::size_t kPlacesForNew = Sender::kMostInFlight / 2;
constexpr std::size_t kPlacesForLost = Sender::kMostInFlight - 256;
constexpr std::size_t kPlacesForQuestions = Sender::kMostInFlight - 512;
/// A peer that had no room is asked again after so long, if it does not say that it has.
constexpr Span kLongestClosed = std::chrono::milliseconds(100);

}  // namespace

Sender::Sender(std::size_t most_piece, std::size_t ring_bytes, std::size_t control_bytes)
    : streams_{OutStream(kMaxPayload[0], ring_bytes), OutStream(kMaxPayload[1], control_bytes)},
      records_(kMostInFlight),
      most_piece_(most_piece),
      most_window_(ring_bytes + ring_bytes / 4),
      congestion_(most_piece + kHeadBytes, most_window_) {}

void Sender::begin(std::size_t most_piece) {
  most_piece_ = std::max(most_piece, kLeastPiece);
  congestion_ = Congestion(most_piece_ + kHeadBytes, most_window_);
}

void Sender::shrink(std::size_t most_piece) {
  most_piece_ = std::min(most_piece_, std::max(most_piece, kLeastPiece));
  congestion_.set_datagram(most_piece_ + kHeadBytes);
  forget_long_losses();
}

void Sender::put(Time now, Plan& plan) {
  plan.number = ++number_;
  Record& one = record(number_);
  one = {number_, plan.offset, now, static_cast<std::uint32_t>(plan.bytes), plan.lane, State::kInFlight, false};
  in_flight_ += plan.bytes + kHeadBytes;
  budget_ -= static_cast<double>(plan.bytes + kHeadBytes);
  last_sent_ = now;
}

bool Sender::next(Time now, Plan& plan) {
  plan = {};
  pass_over();
  if (questions_ > 0) {
    --questions_;
    if (number_ - oldest_ >= kPlacesForQuestions) free_oldest(now);
    if (number_ + 1 - oldest_ >= kMostInFlight) return false;
    next_question(plan);
    put(now, plan);
    return true;
  }
  if (number_ + 1 - oldest_ >= (lost_ > 0 ? kPlacesForLost : kPlacesForNew)) return false;
  const bool something = lost_ > 0 || streams_[0].sendable() > 0 || streams_[1].sendable() > 0;
  if (!something) return false;
  if (in_flight_ >= congestion_.window()) {
    window_held_ = true;
    return false;
  }
  if (!pace(now) || (!next_lost(plan) && !next_new(plan))) return false;
  put(now, plan);
  return true;
}

bool Sender::next_lost(Plan& plan) {
  while (lost_ > 0) {
    Record& one = record(first_lost_);
    if (one.number != first_lost_ || one.state != State::kLost) {
      ++first_lost_;
      continue;
    }
    if (one.bytes == 0 || streams_[one.lane].has(one.offset, one.bytes)) {
      one.state = State::kOver;
      --lost_;
      continue;
    }
    plan.lane = one.lane;
    plan.offset = one.offset;
    plan.bytes = std::min<std::size_t>(one.bytes, most_piece_);
    one.offset += plan.bytes;
    one.bytes -= static_cast<std::uint32_t>(plan.bytes);
    if (one.bytes == 0) {
      // Its number may still come, and then tells of the whole piece.
      one.offset -= plan.bytes;
      one.bytes = static_cast<std::uint32_t>(plan.bytes);
      one.state = State::kOver;
      --lost_;
    }
    ++resent_;
    return true;
  }
  return false;
}

bool Sender::next_new(Plan& plan) {
  for (const std::uint8_t lane : {std::uint8_t{1}, std::uint8_t{0}}) {  // control first
    OutStream& stream = streams_[lane];
    const std::size_t bytes = std::min(stream.sendable(), most_piece_);
    if (bytes == 0) continue;
    // A window that opens by a little is no reason for a little piece.
    const bool held = bytes < most_piece_ && stream.next() + bytes != stream.end();
    if (held && in_flight_ != 0) continue;
    plan.lane = lane;
    plan.offset = stream.next();
    plan.bytes = bytes;
    stream.sent(bytes);
    return true;
  }
  return false;
}

void Sender::next_question(Plan& plan) {
  // The oldest one that nobody has answered for, or new data; a path that takes no long datagrams answers a bare one.
  if (std::exchange(bare_question_, false)) return;
  if (next_lost(plan)) return;
  for (std::uint64_t number = oldest_; number <= number_; ++number) {
    const Record& one = record(number);
    if (one.number != number || one.state != State::kInFlight || one.bytes == 0) continue;
    if (streams_[one.lane].has(one.offset, one.bytes)) continue;
    plan.lane = one.lane;
    plan.offset = one.offset;
    plan.bytes = std::min<std::size_t>(one.bytes, most_piece_);
    ++resent_;
    return;
  }
  next_new(plan);
}

void Sender::pass_over() {
  while (oldest_ <= number_ && record(oldest_).state == State::kOver) ++oldest_;
}

void Sender::free_oldest(Time now) {
  // Questions without an answer must not use up the table of what is in flight: they take the oldest one's place.
  Record& one = record(oldest_);
  bare_question_ = false;
  if (one.state == State::kInFlight) lose(one, now, false);
  pass_over();
}

void Sender::take(std::uint64_t number) {
  Record& one = record(number);
  if (one.number != number) return;
  const bool in_flight = one.state == State::kInFlight;
  if (in_flight) {
    in_flight_ -= one.bytes + kHeadBytes;
    came_bytes_ += one.bytes + kHeadBytes;
    ++came_;
  } else if (!one.thought_lost) {
    return;
  } else {
    // It was late, not lost. More patience from now on.
    one.thought_lost = false;
    if (one.state == State::kLost) --lost_;
    threshold_ = std::min(2 * threshold_, kMostThreshold);
    congestion_.found();
  }
  one.state = State::kOver;
  if (one.bytes >= shortest_lost_) forget_long_losses();
  if (one.bytes > 0) room_ = streams_[one.lane].acknowledged(one.offset, one.bytes) || room_;
}

bool Sender::acknowledged(const AckFrame& frame, Time now) {
  if (frame.largest > number_) return false;  // nothing of the kind was sent
  bool opened = false;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::size_t before = streams_[lane].sendable();
    streams_[lane].raise_limit(frame.limits[lane]);
    opened = opened || (before == 0 && streams_[lane].sendable() > 0);
  }
  came_bytes_ = came_ = 0;
  room_ = false;
  if (frame.largest != 0) {
    Record& last = record(frame.largest);
    const bool fresh = last.number == frame.largest && last.state == State::kInFlight;
    if (fresh) round_trip_.add(now - last.sent, std::chrono::microseconds(frame.delay_us), now);
    take(frame.largest);
    const std::uint64_t first = std::min(oldest_, suspected_from_);
    for (std::size_t word = 0; word < frame.before.size(); ++word) {
      for (std::uint64_t bits = frame.before[word]; bits != 0; bits &= bits - 1) {
        const std::uint64_t back = word * 64 + static_cast<unsigned>(std::countr_zero(bits)) + 1;
        if (back >= frame.largest || frame.largest - back < first) {
          word = frame.before.size() - 1;
          break;
        }
        take(frame.largest - back);
      }
    }
    largest_came_ = std::max(largest_came_, frame.largest);
  }
  if (came_ > 0 || opened) asked_ = 0;
  if (opened) asked_closed_ = 0;
  if (came_ > 0) {
    congestion_.acknowledged(came_bytes_, came_, std::exchange(window_held_, false), round_trip_.smoothed(), now);
  }
  find_losses(now);
  return room_;
}

void Sender::find_losses(Time now) {
  pass_over();
  if (oldest_ > suspected_from_ && oldest_ - suspected_from_ > kAckBits) suspected_from_ = kNone;
  loss_at_ = Time::max();
  const Span patience = round_trip_.reordering();
  for (std::uint64_t number = oldest_; number < largest_came_; ++number) {
    Record& one = record(number);
    if (one.state != State::kInFlight) continue;
    if (largest_came_ - number >= threshold_ || one.sent + patience <= now) {
      lose(one, now, true);
    } else {
      loss_at_ = std::min(loss_at_, one.sent + patience);
    }
  }
}

void Sender::lose(Record& one, Time now, bool known) {
  one.state = State::kLost;
  one.thought_lost = true;
  in_flight_ -= one.bytes + kHeadBytes;
  first_lost_ = lost_ == 0 ? one.number : std::min(first_lost_, one.number);
  suspected_from_ = std::min(suspected_from_, one.number);
  ++lost_;
  if (!known) return;
  congestion_.lost(one.sent, now);
  note_long_loss(one.bytes);
}

void Sender::forget_long_losses() {
  long_losses_ = 0;
  shortest_lost_ = kNoPiece;
}

void Sender::note_long_loss(std::size_t bytes) {
  if (bytes <= kLeastPiece) return;
  // Pieces are as long as messages are, which may be far from what the way was thought to take.
  shortest_lost_ = std::min(shortest_lost_, bytes);
  if (++long_losses_ < kMostLongLosses) return;
  for (const std::size_t piece : kPieces) {
    if (piece >= std::min(most_piece_, shortest_lost_)) continue;
    shrink(piece);
    return;
  }
}

void Sender::tick(Time now) {
  if (loss_at_ <= now) find_losses(now);
  if (question_at() > now) return;
  if (in_flight_ == 0) {
    ++asked_closed_;
    questions_ = 1;
  } else {
    ++asked_;
    questions_ = asked_ >= 2 ? 2 : 1;
    bare_question_ = asked_ >= 2;
  }
  last_sent_ = now;
}

Time Sender::question_at() const {
  if (in_flight_ > 0) return last_sent_ + round_trip_.timeout(asked_);
  // Nothing is on its way, and the peer has no room, or its word that it has was lost.
  const bool closed = !streams_[0].delivered() || !streams_[1].delivered();
  if (!closed || lost_ > 0 || streams_[0].sendable() > 0 || streams_[1].sendable() > 0) return Time::max();
  return last_sent_ + std::min(round_trip_.timeout(asked_closed_), kLongestClosed);
}

double Sender::rate() const {
  const double gain = congestion_.slow_start() ? 2.0 : 1.25;
  return gain * static_cast<double>(congestion_.window()) / std::chrono::duration<double>(round_trip_.least()).count();
}

bool Sender::pace(Time now) {
  if (!round_trip_.known()) return true;
  const double speed = rate();
  const double most = std::max(kBurst, speed * kBurstSeconds);
  budget_ = std::min(most, budget_ + speed * std::chrono::duration<double>(now - budget_at_).count());
  budget_at_ = now;
  return budget_ > 0;
}

Time Sender::deadline(Time now) const {
  if (questions_ > 0) return now;
  Time first = std::min(loss_at_, question_at());
  const bool something = lost_ > 0 || streams_[0].sendable() > 0 || streams_[1].sendable() > 0;
  if (something && in_flight_ < congestion_.window() && budget_ <= 0 && round_trip_.known()) {
    const auto wait = std::chrono::duration<double>(-budget_ / rate());
    first = std::min(first, budget_at_ + std::chrono::duration_cast<Span>(wait) + std::chrono::microseconds(1));
  }
  return first;
}

}  // namespace unisono::udp
