// Who has how much of a switch's memory: places, each of which holds one payload of kPlaceBytes.
//
// A job that asks for much must not leave nothing to others. So each job that has pools may always have an eighth of
// all, as long as there is any. Beyond that a job takes what is free, but for what others may still claim, and an
// eighth for a job that has nothing yet.
#pragma once

#include <cstdint>
#include <map>

#include "switch/control.hpp"

namespace unisono::slots {

/// Bytes of a place: the payload of a frame that fits an Ethernet of 1500.
inline constexpr std::uint32_t kPlaceBytes = 1344;

/// Places that a pool needs. Payloads of less than a fifth of a place count as that much, and each member as two places
/// at least: so whatever else is kept of slots and members is bounded by places as well.
std::uint64_t places_of(std::uint32_t slots, std::uint32_t payload_bytes, std::uint32_t members, bool keeps_order);

/// The account of one switch. One thread.
class Places {
 public:
  explicit Places(std::uint32_t total) : total_(total) {}

  std::uint64_t total() const { return total_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t used_by(const PoolId& job) const;
  /// Most that a job may take now, in one piece.
  std::uint64_t allowed(const PoolId& job) const;
  /// False, and nothing is taken, if it is more than that.
  bool take(const PoolId& job, std::uint64_t places);
  /// Gives back what was taken.
  void give(const PoolId& job, std::uint64_t places);

 private:
  std::uint64_t share() const { return total_ / 8; }

  std::uint64_t total_;
  std::uint64_t used_ = 0;
  std::map<PoolId, std::uint64_t> jobs_;  ///< that have any
};

/// The largest power of two, from 4 on and less than what was asked, with which a pool would take no more than
/// `allowed`; 0: none.
std::uint32_t possible_slots(const PoolRequest& request, std::uint32_t members, std::uint64_t allowed);

}  // namespace unisono::slots
