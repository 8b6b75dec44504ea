// Stream ports: where kernels hand elements to the calls of their rank, and take elements from them.
//
// A port is a number. Each has two queues that have nothing else in common: what kernels give to the engine, and what
// the engine gives to kernels. A queue holds as much as the one of an engine in hardware, so that a program that stops
// there for want of room stops here as well. docs/streams.md has the rules.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/generated/spec.hpp"

namespace unisono::cclo {

/// Which way the bytes of a queue go.
enum class StreamSide : std::uint8_t { kToEngine, kToKernel };

/// Bytes on their way between a kernel and calls, first in, first out. What is there lies in one piece. Allocates its
/// memory once, with the first byte. Not thread-safe.
class StreamQueue {
 public:
  /// Bytes that it holds: 256 words, as the queues of an engine in hardware.
  static constexpr std::uint64_t kBytes = std::uint64_t{256} * 64;

  std::uint64_t here() const { return end_ - begin_; }
  std::uint64_t room() const { return kBytes - here(); }
  /// The oldest byte.
  const std::byte* front() const { return memory_.get() + begin_; }
  /// A place for `bytes` more, of which there is room.
  std::byte* back(std::uint64_t bytes);
  void put(std::uint64_t bytes) { end_ += bytes; }
  void taken(std::uint64_t bytes) {
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }

 private:
  /// Twice what it holds: bytes move to the begin once for as many that have been taken.
  static constexpr std::uint64_t kMemory = 2 * kBytes;
  std::unique_ptr<std::byte[]> memory_;
  std::uint64_t begin_ = 0, end_ = 0;
};

/// What a move of a program sends to a stream port of a peer: a message of its own, which starts when all its elements
/// have been computed. Under the engine's lock; whoever still needs the elements holds it.
struct PortMessage {
  std::uint32_t communicator = 0;  ///< its number
  std::uint32_t peer = 0;          ///< rank
  std::uint32_t port = 0;          ///< of the peer
  Datatype dtype = Datatype::kNone;
  std::chrono::microseconds timeout{0};
  std::vector<std::byte> elements;
  bool ended = false;  ///< the elements have gone, or:
  ErrorCode code = ErrorCode::kOk;
  std::string text;
};

/// The ports of one engine, and who uses each. Under the engine's lock.
class StreamPorts {
 public:
  static constexpr std::uint32_t kPorts = kMaxStreamPorts;

  /// The queue of a port, which must be below kPorts.
  StreamQueue& queue(StreamSide side, std::uint32_t port) { return at(side, port).queue; }

  /// Calls use a queue one after the other, in the order in which they were made.
  void join(StreamSide side, std::uint32_t port, std::uint64_t call) {
    End& end = at(side, port);
    if (end.line.empty()) end.failure.reset();  // of a call that nobody has asked about
    end.line.push_back(call);
  }
  bool has_turn(StreamSide side, std::uint32_t port, std::uint64_t call) const {
    const std::vector<std::uint64_t>& line = at(side, port).line;
    return !line.empty() && line.front() == call;
  }
  bool used(StreamSide side, std::uint32_t port) const { return !at(side, port).line.empty(); }
  /// A call that has ended, or will not use the queue any more.
  void leave(StreamSide side, std::uint32_t port, std::uint64_t call);

  /// The call that gave elements to kernels has failed: whoever reads on gets its error, once.
  struct Failure {
    ErrorCode code = ErrorCode::kOk;
    std::string text;
  };
  void fail(std::uint32_t port, ErrorCode code, const std::string& text) {
    at(StreamSide::kToKernel, port).failure = Failure{code, text};
  }
  std::optional<Failure> take_failure(std::uint32_t port);
  bool has_failure(std::uint32_t port) const { return at(StreamSide::kToKernel, port).failure.has_value(); }

  /// Kernels that wait for elements of a port: messages to it are looked for as long as there are any.
  std::array<std::uint32_t, kPorts> readers{};
  std::uint32_t reading = 0;  ///< the sum of these

  /// What moves have made for ports of peers, and nobody has sent yet.
  std::vector<std::shared_ptr<PortMessage>> to_peers;

 private:
  struct End {
    StreamQueue queue;
    std::vector<std::uint64_t> line;  ///< calls, by number
    std::optional<Failure> failure;
  };
  End& at(StreamSide side, std::uint32_t port) { return ends_[static_cast<std::size_t>(side) * kPorts + port]; }
  const End& at(StreamSide side, std::uint32_t port) const {
    return ends_[static_cast<std::size_t>(side) * kPorts + port];
  }

  std::array<End, std::size_t{2} * kPorts> ends_;
};

/// Throws Error(kInvalidArgument) for a port that no engine has.
void check_port(std::int64_t port, const std::string& operation);

/// How one call uses streams. Under the engine's lock.
struct CallStreams {
  /// One queue that the call uses. Its moves use it in the order in which they stand in the program.
  struct Use {
    StreamSide side = StreamSide::kToEngine;
    std::uint8_t port = 0;
    std::uint32_t entered = 0;  ///< accesses that have entered the window
    std::uint32_t done = 0;     ///< of these, finished
    std::uint64_t bytes = 0;    ///< that went through
  };
  /// A region whose elements come from a port, or go to one. One that is read and written has two of these.
  struct Bound {
    Region region = Region::kSrc;
    StreamSide side = StreamSide::kToEngine;
    std::uint8_t port = 0;
    std::uint64_t bytes = 0;  ///< of the region
    /// The region stands in memory during the call: its elements come before it, or go after it. Else moves go to the
    /// port itself.
    bool staged = false;
    std::uint64_t done = 0;  ///< staged: bytes that were taken from the port, or given to it
  };
  std::vector<Bound> bounds;
  bool gives = false;                            ///< the call is done, and its staged results go to ports
  std::array<std::vector<std::byte>, 2> memory;  ///< of src and dst, if staged
  std::vector<Use> uses;                         ///< every queue that the call uses
  /// Of a program that sends to ports of peers: by move, modulo the window. Else empty.
  std::vector<std::shared_ptr<PortMessage>> to_ports;
  std::uint64_t moved = 0;         ///< bytes so far; the deadline counts from the last
  std::uint64_t moved_before = 0;  ///< when the deadline was last looked at

  Use& use(StreamSide side, std::uint32_t port);
  /// What a region is bound to on a side, if moves go to the port themselves; or null.
  const Bound* direct(Region region, StreamSide side) const {
    for (const Bound& bound : bounds) {
      if (bound.region == region && bound.side == side && !bound.staged) return &bound;
    }
    return nullptr;
  }
};

}  // namespace unisono::cclo
