// What flight records say of exchanges along graphs, which engines carry out as programs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "core/generated/spec.hpp"
#include "engine/flight_reader.hpp"

namespace unisono::cclo {

/// As the driver names them (CallRequest::operation).
inline constexpr std::array<std::string_view, 4> kExchanges{"neighbour_allgather", "neighbour_allgatherv",
                                                            "neighbour_alltoall", "neighbour_alltoallv"};

/// What a program's record has in the place of a root: 0 for one of the user.
inline std::uint32_t recorded_exchange(const char* operation) {
  if (operation == nullptr) return 0;
  const auto* const found = std::find(kExchanges.begin(), kExchanges.end(), std::string_view(operation));
  return found == kExchanges.end() ? 0 : static_cast<std::uint32_t>(found - kExchanges.begin()) + 1;
}

/// The operation of a recorded call as its user knows it.
inline std::string_view operation_of(const SeenCall& call) {
  const bool exchanges = call.collective == Collective::kProgram && call.peer != 0 && call.peer <= kExchanges.size();
  return exchanges ? kExchanges[call.peer - 1] : std::string_view(name_of(call.collective));
}

}  // namespace unisono::cclo
