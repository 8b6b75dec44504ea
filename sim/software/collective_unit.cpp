#include "sim/software/collective_unit.hpp"

#include <algorithm>

namespace unisono::sim::software {

namespace {

/// Between the unit and an end of its port.
constexpr std::size_t kPlaces = 2;

}  // namespace

CollectiveUnit::CollectiveUnit(std::uint32_t rank, std::uint32_t ranks, PacketFormat format, Windows windows)
    : rank_(rank), format_(format), windows_(windows), credits_(rank, ranks, format) {}

void CollectiveUnit::open(const kernels::UnitOpen& unit, SendingEnd& sender, ReceivingEnd& receiver) {
  const bool broadcasts = unit.kind == kernels::UnitOpen::Kind::kBroadcast;
  unit_ = unit;
  active_ = true;
  done_ = own_has_ = false;
  has_.assign(children(), false);
  of_child_.assign(children(), {});
  pushed_.clear();
  popped_.clear();
  combine_ =
      broadcasts ? nullptr : cclo::combine_kernel(static_cast<Func>(unit.func), static_cast<Datatype>(unit.dtype));
  kernels::PortOpen channel;
  channel.peer = unit.root;
  channel.port = unit.port;
  channel.count = unit.count;
  channel.size = unit.size;
  channel.lanes = unit.lanes;
  channel.strict = !broadcasts;  // without credits: packet i of all ends begins with the same element
  if (broadcasts ? top() : !(top() && unit.bare)) sender.open_tree(channel);
  if (broadcasts != top()) receiver.open_tree(channel);
  credits_.open(unit, broadcasts, broadcasts ? windows_.port : windows_.child);
}

/// Each packet goes to each child as that has places, and to the own end; it is gone when all have it.
void CollectiveUnit::broadcast(std::deque<Packet>& from, PacketSink& data) {
  while (!from.empty() && !done_) {
    bool all = true;
    for (std::size_t child = 0; child < children(); ++child) {
      if (!has_[child] && credits_.may(child) && data.takes()) {
        Packet copy = from.front();
        Header header = format_.header(copy);
        header.dst = unit_.place.children[child];
        format_.set_header(copy, header);
        data.give(copy);
        credits_.spend(child);
        has_[child] = true;
      }
      all = all && has_[child];
    }
    if (!top() && !own_has_ && popped_.size() < kPlaces) {
      popped_.push_back(from.front());
      own_has_ = true;
    }
    if (!all || (!top() && !own_has_)) return;
    done_ = format_.header(from.front()).op == Op::kLast;
    from.pop_front();
    has_.assign(children(), false);
    own_has_ = false;
    if (!top()) credits_.free(children());
  }
}

/// Packets of each child into its queue, for which the child has places.
void CollectiveUnit::sort_out(std::deque<Packet>& arrived, kernels::PopEnd& pop) {
  for (; !arrived.empty(); arrived.pop_front()) {
    const std::uint32_t src = format_.header(arrived.front()).src;
    const auto& ranks = unit_.place.children;
    const auto found = std::find(ranks.begin(), ranks.end(), src);
    if (found == ranks.end()) {
      pop.complaint = kernels::PortComplaint{true, src, 0, 0};
    } else {
      of_child_[static_cast<std::size_t>(found - ranks.begin())].push_back(arrived.front());
    }
  }
}

/// The first elements of all heads, the first stream's with the second's, that with the third's, and so on.
Packet CollectiveUnit::combined(const std::vector<std::deque<Packet>*>& streams, std::uint32_t count, bool last) const {
  Packet result = streams.front()->front();
  for (std::size_t i = 1; i < streams.size(); ++i) {
    combine_(result.bytes(), streams[i]->front().bytes(), result.bytes(), count);
  }
  // Bytes behind the elements are none of the message.
  std::fill(result.bytes() + (std::size_t{count} << unit_.size), result.bytes() + format_.bytes(), std::byte{0});
  format_.set_header(result,
                     {rank_, top() ? rank_ : *unit_.place.parent, unit_.port, last ? Op::kLast : Op::kSend, count});
  return result;
}

/// Packets are combined as far as the shortest one goes, which is then used up.
void CollectiveUnit::reduce(PacketSink& data) {
  std::vector<std::deque<Packet>*> streams;
  if (!(top() && unit_.bare)) streams.push_back(&pushed_);
  for (std::deque<Packet>& child : of_child_) streams.push_back(&child);
  const std::size_t parent = children();
  while (!done_) {
    if (top() ? popped_.size() >= kPlaces : !credits_.may(parent) || !data.takes()) return;
    if (std::any_of(streams.begin(), streams.end(), [](const auto* stream) { return stream->empty(); })) return;
    const auto head = [this](const std::deque<Packet>* stream) { return format_.header(stream->front()); };
    std::uint32_t count = head(streams.front()).count;
    for (const auto* stream : streams) count = std::min(count, head(stream).count);
    const Header first = head(streams.front());
    const bool last = first.op == Op::kLast && first.count == count;
    const Packet result = combined(streams, count, last);
    if (top()) {
      popped_.push_back(result);
    } else {
      data.give(result);
      credits_.spend(parent);
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (head(streams[i]).count != count) continue;
      streams[i]->pop_front();
      if (streams[i] != &pushed_) credits_.free(i - (streams.front() == &pushed_ ? 1 : 0));
    }
    done_ = last;
  }
}

void CollectiveUnit::cycle(Surroundings around) {
  QueueSink pushed(pushed_, kPlaces);
  around.sender.cycle(around.push, pushed);
  if (unit_.kind == kernels::UnitOpen::Kind::kBroadcast) {
    broadcast(top() ? pushed_ : around.arrived, around.data);
  } else {
    sort_out(around.arrived, around.pop);
    reduce(around.data);
  }
  around.receiver.cycle(around.pop, popped_, around.control);
  if (done_ && !around.sender.active() && !around.receiver.active()) {
    active_ = false;
    credits_.close();
  }
}

}  // namespace unisono::sim::software
