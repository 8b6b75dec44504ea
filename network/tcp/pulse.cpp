#include "network/tcp/pulse.hpp"

namespace unisono::tcp {

bool Pulse::answered() const {
  const Question::Answer answer = question_.answer();
  // Who could not ask knows nothing, and goes on waiting. A refusal is an answer, too.
  return answer != Question::Answer::kNone && answer != Question::Answer::kNoWay;
}

bool Pulse::gone(const Socket& connection, Clock::time_point now, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kBetween{250};
  if (now - looked_ < kBetween) return false;
  // After a long time without a look it is not known what was unanswered meanwhile.
  if (now - looked_ > 4 * kBetween) unanswered_ = false;
  looked_ = now;
  const Answering answering = ask_answering(connection);
  // An acknowledgement that is newer than what is thought to be without one.
  const Clock::time_point answer = now - std::chrono::milliseconds(answering.silent_milliseconds);
  if (!answering.awaits) {
    unanswered_ = false;
    question_.withdraw();
    return false;
  }
  if (!unanswered_ || answer > unanswered_since_) {
    unanswered_since_ = unanswered_ ? answer : now;
    unanswered_ = true;
    question_.withdraw();
    return false;
  }
  const auto silence = now - unanswered_since_;
  if (silence < patience / 2) return false;
  if (silence <= patience) {
    if (!question_.asked()) question_.ask(listener_);
    return false;
  }
  // If nobody looked in the second half, it was not asked yet.
  if (question_.asked() && !answered()) return true;
  unanswered_since_ = now;
  question_.withdraw();
  return false;
}

}  // namespace unisono::tcp
