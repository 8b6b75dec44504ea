// Text with values in it: what each kind of value looks like.
#include "core/text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace unisono {
namespace {

TEST(Text, WritesNumbersInFullAndTextAsItIs) {
  EXPECT_EQ(formatted("{} of {}", std::uint8_t{7}, ~std::uint64_t{0}), "7 of 18446744073709551615");
  EXPECT_EQ(formatted("{}", std::int64_t{-3}), "-3");
  EXPECT_EQ(formatted("{}{}{}{}", std::string("a{}"), std::string_view("b"), "c", 'd'), "a{}bcd");
  EXPECT_EQ(formatted("{} {}", 0.1, true), "0.1 true");
  EXPECT_EQ(formatted("{{{}}}", 1), "{1}");
}

TEST(Text, TakesBitFields) {
  struct {
    unsigned low : 3;
  } bits{5};
  EXPECT_EQ(formatted("{}", bits.low), "5");
}

}  // namespace
}  // namespace unisono
