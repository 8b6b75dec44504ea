// Ranks, switches and what lies between them, in a time of its own: frames are lost, doubled, late and out of order,
// and switches restart. The same seed gives the same run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "switch/slots_inl.hpp"
#include "switch/window.hpp"

namespace unisono::slots {

/// A switch of a tree, its children in listed order: ranks (numbered as they are met) or switches.
struct Tree {
  std::uint32_t ranks = 0;  ///< of its own, listed before the switches
  std::vector<Tree> switches;

  std::uint32_t size() const {
    std::uint32_t all = ranks;
    for (const Tree& one : switches) all += one.size();
    return all;
  }
};

struct Faults {
  double loss = 0;
  double copies = 0;      ///< share of frames that come twice
  double late = 0;        ///< share of frames that come much later
  unsigned restarts = 0;  ///< of switches, over the run
};

/// One link to all ranks, on which frames follow one another, each way. Nothing is lost there.
struct Link {
  std::chrono::microseconds frame{0};            ///< that a frame takes
  std::chrono::microseconds slow_from{1 << 30};  ///< from then on others use the link, too
  unsigned slower = 1;                           ///< and a frame takes so many times as long
};

struct Plan {
  Tree tree;
  Faults faults;
  Link link;
  std::uint32_t slots = 4;
  std::uint16_t payload_bytes = 64;
  std::uint32_t rounds_ahead = 2;
  bool others = false;          ///< ranks have other windows, too, some of them busy from time to time
  std::vector<SlotCall> calls;  ///< buffers and deadlines are set by the simulation
  std::chrono::seconds limit{1000};
};

/// Bytes of src and dst of a call on one rank.
inline std::pair<std::size_t, std::size_t> buffer_sizes(const SlotCall& call, std::uint32_t ranks) {
  const std::size_t one = call.count * bytes_of(call.dtype);
  if (call.collective == Collective::kReduceScatter) return {one * ranks, one};
  if (call.collective == Collective::kAllgather) return {one, one * ranks};
  return {one, one};
}

template <Rules kRules = Rules{}>
class Simulation {
 public:
  Simulation(Plan plan, std::uint64_t seed) : plan_(std::move(plan)), random_(seed) {
    ranks_.resize(plan_.tree.size());
    add_switch(plan_.tree, nullptr, 0);
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) prepare(rank);
    if (plan_.others) at(now_, [this] { change_others(); });
    for (unsigned i = 0; i < plan_.faults.restarts; ++i) {
      at(now_ + microseconds(random_() % 20'000), [this] { restart(random_() % nodes_.size()); });
    }
  }

  /// Runs to the end: what is wrong, or nothing.
  std::string run() {
    const Time limit = now_ + plan_.limit;
    try {
      while (!over()) {
        if (events_.empty() || events_.begin()->first.first > limit) return "somebody waits for ever";
        auto event = events_.extract(events_.begin());
        now_ = event.key().first;
        event.mapped()();
        for (Rank& rank : ranks_) {
          if (rank.window->failure()) return rank.window->failure()->text;
        }
      }
    } catch (const Error& error) {
      return error.what();
    }
    return wrong();
  }

  std::uint64_t repeated() const {
    std::uint64_t all = 0;
    for (const Rank& rank : ranks_) all += rank.window->counters().repeated;
    return all;
  }
  std::uint64_t resumed() const { return ranks_[0].window->counters().resumed; }
  const Window& window(std::uint32_t rank) const { return *ranks_[rank].window; }
  Time now() const { return now_; }

 private:
  using microseconds = std::chrono::microseconds;
  struct Node;

  struct Rank final : Uplink {
    void up(const SlotFrame& head, std::span<const std::byte> payload) override {
      simulation->carry(
          head, payload, [this](const FrameView& frame) { node->pool->from_child(frame); }, &simulation->free_up_);
    }
    Simulation* simulation = nullptr;
    Node* node = nullptr;
    std::uint32_t number = 0;
    std::uint32_t position = 0;
    std::unique_ptr<Window> window;
    std::vector<std::vector<std::byte>> src, dst;
    std::shared_ptr<WindowsToSwitch> others = std::make_shared<WindowsToSwitch>();
    std::uint32_t others_busy = 0;
    std::size_t started = 0;
    bool awake = false;
  };

  struct Node final : Outlet {
    void down(const SlotFrame& head, std::span<const std::byte> payload) override { to(head.member, head, payload); }
    void down_all(const SlotFrame& head, std::span<const std::byte> payload) override {
      for (std::uint32_t child = 0; child < below.size(); ++child) to(child, head, payload);
    }
    void up(const SlotFrame& head, std::span<const std::byte> payload) override {
      simulation->carry(head, payload, [this](const FrameView& frame) { parent->pool->from_child(frame); });
    }
    void to(std::uint32_t child, const SlotFrame& head, std::span<const std::byte> payload) {
      const auto [rank, node] = below[child];
      if (rank != nullptr) {
        const auto arrive = [this, rank = rank](const FrameView& frame) {
          rank->window->take(frame, simulation->now_);
          simulation->look(*rank);
        };
        simulation->carry(head, payload, arrive, &simulation->free_down_);
      } else {
        simulation->carry(head, payload, [node = node](const FrameView& frame) { node->pool->from_parent(frame); });
      }
    }
    Simulation* simulation = nullptr;
    Node* parent = nullptr;
    PoolShape shape;
    std::vector<std::pair<Rank*, Node*>> below;
    std::unique_ptr<BasicPool<kRules>> pool;
  };

  void at(Time time, std::function<void()> act) { events_.emplace(std::pair{time, number_++}, std::move(act)); }
  bool chance(double share) { return std::uniform_real_distribution<>()(random_) < share; }

  /// As a network of datagrams does: the frame as bytes, perhaps never, perhaps twice, in any order. `link_free`: from
  /// when on the link of ranks has nothing to carry.
  void carry(const SlotFrame& head, std::span<const std::byte> payload, std::function<void(const FrameView&)> take,
             Time* link_free = nullptr) {
    Time from = now_;
    if (link_free != nullptr) {
      const unsigned times = now_ - begin_ >= plan_.link.slow_from ? plan_.link.slower : 1;
      from = *link_free = std::max(*link_free, now_) + plan_.link.frame * times;
    }
    auto bytes = std::make_shared<std::vector<std::byte>>(frame_bytes(payload.size()));
    write(head, payload, *bytes);
    const unsigned copies = chance(plan_.faults.loss) ? 0 : chance(plan_.faults.copies) ? 2 : 1;
    for (unsigned i = 0; i < copies; ++i) {
      const auto delay = microseconds(5 + random_() % 10 + (chance(plan_.faults.late) ? random_() % 8000 : 0));
      at(from + delay, [bytes, take] {
        FrameView frame;
        const FrameFault fault = parse(*bytes, frame);
        if (fault != FrameFault::kNone) throw Error(ErrorCode::kInternal, meaning_of(fault));
        take(frame);
      });
    }
  }

  Node* add_switch(const Tree& tree, Node* parent, std::uint32_t position) {
    nodes_.push_back(std::make_unique<Node>());
    Node* const node = nodes_.back().get();
    node->simulation = this;
    node->parent = parent;
    node->shape.communicator = 7;
    node->shape.epoch = 3;
    node->shape.slots = plan_.slots;
    node->shape.payload_bytes = plan_.payload_bytes;
    if (parent != nullptr) node->shape.uplink = position;
    for (std::uint32_t i = 0; i < tree.ranks; ++i) {
      Rank& rank = ranks_[next_rank_];
      rank.simulation = this;
      rank.node = node;
      rank.number = next_rank_;
      rank.position = i;
      node->shape.children.push_back({next_rank_++, 1});
      node->below.emplace_back(&rank, nullptr);
    }
    for (const Tree& one : tree.switches) {
      node->shape.children.push_back({next_rank_, one.size()});
      node->below.emplace_back(nullptr, nullptr);
      Node* const below = add_switch(one, node, static_cast<std::uint32_t>(node->below.size() - 1));
      node->below.back().second = below;
    }
    node->pool = std::make_unique<BasicPool<kRules>>(node->shape, *node);
    return node;
  }

  void restart(std::size_t number) {
    Node& node = *nodes_[number];
    node.shape.generation += 1000;
    node.pool = std::make_unique<BasicPool<kRules>>(node.shape, node);
  }

  void change_others() {
    for (Rank& rank : ranks_) {
      for (; rank.others_busy != 0; --rank.others_busy) rank.others->busy(false);
      rank.others_busy = static_cast<std::uint32_t>(random_() % 20);
      for (std::uint32_t i = 0; i < rank.others_busy; ++i) rank.others->busy(true);
    }
    at(now_ + microseconds(random_() % 1000), [this] { change_others(); });
  }

  void prepare(std::uint32_t number) {
    Rank& rank = ranks_[number];
    WindowShape shape;
    shape.communicator = 7;
    shape.epoch = 3;
    shape.rank = number;
    shape.ranks = static_cast<std::uint32_t>(ranks_.size());
    shape.position = rank.position;
    shape.slots = plan_.slots;
    shape.payload_bytes = plan_.payload_bytes;
    shape.rounds_ahead = plan_.rounds_ahead;
    shape.others = rank.others;
    rank.window = std::make_unique<Window>(shape, rank);
    for (const SlotCall& call : plan_.calls) {
      const auto [in, out] = buffer_sizes(call, shape.ranks);
      rank.src.emplace_back(in);
      rank.dst.emplace_back(out);
      fill(rank.src.back(), call.dtype);
    }
    rank.window->tick(now_);
    look(rank);
  }

  /// Floating point of many magnitudes, so that the order of a sum shows in its bits.
  void fill(std::vector<std::byte>& bytes, Datatype dtype) {
    for (std::size_t i = 0; i < bytes.size(); i += bytes_of(dtype)) {
      if (dtype == Datatype::kFp32) {
        const float value =
            std::ldexp(static_cast<float>(random_() % 65536) - 32768.0F, static_cast<int>(random_() % 24));
        std::memcpy(&bytes[i], &value, sizeof value);
      } else if (dtype == Datatype::kFp64) {
        const double value = std::ldexp(static_cast<double>(random_()) - 9e18, static_cast<int>(random_() % 50));
        std::memcpy(&bytes[i], &value, sizeof value);
      } else {
        const std::uint64_t value = random_();
        std::memcpy(&bytes[i], &value, std::min<std::size_t>(8, bytes_of(dtype)));
      }
    }
  }

  /// Lets a rank begin its next calls, up to three at once, and wake when it has something to do.
  void look(Rank& rank) {
    while (rank.started < plan_.calls.size() && rank.started < 3 + ended(rank)) {
      if (!rank.awake) {
        // Each call is begun after a pause of its own.
        rank.awake = true;
        at(now_ + microseconds(random_() % 300), [this, &rank] {
          rank.awake = false;
          SlotCall call = plan_.calls[rank.started];
          call.src = rank.src[rank.started].data();
          call.dst = rank.dst[rank.started].data();
          ++rank.started;
          rank.window->start(call, now_);
          look(rank);
        });
      }
      break;
    }
    const Time due = rank.window->next_due();
    if (due != Time::max()) at(std::max(due, now_), [this, &rank, due] { tick(rank, due); });
  }
  void tick(Rank& rank, Time due) {
    if (rank.window->next_due() != due) return;
    rank.window->tick(now_);
    look(rank);
  }
  std::size_t ended(const Rank& rank) const {
    std::size_t ended = 0;
    while (ended < rank.started && rank.window->done(ended)) ++ended;
    return ended;
  }
  bool over() const {
    for (const Rank& rank : ranks_) {
      if (ended(rank) != plan_.calls.size()) return false;
    }
    return true;
  }

  // ---- what it must be ----

  /// The fold of what is below a switch, in listed order; `next` is its first rank.
  std::vector<std::byte> fold(const Tree& tree, std::size_t number, std::uint32_t& next) const {
    const SlotCall& call = plan_.calls[number];
    std::vector<std::byte> result;
    const auto add = [&](const std::vector<std::byte>& operand) {
      if (result.empty()) {
        result = operand;
      } else {
        combine(call.func, call.dtype, result.data(), operand.data(), result.data(),
                result.size() / bytes_of(call.dtype));
      }
    };
    for (std::uint32_t i = 0; i < tree.ranks; ++i) add(ranks_[next++].src[number]);
    for (const Tree& one : tree.switches) add(fold(one, number, next));
    return result;
  }

  std::string wrong() const {
    for (std::size_t number = 0; number < plan_.calls.size(); ++number) {
      const SlotCall& call = plan_.calls[number];
      if (call.collective == Collective::kBarrier || call.count == 0) continue;
      const std::size_t block = call.count * bytes_of(call.dtype);
      std::vector<std::byte> expected;
      if (combines(call.collective)) {
        std::uint32_t next = 0;
        expected = fold(plan_.tree, number, next);
      } else if (call.collective == Collective::kBcast) {
        expected = ranks_[call.root].src[number];
      } else {
        for (const Rank& rank : ranks_)
          expected.insert(expected.end(), rank.src[number].begin(), rank.src[number].end());
      }
      for (const Rank& rank : ranks_) {
        if (call.collective == Collective::kReduce && rank.number != call.root) continue;
        if (call.collective == Collective::kBcast && rank.number == call.root) continue;
        const std::size_t begin = call.collective == Collective::kReduceScatter ? rank.number * block : 0;
        if (std::memcmp(rank.dst[number].data(), expected.data() + begin, rank.dst[number].size()) != 0) {
          return "a wrong result: call " + std::to_string(number) + ", rank " + std::to_string(rank.number);
        }
      }
    }
    return "";
  }

  Plan plan_;
  std::mt19937_64 random_;
  const Time begin_{std::chrono::seconds(1000)};
  Time now_ = begin_;
  Time free_up_ = begin_;
  Time free_down_ = begin_;
  std::uint64_t number_ = 0;
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> events_;
  std::vector<Rank> ranks_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::uint32_t next_rank_ = 0;
};

}  // namespace unisono::slots
