// The order of everything in a small job, written out: one vertex for each thing that happens to each element.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/job.hpp"

namespace unisono::reference {

/// The happens-before relation by plain transitive closure. It says the same as reference/races.hpp, by another way and
/// without regard to time or memory: it exists to test that one, and to decide whether a dependency is redundant.
/// Vertices of a move: start, issue, finish; of its element k: in (inputs there), read, write, put (remote memory),
/// sent.
class EventGraph {
 public:
  /// For jobs whose messages match and whose params are constant.
  explicit EventGraph(const Job& job);

  /// Two accesses to one byte, at least one writing, that nothing orders, or an access to a peer's src or dst that may
  /// outlive the peer's call; in words. Also if the order has a cycle, which is a deadlock.
  std::optional<std::string> first_unordered() const { return examine({}); }
  /// The same; or who sees what element `k` of a move's local result writes: a read before anything else is written
  /// there, or, unless that is left `open`, the end of the call.
  std::optional<std::string> first_unordered_or_seen(std::uint32_t rank, std::size_t move, std::uint64_t k,
                                                     bool open) const {
    return examine(Written{vertex(rank, move, k, kWrite), open});
  }
  std::size_t size() const { return edges_.size(); }

 private:
  // What happens to an element, in order of the vertices.
  static constexpr std::uint32_t kIn = 0;
  static constexpr std::uint32_t kRead = 1;
  static constexpr std::uint32_t kWrite = 2;
  static constexpr std::uint32_t kPut = 3;
  static constexpr std::uint32_t kSent = 4;
  static constexpr std::uint32_t kPerElement = 5;

  struct MoveVertices {
    std::uint32_t start = 0;
    std::uint64_t count = 0;   // elements with data
    std::uint64_t tokens = 0;  // count, or 1 for a signal
  };
  std::uint32_t vertex(std::uint32_t rank, std::size_t move, std::uint64_t k, std::uint32_t kind) const;
  void edge(std::uint32_t from, std::uint32_t to) { edges_[from].push_back(to); }
  std::uint64_t word(std::uint32_t rank, std::uint64_t offset) const { return job_->params[rank][offset / 8]; }
  void number();
  void connect();
  /// A write, see `first_unordered_or_seen`.
  struct Written {
    std::uint32_t vertex = 0;
    bool open = false;
  };
  std::optional<std::string> examine(std::optional<Written> written) const;

  const Job* job_;
  std::vector<std::vector<MoveVertices>> moves_;
  std::vector<std::vector<std::uint32_t>> edges_;
};

}  // namespace unisono::reference
