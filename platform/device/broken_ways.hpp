// Ways between devices on which frames are missing, and which calls that concerns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/state.hpp"
#include "platform/device/device.hpp"

namespace unisono {

/// What a host knows of such ways. A transport that repeats nothing does not mend them.
class BrokenWays {
 public:
  /// `nodes`: of each endpoint of the job.
  void note(std::span<const Device::Broken> told, std::span<const std::uint32_t> nodes, std::uint32_t own_node);
  bool none() const { return ways_.empty() && to_switches_.empty(); }

  /// The member that a call needs, to which a way is broken; by rank. `local`: calls that need none.
  std::optional<std::uint32_t> member_of(const cclo::CallState& call) const;
  /// Whether the way to a switch, or from it, is one of them; by its address.
  bool leads_to(std::uint32_t address) const { return to_switches_.count(address) != 0; }
  /// What is broken between here and that switch, in words.
  std::string words_of(std::uint32_t address) const;
  /// What is broken between here and a rank of the call, in words; `peer` is how its process is called.
  std::string words(const cclo::CallState& call, std::uint32_t rank, const std::string& peer) const;

 private:
  struct Way {
    Device::Broken what;
    bool from_here = false;
  };
  static std::string words(const Way& way, const std::string& other);

  std::map<std::uint32_t, Way> ways_;         ///< by endpoint
  std::map<std::uint32_t, Way> to_switches_;  ///< by address: what is no endpoint's
};

}  // namespace unisono
