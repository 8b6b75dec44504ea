#include "cost/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "core/quoted.hpp"
#include "core/text.hpp"

namespace unisono::cost::json {
namespace {

constexpr std::uint32_t kMostDepth = 16;
// Every value knows its path, and every name is compared with the others of its object: without limits a file of
// megabytes could take hours, or all memory.
constexpr std::size_t kMostName = 64;
constexpr std::size_t kMostFields = 64;
constexpr std::size_t kMostEntries = 65536;

/// What nlohmann's parser reads: the characters from where `at` points on. Its owner sees there how far it has come.
struct Input {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  reference operator*() const { return **at; }
  Input& operator++() { return ++*at, *this; }
  bool operator==(const Input& other) const { return *at == *other.at; }
  bool operator!=(const Input& other) const { return *at != *other.at; }

  const char** at;
};

}  // namespace

/// Makes values that know their line and path of what nlohmann's parser finds. That would stop if one of the functions
/// that it calls said false; they throw instead.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), counted_(text.data()), at_(counted_), end_(at_ + text.size()) {}

  Value document() {
    nlohmann::json::sax_parse(Input{&at_}, Input{&end_}, this);
    if (at_ != end_) refuse("something follows the document");  // behind a null byte, at which the parser stops
    return std::move(*document_);
  }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) { return add(static_cast<double>(value)); }
  bool number_float(double value, const std::string& /*text*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(std::vector<std::uint8_t>& /*value*/) { refuse("bytes are no value"); }  // other formats have them
  bool start_object(std::size_t /*fields*/) { return open(Object{}); }
  bool start_array(std::size_t /*entries*/) { return open(Array{}); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(const std::string& name) {
    const Object& members = open_.back()->object();
    if (name.size() > kMostName) {
      refuse(formatted("the name of a field has {} characters; allowed are {}", name.size(), kMostName));
    }
    if (members.size() == kMostFields) refuse(formatted("an object has more than {} fields", kMostFields));
    if (open_.back()->find(name) != nullptr) refuse("field " + name + " stands here twice");
    name_ = name;
    return true;
  }

  /// The parser's sentence: "[...] syntax error while parsing <what> - <fault>; expected <token>".
  [[noreturn]] bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                                const nlohmann::json::exception& error) {
    const std::string_view said = error.what();
    const auto has = [said](std::string_view words) { return said.find(words) != std::string_view::npos; };
    if (said.ends_with("; expected end of input")) refuse("something follows the document");
    if (has("number overflow") || has("parsing value - invalid literal") || has("parsing value - invalid number")) {
      refuse(in_quotes(word()) +
             " is no value; allowed are numbers, strings in quotes, true, false, null, lists and objects");
    }
    constexpr std::pair<const char*, const char*> kMissing[] = {
        {"parsing value - ", "a value is missing"},
        {"parsing object key - ", "the name of a field is missing"},
        {"parsing object separator - ", "a : is missing after the name of a field"},
        {"parsing object - ", "a } is missing at the end of an object"},
        {"parsing array - ", "a ] is missing at the end of a list"}};
    std::string fault(said.substr(said.find(" - ") + 3));
    fault.resize(std::min(fault.find("; "), fault.size()));
    if (fault == "unexpected end of input") fault = "the text ends here";
    for (const auto& [where, missing] : kMissing) {
      if (has(where) && !fault.starts_with("invalid string")) refuse(missing + ("; " + fault));
    }
    refuse(fault);
  }

 private:
  /// The line of the last character that was read, which belongs to what was found, or ends it.
  std::uint32_t line() {
    const char* const last = at_ - (at_ != text_.data());
    line_ += static_cast<std::uint32_t>(std::count(counted_, last, '\n'));
    counted_ = last;
    return line_;
  }
  [[noreturn]] void refuse(const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, formatted("line {}: {}", line(), what));
  }

  /// What stands where the last character was read, up to what separates values.
  std::string word() const {
    constexpr std::string_view kSeparators = " \t\r\n,:{}[]\"";
    constexpr std::size_t kShown = 40;
    const std::string_view before = text_.substr(0, static_cast<std::size_t>(at_ - text_.data()) - 1);
    const std::size_t begin = before.find_last_of(kSeparators) + 1;  // npos + 1 is 0
    std::string shown(text_.substr(begin, std::min(text_.find_first_of(kSeparators, begin) - begin, kShown)));
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return shown;
  }

  Value& place(Value::Data data) {
    if (open_.size() == kMostDepth) refuse(formatted("values stand in more than {} others", kMostDepth));
    if (open_.empty()) return document_.emplace(std::move(data), line(), "");
    Value& parent = *open_.back();
    if (auto* const entries = std::get_if<Array>(&parent.data_)) {
      if (entries->size() == kMostEntries) refuse(formatted("a list has more than {} entries", kMostEntries));
      return entries->emplace_back(std::move(data), line(), formatted("{}[{}]", parent.path_, entries->size()));
    }
    const std::string path = parent.path_.empty() ? name_ : parent.path_ + "." + name_;
    return std::get<Object>(parent.data_).emplace_back(name_, Value(std::move(data), line(), path)).second;
  }
  bool add(Value::Data data) { return place(std::move(data)), true; }
  /// Nothing is added to the values around an open one, so that they stay where they are.
  bool open(Value::Data data) { return open_.push_back(&place(std::move(data))), true; }
  bool close() { return open_.pop_back(), true; }

  std::string_view text_;
  const char* counted_;  ///< up to here line ends are counted in line_
  const char* at_;
  const char* end_;
  std::uint32_t line_ = 1;
  std::optional<Value> document_;
  std::vector<Value*> open_;
  std::string name_;
};

const char* Value::kind() const {
  constexpr const char* kNames[] = {"null", "a truth value", "a number", "a string", "a list", "an object"};
  return kNames[data_.index()];
}

void Value::refuse(const std::string& what) const {
  throw Error(ErrorCode::kInvalidArgument, formatted("line {}{}: {}", line_, path_.empty() ? "" : ", " + path_, what));
}

const Object& Value::object() const {
  if (const auto* found = std::get_if<Object>(&data_)) return *found;
  refuse(std::string("here is ") + kind() + "; needed is an object");
}

const Array& Value::array() const {
  if (const auto* found = std::get_if<Array>(&data_)) return *found;
  refuse(std::string("here is ") + kind() + "; needed is a list");
}

const std::string& Value::text() const {
  if (const auto* found = std::get_if<std::string>(&data_)) return *found;
  refuse(std::string("here is ") + kind() + "; needed is a string");
}

bool Value::boolean() const {
  if (const auto* found = std::get_if<bool>(&data_)) return *found;
  refuse(std::string("here is ") + kind() + "; needed is true or false");
}

double Value::number(double least, double most) const {
  const auto* found = std::get_if<double>(&data_);
  if (found == nullptr) refuse(std::string("here is ") + kind() + "; needed is a number");
  if (*found < least || *found > most) {
    refuse("here is " + json::number(*found) + "; allowed are " + json::number(least) + " to " + json::number(most));
  }
  return *found;
}

std::uint64_t Value::whole(std::uint64_t least, std::uint64_t most) const {
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53U;
  const double value = number(static_cast<double>(least), static_cast<double>(most < kExact ? most : kExact));
  if (value != std::floor(value)) refuse("here is " + json::number(value) + "; needed is a whole number");
  return static_cast<std::uint64_t>(value);
}

const Value* Value::find(std::string_view name) const {
  for (const auto& [known, value] : object()) {
    if (known == name) return &value;
  }
  return nullptr;
}

const Value& Value::at(std::string_view name) const {
  if (const Value* found = find(name)) return *found;
  refuse("field " + std::string(name) + " is missing");
}

void Value::only(std::initializer_list<std::string_view> names) const {
  for (const auto& [name, value] : object()) {
    bool known = false;
    for (const std::string_view allowed : names) known = known || name == allowed;
    if (known) continue;
    std::string all;
    for (const std::string_view allowed : names) all += (all.empty() ? "" : ", ") + std::string(allowed);
    value.refuse("there is no such field; there are " + all);
  }
}

Value parse(std::string_view text) { return Reader(text).document(); }

std::string number(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace unisono::cost::json
