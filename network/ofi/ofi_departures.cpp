// What goes from an endpoint.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/ofi/ofi_network.hpp"
#include "network/tcp/shortage.hpp"

namespace unisono::ofi {

namespace {

/// A hello that was not answered is said again after so long.
constexpr std::chrono::milliseconds kBetweenHellos{250};
/// Data messages to a peer that are with the provider at once: control messages that come later go behind these.
constexpr std::uint32_t kMostPosted = 32;

}  // namespace

void OfiNetwork::make_busy(Session& session) {
  if (session.busy) return;
  session.busy = true;
  busy_.push_back(&session);
  // A thread that sleeps does not know of it.
  if (alarm_.settled()) alarm_.rouse();
}

void OfiNetwork::push_all(Clock::time_point now) {
  // From the last one: a session that has no more to send is taken out.
  for (std::size_t i = busy_.size(); i > 0; --i) {
    Session& session = *busy_[i - 1];
    if (!push(session, now)) continue;
    session.busy = false;
    busy_[i - 1] = busy_.back();
    busy_.pop_back();
  }
}

bool OfiNetwork::push(Session& session, Clock::time_point now) {
  if (session.broken) return true;
  bool done = push_stops(session);
  if (session.state == Session::State::kDead) return done || session.broken;
  done = push_greetings(session, now) && done;
  if (session.may_send()) {
    done = push_messages(session, 1) && push_messages(session, 0) && done;
    done = push_writes(session) && done;
  }
  if (session.handshake.proven() && session.state != Session::State::kDead) done = push_words(session) && done;
  return done || session.state == Session::State::kDead;
}

bool OfiNetwork::push_greetings(Session& session, Clock::time_point now) {
  if (session.state != Session::State::kOpen) return true;
  Handshake& handshake = session.handshake;
  const bool asks = !handshake.confirmed() && session.hello_at <= now;
  if (!asks && !handshake.owes_proof()) return handshake.confirmed();
  // One at a time: a stranger that makes up questions does not fill the provider with answers.
  if (session.greeting_posted) return false;
  Block* const block = small_out_.take();
  block->use = Block::Use::kGreeting;
  block->large = false;
  const bool proves = handshake.owes_proof();
  if (proves) {
    const Proof proof = handshake.proof();
    block->bytes = sizeof proof;
    std::memcpy(block->frame(), &proof, sizeof proof);
  } else {
    const Hello hello = handshake.hello();
    block->bytes = sizeof hello;
    std::memcpy(block->frame(), &hello, sizeof hello);
  }
  if (!post(session, block)) {
    small_out_.give_back(block);
    return false;
  }
  session.greeting_posted = true;
  if (proves) {
    handshake.proof_sent();
  } else {
    session.hello_at = now + kBetweenHellos;
  }
  return handshake.confirmed();
}

bool OfiNetwork::push_messages(Session& session, std::size_t lane) {
  Outbox& out = session.out[lane];
  for (Block* block = out.first(); block != nullptr; block = out.first()) {
    if (lane == 0 && session.posted >= kMostPosted) return false;
    write_prefix(block->frame(), FrameKind::kMessage, members_.self, session.handshake.token_out(), session.released());
    if (!post(session, block)) return false;
    for (Inbox& in : session.in) in.reported();
    out.posted();
    ++messages_posted_;
  }
  return true;
}

bool OfiNetwork::push_words(Session& session) {
  const auto say = [&](FrameKind kind) { return !session.word_posted && post_word(session, kind); };
  if (session.owes_bye_seen) {
    if (!say(FrameKind::kByeSeen)) return false;
    session.owes_bye_seen = false;
  }
  if (!session.may_send()) return !session.owes_bye || session.state != Session::State::kOpen;
  if (session.owes_bye) {
    if (session.has_messages() || !session.writes.empty() || !say(FrameKind::kBye)) return false;
    session.owes_bye = false;
    session.bye_posted = true;
  }
  return !session.owes_credit() || say(FrameKind::kCredit);
}

bool OfiNetwork::post_word(Session& session, FrameKind kind, std::uint64_t key) {
  Block* const block = small_out_.take();
  block->use = Block::Use::kWord;
  block->large = false;
  block->bytes = sizeof(Prefix);
  write_prefix(block->frame(), kind, members_.self, session.handshake.token_out(), session.released());
  if (kind == FrameKind::kBye) {
    const Totals totals{session.out[0].committed(), session.out[1].committed()};
    std::memcpy(block->frame() + block->bytes, totals.data(), sizeof totals);
    block->bytes += static_cast<std::uint32_t>(sizeof totals);
  } else if (kind == FrameKind::kStop || kind == FrameKind::kStopped) {
    std::memcpy(block->frame() + block->bytes, &key, sizeof key);
    block->bytes += static_cast<std::uint32_t>(sizeof key);
  }
  if (!post(session, block)) {
    small_out_.give_back(block);
    return false;
  }
  for (Inbox& in : session.in) in.reported();
  session.word_posted = true;
  return true;
}

bool OfiNetwork::post(Session& session, Block* block) {
  block->peer = session.peer;
  const Posted posted = endpoint_->post_send(session.address, *block);
  if (posted.done()) {
    ++session.posted;
    return true;
  }
  if (posted.later) return false;
  if (block->use != Block::Use::kGreeting || !awaits_way(session, posted.fault)) fail(session, posted.fault);
  return false;
}

bool OfiNetwork::awaits_way(Session& session, int fault) {
  if (session.state != Session::State::kOpen) return false;
  const Clock::time_point now = Clock::now();
  // What this host lacks says nothing of the peer. Providers tell of missing ports as the call did that they made.
  session.obstacle = tcp::shortage_of_ports(fault == EADDRNOTAVAIL ? EADDRINUSE : fault);
  if (session.obstacle.empty()) {
    if (fault != ENETUNREACH && fault != EHOSTUNREACH && fault != ENETDOWN && fault != ETIMEDOUT) return false;
    if (session.no_way_since == Clock::time_point{}) session.no_way_since = now;
    if (now - session.no_way_since >= patience_for_ways_) return false;
  }
  // Whatever was lost of the handshake, a new hello brings it.
  session.hello_at = now + kBetweenHellos;
  make_busy(session);
  return true;
}

void OfiNetwork::fail(Session& session, int fault) {
  session.broken = true;
  session.owes_stop.clear();
  session.owes_stopped.clear();
  shown_.all_stopped(session.peer);
  die(session, formatted("cannot be reached by {}: {}", card_.provider, endpoint_->text_of(fault)));
}

void OfiNetwork::die(Session& session, std::string cause) {
  if (session.state != Session::State::kOpen) return;
  session.state = Session::State::kDead;
  session.cause = std::move(cause);
  news_ = true;
  drop_messages(session);
}

void OfiNetwork::drop_messages(Session& session) {
  session.writes.for_each([&](Write& write) {
    drop(write);
    return true;
  });
  session.writes.trim();
  for (Outbox& out : session.out) {
    for (Block* block = out.first(); block != nullptr; block = out.first()) {
      out.posted();
      give_back(block);
    }
  }
}

void OfiNetwork::corrupt(Session& session, const std::string& fault) {
  session.fault = fault;
  die(session, formatted("sent what is no message: {}", fault));
}

}  // namespace unisono::ofi
