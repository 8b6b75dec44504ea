// JSON that remembers lines, so that what is wrong with a value can be said where it stands. Read and written by
// nlohmann's library; its headers take seconds to compile, and json.cpp alone includes them.
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
  friend class Reader;
  const char* kind() const;
  Data data_;
  std::uint32_t line_;
  std::string path_;
};

/// Reads one document. Throws Error(kInvalidArgument) that names the line.
Value parse(std::string_view text);

/// The shortest text that is read as this number, which must be finite.
std::string number(double value);

/// A string as JSON has it, with its quotes. Bytes that are no UTF-8 become the sign that replaces them.
std::string quoted(std::string_view text);

}  // namespace unisono::cost::json
