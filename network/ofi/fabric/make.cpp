#include "network/ofi/make.hpp"

#include "network/ofi/fabric/fabric_endpoint.hpp"
#include "network/ofi/fabric/provider.hpp"
#include "network/ofi/ofi_network.hpp"

namespace unisono::ofi {

std::unique_ptr<Network> make_network(const OfiSettings& settings) {
  constexpr std::chrono::seconds kAtEnd{1};
  constexpr std::chrono::seconds kToSettle{1};
  return std::make_unique<OfiNetwork>(std::make_unique<FabricEndpoint>(choose(settings)), kAtEnd, kToSettle,
                                      settings.patience, settings.register_from);
}

}  // namespace unisono::ofi
