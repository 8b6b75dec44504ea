#include "reference/text.hpp"

#include <algorithm>
#include <sstream>

#include "core/text.hpp"

namespace unisono::reference {
namespace {

std::string range(const Move& move, Region region, bool indirect, std::uint64_t offset) {
  std::ostringstream out;
  out << name_of(region) << '[';
  if (indirect) {
    out << "params[" << offset << "]:";
  } else {
    out << offset << ':';
    if (!move.count_indirect) out << offset + move.count * bytes_of(move.dtype);
  }
  if (indirect || move.count_indirect) {
    out << '+';
    if (move.count_indirect) {
      out << "params[" << move.count << "]*" << bytes_of(move.dtype);
    } else {
      out << move.count * bytes_of(move.dtype);
    }
  }
  out << ']';
  return out.str();
}

std::string peers(const Program& program, std::uint32_t peer, PeerMode mode) {
  if (mode == PeerMode::kRank) return std::to_string(peer);
  std::ostringstream out;
  out << (mode == PeerMode::kAny ? "any of {" : "{");
  if (peer >= program.pool.size() || program.pool[peer] > program.pool.size() - peer - 1) {
    out << "pool " << peer << " is no list";
  } else {
    for (std::uint32_t i = 0; i < program.pool[peer]; ++i) out << (i != 0 ? ", " : "") << program.pool[peer + 1 + i];
  }
  out << '}';
  return out.str();
}

// "3", "1,2", "others", "5 ranks".
std::string few_peers(const Program& program, std::uint32_t peer, PeerMode mode, std::uint32_t rank,
                      std::uint32_t size) {
  if (mode == PeerMode::kRank) return std::to_string(peer);
  if (peer >= program.pool.size() || program.pool[peer] > program.pool.size() - peer - 1) return "?";
  const std::uint32_t count = program.pool[peer];
  const auto begin = program.pool.begin() + peer + 1;
  const bool own = std::find(begin, begin + count, rank) != begin + count;
  if (count > 1 && count == size) return "all";
  if (count > 1 && count + 1 == size && !own) return "others";
  if (count > 3) return formatted("{} ranks", count);
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) text += formatted("{}{}", i != 0 ? "," : "", begin[i]);
  return text;
}

std::string operand(const Program& program, const Move& move, const Operand& slot) {
  switch (slot.kind) {
    case OperandKind::kNone:
      return "";
    case OperandKind::kMemory:
      return range(move, slot.region, slot.indirect, slot.offset);
    case OperandKind::kStream:
      return formatted("stream({})", slot.offset);
    case OperandKind::kArrival:
      return formatted("arrival({}, tag {})", peers(program, move.arrival.peer, move.arrival.mode), move.arrival.tag);
    case OperandKind::kRemoteMemory:
      return "remote(" + peers(program, move.arrival.peer, move.arrival.mode) + ")." +
             range(move, move.remote_address.region, false, move.remote_address.offset);
  }
  return "?";
}

std::string value(const Program& program, const Move& move) {
  std::string a = operand(program, move, move.op0);
  std::string b = operand(program, move, move.op1);
  const bool peers_in_op1 = move.op1.kind == OperandKind::kArrival || move.op1.kind == OperandKind::kRemoteMemory;
  const bool fan_in = peers_in_op1 && move.arrival.mode != PeerMode::kRank;
  if (a.empty() && b.empty()) return "";
  if (a.empty() || b.empty()) {
    const std::string& only = a.empty() ? b : a;
    if (move.func == Func::kAvg) return "avg(" + only + ")";
    return fan_in && move.func != Func::kNone ? std::string(name_of(move.func)) + (move.swap ? " swapped " : " ") + only
                                              : only;
  }
  if (move.swap) std::swap(a, b);
  switch (move.func) {
    case Func::kSum:
      return a + " + " + b;
    case Func::kProd:
      return a + " * " + b;
    default:
      return std::string(name_of(move.func)) + "(" + a + ", " + b + ")";
  }
}

}  // namespace

std::string describe_move(const Program& program, std::size_t index) {
  const Move& move = program.moves[index];
  std::ostringstream out;
  if (move.kind != MoveKind::kMove) {
    out << name_of(move.kind);
  } else {
    const std::string local = operand(program, move, move.local);
    const std::string result = value(program, move);
    if (move.signal) out << "signal" << (local.empty() && result.empty() ? "" : " ");
    if (!local.empty()) out << local << " = ";
    out << result;
    if (local.empty() && result.empty() && !move.signal) out << "nothing";
    switch (move.remote.kind) {
      case RemoteKind::kNone:
        break;
      case RemoteKind::kMessage:
        out << " -> send(" << peers(program, move.remote.peer, move.remote.mode) << ", tag " << move.remote.tag << ")";
        break;
      case RemoteKind::kMemory:
        out << " -> remote(" << peers(program, move.remote.peer, move.remote.mode) << ")."
            << range(move, move.remote_address.result_region, false, move.remote_address.offset);
        break;
      case RemoteKind::kStream:
        out << " -> stream(rank " << peers(program, move.remote.peer, move.remote.mode) << ", port "
            << static_cast<unsigned>(move.remote.port) << ")";
        break;
    }
  }
  bool first = true;
  for (std::uint32_t i = 0; i < 32; ++i) {
    if ((move.dependencies >> i & 1U) == 0) continue;
    out << (first ? "  after " : ", ");
    first = false;
    if (i + 1 > index) {
      out << "before the start";
    } else {
      out << index - 1 - i;
    }
  }
  for (const std::uint32_t distance :
       {std::uint32_t{move.segment_dependency0}, std::uint32_t{move.segment_dependency1}}) {
    if (distance == 0) continue;
    out << "  stream after ";
    if (distance > index) {
      out << "before the start";
    } else {
      out << index - distance;
    }
  }
  return out.str();
}

std::string label_move(const Program& program, std::size_t index, std::uint32_t rank, std::uint32_t size) {
  const Move& move = program.moves[index];
  if (move.kind != MoveKind::kMove) return name_of(move.kind);
  const bool empty = move.signal && move.count == 0 && !move.count_indirect;
  const bool from_peers = move.op1.kind == OperandKind::kArrival || move.op1.kind == OperandKind::kRemoteMemory;
  const bool several = from_peers && move.arrival.mode != PeerMode::kRank;
  const bool both = move.op0.kind != OperandKind::kNone && move.op1.kind != OperandKind::kNone;
  std::string text;
  if (!empty && (both || several || move.func == Func::kAvg)) {
    text = move.func == Func::kSum ? "+" : (move.func == Func::kProd ? "×" : name_of(move.func));
  }
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  if (from_peers) {
    const char* verb = move.op1.kind == OperandKind::kRemoteMemory ? "read " : (empty ? "signal ← " : "recv ");
    add(verb + few_peers(program, move.arrival.peer, move.arrival.mode, rank, size));
  }
  const std::string to = few_peers(program, move.remote.peer, move.remote.mode, rank, size);
  switch (move.remote.kind) {
    case RemoteKind::kNone:
      if (text.empty()) add(move.op0.kind == OperandKind::kNone ? "nothing" : "copy");
      break;
    case RemoteKind::kMessage:
      add((from_peers ? "→ " : (empty ? "signal → " : "send → ")) + to);
      break;
    case RemoteKind::kMemory:
      text += text.empty() ? "" : ",";
      add("write → " + to);
      break;
    case RemoteKind::kStream:
      add("stream → " + to);
      break;
  }
  return text;
}

std::string describe_program(const Program& program) {
  std::ostringstream out;
  for (std::size_t i = 0; i < program.moves.size(); ++i) {
    const std::string number = std::to_string(i);
    out << std::string(number.size() < 4 ? 4 - number.size() : 0, ' ') << number << "  " << describe_move(program, i)
        << '\n';
  }
  if (program.scratch_bytes != 0) out << "      scratch: " << program.scratch_bytes << " bytes\n";
  if (program.params_bytes != 0) out << "      params: " << program.params_bytes << " bytes\n";
  return out.str();
}

}  // namespace unisono::reference
