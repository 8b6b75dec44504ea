#include "core/program_file.hpp"

#include <string>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "core/program_check.hpp"
#include "core/text.hpp"

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
    malformed(formatted("at byte {}: {} of {} bytes, but only {} are left", at_, what, bytes, left()));
  }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

void check(const Program& program, std::uint32_t rank, std::uint32_t size,
           const std::array<std::uint64_t, 5>& region_bytes) {
  if (program.params_bytes % 8 != 0) {
    malformed(formatted("rank {} asks for {} bytes of params; allowed are multiples of 8", rank, program.params_bytes));
  }
  if (region_bytes[2] < program.scratch_bytes || region_bytes[3] < program.params_bytes) {
    malformed(
        formatted("rank {} has regions of {} bytes of scratch and {} of params, and its program asks for {} and {}",
                  rank, region_bytes[2], region_bytes[3], program.scratch_bytes, program.params_bytes));
  }
  if (const auto malformation = check_program(program, size)) {
    malformed(formatted("rank {}, move {}: {}", rank, malformation->move, malformation->text));
  }
}

}  // namespace

std::vector<std::byte> write_program_file(const ProgramFile& file) {
  const std::size_t size = file.programs.size();
  if (size == 0 || size > kMaxRanks || file.region_bytes.size() != size) {
    malformed(formatted("programs of {} ranks and region sizes of {}; both must be equal, 1 to {}", size,
                        file.region_bytes.size(), kMaxRanks));
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
    malformed(formatted("{} bytes; at least {} are needed", bytes.size(), kFileHeaderBytes + 4));
  }
  Reader in(bytes.first(bytes.size() - 4));
  if (const auto magic = in.get<std::uint32_t>(); magic != kFileMagic) {
    malformed(formatted("it begins with {}, not with the letters UPRG", magic));
  }
  if (const auto version = in.get<std::uint32_t>(); version != kFileVersion) {
    malformed(formatted("version {}; this library reads version {}", version, kFileVersion));
  }
  const auto stored = Reader(bytes.last(4)).get<std::uint32_t>();
  const std::uint32_t computed = checksum(bytes.first(bytes.size() - 4));
  if (stored != computed) {
    malformed(formatted("checksum {}, but the contents have {}", stored, computed));
  }
  const auto size = in.get<std::uint32_t>();
  if (size == 0 || size > kMaxRanks) {
    malformed(formatted("{} ranks; allowed are 1 to {}", size, kMaxRanks));
  }
  if (const auto reserved = in.get<std::uint32_t>(); reserved != 0) {
    malformed(formatted("reserved word {}; it must be 0", reserved));
  }
  in.need(std::uint64_t{size} * kRankHeaderBytes, formatted("headers of {} ranks", size));
  ProgramFile file;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const std::string who = formatted("rank {}", rank);
    const auto moves = in.get<std::uint64_t>();
    const auto pool = in.get<std::uint64_t>();
    Program program;
    program.scratch_bytes = in.get<std::uint64_t>();
    program.params_bytes = in.get<std::uint64_t>();
    std::array<std::uint64_t, 5> region_bytes{};
    for (std::uint64_t& region : region_bytes) region = in.get<std::uint64_t>();
    // Divisions, because a product of what the file says could overflow.
    if (moves > in.left() / kMoveBytes) {
      malformed(formatted("{}: {} moves, but only {} bytes are left", who, moves, in.left()));
    }
    program.moves.reserve(moves);
    for (std::uint64_t i = 0; i < moves; ++i) {
      std::array<std::uint64_t, kMoveWords> words{};
      for (std::uint64_t& word : words) word = in.get<std::uint64_t>();
      if (!well_formed_move(words)) {
        malformed(formatted("{}, move {}: a reserved bit is set or an enumerator unknown; reserved bits must be zero",
                            who, i));
      }
      program.moves.push_back(decode_move(words));
    }
    if (pool > in.left() / 4) {
      malformed(formatted("{}: a pool of {} words, but only {} bytes are left", who, pool, in.left()));
    }
    program.pool.reserve(pool);
    for (std::uint64_t i = 0; i < pool; ++i) program.pool.push_back(in.get<std::uint32_t>());
    check(program, rank, size, region_bytes);
    file.programs.push_back(std::move(program));
    file.region_bytes.push_back(region_bytes);
  }
  if (in.left() != 0) malformed(formatted("{} bytes after the last rank's program; none are allowed", in.left()));
  return file;
}

}  // namespace unisono
