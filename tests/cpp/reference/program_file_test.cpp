// Program files: what is written is read, and nothing else is.
#include "core/program_file.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "reference/checker.hpp"

namespace unisono::reference {
namespace {

ProgramFile sample(std::uint32_t size, std::uint64_t count) {
  const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(find_algorithm(Collective::kAlltoall, "bruck"))];
  Call call;
  call.collective = Collective::kAlltoall;
  call.dtype = Datatype::kInt32;
  call.size = size;
  call.count = count;
  const Job job = make_job(algorithm, call);
  return {job.programs, job.region_bytes};
}

void refresh_checksum(std::vector<std::byte>& bytes) {
  const std::uint32_t crc = crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size() - 4});
  for (std::size_t i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<std::byte>(crc >> (8 * i));
}

TEST(ProgramFile, RoundTrip) {
  for (const std::uint32_t size : {1U, 2U, 5U, 8U}) {
    const ProgramFile file = sample(size, 3);
    EXPECT_EQ(parse_program_file(write_program_file(file)), file);
  }
}

TEST(ProgramFile, EveryFlippedByteAndEveryCutIsRefused) {
  const std::vector<std::byte> good = write_program_file(sample(3, 2));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{0x10};
    EXPECT_THROW(parse_program_file(bad), Error) << i;
    EXPECT_THROW(parse_program_file(std::span(good).first(i)), Error) << i;
  }
}

// With a right checksum the structure is attacked, not the checksum: whatever happens, it is a file or an Error.
TEST(ProgramFile, ArbitraryChangesNeverCrash) {
  const std::vector<std::byte> good = write_program_file(sample(3, 2));
  std::mt19937_64 random(11);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bad = good;
    const std::size_t changes = 1 + random() % 3;
    for (std::size_t i = 0; i < changes; ++i) bad[random() % bad.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) bad.resize(24 + random() % (bad.size() - 24));
    refresh_checksum(bad);
    try {
      const ProgramFile file = parse_program_file(bad);
      EXPECT_EQ(write_program_file(file), bad);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMalformedProgram);
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace unisono::reference
