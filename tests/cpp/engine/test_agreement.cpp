// Agreements of which members die or stand still at any word that they say (engine/consensus.hpp): whoever gets an
// answer gets the same. Ranks are threads; a rank dies, for the others, in the middle of what it sends.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/cpp/engine/process_jobs.hpp"

namespace unisono::test {
namespace {

constexpr std::uint32_t kOne = 1, kOther = 2;  ///< purposes
constexpr int kForEver = 1 << 30;

/// Ends the thread of a rank that is dead.
struct Died {};

/// The ranks that are dead, for all.
using Fates = std::vector<std::atomic<bool>>;

/// A network on which an endpoint says so many words on the control lane, then does `then`, which may end it, and says
/// the rest.
class Mortal final : public Poe {
 public:
  Mortal(Poe& real, Fates& fates) : real_(real), fates_(fates) {}
  void stop_after(int words, std::function<void()> then) {
    left_ = words;
    then_ = std::move(then);
  }
  void die() {
    fates_[self()] = true;
    throw Died{};
  }

  std::uint32_t self() const override { return real_.self(); }
  std::uint32_t size() const override { return real_.size(); }
  std::uint32_t max_payload(Lane lane) const override { return real_.max_payload(lane); }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override {
    return real_.reserve(peer, lane, bytes);
  }
  void commit(std::uint32_t peer, Lane lane, const Header& header) override {
    if (lane == Lane::kControl && left_-- == 0) then_();
    real_.commit(peer, lane, header);
  }
  bool peek(std::uint32_t peer, Lane lane, Incoming& in) override { return real_.peek(peer, lane, in); }
  void release(std::uint32_t peer, Lane lane) override { real_.release(peer, lane); }
  std::uint32_t activity() const override { return real_.activity(); }
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) override {
    real_.wait(seen, std::min(at_most, microseconds(100)));  // nothing wakes who waits for a dead one
  }
  Liveness liveness(std::uint32_t peer) override { return fates_[peer] ? Liveness::kDead : real_.liveness(peer); }
  std::string describe(std::uint32_t peer) const override { return real_.describe(peer); }

 private:
  Poe& real_;
  Fates& fates_;
  int left_ = kForEver;
  std::function<void()> then_;
};

/// A rank of a job in which ranks die.
struct Member {
  std::uint32_t rank;
  Engine& engine;
  Mortal& network;

  Agreed agree(std::uint64_t value, std::uint32_t purpose = kOne, milliseconds timeout = seconds(30)) const {
    return engine.agree(0, purpose, value, 100 + rank, timeout);
  }
  /// That an agreement does not come to its end in a fifth of a second.
  void expect_late(std::uint64_t value, std::uint32_t purpose = kOne) const {
    try {
      agree(value, purpose, milliseconds(200));
      ADD_FAILURE() << "rank " << rank << " has agreed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
    }
  }
};

/// Runs a function on every rank, until it returns or the rank dies.
void run_mortals(std::uint32_t size, const std::function<void(Member&)>& body) {
  ThreadJob job(size);
  Fates fates(size);
  std::vector<std::unique_ptr<Poe>> networks(size);
  std::vector<std::unique_ptr<Mortal>> mortals(size);
  std::vector<std::unique_ptr<Engine>> engines(size);
  std::vector<std::uint32_t> endpoints;
  std::vector<Agreement> capabilities;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    networks[rank] = job.endpoint(rank);
    mortals[rank] = std::make_unique<Mortal>(*networks[rank], fates);
    engines[rank] = std::make_unique<NativeEngine>(*mortals[rank], message_settings());
    capabilities.push_back(engines[rank]->capabilities());
    endpoints.push_back(rank);
  }
  for (const auto& engine : engines) engine->create_communicator(0, 0, endpoints, agree(capabilities));
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Member self{rank, *engines[rank], *mortals[rank]};
      try {
        body(self);
      } catch (const Died&) {
        return;
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Where a rank dies: after so many words.
struct Death {
  std::uint32_t rank = 0;
  int words = 0;
};

constexpr std::uint32_t kSize = 4;
constexpr int kRounds = 2;

/// Agreements one after the other, of which ranks die in the middle; that all get the same, and what they may get.
void expect_uniform(const std::vector<Death>& deaths) {
  std::array<std::array<std::optional<Agreed>, kRounds>, kSize> got;
  const auto value = [](std::uint32_t rank, int round) {
    return ~(std::uint64_t{1} << (rank + 8 * static_cast<std::uint32_t>(round)));
  };
  std::array<bool, kSize> dies{};
  std::string what;
  for (const Death& death : deaths) {
    dies[death.rank] = true;
    what += " rank " + std::to_string(death.rank) + " after " + std::to_string(death.words) + " words;";
  }
  run_mortals(kSize, [&](Member& self) {
    for (const Death& death : deaths) {
      if (death.rank == self.rank) self.network.stop_after(death.words, [&] { self.network.die(); });
    }
    for (int round = 0; round < kRounds; ++round) {
      got[self.rank][static_cast<std::size_t>(round)] = self.agree(value(self.rank, round));
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    const Agreed* first = nullptr;
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      const auto& own = got[rank][static_cast<std::size_t>(round)];
      ASSERT_TRUE(own || dies[rank]) << what;
      if (!own) continue;
      if (first == nullptr) first = &*own;
      ASSERT_TRUE(own->value == first->value && own->number == first->number && own->gone == first->gone)
          << "round " << round << "," << what << " rank " << rank << " got " << own->value << ", not " << first->value;
      ASSERT_EQ(own->value & ~value(rank, round), 0U) << "a value that was given is missing," << what;
    }
    ASSERT_NE(first, nullptr);
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      ASSERT_TRUE(dies[rank] || !first->gone[rank]) << "rank " << rank << " is thought dead," << what;
    }
  }
}

// A rank says 3 words in the first round of an agreement of 4 and 3 in its turn. After 12 it has ended both.
constexpr int kWords = 12;

TEST(Agreement, IsUniformWhereverARankDies) {
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    for (int words = 0; words <= kWords; ++words) expect_uniform({{rank, words}});
  }
}

TEST(Agreement, IsUniformWhereverTwoRanksDie) {
  for (std::uint32_t one = 0; one < kSize; ++one) {
    for (std::uint32_t other = one + 1; other < kSize; ++other) {
      for (int words = 0; words <= kWords; ++words) {
        for (int others = 0; others <= kWords; others += 1) expect_uniform({{one, words}, {other, others}});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Agreement, IsUniformWhereverAllButOneDie) {
  for (std::uint32_t left = 0; left < kSize; ++left) {
    for (int words = 0; words < 1000; words += 7) {  // of each of the three, a digit
      std::vector<Death> deaths;
      int digits = words;
      for (std::uint32_t rank = 0; rank < kSize; ++rank) {
        if (rank == left) continue;
        deaths.push_back({rank, digits % 10});
        digits /= 10;
      }
      expect_uniform(deaths);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

/// Lets ranks go on one after the other.
class Stage {
 public:
  void open(int step) { step_ = step; }
  void await(int step) const {
    while (step_ < step) std::this_thread::sleep_for(milliseconds(1));
  }

 private:
  std::atomic<int> step_{0};
};

TEST(Agreement, GoesOnWhereItsDeadlineHadCutItOff) {
  // Rank 2 stands still before its turn; the others are late, call again with other values, and rank 2 dies. Who had
  // spoken in its turn has said its word for good: if it spoke anew, rank 1 would take the new word, and rank 0 has the
  // old one of rank 1.
  Stage stage;
  std::array<std::uint64_t, 2> got{};
  run_mortals(3, [&](Member& self) {
    if (self.rank == 2) {
      self.network.stop_after(2, [&] {
        stage.await(3);
        self.network.die();
      });
      self.agree(0b1111);
      return;
    }
    self.expect_late(0b0111);
    if (self.rank == 0) {
      stage.open(1);
      got[0] = self.agree(0b0001).value;
    } else {
      stage.await(1);
      std::this_thread::sleep_for(milliseconds(100));
      std::thread end([&] {
        std::this_thread::sleep_for(milliseconds(100));
        stage.open(3);
      });
      got[1] = self.agree(0b0111).value;
      end.join();
    }
  });
  EXPECT_EQ(got[0], got[1]);
  EXPECT_EQ(got[0], 0b0111U);  // a value counts from when it was said first
}

TEST(Agreement, ThatWasCutOffEndsBeforeOneForAnotherPurpose) {
  // Rank 2 tells rank 0 alone, stands still and dies: rank 0 has the answer, rank 1 is late. Both go on with another
  // agreement.
  for (const bool both_late : {false, true}) {
    Stage stage;
    std::atomic<int> late{0};
    std::array<std::uint64_t, 2> got{};
    run_mortals(3, [&](Member& self) {
      if (self.rank == 2) {
        self.network.stop_after(both_late ? 2 : 3, [&] {
          stage.await(1);
          self.network.die();
        });
        self.agree(0b1111);
        return;
      }
      if (self.rank == 0 && !both_late) {
        EXPECT_EQ(self.agree(0b0111).value, 0b0011U);
      } else {
        self.expect_late(self.rank == 0 ? 0b0111 : 0b1011);
        if (++late == (both_late ? 2 : 1)) stage.open(1);
      }
      stage.await(1);
      const Agreed agreed = self.agree(self.rank == 0 ? 0b1110 : 0b1100, kOther);
      got[self.rank] = agreed.value;
      EXPECT_EQ(agreed.number, 101U);
      EXPECT_EQ(agreed.gone, (std::vector<bool>{false, false, true}));
      // And a further one, of the first kind.
      EXPECT_EQ(self.agree(0b0100 << self.rank).value, 0U);
    });
    EXPECT_EQ(got, (std::array<std::uint64_t, 2>{0b1100, 0b1100}));
  }
}

// ---------------------------------------------------------------------------------------------------- processes

constexpr std::uint32_t kProcesses = 6;
constexpr std::uint32_t kAgreements = 150;

/// What processes that may be killed leave behind.
struct Left {
  struct Entry {
    std::atomic<std::uint64_t> given, value, gone;
    std::atomic<bool> answered;
  };
  Entry entries[kProcesses][kAgreements];
};

struct Unmap {
  void operator()(Left* left) const { munmap(left, sizeof(Left)); }
};

/// Agreements of processes, of which some are killed at any moment, often two at nearly the same one.
void kill_and_agree(std::uint64_t seed, bool lanes) {
  void* const memory = mmap(nullptr, sizeof(Left), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::unique_ptr<Left, Unmap> left(new (memory) Left{});
  std::mt19937_64 rng(seed);
  const auto below = [&](std::uint64_t limit) { return rng() % limit; };
  std::array<std::optional<std::uint32_t>, kProcesses> dies{};  // with this agreement
  std::array<std::uint64_t, kProcesses> delay{};                // and so many microseconds later
  const std::uint64_t moment = below(kAgreements / 2);
  for (std::uint64_t victims = 1 + below(kProcesses - 1); victims != 0; --victims) {
    const std::uint64_t rank = below(kProcesses);
    dies[rank] = static_cast<std::uint32_t>(below(3) == 0 ? below(kAgreements) : moment + below(2));
    delay[rank] = below(below(2) == 0 ? 300 : 5000);
  }
  JobEnvironment environment;
  environment.size = kProcesses;
  environment.rendezvous = "agreement-" + std::to_string(getpid()) + "-" + std::to_string(seed);
  environment.secret = "5eed";
  environment.timeout = seconds(60);
  const auto run = [&](std::uint32_t rank) {
    JobEnvironment own = environment;
    own.rank = rank;
    own.kernel_copy = kNoKernelCopy;
    JoinedJob job = join_job(own, {});
    NativeEngine engine(*job.poe, lanes ? quick_settings() : message_settings());
    const Agreement capabilities = engine.capabilities();
    std::vector<std::uint32_t> endpoints(kProcesses);
    std::iota(endpoints.begin(), endpoints.end(), 0U);
    engine.create_communicator(0, 0, endpoints, agree({&capabilities, 1}));
    std::mt19937_64 values(seed + rank);
    for (std::uint32_t i = 0; i < kAgreements; ++i) {
      if (dies[rank] == i) {
        std::thread([wait = delay[rank]] {
          std::this_thread::sleep_for(microseconds(wait));
          kill(getpid(), SIGKILL);
        }).detach();
      }
      if (values() % 40 == 0) engine.revoke(0, "agreement does without");
      Left::Entry& entry = left->entries[rank][i];
      entry.given = values() | values() | values();
      const Agreed agreed = engine.agree(0, kOne, entry.given, 0, seconds(60));
      std::uint64_t gone = 0;
      for (std::uint32_t peer = 0; peer < kProcesses; ++peer) gone |= std::uint64_t{agreed.gone[peer]} << peer;
      entry.value = agreed.value;
      entry.gone = gone;
      entry.answered = true;
    }
    while (dies[rank]) std::this_thread::sleep_for(seconds(1));
    // A rank that has said its last word may go: nobody waits for it any more.
  };
  std::vector<Child> children;
  for (std::uint32_t rank = 0; rank < kProcesses; ++rank) children.emplace_back([&, rank] { run(rank); });
  for (std::uint32_t rank = 0; rank < kProcesses; ++rank) {
    ASSERT_EQ(children[rank].wait(seconds(90)), dies[rank] ? -SIGKILL : 0) << "seed " << seed << ", rank " << rank;
  }
  for (std::uint32_t i = 0; i < kAgreements; ++i) {
    const Left::Entry* first = nullptr;
    std::uint64_t alive = ~std::uint64_t{0};
    for (std::uint32_t rank = 0; rank < kProcesses; ++rank) {
      const Left::Entry& own = left->entries[rank][i];
      if (!dies[rank]) alive &= own.given;
      if (!own.answered) continue;
      if (first == nullptr) first = &own;
      ASSERT_EQ(own.value, first->value) << "seed " << seed << ", agreement " << i << ", rank " << rank;
      ASSERT_EQ(own.gone, first->gone) << "seed " << seed << ", agreement " << i << ", rank " << rank;
      ASSERT_EQ(own.value & ~own.given, 0U) << "seed " << seed << ", agreement " << i << ", rank " << rank;
    }
    if (first == nullptr) continue;  // all have died
    ASSERT_EQ(first->value & ~alive, 0U) << "seed " << seed << ", agreement " << i;
    for (std::uint32_t rank = 0; rank < kProcesses; ++rank) {
      const bool thought_dead = (first->gone >> rank & 1U) != 0;
      ASSERT_FALSE(thought_dead && (!dies[rank] || i < *dies[rank])) << "seed " << seed << ", agreement " << i;
    }
  }
}

class AgreementOfProcesses : public testing::TestWithParam<bool> {};

TEST_P(AgreementOfProcesses, IsUniformWhoeverIsKilledWhenever) {
  static std::uint64_t seed = 1000;  // goes on where tests are repeated
  for (int job = 0; job < 20 && !HasFatalFailure(); ++job) kill_and_agree(++seed, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Ways, AgreementOfProcesses, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Lanes" : "Messages"; });

}  // namespace
}  // namespace unisono::test
