// What a machine does faster with ordinary buffers: one copy through the kernel, or two through cells of shared memory.
//
// Which is faster depends on the processor (how fast a line travels between cores), on the kernel (what a system call
// and the pinning of a page cost) and on the operation (a reduction that fetches through the kernel reads its operand
// twice). So it is measured once after each start of a machine, by collectives of two processes run both ways on real
// lanes (copy_probe.hpp), and kept in a file of the user's cache.
#pragma once

#include <cstdint>
#include <string>

#include "core/facts.hpp"
#include "network/shm/segment.hpp"

namespace unisono::cclo {

/// What is known of this machine.
struct CopyClass {
  enum class Source : std::uint8_t {
    kMeasured,  ///< now
    kKept,      ///< by an earlier job
    kRefused,   ///< the kernel does not let processes copy
    kUsual,  ///< nothing could be measured: on one core one copy is better than two; where others need the cores, cells
  };
  shm::CopyFrom from{};
  Source source = Source::kUsual;
};

/// What the kept file says of the present placement of the cores (2 ms) or, if nothing, a measurement, which is kept
/// then (50 ms). Never throws. To be called by one process of a machine at a time, with two cores idle.
CopyClass copy_class();
/// Measures in any case, and keeps the result.
CopyClass measure_copy_class();

/// Where results are kept: $XDG_CACHE_HOME/unisono/copy, or the same below ~/.cache; empty if there is no such place.
std::string copy_class_file();
/// The first line of that file on this machine, since its start; others are not followed.
std::string copy_class_title();

/// From how many bytes on (Call::count elements) a collective of `ranks` has ordinary buffers copied by the kernel. The
/// order of a reduction of more than two ranks depends on the way, and results must be the same in every run: so these
/// do not follow a measurement. In a broadcast all read the same pages, whose uses the kernel counts one after the
/// other: readers that are at it at a time hold each other up, which a measurement of two ranks cannot see. `crowded`:
/// there are fewer cores than ranks, and so few readers at a time.
constexpr std::uint64_t copied_from(Collective collective, std::uint32_t ranks, bool crowded,
                                    const shm::CopyFrom& from) {
  const bool guessed = from.measured != 0 && ranks > 2;
  if (guessed && collective == Collective::kBcast && !crowded) return shm::kNeverCopied;
  const Collective like = facts_of(collective).copies_like;
  if (like == Collective::kAllreduce) return guessed ? shm::kNeverCopied : from.reduction;
  return like == Collective::kAllgather ? from.exchange : from.one_way;
}

}  // namespace unisono::cclo
