// Which provider of libfabric is taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network/ofi/fabric/library.hpp"
#include "network/ofi/make.hpp"

namespace unisono::ofi {

/// Writes to peers' memory that a provider is asked for.
enum class Writes : std::uint8_t {
  kOrdered,  ///< a message behind a write comes after it
  kAny,
  kNone,
};

/// What a provider must offer: reliable datagrams with messages that are delivered in order, driven by who uses them.
Info wanted(const std::string& provider, Writes writes = Writes::kNone);

/// What the provider to use offers. Throws Error(kBootstrap) that names what there is.
Info choose(const OfiSettings& settings);

}  // namespace unisono::ofi
