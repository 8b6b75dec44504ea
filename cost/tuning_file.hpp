// The tuning file: what `unisono calibrate` found out about a machine, and the rules that follow (docs/tuning.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/tuning.hpp"
#include "cost/machine.hpp"

namespace unisono::cost {

inline constexpr std::uint32_t kTuningVersion = 1;
/// Connections of TCP that a file may ask for.
inline constexpr std::uint32_t kMostConnections = 16;

/// The least that a file may say of `register_from`, and what it says where no length pays.
inline constexpr std::uint64_t kLeastRegistered = std::uint64_t{64} * 1024;
inline constexpr std::uint64_t kNeverRegistered = std::uint64_t{1} << 50U;

/// What `unisono calibrate --network` found out.
struct MeasuredNetwork {
  std::string transport;  ///< what carried data, for people
  Network prices;
  std::uint32_t connections = 1;  ///< of TCP for a pair of ranks, for long messages
  /// Bytes from which on libfabric is to register ordinary memory for a message; nothing: it was not measured.
  std::optional<std::uint64_t> register_from{};
  friend bool operator==(const MeasuredNetwork&, const MeasuredNetwork&) = default;
};

struct TuningFile {
  std::string processor;  ///< for people
  Machine machine;
  std::optional<MeasuredNetwork> network{};  ///< between hosts
  std::vector<Rule> rules;
  friend bool operator==(const TuningFile&, const TuningFile&) = default;
};

/// Reads the text of a file. Throws Error(kInvalidArgument) that names line and field, what stands there and what is
/// allowed.
TuningFile parse_tuning(std::string_view text);
/// The text of a file; `parse_tuning` gives the same back.
std::string write_tuning(const TuningFile& file);

/// A hash as files and messages show it: eight hexadecimal digits.
std::string hash_text(std::uint32_t hash);

}  // namespace unisono::cost
