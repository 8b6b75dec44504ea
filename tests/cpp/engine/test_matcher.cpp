// The matcher against one that is a list of everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "engine/matcher.hpp"

namespace unisono::cclo {
namespace {

constexpr auto kReserved = static_cast<std::uint32_t>(kMaxUserTag) + 1;

Wanted exactly(std::uint32_t source, std::uint32_t tag) { return {source, tag, false, false}; }
Wanted any_tag(std::uint32_t source) { return {source, 0, false, true}; }
Wanted any_source(std::uint32_t tag) { return {0, tag, true, false}; }
Wanted anything() { return {0, 0, true, true}; }

UnexpectedMessage message(std::uint32_t source, std::uint32_t tag) {
  UnexpectedMessage made;
  made.source = source;
  made.tag = tag;
  return made;
}

PostedReceive receive(const Wanted& wanted) {
  PostedReceive made;
  made.wanted = wanted;
  return made;
}

TEST(Matcher, EachWayOfAskingFindsTheOldestMessage) {
  Matcher matcher;
  auto a = message(1, 5), b = message(2, 5), c = message(1, 6), d = message(1, 5), own = message(3, kReserved);
  for (UnexpectedMessage* m : {&own, &a, &b, &c, &d}) matcher.keep(*m);
  EXPECT_EQ(matcher.find(anything()), &a) << "the library's own are nobody's";
  EXPECT_EQ(matcher.find(any_source(5)), &a);
  EXPECT_EQ(matcher.find(any_source(6)), &c);
  EXPECT_EQ(matcher.find(any_tag(2)), &b);
  EXPECT_EQ(matcher.find(any_tag(3)), nullptr);
  EXPECT_EQ(matcher.find(exactly(3, kReserved)), &own);
  EXPECT_EQ(matcher.find(exactly(2, 6)), nullptr);
  matcher.remove(a);
  EXPECT_EQ(matcher.find(anything()), &b);
  EXPECT_EQ(matcher.find(exactly(1, 5)), &d);
  EXPECT_EQ(matcher.find(any_tag(1)), &c);
  EXPECT_EQ(matcher.unexpected(), 4U);
}

TEST(Matcher, AMessageGoesToTheOldestReceiveThatTakesIt) {
  Matcher matcher;
  auto wild = receive(any_source(5)), exact = receive(exactly(1, 5)), all = receive(anything());
  auto later = receive(exactly(2, 9));
  for (PostedReceive* r : {&wild, &exact, &all, &later}) EXPECT_EQ(matcher.post(*r), nullptr);
  EXPECT_EQ(matcher.arrive(1, kReserved), nullptr);
  EXPECT_EQ(matcher.arrive(1, 5), &wild);
  EXPECT_EQ(matcher.arrive(1, 5), &exact);
  EXPECT_EQ(matcher.arrive(2, 9), &all) << "it is older than the exact one";
  EXPECT_EQ(matcher.oldest_wildcard(), nullptr);
  EXPECT_EQ(matcher.arrive(2, 9), &later);
  EXPECT_EQ(matcher.arrive(2, 9), nullptr);
  EXPECT_EQ(matcher.posted(), 0U);
}

TEST(Matcher, SaysWhatIsThere) {
  Matcher matcher;
  EXPECT_EQ(matcher.unexpected_text(), "");
  std::deque<UnexpectedMessage> messages;
  for (const std::uint32_t tag : {7U, 7U, 1U, 2U, 3U, 4U, 7U, 5U}) matcher.keep(messages.emplace_back(message(3, tag)));
  EXPECT_EQ(matcher.unexpected_text(),
            "tag 7 of rank 3 (3 times), tag 1 of rank 3, tag 2 of rank 3, tag 3 of rank 3, and 2 more");
}

/// The definition: lists, looked through from the oldest on.
struct Naive {
  std::vector<PostedReceive*> posted;
  std::vector<UnexpectedMessage*> unexpected;

  UnexpectedMessage* find(const Wanted& wanted) const {
    const auto found = std::find_if(unexpected.begin(), unexpected.end(),
                                    [&](const auto* m) { return wanted.takes(m->source, m->tag); });
    return found == unexpected.end() ? nullptr : *found;
  }
  UnexpectedMessage* post(PostedReceive& receive) {
    UnexpectedMessage* taken = find(receive.wanted);
    if (taken == nullptr) {
      posted.push_back(&receive);
    } else {
      std::erase(unexpected, taken);
    }
    return taken;
  }
  PostedReceive* arrive(std::uint32_t source, std::uint32_t tag) {
    const auto found =
        std::find_if(posted.begin(), posted.end(), [&](const auto* r) { return r->wanted.takes(source, tag); });
    PostedReceive* taken = found == posted.end() ? nullptr : *found;
    std::erase(posted, taken);
    return taken;
  }
};

class RandomMatching : public testing::TestWithParam<unsigned> {};

TEST_P(RandomMatching, IsThatOfTheDefinition) {
  std::mt19937 random(GetParam());
  const auto up_to = [&](std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(0, most)(random); };
  const std::uint32_t sources = up_to(5), tags = up_to(3) == 0 ? 100'000 : up_to(6);
  const std::uint32_t wild = up_to(3);
  Matcher matcher;
  Naive naive;
  std::deque<PostedReceive> receives;
  std::deque<UnexpectedMessage> messages;
  const auto tag = [&] { return up_to(20) == 0 ? kReserved + up_to(1) : up_to(tags); };
  const auto wanted = [&] {
    Wanted made = exactly(up_to(sources), tag());
    if (wild != 0 && up_to(3) < wild) {
      made.any_source = up_to(1) == 0;
      made.any_tag = up_to(1) == 0;
    }
    if (made.any_source) made.source = 0;
    if (made.any_tag) made.tag = 0;
    return made;
  };
  for (int step = 0; step < 4000; ++step) {
    // Phases in which one of the queues grows, and is emptied again.
    const std::uint32_t bias = static_cast<std::uint32_t>(step / 500 % 3);
    const std::uint32_t kind = up_to(9);
    if (kind < 4 + bias) {
      const std::uint32_t source = up_to(sources), with = tag();
      PostedReceive* taker = matcher.arrive(source, with);
      ASSERT_EQ(taker, naive.arrive(source, with)) << "step " << step;
      if (taker != nullptr) continue;
      UnexpectedMessage& kept = messages.emplace_back(message(source, with));
      matcher.keep(kept);
      naive.unexpected.push_back(&kept);
    } else if (kind < 8) {
      PostedReceive& posted = receives.emplace_back(receive(wanted()));
      ASSERT_EQ(matcher.post(posted), naive.post(posted)) << "step " << step;
    } else if (kind == 8 && !naive.posted.empty()) {
      PostedReceive* gone = naive.posted[up_to(static_cast<std::uint32_t>(naive.posted.size() - 1))];
      ASSERT_TRUE(Matcher::posted(*gone));
      std::erase(naive.posted, gone);
      matcher.withdraw(*gone);
      ASSERT_FALSE(Matcher::posted(*gone));
    } else if (!naive.unexpected.empty() && up_to(1) == 0) {
      UnexpectedMessage* gone = naive.unexpected[up_to(static_cast<std::uint32_t>(naive.unexpected.size() - 1))];
      std::erase(naive.unexpected, gone);
      matcher.remove(*gone);
    } else {
      const Wanted probed = wanted();
      ASSERT_EQ(matcher.find(probed), naive.find(probed)) << "step " << step;
    }
    ASSERT_EQ(matcher.posted(), naive.posted.size());
    ASSERT_EQ(matcher.unexpected(), naive.unexpected.size());
  }
  const UnexpectedMessage* at = matcher.oldest();
  for (const UnexpectedMessage* m : naive.unexpected) {
    if (m->tag > kMaxUserTag) continue;
    ASSERT_EQ(at, m);
    at = Matcher::next(*at);
  }
  EXPECT_EQ(at, nullptr);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomMatching, testing::Range(0U, 40U));

}  // namespace
}  // namespace unisono::cclo
