// A reader of JSON that remembers lines, so that what is wrong with a value can be said where it stands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace unisono::cost::json {

class Value;
using Array = std::vector<Value>;
using Object = std::vector<std::pair<std::string, Value>>;  ///< in the order of the text; names are unique

/// A value of a document. Reading one as what it is not throws Error(kInvalidArgument) that names line and field.
class Value {
 public:
  using Data = std::variant<std::nullptr_t, bool, double, std::string, Array, Object>;
  Value(Data data, std::uint32_t line, std::string path)
      : data_(std::move(data)), line_(line), path_(std::move(path)) {}

  const Object& object() const;
  const Array& array() const;
  const std::string& text() const;
  bool boolean() const;
  double number(double least, double most) const;
  /// A whole number; numbers above 2^53 are not exact and not allowed.
  std::uint64_t whole(std::uint64_t least, std::uint64_t most) const;

  /// The member of an object, or null.
  const Value* find(std::string_view name) const;
  /// The member of an object, which must be there.
  const Value& at(std::string_view name) const;
  /// Refuses members that are none of `names`.
  void only(std::initializer_list<std::string_view> names) const;

  std::uint32_t line() const { return line_; }
  /// Throws Error(kInvalidArgument) "line 7, rules[2].algorithm: <what>".
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  const char* kind() const;
  Data data_;
  std::uint32_t line_;
  std::string path_;
};

/// Reads one document. Throws Error(kInvalidArgument) that names the line.
Value parse(std::string_view text);

/// A string as JSON has it, with its quotes. Control characters other than line ends and tabs are left out.
std::string quoted(std::string_view text);

}  // namespace unisono::cost::json
