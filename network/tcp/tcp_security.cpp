// TLS from the network's side: whether all have it, when a session has agreed on it, and what it holds back.
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/tcp/card.hpp"
#include "network/tcp/tcp_network.hpp"

namespace unisono::tcp {

// A card may have been altered on its way, so nobody goes by it: each end of a connection does as it was told itself.
// But all find the same cards, and say the same of two that differ.
void TcpNetwork::check_security(const NetworkMembers& members) {
  const auto who = [&](std::size_t endpoint) {
    return formatted("endpoint {} on {} {}", endpoint, members.hosts[endpoint],
                     decode_card(members.cards[endpoint]).tls ? "encrypts its connections by TLS"
                                                              : "does not encrypt its connections");
  };
  std::optional<std::size_t> first;
  bool encrypts = false;
  for (std::size_t i = 0; i < members.cards.size(); ++i) {
    if (members.cards[i].empty()) continue;
    const bool tls = decode_card(members.cards[i]).tls;
    if (!first) encrypts = tls;
    first = first.value_or(i);
    if (tls == encrypts) continue;
    throw Error(ErrorCode::kBootstrap,
                formatted("{}, and {}: set UNISONO_TLS alike on all ranks", who(*first), who(i)));
  }
}

bool TcpNetwork::secure(Strand& strand) {
  Connection& connection = strand.connection;
  if (connection.state() != Connection::State::kSecuring) return false;
  if (!connection.secure()) {
    watch_strand(strand);
    return false;
  }
  news_ = true;
  if (connection.state() == Connection::State::kOpen) return true;
  conclude(*sessions_[strand.peer]);
  return false;
}

void TcpNetwork::tell_unread(Strand& strand) {
  if (!strand.connection.holds() || std::exchange(strand.unread, true)) return;
  unread_.push_back(&strand);
  watch_.set_timer(Clock::time_point{});
}

bool TcpNetwork::poll_unread() {
  bool news = false;
  for (Strand* const strand : std::exchange(unread_, {})) {
    strand->unread = false;
    news |= serve(*strand);
  }
  pass_deadlines(Clock::now());
  return news;
}

}  // namespace unisono::tcp
