// Flight records of calls that a device carries out: its host writes them, since the device does not.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/state.hpp"
#include "network/poe.hpp"

namespace unisono {

/// What the records of a job tell a host, and it them. Without a job in sight it tells nothing and knows of nobody.
class DeviceFlight {
 public:
  /// `job`: may be null. `writes`: the device has no engine that writes records itself.
  DeviceFlight(const Poe* job, bool writes) : job_(job), writes_(writes) {}

  void open(cclo::Communicator& communicator) const;
  static void begin(cclo::CallState& call);
  static void end(cclo::CallState& call, bool well);
  static void revoked(cclo::Communicator& communicator);
  /// The call has not ended for a while. `with_device`: it has been given to the device. `stands_still`: so may the
  /// device's time.
  void waits(const cclo::CallState& call, bool with_device, bool stands_still,
             std::chrono::steady_clock::time_point since) const;

  /// The ranks that have not called a collective, and what they do instead, to follow another sentence; or "".
  std::string absent(const cclo::CallState& call) const;

 private:
  std::vector<std::uint32_t> not_arrived(const cclo::CallState& call) const;
  /// Members that are in no call at all.
  std::vector<std::uint32_t> computing(const cclo::Communicator& communicator) const;

  const Poe* job_;
  bool writes_;
};

}  // namespace unisono
