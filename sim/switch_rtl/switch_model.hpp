// A Verilated unit of a switch (rtl/switch/unisono_switch_unit.sv): frames go in and come out at its ports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

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

/// Not thread-safe. A frame goes in one word per cycle, and is given when its last word has come out.
class SwitchModel {
 public:
  static constexpr std::uint32_t kPorts = 8;
  static constexpr std::uint32_t kEntries = 8;
  static constexpr std::uint32_t kBufferBytes = 8192;
  static constexpr std::uint32_t kEagerBuffers = 16;
  static constexpr std::uint32_t kRuns = 8;  ///< calls of a communicator that a member may have begun

  struct Frame {
    std::uint32_t port = 0, address = 0;
    bool control = false;
    std::vector<std::byte> data;
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

  /// The frame waits until the port takes it; of any length above 0.
  void push(std::uint32_t port, std::span<const std::byte> frame);
  std::optional<Frame> pop();
  void tick();
  /// Nothing goes in or comes out until something is pushed.
  bool is_quiet() const;
  std::uint64_t cycle() const;
  Counters counters() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace unisono::sim
