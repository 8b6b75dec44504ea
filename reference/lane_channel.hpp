// The channel of a mixed run that is a lane.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reference/channel.hpp"

namespace unisono::reference {

/// Lines in a ring, a segment in each, whether its arrival has issued or not. The sender learns late which are free.
class LaneChannel : public Channel {
 public:
  LaneChannel(const ChannelKind& kind, std::uint64_t segment, Depart depart);
  std::uint64_t room(std::uint64_t done, std::uint64_t length) override;
  std::string awaited() const override;

 protected:
  void leaves(Segment& segment) override;
  std::optional<ChannelFault> notified(const Notice& notice) override;
  std::optional<ChannelFault> arrived(const Segment& segment) override;
  void segment_taken() override;
  std::optional<ChannelFault> unbalanced() const override;

 private:
  std::uint32_t free_;       ///< lines, as the sender knows
  std::uint32_t holds_ = 0;  ///< lines that have come and were not taken
};

}  // namespace unisono::reference
