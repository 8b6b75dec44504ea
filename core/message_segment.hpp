// How long the segments of a message among engines in hardware are: both of its ends cut it alike, by its length.
#pragma once

#include <algorithm>
#include <cstdint>

namespace unisono {

/// Messages of up to so many bytes have segments of so many bytes.
struct SegmentStep {
  std::uint64_t message, segment;
};

/// Chosen by measurements on eight simulated engines (decision 74); rtl/table/unisono_message_segment.sv has the same.
inline constexpr SegmentStep kShortSegments = {65536, 2048};
inline constexpr SegmentStep kMediumSegments = {262144, 4096};

/// The longest segment of a message of `bytes` bytes between two engines in hardware, of a communicator that has agreed
/// on `agreed` bytes for a segment and on `eager_limit`. A segment goes on when all of it is there; short ones make
/// that wait short, long ones carry fewer headers. What may go eagerly is one segment. Messages to switches, from
/// switches and into windows are cut by `agreed` alone.
constexpr std::uint64_t message_segment(std::uint64_t bytes, std::uint64_t eager_limit, std::uint64_t agreed) {
  if (bytes <= eager_limit) return agreed;
  if (bytes <= kShortSegments.message) return std::min(agreed, kShortSegments.segment);
  if (bytes <= kMediumSegments.message) return std::min(agreed, kMediumSegments.segment);
  return agreed;
}

}  // namespace unisono
