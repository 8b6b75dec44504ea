// What a switch computes from a communicator's entry is what its program does, for every tree, root and collective.
#include "switch/entry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "collectives/record.hpp"
#include "core/error.hpp"
#include "core/tree_table.hpp"
#include "reference/lowered.hpp"
#include "reference/trees.hpp"

namespace unisono::slots {
namespace {

using reference::peers_of;

/// Switches and members that a move of a switch names, as nodes; the one above is kNoNode.
std::set<std::uint32_t> nodes_of(const CallTree& tree, std::uint32_t node, std::span<const std::uint32_t> peers) {
  std::set<std::uint32_t> found;
  for (const std::uint32_t peer : peers) found.insert(peer == tree.parent[node] ? kNoNode : peer);
  return found;
}

/// The children behind an entry of a port.
std::vector<std::uint32_t> behind(const CallTree& tree, std::uint32_t node, const Entry& entry, std::uint32_t port) {
  std::vector<std::uint32_t> found;
  const std::uint32_t s = node - tree.members;
  for (std::uint32_t i = tree.first[s]; i < tree.first[s + 1]; ++i) {
    const std::uint32_t child = tree.children[i];
    if (tree.port[child] == entry.head.first_port + port) found.push_back(child);
  }
  return found;
}

/// Where an action sends to, as nodes. `source` is the position from which it came, `target` where a block goes.
std::set<std::uint32_t> destinations(const CallTree& tree, std::uint32_t node, const Entry& entry, const Action& action,
                                     std::uint32_t source, std::uint32_t target) {
  std::set<std::uint32_t> found;
  if (action.up) found.insert(kNoNode);
  if (action.only != kNoPort) {
    // Behind a port with several members it is the one whose position is the target's.
    if (entry.ports[action.only].is_switch()) {
      found.insert(behind(tree, node, entry, action.only).front());
    } else {
      found.insert(tree.order[target]);
    }
  }
  if (action.below) {
    for (std::uint32_t port = 0; port < entry.ports.size(); ++port) {
      for (const std::uint32_t child : behind(tree, node, entry, port)) {
        const bool came = action.but == port && (entry.ports[port].is_switch() || child == tree.order[source]);
        if (!came) found.insert(child);
      }
    }
  }
  return found;
}

struct Checked {
  std::uint64_t moves = 0;
  std::uint64_t nothing = 0;
};

/// Every move of every switch is an action, and there are no more actions than moves.
void compare(const Algorithm& algorithm, const CallTree& tree, std::uint32_t root, Checked& checked) {
  Call call;
  call.collective = algorithm.collective;
  const bool reduces = call.collective == Collective::kReduce || call.collective == Collective::kAllreduce ||
                       call.collective == Collective::kReduceScatter;
  const bool blocks = call.collective == Collective::kScatter || call.collective == Collective::kGather ||
                      call.collective == Collective::kAllgather || call.collective == Collective::kReduceScatter;
  call.func = reduces ? Func::kSum : Func::kNone;
  call.dtype = call.collective == Collective::kBarrier ? Datatype::kNone : Datatype::kFp32;
  call.count = call.collective == Collective::kBarrier ? 0 : 1;
  call.size = tree.members;
  call.root = root;
  call.tree = &tree;
  for (std::uint32_t s = 0; s < tree.switches; ++s) {
    const std::uint32_t node = tree.members + s;
    call.rank = node;
    const Program program = record(algorithm, call);
    const Entry entry = make_entry(tree, s, 7, 1, 30);
    std::set<std::uint32_t> used;
    for (std::uint32_t i = tree.first[s]; i < tree.first[s + 1]; ++i) used.insert(tree.port[tree.children[i]]);
    ASSERT_EQ(entry.bytes(), 32 + 8 * used.size());
    std::size_t next = 0;
    for (std::uint32_t block = 0; block < (blocks ? tree.members : 1); ++block) {
      for (const bool from_above : {false, true}) {
        const Arriving arriving{call.collective, tree.position[root], block, from_above};
        const Action action = action_of(entry, arriving);
        if (action.kind == Action::Kind::kNothing) {
          ++checked.nothing;
          continue;
        }
        ASSERT_LT(next, program.moves.size()) << text_of(tree) << ", switch " << s;
        const Move& move = program.moves[next++];
        const auto from = nodes_of(tree, node, peers_of(program, move.arrival.peer, move.arrival.mode));
        const auto to = nodes_of(tree, node, peers_of(program, move.remote.peer, move.remote.mode));
        const std::string where = text_of(tree) + ", switch " + std::to_string(s) + ", root " + std::to_string(root) +
                                  ", block " + std::to_string(block);
        EXPECT_EQ(from.contains(kNoNode), from_above) << where;
        if (action.kind == Action::Kind::kFold) {
          EXPECT_EQ(from.size(), entry.head.shares) << where;
        } else {
          ASSERT_EQ(from.size(), 1U) << where;
        }
        const bool scatters = call.collective == Collective::kScatter || call.collective == Collective::kReduceScatter;
        const std::uint32_t root_at = tree.position[root];
        const std::uint32_t source = call.collective == Collective::kAllgather ? block : root_at;
        EXPECT_EQ(destinations(tree, node, entry, action, source, scatters ? block : root_at), to) << where;
        ++checked.moves;
      }
    }
    EXPECT_EQ(next, program.moves.size()) << text_of(tree) << ", switch " << s << ", root " << root;
  }
}

TEST(Entry, SaysWhatTheCheckedProgramsDo) {
  std::map<Collective, Checked> all;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.switched) continue;
    const bool rooted = algorithm.collective == Collective::kBcast || algorithm.collective == Collective::kReduce ||
                        algorithm.collective == Collective::kScatter || algorithm.collective == Collective::kGather;
    for (std::uint32_t members = 1; members <= 64; ++members) {
      for (const std::uint32_t switches : {1U, 2U, 3U, 5U, 9U}) {
        // All shapes of nine switches would be tens of thousands.
        if (members <= reference::kMembersOfAllTrees && switches > 3) continue;
        std::vector<const CallTree*> trees = reference::trees_to_check(members, switches, members);
        if (members > reference::kMembersOfAllTrees) trees = {trees[1]};  // ranks in an order that is drawn
        for (const CallTree* const tree : trees) {
          for (std::uint32_t root = 0; root < (rooted ? members : 1); ++root) {
            compare(algorithm, *tree, root, all[algorithm.collective]);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
  ASSERT_EQ(all.size(), 8U);
  for (const auto& [collective, checked] : all) {
    EXPECT_GT(checked.moves, 1000U) << name_of(collective);
    std::printf("  %-15s %8llu moves, %8llu pieces that come another way\n", name_of(collective),
                static_cast<unsigned long long>(checked.moves), static_cast<unsigned long long>(checked.nothing));
  }
}

TEST(Entry, TakesAsMuchMemoryAsPortsAreUsed) {
  // 65,536 members, sixteen processes on each of 64 hosts behind each of 64 leaves.
  const std::uint32_t members = 65536;
  std::vector<std::vector<Attachment>> below(65);
  for (std::uint32_t leaf = 0; leaf < 64; ++leaf) below[0].push_back({members + 1 + leaf, leaf});
  for (std::uint32_t rank = 0; rank < members; ++rank) below[1 + rank / 1024].push_back({rank, rank % 1024 / 16});
  const CallTree* const tree = find_tree(members, below, false);
  for (const std::uint32_t s : {0U, 1U, 64U}) {
    const Entry entry = make_entry(*tree, s, 1, 1, 64);
    EXPECT_EQ(entry.ports.size(), 64U);
    EXPECT_EQ(entry.bytes(), 544U);
  }
  const Entry leaf = make_entry(*tree, 3, 1, 1, 64);
  EXPECT_EQ(leaf.head.first, 2048U);
  EXPECT_EQ(leaf.head.shares, 1024U);
  EXPECT_EQ(port_of(leaf, 2048 + 17), 1U);
  EXPECT_EQ(port_of(leaf, 2047), kNoPort);
  EXPECT_EQ(port_of(leaf, 3072), kNoPort);
}

TEST(Entry, PortsThatAreMixedUpAreRefused) {
  const CallTree* const tree = find_tree(3, {{{0, 0}, {1, 1}, {2, 0}}}, false);
  try {
    make_entry(*tree, 0, 1, 1, 8);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("behind port 1 comes port 0"), std::string::npos) << error.what();
  }
  const CallTree* const two = find_tree(4, {{{0, 3}, {1, 4}, {5, 5}}, {{2, 0}, {3, 1}}}, false);
  EXPECT_EQ(make_entry(*two, 0, 1, 1, 4).head.up, kNoPort) << "nothing is above the top";
  EXPECT_EQ(make_entry(*two, 1, 1, 1, 2).head.up, 2U);
  EXPECT_THROW(make_entry(*two, 1, 1, 1, 1), Error) << "the port leads down";
  EXPECT_THROW(make_entry(*two, 1, 1, 1, 0xffff), Error);
  EXPECT_THROW(make_entry(*two, 2, 1, 1, 9), Error) << "there is no such switch";
  EXPECT_THROW(make_entry(*find_tree(1, {{{0, 70000}}}, false), 0, 1, 1, 9), Error);
}

}  // namespace
}  // namespace unisono::slots
