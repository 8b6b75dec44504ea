// The call queue, as far as ranks call differently: how that is found out, and what is said of it.
#include <algorithm>

#include "core/footprint.hpp"
#include "core/text.hpp"
#include "core/user_op.hpp"
#include "engine/call_queue.hpp"
#include "engine/communicators.hpp"
#include "engine/dmp.hpp"
#include "engine/fast_path.hpp"
#include "engine/flight_report.hpp"
#include "engine/kernel_run.hpp"
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

/// How long a rank that has seen a mismatch waits for the other side to say what it called.
constexpr std::chrono::milliseconds kMismatchPatience{1000};
/// How long a call waits before it looks at the flight records of those that it waits for, and how long between looks.
constexpr std::chrono::milliseconds kComparePatience{100};

}  // namespace

void CallQueue::mismatch(CallState& call, std::uint32_t peer) {
  if (call.finished || call.mismatch_waits || compare(call, peer)) return;
  Communicator& communicator = *call.communicator;
  call.mismatch_peer = peer;
  if (communicator.hardware_peers) {  // which cannot say what they called
    throw Error(ErrorCode::kMismatchedCall, mismatch_text(call));
  }
  if (blocks_.communicators->seen(communicator, peer, call.sequence)) {
    fail(call, ErrorCode::kMismatchedCall, mismatch_text(call));
    return;
  }
  call.mismatch_waits = true;
  call.mismatch_until = blocks_.poe->now() + kMismatchPatience;
  Header header = blocks_.tx->header(call, peer, MessageType::kControl);
  header.tag = static_cast<std::uint32_t>(Control::kMismatch);
  header.offset = 1;
  blocks_.tx->control(communicator, peer, header,
                      arguments(call.call, call.algorithm, call.operation, call.post_scale));
}

/// What is known of a peer whose message is none of this call, once no difference of the two has been seen.
std::string CallQueue::mismatch_text(const CallState& call) const {
  const Communicator& communicator = *call.communicator;
  const std::string own = arguments(call.call, call.algorithm, call.operation, call.post_scale);
  const std::string peer = "rank " + std::to_string(call.mismatch_peer) + " called ";
  if (!communicator.hardware_peers && blocks_.communicators->seen(communicator, call.mismatch_peer, call.sequence)) {
    return peer + own + ", as this rank (" + std::to_string(communicator.rank) + ") did; " + left_over_text(call);
  }
  return peer + "something else; this rank (" + std::to_string(communicator.rank) + ") called " + own;
}

/// Ends the call if this rank's calls and those of a peer are seen to differ, in this call or in one before it.
bool CallQueue::compare(CallState& call, std::uint32_t peer) {
  Communicator& communicator = *call.communicator;
  if (call.space != CallState::Space::kCollective || communicator.hardware_peers) return false;
  const std::optional<CallDifference> differs = blocks_.communicators->difference(communicator, peer);
  if (!differs) return false;
  std::string text = describe(communicator, *differs);
  if (differs->sequence != call.sequence) text += " (found by " + describe(call) + ")";
  finish(call, ErrorCode::kMismatchedCall, text);
  blocks_.communicators->revoke(communicator, ErrorCode::kMismatchedCall, text, true);
  return true;
}

/// A call that has waited for a while looks whether the ranks that it waits for are in the same call.
bool CallQueue::compare_awaited(CallState& call, Clock::time_point now) {
  if (!call.started || call.space != CallState::Space::kCollective || call.mismatch_waits) return false;
  if (now - call.submitted < kComparePatience || now < call.compare_next) return false;
  call.compare_next = now + kComparePatience;
  std::vector<std::uint32_t> awaited;
  Dmp::waiting_for(call, [&](std::uint32_t rank, const std::string&) { awaited.push_back(rank); });
  if (std::any_of(awaited.begin(), awaited.end(), [&](std::uint32_t rank) { return compare(call, rank); })) return true;
  return awaits_in_vain(call, awaited);
}

/// Of a call whose counts the root alone knows, nothing tells that two ranks count differently where one of them has
/// nothing to send: a rank that waits for one that has ended this call waits in vain. What such a rank has sent before
/// can be seen when its record says so, and has been looked at by the next time.
bool CallQueue::awaits_in_vain(CallState& call, std::span<const std::uint32_t> awaited) {
  if (!counts_at_root(call.call.collective) || blocks_.poe->shared_memory() == nullptr) return false;
  const std::uint32_t before = std::exchange(call.ended_elsewhere, CallState::kNobody);
  // The root has the counts of all at the begin of the params, and every other rank shows its own in its record.
  const bool counts = call.communicator->rank == call.call.root && call.params.size() >= call.communicator->size &&
                      records_own_count(call);
  for (const std::uint32_t rank : awaited) {
    const std::optional<SeenCall> seen = blocks_.communicators->seen(*call.communicator, rank, call.sequence);
    if (seen && counts && seen->count != call.params[rank]) {
      fail(call, ErrorCode::kMismatchedCall,
           counts_text(call, rank) + ", and " + std::to_string(call.params[rank]) + " as the root has it");
      return true;
    }
    if (!seen || seen->state != RecordedState::kEnded) continue;
    if (rank == before) {
      fail(call, ErrorCode::kMismatchedCall,
           "rank " + std::to_string(rank) + " has ended this call, in which this rank still waits for it; " +
               counts_text(call, rank));
      return true;
    }
    call.ended_elsewhere = rank;
  }
  return false;
}

void CallQueue::left_over(Communicator& communicator, std::uint32_t peer, const Header& header) {
  const std::uint32_t sequence = header.sequence;
  const PastCall& past = communicator.history[sequence % communicator.history.size()];
  if (communicator.revoked || communicator.hardware_peers || !past.valid || past.sequence != sequence) return;
  // Of another call it is the peer that finds out, or has: it has something to wait for.
  const bool counts = facts_of(past.call.collective).vectors || past.operation != nullptr;
  if (!counts || !signatures_agree(header.signature, past.signature)) return;
  const std::string text = std::string(past.operation != nullptr ? past.operation : name_of(past.call.collective)) +
                           " (" + communicator.title() + ", rank " + std::to_string(communicator.rank) + ", sequence " +
                           std::to_string(sequence) + "): rank " + std::to_string(peer) +
                           " sends a message, and this rank, which has ended the call, awaits none; " +
                           (counts_at_root(past.call.collective)
                                ? "they have given different counts for the block of rank " +
                                      std::to_string(communicator.rank == past.call.root ? peer : communicator.rank)
                                : "the counts that they have given do not agree");
  blocks_.communicators->revoke(communicator, ErrorCode::kMismatchedCall, text, true);
}

bool CallQueue::counts_by_rank(const CallState& call) {
  return facts_of(call.call.collective).vectors || call.operation != nullptr;
}

std::string CallQueue::counts_text(const CallState& call, std::uint32_t peer, std::uint64_t came,
                                   std::uint64_t awaited) const {
  return "rank " + std::to_string(peer) + " sends " + std::to_string(came) + " bytes where this rank awaits " +
         std::to_string(awaited) + "; " + counts_text(call, peer);
}

/// Whether the count in a gatherv's or scatterv's record is that of the rank's own block. An algorithm that needs the
/// sum of all counts has that sum in its call, and so in the record, on every rank alike.
bool CallQueue::records_own_count(const CallState& call) {
  if (call.communicator->hardware_peers) return false;
  Call unknown = call.call;
  unknown.count = kUnknownCount;
  return call.algorithm != nullptr && (call.algorithm->admits == nullptr || call.algorithm->admits(unknown));
}

/// That this rank and a peer count differently; of a gatherv or scatterv, one of them is the root.
std::string CallQueue::counts_text(const CallState& call, std::uint32_t peer) const {
  const std::uint32_t own = call.communicator->rank;
  if (!counts_at_root(call.call.collective)) {
    return "the counts that ranks " + std::to_string(std::min(own, peer)) + " and " +
           std::to_string(std::max(own, peer)) + " have given do not agree";
  }
  const bool at_root = own == call.call.root;
  const std::optional<SeenCall> seen = blocks_.communicators->seen(*call.communicator, peer, call.sequence);
  const std::uint32_t other = at_root ? peer : own;
  std::string text = "rank " + std::to_string(other) + " and the root, rank " + std::to_string(call.call.root) +
                     ", have given different counts for the block of rank " + std::to_string(other);
  if (!records_own_count(call)) return text;
  if (!at_root) return text + ": that of rank " + std::to_string(other) + " is " + std::to_string(call.call.count);
  if (!seen) return text;
  return text + ": that of rank " + std::to_string(other) + " is " + std::to_string(seen->count);
}

/// Why what comes from a rank that called the same is none of this call's.
std::string CallQueue::left_over_text(const CallState& call) {
  return counts_by_rank(call) ? "the counts that they have given, in this call or in one before it, do not agree"
                              : "something of an earlier call was left over: the counts given to it do not agree";
}

bool CallQueue::compare_all(CallState& call) {
  const Communicator& communicator = *call.communicator;
  for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
    if (rank != communicator.rank && compare(call, rank)) return true;
  }
  return false;
}

void CallQueue::on_mismatch(Communicator& communicator, std::uint32_t peer, const Header& header,
                            const std::string& text) {
  PastCall past = communicator.history[header.sequence % communicator.history.size()];
  const auto [plan, launched] = communicator.plans->past(header.sequence);
  if (plan != nullptr && !(past.valid && past.sequence == header.sequence)) {
    past = {true, header.sequence, launched, plan->plain.algorithm, 0, nullptr, plan->post_scale};
  }
  const bool made = past.valid && past.sequence == header.sequence;
  const std::string own = made ? arguments(past.call, past.algorithm, past.operation, past.post_scale)
                               : "something that is no longer known";
  const bool entered = static_cast<std::int32_t>(header.sequence - communicator.order->next()) < 0;
  if (header.offset == 1 && entered) {
    Header answer = blocks_.tx->header(communicator, peer, MessageType::kControl);
    answer.tag = static_cast<std::uint32_t>(Control::kMismatch);
    answer.sequence = header.sequence;
    blocks_.tx->control(communicator, peer, answer, own);
  }
  CallState* call = find(communicator, header.sequence);
  if (call == nullptr) return;
  fail(*call, ErrorCode::kMismatchedCall,
       "rank " + std::to_string(peer) + " called " + text + "; this rank (" + std::to_string(communicator.rank) +
           ") called " + own + (text == own ? "; " + left_over_text(*call) : ""));
}

std::string CallQueue::describe(const CallState& call) {
  if (call.kernel && call.call.collective == Collective::kNop) {
    return formatted("kernel {} (rank {})", call.kernel->name(), call.communicator->rank);
  }
  const char* operation = call.operation != nullptr ? call.operation : name_of(call.call.collective);
  std::string text = std::string(call.probe ? "probe" : operation) + " (" + call.communicator->title() + ", rank " +
                     std::to_string(call.communicator->rank);
  if (call.space == CallState::Space::kCollective) text += ", sequence " + std::to_string(call.sequence);
  if (call.space == CallState::Space::kPointToPoint) {
    text += call.wanted.any_source ? std::string(", any source") : ", peer " + std::to_string(call.call.root);
    text += call.wanted.any_tag ? std::string(", any tag") : ", tag " + std::to_string(call.tag);
  }
  if (call.kernel) {
    text += std::string(", by ") + call.kernel->name();
  } else if (call.algorithm != nullptr && !call.probe) {
    text += std::string(", algorithm ") + call.algorithm->name;
  }
  return text + ")";
}

std::string CallQueue::describe(const Communicator& communicator, const CallDifference& difference) {
  return difference.call + " (" + communicator.title() + ", rank " + std::to_string(communicator.rank) + ", sequence " +
         std::to_string(difference.sequence) + "): the ranks' calls differ: " + difference.text;
}

std::string CallQueue::arguments(const Call& call, const Algorithm* algorithm, const char* operation,
                                 double post_scale) {
  // A program of the library has in its count what tells it from others.
  if (operation != nullptr) return std::string(operation) + "(" + name_of(call.dtype) + ")";
  std::string text = name_of(call.collective);
  if (call.dtype == Datatype::kNone) return text;
  const CollectiveFacts facts = facts_of(call.collective);
  text += "(";
  if (!facts.vectors || call.count != 0) text += std::to_string(call.count) + " ";
  text += name_of(call.dtype);
  if (call.func != Func::kNone) text += ", " + operator_name(call.func);
  if (facts.rooted || facts.kind != CallKind::kCollective) text += ", root " + std::to_string(call.root);
  if (call.in_place) text += ", in place";
  if (post_scale != 1) text += formatted(", post_scale {}", post_scale);
  if (algorithm != nullptr) text += std::string(", ") + algorithm->name;
  return text + ")";
}

}  // namespace unisono::cclo
