// The tables of a node, out of an image of `unisono route` (docs/routing.md), and the ways that they mean.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/software/packet.hpp"

namespace unisono::sim::software {

/// Where a packet leaves this node, behind all kernels (CKS, CKR) that pass it on.
struct Way {
  enum class Kind : std::uint8_t { kNobody, kLink, kEndpoint };
  Kind kind = Kind::kNobody;
  int link = 0;
  int channel = 0;   ///< of the link: kind of packet * virtual channels + virtual channel
  int endpoint = 0;  ///< e < ports: data of port e; else control of port e - ports
};

/// Immutable.
class Tables {
 public:
  /// What the node is built for.
  struct Shape {
    int links = 4;
    int virtual_channels = 2;
    int ports = 4;
  };
  /// Throws std::runtime_error that says why the image is refused; reasons are those of unisono_smi_loader.
  Tables(const std::vector<std::uint8_t>& image, Shape shape);

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  int endpoints() const { return 2 * shape_.ports; }
  const Shape& shape() const { return shape_; }

  /// The way of a packet that came by a link, on a channel of it.
  Way from_link(int link, int channel, const Header& header) const;
  /// The way of one that a sending endpoint has given.
  Way from_endpoint(int endpoint, const Header& header) const;

 private:
  Way walk(bool sends, int kernel, int lane, const Header& header) const;

  Shape shape_;
  std::uint32_t rank_ = 0;
  std::uint32_t ranks_ = 0;
  int lanes_ = 1;                  ///< virtual channels of the image
  std::vector<std::uint8_t> cks_;  ///< by link, virtual channel, destination
  std::vector<std::uint8_t> ckr_;  ///< by link, port, data or control
};

}  // namespace unisono::sim::software
