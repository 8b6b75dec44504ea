#include "sim/cables/routes.hpp"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace unisono::sim {
namespace {

Step step_of(const nlohmann::json& entry) {
  if (entry.is_null()) return {};
  const std::string text = entry.get<std::string>();
  Step step;
  const std::size_t at = text.find('@');
  if (at != std::string::npos) step.channel = std::stoi(text.substr(at + 1));
  const std::string way = text.substr(0, at);
  if (way == "link") {
    step.way = Step::Way::kLink;
  } else if (way == "ckr") {
    step.way = Step::Way::kCkr;
  } else {
    step.way = Step::Way::kCks;
    step.other = std::stoi(way.substr(3));
  }
  return step;
}

}  // namespace

Routes read_routes(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "routes.json";
  std::ifstream stream(file);
  if (!stream)
    throw std::runtime_error(file.string() + " cannot be read: give a folder that `unisono route -o` has written");
  Routes routes;
  try {
    const nlohmann::json data = nlohmann::json::parse(stream);
    routes.links = data.at("links");
    routes.virtual_channels = data.at("virtual_channels");
    for (const nlohmann::json& entry : data.at("nodes")) {
      RouteNode node;
      node.name = entry.at("node");
      for (const nlohmann::json& peer : entry.at("links")) {
        if (peer.is_null()) {
          node.peers.emplace_back();
        } else {
          node.peers.emplace_back(Port{peer.at("rank"), peer.at("link")});
        }
      }
      for (const nlohmann::json& link : entry.at("cks")) {
        auto& channels = node.cks.emplace_back();
        for (const nlohmann::json& channel : link) {
          auto& steps = channels.emplace_back();
          for (const nlohmann::json& step : channel) steps.push_back(step_of(step));
        }
      }
      routes.nodes.push_back(std::move(node));
    }
  } catch (const std::exception& failure) {
    throw std::runtime_error(file.string() + " has no routes: " + failure.what());
  }
  for (std::size_t rank = 0; rank < routes.nodes.size(); ++rank) {
    const std::filesystem::path image = folder / ("rank" + std::to_string(rank) + ".bin");
    std::ifstream bytes(image, std::ios::binary);
    if (!bytes) throw std::runtime_error(image.string() + " cannot be read");
    routes.nodes[rank].image.assign(std::istreambuf_iterator<char>(bytes), {});
  }
  return routes;
}

}  // namespace unisono::sim
