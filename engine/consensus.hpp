// Agreement among the members of a communicator that are left, also when it has been revoked and members die meanwhile.
//
// Every rank tells every other its word, and waits for the word of each or for that rank's end. Then each rank in turn,
// by number, tells all others what it makes of it (the bits all words have in common, the largest number, who is gone),
// and a rank that hears that takes it for its own; a rank that is gone is passed over. After the turn of the first rank
// that lives until the end all have the same, and nothing changes that any more; so after the last turn all have it.
// This is consensus by rotating coordinators with a perfect failure detector (Chandra and Toueg 1996, section 6), which
// the system's word on the end of a process is. Messages travel on the control lane, which a revocation leaves alone.
//
// Cost: P messages of each rank in the first round and P - 1 in its turn; P + 1 rounds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/blocks.hpp"
#include "engine/engine.hpp"

namespace unisono {
struct Header;
}

namespace unisono::cclo {

struct Communicator;

/// What one member of a communicator knows of its agreements. Under the engine's lock.
class Consensus {
 public:
  Consensus(const Blocks& blocks, Communicator& communicator) : blocks_(blocks), communicator_(communicator) {}

  /// A word of a peer. Throws Error(kCorruptMessage).
  void on_word(std::uint32_t peer, const Header& header, std::span<const std::byte> payload);

  /// Begins an agreement. `purpose` must be the same on all ranks. Throws Error(kInvalidArgument) while one is under
  /// way.
  void begin(std::uint32_t purpose, std::uint64_t value, std::uint64_t number);
  /// Goes on with it; true when all is agreed on. Throws Error(kMismatchedCall) if a rank has called something else.
  bool step();
  /// What was agreed on; ends the agreement.
  Agreed take();
  /// Gives it up.
  void abandon() { running_ = false; }
  /// The ranks that it waits for.
  std::vector<std::uint32_t> awaited() const;

 private:
  struct Word {
    std::uint32_t purpose = 0;
    Agreed said;
  };
  using Place = std::pair<std::uint32_t, std::uint32_t>;  ///< agreement, round

  void tell(std::uint32_t round);
  bool gone(std::uint32_t peer);

  const Blocks& blocks_;
  Communicator& communicator_;
  std::map<Place, std::map<std::uint32_t, Word>> heard_;  ///< by rank
  bool running_ = false;
  std::uint32_t number_ = 0;  ///< of the next agreement, or of the one under way
  std::uint32_t purpose_ = 0;
  std::uint32_t round_ = 0;
  bool told_ = false;  ///< this rank has said its word of this round
  Agreed own_;
};

}  // namespace unisono::cclo
