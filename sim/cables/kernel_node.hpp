// A Verilated node of rtl/smi for the kernels of one rank, in the process of that rank. The nodes of the other ranks
// are in theirs; what goes over the cables is in memory that all share.
#pragma once

#include <memory>
#include <string>

#include "kernels/smi_node.hpp"
#include "sim/cables/routes.hpp"
#include "sim/cables/shared_cables.hpp"

class Vunisono_smi_node;
class VerilatedContext;

namespace unisono::sim {

class KernelNode final : public kernels::SmiNode {
 public:
  static constexpr int kLinks = 4;
  static constexpr int kVirtualChannels = 2;
  static constexpr int kChannels = 2 * kVirtualChannels;

  /// Throws std::runtime_error that says what is wrong with the routes or the memory.
  explicit KernelNode(const kernels::SmiNodeSettings& settings);
  ~KernelNode() override;

  bool broadcasts(std::uint32_t port) const override;
  bool reduces(std::uint32_t port, std::uint32_t dtype, std::uint32_t func) const override;
  kernels::PortTree tree(std::uint32_t root, const std::vector<std::uint32_t>& members) const override;
  bool cycle(std::chrono::microseconds at_most) override;
  void moved() override;
  std::uint64_t moves() const override;
  void come() override;
  std::optional<std::uint64_t> meeting() const override;
  void leave() override;
  bool all_left() const override;
  void report(std::uint64_t begin, std::uint64_t end) override;
  void put_card(bool sends, std::uint32_t peer, std::uint32_t port, const kernels::ChannelCard& card) override;
  std::optional<kernels::ChannelCard> card_of(bool sends, std::uint32_t peer, std::uint32_t port,
                                              std::uint64_t sequence) const override;
  std::string strays() const override;

 private:
  void load();
  bool neighbours_are_there(std::chrono::microseconds at_most) const;
  bool sleeps() const;
  void drive();
  void sample();
  void evaluate();
  void put_open(bool sends, int port, const kernels::PortOpen& open);
  void put_unit(int port, const kernels::UnitOpen& open);

  std::uint32_t rank_;
  std::uint64_t latency_;
  double bytes_per_cycle_;
  SharedCables shared_;
  const Routes routes_;
  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vunisono_smi_node> model_;
  std::array<std::optional<Port>, kLinks> peers_;  ///< by link: the other end of its cable
  std::array<double, kLinks> budget_{};            ///< bytes that the wire takes in this cycle
  std::uint64_t last_active_ = 0;                  ///< cycle in which a pin has moved
  std::uint64_t packets_ = 0;
};

}  // namespace unisono::sim
