// Operators of users in the pools of a switch: who may have which, and what the switch above must say first.
//
// A pool in a tree folds by an operator only while the switch above has it, too. What is refused there is refused here,
// also later, when it was started again: the pool is then silent where calls name that operator, and its members find
// out.
#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "switch/handler/operator.hpp"
#include "switch/service/pool_table.hpp"

namespace unisono::slots {

namespace {

TableAnswer answer_to(CallerId caller, std::uint32_t number, const std::string& sentence) {
  const auto bytes = bytes_of_text(sentence);
  return {caller, number, ControlKind::kOperator, {bytes.begin(), bytes.end()}};
}

}  // namespace

/// Why there is no room for an operator of so many bytes, in place of what has its number; empty: there is.
std::string PoolTable::without_room(const Entry& entry, Func func, std::uint64_t bytes,
                                    std::uint64_t most_bytes) const {
  std::uint64_t all = bytes;
  std::uint64_t of_job = bytes;
  for (const auto& [id, other] : pools_) {
    for (const auto& [number, op] : other.operators) {
      if (&other == &entry && number == func) continue;
      all += op.report.bytes;
      if (other.request.job == entry.request.job) of_job += op.report.bytes;
    }
  }
  if (all <= most_bytes && of_job <= most_bytes / kPartOfAJob) return "";
  return formatted(
      "the switch {} has {} bytes for operators, a quarter of them for one job, and no room for one of {} bytes more; "
      "free communicators, or give the switch more by --handlers-memory",
      name_, most_bytes, bytes);
}

/// Throws Error for a binary that is no operator.
PoolTable::OwnOperator PoolTable::made_operator(const OperatorRequest& request) const {
  if (sha256_of(request.binary) != request.hash) {
    throw Error(ErrorCode::kInvalidArgument, "it was given another operator than its caller says");
  }
  OwnOperator own;
  // Shared with the pool's copy of the function.
  const auto op = std::make_shared<const handler::Operator>(request.binary);
  own.counters = std::make_shared<OperatorCounters>();
  own.report.hash = request.hash;
  own.report.source = op->source();
  own.report.element_bytes = op->element_bytes();
  own.report.bytes = op->bytes() + 4 * request.binary.size();
  own.made.element_bytes = op->element_bytes();
  own.made.fold = [op, counters = own.counters](const std::byte* a, const std::byte* b, std::byte* out,
                                                std::uint64_t count, std::uint64_t& budget) {
    std::string why;
    if (!op->fold(a, b, out, count, budget, why)) {
      ++counters->stops;
      counters->last_stop = std::move(why);
      return false;
    }
    counters->elements += count;
    return true;
  };
  return own;
}

std::vector<TableAnswer> PoolTable::set_operator(CallerId caller, std::uint32_t number, const OperatorRequest& request,
                                                 std::uint64_t most_bytes) {
  const auto refuse = [&](const std::string& why) -> std::vector<TableAnswer> {
    return {answer_to(caller, number, why)};
  };
  const auto found = pools_.find(request.pool);
  if (found == pools_.end() || !found->second.wanted_by.contains(caller) || !found->second.pool) {
    return refuse(formatted("the switch {} has no such communicator of this caller", name_));
  }
  Entry& entry = found->second;
  if (!entry.request.keeps_order) {
    return refuse(formatted("the switch {} does not keep the order of this communicator's folds", name_));
  }
  if (request.takes_away()) {
    std::vector<TableAnswer> answers = take_operator(entry, request.func, "it was taken away");
    if (!entry.node->above.empty()) parent_->set_operator(request, 0);
    answers.push_back(answer_to(caller, number, ""));
    return answers;
  }
  const auto there = entry.operators.find(request.func);
  if (there != entry.operators.end() && there->second.report.hash == request.hash) {
    if (!there->second.pending) return refuse("");
    there->second.waiting.emplace_back(caller, number);
    return {};
  }
  try {
    OwnOperator own = made_operator(request);
    std::string fault = without_room(entry, request.func, own.report.bytes, most_bytes);
    if (!fault.empty()) return refuse(fault);
    std::vector<TableAnswer> answers = take_operator(entry, request.func, "it was given another one in its place");
    own.pending = !entry.node->above.empty();
    if (own.pending) {
      own.serial = next_serial_++;
      own.waiting.emplace_back(caller, number);
      parent_->set_operator(request, own.serial);
    } else {
      entry.worker->with_lock([&] { entry.pool->set_operator(request.func, std::exchange(own.made, {})); });
      answers.push_back(answer_to(caller, number, ""));
    }
    entry.operators.emplace(request.func, std::move(own));
    return answers;
  } catch (const std::exception& error) {
    return refuse(formatted("the switch {}: {}", name_, error.what()));
  }
}

/// The pool folds by it no longer; those who wait to hear of it hear why.
std::vector<TableAnswer> PoolTable::take_operator(Entry& entry, Func func, const std::string& why) {
  const auto found = entry.operators.find(func);
  if (found == entry.operators.end()) return {};
  std::vector<TableAnswer> answers;
  for (const auto& [caller, number] : found->second.waiting) {
    answers.push_back(answer_to(caller, number, formatted("the switch {}: {}", name_, why)));
  }
  entry.worker->with_lock([&] { entry.pool->set_operator(func, {}); });
  entry.operators.erase(found);
  return answers;
}

std::vector<TableAnswer> PoolTable::parent_said_of_operator(Entry& entry, const ParentAnswer& said) {
  const auto found = entry.operators.find(said.func);
  if (found == entry.operators.end() || found->second.serial != said.serial) return {};
  OwnOperator& own = found->second;
  own.pending = false;
  std::vector<TableAnswer> answers;
  for (const auto& [caller, number] : std::exchange(own.waiting, {})) {
    answers.push_back(answer_to(caller, number, said.answer.refusal));
  }
  PoolOperator now = said.answer.made ? std::exchange(own.made, {}) : PoolOperator{};
  entry.worker->with_lock([&] { entry.pool->set_operator(said.func, std::move(now)); });
  if (!said.answer.made) entry.operators.erase(found);
  return answers;
}

std::vector<OperatorReport> PoolTable::report_operators() {
  std::vector<OperatorReport> list;
  for (const auto& [id, entry] : pools_) {
    for (const auto& [func, op] : entry.operators) {
      if (!op.pending) list.push_back(report(entry, op));
    }
  }
  return list;
}

OperatorReport PoolTable::report(const Entry& entry, const OwnOperator& op) const {
  OperatorReport report = op.report;
  report.communicator = entry.request.communicator;
  report.job_name = entry.request.job_name;
  report.counters = entry.worker->with_lock([&] { return *op.counters; });
  return report;
}

}  // namespace unisono::slots
