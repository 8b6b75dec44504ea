#include "platform/join/ofi.hpp"

#include <optional>
#include <string>

#include "network/ofi/make.hpp"
#include "network/tcp/interfaces.hpp"
#include "platform/join/variables.hpp"

namespace unisono::join {

namespace {

/// The own address that peers can best reach: as text without a port, for libfabric looks up no scopes of links.
std::string first_address(const JobEnvironment& environment) {
  std::optional<tcp::Address> route;
  if (!environment.addresses.empty()) {
    if (const auto towards =
            tcp::parse_address(numeric_text_of(environment.addresses.front(), Clock::now() + environment.timeout))) {
      route = tcp::route_to(*towards);
    }
  }
  const auto own =
      tcp::in_order(tcp::chosen_by(environment.interfaces, tcp::own_addresses()), route ? &*route : nullptr);
  for (const tcp::OwnAddress& one : own) {
    if (!one.address.link_local()) return tcp::text_without_port(one.address);
  }
  return {};
}

}  // namespace

std::unique_ptr<Network> make_ofi(const JobEnvironment& environment) {
  return ofi::make_network({variable("UNISONO_OFI_PROVIDER").value_or(""), first_address(environment),
                            environment.ofi_register_from.value_or(ofi::kRegisterFrom), environment.host_timeout});
}

}  // namespace unisono::join
