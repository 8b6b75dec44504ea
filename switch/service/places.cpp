#include "switch/service/places.hpp"

#include <algorithm>

#include "switch/buffering.hpp"

namespace unisono::slots {

std::uint64_t places_of(std::uint32_t slots, std::uint32_t payload_bytes, std::uint32_t members, bool keeps_order) {
  constexpr std::uint32_t kLeastPayload = 256;
  const std::uint64_t bytes = pool_bytes(slots, std::max(payload_bytes, kLeastPayload), members, keeps_order);
  return std::max((bytes + kPlaceBytes - 1) / kPlaceBytes, std::uint64_t{2} * members);
}

std::uint64_t Places::used_by(const PoolId& job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : found->second;
}

std::uint64_t Places::allowed(const PoolId& job) const {
  const std::uint64_t free = total_ - used_;
  std::uint64_t reserved = share();  // for a job that has nothing yet
  for (const auto& [other, used] : jobs_) {
    if (other != job && used < share()) reserved += share() - used;
  }
  const std::uint64_t own = used_by(job);
  const std::uint64_t within = own < share() ? std::min(free, share() - own) : 0;
  return std::max(within, free > reserved ? free - reserved : 0);
}

bool Places::take(const PoolId& job, std::uint64_t places) {
  if (places > allowed(job)) return false;
  used_ += places;
  jobs_[job] += places;
  return true;
}

void Places::give(const PoolId& job, std::uint64_t places) {
  const auto found = jobs_.find(job);
  used_ -= places;
  found->second -= places;
  if (found->second == 0) jobs_.erase(found);
}

std::uint32_t possible_slots(const PoolRequest& request, std::uint32_t members, std::uint64_t allowed) {
  constexpr std::uint32_t kLeast = 4;
  for (std::uint32_t slots = request.slots / 2; slots >= kLeast; slots /= 2) {
    if (places_of(slots, request.payload_bytes, members, request.keeps_order) <= allowed) return slots;
  }
  return 0;
}

}  // namespace unisono::slots
