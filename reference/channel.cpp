#include "reference/channel.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "reference/lane_channel.hpp"
#include "reference/message_channel.hpp"

namespace unisono::reference {

void Channel::send(Node sender, std::uint64_t done, std::uint64_t elements, std::uint64_t length,
                   std::vector<Symbol> values) {
  Segment segment{sender, sending_, done, elements, length, false, std::move(values)};
  leaves(segment);
  if (segment.last()) ++sending_;
  data_.push_back(std::move(segment));
  depart_(Course::kData);
}

void Channel::give_back(const Notice& notice) {
  back_.push_back(notice);
  depart_(Course::kBack);
}

void Channel::request() {
  requests_.push_back(sending_);
  depart_(Course::kRequests);
}

void Channel::issue(std::uint64_t length, bool can_land) {
  issued_ = true;
  length_ = length;
  opened(can_land);
}

void Channel::copy(Symbol* out, std::size_t elements) const {
  std::uint64_t skip = used_;
  for (auto segment = received_.begin(); elements != 0; ++segment, skip = 0) {
    const std::uint64_t some = std::min<std::uint64_t>(elements, segment->values.size() - skip);
    out = std::copy_n(segment->values.begin() + static_cast<std::ptrdiff_t>(skip), some, out);
    elements -= some;
  }
}

void Channel::take(std::uint64_t elements) {
  taken_ += elements;
  here_ -= elements;
  for (used_ += elements; !received_.empty() && used_ >= received_.front().elements;) {
    used_ -= received_.front().elements;
    received_.pop_front();
    segment_taken();
  }
  if (taken_ != length_) return advanced();
  ended();
  ++taking_;
  taken_ = length_ = 0;
  issued_ = false;
  here_ = count_here();
}

std::uint64_t Channel::count_here() const {
  std::uint64_t elements = 0;
  for (const Segment& segment : received_) {
    if (segment.message != taking_) break;
    elements += segment.elements;
  }
  return elements;
}

Segment Channel::next_segment() {
  Segment segment = std::move(data_.front());
  data_.pop_front();
  return segment;
}

Channel::Delivery Channel::deliver(Course course) {
  if (course == Course::kRequests) {
    const std::uint64_t message = requests_.front();
    requests_.pop_front();
    return {requested(message)};
  }
  if (course == Course::kBack) {
    const Notice notice = back_.front();
    back_.pop_front();
    return {notified(notice)};
  }
  Segment segment = next_segment();
  if (segment.message != coming_ || segment.offset != came_) {
    return {ChannelFault{FindingKind::kUnmatched,
                         formatted("element {} of message {} came where element {} of message {} was to come: out of "
                                   "order",
                                   segment.offset, segment.message, came_, coming_)}};
  }
  came_ += segment.elements;
  if (segment.last()) {
    ++coming_;
    came_ = 0;
  }
  if (auto fault = arrived(segment)) return {std::move(fault)};
  const bool landed = segment.message == taking_ && !segment.eager && lands();
  if (segment.message == taking_) here_ += segment.elements;
  received_.push_back(std::move(segment));
  return {std::nullopt, &received_.back(), landed};
}

std::optional<ChannelFault> Channel::at_rest() const {
  if (!received_.empty()) {
    return ChannelFault{FindingKind::kUnmatched,
                        formatted("message {} has come and is never taken", received_.front().message)};
  }
  return unbalanced();
}

std::unique_ptr<Channel> make_channel(const ChannelKind& kind, std::uint64_t segment, Channel::Depart depart) {
  if (kind.way == ChannelKind::Way::kLane) return std::make_unique<LaneChannel>(kind, segment, std::move(depart));
  return std::make_unique<MessageChannel>(kind, segment, std::move(depart));
}

}  // namespace unisono::reference
