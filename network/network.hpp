// A network between hosts: what carries messages to endpoints that share no memory with this one.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/poe.hpp"

namespace unisono {

/// What proves that somebody is a member of the job. Random; known to members only.
using JobKey = std::array<std::byte, 32>;

/// What a network learns of the job once all members have come.
struct NetworkMembers {
  std::uint32_t self = 0;
  JobKey key{};
  std::vector<std::vector<std::byte>> cards;  ///< by endpoint: its Network::card; empty: not reached by this network
  std::vector<std::string> hosts;             ///< by endpoint: the name of its host, for messages to people
};

/// How far the question has got whether data can go to a peer by a network.
enum class Trial : std::uint8_t {
  kUnanswered,  ///< the peer was called, or is about to be
  kAnswered,    ///< by the peer itself: the way is good, and the session will be there soon
  kProven,      ///< the session is there
  kFailed,      ///< for good; `condition` may say why
};

/// One kind of network, from one endpoint's side. Endpoints have the job's numbers. Not thread-safe: the engine
/// serialises; but see `descriptor`.
///
/// A session to a peer is made when it is first needed, by a message to it, by one of it, or by a question whether it
/// lives. Each session is reliable and in order, and never made again: one that breaks means that the peer is dead.
/// None of the functions blocks.
class Network {
 public:
  virtual ~Network() = default;
  Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// "tcp"
  virtual const char* name() const = 0;
  /// What peers must know to reach this endpoint, at most kMostCardBytes.
  virtual std::vector<std::byte> card() const = 0;
  static constexpr std::size_t kMostCardBytes = 512;
  /// With what a card of several networks begins, and no other.
  static constexpr std::byte kSeveralCards{0x57};
  /// Once, before all that follows. Throws Error(kBootstrap) that names the member whose card cannot be read.
  virtual void meet(NetworkMembers members) = 0;

  // As the functions of Poe, of which this network carries a part of the sessions. A message that was committed before
  // its session is there waits in the network. `reserve` gives null where there is no room, or the session has broken.
  virtual std::uint32_t max_payload(Lane lane) const = 0;
  virtual std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) = 0;
  virtual void commit(std::uint32_t peer, Lane lane, const Header& header) = 0;
  virtual bool send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) = 0;
  virtual bool takes_loans(std::uint32_t /*peer*/) const { return false; }
  virtual Sent lend(std::uint32_t /*peer*/, std::span<const Header> /*headers*/, const std::byte* /*payload*/) {
    return Sent::kNo;
  }
  virtual bool lends(std::uint32_t /*peer*/) const { return false; }
  virtual std::optional<std::uint32_t> settle() { return std::nullopt; }
  virtual bool takes_writes(std::uint32_t /*peer*/) const { return false; }
  virtual std::optional<Reach> show(std::uint32_t /*peer*/, std::span<std::byte> /*memory*/) { return std::nullopt; }
  virtual void hide(std::uint32_t /*peer*/, const Reach& /*reach*/, bool /*written*/) {}
  virtual bool write(std::uint32_t /*peer*/, const Reach& /*reach*/, std::uint64_t /*offset*/, const Header& /*done*/,
                     std::span<const std::byte> /*payload*/, Ticket& /*ticket*/) {
    return false;
  }
  virtual bool done(std::uint32_t /*peer*/, Ticket /*ticket*/) const { return true; }
  virtual void withdraw(std::uint32_t /*peer*/, Ticket /*ticket*/) {}
  /// Messages that came before a session ended can be read afterwards. Throws Error(kCorruptMessage).
  virtual bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) = 0;
  virtual void release(std::uint32_t peer, Lane lane) = 0;
  /// Appends the peers of which `peek` may give a message, or throw.
  virtual void add_talkers(std::vector<std::uint32_t>& peers) = 0;

  virtual void land_in(Landings* /*landings*/) {}
  virtual void hold(bool /*holds*/) {}

  /// Sends what waits and takes what has come. True if something came, room became free where `reserve` had given
  /// null, or a peer has left or died since the last poll.
  virtual bool poll() = 0;
  /// Polls in epoll(7) as readable when `poll` may have something to do; the network's own, open for as long as it
  /// lives. Threads may sleep on it while another one uses the network.
  virtual int descriptor() const = 0;
  /// Whether a session has been asked for, so that something may come: before that there is nothing to poll but
  /// newcomers, of which the descriptor tells.
  virtual bool in_use() const = 0;

  /// Whether committed messages wait in this process, for room in the kernel or for their session, or for the peer's
  /// word that they need not be sent again.
  virtual bool has_output() const = 0;
  /// See Poe::output_due.
  virtual std::chrono::steady_clock::time_point output_due() const {
    using Time = std::chrono::steady_clock::time_point;
    return has_output() ? Time::min() : Time::max();
  }

  virtual Poe::Liveness liveness(std::uint32_t peer) = 0;
  virtual Poe::Fate fate(std::uint32_t peer) {
    switch (liveness(peer)) {
      case Poe::Liveness::kAlive:
        return Poe::Fate::kUnknown;
      case Poe::Liveness::kLeft:
        return Poe::Fate::kEnded;
      default:
        return Poe::Fate::kVanished;  // a network that cannot say more
    }
  }
  /// Why a peer is dead, in words that follow its name: "cannot be reached from a.example: tried 10.0.0.2:4711:
  /// Connection refused"; or what keeps this process from reaching it now. Empty if there is nothing to say.
  virtual std::string condition(std::uint32_t peer) const = 0;

  // What it takes to be one of several networks of an endpoint (see Ways). Each end of a pair chooses by which of them
  // its own data go.
  /// Asks for the session, and how far that has got: `poll` gives true when it gets further. A network need not fail by
  /// itself where nobody answers.
  virtual Trial trial(std::uint32_t peer) = 0;
  /// Somebody else knows that the peer has left or died, or takes no data by this network: nothing more goes to it or
  /// comes from it, and nobody waits for it any longer. What has come can still be read.
  virtual void end(std::uint32_t /*peer*/, const std::string& /*cause*/) {}
  /// Whether the peer has all that was committed to it, or the session is over; a rank that leaves waits for it.
  virtual bool delivered(std::uint32_t peer) const = 0;
  /// Where the peer was called, in words that follow "tried": "10.0.0.2:4711, [fd00::2]:4711".
  virtual std::string places(std::uint32_t /*peer*/) const { return {}; }
  /// Which network carries data to the peer, as people name it, in at most 8 characters: "tcp", "tcp+TLS" if they are
  /// encrypted. Of the endpoint itself: which one would be tried first.
  virtual const char* way_to(std::uint32_t /*peer*/) const { return name(); }

  /// What strangers did: connections and datagrams that were refused because they did not prove to be of the job.
  virtual std::uint64_t refused() const = 0;
  /// Adds that number, and what it grows by from now on, to a word that others can read. It lives longer than this.
  virtual void show_refused(std::atomic<std::uint64_t>& word) = 0;
};

}  // namespace unisono
