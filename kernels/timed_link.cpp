// Links whose elements go through the ports of a node in hardware, rather than in chunks of the engine's.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/text.hpp"
#include "kernels/group.hpp"
#include "kernels/link.hpp"
#include "kernels/node_ports.hpp"
#include "kernels/rank.hpp"

namespace unisono::kernels {

namespace {

constexpr const char* kProtocols[] = {"without credits (its k is as large as its count)", "with credits",
                                      "with credits, strictly", "by the node's units of collectives"};

/// Both ends must say the same. Natively it is the sender's word that counts.
std::uint32_t protocol_of(const Use& use) {
  if (use.unit) return 3;
  const NodePorts::Protocol given = NodePorts::protocol();
  if (!Rank::strict() && given == NodePorts::Protocol::kCredits) return 1;
  if (!Rank::strict() && given == NodePorts::Protocol::kEager) return use.credits ? 1 : 0;
  if (!use.credits && use.degree >= 0 && static_cast<std::uint64_t>(use.degree) >= use.count) return 0;
  return Rank::strict() ? 2 : 1;
}

/// Of strict channels: elements that may be under way.
std::uint32_t window_of(const Use& use) { return static_cast<std::uint32_t>(std::max<std::int64_t>(use.degree, 0)); }

}  // namespace

std::uint32_t Link::peer_in_job() const {
  const auto& endpoints = group_.communicator()->endpoints;
  return peer_ < endpoints.size() ? endpoints[peer_] : peer_;
}

/// What the hardware cannot carry.
void Link::check_timed(const Use& use) const {
  NodePorts& ports = *group_.owner().node_ports();
  if (port_ >= ports.count()) {
    throw Error(ErrorCode::kUnsupported,
                formatted("port {} of rank {}: the node has ports 0 to {}; use those, or give `unisono run` a node of "
                          "more ports (--node-ports)",
                          port_, group_.rank(), ports.count() - 1));
  }
  const Carried carried(bytes_of(use.dtype));
  if (const std::uint64_t most = (std::uint64_t{1} << 32U) / carried.parts; use.count >= most) {
    throw Error(ErrorCode::kUnsupported,
                formatted("port {}: {} elements; a channel of {} in hardware has fewer than {}", port_, use.count,
                          name_of(use.dtype), most));
  }
}

/// Compares this end with the other, as far as that has been opened; what differs, both ends are told.
void Link::exchange_cards(const Use& use, bool sends) {
  SmiNode& node = group_.owner().node_ports()->node();
  ChannelCard card;
  card.sequence = sequence_;
  card.count = use.count;
  card.dtype = static_cast<std::uint32_t>(use.dtype);
  card.kind = common_kind(use.kind);
  card.func = static_cast<std::uint32_t>(use.func);
  card.root = use.root;
  card.protocol = protocol_of(use);
  card.window = card.protocol == 2 ? window_of(use) : 0;
  card.communicator = group_.number();
  const std::uint32_t world = peer_in_job();
  node.put_card(sends, world, port_, card);
  const std::optional<ChannelCard> found = node.card_of(!sends, world, port_, sequence_);
  if (!found || found->communicator != card.communicator) return;
  const ChannelCard& from = sends ? card : *found;
  const ChannelCard& to = sends ? *found : card;
  const std::uint32_t sender = sends ? group_.rank() : peer_;
  const std::uint32_t receiver = sends ? peer_ : group_.rank();
  std::string wrong;
  if (from.kind != to.kind) {
    wrong = formatted("rank {} sends for {}, rank {} receives for {}", sender, kind_name(from.kind), receiver,
                      kind_name(to.kind));
  } else if (from.dtype != to.dtype) {
    wrong = formatted("rank {} sends {}, rank {} receives {}", sender, name_of(static_cast<Datatype>(from.dtype)),
                      receiver, name_of(static_cast<Datatype>(to.dtype)));
  } else if (from.count != to.count) {
    wrong = formatted("rank {} sends {} elements, rank {} receives {}", sender, from.count, receiver, to.count);
  } else if (from.root != to.root) {
    wrong = formatted("rank {} has root {}, rank {} root {}", sender, from.root, receiver, to.root);
  } else if (from.func != to.func) {
    wrong = formatted("rank {} reduces by {}, rank {} by {}", sender, name_of(static_cast<Func>(from.func)), receiver,
                      name_of(static_cast<Func>(to.func)));
  } else if (from.protocol != to.protocol || from.window != to.window) {
    wrong =
        formatted("rank {} sends {}, rank {} receives {}; in hardware both ends need the same asynchronicity degree",
                  sender, kProtocols[from.protocol], receiver, kProtocols[to.protocol]);
  }
  if (wrong.empty()) return;
  const std::string sentence = formatted("the ends of {} differ: {}", direction(sends), wrong);
  fail(ErrorCode::kMismatchedCall, sentence);
  if (sends) {
    group_.tell_left(port_, peer_, sentence);
  } else {
    group_.tell_broken(port_, peer_, sentence);
  }
  check();
}

void Link::join_tree(const Use& use, Link& leader, bool sends) {
  check();
  ++sequence_;
  use_ = use;
  element_ = static_cast<std::uint32_t>(bytes_of(use.dtype));
  owner_ = nullptr;
  leader_ = &leader;
  exchange_cards(use, sends);
}

/// One collective is offered to the unit of a port at a time; the unit takes it when the one before has ended.
void Link::offer_unit(const UnitOpen& unit, bool sends) const {
  NodePorts& ports = *group_.owner().node_ports();
  UnitEnd& joint = ports.node().unit[port_];
  while (joint.opening) {
    ports.wait_until(ports.now() + 1);
    check();
  }
  joint.open = unit;
  joint.pushes = sends;
  joint.pops = !sends;
  joint.opening = true;
}

void SendLink::open_unit(const Use& use, const UnitOpen& unit) {
  begin(use, "sends");
  begin_ = end.cursor = end.limit = nullptr;
  shipped_ = 0;
  check_timed(use);
  prepare_timed(use, 3);
  SendPort& port = group_.owner().node_ports()->send(port_);
  port.pending = true;
  offer_unit(unit, true);
  port.pending = false;
  exchange_cards(use, true);
}

void SendLink::open_timed(const Use& use) {
  check_timed(use);
  const std::uint32_t protocol = protocol_of(use);
  prepare_timed(use, protocol);
  PushEnd& into = group_.owner().node_ports()->node().push[port_];
  const Carried carried(element_);
  into.opening = true;
  into.open.peer = peer_in_job();
  into.open.port = port_;
  into.open.count = static_cast<std::uint32_t>(use.count) * carried.parts;
  into.open.size = static_cast<std::uint32_t>(std::countr_zero(carried.bytes));
  into.open.credits = protocol != 0;
  into.open.strict = protocol == 2;
  into.open.window = protocol == 2 ? window_of(use) * carried.parts : 0;
  into.open.lanes = 0;
  exchange_cards(use, true);
}

/// Waits until the port's sending end is free, and makes it ready for a channel.
void SendLink::prepare_timed(const Use& use, std::uint32_t protocol) {
  NodePorts& ports = *group_.owner().node_ports();
  SendPort& port = ports.send(port_);
  while (port.open) {
    if (port.link != nullptr && port.link != this && port.link->active()) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("port {} of rank {} still sends to rank {}; a port sends for one channel at a time: give "
                            "each a port of its own",
                            port_, group_.rank(), port.link->peer()));
    }
    port.link = this;  // it is told when the last packet of the channel before has gone
    wait(Wait::Kind::kPush, 1);
  }
  const std::uint64_t degree = use.degree < 0 ? 0 : static_cast<std::uint64_t>(use.degree);
  port.link = this;
  port.queue.clear();
  port.element = Carried(element_).bytes;
  port.exact = protocol == 2;
  port.room = std::max<std::uint64_t>(1, std::min(degree, use.count));
  port.left = use.count;
  port.accepted = 0;
  port.flush = false;
  port.flush_at = kNever;
  port.open = true;
  PushEnd& into = ports.node().push[port_];
  into.valid = false;
  into.count = 0;
}

void SendLink::push_timed(const void* elements, std::uint64_t count, bool last_waits) {
  check();
  NodePorts& ports = *group_.owner().node_ports();
  SendPort& port = ports.send(port_);
  const auto* from = static_cast<const std::byte*>(elements);
  if (count > use_.count - shipped_) {
    throw Error(ErrorCode::kInvalidCount, formatted("element {} is pushed to {}, whose channel was opened for {}",
                                                    use_.count + 1, direction(true), use_.count));
  }
  const std::uint64_t word = kPortWordBytes / element_;
  while (count != 0) {
    if (port.last == ports.now()) {
      ports.wait_until(ports.now() + 1);
      check();
      continue;
    }
    const std::uint64_t held = port.queue.size() / element_;
    const std::uint64_t now = std::min(count, word);
    // A word is as many places as it needs, and one that is larger than the queue goes into an empty one.
    const bool fits = port.exact || held + now <= port.room || held == 0;
    if (!fits) {
      wait(Wait::Kind::kPush, shipped_ + 1);
      continue;
    }
    const std::uint64_t piece = port.exact ? 1 : now;
    port.queue.insert(port.queue.end(), from, from + piece * element_);
    port.last = ports.now();
    port.flush_at = kNever;
    from += piece * element_;
    count -= piece;
    shipped_ += piece;
    port.left -= piece;
    ports.node().moved();
    if (port.exact && !last_waits && count == 0) return;
    settle_timed();
  }
  if (shipped_ == use_.count) active_ = false;
}

// Strictly, an element that may not be under way yet keeps its kernel. Before the receiver has begun, the node takes
// none; then `window` of them are under way for it.
void SendLink::settle_timed() {
  const SendPort& port = group_.owner().node_ports()->send(port_);
  const std::uint64_t window = window_of(use_);
  const auto accepted = [&] { return port.accepted / Carried(element_).parts; };
  while (port.exact && port.link == this && port.open && shipped_ > std::max(accepted(), window)) {
    wait(Wait::Kind::kPush, shipped_);
  }
  if (shipped_ == use_.count) active_ = false;
}

void SendLink::flush_timed() {
  if (!active_ || shipped_ == use_.count) return;  // behind the last element a packet leaves anyway
  group_.owner().node_ports()->send(port_).flush = true;
}

void ReceiveLink::open_timed(const Use& use) {
  check_timed(use);
  before_ = 0;
  offered_ = false;
  exchange_cards(use, false);
}

void ReceiveLink::open_unit(const Use& use, const UnitOpen& unit) {
  begin(use, "receives");
  begin_ = end.cursor = end.limit = stop_ = nullptr;
  check_timed(use);
  before_ = 0;
  await_port();
  ReceivePort& port = group_.owner().node_ports()->receive(port_);
  PopEnd& from = group_.owner().node_ports()->node().pop[port_];
  port.link = this;
  port.held.clear();
  port.open = true;
  from.ready = false;
  from.count = 0;
  from.complaint.reset();
  offered_ = true;
  strictly_ = false;
  port.pending = true;
  offer_unit(unit, false);
  port.pending = false;
  exchange_cards(use, false);
}

/// Until the port's receiving end is free.
void ReceiveLink::await_port() {
  ReceivePort& port = group_.owner().node_ports()->receive(port_);
  while (port.open) {
    if (port.link != nullptr && port.link != this && port.link->active()) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("port {} of rank {} still receives from rank {}; a port receives for one channel at a "
                            "time: give each a port of its own",
                            port_, group_.rank(), port.link->peer()));
    }
    port.link = this;
    wait(Wait::Kind::kPop, 1);
  }
}

void ReceiveLink::offer_timed(std::uint64_t lanes) {
  if (offered_) return;
  await_port();
  NodePorts& ports = *group_.owner().node_ports();
  ReceivePort& port = ports.receive(port_);
  const std::uint32_t protocol = protocol_of(use_);
  const Carried carried(element_);
  port.link = this;
  port.held.clear();
  port.open = true;
  PopEnd& from = ports.node().pop[port_];
  from.opening = true;
  from.ready = false;
  from.count = 0;
  from.complaint.reset();
  from.open.peer = peer_in_job();
  from.open.port = port_;
  from.open.count = static_cast<std::uint32_t>(use_.count) * carried.parts;
  from.open.size = static_cast<std::uint32_t>(std::countr_zero(carried.bytes));
  from.open.credits = protocol != 0;
  from.open.strict = protocol == 2;
  from.open.window = protocol == 2 ? window_of(use_) * carried.parts : 0;
  const std::uint64_t most = kPortWordBytes / carried.bytes;
  from.open.lanes = static_cast<std::uint32_t>(protocol == 2 ? 1 : std::min(lanes * carried.parts, most));
  offered_ = true;
  strictly_ = protocol == 2;
}

/// The hardware has found that the message is none for this channel.
void ReceiveLink::complain(const PortComplaint& complaint) {
  const std::string what =
      complaint.foreign
          ? formatted(
                "a packet of rank {} of the job came at {}, and was left out; a port receives from one sender at "
                "a time, unless they wait for credits",
                complaint.src, direction(false))
          : formatted("the ends of {} differ: rank {} sends {} elements, rank {} receives {}", direction(false), peer_,
                      complaint.got / Carried(element_).parts, group_.rank(),
                      complaint.expected / Carried(element_).parts);
  fail(ErrorCode::kMismatchedCall, what);
  group_.tell_broken(port_, peer_, what);
  throw Error(ErrorCode::kMismatchedCall, what);
}

void ReceiveLink::pop_timed(void* elements, std::uint64_t count) {
  check();
  NodePorts& ports = *group_.owner().node_ports();
  ReceivePort& port = ports.receive(port_);
  auto* to = static_cast<std::byte*>(elements);
  offer_timed(count);
  const std::uint64_t word = kPortWordBytes / element_;
  PopEnd& from = ports.node().pop[port_];
  while (count != 0) {
    const std::uint64_t here = port.held.size() / element_;
    if (here != 0 && port.last == ports.now()) {
      ports.wait_until(ports.now() + 1);
      check();
      continue;
    }
    if (const std::uint64_t now = std::min({count, word, here}); now != 0) {
      std::memcpy(to, port.held.data(), now * element_);
      port.held.erase(port.held.begin(), port.held.begin() + static_cast<std::ptrdiff_t>(now * element_));
      port.last = ports.now();
      to += now * element_;
      count -= now;
      before_ += now;
      ports.node().moved();
      // The next word comes into the register that is free now, so that kernels with several ports have a word of each
      // in every cycle. Strictly, an element that was not asked for is not popped.
      if (port.held.size() < element_ && !strictly_ && before_ != use_.count) from.ready = true;
      continue;
    }
    if (from.complaint) complain(*from.complaint);
    if (!port.open) {
      const std::uint32_t parts = Carried(element_).parts;
      complain(
          {false, peer_, static_cast<std::uint32_t>(use_.count) * parts, static_cast<std::uint32_t>(before_) * parts});
    }
    from.ready = true;
    wait(Wait::Kind::kPop, before_ + 1);
  }
  if (before_ == use_.count) active_ = false;
}

}  // namespace unisono::kernels
