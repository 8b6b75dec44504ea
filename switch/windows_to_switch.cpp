#include "switch/windows_to_switch.hpp"

namespace unisono::slots {

void WindowsToSwitch::answered(bool again) {
  ++turns_;
  if (again) ++again_;
}

void WindowsToSwitch::measured(Span path, Time now) {
  quickest_ = std::min(quickest_, path);
  // What all must wait for makes the quickest late, too. What only some wait for is no queue.
  least_ = std::min(least_, path);
  if (++frames_ < kFew || now - path < began_) return;
  conclude();
  began_ = now;
  least_ = Span::max();
  frames_ = turns_ = again_ = 0;
}

void WindowsToSwitch::conclude() {
  const Span queued = least_ - quickest_;
  if (2 * again_ > turns_) {
    allowed_ -= allowed_ / 2;
  } else if (queued > kQueue) {
    allowed_ -= allowed_ / 4;
  } else {
    allowed_ += kScale;
  }
  allowed_ = std::clamp(allowed_, kLeast * kScale, kAll);
}

}  // namespace unisono::slots
