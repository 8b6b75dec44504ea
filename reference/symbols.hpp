// Symbolic values: what an element was computed from.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/generated/spec.hpp"

namespace unisono::reference {

/// An expression, by number. Equal expressions have equal numbers.
using Symbol = std::uint32_t;

/// Memory that nothing has written.
inline constexpr Symbol kUninitialised = 0;

/// What an expression contains, in constant size. Two expressions over the same leaves, each as often, have the same
/// `multiset` (whatever their order and brackets); with the same leaves in the same order from left to right also the
/// same `sequence`. Both are sums of 64-bit hashes; that different expressions agree by chance has a probability of
/// about 2^-120.
struct Fingerprint {
  std::uint64_t multiset[2] = {0, 0};
  std::uint64_t sequence[2] = {0, 0};
  std::uint64_t power[2] = {1, 1};  ///< base^leaves, to append
  std::uint64_t leaves = 0;
  Func func = Func::kNone;  ///< of all its nodes; kNone for a leaf
  bool mean = false;        ///< divided by the number of ranks
  bool mixed = false;       ///< several functions, or a torn element: not a plain reduction

  /// That of func(*this, right).
  Fingerprint then(Func by, const Fingerprint& right) const;
  /// That of the mean whose sum this is.
  Fingerprint divided() const;
  bool same_multiset(const Fingerprint& other) const;
  bool same_sequence(const Fingerprint& other) const;
};

/// Where a leaf stood before the run: element `index` of `region` of `rank`. Regions from kStreamRegion on are input
/// streams by port.
struct Leaf {
  std::uint32_t rank = 0;
  std::uint32_t region = 0;
  std::uint64_t index = 0;
};
inline constexpr std::uint32_t kStreamRegion = 8;

/// Hash-consed expressions over leaves, constants and binary functions. Not thread-safe.
class SymbolTable {
 public:
  SymbolTable();

  /// Makes leaves (rank, region, 0 .. count-1); returns the first, the others follow.
  Symbol make_leaves(std::uint32_t rank, std::uint32_t region, std::uint64_t count);
  /// A 64-bit word that is known.
  Symbol constant(std::uint64_t value);
  /// func(left, right).
  Symbol combine(Func func, Symbol left, Symbol right);
  /// An element divided by the number of ranks.
  Symbol divide(Symbol sum);
  /// Part `part` of the `parts` cells an element covers.
  Symbol part(Symbol whole, std::uint32_t part, std::uint32_t parts);
  /// The element that `parts` cells make up; a torn one if they are not the parts of one element.
  Symbol join(const Symbol* cells, std::uint32_t parts);

  bool is_constant(Symbol symbol) const { return nodes_[symbol].kind == Kind::kConstant; }
  std::uint64_t constant_value(Symbol symbol) const { return nodes_[symbol].a; }
  /// Leaf a symbol is, if it is one.
  bool is_leaf(Symbol symbol, Leaf& leaf) const;
  const Fingerprint& fingerprint(Symbol symbol);
  static Fingerprint leaf_fingerprint(const Leaf& leaf);

  /// Whether an expression is made by `func` alone, of all of `leaves` and no others, each as often as it likes.
  bool folds(Symbol symbol, Func func, const std::vector<Leaf>& leaves) const;

  /// The expression with the operands of each chain of one function in rising order, and no brackets: the same for all
  /// expressions that only differ in the order in which a function that commutes and associates was applied.
  Symbol normal_form(Symbol symbol);

  /// A hash of the brackets of an expression, with leaves named by their ranks and the operands of an operation in no
  /// order. `known` keeps what was found of this table.
  std::uint64_t shape(Symbol symbol, std::unordered_map<Symbol, std::uint64_t>& known) const;

  /// A hash of the whole expression, which is the same in other tables. `known` keeps what was found of this one.
  std::uint64_t structure(Symbol symbol, std::unordered_map<Symbol, std::uint64_t>& known) const;

  /// The expression written out, at most about `limit` characters: "r0.src[3] + (r1.src[3] + r2.src[3])".
  std::string text(Symbol symbol, std::size_t limit = 300) const;
  std::size_t size() const { return nodes_.size(); }

 private:
  enum class Kind : std::uint8_t { kNever, kLeaf, kConstant, kCombine, kDivide, kPart, kJoin };
  struct Node {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    Kind kind = Kind::kNever;
    Func func = Func::kNone;
  };
  Symbol intern(const Node& node);
  void write(std::string& out, Symbol symbol, std::size_t limit) const;

  std::vector<Node> nodes_;
  std::vector<Symbol> slots_;  // open addressing; 0 is empty
  std::size_t interned_ = 0;
  std::vector<Fingerprint> fingerprints_;  // filled on demand
  std::vector<bool> has_fingerprint_;
  std::unordered_map<Symbol, Symbol> normal_forms_;
};

}  // namespace unisono::reference
