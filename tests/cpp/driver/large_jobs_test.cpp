// Jobs of more ranks than one host has: what joining takes, which sessions calls open, and what is left after deaths.
// Nothing here fails on a time; times are printed, for docs/large-jobs.md.
#include <bit>
#include <random>
#include <set>

#include "network/counters.hpp"
#include "tests/cpp/driver/large_job.hpp"

namespace unisono::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint32_t kRanks = 96;  // threads that are watched take long to begin
constexpr bool kMeasuresMemory = false;
#else
constexpr std::uint32_t kRanks = 1024;
constexpr bool kMeasuresMemory = true;
#endif
constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMostBytes = 170 * kKiB;

TEST(LargeJob, TakesLittleMemoryAndFewSessions) {
  Meeting meeting(kRanks);
  const std::uint64_t before = allocated_bytes();
  auto begin = std::chrono::steady_clock::now();
  const auto expect_little = [&](const char* when, std::uint64_t most = kMostBytes) {
    const std::uint64_t bytes = (allocated_bytes() - before) / kRanks;
    std::printf("%u ranks, %s: %.2f s, %lu bytes each\n", kRanks, when, seconds_since(begin),
                static_cast<unsigned long>(bytes));
    if (kMeasuresMemory) {
      EXPECT_LE(bytes, most) << "bytes of a rank, " << when;
    }
    begin = std::chrono::steady_clock::now();
  };
  Most opened, by_exchange;
  on_large_job(kRanks, [&](LargeRank& self) {
    meeting.come([&] { expect_little("join", 40 * kKiB); });
    EXPECT_EQ(self.sessions(), 0U);
    sum_and_check(self, self.world, 1);
    meeting.come([&] { expect_little("all-reduce of 8 bytes"); });
    sum_and_check(self, self.world, 3000);
    meeting.come([&] { expect_little("all-reduce of 24 KB"); });
    opened.see(self.sessions());
    const std::uint32_t after_sum = self.sessions();
    exchange_sparsely(self, {1, 31, kRanks / 2 - 7});
    by_exchange.see(self.sessions() - after_sum);
    meeting.come([&] { expect_little("alltoallv with 3 peers", 124 * kKiB); });
    unisono_communicator* part = nullptr;
    constexpr auto kReceived = static_cast<std::size_t>(NativeCounter::kBytesReceived);
    const std::uint64_t received = self.engine().counter(kReceived);
    need(unisono_split(self.world, self.rank % 8, -std::int64_t{self.rank}, 0, &part), "split");
    // What all tell all once, and then a word of each.
    EXPECT_LE(self.engine().counter(kReceived) - received, kRanks * (driver::kCapabilitiesBytes + 80));
    std::uint32_t rank = 0;
    need(unisono_communicator_rank(part, &rank), "rank");
    EXPECT_EQ(rank, kRanks / 8 - 1 - self.rank / 8);
    meeting.come([&] { expect_little("split into 8"); });
    sum_and_check(self, part, 5);
    need(unisono_communicator_free(part), "free");
    unisono_communicator* again = nullptr;
    need(unisono_shrink(self.world, &again), "shrink");
    meeting.come([&] { expect_little("shrink"); });
    sum_and_check(self, again, 5);
    meeting.come([&] { expect_little("all-reduce of 40 bytes after it"); });
  });
  std::printf("sessions of a rank: %lu by all-reduces, %lu more by the alltoallv\n",
              static_cast<unsigned long>(opened.value()), static_cast<unsigned long>(by_exchange.value()));
  EXPECT_LE(opened.value(), 2U * std::bit_width(kRanks - 1));
  EXPECT_LE(by_exchange.value(), 6U);
}

TEST(LargeJob, MayHaveMoreRanksThanAHost) {
  constexpr std::uint32_t kMore = 2 * kRanks;
  on_large_job(kMore, [&](LargeRank& self) {
    sum_and_check(self, self.world, 2);
    std::uint64_t value = ~(std::uint64_t{1} << (self.rank % 64));
    need(unisono_agree(self.world, &value), "agree");
    EXPECT_EQ(value, 0U);
  });
}

TEST(LargeJob, GoesOnAfterDeaths) {
  // The victims end at random words of the agreements; rank 0, which leads, is one of them.
  constexpr std::uint32_t kVictims = kRanks / 10;
  std::mt19937_64 random(kRanks);
  std::set<std::uint32_t> victims{0};
  while (victims.size() < kVictims) victims.insert(static_cast<std::uint32_t>(random() % kRanks));
  Meeting meeting(kRanks);
  std::atomic<std::uint32_t> left{0};
  Most sessions, milliseconds;
  on_large_job(kRanks, [&](LargeRank& self) {
    sum_and_check(self, self.world, 1);
    meeting.come([&] {
      for (const std::uint32_t victim : victims) {
        // Half of them before anybody agrees on anything.
        if (victim != 0 && random() % 2 == 0) {
          self.job->end(victim);
        } else {
          self.job->end_after(victim, static_cast<std::uint32_t>(random() % 12));
        }
      }
    });
    const std::uint32_t before = self.sessions();
    unisono_communicator* shrunk = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    need(unisono_shrink(self.world, &shrunk), "shrink");
    milliseconds.see(static_cast<std::uint64_t>(seconds_since(begin) * 1000));
    sessions.see(self.sessions() - before);
    std::uint32_t size = 0;
    need(unisono_communicator_size(shrunk, &size), "size");
    EXPECT_LE(size, kRanks);
    // A victim that has not said enough to end yet ends now; what is left after that is known.
    if (victims.count(self.rank) != 0) {
      self.job->end(self.rank);
      throw loop::Ended();
    }
    unisono_communicator* rest = nullptr;
    for (std::uint32_t now = 0; now != kRanks - kVictims;) {
      rest = nullptr;
      need(unisono_shrink(shrunk, &rest), "second shrink");
      need(unisono_communicator_size(rest, &now), "size");
      shrunk = rest;
    }
    sum_and_check(self, rest, 2);
    ++left;
  });
  std::printf("shrink while %u of %u ranks end: %lu ms, %lu more sessions of a rank\n", kVictims, kRanks,
              static_cast<unsigned long>(milliseconds.value()), static_cast<unsigned long>(sessions.value()));
  EXPECT_EQ(left, kRanks - kVictims);
  EXPECT_LE(sessions.value(), 8U * std::bit_width(kRanks - 1));
}

TEST(LargeJob, RevocationReachesAll) {
  std::atomic<std::uint32_t> heard{0};
  Most sessions;
  on_large_job(kRanks, [&](LargeRank& self) {
    if (self.rank == kRanks - 3) {
      need(unisono_communicator_revoke(self.world, "it is enough"), "revoke");
    } else {
      try {
        sum_and_check(self, self.world, 1);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kRevoked) << error.what();
        const std::string text = error.what();
        EXPECT_NE(text.find("rank " + std::to_string(kRanks - 3) + " reported: it is enough"), std::string::npos)
            << text;
        // Who passed it on is not told.
        EXPECT_EQ(text.find(" reported: "), text.rfind(" reported: ")) << text;
        ++heard;
      }
    }
    std::uint64_t value = 1;
    need(unisono_agree(self.world, &value), "agree");  // nobody leaves before all have heard
    sessions.see(self.sessions());
  });
  EXPECT_EQ(heard, kRanks - 1);
  EXPECT_LE(sessions.value(), 8U * std::bit_width(kRanks - 1));
}

TEST(LargeJob, AgreementsMustBeCalledAlike) {
  constexpr std::uint32_t kSize = 40;
  std::atomic<std::uint32_t> refused{0};
  on_large_job(kSize, [&](LargeRank& self) {
    std::uint64_t value = 1;
    unisono_communicator* shrunk = nullptr;
    const int result = self.rank == 17 ? unisono_shrink(self.world, &shrunk) : unisono_agree(self.world, &value);
    EXPECT_EQ(result, static_cast<int>(ErrorCode::kMismatchedCall));
    const std::string text = unisono_last_error();
    EXPECT_NE(text.find("has called another operation of agreement"), std::string::npos) << text;
    if (self.rank != 17) {
      EXPECT_NE(text.find("rank 17 has called"), std::string::npos) << text;
    }
    ++refused;
    value = 6 | self.rank % 2;
    need(unisono_agree(self.world, &value), "agree");
    EXPECT_EQ(value, 6U);
  });
  EXPECT_EQ(refused, kSize);
}

TEST(LargeJob, AgreementsGoOnWhereADeadlineHadCutThemOff) {
  constexpr std::uint32_t kSize = 40;
  std::atomic<std::uint32_t> late{0};
  on_large_job(kSize, [&](LargeRank& self) {
    std::uint64_t value = 0xff & ~(std::uint64_t{1} << (self.rank % 8));
    if (self.rank != 6) {
      need(unisono_communicator_set_timeout(self.world, 0.2), "timeout");
      std::uint64_t given = value;
      EXPECT_EQ(unisono_agree(self.world, &given), static_cast<int>(ErrorCode::kTimeout)) << self.rank;
      const std::string text = unisono_last_error();
      EXPECT_NE(text.find("has not come"), std::string::npos) << text;
      need(unisono_communicator_set_timeout(self.world, 60), "timeout");
      ++late;
      value = 0xff;  // a value counts from when it was given first
    } else {
      while (late != kSize - 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    need(unisono_agree(self.world, &value), "agree");
    EXPECT_EQ(value, 0U);
  });
}

}  // namespace
}  // namespace unisono::test
