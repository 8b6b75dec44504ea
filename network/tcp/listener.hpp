// Where peers connect, and who has connected without having proven that it is one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "network/refusal_count.hpp"
#include "network/tcp/address.hpp"
#include "network/tcp/handshake.hpp"
#include "network/tcp/socket.hpp"
#include "network/tcp/watch.hpp"

namespace unisono::tcp {

/// Accepts connections and has each prove itself. Strangers cost a bounded amount of memory and time, and are counted.
class Listener {
 public:
  using Clock = std::chrono::steady_clock;
  /// A newcomer that has not proven itself after so long is closed.
  static constexpr std::chrono::seconds kPatience{10};

  /// Listens at all addresses on a port from `first` to `last`, or any if both are 0. Throws Error(kBootstrap).
  Listener(std::uint16_t first, std::uint16_t last);
  std::uint16_t port() const { return port_; }

  /// The job that newcomers must be of, and the sessions that they may add a connection to. `own` are the addresses at
  /// which they may come; empty: all.
  void admit(const JobKey& key, Ends ends, SessionKeys sessions, std::vector<Address> own);
  /// Begins to watch for newcomers: events have the tag `tag`, and those of one of them `tag` + its number.
  void listen_with(Watch& watch, std::uint64_t tag);

  /// Decides about a peer that has proven itself: see Acceptor for what it has found out.
  using Rule = std::function<Ruling(const Acceptor& proven)>;
  /// Takes over the connection of an accepted one.
  using Take = std::function<void(std::uint32_t peer, Socket socket, const Agreed& agreed)>;

  /// Takes newcomers from the system, a few at a time.
  void accept_some(Watch& watch, Clock::time_point now);
  /// Goes on with a newcomer of which an event told.
  void advance(std::uint64_t number, Watch& watch, Clock::time_point now, const Rule& rule, const Take& take);
  /// Closes who has taken too long.
  void tidy(Watch& watch, Clock::time_point now);
  Clock::time_point deadline() const;
  bool has_newcomers() const { return !newcomers_.empty(); }

  std::uint64_t refused() const { return refusals_.count(); }
  void show_refused(std::atomic<std::uint64_t>& word) { refusals_.show(word); }

 private:
  struct Newcomer {
    Socket socket;
    std::uint32_t watched = 0;
    Acceptor acceptor;
    Clock::time_point since;
  };
  using Place = std::map<std::uint64_t, Newcomer>::iterator;
  void bind_to(std::uint16_t first, std::uint16_t last);
  int try_bind(std::uint16_t port);
  void close(Place place, Watch& watch);
  void refuse(const Address& from, const std::string& fault, Clock::time_point now);
  void refuse(Place place, const std::string& fault, Watch& watch, Clock::time_point now);
  bool flush(Newcomer& newcomer);

  Socket socket_;
  bool six_ = true;
  std::uint32_t watched_ = 0;
  std::uint64_t tag_ = 0;
  std::uint16_t port_ = 0;
  JobKey key_{};
  Ends ends_{};
  SessionKeys sessions_;
  std::vector<Address> own_;
  std::uint64_t next_number_ = 1;
  std::map<std::uint64_t, Newcomer> newcomers_;  ///< by number, so the oldest is first
  Clock::time_point paused_until_ = Clock::time_point::min();
  RefusalCount refusals_;
};

}  // namespace unisono::tcp
