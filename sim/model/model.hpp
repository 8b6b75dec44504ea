// Up to 128 engines and the switches of a tree, on the network word by word, with costs instead of hardware.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/program.hpp"
#include "sim/model/costs.hpp"
#include "sim/network/config.hpp"

namespace unisono::sim {

inline constexpr std::uint32_t kMostModelled = 128;

/// A call of all ranks at once.
struct ModelledCall {
  std::uint32_t members = 0;             ///< ranks that are engines, the first ones
  std::vector<Program> programs;         ///< by rank; of switches behind the members
  std::vector<std::uint32_t> addresses;  ///< of each rank: a node, or a unit
};

struct ModelledTime {
  std::vector<std::uint64_t> answered;  ///< by rank: cycles from the call to its answer
  std::uint64_t cycles = 0;             ///< the most of all members
  std::string busiest;                  ///< the link that was busy longest
  std::uint64_t busy_cycles = 0;        ///< so long
};

/// How long a run may go on.
struct ModelLimits {
  std::uint64_t cycles = 1'000'000'000;
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

/// Runs a call that all ranks are given in one cycle. Throws Error(kInvalidArgument) if a rank has no address in the
/// network, Error(kUnsupported) for a move that the model does not have, Error(kTimeout) if nothing goes on or a limit
/// is passed.
ModelledTime run_model(const NetworkConfig& network, const ModelledCall& call, const EndpointCosts& engine,
                       const EndpointCosts& switches, const ModelLimits& limits = {});

/// Of switches in C++: they take no time.
EndpointCosts costs_of_switch();
/// Of switches in RTL (rtl/switch): latencies that the pages of its modules state, and nothing fitted.
EndpointCosts costs_of_rtl_switch();

}  // namespace unisono::sim
