#include "reference/event_graph.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/text.hpp"
#include "reference/text.hpp"

namespace unisono::reference {
namespace {

constexpr std::uint32_t kStart = 0;
constexpr std::uint32_t kIssue = 1;
constexpr std::uint32_t kFinish = 2;
constexpr std::uint32_t kPerMove = 3;

std::vector<std::uint32_t> peers(const Program& program, std::uint32_t peer, PeerMode mode) {
  if (mode == PeerMode::kRank) return {peer};
  return {program.pool.begin() + peer + 1, program.pool.begin() + peer + 1 + program.pool[peer]};
}

}  // namespace

EventGraph::EventGraph(const Job& job) : job_(&job) {
  number();
  connect();
}

std::uint32_t EventGraph::vertex(std::uint32_t rank, std::size_t move, std::uint64_t k, std::uint32_t kind) const {
  return moves_[rank][move].start + kPerMove + static_cast<std::uint32_t>(k) * kPerElement + kind;
}

void EventGraph::number() {
  std::uint32_t next = 0;
  for (std::uint32_t rank = 0; rank < job_->size(); ++rank) {
    moves_.emplace_back();
    for (const Move& move : job_->programs[rank].moves) {
      MoveVertices own;
      own.start = next;
      if (move.kind == MoveKind::kMove) {
        own.count = move.count_indirect ? word(rank, move.count) : move.count;
        own.tokens = own.count != 0 ? own.count : (move.signal ? 1 : 0);
      }
      next += kPerMove + static_cast<std::uint32_t>(own.tokens) * kPerElement;
      moves_.back().push_back(own);
    }
  }
  edges_.resize(next);
}

void EventGraph::connect() {
  // Messages of each ordered pair, in order: (rank's move).
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>>
      channels;
  for (std::uint32_t rank = 0; rank < job_->size(); ++rank) {
    const Program& program = job_->programs[rank];
    for (std::size_t n = 0; n < program.moves.size(); ++n) {
      const Move& move = program.moves[n];
      const MoveVertices& own = moves_[rank][n];
      edge(own.start + kStart, own.start + kIssue);
      edge(own.start + kIssue, own.start + kFinish);
      for (std::uint64_t k = 0; k < own.tokens; ++k) {
        edge(own.start + kIssue, vertex(rank, n, k, kIn));
        edge(vertex(rank, n, k, kIn), vertex(rank, n, k, kRead));
        for (const std::uint32_t result : {kWrite, kPut, kSent}) {
          edge(vertex(rank, n, k, kRead), vertex(rank, n, k, result));
          edge(vertex(rank, n, k, result), own.start + kFinish);
        }
      }
      for (std::size_t m = 0; m < n; ++m) {
        const bool named = n - m <= 32 && (move.dependencies >> (n - m - 1) & 1U) != 0;
        if (named || n - m >= kWindow) edge(moves_[rank][m].start + kFinish, own.start + kStart);
        if (n - m == move.segment_dependency0 || n - m == move.segment_dependency1) {
          for (std::uint64_t k = 0; k < own.tokens; ++k) edge(vertex(rank, m, k, kWrite), vertex(rank, n, k, kIn));
        }
      }
      if (own.tokens == 0) continue;
      if (move.remote.kind == RemoteKind::kMessage) {
        for (const std::uint32_t peer : peers(program, move.remote.peer, move.remote.mode)) {
          channels[{rank, peer}].first.push_back(n);
        }
      }
      if (move.op1.kind == OperandKind::kArrival) {
        for (const std::uint32_t peer : peers(program, move.arrival.peer, move.arrival.mode)) {
          channels[{peer, rank}].second.push_back(n);
        }
      }
    }
  }
  for (const auto& [pair, messages] : channels) {
    const auto& [from, to] = pair;
    for (std::size_t i = 0; i < std::min(messages.first.size(), messages.second.size()); ++i) {
      const std::size_t a = messages.first[i];
      const std::size_t b = messages.second[i];
      for (std::uint64_t k = 0; k < moves_[to][b].tokens; ++k) edge(vertex(from, a, k, kSent), vertex(to, b, k, kIn));
      if (i == 0) continue;
      // The earlier arrival has been consumed, and with it its operands read, before this one issues.
      const std::size_t before = messages.second[i - 1];
      for (std::uint64_t k = 0; k < moves_[to][before].tokens; ++k) {
        edge(vertex(to, before, k, kRead), moves_[to][b].start + kIssue);
      }
    }
  }
}

std::optional<std::string> EventGraph::examine(std::optional<Written> written) const {
  // Topological order, then closure from the end.
  const std::size_t size = edges_.size();
  std::vector<std::uint32_t> incoming(size);
  for (const auto& out : edges_) {
    for (const std::uint32_t to : out) ++incoming[to];
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t v = 0; v < size; ++v) {
    if (incoming[v] == 0) order.push_back(v);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const std::uint32_t to : edges_[order[i]]) {
      if (--incoming[to] == 0) order.push_back(to);
    }
  }
  if (order.size() != size) return "the order has a cycle";
  std::vector<std::vector<bool>> after(size, std::vector<bool>());
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::uint32_t v = order[i];
    std::vector<bool>& reached = after[v];
    reached.assign(size, false);
    for (const std::uint32_t to : edges_[v]) {
      reached[to] = true;
      for (std::size_t w = 0; w < size; ++w) {
        if (after[to][w]) reached[w] = true;
      }
    }
  }
  struct Touch {
    std::uint32_t vertex;
    std::uint32_t rank;
    std::size_t move;
    bool write;
  };
  std::map<std::pair<std::uint32_t, std::pair<std::uint32_t, std::uint64_t>>, std::vector<Touch>> bytes;
  std::optional<std::string> open;
  for (std::uint32_t rank = 0; rank < job_->size(); ++rank) {
    for (std::size_t n = 0; n < job_->programs[rank].moves.size(); ++n) {
      const Move& move = job_->programs[rank].moves[n];
      if (move.kind != MoveKind::kMove) continue;
      const MoveVertices& own = moves_[rank][n];
      const std::uint32_t element = bytes_of(move.dtype);
      const auto touch = [&](std::uint32_t whose, Region region, std::uint64_t offset, std::uint32_t kind, bool write) {
        for (std::uint64_t k = 0; k < own.count; ++k) {
          for (std::uint32_t b = 0; b < element; ++b) {
            bytes[{whose, {static_cast<std::uint32_t>(region), offset + k * element + b}}].push_back(
                {vertex(rank, n, k, kind), rank, n, write});
          }
        }
      };
      const auto parameter = [&](std::uint64_t offset) {
        for (std::uint32_t b = 0; b < 8; ++b) {
          bytes[{rank, {static_cast<std::uint32_t>(Region::kParams), offset + b}}].push_back(
              {own.start + kStart, rank, n, false});
        }
      };
      const auto slot = [&](const Operand& operand, std::uint32_t kind, bool write) {
        if (operand.kind != OperandKind::kMemory || own.count == 0) return;
        touch(rank, operand.region, operand.indirect ? word(rank, operand.offset) : operand.offset, kind, write);
        if (operand.indirect) parameter(operand.offset);
      };
      slot(move.op0, kRead, false);
      slot(move.op1, kRead, false);
      slot(move.local, kWrite, true);
      if (move.count_indirect) parameter(move.count);
      // Whether all elements come before the completion of some move of `whose`, so that its call cannot end before.
      const auto over_at_exit = [&](std::uint32_t whose, std::uint32_t kind) {
        for (std::uint64_t k = 0; k < own.count; ++k) {
          const std::vector<bool>& later = after[vertex(rank, n, k, kind)];
          if (std::none_of(moves_[whose].begin(), moves_[whose].end(),
                           [&](const MoveVertices& other) { return later[other.start + kFinish]; })) {
            return false;
          }
        }
        return true;
      };
      const auto reach = [&](std::uint32_t whose, Region region, std::uint32_t kind, bool write) {
        touch(whose, region, move.remote_address.offset, kind, write);
        if (region == Region::kWindow || whose == rank || over_at_exit(whose, kind)) return;
        open = formatted("rank {} may leave while rank {}, move {} is at its {}", whose, rank, n, name_of(region));
      };
      if (move.op1.kind == OperandKind::kRemoteMemory) {
        for (const std::uint32_t peer : peers(job_->programs[rank], move.arrival.peer, move.arrival.mode)) {
          reach(peer, move.remote_address.region, kRead, false);
        }
      }
      if (move.remote.kind == RemoteKind::kMemory) {
        for (const std::uint32_t peer : peers(job_->programs[rank], move.remote.peer, move.remote.mode)) {
          reach(peer, move.remote_address.result_region, kPut, true);
        }
      }
    }
  }
  if (open) return open;
  for (const auto& [place, touches] : bytes) {
    for (std::size_t i = 0; i < touches.size(); ++i) {
      for (std::size_t j = i + 1; j < touches.size(); ++j) {
        const Touch& a = touches[i];
        const Touch& b = touches[j];
        if (!(a.write || b.write) || (a.rank == b.rank && a.move == b.move)) continue;
        if (after[a.vertex][b.vertex] || after[b.vertex][a.vertex]) continue;
        return formatted("byte {} of {} of rank {}: rank {}, move {} and rank {}, move {}", place.second.second,
                         name_of(static_cast<Region>(place.second.first)), place.first, a.rank, a.move, b.rank, b.move);
      }
    }
  }
  if (!written) return std::nullopt;
  const std::vector<bool>& later = after[written->vertex];
  for (const auto& [place, touches] : bytes) {
    const auto is_it = [&](const Touch& touch) { return touch.write && touch.vertex == written->vertex; };
    if (std::none_of(touches.begin(), touches.end(), is_it)) continue;
    const auto name = [&, &where = place] {
      return formatted("byte {} of {} of rank {}", where.second.second,
                       name_of(static_cast<Region>(where.second.first)), where.first);
    };
    const auto again = [&](const Touch& other) { return other.write && later[other.vertex]; };
    if (!written->open && std::none_of(touches.begin(), touches.end(), again)) return name() + " stays as it is";
    for (const Touch& read : touches) {
      if (read.write || !later[read.vertex]) continue;
      const auto between = [&](const Touch& other) { return again(other) && after[other.vertex][read.vertex]; };
      if (std::any_of(touches.begin(), touches.end(), between)) continue;
      return name() + formatted(" is read by rank {}, move {}", read.rank, read.move);
    }
  }
  return std::nullopt;
}

}  // namespace unisono::reference
