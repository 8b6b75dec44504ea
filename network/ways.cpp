#include "network/ways.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/process.hpp"
#include "core/text.hpp"

namespace unisono {

namespace {

constexpr std::chrono::seconds kPatienceAtEnd{1};
/// What a dead peer's data way may still hold is taken in so many polls.
constexpr int kLastPolls = 2048;
/// The lifeline is looked at once in so many rounds where it carries no data, more seldom beside news of others, but
/// always after so long: who polls now and then must not wait for many rounds.
constexpr unsigned kRounds = 4;
constexpr unsigned kRoundsBesideNews = 16;
constexpr std::chrono::microseconds kLongestUnlooked{200};

struct NamedCard {
  std::string name;
  std::vector<std::byte> card;
};

/// The mark, then of each network its name and its card, with a byte and two bytes for their lengths.
void append(std::vector<std::byte>& to, const std::string& name, const std::vector<std::byte>& card) {
  to.push_back(static_cast<std::byte>(name.size()));
  for (const char c : name) to.push_back(static_cast<std::byte>(c));
  to.push_back(static_cast<std::byte>(card.size() & 0xffU));
  to.push_back(static_cast<std::byte>(card.size() >> 8U));
  to.insert(to.end(), card.begin(), card.end());
}

/// Nothing if it is no such card.
std::optional<std::vector<NamedCard>> cards_in(std::span<const std::byte> bytes) {
  std::vector<NamedCard> cards;
  const auto take = [&](std::size_t count) -> std::optional<std::span<const std::byte>> {
    if (count > bytes.size()) return std::nullopt;
    const auto piece = bytes.first(count);
    bytes = bytes.subspan(count);
    return piece;
  };
  const auto mark = take(1);
  if (!mark || (*mark)[0] != Network::kSeveralCards) return std::nullopt;
  while (!bytes.empty()) {
    const auto name_bytes = take(1);
    const auto name = take(static_cast<std::size_t>((*name_bytes)[0]));
    const auto length = name ? take(2) : std::nullopt;
    if (!length) return std::nullopt;
    const auto card = take(static_cast<std::size_t>((*length)[0]) | static_cast<std::size_t>((*length)[1]) << 8U);
    if (!card) return std::nullopt;
    NamedCard& found = cards.emplace_back();
    for (const std::byte b : *name) found.name.push_back(static_cast<char>(b));
    found.card.assign(card->begin(), card->end());
  }
  return cards;
}

}  // namespace

Ways::Ways(std::unique_ptr<Network> lifeline, std::vector<std::unique_ptr<Network>> others,
           const std::vector<std::string>& order, std::chrono::milliseconds last_patience)
    : lifeline_(std::move(lifeline)),
      others_(std::move(others)),
      last_patience_(last_patience),
      fork_generation_(fork_generation()),
      lifeline_carries_(others_.empty()) {
  for (const std::string& name : order) {
    if (name == lifeline_->name()) order_.push_back(lifeline_.get());
    for (const auto& other : others_) {
      if (name == other->name()) order_.push_back(other.get());
    }
  }
  if (order_.empty()) throw Error(ErrorCode::kInternal, "no network is left to carry data");
  watched_.resize(1 + others_.size());
}

Ways::~Ways() {
  if (fork_generation() != fork_generation_) return;
  try {
    const Clock::time_point deadline = Clock::now() + kPatienceAtEnd;
    const auto waits = [&] {
      for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        const Peer& one = peers_[peer];
        if (!one.over && one.out != nullptr && one.out != lifeline_.get() && !one.out->delivered(peer)) return true;
      }
      return false;
    };
    // The lifeline is looked at, too: nobody waits for a peer that has left meanwhile.
    while (waits() && Clock::now() < deadline) {
      poll();
      pollfd sleep{watch_.descriptor(), POLLIN, 0};
      ::poll(&sleep, 1, 1);
    }
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
      if (peers_[peer].out != nullptr && !peers_[peer].out->delivered(peer)) end_data(peer);
    }
  } catch (const Error&) {
    // Peers will find that it is gone.
  }
  others_.clear();
}

std::vector<std::byte> Ways::card() const {
  std::vector<std::byte> card{kSeveralCards};
  append(card, lifeline_->name(), lifeline_->card());
  for (const auto& other : others_) append(card, other->name(), other->card());
  if (card.size() > kMostCardBytes) {
    throw Error(ErrorCode::kBootstrap, formatted("what peers must know to reach this endpoint by all its networks "
                                                 "takes {} bytes; a card has at most {}",
                                                 card.size(), kMostCardBytes));
  }
  return card;
}

void Ways::meet(NetworkMembers members) {
  const std::size_t size = members.cards.size();
  self_ = members.self;
  hosts_ = members.hosts;
  hosts_.resize(size, "?");
  peers_.resize(size);
  offered_.assign(size, std::vector<bool>(others_.size(), false));
  std::vector<NetworkMembers> each(1 + others_.size(), members);
  for (std::size_t endpoint = 0; endpoint < size; ++endpoint) {
    if (members.cards[endpoint].empty()) continue;
    const auto cards = cards_in(members.cards[endpoint]);
    // An endpoint that has only the lifeline gives only that card.
    for (std::size_t i = 0; cards && i < each.size(); ++i) {
      const std::string name = i == 0 ? lifeline_->name() : others_[i - 1]->name();
      const auto found = std::find_if(cards->begin(), cards->end(), [&](const auto& one) { return one.name == name; });
      each[i].cards[endpoint] = found == cards->end() ? std::vector<std::byte>{} : found->card;
      if (i != 0) offered_[endpoint][i - 1] = found != cards->end();
    }
    for (std::size_t i = 1; !cards && i < each.size(); ++i) each[i].cards[endpoint].clear();
    if (each[0].cards[endpoint].empty()) {
      throw Error(ErrorCode::kBootstrap, formatted("the card of endpoint {} on {} says nothing of {}, by which this "
                                                   "endpoint would know whether it lives",
                                                   endpoint, hosts_[endpoint], lifeline_->name()));
    }
  }
  lifeline_->meet(std::move(each[0]));
  watch_.set(lifeline_->descriptor(), 0, EPOLLIN, watched_[0]);
  for (std::size_t i = 0; i < others_.size(); ++i) {
    others_[i]->meet(std::move(each[i + 1]));
    watch_.set(others_[i]->descriptor(), i + 1, EPOLLIN, watched_[i + 1]);
  }
}

std::uint32_t Ways::max_payload(Lane lane) const {
  std::uint32_t least = lifeline_->max_payload(lane);
  for (const auto& other : others_) least = std::min(least, other->max_payload(lane));
  return least;
}

Ways::Peer& Ways::peer_of(std::uint32_t peer) {
  if (peer < peers_.size()) [[likely]]
    return peers_[peer];
  throw Error(ErrorCode::kInternal, formatted("peer {} in a job of {} endpoints", peer, peers_.size()));
}

bool Ways::offers(std::uint32_t peer, const Network& network) const {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    if (others_[i].get() == &network) return offered_[peer][i];
  }
  return true;
}

void Ways::go_on(std::uint32_t peer, const std::string& outcome) {
  Peer& one = peers_[peer];
  if (!one.tried.empty()) one.tried += "; ";
  one.tried += formatted("by {}: {}", order_[one.at]->name(), outcome);
  ++one.at;
  one.give_up_at = Clock::time_point::max();
}

bool Ways::choose(std::uint32_t peer, Clock::time_point now) {
  Peer& one = peers_[peer];
  for (;;) {
    if (one.over) return true;
    if (one.at == order_.size()) {
      lifeline_->end(peer,
                     formatted("on {} cannot be sent data from {}: tried {}", hosts_[peer], hosts_[self_], one.tried));
      end_data(peer);
      return true;
    }
    Network& way = *order_[one.at];
    if (&way == lifeline_.get()) {
      lifeline_carries_ = true;
      one.out = &way;
      return true;
    }
    if (!offers(peer, way)) {
      go_on(peer, "its endpoint does not have it");
      continue;
    }
    const Trial trial = way.trial(peer);
    const Trial reached = lifeline_->trial(peer);
    if (reached == Trial::kFailed) {
      end_data(peer);
      return true;
    }
    if (trial == Trial::kProven) {
      // Without a lifeline nobody could tell one who leaves from one who dies.
      if (reached != Trial::kProven) return false;
      one.out = &way;
      return true;
    }
    if (trial == Trial::kFailed) {
      const std::string cause = way.condition(peer);
      go_on(peer, cause.empty() ? "no session" : "it " + cause);
      continue;
    }
    // A peer that answers will be there soon; one that has not answered the lifeline may just be busy. If this process
    // lacks what it takes to call it, only another network helps.
    const bool last = one.at + 1 == order_.size();
    if (reached != Trial::kProven || trial == Trial::kAnswered || (last && !way.condition(peer).empty())) {
      one.give_up_at = Clock::time_point::max();
      return false;
    }
    const std::chrono::milliseconds patience = last ? last_patience_ : kPatience;
    if (one.give_up_at == Clock::time_point::max()) one.give_up_at = now + patience;
    if (now < one.give_up_at) return false;
    const std::string cause = formatted("{} did not answer within {} ms", way.places(peer), patience.count());
    way.end(peer, cause);
    go_on(peer, cause);
  }
}

Network* Ways::way_out(std::uint32_t peer) {
  Peer& one = peer_of(peer);
  if (one.out != nullptr || one.over) [[likely]]
    return one.over ? nullptr : one.out;
  if (one.choosing) return nullptr;
  if (choose(peer, Clock::now())) return one.over ? nullptr : one.out;
  one.choosing = true;
  choosing_.push_back(peer);
  set_timer();
  return nullptr;
}

std::byte* Ways::reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) {
  if (lane == Lane::kControl) return lifeline_->reserve(peer, lane, bytes);
  Network* const way = way_out(peer);
  return way == nullptr ? nullptr : way->reserve(peer, lane, bytes);
}

void Ways::commit(std::uint32_t peer, Lane lane, const Header& header) {
  if (lane == Lane::kControl) return lifeline_->commit(peer, lane, header);
  Network* const way = peer_of(peer).out;
  if (way == nullptr) {
    if (peer_of(peer).over) return;  // it ended meanwhile: nobody will get the message
    throw Error(ErrorCode::kInternal, "a message was committed for which no memory had been reserved");
  }
  way->commit(peer, lane, header);
}

bool Ways::send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) {
  if (lane == Lane::kControl) return lifeline_->send(peer, lane, header, payload);
  Network* const way = way_out(peer);
  return way != nullptr && way->send(peer, lane, header, payload);
}

bool Ways::takes_loans(std::uint32_t peer) const {
  return peer < peers_.size() && peers_[peer].out != nullptr && peers_[peer].out->takes_loans(peer);
}

Sent Ways::lend(std::uint32_t peer, std::span<const Header> headers, const std::byte* payload) {
  Network* const way = way_out(peer);
  return way == nullptr ? Sent::kNo : way->lend(peer, headers, payload);
}

bool Ways::lends(std::uint32_t peer) const {
  return peer < peers_.size() && peers_[peer].out != nullptr && peers_[peer].out->lends(peer);
}

std::optional<std::uint32_t> Ways::settle() {
  std::optional<std::uint32_t> writes = lifeline_->settle();
  for (const auto& other : others_) {
    const std::optional<std::uint32_t> peer = other->settle();
    if (!writes) writes = peer;
  }
  return writes;
}

Network* Ways::writer_to(std::uint32_t peer) const {
  if (peer >= peers_.size() || peers_[peer].over) return nullptr;
  for (const auto& other : others_) {
    if (other->takes_writes(peer)) return other.get();
  }
  return nullptr;
}

std::optional<Reach> Ways::show(std::uint32_t peer, std::span<std::byte> memory) {
  Network* const writer = writer_to(peer);
  return writer == nullptr ? std::nullopt : writer->show(peer, memory);
}

void Ways::hide(std::uint32_t peer, const Reach& reach, bool written) {
  for (const auto& other : others_) other->hide(peer, reach, written);
}

bool Ways::write(std::uint32_t peer, const Reach& reach, std::uint64_t offset, const Header& done,
                 std::span<const std::byte> payload, Ticket& ticket) {
  Network* const way = way_out(peer);
  return way != nullptr && way == writer_to(peer) && way->write(peer, reach, offset, done, payload, ticket);
}

bool Ways::done(std::uint32_t peer, Ticket ticket) const {
  return peer >= peers_.size() || peers_[peer].out == nullptr || peers_[peer].out->done(peer, ticket);
}

void Ways::withdraw(std::uint32_t peer, Ticket ticket) {
  if (peer < peers_.size() && peers_[peer].out != nullptr) peers_[peer].out->withdraw(peer, ticket);
}

bool Ways::peek(std::uint32_t peer, Lane lane, Incoming& incoming) {
  if (lane == Lane::kControl) return lifeline_->peek(peer, lane, incoming);
  if (peer >= peers_.size()) return false;
  Network*& in = peers_[peer].in;
  if (in != nullptr) [[likely]]
    return in->peek(peer, lane, incoming);
  // It is one of them, as the peer chooses.
  for (const auto& other : others_) {
    if (!other->peek(peer, lane, incoming)) continue;
    in = other.get();
    return true;
  }
  if (!lifeline_->peek(peer, lane, incoming)) return false;
  in = lifeline_.get();
  lifeline_carries_ = true;
  return true;
}

void Ways::release(std::uint32_t peer, Lane lane) {
  if (lane == Lane::kControl) return lifeline_->release(peer, lane);
  Network* const in = peer_of(peer).in;
  if (in == nullptr) throw Error(ErrorCode::kInternal, "a message was released that had not been looked at");
  in->release(peer, lane);
}

void Ways::land_in(Landings* landings) {
  lifeline_->land_in(landings);
  for (const auto& other : others_) other->land_in(landings);
}

void Ways::hold(bool holds) {
  looked_at_ = {};  // what is held goes with the next poll
  lifeline_->hold(holds);
  for (const auto& other : others_) other->hold(holds);
}

void Ways::add_talkers(std::vector<std::uint32_t>& peers) {
  lifeline_->add_talkers(peers);
  for (const auto& other : others_) other->add_talkers(peers);
}

bool Ways::poll() {
  bool news = false;
  for (const auto& other : others_) news = other->poll() || news;
  // Where data go by other networks the lifeline has little to say, and each look at it is a call of the system.
  const Clock::time_point now = Clock::now();
  const bool looks = lifeline_carries_ || !choosing_.empty() || ++unlooked_ >= (news ? kRoundsBesideNews : kRounds) ||
                     now - looked_at_ >= kLongestUnlooked;
  const bool signs = looks && lifeline_->poll();
  if (looks) {
    looked_at_ = now;
    unlooked_ = 0;
  }
  news = news || signs;
  if (signs) bury();
  if (!choosing_.empty() && (news || now >= next_look_)) {
    for (std::size_t i = choosing_.size(); i > 0; --i) {
      const std::uint32_t peer = choosing_[i - 1];
      if (!choose(peer, now)) continue;
      peers_[peer].choosing = false;
      choosing_.erase(choosing_.begin() + static_cast<std::ptrdiff_t>(i - 1));
      news_ = true;  // there may be room now
    }
    set_timer();
  }
  return std::exchange(news_, false) || news;
}

void Ways::set_timer() {
  next_look_ = Clock::time_point::max();
  for (const std::uint32_t peer : choosing_) next_look_ = std::min(next_look_, peers_[peer].give_up_at);
  watch_.set_timer(next_look_);
}

void Ways::bury() {
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
    const Peer& one = peers_[peer];
    const bool touched = one.out != nullptr || one.in != nullptr || one.choosing;
    if (!touched || one.over || lifeline_->trial(peer) != Trial::kFailed) continue;
    end_data(peer);
  }
}

void Ways::end_data(std::uint32_t peer) {
  Peer& one = peers_[peer];
  if (std::exchange(one.over, true)) return;
  for (const auto& other : others_) {
    // What it had sent may still lie in the kernel.
    for (int i = 0; i < kLastPolls && other->poll(); ++i) news_ = true;
    other->end(peer, "the peer has left or died");
  }
  news_ = true;
}

bool Ways::in_use() const {
  return lifeline_->in_use() ||
         std::any_of(others_.begin(), others_.end(), [](const auto& other) { return other->in_use(); });
}

bool Ways::has_output() const {
  return lifeline_->has_output() ||
         std::any_of(others_.begin(), others_.end(), [](const auto& other) { return other->has_output(); });
}

std::chrono::steady_clock::time_point Ways::output_due() const {
  auto due = lifeline_->output_due();
  for (const auto& other : others_) due = std::min(due, other->output_due());
  return due;
}

Poe::Liveness Ways::liveness(std::uint32_t peer) {
  const Poe::Liveness life = lifeline_->liveness(peer);
  if (peer == self_ || peer >= peers_.size()) return life;
  if (life != Poe::Liveness::kAlive) {
    if (!peers_[peer].over) end_data(peer);
    return life;
  }
  Network* const out = peers_[peer].out;
  if (out == nullptr || out == lifeline_.get() || out->liveness(peer) == Poe::Liveness::kAlive) return life;
  end(peer, out->condition(peer));
  return lifeline_->liveness(peer);
}

Poe::Fate Ways::fate(std::uint32_t peer) {
  // What the other networks know of it may end it.
  return liveness(peer) == Poe::Liveness::kAlive ? Poe::Fate::kUnknown : lifeline_->fate(peer);
}

void Ways::end(std::uint32_t peer, const std::string& cause) {
  peer_of(peer);
  lifeline_->end(peer, cause);
  end_data(peer);
}

std::string Ways::condition(std::uint32_t peer) const {
  std::string text = lifeline_->condition(peer);
  if (!text.empty() || peer >= peers_.size()) return text;
  // What is being tried.
  const Peer& one = peers_[peer];
  return one.choosing && one.at < order_.size() ? order_[one.at]->condition(peer) : text;
}

std::uint64_t Ways::refused() const {
  std::uint64_t sum = lifeline_->refused();
  for (const auto& other : others_) sum += other->refused();
  return sum;
}

void Ways::show_refused(std::atomic<std::uint64_t>& word) {
  lifeline_->show_refused(word);
  for (const auto& other : others_) other->show_refused(word);
}

bool Ways::delivered(std::uint32_t peer) const {
  return lifeline_->delivered(peer) &&
         std::all_of(others_.begin(), others_.end(), [&](const auto& other) { return other->delivered(peer); });
}

const char* Ways::way_to(std::uint32_t peer) const {
  if (peer >= peers_.size()) return name();
  if (peers_[peer].out != nullptr) return peers_[peer].out->way_to(peer);
  // Not chosen yet: what will be tried first.
  for (const Network* const way : order_) {
    if (offers(peer, *way)) return way->way_to(peer);
  }
  return name();
}

}  // namespace unisono
