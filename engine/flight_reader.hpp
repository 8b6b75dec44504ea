// Reads flight records (network/flight_record.hpp): private copies, of which every word has been examined.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/generated/spec.hpp"
#include "network/flight_record.hpp"

namespace unisono::cclo {

/// One recorded call.
struct SeenCall {
  std::uint64_t position = 0;
  std::uint32_t sequence = 0;
  RecordedState state = RecordedState::kNone;
  Collective collective = Collective::kNop;
  Func func = Func::kNone;
  Datatype dtype = Datatype::kNone;
  std::uint64_t count = 0;
  bool in_place = false, point_to_point = false, local = false;
  bool any_source = false, any_tag = false, probe = false;  ///< of a receive
  std::uint32_t peer = 0;                                   ///< or root
  std::uint32_t tag = 0;                                    ///< point to point
  std::uint32_t signature = 0;                              ///< of collectives
  float post_scale = 1;                                     ///< about: rounded to fp32
  const Algorithm* algorithm = nullptr;                     ///< null: none is known

  bool collective_of_all() const { return !point_to_point && !local; }
  bool has_root() const;
};

/// What an endpoint tells of one of its communicators.
struct SeenCommunicator {
  std::uint32_t number = 0;
  std::uint16_t epoch = 0;
  std::string name;  ///< of its user
  std::uint32_t rank = 0, size = 0;
  bool revoked = false;
  /// What the endpoint had called when it gave the communicator up; nothing while it has not.
  struct Left {
    std::uint32_t calls = 0;   ///< collective ones; the number that the next would have had
    std::uint32_t digest = 0;  ///< of all of them
  };
  std::optional<Left> left;
  std::vector<SeenCall> calls;           ///< oldest first
  std::optional<std::uint64_t> waiting;  ///< position
  std::uint64_t since = 0;
  std::vector<std::uint32_t> awaited;  ///< ranks
  std::string phase;
};

/// The call in a place of a record; nothing while there is none, while it is being written, or if it cannot be one.
std::optional<SeenCall> read(const CallRecord& record, std::uint64_t position);

/// Whether a record is that of a communicator, living or given up.
bool is_of(const CommunicatorRecord& record, std::uint32_t number, std::uint16_t epoch);

/// A record; nothing if it is free. Its owner may write it meanwhile: each call is whole, but they are of different
/// moments.
std::optional<SeenCommunicator> read(const CommunicatorRecord& record);

}  // namespace unisono::cclo
