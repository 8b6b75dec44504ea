#include "core/program_file.hpp"

#include <string>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "core/program_check.hpp"

namespace unisono {
namespace {

constexpr std::uint32_t kFileMagic = 0x47525055;  // "UPRG" in memory order
constexpr std::uint32_t kFileVersion = 1;
constexpr std::size_t kFileHeaderBytes = 16;
constexpr std::size_t kRankHeaderBytes = std::size_t{9} * 8;

[[noreturn]] void malformed(const std::string& text) {
  throw Error(ErrorCode::kMalformedProgram, "program file: " + text);
}

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

class Writer {
 public:
  template <class T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  std::vector<std::byte> bytes;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    need(sizeof(T), "a field");
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(bytes_[at_ + i]) << (8 * i)));
    }
    at_ += sizeof(T);
    return value;
  }
  void need(std::uint64_t bytes, const std::string& what) const {
    if (bytes <= left()) return;
    malformed("at byte " + std::to_string(at_) + ": " + what + " of " + std::to_string(bytes) + " bytes, but only " +
              std::to_string(left()) + " are left");
  }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

void check(const Program& program, std::uint32_t rank, std::uint32_t size,
           const std::array<std::uint64_t, 5>& region_bytes) {
  if (program.params_bytes % 8 != 0) {
    malformed("rank " + std::to_string(rank) + " asks for " + std::to_string(program.params_bytes) +
              " bytes of params; allowed are multiples of 8");
  }
  if (region_bytes[2] < program.scratch_bytes || region_bytes[3] < program.params_bytes) {
    malformed("rank " + std::to_string(rank) + " has regions of " + std::to_string(region_bytes[2]) +
              " bytes of scratch and " + std::to_string(region_bytes[3]) + " of params, and its program asks for " +
              std::to_string(program.scratch_bytes) + " and " + std::to_string(program.params_bytes));
  }
  if (const auto malformation = check_program(program, size)) {
    malformed("rank " + std::to_string(rank) + ", move " + std::to_string(malformation->move) + ": " +
              malformation->text);
  }
}

}  // namespace

std::vector<std::byte> write_program_file(const ProgramFile& file) {
  const std::size_t size = file.programs.size();
  if (size == 0 || size > kMaxRanks || file.region_bytes.size() != size) {
    malformed("programs of " + std::to_string(size) + " ranks and region sizes of " +
              std::to_string(file.region_bytes.size()) + "; both must be equal, 1 to " + std::to_string(kMaxRanks));
  }
  Writer out;
  out.put(kFileMagic);
  out.put(kFileVersion);
  out.put(static_cast<std::uint32_t>(size));
  out.put(std::uint32_t{0});
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const Program& program = file.programs[rank];
    check(program, rank, static_cast<std::uint32_t>(size), file.region_bytes[rank]);
    out.put(static_cast<std::uint64_t>(program.moves.size()));
    out.put(static_cast<std::uint64_t>(program.pool.size()));
    out.put(program.scratch_bytes);
    out.put(program.params_bytes);
    for (const std::uint64_t bytes : file.region_bytes[rank]) out.put(bytes);
    for (const Move& move : program.moves) {
      for (const std::uint64_t word : encode(move)) out.put(word);
    }
    for (const std::uint32_t word : program.pool) out.put(word);
  }
  out.put(checksum(out.bytes));
  return std::move(out.bytes);
}

ProgramFile parse_program_file(std::span<const std::byte> bytes) {
  if (bytes.size() < kFileHeaderBytes + 4) {
    malformed(std::to_string(bytes.size()) + " bytes; at least " + std::to_string(kFileHeaderBytes + 4) +
              " are needed");
  }
  Reader in(bytes.first(bytes.size() - 4));
  if (const auto magic = in.get<std::uint32_t>(); magic != kFileMagic) {
    malformed("it begins with " + std::to_string(magic) + ", not with the letters UPRG");
  }
  if (const auto version = in.get<std::uint32_t>(); version != kFileVersion) {
    malformed("version " + std::to_string(version) + "; this library reads version " + std::to_string(kFileVersion));
  }
  const auto stored = Reader(bytes.last(4)).get<std::uint32_t>();
  const std::uint32_t computed = checksum(bytes.first(bytes.size() - 4));
  if (stored != computed) {
    malformed("checksum " + std::to_string(stored) + ", but the contents have " + std::to_string(computed));
  }
  const auto size = in.get<std::uint32_t>();
  if (size == 0 || size > kMaxRanks) {
    malformed(std::to_string(size) + " ranks; allowed are 1 to " + std::to_string(kMaxRanks));
  }
  if (const auto reserved = in.get<std::uint32_t>(); reserved != 0) {
    malformed("reserved word " + std::to_string(reserved) + "; it must be 0");
  }
  in.need(std::uint64_t{size} * kRankHeaderBytes, "headers of " + std::to_string(size) + " ranks");
  ProgramFile file;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const std::string who = "rank " + std::to_string(rank);
    const auto moves = in.get<std::uint64_t>();
    const auto pool = in.get<std::uint64_t>();
    Program program;
    program.scratch_bytes = in.get<std::uint64_t>();
    program.params_bytes = in.get<std::uint64_t>();
    std::array<std::uint64_t, 5> region_bytes{};
    for (std::uint64_t& region : region_bytes) region = in.get<std::uint64_t>();
    // Divisions, because a product of what the file says could overflow.
    if (moves > in.left() / kMoveBytes) {
      malformed(who + ": " + std::to_string(moves) + " moves, but only " + std::to_string(in.left()) +
                " bytes are left");
    }
    program.moves.reserve(moves);
    for (std::uint64_t i = 0; i < moves; ++i) {
      std::array<std::uint64_t, kMoveWords> words{};
      for (std::uint64_t& word : words) word = in.get<std::uint64_t>();
      if (!well_formed_move(words)) {
        malformed(who + ", move " + std::to_string(i) +
                  ": a reserved bit is set or an enumerator unknown; reserved bits must be zero");
      }
      program.moves.push_back(decode_move(words));
    }
    if (pool > in.left() / 4) {
      malformed(who + ": a pool of " + std::to_string(pool) + " words, but only " + std::to_string(in.left()) +
                " bytes are left");
    }
    program.pool.reserve(pool);
    for (std::uint64_t i = 0; i < pool; ++i) program.pool.push_back(in.get<std::uint32_t>());
    check(program, rank, size, region_bytes);
    file.programs.push_back(std::move(program));
    file.region_bytes.push_back(region_bytes);
  }
  if (in.left() != 0) malformed(std::to_string(in.left()) + " bytes after the last rank's program; none are allowed");
  return file;
}

}  // namespace unisono
