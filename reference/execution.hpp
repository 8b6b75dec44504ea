// What one move does to memory and streams, whatever carries its messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/interpreter.hpp"

namespace unisono::reference {

/// Resolves and computes the moves of one run, for a machine that decides which of them goes on. `Domain` gives Unit,
/// units per element, memory and operators. Whatever goes wrong becomes the run's finding, and the call returns false.
/// All that is given must outlive this.
template <class Domain>
class Execution {
  using Unit = typename Domain::Unit;

 public:
  /// `retired` by rank: how many moves of its program have retired.
  Execution(const Lowered& lowered, Domain& domain, Run& run, const std::vector<std::uint32_t>& retired)
      : lowered_(lowered), domain_(domain), run_(run), retired_(retired) {
    run_.outcomes.resize(lowered.size());
  }

  /// Only the first finding is kept.
  void fail(Finding finding) {
    if (!run_.finding) run_.finding = std::move(finding);
  }

  /// Count and places of a move that starts, written to its outcome; all of them within bounds.
  bool resolve(Node n) {
    const auto& node = lowered_.node(n);
    const Move& move = *node.move;
    MoveOutcome& out = run_.outcomes[n];
    out.count = move.count;
    out.op0 = move.op0.offset;
    out.op1 = move.op1.offset;
    out.local = move.local.offset;
    if (move.count_indirect && !parameter(n, move.count, out.count)) return false;
    if (out.count > kMaxCount) {
      fail(lowered_.at(FindingKind::kMalformed, n,
                       "count " + std::to_string(out.count) + " is larger than " + std::to_string(kMaxCount) + "\n  " +
                           lowered_.place(n)));
      return false;
    }
    const std::uint64_t bytes = out.count * bytes_of(move.dtype);
    const auto memory = [&](const char* slot, const Operand& operand, std::uint64_t& offset) {
      if (operand.kind != OperandKind::kMemory) return true;
      if (operand.indirect && out.count != 0 && !parameter(n, operand.offset, offset)) return false;
      return bounds(n, slot, node.rank, operand.region, offset, bytes);
    };
    if (!memory("op0", move.op0, out.op0) || !memory("op1", move.op1, out.op1) ||
        !memory("the local result", move.local, out.local)) {
      return false;
    }
    const RemoteAddress& there = move.remote_address;
    for (const std::uint32_t peer : lowered_.fetches(node)) {
      if (!bounds(n, "op1", peer, there.region, there.offset, bytes)) return false;
    }
    for (const std::uint32_t peer : lowered_.stores(node)) {
      if (!bounds(n, "the remote result", peer, there.result_region, there.offset, bytes)) return false;
    }
    if (!overlaps(n, bytes)) return false;
    for (const std::uint32_t producer : node.producers) {
      // An element-wise producer has started only after its own count was read; until then this one waits.
      if (producer == kNowhere || !run_.outcomes[producer].started) continue;
      if (!same_count(n, producer)) return false;
    }
    return true;
  }

  /// Moves that follow one another by elements have equally many.
  bool same_count(Node n, Node producer) {
    if (run_.outcomes[producer].count == run_.outcomes[n].count) return true;
    fail(lowered_.at(FindingKind::kMalformed, n,
                     "segment dependency between moves of " + std::to_string(run_.outcomes[producer].count) + " and " +
                         std::to_string(run_.outcomes[n].count) + " elements; both must have the same count\n  " +
                         lowered_.place(n)));
    return false;
  }

  /// The message of one move meets the arrival of another: tag, count and element size are the same.
  bool match(Node sender, Node receiver) {
    const Move& sent = *lowered_.node(sender).move;
    const Move& taken = *lowered_.node(receiver).move;
    const std::uint64_t sent_count = run_.outcomes[sender].count;
    const std::uint64_t taken_count = run_.outcomes[receiver].count;
    std::string why;
    if (sent.remote.tag != taken.arrival.tag) {
      why = "a message of tag " + std::to_string(sent.remote.tag) + " meets an arrival of tag " +
            std::to_string(taken.arrival.tag);
    } else if (sent_count != taken_count) {
      why =
          "a message of " + std::to_string(sent_count) + " elements meets an arrival of " + std::to_string(taken_count);
    } else if (sent_count != 0 && bytes_of(sent.dtype) != bytes_of(taken.dtype)) {
      why = std::string("a message of ") + unisono::name_of(sent.dtype) + " meets an arrival of " +
            unisono::name_of(taken.dtype);
    } else {
      return true;
    }
    Finding finding =
        lowered_.at(FindingKind::kUnmatched, receiver,
                    why + "\n  sent by  " + lowered_.place(sender) + "\n  taken by " + lowered_.place(receiver));
    finding.other_rank = lowered_.node(sender).rank;
    finding.other_move = lowered_.node(sender).index;
    fail(std::move(finding));
    return false;
  }

  /// Computes `s` elements from element `done` on, and delivers them to all results but messages. `arrivals`: channels
  /// in the order in which their elements are combined; `pop(channel, out, units)` takes them from there.
  template <class Pop>
  bool compute(Node n, std::uint64_t done, std::uint64_t s, std::span<const std::uint32_t> arrivals, Pop&& pop) {
    const auto& node = lowered_.node(n);
    const Move& move = *node.move;
    const MoveOutcome& out = run_.outcomes[n];
    const std::uint32_t element = bytes_of(move.dtype);
    const std::uint64_t at = done * element;
    const std::size_t units = s * domain_.units(element);
    value_.resize(units);
    operand_.resize(units);
    bool some = false;
    bool folding = false;
    const auto join = [&]() {  // the operand in operand_ joins the value
      if (!some) {
        value_.swap(operand_);
        some = true;
        return;
      }
      if (!folding) domain_.fold_begin(move.dtype, value_, s);
      folding = true;
      domain_.fold_step(move.func, move.dtype, move.swap, operand_, s);
    };
    const auto read = [&](std::uint32_t rank, Region region, std::uint64_t offset) {
      if (domain_.read(rank, region, offset + at, element, s, operand_.data())) return true;
      fail(lowered_.at(FindingKind::kUninitialised, n,
                       std::string("reads ") + unisono::name_of(region) + " within [" + std::to_string(offset + at) +
                           ":" + std::to_string(offset + at + s * element) + "] of rank " + std::to_string(rank) +
                           ", which nothing has written\n  " + lowered_.place(n)));
      return false;
    };
    if (move.op0.kind == OperandKind::kMemory) {
      if (!read(node.rank, move.op0.region, out.op0)) return false;
      join();
    } else if (move.op0.kind == OperandKind::kStream) {
      domain_.pop_stream(node.rank, move.op0.offset, operand_.data(), units);
      join();
    }
    switch (move.op1.kind) {
      case OperandKind::kMemory:
        if (!read(node.rank, move.op1.region, out.op1)) return false;
        join();
        break;
      case OperandKind::kRemoteMemory:
        for (const std::uint32_t peer : lowered_.fetches(node)) {
          operand_.resize(units);
          if (!still_here(n, peer, move.remote_address.region)) return false;
          if (!read(peer, move.remote_address.region, move.remote_address.offset)) return false;
          join();
        }
        break;
      case OperandKind::kArrival:
        if (move.arrival.mode == PeerMode::kAny && domain_.arranges()) {
          arranged_.resize(arrivals.size() * units);
          for (std::size_t a = 0; a < arrivals.size(); ++a) pop(arrivals[a], &arranged_[a * units], units);
          domain_.arrange(arranged_, arrivals.size());
          for (std::size_t a = 0; a < arrivals.size(); ++a) {
            operand_.assign(arranged_.begin() + static_cast<std::ptrdiff_t>(a * units),
                            arranged_.begin() + static_cast<std::ptrdiff_t>((a + 1) * units));
            join();
          }
          break;
        }
        for (const std::uint32_t c : arrivals) {
          operand_.resize(units);
          pop(c, operand_.data(), units);
          join();
        }
        break;
      default:
        break;
    }
    if (folding) domain_.fold_end(move.dtype, value_, s);
    if (move.func == Func::kAvg) domain_.divide(move.dtype, value_, s);
    if (move.local.kind == OperandKind::kMemory) {
      domain_.write(node.rank, move.local.region, out.local + at, element, s, value_.data());
    } else if (move.local.kind == OperandKind::kStream) {
      domain_.push_stream(node.rank, move.local.offset, value_.data(), units);
    }
    for (const std::uint32_t peer : lowered_.stores(node)) {
      if (!still_here(n, peer, move.remote_address.result_region)) return false;
      domain_.write(peer, move.remote_address.result_region, move.remote_address.offset + at, element, s,
                    value_.data());
    }
    if (move.remote.kind == RemoteKind::kStream) {
      domain_.push_stream(move.remote.peer, move.remote.port, value_.data(), units);
    }
    return true;
  }

  /// What the last `compute` came to.
  const std::vector<Unit>& value() const { return value_; }

 private:
  bool parameter(Node n, std::uint64_t offset, std::uint64_t& value) {
    const auto& node = lowered_.node(n);
    if (domain_.parameter(node.rank, offset, value)) return true;
    fail(lowered_.at(FindingKind::kDataDependent, n,
                     "the params word at byte " + std::to_string(offset) +
                         " depends on data, so this move's place or length cannot be followed symbolically\n  " +
                         lowered_.place(n)));
    return false;
  }

  bool bounds(Node n, const char* slot, std::uint32_t rank, Region region, std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t size = lowered_.job().bytes(rank, region);
    if (bytes == 0 || (offset <= size && bytes <= size - offset)) return true;
    fail(lowered_.at(region == Region::kScratch ? FindingKind::kScratch : FindingKind::kOutOfBounds, n,
                     std::string(slot) + " is " + unisono::name_of(region) + "[" + std::to_string(offset) + ":" +
                         std::to_string(offset + bytes) + "] of rank " + std::to_string(rank) + ", which has " +
                         std::to_string(size) + " bytes there\n  " + lowered_.place(n)));
    return false;
  }

  // Rule 7: an operand and a result are the same memory, or do not touch.
  bool overlaps(Node n, std::uint64_t bytes) {
    const auto& node = lowered_.node(n);
    const Move& move = *node.move;
    const MoveOutcome& out = run_.outcomes[n];
    struct Access {
      const char* slot;
      Region region;
      std::uint64_t begin;
      std::uint64_t end;
      bool write;
      bool whole;  // read at issue, not element by element
    };
    Access accesses[16];
    std::size_t count = 0;
    const auto add = [&](const char* slot, bool here, Region region, std::uint64_t offset, std::uint64_t length,
                         bool write, bool whole) {
      if (here && length != 0) accesses[count++] = {slot, region, offset, offset + length, write, whole};
    };
    // At a peer only op1 and the remote result can meet, at one offset, so it is this rank's memory that matters.
    const auto names_itself = [&](std::span<const std::uint32_t> peers) {
      return std::find(peers.begin(), peers.end(), node.rank) != peers.end();
    };
    const auto slot = [&](const char* name, const Operand& operand, std::uint64_t offset, bool write) {
      add(name, operand.kind == OperandKind::kMemory, operand.region, offset, bytes, write, false);
      add("an indirect offset", operand.kind == OperandKind::kMemory && operand.indirect, Region::kParams,
          operand.offset, 8, false, true);
    };
    slot("op0", move.op0, out.op0, false);
    slot("op1", move.op1, out.op1, false);
    slot("the local result", move.local, out.local, true);
    add("an indirect count", move.count_indirect, Region::kParams, move.count, 8, false, true);
    add("op1", names_itself(lowered_.fetches(node)), move.remote_address.region, move.remote_address.offset, bytes,
        false, false);
    add("the remote result", names_itself(lowered_.stores(node)), move.remote_address.result_region,
        move.remote_address.offset, bytes, true, false);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = i + 1; j < count; ++j) {
        const Access& a = accesses[i];
        const Access& b = accesses[j];
        if (!(a.write || b.write) || a.region != b.region || a.end <= b.begin || b.end <= a.begin) continue;
        if (a.begin == b.begin && !a.whole && !b.whole && !(a.write && b.write)) continue;
        fail(lowered_.at(FindingKind::kMalformed, n,
                         std::string(a.slot) + " and " + b.slot + " overlap in " + unisono::name_of(a.region) +
                             "; an operand and a result may only be the same memory at the same offset (rule 7)\n  " +
                             lowered_.place(n)));
        return false;
      }
    }
    return true;
  }

  // Whether the peer's call still lasts, so that its src and dst may be touched. The window outlives calls.
  bool still_here(Node n, std::uint32_t peer, Region region) {
    if (region == Region::kWindow || peer == lowered_.node(n).rank) return true;
    if (retired_[peer] < lowered_.job().programs[peer].moves.size()) return true;
    Finding finding = lowered_.at(FindingKind::kUnfinished, n,
                                  std::string("reaches ") + unisono::name_of(region) + " of rank " +
                                      std::to_string(peer) + ", whose call has ended\n  " + lowered_.place(n));
    finding.other_rank = peer;
    fail(std::move(finding));
    return false;
  }

  const Lowered& lowered_;
  Domain& domain_;
  Run& run_;
  const std::vector<std::uint32_t>& retired_;
  std::vector<Unit> value_;
  std::vector<Unit> operand_;
  std::vector<Unit> arranged_;
};

}  // namespace unisono::reference
