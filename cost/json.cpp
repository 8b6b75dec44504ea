#include "cost/json.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/error.hpp"

namespace unisono::cost::json {
namespace {

constexpr std::uint32_t kMostDepth = 16;
// Every value knows its path, and every name is compared with the others of its object: without limits a file of
// megabytes could take hours, or all memory.
constexpr std::size_t kMostName = 64;
constexpr std::size_t kMostFields = 64;
constexpr std::size_t kMostEntries = 65536;

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  char shorter[32];
  std::snprintf(shorter, sizeof shorter, "%.6g", value);
  double back = 0;
  std::from_chars(shorter, shorter + sizeof shorter, back);
  return back == value ? shorter : text;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Value document() {
    Value value = read("", 0);
    skip();
    if (at_ != text_.size()) refuse("something follows the document");
    return value;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, "line " + std::to_string(line_) + ": " + what);
  }

  void skip() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
    }
  }

  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const std::string& where) {
    if (!take(c)) refuse(std::string("a ") + c + " is missing " + where + seen());
  }
  std::string seen() const {
    if (at_ == text_.size()) return "; the text ends here";
    const char c = text_[at_];
    return c > ' ' && c <= '~' ? std::string("; there is ") + c : "";
  }

  Value read(const std::string& path, std::uint32_t depth) {
    skip();
    if (depth == kMostDepth) refuse("values stand in more than " + std::to_string(kMostDepth) + " others");
    if (at_ == text_.size()) refuse("a value is missing; the text ends here");
    const std::uint32_t line = line_;
    switch (text_[at_]) {
      case '{':
        return {object(path, depth), line, path};
      case '[':
        return {array(path, depth), line, path};
      case '"':
        return {string(), line, path};
      default:
        return {word(), line, path};
    }
  }

  Value::Data object(const std::string& path, std::uint32_t depth) {
    Object members;
    ++at_;
    if (take('}')) return members;
    do {
      skip();
      if (at_ == text_.size() || text_[at_] != '"') refuse("the name of a field is missing" + seen());
      std::string name = string();
      if (name.size() > kMostName) {
        refuse("the name of a field has " + std::to_string(name.size()) + " characters; allowed are " +
               std::to_string(kMostName));
      }
      if (members.size() == kMostFields) {
        refuse("an object has more than " + std::to_string(kMostFields) + " fields");
      }
      for (const auto& [other, value] : members) {
        if (other == name) refuse("field " + name + " stands here twice");
      }
      expect(':', "after " + name);
      members.emplace_back(name, read(path.empty() ? name : path + "." + name, depth + 1));
    } while (take(','));
    expect('}', "at the end of an object");
    return members;
  }

  Value::Data array(const std::string& path, std::uint32_t depth) {
    Array entries;
    ++at_;
    if (take(']')) return entries;
    do {
      if (entries.size() == kMostEntries) refuse("a list has more than " + std::to_string(kMostEntries) + " entries");
      entries.push_back(read(path + "[" + std::to_string(entries.size()) + "]", depth + 1));
    } while (take(','));
    expect(']', "at the end of a list");
    return entries;
  }

  std::string string() {
    std::string result;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return result;
      }
      if (static_cast<unsigned char>(c) < ' ') refuse("a control character stands in a string");
      if (c != '\\') {
        result += c;
        continue;
      }
      if (++at_ == text_.size()) break;
      switch (text_[at_]) {
        case 'n':
          result += '\n';
          break;
        case 't':
          result += '\t';
          break;
        case '"':
        case '\\':
        case '/':
          result += text_[at_];
          break;
        default:
          refuse(std::string("\\") + text_[at_] + " in a string; allowed are \\n, \\t, \\\", \\\\ and \\/");
      }
    }
    refuse("a string does not end");
  }

  Value::Data word() {
    std::size_t end = at_;
    while (end < text_.size() && std::string_view(" \t\r\n,:{}[]\"").find(text_[end]) == std::string_view::npos) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    if (word.empty()) refuse("a value is missing" + seen());
    at_ = end;
    if (word == "true") return true;
    if (word == "false") return false;
    if (word == "null") return nullptr;
    double value = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool digits = word.front() == '-' || (word.front() >= '0' && word.front() <= '9');
    if (error != std::errc{} || rest != word.data() + word.size() || !digits || !std::isfinite(value)) {
      constexpr std::size_t kShown = 40;
      std::string shown;
      for (const char c : word.substr(0, kShown)) shown += c >= ' ' && c <= '~' ? c : '?';
      refuse("\"" + shown +
             "\" is no value; allowed are numbers, strings in quotes, true, false, null, lists and "
             "objects");
    }
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace

const char* Value::kind() const {
  constexpr const char* kNames[] = {"null", "a truth value", "a number", "a string", "a list", "an object"};
  return kNames[data_.index()];
}

void Value::refuse(const std::string& what) const {
  throw Error(ErrorCode::kInvalidArgument,
              "line " + std::to_string(line_) + (path_.empty() ? "" : ", " + path_) + ": " + what);
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
    refuse("here is " + number_text(*found) + "; allowed are " + number_text(least) + " to " + number_text(most));
  }
  return *found;
}

std::uint64_t Value::whole(std::uint64_t least, std::uint64_t most) const {
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53U;
  const double value = number(static_cast<double>(least), static_cast<double>(most < kExact ? most : kExact));
  if (value != std::floor(value)) refuse("here is " + number_text(value) + "; needed is a whole number");
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

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) >= ' ') {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace unisono::cost::json
