#include "engine/matcher.hpp"

#include <vector>

namespace unisono::cclo {

UnexpectedMessage* Matcher::post(PostedReceive& receive) {
  if (UnexpectedMessage* message = find(receive.wanted)) {
    remove(*message);
    return message;
  }
  receive.stamp = ++stamps_;
  if (receive.wanted.exact()) {
    exact_.push(pair(receive.wanted.source, receive.wanted.tag), receive);
  } else {
    wild_.push(kAll, receive);
  }
  return nullptr;
}

PostedReceive* Matcher::arrive(std::uint32_t source, std::uint32_t tag) {
  PostedReceive* exact = exact_.first(pair(source, tag));
  PostedReceive* wild = oldest_wildcard();
  while (wild != nullptr && !wild->wanted.takes(source, tag)) wild = wild->link.next;
  PostedReceive* taker = exact;
  if (wild != nullptr && (exact == nullptr || wild->stamp < exact->stamp)) taker = wild;
  if (taker != nullptr) withdraw(*taker);
  return taker;
}

void Matcher::keep(UnexpectedMessage& message) {
  by_pair_.push(pair(message.source, message.tag), message);
  by_tag_.push(message.tag, message);
  if (message.tag > kMaxUserTag) return;  // which no receive of any tag takes
  by_source_.push(message.source, message);
  by_age_.push(kAll, message);
}

UnexpectedMessage* Matcher::find(const Wanted& wanted) const {
  if (wanted.exact()) return by_pair_.first(pair(wanted.source, wanted.tag));
  if (!wanted.any_source) return by_source_.first(wanted.source);
  return wanted.any_tag ? by_age_.first(kAll) : by_tag_.first(wanted.tag);
}

void Matcher::remove(UnexpectedMessage& message) {
  by_pair_.erase(message);
  by_tag_.erase(message);
  if (message.tag > kMaxUserTag) return;
  by_source_.erase(message);
  by_age_.erase(message);
}

void Matcher::withdraw(PostedReceive& receive) { (receive.wanted.exact() ? exact_ : wild_).erase(receive); }

std::string Matcher::unexpected_text() const {
  struct Entry {
    std::uint32_t source, tag;
    std::size_t times;
  };
  constexpr std::size_t kMost = 4;      // that are named
  constexpr std::size_t kLooked = 256;  // that are looked at
  std::vector<Entry> entries;
  std::size_t reported = 0;
  std::size_t looked = 0;
  for (const UnexpectedMessage* m = oldest(); m != nullptr && looked < kLooked; m = next(*m), ++looked) {
    Entry* known = nullptr;
    for (Entry& entry : entries) {
      if (entry.source == m->source && entry.tag == m->tag) known = &entry;
    }
    if (known == nullptr && entries.size() == kMost) continue;
    if (known == nullptr) known = &entries.emplace_back(Entry{m->source, m->tag, 0});
    ++known->times;
    ++reported;
  }
  std::string text;
  for (const Entry& entry : entries) {
    text += (text.empty() ? "tag " : ", tag ") + std::to_string(entry.tag) + " of rank " + std::to_string(entry.source);
    if (entry.times > 1) text += " (" + std::to_string(entry.times) + " times)";
  }
  if (by_age_.size() > reported) text += ", and " + std::to_string(by_age_.size() - reported) + " more";
  return text;
}

}  // namespace unisono::cclo
