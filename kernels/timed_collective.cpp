#include "kernels/timed_collective.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/text.hpp"
#include "kernels/group.hpp"
#include "kernels/node_ports.hpp"
#include "kernels/rank.hpp"

namespace unisono::kernels {

namespace {

/// All ranks but the root, in the order of ranks.
std::vector<std::uint32_t> others(const Group& group, std::uint32_t root, std::uint32_t first) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < group.size(); ++i) {
    if (const std::uint32_t rank = (first + i) % group.size(); rank != root) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

TimedCollective::TimedCollective(Group& group, std::uint32_t port, const Use& use)
    : group_(group), port_(port), use_(use), element_(bytes_of(use.dtype)), calls_(use.count) {
  if (use_.count == 0) return;
  const std::uint32_t me = group.rank();
  const std::uint32_t size = group.size();
  if (use_.func != Func::kNone) combine_ = cclo::combine_kernel(use_.func, use_.dtype);
  switch (use_.kind) {
    case UNISONO_SMI_BCAST: {
      if (by_units()) {
        open_bcast();
        break;
      }
      std::vector<std::uint32_t> ranks = others(group, use_.root, use_.root);
      ranks.insert(ranks.begin(), use_.root);
      order(ranks);
      break;
    }
    case UNISONO_SMI_REDUCE: {
      std::vector<std::uint32_t> ranks = others(group, use_.root, 0);
      ranks.push_back(use_.root);
      by_units() ? open_reduce(ranks) : order(ranks);
      break;
    }
    case UNISONO_SMI_SCATTER:
    case UNISONO_SMI_GATHER: {
      use_.credits = true;  // a port has several senders, one after the other
      const bool scatters = use_.kind == UNISONO_SMI_SCATTER;
      if (me == use_.root) {
        calls_ = use_.count * size;
      } else if (scatters) {
        open_from(use_.root, use_.count);
      } else {
        open_to(use_.root, use_.count);
      }
      break;
    }
    case UNISONO_SMI_ALLREDUCE:
      // 1 to 2, and on to the last one and to 0, whose sum goes the same way: of each element first that, then this.
      if (size == 1) break;
      open_to((me + 1) % size, me == 0 || me == size - 1 ? use_.count : 2 * use_.count);
      open_from((me + size - 1) % size, me <= 1 ? use_.count : 2 * use_.count);
      break;
    case UNISONO_SMI_ALLGATHER:
      calls_ = use_.count * size;
      if (size == 1) break;
      open_to((me + 1) % size, use_.count * (size - 1));
      open_from((me + size - 1) % size, use_.count * (size - 1));
      break;
    default:
      use_.credits = true;
      calls_ = use_.count * size;
  }
}

/// All ranks decide alike: their nodes are alike.
bool TimedCollective::by_units() const {
  const SmiNode& node = group_.owner().node_ports()->node();
  if (group_.size() == 1 || Rank::strict() || NodePorts::by_channels()) return false;
  if (port_ >= node.unit.size() || use_.count >> 32U != 0) return false;  // opening a channel says what is wrong
  if (use_.kind == UNISONO_SMI_BCAST) return node.broadcasts(port_);
  // Units combine elements that a node knows.
  if (element_ > kPortElementBytes) return false;
  return node.reduces(port_, static_cast<std::uint32_t>(use_.dtype), static_cast<std::uint32_t>(use_.func));
}

std::uint32_t TimedCollective::in_job(std::uint32_t rank) const {
  const auto& endpoints = group_.communicator()->endpoints;
  return rank < endpoints.size() ? endpoints[rank] : rank;
}

std::uint32_t TimedCollective::in_group(std::uint32_t rank) const {
  std::uint32_t found = 0;
  while (in_job(found) != rank) ++found;
  return found;
}

UnitOpen TimedCollective::unit_of(UnitOpen::Kind kind) const {
  UnitOpen unit;
  unit.kind = kind;
  unit.root = in_job(use_.root);
  unit.port = port_;
  const Carried carried(element_);
  unit.count = static_cast<std::uint32_t>(use_.count) * carried.parts;
  unit.size = static_cast<std::uint32_t>(std::countr_zero(carried.bytes));
  return unit;
}

/// The root pushes, the others pop.
void TimedCollective::open_bcast() {
  use_.unit = true;
  std::vector<std::uint32_t> members(group_.size());
  for (std::uint32_t rank = 0; rank < group_.size(); ++rank) members[rank] = in_job(rank);
  UnitOpen unit = unit_of(UnitOpen::Kind::kBroadcast);
  unit.place = group_.owner().node_ports()->node().tree(unit.root, members);
  const std::vector<std::uint32_t>& children = unit.place.children;
  Link* leader = nullptr;
  if (group_.rank() == use_.root) {
    to_ = &group_.sender(port_, in_group(children.front()));
    to_->open_unit(use_, unit);
    leader = to_;
  } else {
    from_ = &group_.receiver(port_, in_group(*unit.place.parent));
    from_->open_unit(use_, unit);
    leader = from_;
  }
  for (const std::uint32_t child : children) {
    Link& edge = group_.sender(port_, in_group(child));
    if (&edge != leader) edge.join_tree(use_, *leader, true);
  }
}

/// All but the root push; the root pops what they make together.
void TimedCollective::open_reduce(const std::vector<std::uint32_t>& ranks) {
  use_.unit = true;
  const auto at = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), group_.rank()) - ranks.begin());
  UnitOpen unit = unit_of(UnitOpen::Kind::kReduce);
  unit.dtype = static_cast<std::uint32_t>(use_.dtype);
  unit.func = static_cast<std::uint32_t>(use_.func);
  if (at != 0) unit.place.children = {in_job(ranks[at - 1])};
  if (group_.rank() == use_.root) {
    unit.bare = true;
    from_ = &group_.receiver(port_, ranks[at - 1]);
    from_->open_unit(use_, unit);
    return;
  }
  unit.place.parent = in_job(ranks[at + 1]);
  to_ = &group_.sender(port_, ranks[at + 1]);
  to_->open_unit(use_, unit);
  if (at != 0) group_.receiver(port_, ranks[at - 1]).join_tree(use_, *to_, false);
}

/// Elements go along these ranks.
void TimedCollective::order(const std::vector<std::uint32_t>& ranks) {
  const auto at = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), group_.rank()) - ranks.begin());
  if (at != 0) open_from(ranks[at - 1], use_.count);
  if (at + 1 < ranks.size()) open_to(ranks[at + 1], use_.count);
}

void TimedCollective::open_to(std::uint32_t peer, std::uint64_t count) {
  Use use = use_;
  use.count = count;
  to_ = &group_.sender(port_, peer);
  to_->open(use);
}

void TimedCollective::open_from(std::uint32_t peer, std::uint64_t count) {
  Use use = use_;
  use.count = count;
  from_ = &group_.receiver(port_, peer);
  from_->open(use);
}

void TimedCollective::run(const std::byte* send, std::byte* receive, std::uint64_t calls) {
  if (calls > calls_ - done_) {
    throw Error(ErrorCode::kInvalidCount,
                formatted("port {} of rank {}: element {} of a channel that was opened for {}", port_, group_.rank(),
                          calls_ + 1, calls_));
  }
  if (send == nullptr || receive == nullptr) check_own_block(group_, port_, use_, done_, calls, send, receive);
  // Element by element where each waits for others, or may.
  const bool single = use_.kind == UNISONO_SMI_ALLREDUCE || Rank::strict();
  const std::uint64_t word = single ? 1 : kPortWordBytes / element_;
  while (calls != 0) {
    // A word is of one rank.
    const std::uint64_t now = std::min({calls, word, use_.count - done_ % use_.count});
    step(send, receive, now);
    done_ += now;
    calls -= now;
    if (send != nullptr) send += now * element_;
    if (receive != nullptr) receive += now * element_;
  }
}

void TimedCollective::step(const std::byte* send, std::byte* receive, std::uint64_t count) {
  const std::uint32_t me = group_.rank();
  const bool root = me == use_.root;
  switch (use_.kind) {
    case UNISONO_SMI_BCAST:
      if (from_ != nullptr) from_->pop_timed(receive, count);
      if (to_ != nullptr) to_->push_timed(receive, count);
      return;
    case UNISONO_SMI_REDUCE:
      reduce(send, receive, count);
      return;
    case UNISONO_SMI_ALLREDUCE:
      allreduce(send, receive);
      return;
    case UNISONO_SMI_SCATTER:
      if (!root) {
        from_->pop_timed(receive, count);
        return;
      }
      break;
    case UNISONO_SMI_GATHER:
      if (!root) {
        to_->push_timed(send, count);
        return;
      }
      break;
    default:
      break;
  }
  by_rank(static_cast<std::uint32_t>(done_ / use_.count), send, receive, count);
}

/// Calls that are of one rank after the other.
void TimedCollective::by_rank(std::uint32_t peer, const std::byte* send, std::byte* receive, std::uint64_t count) {
  const std::uint32_t me = group_.rank();
  const bool begins = done_ % use_.count == 0;
  if (use_.kind == UNISONO_SMI_ALLGATHER) {
    if (peer == me) {
      std::memmove(receive, send, count * element_);
    } else {
      from_->pop_timed(receive, count);
    }
    if (to_ != nullptr && to_->peer() != peer) to_->push_timed(receive, count);
    return;
  }
  if (peer == me) {
    std::memmove(receive, send, count * element_);
    return;
  }
  const bool sends = use_.kind != UNISONO_SMI_GATHER;
  const bool receives = use_.kind != UNISONO_SMI_SCATTER;
  if (begins && sends) open_to(peer, use_.count);
  if (begins && receives) open_from(peer, use_.count);
  if (receives) from_->offer_timed(count);
  // Nobody is waited for before it has what it waits for.
  if (sends) to_->push_timed(send, count, !receives);
  if (receives) from_->pop_timed(receive, count);
  if (sends && receives) to_->settle_timed();
}

void TimedCollective::reduce(const std::byte* send, std::byte* receive, std::uint64_t count) {
  if (from_ == nullptr) {
    if (to_ != nullptr) {
      to_->push_timed(send, count);
    } else {
      std::memmove(receive, send, count * element_);
    }
    return;
  }
  from_->pop_timed(word_.data(), count);
  if (to_ == nullptr) {
    combine_(word_.data(), send, receive, count);
    return;
  }
  combine_(word_.data(), send, word_.data(), count);
  to_->push_timed(word_.data(), count);
}

void TimedCollective::allreduce(const std::byte* send, std::byte* receive) {
  const std::uint32_t me = group_.rank();
  const std::uint32_t size = group_.size();
  if (size == 1) {
    std::memmove(receive, send, element_);
    return;
  }
  from_->offer_timed(1);
  const auto give = [&](const std::byte* element) {
    to_->push_timed(element, 1);
    to_->flush_timed();
  };
  std::memcpy(word_.data(), send, element_);
  if (me != 1) {
    std::array<std::byte, kPortWordBytes> part{};
    from_->pop_timed(part.data(), 1);
    combine_(part.data(), send, word_.data(), 1);
  }
  give(word_.data());
  if (me == 0) {
    std::memcpy(receive, word_.data(), element_);
    return;
  }
  from_->pop_timed(word_.data(), 1);
  std::memcpy(receive, word_.data(), element_);
  if (me + 1 < size) give(word_.data());
}

}  // namespace unisono::kernels
