#include "sim/cables/kernel_node.hpp"

#include <verilated.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "Vunisono_smi_node.h"

namespace unisono::sim {

using kernels::PopEnd;
using kernels::PushEnd;

namespace {

// What the node was built with: unisono_smi_node's parameters.
constexpr int kPorts = UNISONO_SMI_PORTS;
constexpr int kPacketBytes = UNISONO_SMI_PACKET;
constexpr int kPacketWords = kPacketBytes / 4;
constexpr kernels::SmiUnits kUnits{UNISONO_SMI_COLLECTIVES, UNISONO_SMI_REDUCTIONS, UNISONO_SMI_DATATYPES,
                                   UNISONO_SMI_FUNCS};
// Bits of unisono_smi_pkg::open_t, collective_t and complaint_t, and of a number of elements of a word.
constexpr int kOpenBits = 108;
constexpr int kCollectiveBits = 192;
constexpr int kComplaintBits = 81;
constexpr int kCountBits = 6;
constexpr int kWordWords = kernels::kPortWordBytes / 4;

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
    : CabledNode(settings),
      context_(std::make_unique<VerilatedContext>()),
      model_(std::make_unique<Vunisono_smi_node>(context_.get())) {
  if (settings.ports != kPorts || settings.packet_bytes != kPacketBytes) {
    throw std::runtime_error("the simulated node has " + std::to_string(kPorts) + " ports and packets of " +
                             std::to_string(kPacketBytes) + " bytes, and the job's nodes are to have " +
                             std::to_string(settings.ports) + " and " + std::to_string(settings.packet_bytes) +
                             "; give `unisono run` --node-ports and --node-packet of this node");
  }
  model_->clk_i = 0;
  model_->rst_ni = 0;
  for (int i = 0; i < 8; ++i) {
    model_->clk_i ^= 1;
    model_->eval();
  }
  model_->rst_ni = 1;
  load();
}

// Where several nodes are in one thread, its context may be that of one that is gone.
KernelNode::~KernelNode() { Verilated::threadContextp(context_.get()); }

// Before the first cycle, so that every node runs from then on.
void KernelNode::load() {
  const std::vector<std::uint8_t>& image = own_routes().image;
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

bool KernelNode::broadcasts(std::uint32_t port) const { return kUnits.broadcast(port); }

bool KernelNode::reduces(std::uint32_t port, std::uint32_t dtype, std::uint32_t func) const {
  return kUnits.reduce(port, dtype, func);
}

void KernelNode::evaluate() {
  model_->link_valid_i = model_->link_up_i = model_->link_ready_i = 0;
  model_->link_freed_i = 0;
  for (int link = 0; link < kLinks; ++link) {
    put(model_->link_ready_i, link, 1, wire_takes(link) ? 1 : 0);
    const CableRecord* const record = arriving(link);
    if (record == nullptr) continue;
    put(model_->link_up_i, link, 1, record->up);
    put(model_->link_freed_i, link * kChannels, kChannels, record->freed);
    if (record->valid == 0) continue;
    put(model_->link_valid_i, link, 1, 1);
    put(model_->link_channel_i, 2 * link, 2, record->channel);
    for (int i = 0; i < kPacketWords; ++i) model_->link_data_i[kPacketWords * link + i] = record->words[i];
  }
  drive();
  model_->clk_i = 0;
  model_->eval();
  for (int link = 0; link < kLinks; ++link) {
    if (!has_cable(link)) continue;
    leaving(link).freed = static_cast<std::uint8_t>(get(model_->link_freed_o, link * kChannels, kChannels));
    leaving(link).up = static_cast<std::uint8_t>(get(model_->link_up_o, link, 1));
    if (get(model_->link_valid_o, link, 1) == 0) continue;
    stay_awake();  // a slow wire takes it some time
    if (get(model_->link_ready_i, link, 1) == 0) continue;
    std::uint32_t words[kPacketWords];
    for (int i = 0; i < kPacketWords; ++i) words[i] = model_->link_data_o[kPacketWords * link + i];
    send(link, static_cast<std::uint8_t>(get(model_->link_channel_o, 2 * link, 2)), words);
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
