#include "sim/software/receiving_end.hpp"

#include <algorithm>

namespace unisono::sim::software {

ReceivingEnd::ReceivingEnd(std::uint32_t rank, std::uint32_t ranks, PacketFormat format, std::uint32_t batch)
    : rank_(rank), format_(format), batch_(batch), senders_(ranks), messages_(ranks) {}

void ReceivingEnd::told(const Header& by, const Control& control) {
  if (by.src >= senders_.size()) return;
  if (control.kind == Control::Kind::kAsks) {
    senders_[by.src] = {true, control.message};
  } else if (control.kind == Control::Kind::kDiffer && active_ && !tree_ && by.src == channel_.peer &&
             control.message == messages_.with(channel_.peer) && control.opening.credits) {
    close();  // the sender has closed, too, and sent nothing; an eager one goes on
  }
}

void ReceivingEnd::open(const kernels::PortOpen& open) {
  channel_ = open;
  active_ = true;
  tree_ = false;
  before_ = 0;
  const auto fits = static_cast<std::uint32_t>(kernels::kPortWordBytes >> open.size);
  lanes_ = open.lanes != 0 ? std::min(open.lanes, fits) : fits;
  left_ = open.count;
  got_ = given_ = part_ = 0;
  last_ = false;
  first_ = true;
  asked_ = answer_ = false;
  packets_ = elements_ = 0;
}

void ReceivingEnd::close() {
  active_ = false;
  if (!tree_) messages_.end(channel_.peer);
}

void ReceivingEnd::open_tree(const kernels::PortOpen& channel) {
  open(channel);
  tree_ = true;
}

/// A control packet, if there is something to tell. Who waits for credits is answered also by an end without.
void ReceivingEnd::tell() {
  if (!active_ || !sink_->takes()) return;
  const bool strict = channel_.credits && channel_.strict;
  const bool due = first_ || (!last_ && (packets_ >= batch_ || (strict && elements_ != 0)));
  if (channel_.credits ? !due : !answer_) return;
  Packet packet;
  Control control;
  control.opening = opening_of(channel_);
  control.message = messages_.with(channel_.peer);
  control.kind = Control::Kind::kPlaces;
  control.first = first_;
  control.packets = packets_;
  control.elements = elements_;
  set_control(packet, control);
  format_.set_header(packet, {rank_, channel_.peer, channel_.port, Op::kSynch, 0});
  sink_->give(packet);
  first_ = answer_ = false;
  packets_ = elements_ = 0;
}

/// Takes the next packet once all of the one before is given; whether it did.
bool ReceivingEnd::unpack(kernels::PopEnd& end, std::deque<Packet>& packets) {
  // The first control packet tells of the whole queue, so nothing leaves it before.
  if (part_ != 0 || last_ || packets.empty() || (channel_.credits && first_)) return false;
  const Packet packet = packets.front();
  packets.pop_front();
  ++packets_;
  const Header header = format_.header(packet);
  if (header.src != channel_.peer) {
    end.complaint = kernels::PortComplaint{true, header.src, channel_.count, got_};
    return true;
  }
  packet_ = packet;
  given_ = before_;
  const std::uint32_t fresh = header.count - before_;
  before_ = whole() && header.count < format_.payload_bytes() >> channel_.size ? header.count : 0;
  part_ = std::min(fresh, left_);
  left_ -= part_;
  got_ += fresh;
  elements_ += fresh - part_;  // what is left out counts as popped
  last_ = header.op == Op::kLast;
  return true;
}

/// Gives a word if one is wanted; whether it did.
bool ReceivingEnd::hand_over(kernels::PopEnd& end) {
  const bool by_hand = channel_.credits && channel_.strict && channel_.window == 0;
  // With window 0 each element is asked for, and its pop gives nothing.
  if (by_hand && !first_ && !asked_ && end.ready && part_ == 0 && !last_ && left_ != 0) {
    asked_ = true;
    ++elements_;
  }
  if (!end.ready || part_ == 0) return false;
  const std::uint32_t count = std::min(part_, lanes_);
  const std::byte* const from = packet_.bytes() + (std::size_t{given_} << channel_.size);
  std::copy_n(from, std::size_t{count} << channel_.size, end.word.begin());
  end.count = count;
  end.ready = false;
  given_ += count;
  part_ -= count;
  asked_ = false;
  if (!by_hand) elements_ += count;
  return true;
}

void ReceivingEnd::cycle(kernels::PopEnd& end, std::deque<Packet>& packets, PacketSink& sink) {
  sink_ = &sink;
  if (end.opening && !active_) {
    end.opening = false;
    open(end.open);
  }
  if (active_) {
    if (!tree_ && channel_.peer < senders_.size()) {
      Sender& sender = senders_[channel_.peer];
      if (sender.waits && sender.message == messages_.with(channel_.peer)) {
        sender.waits = false;
        answer_ = !channel_.credits;  // with credits this end tells of itself anyway
      }
    }
    tell();
    while (unpack(end, packets) || hand_over(end)) {
    }
    if (last_ && part_ == 0) {
      if (got_ != channel_.count) {
        end.complaint = kernels::PortComplaint{false, channel_.peer, channel_.count, got_};
      }
      close();
    } else {
      tell();
    }
  }
  end.active = active_;
}

}  // namespace unisono::sim::software
