// A build without the headers of libfabric.
#include "network/ofi/make.hpp"

#include "core/error.hpp"

namespace unisono::ofi {

namespace {

[[noreturn]] void refuse() {
  throw Error(
      ErrorCode::kBootstrap,
      "this build has no ofi: install the headers of libfabric (Debian: libfabric-dev) and build Unisono again");
}

}  // namespace

std::unique_ptr<Network> make_network(const OfiSettings& /*settings*/) { refuse(); }

std::vector<std::string> providers() { refuse(); }

}  // namespace unisono::ofi
