// Which algorithm serves which call, as data: a table of rules. Freestanding.
//
// The table of this library stands in choose.cpp. A machine's own, made by `unisono calibrate`, and what a user pins
// come before it, so that every call finds a rule. All ranks of a communicator must follow the same rules: their hash
// is part of what they agree on when it is created.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/algorithm.hpp"

namespace unisono {

inline constexpr std::uint64_t kAnyBytes = ~std::uint64_t{0};
inline constexpr std::uint32_t kAnyRanks = ~std::uint32_t{0};

/// Calls that a rule is for, by one of their agreed properties.
enum class Which : std::uint8_t {
  kAll,
  kWith,     ///< only those that have the property
  kWithout,  ///< only those that do not
};

constexpr bool meets(Which which, bool property) { return which == Which::kAll || property == (which == Which::kWith); }

/// One line of a table. The first rule that a call meets, and whose algorithm admits it, decides.
struct Rule {
  std::uint64_t min_bytes = 0;          ///< of the call's count: a vector or a block, as the collective has it
  std::uint64_t max_bytes = kAnyBytes;  ///< both included
  std::uint32_t min_ranks = 1;
  std::uint32_t max_ranks = kAnyRanks;
  std::uint16_t position = 0;   ///< of the algorithm in the table of algorithms; names the collective too
  Which groups = Which::kAll;   ///< the communicator has groups, for algorithms of two levels
  Which direct = Which::kAll;   ///< every rank's buffers can be reached (`Call::direct`)
  Which crowded = Which::kAll;  ///< the job has more ranks than cores
  Which hosts = Which::kAll;    ///< the communicator has members on several hosts
  std::uint8_t radix = 0;       ///< of the algorithm, as `Call::radix`
  /// It is for calls that switches would carry, too; else for those that they would not. One that names the algorithm
  /// of switches is for these anyway.
  bool switches = false;
  friend bool operator==(const Rule&, const Rule&) = default;
};

/// The rules that a communicator follows, and what it has agreed beside.
struct Tuning {
  std::span<const Rule> rules;  ///< come before those of this library
  bool crowded = false;         ///< the job has more ranks than cores
  bool radices = true;          ///< all members take any radix; else rules that name one are passed over
  bool hosts = false;           ///< the members are on several hosts
};

/// What was chosen.
struct Choice {
  int position = -1;           ///< of the algorithm; -1 if none admits the call
  const Rule* rule = nullptr;  ///< null: no rule names an algorithm that admits the call, so the table's first does
  std::uint8_t radix = 0;      ///< `Call::radix` for it
};

/// The choice for `call`. Depends only on what all ranks share. `Call::tree` is of the switches that serve the
/// communicator: where no rule of `tuning` decides, they carry what their algorithm admits.
Choice choose(const Call& call, const Tuning& tuning);
int choose_algorithm(const Call& call, const Tuning& tuning);

/// Whether a call is left to what carries calls in place of the engine (engine/carrier.hpp), which no `Call::tree`
/// tells of. It is, unless rules of `tuning` name the algorithm of switches for its collective, and another rule
/// decides first.
bool left_to_switches(const Call& call, const Tuning& tuning);

/// Lengths in bytes, both included.
struct ByteRange {
  std::uint64_t least = 0;
  std::uint64_t most = kAnyBytes;
};

/// Lengths around that of `call` for which the choice is the same, everything else being equal. Calls that choose alike
/// get the same range, or ranges that have no length in common.
ByteRange same_choice(const Call& call, const Tuning& tuning);

/// The rules of this library.
std::span<const Rule> default_rules();

/// Rules for reductions, one algorithm each, whose order of reduction depends neither on the number of elements, nor on
/// where an element stands in its vector or block, nor on memory, groups or cores. Before all others they make results
/// stable against all of that.
std::span<const Rule> stable_rules();

/// Rules for communicators of streams: algorithms that go through src or dst once, in order, so that a stream can be in
/// its place (docs/streams.md). For collectives that they do not name, all algorithms do so alike, or none does.
std::span<const Rule> stream_rules();

/// A number that tables share only if they are equal; 0 for the empty one.
std::uint32_t hash_of(std::span<const Rule> rules);

}  // namespace unisono
