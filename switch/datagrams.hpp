// A socket for datagrams to and from many places, many with one call of the system.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "network/tcp/address.hpp"
#include "network/tcp/socket.hpp"
#include "network/udp/impairment.hpp"

namespace unisono::slots {

/// Not thread-safe.
class Datagrams {
 public:
  /// Most datagrams that one call takes or sends.
  static constexpr std::size_t kBatch = 64;

  /// Takes a port, at all addresses; 0: any. `most` is the length of the longest datagram, in bytes. Throws
  /// Error(kBootstrap), which names the port if it is taken.
  Datagrams(std::uint16_t port, std::size_t most, const udp::ImpairmentSettings& impairment = {});
  /// The same at one address of this machine, whose family alone is reached then; at all, if it is unspecified.
  Datagrams(const tcp::Address& at, std::size_t most, const udp::ImpairmentSettings& impairment = {});

  /// A socket that takes what is sent to a group of IPv4, by the interface that has the address `own`. Others may take
  /// the same. Throws Error(kBootstrap).
  static Datagrams of_group(const tcp::Address& group, const tcp::Address& own, std::size_t most);
  /// What goes to groups leaves by the interface that has an address of IPv4. False if the system refuses.
  bool sends_to_groups_by(const tcp::Address& own);

  std::uint16_t port() const { return port_; }
  int descriptor() const { return socket_.get(); }
  /// Bytes that the system keeps of what comes while nobody looks, with what it counts beside datagrams.
  std::size_t room_bytes() const { return room_bytes_; }
  /// An address as this socket takes it.
  tcp::SystemAddress reachable(const tcp::Address& address, unsigned scope) const;

  /// Memory for the next datagram: `most` bytes and some slack. Sends what waits if there is no more.
  std::span<std::byte> room();
  /// The datagram of `bytes` bytes that was written to `room` goes to `to`, with the next `flush` at the latest.
  void queue(const tcp::SystemAddress& to, std::size_t bytes);
  /// Sends what waits. What the system does not take now is lost, as any datagram may be.
  void flush();

  /// Calls `take(datagram, from)` for what has come, at most kBatch; behind a datagram there is slack that may be
  /// overwritten. Datagrams that are too long are dropped. How many had come.
  template <class Take>
  std::size_t receive(Take&& take) {
    const std::size_t got = receive_batch();
    for (std::size_t i = 0; i < got; ++i) {
      if ((came_[i].msg_hdr.msg_flags & MSG_TRUNC) != 0) continue;
      from_[i].bytes = came_[i].msg_hdr.msg_namelen;
      take(std::span<std::byte>(in_.data() + i * stride_, came_[i].msg_len), from_[i]);
    }
    return got;
  }

 private:
  Datagrams(tcp::Socket socket, std::size_t most, const udp::ImpairmentSettings& impairment);
  std::size_t receive_batch();
  void send_impaired();

  tcp::Socket socket_;
  bool six_ = true;
  std::uint16_t port_ = 0;
  std::size_t room_bytes_ = 0;
  std::size_t stride_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
  std::vector<mmsghdr> came_;
  std::vector<iovec> came_pieces_;
  std::vector<tcp::SystemAddress> from_;
  std::vector<mmsghdr> going_;
  std::vector<iovec> going_pieces_;
  std::vector<tcp::SystemAddress> to_;
  std::size_t waiting_ = 0;
  std::size_t filled_ = kBatch;  ///< places for what comes that are to be made ready
  udp::Impairment impairment_;
};

}  // namespace unisono::slots
