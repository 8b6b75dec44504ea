#include "sim/network/network.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "core/error.hpp"
#include "sim/network/settings.hpp"

namespace unisono::sim {

/// A frame at a place where it waits to go on: in the queue of a switch, or at the node that receives it.
struct Network::Entry {
  Frame* frame = nullptr;
  Entry* next = nullptr;
  Channel* from = nullptr;
  std::uint32_t arrived = 0, sent = 0;  ///< words
  std::uint8_t lane = 0;                ///< by which it came
  bool whole = false;                   ///< must have arrived as a whole before it goes on
  bool judged = false;                  ///< its session has taken it
};

struct Network::Queue {
  Entry* head = nullptr;
  Entry* tail = nullptr;
  std::uint64_t bytes = 0;

  void append(Entry* entry) {
    if (tail != nullptr)
      tail->next = entry;
    else
      head = entry;
    tail = entry;
    bytes += entry->frame->bytes;
  }
  Entry* take() {
    Entry* entry = head;
    head = entry->next;
    if (head == nullptr) tail = nullptr;
    bytes -= entry->frame->bytes;
    return entry;
  }
};

/// A link, from the switch queues that feed it to its far end.
struct Network::Channel {
  /// A frame on the wire. The last one may not have been sent to its end yet.
  struct Passage {
    Frame* frame = nullptr;
    std::uint8_t lane = 0;
    bool lost = false, duplicate = false;
    std::uint32_t delay = 0;
  };
  struct Return {
    std::uint64_t cycle = 0;
    std::uint32_t bytes = 0;
    std::uint8_t lane = 0;
  };

  const LinkPlan* plan = nullptr;
  std::uint32_t index = 0;
  Serialiser clock;
  std::uint32_t latency = 0;
  std::uint32_t slot = 0;  ///< number of this link among those into its switch
  bool credited = false;   ///< nothing is begun without room at the far end

  // Where frames wait: a queue for each lane by which they will leave and each link by which they came.
  std::uint32_t inputs = 0;
  std::vector<Queue> queues;           ///< [lane * inputs + slot]
  std::vector<std::uint64_t> waiting;  ///< [lane * words + slot / 64]: queues that are not empty
  std::uint32_t waiting_words = 0, waiting_frames = 0;
  Entry* current = nullptr;  ///< being sent
  std::uint32_t current_queue = 0;
  std::array<std::uint32_t, 2> turn{};  ///< the input that is looked at first
  std::uint32_t last_lane = 0;
  std::uint64_t queued_bytes = 0;   ///< all
  std::uint64_t limited_bytes = 0;  ///< those that had to find room here
  std::uint64_t blocked_since = kNever;

  // On the wire.
  Ring<std::uint64_t> arrivals;  ///< cycles, one for each word
  Ring<Passage> passages;
  // At the far end.
  Entry* entry = nullptr;  ///< of the frame that is arriving; null: it goes nowhere
  std::uint32_t word = 0;  ///< of it that have arrived
  std::array<std::int64_t, 2> room{};
  Ring<Return> returns;

  Random random;
  bool down = false;
  LinkCounters counters;

  std::uint64_t& dropped(Drop cause) { return counters.dropped[static_cast<std::size_t>(cause)]; }

  /// The queue whose turn it is, or -1. `blocked`: one had its turn, but there is no room for its frame. Nobody on the
  /// same lane may overtake it then, or large frames could wait for ever.
  int next(std::uint32_t lanes, bool& blocked) const {
    blocked = false;
    if (waiting_frames == 0) return -1;
    for (std::uint32_t i = 1; i <= lanes; ++i) {
      const std::uint32_t lane = (last_lane + i) % lanes;
      const std::uint64_t* bits = waiting.data() + std::size_t{lane} * waiting_words;
      const std::uint32_t first = turn[lane];
      // The word of `first` is looked at twice: from its bit on, and at the end up to it.
      bool stopped = false;
      for (std::uint32_t w = 0; w <= waiting_words && !stopped; ++w) {
        const std::uint32_t at = (first / 64 + w) % waiting_words;
        std::uint64_t found = bits[at];
        if (w == 0) found &= ~std::uint64_t{0} << (first % 64);
        if (w == waiting_words) found &= ~(~std::uint64_t{0} << (first % 64));
        for (; found != 0 && !stopped; found &= found - 1) {
          const std::uint32_t queue = lane * inputs + at * 64 + static_cast<std::uint32_t>(std::countr_zero(found));
          const Entry& head = *queues[queue].head;
          if (head.whole && head.arrived < head.frame->words) continue;
          if (!credited || room[lane] >= std::int64_t{head.frame->bytes}) return static_cast<int>(queue);
          stopped = true;
        }
      }
      blocked = blocked || stopped;
    }
    return -1;
  }
};

namespace {

void set(std::vector<std::uint64_t>& bits, std::uint32_t index) {
  bits[index / 64] |= std::uint64_t{1} << (index % 64);
}
void clear(std::vector<std::uint64_t>& bits, std::uint32_t index) {
  bits[index / 64] &= ~(std::uint64_t{1} << (index % 64));
}
template <class F>
void for_each(const std::vector<std::uint64_t>& bits, F&& visit) {
  for (std::size_t w = 0; w < bits.size(); ++w) {
    for (std::uint64_t found = bits[w]; found != 0; found &= found - 1)
      visit(static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(std::countr_zero(found)));
  }
}

}  // namespace

const char* name_of(Drop cause) {
  constexpr std::array<const char*, kDrops> kNames = {"loss", "down", "overflow", "receiver", "check", "session"};
  return kNames[static_cast<std::size_t>(cause)];
}

const char* name_of(Pushed result) {
  constexpr std::array<const char*, 5> kNames = {"taken", "the link is busy", "the frame is longer than the mtu",
                                                 "there is no such destination",
                                                 "the words do not make up the length of the frame"};
  return kNames[static_cast<std::size_t>(result)];
}

Network::Network(const NetworkConfig& config)
    : config_(config), topology_(make_topology(config)), pool_(config.mtu), nodes_(config.nodes) {
  refuse_idle_settings(config, topology_);
  const std::size_t count = topology_.links.size();
  std::vector<std::uint32_t> inputs(topology_.switches);
  for (std::uint32_t i = 0; i < count; ++i) {
    const LinkPlan& plan = topology_.links[i];
    auto channel = std::make_unique<Channel>();
    channel->plan = &plan;
    channel->index = i;
    channel->clock = Serialiser(plan.local ? Rate{kWordBytes, 1} : Rate::of(plan.config.mbps, config.clock_khz));
    channel->latency = plan.config.propagation + (plan.to.is_node ? 0 : config.switch_latency);
    if (plan.local && !plan.to.is_node) channel->latency = plan.config.propagation;
    channel->credited = config.policy == Policy::kPause || (plan.local && !plan.to.is_node);
    if (!plan.to.is_node) channel->slot = inputs[plan.to.index]++;
    channel->room.fill(static_cast<std::int64_t>(plan.to.is_node ? config.receive_bytes : plan.config.buffer_bytes));
    channel->random = Random(mix(config.seed) ^ mix(i + 0x5bd1e995ULL));
    for (const Outage& outage : plan.config.down) {
      changes_.push_back({outage.from, i});
      changes_.push_back({outage.to, i});
    }
    channels_.push_back(std::move(channel));
  }
  for (const auto& channel : channels_) {
    if (channel->plan->from.is_node) continue;
    channel->inputs = inputs[channel->plan->from.index];
    channel->queues.resize(std::size_t{channel->inputs} * topology_.channels);
    channel->waiting_words = (channel->inputs + 63) / 64;
    channel->waiting.resize(std::size_t{channel->waiting_words} * topology_.channels);
  }
  for (std::uint32_t n = 0; n < config.nodes; ++n) {
    receive_queues_.push_back(std::make_unique<Queue>());
    nodes_[n].received = receive_queues_.back().get();
    nodes_[n].up = channels_[topology_.uplink[n]].get();
    nodes_[n].down = channels_[topology_.downlink[n]].get();
  }
  for (auto* bits : {&sending_, &carrying_, &returning_}) bits->resize((count + 63) / 64);
  std::stable_sort(changes_.begin(), changes_.end(),
                   [](const Change& a, const Change& b) { return a.cycle < b.cycle; });
  while (next_change_ < changes_.size() && changes_[next_change_].cycle == 0)
    change_state(*channels_[changes_[next_change_++].link]);
}

Network::~Network() = default;

Network::Entry* Network::take_entry() {
  if (free_entries_ == nullptr) {
    entries_.push_back(std::make_unique<Entry>());
    return entries_.back().get();
  }
  Entry* entry = free_entries_;
  free_entries_ = entry->next;
  *entry = Entry{};
  return entry;
}

void Network::free_entry(Entry* entry) {
  entry->next = free_entries_;
  free_entries_ = entry;
}

bool Network::can_push(std::uint32_t node) const {
  const Node& at = nodes_[node];
  if (at.may_push > now_ || at.up->clock.cycle() > now_ + kAhead) return false;
  return at.pushing != nullptr || !at.up->credited || at.up->room[0] >= std::int64_t{config_.mtu};
}

Pushed Network::push(std::uint32_t node, const SentWord& word) {
  Node& at = nodes_[node];
  if (!can_push(node)) return Pushed::kBusy;
  Frame* frame = at.pushing;
  if (frame == nullptr) {
    if (word.frame_bytes > config_.mtu) return Pushed::kTooLong;
    if (word.destination >= nodes() || word.destination == node) return Pushed::kNoDestination;
    const bool ends = word.frame_bytes <= kWordBytes;
    if (word.frame_bytes == 0 || word.last != ends || word.bytes != (ends ? word.frame_bytes : kWordBytes))
      return Pushed::kWrongLength;
    frame = pool_.take();
    frame->source = node;
    frame->destination = word.destination;
    frame->bytes = word.frame_bytes;
    frame->words = (word.frame_bytes + kWordBytes - 1) / kWordBytes;
    frame->port = word.port;
    if (config_.sessions) frame->number = sessions_.send(node, word.destination, word.port);
    at.pushing = frame;
    at.word = 0;
  } else if (word.bytes != frame->word_bytes(at.word) || word.last != (at.word + 1 == frame->words)) {
    return Pushed::kWrongLength;
  }
  std::memcpy(frame->data.get() + std::size_t{at.word} * kWordBytes, word.data, word.bytes);
  if (at.word == 0) begin(*at.up, *frame, 0);
  transmit(*at.up, *frame, at.word);
  at.may_push = now_ + 1;
  if (++at.word == frame->words) {
    at.pushing = nullptr;
    ++at.pushed;
  }
  quiet_until_ = 0;
  return Pushed::kTaken;
}

std::optional<Drop> Network::refusal_of(Entry& entry) {
  if (entry.sent != 0) return std::nullopt;
  const Frame& frame = *entry.frame;
  if (frame.damaged) {  // since it began to arrive
    if (entry.judged) sessions_.damaged(frame.source, frame.destination, frame.port, frame.number, now_);
    return Drop::kCheck;
  }
  if (!config_.sessions || entry.judged) return std::nullopt;
  entry.judged = true;
  const auto verdict = sessions_.receive(frame.source, frame.destination, frame.port, frame.number, now_);
  return verdict == Sessions::Verdict::kPass ? std::nullopt : std::optional(Drop::kSession);
}

const ReceivedWord* Network::front(std::uint32_t node) {
  Node& at = nodes_[node];
  if (at.may_pop > now_) return nullptr;
  Entry* head = at.received->head;
  while (head != nullptr) {
    const std::optional<Drop> refusal = refusal_of(*head);
    if (!refusal) break;
    at.received->take();
    at.received_bytes -= head->frame->bytes;
    ++at.down->dropped(*refusal);
    if (head->arrived == head->frame->words)
      discard(*at.down, head->frame, head->lane);
    else
      at.down->entry = nullptr;  // `arrive` discards it with its last word
    free_entry(head);
    quiet_until_ = 0;
    head = at.received->head;
  }
  if (head == nullptr || head->sent == head->arrived) return nullptr;
  Frame& frame = *head->frame;
  if (config_.receive == Receive::kWhole && head->arrived < frame.words) return nullptr;
  ReceivedWord& shown = at.shown;
  shown.data = frame.data.get() + std::size_t{head->sent} * kWordBytes;
  shown.bytes = frame.word_bytes(head->sent);
  shown.first = head->sent == 0;
  shown.last = head->sent + 1 == frame.words;
  shown.damaged = shown.last && frame.damaged;
  shown.source = frame.source;
  shown.frame_bytes = frame.bytes;
  shown.port = frame.port;
  if (frame.flip != Frame::kNoFlip && frame.flip / 8 / kWordBytes == head->sent) {
    std::memcpy(at.flipped.data(), shown.data, shown.bytes);
    at.flipped[frame.flip / 8 % kWordBytes] ^= static_cast<std::byte>(1U << (frame.flip % 8));
    shown.data = at.flipped.data();
  }
  return &shown;
}

void Network::pop(std::uint32_t node) {
  Node& at = nodes_[node];
  Entry* head = at.received->head;
  assert(at.may_pop <= now_ && head != nullptr && head->sent < head->arrived);
  at.may_pop = now_ + 1;
  if (++head->sent < head->frame->words) return;
  at.received->take();
  const Frame& frame = *head->frame;
  at.received_bytes -= frame.bytes;
  ++(frame.damaged ? at.down->dropped(Drop::kCheck) : at.delivered);
  if (config_.sessions && frame.damaged) {
    sessions_.damaged(frame.source, frame.destination, frame.port, frame.number, now_);
  }
  discard(*at.down, head->frame, head->lane);
  free_entry(head);
  quiet_until_ = 0;
}

/// A frame begins on a link: now its fate there is decided.
void Network::begin(Channel& channel, Frame& frame, std::uint8_t lane) {
  const LinkConfig& link = channel.plan->config;
  Channel::Passage passage;
  passage.frame = &frame;
  passage.lane = lane;
  ++channel.counters.frames;
  channel.counters.bytes += frame.bytes;
  if (channel.credited) channel.room[lane] -= frame.bytes;
  // Drawn in one order whatever happens, so that no fault depends on another.
  const bool lost = channel.random.chance(link.loss);
  const bool corrupt = channel.random.chance(link.corrupt);
  const std::uint32_t bit = corrupt ? static_cast<std::uint32_t>(channel.random.below(frame.bytes * 8ULL)) : 0;
  passage.duplicate = channel.random.chance(link.duplicate);
  if (channel.random.chance(link.reorder))
    passage.delay = static_cast<std::uint32_t>(1 + channel.random.below(link.reorder_cycles));
  if (channel.down || lost) {
    passage.lost = true;
    ++channel.dropped(channel.down ? Drop::kDown : Drop::kLoss);
  } else {
    if (corrupt) {
      ++channel.counters.corrupted;
      if (config_.frame_check)
        frame.damaged = true;
      else
        frame.flip = bit;
    }
    if (passage.delay != 0) ++channel.counters.reordered;
  }
  channel.passages.push(passage);
  channel.clock.wait_until(now_);
  channel.clock.send(link.header_bytes);
  channel.counters.wire_bytes += link.header_bytes;
}

void Network::transmit(Channel& channel, Frame& frame, std::uint32_t word) {
  const std::uint32_t bytes = frame.word_bytes(word);
  channel.clock.wait_until(now_);
  channel.clock.send(bytes);
  channel.counters.wire_bytes += bytes;
  channel.arrivals.push(channel.clock.done() + channel.latency);
  set(carrying_, channel.index);
  worked_ = true;
  if (channel.down && !channel.passages.back().lost && !frame.damaged) {
    frame.damaged = true;
    ++channel.counters.truncated;
  }
  if (word + 1 < frame.words) return;
  const LinkConfig& link = channel.plan->config;
  const std::uint32_t total = link.header_bytes + frame.bytes + link.trailer_bytes;
  const std::uint32_t after = link.trailer_bytes + (total < link.min_wire_bytes ? link.min_wire_bytes - total : 0);
  channel.clock.send(after);
  channel.counters.wire_bytes += after;
  if (hook_) {
    hook_({now_,
           channel.index,
           frame.source,
           frame.destination,
           frame.port,
           {frame.data.get(), frame.bytes},
           frame.damaged || frame.flip != Frame::kNoFlip,
           channel.passages.back().lost});
  }
}

/// Lets the next frame begin on a link. False: there is none that could.
bool Network::choose(Channel& channel) {
  bool blocked = false;
  const int queue = channel.next(topology_.channels, blocked);
  if (queue < 0) {
    if (blocked && channel.blocked_since == kNever) channel.blocked_since = now_;
    return false;
  }
  if (channel.blocked_since != kNever) {
    channel.counters.blocked_cycles += now_ - channel.blocked_since;
    channel.blocked_since = kNever;
  }
  channel.current_queue = static_cast<std::uint32_t>(queue);
  channel.current = channel.queues[channel.current_queue].head;
  const std::uint32_t lane = channel.current_queue / channel.inputs;
  channel.turn[lane] = (channel.current_queue % channel.inputs + 1) % channel.inputs;
  channel.last_lane = lane;
  begin(channel, *channel.current->frame, static_cast<std::uint8_t>(lane));
  return true;
}

void Network::send_waiting(Channel& channel) {
  while (channel.clock.cycle() <= now_) {
    if (channel.current == nullptr && !choose(channel)) break;
    Entry& entry = *channel.current;
    if (entry.sent == entry.arrived) break;
    Frame& frame = *entry.frame;
    transmit(channel, frame, entry.sent);
    if (++entry.sent < frame.words) continue;
    channel.queues[channel.current_queue].take();
    channel.queued_bytes -= frame.bytes;
    if (entry.from->credited)
      return_room(*entry.from, entry.lane, frame.bytes);
    else
      channel.limited_bytes -= frame.bytes;
    if (channel.queues[channel.current_queue].head == nullptr) {
      const std::uint32_t lane = channel.current_queue / channel.inputs, slot = channel.current_queue % channel.inputs;
      channel.waiting[std::size_t{lane} * channel.waiting_words + slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    }
    channel.current = nullptr;
    --channel.waiting_frames;
    free_entry(&entry);
    if (channel.waiting_frames == 0) {
      clear(sending_, channel.index);
      break;
    }
  }
}

/// The next word of a link arrives at its far end.
void Network::arrive(Channel& channel) {
  Channel::Passage& passage = channel.passages.front();
  Frame* frame = passage.frame;
  const std::uint8_t lane = passage.lane;
  channel.arrivals.pop();
  ++channel.word;
  if (!passage.lost && passage.delay == 0) {
    if (channel.word == 1) channel.entry = enter(channel, frame, lane);
    if (channel.entry != nullptr) ++channel.entry->arrived;
  }
  if (channel.word < frame->words) return;
  Frame* copy = nullptr;
  if (passage.duplicate && !passage.lost) {
    copy = pool_.take();
    copy->source = frame->source;
    copy->destination = frame->destination;
    copy->bytes = frame->bytes;
    copy->words = frame->words;
    copy->port = frame->port;
    copy->number = frame->number;
    copy->damaged = frame->damaged;
    copy->flip = frame->flip;
    std::memcpy(copy->data.get(), frame->data.get(), frame->bytes);
    ++channel.counters.duplicated;
    if (channel.credited) channel.room[lane] -= frame->bytes;  // below zero, if need be: nothing was held for it
  }
  if (!passage.lost && passage.delay != 0)
    delayed_.push({now_ + passage.delay, delays_++, &channel, frame, lane});
  else if (channel.entry == nullptr)
    discard(channel, frame, lane);
  channel.entry = nullptr;
  channel.word = 0;
  channel.passages.pop();
  if (copy != nullptr) enter_whole(channel, copy, lane);
}

/// A frame comes to a switch or node. Null: there is no place for it, which has been counted.
Network::Entry* Network::enter(Channel& channel, Frame* frame, std::uint8_t lane) {
  const LinkPlan& plan = *channel.plan;
  if (plan.to.is_node) {
    Node& node = nodes_[plan.to.index];
    if (frame->damaged) {
      ++channel.dropped(Drop::kCheck);
      return nullptr;
    }
    if (!channel.credited && node.received_bytes + frame->bytes > config_.receive_bytes) {
      ++channel.dropped(Drop::kReceiver);
      return nullptr;
    }
    Entry* entry = take_entry();
    entry->frame = frame;
    entry->from = &channel;
    entry->lane = lane;
    node.received->append(entry);
    node.received_bytes += frame->bytes;
    return entry;
  }
  Channel& out = *channels_[topology_.way(plan.to.index, frame->source, frame->destination, frame->port)];
  const std::uint32_t lane_out = topology_.next_channel(plan, *out.plan, lane);
  Queue& queue = out.queues[std::size_t{lane_out} * out.inputs + channel.slot];
  if (!channel.credited) {
    const std::uint64_t free = out.plan->config.buffer_bytes - out.limited_bytes;
    if (frame->bytes > free || queue.bytes + frame->bytes > config_.queue_share * free) {
      ++out.dropped(Drop::kOverflow);
      return nullptr;
    }
    out.limited_bytes += frame->bytes;
  }
  Entry* entry = take_entry();
  entry->frame = frame;
  entry->from = &channel;
  entry->lane = lane;
  entry->whole = !out.plan->local && channel.clock.rate().below(out.clock.rate());
  queue.append(entry);
  out.waiting[std::size_t{lane_out} * out.waiting_words + channel.slot / 64] |= std::uint64_t{1} << (channel.slot % 64);
  ++out.waiting_frames;
  out.queued_bytes += frame->bytes;
  out.counters.queue_high_water = std::max(out.counters.queue_high_water, out.queued_bytes);
  set(sending_, out.index);
  return entry;
}

void Network::enter_whole(Channel& channel, Frame* frame, std::uint8_t lane) {
  Entry* entry = enter(channel, frame, lane);
  if (entry != nullptr)
    entry->arrived = frame->words;
  else
    discard(channel, frame, lane);
}

/// The end of a frame's way.
void Network::discard(Channel& channel, Frame* frame, std::uint8_t lane) {
  if (channel.credited) return_room(channel, lane, frame->bytes);
  pool_.give_back(frame);
}

/// Room at the far end of a link is free again, which its near end learns as late as light allows.
void Network::return_room(Channel& channel, std::uint8_t lane, std::uint32_t bytes) {
  channel.returns.push({now_ + channel.plan->config.propagation, bytes, lane});
  set(returning_, channel.index);
}

void Network::change_state(Channel& channel) {
  channel.down = !channel.down;
  if (!channel.down) return;
  for (std::size_t i = 0; i < channel.passages.size(); ++i) {
    Channel::Passage& passage = channel.passages[i];
    if (passage.lost) continue;
    if (i == 0 && channel.word > 0) {
      if (!passage.frame->damaged) ++channel.counters.truncated;
      passage.frame->damaged = true;
    } else {
      passage.lost = true;
      ++channel.dropped(Drop::kDown);
    }
  }
}

void Network::tick() {
  if (pool_.used() == 0) sessions_.settle(now_);
  if (now_ < quiet_until_) {
    ++now_;
    return;
  }
  worked_ = false;
  for_each(sending_, [this](std::uint32_t i) { send_waiting(*channels_[i]); });
  ++now_;
  for (; next_change_ < changes_.size() && changes_[next_change_].cycle <= now_; ++next_change_) {
    change_state(*channels_[changes_[next_change_].link]);
    worked_ = true;
  }
  for_each(returning_, [this](std::uint32_t i) {
    Channel& channel = *channels_[i];
    while (!channel.returns.empty() && channel.returns.front().cycle <= now_) {
      channel.room[channel.returns.front().lane] += channel.returns.front().bytes;
      channel.returns.pop();
      worked_ = true;
    }
    if (channel.returns.empty()) clear(returning_, i);
  });
  for_each(carrying_, [this](std::uint32_t i) {
    Channel& channel = *channels_[i];
    while (!channel.arrivals.empty() && channel.arrivals.front() <= now_) {
      arrive(channel);
      worked_ = true;
    }
    if (channel.arrivals.empty()) clear(carrying_, i);
  });
  while (!delayed_.empty() && delayed_.top().release <= now_) {
    const Delayed delayed = delayed_.top();
    delayed_.pop();
    enter_whole(*delayed.channel, delayed.frame, delayed.lane);
    worked_ = true;
  }
  if (!worked_) {
    const std::uint64_t quiet = next_work();
    quiet_until_ = quiet == kNever ? kNever : now_ + quiet;
  }
}

/// Ticks in which nothing happens between the nodes.
std::uint64_t Network::next_work() const {
  // What happens at the end of a tick, in the cycle it leads to; and what a tick does in its own cycle.
  std::uint64_t at_end = kNever, in_cycle = kNever;
  for_each(carrying_, [&](std::uint32_t i) { at_end = std::min(at_end, channels_[i]->arrivals.front()); });
  for_each(returning_, [&](std::uint32_t i) { at_end = std::min(at_end, channels_[i]->returns.front().cycle); });
  if (!delayed_.empty()) at_end = std::min(at_end, delayed_.top().release);
  if (next_change_ < changes_.size()) at_end = std::min(at_end, changes_[next_change_].cycle);
  for_each(sending_, [&](std::uint32_t i) {
    const Channel& channel = *channels_[i];
    bool blocked = false;
    const bool ready = channel.current != nullptr ? channel.current->sent < channel.current->arrived
                                                  : channel.next(topology_.channels, blocked) >= 0;
    // Whether a frame begins to be blocked is seen in the first cycle in which it could have gone.
    if (ready || (blocked && channel.blocked_since == kNever))
      in_cycle = std::min(in_cycle, std::max(now_, channel.clock.cycle()));
  });
  std::uint64_t quiet = kNever;
  if (at_end != kNever) quiet = at_end > now_ ? at_end - now_ - 1 : 0;
  if (in_cycle != kNever) quiet = std::min(quiet, in_cycle - now_);
  return quiet;
}

std::uint64_t Network::next_event() const {
  std::uint64_t quiet = kNever;
  for (const Node& node : nodes_) {
    const Entry* head = node.received->head;
    if (head != nullptr && head->arrived > head->sent &&
        (config_.receive == Receive::kCutThrough || head->arrived == head->frame->words))
      return 0;
    const std::uint64_t link = node.up->clock.cycle();
    const std::uint64_t free = std::max(node.may_push, link > kAhead ? link - kAhead : 0);
    if (free > now_) quiet = std::min(quiet, free - now_ - 1);
  }
  if (now_ < quiet_until_) return std::min(quiet, quiet_until_ == kNever ? kNever : quiet_until_ - now_);
  return std::min(quiet, next_work());
}

void Network::skip(std::uint64_t cycles) {
  assert(cycles <= next_event());
  now_ += cycles;
}

const std::string& Network::link_name(std::uint32_t link) const { return topology_.links.at(link).name; }

std::uint32_t Network::link_named(std::string_view name) const {
  for (std::uint32_t i = 0; i < links(); ++i) {
    if (topology_.links[i].name == name) return i;
  }
  throw Error(ErrorCode::kInvalidArgument, "network: there is no link " + std::string(name));
}

LinkCounters Network::counters(std::uint32_t link) const {
  const Channel& channel = *channels_.at(link);
  LinkCounters found = channel.counters;
  const Rate& rate = channel.clock.rate();
  found.busy_cycles =
      static_cast<std::uint64_t>(static_cast<unsigned __int128>(found.wire_bytes) * rate.cycles / rate.bytes);
  found.queue_bytes = channel.queued_bytes;
  if (channel.blocked_since != kNever) found.blocked_cycles += now_ - channel.blocked_since;
  return found;
}

}  // namespace unisono::sim
