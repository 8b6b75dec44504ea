// How the members of a job speak to rank 0 before they share memory: frames over a Unix socket.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace unisono::rendezvous {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

inline constexpr std::uint32_t kProtocol = 1;
inline constexpr std::uint32_t kMaxName = 100;                ///< characters of a rendezvous name
inline constexpr std::uint32_t kMaxSecret = 256;              ///< characters of a secret
inline constexpr std::uint32_t kMaxCapabilities = 64 * 1024;  ///< bytes of one member's capabilities
inline constexpr std::uint32_t kMaxText = 4096;               ///< bytes of a refusal
inline constexpr std::uint32_t kFrameMagic = 0x4a494e55;      ///< "UNIJ" in memory order

/// What a frame says. A member says hello; rank 0 answers all with welcome when all have come; each
/// maps the segment and says ready; when all are, rank 0 says go. Refused may come instead of any
/// of them, from either side, with a text that says why.
enum class FrameKind : std::uint32_t { kHello = 1, kWelcome = 2, kReady = 3, kGo = 4, kRefused = 5 };

/// Before the body of every frame. Its layout is the same in all versions of the protocol.
struct FrameHead {
  std::uint32_t magic;
  std::uint32_t protocol;
  FrameKind kind;
  std::uint32_t body_bytes;
};

/// Begin of a hello's body; the secret and the capabilities follow.
struct Hello {
  std::uint32_t rank;
  std::uint32_t size;
  std::uint32_t pid;
  std::uint32_t secret_bytes;
  std::uint32_t capabilities_bytes;
};

inline constexpr std::uint32_t kMaxHello = sizeof(Hello) + kMaxSecret + kMaxCapabilities;

/// A file descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

/// Who is at the other end of a connection, as the kernel says.
struct Credentials {
  std::uint32_t pid = 0;  ///< 0 if not visible from here
  std::uint32_t uid = 0;
};
std::optional<Credentials> credentials_of(const Descriptor& connection);

/// Listens on the abstract socket `name`. Throws Error(kBootstrap).
Descriptor listen_on(const std::string& name);
/// Connects to it; without a value if nobody listens yet. Throws Error(kBootstrap).
Descriptor try_connect(const std::string& name);
/// The next connection, or an invalid descriptor if none waits. Throws Error(kBootstrap) if the system refuses.
Descriptor accept_from(const Descriptor& listener);

/// Sends a frame, with file descriptor `attached` if that is not negative. False if the other end has
/// gone or does not read before the deadline.
bool send_frame(const Descriptor& connection, FrameKind kind, std::span<const std::byte> body, Deadline deadline,
                int attached = -1);
/// Sends a refusal, shortened to what a frame takes. Best effort: waits a second at most.
void send_refusal(const Descriptor& connection, const std::string& text);

/// Reads one frame in pieces, never blocking, never holding more than `max_body` bytes.
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

  FrameKind kind() const { return head_.kind; }
  std::span<const std::byte> body() const { return body_; }
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

/// Sleeps until a descriptor is readable or the deadline passes.
void sleep_until_readable(const Descriptor& connection, Deadline deadline);

/// Milliseconds until the deadline for poll(2), rounded up: 0 only if it has passed.
int milliseconds_until(Deadline deadline);

/// Waits until something can be done with one of the descriptors, or the deadline has passed.
void sleep_until_ready(std::span<pollfd> watched, Deadline deadline);

/// "4 s", "1.5 s": a span for a message to people.
std::string seconds_text(std::chrono::milliseconds span);

}  // namespace unisono::rendezvous
