// Writes to peers' memory, and memory here that peers write.
#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "network/ofi/ofi_network.hpp"

namespace unisono::ofi {

namespace {

/// A question that was not answered is asked again after so long: a peer that has died may have taken the first one.
constexpr std::chrono::milliseconds kBetweenQuestions{20};
/// A peer that is dead, as another network knows, does not answer. What it had sent may still come, and end the
/// connection.
constexpr std::chrono::milliseconds kPatienceWithTheDead{100};

}  // namespace

// ------------------------------------------------------------------------------------------ memory here

bool OfiNetwork::takes_writes(std::uint32_t peer) const {
  if (longest_piece_ == 0 || peer >= sessions_.size() || sessions_[peer] == nullptr) return false;
  return sessions_[peer]->writes_both && sessions_[peer]->may_send();
}

std::optional<Reach> OfiNetwork::show(std::uint32_t peer, std::span<std::byte> memory) {
  check_process();
  if (memory.empty() || !takes_writes(peer)) return std::nullopt;
  const auto lease = registrations_.take(memory.data(), memory.size(), Access::kTarget);
  if (!lease) return std::nullopt;
  // A provider may give a key again while a peer may still be at memory that had it before.
  if (shown_.has(lease->piece.key)) {
    registrations_.close(*lease);
    return std::nullopt;
  }
  shown_.add(peer, *lease);
  return Reach{lease->piece.address, lease->piece.key, memory.size()};
}

void OfiNetwork::hide(std::uint32_t peer, const Reach& reach, bool written) {
  check_process();
  if (!shown_.shows(peer, reach.key)) return;
  Session& session = *sessions_[peer];
  if (written) return shown_.written(reach.key);
  if (session.broken) return shown_.remove(reach.key);
  shown_.stop(reach.key);
  session.owes_stop.push_back(reach.key);
  make_busy(session);
}

std::optional<std::uint32_t> OfiNetwork::settle() {
  if (!shown_.any_stopping() && withdrawn_ == 0) return std::nullopt;
  check_process();
  const Clock::time_point begin = Clock::now();
  const Clock::time_point deadline = begin + patience_to_settle_;
  Clock::time_point ask_again = Clock::now() + kBetweenQuestions;
  for (;;) {
    take_completions();
    const Clock::time_point now = Clock::now();
    push_all(now);
    bool waits = withdrawn_ != 0;
    const bool asks = now >= ask_again;
    if (asks) ask_again = now + kBetweenQuestions;
    shown_.for_each_stopping([&](std::uint32_t peer, std::uint64_t key) {
      Session& session = *sessions_[peer];
      const bool lives = session.state == Session::State::kOpen || now < begin + kPatienceWithTheDead;
      waits = waits || (lives && !session.silent);
      if (!asks || session.silent || !session.owes_stop.empty()) return;
      session.owes_stop.push_back(key);
      make_busy(session);
    });
    if (!waits || now >= deadline) break;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  for (const std::uint32_t peer : in_use_) {
    sessions_[peer]->writes.for_each([&](Write& write) {
      if (std::exchange(write.withdrawn, false)) sessions_[peer]->silent = true;
      return true;
    });
  }
  withdrawn_ = 0;
  shown_.for_each_stopping([&](std::uint32_t peer, std::uint64_t /*key*/) { sessions_[peer]->silent = true; });
  return shown_.give_up();
}

void OfiNetwork::take_stop(Session& session, const Frame& frame) {
  session.silent = false;
  if (frame.prefix.kind == FrameKind::kStopped) {
    shown_.stopped(session.peer, frame.key);
    return;
  }
  // It may have asked twice.
  auto& owed = session.owes_stopped;
  if (std::find(owed.begin(), owed.end(), frame.key) != owed.end()) return;
  if (session.owes_stopped.size() >= kMostStops) return corrupt(session, "it has hidden more memory than it had shown");
  session.hidden.add(frame.key);
  session.owes_stopped.push_back(frame.key);
  session.writes.for_each([&](Write& write) {
    if (write.key == frame.key) drop(write);
    return true;
  });
  session.writes.trim();
  make_busy(session);
}

// --------------------------------------------------------------------------------------- a peer's memory

bool OfiNetwork::write(std::uint32_t peer, const Reach& reach, std::uint64_t offset, const Header& done,
                       std::span<const std::byte> payload, Ticket& ticket) {
  check_process();
  if (payload.empty() || !takes_writes(peer)) return false;
  Session& to = *sessions_[peer];
  // Of what was hidden meanwhile the word may have come already.
  take_completions();
  if (to.state != Session::State::kOpen || to.writes.full() || to.hidden.has(reach.key)) return false;
  if (offset > reach.bytes || payload.size() > reach.bytes - offset) return false;
  std::optional<Registrations::Lease> source;
  if (endpoint_->registers_sources()) {
    source = registrations_.take(const_cast<std::byte*>(payload.data()), payload.size(), Access::kSource);
    if (!source) return false;
  }
  Write& write = to.writes.begin();
  write.address = reach.address + offset;
  write.key = reach.key;
  write.from = payload.data();
  write.bytes = payload.size();
  write.source = source;
  write.done = done;
  ticket = write.ticket;
  if (!push_writes(to)) make_busy(to);
  return true;
}

bool OfiNetwork::done(std::uint32_t peer, Ticket ticket) const {
  return peer >= sessions_.size() || sessions_[peer] == nullptr || sessions_[peer]->writes.over(ticket);
}

void OfiNetwork::withdraw(std::uint32_t peer, Ticket ticket) {
  if (done(peer, ticket)) return;
  Session& session = *sessions_[peer];
  Write& write = session.writes.at(ticket);
  // Of who is dead or does not answer nothing is waited for: its memory is only read.
  if (!write.withdrawn && session.state == Session::State::kOpen && !session.silent) {
    write.withdrawn = true;
    ++withdrawn_;
  }
  drop(write);
  session.writes.trim();
}

bool OfiNetwork::push_writes(Session& session) {
  bool all = true;
  session.writes.for_each([&](Write& write) {
    while (!write.dropped && write.posted < write.bytes) {
      if (session.pieces >= kMostPieces || !post_piece(session, write)) {
        all = false;
        return false;
      }
    }
    if (session.state != Session::State::kOpen) return false;
    if (write.dropped || write.announced) return true;
    if (write.pieces != 0 && !endpoint_->orders_writes()) return true;
    if (!session.out[index_of(Lane::kData)].has_room(0)) {
      all = false;
      return false;
    }
    all = commit_done(session, write) && all;
    write.announced = true;
    end_if_over(write);
    return true;
  });
  session.writes.trim();
  return all || session.state != Session::State::kOpen;
}

bool OfiNetwork::post_piece(Session& session, Write& write) {
  const std::uint64_t bytes = std::min(longest_piece_, write.bytes - write.posted);
  Block* const block = small_out_.take();
  block->use = Block::Use::kWrite;
  block->large = false;
  block->peer = session.peer;
  block->number = write.ticket;
  void* const descriptor = write.source ? write.source->piece.descriptor : nullptr;
  const Posted posted = endpoint_->post_write(
      session.address, *block, {write.from + write.posted, bytes, descriptor, write.address + write.posted, write.key});
  if (!posted.done()) {
    small_out_.give_back(block);
    if (!posted.later) fail(session, posted.fault);
    return false;
  }
  write.posted += bytes;
  ++write.pieces;
  ++session.pieces;
  ++session.posted;
  ++messages_posted_;
  return true;
}

bool OfiNetwork::commit_done(Session& session, const Write& write) {
  const std::size_t index = index_of(Lane::kData);
  Block* const block = small_out_.take();
  block->use = Block::Use::kMessage;
  block->large = false;
  const HeaderWords words = seal(write.done, index, session.out[index].committed());
  std::memcpy(block->frame() + sizeof(Prefix), words.data(), sizeof words);
  block->bytes = static_cast<std::uint32_t>(kFrameHead);
  session.out[index].commit(block, false);
  return push_messages(session, index);
}

void OfiNetwork::take_written(Session& session, const Block& block) {
  --session.pieces;
  Write& write = session.writes.at(block.number);
  --write.pieces;
  end_if_over(write);
  session.writes.trim();
  make_busy(session);
}

void OfiNetwork::drop(Write& write) {
  write.dropped = true;
  end_if_over(write);
}

void OfiNetwork::end_if_over(Write& write) {
  if (write.over || write.pieces != 0 || !(write.dropped || (write.announced && write.posted == write.bytes))) return;
  write.over = true;
  if (write.source) registrations_.give_back(*write.source);
  if (write.withdrawn && withdrawn_ != 0) --withdrawn_;
  news_ = true;  // its memory is free, and there may be room for another one
}

bool OfiNetwork::push_stops(Session& session) {
  if (session.owes_stop.empty() && session.owes_stopped.empty()) return true;
  if (!session.handshake.proven()) return true;
  while (!session.owes_stop.empty()) {
    if (session.word_posted || !post_word(session, FrameKind::kStop, session.owes_stop.back())) return false;
    session.owes_stop.pop_back();
  }
  // An answer stands for those that are not at it any more.
  for (std::size_t i = session.owes_stopped.size(); i > 0; --i) {
    const std::uint64_t key = session.owes_stopped[i - 1];
    if (session.writes.writes_with(key)) continue;
    if (session.word_posted || !post_word(session, FrameKind::kStopped, key)) return false;
    session.owes_stopped[i - 1] = session.owes_stopped.back();
    session.owes_stopped.pop_back();
  }
  return session.owes_stopped.empty();
}

}  // namespace unisono::ofi
