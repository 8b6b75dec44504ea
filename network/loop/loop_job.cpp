#include "network/loop/loop_job.hpp"

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/loop/loop_poe.hpp"

namespace unisono::loop {

Job::Job(std::uint32_t size) : mailboxes_(size), left_(size) {
  static std::atomic<std::uint64_t> numbers{1};
  number_ = numbers.fetch_add(1, std::memory_order_relaxed);
  for (std::atomic<std::uint32_t>& left : left_) left.store(kForEver, std::memory_order_relaxed);
}

std::shared_ptr<Job> Job::make(std::uint32_t size) {
  if (size == 0 || size > kMostEndpoints) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("a job of {} endpoints on the loop network; allowed are 1 to {}", size, kMostEndpoints));
  }
  return std::shared_ptr<Job>(new Job(size));
}

std::unique_ptr<Poe> Job::endpoint(std::uint32_t endpoint) {
  return std::make_unique<LoopPoe>(std::make_unique<LoopNetwork>(shared_from_this(), endpoint));
}

void Job::end(std::uint32_t endpoint) {
  mailboxes_[endpoint].set_state(Mailbox::State::kEnded);
  mailboxes_[endpoint].poke();  // it may sleep
  for (const std::uint32_t other : mailboxes_[endpoint].known_by()) mailboxes_[other].poke();
}

bool Job::may_say(std::uint32_t endpoint) {
  std::atomic<std::uint32_t>& left = left_[endpoint];
  const std::uint32_t now = left.load(std::memory_order_relaxed);
  if (now == kForEver) return true;
  if (now == 0) {
    end(endpoint);
    return false;
  }
  left.store(now - 1, std::memory_order_relaxed);
  return true;
}

}  // namespace unisono::loop
