// Which operands of an algorithm can be streams that go on element by element, for those who explain it.
#pragma once

#include "collectives/algorithm.hpp"
#include "core/call.hpp"

namespace unisono::cclo {

/// On all ranks that use them: src, and dst as far as it is an operand or a result. What no rank uses can be.
struct StreamRegions {
  bool src = true;
  bool dst = true;
};

/// Generates and examines the programs of all ranks of a call that `algorithm` admits. Throws Error.
StreamRegions streamed_regions(const Algorithm& algorithm, Call call);

}  // namespace unisono::cclo
