#include "reference/lowered.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "core/program_check.hpp"
#include "core/text.hpp"
#include "reference/text.hpp"

namespace unisono::reference {
namespace {

std::string counted(std::size_t number, const std::string& what) {
  return formatted("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

std::span<const std::uint32_t> peers_of(const Program& program, const std::uint32_t& peer, PeerMode mode) {
  if (mode == PeerMode::kRank) return {&peer, 1};
  return {program.pool.data() + peer + 1, program.pool[peer]};
}

Lowered::Lowered(const Job& job) : job_(&job) {
  check();
  if (finding_) return;
  build_nodes();
  build_channels();
  build_dependents();
  match();
  choose_cells();
}

void Lowered::check() {
  const Job& job = *job_;
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    const Program& program = job.programs[rank];
    auto malformation = check_program(program, job.size());
    for (std::size_t i = 0; i < program.moves.size() && !malformation && !job.call.direct; ++i) {
      if (reaches_directly(program.moves[i])) {
        malformation = Malformation{i, "it reaches src or dst of a peer, and the call has no direct access"};
      }
    }
    if (malformation) {
      Finding finding;
      finding.kind = FindingKind::kMalformed;
      finding.rank = rank;
      finding.move = static_cast<std::uint32_t>(malformation->move);
      finding.text = formatted("rank {}, move {}: {}: {}", rank, malformation->move,
                               describe_move(program, malformation->move), malformation->text);
      finding_ = std::move(finding);
      return;
    }
  }
}

void Lowered::build_nodes() {
  const Job& job = *job_;
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    base_.push_back(size());
    const Program& program = job.programs[rank];
    for (std::uint32_t i = 0; i < program.moves.size(); ++i) {
      const Move& move = program.moves[i];
      MoveNode node{};
      node.move = &move;
      node.rank = rank;
      node.index = i;
      node.producers[0] = move.segment_dependency0 != 0 ? size() - move.segment_dependency0 : kNowhere;
      node.producers[1] = move.segment_dependency1 != 0 ? size() - move.segment_dependency1 : kNowhere;
      nodes_.push_back(node);
      const bool local_params = move.local.kind == OperandKind::kMemory && move.local.region == Region::kParams;
      if (move.kind == MoveKind::kMove && local_params) params_constant_ = false;
    }
  }
}

std::uint64_t Lowered::known_count(const MoveNode& node) const {
  if (!node.move->count_indirect) return node.move->count;
  return job_->params[node.rank][node.move->count / 8];
}

void Lowered::build_channels() {
  const Job& job = *job_;
  const std::uint64_t size = job.size();
  std::unordered_map<std::uint64_t, std::uint32_t> found;
  std::vector<std::vector<Node>> sends;
  std::vector<std::vector<Node>> arrivals;
  const auto channel = [&](std::uint64_t from, std::uint64_t to) {
    const auto [at, fresh] = found.try_emplace(from * size + to, static_cast<std::uint32_t>(channels_.size()));
    if (fresh) {
      channels_.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to), {}, {}});
      sends.emplace_back();
      arrivals.emplace_back();
    }
    return at->second;
  };
  for (Node n = 0; n < this->size(); ++n) {
    MoveNode& node = nodes_[n];
    const Move& move = *node.move;
    const auto here = [&] { return static_cast<std::uint32_t>(node_channels_.size()); };
    // Where counts are known, empty messages do not exist (rule 4).
    const bool known = params_constant_ || !move.count_indirect;
    const bool exists = move.kind == MoveKind::kMove && (!known || known_count(node) != 0 || move.signal);
    node.sends.begin = here();
    if (exists && move.remote.kind == RemoteKind::kMessage) {
      for (const std::uint32_t peer : peers_of(job.programs[node.rank], move.remote.peer, move.remote.mode)) {
        const std::uint32_t c = channel(node.rank, peer);
        node_channels_.push_back(c);
        sends[c].push_back(n);
      }
    }
    node.sends.end = node.arrivals.begin = here();
    if (exists && move.op1.kind == OperandKind::kArrival) {
      for (const std::uint32_t peer : peers_of(job.programs[node.rank], move.arrival.peer, move.arrival.mode)) {
        const std::uint32_t c = channel(peer, node.rank);
        node_channels_.push_back(c);
        arrivals[c].push_back(n);
      }
    }
    node.arrivals.end = node.fetches.begin = here();
    const auto peers = [&](bool accesses, const std::uint32_t& peer, PeerMode mode) {
      if (move.kind != MoveKind::kMove || !accesses) return;
      for (const std::uint32_t rank : peers_of(job.programs[node.rank], peer, mode)) node_channels_.push_back(rank);
    };
    peers(move.op1.kind == OperandKind::kRemoteMemory, move.arrival.peer, move.arrival.mode);
    node.fetches.end = node.stores.begin = here();
    peers(move.remote.kind == RemoteKind::kMemory, move.remote.peer, move.remote.mode);
    node.stores.end = here();
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const auto append = [&](const std::vector<Node>& nodes, Range& range) {
      range.begin = static_cast<std::uint32_t>(channel_nodes_.size());
      channel_nodes_.insert(channel_nodes_.end(), nodes.begin(), nodes.end());
      range.end = static_cast<std::uint32_t>(channel_nodes_.size());
    };
    append(sends[c], channels_[c].sends);
    append(arrivals[c], channels_[c].arrivals);
  }
}

void Lowered::build_dependents() {
  std::vector<std::vector<Node>> full(size());
  std::vector<std::vector<Node>> streams(size());
  for (Node n = 0; n < size(); ++n) {
    for (std::uint32_t bits = nodes_[n].move->dependencies; bits != 0; bits &= bits - 1) {
      const auto distance = static_cast<std::uint32_t>(std::countr_zero(bits)) + 1;
      full[n - distance].push_back(n);
      ++nodes_[n].full;
    }
    for (const std::uint32_t producer : nodes_[n].producers) {
      if (producer != kNowhere) streams[producer].push_back(n);
    }
  }
  for (Node n = 0; n < size(); ++n) {
    const auto append = [&](const std::vector<Node>& nodes, Range& range) {
      range.begin = static_cast<std::uint32_t>(dependents_.size());
      dependents_.insert(dependents_.end(), nodes.begin(), nodes.end());
      range.end = static_cast<std::uint32_t>(dependents_.size());
    };
    append(full[n], nodes_[n].dependents);
    append(streams[n], nodes_[n].stream_dependents);
  }
}

void Lowered::match() {
  for (const Channel& channel : channels_) {
    const auto sent = sends(channel);
    const auto taken = arrivals(channel);
    const auto pair = [&](Node a, Node b, const std::string& why) {
      Finding finding = at(FindingKind::kUnmatched, b, why + "\n  sent by  " + place(a) + "\n  taken by " + place(b));
      finding.other_rank = nodes_[a].rank;
      finding.other_move = nodes_[a].index;
      finding_ = std::move(finding);
    };
    for (std::size_t i = 0; i < std::min(sent.size(), taken.size()); ++i) {
      const MoveNode& a = nodes_[sent[i]];
      const MoveNode& b = nodes_[taken[i]];
      // Which message is the i-th is known only while all counts are.
      if (!params_constant_ && (a.move->count_indirect || b.move->count_indirect)) return;
      const std::string which = formatted("message {} from rank {} to rank {}", i, channel.from, channel.to);
      if (a.move->remote.tag != b.move->arrival.tag) {
        return pair(sent[i], taken[i],
                    formatted("{} carries tag {}, the arrival that meets it has {}", which, a.move->remote.tag,
                              b.move->arrival.tag));
      }
      if (known_count(a) != known_count(b)) {
        return pair(
            sent[i], taken[i],
            formatted("{} has {} elements, the arrival that meets it has {}", which, known_count(a), known_count(b)));
      }
      if (known_count(a) != 0 && bytes_of(a.move->dtype) != bytes_of(b.move->dtype)) {
        return pair(sent[i], taken[i],
                    which + " has elements of type " + name_of(a.move->dtype) + ", the arrival that meets it of type " +
                        name_of(b.move->dtype));
      }
    }
    if (!params_constant_) {
      const auto unknown = [&](Node n) { return nodes_[n].move->count_indirect; };
      if (std::any_of(sent.begin(), sent.end(), unknown) || std::any_of(taken.begin(), taken.end(), unknown)) continue;
    }
    if (sent.size() > taken.size()) {
      const Node n = sent[taken.size()];
      finding_ = at(
          FindingKind::kUnmatched, n,
          formatted("message {} from rank {} to rank {} is never consumed: rank {} has {} from rank {}\n  sent by {}",
                    taken.size(), channel.from, channel.to, channel.to, counted(taken.size(), "arrival"), channel.from,
                    place(n)));
      return;
    }
    if (taken.size() > sent.size()) {
      const Node n = taken[sent.size()];
      finding_ =
          at(FindingKind::kUnmatched, n,
             formatted(
                 "arrival {} of rank {} from rank {} is never satisfied: rank {} sends {} to rank {}\n  awaited by {}",
                 sent.size(), channel.to, channel.from, channel.from, counted(sent.size(), "message"), channel.to,
                 place(n)));
      return;
    }
  }
}

void Lowered::choose_cells() {
  const Job& job = *job_;
  cell_bytes_.fill(std::max<std::uint64_t>(1, bytes_of(job.dtype)));
  cell_bytes_[static_cast<std::size_t>(Region::kParams)] = 8;
  const auto access = [&](Region region, std::uint64_t offset, std::uint32_t element) {
    std::uint64_t& cell = cell_bytes_[static_cast<std::size_t>(region)];
    cell = std::gcd(cell, std::gcd(offset, std::uint64_t{element}));
  };
  for (const MoveNode& node : nodes_) {
    const Move& move = *node.move;
    const std::uint32_t element = bytes_of(move.dtype);
    if (move.kind != MoveKind::kMove || element == 0 || (!move.count_indirect && move.count == 0)) continue;
    for (const Operand* operand : {&move.op0, &move.op1, &move.local}) {
      if (operand->kind != OperandKind::kMemory) continue;
      if (!operand->indirect) {
        access(operand->region, operand->offset, element);
      } else {
        access(operand->region, params_constant_ ? job.params[node.rank][operand->offset / 8] : 1, element);
      }
    }
    const RemoteAddress& there = move.remote_address;
    if (move.op1.kind == OperandKind::kRemoteMemory) access(there.region, there.offset, element);
    if (move.remote.kind == RemoteKind::kMemory) access(there.result_region, there.offset, element);
  }
}

std::string Lowered::place(Node n) const {
  const MoveNode& node = nodes_[n];
  return formatted("rank {}, move {}: {}", node.rank, node.index, describe_move(job_->programs[node.rank], node.index));
}

Finding Lowered::at(FindingKind kind, Node n, const std::string& text) const {
  Finding finding;
  finding.kind = kind;
  finding.rank = nodes_[n].rank;
  finding.move = nodes_[n].index;
  finding.text = text;
  return finding;
}

}  // namespace unisono::reference
