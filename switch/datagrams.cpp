#include "switch/datagrams.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/interfaces.hpp"
#include "switch/envelope.hpp"

namespace unisono::slots {

namespace {

/// What the system keeps while this process does not look: as much as it allows up to this.
constexpr int kKept = 8 << 20;

tcp::Socket open_at(const tcp::Address& own, int& fault) {
  tcp::Socket made(socket(own.six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  fault = errno;
  if (!made.valid()) return made;
  const int off = 0;
  if (own.six) setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  // More than the system gives everybody, where this process may ask for it.
  if (setsockopt(made.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kKept, sizeof kKept) != 0) {
    setsockopt(made.get(), SOL_SOCKET, SO_RCVBUF, &kKept, sizeof kKept);
  }
  if (setsockopt(made.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kKept, sizeof kKept) != 0) {
    setsockopt(made.get(), SOL_SOCKET, SO_SNDBUF, &kKept, sizeof kKept);
  }
  const tcp::SystemAddress address = tcp::system_address(own, tcp::scope_of_own(own));
  if (bind(made.get(), address.get(), address.bytes) == 0) return made;
  fault = errno;
  return {};
}

bool is_six(int socket) {
  int family = 0;
  socklen_t bytes = sizeof family;
  return getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &bytes) == 0 && family == AF_INET6;
}

tcp::Socket open_for(const tcp::Address& own) {
  int fault = 0;
  tcp::Address at = own;
  if (own.unspecified()) at.six = true;
  tcp::Socket made = open_at(at, fault);
  if (!made.valid() && own.unspecified() && fault != EADDRINUSE) {
    at.six = false;  // a system without IPv6
    made = open_at(at, fault);
  }
  if (made.valid()) return made;
  const std::string where = own.unspecified() ? formatted("port {}", own.port) : tcp::text_of(own);
  throw Error(ErrorCode::kBootstrap, formatted("no socket for datagrams at {}: {}", where, tcp::text_of_error(fault)));
}

}  // namespace

Datagrams::Datagrams(tcp::Socket socket, std::size_t most, const udp::ImpairmentSettings& impairment)
    : socket_(std::move(socket)),
      stride_(most + kEnvelopeSlack),
      in_(kBatch * stride_),
      out_(kBatch * stride_),
      came_(kBatch),
      came_pieces_(kBatch),
      from_(kBatch),
      going_(kBatch),
      going_pieces_(kBatch),
      to_(kBatch),
      impairment_(impairment) {
  int kept = 0;
  socklen_t kept_bytes = sizeof kept;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &kept, &kept_bytes) == 0 && kept > 0) {
    room_bytes_ = static_cast<std::size_t>(kept);
  }
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &bytes) == 0) {
    if (const auto address = tcp::address_of(own)) port_ = address->port;
  }
}

Datagrams::Datagrams(std::uint16_t port, std::size_t most, const udp::ImpairmentSettings& impairment)
    : Datagrams(tcp::Address{.six = true, .bytes = {}, .port = port, .interface = {}}, most, impairment) {}

Datagrams::Datagrams(const tcp::Address& at, std::size_t most, const udp::ImpairmentSettings& impairment)
    : Datagrams(open_for(at), most, impairment) {
  six_ = is_six(socket_.get());
}

Datagrams Datagrams::of_group(const tcp::Address& group, const tcp::Address& own, std::size_t most) {
  tcp::Socket made(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  const int off = 0;
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Of groups that others of this host have joined nothing comes here.
  setsockopt(made.get(), IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off);
  ip_mreq join{};
  std::memcpy(&join.imr_multiaddr, group.bytes.data(), 4);
  std::memcpy(&join.imr_interface, own.bytes.data(), 4);
  const tcp::SystemAddress address = tcp::system_address(group, 0);
  if (!made.valid() || bind(made.get(), address.get(), address.bytes) != 0 ||
      setsockopt(made.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) != 0) {
    throw Error(ErrorCode::kBootstrap, formatted("the group {} cannot be joined at {}: {}", tcp::text_of(group),
                                                 tcp::text_without_port(own), tcp::text_of_error(errno)));
  }
  Datagrams datagrams(std::move(made), most, {});
  datagrams.six_ = false;
  return datagrams;
}

bool Datagrams::sends_to_groups_by(const tcp::Address& own) {
  in_addr address{};
  std::memcpy(&address, own.bytes.data(), sizeof address);
  return setsockopt(socket_.get(), IPPROTO_IP, IP_MULTICAST_IF, &address, sizeof address) == 0;
}

tcp::SystemAddress Datagrams::reachable(const tcp::Address& address, unsigned scope) const {
  return six_ ? tcp::system_address_for_six(address, scope) : tcp::system_address(address, scope);
}

std::span<std::byte> Datagrams::room() {
  if (waiting_ == kBatch) flush();
  return {out_.data() + waiting_ * stride_, stride_};
}

void Datagrams::queue(const tcp::SystemAddress& to, std::size_t bytes) {
  to_[waiting_] = to;
  going_pieces_[waiting_] = {out_.data() + waiting_ * stride_, bytes};
  going_[waiting_].msg_hdr = {&to_[waiting_].storage, to.bytes, &going_pieces_[waiting_], 1, nullptr, 0, 0};
  ++waiting_;
}

void Datagrams::flush() {
  if (impairment_.active()) {
    send_impaired();
    return;
  }
  std::size_t gone = 0;
  while (gone < waiting_) {
    const int sent = sendmmsg(socket_.get(), going_.data() + gone, static_cast<unsigned>(waiting_ - gone),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      gone += static_cast<std::size_t>(sent);
    } else if (errno != EINTR) {
      ++gone;  // of one place alone, which others need not pay for
    }
  }
  waiting_ = 0;
}

void Datagrams::send_impaired() {
  const auto now = std::chrono::steady_clock::now();
  const auto send = [this](const tcp::SystemAddress& to, std::span<const std::byte> datagram) {
    sendto(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL, to.get(), to.bytes);
  };
  impairment_.release(now, send);
  for (std::size_t i = 0; i < waiting_; ++i) {
    const auto* const data = static_cast<const std::byte*>(going_pieces_[i].iov_base);
    impairment_.pass(to_[i], {data, going_pieces_[i].iov_len}, now, send);
  }
  waiting_ = 0;
}

std::size_t Datagrams::receive_batch() {
  // The system has written to those that it filled.
  for (std::size_t i = 0; i < filled_; ++i) {
    came_pieces_[i] = {in_.data() + i * stride_, stride_ - kEnvelopeSlack};
    came_[i].msg_hdr = {&from_[i].storage, sizeof from_[i].storage, &came_pieces_[i], 1, nullptr, 0, 0};
  }
  filled_ = 0;
  const int got = recvmmsg(socket_.get(), came_.data(), kBatch, MSG_DONTWAIT, nullptr);
  filled_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  return filled_;
}

}  // namespace unisono::slots
