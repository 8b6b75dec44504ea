#include "switch/service/hosted_pool.hpp"

namespace unisono::slots {

namespace {

/// Where the kind of a frame stands in its datagram.
constexpr std::size_t kKindAt = kEnvelopeBytes + 3;
Time now() { return std::chrono::steady_clock::now(); }

/// So many results that were asked for say nothing of a group.
constexpr std::uint32_t kFewAsked = 16;

}  // namespace

PoolShape HostedPool::shape_of(const PoolRequest& request, const PoolNode& node, std::uint64_t generation) {
  PoolShape shape;
  shape.communicator = request.communicator;
  shape.epoch = request.epoch;
  shape.slots = request.slots;
  shape.payload_bytes = request.payload_bytes;
  shape.keeps_order = request.keeps_order;
  shape.generation = generation;
  for (const PoolNode::Below& below : node.below) shape.children.push_back(below.child);
  if (!node.above.empty()) shape.uplink = node.position;
  return shape;
}

HostedPool::HostedPool(const PoolRequest& request, const PoolNode& node, std::span<const std::byte> secret,
                       Datagrams& datagrams, std::uint64_t generation, const std::atomic<bool>* above_answers)
    : number_(number_of_pool(request.id)),
      datagrams_(datagrams),
      children_(node.below.size()),
      position_(node.position),
      name_(node.name),
      above_answers_(node.above.empty() ? nullptr : above_answers),
      pool_(shape_of(request, node, generation), *this) {
  pool_.await_operators();
  const Digest own = pool_secret(secret, request.id);
  for (std::uint32_t i = 0; i < children_.size(); ++i) {
    children_[i].in = Envelope(own, number_, node.name, i, Direction::kUp);
    children_[i].out = Envelope(own, number_, node.name, i, Direction::kDown);
  }
  for (const PoolNode::Below& below : node.below) ranks_only_ = ranks_only_ && below.name.empty();
  if (node.above.empty()) return;
  parent_ = std::make_unique<Link>();
  parent_->in = Envelope(own, number_, node.above, position_, Direction::kDown);
  parent_->out = Envelope(own, number_, node.above, position_, Direction::kUp);
}

void HostedPool::use_group(const tcp::SystemAddress& group, const PoolId& id, std::span<const std::byte> secret) {
  if (!ranks_only_ || children_.size() < 2) return;
  group_ = std::make_unique<Link>();
  group_->out = Envelope(pool_secret(secret, id), number_, name_, kEveryone, Direction::kDown);
  group_->address = group;
}

void HostedPool::set_parent(const tcp::SystemAddress& address) {
  if (parent_) parent_->address = address;
}

bool HostedPool::take(std::span<std::byte> datagram, const Labels& labels, const tcp::SystemAddress& from) {
  // The kind is not proven yet; it only says whose key to try. Refusals go both ways.
  const auto kind = static_cast<SlotKind>(datagram[kKindAt]);
  const bool upwards = kind == SlotKind::kContribute || kind == SlotKind::kResume;
  if ((upwards || kind == SlotKind::kRefuse) && take_from_child(datagram, labels, from)) return true;
  return !upwards && take_from_parent(datagram, labels);
}

bool HostedPool::take_from_child(std::span<std::byte> datagram, const Labels& labels, const tcp::SystemAddress& from) {
  if (labels.member >= children_.size()) return false;
  Link& link = children_[labels.member];
  FrameView frame;
  if (!link.in.open(datagram, frame) || frame.head.member != labels.member) return false;
  // A datagram that was recorded and comes again must not turn the results away.
  if (labels.number > link.number) {
    link.number = labels.number;
    link.address = from;
    link.echo.take(labels.stamp, now());
  }
  ++traffic_.frames_in;
  traffic_.bytes_in += datagram.size();
  if (above_answers_ != nullptr && !above_answers_->load(std::memory_order_relaxed)) return true;
  const std::uint64_t duplicates = pool_.counters().duplicates;
  gave_result_ = false;
  pool_.from_child(frame);
  if (gave_result_ && pool_.counters().duplicates != duplicates) ++asked_for_;
  return true;
}

bool HostedPool::take_from_parent(std::span<std::byte> datagram, const Labels& labels) {
  if (!parent_ || (labels.member != position_ && labels.member != kEveryone)) return false;
  FrameView frame;
  if (!parent_->in.open(datagram, frame)) return false;
  ++traffic_.frames_in;
  traffic_.bytes_in += datagram.size();
  beyond_ = path_of(labels.stamp, now()).value_or(beyond_);
  pool_.from_parent(frame);
  return true;
}

void HostedPool::send(Link& link, const SlotFrame& head, std::span<const std::byte> payload) {
  // Nobody knows yet where it is: it has sent nothing, so it will have to ask.
  if (link.address.bytes == 0) return;
  const Stamp stamp = &link == parent_.get() ? stamp_of(now()) : link.echo.back(now(), beyond_);
  const std::size_t bytes = link.out.seal(head, payload, datagrams_.room(), stamp);
  datagrams_.queue(link.address, bytes);
  ++traffic_.frames_out;
  traffic_.bytes_out += bytes;
}

void HostedPool::down(const SlotFrame& head, std::span<const std::byte> payload) {
  gave_result_ = gave_result_ || head.kind == SlotKind::kResult;
  send(children_[head.member], head, payload);
}

void HostedPool::down_all(const SlotFrame& head, std::span<const std::byte> payload) {
  if (group_ != nullptr && head.kind == SlotKind::kResult) {
    // Networks that lead groups nowhere are common. Members then ask for every result, which is slow, and right.
    if (asked_for_ <= kFewAsked || asked_for_ <= results_ / 4) {
      ++results_;
      send(*group_, head, payload);
      return;
    }
    group_.reset();
  }
  for (Link& link : children_) send(link, head, payload);
}

void HostedPool::up(const SlotFrame& head, std::span<const std::byte> payload) {
  if (parent_) send(*parent_, head, payload);
}

}  // namespace unisono::slots
