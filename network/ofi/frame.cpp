#include "network/ofi/frame.hpp"

#include <bit>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::ofi {

static_assert(std::endian::native == std::endian::little, "frames are sent as they lie in memory");

namespace {

constexpr std::array<char, 8> kMagicOfFrames{'U', 'N', 'I', 'O', 'F', 'I', '.', '\n'};

}  // namespace

std::optional<Frame> read_frame(std::span<const std::byte> bytes) {
  Frame frame;
  if (bytes.size() < sizeof frame.prefix) return std::nullopt;
  std::memcpy(&frame.prefix, bytes.data(), sizeof frame.prefix);
  if (frame.prefix.magic != kMagicOfFrames) return std::nullopt;
  for (const std::uint8_t byte : frame.prefix.reserved) {
    if (byte != 0) return std::nullopt;
  }
  const auto rest = bytes.subspan(sizeof frame.prefix);
  switch (frame.prefix.kind) {
    case FrameKind::kMessage:
      if (rest.size() < kHeaderBytes) return std::nullopt;
      std::memcpy(frame.words.data(), rest.data(), kHeaderBytes);
      frame.payload = rest.subspan(kHeaderBytes);
      return frame;
    case FrameKind::kBye:
      if (rest.size() != sizeof frame.totals) return std::nullopt;
      std::memcpy(frame.totals.data(), rest.data(), sizeof frame.totals);
      return frame;
    case FrameKind::kStop:
    case FrameKind::kStopped:
      if (rest.size() != sizeof frame.key) return std::nullopt;
      std::memcpy(&frame.key, rest.data(), sizeof frame.key);
      return frame;
    case FrameKind::kCredit:
    case FrameKind::kByeSeen:
      if (!rest.empty()) return std::nullopt;
      return frame;
  }
  return std::nullopt;
}

void write_prefix(std::byte* place, FrameKind kind, std::uint32_t from, std::uint64_t token,
                  const std::array<std::uint32_t, kLanes>& released) {
  const Prefix prefix{kMagicOfFrames, kind, {}, from, token, released};
  std::memcpy(place, &prefix, sizeof prefix);
}

HeaderWords seal(Header header, std::size_t lane, std::uint32_t sequence) {
  header.magic = static_cast<std::uint16_t>(kMagic);
  header.version = static_cast<std::uint8_t>(kWireVersion);
  header.session_sequence = (sequence & kSequenceMask) | (lane == 0 ? 0 : kControlMark);
  header.checksum = 0;
  if (!fits(header)) throw Error(ErrorCode::kInternal, "a header to be sent has a field that its width cannot hold");
  header.checksum = checksum_of(encode(header));
  return encode(header);
}

std::string fault_of(const HeaderWords& words, std::size_t payload) {
  const HeaderFault fault = check_header(words);
  // Whether a segment lies within its message is for those to judge who know the message.
  if (fault != HeaderFault::kNone && fault != HeaderFault::kBadExtent) {
    return formatted("a header {}", meaning_of(fault));
  }
  const Header header = decode_header(words);
  const std::uint32_t most = most_payload((header.session_sequence & kControlMark) == 0 ? 0 : 1);
  if (header.segment_bytes > most) {
    return formatted("header field segment_bytes is {}, allowed is at most {}", header.segment_bytes, most);
  }
  if (header.segment_bytes != payload) {
    return formatted("header field segment_bytes is {}, and {} bytes follow", header.segment_bytes, payload);
  }
  return {};
}

}  // namespace unisono::ofi
