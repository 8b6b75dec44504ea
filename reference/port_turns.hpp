// Several processes behind one port of their switch: whose turn it is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text.hpp"
#include "core/tree.hpp"
#include "reference/lowered.hpp"

namespace unisono::reference {

/// Members that follow one another below a switch share a port, which is as narrow as can be: in each direction it
/// carries the messages of one move at a time, in the order of the switch's program, and the next ones when all of that
/// move has gone through. The messages of one move have a place each: its slot keeps, or folds, what each member sends
/// as it comes.
///
/// Any other division of members among ports divides these further, so it holds back no move that these let go on. One
/// run with these stands for all divisions. Functions that may let others go on call `wake(node)` for each of those.
class PortTurns {
 public:
  /// Without `shared` every member has a port of its own. The job must outlive this.
  PortTurns(const Lowered& lowered, bool shared) : lowered_(lowered) {
    const CallTree* const tree = pointer_to(lowered.job().call.tree);
    if (!shared || tree == nullptr || tree->stand_in) return;
    const std::vector<std::uint32_t> ports = ports_of(*tree);
    lines_.resize(std::size_t{2} * members_.size());
    lines_of_.resize(lowered.size());
    over_.resize(lowered.size());
    const auto join = [&](Node n, std::uint32_t member, std::uint32_t direction) {
      if (member >= tree->members || tree->parent[member] != lowered.node(n).rank || ports[member] == kNoNode) return;
      const std::uint32_t line = 2 * ports[member] + direction;
      if (!lines_of_[n].empty() && lines_of_[n].back() == line) return;
      lines_[line].moves.push_back(n);
      lines_of_[n].push_back(line);
    };
    for (Node n = 0; n < lowered.size(); ++n) {
      const auto& node = lowered.node(n);
      if (node.rank < tree->members) continue;
      for (const std::uint32_t c : lowered.arrivals(node)) join(n, lowered.channels()[c].from, 0);
      for (const std::uint32_t c : lowered.sends(node)) join(n, lowered.channels()[c].to, 1);
    }
  }

  /// A move that must be over before this one's messages may go through a port of theirs; kNowhere: it has its turns.
  Node before(Node n) const {
    if (lines_of_.empty()) return kNowhere;
    for (const std::uint32_t line : lines_of_[n]) {
      const Line& at = lines_[line];
      if (at.next < at.moves.size() && at.moves[at.next] < n) return at.moves[at.next];
    }
    return kNowhere;
  }

  /// All messages of a move have gone through, or it has none.
  template <class Wake>
  void over(Node n, Wake&& wake) {
    if (lines_of_.empty()) return;
    over_[n] = true;
    for (const std::uint32_t line : lines_of_[n]) {
      Line& at = lines_[line];
      while (at.next < at.moves.size() && over_[at.moves[at.next]]) ++at.next;
      if (at.next < at.moves.size()) wake(at.moves[at.next]);
    }
  }

  /// The ranks behind the port at which one move is before the other, in words.
  std::string port_text(Node n, Node earlier) const {
    std::string text;
    for (const std::uint32_t line : lines_of_[n]) {
      const Line& at = lines_[line];
      if (at.next == at.moves.size() || at.moves[at.next] != earlier) continue;
      for (const std::uint32_t member : members_[line / 2]) {
        text += formatted("{}{}", text.empty() ? "" : ", ", member);
      }
      break;
    }
    return text;
  }

 private:
  /// One direction of a port.
  struct Line {
    std::vector<Node> moves;  ///< in the order of the program
    std::size_t next = 0;     ///< the first of them that is not over
  };

  /// By member: which of the shared ports it is behind; kNoNode: none.
  std::vector<std::uint32_t> ports_of(const CallTree& tree) {
    std::vector<std::uint32_t> ports(tree.members, kNoNode);
    for (std::uint32_t s = 0; s < tree.switches; ++s) {
      for (std::uint32_t i = tree.first[s] + 1; i < tree.first[s + 1]; ++i) {
        const std::uint32_t left = tree.children[i - 1];
        const std::uint32_t right = tree.children[i];
        if (left >= tree.members || right >= tree.members) continue;
        if (ports[left] == kNoNode) {
          ports[left] = static_cast<std::uint32_t>(members_.size());
          members_.push_back({left});
        }
        ports[right] = ports[left];
        members_.back().push_back(right);
      }
    }
    return ports;
  }

  const Lowered& lowered_;
  std::vector<std::vector<std::uint32_t>> members_;   ///< by shared port
  std::vector<Line> lines_;                           ///< [2 port + direction]: what comes in, what goes out
  std::vector<std::vector<std::uint32_t>> lines_of_;  ///< by node; empty: nothing is shared
  std::vector<bool> over_;                            ///< by node
};

}  // namespace unisono::reference
