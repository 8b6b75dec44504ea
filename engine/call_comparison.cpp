#include "engine/call_comparison.hpp"

#include <algorithm>

#include "core/footprint.hpp"
#include "core/text.hpp"
#include "core/user_op.hpp"
#include "engine/recorded_exchange.hpp"

namespace unisono::cclo {
namespace {

/// `own`: a call of this process, which alone knows what its numbers of operators stand for.
std::string words(const SeenCall& call, bool with_algorithm, bool own) {
  std::string text(operation_of(call));
  if (call.dtype == Datatype::kNone) return text;
  // The count of a program tells it from others, and means nothing to its user.
  text += "(";
  if (call.collective != Collective::kProgram) text += std::to_string(call.count) + " ";
  text += name_of(call.dtype);
  if (call.func != Func::kNone) text += ", " + (own ? operator_name(call.func) : operator_name_elsewhere(call.func));
  if (call.has_root()) text += ", root " + std::to_string(call.peer);
  if (call.in_place) text += ", in place";
  if (call.post_scale != 1) text += formatted(", post_scale {}", call.post_scale);
  if (with_algorithm && call.algorithm != nullptr) text += std::string(", ") + call.algorithm->name;
  return text + ")";
}

const SeenCall* find(const SeenCommunicator& of, std::uint32_t sequence) {
  for (const SeenCall& call : of.calls) {
    if (call.collective_of_all() && call.sequence == sequence) return &call;
  }
  return nullptr;
}

/// What all ranks of a call say alike.
SeenCall common(SeenCall call) {
  if (in_place_at_root(call.collective)) call.in_place = false;
  if (counts_at_root(call.collective)) call.count = 0;
  return call;
}

/// What a rank did at a place where two differ; null: it has left without a call there.
std::string doing(std::uint32_t rank, const SeenCall* call, bool with_algorithm, bool own) {
  return "rank " + std::to_string(rank) +
         (call != nullptr ? " called " + words(*call, with_algorithm, own) : " has left without this call");
}

CallDifference difference(const SeenCommunicator& first, const SeenCall* one, const SeenCommunicator& second,
                          const SeenCall* other) {
  const SeenCall& named = one != nullptr ? *one : *other;
  const bool alike =
      one != nullptr && other != nullptr && words(common(*one), false, false) == words(common(*other), false, false);
  std::string text = doing(first.rank, one, alike, true) + ", " + doing(second.rank, other, alike, false);
  if (alike && words(common(*one), true, false) == words(common(*other), true, false)) {
    text +=
        "; what differs is the algorithm that was named, its radix, the operator of the user, or a digit of "
        "post_scale";
  }
  return {named.sequence, std::string(operation_of(named)), text};
}

}  // namespace

std::optional<SeenCommunicator> recorded(const Poe& poe, std::uint32_t endpoint, std::uint32_t number,
                                         std::uint16_t epoch) {
  const CommunicatorRecord* records = poe.records(endpoint);
  if (records == nullptr) return std::nullopt;
  for (std::uint32_t i = 0; i < kRecordedCommunicators; ++i) {
    if (!is_of(records[i], number, epoch)) continue;
    if (auto seen = read(records[i]); seen && seen->number == number && seen->epoch == epoch) return seen;
  }
  return std::nullopt;
}

std::optional<CallDifference> first_difference(const SeenCommunicator& first, const SeenCommunicator& second) {
  for (const SeenCall& call : first.calls) {
    if (!call.collective_of_all()) continue;
    const SeenCall* other = find(second, call.sequence);
    if (other != nullptr && other->signature != call.signature) return difference(first, &call, second, other);
  }
  if (second.left) {
    if (const SeenCall* more = find(first, second.left->calls)) return difference(first, more, second, nullptr);
  }
  if (first.left) {
    if (const SeenCall* more = find(second, first.left->calls)) return difference(first, nullptr, second, more);
  }
  const bool both_left = first.left && second.left;
  if (!both_left || (first.left->calls == second.left->calls && first.left->digest == second.left->digest)) return {};
  const auto total = [](const SeenCommunicator& of) {
    return "rank " + std::to_string(of.rank) + " has made " + std::to_string(of.left->calls);
  };
  return CallDifference{std::min(first.left->calls, second.left->calls), "collective",
                        total(first) + " collective calls, " + total(second) + ", and one before the last " +
                            std::to_string(kRecordedCalls) + " differs"};
}

}  // namespace unisono::cclo
