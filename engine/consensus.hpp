// Agreement among the members of a communicator that are left, also when it has been revoked and members die meanwhile.
//
// In communicators of more than kMostTold ranks words go along trees (tree_agreement.hpp), as long as nobody has
// vanished. In small ones, and as soon as somebody has, every rank tells every other its word, and waits for the word
// of each or for that rank's end. Then each rank in turn, by number, tells all others what it makes of it (the bits all
// words have in common, the largest number, who is gone), and a rank that hears that takes it for its own; a rank that
// is gone is passed over. After the turn of the first rank that lives until the end all have the same, and nothing
// changes that any more; so after the last turn all have it. This is consensus by rotating coordinators with a perfect
// failure detector (Chandra and Toueg 1996, section 6), which the system's word on the end of a process is. Messages
// travel on the control lane, which a revocation leaves alone.
//
// What makes it uniform is that a rank says one word in a turn and does not take it back. So an agreement that this
// rank gives up, by its deadline, is not begun anew: the next call goes on where it stood, with the value that was
// said. If that call is for another purpose, the old agreement is brought to its end first, for others may have ended
// it.
//
// A rank that has vanished, as no kernel says that its process has ended, may live on behind a network that is cut.
// Then the detector is not perfect, and the same agreement is made twice: among those that are left on either side. So
// as soon as a rank has to pass over one that has vanished, it begins anew, by itself, and names all that have vanished
// in every word. Who hears of one that it had not known of does the same. Words count only among ranks that name the
// same: all of them spoke after the cut, so within their part the detector is perfect again, and what they agree on
// says who can be reached and who cannot. From that each of them computes by itself whether its part goes on (see
// `judge`). Nobody that was named is ever listened to again; who speaks all the same is told that it is out.
//
// Who had its answer before the cut has heard the word of every rank in its turn, so all have the same word by then,
// and come to the same value on either side. Those who begin anew are told the answer by who has it.
//
// A rank that goes over from the tree to that keeps the value that it has taken over there, if it has. If any rank has
// its answer already, then all that lived had taken it over, on either side of the cut, and come to the same value.
//
// Cost: P messages of each rank in the first round and P - 1 in its turn; P + 1 rounds; as much again for each time
// that more are seen to have vanished. Along a tree: about 2 log2 P messages of each rank at most, in 4 log2 P steps;
// as much again, two or three times, if many have ended.
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
#include "engine/tree_agreement.hpp"

namespace unisono {
struct Header;
}

namespace unisono::cclo {

struct Communicator;

/// What one member of a communicator knows of its agreements. Under the engine's lock.
class Consensus {
 public:
  /// Ranks of a communicator up to which each tells all.
  static constexpr std::uint32_t kMostTold = 16;
  /// Whether the longest word among so many ranks fits a message of `payload` bytes.
  static bool fits(std::uint32_t ranks, std::uint32_t payload);

  Consensus(const Blocks& blocks, Communicator& communicator);

  /// A word of a peer. Throws Error(kCorruptMessage).
  void on_word(std::uint32_t peer, const Header& header, std::span<const std::byte> payload);

  /// Begins an agreement, or goes on with one that was given up. `purpose` must be the same on all ranks. Throws
  /// Error(kInvalidArgument) while one is under way.
  void begin(std::uint32_t purpose, std::uint64_t value, std::uint64_t number);
  /// Goes on with it; true when all is agreed on. Throws Error(kMismatchedCall) if a rank has called something else.
  bool step();
  /// What was agreed on; ends the agreement. Throws Error(kPartitioned) if this part does not go on.
  Agreed take();
  /// Gives it up for now.
  void abandon() {
    running_ = false;
    next_.reset();
  }
  /// The ranks that it waits for.
  std::vector<std::uint32_t> awaited() const;

 private:
  struct Word {
    std::uint32_t purpose = 0;
    Agreed said;
    bool cut = false;      ///< it names ranks that have vanished
    bool decided = false;  ///< it is the answer, of one that has it
  };
  using Place = std::pair<std::uint32_t, std::uint32_t>;  ///< agreement, round
  enum class Seen : std::uint8_t { kThere, kEnded, kVanished };
  /// What an agreement along a tree asks of this.
  class Links final : public TreeLinks {
   public:
    explicit Links(Consensus& consensus) : consensus_(consensus) {}
    void send(std::uint32_t rank, const TreeWord& word) override;
    bool ended(std::uint32_t rank) override;

   private:
    Consensus& consensus_;
  };

  bool by_tree() const;
  TreeAgreement& tree();
  bool step_tree();
  void on_tree_word(std::uint32_t peer, const Header& header, std::span<const std::byte> payload);
  void send_tree_word(std::uint32_t peer, std::uint32_t number, const TreeWord& word);
  [[noreturn]] void raise_mismatch(const TreeAnswer& answer);
  void tell_that_it_is_out(std::uint32_t peer, const Header& header);

  void open(std::uint32_t purpose, Agreed own);
  void close();
  void tell(std::uint32_t round);
  void send(std::uint32_t peer, std::uint32_t number, std::uint32_t round, const Word& word);
  Word decode(std::uint32_t peer, const Header& header, std::span<const std::byte> payload) const;
  /// A peer that is not there has ended, or vanished, and everything that it sent before has been taken.
  Seen look(std::uint32_t peer);
  /// Notes that a rank has vanished.
  void lose(std::uint32_t peer);
  /// Takes over who has vanished, as this endpoint knows by now; then the agreement under way begins anew.
  void catch_up();
  void begin_anew();
  /// Notes whether a rank is known to have ended; all, and names them.
  void note_ended(std::uint32_t rank);
  void note_ended();
  /// Whether all have said their word of the first round or cannot; then it is joined.
  bool join_words();
  void check_purpose(std::uint32_t peer, const Word& word);
  void judge(const Agreed& agreed);

  const Blocks& blocks_;
  Communicator& communicator_;
  std::map<Place, std::map<std::uint32_t, Word>> heard_;  ///< by rank; of those that name the same as vanished
  std::map<std::uint32_t, std::map<std::uint32_t, Word>> answers_;  ///< by agreement, and by whom
  std::vector<bool> vanished_;                                      ///< by rank, for good
  std::vector<bool> ended_;       ///< by rank; of those that have vanished, if it was known before
  bool cut_ = false;              ///< any has vanished
  std::uint64_t beginnings_ = 0;  ///< how often `vanished_` has changed
  bool running_ = false;          ///< a thread is at it
  bool open_ = false;             ///< this rank has begun it, and not ended it
  std::optional<Word> next_;      ///< what is to be agreed on when an earlier agreement has ended
  std::optional<Word> last_;      ///< what the agreement before came to
  std::uint32_t number_ = 0;      ///< of the next agreement, or of the one under way
  std::uint32_t purpose_ = 0;
  std::uint32_t round_ = 0;
  bool told_ = false;  ///< this rank has said its word of this round
  Agreed own_;
  Links links_{*this};
  std::optional<TreeAgreement> tree_;    ///< of agreement `number_`, once there is anything to be known of it
  std::optional<TreeAnswer> tree_last_;  ///< of the agreement before
  std::vector<bool> agreed_gone_;        ///< by rank: gone in an agreement along a tree
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, TreeWord>>> early_;  ///< by agreement: from whom, what
};

}  // namespace unisono::cclo
