#include "sim/cables/kernel_node.hpp"

#include <verilated.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "Vunisono_smi_node.h"
#include "core/generated/spec.hpp"
#include "sim/cables/trees.hpp"

namespace unisono::sim {

using kernels::PopEnd;
using kernels::PushEnd;

namespace {

// What the node was built with: unisono_smi_node's parameters.
constexpr int kPorts = UNISONO_SMI_PORTS;
constexpr int kPacketBytes = UNISONO_SMI_PACKET;
constexpr int kPacketWords = kPacketBytes / 4;
constexpr std::uint64_t kCollectives = UNISONO_SMI_COLLECTIVES;
constexpr std::uint64_t kReductions = UNISONO_SMI_REDUCTIONS;
constexpr std::uint64_t kDatatypes = UNISONO_SMI_DATATYPES;
constexpr std::uint64_t kFuncs = UNISONO_SMI_FUNCS;
// Those of which unisono_plugin_pkg has products.
constexpr std::uint64_t kProdDatatypes = 0x00fcfc;
// Bits of unisono_smi_pkg::open_t, collective_t and complaint_t, and of a number of elements of a word.
constexpr int kOpenBits = 108;
constexpr int kCollectiveBits = 192;
constexpr int kComplaintBits = 81;
constexpr int kCountBits = 6;
constexpr int kWordWords = kernels::kPortWordBytes / 4;
/// A node in which nothing has moved for so long is not evaluated: all its counters have come to their ends.
constexpr std::uint64_t kQuiet = 256;

/// Pins are numbers of up to 64 bits, or arrays of 32.
template <class Pin>
void put(Pin& pin, int at, int width, std::uint64_t value) {
  if constexpr (std::is_integral_v<Pin>) {
    const std::uint64_t mask = ((std::uint64_t{1} << width) - 1) << at;
    pin = static_cast<Pin>((pin & ~mask) | (value << at & mask));
  } else {
    for (int bit = 0; bit < width; ++bit) {
      auto& word = pin[(at + bit) / 32];
      const std::uint32_t mask = 1U << ((at + bit) % 32);
      word = (value >> bit & 1U) != 0 ? word | mask : word & ~mask;
    }
  }
}

template <class Pin>
std::uint64_t get(const Pin& pin, int at, int width) {
  if constexpr (std::is_integral_v<Pin>) {
    return static_cast<std::uint64_t>(pin) >> at & ((std::uint64_t{1} << width) - 1);
  } else {
    std::uint64_t value = 0;
    for (int bit = 0; bit < width; ++bit) {
      value |= static_cast<std::uint64_t>(pin[(at + bit) / 32] >> ((at + bit) % 32) & 1U) << bit;
    }
    return value;
  }
}

}  // namespace

KernelNode::KernelNode(const kernels::SmiNodeSettings& settings)
    : rank_(settings.rank),
      latency_(settings.latency),
      bytes_per_cycle_(settings.bytes_per_cycle),
      shared_(settings.memory, settings.ranks, kPorts, settings.latency),
      routes_(read_routes(settings.routes)),
      context_(std::make_unique<VerilatedContext>()),
      model_(std::make_unique<Vunisono_smi_node>(context_.get())) {
  ranks_ = settings.ranks;
  clock_khz_ = settings.clock_khz;
  push.resize(kPorts);
  pop.resize(kPorts);
  unit.resize(kPorts);
  model_->clk_i = 0;
  model_->rst_ni = 0;
  for (int i = 0; i < 8; ++i) {
    model_->clk_i ^= 1;
    model_->eval();
  }
  model_->rst_ni = 1;
  load();
}

KernelNode::~KernelNode() = default;

// Before the first cycle, so that every node runs from then on.
void KernelNode::load() {
  const Routes& routes = routes_;
  if (routes.links != kLinks) {
    throw std::runtime_error("routes of " + std::to_string(routes.links) + " links; the simulated nodes have " +
                             std::to_string(kLinks));
  }
  if (routes.nodes.size() != ranks_) {
    throw std::runtime_error("routes of " + std::to_string(routes.nodes.size()) + " ranks; the job has " +
                             std::to_string(ranks_));
  }
  const RouteNode& own = routes.nodes[rank_];
  for (std::size_t link = 0; link < own.peers.size() && link < kLinks; ++link) peers_[link] = own.peers[link];
  const std::vector<std::uint8_t>& image = own.image;
  for (std::size_t at = 0; at + 4 <= image.size();) {
    std::uint32_t word = 0;
    std::memcpy(&word, image.data() + at, sizeof word);
    model_->image_valid_i = 1;
    model_->image_data_i = word;
    model_->image_last_i = at + 8 > image.size();
    model_->clk_i = 0;
    model_->eval();
    if (model_->image_ready_o) at += 4;
    model_->clk_i = 1;
    model_->eval();
  }
  model_->image_valid_i = 0;
  // The ends of channels begin some cycles after the tables are there.
  for (int i = 0, after = 0; i < 20000 && after < 16; ++i) {
    if (model_->running_o) ++after;
    model_->clk_i = 0;
    model_->eval();
    model_->clk_i = 1;
    model_->eval();
  }
  if (!model_->running_o) {
    throw std::runtime_error("rank " + std::to_string(rank_) + " refuses its tables: reason " +
                             std::to_string(model_->image_o) + " of unisono_smi_pkg::image_e");
  }
}

bool KernelNode::broadcasts(std::uint32_t port) const { return (kCollectives >> port & 1) != 0; }

bool KernelNode::reduces(std::uint32_t port, std::uint32_t dtype, std::uint32_t func) const {
  const bool product = func == static_cast<std::uint32_t>(Func::kProd);
  return (kReductions >> port & 1) != 0 && (kDatatypes >> dtype & 1) != 0 && (kFuncs >> func & 1) != 0 &&
         (!product || (kProdDatatypes >> dtype & 1) != 0);
}

kernels::PortTree KernelNode::tree(std::uint32_t root, const std::vector<std::uint32_t>& members) const {
  const TreePlace place = tree_of(routes_, static_cast<int>(root), {members.begin(), members.end()})[rank_];
  kernels::PortTree found;
  if (place.parent >= 0) found.parent = static_cast<std::uint32_t>(place.parent);
  found.children.assign(place.children.begin(), place.children.end());
  return found;
}

bool KernelNode::neighbours_are_there(std::chrono::microseconds at_most) const {
  if (now_ < latency_) return true;
  const std::uint64_t needed = now_ - latency_ + 1;
  const auto behind = [&](const std::optional<Port>& peer) {
    return peer && shared_.state(static_cast<std::uint32_t>(peer->rank)).done.load(std::memory_order_acquire) < needed;
  };
  if (std::none_of(peers_.begin(), peers_.end(), behind)) return true;
  shared_.wake(rank_);
  // Who is half a latency behind does not wait for this node: it can get there.
  const std::uint64_t comfortable = std::max(needed, now_ - latency_ / 2);
  return std::all_of(peers_.begin(), peers_.end(), [&](const std::optional<Port>& peer) {
    return !peer || shared_.await(static_cast<std::uint32_t>(peer->rank), needed, comfortable, at_most);
  });
}

bool KernelNode::sleeps() const { return now_ - last_active_ > kQuiet; }

bool KernelNode::cycle(std::chrono::microseconds at_most) {
  if (!neighbours_are_there(at_most)) return false;
  bool active = false;
  for (const PushEnd& end : push) active = active || end.opening || end.active;
  for (const PopEnd& end : pop) active = active || end.opening || end.active;
  for (const kernels::UnitEnd& end : unit) active = active || end.opening;
  for (int link = 0; link < kLinks && now_ >= latency_; ++link) {
    if (!peers_[link]) continue;
    const CableRecord& record =
        shared_.record(static_cast<std::uint32_t>(peers_[link]->rank), peers_[link]->link, now_ - latency_);
    active = active || record.valid != 0 || record.freed != 0;
  }
  if (active) last_active_ = now_;
  if (sleeps()) {
    for (int link = 0; link < kLinks; ++link) {
      if (!peers_[link]) continue;
      CableRecord& record = shared_.record(rank_, link, now_);
      record.valid = record.channel = record.freed = 0;
      record.up = 1;
    }
  } else {
    evaluate();
  }
  ++now_;
  shared_.publish(rank_, now_);
  return true;
}

void KernelNode::evaluate() {
  model_->link_valid_i = model_->link_up_i = model_->link_ready_i = 0;
  model_->link_freed_i = 0;
  for (int link = 0; link < kLinks; ++link) {
    if (!peers_[link]) continue;
    if (budget_[link] < kPacketBytes) budget_[link] += bytes_per_cycle_;
    put(model_->link_ready_i, link, 1, budget_[link] >= kPacketBytes - 1e-9 ? 1 : 0);
    if (now_ < latency_) continue;
    const CableRecord& record =
        shared_.record(static_cast<std::uint32_t>(peers_[link]->rank), peers_[link]->link, now_ - latency_);
    put(model_->link_up_i, link, 1, record.up);
    put(model_->link_freed_i, link * kChannels, kChannels, record.freed);
    if (record.valid == 0) continue;
    put(model_->link_valid_i, link, 1, 1);
    put(model_->link_channel_i, 2 * link, 2, record.channel);
    for (int i = 0; i < kPacketWords; ++i) model_->link_data_i[kPacketWords * link + i] = record.words[i];
  }
  drive();
  model_->clk_i = 0;
  model_->eval();
  for (int link = 0; link < kLinks; ++link) {
    if (!peers_[link]) continue;
    CableRecord& record = shared_.record(rank_, link, now_);
    record.freed = static_cast<std::uint8_t>(get(model_->link_freed_o, link * kChannels, kChannels));
    record.up = static_cast<std::uint8_t>(get(model_->link_up_o, link, 1));
    record.valid = static_cast<std::uint8_t>(get(model_->link_valid_o, link, 1) & get(model_->link_ready_i, link, 1));
    if (record.freed != 0 || record.valid != 0) last_active_ = now_;
    if (record.valid == 0) continue;
    budget_[link] -= kPacketBytes;
    record.channel = static_cast<std::uint8_t>(get(model_->link_channel_o, 2 * link, 2));
    for (int i = 0; i < kPacketWords; ++i) record.words[i] = model_->link_data_o[kPacketWords * link + i];
    shared_.state(rank_).packets.store(++packets_, std::memory_order_relaxed);
  }
  sample();
  model_->clk_i = 1;
  model_->eval();
  // What was taken at this edge is offered no longer.
  for (int port = 0; port < kPorts; ++port) {
    put(model_->push_open_valid_i, port, 1, push[port].opening ? 1 : 0);
    put(model_->pop_open_valid_i, port, 1, pop[port].opening ? 1 : 0);
    put(model_->push_valid_i, port, 1, push[port].valid ? 1 : 0);
    put(model_->collective_open_valid_i, port, 1, unit[port].opening ? 1 : 0);
  }
}

void KernelNode::put_open(bool sends, int port, const kernels::PortOpen& open) {
  auto& pin = sends ? model_->push_open_i : model_->pop_open_i;
  const int at = port * kOpenBits;
  put(pin, at, 8, open.lanes);
  put(pin, at + 8, 32, open.window);
  put(pin, at + 40, 1, open.strict ? 1 : 0);
  put(pin, at + 41, 1, open.credits ? 1 : 0);
  put(pin, at + 42, 2, open.size);
  put(pin, at + 44, 32, open.count);
  put(pin, at + 76, 16, open.port);
  put(pin, at + 92, 16, open.peer);
}

void KernelNode::put_unit(int port, const kernels::UnitOpen& open) {
  auto& pin = model_->collective_open_i;
  const int at = port * kCollectiveBits;
  const std::vector<std::uint32_t>& children = open.place.children;
  put(pin, at, 8, open.lanes);
  put(pin, at + 8, 16, 0);  // members: scatter and gather alone
  for (std::size_t i = 0; i < 4; ++i)
    put(pin, at + 24 + static_cast<int>(16 * i), 16, i < children.size() ? children[i] : 0);
  put(pin, at + 88, 3, children.size());
  put(pin, at + 91, 16, open.place.parent.value_or(0));
  put(pin, at + 107, 8, open.func);
  put(pin, at + 115, 6, open.dtype);
  put(pin, at + 121, 2, open.size);
  put(pin, at + 123, 32, open.count);
  put(pin, at + 155, 16, open.port);
  put(pin, at + 171, 16, open.root);
  put(pin, at + 187, 1, open.root == rank_ ? 1 : 0);
  put(pin, at + 188, 3, static_cast<std::uint64_t>(open.kind));
  put(pin, at + 191, 1, open.bare ? 1 : 0);
}

void KernelNode::drive() {
  for (int port = 0; port < kPorts; ++port) {
    const kernels::UnitEnd& joint = unit[port];
    if (joint.opening && get(model_->collective_open_valid_i, port, 1) == 0) put_unit(port, joint.open);
    put(model_->collective_open_valid_i, port, 1, joint.opening ? 1 : 0);
    const PushEnd& to = push[port];
    if (to.opening && get(model_->push_open_valid_i, port, 1) == 0) put_open(true, port, to.open);
    put(model_->push_open_valid_i, port, 1, to.opening ? 1 : 0);
    if (to.valid && get(model_->push_valid_i, port, 1) == 0) {
      std::uint32_t words[kWordWords];
      std::memcpy(words, to.word.data(), sizeof words);
      for (int i = 0; i < kWordWords; ++i) model_->push_data_i[port * kWordWords + i] = words[i];
      put(model_->push_count_i, port * kCountBits, kCountBits, to.count);
      put(model_->push_flush_i, port, 1, to.flush ? 1 : 0);
    }
    put(model_->push_valid_i, port, 1, to.valid ? 1 : 0);
    const PopEnd& from = pop[port];
    if (from.opening && get(model_->pop_open_valid_i, port, 1) == 0) put_open(false, port, from.open);
    put(model_->pop_open_valid_i, port, 1, from.opening ? 1 : 0);
    put(model_->pop_ready_i, port, 1, from.ready ? 1 : 0);
  }
}

/// What is taken and given at the edge that comes.
void KernelNode::sample() {
  for (int port = 0; port < kPorts; ++port) {
    PushEnd& to = push[port];
    const bool push_idle = get(model_->push_open_ready_o, port, 1) != 0;
    if (to.opening && push_idle) {
      to.opening = false;
      to.active = true;
    } else if (to.active && push_idle) {
      to.active = false;
    }
    if (to.valid && get(model_->push_ready_o, port, 1) != 0) to.valid = false;
    PopEnd& from = pop[port];
    const bool pop_idle = get(model_->pop_open_ready_o, port, 1) != 0;
    if (get(model_->complaint_valid_o, port, 1) != 0) {
      const int at = port * kComplaintBits;
      from.complaint = kernels::PortComplaint{get(model_->complaint_o, at + 80, 1) != 0,
                                              static_cast<std::uint32_t>(get(model_->complaint_o, at + 64, 16)),
                                              static_cast<std::uint32_t>(get(model_->complaint_o, at + 32, 32)),
                                              static_cast<std::uint32_t>(get(model_->complaint_o, at, 32))};
    }
    if (from.opening && pop_idle) {
      from.opening = false;
      from.active = true;
    } else if (from.active && pop_idle) {
      from.active = false;
    } else if (from.ready && get(model_->pop_valid_o, port, 1) != 0) {
      from.count = static_cast<std::uint32_t>(get(model_->pop_count_o, port * kCountBits, kCountBits));
      std::uint32_t words[kWordWords];
      for (int i = 0; i < kWordWords; ++i) words[i] = model_->pop_data_o[port * kWordWords + i];
      std::memcpy(from.word.data(), words, sizeof words);
      from.ready = false;
    }
    // The ends that a unit opens are open from then until it has nothing more to do.
    kernels::UnitEnd& joint = unit[port];
    if (joint.opening && get(model_->collective_open_ready_o, port, 1) != 0) {
      joint.opening = false;
      to.active = joint.pushes;
      from.active = joint.pops;
    }
  }
}

void KernelNode::moved() { shared_.state(rank_).moves.fetch_add(1, std::memory_order_relaxed); }

std::uint64_t KernelNode::moves() const {
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) sum += shared_.state(rank).moves.load(std::memory_order_relaxed);
  return sum;
}

void KernelNode::come() {
  RankState& state = shared_.state(rank_);
  const std::uint64_t number = state.came.load(std::memory_order_relaxed) + 1;
  state.came_at[number % 2].store(now_, std::memory_order_relaxed);
  state.came.store(number, std::memory_order_release);
}

// No clock is further ahead of another than the latency for each cable between them.
std::optional<std::uint64_t> KernelNode::meeting() const {
  const std::uint64_t number = shared_.state(rank_).came.load(std::memory_order_relaxed);
  std::uint64_t latest = 0;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const RankState& state = shared_.state(rank);
    if (state.came.load(std::memory_order_acquire) < number) return std::nullopt;
    latest = std::max(latest, state.came_at[number % 2].load(std::memory_order_relaxed));
  }
  return latest + latency_ * ranks_ + 1;
}

void KernelNode::leave() { shared_.state(rank_).left.store(1, std::memory_order_release); }

bool KernelNode::all_left() const {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (shared_.state(rank).left.load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

void KernelNode::report(std::uint64_t begin, std::uint64_t end) {
  shared_.state(rank_).begin.store(begin + 1, std::memory_order_relaxed);
  shared_.state(rank_).end.store(end, std::memory_order_relaxed);
}

void KernelNode::put_card(bool sends, std::uint32_t peer, std::uint32_t port, const kernels::ChannelCard& card) {
  kernels::ChannelCard& place = sends ? shared_.card(true, rank_, peer, port, card.sequence)
                                      : shared_.card(false, peer, rank_, port, card.sequence);
  kernels::ChannelCard content = card;
  content.sequence = 0;
  std::atomic_ref<std::uint64_t>(place.sequence).store(0, std::memory_order_release);
  std::memcpy(static_cast<void*>(&place), &content, sizeof content);
  std::atomic_ref<std::uint64_t>(place.sequence).store(card.sequence, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // of two that put theirs down, one sees the other's
}

std::optional<kernels::ChannelCard> KernelNode::card_of(bool sends, std::uint32_t peer, std::uint32_t port,
                                                        std::uint64_t sequence) const {
  kernels::ChannelCard& place =
      sends ? shared_.card(true, peer, rank_, port, sequence) : shared_.card(false, rank_, peer, port, sequence);
  if (std::atomic_ref<std::uint64_t>(place.sequence).load(std::memory_order_acquire) != sequence) return std::nullopt;
  kernels::ChannelCard found{};
  std::memcpy(static_cast<void*>(&found), &place, sizeof found);
  return std::atomic_ref<std::uint64_t>(place.sequence).load(std::memory_order_acquire) == sequence
             ? std::optional(found)
             : std::nullopt;
}

std::string KernelNode::strays() const {
  if (model_->strays_o == 0) return {};
  const std::uint64_t bits = model_->first_stray_o;
  return std::to_string(model_->strays_o) + " packets were for nobody; the first came from rank " +
         std::to_string(bits >> 3 & 0xffff) + ", for port " + std::to_string(bits >> 19 & 0xffff) + " of rank " +
         std::to_string(bits >> 35 & 0xffff);
}

}  // namespace unisono::sim

extern "C" {

// Names that libunisono looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
__attribute__((visibility("default"))) extern const std::uint32_t unisono_smi_node_version;
// NOLINTNEXTLINE(readability-identifier-naming)
const std::uint32_t unisono_smi_node_version = unisono::kernels::kSmiNodeVersion;

__attribute__((visibility("default"))) unisono::kernels::SmiNode* unisono_smi_node_open(
    const unisono::kernels::SmiNodeSettings* settings, char* why, std::size_t why_bytes) {
  try {
    return new unisono::sim::KernelNode(*settings);
  } catch (const std::exception& failure) {
    std::strncpy(why, failure.what(), why_bytes - 1);
    why[why_bytes - 1] = 0;
    return nullptr;
  }
}

}  // extern "C"
