#include "engine/stream_access.hpp"

#include "collectives/record.hpp"
#include "core/footprint.hpp"
#include "engine/validate.hpp"

namespace unisono::cclo {

StreamRegions streamed_regions(const Algorithm& algorithm, Call call) {
  Capability all;
  all.fan_in = all.lists = all.remote_memory = true;
  const std::uint64_t element = element_bytes(call);
  StreamRegions regions;
  call.direct = algorithm.direct;
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    const auto checked = check_program(record(algorithm, call), call.size, all, call.direct);
    const Uses uses = uses_of(call);
    const Footprint used = footprint_of(call);
    const auto passes = [&](Region region, std::uint64_t elements, bool reads) {
      const auto number = static_cast<std::size_t>(region);
      return (reads ? checked->reads_once : checked->writes_once)[number] &&
             checked->extents[number] == elements * element;
    };
    const bool sends_dst = call.collective == Collective::kBcast && call.rank == call.root;
    const bool reads = uses.reads != Extent::kNothing, writes = uses.writes != Extent::kNothing && !sends_dst;
    if (used.src != 0) regions.src = regions.src && passes(Region::kSrc, used.src, true);
    if (used.dst == 0) continue;
    if (reads) regions.dst = regions.dst && !writes && passes(Region::kDst, used.dst, true);
    if (writes) regions.dst = regions.dst && !reads && passes(Region::kDst, used.dst, false);
  }
  return regions;
}

}  // namespace unisono::cclo
