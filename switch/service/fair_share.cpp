#include "switch/service/fair_share.hpp"

#include <algorithm>

namespace unisono::slots {

std::uint32_t FairShare::enter(const PoolId& job) {
  auto found = std::find_if(shares_.begin(), shares_.end(),
                            [&job](const Share& share) { return share.pools != 0 && share.job == job; });
  if (found == shares_.end()) {
    found = std::find_if(shares_.begin(), shares_.end(), [](const Share& share) { return share.pools == 0; });
    if (found == shares_.end()) found = shares_.emplace(found);
    *found = Share{};
    found->job = job;
  }
  ++found->pools;
  return static_cast<std::uint32_t>(found - shares_.begin());
}

void FairShare::leave(std::uint32_t share) { --shares_[share].pools; }

bool FairShare::takes(std::uint32_t share) {
  if (came_ == kRound) begin_round();
  ++came_;
  Share& one = shares_[share];
  ++one.came;
  if (pressed_ && one.taken >= most_) return false;
  ++one.taken;
  return true;
}

void FairShare::begin_round() {
  const auto active = std::count_if(shares_.begin(), shares_.end(), [](const Share& share) { return share.came != 0; });
  // A little more than its part, so that the whole is used though some send less than theirs.
  most_ = active > 1 ? kRound * 5 / 4 / static_cast<std::uint32_t>(active) : ~std::uint32_t{0};
  for (Share& share : shares_) share.came = share.taken = 0;
  came_ = 0;
}

}  // namespace unisono::slots
