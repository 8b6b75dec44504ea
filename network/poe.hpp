// Protocol offload engine (POE): what the engine needs of a network.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/generated/spec.hpp"
#include "network/counters.hpp"
#include "network/flight_record.hpp"

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

  /// Oldest message of `peer` on a lane; false if there is none. Repeated without `release`, it gives the
  /// same message. Throws Error(kCorruptMessage) if the shared memory holds an impossible length or header.
  virtual bool peek(std::uint32_t peer, Lane lane, Incoming& incoming) = 0;
  /// Gives back the message that `peek` returned.
  virtual void release(std::uint32_t peer, Lane lane) = 0;

  /// A number that changes whenever anything may have arrived, a peer has left, or space become free on a
  /// session whose last `reserve` gave nullptr; read it before looking for work, hand it to `wait` if there
  /// was none. A peer that dies changes nothing: bound the wait, and ask `liveness`.
  virtual std::uint32_t activity() const = 0;
  /// Sleeps until activity() differs from `seen`, or `at_most` has passed. Never misses a change.
  virtual void wait(std::uint32_t seen, std::chrono::microseconds at_most) = 0;

  /// The time in which deadlines are counted. A simulated network has a time of its own.
  virtual std::chrono::steady_clock::time_point now() const { return std::chrono::steady_clock::now(); }

  /// Whether the peer's process still takes part. Who has not joined yet counts as alive. What a peer sent
  /// before it left or died can still be received.
  enum class Liveness : std::uint8_t { kAlive, kLeft, kDead };
  virtual Liveness liveness(std::uint32_t peer) = 0;
  /// The network as one of memory that all endpoints map, where messages can go past the sessions; else null.
  virtual shm::ShmPoe* shared_memory() { return nullptr; }

  /// How to name an endpoint in a message to people, for instance "endpoint 3 (pid 4711)".
  virtual std::string describe(std::uint32_t peer) const = 0;
  /// What the system says of an endpoint's process that may matter to who waits for it, for instance "stopped by a
  /// signal"; empty if there is nothing to say or to ask.
  virtual std::string condition(std::uint32_t /*peer*/) const { return {}; }
  /// The flight records of an endpoint, kRecordedCommunicators; null if they cannot be read from here. Those of `self`
  /// are written by its engine.
  virtual CommunicatorRecord* records(std::uint32_t /*endpoint*/) const { return nullptr; }
  /// The counters of an endpoint, likewise.
  virtual NativeCounters* counters(std::uint32_t /*endpoint*/) const { return nullptr; }
  /// What tools ask of the job; null if they have no way to.
  virtual const JobOrders* orders() const { return nullptr; }
};

}  // namespace unisono
