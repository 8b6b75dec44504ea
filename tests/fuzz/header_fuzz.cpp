// Headers as they arrive: 64 bytes, the compressed form, and the lines of lanes.
#include <array>

#include "core/header.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto words = input.take<HeaderWords>();
  if (input.take<std::uint8_t>() % 2 == 0) {
    // A mutated checksum would hide everything behind it.
    const std::uint64_t low = words[kHeaderWords - 1] & 0xFFFFFFFFU;
    words[kHeaderWords - 1] = low | std::uint64_t{checksum_of(words)} << 32U;
  }
  const HeaderFault fault = check_header(words);
  claim(meaning_of(fault)[0] != '?', "every fault has a meaning");
  const Header header = decode_header(words);
  if (fault == HeaderFault::kNone) {
    claim(encode(header) == words, "a sound header is encoded as it came");
    claim(verify(header), "a sound header has its checksum");
    const HeaderContext context{header.source,           header.destination, header.communicator, header.epoch,
                                header.session_sequence, header.sequence,    header.signature,    header.message_bytes};
    if (const auto compressed = compress_connection(header, context)) {
      Header whole = header;
      whole.checksum = 0;
      claim(rebuild(*compressed, context) == whole, "what is compressed comes back");
      claim(decode_header_connection(encode(*compressed)) == *compressed, "the compressed form is encoded");
    }
  }
  // A compressed header by itself, in a session of the input's choice.
  const auto short_words = input.take<std::array<std::uint64_t, 4>>();
  if (well_formed_header_connection(short_words)) {
    const HeaderConnection compressed = decode_header_connection(short_words);
    claim(encode(compressed) == short_words, "a compressed header is encoded as it came");
    HeaderContext context;
    context.source = input.take<std::uint32_t>();
    context.communicator = input.take<std::uint32_t>();
    context.sequence = input.take<std::uint32_t>();
    context.signature = input.take<std::uint32_t>();
    const Header whole = rebuild(compressed, context);
    if (const auto again = compress_connection(whole, context)) {
      claim(rebuild(*again, context) == whole, "a rebuilt header comes back");
    }
  }
  const auto line = input.take<std::array<std::uint64_t, 2>>();
  if (well_formed_header_line(line)) claim(encode(decode_header_line(line)) == line, "a line is encoded as it came");
  if (well_formed_message_line(line))
    claim(encode(decode_message_line(line)) == line, "a message line is encoded as it came");
  return 0;
}
