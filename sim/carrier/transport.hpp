// A Verilated unisono_smi_mac: a node's end of the cables, between its MAC and its links.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/carrier/wire.hpp"
#include "sim/network/carrier.hpp"

class Vunisono_smi_mac;
class VerilatedContext;

namespace unisono::sim {

/// All its outputs come from registers, so what it shows in a cycle depends on nothing that is done in it. Cycles in
/// which nothing can change are not evaluated; that changes nothing.
class Transport {
 public:
  static constexpr unsigned kLinks = 4;
  static constexpr unsigned kVirtualChannels = 2;
  static constexpr unsigned kChannels = 2 * kVirtualChannels;
  static constexpr unsigned kMostNodes = 64;
  /// Longest frames of either kind; what unisono_smi_mac is made for.
  static constexpr std::uint32_t kMostData = 8256, kMostControl = 256;

  /// Takes the image (see docs/routing.md), which takes some cycles that are over when this returns. Throws
  /// Error(kInvalidArgument) that says why if it does not fit the hardware. `cabled`: a bit for each link with a cable.
  Transport(std::uint64_t seed, std::uint32_t rank, std::span<const std::uint8_t> image, unsigned cabled);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  bool can_push() const;
  void push(const SentWord& word, std::uint32_t destination, std::uint32_t frame_bytes, bool control);
  const ReceivedWord* front() const { return shows_ ? &shown_ : nullptr; }
  void pop() { pops_ = true; }

  /// Ends the cycle: a wire for each link and direction, null where there is none.
  void tick(std::uint64_t cycle, std::span<Wire* const> out, std::span<Wire* const> in);
  /// Nothing changes here until something comes.
  bool rests() const { return rests_ && !pushes_ && !pops_; }
  /// Cycles that were evaluated.
  std::uint64_t evaluated() const { return evaluated_; }

  /// Packets that no table knew, and frames that did not fit together.
  std::uint32_t strays() const;
  std::uint32_t dropped() const;

 private:
  void load(std::uint32_t rank, std::span<const std::uint8_t> image);
  void clock();
  void show();
  void look_whether_it_rests(bool something);
  std::span<const std::byte> state() const;

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vunisono_smi_mac> model_;
  const unsigned cabled_;
  bool pushes_ = false, pops_ = false;
  bool shows_ = false, begins_ = true;
  ReceivedWord shown_;
  alignas(64) std::array<std::byte, kWordBytes> shown_data_{};
  bool rests_ = false, remembers_ = false;
  unsigned silent_ = 0, next_trial_ = 0;  ///< evaluated cycles without anything seen
  std::vector<std::byte> before_;         ///< the model's state after the last cycle, if it remembers
  std::uint64_t evaluated_ = 0;
};

}  // namespace unisono::sim
