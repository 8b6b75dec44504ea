// Agreements across a network that is cut (engine/consensus.hpp): one part at most goes on, and all of a part alike.
// Ranks are threads, between which messages are lost from some moment on, and who is not answered is given up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cpp/engine/process_jobs.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Ranks = std::vector<std::uint32_t>;

constexpr std::uint32_t kPurpose = 1;
constexpr int kForEver = 1 << 30;

/// Ends the thread of a rank that is dead.
struct Died {};

/// What lies between the ranks.
class Wires {
 public:
  explicit Wires(std::uint32_t size)
      : dead_(size), spoken_(size), cut_(std::size_t{size} * size), closed_(std::size_t{size} * size), size_(size) {
    for (std::uint32_t rank = 0; rank < size; ++rank) hosts.push_back(rank);
  }

  void kill(std::uint32_t rank) { dead_[rank] = true; }
  bool dead(std::uint32_t rank) const { return dead_[rank]; }
  /// From now on nothing goes from one to the other.
  void cut(std::uint32_t from, std::uint32_t to) { cut_[from * size_ + to] = true; }
  /// Nothing goes between those of different parts, in both directions.
  void cut(const std::vector<Ranks>& parts) {
    for (const Ranks& one : parts) {
      for (const Ranks& other : parts) {
        if (&one == &other) continue;
        for (const std::uint32_t from : one) {
          for (const std::uint32_t to : other) cut(from, to);
        }
      }
    }
  }
  bool is_cut(std::uint32_t from, std::uint32_t to) const { return cut_[from * size_ + to]; }
  /// One has closed its end of the connection to the other, which can see that it lives all the same.
  void close(std::uint32_t one, std::uint32_t other) { closed_[one * size_ + other] = true; }
  bool is_closed(std::uint32_t one, std::uint32_t other) const { return closed_[one * size_ + other]; }
  /// Control messages that a rank has sent.
  void speak(std::uint32_t rank) { ++spoken_[rank]; }
  std::uint32_t spoken(std::uint32_t rank) const { return spoken_[rank]; }
  std::uint32_t size() const { return size_; }

  Ranks hosts;  ///< by rank

 private:
  std::vector<std::atomic<bool>> dead_;
  std::vector<std::atomic<std::uint32_t>> spoken_;
  std::vector<std::atomic<bool>> cut_;
  std::vector<std::atomic<bool>> closed_;
  std::uint32_t size_;
};

/// An endpoint of it. As with a connection: who was given up once is not heard any more, whatever it sends later; and
/// where messages are lost in one direction, both ends miss an answer.
class Cuttable final : public Poe {
 public:
  Cuttable(Poe& real, Wires& wires) : real_(real), wires_(wires), patience_(20 + 7 * real.self()) {
    fates_.resize(wires.size());
    missed_.resize(wires.size());
  }
  /// Does `then` before it sends one more message than these.
  void after(int messages, std::function<void()> then) {
    left_ = messages;
    then_ = std::move(then);
  }
  void give_up(std::uint32_t peer) {
    fates_[peer] = Fate::kVanished;
    wires_.close(self(), peer);
  }

  std::uint32_t self() const override { return real_.self(); }
  std::uint32_t size() const override { return real_.size(); }
  std::uint32_t max_payload(Lane lane) const override { return real_.max_payload(lane); }
  std::byte* reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) override {
    return real_.reserve(peer, lane, bytes);
  }
  void commit(std::uint32_t peer, Lane lane, const Header& header) override {
    if (lane == Lane::kControl && left_-- == 0) then_();
    if (!wires_.is_cut(self(), peer)) real_.commit(peer, lane, header);
    if (lane == Lane::kControl) wires_.speak(self());
  }
  bool peek(std::uint32_t peer, Lane lane, Incoming& in) override {
    return fates_[peer] != Fate::kVanished && real_.peek(peer, lane, in);
  }
  void release(std::uint32_t peer, Lane lane) override { real_.release(peer, lane); }
  std::uint32_t activity() const override { return real_.activity(); }
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) override {
    real_.wait(seen, std::min(at_most, microseconds(100)));
  }
  Liveness liveness(std::uint32_t peer) override {
    return fate(peer) == Fate::kUnknown ? Liveness::kAlive : Liveness::kDead;
  }
  Fate fate(std::uint32_t peer) override {
    Fate& known = fates_[peer];
    if (known != Fate::kUnknown || peer == self()) return known;
    if (wires_.is_cut(self(), peer) || wires_.is_cut(peer, self())) {
      const auto now = std::chrono::steady_clock::now();
      if (!missed_[peer]) missed_[peer] = now;
      if (now - *missed_[peer] > patience_) known = Fate::kVanished;
    } else if (wires_.is_closed(peer, self())) {
      known = Fate::kVanished;
    } else if (wires_.dead(peer)) {
      known = Fate::kEnded;
    }
    return known;
  }
  std::uint32_t host_of(std::uint32_t endpoint) const override { return wires_.hosts[endpoint]; }
  std::string describe(std::uint32_t peer) const override { return real_.describe(peer); }

 private:
  Poe& real_;
  Wires& wires_;
  milliseconds patience_;
  int left_ = kForEver;
  std::function<void()> then_;
  std::vector<Fate> fates_;
  std::vector<std::optional<std::chrono::steady_clock::time_point>> missed_;
};

/// What a rank has got: an answer, or the sentence with which its part was told to end.
struct Outcome {
  std::optional<Agreed> agreed;
  std::string partitioned;
};

struct Member {
  std::uint32_t rank;
  Engine& engine;
  Cuttable& network;
  Wires& wires;

  Outcome agree(std::uint64_t value, std::uint32_t communicator = 0) const {
    try {
      return {engine.agree(communicator, kPurpose, value, 100 + rank, seconds(20)), {}};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kPartitioned) throw;
      return {{}, error.what()};
    }
  }
  [[noreturn]] void die() const {
    wires.kill(rank);
    throw Died{};
  }
};

/// Communicators besides 0, which has all ranks: 1 and so on.
using Others = std::vector<Ranks>;

void run_cut(std::uint32_t size, const Others& others, const std::function<void(Member&)>& body,
             const Ranks& hosts = {}) {
  ThreadJob job(size);
  Wires wires(size);
  if (!hosts.empty()) wires.hosts = hosts;
  std::vector<std::unique_ptr<Poe>> networks(size);
  std::vector<std::unique_ptr<Cuttable>> ends(size);
  std::vector<std::unique_ptr<Engine>> engines(size);
  Ranks all;
  std::vector<Agreement> capabilities;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    networks[rank] = job.endpoint(rank);
    ends[rank] = std::make_unique<Cuttable>(*networks[rank], wires);
    engines[rank] = std::make_unique<NativeEngine>(*ends[rank], message_settings());
    capabilities.push_back(engines[rank]->capabilities());
    all.push_back(rank);
  }
  for (const auto& engine : engines) engine->create_communicator(0, 0, all, agree(capabilities));
  for (std::uint32_t i = 0; i < others.size(); ++i) {
    for (const std::uint32_t rank : others[i]) {
      engines[rank]->create_communicator(i + 1, 0, others[i], agree(capabilities));
    }
  }
  std::atomic<std::uint32_t> left{size};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Member self{rank, *engines[rank], *ends[rank], wires};
      try {
        body(self);
      } catch (const Died&) {
        --left;
        return;
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      // A rank that has its answer goes on with other things, and answers those that have not.
      for (--left; left != 0;) {
        engines[rank]->progress();
        std::this_thread::sleep_for(microseconds(100));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::uint64_t value_of(std::uint32_t rank) { return ~(std::uint64_t{1} << rank); }

/// All ranks agree once on a network that is cut into parts; those of `dead` have died before. Which rank got what.
std::vector<Outcome> agree_in_parts(const std::vector<Ranks>& parts, const Ranks& dead = {}) {
  std::uint32_t size = static_cast<std::uint32_t>(dead.size());
  for (const Ranks& part : parts) size += static_cast<std::uint32_t>(part.size());
  std::vector<Outcome> got(size);
  std::atomic<bool> ready{false};
  run_cut(size, {}, [&](Member& self) {
    if (std::find(dead.begin(), dead.end(), self.rank) != dead.end()) self.die();
    if (self.rank == parts[0][0]) {
      const auto died = [&](std::uint32_t rank) { return self.wires.dead(rank); };
      while (!std::all_of(dead.begin(), dead.end(), died)) std::this_thread::yield();
      self.wires.cut(parts);
      ready = true;
    }
    while (!ready) std::this_thread::yield();
    got[self.rank] = self.agree(value_of(self.rank));
  });
  return got;
}

/// That those of one part, and nobody else, got an answer, and which.
void expect_only(const std::vector<Outcome>& got, const Ranks& part, const Ranks& dead = {}) {
  std::uint64_t value = ~std::uint64_t{0};
  std::vector<bool> gone(got.size(), true);
  for (const std::uint32_t rank : part) {
    value &= value_of(rank);
    gone[rank] = false;
  }
  for (std::uint32_t rank = 0; rank < got.size(); ++rank) {
    if (std::find(dead.begin(), dead.end(), rank) != dead.end()) continue;
    const bool goes_on = !gone[rank];
    ASSERT_EQ(got[rank].agreed.has_value(), goes_on) << "rank " << rank << ": " << got[rank].partitioned;
    ASSERT_EQ(got[rank].partitioned.empty(), goes_on) << "rank " << rank;
    if (!goes_on) continue;
    EXPECT_EQ(got[rank].agreed->value, value) << "rank " << rank;
    EXPECT_EQ(got[rank].agreed->gone, gone) << "rank " << rank;
  }
}

TEST(Partition, TheLargerPartGoesOn) {
  expect_only(agree_in_parts({{0, 1}, {2, 3, 4}}), {2, 3, 4});
  expect_only(agree_in_parts({{0, 2, 4}, {1, 3}}), {0, 2, 4});
  expect_only(agree_in_parts({{0}, {1, 2, 3, 4, 5, 6}}), {1, 2, 3, 4, 5, 6});
  expect_only(agree_in_parts({{0}, {1, 2}}), {1, 2});
}

TEST(Partition, OfTwoEqualPartsThatWithTheLowestRankGoesOn) {
  expect_only(agree_in_parts({{0, 1}, {2, 3}}), {0, 1});
  expect_only(agree_in_parts({{1, 2}, {0, 3}}), {0, 3});
  expect_only(agree_in_parts({{0}, {1}}), {0});
}

TEST(Partition, OfThreePartsOneGoesOnIfItIsLargerThanAllOthers) {
  expect_only(agree_in_parts({{0, 4}, {1, 2, 3, 6}, {5}}), {1, 2, 3, 6});
  expect_only(agree_in_parts({{0, 4}, {1, 2}, {3}}), {});  // the largest together with the lowest rank, but not half
  expect_only(agree_in_parts({{0, 3}, {1}, {2}}), {0, 3});
}

TEST(Partition, WhoHasEndedCountsForNoPart) {
  expect_only(agree_in_parts({{2}, {3, 4}}, {0, 1}), {3, 4}, {0, 1});
  expect_only(agree_in_parts({{1}, {2}}, {0}), {1}, {0});
  expect_only(agree_in_parts({{2, 4}, {1, 3}}, {0, 5}), {1, 3}, {0, 5});
  expect_only(agree_in_parts({{3}, {2, 4}}, {0, 1, 5, 6}), {2, 4}, {0, 1, 5, 6});
}

TEST(Partition, WhoEndsBehindTheCutCountsForItsPart) {
  // Rank 4 dies when the network is cut already: its own part knows it, the other cannot.
  std::vector<Outcome> got(5);
  std::atomic<bool> ready{false};
  run_cut(5, {}, [&](Member& self) {
    if (self.rank == 4) {
      self.wires.cut({{0, 1}, {2, 3, 4}});
      self.wires.kill(4);
      ready = true;
      throw Died{};
    }
    while (!ready) std::this_thread::yield();
    got[self.rank] = self.agree(value_of(self.rank));
  });
  // Two against three for the one part; for the other two against two, without the lowest rank.
  expect_only(got, {}, {4});
  EXPECT_THAT(got[2].partitioned, HasSubstr("rank 4 on 1 host known to have ended"));
}

TEST(Partition, TheSentenceSaysWhoCanBeReachedAndWhatToDo) {
  const auto got = agree_in_parts({{0, 1, 3, 4}, {2, 5}});
  const std::string& text = got[5].partitioned;
  EXPECT_THAT(text, HasSubstr("communicator 0"));
  EXPECT_THAT(text, HasSubstr("(rank 5)"));
  EXPECT_THAT(text, HasSubstr("ranks 2, 5 on 2 hosts can be reached"));
  EXPECT_THAT(text, HasSubstr("ranks 0-1, 3-4 on 4 hosts cannot"));
  EXPECT_THAT(text, HasSubstr("rank 0, endpoint 0"));
  EXPECT_THAT(text, HasSubstr("exit the program"));
  EXPECT_THAT(text, Not(HasSubstr("ended")));
}

TEST(Partition, ThatLosesInOneDirectionIsCutInBoth) {
  std::vector<Outcome> got(4);
  std::atomic<bool> ready{false};
  run_cut(4, {}, [&](Member& self) {
    if (self.rank == 0) {
      for (const std::uint32_t from : {0U, 1U, 2U}) self.wires.cut(from, 3);
      ready = true;
    }
    while (!ready) std::this_thread::yield();
    got[self.rank] = self.agree(value_of(self.rank));
  });
  ASSERT_TRUE(got[0].agreed && got[1].agreed && got[2].agreed);
  EXPECT_EQ(got[0].agreed->gone, (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(got[1].agreed->gone, got[0].agreed->gone);
  EXPECT_EQ(got[2].agreed->gone, got[0].agreed->gone);
  EXPECT_FALSE(got[3].agreed);
}

TEST(Partition, WordsThatStillComeFromTheOtherPartDoNotTearThisOneApart) {
  // What the larger part, one host, says is lost, and the words of rank 0 come: as it gives up one after the other, it
  // names some of them to the others.
  std::vector<Outcome> got(5);
  std::atomic<bool> ready{false};
  const auto body = [&](Member& self) {
    if (self.rank == 0) {
      for (const std::uint32_t from : {2U, 3U, 4U}) {
        for (const std::uint32_t to : {0U, 1U}) self.wires.cut(from, to);
      }
      self.network.give_up(2);
      ready = true;
    }
    while (!ready) std::this_thread::yield();
    got[self.rank] = self.agree(value_of(self.rank));
  };
  run_cut(5, {}, body, {0, 0, 1, 1, 1});
  for (const std::uint32_t rank : {0U, 1U}) EXPECT_FALSE(got[rank].agreed) << rank;
  for (const std::uint32_t rank : {2U, 3U, 4U}) {
    ASSERT_TRUE(got[rank].agreed) << rank << ": " << got[rank].partitioned;
    EXPECT_EQ(got[rank].agreed->gone, (std::vector<bool>{true, true, false, false, false}));
  }
}

TEST(Partition, WhomOneRankHasGivenUpStaysOutForAllAndHearsOfIt) {
  // Rank 0 has given up rank 3, which lives, and which all others reach: nobody waits for ever.
  std::vector<Outcome> got(4), later(4);
  run_cut(4, {{0, 1, 2, 3}}, [&](Member& self) {
    if (self.rank == 0) self.network.give_up(3);
    // Rank 3 has given up rank 0 as well, then: the one of whom the others hear first goes on with them.
    while (self.rank != 0 && self.wires.spoken(0) < 2) std::this_thread::yield();
    got[self.rank] = self.agree(value_of(self.rank));
    later[self.rank] = self.agree(value_of(self.rank), 1);
  });
  for (const auto& outcomes : {got, later}) {
    for (const std::uint32_t rank : {0U, 1U, 2U}) {
      ASSERT_TRUE(outcomes[rank].agreed) << rank << ": " << outcomes[rank].partitioned;
      EXPECT_EQ(outcomes[rank].agreed->gone, (std::vector<bool>{false, false, false, true}));
    }
    EXPECT_FALSE(outcomes[3].agreed);
    EXPECT_THAT(outcomes[3].partitioned, HasSubstr("exit the program"));
  }
}

TEST(Partition, WhoWasToldToEndIsToldAgain) {
  // Ranks 0 and 1 are the larger part of communicator 1, but were left behind with communicator 0. On communicator 2
  // they miss nobody.
  std::array<std::vector<Outcome>, 4> got;
  got.fill(std::vector<Outcome>(5));
  std::atomic<bool> ready{false};
  run_cut(5, {{0, 1, 2}, {0, 1}}, [&](Member& self) {
    if (self.rank == 0) {
      self.wires.cut({{0, 1}, {2, 3, 4}});
      ready = true;
    }
    while (!ready) std::this_thread::yield();
    got[0][self.rank] = self.agree(value_of(self.rank));
    got[1][self.rank] = self.agree(value_of(self.rank));
    if (self.rank < 3) got[2][self.rank] = self.agree(value_of(self.rank), 1);
    if (self.rank < 2) got[3][self.rank] = self.agree(value_of(self.rank), 2);
  });
  expect_only(got[0], {2, 3, 4});
  expect_only(got[1], {2, 3, 4});
  for (const std::uint32_t rank : {0U, 1U, 2U}) EXPECT_FALSE(got[2][rank].agreed) << rank;
  EXPECT_THAT(got[2][0].partitioned, HasSubstr("left behind before"));
  for (const std::uint32_t rank : {0U, 1U}) EXPECT_TRUE(got[3][rank].agreed) << got[3][rank].partitioned;
}

// Two agreements one after the other, and a cut at any word of any rank: whoever gets an answer of the first gets the
// same, on either side, and those of a part fare alike.
void expect_one_history(const std::vector<Ranks>& parts, std::uint32_t who, int words) {
  constexpr std::uint32_t kSize = 4;
  std::array<std::array<Outcome, 2>, kSize> got;
  run_cut(kSize, {}, [&](Member& self) {
    if (self.rank == who) self.network.after(words, [&] { self.wires.cut(parts); });
    for (std::uint32_t round = 0; round < 2; ++round) {
      Outcome& own = got[self.rank][round];
      own = self.agree(value_of(self.rank + 8 * round));
      if (!own.agreed) return;
    }
  });
  const std::string what = "cut by rank " + std::to_string(who) + " after " + std::to_string(words) + " words";
  for (std::uint32_t round = 0; round < 2; ++round) {
    const Agreed* first = nullptr;
    for (std::uint32_t rank = 0; rank < kSize; ++rank) {
      const auto& own = got[rank][round].agreed;
      if (!own) continue;
      ASSERT_EQ(own->value & ~value_of(rank + 8 * round), 0U) << what;
      if (first == nullptr) first = &*own;
      ASSERT_EQ(own->value, first->value) << "round " << round << ", rank " << rank << ", " << what;
    }
    for (const Ranks& part : parts) {
      const Outcome& one = got[part[0]][round];
      for (const std::uint32_t rank : part) {
        const Outcome& own = got[rank][round];
        ASSERT_EQ(own.agreed.has_value(), one.agreed.has_value()) << "round " << round << ", " << what;
        if (own.agreed) {
          ASSERT_EQ(own.agreed->gone, one.agreed->gone) << "round " << round << ", " << what;
        }
      }
    }
  }
}

class PartitionAtAnyWord : public testing::TestWithParam<std::vector<Ranks>> {};

TEST_P(PartitionAtAnyWord, LeavesOneHistory) {
  // A rank says 3 words in the first round of an agreement of 4 and 3 in its turn.
  for (std::uint32_t who = 0; who < 4; ++who) {
    for (int words = 0; words <= 12 && !HasFatalFailure(); ++words) expect_one_history(GetParam(), who, words);
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, PartitionAtAnyWord,
                         testing::Values(std::vector<Ranks>{{0}, {1, 2, 3}}, std::vector<Ranks>{{0, 1}, {2, 3}},
                                         std::vector<Ranks>{{0, 3}, {1, 2}}, std::vector<Ranks>{{0, 1, 2}, {3}}));

}  // namespace
}  // namespace unisono::test
