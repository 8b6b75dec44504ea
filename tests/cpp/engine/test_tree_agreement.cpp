// Agreements along trees (engine/tree_agreement.hpp), of which ranks end at any word that they say: whoever gets an
// answer gets the same, and all that are left get one. No threads: words are delivered, and ranks look, in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/tree_agreement.hpp"

namespace unisono::cclo {
namespace {

constexpr int kForEver = 1 << 30;

/// Thrown within a rank that has just ended.
struct Over {};

/// A job of ranks whose words travel at the test's will.
class World {
 public:
  World(std::uint32_t size, std::uint64_t seed, std::vector<bool> out = {})
      : size_(size), random_(seed), ended_(size, false), left_(size, kForEver), said_(size, 0) {
    out.resize(size, false);
    ended_ = out;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      links_.push_back(std::make_unique<Links>(*this, rank));
      agreements_.push_back(std::make_unique<TreeAgreement>(rank, out, *links_.back()));
    }
  }

  /// The rank ends in place of saying its word number `words`, or when it would begin if that is negative. What it has
  /// said and has not been delivered is lost, if `loses`.
  void end_after(std::uint32_t rank, int words, bool loses) {
    left_[rank] = words;
    loses_ = loses;
    if (words < 0) end(rank);
  }
  void end(std::uint32_t rank) {
    ended_[rank] = true;
    if (!loses_) return;
    std::erase_if(pending_, [&](const auto& way) { return way.first.first == rank; });
  }

  static std::uint64_t value_of(std::uint32_t rank) { return ~(std::uint64_t{1} << (rank % 64)); }

  /// Until all that are left have their answer. False if they have not after very many steps.
  bool run() {
    std::vector<std::uint32_t> to_begin;
    for (std::uint32_t rank = 0; rank < size_; ++rank) to_begin.push_back(rank);
    std::shuffle(to_begin.begin(), to_begin.end(), random_);
    for (std::uint64_t step = 0; step < 4000 + std::uint64_t{3000} * size_; ++step) {
      const std::uint64_t what = random_() % 8;
      if (what == 0 && !to_begin.empty()) {
        const std::uint32_t rank = to_begin.back();
        to_begin.pop_back();
        as(rank, [&] { agreements_[rank]->begin(7, value_of(rank), rank); });
      } else if (what == 1) {
        const auto rank = static_cast<std::uint32_t>(random_() % size_);
        // A rank that has its answer looks at nothing any more.
        if (agreements_[rank]->begun() && agreements_[rank]->answer() == nullptr)
          as(rank, [&] { agreements_[rank]->look(); });
        if (finished()) return true;
      } else if (!pending_.empty()) {
        auto way = pending_.lower_bound({static_cast<std::uint32_t>(random_() % size_), 0});
        if (way == pending_.end()) way = pending_.begin();
        deliver(way->first);
      }
    }
    return false;
  }

  /// That all got the same, and what they may get.
  void check(const std::string& what) const {
    const TreeAnswer* first = nullptr;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      const TreeAnswer* const own = agreements_[rank]->answer();
      ASSERT_TRUE(own != nullptr || ended_[rank]) << what << "rank " << rank << " has no answer";
      if (own == nullptr) continue;
      if (first == nullptr) first = own;
      ASSERT_EQ(*own, *first) << what << "rank " << rank;
      ASSERT_FALSE(own->differ) << what;
      ASSERT_EQ(own->value & ~value_of(rank), 0U) << what << "a value that was given is missing";
    }
    if (first == nullptr) return;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      ASSERT_TRUE(ended_[rank] || !first->gone[rank]) << what << "rank " << rank << " lives";
      if (!ended_[rank]) {
        ASSERT_GE(first->number, rank) << what;
      }
    }
  }

  /// Who waits for whom.
  std::string waiting() const {
    std::string text;
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (ended_[rank] || agreements_[rank]->answer() != nullptr) continue;
      text += "; rank " + std::to_string(rank) + (agreements_[rank]->adopted() != nullptr ? ", with a value," : "") +
              " waits for";
      for (const std::uint32_t other : agreements_[rank]->awaited()) text += " " + std::to_string(other);
    }
    return text;
  }
  std::uint32_t most_said() const { return *std::max_element(said_.begin(), said_.end()); }
  const TreeAgreement& of(std::uint32_t rank) const { return *agreements_[rank]; }
  TreeAgreement& of(std::uint32_t rank) { return *agreements_[rank]; }
  void deliver_all() {
    while (!pending_.empty()) deliver(pending_.begin()->first);
  }

 private:
  class Links final : public TreeLinks {
   public:
    Links(World& world, std::uint32_t rank) : world_(world), rank_(rank) {}
    void send(std::uint32_t to, const TreeWord& word) override {
      if (world_.left_[rank_]-- == 0) {
        world_.end(rank_);
        throw Over{};
      }
      ++world_.said_[rank_];
      // As it goes over the wire.
      const std::string bytes = word.encoded(world_.size_);
      ASSERT_LE(bytes.size(), TreeWord::most_bytes(world_.size_));
      world_.pending_[{rank_, to}].push_back(
          TreeWord::decoded(std::as_bytes(std::span(bytes.data(), bytes.size())), world_.size_));
    }
    bool ended(std::uint32_t rank) override {
      if (!world_.ended_[rank]) return false;
      while (world_.pending_.count({rank, rank_}) != 0) world_.deliver({rank, rank_});
      return true;
    }

   private:
    World& world_;
    std::uint32_t rank_;
  };
  using Way = std::pair<std::uint32_t, std::uint32_t>;  ///< from, to

  template <class Do>
  void as(std::uint32_t rank, Do&& what) {
    if (ended_[rank]) return;
    try {
      what();
    } catch (const Over&) {
    }
  }
  void deliver(Way way) {
    const auto found = pending_.find(way);
    const TreeWord word = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) pending_.erase(found);
    as(way.second, [&] { agreements_[way.second]->receive(way.first, word); });
  }
  bool finished() const {
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (!ended_[rank] && agreements_[rank]->answer() == nullptr) return false;
    }
    return true;
  }

  std::uint32_t size_;
  std::mt19937_64 random_;
  std::vector<bool> ended_;
  std::vector<int> left_;
  std::vector<std::uint32_t> said_;
  bool loses_ = false;
  std::map<Way, std::deque<TreeWord>> pending_;
  std::vector<std::unique_ptr<Links>> links_;
  std::vector<std::unique_ptr<TreeAgreement>> agreements_;
};

TEST(TreeAgreement, TakesFewWords) {
  for (const std::uint32_t size : {1U, 2U, 3U, 7U, 16U, 33U, 1024U}) {
    World world(size, size);
    ASSERT_TRUE(world.run()) << size << world.waiting();
    world.check("");
    EXPECT_LE(world.most_said(), 2 + 2 * std::bit_width(size)) << size;
    std::uint64_t value = ~std::uint64_t{0};
    for (std::uint32_t rank = 0; rank < size; ++rank) value &= World::value_of(rank);
    EXPECT_EQ(world.of(0).answer()->value, value);
    EXPECT_EQ(world.of(0).answer()->number, size - 1);
  }
}

TEST(TreeAgreement, IsUniformWhereverARankEnds) {
  for (const std::uint32_t size : {2U, 5U, 8U}) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      for (int words = -1; words <= 9; ++words) {
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
          World world(size, seed);
          world.end_after(rank, words, seed % 2 != 0);
          const std::string what = std::to_string(size) + " ranks, rank " + std::to_string(rank) + " after " +
                                   std::to_string(words) + ", seed " + std::to_string(seed) + ": ";
          ASSERT_TRUE(world.run()) << what << world.waiting();
          world.check(what);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(TreeAgreement, IsUniformWhoeverEnds) {
  std::mt19937_64 random(1);
  for (std::uint64_t seed = 0; seed < 10000; ++seed) {
    const auto size = static_cast<std::uint32_t>(2 + random() % 12);
    World world(size, seed);
    std::string what = std::to_string(size) + " ranks, seed " + std::to_string(seed) + ", ";
    const bool loses = seed % 2 != 0;
    for (std::uint64_t deaths = 1 + random() % size; deaths != 0; --deaths) {
      // The first ones lead, and have most to say.
      const auto rank = static_cast<std::uint32_t>(random() % 2 == 0 ? random() % std::min(size, 4U) : random() % size);
      const int words = static_cast<int>(random() % 10) - 1;
      world.end_after(rank, words, loses);
      what += "rank " + std::to_string(rank) + " after " + std::to_string(words) + ", ";
    }
    ASSERT_TRUE(world.run()) << what << world.waiting();
    world.check(what);
    if (HasFatalFailure()) return;
  }
}

TEST(TreeAgreement, OfAThousandRanksOfWhichAHundredEnd) {
  std::mt19937_64 random(2);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    constexpr std::uint32_t kSize = 1024;
    World world(kSize, seed);
    for (int deaths = 0; deaths < 100; ++deaths) {
      world.end_after(static_cast<std::uint32_t>(deaths < 5 ? deaths : random() % kSize),
                      static_cast<int>(random() % 4) - 1, seed % 2 != 0);
    }
    ASSERT_TRUE(world.run()) << seed << world.waiting();
    world.check("seed " + std::to_string(seed) + ": ");
  }
}

TEST(TreeAgreement, BeginsWithoutThoseThatWereGoneBefore) {
  std::vector<bool> out(9, false);
  out[0] = out[5] = out[8] = true;
  World world(9, 3, out);
  ASSERT_TRUE(world.run());
  world.check("");
  EXPECT_EQ(world.of(1).answer()->gone, out);
}

TEST(TreeAgreement, SaysWhoseCallsDiffer) {
  World world(20, 4);
  for (std::uint32_t rank = 0; rank < 20; ++rank) world.of(rank).begin(rank == 13 ? 2 : 1, 3, 4);
  world.deliver_all();
  for (std::uint32_t rank = 0; rank < 20; ++rank) {
    const TreeAnswer* const answer = world.of(rank).answer();
    ASSERT_NE(answer, nullptr) << rank;
    EXPECT_TRUE(answer->differ);
    // One of the two is the one that is alone.
    const std::size_t odd = answer->ranks[0] == 13 ? 0 : 1;
    EXPECT_EQ(answer->ranks[odd], 13U);
    EXPECT_EQ(answer->purposes[odd], 2U);
    EXPECT_EQ(answer->purposes[1 - odd], 1U);
  }
}

TEST(TreeAgreement, SaysForWhomItWaits) {
  World world(4, 5);
  world.of(0).begin(1, 1, 1);
  EXPECT_EQ(world.of(0).awaited(), (std::vector<std::uint32_t>{1, 2}));
  world.of(1).begin(1, 1, 1);
  world.deliver_all();
  EXPECT_EQ(world.of(0).awaited(), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(world.of(1).awaited(), (std::vector<std::uint32_t>{0}));
}

TEST(TreeWord, ThatIsMalformedIsRefused) {
  TreeWord word;
  word.ended = {true, false, true, false};
  const std::string good = word.encoded(4);
  const auto decode = [](const std::string& bytes, std::uint32_t ranks) {
    return TreeWord::decoded(std::as_bytes(std::span(bytes.data(), bytes.size())), ranks);
  };
  EXPECT_EQ(decode(good, 4), word);
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) EXPECT_THROW(decode(good.substr(0, bytes), 4), Error);
  EXPECT_THROW(decode(good + "x", 4), Error);
  std::string bad = good;
  bad[24] = 9;  // its leader
  EXPECT_THROW(decode(bad, 4), Error);
  bad = good;
  bad[17] = 77;  // its kind
  EXPECT_THROW(decode(bad, 4), Error);
}

}  // namespace
}  // namespace unisono::cclo
