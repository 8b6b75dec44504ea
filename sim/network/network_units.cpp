// Units: frames that end in a switch, and frames that begin there (unit.hpp).
#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/network/channel.hpp"
#include "sim/network/unit.hpp"

namespace unisono::sim {

void Network::attach(std::uint32_t unit, Unit& device) { units_.at(unit).device = &device; }

void Network::send_from(std::uint32_t unit, std::uint32_t destination, std::uint16_t port,
                        std::span<const std::byte> frame) {
  const UnitPlace& place = topology_.units.at(unit);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, formatted("network: the unit at {} sends {} bytes to {}: {}", place.name,
                                                       frame.size(), destination, why));
  };
  if (frame.empty() || frame.size() > config_.mtu) refuse(formatted("a frame has 1 to {} bytes", config_.mtu));
  if (destination >= topology_.addresses()) refuse(formatted("there are {} addresses", topology_.addresses()));
  if (destination == place.address) refuse("that is the unit itself");
  Frame* made = make_frame(place.address, destination, port, static_cast<std::uint32_t>(frame.size()));
  std::memcpy(made->data.get(), frame.data(), frame.size());
  AttachedUnit& at = units_[unit];
  ++at.sent;
  quiet_until_ = 0;
  if (place.at.is_node) {
    at.waiting.push(made);
    return;
  }
  Channel& out = *channels_[topology_.way(place.at.index, place.address, destination, port)];
  Entry* entry = take_entry();
  entry->frame = made;
  entry->arrived = made->words;
  // Its queue is the last one of each lane. No link brought it, so it has no room to give back, and takes none that
  // the policy to drop would count.
  append(out, topology_.first_channel(*out.plan), out.inputs - 1, entry);
}

/// All of a frame for the unit in a switch has arrived there. A unit always takes, so the frame's room is free at once.
void Network::take_in(Channel& channel, Frame* frame, std::uint8_t lane) {
  AttachedUnit& at = units_[topology_.unit_in[channel.plan->to.index]];
  if (frame->damaged) {
    ++channel.dropped(Drop::kCheck);
  } else if (config_.sessions && sessions_.receive(frame->source, frame->destination, frame->port, frame->number,
                                                   now_) != Sessions::Verdict::kPass) {
    ++channel.dropped(Drop::kSession);
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
    if (const ReceivedWord* word = front(node); word != nullptr) {
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
