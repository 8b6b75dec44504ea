// JSON: what is read of it, and what is said of text that is none.
#include "cost/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace unisono::cost::json {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Json, KnowsValuesAndWhereTheyStand) {
  const Value document = parse("{\"a\": [1,\n -2.5e1, \"x\\u00e9\\n\"\n,true], \"b\": {\"c\":\n9007199254740992}}\n");
  const Array& entries = document.at("a").array();
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].whole(0, 1), 1U);
  EXPECT_EQ(entries[1].number(-100, 0), -25);
  EXPECT_EQ(entries[2].text(), "x\xc3\xa9\n");
  EXPECT_TRUE(entries[3].boolean());
  EXPECT_EQ(document.at("b").at("c").whole(0, ~std::uint64_t{0}), std::uint64_t{1} << 53U);
  EXPECT_EQ(document.line(), 1U);
  EXPECT_EQ(entries[0].line(), 1U);
  EXPECT_EQ(entries[1].line(), 2U);
  EXPECT_EQ(entries[3].line(), 3U);
  EXPECT_EQ(document.at("b").at("c").line(), 4U) << "though the parser has read what follows the number";
  EXPECT_EQ(document.find("c"), nullptr);
}

TEST(Json, SaysLineAndFault) {
  const struct {
    std::string text;
    std::string said;
  } kCases[] = {
      {"[\ntru]", "line 2: \"tru\" is no value; allowed are numbers, strings in quotes, true, false, null, lists"},
      {"[\n-,1]", "line 2: \"-\" is no value"},
      {"-", "line 1: \"-\" is no value"},
      {"\n[1e999\n]", "line 2: \"1e999\" is no value"},
      {"[" + std::string(50, 'x') + "]", "line 1: \"" + std::string(40, 'x') + "\" is no value"},
      {"[\xff]", "line 1: \"?\" is no value"},
      {"[1,]", "line 1: a value is missing; unexpected ']'"},
      {"[1,\n", "line 1: a value is missing; the text ends here"},
      {"[1 2]", "line 1: a ] is missing at the end of a list; unexpected number literal"},
      {"{\"a\"\n1}", "line 2: a : is missing after the name of a field; unexpected number literal"},
      {"{\"a\":}", "line 1: a value is missing; unexpected '}'"},
      {"{\"a\":1\n\"b\"", "line 2: a } is missing at the end of an object; unexpected string literal"},
      {"{a:1}", "line 1: the name of a field is missing; invalid literal"},
      {"{}\n{}", "line 2: something follows the document"},
      {std::string("{}\0{}", 5), "line 1: something follows the document"},
      {"[\n\"a", "line 2: invalid string: missing closing quote"},
      {"\"a\nb\"", "line 1: invalid string: control character U+000A (LF) must be escaped"},
      {"\"\\q\"", "line 1: invalid string: forbidden character after backslash"},
      {"\"\xff\"", "line 1: invalid string: ill-formed UTF-8 byte"},
  };
  for (const auto& each : kCases) EXPECT_THAT(refusal(each.text), testing::StartsWith(each.said)) << each.text;
}

TEST(Json, HasLimits) {
  const auto deep = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(deep(16)), "");
  EXPECT_EQ(refusal(deep(17)), "line 1: values stand in more than 16 others");
  const std::string name(64, 'n');
  EXPECT_EQ(refusal("{\"" + name + "\": 1}"), "");
  EXPECT_EQ(refusal("{\"" + name + "n\": 1}"), "line 1: the name of a field has 65 characters; allowed are 64");
}

TEST(Json, WritesWhatItReads) {
  const std::string text = "a \"b\" \\ \n\t\x01\x1f caf\xc3\xa9";
  EXPECT_EQ(parse(json::quoted(text)).text(), text);
  EXPECT_EQ(parse(json::quoted("a\xff")).text(), "a\xef\xbf\xbd") << "a byte that is no UTF-8";
  for (const double value : {0.0, -1.0, 0.1 + 0.2, 51.25, 1e9, 1e-7, 9007199254740992.0}) {
    EXPECT_EQ(parse(number(value)).number(-1e300, 1e300), value) << number(value);
  }
  EXPECT_EQ(number(1048576), "1048576");
}

}  // namespace
}  // namespace unisono::cost::json
