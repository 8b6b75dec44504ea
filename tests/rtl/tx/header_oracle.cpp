// The C++ core as an oracle of header tests.
//
//   header_oracle seal    reads headers as 128 hexadecimal digits, one per line; writes them sealed
//   header_oracle check   reads headers likewise; writes the number of each one's HeaderFault
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

#include "core/header.hpp"

namespace {

unisono::HeaderWords parse(const std::string& line) {
  unisono::HeaderWords words{};
  if (line.size() != 128) throw std::runtime_error("a line of " + std::to_string(line.size()) + " digits");
  for (std::size_t byte = 0; byte < 64; ++byte) {
    const std::uint64_t value = std::stoul(line.substr(2 * byte, 2), nullptr, 16);
    words[byte / 8] |= value << (8 * (byte % 8));
  }
  return words;
}

void print(const unisono::HeaderWords& words) {
  for (std::size_t byte = 0; byte < 64; ++byte) {
    std::printf("%02x", static_cast<unsigned>((words[byte / 8] >> (8 * (byte % 8))) & 0xffU));
  }
  std::putchar('\n');
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  if (mode != "seal" && mode != "check") return 2;
  std::string line;
  while (std::getline(std::cin, line)) {
    const unisono::HeaderWords words = parse(line);
    if (mode == "check") {
      std::printf("%u\n", static_cast<unsigned>(unisono::check_header(words)));
    } else {
      unisono::Header header = unisono::decode_header(words);
      unisono::seal(header);
      print(unisono::encode(header));
    }
  }
  return 0;
}
