// Queues by key, of items that carry their own links: nothing is allocated for an item.
//
// A hash table of keys. The oldest item of a key stands in the table, the younger ones hang behind it, so that a
// thousand items of one key are in nobody's way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace unisono::cclo {

/// An item's place in one KeyedQueues.
template <class Item>
struct QueueLink {
  Item* next = nullptr;          ///< of the same key, younger
  Item* before = nullptr;        ///< of the same key, older; of the oldest: the youngest
  Item* chain_next = nullptr;    ///< of the oldest only: the oldest of another key in the same bucket
  Item* chain_before = nullptr;  ///< of the oldest only
  std::uint64_t key = 0;
  bool queued = false;
  bool oldest = false;
};

/// Not thread-safe. Items stay where they are while they are queued; they are the user's.
template <class Item, QueueLink<Item> Item::*kLink>
class KeyedQueues {
 public:
  /// Puts an item behind all others of its key.
  void push(std::uint64_t key, Item& item) {
    if (keys_ >= buckets_.size()) grow();
    QueueLink<Item>& link = item.*kLink;
    link = {};
    link.key = key;
    link.queued = true;
    ++size_;
    if (Item* oldest = first(key)) {
      Item* youngest = (oldest->*kLink).before;
      (youngest->*kLink).next = &item;
      link.before = youngest;
      (oldest->*kLink).before = &item;
      return;
    }
    link.before = &item;
    enter(item);
    ++keys_;
  }

  /// The oldest item of a key, or null.
  Item* first(std::uint64_t key) const {
    if (keys_ == 0) return nullptr;
    Item* item = buckets_[bucket_of(key)];
    while (item != nullptr && (item->*kLink).key != key) item = (item->*kLink).chain_next;
    return item;
  }
  /// The one behind it, of the same key, or null.
  static Item* next(const Item& item) { return (item.*kLink).next; }
  static bool queued(const Item& item) { return (item.*kLink).queued; }

  void erase(Item& item) {
    QueueLink<Item>& link = item.*kLink;
    --size_;
    if (!link.oldest) {
      Item* oldest = link.next == nullptr ? first(link.key) : nullptr;
      (link.before->*kLink).next = link.next;
      (link.next == nullptr ? oldest->*kLink : link.next->*kLink).before = link.before;
    } else {
      leave(item);
      if (link.next == nullptr) {
        --keys_;
      } else {
        (link.next->*kLink).before = link.before == &item ? link.next : link.before;
        enter(*link.next);
      }
    }
    link = {};
  }

  std::size_t size() const { return size_; }
  /// Some item, or null. Looks through the table.
  Item* any() const {
    for (Item* item : buckets_) {
      if (item != nullptr) return item;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kLeastBuckets = 16;

  std::size_t bucket_of(std::uint64_t key) const {
    return (key * 0x9e3779b97f4a7c15ULL >> 32U) & (buckets_.size() - 1);
  }
  /// Makes an item the one that stands in the table for its key.
  void enter(Item& item) {
    QueueLink<Item>& link = item.*kLink;
    Item*& bucket = buckets_[bucket_of(link.key)];
    link.oldest = true;
    link.chain_before = nullptr;
    link.chain_next = bucket;
    if (bucket != nullptr) (bucket->*kLink).chain_before = &item;
    bucket = &item;
  }
  void leave(Item& item) {
    QueueLink<Item>& link = item.*kLink;
    if (link.chain_before != nullptr) {
      (link.chain_before->*kLink).chain_next = link.chain_next;
    } else {
      buckets_[bucket_of(link.key)] = link.chain_next;
    }
    if (link.chain_next != nullptr) (link.chain_next->*kLink).chain_before = link.chain_before;
  }
  void grow() {
    std::vector<Item*> before(buckets_.empty() ? kLeastBuckets : 2 * buckets_.size());
    std::swap(before, buckets_);
    for (Item* item : before) {
      while (item != nullptr) {
        Item* other = (item->*kLink).chain_next;
        enter(*item);
        item = other;
      }
    }
  }

  std::vector<Item*> buckets_;  ///< a power of two, or none yet
  std::size_t keys_ = 0;
  std::size_t size_ = 0;
};

}  // namespace unisono::cclo
