// A job prepared for execution: moves of all ranks in one numbering, channels, dependents.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/finding.hpp"
#include "reference/job.hpp"

namespace unisono::reference {

/// Number of a move among those of all ranks.
using Node = std::uint32_t;

/// Indices into compressed lists.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// What stays the same in every run of a job. Refers to the job, which must outlive it.
class Lowered {
 public:
  struct MoveNode {
    const Move* move = nullptr;
    std::uint32_t rank = 0;
    std::uint32_t index = 0;
    Range sends;                 ///< channels it sends to
    Range arrivals;              ///< channels it takes from, in listed order
    Range fetches;               ///< ranks whose memory op1 is, in listed order
    Range stores;                ///< ranks into whose memory the remote result goes
    Range dependents;            ///< moves with a full dependency on it
    Range stream_dependents;     ///< moves with a segment dependency on it
    std::uint32_t producers[2];  ///< of its segment dependencies, or kNowhere
    std::uint32_t full = 0;      ///< number of full dependencies
  };
  /// The messages of one ordered pair of ranks.
  struct Channel {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Range sends;     ///< moves that send, in program order
    Range arrivals;  ///< moves that take
  };

  /// Checks every program, and, where counts are known beforehand, that sends and arrivals of each pair match.
  explicit Lowered(const Job& job);

  const Job& job() const { return *job_; }
  /// What is wrong with the programs as they stand; nothing may be run then.
  const std::optional<Finding>& finding() const { return finding_; }
  std::uint32_t first(std::uint32_t rank) const { return base_[rank]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const MoveNode& node(Node node) const { return nodes_[node]; }
  const std::vector<Channel>& channels() const { return channels_; }
  std::span<const std::uint32_t> sends(const MoveNode& node) const { return span(node_channels_, node.sends); }
  std::span<const std::uint32_t> arrivals(const MoveNode& node) const { return span(node_channels_, node.arrivals); }
  std::span<const std::uint32_t> fetches(const MoveNode& node) const { return span(node_channels_, node.fetches); }
  std::span<const std::uint32_t> stores(const MoveNode& node) const { return span(node_channels_, node.stores); }
  std::span<const Node> dependents(const MoveNode& node) const { return span(dependents_, node.dependents); }
  std::span<const Node> stream_dependents(const MoveNode& node) const {
    return span(dependents_, node.stream_dependents);
  }
  std::span<const Node> sends(const Channel& channel) const { return span(channel_nodes_, channel.sends); }
  std::span<const Node> arrivals(const Channel& channel) const { return span(channel_nodes_, channel.arrivals); }
  /// Whether no move writes params, so that indirect counts and offsets are known beforehand.
  bool params_constant() const { return params_constant_; }
  /// Bytes of one cell of symbolic memory: every access of a region is a whole number of them.
  std::uint64_t cell_bytes(Region region) const { return cell_bytes_[static_cast<std::size_t>(region)]; }

  /// "rank 3, move 5: dst[0:4] = ..."
  std::string place(Node node) const;
  /// A finding at a move.
  Finding at(FindingKind kind, Node node, const std::string& text) const;

 private:
  static std::span<const std::uint32_t> span(const std::vector<std::uint32_t>& values, Range range) {
    return {values.data() + range.begin, range.end - range.begin};
  }
  void check();
  void build_nodes();
  void build_channels();
  void build_dependents();
  void match();
  void choose_cells();
  std::uint64_t known_count(const MoveNode& node) const;

  const Job* job_;
  std::optional<Finding> finding_;
  std::vector<std::uint32_t> base_;
  std::vector<MoveNode> nodes_;
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> node_channels_;  // channels and ranks that moves name
  std::vector<std::uint32_t> channel_nodes_;
  std::vector<std::uint32_t> dependents_;
  bool params_constant_ = true;
  std::array<std::uint64_t, kRegions> cell_bytes_{};
};

/// Ranks a peer field names, in order.
std::span<const std::uint32_t> peers_of(const Program& program, const std::uint32_t& peer, PeerMode mode);

}  // namespace unisono::reference
