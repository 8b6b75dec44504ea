// The call queue, as far as time brings something: deadlines, ranks that have died, questions to those that are late.
#include <algorithm>

#include "core/log.hpp"
#include "core/text.hpp"
#include "engine/call_queue.hpp"
#include "engine/dmp.hpp"
#include "engine/fast_path.hpp"
#include "engine/flight_report.hpp"
#include "engine/kernel_run.hpp"
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

/// How long a rank that is asked whether it has entered a call has to answer.
constexpr std::chrono::milliseconds kAnswerPatience{100};
/// Members of a communicator up to which all are asked.
constexpr std::uint32_t kAllAsked = 64;

std::string milliseconds(std::chrono::microseconds time) {
  const auto text = std::to_string(time.count() / 1000);
  return time.count() % 1000 == 0 ? text + " ms" : std::to_string(time.count()) + " us";
}

}  // namespace

Clock::time_point CallQueue::next_deadline() const {
  Clock::time_point next = Clock::time_point::max();
  for (const CallState* call : active_) {
    next = std::min(next, call->deadline);
    if (call->mismatch_waits) next = std::min(next, call->mismatch_until);
  }
  return next;
}

Clock::time_point CallQueue::next_event(CallId id) {
  const CallState* call = in_flight(id);
  if (call == nullptr) return Clock::time_point::max();
  Clock::time_point next =
      call->probed ? call->deadline : std::min(call->deadline, call->submitted + call->timeout / 2);
  if (call->mismatch_waits) next = std::min(next, call->mismatch_until);
  return next;
}

bool CallQueue::examine(Clock::time_point now) {
  if (++look_ == 0) look_ = 1;
  for (std::size_t i = 0; i < active_.size(); ++i) {  // NOLINT(modernize-loop-convert): the list may grow
    CallState& call = *active_[i];
    if (call.finished) continue;
    if (call.mismatch_waits && now >= call.mismatch_until) {
      fail(call, ErrorCode::kMismatchedCall, mismatch_text(call));
    } else {
      if (!call.probed && now - call.submitted > call.timeout / 2) probe(call, now);
      if (compare_awaited(call, now)) continue;
      if (now >= call.deadline) {
        if (call.streams && call.streams->moved != std::exchange(call.streams->moved_before, call.streams->moved)) {
          call.deadline = now + call.timeout;  // that of a stream bounds how long nothing moves
          continue;
        }
        if (compare_all(call)) continue;
        if (!call.warns) {
          fail(call, ErrorCode::kTimeout, phase(call, "timed out after " + milliseconds(call.timeout)));
          continue;
        }
        const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - call.submitted);
        log(LogLevel::kWarn, describe(call) + ": " + phase(call, "has waited for " + milliseconds(waited)));
        call.deadline = now + call.timeout;
      }
      if (!look_for_dead(call)) record_wait(call, now);
    }
  }
  const bool ended = !swept_;
  sweep();
  return ended;
}

/// Half-way to the deadline every rank is asked whether it has entered, so that the error can say who has not; in large
/// communicators those alone that are waited for, since nobody shall have sessions to thousands. A rank that is asked
/// has time to answer, however short the deadline and however late this is.
void CallQueue::probe(CallState& call, Clock::time_point now) {
  call.probed = true;
  if (call.space != CallState::Space::kCollective || !call.started) return;
  if (call.communicator->hardware_peers) return;  // which do not answer
  call.deadline = std::max(call.deadline, now + kAnswerPatience);
  Communicator& communicator = *call.communicator;
  for (const std::uint32_t peer : asked_of(call)) {
    Header header = blocks_.tx->header(call, peer, MessageType::kControl);
    header.tag = static_cast<std::uint32_t>(Control::kProbe);
    blocks_.tx->control(communicator, peer, header);
  }
}

/// Of whom it is to be found out whether they have entered the call, and is not known.
std::vector<std::uint32_t> CallQueue::asked_of(const CallState& call) {
  std::vector<std::uint32_t> ranks;
  const auto ask = [&](std::uint32_t rank) {
    if (rank != call.communicator->rank && !call.heard(rank)) ranks.push_back(rank);
  };
  if (call.communicator->size <= kAllAsked) {
    for (std::uint32_t rank = 0; rank < call.communicator->size; ++rank) ask(rank);
  } else {
    Dmp::waiting_for(call, [&](std::uint32_t rank, const std::string&) { ask(rank); });
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  }
  return ranks;
}

/// Tells in the flight record what a call waits for. One on the lanes of which a thread takes care tells it itself.
void CallQueue::record_wait(const CallState& call, Clock::time_point now) const {
  constexpr std::chrono::milliseconds kPatience{10};
  if (call.watched || call.finished || now - call.submitted < kPatience) return;
  std::string first = "is to follow another call";
  std::vector<std::uint32_t> awaited;
  if (const std::string kernel = awaited_streams(call); !kernel.empty()) {
    first = kernel;
  } else if (call.started) {
    first = "is at it";
    // A call that waits for any of several ranks does not wait for all of them.
    const bool anybody = Dmp::awaits_anybody(call);
    if (anybody) first = Dmp::awaited_message(call);
    Dmp::waiting_for(call, [&](std::uint32_t rank, const std::string& what) {
      if (anybody) return;
      if (awaited.empty()) first = what;
      awaited.push_back(rank);
    });
  }
  call.communicator->recorder->wait(call.mark, call.submitted, first.c_str(), awaited);
}

/// Says of a rank that has died, left or is out of reach that it is so; empty of one that is there.
std::string CallQueue::gone(CallState& call, std::uint32_t rank) {
  const std::uint32_t endpoint = call.communicator->peers.endpoint(rank);
  const Poe::Liveness liveness = blocks_.poe->liveness(endpoint);
  if (liveness == Poe::Liveness::kAlive) return {};
  // What it sent before it ended is still taken, and may have come since the network was last read: only
  // what has not come at a later look is missed.
  Peer& peer = call.communicator->peers[rank];
  if (peer.gone == 0) peer.gone = look_;
  if (peer.gone == look_) return {};
  const std::string who = "rank " + std::to_string(rank) + ", " + blocks_.poe->describe(endpoint);
  if (liveness != Poe::Liveness::kDead) return who + ", has left the job";
  // A network has words for it: what it has tried, or for how long nothing has come.
  const bool far = !blocks_.poe->in_shared_memory(endpoint);
  const std::string why = far ? blocks_.poe->condition(endpoint) : std::string();
  const bool vanished = far && blocks_.poe->fate(endpoint) == Poe::Fate::kVanished;
  return who + (vanished ? ", is out of reach" : ", has died") + (why.empty() ? "" : " (" + why + ")");
}

bool CallQueue::look_for_dead(CallState& call) {
  if (!call.started) return false;
  const bool anybody = Dmp::awaits_anybody(call);
  std::string text;
  bool all = true;
  bool alive = false;
  Dmp::waiting_for(call, [&](std::uint32_t rank, const std::string& what) {
    if (anybody ? alive : !text.empty()) return;
    const std::string words = gone(call, rank);
    all = all && !words.empty();
    if (words.empty()) {
      alive = blocks_.poe->liveness(call.communicator->peers.endpoint(rank)) == Poe::Liveness::kAlive;
    } else if (text.empty()) {
      text = anybody ? Dmp::awaited_message(call) + ", and no other rank is left to send one: " + words
                     : words + "; " + what;
    }
  });
  if (text.empty() || (anybody && !all)) return false;
  if (compare_all(call)) return true;  // it has left after other calls than this rank's
  fail(call, ErrorCode::kPeerDead, text);
  return true;
}

/// Goes on from `text`: what the call waits for, who has not come, and what these do instead.
std::string CallQueue::phase(const CallState& call, std::string text) const {
  const std::string kernel = awaited_streams(call);
  if (!kernel.empty()) text += ": " + kernel;
  if (!call.started && !kernel.empty()) return text;
  if (!call.started) {
    text += " before it began: it follows call";
    for (const CallId id : call.wait_for) text += " " + std::to_string(id);
    return text + " of this rank";
  }
  if (call.kernel) {
    const std::string waits = call.kernel->waits();
    text += ": " + (waits.empty() ? "the kernel has not ended" : waits);
    if (call.call.collective == Collective::kNop) return text;
  }
  int listed = 0;
  std::string missing;
  const bool anybody = Dmp::awaits_anybody(call);
  if (anybody) text += ": " + Dmp::awaited_message(call);
  Dmp::waiting_for(call, [&](std::uint32_t, const std::string& what) {
    if (!anybody && ++listed <= 4) text += (listed == 1 ? ": " : "; ") + what;
  });
  if (listed > 4) text += "; and " + std::to_string(listed - 4) + " more";
  if (call.call.collective == Collective::kRecv) {
    const Communicator& of = *call.communicator;
    const std::string kept = of.fast_path ? of.fast_path->unexpected_text() : of.matcher.unexpected_text();
    if (!kept.empty()) text += ". Messages that no receive has asked for: " + kept;
  }
  if (call.space == CallState::Space::kCollective) {
    constexpr std::size_t kMostNamed = 64;
    const std::vector<std::uint32_t> absent = asked_of(call);
    for (std::size_t i = 0; i < std::min(absent.size(), kMostNamed); ++i) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(absent[i]);
    }
    if (absent.size() > kMostNamed) missing += formatted(", and {} more", absent.size() - kMostNamed);
    const bool all_asked = call.communicator->size <= kAllAsked;
    if (!missing.empty()) {
      text += (all_asked ? ". Not arrived: rank " : ". Not arrived, of those that it waits for: rank ") + missing;
    } else {
      text += all_asked ? ". All ranks have entered the call" : ". All ranks that it waits for have entered the call";
    }
  }
  // What they do instead.
  const Communicator& communicator = *call.communicator;
  constexpr int kMost = 4;
  int reported = 0;
  for (std::uint32_t peer = 0; peer < communicator.size && reported < kMost; ++peer) {
    const bool absent = call.space == CallState::Space::kCollective
                            ? !call.heard(peer)
                            : anybody || (peer == call.call.root && peer < communicator.size);
    if (peer == communicator.rank || !absent) continue;
    const std::uint32_t endpoint = communicator.peers.endpoint(peer);
    const std::string what = doings(*blocks_.poe, endpoint, communicator.number, communicator.epoch);
    if (what.empty()) continue;
    text += ". Rank " + std::to_string(peer) + ", " + blocks_.poe->describe(endpoint) + ": " + what;
    ++reported;
  }
  for (const std::string& conclusion : standstill(*blocks_.poe)) text += ". " + conclusion;
  return text;
}

}  // namespace unisono::cclo
