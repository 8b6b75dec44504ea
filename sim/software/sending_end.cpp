#include "sim/software/sending_end.hpp"

#include <algorithm>

namespace unisono::sim::software {

namespace {

// unisono_smi_push's.
constexpr std::uint32_t kIdleFlush = 64;
constexpr std::uint32_t kAskAfter = 64;

}  // namespace

SendingEnd::SendingEnd(std::uint32_t rank, std::uint32_t ranks, PacketFormat format, std::uint32_t window)
    : rank_(rank), format_(format), most_places_(window), receivers_(ranks), messages_(ranks) {}

void SendingEnd::told(const Header& by, const Control& control) {
  if (control.kind != Control::Kind::kPlaces || by.src >= receivers_.size()) return;
  Receiver& receiver = receivers_[by.src];
  const bool is_peer = active_ && !tree_ && by.src == channel_.peer;
  if (control.first) {
    receiver.first = true;
    receiver.message = control.message;
    receiver.opening = control.opening;
    if (is_peer && !begun_) begin();
    return;
  }
  if (is_peer && begun_) {
    places_ += control.packets;
    window_ += control.elements;
  }
  // With window 0 a receiver may ask before the channel is opened here.
  if (control.elements != 0 && receiver.first) receiver.asked = true;
}

void SendingEnd::open(const kernels::PortOpen& open) {
  channel_ = open;
  active_ = true;
  tree_ = false;
  shown_ = 0;
  left_ = open.count;
  held_.clear();
  flush_ = false;
  idle_ = unanswered_ = 0;
  begun_ = false;
  places_ = 0;
  window_ = 0;
}

void SendingEnd::open_tree(const kernels::PortOpen& channel) {
  open(channel);
  tree_ = true;
}

/// The receiver's first word for this channel is there.
void SendingEnd::begin() {
  Receiver& receiver = receivers_[channel_.peer];
  begun_ = true;
  places_ = most_places_;
  window_ = std::uint64_t{channel_.window} + (receiver.asked ? 1 : 0);
  receiver.first = receiver.asked = false;
  if (receiver.message != messages_.with(channel_.peer)) return;
  const Opening mine = opening_of(channel_);
  const Opening& theirs = receiver.opening;
  // An end without credits only wants one of its kind.
  const bool agree = channel_.credits ? theirs.credits && theirs.strict == mine.strict && theirs.size == mine.size &&
                                            theirs.window == mine.window
                                      : !theirs.credits;
  if (agree) return;
  speaks_ = Speaks::kDiffers;
  spoken_ = messages_.with(channel_.peer);
  if (channel_.credits) close();
}

void SendingEnd::close() {
  active_ = false;
  if (!tree_) messages_.end(channel_.peer);
}

/// Whether strict mode lets so many elements go.
bool SendingEnd::fits(std::uint32_t count) const {
  return !(channel_.credits && channel_.strict) || (begun_ && window_ >= count);
}

void SendingEnd::speak() {
  if (speaks_ == Speaks::kNothing || !sink_->takes()) return;
  Packet packet;
  Control control;
  control.opening = opening_of(channel_);
  control.message = spoken_;
  control.kind = speaks_ == Speaks::kAsks ? Control::Kind::kAsks : Control::Kind::kDiffer;
  set_control(packet, control);
  format_.set_header(packet, {rank_, channel_.peer, channel_.port, Op::kSynch, 0});
  sink_->give(packet);
  speaks_ = Speaks::kNothing;
}

/// A word is taken while less than a packet is held.
void SendingEnd::take(kernels::PushEnd& end) {
  if (!end.valid || !active_ || left_ == 0 || held_.size() >= full() || (flush_ && !held_.empty())) return;
  const std::uint32_t taken = std::min(end.count, left_);
  if (!fits(taken)) return;
  held_.insert(held_.end(), end.word.begin(), end.word.begin() + (std::ptrdiff_t{taken} << channel_.size));
  left_ -= taken;
  if (channel_.credits && channel_.strict) window_ -= taken;
  flush_ = end.flush && !held_.empty();
  if (taken != 0) idle_ = 0;
  end.valid = false;
}

/// Packets leave that are full, or need not wait for more.
void SendingEnd::emit(const kernels::PushEnd& end) {
  while (active_ && speaks_ == Speaks::kNothing && sink_->takes()) {
    if (channel_.credits && (!begun_ || places_ == 0)) return;
    const bool ends = left_ == 0 && held_.size() <= full();
    // What the receiver must pop before anything else can come is not held back.
    const bool stalled =
        channel_.credits && channel_.strict && (window_ == 0 || (end.valid && !fits(std::min(end.count, left_))));
    const bool waits = !flush_ && !stalled && idle_ < kIdleFlush;
    const bool shows = whole() && held_.size() < full() && !ends;
    if (held_.size() == shown_) flush_ = false;  // all of it has left
    if (held_.size() < full() && !ends && (held_.size() == shown_ || waits)) return;
    const std::size_t part = std::min<std::size_t>(held_.size(), full());
    Packet packet;
    std::copy_n(held_.begin(), part, packet.bytes());
    format_.set_header(packet, {rank_, channel_.peer, channel_.port, ends ? Op::kLast : Op::kSend,
                                static_cast<std::uint32_t>(part >> channel_.size)});
    sink_->give(packet);
    if (shows) {
      shown_ = part;
    } else {
      held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(part));
      shown_ = 0;
    }
    if (held_.size() == shown_) flush_ = false;
    if (channel_.credits) --places_;
    idle_ = 0;
    if (ends) close();
  }
}

void SendingEnd::cycle(kernels::PushEnd& end, PacketSink& sink) {
  sink_ = &sink;
  if (end.opening && !active_ && speaks_ == Speaks::kNothing) {
    end.opening = false;
    open(end.open);
    if (channel_.peer < receivers_.size() && receivers_[channel_.peer].first) begin();
  }
  if (active_ && channel_.credits && !begun_ && unanswered_ < kAskAfter && ++unanswered_ == kAskAfter) {
    speaks_ = Speaks::kAsks;
    spoken_ = messages_.with(channel_.peer);
  }
  speak();
  if (active_) {
    if (held_.empty()) {
      idle_ = 0;
    } else if (idle_ < kIdleFlush) {
      ++idle_;
    }
    emit(end);
    take(end);
    emit(end);
  }
  // Until what it has to say has gone, it is not open for another channel.
  end.active = active_ || speaks_ != Speaks::kNothing;
}

}  // namespace unisono::sim::software
