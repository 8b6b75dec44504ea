// What comes to an endpoint.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "network/ofi/ofi_network.hpp"

namespace unisono::ofi {

namespace {

constexpr std::size_t kAtOnce = 32;
/// Completions in one poll: the thread that polls has other things to do.
constexpr std::size_t kMostInOnePoll = 256;

}  // namespace

bool OfiNetwork::take_completions() {
  std::array<Completion, kAtOnce> completions;
  std::size_t taken = 0;
  for (;;) {
    const std::size_t count = endpoint_->read(completions);
    for (std::size_t i = 0; i < count; ++i) take(completions[i]);
    taken += count;
    if (count < kAtOnce || taken >= kMostInOnePoll) break;
  }
  if (receives_posted_ + receives_held_ < endpoint_->most_receives()) post_receives();
  return taken != 0;
}

void OfiNetwork::take(const Completion& completion) {
  if (completion.block == nullptr) return;
  Block& block = *completion.block;
  if (block.use == Block::Use::kReceive) {
    --receives_posted_;
    if (completion.fault == 0) {
      take_frame(block, completion.bytes);
    } else {
      // Others have ended while they came: what their sender was will be found by sending to it.
      if (completion.too_long) refuse("is longer than any of Unisono");
      receives_.give_back(&block);
    }
    return;
  }
  Session& session = *sessions_[block.peer];
  --session.posted;
  if (block.use == Block::Use::kMessage || block.use == Block::Use::kWrite) --messages_posted_;
  const bool greeting = block.use == Block::Use::kGreeting;
  if (greeting) session.greeting_posted = false;
  if (greeting && completion.fault == 0) {
    session.no_way_since = {};
    session.obstacle.clear();
  }
  if (block.use == Block::Use::kWord) session.word_posted = false;
  if (block.use == Block::Use::kWrite) take_written(session, block);
  give_back(&block);
  if (completion.fault != 0) {
    if (!greeting || !awaits_way(session, completion.fault)) fail(session, completion.fault);
  } else if (session.handshake.owes_proof() || session.owes_credit() || session.owes_bye || session.owes_bye_seen ||
             !session.owes_stop.empty() || !session.owes_stopped.empty()) {
    make_busy(session);
  }
}

void OfiNetwork::post_receives() {
  while (receives_posted_ + receives_held_ < endpoint_->most_receives()) {
    Block* const block = receives_.take();
    block->use = Block::Use::kReceive;
    if (const Posted posted = endpoint_->post_receive(*block, kLongestFrame); !posted.done()) {
      receives_.give_back(block);
      if (posted.later) return;
      throw Error(ErrorCode::kBootstrap, formatted("provider {} takes no memory to receive into: {}", card_.provider,
                                                   endpoint_->text_of(posted.fault)));
    }
    ++receives_posted_;
  }
}

void OfiNetwork::give_back(Block* block) {
  if (block->use == Block::Use::kReceive) {
    // Held by a message until now; goes back to the provider with the next poll.
    --receives_held_;
    receives_.give_back(block);
  } else if (block->use == Block::Use::kCopy) {
    (block->large ? large_in_ : small_in_).give_back(block);
  } else {
    (block->large ? large_out_ : small_out_).give_back(block);
  }
}

void OfiNetwork::refuse(const std::string& fault) {
  refusals_.add();
  if (!logs(LogLevel::kWarn) || !refusals_.may_log(RefusalCount::Clock::now())) return;
  log(LogLevel::kWarn, formatted("endpoint {} has refused a datagram of provider {}: it {}; {} so far. Strangers can "
                                 "reach this endpoint: keep them away, for instance by a firewall or a partition key",
                                 members_.self, card_.provider, fault, refusals_.count()));
}

void OfiNetwork::take_frame(Block& block, std::uint32_t bytes) {
  const std::span<const std::byte> came(block.frame(), std::min<std::size_t>(bytes, kLongestFrame));
  bool kept = false;
  if (const auto frame = read_frame(came); frame) {
    Session* const session = frame->prefix.from < sessions_.size() ? sessions_[frame->prefix.from].get() : nullptr;
    if (session == nullptr || !session->handshake.proven() || frame->prefix.token != session->handshake.token_in()) {
      refuse(formatted("says that it is of endpoint {}, and does not have its session's token", frame->prefix.from));
    } else if (frame->prefix.kind == FrameKind::kStop || frame->prefix.kind == FrameKind::kStopped) {
      // Also of a session that has ended: who may still write is asked.
      take_stop(*session, *frame);
    } else if (session->state == Session::State::kOpen) {
      kept = take_message(*session, *frame, block, static_cast<std::uint32_t>(came.size()));
    }
  } else {
    take_greeting(came);
  }
  if (!kept) receives_.give_back(&block);
}

void OfiNetwork::take_greeting(std::span<const std::byte> bytes) {
  const auto hello = read_hello(bytes);
  const auto proof = hello ? std::nullopt : read_proof(bytes);
  if (!hello && !proof) return refuse("is none of Unisono");
  const Greeting& head = hello ? hello->head : proof->head;
  const auto size = static_cast<std::uint32_t>(sessions_.size());
  if (const std::string fault = fault_of(head, members_.self, size); !fault.empty()) return refuse(fault);
  if (members_.cards[head.from].empty()) return refuse(formatted("says that it is endpoint {}", head.from));
  if (sessions_[head.from] == nullptr) {
    // What was not asked for can be no answer.
    if (proof) return refuse("answers a question that was not asked");
    make_session(head.from);
  }
  Session& session = *sessions_[head.from];
  if (session.state != Session::State::kOpen) return;
  const std::string fault = hello ? session.handshake.got(*hello) : session.handshake.got(*proof);
  if (!fault.empty()) return refuse(formatted("says that it is endpoint {}, and {}", head.from, fault));
  make_busy(session);
  news_ = true;  // the session is nearer: see trial
  if (session.handshake.other_version().empty()) return;
  // It finds the same in the proof that it gets now.
  push_greetings(session, Clock::now());
  die(session, formatted("on {} {}", host_of(session.peer), session.handshake.other_version()));
}

bool OfiNetwork::take_message(Session& session, const Frame& frame, Block& block, std::uint32_t bytes) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (!session.out[lane].released(frame.prefix.released[lane])) {
      corrupt(session, "it has released more messages than it got");
      return false;
    }
    if (session.wanted[lane] != 0 && session.out[lane].has_room(session.wanted[lane] - 1)) {
      session.wanted[lane] = 0;
      news_ = true;
    }
  }
  if (frame.prefix.kind == FrameKind::kBye) take_bye(session, frame);
  if (frame.prefix.kind == FrameKind::kByeSeen) session.bye_seen = true;
  if (frame.prefix.kind != FrameKind::kMessage) return false;

  if (const std::string fault = fault_of(frame.words, frame.payload.size()); !fault.empty()) {
    corrupt(session, fault);
    return false;
  }
  const Header header = decode_header(frame.words);
  const std::size_t lane = (header.session_sequence & kControlMark) == 0 ? 0 : 1;
  const std::uint32_t sequence = header.session_sequence & kSequenceMask;
  const bool large = header.segment_bytes > kSmallPayload;
  if (const std::string fault = session.in[lane].refusal(sequence, large); !fault.empty()) {
    corrupt(session, fault);
    return false;
  }
  news_ = true;
  // Long messages stay where they came, as long as enough receives are left for all; short ones are sooner copied than
  // a whole receive is withheld for them.
  const bool stays = large && 2 * (receives_held_ + 1) <= endpoint_->most_receives();
  Block* place = &block;
  if (stays) {
    ++receives_held_;
  } else {
    place = large ? large_in_.take() : small_in_.take();
    std::memcpy(place->frame(), block.frame(), bytes);
    place->use = Block::Use::kCopy;
  }
  place->large = large;
  place->bytes = bytes;
  session.in[lane].put(sequence, place);
  see_whether_left(session);
  return stays;
}

void OfiNetwork::take_bye(Session& session, const Frame& frame) {
  session.bye_came = true;
  session.totals = frame.totals;
  see_whether_left(session);
}

void OfiNetwork::see_whether_left(Session& session) {
  if (!session.bye_came || session.in[0].came() != session.totals[0] || session.in[1].came() != session.totals[1]) {
    return;
  }
  session.state = Session::State::kLeft;
  drop_messages(session);
  session.owes_bye_seen = true;
  news_ = true;
  make_busy(session);
}

}  // namespace unisono::ofi
