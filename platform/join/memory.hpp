// The memory that the members of one host share: the first of them makes it and hands it to the others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/secret.hpp"
#include "network/shm/segment.hpp"
#include "platform/join/sockets.hpp"

namespace unisono::join {

/// A member as the others of its host know it.
struct Neighbour {
  std::uint32_t rank = 0;
  std::uint32_t pid = 0;
};

/// The members of this host, in order of rank; the first one hands out the memory.
struct Household {
  std::vector<Neighbour> members;
  std::uint32_t self = 0;  ///< position
  Nonce nonce{};           ///< of the first: random, and known to members of the job only
};

/// With as much address space for arenas as this process may have. Throws Error.
std::shared_ptr<shm::Segment> make_segment(std::uint32_t endpoints, const shm::CopyFrom& copy_from);

/// The first member's end: from its construction on, the others can come.
class MemoryGiver {
 public:
  /// Throws Error(kBootstrap).
  explicit MemoryGiver(const Household& household);
  /// Hands it to all. Throws Error(kBootstrap) that says who has not come.
  void give(const shm::Segment& segment, Deadline deadline);

 private:
  const Household& household_;
  Descriptor listener_;
};

/// Another member's end. Throws Error(kBootstrap).
std::shared_ptr<shm::Segment> take_memory(const Household& household, Deadline deadline);

}  // namespace unisono::join
