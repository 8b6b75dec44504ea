// Executes handlers, one instruction after the other. What it gives is what every other machine of handlers must give.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

struct State;

/// An instruction, ready to run.
struct Step {
  /// Executes it and `fuel` more. The next one after these, or null if the function has ended or was stopped before.
  using Does = const Step* (*)(State& state, const Step* step, std::uint64_t fuel);
  Does does = nullptr;
  std::int64_t number = 0;  ///< imm with its sign; of one that goes on elsewhere, how many words further
  std::uint8_t rd = 0;
  std::uint8_t ra = 0;
  std::uint8_t rb = 0;
  std::uint8_t rc = 0;
  std::uint8_t aux = 0;
};

/// A program made ready to run. Immutable.
class Code {
 public:
  /// The program must be without flaw; it is not used afterwards.
  explicit Code(const Program& program);

  /// Runs a function until it ends or is stopped, after `budget` instructions at the latest. What a function that is
  /// stopped has written to memory and output stays. Allocates nothing; does not throw. Any number of runs may go on at
  /// the same time, if their memories and outputs differ.
  Outcome run(Function function, const Surroundings& surroundings, std::uint64_t budget) const noexcept;

 private:
  std::vector<Step> steps_;
  std::array<std::uint32_t, kFunctions> entries_;
};

}  // namespace unisono::handler
