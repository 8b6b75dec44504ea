#include "sim/software/transport.hpp"

#include <stdexcept>

namespace unisono::sim::software {

namespace {

/// Packets that a sending endpoint takes before one has left it, beside those that the delay keeps.
constexpr std::uint64_t kSendPlaces = 4;

}  // namespace

Transport::Transport(const Tables& tables, PacketFormat format, Depths depths)
    : tables_(tables), format_(format), depths_(depths), channels_(2 * tables.shape().virtual_channels) {
  const int links = tables_.shape().links;
  sources_.resize(of_endpoint(tables_.endpoints()));
  for (int link = 0; link < links; ++link) {
    for (int channel = 0; channel < channels_; ++channel) {
      Source& source = sources_[at(link, channel)];
      source.link = link;
      source.channel = channel;
    }
  }
  const auto ports = static_cast<std::size_t>(tables_.shape().ports);
  data_.resize(ports);
  control_.resize(ports);
  up_.resize(static_cast<std::size_t>(links));
  freed_.resize(static_cast<std::size_t>(links));
  next_.resize(static_cast<std::size_t>(links));
  places_.resize(at(links, 0));
}

void Transport::signals(int link, std::uint32_t freed, bool up) {
  const bool was_up = up_[static_cast<std::size_t>(link)];
  up_[static_cast<std::size_t>(link)] = up;
  for (int channel = 0; channel < channels_; ++channel) {
    if (!up) {
      places(link, channel) = 0;
    } else if (!was_up) {
      places(link, channel) = depths_.link;
    } else if ((freed >> channel & 1U) != 0) {
      if (places(link, channel) == depths_.link) {
        throw std::logic_error("link " + std::to_string(link) + ": more places were freed than there are");
      }
      ++places(link, channel);
    }
  }
}

void Transport::arrive(int link, int channel, const Packet& packet) {
  Source& source = sources_[at(link, channel)];
  if (source.queue.size() == depths_.link) {
    throw std::logic_error("link " + std::to_string(link) + ": a packet was sent for which there is no place");
  }
  source.queue.push_back({packet, tables_.from_link(link, channel, format_.header(packet)), 0});
  ++held_;
}

bool Transport::takes(int endpoint) const {
  return sources_[of_endpoint(endpoint)].queue.size() < kSendPlaces + depths_.delay;
}

void Transport::give(int endpoint, const Packet& packet, std::uint64_t now) {
  sources_[of_endpoint(endpoint)].queue.push_back(
      {packet, tables_.from_endpoint(endpoint, format_.header(packet)), now + depths_.delay});
  ++held_;
}

/// A queue gives one packet in a cycle.
bool Transport::can_move(const Source& source, std::uint64_t now) const {
  return !source.queue.empty() && source.moved != now && source.queue.front().ready <= now;
}

void Transport::remove(Source& source, std::uint64_t now) {
  source.queue.pop_front();
  source.moved = now;
  --held_;
  if (source.link >= 0) freed_[static_cast<std::size_t>(source.link)] |= 1U << source.channel;
}

void Transport::deliver(std::uint64_t now) {
  if (held_ == 0) return;
  for (Source& source : sources_) {
    if (!can_move(source, now)) continue;
    const Entry& head = source.queue.front();
    if (head.way.kind == Way::Kind::kLink) continue;
    if (head.way.kind == Way::Kind::kEndpoint) {
      const int ports = tables_.shape().ports;
      const bool controls = head.way.endpoint >= ports;
      const int port = controls ? head.way.endpoint - ports : head.way.endpoint;
      std::deque<Packet>& into = controls ? control(port) : data(port);
      if (!controls && into.size() >= depths_.endpoint) continue;
      into.push_back(head.packet);
    } else if (strays_++ == 0) {
      first_stray_ = format_.header(head.packet);
    }
    remove(source, now);
  }
}

bool Transport::leave(int link, std::uint64_t now, Leaving& leaving) {
  if (held_ == 0) return false;
  std::size_t& next = next_[static_cast<std::size_t>(link)];
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::size_t number = (next + i) % sources_.size();
    Source& source = sources_[number];
    if (!can_move(source, now)) continue;
    const Entry& head = source.queue.front();
    if (head.way.kind != Way::Kind::kLink || head.way.link != link || places(link, head.way.channel) == 0) continue;
    --places(link, head.way.channel);
    leaving.packet = head.packet;
    leaving.channel = head.way.channel;
    remove(source, now);
    next = (number + 1) % sources_.size();
    return true;
  }
  return false;
}

std::uint32_t Transport::freed(int link) {
  const std::uint32_t found = freed_[static_cast<std::size_t>(link)];
  freed_[static_cast<std::size_t>(link)] = 0;
  return found;
}

std::string Transport::strays() const {
  if (strays_ == 0) return {};
  return std::to_string(strays_) + " packets were for nobody; the first came from rank " +
         std::to_string(first_stray_.src) + ", for port " + std::to_string(first_stray_.port) + " of rank " +
         std::to_string(first_stray_.dst);
}

}  // namespace unisono::sim::software
