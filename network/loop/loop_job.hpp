// A job whose endpoints are all in this process and share no memory but their mailboxes: each is a host of its own. For
// jobs of thousands of ranks on one machine, and for tests of what happens between hosts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "network/loop/mailbox.hpp"
#include "network/poe.hpp"

namespace unisono::loop {

/// What an endpoint that `Job::end` has ended throws as soon as it looks at its network: its thread is to stop.
struct Ended : std::runtime_error {
  Ended() : std::runtime_error("this endpoint was ended from outside") {}
};

/// Thread-safe. Lives until the last of its endpoints has gone.
class Job : public std::enable_shared_from_this<Job> {
 public:
  static constexpr std::uint32_t kMostEndpoints = 16384;

  /// Throws Error(kInvalidArgument) if it is too large.
  static std::shared_ptr<Job> make(std::uint32_t size);

  std::uint32_t size() const { return static_cast<std::uint32_t>(mailboxes_.size()); }
  Mailbox& mailbox(std::uint32_t endpoint) { return mailboxes_[endpoint]; }
  /// Tells this job from others of the process.
  std::uint64_t number() const { return number_; }

  /// An endpoint's network, for an engine; once per endpoint. Throws Error(kBootstrap) if it was taken before.
  std::unique_ptr<Poe> endpoint(std::uint32_t endpoint);

  /// Ends an endpoint as the end of its process would: what it has sent can still be read, and nothing comes from it
  /// any more. For tests.
  void end(std::uint32_t endpoint);
  /// The same once it has sent so many more messages on the control lane; of the next one nothing is sent.
  void end_after(std::uint32_t endpoint, std::uint32_t messages) {
    left_[endpoint].store(messages, std::memory_order_relaxed);
  }
  /// Whether the endpoint may send another message on the control lane; else it has just been ended.
  bool may_say(std::uint32_t endpoint);

 private:
  static constexpr std::uint32_t kForEver = std::numeric_limits<std::uint32_t>::max();
  explicit Job(std::uint32_t size);

  std::vector<Mailbox> mailboxes_;
  std::vector<std::atomic<std::uint32_t>> left_;  ///< by endpoint: messages until its end
  std::uint64_t number_;
};

}  // namespace unisono::loop
