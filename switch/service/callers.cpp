#include "switch/service/callers.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/address.hpp"
#include "network/tcp/socket.hpp"

namespace unisono::slots {

namespace {

using join::Clock;
using join::Descriptor;
using join::FrameKind;
using join::FrameReader;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// How long a connection may take to prove that it knows the secret.
constexpr seconds kPatience{10};
/// How long one may leave its answers unread.
constexpr seconds kUnread{10};
/// How long one that was refused may take to read why.
constexpr seconds kFarewell{1};
/// A host that does not answer any more is noticed after so long.
constexpr milliseconds kSilent{2000};
/// Bytes of answers that wait for a caller.
constexpr std::size_t kMostWaiting = std::size_t{2} * kMostControlBytes;
/// Frames that one caller is served before others have their turn.
constexpr int kFramesInTurn = 16;

template <class Body>
std::span<const std::byte> bytes_of(const Body& body) {
  return std::as_bytes(std::span(&body, 1));
}

/// Sets what every connection of a caller has.
void set_options(const Descriptor& connection) {
  const tcp::Socket same(dup(connection.get()));
  if (!same.valid()) return;
  tcp::set_options(same);
  tcp::set_patience(same, kSilent);
  // While something is under way to it, the system would else try for a quarter of an hour.
  const auto unread = static_cast<unsigned>(milliseconds(kUnread).count());
  setsockopt(same.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unread, sizeof unread);
}

}  // namespace

Callers::Callers(Descriptor listener, std::string secret, std::string name, CallersHandler& handler)
    : listener_(std::move(listener)), secret_(std::move(secret)), name_(std::move(name)), handler_(handler) {}

void Callers::watch(std::vector<pollfd>& watched) {
  const bool listens = Clock::now() >= listens_from_;
  watched.push_back({listens ? listener_.get() : -1, POLLIN, 0});
  for (const auto& [id, caller] : callers_) {
    const short in = caller.leaving ? 0 : POLLIN;
    const short out = caller.waiting.empty() ? 0 : POLLOUT;
    watched.push_back({caller.connection.get(), static_cast<short>(in | out), 0});
  }
}

join::Deadline Callers::deadline() const {
  join::Deadline next = join::Deadline::max();
  if (listens_from_ > Clock::now()) next = listens_from_;
  for (const auto& [id, caller] : callers_) {
    if (caller.timed()) next = std::min(next, caller.deadline);
  }
  return next;
}

void Callers::serve(std::span<const pollfd> watched) {
  // `watch` has seen the same callers, in the same order.
  std::size_t at = 1;
  for (auto& [id, caller] : callers_) {
    if (at >= watched.size()) break;
    const short ready = watched[at++].revents;
    if ((ready & POLLOUT) != 0) send(caller);
    if ((ready & ~POLLOUT) != 0 && !caller.leaving) hear(id, caller);
    if ((ready & (POLLERR | POLLHUP)) != 0 && caller.leaving) caller.ended = true;
  }
  const join::Deadline now = Clock::now();
  for (auto& [id, caller] : callers_) {
    if (caller.ended || !caller.timed() || now < caller.deadline) continue;
    if (!caller.leaving) ++counters_.slow;
    caller.ended = true;
  }
  accept_all();
  sweep();
}

void Callers::accept_all() {
  for (int i = 0; i < kFramesInTurn; ++i) {
    Descriptor connection;
    try {
      connection = join::accept_from(listener_);
    } catch (const Error&) {
      // No descriptor is left. Those who wait are served when one is.
      listens_from_ = Clock::now() + milliseconds(100);
      return;
    }
    if (!connection.valid()) return;
    ++counters_.accepted;
    const auto unproven = [](const auto& one) { return !one.second.proven && !one.second.ended; };
    if (static_cast<std::size_t>(std::count_if(callers_.begin(), callers_.end(), unproven)) >= kMostUnproven) {
      std::find_if(callers_.begin(), callers_.end(), unproven)->second.ended = true;  // the one that came first
      ++counters_.crowded;
    }
    set_options(connection);
    Caller& caller = callers_[next_++];
    caller.connection = std::move(connection);
    caller.deadline = Clock::now() + kPatience;
  }
}

void Callers::hear(CallerId id, Caller& caller) {
  for (int i = 0; i < kFramesInTurn && !caller.leaving && !caller.ended; ++i) {
    switch (caller.reader.read(caller.connection)) {
      case FrameReader::Progress::kMore:
        return;
      case FrameReader::Progress::kClosed:
        caller.ended = true;
        return;
      case FrameReader::Progress::kForeign:
        ++counters_.foreign;
        send_away(caller, formatted("the switch {} does not understand: {}", name_, caller.reader.fault()));
        return;
      case FrameReader::Progress::kComplete:
        break;
    }
    if (caller.proven) {
      ask(id, caller);
    } else if (caller.hello) {
      admit(caller);
    } else {
      challenge(caller);
    }
    caller.reader.restart();
  }
}

/// Answers a hello.
void Callers::challenge(Caller& caller) {
  join::Hello hello{};
  if (!caller.reader.body_as(FrameKind::kHello, hello)) {
    ++counters_.foreign;
    send_away(caller, formatted("the switch {} does not understand: a broken hello", name_));
    return;
  }
  if (hello.size != kControlVersion) {
    ++counters_.other_versions;
    send_away(caller, formatted("the switch {} speaks version {} of what is said to switches, this process version {}; "
                                "use one release of Unisono for both",
                                name_, kControlVersion, hello.size));
    return;
  }
  caller.hello = hello;
  fill_random(caller.nonce);
  const join::Challenge challenge{caller.nonce, proof_of_switch(bytes_of_text(secret_), hello, caller.nonce)};
  say(caller, FrameKind::kChallenge, bytes_of(challenge));
}

/// Makes a caller of one that has answered the challenge, if it knows the secret.
void Callers::admit(Caller& caller) {
  Digest proof{};
  if (!caller.reader.body_as(FrameKind::kProof, proof)) {
    ++counters_.foreign;
    send_away(caller, formatted("the switch {} does not understand: a broken proof", name_));
    return;
  }
  if (!equal(proof, proof_of_caller(bytes_of_text(secret_), *caller.hello, caller.nonce))) {
    ++counters_.wrong_secrets;
    send_away(caller, formatted("the secret is not that of the switch {}; give both the same secret file", name_));
    return;
  }
  if (proven() >= kMostProven) {
    ++counters_.crowded;
    send_away(caller, formatted("the switch {} has {} callers, which is the most that it takes; try again when jobs "
                                "have ended, or use another switch",
                                name_, kMostProven));
    return;
  }
  caller.proven = true;
  caller.reader.allow(kMostControlBytes);
  say(caller, FrameKind::kAll, packed(handler_.welcome()));
}

void Callers::ask(CallerId id, Caller& caller) {
  std::optional<ControlFrame> frame;
  if (caller.reader.kind() == FrameKind::kGive) frame = control_frame_in(caller.reader.body());
  if (!frame) {
    ++counters_.foreign;
    send_away(caller, formatted("the switch {} does not understand: a broken request", name_));
    return;
  }
  handler_.asked(id, *std::move(frame));
}

void Callers::say(Caller& caller, FrameKind kind, std::span<const std::byte> body) {
  if (caller.ended || caller.leaving) return;
  if (caller.waiting.empty()) caller.deadline = caller.proven ? Clock::now() + kUnread : caller.deadline;
  if (caller.waiting.size() - caller.sent + body.size() > kMostWaiting) {
    ++counters_.slow;
    caller.ended = true;
    return;
  }
  const join::FrameHead head{join::kFrameMagic, join::kProtocol, kind, static_cast<std::uint32_t>(body.size())};
  const auto begin = bytes_of(head);
  caller.waiting.insert(caller.waiting.end(), begin.begin(), begin.end());
  caller.waiting.insert(caller.waiting.end(), body.begin(), body.end());
  send(caller);
}

void Callers::send_away(Caller& caller, const std::string& text) {
  if (caller.ended || caller.leaving) return;
  say(caller, FrameKind::kRefused, bytes_of_text(text.substr(0, join::kMaxText)));
  caller.leaving = true;
  caller.deadline = Clock::now() + kFarewell;
  if (caller.waiting.empty()) caller.ended = true;
}

/// Sends what the system takes now.
void Callers::send(Caller& caller) {
  while (caller.sent < caller.waiting.size()) {
    const ssize_t done = ::send(caller.connection.get(), caller.waiting.data() + caller.sent,
                                caller.waiting.size() - caller.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) {
      caller.sent += static_cast<std::size_t>(done);
      if (caller.proven && !caller.leaving) caller.deadline = Clock::now() + kUnread;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) caller.ended = true;
    // One that reads slowly, but always something, must not have all kept that it was ever sent.
    if (2 * caller.sent > caller.waiting.size()) {
      caller.waiting.erase(caller.waiting.begin(), caller.waiting.begin() + static_cast<std::ptrdiff_t>(caller.sent));
      caller.sent = 0;
    }
    return;
  }
  caller.waiting.clear();
  caller.sent = 0;
  if (caller.leaving) caller.ended = true;
}

void Callers::answer(CallerId caller, const ControlFrame& frame) {
  const auto found = callers_.find(caller);
  if (found != callers_.end()) say(found->second, FrameKind::kAll, packed(frame));
}

void Callers::refuse(CallerId caller, const std::string& text) {
  const auto found = callers_.find(caller);
  if (found != callers_.end()) send_away(found->second, text);
}

bool Callers::all_sent() const {
  return std::all_of(callers_.begin(), callers_.end(),
                     [](const auto& one) { return one.second.waiting.empty() || one.second.ended; });
}

std::size_t Callers::proven() const {
  return static_cast<std::size_t>(std::count_if(
      callers_.begin(), callers_.end(), [](const auto& one) { return one.second.proven && !one.second.ended; }));
}

void Callers::sweep() {
  for (auto one = callers_.begin(); one != callers_.end();) {
    if (!one->second.ended) {
      ++one;
      continue;
    }
    const CallerId id = one->first;
    const bool proven = one->second.proven;
    one = callers_.erase(one);
    // It may say something to others; nobody is erased by that.
    if (proven) handler_.gone(id);
  }
}

}  // namespace unisono::slots
