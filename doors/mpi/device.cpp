#include "doors/mpi/device.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace unisono::mpi {

namespace {

/// Connects to an abstract socket, says which rank this is, and returns the descriptor that comes; -1 and errno else.
int ask(std::string_view name, std::uint32_t rank) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
  name.copy(address.sun_path + 1, name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  int found = -1;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
      send(connection, &rank, sizeof rank, MSG_NOSIGNAL) == sizeof rank) {
    char nothing = 0;
    iovec part{&nothing, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = room.size();
    const ssize_t got = recvmsg(connection, &message, 0);
    const cmsghdr* const head = got == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (head != nullptr && head->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&found, CMSG_DATA(head), sizeof found);
    } else if (got >= 0) {
      errno = ENODEV;  // the launcher has none for this rank
    }
  }
  const int why = errno;
  close(connection);
  errno = why;
  return found;
}

}  // namespace

bool on_devices() {
  static const bool answer = [] {
    const char* const platform = std::getenv("UNISONO_PLATFORM");
    return platform != nullptr && *platform != '\0' && std::string_view(platform) != "native";
  }();
  return answer;
}

bool in_simulated_time() {
  const char* const platform = std::getenv("UNISONO_PLATFORM");
  return platform != nullptr && std::string_view(platform) == "rtl";
}

bool take_device(int rank) {
  const char* const where = std::getenv("UNISONO_DEVICE_AT");
  if (where == nullptr) return true;
  const int descriptor = ask(where, static_cast<std::uint32_t>(rank));
  if (descriptor < 0) {
    std::fprintf(
        stderr,
        "unisono: rank %d: no device from %s (%s): it is of `unisono mpirun --platform rtl`, which must run on "
        "this host; collectives are the MPI's own\n",
        rank, where, std::strerror(errno));
    return false;
  }
  setenv("UNISONO_DEVICE_FD", std::to_string(descriptor).c_str(), 1);
  return true;
}

}  // namespace unisono::mpi
