#include "reference/switch_check.hpp"

#include <cstddef>
#include <unordered_map>
#include <utility>

#include "core/facts.hpp"
#include "core/text.hpp"
#include "core/tree_table.hpp"

namespace unisono::reference {
namespace {

/// The order of arrivals may change no bit where somebody promises that runs give the same bits.
std::optional<Finding> check_folds(const Lowered& lowered, std::uint64_t& count) {
  const bool strict = lowered.job().algorithm != nullptr;
  for (Node n = 0; n < lowered.size(); ++n) {
    const Move& move = *lowered.node(n).move;
    if (move.op1.kind != OperandKind::kArrival || move.arrival.mode != PeerMode::kAny) continue;
    ++count;
    const bool folds = move.count_indirect || move.count != 0;
    if (!strict || !folds || folds_in_any_order(move.func, move.dtype)) continue;
    return lowered.at(FindingKind::kUnstable, n,
                      formatted("arrivals are combined in any order, which changes bits of {} on {}\n  ",
                                name_of(move.func), name_of(move.dtype)) +
                          lowered.place(n));
  }
  return std::nullopt;
}

/// Members that stand in for switches make the same expressions, operand by operand.
std::optional<Finding> compare_with_stand_ins(Interpreter& switched, const SymbolRun& run) {
  const Job& job = switched.lowered().job();
  Call call = job.call;
  call.tree = find_tree(*call.tree, true);
  const Job other = make_job(*job.algorithm, call);
  Interpreter standing(other);
  const SymbolRun there = standing.run_symbols(Policy::generous());
  std::unordered_map<Symbol, std::uint64_t> known;
  std::unordered_map<Symbol, std::uint64_t> known_there;
  for (std::uint32_t rank = 0; rank < call.size && !there.finding; ++rank) {
    const auto& x = run.memory[rank][static_cast<std::size_t>(Region::kDst)];
    const auto& y = there.memory[rank][static_cast<std::size_t>(Region::kDst)];
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (switched.symbols().structure(x[i], known) == standing.symbols().structure(y[i], known_there)) continue;
      Finding finding;
      finding.kind = FindingKind::kUnstable;
      finding.rank = rank;
      finding.text = formatted("r{}.dst[{}] is {} by switches, and {} by members in their place", rank, i,
                               switched.symbols().text(x[i]), standing.symbols().text(y[i]));
      return finding;
    }
  }
  return there.finding;
}

}  // namespace

bool has_switches(const Job& job) { return job.call.tree != nullptr && !job.call.tree->stand_in; }

std::optional<Finding> check_any(Interpreter& interpreter, const SymbolRun& least, std::optional<SymbolRun>& all,
                                 std::uint64_t& count) {
  if (!uses_any(interpreter.lowered().job())) return std::nullopt;
  if (auto loose = check_folds(interpreter.lowered(), count)) return loose;
  all = interpreter.run_symbols(Policy::least_permissive().with_all_orders());
  if (all->finding) return all->finding;
  return interpreter.compare(least, *all, "all orders of arrivals");
}

std::optional<Finding> check_switches(Interpreter& interpreter, const SymbolRun& least) {
  const Policy one_slot = Policy::least_permissive().with_one_slot();
  if (SymbolRun narrow = interpreter.run_symbols(one_slot.with_shared_ports()); narrow.finding) {
    // Ports of their own let all go on that goes on at shared ones; which of the two it is, people want to know.
    SymbolRun one = interpreter.run_symbols(one_slot);
    Finding finding = std::move(one.finding ? *one.finding : *narrow.finding);
    finding.text += one.finding ? "\n  (least permissive schedule, switches with one slot)"
                                : "\n  (least permissive schedule, switches with one slot, and members that follow one "
                                  "another behind one port)";
    return finding;
  }
  return compare_with_stand_ins(interpreter, least);
}

}  // namespace unisono::reference
