// One Verilated engine (without microcontroller and call front end), its memory, and its place in a simulated network.
#pragma once

#include <Vunisono_cclo_engine_frame.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "core/call.hpp"
#include "core/program.hpp"
#include "sim/memory/axi_memory.hpp"
#include "sim/memory/axi_pins.hpp"
#include "sim/network/network.hpp"

namespace unisono::rtl {

/// What all members of a communicator have agreed.
struct Agreed {
  std::uint32_t rx_buffers = 4;
  std::uint32_t eager_limit = 4096;
  std::uint32_t segment_bytes = 4096;
  bool opens = true;       ///< long messages point to point begin on credit,
  std::uint32_t kept = 0;  ///< and leave so much to short ones
};

class EngineNode {
 public:
  static constexpr unsigned kPorts = 3;                   ///< AXI4 ports to memory
  using Place = std::pair<std::uint64_t, std::uint64_t>;  ///< address, bytes

  EngineNode(std::uint32_t node, sim::Network& network, const sim::AxiMemoryConfig& memory);

  sim::AxiMemory& memory() { return memory_; }
  /// Makes a communicator of nodes 0 .. size-1; returns when the engine has it.
  void create_communicator(std::uint32_t index, std::uint32_t number, std::uint32_t size, const Agreed& agreed);
  /// What the members of a communicator may put to and get from.
  void bind_window(std::uint32_t index, std::uint64_t address, std::uint64_t bytes);
  /// Enters a call into a slot: its program and where its regions stand. Of a put or get the window's address is what
  /// it adds to offsets in the peer's.
  void begin(std::uint32_t slot, std::uint32_t communicator, const Call& call, const Program& program,
             std::uint32_t sequence, const std::array<Place, 5>& regions, std::uint32_t tag = 0);
  /// Ends what a slot has, in the middle if it failed; returns when all is given back.
  void clear(std::uint32_t slot, bool failed);
  std::uint32_t free_buffers() const { return free_buffers_; }
  bool finished(std::uint32_t slot) const { return finished_[slot]; }
  std::uint16_t failed(std::uint32_t slot) const { return failed_[slot]; }
  /// The last fault that Rx has reported, 0 if none.
  std::uint8_t rx_fault() const { return rx_fault_; }

  /// One clock cycle.
  void tick();

 private:
  struct Emitted {
    std::array<std::uint64_t, 8> words{};
    bool end = false;  ///< instead of a move: the program has no more
  };
  void write_register(std::uint32_t word, std::uint32_t value);
  void write_poe_register(std::uint16_t address, std::uint32_t value);

  std::unique_ptr<VerilatedContext> context_;
  std::unique_ptr<Vunisono_cclo_engine_frame> top_;
  std::uint32_t node_;
  sim::Network& network_;
  sim::AxiMemory memory_;
  sim::AxiPins pins_;
  std::array<std::deque<Emitted>, 8> moves_;
  std::uint32_t next_slot_ = 0;
  bool offers_ = false;
  std::deque<std::uint32_t> starting_;  ///< slots whose calls' first moves have not been taken
  std::uint32_t since_move_ = 0;        ///< cycles
  std::uint32_t free_buffers_ = 0;
  std::array<std::array<Place, 5>, 8> regions_{};
  Place binding_;
  std::array<bool, 8> finished_{};
  std::array<std::uint16_t, 8> failed_{};
  std::uint8_t rx_fault_ = 0;
};

}  // namespace unisono::rtl
