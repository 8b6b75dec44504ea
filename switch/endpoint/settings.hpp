// Which switches a job asks to carry its calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "network/tcp/address.hpp"
#include "network/udp/impairment.hpp"

namespace unisono::slots {

struct AggregationSettings {
  std::vector<std::string> addresses;  ///< HOST:PORT; empty: nobody is asked
  std::string secret;
  std::chrono::milliseconds patience{3000};  ///< a switch from which nothing comes for so long is given up
  std::uint64_t up_to_bytes = 0;             ///< calls of more bytes go by endpoints; 0: as the switches advise
  /// Bits of results must depend on nothing that the choice between switches and endpoints depends on: operators whose
  /// bits depend on the order of operands are left to endpoints.
  bool stable = false;
  udp::ImpairmentSettings impairment;  ///< for tests
};

/// UNISONO_AGGREGATE: addresses, by commas; not set, empty or "off": none. UNISONO_AGGREGATE_SECRET, or the first line
/// of the file UNISONO_AGGREGATE_SECRET_FILE. UNISONO_AGGREGATE_TIMEOUT_S: the patience. UNISONO_AGGREGATE_UP_TO:
/// bytes. Throws Error(kBootstrap) that names the variable.
AggregationSettings aggregation_of_environment();

/// Whether UNISONO_AGGREGATE names any.
bool aggregation_asked();

}  // namespace unisono::slots
