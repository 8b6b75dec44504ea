// Executes handlers, one instruction after the other. What it gives is what every other machine of handlers must give.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "switch/handler/program.hpp"

namespace unisono::handler {

inline constexpr std::uint32_t kInfos = static_cast<std::uint32_t>(kAllInfo.size());

/// What a function sees of the message, and where it writes. The spans are the caller's, and must not overlap.
struct Surroundings {
  std::array<std::uint32_t, kInfos> info{};  ///< by `Info`
  std::span<const std::byte> payload;        ///< kMostPayloadBytes at most
  std::span<std::byte> memory;               ///< memory_bytes of the program; its own from one run to the next
  std::span<std::byte> output;               ///< room for what the function writes
};

struct Outcome {
  Stop stop = Stop::kNone;
  std::uint32_t verdict = 0;       ///< if it came to its end; a function that is not there has verdict 0
  std::uint32_t word = 0;          ///< where it ended or was stopped
  std::uint64_t executed = 0;      ///< instructions
  std::uint64_t output_bytes = 0;  ///< written to the output's begin
};

/// Runs a function of a program without flaw until it ends or is stopped, after `budget` instructions at the latest.
/// What a function that is stopped has written to memory and output stays. Allocates nothing; does not throw. Any
/// number of runs may go on at the same time, if their memories and outputs differ.
Outcome run(const Program& program, Function function, const Surroundings& surroundings, std::uint64_t budget) noexcept;

}  // namespace unisono::handler
