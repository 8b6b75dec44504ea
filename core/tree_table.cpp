#include "core/tree_table.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono {

namespace {

/// A tree with what it points to.
struct Stored {
  CallTree tree{};
  std::vector<std::uint32_t> parent, first, children, port, order, position;
};

std::string node_text(std::uint32_t node, std::uint32_t members) {
  return node < members ? formatted("rank {}", node) : formatted("switch {}", node - members);
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, "this is no tree of members and switches: " + what);
}

/// Who hangs below whom; every edge is looked at, so what is wrong is named by its edge.
void attach(Stored& made, const std::vector<std::vector<Attachment>>& below) {
  const std::uint32_t members = made.tree.members;
  const std::uint32_t nodes = members + made.tree.switches;
  made.parent.assign(nodes, kNoNode);
  made.port.assign(nodes, 0);
  for (std::uint32_t s = 0; s < below.size(); ++s) {
    const std::uint32_t self = members + s;
    made.first.push_back(static_cast<std::uint32_t>(made.children.size()));
    if (below[s].empty()) refuse(formatted("nothing hangs below switch {}", s));
    for (const Attachment& edge : below[s]) {
      const std::string where = formatted("switch {} - {}: ", s, node_text(edge.node, members));
      if (edge.node >= nodes) {
        refuse(formatted("switch {} - node {}: there are {} members and {} switches", s, edge.node, members,
                         made.tree.switches));
      }
      if (const std::uint32_t other = made.parent[edge.node]; other != kNoNode) {
        refuse(where + formatted("{} hangs below switch {} already", node_text(edge.node, members), other - members));
      }
      // Up from here there must be a way that does not come to the node that is hung up.
      for (std::uint32_t up = self; up != kNoNode; up = made.parent[up]) {
        if (up == edge.node) refuse(where + "this edge closes a circle");
      }
      made.parent[edge.node] = self;
      made.port[edge.node] = edge.port;
      made.children.push_back(edge.node);
    }
  }
  made.first.push_back(static_cast<std::uint32_t>(made.children.size()));
  std::uint32_t top = kNoNode;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (made.parent[node] != kNoNode) continue;
    if (node < members) refuse(formatted("rank {} hangs below no switch", node));
    if (top != kNoNode) {
      refuse(
          formatted("switch {} and switch {} both hang below none: nothing joins them", top - members, node - members));
    }
    top = node;
  }
}

/// Members from the left to the right.
void put_in_order(Stored& made) {
  const std::uint32_t members = made.tree.members;
  const auto top = static_cast<std::uint32_t>(std::find(made.parent.begin() + members, made.parent.end(), kNoNode) -
                                              made.parent.begin());
  made.position.assign(members, 0);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open{{top, 1}};  // a node, and its level
  while (!open.empty()) {
    const auto [node, level] = open.back();
    open.pop_back();
    if (node < members) {
      made.position[node] = static_cast<std::uint32_t>(made.order.size());
      made.order.push_back(node);
      continue;
    }
    if (level > kMostTreeLevels) {
      refuse(formatted("switch {} is {} switches below the top; at most {} levels are allowed", node - members,
                       level - 1, kMostTreeLevels));
    }
    const std::uint32_t s = node - members;
    for (std::uint32_t i = made.first[s + 1]; i-- > made.first[s];) open.emplace_back(made.children[i], level + 1);
  }
}

}  // namespace

const CallTree* find_tree(std::uint32_t members, const std::vector<std::vector<Attachment>>& below, bool stand_in) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::vector<std::uint32_t>, std::unique_ptr<Stored>>;
  if (below.empty() || members == 0) refuse(formatted("{} members and {} switches", members, below.size()));
  std::vector<std::uint32_t> key{members, stand_in};
  for (const std::vector<Attachment>& edges : below) {
    key.push_back(static_cast<std::uint32_t>(edges.size()));
    for (const Attachment& edge : edges) key.insert(key.end(), {edge.node, edge.port});
  }
  const std::lock_guard lock(mutex);
  std::unique_ptr<Stored>& found = (*known)[key];
  if (found) return &found->tree;
  auto made = std::make_unique<Stored>();
  made->tree.members = members;
  made->tree.switches = static_cast<std::uint32_t>(below.size());
  try {
    attach(*made, below);
    put_in_order(*made);
  } catch (...) {
    known->erase(key);
    throw;
  }
  made->tree.stand_in = stand_in;
  made->tree.in_rank_order = std::is_sorted(made->order.begin(), made->order.end());
  made->tree.parent = made->parent.data();
  made->tree.first = made->first.data();
  made->tree.children = made->children.data();
  made->tree.port = made->port.data();
  made->tree.order = made->order.data();
  made->tree.position = made->position.data();
  found = std::move(made);
  return &found->tree;
}

const CallTree* find_tree(const CallTree& like, bool stand_in) {
  std::vector<std::vector<Attachment>> below(like.switches);
  for (std::uint32_t s = 0; s < like.switches; ++s) {
    for (std::uint32_t i = like.first[s]; i < like.first[s + 1]; ++i) {
      below[s].push_back({like.children[i], like.port[like.children[i]]});
    }
  }
  return find_tree(like.members, below, stand_in);
}

const CallTree* parse_tree(const std::string& text, bool stand_in) {
  constexpr std::uint32_t kMostMembers = 4096;
  const auto fault = [&](std::size_t at, const std::string& what) {
    throw Error(
        ErrorCode::kInvalidArgument,
        formatted("\"{}\" is no tree: {} at character {}; write a switch as brackets around what hangs below it, "
                  "as in \"((0 1) (2 3))\"",
                  text, what, at + 1));
  };
  struct Item {
    bool is_switch;
    std::uint32_t number;
    std::uint32_t below;  // a switch
  };
  std::vector<Item> items;
  std::vector<std::uint32_t> open;
  std::uint32_t switches = 0;
  std::uint32_t members = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char sign = text[i];
    if (sign == ' ') continue;
    if (switches != 0 && open.empty()) fault(i, "something behind the last bracket");
    if (sign == '(') {
      if (switches == kMostMembers) fault(i, formatted("more than {} switches", kMostMembers));
      items.push_back({true, switches, open.empty() ? kNoNode : open.back()});
      open.push_back(switches++);
    } else if (sign == ')' && !open.empty()) {
      open.pop_back();
    } else if (sign >= '0' && sign <= '9' && !open.empty()) {
      std::uint32_t rank = 0;
      const std::size_t begin = i;
      for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
        rank = rank * 10 + static_cast<std::uint32_t>(text[i] - '0');
        if (rank >= kMostMembers) fault(begin, formatted("a rank beyond {}", kMostMembers - 1));
      }
      --i;
      items.push_back({false, rank, open.back()});
      members = std::max(members, rank + 1);
    } else {
      fault(i, open.empty() ? "no bracket that opens" : "neither a rank nor a bracket");
    }
  }
  if (switches == 0) fault(text.size(), "no switch");
  if (!open.empty()) fault(text.size(), "a bracket that nothing closes");
  std::vector<std::vector<Attachment>> below(switches);
  for (const Item& item : items) {
    if (item.below == kNoNode) continue;
    std::vector<Attachment>& edges = below[item.below];
    edges.push_back({item.is_switch ? members + item.number : item.number, static_cast<std::uint32_t>(edges.size())});
  }
  return find_tree(members, below, stand_in);
}

std::string text_of(const CallTree& tree) {
  std::string text;
  const auto write = [&](const auto& self, std::uint32_t node) -> void {
    if (node < tree.members) {
      text += std::to_string(node);
      return;
    }
    const std::uint32_t s = node - tree.members;
    text += '(';
    for (std::uint32_t i = tree.first[s]; i < tree.first[s + 1]; ++i) {
      if (i != tree.first[s]) text += ' ';
      self(self, tree.children[i]);
    }
    text += ')';
  };
  std::uint32_t top = tree.members;
  while (tree.parent[top] != kNoNode) top = tree.parent[top];
  write(write, top);
  return text;
}

}  // namespace unisono
