// Plugins beyond what one pass of a kernel takes, against element-by-element folds; and operators that have gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "engine/plugins.hpp"

namespace unisono::cclo {
namespace {

using testing::HasSubstr;

template <class T>
const std::byte* bytes(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}
template <class T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

/// Inputs of different values; `count` does not divide into the blocks of a fold.
template <class T>
std::vector<std::vector<T>> inputs_of(std::size_t number, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(number * 1000 + count));
  std::vector<std::vector<T>> inputs(number, std::vector<T>(count));
  for (auto& input : inputs) {
    for (T& value : input) value = static_cast<T>(static_cast<int>(random() % 2001) - 1000);
  }
  return inputs;
}

TEST(Plugins, FoldMoreInputsThanOnePassTakes) {
  for (const std::size_t number : {63, 64, 65, 130}) {
    for (const std::size_t count : {1, 1024, 1025, 2500}) {
      for (const bool with_own : {false, true}) {
        const auto inputs = inputs_of<std::int32_t>(number, count);
        std::vector<std::int32_t> own(count, 12345);
        std::vector<std::int32_t> expected(count);
        for (std::size_t i = 0; i < count; ++i) {
          expected[i] = with_own ? own[i] : inputs[0][i];
          for (std::size_t k = with_own ? 0 : 1; k < number; ++k) expected[i] += inputs[k][i];
        }
        std::vector<const std::byte*> sources;
        for (const auto& input : inputs) sources.push_back(bytes(input));
        std::vector<std::int32_t> out(count, -1);
        plugin_fold(Func::kSum, Datatype::kInt32, false, with_own ? bytes(own) : nullptr, sources, bytes(out),
                    count * sizeof out[0]);
        EXPECT_EQ(out, expected) << number << " inputs of " << count;
        // The result may stand where an operand stood.
        if (!with_own) continue;
        plugin_fold(Func::kSum, Datatype::kInt32, false, bytes(own), sources, bytes(own), count * sizeof out[0]);
        EXPECT_EQ(own, expected) << "in place, " << number << " inputs of " << count;
      }
    }
  }
}

TEST(Plugins, RoundOnceHoweverManyInputs) {
  // 1 + 100 parts of 2^-11: each alone would be lost beside 1 in fp16, all together are not.
  constexpr std::size_t kParts = 100;
  const std::vector<std::uint16_t> one{0x3c00};   // 1
  const std::vector<std::uint16_t> part{0x1000};  // 2^-11
  const std::vector<const std::byte*> sources(kParts, bytes(part));
  std::vector<std::uint16_t> out{0};
  plugin_fold(Func::kSum, Datatype::kFp16, false, bytes(one), sources, bytes(out), 2);
  EXPECT_EQ(out[0], 0x3c00 + kParts / 2);  // one unit in the last place is 2^-10
}

TEST(Plugins, OperatorsThatWereFreedAreNamed) {
  const std::vector<std::int32_t> a{1}, b{2};
  std::vector<std::int32_t> out{9};
  const auto refused = [&](auto&& body) {
    try {
      body();
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidOp);
      EXPECT_THAT(error.what(), HasSubstr("was freed while a call needed it"));
    }
  };
  refused([&] { plugin_combine(Func::kUser3, Datatype::kInt32, false, bytes(a), bytes(b), bytes(out), 4); });
  const std::byte* const sources[] = {bytes(a), bytes(b)};
  refused([&] { plugin_fold(Func::kUser3, Datatype::kInt32, false, nullptr, sources, bytes(out), 4); });
  EXPECT_EQ(out[0], 9);
}

}  // namespace
}  // namespace unisono::cclo
