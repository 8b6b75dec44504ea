// What stands inside a switch of the network, or at a node in the place of an engine, and is sent frames itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/network/carrier.hpp"

namespace unisono::sim {

struct UnitFrame {
  std::uint32_t source = 0;  ///< address: a node, or a unit in a switch
  std::uint16_t port = 0;
  std::span<const std::byte> data;  ///< valid during the call
};

/// Takes frames, and sends some with `Network::send_from` or `Network::push_from`, when it takes them or in a tick of
/// its own. Must outlive the network's last tick.
class Unit {
 public:
  virtual ~Unit() = default;
  Unit() = default;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  /// A frame for this unit has come, whole and undamaged, in its session's order. Called within `Network::tick`; may
  /// call `Network::send_from` for this unit.
  virtual void take(const UnitFrame& frame) = 0;

  /// Whether it is given frames word by word, as they come; it does not change. Frames that come to a switch out
  /// of their order, or twice, are still taken whole.
  virtual bool takes_words() const { return false; }
  /// The next word of the frame that comes by a link, in its session's order. One with `damaged` ends a frame that must
  /// not be used. Frames by different links come at the same time. As `take` in all else.
  virtual void take_word(const ReceivedWord& /*word*/) {}

  /// Whether it has something to do in the cycles to come.
  virtual bool is_busy() const { return false; }
  /// A cycle, at its end, in which it is busy. May call `Network::send_from` for this unit.
  virtual void tick() {}
};

}  // namespace unisono::sim
