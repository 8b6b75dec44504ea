// Units: frames that end in a switch, and frames that begin there (unit.hpp).
#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/network/channel.hpp"
#include "sim/network/unit.hpp"

namespace unisono::sim {

void Network::attach(std::uint32_t unit, Unit& device) { units_.at(unit).device = &device; }

/// A frame of a unit, of which nothing is there yet.
Frame* Network::make_unit_frame(std::uint32_t unit, std::uint32_t destination, std::uint16_t port, std::size_t bytes) {
  const UnitPlace& place = topology_.units.at(unit);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("network: the unit at {} sends {} bytes to {}: {}", place.name, bytes, destination, why));
  };
  if (bytes == 0 || bytes > config_.mtu) refuse(formatted("a frame has 1 to {} bytes", config_.mtu));
  if (destination >= topology_.addresses()) refuse(formatted("there are {} addresses", topology_.addresses()));
  if (destination == place.address) refuse("that is the unit itself");
  ++units_[unit].sent;
  quiet_until_ = 0;
  return make_frame(place.address, destination, port, static_cast<std::uint32_t>(bytes));
}

/// A frame of a unit in a switch waits for its link.
Network::Entry* Network::append_unit_frame(Channel& out, Frame* frame) {
  Entry* entry = take_entry();
  entry->frame = frame;
  // Its queue is the last one of each lane. No link brought it, so it has no room to give back, and takes none that
  // the policy to drop would count.
  append(out, topology_.first_channel(*out.plan), out.inputs - 1, entry);
  return entry;
}

void Network::send_from(std::uint32_t unit, std::uint32_t destination, std::uint16_t port,
                        std::span<const std::byte> frame) {
  Frame* made = make_unit_frame(unit, destination, port, frame.size());
  std::memcpy(made->data.get(), frame.data(), frame.size());
  const UnitPlace& place = topology_.units[unit];
  if (place.at.is_node) {
    units_[unit].waiting.push(made);
    return;
  }
  Channel& out = *channels_[topology_.way(place.at.index, place.address, destination, port)];
  append_unit_frame(out, made)->arrived = made->words;
}

void Network::push_from(std::uint32_t unit, const SentWord& word) {
  const UnitPlace& place = topology_.units.at(unit);
  if (place.at.is_node || word.destination >= topology_.addresses() || word.destination == place.address) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("network: the unit at {} sends a word to {}: {}", place.name, word.destination,
                          place.at.is_node ? "only units in switches send by words" : "there is no such address"));
  }
  Channel& out = *channels_[topology_.way(place.at.index, place.address, word.destination, word.port)];
  if (out.pushed == nullptr) {
    out.pushed = append_unit_frame(out, make_unit_frame(unit, word.destination, word.port, word.frame_bytes));
    out.pushed->whole = Rate{kWordBytes, 1}.below(out.clock.rate());
  }
  Entry& entry = *out.pushed;
  const Frame& frame = *entry.frame;
  if (word.bytes != frame.word_bytes(entry.arrived) || word.last != (entry.arrived + 1 == frame.words)) {
    throw Error(ErrorCode::kInvalidArgument, formatted("network: the unit at {} sends {} to {}: {}", place.name,
                                                       word.bytes, word.destination, name_of(Pushed::kWrongLength)));
  }
  std::memcpy(frame.data.get() + std::size_t{entry.arrived} * kWordBytes, word.data, word.bytes);
  ++entry.arrived;
  quiet_until_ = 0;
  if (word.last) out.pushed = nullptr;
}

Network::AttachedUnit& Network::unit_at_end(const Channel& channel) {
  return units_[topology_.unit_in[channel.plan->to.index]];
}

bool Network::takes_words(const Channel& channel) {
  const Unit* device = unit_at_end(channel).device;
  return device != nullptr && device->takes_words();
}

/// Why a unit does not get a frame.
std::optional<Drop> Network::refusal_by_unit(const Frame& frame) {
  if (frame.damaged) return Drop::kCheck;
  if (config_.sessions &&
      sessions_.receive(frame.source, frame.destination, frame.port, frame.number, now_) != Sessions::Verdict::kPass) {
    return Drop::kSession;
  }
  return std::nullopt;
}

/// The word of a frame that has just arrived goes to the unit, unless the frame has been refused with its first one.
void Network::give_word(Channel& channel, const Frame& frame) {
  AttachedUnit& at = unit_at_end(channel);
  const std::uint32_t word = channel.word - 1;
  if (word == 0) {
    const std::optional<Drop> refusal = refusal_by_unit(frame);
    channel.giving = !refusal;
    if (refusal) ++channel.dropped(*refusal);
  }
  if (!channel.giving) return;
  std::array<std::byte, kWordBytes> data;
  const std::uint32_t bytes = frame.word_bytes(word);
  std::memcpy(data.data(), frame.data.get() + std::size_t{word} * kWordBytes, bytes);
  if (frame.flip != Frame::kNoFlip && frame.flip / 8 / kWordBytes == word) {
    data[frame.flip / 8 % kWordBytes] ^= static_cast<std::byte>(1U << (frame.flip % 8));
  }
  const bool last = word + 1 == frame.words;
  if (last && frame.damaged) {
    ++channel.dropped(Drop::kCheck);
    if (config_.sessions) sessions_.damaged(frame.source, frame.destination, frame.port, frame.number, now_);
  } else if (last) {
    ++at.taken;
  }
  at.device->take_word(
      {data.data(), bytes, word == 0, last, last && frame.damaged, frame.source, frame.bytes, frame.port});
}

/// All of a frame for the unit in a switch has arrived there. A unit always takes, so the frame's room is free at once.
void Network::take_in(Channel& channel, Frame* frame, std::uint8_t lane) {
  AttachedUnit& at = unit_at_end(channel);
  if (const std::optional<Drop> refusal = refusal_by_unit(*frame); refusal) {
    ++channel.dropped(*refusal);
  } else {
    if (frame->flip != Frame::kNoFlip) {
      frame->data[frame->flip / 8] ^= static_cast<std::byte>(1U << (frame->flip % 8));
    }
    ++at.taken;
    if (at.device != nullptr) at.device->take({frame->source, frame->port, {frame->data.get(), frame->bytes}});
  }
  discard(channel, frame, lane);
}

/// Units at nodes do in every cycle what an engine may do: one word of what comes, one of what goes.
void Network::serve_units_at_nodes() {
  for (std::size_t u = first_at_node_; u < units_.size(); ++u) {
    AttachedUnit& at = units_[u];
    const std::uint32_t node = topology_.units[u].address;
    if (const ReceivedWord* word = front(node); word != nullptr && at.device != nullptr && at.device->takes_words()) {
      at.taken += word->last && !word->damaged ? 1 : 0;
      at.device->take_word(*word);
      pop(node);
    } else if (word != nullptr) {
      at.data.insert(at.data.end(), word->data, word->data + word->bytes);
      const ReceivedWord copy = *word;
      pop(node);
      if (copy.last) {
        if (!copy.damaged) {
          ++at.taken;
          if (at.device != nullptr) at.device->take({copy.source, copy.port, at.data});
        }
        at.data.clear();
      }
    }
    if (nodes_[node].pushing == nullptr && !at.waiting.empty() && can_push(node)) {
      nodes_[node].pushing = at.waiting.front();
      nodes_[node].word = 0;
      at.waiting.pop();
      push_next(node);
    } else if (nodes_[node].pushing != nullptr && can_push(node)) {
      push_next(node);
    }
  }
}

bool Network::units_are_busy() const {
  return std::any_of(units_.begin(), units_.end(),
                     [](const AttachedUnit& one) { return one.device != nullptr && one.device->is_busy(); });
}

void Network::tick_units() {
  for (const AttachedUnit& one : units_) {
    if (one.device != nullptr && one.device->is_busy()) one.device->tick();
  }
}

/// Whether a unit at a node has a word that its link takes now.
bool Network::units_can_push() const {
  for (std::size_t u = first_at_node_; u < units_.size(); ++u) {
    const std::uint32_t node = topology_.units[u].address;
    if ((nodes_[node].pushing != nullptr || !units_[u].waiting.empty()) && can_push(node)) return true;
  }
  return false;
}

}  // namespace unisono::sim
