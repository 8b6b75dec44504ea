// Nodes of a simulated cluster on cables, without a switch: SMI's transport in Verilog at each, and wires between them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/cables/routes.hpp"
#include "sim/carrier/transport.hpp"
#include "sim/carrier/wire.hpp"
#include "sim/network/cables.hpp"
#include "sim/network/carrier.hpp"

namespace unisono::sim {

/// Throws Error(kInvalidArgument) that says what is wrong with these routes for so many nodes.
void check_routes(const Routes& routes, std::uint32_t nodes);

/// Frames go in packets, over as many cables as it takes; nothing is lost, and a node that takes nothing holds up who
/// sends to it. Rank r of the routes is node r.
class Cables final : public Carrier {
 public:
  /// Throws Error(kInvalidArgument), see `check_routes`.
  Cables(const Routes& routes, std::uint32_t nodes, const CableSettings& settings, std::uint64_t seed);
  ~Cables() override;

  std::uint32_t mtu() const override { return Transport::kMostData; }
  bool can_push(std::uint32_t node) const override { return ends_[node]->transport.can_push(); }
  Pushed push(std::uint32_t node, const SentWord& word) override;
  const ReceivedWord* front(std::uint32_t node) override { return ends_[node]->transport.front(); }
  void pop(std::uint32_t node) override;
  void tick() override;
  std::uint64_t cycle() const override { return now_; }
  std::uint64_t next_event() const override;
  void skip(std::uint64_t cycles) override { now_ += cycles; }
  std::size_t under_way() const override { return under_way_; }
  const std::vector<BrokenSession>& broken_sessions() const override { return broken_; }
  std::vector<std::string> complaints() const override;

  /// Of the transports' cycles, the part that was evaluated.
  double evaluated() const;

 private:
  struct End {
    End(std::uint64_t seed, std::uint32_t rank, std::span<const std::uint8_t> image, unsigned cabled)
        : transport(seed, rank, image, cabled) {}
    Transport transport;
    std::vector<std::unique_ptr<Wire>> wires;  ///< by link: what leaves there; null: no cable
    std::vector<Wire*> out, in;                ///< by link
    // Of the frame that is being pushed.
    std::uint32_t destination = 0, bytes = 0, left = 0;
    bool control = false;
  };

  std::vector<std::unique_ptr<End>> ends_;
  std::uint64_t now_ = 0;
  std::size_t under_way_ = 0;
  std::vector<BrokenSession> broken_;  ///< none ever does
};

}  // namespace unisono::sim
