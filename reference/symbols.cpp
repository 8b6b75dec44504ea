#include "reference/symbols.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_set>

#include "core/text.hpp"

namespace unisono::reference {
namespace {

constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

// Odd, so that appending never loses what stands to the left.
constexpr std::uint64_t kBase[2] = {0x9e3779b97f4a7c15ULL, 0xd1342543de82ef95ULL};

std::string leaf_text(const Leaf& leaf) {
  std::string region = leaf.region >= kStreamRegion ? formatted("stream{}", leaf.region - kStreamRegion)
                                                    : name_of(static_cast<Region>(leaf.region));
  return formatted("r{}.{}[{}]", leaf.rank, region, leaf.index);
}

}  // namespace

Fingerprint Fingerprint::then(Func by, const Fingerprint& right) const {
  Fingerprint result;
  for (int i = 0; i < 2; ++i) {
    result.multiset[i] = multiset[i] + right.multiset[i];
    result.sequence[i] = sequence[i] * right.power[i] + right.sequence[i];
    result.power[i] = power[i] * right.power[i];
  }
  result.leaves = leaves + right.leaves;
  result.func = by;
  result.mixed = mixed || right.mixed || mean || right.mean || (func != Func::kNone && func != by) ||
                 (right.func != Func::kNone && right.func != by);
  return result;
}

Fingerprint Fingerprint::divided() const {
  Fingerprint result = *this;
  result.mean = true;
  result.mixed = mixed || mean || (func != Func::kNone && func != Func::kSum);
  return result;
}

bool Fingerprint::same_multiset(const Fingerprint& other) const {
  return !mixed && !other.mixed && mean == other.mean && leaves == other.leaves && func == other.func &&
         multiset[0] == other.multiset[0] && multiset[1] == other.multiset[1];
}

bool Fingerprint::same_sequence(const Fingerprint& other) const {
  return same_multiset(other) && sequence[0] == other.sequence[0] && sequence[1] == other.sequence[1];
}

SymbolTable::SymbolTable() : slots_(1U << 12U) { nodes_.push_back({}); }

Symbol SymbolTable::make_leaves(std::uint32_t rank, std::uint32_t region, std::uint64_t count) {
  const auto first = static_cast<Symbol>(nodes_.size());
  Node node;
  node.kind = Kind::kLeaf;
  node.a = (std::uint64_t{rank} << 8U) | region;
  for (std::uint64_t i = 0; i < count; ++i) {
    node.b = i;
    nodes_.push_back(node);
  }
  return first;
}

Symbol SymbolTable::intern(const Node& node) {
  const auto hash = [](const Node& n) {
    return mix(n.a * 0x9e3779b97f4a7c15ULL +
               mix(n.b + (static_cast<std::uint64_t>(n.kind) << 56U) + (static_cast<std::uint64_t>(n.func) << 48U)));
  };
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash(node) & mask;
  while (slots_[at] != 0) {
    const Node& other = nodes_[slots_[at]];
    if (other.a == node.a && other.b == node.b && other.kind == node.kind && other.func == node.func) return slots_[at];
    at = (at + 1) & mask;
  }
  const auto symbol = static_cast<Symbol>(nodes_.size());
  nodes_.push_back(node);
  slots_[at] = symbol;
  if (++interned_ * 2 > slots_.size()) {
    std::vector<Symbol> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Symbol s : old) {
      if (s == 0) continue;
      std::size_t to = hash(nodes_[s]) & (slots_.size() - 1);
      while (slots_[to] != 0) to = (to + 1) & (slots_.size() - 1);
      slots_[to] = s;
    }
  }
  return symbol;
}

Symbol SymbolTable::constant(std::uint64_t value) { return intern({value, 0, Kind::kConstant, Func::kNone}); }

Symbol SymbolTable::combine(Func func, Symbol left, Symbol right) {
  return intern({left, right, Kind::kCombine, func});
}

Symbol SymbolTable::divide(Symbol sum) { return intern({sum, 0, Kind::kDivide, Func::kAvg}); }

Symbol SymbolTable::part(Symbol whole, std::uint32_t part, std::uint32_t parts) {
  if (whole == kUninitialised) return whole;
  return intern({whole, (std::uint64_t{part} << 32U) | parts, Kind::kPart, Func::kNone});
}

Symbol SymbolTable::join(const Symbol* cells, std::uint32_t parts) {
  bool whole = true;
  for (std::uint32_t i = 0; i < parts; ++i) {
    if (cells[i] == kUninitialised) return kUninitialised;
    const Node& node = nodes_[cells[i]];
    whole = whole && node.kind == Kind::kPart && node.b == ((std::uint64_t{i} << 32U) | parts) &&
            node.a == nodes_[cells[0]].a;
  }
  if (whole) return static_cast<Symbol>(nodes_[cells[0]].a);
  Symbol torn = cells[0];
  for (std::uint32_t i = 1; i < parts; ++i) torn = intern({torn, cells[i], Kind::kJoin, Func::kNone});
  return torn;
}

std::uint64_t SymbolTable::shape(Symbol symbol, std::unordered_map<Symbol, std::uint64_t>& known) const {
  if (const auto found = known.find(symbol); found != known.end()) return found->second;
  // Chains may be as long as there are ranks, so no recursion.
  std::vector<Symbol> open{symbol};
  while (!open.empty()) {
    const Symbol at = open.back();
    const Node& node = nodes_[at];
    std::uint64_t value = 0;
    if (node.kind == Kind::kCombine || node.kind == Kind::kDivide) {
      const auto left = static_cast<Symbol>(node.a);
      const auto right = node.kind == Kind::kCombine ? static_cast<Symbol>(node.b) : left;
      const std::size_t depth = open.size();
      if (known.count(left) == 0) open.push_back(left);
      if (known.count(right) == 0) open.push_back(right);
      if (open.size() != depth) continue;
      value = mix(known[left] + known[right] + static_cast<std::uint64_t>(node.func) * 0x9e3779b97f4a7c15ULL);
    } else {
      value = mix((node.a >> (node.kind == Kind::kLeaf ? 8U : 0U)) * 8 + static_cast<std::uint64_t>(node.kind) + 1);
    }
    known[at] = value;
    open.pop_back();
  }
  return known.at(symbol);
}

std::uint64_t SymbolTable::structure(Symbol symbol, std::unordered_map<Symbol, std::uint64_t>& known) const {
  std::vector<Symbol> open{symbol};
  while (!open.empty()) {
    const Symbol at = open.back();
    const Node& node = nodes_[at];
    const bool two = node.kind == Kind::kCombine || node.kind == Kind::kJoin;
    const bool one = node.kind == Kind::kDivide || node.kind == Kind::kPart;
    const auto left = static_cast<Symbol>(node.a);
    const auto right = static_cast<Symbol>(node.b);
    const std::size_t depth = open.size();
    if ((one || two) && known.count(left) == 0) open.push_back(left);
    if (two && known.count(right) == 0) open.push_back(right);
    if (open.size() != depth) continue;
    const std::uint64_t a = one || two ? known[left] : node.a;
    const std::uint64_t b = two ? known[right] : node.b;
    known[at] = mix(mix(a * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(node.kind)) + b * kBase[1] +
                    (static_cast<std::uint64_t>(node.func) << 32U));
    open.pop_back();
  }
  return known.at(symbol);
}

Symbol SymbolTable::normal_form(Symbol symbol) {
  // Chains may be as long as there are ranks, so no recursion: an expression is done when its operands are.
  std::vector<Symbol> open{symbol};
  while (!open.empty()) {
    const Symbol at = open.back();
    if (normal_forms_.count(at) != 0) {
      open.pop_back();
      continue;
    }
    const Node node = nodes_[at];
    const auto left = static_cast<Symbol>(node.a);
    const auto right = static_cast<Symbol>(node.b);
    const bool two = node.kind == Kind::kCombine || node.kind == Kind::kJoin;
    if (!two && node.kind != Kind::kDivide && node.kind != Kind::kPart) {
      normal_forms_[at] = at;
      continue;
    }
    const std::size_t depth = open.size();
    if (normal_forms_.count(left) == 0) open.push_back(left);
    if (two && normal_forms_.count(right) == 0) open.push_back(right);
    if (open.size() != depth) continue;
    if (node.kind != Kind::kCombine) {
      Node other = node;
      other.a = normal_forms_[left];
      if (two) other.b = normal_forms_[right];
      normal_forms_[at] = intern(other);
      continue;
    }
    // Both sides are chains ((a . b) . c) in rising order already.
    std::vector<Symbol> operands;
    for (Symbol side : {normal_forms_[left], normal_forms_[right]}) {
      while (nodes_[side].kind == Kind::kCombine && nodes_[side].func == node.func) {
        operands.push_back(static_cast<Symbol>(nodes_[side].b));
        side = static_cast<Symbol>(nodes_[side].a);
      }
      operands.push_back(side);
    }
    std::sort(operands.begin(), operands.end());
    Symbol chain = operands.front();
    for (std::size_t i = 1; i < operands.size(); ++i) chain = combine(node.func, chain, operands[i]);
    normal_forms_[at] = chain;
    normal_forms_[chain] = chain;
  }
  return normal_forms_.at(symbol);
}

bool SymbolTable::folds(Symbol symbol, Func func, const std::vector<Leaf>& leaves) const {
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;
  std::set<Key> due;
  for (const Leaf& leaf : leaves) due.insert({leaf.rank, leaf.region, leaf.index});
  std::set<Key> found;
  std::unordered_set<Symbol> seen{symbol};
  std::vector<Symbol> open{symbol};
  while (!open.empty()) {
    const Symbol at = open.back();
    open.pop_back();
    const Node& node = nodes_[at];
    Leaf leaf;
    if (is_leaf(at, leaf)) {
      found.insert({leaf.rank, leaf.region, leaf.index});
    } else if (node.kind == Kind::kCombine && node.func == func) {
      for (const auto part : {static_cast<Symbol>(node.a), static_cast<Symbol>(node.b)}) {
        if (seen.insert(part).second) open.push_back(part);
      }
    } else {
      return false;
    }
  }
  return found == due;
}

bool SymbolTable::is_leaf(Symbol symbol, Leaf& leaf) const {
  const Node& node = nodes_[symbol];
  if (node.kind != Kind::kLeaf) return false;
  leaf = {static_cast<std::uint32_t>(node.a >> 8U), static_cast<std::uint32_t>(node.a & 0xffU), node.b};
  return true;
}

Fingerprint SymbolTable::leaf_fingerprint(const Leaf& leaf) {
  Fingerprint result;
  const std::uint64_t seed =
      mix(leaf.index * 0x9e3779b97f4a7c15ULL + 1) + (std::uint64_t{leaf.rank} << 8U) + leaf.region;
  result.multiset[0] = mix(seed + 0x243f6a8885a308d3ULL);
  result.multiset[1] = mix(seed ^ 0x13198a2e03707344ULL);
  for (int i = 0; i < 2; ++i) {
    result.sequence[i] = result.multiset[i];
    result.power[i] = kBase[i];
  }
  result.leaves = 1;
  return result;
}

const Fingerprint& SymbolTable::fingerprint(Symbol symbol) {
  fingerprints_.resize(nodes_.size());
  has_fingerprint_.resize(nodes_.size());
  std::vector<Symbol> stack{symbol};
  while (!stack.empty()) {
    const Symbol s = stack.back();
    if (has_fingerprint_[s]) {
      stack.pop_back();
      continue;
    }
    const Node& node = nodes_[s];
    if (node.kind == Kind::kCombine) {
      const auto left = static_cast<Symbol>(node.a);
      const auto right = static_cast<Symbol>(node.b);
      if (!has_fingerprint_[left] || !has_fingerprint_[right]) {
        if (!has_fingerprint_[left]) stack.push_back(left);
        if (!has_fingerprint_[right]) stack.push_back(right);
        continue;
      }
      fingerprints_[s] = fingerprints_[left].then(node.func, fingerprints_[right]);
    } else if (node.kind == Kind::kDivide) {
      const auto sum = static_cast<Symbol>(node.a);
      if (!has_fingerprint_[sum]) {
        stack.push_back(sum);
        continue;
      }
      fingerprints_[s] = fingerprints_[sum].divided();
    } else if (node.kind == Kind::kLeaf) {
      Leaf leaf;
      is_leaf(s, leaf);
      fingerprints_[s] = leaf_fingerprint(leaf);
    } else {
      // Constants, torn elements and memory never written are no reduction of inputs, whatever they are.
      fingerprints_[s].mixed = true;
    }
    has_fingerprint_[s] = true;
    stack.pop_back();
  }
  return fingerprints_[symbol];
}

void SymbolTable::write(std::string& out, Symbol symbol, std::size_t limit) const {
  if (out.size() > limit) {
    if (out.size() < 4 || out.compare(out.size() - 3, 3, "...") != 0) out += "...";
    return;
  }
  const Node& node = nodes_[symbol];
  switch (node.kind) {
    case Kind::kNever:
      out += "uninitialised";
      return;
    case Kind::kLeaf: {
      Leaf leaf;
      is_leaf(symbol, leaf);
      out += leaf_text(leaf);
      return;
    }
    case Kind::kConstant:
      out += std::to_string(node.a);
      return;
    case Kind::kPart:
      write(out, static_cast<Symbol>(node.a), limit);
      out += formatted(".part{}", node.b >> 32U);
      return;
    case Kind::kJoin:
      out += "torn(";
      write(out, static_cast<Symbol>(node.a), limit);
      out += " | ";
      write(out, static_cast<Symbol>(node.b), limit);
      out += ")";
      return;
    case Kind::kDivide:
      out += "avg(";
      write(out, static_cast<Symbol>(node.a), limit);
      out += ")";
      return;
    case Kind::kCombine:
      break;
  }
  const bool infix = node.func == Func::kSum || node.func == Func::kProd;
  const auto operand = [&](Symbol s, bool bracket) {
    bracket = bracket && nodes_[s].kind == Kind::kCombine;
    if (bracket) out += "(";
    write(out, s, limit);
    if (bracket) out += ")";
  };
  if (!infix) out += std::string(unisono::name_of(node.func)) + "(";
  operand(static_cast<Symbol>(node.a), false);
  out += infix ? (node.func == Func::kSum ? " + " : " * ") : ", ";
  operand(static_cast<Symbol>(node.b), infix);
  if (!infix) out += ")";
}

std::string SymbolTable::text(Symbol symbol, std::size_t limit) const {
  std::string out;
  write(out, symbol, limit);
  return out;
}

}  // namespace unisono::reference
