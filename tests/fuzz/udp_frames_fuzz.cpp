// What a proven peer may send over UDP, to either end of a session: sound frames, or any.
#include <memory>
#include <vector>

#include "core/header.hpp"
#include "network/udp/receiver.hpp"
#include "network/udp/sender.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;       // NOLINT(google-build-using-namespace)
using namespace unisono::udp;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

constexpr std::size_t kRing = std::size_t{256} * 1024;
constexpr std::size_t kControl = std::size_t{16} * 1024;

/// A message that is sound but for what the input says.
std::vector<std::byte> message(fuzz::Input& input, std::uint8_t kind, std::uint32_t sequence) {
  Header header = decode_header(input.take<HeaderWords>());
  header.magic = kMagic;
  header.version = kWireVersion;
  header.session_sequence = sequence;
  header.type = static_cast<MessageType>(static_cast<std::uint8_t>(header.type) % 12);
  header.dtype = static_cast<Datatype>(static_cast<std::uint8_t>(header.dtype) % 21);
  header.segment_bytes %= (kind & 16U) != 0 ? 66'000 : 300;
  seal(header);
  HeaderWords words = encode(header);
  if ((kind & 32U) != 0) words[input.take<std::uint8_t>() % words.size()] ^= input.take<std::uint64_t>();
  std::vector<std::byte> bytes(sizeof words + in_words(header.segment_bytes));
  std::memcpy(bytes.data(), words.data(), sizeof words);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Receiver receiver(kRing, kControl);
  Sender sender(8832, kRing, kControl);
  sender.begin(1344);
  Time now{std::chrono::seconds(1)};
  std::uint64_t number = 0;
  std::uint64_t ends[2]{};
  std::uint32_t sequences[2]{};
  std::uint32_t taken[2]{};
  while (!input.empty()) {
    const auto kind = input.take<std::uint8_t>();
    now += std::chrono::microseconds(input.take<std::uint16_t>());
    const std::size_t lane = (kind & 8U) != 0 ? 1 : 0;
    switch (kind & 7U) {
      case 0: {
        DataFrame frame = input.take<DataFrame>();
        std::vector<std::byte> piece(std::size_t{input.take<std::uint16_t>()});
        receiver.take(frame, piece, now);
        break;
      }
      case 1:
      case 2: {
        // In order, or a piece before another one.
        const auto bytes = message(input, kind, sequences[lane]++);
        DataFrame frame;
        frame.lane = static_cast<std::uint8_t>(lane);
        const std::size_t cut = (kind & 64U) != 0 ? bytes.size() / 128 * 64 : 0;
        for (const bool first : {(kind & 128U) != 0, (kind & 128U) == 0}) {
          const auto piece = first ? std::span(bytes).first(cut) : std::span(bytes).subspan(cut);
          frame.number = ++number;
          frame.offset = ends[lane] + (first ? 0 : cut);
          receiver.take(frame, piece, now);
        }
        ends[lane] += bytes.size();
        break;
      }
      case 3: {
        Incoming incoming;
        const Lane of = lane == 0 ? Lane::kData : Lane::kControl;
        for (std::uint32_t turns = kind >> 4U; turns > 0 && receiver.peek(of, incoming); --turns) {
          claim(incoming.payload.size() == incoming.header.segment_bytes, "the header says the payload's length");
          claim(incoming.payload.size() <= kMaxPayload[lane], "no longer than agreed");
          claim(incoming.header.session_sequence == taken[lane]++, "each lane's messages come in order, each once");
          const std::vector<std::byte> copy(incoming.payload.begin(), incoming.payload.end());
          claim(copy.size() == incoming.payload.size(), "all of it can be read");
          receiver.release(of);
        }
        break;
      }
      case 4:
        sender.acknowledged(input.take<AckFrame>(), now);
        break;
      case 5: {
        const AckFrame frame = receiver.ack(now);
        claim(frame.limits[0] >= ends[0] || frame.limits[0] <= ends[0] + kRing, "no more is offered than there is");
        sender.acknowledged(frame, now);
        break;
      }
      case 6: {
        const auto bytes = input.take<std::uint16_t>() % 900U;
        OutStream& stream = sender.stream(lane == 0 ? Lane::kData : Lane::kControl);
        Header header = make_header(MessageType::kEager);
        header.segment_bytes = bytes;
        if (stream.reserve(bytes) != nullptr) stream.commit(header);
        break;
      }
      default: {
        sender.tick(now);
        Plan plan;
        for (int i = 0; i < 64 && sender.next(now, plan); ++i) {
          const auto piece = sender.piece(plan);
          claim(piece.size() <= sender.most_piece() && piece.size() % kWord == 0,
                "a piece is no longer than it may be");
          claim(plan.offset % kWord == 0, "and begins at a word");
        }
        claim(sender.in_flight() < 2 * kRing + std::size_t{4096} * kHeadBytes, "no more is in flight than there is");
      }
    }
  }
  return 0;
}
