// The receiving ends of a network's sessions: they number frames, drop those that came before, and notice gaps.
//
// A session is the way of the frames of one address, a node or a unit, on one port to another. Each frame has its
// number in it, as in the header of a transport. This transport repeats nothing: where a number is missing the session
// has broken, and nothing that comes behind the gap is passed on, so that nobody takes a later message for the one that
// is missing.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace unisono::sim {

/// A session that has broken.
struct BrokenSession {
  std::uint64_t cycle = 0;                    ///< in which it was noticed
  std::uint32_t source = 0, destination = 0;  ///< addresses
  std::uint16_t port = 0;
  std::uint32_t missing = 0;  ///< number of the first frame that has not come
  std::uint32_t until = 0;    ///< of the one that came in its place, or, if nothing did, of the next one to be sent
  bool nothing_came = false;  ///< all that was sent is over, and nothing came in its place
};

class Sessions {
 public:
  /// The number of the next frame of a session.
  std::uint32_t send(std::uint32_t source, std::uint32_t destination, std::uint16_t port);

  enum class Verdict : std::uint8_t {
    kPass,
    kTwice,   ///< a frame of this number has come before
    kBroken,  ///< one before it has not come
  };
  /// A frame begins to arrive in one piece.
  Verdict receive(std::uint32_t source, std::uint32_t destination, std::uint16_t port, std::uint32_t number,
                  std::uint64_t cycle);
  /// A frame that was passed has turned out to be damaged with its end.
  void damaged(std::uint32_t source, std::uint32_t destination, std::uint16_t port, std::uint32_t number,
               std::uint64_t cycle);
  /// Nothing is under way: what has been sent and has not come will not come. As a transport learns it from a sender
  /// that tells, when it is idle, how many frames it has sent.
  void settle(std::uint64_t cycle) {
    if (sent_ != settled_) settle_all(cycle);
  }

  /// In the order in which they were noticed.
  const std::vector<BrokenSession>& broken() const { return broken_; }

 private:
  struct Session {
    std::uint32_t sent = 0, expected = 0;
    bool broken = false;
  };
  using Name = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>;

  void breaks(const Name& name, Session& session, std::uint32_t missing, std::uint32_t until, bool nothing_came,
              std::uint64_t cycle);
  void settle_all(std::uint64_t cycle);

  std::map<Name, Session> sessions_;
  std::vector<BrokenSession> broken_;
  std::uint64_t sent_ = 0;     ///< frames of all sessions
  std::uint64_t settled_ = 0;  ///< `sent_` when it was last looked whether all had come
};

}  // namespace unisono::sim
