#include "sim/cables/node.hpp"

#include <verilated.h>

#include <algorithm>
#include <cstring>

#include "Vunisono_smi_node.h"
#include "Vunisono_smi_node___024root.h"

namespace unisono::sim {
namespace {

// Bits of unisono_smi_pkg::open_t and complaint_t.
constexpr int kOpenBits = 108;
constexpr int kComplaintBits = 81;
constexpr int kCountBits = 6;
// And of collective_t, opening_t, differ_t.
constexpr int kCollectiveBits = 192;
constexpr int kOpeningBits = 85;
constexpr int kDifferBits = 2 * kOpeningBits + 16;
constexpr int kChildren = 4;

template <class Words>
void put(Words& words, int at, int width, std::uint64_t value) {
  for (int bit = 0; bit < width; ++bit) {
    const std::uint32_t mask = 1u << ((at + bit) % 32);
    auto& word = words[(at + bit) / 32];
    word = value >> bit & 1 ? word | mask : word & ~mask;
  }
}

template <class Words>
std::uint64_t get(const Words& words, int at, int width) {
  std::uint64_t value = 0;
  for (int bit = 0; bit < width; ++bit) {
    value |= static_cast<std::uint64_t>(words[(at + bit) / 32] >> ((at + bit) % 32) & 1) << bit;
  }
  return value;
}

template <class Words>
void put_open(Words& words, int port, const Message& message) {
  const int at = port * kOpenBits;
  put(words, at, 8, message.lanes);
  put(words, at + 8, 32, message.window);
  put(words, at + 40, 1, message.strict);
  put(words, at + 41, 1, message.credits);
  put(words, at + 42, 2, message.size);
  put(words, at + 44, 32, message.count);
  put(words, at + 76, 16, message.port);
  put(words, at + 92, 16, message.peer);
}

template <class Words>
void put_collective(Words& words, int port, const Collective& call, int rank) {
  const int at = port * kCollectiveBits;
  put(words, at, 8, call.lanes);
  put(words, at + 8, 8, call.members);
  put(words, at + 16, 8, call.member);
  for (int i = 0; i < kChildren; ++i) {
    const bool is = i < static_cast<int>(call.tree.children.size());
    put(words, at + 24 + 16 * i, 16, is ? call.tree.children[i] : 0);
  }
  put(words, at + 88, 3, call.tree.children.size());
  put(words, at + 91, 16, call.tree.parent < 0 ? 0 : call.tree.parent);
  put(words, at + 107, 8, call.func);
  put(words, at + 115, 6, call.dtype);
  put(words, at + 121, 2, call.size);
  put(words, at + 123, 32, call.count);
  put(words, at + 155, 16, call.port);
  put(words, at + 171, 16, call.root);
  put(words, at + 187, 1, call.root == rank);
  put(words, at + 188, 3, static_cast<int>(call.kind));
}

template <class Words>
Opening get_opening(const Words& words, int at) {
  return {.kind = static_cast<int>(get(words, at + 82, 3)),
          .credits = get(words, at + 81, 1) != 0,
          .strict = get(words, at + 80, 1) != 0,
          .size = static_cast<int>(get(words, at + 78, 2)),
          .dtype = static_cast<int>(get(words, at + 72, 6)),
          .func = static_cast<int>(get(words, at + 64, 8)),
          .count = static_cast<std::uint32_t>(get(words, at + 32, 32)),
          .window = static_cast<std::uint32_t>(get(words, at, 32))};
}

template <class Words>
Difference get_difference(const Words& words, int place) {
  const int at = place * kDifferBits;
  return {.peer = static_cast<int>(get(words, at + 2 * kOpeningBits, 16)),
          .mine = get_opening(words, at + kOpeningBits),
          .theirs = get_opening(words, at)};
}

template <class Value>
void set_bit(Value& value, int bit, bool on) {
  value = static_cast<Value>(on ? value | 1u << bit : value & ~(1u << bit));
}

}  // namespace

CableNode::CableNode(std::uint32_t seed)
    : context_(std::make_unique<VerilatedContext>()),
      model_(std::make_unique<Vunisono_smi_node>(context_.get())),
      random_(seed) {
  model_->clk_i = 0;
  model_->rst_ni = 0;
  for (int i = 0; i < 8; ++i) {
    model_->clk_i ^= 1;
    model_->eval();
  }
  model_->rst_ni = 1;
}

CableNode::~CableNode() = default;

void CableNode::load(std::span<const std::uint8_t> image) {
  image_.clear();
  for (std::size_t at = 0; at + 4 <= image.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, image.data() + at, 4);
    image_.push_back(word);
  }
  for (int port = 0; port < kPorts; ++port) {
    push_[port] = {};
    pop_[port] = {};
    joint_[port] = {};
  }
  outcomes_.clear();
  joint_outcomes_.clear();
  members_.clear();
}

bool CableNode::running() const { return model_->running_o; }
int CableNode::image_error() const { return model_->image_o; }
std::uint32_t CableNode::strays() const { return model_->strays_o; }

Stray CableNode::first_stray() const {
  const std::uint64_t bits = model_->first_stray_o;
  return {.dst = static_cast<int>(bits >> 35 & 0xffff),
          .port = static_cast<int>(bits >> 19 & 0xffff),
          .src = static_cast<int>(bits >> 3 & 0xffff),
          .op = static_cast<int>(bits & 7)};
}

const Outcome& CableNode::send(Message message) {
  outcomes_.emplace_back();
  const int port = message.port;
  push_[port % kPorts].waiting.emplace_back(std::move(message), &outcomes_.back());
  return outcomes_.back();
}

const Outcome& CableNode::receive(Message message) {
  outcomes_.emplace_back();
  const int port = message.port;
  pop_[port % kPorts].waiting.emplace_back(std::move(message), &outcomes_.back());
  return outcomes_.back();
}

const CollectiveOutcome& CableNode::collective(Collective call) {
  joint_outcomes_.emplace_back();
  const int port = call.port;
  joint_[port % kPorts].waiting.emplace_back(std::move(call), &joint_outcomes_.back());
  return joint_outcomes_.back();
}

void CableNode::members(int first, const std::vector<int>& ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) members_.emplace_back(first + static_cast<int>(i), ranks[i]);
}

void CableNode::release() {
  for (int port = 0; port < kPorts; ++port) push_[port].free_running = pop_[port].free_running = true;
}

bool CableNode::pause(const End& end) {
  if (end.message.hold >= 0 && end.done >= end.message.hold && !end.free_running) return true;
  return end.message.pause > 0 && std::uniform_real_distribution<>(0, 1)(random_) < end.message.pause;
}

bool CableNode::End::take_next() {
  if (outcome != nullptr || waiting.empty()) return false;
  message = std::move(waiting.front().first);
  outcome = waiting.front().second;
  waiting.pop_front();
  done = 0;
  free_running = false;
  joint = false;
  part = 0;
  return true;
}

void CableNode::drive_push(int port) {
  End& end = push_[port];
  if (end.take_next()) {
    put_open(model_->push_open_i, port, end.message);
    set_bit(model_->push_open_valid_i, port, true);
  }
  if (end.outcome == nullptr || !end.outcome->open || end.offered || end.done >= end.message.count || pause(end))
    return;
  const int size = 1 << end.message.size;
  const auto most = static_cast<std::uint32_t>(kWordBytes / size);
  std::uint32_t lanes = end.message.lanes == 0 ? most : std::min<std::uint32_t>(end.message.lanes, most);
  if (end.message.hold > end.done && !end.free_running) {
    lanes = static_cast<std::uint32_t>(std::min<std::int64_t>(lanes, end.message.hold - end.done));
  }
  if (end.part != 0) lanes = std::min(lanes, end.part - end.done % end.part);
  end.offer = std::min(lanes, end.message.count - end.done);
  end.flush = end.message.flush > 0 && std::uniform_real_distribution<>(0, 1)(random_) < end.message.flush;
  std::uint32_t words[kWordBytes / 4] = {};
  std::memcpy(words, end.message.bytes.data() + std::size_t{end.done} * size, std::size_t{end.offer} * size);
  for (int i = 0; i < kWordBytes / 4; ++i) model_->push_data_i[port * (kWordBytes / 4) + i] = words[i];
  model_->push_count_i = (model_->push_count_i & ~(63u << (port * kCountBits))) | end.offer << (port * kCountBits);
  set_bit(model_->push_flush_i, port, end.flush);
  set_bit(model_->push_valid_i, port, true);
  end.offered = true;
}

void CableNode::drive_collective(int port) {
  Joint& joint = joint_[port];
  End& push = push_[port];
  End& pop = pop_[port];
  const bool busy = push.outcome != nullptr || pop.outcome != nullptr || !push.waiting.empty() || !pop.waiting.empty();
  if (joint.outcome != nullptr || joint.waiting.empty() || busy || !members_.empty()) return;
  joint.call = std::move(joint.waiting.front().first);
  joint.outcome = joint.waiting.front().second;
  joint.waiting.pop_front();
  const Collective& call = joint.call;
  put_collective(model_->collective_open_i, port, call, static_cast<int>(model_->rank_o));
  set_bit(model_->collective_open_valid_i, port, true);
  push = End{};
  pop = End{};
  const auto elements = static_cast<std::uint32_t>(call.bytes.size() >> call.size);
  push.message = {.port = port, .count = elements, .size = call.size, .lanes = call.lanes, .pause = call.push_pause};
  push.message.flush = call.flush;
  push.message.bytes = std::move(joint.call.bytes);
  push.part = call.kind == Collective::Kind::kScatter ? call.count : 0;
  pop.message = {.port = port, .size = call.size, .pause = call.pop_pause};
  push.outcome = &joint.outcome->pushed;
  pop.outcome = &joint.outcome->popped;
  push.joint = pop.joint = true;
}

void CableNode::sample_collective(int port, std::uint64_t now) {
  Joint& joint = joint_[port];
  const auto bit = [port](auto value) { return (value >> port & 1) != 0; };
  if (bit(model_->collective_refused_o)) joint.outcome->refused = true;
  if (model_->differ_valid_o >> (2 * kPorts + port) & 1) {
    joint.outcome->differences.push_back(get_difference(model_->differ_o, 2 * kPorts + port));
  }
  if (!joint.outcome->open) {
    if (bit(model_->collective_open_valid_i) && bit(model_->collective_open_ready_o)) {
      joint.outcome->open = joint.outcome->pushed.open = joint.outcome->popped.open = true;
      joint.outcome->opened_at = joint.outcome->pushed.opened_at = joint.outcome->popped.opened_at = now;
      taken_.joint |= 1u << port;
    }
  } else if (!bit(model_->collective_busy_o)) {
    joint.outcome->closed = joint.outcome->pushed.closed = joint.outcome->popped.closed = true;
    joint.outcome->closed_at = now;
    joint.outcome = nullptr;
    push_[port].outcome = pop_[port].outcome = nullptr;
  }
}

void CableNode::drive_pop(int port) {
  End& end = pop_[port];
  if (end.take_next()) {
    put_open(model_->pop_open_i, port, end.message);
    set_bit(model_->pop_open_valid_i, port, true);
  }
  set_bit(model_->pop_ready_i, port, end.outcome != nullptr && end.outcome->open && !pause(end));
}

void CableNode::sample(std::uint64_t now) {
  const bool run = model_->running_o;
  if (!run && !ran_) {
    // What was on offer when a new image came is offered until the node has stopped.
    model_->push_open_valid_i = model_->pop_open_valid_i = 0;
    model_->push_valid_i = model_->collective_open_valid_i = 0;
  }
  for (int port = 0; port < kPorts; ++port) {
    if (joint_[port].outcome != nullptr) sample_collective(port, now);
    const auto bit = [port](auto value) { return (value >> port & 1) != 0; };
    End& push = push_[port];
    if (push.outcome != nullptr && bit(model_->differ_valid_o)) {
      push.outcome->differences.push_back(get_difference(model_->differ_o, port));
    }
    if (push.outcome != nullptr) {
      if (push.joint && !push.outcome->open) {
        // Opened by the collective.
      } else if (!push.outcome->open) {
        if (run && bit(model_->push_open_valid_i) && bit(model_->push_open_ready_o)) {
          push.outcome->open = true;
          push.outcome->opened_at = now;
          taken_.push_open |= 1u << port;
        }
      } else if (!push.joint && bit(model_->push_open_ready_o)) {
        push.outcome->closed = true;
        push.outcome = nullptr;
      } else if (push.offered && bit(model_->push_ready_o)) {
        if (push.done == 0) push.outcome->first_at = now;
        push.done += push.offer;
        push.outcome->elements = push.done;
        push.outcome->last_at = now;
        push.offered = false;
        taken_.push |= 1u << port;
      }
    }
    End& pop = pop_[port];
    if (pop.outcome == nullptr) continue;
    if (model_->differ_valid_o >> (kPorts + port) & 1) {
      pop.outcome->differences.push_back(get_difference(model_->differ_o, kPorts + port));
    }
    if (bit(model_->complaint_valid_o)) {
      const int at = port * kComplaintBits;
      pop.outcome->complaints.push_back({.foreign = get(model_->complaint_o, at + 80, 1) != 0,
                                         .src = static_cast<int>(get(model_->complaint_o, at + 64, 16)),
                                         .expected = static_cast<std::uint32_t>(get(model_->complaint_o, at + 32, 32)),
                                         .got = static_cast<std::uint32_t>(get(model_->complaint_o, at, 32))});
    }
    if (pop.joint && !pop.outcome->open) continue;
    if (!pop.outcome->open) {
      if (run && bit(model_->pop_open_valid_i) && bit(model_->pop_open_ready_o)) {
        pop.outcome->open = true;
        pop.outcome->opened_at = now;
        taken_.pop_open |= 1u << port;
      }
    } else if (!pop.joint && bit(model_->pop_open_ready_o)) {
      pop.outcome->closed = true;
      pop.outcome = nullptr;
    } else if (bit(model_->pop_valid_o) && bit(model_->pop_ready_i)) {
      const std::uint32_t count = model_->pop_count_o >> (port * kCountBits) & 63;
      std::uint32_t words[kWordBytes / 4];
      for (int i = 0; i < kWordBytes / 4; ++i) words[i] = model_->pop_data_o[port * (kWordBytes / 4) + i];
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(words);
      pop.outcome->bytes.insert(pop.outcome->bytes.end(), bytes, bytes + (std::size_t{count} << pop.message.size));
      if (pop.done == 0) pop.outcome->first_at = now;
      pop.done += count;
      pop.outcome->elements = pop.done;
      pop.outcome->last_at = now;
    }
  }
}

CableNode::Inputs CableNode::inputs() const {
  return {.link_valid = model_->link_valid_i,
          .link_up = model_->link_up_i,
          .link_ready = model_->link_ready_i,
          .link_freed = model_->link_freed_i,
          .push_open = model_->push_open_valid_i,
          .pop_open = model_->pop_open_valid_i,
          .push = model_->push_valid_i,
          .pop = model_->pop_ready_i,
          .joint = model_->collective_open_valid_i,
          .image = model_->image_valid_i != 0,
          .member = model_->member_wr_en_i != 0};
}

bool CableNode::state_stays() {
  const auto* state = reinterpret_cast<const std::byte*>(model_->rootp);
  const std::size_t length = sizeof(*model_->rootp);
  if (still_ == look_at_) {
    kept_.assign(state, state + length);
    return false;
  }
  if (still_ != look_at_ + 1) return false;
  if (std::memcmp(kept_.data(), state, length) == 0) return true;
  // Something counts or waits; look again, later each time.
  look_at_ = std::min(2 * still_, still_ + 64);
  return false;
}

void CableNode::cycle(std::uint64_t now, std::span<Cable* const> out, std::span<Cable* const> in) {
  model_->image_valid_i = !image_.empty();
  if (!image_.empty()) {
    model_->image_data_i = image_.front();
    model_->image_last_i = image_.size() == 1;
  }
  model_->link_valid_i = model_->link_up_i = model_->link_ready_i = 0;
  model_->link_freed_i = 0;
  for (int link = 0; link < kLinks; ++link) {
    if (out[link] == nullptr) continue;
    out[link]->begin_send(now);
    in[link]->begin_receive(now);
    const Cable::Signals signals = out[link]->signals();
    set_bit(model_->link_up_i, link, signals.up);
    model_->link_freed_i |= signals.freed << (link * kChannels);
    set_bit(model_->link_ready_i, link, out[link]->ready());
    if (const CablePacket* packet = in[link]->arriving()) {
      set_bit(model_->link_valid_i, link, true);
      model_->link_channel_i = (model_->link_channel_i & ~(3u << (2 * link))) | packet->channel << (2 * link);
      for (int i = 0; i < 8; ++i) model_->link_data_i[8 * link + i] = packet->words[i];
      in[link]->take();
    }
  }
  const bool run = model_->running_o;
  if (!run && !ran_) {
    // What was on offer when a new image came is offered until the node has stopped.
    model_->push_open_valid_i = model_->pop_open_valid_i = 0;
    model_->push_valid_i = model_->collective_open_valid_i = 0;
  }
  ran_ = run;
  for (int port = 0; port < kPorts && run; ++port) {
    drive_collective(port);
    drive_push(port);
    drive_pop(port);
  }
  const bool writes = run && !members_.empty();
  model_->member_wr_en_i = writes;
  if (writes) {
    model_->member_wr_address_i = static_cast<CData>(members_.front().first);
    model_->member_wr_rank_i = static_cast<SData>(members_.front().second);
    members_.pop_front();
  }

  // An image, an entry, a packet, a freed place is something new in each cycle.
  const Inputs given = inputs();
  const bool news = given != before_ || given.image || given.member || given.link_valid != 0 || given.link_freed != 0;
  before_ = given;
  if (asleep_ && !news) {
    ++skipped_;
    for (int link = 0; link < kLinks; ++link) {
      if (out[link] != nullptr) in[link]->signal(0, up_[link]);
    }
    return;
  }
  asleep_ = false;
  if (news) still_ = look_at_ = 0;

  model_->clk_i = 0;
  model_->eval();

  bool moved = false;
  if (!image_.empty() && model_->image_ready_o) image_.pop_front();
  for (int link = 0; link < kLinks; ++link) {
    sent_[link] = false;
    freed_[link] = model_->link_freed_o >> (link * kChannels) & ((1u << kChannels) - 1);
    up_[link] = model_->link_up_o >> link & 1;
    if (out[link] == nullptr) continue;
    if ((model_->link_valid_o & model_->link_ready_i) >> link & 1) {
      sent_[link] = true;
      packets_[link].channel = model_->link_channel_o >> (2 * link) & 3;
      for (int i = 0; i < 8; ++i) packets_[link].words[i] = model_->link_data_o[8 * link + i];
      out[link]->send(packets_[link]);
    }
    moved = moved || sent_[link] || freed_[link] != 0;
    in[link]->signal(freed_[link], up_[link]);
  }
  taken_ = {};
  if (run) sample(now);
  moved = moved || (model_->pop_valid_o & model_->pop_ready_i) != 0 || model_->complaint_valid_o != 0 ||
          model_->differ_valid_o != 0 || model_->collective_refused_o != 0 || taken_.push_open != 0 ||
          taken_.pop_open != 0 || taken_.push != 0 || taken_.joint != 0;
  model_->clk_i = 1;
  model_->eval();
  // What was taken at this edge is offered no longer.
  model_->push_open_valid_i &= ~taken_.push_open;
  model_->pop_open_valid_i &= ~taken_.pop_open;
  model_->push_valid_i &= ~taken_.push;
  model_->collective_open_valid_i &= ~taken_.joint;

  if (moved) {
    still_ = look_at_ = 0;
  } else if (skips_ && !news) {
    if (++still_ == 8) look_at_ = 8;
    asleep_ = still_ >= 8 && state_stays();
  }
}

}  // namespace unisono::sim
