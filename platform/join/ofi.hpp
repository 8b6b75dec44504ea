// The network over libfabric, as a job's environment asks for it.
#pragma once

#include <memory>

#include "network/network.hpp"
#include "platform/join/job.hpp"

namespace unisono::join {

/// UNISONO_OFI_PROVIDER names the provider; without it, the first of cxi, efa, verbs;ofi_rxm and tcp;ofi_rxm that is
/// there. Providers with addresses of the internet take that of the interface that other networks would offer first.
/// Throws Error(kBootstrap) that says what is missing: libfabric, its headers when this was built, or the provider.
std::unique_ptr<Network> make_ofi(const JobEnvironment& environment);

}  // namespace unisono::join
