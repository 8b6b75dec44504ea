// Whether two ranks of a communicator have made the same collective calls, as far as their flight records tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/flight_reader.hpp"
#include "network/poe.hpp"

namespace unisono::cclo {

/// The first call in which two ranks differ.
struct CallDifference {
  std::uint32_t sequence = 0;
  std::string call;  ///< its collective
  std::string text;  ///< "rank 0 called bcast(3 fp64, root 0), rank 1 called bcast(3 fp64, root 1)"
};

/// What an endpoint tells of a communicator, if that is in sight.
std::optional<SeenCommunicator> recorded(const Poe& poe, std::uint32_t endpoint, std::uint32_t number,
                                         std::uint16_t epoch);

/// Compares the calls that both records hold, of which the first is of this process, and, of ranks that have left, how
/// many there were. A call that one rank has not made yet is no difference. Nothing if none is seen, which proves
/// little: a record holds the last kRecordedCalls calls.
std::optional<CallDifference> first_difference(const SeenCommunicator& first, const SeenCommunicator& second);

}  // namespace unisono::cclo
