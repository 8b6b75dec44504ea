#include "driver/call_parts.hpp"

#include "core/facts.hpp"
#include "core/footprint.hpp"

namespace unisono::driver {

namespace {

class Ranges {
 public:
  explicit Ranges(std::vector<Range>& all) : all_(all) {}
  void add(bool in_src, std::uint64_t begin, std::uint64_t count) {
    if (count != 0) all_.push_back({in_src, begin, count});
  }
  void blocks(bool in_src, const std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& begins) {
    for (std::size_t i = 0; i < counts.size(); ++i) add(in_src, begins[i], counts[i]);
  }

 private:
  std::vector<Range>& all_;
};

/// Adds the elements of a part of a buffer.
void find(const CheckedCall& checked, bool in_src, Extent part, Ranges ranges) {
  const Call& call = checked.request.call;
  const bool receives = facts_of(call.collective).receives;
  const auto& counts = receives ? checked.recv_counts : checked.send_counts;
  const auto& displacements = receives ? checked.recv_displacements : checked.send_displacements;
  const bool by_counts = facts_of(call.collective).vectors;
  switch (part) {
    case Extent::kNothing:
      return;
    case Extent::kN:
      return ranges.add(in_src, 0, call.count);
    case Extent::kAll:
      return ranges.add(in_src, 0, call.count * call.size);
    case Extent::kOwn:
      return ranges.add(in_src, 0, counts.empty() ? checked.vectors.own : counts[call.rank]);
    case Extent::kBlock:
      return by_counts ? ranges.add(in_src, displacements[call.rank], counts[call.rank])
                       : ranges.add(in_src, call.rank * call.count, call.count);
    case Extent::kSent:
      return ranges.blocks(in_src, checked.send_counts, checked.send_displacements);
    case Extent::kReceived:
      return ranges.blocks(in_src, checked.recv_counts, checked.recv_displacements);
  }
}

}  // namespace

CallParts parts_of(const CheckedCall& checked) {
  const Uses uses = uses_of(checked.request.call);
  CallParts parts;
  find(checked, true, uses.src, Ranges(parts.inputs));
  find(checked, false, uses.reads, Ranges(parts.inputs));
  find(checked, false, uses.writes, Ranges(parts.results));
  return parts;
}

}  // namespace unisono::driver
