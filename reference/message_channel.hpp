// The channel of a mixed run that has credits and grants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reference/channel.hpp"

namespace unisono::reference {

/// Messages as engine/dmp.cpp sends and engine/rbm.cpp takes them.
///
/// A message up to the longest takes a credit, and is then sent without regard to its arrival: a buffer holds all of
/// it. Without a credit it waits for one; or it asks for a grant once, and then waits for that alone. A longer message
/// waits for the grant that its arrival gives when it issues, unasked. A grant is of the message whose turn it is, up
/// to a limit, which the receiver raises when half of the landing has been used.
class MessageChannel : public Channel {
 public:
  MessageChannel(const ChannelKind& kind, std::uint64_t segment, Depart depart);
  std::uint64_t room(std::uint64_t done, std::uint64_t length) override;
  std::string awaited() const override;

 protected:
  void leaves(Segment& segment) override;
  std::optional<ChannelFault> notified(const Notice& notice) override;
  std::optional<ChannelFault> arrived(const Segment& segment) override;
  std::optional<ChannelFault> requested(std::uint64_t message) override;
  void opened(bool can_land) override;
  bool lands() const override { return open_ && direct_; }
  void advanced() override;
  void ended() override;
  std::optional<ChannelFault> unbalanced() const override;

  std::uint32_t credits_;  ///< as the sender knows
  bool eager_ = false;     ///< the message whose turn it is to be sent has its credit

 private:
  bool is_long(std::uint64_t length) const { return kind_.way == ChannelKind::Way::kGrant || length > kind_.longest; }
  std::optional<ChannelFault> arrived_eager(const Segment& segment);
  void open();

  // The sender's.
  bool asked_ = false;       ///< for a grant of the message whose turn it is
  std::uint64_t limit_ = 0;  ///< elements of it that are granted
  // The receiver's.
  std::uint32_t owed_;                      ///< credits that have not gone back
  std::uint32_t held_ = 0;                  ///< buffers of messages that have begun to come
  std::optional<std::uint64_t> requested_;  ///< message that a grant is asked for, and not given
  bool can_land_ = false;
  bool open_ = false;          ///< message `taking_` has a landing
  bool direct_ = false;        ///< which is the arrival's result
  std::uint64_t ring_ = 0;     ///< elements of the landing
  std::uint64_t allowed_ = 0;  ///< elements of the message that are granted
};

}  // namespace unisono::reference
