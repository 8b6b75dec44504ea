// The matcher: which receive takes which point-to-point message, on one communicator.
//
// Two queues. The *posted queue* has the receives that wait for their message, the *unexpected queue* the messages that
// no receive has asked for yet. A message that comes is given to the oldest receive that takes it; a receive that is
// posted gets the oldest message that it takes. So messages of one source with matching tags never overtake each other,
// and of several sources a wildcard takes the message that came here first.
//
// Exact receives are found by their source and tag in one look. Receives with a wildcard stand in a list; stamps tell
// which of the two kinds is older. Messages are found by (source, tag), by source, by tag and by age, in one look each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/generated/spec.hpp"
#include "engine/keyed_queues.hpp"

namespace unisono::cclo {

/// Which messages a receive or a probe takes.
struct Wanted {
  std::uint32_t source = 0;  ///< rank; of any source 0
  std::uint32_t tag = 0;
  bool any_source = false;
  bool any_tag = false;  ///< any of the user's: those beyond kMaxUserTag are the library's own

  bool exact() const { return !any_source && !any_tag; }
  bool takes(std::uint32_t from, std::uint32_t with) const {
    return (any_source || from == source) && (any_tag ? with <= kMaxUserTag : with == tag);
  }
};

/// A receive that can be posted. The matcher links it, and does not own it: it stays where it is until it has been
/// matched or withdrawn.
struct PostedReceive {
  Wanted wanted;
  std::uint64_t stamp = 0;  ///< grows from one posted receive to the next
  QueueLink<PostedReceive> link;
};

/// A message that can be kept, likewise.
struct UnexpectedMessage {
  std::uint32_t source = 0;  ///< rank
  std::uint32_t tag = 0;
  QueueLink<UnexpectedMessage> by_pair, by_source, by_tag, by_age;
};

/// The queues of one communicator. Not thread-safe. Allocates only as the number of different keys grows.
class Matcher {
 public:
  /// A receive is made: the message that it takes, which is kept no longer; or null, and it is posted.
  UnexpectedMessage* post(PostedReceive& receive);
  /// A message comes: the receive that takes it, which is posted no longer; or null, and `keep` may follow.
  PostedReceive* arrive(std::uint32_t source, std::uint32_t tag);
  /// Keeps a message that no receive took, behind all that are kept.
  void keep(UnexpectedMessage& message);
  /// The message that a receive would get now, or null. It stays.
  UnexpectedMessage* find(const Wanted& wanted) const;
  /// Takes one out of its queue.
  void remove(UnexpectedMessage& message);
  void withdraw(PostedReceive& receive);
  /// Whether a receive is posted.
  static bool posted(const PostedReceive& receive) { return receive.link.queued; }

  std::size_t posted() const { return exact_.size() + wild_.size(); }
  std::size_t unexpected() const { return by_pair_.size(); }
  /// The oldest posted receive with a wildcard, or null. Of communicators without any this is one load.
  PostedReceive* oldest_wildcard() const { return wild_.size() == 0 ? nullptr : wild_.first(kAll); }
  /// Some message that is kept, also of the library's own tags, or null; for clearing up.
  UnexpectedMessage* any() const { return by_pair_.any(); }
  /// The user's messages that are kept, oldest first; for people.
  UnexpectedMessage* oldest() const { return by_age_.first(kAll); }
  static UnexpectedMessage* next(const UnexpectedMessage& message) { return message.by_age.next; }

  /// The messages that are kept, for people: "tag 7 of rank 3 (twice), tag 1 of rank 0, and 12 more". Empty if none is.
  std::string unexpected_text() const;

 private:
  static constexpr std::uint64_t kAll = 0;
  static std::uint64_t pair(std::uint32_t source, std::uint32_t tag) { return std::uint64_t{source} << 32U | tag; }

  KeyedQueues<PostedReceive, &PostedReceive::link> exact_;  ///< by source and tag
  KeyedQueues<PostedReceive, &PostedReceive::link> wild_;   ///< all in one queue
  std::uint64_t stamps_ = 0;
  KeyedQueues<UnexpectedMessage, &UnexpectedMessage::by_pair> by_pair_;
  KeyedQueues<UnexpectedMessage, &UnexpectedMessage::by_source> by_source_;  ///< of the user's tags
  KeyedQueues<UnexpectedMessage, &UnexpectedMessage::by_tag> by_tag_;
  KeyedQueues<UnexpectedMessage, &UnexpectedMessage::by_age> by_age_;  ///< of the user's tags, all in one queue
};

}  // namespace unisono::cclo
