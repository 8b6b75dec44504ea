// A switch of the simulated network that takes part in collectives: frames on one side, communicators on the other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/network/network.hpp"
#include "sim/switch/aggregation_unit.hpp"
#include "sim/switch/switch_communicator.hpp"

namespace unisono::sim {

/// What a unit of the network does with frames that are for it. It takes no time: what a frame causes leaves in the
/// cycle in which the frame has come whole. Frames that are damaged, or of no communicator here, are dropped and
/// counted.
class SwitchUnit final : public AggregationUnit, private SwitchOutlet {
 public:
  static constexpr std::size_t kCommunicators = 64;

  /// `unit`: its number in the network, which must outlive it.
  SwitchUnit(Network& network, std::uint32_t unit);

  void take(const UnitFrame& frame) override;

  std::size_t capacity() const override { return kCommunicators; }
  bool is_full() const override { return communicators_.size() == kCommunicators; }
  bool has(std::uint32_t communicator, std::uint16_t epoch) const override;
  void make(SwitchEntry entry) override;
  void free(std::uint32_t communicator, std::uint16_t epoch) override;
  SwitchCounters counters() const override;
  std::uint64_t dropped() const override { return dropped_; }
  std::string waiting(std::uint32_t communicator, std::uint16_t epoch) const override;

 private:
  using Key = std::pair<std::uint32_t, std::uint16_t>;

  void send(std::uint32_t address, bool control, const Header& header, std::span<const std::byte> payload) override;
  std::uint16_t take_token() override;
  void give_token(std::uint16_t slot) override { tokens_.push_back(slot); }

  Network& network_;
  const std::uint32_t unit_;
  std::map<Key, std::unique_ptr<SwitchCommunicator>> communicators_;
  std::map<std::pair<std::uint32_t, bool>, std::uint32_t> sequences_;  ///< of sessions: by address and channel
  std::vector<std::uint16_t> tokens_;                                  ///< free ones
  std::uint16_t next_token_ = 0;
  std::vector<std::byte> frame_;
  SwitchCounters past_;
  std::uint64_t dropped_ = 0;
};

}  // namespace unisono::sim
