#include "switch/handler/binary.hpp"

#include <string>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::handler {
namespace {

constexpr std::size_t kHeadBytes = std::size_t{10} * 4;
constexpr std::size_t kWordBytes = 8 + 4;  // with its line
constexpr std::uint32_t kMostNameBytes = 4096;

[[noreturn]] void malformed(const std::string& text) { throw Error(ErrorCode::kMalformedProgram, "handler: " + text); }

void put(std::vector<std::byte>& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t number(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

void refuse_flaw(const Program& program) {
  const auto flaw = find_flaw(program);
  if (!flaw) return;
  if (flaw->word >= program.words.size()) malformed(flaw->text);
  malformed(formatted("word {} ({}:{}): {}", flaw->word, program.source, program.lines[flaw->word], flaw->text));
}

}  // namespace

std::vector<std::byte> write_binary(const Program& program) {
  refuse_flaw(program);
  if (program.source.size() > kMostNameBytes)
    malformed(formatted("the source's name has {} bytes; allowed are {}", program.source.size(), kMostNameBytes));
  std::vector<std::byte> out;
  out.reserve(kHeadBytes + program.words.size() * kWordBytes + program.data.size() + program.source.size() + 4);
  put(out, kHandlerMagic, 4);
  put(out, kHandlerVersion, 4);
  for (const std::uint32_t entry : program.entries) put(out, entry, 4);
  put(out, program.words.size(), 4);
  put(out, program.memory_bytes, 4);
  put(out, program.data.size(), 4);
  put(out, elements_of(program), 4);
  put(out, program.source.size(), 4);
  for (const Instruction& word : program.words) put(out, encode(word)[0], 8);
  for (const std::uint32_t line : program.lines) put(out, line, 4);
  for (const std::uint8_t byte : program.data) put(out, byte, 1);
  for (const char letter : program.source) put(out, static_cast<std::uint8_t>(letter), 1);
  put(out, checksum(out), 4);
  return out;
}

Program parse_binary(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeadBytes + 4) {
    malformed(formatted("{} bytes; at least {} are needed", bytes.size(), kHeadBytes + 4));
  }
  const auto head = [&](std::size_t i) { return static_cast<std::uint32_t>(number(bytes.subspan(4 * i, 4))); };
  if (head(0) != kHandlerMagic) malformed(formatted("it begins with {}, not with the letters UHDL", head(0)));
  if (head(1) != kHandlerVersion) {
    malformed(formatted("version {}; this library reads version {}", head(1), kHandlerVersion));
  }
  const auto stored = static_cast<std::uint32_t>(number(bytes.last(4)));
  const std::uint32_t computed = checksum(bytes.first(bytes.size() - 4));
  if (stored != computed) malformed(formatted("checksum {}, but the contents have {}", stored, computed));
  Program program;
  for (std::uint32_t i = 0; i < kFunctions; ++i) program.entries[i] = head(2 + i);
  const std::uint32_t words = head(5);
  program.memory_bytes = head(6);
  const std::uint32_t data = head(7);
  const std::uint32_t name = head(9);
  const std::uint64_t needed = kHeadBytes + std::uint64_t{words} * kWordBytes + data + name + 4;
  if (needed != bytes.size() || name > kMostNameBytes) {
    malformed(formatted("{} bytes; {} words, {} bytes of data and a name of {} make {}", bytes.size(), words, data,
                        name, needed));
  }
  std::size_t at = kHeadBytes;
  program.words.reserve(words);
  program.lines.reserve(words);
  for (std::uint32_t i = 0; i < words; ++i, at += 8) {
    const std::array<std::uint64_t, kInstructionWords> encoded{number(bytes.subspan(at, 8))};
    if (!well_formed_instruction(encoded)) malformed(formatted("word {}: it is no instruction", i));
    program.words.push_back(decode_instruction(encoded));
  }
  for (std::uint32_t i = 0; i < words; ++i, at += 4) {
    program.lines.push_back(static_cast<std::uint32_t>(number(bytes.subspan(at, 4))));
  }
  for (std::uint32_t i = 0; i < data; ++i, ++at) program.data.push_back(std::to_integer<std::uint8_t>(bytes[at]));
  for (std::uint32_t i = 0; i < name; ++i, ++at) program.source.push_back(static_cast<char>(bytes[at]));
  refuse_flaw(program);
  if (elements_of(program) != head(8)) {
    malformed(formatted("it says that it needs elements {}, and needs {}", head(8), elements_of(program)));
  }
  return program;
}

}  // namespace unisono::handler
