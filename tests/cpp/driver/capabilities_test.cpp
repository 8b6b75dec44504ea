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

using AllCapabilities = std::vector<std::vector<std::byte>>;

Agreement capabilities(std::uint32_t eager_limit, std::uint32_t segment_bytes, std::uint32_t rx_buffer_count) {
  EngineSettings settings;
  settings.eager_limit = eager_limit;
  settings.segment_bytes = segment_bytes;
  settings.rx_buffer_count = rx_buffer_count;
  return NativeEngine::capabilities_of(settings);
}

void refuses(const AllCapabilities& all_capabilities, ErrorCode code, const testing::Matcher<std::string>& message) {
  try {
    agree_on(all_capabilities);
    ADD_FAILURE() << "agreed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), message);
  }
}

TEST(AllCapabilities, TheLeastOfAllMembersHolds) {
  const Agreement agreed = agree_on(AllCapabilities{pack_capabilities(capabilities(8192, 4096, 7)),
                                                    pack_capabilities(capabilities(512, 32768, 9)),
                                                    pack_capabilities(capabilities(1024, 256, 3))});
  EXPECT_EQ(agreed.eager_limit, 512U);
  EXPECT_EQ(agreed.segment_bytes, 256U);
  EXPECT_EQ(agreed.rx_buffer_count, 3U);
}

TEST(AllCapabilities, KnowTheNodesOfTheirDevices) {
  const Agreement own = capabilities(512, 512, 1);
  EXPECT_THAT(
      nodes_of(AllCapabilities{pack_capabilities(own, Platform::kRtl, 3), pack_capabilities(own, Platform::kRtl, 0)}),
      ElementsAre(3, 0));
  // What is too short for a node has none; agree_on refuses it.
  EXPECT_THAT(nodes_of(AllCapabilities{std::vector<std::byte>(5)}), ElementsAre(0));
}

TEST(AllCapabilities, OfAnotherLengthOrVersionAreRefused) {
  const auto sound = pack_capabilities(capabilities(512, 512, 1));
  for (const std::size_t bytes : {std::size_t{0}, sound.size() - 1, sound.size() + 1}) {
    auto other = sound;
    other.resize(bytes);
    refuses(AllCapabilities{sound, other}, ErrorCode::kBootstrap,
            AllOf(HasSubstr("rank 1 sent an offer of " + std::to_string(bytes) + " bytes"),
                  HasSubstr("takes " + std::to_string(kCapabilitiesBytes) + " bytes"),
                  HasSubstr("one version of Unisono")));
  }
  auto newer = sound;
  newer[8] = std::byte{77};  // the version follows the capability
  refuses(AllCapabilities{newer, sound}, ErrorCode::kBootstrap,
          HasSubstr("rank 0 sent an offer of 72 bytes, version 77"));
}

TEST(AllCapabilities, OfDifferentPlatformsAreRefused) {
  const Agreement own = capabilities(512, 512, 1);
  refuses(
      AllCapabilities{pack_capabilities(own), pack_capabilities(own), pack_capabilities(own, Platform::kFunctional)},
      ErrorCode::kBootstrap,
      HasSubstr("rank 2 runs on platform functional, rank 0 on native: set UNISONO_PLATFORM alike"));
  refuses(AllCapabilities{pack_capabilities(own, Platform::kRtl), pack_capabilities(own, static_cast<Platform>(9))},
          ErrorCode::kBootstrap, HasSubstr("rank 1 runs on platform ?, rank 0 on rtl"));
}

TEST(AllCapabilities, ThatNoEngineCouldWorkWithAreRefused) {
  const auto sound = pack_capabilities(capabilities(512, 512, 1));
  Agreement tiny = capabilities(512, 64, 1);
  tiny.segment_bytes = 63;
  Agreement bare = capabilities(512, 64, 1);
  bare.rx_buffer_count = 0;
  refuses(AllCapabilities{sound, pack_capabilities(tiny)}, ErrorCode::kBootstrap,
          HasSubstr("rank 1 offers segments of 63 bytes and 1 receive buffers; allowed are 64 bytes and 1 buffer"));
  refuses(AllCapabilities{sound, pack_capabilities(bare)}, ErrorCode::kBootstrap,
          HasSubstr("64 bytes and 0 receive buffers"));
  // Messages that are never eager are a setting like others.
  EXPECT_EQ(agree_on(AllCapabilities{sound, pack_capabilities(capabilities(0, 64, 1))}).eager_limit, 0U);
}

TEST(AllCapabilities, OfOtherTablesAreRefused) {
  const Agreement own = capabilities(512, 512, 1);
  Agreement other = own;
  other.algorithm_hash ^= 1U;
  refuses(AllCapabilities{pack_capabilities(own), pack_capabilities(other)}, ErrorCode::kUnsupported,
          HasSubstr("member 1 has another table of algorithms"));
  other = own;
  other.tuning_hash ^= 1U;
  refuses(AllCapabilities{pack_capabilities(own), pack_capabilities(other)}, ErrorCode::kUnsupported,
          AllOf(HasSubstr("member 1 chooses algorithms by"), HasSubstr("UNISONO_TUNING")));
  // Who knows what members are called has them named so, both of them.
  try {
    agree_on(
        AllCapabilities{pack_capabilities(own), pack_capabilities(own), pack_capabilities(other)},
        [](std::size_t member) { return "rank " + std::to_string(member) + " on host h" + std::to_string(member); });
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 2 on host h2 chooses algorithms by table"),
                                    HasSubstr(", rank 0 on host h0 by the built-in table")));
  }
}

}  // namespace
}  // namespace unisono::driver
