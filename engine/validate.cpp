#include "engine/validate.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/arithmetic.hpp"

namespace unisono::cclo {
namespace {

/// Examines the moves of one program, one after the other.
class Examiner {
 public:
  Examiner(CheckedProgram& checked, std::uint32_t size, const Capability& capability)
      : checked_(checked), program_(checked.program), size_(size), capability_(capability) {}

  void run() {
    if (program_.moves.size() > 0xffffffffULL) malformed("it has more than 2^32-1 moves");
    for (index_ = 0; index_ < program_.moves.size(); ++index_) {
      move_ = &program_.moves[index_];
      if (move_->kind == MoveKind::kEnd && index_ + 1 != program_.moves.size()) malformed("end stands before the end");
      examine();
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
    if (!fits(m)) malformed("a field holds a value outside its range");
    dependencies();
    if (m.kind != MoveKind::kMove) return;
    kinds();
    functions();
    const std::uint64_t element = bytes_of(m.dtype);
    if (m.dtype == Datatype::kNone && (m.count != 0 || m.count_indirect)) {
      malformed("its datatype is none although it has elements");
    }
    if (m.count_indirect) params_word(m.count, "count");
    const std::uint64_t bytes = m.count_indirect ? 0 : m.count * element;
    if (m.op0.kind == OperandKind::kMemory) place(m.op0, bytes, "op0");
    if (m.op1.kind == OperandKind::kMemory) place(m.op1, bytes, "op1");
    if (m.local.kind == OperandKind::kMemory) {
      place(m.local, bytes, "the local result");
      if (m.local.region == Region::kParams) checked_.writes_params = true;
      overlap(m.op0, bytes, "op0");
      if (m.op1.kind == OperandKind::kMemory) overlap(m.op1, bytes, "op1");
    }
    if (m.op1.kind == OperandKind::kArrival) {
      peers(m.arrival.peer, m.arrival.mode, "arrival");
      checked_.messages = true;
      if (m.arrival.mode != PeerMode::kRank && !capability_.fan_in) unsupported("a member lacks fan-in");
    }
    if (m.remote.kind == RemoteKind::kMessage) {
      if (m.remote.mode == PeerMode::kAny) malformed("the remote result's peer mode is any; rank or list is allowed");
      peers(m.remote.peer, m.remote.mode, "remote result");
      checked_.messages = true;
      if (m.remote.mode == PeerMode::kList && !capability_.lists) unsupported("a member lacks peer lists");
    }
    const bool fetches = m.op1.kind == OperandKind::kRemoteMemory;
    const bool stores = m.remote.kind == RemoteKind::kMemory;
    if (fetches || stores) {
      if (!capability_.remote_memory) unsupported("a member lacks remote memory (put and get)");
      if (m.remote_address.strided) unsupported("two-dimensional strides are not in this version");
      if (m.remote_address.region != Region::kWindow) {
        malformed(std::string("remote memory is in region ") + name_of(m.remote_address.region) +
                  "; allowed is window");
      }
      if (fetches) peers(m.arrival.peer, m.arrival.mode, "op1 in remote memory", false);
      if (stores) peers(m.remote.peer, m.remote.mode, "remote result in memory", false);
      checked_.remote_memory = true;
    }
  }

  void dependencies() const {
    const Move& m = *move_;
    for (std::uint32_t bit = 0; bit < kWindow; ++bit) {
      if ((m.dependencies >> bit & 1U) != 0 && bit + 1 > index_) {
        malformed("it depends on move " + std::to_string(static_cast<std::int64_t>(index_) - 1 - bit) +
                  ", before the first");
      }
    }
    for (const std::uint32_t distance : {std::uint32_t{m.segment_dependency0}, std::uint32_t{m.segment_dependency1}}) {
      if (distance == 0) continue;
      if (distance > index_) malformed("its segment dependency reaches before the first move");
      const Move& producer = program_.moves[index_ - distance];
      if (producer.count != m.count || producer.count_indirect != m.count_indirect || producer.dtype != m.dtype) {
        malformed("it follows move " + std::to_string(index_ - distance) +
                  " by segments, but their counts or datatypes differ");
      }
    }
  }

  void kinds() const {
    const Move& m = *move_;
    if (m.op0.kind == OperandKind::kStream || m.op1.kind == OperandKind::kStream ||
        m.local.kind == OperandKind::kStream || m.remote.kind == RemoteKind::kStream) {
      unsupported("it uses a stream, which this engine does not have");
    }
    if (m.op0.kind != OperandKind::kNone && m.op0.kind != OperandKind::kMemory) {
      malformed(std::string("op0 is ") + name_of(m.op0.kind) + "; allowed are none, memory and stream");
    }
    if (m.local.kind != OperandKind::kNone && m.local.kind != OperandKind::kMemory) {
      malformed(std::string("the local result is ") + name_of(m.local.kind) + "; allowed are none, memory and stream");
    }
    if (m.op0.cast != Cast::kNone || m.op1.cast != Cast::kNone || m.local.cast != Cast::kNone ||
        m.remote.cast != Cast::kNone) {
      unsupported("it casts, which this engine does not");
    }
  }

  void functions() const {
    const Move& m = *move_;
    const bool two = m.op0.kind != OperandKind::kNone && m.op1.kind != OperandKind::kNone;
    const bool none = m.op0.kind == OperandKind::kNone && m.op1.kind == OperandKind::kNone;
    const bool fan_in = m.op1.kind == OperandKind::kArrival && m.arrival.mode != PeerMode::kRank;
    if (none && (m.count != 0 || m.count_indirect)) malformed("it has no operand, but elements");
    if (m.func != Func::kNone) {
      if (!two && !fan_in && m.count != 0) {
        malformed(std::string("it applies ") + name_of(m.func) + " to fewer than two operands");
      }
      if ((two || fan_in) && (m.count != 0 || m.count_indirect) && !is_reducible(m.dtype)) {
        malformed(std::string("it applies ") + name_of(m.func) + " to datatype " + name_of(m.dtype));
      }
    } else if ((two || fan_in) && (m.count != 0 || m.count_indirect)) {
      malformed("it has several operands, but no function");
    }
  }

  void params_word(std::uint64_t offset, const char* what) const {
    if (offset % 8 != 0 || offset + 8 > program_.params_bytes) {
      malformed(std::string("the indirect ") + what + " is at byte " + std::to_string(offset) +
                " of params, which has " + std::to_string(program_.params_bytes) + " bytes of 8-byte words");
    }
  }

  void place(const Operand& operand, std::uint64_t bytes, const char* what) {
    if (operand.indirect) {
      params_word(operand.offset, "offset");
      return;
    }
    std::uint64_t end = 0;
    if (__builtin_add_overflow(operand.offset, bytes, &end)) malformed(std::string(what) + " ends beyond 2^64");
    if (bytes == 0) return;
    std::uint64_t& extent = checked_.extents[static_cast<std::size_t>(operand.region)];
    extent = std::max(extent, end);
    const bool scratch = operand.region == Region::kScratch;
    if (scratch || operand.region == Region::kParams) {
      const std::uint64_t has = scratch ? program_.scratch_bytes : program_.params_bytes;
      if (end > has) {
        malformed(std::string(what) + " ends at byte " + std::to_string(end) + " of " + name_of(operand.region) +
                  ", which has " + std::to_string(has));
      }
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

  void peers(std::uint32_t peer, PeerMode mode, const char* what, bool lists = true) {
    if (mode == PeerMode::kRank) {
      rank(peer, what);
      return;
    }
    if (!lists) malformed(std::string(what) + " names a list of peers; one rank is allowed");
    if (peer >= program_.pool.size()) malformed(std::string(what) + ": its list is outside the constant pool");
    const std::uint32_t count = program_.pool[peer];
    if (count == 0 || count > program_.pool.size() - peer - 1) {
      malformed(std::string(what) + ": its list of " + std::to_string(count) + " ranks does not fit the constant pool");
    }
    seen_.assign(size_, false);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t r = program_.pool[peer + 1 + i];
      rank(r, what);
      if (seen_[r]) malformed(std::string(what) + ": its list names rank " + std::to_string(r) + " twice");
      seen_[r] = true;
    }
  }

  void rank(std::uint32_t r, const char* what) const {
    if (r >= size_) {
      malformed(std::string(what) + " names rank " + std::to_string(r) + " of " + std::to_string(size_) + " ranks");
    }
  }

  CheckedProgram& checked_;
  const Program& program_;
  std::uint32_t size_;
  const Capability& capability_;
  std::size_t index_ = 0;
  const Move* move_ = nullptr;
  std::vector<bool> seen_;
};

}  // namespace

std::shared_ptr<const CheckedProgram> check_program(Program program, std::uint32_t size, const Capability& capability) {
  auto checked = std::make_shared<CheckedProgram>();
  checked->program = std::move(program);
  Examiner(*checked, size, capability).run();
  return checked;
}

}  // namespace unisono::cclo
