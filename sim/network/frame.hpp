// A frame under way, and the pool it comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace unisono::sim {

inline constexpr std::uint32_t kWordBytes = 64;

/// Its data is written once, as the sender pushes it; switches pass on words by number. It lives until its last word is
/// popped or thrown away, which is never before all earlier places have passed it on.
struct Frame {
  std::uint32_t source = 0, destination = 0, bytes = 0, words = 0;
  std::uint16_t port = 0;
  std::uint32_t number = 0;      ///< in its session, if the network counts
  bool damaged = false;          ///< fails the frame check
  std::uint32_t flip = kNoFlip;  ///< without a frame check: the bit that is wrong when it is delivered
  std::unique_ptr<std::byte[]> data;

  static constexpr std::uint32_t kNoFlip = ~0U;
  std::uint32_t word_bytes(std::uint32_t word) const {
    return word + 1 < words ? kWordBytes : bytes - word * kWordBytes;
  }
};

class FramePool {
 public:
  explicit FramePool(std::uint32_t mtu) : room_(std::size_t{(mtu + kWordBytes - 1) / kWordBytes} * kWordBytes) {}

  Frame* take() {
    ++used_;
    if (free_.empty()) {
      all_.push_back(std::make_unique<Frame>());
      all_.back()->data = std::make_unique<std::byte[]>(room_);
      return all_.back().get();
    }
    Frame* frame = free_.back();
    free_.pop_back();
    frame->damaged = false;
    frame->flip = Frame::kNoFlip;
    return frame;
  }
  void give_back(Frame* frame) {
    --used_;
    free_.push_back(frame);
  }
  std::size_t used() const { return used_; }

 private:
  std::size_t room_, used_ = 0;
  std::vector<std::unique_ptr<Frame>> all_;
  std::vector<Frame*> free_;
};

}  // namespace unisono::sim
