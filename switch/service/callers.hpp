// The connections of those who ask a switch for pools, or look after it: who has proven that it knows the secret, and
// who may not stay. No connection holds up another, however slow or strange it is.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "platform/join/frames.hpp"
#include "switch/control.hpp"

namespace unisono::slots {

/// Names a connection, for as long as the process lives. They grow.
using CallerId = std::uint64_t;

/// One job's handlers may have a quarter of the room for them, and its operators of theirs, so that others find some.
inline constexpr std::uint64_t kPartOfAJob = 4;

/// What is done with what callers say. Called by the thread that serves them; may call back `answer` and `refuse`.
class CallersHandler {
 public:
  virtual ~CallersHandler() = default;
  virtual Welcome welcome() = 0;
  virtual void asked(CallerId caller, ControlFrame frame) = 0;
  /// Its connection is no more.
  virtual void gone(CallerId caller) = 0;
};

/// Who has come and was sent away.
struct CallersCounters {
  std::uint64_t accepted = 0;
  std::uint64_t wrong_secrets = 0;
  std::uint64_t other_versions = 0;
  std::uint64_t foreign = 0;  ///< spoke another protocol, or said what a caller does not
  std::uint64_t slow = 0;     ///< took too long to prove, or did not read its answers
  std::uint64_t crowded = 0;  ///< closed because too many had come
};

/// One thread.
class Callers {
 public:
  static constexpr std::size_t kMostUnproven = 64;
  static constexpr std::size_t kMostProven = 1024;

  /// `name` is the switch's, for refusals. `handler` must outlive it.
  Callers(join::Descriptor listener, std::string secret, std::string name, CallersHandler& handler);

  /// Adds what is to be polled.
  void watch(std::vector<pollfd>& watched);
  /// Before this time `serve` has nothing to do unless something of `watched` is ready.
  join::Deadline deadline() const;
  /// Does what can be done; `watched` is what `watch` has added, polled.
  void serve(std::span<const pollfd> watched);

  /// Answers a request. A caller that has gone gets none.
  void answer(CallerId caller, const ControlFrame& frame);
  /// Says why, and closes.
  void refuse(CallerId caller, const std::string& text);
  /// Whether all that was said has been sent.
  bool all_sent() const;

  std::size_t proven() const;
  const CallersCounters& counters() const { return counters_; }

 private:
  struct Caller {
    join::Descriptor connection;
    join::FrameReader reader{join::kMaxUnproven};
    std::optional<join::Hello> hello;
    Nonce nonce{};
    bool proven = false;
    bool leaving = false;     ///< ends once all is sent
    bool ended = false;       ///< is closed at the next occasion
    join::Deadline deadline;  ///< to prove, to read what waits, or to be gone
    join::Blob waiting;       ///< to be sent
    std::size_t sent = 0;     ///< of these
    bool timed() const { return !proven || leaving || !waiting.empty(); }
  };

  void accept_all();
  void hear(CallerId id, Caller& caller);
  void challenge(Caller& caller);
  void admit(Caller& caller);
  void ask(CallerId id, Caller& caller);
  void say(Caller& caller, join::FrameKind kind, std::span<const std::byte> body);
  void send_away(Caller& caller, const std::string& text);
  void send(Caller& caller);
  void sweep();

  join::Descriptor listener_;
  std::string secret_;
  std::string name_;
  CallersHandler& handler_;
  std::map<CallerId, Caller> callers_;
  CallerId next_ = 1;
  join::Deadline listens_from_{};  ///< earlier, the system has nothing left for another connection
  CallersCounters counters_;
};

}  // namespace unisono::slots
