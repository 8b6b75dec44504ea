#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "engine/copy_class.hpp"
#include "engine/copy_probe.hpp"

namespace unisono::cclo {
namespace {

/// What the probe measures; several attempts, since it measures nothing while others need the cores.
template <typename Probe>
auto measured(Probe probe) {
  auto found = probe();
  for (int attempt = 1; attempt < 100 && !found; ++attempt) found = probe();
  return found;
}

TEST(CopyProbe, TimesBothWaysOfEveryCollectiveAndLength) {
  const auto times = measured(probe_copies);
  if (!times) GTEST_SKIP() << "others needed the cores at all of 100 attempts";
  for (const CopyTimes& entry : *times) {
    std::printf("%-10s %8llu bytes: kernel %8.1f us, cells %8.1f us\n", name_of(entry.collective),
                static_cast<unsigned long long>(entry.bytes), entry.kernel_us, entry.cells_us);
    EXPECT_GT(entry.kernel_us, 0);
    EXPECT_LT(entry.kernel_us, 1e6);
    EXPECT_GT(entry.cells_us, 0);
    EXPECT_LT(entry.cells_us, 1e6);
  }
}

TEST(CopyProbe, ALineTakesTensToHundredsOfNanoseconds) {
  const auto line = measured(probe_line);
  if (!line) GTEST_SKIP() << "others needed the cores at all of 100 attempts";
  EXPECT_GT(*line, 1);
  EXPECT_LT(*line, 1e6);
}

/// A cache of this test's own.
class CopyClassFile : public testing::Test {
 protected:
  CopyClassFile() {
    std::array<char, 64> name{"/tmp/unisono-copy-XXXXXX"};
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder");
    folder_ = name.data();
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~CopyClassFile() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  std::string text() const {
    std::ifstream stream(copy_class_file());
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string& text) const {
    std::filesystem::create_directories(folder_ + "/unisono");
    std::ofstream(copy_class_file()) << text;
    chmod(copy_class_file().c_str(), 0600);
  }
  /// Entries for every placement that the cores can have.
  static std::string entries() {
    std::string lines;
    for (double line = 10; line < 3000; line *= 2) lines += std::to_string(line) + " 4711 4712 4713\n";
    return lines;
  }

  std::string folder_;
};

TEST(CopiedFrom, AMeasurementDoesNotChangeTheOrderOfAReduction) {
  const shm::CopyFrom measured{1, 2, 3, 1};
  const shm::CopyFrom said{1, 2, 3, 0};
  EXPECT_EQ(copied_from(Collective::kGather, 5, false, measured), 1U);
  EXPECT_EQ(copied_from(Collective::kAlltoall, 5, false, measured), 2U);
  for (const Collective collective : {Collective::kReduce, Collective::kAllreduce, Collective::kReduceScatter}) {
    EXPECT_EQ(copied_from(collective, 2, false, measured), 3U) << "two operands have one order";
    EXPECT_EQ(copied_from(collective, 3, false, measured), shm::kNeverCopied);
    EXPECT_EQ(copied_from(collective, 3, false, said), 3U);
  }
}

TEST(CopiedFrom, ManyReadersOfTheSamePagesAreNotWhatWasMeasured) {
  const shm::CopyFrom measured{1, 2, 3, 1};
  const shm::CopyFrom said{1, 2, 3, 0};
  EXPECT_EQ(copied_from(Collective::kBcast, 2, false, measured), 1U) << "one reader";
  EXPECT_EQ(copied_from(Collective::kBcast, 3, false, measured), shm::kNeverCopied);
  EXPECT_EQ(copied_from(Collective::kBcast, 3, true, measured), 1U) << "they take turns on the cores";
  EXPECT_EQ(copied_from(Collective::kBcast, 3, false, said), 1U);
}

TEST_F(CopyClassFile, IsWrittenOnceAndFollowed) {
  const std::string own = copy_class_title() + "\n";
  write(own + entries());
  const CopyClass found = copy_class();
  EXPECT_EQ(found.source, CopyClass::Source::kKept);
  EXPECT_EQ(found.from, (shm::CopyFrom{4711, 4712, 4713, 1}));
}

TEST_F(CopyClassFile, OfAnotherMachineOrHandIsNotFollowed) {
  const std::string own = copy_class_title() + "\n";
  const std::string other = own.substr(0, own.size() - 2) + "x\n";
  for (const std::string& wrong : {other + entries(), std::string("unisono-copy-2"), std::string(), own + "-\n",
                                   own + "nan 1 1 1\n", std::string(5000, '9')}) {
    write(wrong);
    EXPECT_NE(copy_class().from, (shm::CopyFrom{4711, 4712, 4713, 1})) << wrong;
  }
  write(own + entries());
  chmod(copy_class_file().c_str(), 0666);
  EXPECT_NE(copy_class().from, (shm::CopyFrom{4711, 4712, 4713, 1})) << "others may write it";
}

TEST_F(CopyClassFile, OfAnotherPlacementIsNotFollowed) {
  const std::string own = copy_class_title() + "\n";
  if (!measured(probe_line)) GTEST_SKIP() << "others needed the cores at all of 100 attempts";
  write(own + "0.001 4711 4712 4713\n");
  // While others need the cores, what all entries agree on holds.
  bool measured = false;
  for (int attempt = 0; attempt < 100 && !measured; ++attempt) measured = copy_class().from.one_way != 4711;
  EXPECT_TRUE(measured);
}

TEST_F(CopyClassFile, MayBeImpossible) {
  setenv("XDG_CACHE_HOME", "/proc/nothing", 1);
  const CopyClass found = copy_class();
  EXPECT_NE(found.source, CopyClass::Source::kKept);
}

}  // namespace
}  // namespace unisono::cclo
