// What a proven peer may send over TCP: frames, or any bytes, in any pieces.
#include <memory>
#include <vector>

#include "core/header.hpp"
#include "network/tcp/arrivals.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;       // NOLINT(google-build-using-namespace)
using namespace unisono::tcp;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

/// Puts `bytes` in, as much as there is room for.
void put(Arrivals& arrivals, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const auto landing = arrivals.landing();
    const auto room = arrivals.room();
    if (landing.empty() && room.empty()) return;
    const std::size_t first = std::min(landing.size(), bytes.size());
    if (first != 0) std::memcpy(landing.data(), bytes.data(), first);
    const std::size_t second = std::min(room.size(), bytes.size() - first);
    if (second != 0) std::memcpy(room.data(), bytes.data() + first, second);
    arrivals.received(first + second);
    bytes = bytes.subspan(first + second);
  }
}

/// Memory for some messages, of which some is taken back.
class Fields final : public Landings {
 public:
  std::byte* landing(std::uint32_t /*peer*/, const Header& header) override {
    claim(header.segment_bytes <= kMaxDataPayload, "no longer than agreed");
    if (header.tag % 4 == 0 || ++asked_ % 13 == 0) return nullptr;
    return memory_.data() + header.tag % 4;
  }

 private:
  std::vector<std::byte> memory_{kMaxDataPayload + 4};
  std::uint32_t asked_ = 0;
};

/// A frame that is sound but for what the input says, or sound frames would hardly ever come.
std::vector<std::uint8_t> frame(fuzz::Input& input, std::uint8_t kind, std::uint32_t (&sequence)[2]) {
  Header header = decode_header(input.take<HeaderWords>());
  const bool control = (kind & 4U) != 0;
  header.magic = kMagic;
  header.version = kWireVersion;
  header.session_sequence = sequence[control ? 1 : 0]++ | (control ? kControlMark : 0);
  header.type = static_cast<MessageType>(static_cast<std::uint8_t>(header.type) % 12);
  header.dtype = static_cast<Datatype>(static_cast<std::uint8_t>(header.dtype) % 21);
  header.segment_bytes %= control ? 1100 : (kind & 8U) != 0 ? 66'000 : 300;
  if ((kind & 16U) != 0) header.session_sequence = input.take<std::uint32_t>();
  seal(header);
  HeaderWords words = encode(header);
  if ((kind & 32U) != 0) words[input.take<std::uint8_t>() % words.size()] ^= input.take<std::uint64_t>();
  std::vector<std::uint8_t> bytes(sizeof words + header.segment_bytes, static_cast<std::uint8_t>(header.segment_bytes));
  std::memcpy(bytes.data(), words.data(), sizeof words);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Fields fields;
  Arrivals arrivals;
  const auto how = input.take<std::uint8_t>();
  const bool lands = how % 2 == 0;
  if (lands) arrivals.land_in(&fields, 3);
  // There are other connections, which bring what is lacking when the input says so.
  const bool shared = (how & 2U) != 0;
  std::uint32_t next = 0;
  if (shared) arrivals.share(next, (how & 4U) != 0);
  std::uint32_t sent[2]{};
  std::uint32_t taken[2]{};
  while (!input.empty()) {
    const auto kind = input.take<std::uint8_t>();
    switch (kind & 3U) {
      case 0:
        put(arrivals, input.take_bytes(input.take<std::uint8_t>()));
        break;
      case 1:
      case 2: {
        const auto bytes = frame(input, kind, sent);
        const std::size_t first = (kind & 64U) != 0 ? input.take<std::uint16_t>() % (bytes.size() + 1) : bytes.size();
        put(arrivals, std::span(bytes).first(first));
        put(arrivals, std::span(bytes).subspan(first));
        break;
      }
      default: {
        if ((kind & 128U) != 0) put(arrivals, std::span(reinterpret_cast<const std::uint8_t*>(kBye.data()), 64));
        const std::uint32_t lane = (kind & 4U) != 0 ? 1 : 0;
        Incoming incoming;
        for (std::uint32_t turns = kind >> 4U; turns > 0; --turns) {
          if (!arrivals.peek(lane == 0 ? Lane::kData : Lane::kControl, incoming)) {
            if (shared && arrivals.waits_for_others()) ++next;
            break;
          }
          claim(!shared || lane == 1 || incoming.header.session_sequence == next, "each has its turn");
          claim(incoming.header.segment_bytes == incoming.payload.size(), "the header says the payload's length");
          claim(incoming.payload.size() <= (lane == 0 ? kMaxDataPayload : kMaxControlPayload), "no longer than agreed");
          claim(lands || shared ? incoming.header.session_sequence >= taken[lane]
                                : incoming.header.session_sequence == taken[lane],
                "each lane's messages come in order, each once");
          claim(is_known(incoming.header.type) && is_known(incoming.header.dtype), "nothing unknown comes through");
          // All of it can be read.
          const std::vector<std::byte> copy(incoming.payload.begin(), incoming.payload.end());
          claim(copy.size() == incoming.payload.size(), "a copy of the payload");
          if ((kind & 8U) != 0 && turns == 1) break;  // looked at, and left
          arrivals.release(lane == 0 ? Lane::kData : Lane::kControl);
          taken[lane] = incoming.header.session_sequence + 1;
        }
      }
    }
    claim(arrivals.memory() <= kMostBytes, "the peer does not decide how much memory is taken");
    claim(arrivals.fault().empty() || arrivals.room().empty(), "nothing is taken after a fault");
  }
  return 0;
}
