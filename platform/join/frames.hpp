// How the members of a job speak to each other before they share memory or a network: frames over a socket.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "network/secret.hpp"
#include "platform/join/sockets.hpp"

namespace unisono::join {

inline constexpr std::uint32_t kProtocol = 2;
inline constexpr std::uint32_t kMaxText = 4096;           ///< bytes of a refusal
inline constexpr std::uint32_t kFrameMagic = 0x4a494e55;  ///< "UNIJ" in memory order

/// What a frame says. A member says hello. Rank 0 answers with a challenge, in which it proves that it knows the
/// secret; the member proves the same. Then, in each round, every member gives something, and rank 0 hands all of it to
/// everybody. Members of one host hand the memory that they share to each other over connections of their own. Refused
/// may come instead of any of them, from either side, with a text that says why; it has this number in all versions of
/// the protocol.
enum class FrameKind : std::uint32_t {
  kHello = 1,
  kChallenge = 2,
  kProof = 3,
  kGive = 4,
  kRefused = 5,
  kAll = 6,
  kAsk = 7,
  kMemory = 8,
};

/// Before the body of every frame. Its layout is the same in all versions of the protocol.
struct FrameHead {
  std::uint32_t magic;
  std::uint32_t protocol;
  FrameKind kind;
  std::uint32_t body_bytes;
};

/// Body of a hello.
struct Hello {
  std::uint32_t rank;
  std::uint32_t size;
  std::uint32_t pid;
  Nonce nonce;
};

/// Body of a challenge: rank 0's own nonce, and its proof for the hello.
struct Challenge {
  Nonce nonce;
  Digest proof;
};
static_assert(std::has_unique_object_representations_v<Hello> && std::has_unique_object_representations_v<Challenge>);

/// Most bytes that somebody who has proven nothing may send in a frame.
inline constexpr std::uint32_t kMaxUnproven = sizeof(Hello);

/// Sends a frame, with file descriptor `attached` if that is not negative. False if the other end has
/// gone or does not read before the deadline.
bool send_frame(const Descriptor& connection, FrameKind kind, std::span<const std::byte> body, Deadline deadline,
                int attached = -1);
/// Sends a refusal, shortened to what a frame takes. Best effort: waits a second at most.
void send_refusal(const Descriptor& connection, const std::string& text);

/// Reads one frame in pieces, never blocking, never holding more than `max_body` bytes, or those of a refusal.
class FrameReader {
 public:
  /// `accepts_descriptor`: whether an attached file descriptor is kept; otherwise the kernel drops it.
  explicit FrameReader(std::uint32_t max_body, bool accepts_descriptor = false)
      : max_body_(max_body), accepts_descriptor_(accepts_descriptor) {}

  enum class Progress {
    kMore,      ///< call again when there is more to read
    kComplete,  ///< a frame is there: `kind`, `body`, `attached`
    kClosed,    ///< the other end has gone
    kForeign,   ///< not this protocol: see `fault`
  };
  Progress read(const Descriptor& connection);
  /// Reads on, sleeping in between, until other than kMore or the deadline passes (then kMore).
  Progress read_until(const Descriptor& connection, Deadline deadline);
  /// Forgets the frame, to read the next.
  void restart() { have_ = 0; }
  /// From the next frame on, of one who has proven that it is a member.
  void allow(std::uint32_t max_body) { max_body_ = max_body; }

  FrameKind kind() const { return head_.kind; }
  std::span<const std::byte> body() const { return body_; }
  /// The body as a structure, if it has its length and the frame is of that kind.
  template <class Body>
  bool body_as(FrameKind expected, Body& into) const {
    if (head_.kind != expected || body_.size() != sizeof into) return false;
    std::memcpy(&into, body_.data(), sizeof into);
    return true;
  }
  std::string body_text() const { return {reinterpret_cast<const char*>(body_.data()), body_.size()}; }
  Descriptor take_attached() { return std::move(attached_); }
  const std::string& fault() const { return fault_; }

 private:
  std::uint32_t max_body_;
  bool accepts_descriptor_;
  std::size_t have_ = 0;  ///< bytes read, of head and body
  FrameHead head_{};
  std::vector<std::byte> body_;
  Descriptor attached_;
  std::string fault_;
};

}  // namespace unisono::join
