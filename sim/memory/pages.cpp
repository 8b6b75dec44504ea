#include "sim/memory/pages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::sim {

void Pages::Unmap::operator()(std::uint8_t* memory) const { munmap(memory, bytes); }

std::byte* Pages::window(std::uint64_t address, std::uint64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kOutOfMemory, formatted("no address space for the {} bytes of a device's memory", bytes));
  }
  window_ = {static_cast<std::uint8_t*>(memory), Unmap{bytes}};
  window_address_ = address;
  return static_cast<std::byte*>(memory);
}

std::uint8_t* Pages::in_window(std::uint64_t address, std::uint64_t& bytes) const {
  const std::uint64_t place = address - window_address_;
  if (window_ == nullptr || place >= window_.get_deleter().bytes) return nullptr;
  bytes = window_.get_deleter().bytes - place;
  return window_.get() + place;
}

void Pages::read(std::uint64_t address, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const std::uint64_t place = address % kPageBytes;
    const std::size_t part = std::min<std::size_t>(bytes.size(), kPageBytes - place);
    if (std::uint64_t there = 0; const std::uint8_t* const from = in_window(address, there)) {
      const std::size_t piece = std::min<std::size_t>(bytes.size(), there);
      std::memcpy(bytes.data(), from, piece);
      bytes = bytes.subspan(piece);
      address += piece;
      continue;
    }
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
    if (std::uint64_t there = 0; std::uint8_t* const to = in_window(address, there)) {
      const std::size_t piece = std::min<std::size_t>(bytes.size(), there);
      std::memcpy(to, bytes.data(), piece);
      bytes = bytes.subspan(piece);
      address += piece;
      continue;
    }
    auto& page = pages_[address / kPageBytes];
    if (!page) page = std::make_unique<Page>(Page{});
    std::memcpy(page->data() + place, bytes.data(), part);
    bytes = bytes.subspan(part);
    address += part;
  }
}

}  // namespace unisono::sim
