// The control of collectives, verilated, beside switch/entry.cpp.
//
// usage: action_harness <ports> <members>...
// For trees of so many members, with several members behind a port: every switch, collective, root and block, in both
// directions; one piece per cycle, with pauses. Then pieces that come by a port by which they cannot come. Between
// ports that lead down there may be gaps: ports without members, of which the C++ control knows nothing. Ends with "ok
// <pieces> <of these not nothing> <of these by wrong ports> <switches> <of these with gaps>", or says what is wrong.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "Vtop.h"
#include "core/tree_table.hpp"
#include "reference/dice.hpp"
#include "reference/trees.hpp"
#include "switch/entry.hpp"
#include "verilated.h"

namespace {

using unisono::Attachment;
using unisono::CallTree;
using unisono::Collective;
using unisono::reference::Dice;
using unisono::slots::Action;
using unisono::slots::Arriving;
using unisono::slots::Entry;
using unisono::slots::kNoPort;
using unisono::slots::port_of;

constexpr std::uint32_t kPlaceBits = 13;
constexpr std::size_t kLatency = 3;

std::uint64_t wrong_ports = 0;  ///< pieces by ports by which they cannot come

/// Bits from the lowest field up.
class Bits {
 public:
  Bits& add(std::uint64_t value, std::uint32_t width) {
    for (std::uint32_t i = 0; i < width; ++i, ++used_) {
      if (used_ / 32 == words_.size()) words_.push_back(0);
      words_[used_ / 32] |= static_cast<std::uint32_t>(value >> i & 1U) << (used_ % 32);
    }
    return *this;
  }
  template <typename Port>
  void put(Port& port) const {
    for (std::size_t i = 0; i < words_.size(); ++i) port[i] = words_[i];
  }
  std::uint64_t number() const { return words_[0] | std::uint64_t{words_.size() > 1 ? words_[1] : 0} << 32U; }

 private:
  std::vector<std::uint32_t> words_;
  std::uint32_t used_ = 0;
};

std::uint64_t take(std::uint64_t& bits, std::uint32_t width) {
  const std::uint64_t value = bits & ((std::uint64_t{1} << width) - 1);
  bits >>= width;
  return value;
}

/// What is to come out, and what it is of, for messages.
struct Expected {
  bool valid = false;
  Action action;
  std::uint64_t mask = 0;
  std::uint32_t member = 0;
  std::uint64_t down = 0;
  std::string what;
};

class Bench {
 public:
  explicit Bench(std::uint32_t ports) : ports_(ports), dice_(ports) {
    top_->rst_ni = 0;
    top_->valid_i = 0;
    for (int i = 0; i < 3; ++i) clock();
    top_->rst_ni = 1;
  }

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(dice_.below(limit)); }

  /// `places` are the numbers that the entry's ports have in hardware.
  void set(const Entry& entry, std::vector<std::uint32_t> places) {
    places_ = std::move(places);
    const std::uint32_t last = places_.empty() ? 0 : places_.back() + 1;
    Bits head;
    head.add(last, 5).add(entry.head.members, kPlaceBits + 1).add(entry.head.first, kPlaceBits);
    head.add(entry.head.count, kPlaceBits + 1).add(entry.head.up == kNoPort ? below(ports_) : entry.head.up, 5);
    head.add(entry.head.up != kNoPort ? 1 : 0, 1).add(entry.head.first_port, 5).add(entry.head.shares, kPlaceBits + 1);
    head.put(top_->head_i);
    Bits list;
    for (std::uint32_t place = 0, i = 0; place < ports_; ++place) {
      // Those beyond the number of ports are what an older entry has left.
      const bool used = i < entry.ports.size() && places_[i] == place;
      const bool gap = !used && place < last;
      list.add(used ? entry.ports[i].first : below(8192), kPlaceBits);
      list.add(used ? entry.ports[i].count() : gap ? 0 : below(8193), kPlaceBits + 1);
      list.add(used ? entry.ports[i].is_switch() : below(2), 1);
      if (used) ++i;
    }
    list.put(top_->ports_i);
    entry_ = &entry;
    ++switches;
    if (last != places_.size()) ++with_gaps;
  }

  /// The port of one of the entry's.
  std::uint32_t port_at(std::uint32_t index) const { return entry_->head.first_port + places_[index]; }

  /// One piece. `place` is the position in its tag.
  void send(Collective opcode, bool down, std::uint32_t place, std::uint32_t port, std::uint32_t member,
            const Action& action, const std::string& what) {
    while (dice_.below(16) == 0) step({});
    Bits bits;
    bits.add(member, kPlaceBits).add(port, 5).add(down ? 1 : 0, 1).add(static_cast<std::uint32_t>(opcode), 5);
    bits.add(dice_.below(32), 5).add(place, kPlaceBits);
    top_->arriving_i = bits.number();
    Expected expected{.valid = true, .action = action, .what = what};
    const std::uint32_t behind = port_of(*entry_, place);
    if (action.only != kNoPort || action.but != kNoPort) expected.member = place - entry_->ports[behind].first;
    expected.mask = mask_of(action);
    for (std::uint32_t i = 0; i < places_.size(); ++i) expected.down |= std::uint64_t{1} << port_at(i);
    if (action.only != kNoPort) expected.action.only = places_[action.only];
    if (action.but != kNoPort) expected.action.but = places_[action.but];
    step(std::move(expected));
    ++pieces;
    if (action.kind != Action::Kind::kNothing) ++some;
  }

  void drain() {
    for (std::size_t i = 0; i < kLatency; ++i) step({});
  }

  std::uint64_t pieces = 0, some = 0, switches = 0, with_gaps = 0;

 private:
  std::uint64_t mask_of(const Action& action) const {
    const auto bit = [&](std::uint32_t index) { return std::uint64_t{1} << port_at(index); };
    std::uint64_t mask = 0;
    if (action.up) mask |= std::uint64_t{1} << entry_->head.up;
    if (action.only != kNoPort) mask |= bit(action.only);
    if (action.below) {
      for (std::uint32_t i = 0; i < entry_->ports.size(); ++i) {
        const bool nobody_else = entry_->ports[i].is_switch() || entry_->ports[i].count() == 1;
        if (i != action.but || !nobody_else) mask |= bit(i);
      }
    }
    return mask;
  }

  void clock() {
    top_->clk_i = 0;
    top_->eval();
    top_->clk_i = 1;
    top_->eval();
  }

  void step(Expected expected) {
    top_->valid_i = expected.valid;
    if (!expected.valid) top_->arriving_i = dice_.next() >> 22U;
    due_.push_back(std::move(expected));
    clock();
    if (due_.size() < kLatency) return;
    const Expected now = std::move(due_.front());
    due_.pop_front();
    if (static_cast<bool>(top_->valid_o) != now.valid) fail(now, "valid is wrong");
    if (!now.valid) return;
    std::uint64_t bits = top_->action_o;
    const auto member = take(bits, kPlaceBits);
    const auto but = take(bits, 5);
    const bool has_but = take(bits, 1) != 0;
    const auto only = take(bits, 5);
    const bool has_only = take(bits, 1) != 0;
    const bool below = take(bits, 1) != 0;
    const bool up = take(bits, 1) != 0;
    const auto kind = static_cast<Action::Kind>(take(bits, 2));
    const Action got{.kind = kind,
                     .up = up,
                     .only = has_only ? static_cast<std::uint32_t>(only) : kNoPort,
                     .below = below,
                     .but = has_but ? static_cast<std::uint32_t>(but) : kNoPort};
    if (!(got == now.action)) {
      fail(now, "kind " + std::to_string(static_cast<int>(kind)) + " up " + std::to_string(up) + " only " +
                    std::to_string(got.only) + " below " + std::to_string(below) + " but " + std::to_string(got.but));
    }
    if (top_->mask_o != now.mask) fail(now, "the ports are " + std::to_string(top_->mask_o));
    if (member != now.member) fail(now, "the member is " + std::to_string(member));
    if (top_->down_o != now.down) fail(now, "the ports that lead down are " + std::to_string(top_->down_o));
  }

  [[noreturn]] static void fail(const Expected& now, const std::string& got) {
    const Action& a = now.action;
    std::printf("%s: %s; wanted are kind %d up %d only %u below %d but %u, ports %llu, member %u\n", now.what.c_str(),
                got.c_str(), static_cast<int>(a.kind), a.up, a.only, a.below, a.but,
                static_cast<unsigned long long>(now.mask), now.member);
    std::exit(1);
  }

  std::uint32_t ports_;
  Dice dice_;
  VerilatedContext context_;
  std::unique_ptr<Vtop> top_ = std::make_unique<Vtop>(&context_);
  const Entry* entry_ = nullptr;
  std::vector<std::uint32_t> places_;
  std::deque<Expected> due_;
};

/// The same tree with so few ports that a switch has one left for what is above; or nothing, if it has too many
/// switches.
const CallTree* with_few_ports(const CallTree& tree, std::uint32_t ports, Bench& bench) {
  std::vector<std::vector<Attachment>> below(tree.switches);
  for (std::uint32_t s = 0; s < tree.switches; ++s) {
    const std::uint32_t begin = tree.first[s];
    const std::uint32_t end = tree.first[s + 1];
    // At least so many are needed: each run of members is at least one.
    std::uint32_t least = 0;
    const auto is_member = [&](std::uint32_t i) { return tree.children[i] < tree.members; };
    for (std::uint32_t i = begin; i < end; ++i) least += i == begin || !is_member(i) || !is_member(i - 1) ? 1 : 0;
    if (least > ports - 1) return nullptr;
    std::uint32_t spare = bench.below(ports - least);
    std::uint32_t port = 0;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (i != begin) {
        const bool joins = is_member(i) && is_member(i - 1);
        if (!joins) ++port;
        if (joins && spare != 0 && bench.below(2) == 0) ++port, --spare;
      }
      below[s].push_back({tree.children[i], port});
    }
  }
  return unisono::find_tree(tree.members, below, false);
}

void pieces_of(Bench& bench, const CallTree& tree, std::uint32_t s, const Entry& entry) {
  const auto ports = static_cast<std::uint32_t>(entry.ports.size());
  const bool has_up = entry.head.up != kNoPort;
  for (const Collective opcode :
       {Collective::kBarrier, Collective::kBcast, Collective::kReduce, Collective::kAllreduce, Collective::kScatter,
        Collective::kGather, Collective::kAllgather, Collective::kReduceScatter, Collective::kNop, Collective::kScan}) {
    const bool rooted = opcode == Collective::kBcast || opcode == Collective::kReduce ||
                        opcode == Collective::kScatter || opcode == Collective::kGather;
    const bool blocks = opcode == Collective::kScatter || opcode == Collective::kGather ||
                        opcode == Collective::kAllgather || opcode == Collective::kReduceScatter;
    const bool between = opcode == Collective::kScatter || opcode == Collective::kGather;
    const bool spreads = opcode == Collective::kBcast || opcode == Collective::kAllgather;
    for (std::uint32_t root = 0; root < (rooted ? tree.members : 1); ++root) {
      for (std::uint32_t block = 0; block < (blocks ? tree.members : 1); ++block) {
        const bool by_root = opcode == Collective::kGather || !blocks;
        const std::uint32_t place = by_root ? root : block;
        const std::uint32_t giver = opcode == Collective::kScatter || !blocks ? root : block;
        const std::uint32_t from = port_of(entry, giver);
        for (const bool down : {false, true}) {
          // By the port alone the switch knows on which side the giver is.
          if (between && down != (from == kNoPort)) continue;
          const std::string what = std::string(unisono::name_of(opcode)) + ", root " + std::to_string(root) +
                                   ", block " + std::to_string(block) + (down ? " from above" : " from below") +
                                   " at switch " + std::to_string(s) + " of " + unisono::text_of(tree);
          const Action action = action_of(entry, {opcode, root, block, down});
          const bool known = (between || spreads) && from != kNoPort;
          const std::uint32_t index = known ? from : bench.below(ports);
          const std::uint32_t member = known ? giver - entry.ports[index].first : bench.below(8192);
          if (!down || has_up) {
            bench.send(opcode, down, place, down ? std::uint32_t{entry.head.up} : bench.port_at(index), member, action,
                       what);
          }
          if (bench.below(4) != 0) continue;
          // And by ports by which such a piece cannot come.
          std::uint32_t port = bench.below(32);
          if (down && has_up && port == entry.head.up) continue;
          // Behind a gap is nobody who could send what has no giver.
          const bool below = port >= bench.port_at(0) && port <= bench.port_at(ports - 1);
          if (!down && below && !spreads) continue;
          if (!down && from != kNoPort && port == bench.port_at(from)) continue;
          bench.send(opcode, down, place, port, member, {}, what + " by port " + std::to_string(port));
          ++wrong_ports;
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto ports = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10));
  Bench bench(ports);
  for (int i = 2; i < argc; ++i) {
    const auto members = static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
    for (const std::uint32_t switches : {1U, 2U, 3U, 5U, 9U}) {
      if (members <= unisono::reference::kMembersOfAllTrees && switches > 3) continue;
      std::vector<const CallTree*> trees = unisono::reference::trees_to_check(members, switches, members);
      if (members > unisono::reference::kMembersOfAllTrees) trees = {trees[1]};
      for (const CallTree* const all : trees) {
        const CallTree* const tree = with_few_ports(*all, ports, bench);
        if (tree == nullptr) continue;
        for (std::uint32_t s = 0; s < tree->switches; ++s) {
          Entry entry = unisono::slots::make_entry(*tree, s, 7, 1, 40);
          // Ports anywhere; the one that leads up before or behind those that lead down.
          std::uint32_t spare = ports - 1 - static_cast<std::uint32_t>(entry.ports.size());
          std::vector<std::uint32_t> places;
          for (std::uint32_t i = 0, place = 0; i < entry.ports.size(); ++i, ++place) {
            for (; i != 0 && spare != 0 && bench.below(4) == 0; --spare) ++place;
            places.push_back(place);
          }
          const std::uint32_t used = places.empty() ? 0 : places.back() + 1;
          entry.head.first_port = static_cast<std::uint16_t>(bench.below(ports - used + 1));
          if (entry.head.up != kNoPort) {
            const std::uint32_t free = bench.below(ports - used);
            entry.head.up = static_cast<std::uint16_t>(free < entry.head.first_port ? free : free + used);
          }
          bench.set(entry, std::move(places));
          pieces_of(bench, *tree, s, entry);
          bench.drain();
        }
      }
    }
  }
  std::printf("ok %llu %llu %llu %llu %llu\n", static_cast<unsigned long long>(bench.pieces),
              static_cast<unsigned long long>(bench.some), static_cast<unsigned long long>(wrong_ports),
              static_cast<unsigned long long>(bench.switches), static_cast<unsigned long long>(bench.with_gaps));
  return 0;
}
