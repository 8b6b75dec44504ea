#include "sim/software/tables.hpp"

#include <stdexcept>
#include <string>

namespace unisono::sim::software {

namespace {

constexpr std::size_t kHeadBytes = 16;

/// IEEE 802.3's, a byte at a time, the lowest bit first.
std::uint32_t crc32(const std::uint8_t* bytes, std::size_t count) {
  std::uint32_t sum = ~0U;
  for (std::size_t i = 0; i < count; ++i) {
    sum ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1U) ^ ((sum & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~sum;
}

std::uint32_t number(const std::vector<std::uint8_t>& image, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= static_cast<std::uint32_t>(image[at + i]) << (8 * i);
  return value;
}

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error("the tables of the routes: " + why); }

}  // namespace

Tables::Tables(const std::vector<std::uint8_t>& image, Shape shape) : shape_(shape) {
  if (image.size() < kHeadBytes + 4 || number(image, 0, 4) != 0x554F5255U || image[4] != 1) {  // "UROU", version 1
    refuse("this is no image of routes of version 1");
  }
  const int links = image[5];
  lanes_ = image[6];
  ranks_ = number(image, 8, 2);
  rank_ = number(image, 10, 2);
  const auto ports = static_cast<int>(number(image, 12, 2));
  if (links != shape_.links) {
    refuse("they are for " + std::to_string(links) + " links, and the node has " + std::to_string(shape_.links));
  }
  if (lanes_ == 0 || lanes_ > shape_.virtual_channels) {
    refuse("they need " + std::to_string(lanes_) + " virtual channels, and the node has " +
           std::to_string(shape_.virtual_channels));
  }
  if (ranks_ == 0 || rank_ >= ranks_) {
    refuse("they are for rank " + std::to_string(rank_) + " of " + std::to_string(ranks_));
  }
  if (ports != shape_.ports) {
    refuse("they are for " + std::to_string(ports) + " ports, and the node has " + std::to_string(shape_.ports));
  }
  const std::size_t sends = static_cast<std::size_t>(links * lanes_) * ranks_;
  const std::size_t receives = static_cast<std::size_t>(links) * 2 * static_cast<std::size_t>(ports);
  const std::size_t whole = (kHeadBytes + sends + receives + 3) / 4 * 4;
  if (image.size() != whole + 4) {
    refuse("they have " + std::to_string(image.size()) + " bytes instead of " + std::to_string(whole + 4));
  }
  if (crc32(image.data(), whole) != number(image, whole, 4)) refuse("they are damaged: the check sum is wrong");
  const auto tables = image.begin() + kHeadBytes;
  cks_.assign(tables, tables + static_cast<std::ptrdiff_t>(sends));
  ckr_.assign(tables + static_cast<std::ptrdiff_t>(sends), tables + static_cast<std::ptrdiff_t>(sends + receives));
}

/// From kernel to kernel, as the hardware passes a packet on, to where it leaves the node.
Way Tables::walk(bool sends, int kernel, int lane, const Header& header) const {
  const int links = shape_.links;
  // A packet meets each kernel once on each virtual channel, or goes around for ever.
  for (int step = 0; step < 2 * links * (lanes_ + 1); ++step) {
    if (sends) {
      if (header.dst >= ranks_ || lane >= lanes_) return {};
      const std::uint8_t entry = cks_[static_cast<std::size_t>(kernel * lanes_ + lane) * ranks_ + header.dst];
      const int code = entry & 15;
      lane = entry >> 4 & 7;
      if (code > links || lane >= shape_.virtual_channels) return {};
      if (code == 0) {
        return {Way::Kind::kLink, kernel, (header.control() ? shape_.virtual_channels : 0) + lane, 0};
      }
      if (code == 1) {
        sends = false;
      } else {
        kernel = code - 2 + (code > kernel + 1 ? 1 : 0);
      }
    } else if (header.dst != rank_) {
      sends = true;
    } else {
      if (header.port >= static_cast<std::uint32_t>(shape_.ports)) return {};
      const std::size_t row = static_cast<std::size_t>(kernel) * 2 * static_cast<std::size_t>(shape_.ports);
      const int entry = ckr_[row + std::size_t{2} * header.port + (header.control() ? 1 : 0)];
      if (entry == 0) return {};
      if (entry >= links) {
        const int endpoint = (entry - links) * links + kernel;
        // Endpoints take data or control, and none the other.
        const bool exists = endpoint < endpoints() && (endpoint >= shape_.ports) == header.control();
        return exists ? Way{Way::Kind::kEndpoint, 0, 0, endpoint} : Way{};
      }
      kernel = entry > kernel ? entry : entry - 1;
    }
  }
  return {};
}

Way Tables::from_link(int link, int channel, const Header& header) const {
  return walk(false, link, channel % shape_.virtual_channels, header);
}

Way Tables::from_endpoint(int endpoint, const Header& header) const {
  return walk(true, endpoint % shape_.links, 0, header);
}

}  // namespace unisono::sim::software
