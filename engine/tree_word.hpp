// What ranks of a large communicator say to each other in an agreement along trees (engine/tree_agreement.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace unisono::cclo {

/// An attempt of a leader. One of a later leader, whose rank is higher, comes after all of those before.
struct Ballot {
  std::uint32_t leader = 0;
  std::uint32_t attempt = 0;
  bool before(const Ballot& other) const {
    return leader != other.leader ? leader < other.leader : attempt < other.attempt;
  }
  friend bool operator==(const Ballot&, const Ballot&) = default;
};

/// What is agreed on.
struct TreeAnswer {
  std::uint64_t value = 0;   ///< the bits that the values of all have in common
  std::uint64_t number = 0;  ///< the largest of all
  std::vector<bool> gone{};  ///< by rank: it has ended, and has not taken part
  bool differ = false;       ///< ranks have called it for different purposes; two of them:
  std::array<std::uint32_t, 2> ranks{};
  std::array<std::uint32_t, 2> purposes{};
  friend bool operator==(const TreeAnswer&, const TreeAnswer&) = default;
};

struct TreeWord {
  enum class Kind : std::uint8_t {
    kAsk,      ///< down: what is the word of you and those below you?
    kWord,     ///< up: this
    kPropose,  ///< down: this is to be the answer
    kAck,      ///< up: I and those below me have taken it over
    kCommit,   ///< it is the answer
    kOrphan,   ///< those between you and me have ended: tell me the answer, or lead
  };
  static constexpr std::uint8_t kLastKind = static_cast<std::uint8_t>(Kind::kOrphan);

  Kind kind = Kind::kAsk;
  Ballot ballot;
  std::uint32_t purpose = 0;  ///< of kWord
  TreeAnswer answer;          ///< of kWord, kPropose, kCommit; of the others empty
  std::vector<bool> ended{};  ///< by rank. Down: those that are not in the tree. Up: those that have been found ended
  friend bool operator==(const TreeWord&, const TreeWord&) = default;

  /// Bytes for a communicator of `ranks`: little-endian words, then two sets, each as a list or as a map of bits,
  /// whichever is shorter. An empty vector stands for an empty set.
  std::string encoded(std::uint32_t ranks) const;
  /// Throws Error(kCorruptMessage).
  static TreeWord decoded(std::span<const std::byte> bytes, std::uint32_t ranks);
  /// What the payload of a word begins with, which no other word of an agreement has (see consensus.cpp).
  static bool is_one(std::span<const std::byte> bytes);
  /// The longest.
  static std::size_t most_bytes(std::uint32_t ranks);
};

}  // namespace unisono::cclo
