// Places in local memory, as moves name them. Freestanding.
#pragma once

#include <cstdint>

#include "core/call.hpp"

namespace unisono::build {

/// A place in local memory: region and byte offset.
struct Place {
  Region region;
  std::uint64_t offset = 0;
  bool indirect = false;  ///< offset is a byte offset into params where the byte offset stands

  constexpr Place operator+(std::uint64_t bytes) const { return {region, offset + bytes, indirect}; }
};

constexpr Place src(std::uint64_t offset = 0) { return {Region::kSrc, offset}; }
constexpr Place dst(std::uint64_t offset = 0) { return {Region::kDst, offset}; }
constexpr Place scratch(std::uint64_t offset = 0) { return {Region::kScratch, offset}; }
/// A place in `region` whose byte offset is the params word `word`.
constexpr Place indirect(Region region, std::uint32_t word) { return {region, std::uint64_t{word} * 8, true}; }

/// Where this rank's input stands: src, or dst if the call is in place. `dst_offset` is where MPI's
/// in-place rule puts the input within dst (docs/model.md, "In place").
constexpr Place input(const Call& call, std::uint64_t dst_offset = 0) {
  return call.in_place ? Place{Region::kDst, dst_offset} : Place{Region::kSrc, 0};
}

}  // namespace unisono::build
