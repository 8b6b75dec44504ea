// Random programs of the user that fit the engine's slots, and how a host loads and calls them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/program.hpp"
#include "reference/interpreter.hpp"
#include "sim/cluster/host.hpp"

namespace unisono::rtl {

/// Whether the engine holds it afterwards.
bool load(sim::Host& host, std::uint32_t slot, const Program& program, std::uint32_t signature);

/// A set of programs that fits the engine, what they work on, and what comes out.
struct ProgramCase {
  std::vector<Program> programs;
  Datatype dtype = Datatype::kNone;
  std::vector<reference::RankInput> inputs;
  std::vector<std::vector<std::byte>> expected;

  /// None if what the seed makes does not fit. `block`: elements of the longest message.
  static std::optional<ProgramCase> make(std::uint32_t seed, std::uint32_t size, std::uint32_t block = 40);
  /// Of the program in `slot`. Regions are a mebibyte each, from `address` on.
  CallDescriptor call(std::uint32_t rank, std::uint32_t slot, std::uint32_t communicator, std::uint32_t id,
                      std::uint64_t address) const;
  static std::uint64_t src(std::uint64_t address) { return address; }
  static std::uint64_t dst(std::uint64_t address) { return address + (std::uint64_t{1} << 20U); }
};

}  // namespace unisono::rtl
