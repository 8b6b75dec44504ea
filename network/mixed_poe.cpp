#include "network/mixed_poe.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono {

namespace {

/// As long as nothing has been asked of the network there can only be newcomers: they are looked for once in so many
/// rounds, and whenever a sleep ends.
constexpr std::uint32_t kIdleRounds = 256;
/// After so many looks without news of the network the next ones come so many rounds or so much later, while a
/// companion is busy.
constexpr std::uint32_t kQuietLooks = 16;
constexpr std::uint32_t kRoundsBeside = 4;
constexpr std::chrono::microseconds kLongestUnlooked{200};

}  // namespace

MixedPoe::MixedPoe(std::uint32_t self, std::vector<Seat> seats, std::unique_ptr<shm::ShmPoe> host,
                   std::unique_ptr<Network> network, bool crowded)
    : self_(self),
      seats_(std::move(seats)),
      memory_(host->segment()),
      network_(std::move(network)),
      host_(std::move(host)),
      crowded_(crowded) {
  for (std::uint32_t endpoint = 0; endpoint < size(); ++endpoint) {
    if (is_here(endpoint)) talkers_.push_back(endpoint);
  }
  here_ = talkers_.size();
  host_->parking().listen(network_->descriptor());
  NativeCounters& counted = memory_->counters(host_->self());
  network_->show_refused(counted.words[static_cast<std::size_t>(NativeCounter::kStrangersRefused)]);
  if (crowded) host_->parking().make_way();
  shm::EndpointBlock& own = host_->segment()->endpoint(host_->self());
  std::uint64_t name = 0;
  const char* const way = network_->way_to(self_);  // as to all others, as long as none has chosen otherwise
  std::memcpy(&name, way, std::min(sizeof name, std::strlen(way)));
  own.network.store(name, std::memory_order_relaxed);
  own.seat.store(self_ | std::uint64_t{size()} << 32U, std::memory_order_release);
}

const Seat& MixedPoe::seat(std::uint32_t endpoint) const {
  if (endpoint < seats_.size()) return seats_[endpoint];
  throw Error(ErrorCode::kInternal, formatted("peer {} in a job of {} endpoints", endpoint, seats_.size()));
}

std::uint32_t MixedPoe::max_payload(Lane lane) const {
  return std::min(host_->max_payload(lane), network_->max_payload(lane));
}

std::byte* MixedPoe::reserve(std::uint32_t peer, Lane lane, std::uint32_t bytes) {
  const Seat& to = seat(peer);
  return is_here(peer) ? host_->reserve(to.position, lane, bytes) : network_->reserve(peer, lane, bytes);
}

void MixedPoe::commit(std::uint32_t peer, Lane lane, const Header& header) {
  const Seat& to = seat(peer);
  if (is_here(peer)) {
    host_->commit(to.position, lane, header);
  } else {
    network_->commit(peer, lane, header);
  }
}

bool MixedPoe::send(std::uint32_t peer, Lane lane, const Header& header, std::span<const std::byte> payload) {
  const Seat& to = seat(peer);
  return is_here(peer) ? host_->send(to.position, lane, header, payload) : network_->send(peer, lane, header, payload);
}

bool MixedPoe::takes_loans(std::uint32_t peer) const { return !is_here(peer) && network_->takes_loans(peer); }

Sent MixedPoe::lend(std::uint32_t peer, std::span<const Header> headers, const std::byte* payload) {
  return network_->lend(peer, headers, payload);
}

bool MixedPoe::lends(std::uint32_t peer) const { return !is_here(peer) && network_->lends(peer); }

std::optional<std::uint32_t> MixedPoe::settle() { return network_->settle(); }

bool MixedPoe::takes_writes(std::uint32_t peer) const { return !is_here(peer) && network_->takes_writes(peer); }

std::optional<Reach> MixedPoe::show(std::uint32_t peer, std::span<std::byte> memory) {
  return network_->show(peer, memory);
}

void MixedPoe::hide(std::uint32_t peer, const Reach& reach, bool written) { network_->hide(peer, reach, written); }

bool MixedPoe::write(std::uint32_t peer, const Reach& reach, std::uint64_t offset, const Header& done,
                     std::span<const std::byte> payload, Ticket& ticket) {
  return network_->write(peer, reach, offset, done, payload, ticket);
}

bool MixedPoe::done(std::uint32_t peer, Ticket ticket) const { return network_->done(peer, ticket); }

void MixedPoe::withdraw(std::uint32_t peer, Ticket ticket) { network_->withdraw(peer, ticket); }

bool MixedPoe::peek(std::uint32_t peer, Lane lane, Incoming& incoming) {
  const Seat& from = seat(peer);
  return is_here(peer) ? host_->peek(from.position, lane, incoming) : network_->peek(peer, lane, incoming);
}

void MixedPoe::release(std::uint32_t peer, Lane lane) {
  const Seat& from = seat(peer);
  if (is_here(peer)) {
    host_->release(from.position, lane);
  } else {
    network_->release(peer, lane);
  }
}

std::optional<std::span<const std::uint32_t>> MixedPoe::talkers() {
  talkers_.resize(here_);
  network_->add_talkers(talkers_);
  return talkers_;
}

/// The companion first, and the network beside it only now and then, once it has been quiet: each look is a call of the
/// system.
bool MixedPoe::looks_at_network() {
  ++rounds_;
  if (!network_->in_use()) return rounds_ % kIdleRounds == 0;
  if (companion_ == nullptr || quiet_ < kQuietLooks || !companion_->busy()) return true;
  return rounds_ % kRoundsBeside == 0 || now() - looked_at_ >= kLongestUnlooked;
}

bool MixedPoe::polls_network() {
  if (companion_ != nullptr) looked_at_ = now();
  const bool news = network_->poll();
  quiet_ = news ? 0 : quiet_ + 1;
  return news;
}

bool MixedPoe::poll() {
  const bool came = companion_ != nullptr && companion_->poll();
  if (!(looks_at_network() && polls_network()) && !came) return false;
  came_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool MixedPoe::attach(Companion* companion) {
  if (!both_) {
    both_ = std::make_unique<tcp::Watch>();
    both_->set(network_->descriptor(), 0, EPOLLIN, network_watched_);
    host_->parking().listen(both_->descriptor());
  }
  if (companion_ != nullptr) both_->set(companion_->descriptor(), 1, 0, companion_watched_);
  companion_ = companion;
  if (companion_ != nullptr) both_->set(companion_->descriptor(), 1, EPOLLIN, companion_watched_);
  return true;
}

std::uint32_t MixedPoe::activity() const { return host_->activity() + came_.load(std::memory_order_relaxed); }

// The network is polled by the engine only, under its lock. Here it just ends the sleep.
void MixedPoe::wait(std::uint32_t seen, std::chrono::microseconds at_most) {
  if (activity() != seen || at_most.count() <= 0) return;
  const auto now = shm::Parking::Clock::now();
  const auto longest =
      std::chrono::duration_cast<std::chrono::microseconds>(shm::Parking::Clock::time_point::max() - now);
  const auto deadline = at_most >= longest ? shm::Parking::Clock::time_point::max() : now + at_most;
  bool over = false;
  host_->await([&] { return over || activity() != seen; },
               [&] {
                 over = true;
                 return false;
               },
               deadline, shm::ShmPoe::Manner::kForeground, false);
}

Poe::Liveness MixedPoe::liveness(std::uint32_t peer) {
  const Seat& of = seat(peer);
  return is_here(peer) ? host_->liveness(of.position) : network_->liveness(peer);
}

Poe::Fate MixedPoe::fate(std::uint32_t peer) {
  const Seat& of = seat(peer);
  return is_here(peer) ? host_->fate(of.position) : network_->fate(peer);
}

std::optional<std::uint32_t> MixedPoe::in_shared_memory(std::uint32_t endpoint) const {
  const Seat& of = seat(endpoint);
  if (!is_here(endpoint)) return std::nullopt;
  return of.position;
}

const char* MixedPoe::way_to(std::uint32_t peer) const {
  seat(peer);
  return is_here(peer) ? "shm" : network_->way_to(peer);
}

std::string MixedPoe::describe(std::uint32_t peer) const {
  if (peer >= size()) return formatted("endpoint {} (none such)", peer);
  const Seat& of = seats_[peer];
  if (is_here(peer)) return formatted("endpoint {} (pid {})", peer, of.pid);
  return formatted("endpoint {} (pid {} on host {})", peer, of.pid, of.host_name);
}

std::string MixedPoe::condition(std::uint32_t peer) const {
  if (peer >= size()) return {};
  return is_here(peer) ? host_->condition(seats_[peer].position) : network_->condition(peer);
}

CommunicatorRecord* MixedPoe::records(std::uint32_t endpoint) const {
  return endpoint < size() && is_here(endpoint) ? host_->records(seats_[endpoint].position) : nullptr;
}

NativeCounters* MixedPoe::counters(std::uint32_t endpoint) const {
  return endpoint < size() && is_here(endpoint) ? host_->counters(seats_[endpoint].position) : nullptr;
}

}  // namespace unisono
