#include "reference/trees.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/tree_table.hpp"
#include "reference/dice.hpp"

namespace unisono::reference {
namespace {

/// A tree in brackets, its members not told apart: "((..).)" for a switch above a switch with two members and one more.
using Shape = std::string;
using Shapes = std::set<Shape>;

/// Whether shapes that differ in the order of children alone are told apart.
enum class Children : std::uint8_t { kInOneOrder, kInAllOrders };

Shapes shapes(std::uint32_t switches, std::uint32_t members, Children children);

/// What may stand between the brackets of a switch: one shape or more, with so many switches and members together; in
/// one order: falling, and no shape is greater than `most`; empty: any.
std::set<std::string> contents(std::uint32_t switches, std::uint32_t members, Children children, const Shape& most) {
  std::set<std::string> found;
  for (std::uint32_t s = 0; s <= switches; ++s) {
    for (std::uint32_t m = 1; m <= members; ++m) {
      for (const Shape& first : shapes(s, m, children)) {
        if (!most.empty() && first > most) continue;
        if (s == switches && m == members) {
          found.insert(first);
        } else if (m != members) {
          const Shape& bound = children == Children::kInOneOrder ? first : most;
          for (const std::string& rest : contents(switches - s, members - m, children, bound)) {
            found.insert(first + rest);
          }
        }
      }
    }
  }
  return found;
}

Shapes shapes(std::uint32_t switches, std::uint32_t members, Children children) {
  static std::map<std::tuple<std::uint32_t, std::uint32_t, Children>, Shapes> known;
  static std::mutex mutex;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find({switches, members, children}); found != known.end()) return found->second;
  }
  if (switches == 0) return members == 1 ? Shapes{"."} : Shapes{};
  Shapes found;
  for (const std::string& inner : contents(switches - 1, members, children, "")) found.insert("(" + inner + ")");
  const std::lock_guard lock(mutex);
  return known[{switches, members, children}] = found;
}

Shape drawn_shape(std::uint32_t switches, std::uint32_t members, Dice& dice) {
  // Switches hang below earlier ones; each that has nothing below it needs a member.
  std::vector<std::vector<std::uint32_t>> below(switches);
  for (std::uint32_t s = 1; s < switches; ++s) below[dice.below(s)].push_back(s);
  std::vector<std::uint32_t> leaves(switches);
  std::uint32_t left = members;
  for (std::uint32_t s = 0; s < switches && left != 0; ++s) {
    if (!below[s].empty()) continue;
    ++leaves[s];
    --left;
  }
  for (; left != 0; --left) ++leaves[dice.below(switches)];
  const auto write = [&](const auto& self, std::uint32_t s) -> Shape {
    std::vector<Shape> children(leaves[s], ".");
    for (const std::uint32_t child : below[s]) children.push_back(self(self, child));
    for (std::size_t i = children.size(); i > 1; --i) std::swap(children[i - 1], children[dice.below(i)]);
    Shape text;
    for (const Shape& child : children) text += child;
    return text.empty() ? text : "(" + text + ")";
  };
  return write(write, 0);
}

/// The same shape with the children of each switch from right to left.
Shape mirrored(const Shape& shape) {
  Shape other(shape.rbegin(), shape.rend());
  for (char& sign : other) sign = sign == '(' ? ')' : sign == ')' ? '(' : sign;
  return other;
}

/// The tree of a shape, members in the given order from left to right.
const CallTree* tree_of(const Shape& shape, const std::vector<std::uint32_t>& order, Dice* ports) {
  std::vector<std::vector<Attachment>> below;
  std::vector<std::uint32_t> open;
  const auto members = static_cast<std::uint32_t>(order.size());
  std::uint32_t member = 0;
  const auto hang = [&](std::uint32_t node) {
    if (open.empty()) return;
    std::vector<Attachment>& edges = below[open.back()];
    std::uint32_t port = edges.empty() ? 0 : edges.back().port + 1;
    const bool beside = node < members && !edges.empty() && edges.back().node < members;
    if (ports != nullptr && beside && ports->below(2) == 0) port = edges.back().port;
    edges.push_back({node, port});
  };
  for (const char sign : shape) {
    if (sign == '.') {
      hang(order[member++]);
    } else if (sign == '(') {
      const auto s = static_cast<std::uint32_t>(below.size());
      hang(members + s);
      below.emplace_back();
      open.push_back(s);
    } else {
      open.pop_back();
    }
  }
  return find_tree(members, below, false);
}

}  // namespace

std::vector<const CallTree*> trees_to_check(std::uint32_t members, std::uint32_t switches, std::uint64_t seed) {
  std::vector<const CallTree*> trees;
  Dice dice(seed * 1000003 + std::uint64_t{members} * 64 + switches);
  std::vector<std::uint32_t> order(members);
  std::iota(order.begin(), order.end(), 0U);
  const auto shuffled = [&] {
    std::vector<std::uint32_t> other = order;
    for (std::size_t i = other.size(); i > 1; --i) std::swap(other[i - 1], other[dice.below(i)]);
    return other;
  };
  if (members <= kMembersOfAllTrees) {
    for (const Shape& shape : shapes(switches, members, Children::kInOneOrder)) {
      trees.push_back(tree_of(shape, order, nullptr));
      if (members > 1) trees.push_back(tree_of(mirrored(shape), shuffled(), &dice));
    }
    return trees;
  }
  for (int i = 0; i < 6; ++i) {
    Shape shape;
    // A draw in which a switch is left without members is no tree.
    do {
      shape = drawn_shape(switches, members, dice);
    } while (std::count(shape.begin(), shape.end(), '(') != static_cast<std::ptrdiff_t>(switches));
    trees.push_back(tree_of(shape, i == 0 ? order : shuffled(), &dice));
  }
  return trees;
}

std::vector<const CallTree*> trees_in_all_orders(std::uint32_t members, std::uint32_t switches) {
  std::vector<const CallTree*> trees;
  if (members > kMembersOfAllTrees) return trees;
  std::vector<std::uint32_t> order(members);
  std::iota(order.begin(), order.end(), 0U);
  for (const Shape& shape : shapes(switches, members, Children::kInAllOrders)) {
    trees.push_back(tree_of(shape, order, nullptr));
  }
  return trees;
}

}  // namespace unisono::reference
