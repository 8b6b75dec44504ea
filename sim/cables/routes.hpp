// What `unisono route` has written into a folder: the cables of a network, and an image for each node.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace unisono::sim {

/// One end of a cable.
struct Port {
  int rank = 0;
  int link = 0;
};

/// An entry of a CKS: where a packet goes on.
struct Step {
  enum class Way { kNone, kLink, kCkr, kCks };
  Way way = Way::kNone;
  int other = 0;  ///< the link whose CKS is next, of kCks
  int channel = 0;
};

struct RouteNode {
  std::string name;
  std::vector<std::optional<Port>> peers;           ///< by link: the other end of its cable
  std::vector<std::vector<std::vector<Step>>> cks;  ///< by link, virtual channel and destination
  std::vector<std::uint8_t> image;
};

struct Routes {
  int links = 0;
  int virtual_channels = 0;
  std::vector<RouteNode> nodes;  ///< by rank
};

/// Reads routes.json and the images beside it. Throws std::runtime_error that names the file and what is wrong.
Routes read_routes(const std::filesystem::path& folder);

}  // namespace unisono::sim
