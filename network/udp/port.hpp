// The socket of this network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "network/tcp/address.hpp"
#include "network/tcp/socket.hpp"
#include "network/udp/frames.hpp"
#include "network/udp/impairment.hpp"

namespace unisono::udp {

/// Datagrams to one address, each a frame and a piece that stays where it is. All are as long as the first, but for the
/// last, which may be shorter.
struct Batch {
  static constexpr std::size_t kMost = 44;
  static constexpr std::size_t kMostBytes = 65'500;  ///< of all, with their headers as one packet
  tcp::SystemAddress to;
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::array<DataFrame, kMost> frames;
  std::array<std::span<const std::byte>, kMost> pieces;

  void clear() { count = bytes = 0; }
  bool takes(std::size_t piece) const {
    if (count == 0) return true;
    const bool shorter_before = pieces[count - 1].size() < pieces[0].size();
    return count < kMost && !shorter_before && piece <= pieces[0].size() &&
           bytes + sizeof(DataFrame) + piece <= kMostBytes;
  }
  void add(const DataFrame& frame, std::span<const std::byte> piece) {
    frames[count] = frame;
    pieces[count++] = piece;
    bytes += sizeof frame + piece.size();
  }
};

/// A datagram that came.
struct Came {
  std::span<const std::byte> bytes;
  tcp::SystemAddress from;
  /// Where it was sent to, if that was asked for.
  std::optional<tcp::Address> to;
};

/// Sends and takes datagrams, many with one call where the kernel can: it cuts what is sent (UDP_SEGMENT) and joins
/// what comes (UDP_GRO). Where it cannot, sendmmsg and recvmmsg.
class Port {
 public:
  using Clock = std::chrono::steady_clock;
  /// Any port, at all addresses. Throws Error(kBootstrap).
  explicit Port(const ImpairmentSettings& impairment);

  std::uint16_t port() const { return port_; }
  int descriptor() const { return socket_.get(); }
  /// From now on `Came::to` is filled in.
  void tell_destinations();
  /// Bytes that the kernel keeps while this rank does not look.
  std::size_t memory() const { return memory_; }

  /// As this socket takes it.
  tcp::SystemAddress reachable(const tcp::Address& address, unsigned scope) const;
  /// The longest datagram on the way there, as far as this host knows.
  static std::size_t longest_to(const tcp::Address& address, unsigned scope);

  enum class Result : std::uint8_t {
    kSent,     ///< or lost on the way, as any datagram may
    kWaits,    ///< the kernel takes no more now; the batch is what remains
    kTooLong,  ///< for the path, as the kernel has learnt
  };
  Result send(Batch& batch);
  /// A datagram by itself. It is lost if the kernel does not take it.
  void send(const tcp::SystemAddress& to, std::span<const std::byte> datagram);

  using Take = std::function<void(const Came&)>;
  /// Some of what has come; false if nothing has.
  bool receive(const Take& take);

  /// Of the impairment.
  Clock::time_point deadline() const { return impairment_.deadline(); }
  void tick(Clock::time_point now);

 private:
  void open(int family);
  int send_now(const tcp::SystemAddress& to, std::span<const std::byte> datagram);
  Result send_cut(Batch& batch);
  Result send_each(Batch& batch);

  static constexpr std::size_t kBufferBytes = 65'536;
  static constexpr std::size_t kBuffers = 16;  ///< where the kernel does not join

  tcp::Socket socket_;
  bool six_ = true;
  bool cuts_ = true;
  bool joins_ = false;
  std::uint16_t port_ = 0;
  std::size_t memory_ = 0;
  Impairment impairment_;
  std::vector<std::byte> buffers_;
};

}  // namespace unisono::udp
