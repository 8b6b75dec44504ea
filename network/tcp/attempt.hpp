// The attempt to connect to a peer: at all its addresses, until one is found at which it proves itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "network/tcp/address.hpp"
#include "network/tcp/handshake.hpp"
#include "network/tcp/interfaces.hpp"
#include "network/tcp/socket.hpp"
#include "network/tcp/watch.hpp"

namespace unisono::tcp {

/// Tries the addresses in order. The next one begins when one has failed, or does not answer soon; those before go on.
/// The first at which a member of the job answers is chosen, and the others are closed: this end proves itself on one
/// connection at a time, so the acceptor has at most one that counts.
class Attempt {
 public:
  using Clock = std::chrono::steady_clock;
  /// What it needs of the network.
  struct Surroundings {
    Watch& watch;
    const JobKey& key;  ///< see Connector
    Ends ends;
    std::uint64_t tag;  ///< for `watch`
  };

  /// An address that is not answered for so long is given up, unless the peer may be silent for longer.
  static constexpr std::chrono::milliseconds kPatience{2000};
  /// An address to which there is no way is tried again, after so long.
  static constexpr std::chrono::milliseconds kBetweenTries{100};
  /// The next address is tried meanwhile, after so long.
  static constexpr std::chrono::milliseconds kHeadStart{250};
  /// After so long, if the address has been connected to, and only its proof is missing: the peer may be busy.
  static constexpr std::chrono::seconds kLongHeadStart{2};

  /// `patience`: a way that is missing may come back within that, as those of connections that there are.
  Attempt(std::vector<Address> addresses, const std::vector<OwnAddress>& own, std::chrono::milliseconds patience);

  enum class Result : std::uint8_t {
    kUnderWay,
    kOpen,       ///< `take` gives the connection
    kDuplicate,  ///< the peer's own attempt is further; it will come
    kFailed,     ///< at all addresses, or for good
  };
  /// Does what can be done now.
  Result advance(const Surroundings& around, Clock::time_point now);
  /// Whether the peer may already regard a connection of this attempt as the session.
  bool proven() const { return chosen_.has_value(); }
  Socket take(Watch& watch);
  /// Of the connection that `take` gives.
  Agreed agreed() const { return tries_[*chosen_].connector->agreed(); }
  /// Closes all. Must be called before it is destroyed while the network lives.
  void close(Watch& watch);
  /// When `advance` has something to do even if no socket is ready.
  Clock::time_point deadline() const;
  /// Whether at every address a kernel has answered that nobody listens there.
  bool refused() const;
  /// Every address with what came of it.
  std::string outcome() const;
  /// What of this process's own keeps it from connecting, in words that follow the peer's name; empty if nothing. It
  /// tries again: that it has no descriptor or no port left says nothing of the peer.
  const std::string& obstacle() const { return obstacle_; }
  /// Whether it has failed because of what the peer said.
  const std::string& final_fault() const { return final_fault_; }

 private:
  enum class Stage : std::uint8_t { kWaiting, kConnecting, kGreeting, kFailed };
  struct Try {
    Address address;
    unsigned scope = 0;
    Stage stage = Stage::kWaiting;
    Socket socket{};
    std::uint32_t watched = 0;
    std::optional<Connector> connector{};
    Clock::time_point since{};
    Clock::time_point not_before{};
    int interruptions = 0;
    std::string fault{};
    bool refused = false;
    bool ours = false;    ///< an address that this host has, too: what it says need not be the peer's word
    bool no_way = false;  ///< it has failed because the network led nowhere
  };
  void start(Try& one, const Surroundings& around, Clock::time_point now);
  /// Whether a call has failed for want of something in this process, or on its host; the try then waits.
  bool starved(Try& one, int error, Watch& watch, Clock::time_point now);
  void connect_on(Try& one, const Surroundings& around, Clock::time_point now);
  Result greet(std::size_t index, const Surroundings& around, Clock::time_point now);
  void fail(Try& one, Watch& watch, std::string fault);
  void fail_to_connect(Try& one, Watch& watch, int error);
  bool await_ways(Clock::time_point now);
  void interrupted(Try& one, Watch& watch, Clock::time_point now);
  void hang_up(Try& one, Watch& watch);

  std::vector<Try> tries_;
  std::chrono::milliseconds patience_;
  Clock::time_point begin_{};
  std::optional<std::size_t> chosen_;
  std::string final_fault_;
  std::string obstacle_;
};

}  // namespace unisono::tcp
