// Text with values in it: what each kind of value looks like.
#include "core/text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/quoted.hpp"

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

TEST(Quoted, IsWhatCanBeReadInASentence) {
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes("rïng"), "\"rïng\"");
  EXPECT_EQ(in_quotes("a\n\x1b[2Jb\x7f"), "\"a??[2Jb?\"");
  EXPECT_EQ(in_quotes(std::string(80, 'x')), '"' + std::string(80, 'x') + '"');
  EXPECT_EQ(in_quotes(std::string(81, 'x')), '"' + std::string(80, 'x') + "\"… (81 bytes)");
}

TEST(Quoted, CutsNoCharacter) {
  EXPECT_EQ(shortened("häuser", 2), "h… (7 bytes)");
  EXPECT_EQ(shortened("häuser", 3), "hä… (7 bytes)");
  EXPECT_EQ(shortened("€€", 5), "€… (6 bytes)");
  EXPECT_EQ(shortened("€€", 6), "€€");
  EXPECT_EQ(shortened("", 0), "");
  EXPECT_EQ(shortened(std::string(20, '\x80'), 10), std::string(6, '\x80') + "… (20 bytes)") << "no UTF-8 at all";
}

}  // namespace
}  // namespace unisono
