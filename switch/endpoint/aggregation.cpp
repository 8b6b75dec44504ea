#include "switch/endpoint/aggregation.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "network/tcp/interfaces.hpp"
#include "platform/join/host.hpp"

namespace unisono::slots {

namespace {

/// How long the first rank of a communicator deals with switches.
constexpr std::chrono::seconds kPatience{5};
/// How long the others wait for what it says, at least.
constexpr std::chrono::seconds kForAll{4 * kPatience};
/// Communicators beside those that they are made for have these numbers.
constexpr std::uint32_t kShadows = 0x8000'0000;
/// While no call is carried, the socket is looked at once in so many rounds, and when something has woken the engine.
constexpr std::uint32_t kIdleRounds = 64;
/// So many rounds, and so long, there is no look at what comes to this rank alone, while results come by a group.
constexpr std::uint32_t kUnlookedRounds = 4;
constexpr std::chrono::microseconds kLongestUnlooked{200};
/// Bytes of a datagram for which there is room in any case.
constexpr std::size_t kLeastLongest = std::size_t{16} * 1024;
/// Freed communicators are kept for so many times the patience: a rank that lacks a result notices within one of them
/// that a switch is dead, and within another that the switch has freed the communicator, too.
constexpr int kPatiences = 3;
/// But not more of them: each keeps what this rank gave last.
constexpr std::size_t kMostFreed = 64;

}  // namespace

std::unique_ptr<Aggregation> Aggregation::make(NativeEngine& engine, Poe& poe,
                                               const std::function<AggregationSettings()>& settings) {
  if (!poe.attach(nullptr)) return nullptr;
  return std::unique_ptr<Aggregation>(new Aggregation(engine, poe, settings));
}

Aggregation::Aggregation(NativeEngine& engine, Poe& poe, const std::function<AggregationSettings()>& settings)
    : engine_(engine), poe_(poe) {
  try {
    settings_ = settings();
    const join::Deadline deadline = join::Clock::now() + kPatience;
    for (const std::string& text : settings_.addresses) {
      const std::optional<join::HostPort> where = join::parse_host_port(text);
      const std::optional<tcp::Address> address = tcp::parse_address(join::numeric_text_of(*where, deadline));
      if (!address) throw Error(ErrorCode::kBootstrap, formatted("the switch at {}: no address is known of it", text));
      places_.push_back({*address, tcp::scope_for(*address, tcp::own_addresses())});
    }
  } catch (const Error& error) {
    fault_ = error.what();
  }
  engine_.set_carrier(this);
}

Aggregation::~Aggregation() {
  engine_.set_carrier(nullptr);
  std::vector<std::uint32_t> shadows;
  engine_.with_lock([&] {
    for (const auto& [number, communicator] : communicators_) shadows.push_back(communicator->shape().shadow);
    for (const Freed& one : freed_) shadows.push_back(one.communicator->shape().shadow);
  });
  for (const std::uint32_t shadow : shadows) engine_.free_communicator(shadow);
  engine_.with_lock([&] {
    if (datagrams_) poe_.attach(nullptr);
    communicators_.clear();
    freed_.clear();
  });
  keeper_.reset();
}

void Aggregation::arrange_for(std::uint32_t communicator, std::uint16_t epoch,
                              std::span<const std::uint32_t> endpoints) {
  const std::uint32_t first_host = poe_.host_of(endpoints[0]);
  // One host's ranks have their memory in common, which no network is as fast as.
  if (std::all_of(endpoints.begin(), endpoints.end(), [&](auto one) { return poe_.host_of(one) == first_host; }))
    return;

  MemberCard mine;
  if (fault_.empty()) {
    mine = card_of(settings_, places_);
  } else {
    log(LogLevel::kWarn, "no calls are carried by switches: " + fault_);
  }
  // A switch that does not answer makes the first rank late, and is no reason for the communicator to fail.
  const std::chrono::microseconds timeout =
      std::max<std::chrono::microseconds>(engine_.state(communicator).timeout, kForAll);
  const auto call = [&](Collective collective, std::uint64_t bytes) {
    CallRequest request;
    request.communicator = communicator;
    request.timeout = timeout;
    request.call.collective = collective;
    request.call.dtype = Datatype::kByte;
    request.call.count = bytes;
    return request;
  };
  std::vector<MemberCard> cards(endpoints.size());
  CallRequest gather = call(Collective::kAllgather, sizeof mine);
  gather.src = {reinterpret_cast<std::byte*>(&mine), sizeof mine};
  gather.dst = {reinterpret_cast<std::byte*>(cards.data()), cards.size() * sizeof mine};
  engine_.run(gather);

  const bool first = engine_.rank(communicator) == 0;
  join::Blob words;
  if (first) words = packed(plan_for(communicator, epoch, cards));
  std::uint64_t length = words.size();
  CallRequest tell = call(Collective::kBcast, sizeof length);
  tell.dst = {reinterpret_cast<std::byte*>(&length), sizeof length};
  engine_.run(tell);
  words.resize(length);
  tell = call(Collective::kBcast, length);
  tell.dst = {words.data(), words.size()};
  engine_.run(tell);
  const std::optional<Plan> plan = plan_in(words, static_cast<std::uint32_t>(endpoints.size()));
  if (!plan) throw Error(ErrorCode::kInternal, "rank 0 says something else of its switches than expected");
  job_ = plan->job;
  knows_job_ = true;
  if (!plan->refusal.empty()) {
    if (first) {
      log(LogLevel::kWarn, formatted("communicator {} is not carried by switches: {}", communicator, plan->refusal));
    }
    return;
  }
  add(communicator, epoch, endpoints, *plan);
  if (first && logs(LogLevel::kInfo)) {
    log(LogLevel::kInfo,
        formatted("communicator {} ({} ranks) is carried by {}, {} slots of {} bytes, calls of up to {} bytes",
                  communicator, endpoints.size(), carrier_of(communicator), plan->pools[0].slots,
                  plan->pools[0].payload_bytes, plan->up_to_bytes));
  }
}

Plan Aggregation::plan_for(std::uint32_t communicator, std::uint16_t epoch, const std::vector<MemberCard>& cards) {
  Wanted wanted;
  wanted.communicator = communicator;
  wanted.epoch = epoch;
  if (!knows_job_) fill_random(job_);
  wanted.job = job_;
  wanted.job_name =
      formatted("{} (process {} on {})", program_invocation_short_name, getpid(), join::this_host("").name);
  if (!keeper_) keeper_ = std::make_unique<Keeper>(settings_.addresses, settings_.secret);
  return arrange(settings_, *keeper_, wanted, cards, join::Clock::now() + kPatience);
}

/// Under the lock.
void Aggregation::open_socket(std::size_t longest) {
  if (datagrams_) return;
  datagrams_ = std::make_unique<Datagrams>(0, std::max(longest, kLeastLongest), settings_.impairment);
  watch_.set(datagrams_->descriptor(), 0, EPOLLIN, watched_);
  poe_.attach(this);
}

/// Under the lock. Without the group results come to this rank alone, when it asks for them.
void Aggregation::join_group(const PlannedPool::Leaf& leaf, std::size_t longest) {
  if (leaf.group.empty() || groups_.contains(leaf.group)) return;
  Group& group = groups_[leaf.group];
  try {
    const std::optional<tcp::Address> address = tcp::parse_address(leaf.group);
    if (!address || address->six) return;
    const tcp::Address own = tcp::route_to(places_[leaf.address].address);
    group.datagrams = std::make_unique<Datagrams>(Datagrams::of_group(*address, own, longest));
    watch_.set(group.datagrams->descriptor(), 1 + groups_.size(), EPOLLIN, group.watched);
  } catch (const Error& error) {
    log(LogLevel::kInfo, error.what());
  }
}

void Aggregation::add(std::uint32_t communicator, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
                      const Plan& plan) {
  CarriedShape shape;
  shape.number = communicator;
  shape.epoch = epoch;
  shape.rank = engine_.rank(communicator);
  shape.ranks = static_cast<std::uint32_t>(endpoints.size());
  shape.shadow = communicator | kShadows;
  shape.patience = settings_.patience;
  shape.addresses = settings_.addresses;
  Agreement agreed = engine_.state(communicator).agreed;
  engine_.create_communicator(shape.shadow, epoch, endpoints, agreed);
  engine_.set_timeout(shape.shadow, engine_.state(communicator).timeout);
  engine_.with_lock([&] {
    std::size_t longest = 0;
    for (const PlannedPool& pool : plan.pools) longest = std::max(longest, datagram_bytes(pool.payload_bytes));
    open_socket(longest);
    for (const PlannedPool& pool : plan.pools) {
      const PlannedPool::Leaf& leaf = pool.leaves[pool.places[shape.rank].leaf];
      SwitchPlace place = places_[leaf.address];
      place.address.port = leaf.port;
      shape.reachable.push_back(datagrams_->reachable(place.address, place.scope));
      std::shared_ptr<WindowsToSwitch>& others = windows_[leaf.address];
      if (!others) others = std::make_shared<WindowsToSwitch>();
      shape.others.push_back(others);
      join_group(leaf, std::max<std::size_t>(longest, kLeastLongest));
    }
    auto made = std::make_unique<CarriedCommunicator>(shape, plan, *datagrams_);
    for (std::size_t pool = 0; pool < made->pools(); ++pool) pools_[made->pool_number(pool)] = {pool, made.get()};
    made->tick(std::chrono::steady_clock::now());
    datagrams_->flush();
    communicators_[communicator] = std::move(made);
  });
}

std::string Aggregation::load_operator(std::uint32_t communicator, Func at_switches, std::span<const std::byte> binary,
                                       bool commutative) {
  std::vector<PlannedPool> pools;
  bool stable = false;
  bool in_order = true;
  engine_.with_lock([&] {
    const auto found = communicators_.find(communicator);
    if (found == communicators_.end() || !found->second->carrying()) return;
    pools = found->second->plan().pools;
    stable = found->second->plan().stable;
    in_order = found->second->in_rank_order();
  });
  if (pools.empty() || !keeper_) return "its calls are not carried by switches";
  if (stable) return "bits are not to depend on where the job runs";
  if (!commutative && !in_order) return "it does not commute, and the tree of switches lists ranks in another order";
  std::string refusal;
  try {
    for (const PlannedPool& pool : pools) {
      for (const PlannedPool::Leaf& leaf : pool.leaves) {
        const OperatorRequest request{pool.id, at_switches, sha256_of(binary), {binary.begin(), binary.end()}};
        if (refusal.empty()) refusal = keeper_->set_operator(leaf.address, request, join::Clock::now() + kPatience);
      }
    }
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  if (refusal.empty()) return "";
  // What one of them refuses, none keeps.
  for (const PlannedPool& pool : pools) keeper_->take_operator(pool.id, at_switches, join::Clock::now() + kPatience);
  return refusal;
}

void Aggregation::add_operator(std::uint32_t communicator, Func here, Func at_switches, std::uint32_t element_bytes) {
  engine_.with_lock([&] {
    const auto found = communicators_.find(communicator);
    if (found != communicators_.end()) found->second->add_operator(here, at_switches, element_bytes);
  });
}

std::string Aggregation::carrier_of(std::uint32_t communicator) {
  std::string title;
  engine_.with_lock([&] {
    const auto found = communicators_.find(communicator);
    if (found != communicators_.end() && found->second->carrying()) title = found->second->title();
  });
  return title;
}

// ---- under the engine's lock ----

std::shared_ptr<KernelRun> Aggregation::carry(std::uint32_t communicator, const Call& call, double post_scale,
                                              const Binding& src, const Binding& dst) {
  const auto found = communicators_.find(communicator);
  return found == communicators_.end() ? nullptr : found->second->carry(call, post_scale, src.data, dst.data);
}

bool Aggregation::progress(CallStarter& starter) {
  if (communicators_.empty() && freed_.empty()) return false;
  const Time now = std::chrono::steady_clock::now();
  bool any = false;
  for (const auto& [number, communicator] : communicators_) any = communicator->progress(starter, now) || any;
  return serve_freed(starter, now) || any;
}

void Aggregation::freed(CallStarter& starter, std::uint32_t communicator) {
  const auto found = communicators_.find(communicator);
  if (found == communicators_.end()) return;
  for (std::size_t pool = 0; pool < found->second->pools(); ++pool) {
    pools_.erase(found->second->pool_number(pool));
    if (found->second->shape().rank == 0 && keeper_) keeper_->free(found->second->plan().pools[pool].id);
  }
  const Time now = std::chrono::steady_clock::now();
  freed_.push_back({std::move(found->second), now + kPatiences * settings_.patience});
  communicators_.erase(found);
  if (freed_.size() > kMostFreed) freed_.front().until = now;
  serve_freed(starter, now);
}

/// Does for freed communicators what their other ranks still want of this one. Whether anything was done.
bool Aggregation::serve_freed(CallStarter& starter, Time now) {
  bool any = false;
  for (auto one = freed_.begin(); one != freed_.end();) {
    CarriedCommunicator& communicator = *one->communicator;
    any = communicator.progress(starter, now) || any;
    if (communicator.settled() || (communicator.carrying() && now >= one->until)) {
      starter.free(communicator.shape().shadow);
      one = freed_.erase(one);
    } else {
      ++one;
    }
  }
  return any;
}

bool Aggregation::busy() const {
  return std::any_of(communicators_.begin(), communicators_.end(), [](const auto& one) { return one.second->busy(); });
}

bool Aggregation::poll() {
  if (!busy() && ++idle_rounds_ % kIdleRounds != 0) return false;
  bool any = false;
  Time now = std::chrono::steady_clock::now();
  const auto take = [&](std::span<std::byte> datagram, const tcp::SystemAddress&) {
    const std::optional<Labels> labels = labels_of(datagram);
    const auto found = labels ? pools_.find(labels->pool) : pools_.end();
    if (found == pools_.end()) return;
    any = found->second.communicator->link(found->second.pool).take(datagram, now) || any;
  };
  // Where results come by a group, little else comes from the switch, and each look is a call of the system.
  bool grouped = false;
  for (const auto& [name, group] : groups_) {
    grouped = (group.datagrams && group.datagrams->receive(take) != 0) || grouped;
  }
  if (grouped) by_group_ = true;
  if (!by_group_ || ++unlooked_ >= kUnlookedRounds || now - looked_at_ >= kLongestUnlooked) {
    looked_at_ = now;
    unlooked_ = 0;
    std::size_t came = 0;
    while ((came = datagrams_->receive(take)) == Datagrams::kBatch) now = std::chrono::steady_clock::now();
    if (came != 0 && !grouped) by_group_ = false;
  }
  Time due = Time::max();
  for (const auto& [number, communicator] : communicators_) {
    communicator->tick(now);
    if (any) communicator->pump(now);
    due = std::min(due, communicator->next_due());
  }
  datagrams_->flush();
  // A timer that goes off too early costs less than one that is set anew for every call.
  if (due < armed_ || now >= armed_) {
    armed_ = due;
    watch_.set_timer(due);
  }
  return any;
}

}  // namespace unisono::slots
