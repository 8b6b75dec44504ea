// Which elements of its buffers a rank reads and writes in a call, as ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "driver/objects.hpp"

namespace unisono::driver {

/// Elements of a buffer, where this rank's part of a call reads or writes them.
struct Range {
  bool in_src = false;
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  bool operator==(const Range&) const = default;
};

/// docs/model.md, rules 17 to 19: where a rank's contribution stands before a call, and its results after it. Of a
/// broadcast the root has a result, too: it then has what the others have. Ranges without elements are left out.
struct CallParts {
  std::vector<Range> inputs;
  std::vector<Range> results;
};

/// The parts of a checked call, whose counts are elements.
CallParts parts_of(const CheckedCall& checked);

}  // namespace unisono::driver
