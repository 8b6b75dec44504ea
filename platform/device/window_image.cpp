#include "platform/device/window_image.hpp"

#include <algorithm>
#include <utility>

namespace unisono {

WindowImage::WindowImage(Device& device, std::shared_ptr<DeviceImage> image)
    : device_(device), image_(std::move(image)), alike_(image_->host.data, image_->host.data + image_->host.bytes) {
  device_.store(image_->address, alike_);
}

void WindowImage::push() {
  const Binding& host = image_->host;
  for (std::uint64_t at = 0; at < host.bytes;) {
    const auto* const from = host.data + at;
    const auto differs =
        std::mismatch(from, static_cast<const std::byte*>(host.data + host.bytes), alike_.data() + at).first;
    const auto begin = static_cast<std::uint64_t>(differs - host.data);
    std::uint64_t end = begin;
    while (end < host.bytes && host.data[end] != alike_[end]) ++end;
    if (begin != end) {
      device_.store(image_->address + begin, {host.data + begin, end - begin});
      std::copy(host.data + begin, host.data + end, alike_.data() + begin);
    }
    at = std::max(end, begin + 1);
  }
}

void WindowImage::pull() {
  const Binding& host = image_->host;
  std::vector<std::byte> there(host.bytes);
  device_.load(image_->address, there);
  for (std::uint64_t at = 0; at < host.bytes; ++at) {
    if (there[at] != alike_[at]) host.data[at] = there[at];
  }
  alike_ = std::move(there);
}

}  // namespace unisono
