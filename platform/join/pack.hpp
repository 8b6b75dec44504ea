// Pieces of any length in one piece: a 32-bit length before each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace unisono::join {

using Blob = std::vector<std::byte>;

/// Puts pieces together.
class Packer {
 public:
  Packer& add(std::span<const std::byte> piece) {
    const auto bytes = static_cast<std::uint32_t>(piece.size());
    const auto length = std::as_bytes(std::span(&bytes, 1));
    packed_.insert(packed_.end(), length.begin(), length.end());
    packed_.insert(packed_.end(), piece.begin(), piece.end());
    return *this;
  }
  Packer& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  template <class Value>
  requires std::has_unique_object_representations_v<Value> Packer& add_value(const Value& value) {
    return add(std::as_bytes(std::span(&value, 1)));
  }
  Blob take() { return std::move(packed_); }

 private:
  Blob packed_;
};

/// Takes them apart again. What is not there, or has another length, makes it broken for good.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> packed) : rest_(packed) {}
  std::span<const std::byte> take() {
    std::uint32_t bytes = 0;
    if (rest_.size() < sizeof bytes) return broken();
    std::memcpy(&bytes, rest_.data(), sizeof bytes);
    rest_ = rest_.subspan(sizeof bytes);
    if (rest_.size() < bytes) return broken();
    const auto piece = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return piece;
  }
  std::string take_text() {
    const auto piece = take();
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }
  template <class Value>
  requires std::has_unique_object_representations_v<Value> Value take_value() {
    Value value{};
    const auto piece = take();
    if (piece.size() == sizeof value) {
      std::memcpy(&value, piece.data(), sizeof value);
    } else {
      broken();
    }
    return value;
  }
  /// Whether all of it was there, and nothing is left.
  bool whole() const { return !broken_ && rest_.empty(); }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> broken() {
    broken_ = true;
    rest_ = {};
    return {};
  }

  std::span<const std::byte> rest_;
  bool broken_ = false;
};

inline Blob pack_blobs(const std::vector<Blob>& blobs) {
  Packer packer;
  for (const Blob& blob : blobs) packer.add(blob);
  return packer.take();
}

/// Nothing unless they are exactly `count`.
inline std::optional<std::vector<Blob>> unpack_blobs(std::span<const std::byte> packed, std::uint32_t count) {
  Unpacker unpacker(packed);
  std::vector<Blob> blobs(count);
  for (Blob& blob : blobs) {
    const auto piece = unpacker.take();
    blob.assign(piece.begin(), piece.end());
  }
  if (!unpacker.whole()) return std::nullopt;
  return blobs;
}

}  // namespace unisono::join
