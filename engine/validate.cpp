#include "engine/validate.hpp"

#include <algorithm>
#include <string>

#include "core/arithmetic.hpp"
#include "core/program_check.hpp"

namespace unisono::cclo {
namespace {

/// Looks at the moves of a well-formed program: what they ask of this engine, and of which memory.
class Examiner {
 public:
  Examiner(CheckedProgram& checked, const Capability& capability, bool direct)
      : checked_(checked), program_(checked.program), capability_(capability), direct_(direct) {}

  void run() {
    for (index_ = 0; index_ < program_.moves.size(); ++index_) {
      move_ = &program_.moves[index_];
      if (move_->kind == MoveKind::kMove) examine();
    }
    for (std::size_t region = 0; region < passes_.size(); ++region) {
      checked_.reads_once[region] = passes_[region].in_order && !passes_[region].written;
      checked_.writes_once[region] = passes_[region].in_order && !passes_[region].read;
    }
  }

 private:
  [[noreturn]] void malformed(const std::string& what) const {
    throw Error(ErrorCode::kMalformedProgram, where() + what);
  }
  [[noreturn]] void unsupported(const std::string& what) const { throw Error(ErrorCode::kUnsupported, where() + what); }
  std::string where() const {
    return "move " + std::to_string(index_) + " of " + std::to_string(program_.moves.size()) + ": ";
  }

  void examine() {
    const Move& m = *move_;
    const bool sends = m.remote.kind == RemoteKind::kMessage;
    const bool arrives = m.op1.kind == OperandKind::kArrival;
    const bool fetches = m.op1.kind == OperandKind::kRemoteMemory;
    const bool stores = m.remote.kind == RemoteKind::kMemory;
    checked_.sends_to_ports = checked_.sends_to_ports || m.remote.kind == RemoteKind::kStream;
    if (m.op0.kind == OperandKind::kStream) checked_.ports_to_engine |= port_of(m.op0);
    if (m.local.kind == OperandKind::kStream) checked_.ports_to_kernel |= port_of(m.local);
    const bool two = m.op0.kind == OperandKind::kMemory && m.op1.kind == OperandKind::kMemory;
    if (two && m.op0.region == m.op1.region) passes_[static_cast<std::size_t>(m.op0.region)].in_order = false;
    for (const Operand& operand : {m.op0, m.op1}) {
      if (operand.kind == OperandKind::kMemory) pass(operand, false);
    }
    if (m.local.kind == OperandKind::kMemory) pass(m.local, true);
    if (arrives && m.arrival.mode != PeerMode::kRank && !capability_.fan_in) unsupported("a member lacks fan-in");
    if (sends && m.remote.mode == PeerMode::kList && !capability_.lists) unsupported("a member lacks peer lists");
    if (fetches || stores) {
      if (!capability_.remote_memory) unsupported("a member lacks remote memory (put and get)");
      if (reaches_directly(m)) {
        if (!direct_) {
          unsupported(
              "it reaches src or dst of a peer (direct access), which only the algorithms called direct may do; a "
              "program of the user reaches window");
        }
      } else if ((fetches && m.arrival.mode != PeerMode::kRank) || (stores && m.remote.mode != PeerMode::kRank)) {
        unsupported("it reaches memory of a list of peers, which this engine does not do; name one rank");
      }
    }
    checked_.messages = checked_.messages || arrives || sends;
    checked_.remote_memory = checked_.remote_memory || fetches || stores;

    const std::uint64_t bytes = m.count_indirect ? 0 : m.count * bytes_of(m.dtype);
    if (m.op0.kind == OperandKind::kMemory) place(m.op0, bytes, "op0");
    if (m.op1.kind == OperandKind::kMemory) place(m.op1, bytes, "op1");
    if (m.local.kind != OperandKind::kMemory) return;
    place(m.local, bytes, "the local result");
    if (m.local.region == Region::kParams) checked_.writes_params = true;
    overlap(m.op0, bytes, "op0");
    overlap(m.op1, bytes, "op1");
  }

  std::uint32_t port_of(const Operand& operand) const {
    if (operand.offset >= kMaxStreamPorts) {
      malformed("stream port " + std::to_string(operand.offset) + " is named; there are ports 0 to " +
                std::to_string(kMaxStreamPorts - 1));
    }
    return std::uint32_t{1} << operand.offset;
  }

  /// Follows whether a region is gone through once, from its begin.
  void pass(const Operand& operand, bool writes) {
    if (!move_->count_indirect && move_->count == 0) return;
    Pass& region = passes_[static_cast<std::size_t>(operand.region)];
    (writes ? region.written : region.read) = true;
    const bool next = !operand.indirect && !move_->count_indirect && operand.offset == region.position;
    region.in_order = region.in_order && next;
    region.position += move_->count_indirect ? 0 : move_->count * bytes_of(move_->dtype);
  }

  void place(const Operand& operand, std::uint64_t bytes, const char* what) {
    if (operand.indirect || bytes == 0) return;
    const std::uint64_t end = operand.offset + bytes;  // both have less than 64 bits
    std::uint64_t& extent = checked_.extents[static_cast<std::size_t>(operand.region)];
    extent = std::max(extent, end);
    const bool scratch = operand.region == Region::kScratch;
    if (!scratch && operand.region != Region::kParams) return;
    const std::uint64_t has = scratch ? program_.scratch_bytes : program_.params_bytes;
    if (end > has) {
      malformed(std::string(what) + " ends at byte " + std::to_string(end) + " of " + name_of(operand.region) +
                ", which has " + std::to_string(has));
    }
  }

  void overlap(const Operand& operand, std::uint64_t bytes, const char* what) const {
    const Operand& local = move_->local;
    if (operand.kind != OperandKind::kMemory || operand.region != local.region) return;
    if (operand.indirect || local.indirect) return;  // seen when the move starts
    const std::uint64_t distance =
        operand.offset > local.offset ? operand.offset - local.offset : local.offset - operand.offset;
    if (distance != 0 && distance < bytes) {
      malformed(std::string(what) + " and the local result overlap without being the same");
    }
  }

  CheckedProgram& checked_;
  const Program& program_;
  const Capability& capability_;
  bool direct_;
  std::size_t index_ = 0;
  const Move* move_ = nullptr;
  struct Pass {
    bool in_order = true, read = false, written = false;
    std::uint64_t position = 0;
  };
  std::array<Pass, 5> passes_;  ///< by Region
};

}  // namespace

std::shared_ptr<CheckedProgram> check_program(Program program, std::uint32_t size, const Capability& capability,
                                              bool direct) {
  if (program.moves.size() > 0xffffffffULL) {
    throw Error(ErrorCode::kMalformedProgram, "it has more than 2^32-1 moves");
  }
  if (const auto fault = unisono::check_program(program, size)) {
    throw Error(ErrorCode::kMalformedProgram, "move " + std::to_string(fault->move) + " of " +
                                                  std::to_string(program.moves.size()) + ": " + fault->text);
  }
  auto checked = std::make_shared<CheckedProgram>();
  checked->move_count = static_cast<std::uint32_t>(program.moves.size());
  checked->program = std::move(program);
  Examiner(*checked, capability, direct).run();
  return checked;
}

}  // namespace unisono::cclo
