// Protocol offload engine (POE): what the engine needs of a network.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "core/generated/spec.hpp"
#include "network/companion.hpp"
#include "network/counters.hpp"
#include "network/flight_record.hpp"
#include "network/reach.hpp"

namespace unisono {

namespace shm {
class ShmPoe;
}

/// Two sessions to every endpoint, each reliable and in order. Control is never blocked by data.
enum class Lane : std::uint8_t { kData, kControl };

/// A received message; valid until `Poe::release`.
struct Incoming {
  Header header;                       ///< a private copy: checked and used without re-reading shared memory
  std::span<const std::byte> payload;  ///< in the network's memory; peers cannot enlarge it
};

/// What became of a message that is sent from the caller's memory.
enum class Sent : std::uint8_t {
  kNo,    ///< nothing: the session has no space now
  kLent,  ///< it is on its way, and the memory is needed until the session `lends` nothing more
  kWhole  ///< it is on its way, and the memory is the caller's again
};

/// Says where data of messages that are on their way may be put, so that nobody has to copy them. The engine's; a
/// network calls it inside the functions of Poe that the engine calls.
class Landings {
 public:
  /// Memory for the whole payload of a message of `peer`, or null: it is to stay in the network's memory until `peek`
  /// hands it out. Its header was checked. Asked anew before anything is written there, and before the message is
  /// handed out: another answer than before means that nobody awaits the message any more, so the network drops it.
  virtual std::byte* landing(std::uint32_t peer, const Header& header) = 0;

 protected:
  ~Landings() = default;
};

/// Moves messages between this endpoint and its peers. Endpoints are numbered 0 .. size()-1 in the
/// job; the engine maps ranks of communicators to them. Not thread-safe: the engine serialises.
///
/// Sending: `reserve`, write the payload into the returned memory, `commit` (or drop the reservation
/// by reserving again). Receiving: `peek`, use, `release`. None of these blocks.
class Poe {
 public:
  virtual ~Poe() = default;
  Poe() = default;
  Poe(const Poe&) = delete;
  Poe& operator=(const Poe&) = delete;

  virtual std::uint32_t self() const = 0;
  virtual std::uint32_t size() const = 0;
  /// Largest payload of one message on a lane, in bytes; a multiple of 64.
  virtual std::uint32_t max_payload(Lane lane) const = 0;

  /// Memory for the payload of the next message to `peer`, 64-byte aligned, or nullptr if the session
  /// has no space now. `bytes` <= max_payload(lane). Sending to self is allowed.
  virtual std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) = 0;
  /// Publishes the message reserved last on this session. `header.segment_bytes` is the payload's length,
  /// at most what was reserved. Fills in magic, version, session sequence and checksum.
  virtual void commit(std::uint32_t peer, Lane lane, const Header& header) = 0;

  /// `reserve`, a copy of the payload and `commit` in one, of a message that stands in the caller's memory: a network
  /// may take it from there. False, and nothing was sent, if the session has no space now.
  virtual bool send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) {
    std::byte* const place = reserve(peer, lane, static_cast<std::uint32_t>(payload.size()));
    if (place == nullptr) return false;
    if (!payload.empty()) std::memcpy(place, payload.data(), payload.size());
    commit(peer, lane, header);
    return true;
  }

  /// Whether `lend` is of use: the network can go on to take messages from where they stand.
  virtual bool takes_loans(std::uint32_t /*peer*/) const { return false; }
  /// As `send`, on the data lane, of messages whose payloads lie one behind the other, at most kMostLent, in memory
  /// that stays as it is for longer: the network may go on to take from it what the system does not take at once. All
  /// go, or none. A session has one loan at a time; what else is sent waits, or is copied.
  virtual Sent lend(std::uint32_t /*peer*/, std::span<const Header> /*headers*/, const std::byte* /*payload*/) {
    return Sent::kNo;
  }
  static constexpr std::size_t kMostLent = 8;
  /// Whether the memory that was lent last to `peer` is still needed. `poll` gives true when that ends.
  virtual bool lends(std::uint32_t /*peer*/) const { return false; }
  /// Copies what is still needed of memory that was lent, and waits until nobody writes any more to memory that was
  /// hidden: it is its owners' again. Waits for a second at most; then an endpoint that may still write is named, once.
  virtual std::optional<std::uint32_t> settle() { return std::nullopt; }

  // One-sided access: the network writes straight from the memory of one endpoint to that of another one.
  /// Whether the two ends can write to each other's memory now. The session must be there: before, messages go.
  virtual bool takes_writes(std::uint32_t /*peer*/) const { return false; }
  /// Lets a peer write to memory, until it is hidden; nothing if the network cannot. How the peer learns of it is the
  /// engine's business.
  virtual std::optional<Reach> show(std::uint32_t /*peer*/, std::span<std::byte> /*memory*/) { return std::nullopt; }
  /// The peer may write no more; `written`: it has written all that it will. Otherwise it may still be at it: the
  /// memory is its owner's after `settle`.
  virtual void hide(std::uint32_t /*peer*/, const Reach& /*reach*/, bool /*written*/) {}
  /// Writes to memory of a peer that it has shown, `offset` bytes behind its begin, and sends the message `done`, on
  /// the data lane and without payload, so that it comes when all was written. The payload stays as it is until `done`
  /// says so. False, and nothing was begun, if there is no room now or the peer has hidden it: then messages go.
  virtual bool write(std::uint32_t /*peer*/, const Reach& /*reach*/, std::uint64_t /*offset*/, const Header& /*done*/,
                     std::span<const std::byte> /*payload*/, Ticket& /*ticket*/) {
    return false;
  }
  /// Whether the payload is its owner's again: written, or dropped because the peer has hidden its memory or is dead.
  /// `poll` gives true when that comes.
  virtual bool done(std::uint32_t /*peer*/, Ticket /*ticket*/) const { return true; }
  /// Nothing more of it goes, and no message; the payload is its owner's after `settle`.
  virtual void withdraw(std::uint32_t /*peer*/, Ticket /*ticket*/) {}

  /// Oldest message of `peer` on a lane; false if there is none. Repeated without `release`, it gives the
  /// same message. Throws Error(kCorruptMessage) if the shared memory holds an impossible length or header.
  virtual bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) = 0;
  /// Gives back the message that `peek` returned.
  virtual void release(std::uint32_t peer, Lane lane) = 0;
  /// Endpoints of which there may be a message now, some perhaps twice; of all others there is none. Nothing: any may
  /// have sent one. Valid until the next call of anything here.
  virtual std::optional<std::span<const std::uint32_t>> talkers() { return std::nullopt; }

  /// From now on large messages may be put where `landings` says; null: none. `peek` then gives that memory as payload.
  virtual void land_in(Landings* /*landings*/) {}

  /// While it holds, short messages may wait here for others to go with them, until the next `poll`.
  virtual void hold(bool /*holds*/) {}

  /// Sends what waits and takes what has come, where that is not done by itself. True if anything was done. The engine
  /// calls it in every round, under its lock.
  virtual bool poll() { return false; }

  /// Whether committed messages wait here for a network to take them, or may have to be sent again, so that somebody
  /// must go on to `poll`.
  virtual bool has_output() const { return false; }
  /// When somebody must `poll` next for the sake of that: as early as can be where it waits here; later where all has
  /// gone, and may have to go again. Nobody need poll before, and never where there is no output.
  virtual std::chrono::steady_clock::time_point output_due() const {
    using Time = std::chrono::steady_clock::time_point;
    return has_output() ? Time::min() : Time::max();
  }

  /// A number that changes whenever anything may have arrived, a peer has left, or space become free on a
  /// session whose last `reserve` gave nullptr; read it before looking for work, hand it to `wait` if there
  /// was none. A peer that dies changes nothing: bound the wait, and ask `liveness`.
  virtual std::uint32_t activity() const = 0;
  /// Sleeps until activity() differs from `seen`, or `at_most` has passed. Never misses a change.
  virtual void wait(std::uint32_t seen, std::chrono::microseconds at_most) = 0;

  /// The time in which deadlines are counted. A simulated network has a time of its own.
  virtual std::chrono::steady_clock::time_point now() const { return std::chrono::steady_clock::now(); }

  /// Whether the peer's process still takes part. A peer that has not joined yet counts as alive. What a peer sent
  /// before it left or died can still be received.
  enum class Liveness : std::uint8_t { kAlive, kLeft, kDead };
  virtual Liveness liveness(std::uint32_t peer) = 0;
  /// What is known of a peer that takes no part any more. Only its kernel can say that its process has ended; without
  /// that word it may live on behind a network that is cut.
  enum class Fate : std::uint8_t {
    kUnknown,   ///< it takes part, or its kernel is being asked
    kEnded,     ///< its process has ended, or it has left
    kVanished,  ///< nothing comes from it any more, and nobody knows what it does
  };
  virtual Fate fate(std::uint32_t peer) { return liveness(peer) == Liveness::kAlive ? Fate::kUnknown : Fate::kEnded; }
  /// Memory that this endpoint shares with others of its host, where messages can go past the sessions; else null.
  virtual shm::ShmPoe* shared_memory() { return nullptr; }
  /// Which number an endpoint has there; nothing if it does not map it.
  virtual std::optional<std::uint32_t> in_shared_memory(std::uint32_t /*endpoint*/) const { return std::nullopt; }
  /// Whether any machine of the job has more endpoints than usable cores, alike on all endpoints; nothing: all are on
  /// one host, so that what they have agreed on says it.
  virtual std::optional<bool> crowded() const { return std::nullopt; }
  /// Whether all that may come changes the endpoint's word in shared memory, so that one may sleep on that alone.
  virtual bool sleeps_on_word() const { return true; }
  /// The number of an endpoint's host; equal on all endpoints.
  virtual std::uint32_t host_of(std::uint32_t /*endpoint*/) const { return 0; }
  /// What carries messages to an endpoint: "shm", "tcp"; a simulated network has its own word.
  virtual const char* way_to(std::uint32_t /*peer*/) const { return "network"; }

  /// How to name an endpoint in a message to people, for instance "endpoint 3 (pid 4711)".
  virtual std::string describe(std::uint32_t peer) const = 0;
  /// What the system says of an endpoint's process that may matter to a rank that waits for it, for instance "stopped
  /// by a signal"; empty if there is nothing to say or to ask.
  virtual std::string condition(std::uint32_t /*peer*/) const { return {}; }
  /// The flight records of an endpoint, kRecordedCommunicators; null if they cannot be read from here. Those of `self`
  /// are written by its engine.
  virtual CommunicatorRecord* records(std::uint32_t /*endpoint*/) const { return nullptr; }
  /// The counters of an endpoint, likewise.
  virtual NativeCounters* counters(std::uint32_t /*endpoint*/) const { return nullptr; }
  /// What tools ask of the job; null if they have no way to.
  virtual const JobOrders* orders() const { return nullptr; }
  /// From now on a companion is polled with the network, and wakes who sleeps in `wait`; null: none any more. False if
  /// there is no network between hosts here, and so nothing for it to do. To be called before or under the engine's
  /// lock; the companion lives until it is taken back.
  virtual bool attach(Companion* /*companion*/) { return false; }
};

}  // namespace unisono
