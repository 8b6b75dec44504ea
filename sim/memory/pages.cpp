#include "sim/memory/pages.hpp"

#include <algorithm>
#include <cstring>

namespace unisono::sim {

void Pages::read(std::uint64_t address, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const std::uint64_t place = address % kPageBytes;
    const std::size_t part = std::min<std::size_t>(bytes.size(), kPageBytes - place);
    const auto found = pages_.find(address / kPageBytes);
    if (found == pages_.end()) {
      std::memset(bytes.data(), 0, part);
    } else {
      std::memcpy(bytes.data(), found->second->data() + place, part);
    }
    bytes = bytes.subspan(part);
    address += part;
  }
}

void Pages::write(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const std::uint64_t place = address % kPageBytes;
    const std::size_t part = std::min<std::size_t>(bytes.size(), kPageBytes - place);
    auto& page = pages_[address / kPageBytes];
    if (!page) page = std::make_unique<Page>(Page{});
    std::memcpy(page->data() + place, bytes.data(), part);
    bytes = bytes.subspan(part);
    address += part;
  }
}

}  // namespace unisono::sim
