// What a call knows of its messages to and from each rank, of those ranks alone with which it has any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace unisono::cclo {

/// By rank; each is made when it is first asked for, and stays where it is until `clear`. Memory is kept from one call
/// to the next. A hash table of at least twice as many places as there are pairs. Not thread-safe.
template <class Pair>
class Pairs {
 public:
  /// Forgets all.
  void clear() {
    // What was entered last goes first: nothing stands where it does because of what is still there.
    for (; used_ != 0; --used_) table_[place_of(entries_[used_ - 1]->rank)] = 0;
  }
  std::size_t size() const { return used_; }

  Pair& operator[](std::uint32_t rank) {
    if (!table_.empty()) {
      if (const std::uint32_t found = table_[place_of(rank)]; found != 0) return entries_[found - 1]->pair;
    }
    return add(rank);
  }
  /// Null if there is none.
  const Pair* find(std::uint32_t rank) const {
    if (table_.empty()) return nullptr;
    const std::uint32_t found = table_[place_of(rank)];
    return found == 0 ? nullptr : &entries_[found - 1]->pair;
  }

  /// Calls `use(rank, pair)` for each, in the order in which they were made.
  template <class Use>
  void for_each(Use&& use) {
    for (std::size_t i = 0; i < used_; ++i) use(entries_[i]->rank, entries_[i]->pair);
  }

 private:
  struct Entry {
    std::uint32_t rank = 0;
    Pair pair;
  };
  static constexpr std::size_t kLeastPlaces = 16;

  /// Where the rank stands, or would.
  std::size_t place_of(std::uint32_t rank) const {
    const std::size_t mask = table_.size() - 1;
    std::size_t place = (rank * std::uint64_t{0x9e3779b97f4a7c15} >> 40U) & mask;
    while (table_[place] != 0 && entries_[table_[place] - 1]->rank != rank) place = (place + 1) & mask;
    return place;
  }
  Pair& add(std::uint32_t rank) {
    if (2 * (used_ + 1) > table_.size()) {
      table_.assign(table_.empty() ? kLeastPlaces : 2 * table_.size(), 0);
      for (std::size_t i = 0; i < used_; ++i) table_[place_of(entries_[i]->rank)] = static_cast<std::uint32_t>(i + 1);
    }
    if (used_ == entries_.size()) entries_.push_back(std::make_unique<Entry>());
    Entry& entry = *entries_[used_];
    entry.rank = rank;
    entry.pair.reset();
    table_[place_of(rank)] = static_cast<std::uint32_t>(++used_);
    return entry.pair;
  }

  std::vector<std::unique_ptr<Entry>> entries_;
  std::size_t used_ = 0;
  std::vector<std::uint32_t> table_;  ///< position of an entry plus one; 0: none. A power of two, or none yet
};

}  // namespace unisono::cclo
