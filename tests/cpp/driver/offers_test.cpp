// What members bring to the agreement of their job: least values win, and what cannot be agreed on is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "driver/objects.hpp"

namespace unisono::driver {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Offers = std::vector<std::vector<std::byte>>;

Agreement offer(std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count) {
  EngineSettings settings;
  settings.eager_limit = eager_limit;
  settings.segment_bytes = segment_bytes;
  settings.rx_buffer_count = rx_buffer_count;
  return NativeEngine::offer_of(settings);
}

void refuses(const Offers& offers, ErrorCode code, const testing::Matcher<std::string>& message) {
  try {
    agree_on(offers);
    ADD_FAILURE() << "agreed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), message);
  }
}

TEST(Offers, TheLeastOfAllMembersHolds) {
  const Agreement agreed = agree_on(
      Offers{pack_offer(offer(8192, 4096, 7)), pack_offer(offer(512, 32768, 9)), pack_offer(offer(1024, 256, 3))});
  EXPECT_EQ(agreed.eager_limit, 512U);
  EXPECT_EQ(agreed.segment_bytes, 256U);
  EXPECT_EQ(agreed.rx_buffer_count, 3U);
}

TEST(Offers, KnowTheNodesOfTheirDevices) {
  const Agreement own = offer(512, 512, 1);
  EXPECT_THAT(nodes_of(Offers{pack_offer(own, Platform::kRtl, 3), pack_offer(own, Platform::kRtl, 0)}),
              ElementsAre(3, 0));
  // What is too short for a node has none; agree_on refuses it.
  EXPECT_THAT(nodes_of(Offers{std::vector<std::byte>(5)}), ElementsAre(0));
}

TEST(Offers, OfAnotherLengthOrVersionAreRefused) {
  const auto sound = pack_offer(offer(512, 512, 1));
  for (const std::size_t bytes : {std::size_t{0}, sound.size() - 1, sound.size() + 1}) {
    auto other = sound;
    other.resize(bytes);
    refuses(Offers{sound, other}, ErrorCode::kBootstrap,
            AllOf(HasSubstr("rank 1 sent an offer of " + std::to_string(bytes) + " bytes"),
                  HasSubstr("takes " + std::to_string(kOfferBytes) + " bytes"), HasSubstr("one version of Unisono")));
  }
  auto newer = sound;
  newer[8] = std::byte{77};  // the version follows the capability
  refuses(Offers{newer, sound}, ErrorCode::kBootstrap, HasSubstr("rank 0 sent an offer of 72 bytes, version 77"));
}

TEST(Offers, OfDifferentPlatformsAreRefused) {
  const Agreement own = offer(512, 512, 1);
  refuses(Offers{pack_offer(own), pack_offer(own), pack_offer(own, Platform::kFunctional)}, ErrorCode::kBootstrap,
          HasSubstr("rank 2 runs on platform functional, rank 0 on native: set UNISONO_PLATFORM alike"));
  refuses(Offers{pack_offer(own, Platform::kRtl), pack_offer(own, static_cast<Platform>(9))}, ErrorCode::kBootstrap,
          HasSubstr("rank 1 runs on platform ?, rank 0 on rtl"));
}

TEST(Offers, ThatNoEngineCouldWorkWithAreRefused) {
  const auto sound = pack_offer(offer(512, 512, 1));
  Agreement tiny = offer(512, 64, 1);
  tiny.segment_bytes = 63;
  Agreement bare = offer(512, 64, 1);
  bare.rx_buffer_count = 0;
  refuses(Offers{sound, pack_offer(tiny)}, ErrorCode::kBootstrap,
          HasSubstr("rank 1 offers segments of 63 bytes and 1 receive buffers; allowed are 64 bytes and 1 buffer"));
  refuses(Offers{sound, pack_offer(bare)}, ErrorCode::kBootstrap, HasSubstr("64 bytes and 0 receive buffers"));
  // Messages that are never eager are a setting like others.
  EXPECT_EQ(agree_on(Offers{sound, pack_offer(offer(0, 64, 1))}).eager_limit, 0U);
}

TEST(Offers, OfOtherTablesAreRefused) {
  const Agreement own = offer(512, 512, 1);
  Agreement other = own;
  other.algorithm_hash ^= 1U;
  refuses(Offers{pack_offer(own), pack_offer(other)}, ErrorCode::kUnsupported,
          HasSubstr("member 1 has another table of algorithms"));
  other = own;
  other.tuning_hash ^= 1U;
  refuses(Offers{pack_offer(own), pack_offer(other)}, ErrorCode::kUnsupported,
          AllOf(HasSubstr("member 1 chooses algorithms by"), HasSubstr("UNISONO_TUNING")));
}

}  // namespace
}  // namespace unisono::driver
