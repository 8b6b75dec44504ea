#include "engine/communicators.hpp"

#include <algorithm>
#include <map>

#include "engine/call_queue.hpp"
#include "engine/consensus.hpp"
#include "engine/counters.hpp"
#include "engine/rbm.hpp"
#include "engine/rx.hpp"
#include "engine/tx.hpp"

namespace unisono::cclo {
namespace {

/// Members up to which who revokes a communicator tells all. In larger ones each that hears of it first tells those 1,
/// 2, 4, ... ranks after it: log2 P messages of each, as many steps, and many ways around those that have ended.
constexpr std::uint32_t kMostTold = 16;

/// Whether an epoch is `other` or an earlier one. Epochs wrap.
bool not_after(std::uint16_t epoch, std::uint16_t other) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(epoch - other)) <= 0;
}

}  // namespace

Communicator::Communicator() = default;
Communicator::~Communicator() = default;

void Communicator::name(const std::string& name) {
  own_name = name;
  if (recorder) recorder->name(name);
}

std::string Communicator::title() const { return recorder ? recorder->title() : title_of(number, own_name); }

Consensus& Communicators::consensus(Communicator& communicator) {
  if (communicator.consensus == nullptr) communicator.consensus = std::make_unique<Consensus>(blocks_, communicator);
  return *communicator.consensus;
}

std::vector<std::uint32_t> Communicators::seats_in_memory(std::span<const std::uint32_t> endpoints) const {
  std::vector<std::uint32_t> seats;
  if (blocks_.poe->shared_memory() == nullptr) return seats;
  for (const std::uint32_t endpoint : endpoints) {
    const auto seat = blocks_.poe->in_shared_memory(endpoint);
    if (!seat) return {};
    seats.push_back(*seat);
  }
  return seats;
}

void Communicators::create(std::uint32_t number, std::uint16_t epoch, std::span<const std::uint32_t> endpoints,
                           const Agreement& agreed, const Grouping& grouping) {
  if (all_.count(number) != 0) {
    throw Error(ErrorCode::kInvalidArgument, "communicator " + std::to_string(number) + " exists already");
  }
  if (number < settled_) {
    throw Error(ErrorCode::kInvalidArgument, "communicator " + std::to_string(number) + " was given; numbers below " +
                                                 std::to_string(settled_) + " are not used any more");
  }
  if (is_past(number, epoch)) {
    throw Error(ErrorCode::kInvalidArgument, "communicator " + std::to_string(number) + " was freed in epoch " +
                                                 std::to_string(freed_.at(number)) + "; epoch " +
                                                 std::to_string(epoch) + " was given, a later one is needed");
  }
  const auto capability = decode_capability({agreed.capability});
  if (agreed.segment_bytes < 64 || agreed.rx_buffer_count < 1) {
    throw Error(ErrorCode::kInvalidArgument, "agreed were segments of " + std::to_string(agreed.segment_bytes) +
                                                 " bytes and " + std::to_string(agreed.rx_buffer_count) +
                                                 " receive buffers; allowed are at least 64 and 1");
  }
  if (settings_.hardware_peers && agreed.eager_limit > agreed.segment_bytes) {
    throw Error(ErrorCode::kInvalidArgument, "agreed were eager messages up to " + std::to_string(agreed.eager_limit) +
                                                 " bytes and segments of " + std::to_string(agreed.segment_bytes) +
                                                 "; among engines in hardware an eager message is one segment");
  }
  const auto members = static_cast<std::uint32_t>(endpoints.size());
  if (const std::uint32_t most = blocks_.poe->max_payload(Lane::kControl);
      !settings_.hardware_peers && !Consensus::fits(members, most)) {
    throw Error(ErrorCode::kCapacity,
                "a communicator of " + std::to_string(members) +
                    " ranks: what its members say in an agreement does not fit a control message of this network, " +
                    std::to_string(most) + " bytes");
  }
  auto made = std::make_unique<Communicator>();
  made->number = number;
  made->epoch = epoch;
  made->size = static_cast<std::uint32_t>(endpoints.size());
  made->rank = made->size;
  made->grouping = grouping;
  made->agreed = agreed;
  made->capability = capability;
  made->timeout = settings_.timeout;
  made->segment_bytes = std::min(agreed.segment_bytes, blocks_.poe->max_payload(Lane::kData)) / 64 * 64;
  made->hardware_peers = settings_.hardware_peers;
  made->rules = rules_.find(agreed.tuning_hash);
  if (made->rules) made->tuning.rules = *made->rules;
  made->tuning.crowded = blocks_.poe->crowded().value_or(blocks_.poe->size() > usable_cores(agreed));
  made->tuning.hosts = std::any_of(endpoints.begin(), endpoints.end(), [&](std::uint32_t endpoint) {
    return endpoint < blocks_.poe->size() && blocks_.poe->host_of(endpoint) != blocks_.poe->host_of(endpoints[0]);
  });
  made->tuning.radices = made->capability.radices;
  if (capability.streams && !capability.lanes && !made->hardware_peers) {  // made for streams, by all members
    auto rules = std::make_shared<std::vector<Rule>>(made->tuning.rules.begin(), made->tuning.rules.end());
    rules->insert(rules->end(), stream_rules().begin(), stream_rules().end());
    made->tuning.rules = *rules;
    made->rules = std::move(rules);
  }
  made->peers = Peers(endpoints, agreed.rx_buffer_count);
  std::vector<bool> seen(blocks_.poe->size(), false);
  for (std::uint32_t rank = 0; rank < made->size; ++rank) {
    const std::uint32_t endpoint = endpoints[rank];
    if (endpoint >= blocks_.poe->size() || seen[endpoint]) {
      throw Error(ErrorCode::kInvalidArgument, "rank " + std::to_string(rank) + " is endpoint " +
                                                   std::to_string(endpoint) + "; allowed are 0 to " +
                                                   std::to_string(blocks_.poe->size() - 1) + ", each once");
    }
    seen[endpoint] = true;
    if (broken(endpoint)) throw Error(ErrorCode::kCorruptMessage, broken_[endpoint]);
    if (endpoint == blocks_.poe->self()) made->rank = rank;
  }
  if (made->rank == made->size) {
    throw Error(ErrorCode::kInvalidArgument,
                "endpoint " + std::to_string(blocks_.poe->self()) + " is not among the members it names");
  }
  made->recorder =
      std::make_shared<CallRecorder>(blocks_.poe->records(blocks_.poe->self()), number, epoch, made->rank, made->size);
  if (const auto seats = seats_in_memory(endpoints); capability.lanes && !seats.empty()) {
    made->fast_path =
        std::make_shared<FastPath>(*blocks_.poe->shared_memory(), watch_, number, epoch, made->rank, seats,
                                   agreed.eager_limit, made->order, made->last, made->recorder, made->plans);
  }
  Communicator& communicator = *made;
  all_[number] = std::move(made);
  blocks_.counters->count(NativeCounter::kCommunicators);

  std::vector<Held> held;
  held.swap(held_);
  for (Held& message : held) {
    if (message.header.communicator != number || message.header.epoch != epoch) {
      held_.push_back(std::move(message));
      continue;
    }
    held_bytes_ -= message.bytes();
    const std::uint32_t source = message.header.source;
    if (source >= communicator.peers.endpoints().size() || communicator.peers.endpoint(source) != message.endpoint ||
        message.header.destination != communicator.rank) {
      continue;
    }
    blocks_.rx->accept(communicator, {message.header, message.payload});
  }
  if (spilled_.erase({number, epoch}) != 0) {
    revoke(communicator, ErrorCode::kCapacity,
           "more than " + std::to_string(kHeldBytes) + " bytes had come before rank " +
               std::to_string(communicator.rank) + " made it",
           true);
  }
}

void Communicators::add_switches(std::uint32_t number, const CallTree* tree, std::span<const std::uint32_t> switches) {
  Communicator& communicator = get(number);
  std::vector<std::uint32_t> all = communicator.peers.endpoints();
  all.insert(all.end(), switches.begin(), switches.end());
  if (tree->members != communicator.size || tree->switches != switches.size() || !communicator.calls.empty() ||
      *std::max_element(all.begin(), all.end()) >= blocks_.poe->size()) {
    throw Error(ErrorCode::kInvalidArgument,
                "communicator " + std::to_string(number) + ": a tree of " + std::to_string(tree->members) +
                    " members and " + std::to_string(tree->switches) + " switches was given with " +
                    std::to_string(switches.size()) + " endpoints; it is to fit, and to come before the first call");
  }
  communicator.tree = tree;
  communicator.peers = Peers(all, communicator.agreed.rx_buffer_count);
}

void Communicators::free(std::uint32_t number) {
  Communicator& communicator = get(number);
  if (communicator.fast_path) {
    communicator.fast_path->close();
    communicator.fast_path->end_window();
  }
  blocks_.calls->fail_all(communicator, ErrorCode::kFreedCommunicator,
                          communicator.title() + " was freed by this rank");
  close_window(communicator);
  blocks_.rbm->drop(communicator);
  if (number >= settled_) freed_[number] = communicator.epoch;
  blocks_.counters->count(NativeCounter::kCalls, communicator.recorder->begun());
  all_.erase(number);
}

void Communicators::settle(std::uint32_t below) {
  settled_ = std::max(settled_, below);
  freed_.erase(freed_.begin(), freed_.lower_bound(settled_));
  // What was kept for one that was never made here goes too: its making failed.
  spilled_.erase(spilled_.begin(), spilled_.lower_bound({settled_, 0}));
  held_.erase(std::remove_if(held_.begin(), held_.end(),
                             [&](const Held& held) {
                               if (held.header.communicator >= settled_) return false;
                               held_bytes_ -= held.bytes();
                               return true;
                             }),
              held_.end());
}

bool Communicators::is_past(std::uint32_t number, std::uint16_t epoch) const {
  if (number < settled_) return true;
  const auto freed = freed_.find(number);
  return freed != freed_.end() && not_after(epoch, freed->second);
}

Communicator* Communicators::find(std::uint32_t number, std::uint16_t epoch) {
  const auto found = all_.find(number);
  return found == all_.end() || found->second->epoch != epoch ? nullptr : found->second.get();
}

Communicator* Communicators::find(std::uint32_t number) {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : found->second.get();
}

Communicator& Communicators::get(std::uint32_t number) {
  const auto found = all_.find(number);
  if (found != all_.end()) return *found->second;
  if (number < settled_ || freed_.count(number) != 0) {
    throw Error(ErrorCode::kFreedCommunicator, "communicator " + std::to_string(number) + " was freed");
  }
  throw Error(ErrorCode::kInvalidArgument, "there is no communicator " + std::to_string(number));
}

void Communicators::hold(std::uint32_t endpoint, const Incoming& incoming) {
  const Header& header = incoming.header;
  if (is_past(header.communicator, header.epoch)) return;
  const auto present = all_.find(header.communicator);
  if (present != all_.end() && not_after(header.epoch, present->second->epoch)) return;
  if (spilled_.count(identity(header)) != 0) return;
  held_.push_back({endpoint, header, {incoming.payload.begin(), incoming.payload.end()}});
  held_bytes_ += held_.back().bytes();
  if (held_bytes_ > kHeldBytes) spill();
}

/// Drops what is kept for the communicator that fills the most: it alone shall suffer.
void Communicators::spill() {
  std::map<Identity, std::size_t> share;
  for (const Held& held : held_) share[identity(held.header)] += held.bytes();
  const auto most =
      std::max_element(share.begin(), share.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  held_bytes_ -= most->second;
  held_.erase(std::remove_if(held_.begin(), held_.end(),
                             [&](const Held& held) { return identity(held.header) == most->first; }),
              held_.end());
  spilled_.insert(most->first);
}

void Communicators::close_window(Communicator& communicator) {
  if (!blocks_.rx->close_window(communicator, false)) return;
  // From here on the window is its owner's, who may free it.
  communicator.reason += blocks_.calls->settle(communicator, "this rank's window");
}

void Communicators::revoke(Communicator& communicator, ErrorCode code, const std::string& reason, bool tell) {
  if (communicator.revoked) return;
  communicator.revoked = true;
  communicator.revoked_with = code;
  communicator.reason = reason;
  communicator.recorder->revoked();
  blocks_.counters->count(NativeCounter::kRevocations);
  if (communicator.fast_path) {
    communicator.fast_path->close();
    communicator.fast_path->end_window();
  }
  blocks_.calls->fail_all(communicator, code, reason);
  close_window(communicator);
  blocks_.rbm->drop(communicator);
  const bool passes_on = communicator.size > kMostTold && !communicator.hardware_peers;
  if (!tell && !passes_on) return;
  const auto say = [&](std::uint32_t rank) {
    Header header = blocks_.tx->header(communicator, rank, MessageType::kControl);
    header.tag = static_cast<std::uint32_t>(Control::kRevoke);
    header.token_generation = static_cast<std::uint16_t>(code);
    header.offset = tell ? 0 : 1;
    blocks_.tx->control(communicator, rank, header, reason);
  };
  if (passes_on) {
    for (std::uint32_t step = 1; step < communicator.size; step <<= 1U)
      say((communicator.rank + step) % communicator.size);
    return;
  }
  for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
    if (rank != communicator.rank) say(rank);
  }
}

std::optional<CallDifference> Communicators::difference(const Communicator& communicator, std::uint32_t rank) const {
  const auto own = read(communicator.recorder->record());
  const auto other = recorded(*blocks_.poe, communicator.peers.endpoint(rank), communicator.number, communicator.epoch);
  if (!own || !other) return std::nullopt;
  return first_difference(*own, *other);
}

std::optional<SeenCall> Communicators::seen(const Communicator& communicator, std::uint32_t rank,
                                            std::uint32_t sequence) const {
  const auto other = recorded(*blocks_.poe, communicator.peers.endpoint(rank), communicator.number, communicator.epoch);
  if (!other) return std::nullopt;
  for (const SeenCall& call : other->calls) {
    if (call.collective_of_all() && call.sequence == sequence) return call;
  }
  return std::nullopt;
}

void Communicators::conclude(Communicator& communicator) {
  if (communicator.revoked || communicator.hardware_peers) return;
  communicator.recorder->leave(communicator.order->next(), communicator.order->digest());
  for (std::uint32_t rank = 0; rank < communicator.size; ++rank) {
    if (rank == communicator.rank) continue;
    const std::optional<CallDifference> differs = difference(communicator, rank);
    if (!differs) continue;
    const std::string text = CallQueue::describe(communicator, *differs) + " (found as the communicator was freed)";
    revoke(communicator, ErrorCode::kMismatchedCall, text, true);
    throw Error(ErrorCode::kMismatchedCall, text);
  }
}

void Communicators::broke(std::uint32_t endpoint, const std::string& text) {
  broken_.resize(blocks_.poe->size());
  if (!broken_[endpoint].empty()) return;
  broken_[endpoint] = text;
  broke_ = true;
}

void Communicators::lose(std::uint32_t endpoint) {
  note(lost_, endpoint);
  const Poe& poe = *blocks_.poe;
  const std::uint32_t host = poe.host_of(endpoint);
  if (host == poe.host_of(poe.self())) return;
  for (std::uint32_t other = 0; other < poe.size(); ++other) lost_[other] = lost_[other] || poe.host_of(other) == host;
}

void Communicators::note(std::vector<bool>& endpoints, std::uint32_t endpoint) const {
  endpoints.resize(blocks_.poe->size());
  endpoints[endpoint] = true;
}

bool Communicators::end_broken() {
  if (!broke_) return false;
  broke_ = false;
  for_each([&](Communicator& communicator) {
    for (const std::uint32_t endpoint : communicator.peers.endpoints()) {
      if (broken(endpoint)) revoke(communicator, ErrorCode::kCorruptMessage, broken_[endpoint], true);
    }
  });
  return true;
}

}  // namespace unisono::cclo
