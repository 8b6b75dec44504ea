#include "kernels/channel.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/text.hpp"
#include "kernels/group.hpp"
#include "kernels/rank.hpp"
#include "kernels/timed_collective.hpp"

namespace unisono::kernels {

namespace {

/// Elements of collectives that are handled at a time.
constexpr std::uint64_t kPiece = 1024;

/// `state` of a channel that has ended.
char ended_state;

Datatype datatype_of(SMI_Datatype type) {
  switch (type) {
    case SMI_INT:
      return Datatype::kInt32;
    case SMI_FLOAT:
      return Datatype::kFp32;
    case SMI_DOUBLE:
      return Datatype::kFp64;
    case SMI_CHAR:
      return Datatype::kInt8;
    case SMI_SHORT:
      return Datatype::kInt16;
    default:
      break;
  }
  constexpr int kFirst = SMI_TYPE_OF(0);
  if (type < kFirst || type >= kFirst + 256) return Datatype::kNone;
  const auto dtype = static_cast<Datatype>(type - kFirst);
  return is_known(dtype) ? dtype : Datatype::kNone;
}

Func func_of(SMI_Op op) {
  switch (op) {
    case SMI_ADD:
      return Func::kSum;
    case SMI_MAX:
      return Func::kMax;
    case SMI_MIN:
      return Func::kMin;
    default:
      break;
  }
  constexpr int kFirst = SMI_OP_OF(0);
  return op < kFirst || op >= kFirst + 256 ? Func::kNone : static_cast<Func>(op - kFirst);
}

bool reduces(int kind) { return kind == UNISONO_SMI_REDUCE || kind == UNISONO_SMI_ALLREDUCE; }

/// What of a channel can be said to be wrong when its first element comes.
Use checked(const Group& group, const unisono_smi_channel& channel) {
  const bool pair = channel.kind == UNISONO_SMI_SEND || channel.kind == UNISONO_SMI_RECEIVE;
  const char* const peer = channel.kind == UNISONO_SMI_SEND ? "destination" : pair ? "source" : "root";
  if (channel.peer < 0 || static_cast<std::uint32_t>(channel.peer) >= group.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("port {}: {} {} was given, which does not exist; the communicator has ranks 0 to {}",
                          channel.port, peer, channel.peer, group.size() - 1));
  }
  if (channel.port < 0 || static_cast<std::uint32_t>(channel.port) >= Group::kPorts) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("port {} was given; allowed are 0 to {}", channel.port, Group::kPorts - 1));
  }
  if (channel.count < 0) {
    throw Error(ErrorCode::kInvalidCount,
                formatted("port {}: a count of {} was given; allowed are 0 and more", channel.port, channel.count));
  }
  Use use;
  use.count = static_cast<std::uint64_t>(channel.count);
  use.dtype = datatype_of(channel.type);
  use.kind = static_cast<std::uint8_t>(channel.kind);
  use.root = pair ? 0 : static_cast<std::uint32_t>(channel.peer);
  use.degree = channel.degree;
  if (use.dtype == Datatype::kNone) {
    throw Error(ErrorCode::kInvalidDatatype,
                formatted("port {}: type {} is not known; give SMI_INT and the like, or SMI_TYPE_OF(a datatype)",
                          channel.port, channel.type));
  }
  if (!reduces(channel.kind)) return use;
  use.func = func_of(channel.op);
  if (use.func == Func::kNone || use.func == Func::kAvg || cclo::combine_kernel(use.func, use.dtype) == nullptr) {
    throw Error(ErrorCode::kInvalidOp,
                formatted("port {}: op {} is not defined on {}", channel.port, channel.op, name_of(use.dtype)));
  }
  return use;
}

[[noreturn]] void beyond(const Group& group, const unisono_smi_channel& channel, const char* verb) {
  throw Error(ErrorCode::kInvalidCount,
              formatted("port {} of rank {}: element {} is {}, but the channel was opened for {} and has ended",
                        channel.port, group.rank(), channel.count + 1, verb, channel.count));
}

void require(const unisono_smi_channel& channel, bool right, const char* function) {
  if (right) return;
  throw Error(ErrorCode::kInvalidArgument,
              formatted("port {}: {} is not for a channel of this kind", channel.port, function));
}

void require_memory(const Group& group, const unisono_smi_channel& channel, const void* data, const char* verb) {
  if (data != nullptr) [[likely]]
    return;
  throw Error(ErrorCode::kInvalidArgument, formatted("port {} of rank {}: data is null, and elements are to be {}",
                                                     channel.port, group.rank(), verb));
}

void close(unisono_smi_channel& channel) {
  channel.end = closed_end();
  channel.state = &ended_state;
}

SendLink* send_link(Group& group, unisono_smi_channel& channel) {
  require(channel, channel.kind == UNISONO_SMI_SEND, "push");
  if (channel.state == &ended_state) beyond(group, channel, "pushed");
  if (channel.state == nullptr) {
    const Use use = checked(group, channel);
    if (use.count == 0) beyond(group, channel, "pushed");
    group.listen();
    SendLink& link = group.sender(static_cast<std::uint32_t>(channel.port), static_cast<std::uint32_t>(channel.peer));
    link.open(use);
    channel.state = &link;
    channel.end = &link.end;
  }
  return static_cast<SendLink*>(channel.state);
}

}  // namespace

unisono_smi_end* closed_end() {
  static unisono_smi_end end{};
  return &end;
}

unsigned bytes_of_type(SMI_Datatype type) {
  const Datatype dtype = datatype_of(type);
  return dtype == Datatype::kNone ? 0 : static_cast<unsigned>(bytes_of(dtype));
}

void push(Group& group, unisono_smi_channel& channel, const void* data, std::uint64_t count) {
  if (count == 0) return;
  require_memory(group, channel, data, "pushed");
  SendLink& link = *send_link(group, channel);
  if (group.owner().node_ports() != nullptr) {
    if (!link.active()) beyond(group, channel, "pushed");
    link.push_timed(data, count);
    if (!link.active()) close(channel);
    return;
  }
  const auto* from = static_cast<const std::byte*>(data);
  const std::uint64_t piece = Rank::strict() ? 1 : kChunkBytes / channel.element_bytes;
  while (count != 0) {
    const std::uint64_t now = std::min(count, piece);
    if (!link.active()) beyond(group, channel, "pushed");
    link.append(from, now);
    link.settle();
    from += now * channel.element_bytes;
    count -= now;
  }
  if (!link.active()) close(channel);
}

void flush(Group& group, unisono_smi_channel& channel) {
  require(channel, channel.kind == UNISONO_SMI_SEND, "flush");
  if (channel.state == nullptr || channel.state == &ended_state) return;
  auto& link = *static_cast<SendLink*>(channel.state);
  group.owner().node_ports() != nullptr ? link.flush_timed() : link.ship();
}

void pop(Group& group, unisono_smi_channel& channel, void* data, std::uint64_t count) {
  require(channel, channel.kind == UNISONO_SMI_RECEIVE, "pop");
  if (count == 0) return;
  require_memory(group, channel, data, "popped");
  if (channel.state == &ended_state) beyond(group, channel, "popped");
  if (channel.state == nullptr) {
    const Use use = checked(group, channel);
    if (use.count == 0) beyond(group, channel, "popped");
    group.listen();
    ReceiveLink& link =
        group.receiver(static_cast<std::uint32_t>(channel.port), static_cast<std::uint32_t>(channel.peer));
    link.open(use);
    channel.state = &link;
    channel.end = &link.end;
  }
  ReceiveLink& link = *static_cast<ReceiveLink*>(channel.state);
  if (group.owner().node_ports() != nullptr) {
    if (!link.active()) beyond(group, channel, "popped");
    link.pop_timed(data, count);
    if (!link.active()) close(channel);
    return;
  }
  auto* to = static_cast<std::byte*>(data);
  while (count != 0) {
    if (!link.active()) beyond(group, channel, "popped");
    const std::uint64_t now = std::min(count, link.available());
    std::memcpy(to, link.elements(), now * channel.element_bytes);
    link.consume(now);
    to += now * channel.element_bytes;
    count -= now;
  }
  if (!link.active()) close(channel);
}

namespace {

/// Throws Error if this rank has an operand, or a result, in every call of the collective, and it is null.
[[gnu::noinline]] void check_there(const Group& group, const unisono_smi_channel& channel, const void* send,
                                   const void* receive) {
  const int kind = channel.kind;
  const bool root = channel.peer >= 0 && static_cast<std::uint32_t>(channel.peer) == group.rank();
  const bool rooted = kind == UNISONO_SMI_REDUCE || kind == UNISONO_SMI_SCATTER || kind == UNISONO_SMI_GATHER;
  const bool gives = kind == UNISONO_SMI_REDUCE || kind == UNISONO_SMI_ALLREDUCE || kind == UNISONO_SMI_ALLTOALL ||
                     (rooted && (kind == UNISONO_SMI_SCATTER) == root);
  const bool gets = !rooted || (kind == UNISONO_SMI_SCATTER) != root;
  if ((!gives || send != nullptr) && (!gets || receive != nullptr)) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      formatted("port {} of rank {}: {} is null, and this rank {} an element in each call", channel.port, group.rank(),
                gives && send == nullptr ? "send" : "receive", gives && send == nullptr ? "gives" : "gets"));
}

}  // namespace

void check_own_block(const Group& group, std::uint32_t port, const Use& use, std::uint64_t done, std::uint64_t calls,
                     const void* send, const void* receive) {
  const bool rooted = use.kind == UNISONO_SMI_SCATTER || use.kind == UNISONO_SMI_GATHER;
  if (use.kind != UNISONO_SMI_ALLGATHER && !(rooted && use.root == group.rank())) return;
  const std::uint64_t first = use.count * group.rank();
  if (done >= first + use.count || done + calls <= first || (send != nullptr && receive != nullptr)) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      formatted("port {} of rank {}: {} is null in calls {} to {}, and in calls {} to {} this rank gives itself an "
                "element; pass both there",
                port, group.rank(), send == nullptr ? "send" : "receive", done, done + calls - 1, first,
                first + use.count - 1));
}

void collective(Group& group, unisono_smi_channel& channel, const void* send, void* receive, std::uint64_t calls) {
  require(channel, channel.kind >= UNISONO_SMI_BCAST && channel.kind <= UNISONO_SMI_ALLTOALL, "a collective's call");
  if (calls == 0) return;
  if (send == nullptr || receive == nullptr) [[unlikely]]
    check_there(group, channel, send, receive);
  if (channel.state == &ended_state) beyond(group, channel, "asked for");
  if (channel.state == nullptr) {
    if (group.owner().node_ports() == nullptr) {
      channel.state = &group.keep(std::make_unique<CollectiveChannel>(group, channel));
    } else {
      const Use use = checked(group, channel);
      group.listen();
      channel.state =
          &group.keep(std::make_unique<TimedCollective>(group, static_cast<std::uint32_t>(channel.port), use));
    }
  }
  auto& state = *static_cast<AnyCollective*>(channel.state);
  state.run(static_cast<const std::byte*>(send), static_cast<std::byte*>(receive), calls);
  channel.end = state.end() == nullptr ? closed_end() : state.end();
  if (!state.ended()) return;
  group.drop(state);
  close(channel);
}

CollectiveChannel::CollectiveChannel(Group& group, const unisono_smi_channel& channel)
    : group_(group),
      port_(static_cast<std::uint32_t>(channel.port)),
      use_(checked(group, channel)),
      element_(channel.element_bytes),
      calls_(use_.count),
      exact_(Rank::strict()),
      out_(group.size()),
      in_(group.size()) {
  group.listen();
  const std::uint32_t me = group.rank();
  const bool root = me == use_.root;
  const auto to_all = [&] {
    for (std::uint32_t peer = 0; peer < group.size(); ++peer) send_to(peer);
  };
  const auto from_all = [&] {
    for (std::uint32_t peer = 0; peer < group.size(); ++peer) receive_from(peer);
  };
  if (use_.count == 0) return;
  if (reduces(channel.kind)) combine_ = cclo::combine_kernel(use_.func, use_.dtype);
  switch (channel.kind) {
    case UNISONO_SMI_BCAST:
    case UNISONO_SMI_SCATTER:
      root ? to_all() : receive_from(use_.root);
      break;
    case UNISONO_SMI_REDUCE:
    case UNISONO_SMI_GATHER:
      root ? from_all() : send_to(use_.root);
      break;
    case UNISONO_SMI_ALLREDUCE:
      if (root) {
        from_all();
        to_all();
      } else {
        send_to(use_.root);
        receive_from(use_.root);
      }
      break;
    default:
      to_all();
      from_all();
  }
  const bool all_by_rank = channel.kind == UNISONO_SMI_ALLGATHER || channel.kind == UNISONO_SMI_ALLTOALL;
  if (all_by_rank || (root && (channel.kind == UNISONO_SMI_SCATTER || channel.kind == UNISONO_SMI_GATHER))) {
    calls_ = use_.count * group.size();
  }
}

void CollectiveChannel::send_to(std::uint32_t peer) {
  if (peer == group_.rank()) return;
  out_[peer] = &group_.sender(port_, peer);
  out_[peer]->open(use_);
}

void CollectiveChannel::receive_from(std::uint32_t peer) {
  if (peer == group_.rank()) return;
  in_[peer] = &group_.receiver(port_, peer);
  in_[peer]->open(use_);
}

void CollectiveChannel::push(SendLink& link, const std::byte* from, std::uint64_t count) const {
  while (count != 0) {
    const std::uint64_t now = exact_ ? 1 : std::min(count, kPiece);
    link.append(from, now);
    link.settle();
    from += now * element_;
    count -= now;
  }
}

void CollectiveChannel::pop(ReceiveLink& link, std::byte* to, std::uint64_t count) const {
  while (count != 0) {
    const std::uint64_t now = std::min(count, link.available());
    std::memcpy(to, link.elements(), now * element_);
    link.consume(now);
    to += now * element_;
    count -= now;
  }
}

void CollectiveChannel::run(const std::byte* send, std::byte* receive, std::uint64_t calls) {
  if (calls > calls_ - done_ && end_ == nullptr) {
    throw Error(ErrorCode::kInvalidCount,
                formatted("port {} of rank {}: element {} of a channel that was opened for {}", port_, group_.rank(),
                          calls_ + 1, calls_));
  }
  if (send == nullptr || receive == nullptr) check_own_block(group_, port_, use_, done_, calls, send, receive);
  switch (use_.kind) {
    case UNISONO_SMI_BCAST:
      bcast(receive, calls);
      break;
    case UNISONO_SMI_REDUCE:
      reduce(send, receive, calls);
      break;
    case UNISONO_SMI_SCATTER:
      scatter(send, receive, calls);
      break;
    case UNISONO_SMI_GATHER:
      gather(send, receive, calls);
      break;
    case UNISONO_SMI_ALLREDUCE:
      allreduce(send, receive, calls);
      break;
    case UNISONO_SMI_ALLGATHER:
      allgather(send, receive, calls);
      break;
    default:
      alltoall(send, receive, calls);
  }
  // Elements that went the short way were not counted here.
  if (end_ == nullptr) {
    done_ += calls;
    return;
  }
  const SendLink* const out = out_[use_.root];
  const ReceiveLink* const in = in_[use_.root];
  if (out != nullptr ? !out->active() : !in->active()) done_ = calls_;
}

void CollectiveChannel::bcast(std::byte* data, std::uint64_t calls) {
  if (ReceiveLink* const from = in_[use_.root]; from != nullptr) {
    pop(*from, data, calls);
    end_ = &from->end;
    return;
  }
  while (calls != 0) {
    const std::uint64_t now = exact_ ? 1 : std::min(calls, kPiece);
    // All get it before anybody is waited for.
    for (SendLink* const to : out_) {
      if (to != nullptr) to->append(data, now);
    }
    for (SendLink* const to : out_) {
      if (to != nullptr) to->settle();
    }
    data += now * element_;
    calls -= now;
  }
}

/// Elements of all others, reduced, at `folded_at_`: at least 1, and at most `most` if every one counts.
std::uint64_t CollectiveChannel::fold(std::uint64_t most) {
  if (folded_count_ != 0) return folded_count_;
  std::uint64_t here = exact_ ? 1 : kPiece;
  if (exact_) here = std::min(here, most);
  for (ReceiveLink* const from : in_) {
    if (from != nullptr) here = std::min(here, from->available());
  }
  folded_.resize(kPiece * element_);
  bool first = true;
  for (ReceiveLink* const from : in_) {
    if (from == nullptr) continue;
    const auto* const elements = reinterpret_cast<const std::byte*>(from->elements());
    if (first) {
      std::memcpy(folded_.data(), elements, here * element_);
    } else {
      combine_(folded_.data(), elements, folded_.data(), here);
    }
    first = false;
    from->consume(here);
  }
  folded_at_ = 0;
  folded_count_ = here;
  return here;
}

void CollectiveChannel::reduce(const std::byte* send, std::byte* receive, std::uint64_t calls) {
  if (SendLink* const to = out_[use_.root]; to != nullptr) {
    push(*to, send, calls);
    end_ = &to->end;
    return;
  }
  if (group_.size() == 1) {
    std::memmove(receive, send, calls * element_);
    return;
  }
  while (calls != 0) {
    const std::uint64_t now = std::min(calls, fold(calls));
    combine_(folded_.data() + folded_at_ * element_, send, receive, now);
    folded_at_ += now;
    folded_count_ -= now;
    send += now * element_;
    receive += now * element_;
    calls -= now;
  }
}

/// Calls step(rank, offset, count) for stretches of calls that are of one rank.
template <class Step>
void CollectiveChannel::by_rank(std::uint64_t calls, Step&& step) {
  std::uint64_t offset = 0;
  while (offset != calls) {
    const std::uint64_t at = done_ + offset;
    const std::uint64_t now = std::min({calls - offset, use_.count - at % use_.count, exact_ ? 1 : kPiece});
    step(static_cast<std::uint32_t>(at / use_.count), offset * element_, now);
    offset += now;
  }
}

void CollectiveChannel::scatter(const std::byte* send, std::byte* receive, std::uint64_t calls) {
  if (ReceiveLink* const from = in_[use_.root]; from != nullptr) {
    pop(*from, receive, calls);
    end_ = &from->end;
    return;
  }
  by_rank(calls, [&](std::uint32_t peer, std::uint64_t offset, std::uint64_t count) {
    if (SendLink* const to = out_[peer]; to != nullptr) {
      push(*to, send + offset, count);
    } else {
      std::memmove(receive + offset, send + offset, count * element_);
    }
  });
}

void CollectiveChannel::gather(const std::byte* send, std::byte* receive, std::uint64_t calls) {
  if (SendLink* const to = out_[use_.root]; to != nullptr) {
    push(*to, send, calls);
    end_ = &to->end;
    return;
  }
  by_rank(calls, [&](std::uint32_t peer, std::uint64_t offset, std::uint64_t count) {
    if (ReceiveLink* const from = in_[peer]; from != nullptr) {
      pop(*from, receive + offset, count);
    } else {
      std::memmove(receive + offset, send + offset, count * element_);
    }
  });
}

void CollectiveChannel::allreduce(const std::byte* send, std::byte* receive, std::uint64_t calls) {
  while (calls != 0) {
    std::uint64_t now = exact_ ? 1 : std::min(calls, kPiece);
    if (SendLink* const to = out_[use_.root]; to != nullptr) {
      to->append(send, now);
      pop(*in_[use_.root], receive, now);
      to->settle();
    } else {
      if (group_.size() == 1) {
        std::memmove(receive, send, now * element_);
      } else {
        now = std::min(now, fold(now));
        combine_(folded_.data() + folded_at_ * element_, send, receive, now);
        folded_at_ += now;
        folded_count_ -= now;
      }
      for (SendLink* const link : out_) {
        if (link != nullptr) link->append(receive, now);
      }
      for (SendLink* const link : out_) {
        if (link != nullptr) link->settle();
      }
    }
    send += now * element_;
    receive += now * element_;
    calls -= now;
  }
}

void CollectiveChannel::allgather(const std::byte* send, std::byte* receive, std::uint64_t calls) {
  by_rank(calls, [&](std::uint32_t peer, std::uint64_t offset, std::uint64_t count) {
    if (ReceiveLink* const from = in_[peer]; from != nullptr) {
      pop(*from, receive + offset, count);
      return;
    }
    for (SendLink* const to : out_) {
      if (to != nullptr) to->append(send + offset, count);
    }
    for (SendLink* const to : out_) {
      if (to != nullptr) to->settle();
    }
    std::memmove(receive + offset, send + offset, count * element_);
  });
}

void CollectiveChannel::alltoall(const std::byte* send, std::byte* receive, std::uint64_t calls) {
  by_rank(calls, [&](std::uint32_t peer, std::uint64_t offset, std::uint64_t count) {
    if (out_[peer] == nullptr) {
      std::memmove(receive + offset, send + offset, count * element_);
      return;
    }
    // Nobody is waited for before it has what it waits for.
    out_[peer]->append(send + offset, count);
    pop(*in_[peer], receive + offset, count);
    out_[peer]->settle();
  });
}

}  // namespace unisono::kernels
