#include "network/udp/ring_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/socket.hpp"

namespace unisono::udp {

RingMemory::RingMemory(std::size_t bytes) {
  const auto fail = [&] {
    throw Error(ErrorCode::kOutOfMemory,
                formatted("no memory for {} bytes of messages on their way: {}", bytes, tcp::text_of_error(errno)));
  };
  const tcp::Socket file(memfd_create("unisono-udp", MFD_CLOEXEC));
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) fail();
  void* const place = mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) fail();
  memory_ = static_cast<std::byte*>(place);
  for (std::byte* half : {memory_, memory_ + bytes}) {
    if (mmap(half, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0) != MAP_FAILED) continue;
    munmap(place, 2 * bytes);
    memory_ = nullptr;
    fail();
  }
  bytes_ = bytes;
}

RingMemory::~RingMemory() {
  if (memory_ != nullptr) munmap(memory_, 2 * bytes_);
}

}  // namespace unisono::udp
