#include "sim/network/network.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/error.hpp"
#include "sim/network/channel.hpp"
#include "sim/network/settings.hpp"

namespace unisono::sim {

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
    : config_(config),
      topology_(make_topology(config)),
      pool_(config.mtu),
      nodes_(config.nodes),
      units_(topology_.units.size()),
      first_at_node_(topology_.addresses() - topology_.nodes) {
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
    const std::uint32_t at = channel->plan->from.index;
    channel->inputs = inputs[at] + (topology_.unit_in[at] != kNoUnit ? 1 : 0);
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
    if (entry.from != nullptr && entry.from->credited) return_room(*entry.from, entry.lane, frame.bytes);
    if (entry.from != nullptr && !entry.from->credited) channel.limited_bytes -= frame.bytes;
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
  const bool to_unit = ends_in_unit(channel, *frame);
  const bool in_order = !passage.lost && passage.delay == 0;
  const bool by_words = to_unit && in_order && takes_words(channel);
  if (by_words) {
    give_word(channel, *frame);
  } else if (in_order && !to_unit) {
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
  const bool take = to_unit && in_order && !by_words;
  if (!passage.lost && passage.delay != 0)
    delayed_.push({now_ + passage.delay, delays_++, &channel, frame, lane});
  else if (channel.entry == nullptr && !take)
    discard(channel, frame, lane);
  channel.entry = nullptr;
  channel.word = 0;
  channel.passages.pop();
  if (take) take_in(channel, frame, lane);
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
  append(out, lane_out, channel.slot, entry);
  return entry;
}

/// A frame waits for a link.
void Network::append(Channel& out, std::uint32_t lane, std::uint32_t slot, Entry* entry) {
  out.queues[std::size_t{lane} * out.inputs + slot].append(entry);
  out.waiting[std::size_t{lane} * out.waiting_words + slot / 64] |= std::uint64_t{1} << (slot % 64);
  ++out.waiting_frames;
  out.queued_bytes += entry->frame->bytes;
  out.counters.queue_high_water = std::max(out.counters.queue_high_water, out.queued_bytes);
  set(sending_, out.index);
}

void Network::enter_whole(Channel& channel, Frame* frame, std::uint8_t lane) {
  if (ends_in_unit(channel, *frame)) return take_in(channel, frame, lane);
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
  if (first_at_node_ < units_.size()) serve_units_at_nodes();
  if (now_ < quiet_until_) {
    ++now_;
    tick_units();
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
  tick_units();
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
  if (units_can_push() || units_are_busy()) return 0;
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
