#include <exception>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "sim/carrier/cables.hpp"

namespace unisono::sim {
namespace {

Routes routes_of(const std::string& folder, std::uint32_t nodes) {
  Routes routes;
  try {
    routes = read_routes(folder);
  } catch (const std::exception& failure) {
    throw Error(ErrorCode::kInvalidArgument, failure.what());
  }
  check_routes(routes, nodes);
  return routes;
}

}  // namespace

std::unique_ptr<Carrier> make_cables(const std::string& routes, const NetworkConfig& config) {
  const CableSettings settings = cables_of(config);
  return std::make_unique<Cables>(routes_of(routes, config.nodes), config.nodes, settings, config.seed);
}

void check_cables(const std::string& routes, const NetworkConfig& config) {
  cables_of(config);
  routes_of(routes, config.nodes);
}

}  // namespace unisono::sim
