#include "network/frame_fault.hpp"

#include "core/text.hpp"

namespace unisono {

std::string fault_of(const HeaderWords& words, const Header& header, std::uint32_t sequence, std::uint32_t most_bytes) {
  const auto refuse = [](const char* field, std::uint64_t given, const std::string& allowed) {
    return formatted("header field {} is {}, allowed is {}", field, given, allowed);
  };
  if (header.magic != kMagic) return refuse("magic", header.magic, std::to_string(kMagic));
  if (header.version != kWireVersion) return refuse("version", header.version, std::to_string(kWireVersion));
  if (header.checksum != checksum_of(words)) {
    return refuse("checksum", header.checksum, std::to_string(checksum_of(words)));
  }
  if (header.session_sequence != sequence) {
    return refuse("session_sequence", header.session_sequence, std::to_string(sequence));
  }
  if (header.segment_bytes > most_bytes) {
    return refuse("segment_bytes", header.segment_bytes, "at most " + std::to_string(most_bytes));
  }
  if (!is_known(header.type))
    return refuse("type", static_cast<std::uint64_t>(header.type), "one of the message types");
  if (!is_known(header.dtype)) return refuse("dtype", static_cast<std::uint64_t>(header.dtype), "one of the datatypes");
  if (!well_formed_header(words)) return "reserved bits of a header are set";
  return {};
}

}  // namespace unisono
