// A Verilated unit of a switch (rtl/switch/unisono_switch_unit.sv): frames go in and come out at its ports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/network/engine_trees.hpp"
#include "switch/entry.hpp"

namespace unisono::sim {

/// What the unit is told of a communicator: the words of its tables.
struct UnitTerms {
  struct Neighbour {
    std::uint32_t rank = 0, address = 0;
    bool is_switch = false;
  };
  slots::Entry entry;      ///< between ports that lead down there may be some without members
  std::uint32_t rank = 0;  ///< this switch's
  std::uint32_t eager_limit = 0, segment_bytes = 0, credits = 0;
  std::vector<Neighbour> neighbours;  ///< by port
};

/// Not thread-safe. At each port one word per cycle goes in, and one comes out.
class SwitchModel {
 public:
  static constexpr std::uint32_t kPorts = kHardwareSwitchPorts;
  static constexpr std::uint32_t kEntries = 8;
  static constexpr std::uint32_t kBufferBytes = 8192;
  static constexpr std::uint32_t kEagerBuffers = 16;
  static constexpr std::uint32_t kRuns = 8;  ///< calls of a communicator that a member may have begun

  static constexpr std::size_t kWordBytes = 64;

  struct InWord {
    std::array<std::byte, kWordBytes> data{};
    std::uint32_t bytes = 0;  ///< all words but the last are full
    bool last = false;
  };
  struct OutWord : InWord {
    std::uint32_t port = 0, address = 0;
    bool control = false, first = false;
    std::uint32_t frame_bytes = 0;  ///< of the whole frame
  };
  /// What a run waits for.
  struct Wait {
    std::uint32_t sequence = 0;
    Collective opcode{};
    bool takes = false;       ///< for ports to take, or else to give
    std::uint32_t ports = 0;  ///< a bit for each
  };
  struct Counters {
    std::uint64_t messages = 0, mismatches = 0, arrived = 0, faults = 0, bad_frames = 0;
  };

  SwitchModel();
  ~SwitchModel();
  SwitchModel(const SwitchModel&) = delete;
  SwitchModel& operator=(const SwitchModel&) = delete;

  /// Takes an entry, 0 to kEntries - 1, that is not in use. Ticks some cycles.
  void open(std::uint32_t entry, const UnitTerms& terms);
  void close(std::uint32_t entry);

  /// The next word of a frame. It waits until the port takes it.
  void push(std::uint32_t port, const InWord& word);
  /// A frame of any length above 0; not between the words of another one at this port.
  void push(std::uint32_t port, std::span<const std::byte> frame);
  /// What has come out and was not yet taken; at each port one frame after the other.
  std::optional<OutWord> pop();
  void tick();
  /// Nothing goes in or comes out until something is pushed.
  bool is_quiet() const;
  std::uint64_t cycle() const;
  /// Of an entry, in the order of calls. Ticks some cycles.
  std::vector<Wait> waits(std::uint32_t entry) const;
  Counters counters() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace unisono::sim
