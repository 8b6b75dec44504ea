#include "platform/device/memory.hpp"

#include <algorithm>

namespace unisono {

DeviceMemory::DeviceMemory(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t begin = (address + kAlignment - 1) / kAlignment * kAlignment;
  const std::uint64_t end = (address + bytes) / kAlignment * kAlignment;
  if (begin < end) insert(begin, end - begin);
}

std::optional<std::uint64_t> DeviceMemory::allocate(std::uint64_t bytes) {
  if (bytes > free_bytes_) return std::nullopt;
  const std::uint64_t wanted = (std::max<std::uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  const auto found = by_size_.lower_bound({wanted, 0});
  if (found == by_size_.end()) return std::nullopt;
  const std::uint64_t address = found->second;
  const std::uint64_t rest = found->first - wanted;
  erase(by_address_.find(address));
  if (rest != 0) insert(address + wanted, rest);
  used_.emplace(address, wanted);
  return address;
}

void DeviceMemory::free(std::uint64_t address) {
  const auto found = used_.find(address);
  if (found == used_.end()) return;
  std::uint64_t begin = found->first;
  std::uint64_t bytes = found->second;
  used_.erase(found);
  auto after = by_address_.lower_bound(begin);
  if (after != by_address_.end() && after->first == begin + bytes) {
    bytes += after->second;
    erase(after);
  }
  auto before = by_address_.lower_bound(begin);
  if (before != by_address_.begin()) {
    --before;
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      erase(before);
    }
  }
  insert(begin, bytes);
}

void DeviceMemory::insert(std::uint64_t address, std::uint64_t bytes) {
  by_address_.emplace(address, bytes);
  by_size_.emplace(bytes, address);
  free_bytes_ += bytes;
}

void DeviceMemory::erase(std::map<std::uint64_t, std::uint64_t>::iterator piece) {
  by_size_.erase({piece->second, piece->first});
  free_bytes_ -= piece->second;
  by_address_.erase(piece);
}

}  // namespace unisono
