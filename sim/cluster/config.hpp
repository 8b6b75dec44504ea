// The configuration file of a cluster: that of its network, and keys of what stands around the engines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/memory/tlb.hpp"
#include "sim/network/config.hpp"

namespace unisono::sim {

struct ClusterFile {
  NetworkConfig network;
  std::optional<unsigned> tlb_entries, tlb_miss_cycles;
  std::optional<std::uint64_t> tlb_page;

  bool has_tlb() const { return tlb_entries || tlb_miss_cycles || tlb_page; }
  /// `usual` with what the file says.
  TlbConfig tlb(TlbConfig usual) const;
  /// The network of a cluster of so many engines; nodes that are units come after them. `seed`: what was given beside
  /// the file. Throws Error(kInvalidArgument) for lines that say something else.
  NetworkConfig network_of(std::uint32_t nodes, std::optional<std::uint64_t> seed) const;
};

/// Throws Error(kInvalidArgument) that names `source`, line and key.
ClusterFile parse_cluster(std::string_view text, const std::string& source);

}  // namespace unisono::sim
