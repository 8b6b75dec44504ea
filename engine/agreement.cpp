// What the members of a communicator have in common.
#include <algorithm>
#include <bit>
#include <string>

#include "core/error.hpp"
#include "core/text.hpp"
#include "engine/engine.hpp"

namespace unisono {
namespace {

/// The rules of a member, for people.
std::string table_text(std::uint32_t hash) {
  if (hash == 0) return "the built-in table";
  return formatted("table {:08x}", hash);
}

}  // namespace

std::uint32_t usable_cores(const Agreement& agreed) {
  std::uint32_t cores = 0;
  for (const std::uint64_t word : agreed.cores) cores += static_cast<std::uint32_t>(std::popcount(word));
  return std::max(1U, std::min(cores, agreed.quota));
}

Agreement agree(std::span<const Agreement> all_capabilities, const MemberName& name) {
  const auto called = [&](std::size_t i) { return name ? name(i) : "member " + std::to_string(i); };
  if (all_capabilities.empty()) throw Error(ErrorCode::kInvalidArgument, "an agreement of no members was asked for");
  Agreement agreed = all_capabilities.front();
  Capability common = decode_capability({agreed.capability});
  for (std::size_t i = 1; i < all_capabilities.size(); ++i) {
    const Agreement& capabilities = all_capabilities[i];
    if (capabilities.algorithm_hash != agreed.algorithm_hash) {
      throw Error(
          ErrorCode::kUnsupported,
          formatted("{} has another table of algorithms (hash {}) than {} (hash {}): use one version of Unisono "
                    "on all ranks",
                    called(i), capabilities.algorithm_hash, called(0), agreed.algorithm_hash));
    }
    if (capabilities.tuning_hash != agreed.tuning_hash) {
      throw Error(
          ErrorCode::kUnsupported,
          formatted("{} chooses algorithms by {}, {} by {}: set UNISONO_TUNING and UNISONO_ALGORITHM alike on "
                    "all ranks (`unisono explain` prints the hash of what is in force), and have the same "
                    "tuning file on all machines",
                    called(i), table_text(capabilities.tuning_hash), called(0), table_text(agreed.tuning_hash)));
    }
    const Capability other = decode_capability({capabilities.capability});
    common.version = std::min(common.version, other.version);
    common.datatypes &= other.datatypes;
    common.funcs &= other.funcs;
    common.lists = common.lists && other.lists;
    common.fan_in = common.fan_in && other.fan_in;
    common.streams = common.streams && other.streams;
    common.remote_memory = common.remote_memory && other.remote_memory;
    common.strides = common.strides && other.strides;
    common.casts = common.casts && other.casts;
    common.rendezvous = common.rendezvous && other.rendezvous;
    common.lanes = common.lanes && other.lanes;
    common.programs = common.programs && other.programs;
    common.radices = common.radices && other.radices;
    common.openings = common.openings && other.openings;
    common.log2_max_segment = std::min(common.log2_max_segment, other.log2_max_segment);
    agreed.aggregates = agreed.aggregates && capabilities.aggregates;
    agreed.eager_limit = std::min(agreed.eager_limit, capabilities.eager_limit);
    agreed.segment_bytes = std::min(agreed.segment_bytes, capabilities.segment_bytes);
    agreed.rx_buffer_count = std::min(agreed.rx_buffer_count, capabilities.rx_buffer_count);
    agreed.quota = std::min(agreed.quota, capabilities.quota);
    for (std::size_t word = 0; word < agreed.cores.size(); ++word) agreed.cores[word] |= capabilities.cores[word];
  }
  agreed.capability = encode(common)[0];
  return agreed;
}

}  // namespace unisono
