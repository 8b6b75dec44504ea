// Which provider of libfabric is taken.
#pragma once

#include <string>
#include <vector>

#include "network/ofi/fabric/library.hpp"
#include "network/ofi/make.hpp"

namespace unisono::ofi {

/// What a provider must offer: reliable datagrams with messages that are delivered in order, driven by who uses them.
Info wanted(const std::string& provider);

/// What the provider to use offers. Throws Error(kBootstrap) that names what there is.
Info choose(const OfiSettings& settings);

}  // namespace unisono::ofi
