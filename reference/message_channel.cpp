#include "reference/message_channel.hpp"

#include <algorithm>
#include <utility>

#include "core/text.hpp"

namespace unisono::reference {
namespace {

std::uint32_t buffers_of(const ChannelKind& kind) { return kind.way == ChannelKind::Way::kCredit ? kind.buffers : 0; }

}  // namespace

// Calls before this one have left as many credits owed as do not make a batch.
MessageChannel::MessageChannel(const ChannelKind& kind, std::uint64_t segment, Depart depart)
    : Channel(kind, segment, std::move(depart)),
      credits_(buffers_of(kind) - (buffers_of(kind) == 0 ? 0 : kind.batch - 1)),
      owed_(buffers_of(kind) - credits_) {}

std::uint64_t MessageChannel::room(std::uint64_t done, std::uint64_t length) {
  if (!eager_ && !asked_ && limit_ == 0 && !is_long(length)) {
    if (credits_ != 0) {
      --credits_;
      eager_ = true;
    } else if (kind_.asks) {
      asked_ = true;
      request();
    }
  }
  const std::uint64_t limit = eager_ ? length : limit_;
  return std::min(limit - std::min(limit, done), segment_);
}

std::string MessageChannel::awaited() const {
  return limit_ != 0 ? "more of its grant" : asked_ || kind_.way == ChannelKind::Way::kGrant ? "a grant" : "a credit";
}

void MessageChannel::leaves(Segment& segment) {
  segment.eager = eager_;
  if (!segment.last()) return;
  eager_ = asked_ = false;
  limit_ = 0;
}

std::optional<ChannelFault> MessageChannel::notified(const Notice& notice) {
  credits_ += notice.freed;
  if (notice.limit == 0) return std::nullopt;
  if (notice.message != sending_ || eager_) {
    return overflow(formatted("a grant of message {} came when message {} was to be sent{}", notice.message, sending_,
                              eager_ ? " against a credit" : ""));
  }
  limit_ = notice.limit;
  return std::nullopt;
}

std::optional<ChannelFault> MessageChannel::arrived(const Segment& segment) {
  if (segment.eager) return arrived_eager(segment);
  const std::uint64_t end = segment.offset + segment.elements;
  if (open_ && segment.message == taking_ && end <= allowed_) return std::nullopt;
  return overflow(formatted("elements {} to {} of message {} came, of which {} were granted", segment.offset, end,
                            segment.message, open_ && segment.message == taking_ ? allowed_ : 0));
}

std::optional<ChannelFault> MessageChannel::arrived_eager(const Segment& segment) {
  if (is_long(segment.length)) {
    return overflow(formatted("message {} of {} elements came without a grant", segment.message, segment.length));
  }
  if (open_ && segment.message == taking_) {
    return overflow(formatted("message {} came against a credit, after its grant", segment.message));
  }
  // Credits that are owed are not the sender's.
  if (segment.offset == 0 && ++held_ + owed_ > kind_.buffers) {
    return overflow(
        formatted("message {} came without a credit: earlier messages stand in {} of {} buffers, and {} "
                  "credits have not gone back",
                  segment.message, held_ - 1, kind_.buffers, owed_));
  }
  return std::nullopt;
}

std::optional<ChannelFault> MessageChannel::requested(std::uint64_t message) {
  if (requested_ || message < taking_) {
    return overflow(formatted("a grant of message {} was asked for when {}", message,
                              requested_ ? "another request was pending" : "it had ended"));
  }
  requested_ = message;
  if (issued_ && message == taking_ && !open_) open();
  return std::nullopt;
}

void MessageChannel::opened(bool can_land) {
  can_land_ = can_land && kind_.in_place;
  if (is_long(length_) || requested_ == taking_) open();
}

void MessageChannel::open() {
  requested_.reset();
  open_ = true;
  direct_ = can_land_;
  ring_ = direct_ ? length_ : std::min(length_, kind_.landing * segment_);
  allowed_ = ring_;
  give_back({0, taking_, allowed_});
}

void MessageChannel::advanced() {
  if (!open_ || allowed_ == length_ || 2 * (taken_ + ring_ - allowed_) < ring_) return;
  // By whole segments, as the engine does for those who send no less.
  const std::uint64_t limit = std::min(length_, taken_ / segment_ * segment_ + ring_);
  if (limit <= allowed_) return;
  allowed_ = limit;
  give_back({0, taking_, allowed_});
}

void MessageChannel::ended() {
  if (open_) {
    open_ = false;
    return;
  }
  --held_;
  if (++owed_ < kind_.batch) return;
  give_back({std::exchange(owed_, 0), 0, 0});
}

std::optional<ChannelFault> MessageChannel::unbalanced() const {
  if (credits_ + owed_ == buffers_of(kind_) && held_ == 0 && !requested_) return std::nullopt;
  return overflow(formatted("{} of {} credits are left when all has ended, {} of them with the receiver{}",
                            credits_ + owed_, buffers_of(kind_), owed_,
                            requested_ ? ", and a request was not granted" : ""));
}

}  // namespace unisono::reference
