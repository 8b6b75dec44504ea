#include "platform/join/frames.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "core/text.hpp"

namespace unisono::join {

bool send_frame(const Descriptor& connection, FrameKind kind, std::span<const std::byte> body, Deadline deadline,
                int attached) {
  const FrameHead head{kFrameMagic, kProtocol, kind, static_cast<std::uint32_t>(body.size())};
  const auto begin = std::as_bytes(std::span(&head, 1));
  std::vector<std::byte> bytes(begin.begin(), begin.end());
  bytes.insert(bytes.end(), body.begin(), body.end());

  for (std::size_t sent = 0; sent < bytes.size();) {
    iovec piece{bytes.data() + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (attached >= 0 && sent == 0) {  // rides on the first byte
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &attached, sizeof attached);
    }
    const ssize_t done = sendmsg(connection.get(), &message, MSG_NOSIGNAL);
    if (done > 0) {
      sent += static_cast<std::size_t>(done);
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    if (Clock::now() >= deadline) return false;
    pollfd one{connection.get(), POLLOUT, 0};
    sleep_until_ready({&one, 1}, deadline);
  }
  return true;
}

void send_refusal(const Descriptor& connection, const std::string& text) {
  const std::string shortened = text.substr(0, kMaxText);
  send_frame(connection, FrameKind::kRefused, std::as_bytes(std::span(shortened)),
             Clock::now() + std::chrono::seconds(1));
}

FrameReader::Progress FrameReader::read(const Descriptor& connection) {
  for (;;) {
    std::byte* place;
    std::size_t wanted;
    if (have_ < sizeof head_) {
      place = reinterpret_cast<std::byte*>(&head_) + have_;
      wanted = sizeof head_ - have_;
    } else {
      const std::size_t of_body = have_ - sizeof head_;
      if (of_body == body_.size()) return Progress::kComplete;
      place = body_.data() + of_body;
      wanted = body_.size() - of_body;
    }
    iovec piece{place, wanted};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (accepts_descriptor_) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
    }
    const ssize_t done = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Progress::kMore;
    if (done <= 0) return Progress::kClosed;
    for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr; item = CMSG_NXTHDR(&message, item)) {
      if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item), sizeof fd);
      attached_ = Descriptor(fd);
    }
    have_ += static_cast<std::size_t>(done);
    if (have_ != sizeof head_) continue;
    if (head_.magic != kFrameMagic) {
      fault_ = "it does not speak the rendezvous protocol";
      return Progress::kForeign;
    }
    if (head_.protocol != kProtocol && head_.kind != FrameKind::kRefused) {
      fault_ = formatted(
          "it speaks version {} of the rendezvous protocol, this process {}; all members must use the same release",
          head_.protocol, kProtocol);
      return Progress::kForeign;
    }
    if (head_.body_bytes > std::max(max_body_, kMaxText)) {
      fault_ = formatted("a frame of {} bytes, allowed are {}", head_.body_bytes, std::max(max_body_, kMaxText));
      return Progress::kForeign;
    }
    body_.resize(head_.body_bytes);
  }
}

FrameReader::Progress FrameReader::read_until(const Descriptor& connection, Deadline deadline) {
  for (;;) {
    const Progress progress = read(connection);
    if (progress != Progress::kMore || Clock::now() >= deadline) return progress;
    sleep_until_readable(connection, deadline);
  }
}

}  // namespace unisono::join
