// What all fuzz targets use: input taken apart, and claims that hold in every build.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/crc32c.hpp"

namespace unisono::fuzz {

/// Ends the process, which libFuzzer reports with its input, unless the claim holds.
inline void claim(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "claim broken: %s\n", what);
  std::abort();
}

/// The input with a checksum that is right, as a file that ends with one has it; of 4 bytes at least.
inline std::vector<std::byte> sealed(std::span<const std::byte> bytes) {
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  const std::size_t size = bytes.size() - sizeof(std::uint32_t);
  const std::uint32_t sum = crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()), size});
  std::memcpy(result.data() + size, &sum, sizeof sum);
  return result;
}

/// The input, from its begin. What is missing at its end is zero.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::size_t bytes = std::min(sizeof(T), rest_.size());
    if (bytes != 0) std::memcpy(&value, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
    return value;
  }
  /// A number from 0 to `most`.
  std::uint32_t up_to(std::uint32_t most) { return take<std::uint32_t>() % (most + 1); }
  std::span<const std::uint8_t> take_bytes(std::size_t bytes) {
    const auto piece = rest_.first(std::min(bytes, rest_.size()));
    rest_ = rest_.subspan(piece.size());
    return piece;
  }
  std::span<const std::uint8_t> rest() { return take_bytes(rest_.size()); }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace unisono::fuzz
