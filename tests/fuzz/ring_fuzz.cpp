// A ring of shared memory whose sender writes whatever it likes.
#include <atomic>
#include <memory>
#include <vector>

#include "network/poe.hpp"
#include "network/shm/ring_receiver.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

constexpr std::uint32_t kCapacity = 1024;
constexpr std::uint32_t kMaxPayload = 256;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  // Of its own length, so that a byte beyond it is noticed.
  const auto ring = std::make_unique<std::byte[]>(kCapacity + 64);
  std::byte* const aligned = ring.get() + (64 - reinterpret_cast<std::uintptr_t>(ring.get()) % 64) % 64;
  std::atomic<std::uint64_t> published{0};
  std::atomic<std::uint64_t> consumed{0};
  std::atomic<std::uint32_t> wants_space{0};
  shm::RingReceiver receiver(aligned, kCapacity, kMaxPayload, published, wants_space, consumed);
  std::uint32_t sequence = 0;
  try {
    while (!input.empty()) {
      // Writes a header somewhere, moves the cursor somewhere, lets the receiver look.
      const std::uint8_t kind = input.take<std::uint8_t>();
      const std::uint64_t place = (kind & 1U) != 0 ? input.up_to(kCapacity / 64 - 1) * 64 : consumed % kCapacity;
      auto words = input.take<std::array<std::uint64_t, kHeaderWords>>();
      if ((kind & 2U) != 0) words.fill(0);
      if ((kind & 4U) != 0) {
        // Sound but for what the input says, or it would hardly ever be.
        Header header = decode_header(words);
        header.magic = kMagic;
        header.version = kWireVersion;
        header.session_sequence = sequence;
        header.segment_bytes %= 2 * kMaxPayload;
        words = encode(header);
      }
      if ((kind & 8U) != 0) words[0] = shm::kWrapMark;
      std::memcpy(aligned + place, words.data(), sizeof words);
      published = (kind & 16U) != 0 ? input.take<std::uint64_t>() : published + input.up_to(24) * 64;
      if ((kind & 32U) != 0) wants_space = 1;
      Incoming incoming;
      for (int i = 0; i < 20 && receiver.peek(incoming); ++i) {
        const std::byte* begin = incoming.payload.data();
        claim(begin >= aligned && begin + incoming.payload.size() <= aligned + kCapacity, "payload lies in the ring");
        claim(incoming.payload.size() <= kMaxPayload, "payload is no longer than agreed");
        claim(incoming.header.segment_bytes == incoming.payload.size(), "the header says the payload's length");
        receiver.release();
        ++sequence;
      }
    }
  } catch (const shm::RingFault& fault) {
    claim(!fault.text.empty(), "a fault has a text");
  }
  return 0;
}
