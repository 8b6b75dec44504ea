#include "network/udp/port.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/shortage.hpp"

namespace unisono::udp {

namespace {

// Linux 4.18 and 5.0; older headers lack the names.
constexpr int kSegment = 103;
constexpr int kJoin = 104;
constexpr int kWantedMemory = 4 * 1024 * 1024;

bool set(int socket, int level, int name, int value) {
  return setsockopt(socket, level, name, &value, sizeof value) == 0;
}

struct Control {
  alignas(cmsghdr) std::array<std::byte, 128> bytes;
};

bool again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == EINTR; }

}  // namespace

Port::Port(const ImpairmentSettings& impairment) : impairment_(impairment) {
  open(AF_INET6);
  if (!socket_.valid()) open(AF_INET);
  if (!socket_.valid()) {
    const int fault = errno;
    const std::string lacks = tcp::shortage_of_ports(fault);
    throw Error(ErrorCode::kBootstrap, formatted("the system gives no socket for datagrams: {}",
                                                 lacks.empty() ? tcp::text_of_error(fault) : lacks));
  }
  const int fd = socket_.get();
  port_ = tcp::local_address(fd).port;
  // More than the system gives everybody, where this process may ask for it.
  if (!set(fd, SOL_SOCKET, SO_RCVBUFFORCE, kWantedMemory)) set(fd, SOL_SOCKET, SO_RCVBUF, kWantedMemory);
  if (!set(fd, SOL_SOCKET, SO_SNDBUFFORCE, kWantedMemory)) set(fd, SOL_SOCKET, SO_SNDBUF, kWantedMemory);
  int given = 0;
  socklen_t bytes = sizeof given;
  if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &bytes) == 0) memory_ = static_cast<std::size_t>(given);
  const int on = 1;
  joins_ = setsockopt(fd, IPPROTO_UDP, kJoin, &on, sizeof on) == 0;
  buffers_.resize((joins_ ? 1 : kBuffers) * kBufferBytes);
}

void Port::open(int family) {
  socket_ = tcp::Socket(socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) return;
  six_ = family == AF_INET6;
  if (six_) set(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // Nothing is cut into fragments: a datagram that is too long is told of, or lost.
  if (six_) set(socket_.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
  set(socket_.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  tcp::Address any;
  any.six = six_;
  const tcp::SystemAddress address = tcp::system_address(any, 0);
  if (bind(socket_.get(), address.get(), address.bytes) == 0) return;
  const int fault = errno;
  socket_.reset();
  errno = fault;
}

void Port::tell_destinations() {
  if (six_) {
    set(socket_.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  } else {
    set(socket_.get(), IPPROTO_IP, IP_PKTINFO, 1);
  }
}

tcp::SystemAddress Port::reachable(const tcp::Address& address, unsigned scope) const {
  return six_ ? tcp::system_address_for_six(address, scope) : tcp::system_address(address, scope);
}

std::size_t Port::longest_to(const tcp::Address& address, unsigned scope) {
  const std::size_t headers = address.six ? 48 : 28;
  int mtu = 1280;
  const tcp::Socket probe(socket(address.six ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const tcp::SystemAddress there = tcp::system_address(address, scope);
  if (probe.valid() && connect(probe.get(), there.get(), there.bytes) == 0) {
    socklen_t bytes = sizeof mtu;
    const int level = address.six ? IPPROTO_IPV6 : IPPROTO_IP;
    getsockopt(probe.get(), level, address.six ? IPV6_MTU : IP_MTU, &mtu, &bytes);
  }
  return std::min(std::max<std::size_t>(static_cast<std::size_t>(std::max(mtu, 0)), 1280) - headers, Batch::kMostBytes);
}

int Port::send_now(const tcp::SystemAddress& to, std::span<const std::byte> datagram) {
  const ssize_t sent =
      sendto(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL, to.get(), to.bytes);
  return sent < 0 ? errno : 0;
}

void Port::send(const tcp::SystemAddress& to, std::span<const std::byte> datagram) {
  if (!impairment_.active()) {
    send_now(to, datagram);
    return;
  }
  impairment_.pass(to, datagram, Clock::now(), [this](const auto& where, auto bytes) { send_now(where, bytes); });
}

void Port::tick(Clock::time_point now) {
  if (impairment_.deadline() > now) return;
  impairment_.release(now, [this](const auto& where, auto bytes) { send_now(where, bytes); });
}

Port::Result Port::send(Batch& batch) {
  if (impairment_.active()) {
    std::vector<std::byte> datagram;
    for (std::size_t i = 0; i < batch.count; ++i) {
      const auto head = bytes_of(batch.frames[i]);
      datagram.assign(head.begin(), head.end());
      datagram.insert(datagram.end(), batch.pieces[i].begin(), batch.pieces[i].end());
      send(batch.to, datagram);
    }
    return Result::kSent;
  }
  return cuts_ && batch.count > 1 ? send_cut(batch) : send_each(batch);
}

Port::Result Port::send_cut(Batch& batch) {
  std::array<iovec, 2 * Batch::kMost> pieces;
  for (std::size_t i = 0; i < batch.count; ++i) {
    // The system's structure has no constant form; the kernel only reads.
    pieces[2 * i] = {&batch.frames[i], sizeof(DataFrame)};
    pieces[2 * i + 1] = {const_cast<std::byte*>(batch.pieces[i].data()), batch.pieces[i].size()};
  }
  Control control;
  msghdr message{};
  message.msg_name = &batch.to.storage;
  message.msg_namelen = batch.to.bytes;
  message.msg_iov = pieces.data();
  message.msg_iovlen = 2 * batch.count;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(sizeof(std::uint16_t));
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = IPPROTO_UDP;
  part->cmsg_type = kSegment;
  part->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto segment = static_cast<std::uint16_t>(sizeof(DataFrame) + batch.pieces[0].size());
  std::memcpy(CMSG_DATA(part), &segment, sizeof segment);
  if (sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Result::kSent;
  if (again(errno)) return Result::kWaits;
  if (errno == EMSGSIZE) return Result::kTooLong;
  // A kernel or a device that does not cut; or one by one will tell what is wrong.
  if (errno == EINVAL || errno == EIO || errno == EOPNOTSUPP || errno == ENOPROTOOPT) {
    cuts_ = false;
    return send_each(batch);
  }
  return Result::kSent;
}

Port::Result Port::send_each(Batch& batch) {
  std::array<iovec, 2 * Batch::kMost> pieces;
  std::array<mmsghdr, Batch::kMost> messages{};
  for (std::size_t i = 0; i < batch.count; ++i) {
    pieces[2 * i] = {&batch.frames[i], sizeof(DataFrame)};
    pieces[2 * i + 1] = {const_cast<std::byte*>(batch.pieces[i].data()), batch.pieces[i].size()};
    messages[i].msg_hdr.msg_name = &batch.to.storage;
    messages[i].msg_hdr.msg_namelen = batch.to.bytes;
    messages[i].msg_hdr.msg_iov = &pieces[2 * i];
    messages[i].msg_hdr.msg_iovlen = 2;
  }
  const int sent =
      sendmmsg(socket_.get(), messages.data(), static_cast<unsigned>(batch.count), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent == static_cast<int>(batch.count)) return Result::kSent;
  if (sent < 0 && errno == EMSGSIZE) return Result::kTooLong;
  if (sent < 0 && !again(errno)) return Result::kSent;
  const auto gone = static_cast<std::size_t>(std::max(sent, 0));
  for (std::size_t i = gone; i < batch.count; ++i) {
    batch.frames[i - gone] = batch.frames[i];
    batch.pieces[i - gone] = batch.pieces[i];
  }
  batch.count -= gone;
  return Result::kWaits;
}

bool Port::receive(const Take& take) {
  const std::size_t count = joins_ ? 1 : kBuffers;
  std::array<mmsghdr, kBuffers> messages{};
  std::array<iovec, kBuffers> pieces;
  std::array<Control, kBuffers> controls;
  std::array<tcp::SystemAddress, kBuffers> from;
  for (std::size_t i = 0; i < count; ++i) {
    pieces[i] = {buffers_.data() + i * kBufferBytes, kBufferBytes};
    messages[i].msg_hdr = {&from[i].storage,   sizeof from[i].storage,   &pieces[i], 1,
                           &controls[i].bytes, sizeof controls[i].bytes, 0};
  }
  int got = 0;
  if (count == 1) {
    const ssize_t bytes = recvmsg(socket_.get(), &messages[0].msg_hdr, MSG_DONTWAIT);
    messages[0].msg_len = static_cast<unsigned>(std::max<ssize_t>(bytes, 0));
    got = bytes < 0 ? 0 : 1;
  } else {
    got = recvmmsg(socket_.get(), messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT, nullptr);
  }
  for (int i = 0; i < got; ++i) {
    msghdr& message = messages[static_cast<std::size_t>(i)].msg_hdr;
    Came came;
    came.from = from[static_cast<std::size_t>(i)];
    came.from.bytes = message.msg_namelen;
    const std::span<const std::byte> whole(static_cast<const std::byte*>(message.msg_iov->iov_base),
                                           messages[static_cast<std::size_t>(i)].msg_len);
    std::size_t each = whole.size();
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level == IPPROTO_UDP && part->cmsg_type == kJoin) {
        int segment = 0;
        std::memcpy(&segment, CMSG_DATA(part), sizeof segment);
        if (segment > 0) each = static_cast<std::size_t>(segment);
      } else if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
        in6_pktinfo info{};
        std::memcpy(&info, CMSG_DATA(part), sizeof info);
        sockaddr_in6 six{};
        six.sin6_family = AF_INET6;
        six.sin6_addr = info.ipi6_addr;
        six.sin6_scope_id = info.ipi6_ifindex;
        sockaddr_storage storage{};
        std::memcpy(&storage, &six, sizeof six);
        came.to = tcp::address_of(storage);
      } else if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) {
        in_pktinfo info{};
        std::memcpy(&info, CMSG_DATA(part), sizeof info);
        tcp::Address address;
        std::memcpy(address.bytes.data(), &info.ipi_addr, 4);
        came.to = address;
      }
    }
    for (std::size_t at = 0; at < whole.size(); at += each) {
      came.bytes = whole.subspan(at, std::min(each, whole.size() - at));
      take(came);
    }
  }
  return got > 0;
}

}  // namespace unisono::udp
