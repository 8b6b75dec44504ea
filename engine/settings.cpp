#include "engine/settings.hpp"

#include <algorithm>
#include <string>

#include "core/cores.hpp"
#include "core/crc32c.hpp"
#include "core/user_op.hpp"

namespace unisono {
namespace {

std::uint32_t hash_of_algorithms() {
  static const std::uint32_t hash = [] {
    std::string text;
    for (const Algorithm& algorithm : algorithms()) {
      text += name_of(algorithm.collective);
      text += ':';
      text += algorithm.name;
      text += ';';
    }
    return crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }();
  return hash;
}

Capability capability_of_engine() {
  Capability capability;
  capability.version = 1;
  for (const Datatype dtype : kAllDatatype) {
    if (dtype != Datatype::kNone) capability.datatypes |= 1U << static_cast<unsigned>(dtype);
  }
  for (const Func func : kAllFunc) {
    if (func != Func::kNone) {
      const unsigned bit = is_user(func) ? 15 : static_cast<unsigned>(func);
      capability.funcs = static_cast<std::uint16_t>(capability.funcs | 1U << bit);
    }
  }
  capability.lists = true;
  capability.fan_in = true;
  capability.remote_memory = true;
  capability.rendezvous = true;
  capability.programs = true;
  capability.lanes = true;
  capability.radices = true;
  return capability;
}

}  // namespace

void cclo::check_settings(const EngineSettings& settings) {
  const auto refuse = [](const char* name, std::uint64_t given, const char* allowed) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(name) + " is " + std::to_string(given) + "; allowed are " + allowed);
  };
  if (settings.segment_bytes < 64 || settings.segment_bytes > (1U << 30U)) {
    refuse("segment_bytes", settings.segment_bytes, "64 to 2^30");
  }
  if (settings.eager_limit > (1U << 30U)) refuse("eager_limit", settings.eager_limit, "0 to 2^30");
  if (settings.rx_buffer_count < 1 || settings.rx_buffer_count > 65536) {
    refuse("rx_buffer_count", settings.rx_buffer_count, "1 to 65536");
  }
  if (settings.hardware_peers && settings.lanes) {
    throw Error(ErrorCode::kInvalidArgument,
                "hardware_peers and lanes are both set; engines in hardware have no memory "
                "in common with others, so lanes must be off");
  }
  if (settings.timeout.count() <= 0) {
    throw Error(ErrorCode::kInvalidArgument, "timeout is " + std::to_string(settings.timeout.count()) +
                                                 " us; every call has a deadline, so it must be positive");
  }
}

Agreement NativeEngine::capabilities_of(const EngineSettings& settings) {
  cclo::check_settings(settings);
  Agreement capabilities;
  Capability capability = capability_of_engine();
  capability.lanes = settings.lanes;
  capability.log2_max_segment = static_cast<std::uint8_t>(31 - __builtin_clz(settings.segment_bytes));
  capabilities.capability = encode(capability)[0];
  capabilities.eager_limit = settings.eager_limit;
  capabilities.segment_bytes = settings.segment_bytes;
  capabilities.rx_buffer_count = settings.rx_buffer_count;
  capabilities.algorithm_hash = hash_of_algorithms();
  capabilities.aggregates = settings.aggregates;
  if (settings.rules) capabilities.tuning_hash = hash_of(*settings.rules);
  const CoreSet own = affinity_of(0);
  for (std::size_t word = 0; word < own.size(); ++word)
    capabilities.cores[word % capabilities.cores.size()] |= own[word];
  constexpr double kUnlimited = 1e9;
  capabilities.quota = static_cast<std::uint32_t>(std::clamp(cgroup_quota().cores, 1.0, kUnlimited));
  return capabilities;
}

}  // namespace unisono
