// Memory of one endpoint that another one may write.
#pragma once

#include <cstdint>

namespace unisono {

/// Where a peer may write, past the engine: what `Poe::show` gives, and what the peer hands to `Poe::write`.
struct Reach {
  std::uint64_t address = 0;  ///< of its first byte, as the network counts
  std::uint64_t key = 0;      ///< chosen anew each time that memory is shown
  std::uint64_t bytes = 0;    ///< 0: nothing is shown
  explicit operator bool() const { return bytes != 0; }
};
static_assert(sizeof(Reach) == 24);  // as it travels in a grant

/// A write that was begun; of one session, from 1.
using Ticket = std::uint64_t;

}  // namespace unisono
