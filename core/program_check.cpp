#include "core/program_check.hpp"

#include <vector>

#include "core/arithmetic.hpp"
#include "core/text.hpp"

namespace unisono {
namespace {

// Checks one move; returns an empty string if it is well formed.
class MoveCheck {
 public:
  MoveCheck(const Program& program, std::size_t index, std::uint32_t size)
      : program_(program), move_(program.moves[index]), index_(index), size_(size) {}

  std::string run() const {
    if (!fits(move_)) return "a field holds a value that its width or type does not allow";
    if (std::string text = dependencies(); !text.empty()) return text;
    if (move_.kind == MoveKind::kEnd && index_ + 1 != program_.moves.size()) return "an end stands before other moves";
    if (move_.kind != MoveKind::kMove) return "";
    if (std::string text = slots(); !text.empty()) return text;
    if (std::string text = peers(); !text.empty()) return text;
    return values();
  }

 private:
  std::string dependencies() const {
    if (index_ < 32 && move_.dependencies >> index_ != 0) {
      return formatted("dependencies {} reach before the program's first move; move {} may use the lowest {} bits",
                       move_.dependencies, index_, index_);
    }
    for (const std::uint32_t distance : {move_.segment_dependency0, move_.segment_dependency1}) {
      if (distance > index_ || distance >= kWindow) {
        return formatted("segment dependency {}; allowed are 1 to 31, not before the first move, and 0 for none",
                         distance);
      }
      if (distance != 0) {
        const Move& producer = program_.moves[index_ - distance];
        if (producer.kind != MoveKind::kMove || producer.local.kind == OperandKind::kNone) {
          return formatted("segment dependency on move {}, which has no local result", index_ - distance);
        }
        if (!move_.count_indirect && !producer.count_indirect && move_.count != producer.count) {
          return formatted(
              "segment dependency on move {} of {} elements, this one has {}; both must have the same count",
              index_ - distance, producer.count, move_.count);
        }
      }
    }
    return "";
  }

  std::string memory(const char* slot, const Operand& operand) const {
    if (operand.cast != Cast::kNone) return std::string(slot) + " has cast wire; this version allows none";
    if (operand.kind == OperandKind::kStream && operand.offset >= kMaxStreamPorts) {
      return formatted("{} names stream port {}; ports are 0 to {}", slot, operand.offset, kMaxStreamPorts - 1);
    }
    if (operand.kind == OperandKind::kMemory && operand.indirect) return word(slot, operand.offset);
    return "";
  }

  std::string word(const char* what, std::uint64_t offset) const {
    if (offset % 8 == 0 && offset < program_.params_bytes && program_.params_bytes - offset >= 8) return "";
    return formatted("{} is the params word at byte {}; allowed are multiples of 8 below {}", what, offset,
                     program_.params_bytes);
  }

  std::string slots() const {
    if (move_.op0.kind == OperandKind::kArrival || move_.op0.kind == OperandKind::kRemoteMemory) {
      return std::string("op0 is ") + name_of(move_.op0.kind) + "; allowed are none, memory and stream";
    }
    if (move_.op1.kind == OperandKind::kStream)
      return "op1 is stream; allowed are none, memory, arrival, remote memory";
    if (move_.local.kind == OperandKind::kArrival || move_.local.kind == OperandKind::kRemoteMemory) {
      return std::string("the local result is ") + name_of(move_.local.kind) + "; allowed are none, memory and stream";
    }
    if (std::string text = memory("op0", move_.op0); !text.empty()) return text;
    if (std::string text = memory("op1", move_.op1); !text.empty()) return text;
    if (std::string text = memory("the local result", move_.local); !text.empty()) return text;
    if (move_.remote.cast != Cast::kNone) return "the remote result has cast wire; this version allows none";
    if (move_.remote_address.strided) return "a strided move; this version allows none";
    if (move_.remote.kind == RemoteKind::kStream && move_.remote.port >= kMaxStreamPorts) {
      return formatted("the remote result names stream port {}; ports are 0 to {}", move_.remote.port,
                       kMaxStreamPorts - 1);
    }
    return move_.count_indirect ? word("count", move_.count) : "";
  }

  std::string list(const char* what, std::uint32_t index) const {
    const auto& pool = program_.pool;
    if (index >= pool.size() || pool[index] == 0 || pool[index] > pool.size() - index - 1) {
      return formatted("{} names pool index {}, where no list stands; the pool has {} words", what, index, pool.size());
    }
    std::vector<bool> seen(size_);
    for (std::uint32_t i = 1; i <= pool[index]; ++i) {
      const std::uint32_t peer = pool[index + i];
      if (peer >= size_) return rank_text(what, peer);
      if (seen[peer]) return formatted("{} lists rank {} twice", what, peer);
      seen[peer] = true;
    }
    return "";
  }

  static std::string remote_region(const char* what, Region region) {
    if (region == Region::kSrc || region == Region::kDst || region == Region::kWindow) return "";
    return std::string(what) + " is " + name_of(region) + " of a peer; peers can reach src, dst and window";
  }

  std::string rank_text(const char* what, std::uint32_t peer) const {
    return formatted("{} names rank {}; ranks are 0 to {}", what, peer, size_ - 1);
  }

  std::string peers() const {
    const bool arrives = move_.op1.kind == OperandKind::kArrival;
    const bool fetches = move_.op1.kind == OperandKind::kRemoteMemory;
    if (arrives || fetches) {
      const char* what = arrives ? "the arrival" : "op1";
      if (move_.arrival.mode == PeerMode::kRank) {
        if (move_.arrival.peer >= size_) return rank_text(what, move_.arrival.peer);
      } else if (std::string text = list(what, move_.arrival.peer); !text.empty()) {
        return text;
      }
      if (fetches && move_.arrival.mode == PeerMode::kAny) {
        return "op1 is remote memory of any of a list; memory does not come by itself, so allowed are rank and list";
      }
    }
    if (fetches) {
      if (std::string text = remote_region("op1", move_.remote_address.region); !text.empty()) return text;
    }
    if (move_.remote.kind == RemoteKind::kNone) return "";
    if (move_.remote.kind == RemoteKind::kMemory) {
      if (std::string text = remote_region("the remote result", move_.remote_address.result_region); !text.empty()) {
        return text;
      }
    }
    if (move_.remote.mode == PeerMode::kRank) {
      return move_.remote.peer < size_ ? "" : rank_text("the remote result", move_.remote.peer);
    }
    if (move_.remote.mode == PeerMode::kAny)
      return "the remote result goes to any of a list; allowed are rank and list";
    if (move_.remote.kind == RemoteKind::kStream) {
      return "the remote result is a stream of a list of peers; allowed for lists are messages and memory";
    }
    return list("the remote result", move_.remote.peer);
  }

  std::string values() const {
    const bool has0 = move_.op0.kind != OperandKind::kNone;
    const bool has1 = move_.op1.kind != OperandKind::kNone;
    const bool arrives = move_.op1.kind == OperandKind::kArrival;
    const bool fetches = move_.op1.kind == OperandKind::kRemoteMemory;
    const bool fan_in = (arrives || fetches) && move_.arrival.mode != PeerMode::kRank;
    const bool sends = move_.remote.kind == RemoteKind::kMessage;
    const bool empty = !move_.count_indirect && move_.count == 0;
    if (has0 && has1 && move_.func == Func::kNone) return "two operands and no function";
    if (move_.func == Func::kAvg) {
      if (has0 == has1 || fan_in)
        return "function avg divides one operand; the move has two, none, or several arrivals";
      if (!empty && !has_mean(move_.dtype)) {
        return std::string("function avg on datatype ") + name_of(move_.dtype) + ", on which it is not defined";
      }
    }
    if (!(has0 && has1) && !fan_in && move_.func != Func::kNone && move_.func != Func::kAvg) {
      return std::string("function ") + name_of(move_.func) +
             " with one operand; one operand passes through, func none";
    }
    if (fan_in && !empty && move_.func == Func::kNone && program_.pool[move_.arrival.peer] > 1) {
      return "several peers in op1 and no function to combine them";
    }
    if (move_.func != Func::kNone && move_.func != Func::kAvg && !empty && !is_defined(move_.func, move_.dtype)) {
      return std::string("function ") + name_of(move_.func) + " on datatype " + name_of(move_.dtype) +
             ", on which it is not defined";
    }
    if (!has0 && !has1 && !empty) return "no operand and a count; a move without operands is a pure signal of count 0";
    if (!empty && move_.dtype == Datatype::kNone) return "elements of datatype none";
    if (!empty && move_.local.kind == OperandKind::kNone && move_.remote.kind == RemoteKind::kNone) {
      return "no result; a move delivers its value locally, remotely, or both";
    }
    if (move_.signal && !arrives && !sends) return "signal set, and neither a message nor an arrival";
    return "";
  }

  const Program& program_;
  const Move& move_;
  std::size_t index_;
  std::uint32_t size_;
};

}  // namespace

std::optional<Malformation> check_program(const Program& program, std::uint32_t size) {
  for (std::size_t i = 0; i < program.moves.size(); ++i) {
    if (std::string text = MoveCheck(program, i, size).run(); !text.empty()) return Malformation{i, std::move(text)};
  }
  return std::nullopt;
}

}  // namespace unisono
