#include "reference/mutate.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "reference/dice.hpp"
#include "reference/text.hpp"

namespace unisono::reference {
namespace {

// Dependencies as positions, so that moves can come, go and change places.
struct Links {
  std::vector<std::vector<std::size_t>> full;
  std::vector<std::vector<std::size_t>> segment;
};

Links links_of(const Program& program) {
  Links links;
  for (std::size_t n = 0; n < program.moves.size(); ++n) {
    const Move& move = program.moves[n];
    links.full.emplace_back();
    links.segment.emplace_back();
    for (std::size_t i = 0; i < 32 && i < n; ++i) {
      if ((move.dependencies >> i & 1U) != 0) links.full[n].push_back(n - 1 - i);
    }
    for (const std::size_t d : {move.segment_dependency0, move.segment_dependency1}) {
      if (d != 0) links.segment[n].push_back(n - d);
    }
  }
  return links;
}

// Rebuilds a program with the moves `order` names by their old positions; links follow, those to moves that are gone
// or come later are dropped.
void reorder(Program& program, const std::vector<std::size_t>& order) {
  const Links links = links_of(program);
  std::vector<std::size_t> position(program.moves.size(), order.size());
  for (std::size_t i = order.size(); i-- > 0;) position[order[i]] = i;
  std::vector<Move> moves;
  for (std::size_t i = 0; i < order.size(); ++i) {
    Move move = program.moves[order[i]];
    move.dependencies = 0;
    move.segment_dependency0 = move.segment_dependency1 = 0;
    for (const std::size_t old : links.full[order[i]]) {
      if (position[old] < i && i - position[old] <= 32) move.dependencies |= 1U << (i - position[old] - 1);
    }
    for (const std::size_t old : links.segment[order[i]]) {
      if (position[old] >= i || i - position[old] >= kWindow) continue;
      (move.segment_dependency0 == 0 ? move.segment_dependency0 : move.segment_dependency1) =
          static_cast<std::uint8_t>(i - position[old]);
    }
    moves.push_back(move);
  }
  program.moves = std::move(moves);
}

bool memory(const Operand& operand) { return operand.kind == OperandKind::kMemory; }

class Mutator {
 public:
  Mutator(const Job& job, Mutation mutation, std::uint64_t seed) : dice_(seed), mutation_(mutation) {
    mutant_.job = job;
    mutant_.mutation = mutation;
  }

  std::optional<Mutant> run() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> places;
    for (std::uint32_t rank = 0; rank < mutant_.job.size(); ++rank) {
      for (std::uint32_t i = 0; i < mutant_.job.programs[rank].moves.size(); ++i) {
        if (applies(rank, i)) places.emplace_back(rank, i);
      }
    }
    if (places.empty()) return std::nullopt;
    const auto [rank, index] = places[dice_.below(places.size())];
    mutant_.rank = rank;
    mutant_.move = index;
    Program& program = mutant_.job.programs[rank];
    const std::string before = describe_move(program, index);
    apply(program, index);
    mutant_.what = formatted("{}: rank {}, move {}: {}", name_of(mutation_), rank, index, before);
    if (index < program.moves.size()) mutant_.what += "  =>  " + describe_move(program, index);
    return std::move(mutant_);
  }

 private:
  std::uint64_t count_of(std::uint32_t rank, const Move& move) const {
    return move.count_indirect ? mutant_.job.params[rank][move.count / 8] : move.count;
  }

  bool applies(std::uint32_t rank, std::uint32_t index) const {
    const Program& program = mutant_.job.programs[rank];
    const Move& move = program.moves[index];
    const std::uint64_t count = count_of(rank, move);
    if (move.kind != MoveKind::kMove || (count == 0 && !move.signal)) return false;
    const bool sends = move.remote.kind == RemoteKind::kMessage;
    const bool arrives = move.op1.kind == OperandKind::kArrival;
    const bool stores = count != 0 && move.remote.kind == RemoteKind::kMemory;
    const bool fetches = count != 0 && move.op1.kind == OperandKind::kRemoteMemory;
    const bool single_send = (sends || stores) && move.remote.mode == PeerMode::kRank;
    const bool single_arrival = (arrives || fetches) && move.arrival.mode == PeerMode::kRank;
    const bool two = move.func != Func::kNone && move.func != Func::kAvg;
    switch (mutation_) {
      case Mutation::kDropDependency:
        return move.dependencies != 0;
      case Mutation::kDropSegmentDependency:
        return move.segment_dependency0 != 0 || move.segment_dependency1 != 0;
      case Mutation::kSendPeer:
        return single_send && mutant_.job.size() > 1;
      case Mutation::kArrivalPeer:
        return single_arrival && mutant_.job.size() > 1;
      case Mutation::kTag:
        return sends || arrives;
      case Mutation::kOperandOffset:
        return count != 0 && memory(move.op0) && !move.op0.indirect;
      case Mutation::kLocalOffset:
        return count != 0 && memory(move.local) && !move.local.indirect;
      case Mutation::kOtherChunk:
        return count != 0 && ((memory(move.op0) && !move.op0.indirect) || (memory(move.local) && !move.local.indirect));
      case Mutation::kFewerElements:
        return count > 1 && !move.count_indirect;
      case Mutation::kMoreElements:
        // One more element of a copy within scratch is often dead, and deadness is not decided here.
        return count != 0 && !move.count_indirect && shows_more(move);
      case Mutation::kRemoveMove:
        return true;
      case Mutation::kRemoveSend:
        return sends || stores;
      case Mutation::kRemoveArrival:
        return arrives || fetches;
      case Mutation::kRemoveLocalResult:
        return count != 0 && memory(move.local);
      case Mutation::kRemoveOperand:
        return count != 0 && two && memory(move.op0);
      case Mutation::kWrongFunc:
        return count != 0 && two;
      case Mutation::kFlipSwap:
        return count != 0 && two;
      case Mutation::kWrongRegion:
        return count != 0 && (memory(move.op0) || memory(move.local));
      case Mutation::kDuplicateMove:
        return true;
      case Mutation::kExchangeMoves: {
        if (index + 1 >= program.moves.size()) return false;
        const Move& next = program.moves[index + 1];
        return next.kind == MoveKind::kMove && (count_of(rank, next) != 0 || next.signal);
      }
      case Mutation::kScratchTooSmall:
        return index == 0 && mutant_.job.bytes(rank, Region::kScratch) != 0;
      case Mutation::kParamsWord:
        return (move.count_indirect && shows_more(move)) ||
               (count != 0 && ((memory(move.op0) && move.op0.indirect) || (memory(move.local) && move.local.indirect)));
      case Mutation::kRemoteOffset:
        return fetches || stores;
      case Mutation::kRemoteRegion:
        return (fetches || stores) && reaches_directly(move);
      case Mutation::kDropPeer:
      case Mutation::kDoublePeer:
        return ((sends || stores) && !single_send) || ((arrives || fetches) && !single_arrival);
      case Mutation::kDropSignal:
        return mutant_.job.call.direct && sends && count == 0;
    }
    return false;
  }

  // Whether one element more of a move is certain to show: what is copied within scratch is often dead there.
  static bool shows_more(const Move& move) {
    return move.remote.kind != RemoteKind::kNone || move.op1.kind == OperandKind::kArrival ||
           (memory(move.local) && move.local.region != Region::kScratch);
  }

  // Takes member `which` out of the list that `peer` names; a list of its own takes the old one's place.
  static void take_out(Program& program, std::uint32_t& peer, std::uint32_t which) {
    const std::vector<std::uint32_t> old(program.pool.begin() + peer,
                                         program.pool.begin() + peer + 1 + program.pool[peer]);
    peer = static_cast<std::uint32_t>(program.pool.size());
    program.pool.push_back(old[0] - 1);
    for (std::uint32_t i = 0; i < old[0]; ++i) {
      if (i != which) program.pool.push_back(old[1 + i]);
    }
  }

  // Has member `which` of the list that `peer` names stand in the place of the next one too; likewise.
  static void put_beside(Program& program, std::uint32_t& peer, std::uint32_t which) {
    const std::uint32_t old = peer;
    const std::uint32_t count = program.pool[old];
    peer = static_cast<std::uint32_t>(program.pool.size());
    for (std::uint32_t i = 0; i <= count; ++i) program.pool.push_back(program.pool[old + i]);
    program.pool[peer + 1 + (which + 1) % count] = program.pool[peer + 1 + which];
  }

  // Takes the empty message from this rank to one of its peers out of both programs.
  void drop_signal(Program& program, std::uint32_t index) {
    Move& move = program.moves[index];
    const std::uint32_t from = mutant_.rank;
    std::uint32_t to = move.remote.peer;
    if (move.remote.mode == PeerMode::kRank) {
      move.remote = {};
      move.signal = move.op1.kind == OperandKind::kArrival;
    } else {
      const auto which = static_cast<std::uint32_t>(dice_.below(program.pool[to]));
      const std::uint32_t peer = program.pool[to + 1 + which];
      take_out(program, move.remote.peer, which);
      to = peer;
    }
    Program& other = mutant_.job.programs[to];
    for (Move& arrival : other.moves) {
      if (arrival.op1.kind != OperandKind::kArrival || !arrival.signal || arrival.count != 0) continue;
      if (arrival.arrival.mode == PeerMode::kRank) {
        if (arrival.arrival.peer != from) continue;
        arrival.op1 = {};
        arrival.arrival = {};
        arrival.signal = arrival.remote.kind == RemoteKind::kMessage;
        return;
      }
      for (std::uint32_t i = 0; i < other.pool[arrival.arrival.peer]; ++i) {
        if (other.pool[arrival.arrival.peer + 1 + i] == from) return take_out(other, arrival.arrival.peer, i);
      }
    }
  }

  // One element before or after; before only where there is room.
  void shift(std::uint64_t& offset, std::uint64_t by) {
    offset = offset >= by && dice_.below(2) == 0 ? offset - by : offset + by;
  }

  std::uint32_t other_rank(std::uint32_t rank) {
    const std::uint32_t size = mutant_.job.size();
    return static_cast<std::uint32_t>((rank + 1 + dice_.below(size - 1)) % size);
  }

  void apply(Program& program, std::uint32_t index) {
    Move& move = program.moves[index];
    const std::uint64_t element = bytes_of(move.dtype);
    const std::uint64_t count = count_of(mutant_.rank, move);
    const bool arrives = move.op1.kind == OperandKind::kArrival;
    switch (mutation_) {
      case Mutation::kDropDependency: {
        std::vector<std::uint32_t> bits;
        for (std::uint32_t i = 0; i < 32; ++i) {
          if ((move.dependencies >> i & 1U) != 0) bits.push_back(i);
        }
        move.dependencies &= ~(1U << bits[dice_.below(bits.size())]);
        break;
      }
      case Mutation::kDropSegmentDependency:
        if (move.segment_dependency1 != 0 && (move.segment_dependency0 == 0 || dice_.below(2) == 0)) {
          move.segment_dependency1 = 0;
        } else {
          move.segment_dependency0 = 0;
        }
        break;
      case Mutation::kSendPeer:
        move.remote.peer = other_rank(move.remote.peer);
        break;
      case Mutation::kArrivalPeer:
        move.arrival.peer = other_rank(move.arrival.peer);
        break;
      case Mutation::kTag:
        if (arrives && (move.remote.kind != RemoteKind::kMessage || dice_.below(2) == 0)) {
          ++move.arrival.tag;
        } else {
          ++move.remote.tag;
        }
        break;
      case Mutation::kOperandOffset:
        shift(move.op0.offset, element);
        break;
      case Mutation::kLocalOffset:
        shift(move.local.offset, element);
        break;
      case Mutation::kOtherChunk: {
        const bool operand = memory(move.op0) && !move.op0.indirect &&
                             (!memory(move.local) || move.local.indirect || dice_.below(2) == 0);
        shift(operand ? move.op0.offset : move.local.offset, count * element);
        break;
      }
      case Mutation::kFewerElements:
        --move.count;
        break;
      case Mutation::kMoreElements:
        ++move.count;
        break;
      case Mutation::kRemoveSend:
        move.remote = {};
        break;
      case Mutation::kRemoveArrival:
        move.op1 = {};
        move.arrival = {};
        move.func = Func::kNone;
        break;
      case Mutation::kRemoveLocalResult:
        move.local = {};
        break;
      case Mutation::kRemoveOperand:
        move.op0 = {};
        if (!arrives || move.arrival.mode == PeerMode::kRank) move.func = Func::kNone;
        break;
      case Mutation::kWrongFunc:
        move.func = move.func == Func::kSum ? Func::kMax : Func::kSum;
        break;
      case Mutation::kFlipSwap:
        move.swap = !move.swap;
        break;
      case Mutation::kWrongRegion: {
        Operand& slot = memory(move.op0) && (!memory(move.local) || dice_.below(2) == 0) ? move.op0 : move.local;
        slot.region = slot.region == Region::kDst ? Region::kSrc : Region::kDst;
        break;
      }
      case Mutation::kRemoveMove:
      case Mutation::kDuplicateMove:
      case Mutation::kExchangeMoves: {
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < program.moves.size(); ++i) {
          if (i != index || mutation_ != Mutation::kRemoveMove) order.push_back(i);
          if (i == index && mutation_ == Mutation::kDuplicateMove) order.push_back(i);
        }
        if (mutation_ == Mutation::kExchangeMoves) std::swap(order[index], order[index + 1]);
        reorder(program, order);
        break;
      }
      case Mutation::kScratchTooSmall: {
        std::uint64_t& bytes = mutant_.job.bytes(mutant_.rank, Region::kScratch);
        bytes -= std::min<std::uint64_t>(bytes, std::max<std::uint32_t>(1, bytes_of(mutant_.job.dtype)));
        break;
      }
      case Mutation::kParamsWord: {
        auto& words = mutant_.job.params[mutant_.rank];
        const bool offset0 = memory(move.op0) && move.op0.indirect && count != 0;
        const bool offset_local = memory(move.local) && move.local.indirect && count != 0;
        if (move.count_indirect && shows_more(move) && (dice_.below(2) == 0 || !(offset0 || offset_local))) {
          ++words[move.count / 8];
        } else {
          shift(words[(offset0 ? move.op0.offset : move.local.offset) / 8], element);
        }
        break;
      }
      case Mutation::kRemoteOffset:
        shift(move.remote_address.offset, dice_.below(2) == 0 ? element : count * element);
        break;
      case Mutation::kRemoteRegion: {
        const bool stores = move.remote.kind == RemoteKind::kMemory;
        const bool fetches = move.op1.kind == OperandKind::kRemoteMemory;
        Region& region = fetches && (!stores || dice_.below(2) == 0) ? move.remote_address.region
                                                                     : move.remote_address.result_region;
        region = region == Region::kDst ? Region::kSrc : Region::kDst;
        break;
      }
      case Mutation::kDropPeer:
      case Mutation::kDoublePeer: {
        const bool from_remote = move.remote.kind != RemoteKind::kNone && move.remote.mode != PeerMode::kRank;
        const bool from_op1 = move.op1.kind != OperandKind::kNone && move.arrival.mode != PeerMode::kRank;
        std::uint32_t& peer = from_remote && (!from_op1 || dice_.below(2) == 0) ? move.remote.peer : move.arrival.peer;
        const auto which = static_cast<std::uint32_t>(dice_.below(program.pool[peer]));
        if (mutation_ == Mutation::kDropPeer) {
          take_out(program, peer, which);
        } else {
          put_beside(program, peer, which);
        }
        break;
      }
      case Mutation::kDropSignal:
        drop_signal(program, index);
        break;
    }
  }

  Dice dice_;
  Mutation mutation_;
  Mutant mutant_;
};

}  // namespace

const char* name_of(Mutation mutation) {
  switch (mutation) {
    case Mutation::kDropDependency:
      return "drop dependency";
    case Mutation::kDropSegmentDependency:
      return "drop segment dependency";
    case Mutation::kSendPeer:
      return "send to another peer";
    case Mutation::kArrivalPeer:
      return "await another peer";
    case Mutation::kTag:
      return "other tag";
    case Mutation::kOperandOffset:
      return "operand one element off";
    case Mutation::kLocalOffset:
      return "result one element off";
    case Mutation::kOtherChunk:
      return "other chunk";
    case Mutation::kFewerElements:
      return "one element less";
    case Mutation::kMoreElements:
      return "one element more";
    case Mutation::kRemoveMove:
      return "remove move";
    case Mutation::kRemoveSend:
      return "remove send";
    case Mutation::kRemoveArrival:
      return "remove arrival";
    case Mutation::kRemoveLocalResult:
      return "remove local result";
    case Mutation::kRemoveOperand:
      return "remove operand";
    case Mutation::kWrongFunc:
      return "wrong function";
    case Mutation::kFlipSwap:
      return "flip swap";
    case Mutation::kWrongRegion:
      return "wrong region";
    case Mutation::kDuplicateMove:
      return "duplicate move";
    case Mutation::kExchangeMoves:
      return "exchange moves";
    case Mutation::kScratchTooSmall:
      return "scratch too small";
    case Mutation::kParamsWord:
      return "other params word";
    case Mutation::kRemoteOffset:
      return "remote address off";
    case Mutation::kRemoteRegion:
      return "other remote region";
    case Mutation::kDropPeer:
      return "drop a peer";
    case Mutation::kDoublePeer:
      return "double a peer";
    case Mutation::kDropSignal:
      return "drop a signal at both ends";
  }
  return "?";
}

std::optional<Mutant> mutate(const Job& job, Mutation mutation, std::uint64_t seed) {
  return Mutator(job, mutation, seed).run();
}

std::vector<Mutant> make_mutants(const Job& job, std::uint32_t count, std::uint64_t seed) {
  std::vector<Mutant> mutants;
  for (std::uint32_t round = 0; mutants.size() < count && round < 4 * count; ++round) {
    auto mutant = mutate(job, static_cast<Mutation>(round % kMutations), seed * 7919 + round);
    if (!mutant) continue;
    const bool known =
        std::any_of(mutants.begin(), mutants.end(), [&](const Mutant& other) { return other.what == mutant->what; });
    if (!known) mutants.push_back(std::move(*mutant));
  }
  return mutants;
}

}  // namespace unisono::reference
