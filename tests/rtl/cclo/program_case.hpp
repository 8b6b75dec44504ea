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

/// Whether the engine holds it afterwards. Of a long program, what follows its first moves stands at `rest`.
bool load(sim::Host& host, std::uint32_t slot, const Program& program, std::uint32_t signature, std::uint64_t rest = 0);
/// Puts it there.
void store_rest(sim::Node& node, const Program& program, std::uint64_t rest);

/// A set of programs that fits the engine, what they work on, and what comes out.
struct ProgramCase {
  std::vector<Program> programs;
  Datatype dtype = Datatype::kNone;
  std::vector<reference::RankInput> inputs;
  std::vector<std::vector<std::byte>> expected;

  /// None if what the seed makes does not fit. `block`: elements of the longest message. With more than the usual
  /// steps, programs may have moves in memory; then their lists share words.
  static std::optional<ProgramCase> make(std::uint32_t seed, std::uint32_t size, std::uint32_t block = 40,
                                         std::uint32_t steps = kSteps);
  static constexpr std::uint32_t kSteps = 12;
  /// Of the program in `slot`. Regions are a mebibyte each, from `address` on.
  CallDescriptor call(std::uint32_t rank, std::uint32_t slot, std::uint32_t communicator, std::uint32_t id,
                      std::uint64_t address) const;
  static std::uint64_t src(std::uint64_t address) { return address; }
  static std::uint64_t dst(std::uint64_t address) { return address + (std::uint64_t{1} << 20U); }
};

}  // namespace unisono::rtl
