#include "reference/meaning.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "core/footprint.hpp"
#include "core/operators.hpp"
#include "core/text.hpp"

namespace unisono::reference {
namespace {

bool is_collective(Collective collective) {
  const CollectiveFacts facts = facts_of(collective);
  return facts.known && facts.kind == CallKind::kCollective;
}

[[noreturn]] void refuse(ErrorCode code, Collective collective, const std::string& why) {
  throw Error(code, std::string(name_of(collective)) + ": " + why);
}

// Elements are of the type that the moves compute in, if they do, and else of the first that moves data.
Datatype datatype_of(const Job& job) {
  Datatype found = Datatype::kNone;
  for (const Program& program : job.programs) {
    for (const Move& move : program.moves) {
      if (move.kind != MoveKind::kMove || move.dtype == Datatype::kNone) continue;
      if (!move.count_indirect && move.count == 0) continue;
      if (move.func != Func::kNone) return move.dtype;
      if (found == Datatype::kNone) found = move.dtype;
    }
  }
  return found == Datatype::kNone ? job.dtype : found;
}

void check_form(const Job& job, const Meaning& meaning) {
  const Collective collective = meaning.collective;
  if (!is_collective(collective)) {
    std::string allowed;
    for (const Collective each : kAllCollective) {
      if (is_collective(each)) allowed += (allowed.empty() ? "" : ", ") + std::string(name_of(each));
    }
    throw Error(ErrorCode::kInvalidArgument,
                std::string("programs cannot be meant as ") + name_of(collective) + "; allowed are " + allowed);
  }
  if (!is_reduction(collective) && meaning.func != Func::kNone) {
    refuse(ErrorCode::kInvalidOp, collective,
           std::string("op ") + name_of(meaning.func) + " was given, but nothing is reduced; leave it out");
  }
  if (meaning.root && !is_rooted(collective)) {
    refuse(ErrorCode::kInvalidRoot, collective,
           formatted("root {} was given; it has no root, leave it out", *meaning.root));
  }
  if (meaning.root.value_or(0) >= job.size()) {
    refuse(ErrorCode::kInvalidRoot, collective,
           formatted("root {} was given; the program has ranks 0 to {}", *meaning.root, job.size() - 1));
  }
  if (meaning.in_place && !has_in_place(collective)) {
    refuse(ErrorCode::kInvalidArgument, collective,
           std::string("the in-place form was asked for; ") +
               (collective == Collective::kBcast ? "it has no other, leave it out" : "it has none"));
  }
  if (meaning.count && (is_vector(collective) || !facts_of(collective).data)) {
    refuse(ErrorCode::kInvalidCount, collective,
           formatted("count {} was given; {}, leave it out", *meaning.count,
                     is_vector(collective) ? "it has counts by rank" : "it moves no data"));
  }
  const std::size_t wanted = !is_vector(collective)            ? 0
                             : facts_of(collective).pairwise() ? std::size_t{job.size()} * job.size()
                                                               : job.size();
  if (meaning.counts.size() != wanted) {
    const std::string needed =
        wanted == 0 ? "it takes none"
                    : formatted("give {}{}", wanted,
                                facts_of(collective).pairwise() ? ": for each rank, what it sends to each"
                                                                : ": the elements of each rank's block");
    refuse(ErrorCode::kInvalidCount, collective,
           formatted("{} counts by rank were given; {}", meaning.counts.size(), needed));
  }
}

std::vector<std::uint64_t> packed(const std::vector<std::uint64_t>& counts) {
  std::vector<std::uint64_t> displacements(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), displacements.begin(), std::uint64_t{0});
  return displacements;
}

std::vector<VectorCounts> vectors_of(const Meaning& meaning, std::uint32_t size) {
  std::vector<VectorCounts> all;
  if (!is_vector(meaning.collective)) return all;
  all.resize(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    VectorCounts& own = all[rank];
    if (facts_of(meaning.collective).pairwise()) {
      for (std::uint32_t peer = 0; peer < size; ++peer) {
        own.send_counts.push_back(meaning.counts[std::size_t{rank} * size + peer]);
        own.recv_counts.push_back(meaning.counts[std::size_t{peer} * size + rank]);
        if (meaning.in_place && own.send_counts.back() != own.recv_counts.back()) {
          refuse(ErrorCode::kInvalidCount, meaning.collective,
                 formatted("in place, two ranks exchange blocks of one length; rank {} sends {} elements to rank {} "
                           "and receives {}",
                           rank, own.send_counts.back(), peer, own.recv_counts.back()));
        }
      }
    } else {
      (facts_of(meaning.collective).sends ? own.send_counts : own.recv_counts) = meaning.counts;
    }
    own.send_displacements = packed(own.send_counts);
    own.recv_displacements = packed(own.recv_counts);
  }
  return all;
}

// The count of the smallest call that holds what the programs reach of src and dst.
std::uint64_t count_reached(const Job& job, Call call) {
  const std::uint64_t element = element_bytes(call);
  std::uint64_t count = 0;
  call.count = 1;
  for (call.rank = 0; call.rank < job.size(); ++call.rank) {
    const Footprint blocks = footprint_of(call);
    for (const auto& [times, region] : {std::pair{blocks.src, Region::kSrc}, std::pair{blocks.dst, Region::kDst}}) {
      if (times == 0) continue;
      const std::uint64_t step = times * element;
      count = std::max(count, (job.bytes(call.rank, region) + step - 1) / step);
    }
  }
  return count;
}

}  // namespace

Job meant_as(Job job, const Meaning& meaning) {
  check_form(job, meaning);
  Call call;
  call.collective = meaning.collective;
  call.size = job.size();
  call.root = meaning.root.value_or(0);
  call.in_place = meaning.in_place;
  call.direct = job.call.direct;
  if (facts_of(meaning.collective).data) {
    call.dtype = datatype_of(job);
    if (is_reduction(call.collective)) {
      call.func = meaning.func == Func::kNone ? Func::kSum : meaning.func;
      if (call.func == Func::kAvg && !takes_mean(call.collective)) {
        refuse(ErrorCode::kInvalidOp, call.collective, std::string("op avg was given; it is one of ") + kTakesMean);
      }
      if (!is_operator(call.func, call.dtype)) {
        refuse(ErrorCode::kInvalidDatatype, call.collective,
               std::string("op ") + name_of(call.func) + " is not defined on datatype " + name_of(call.dtype) +
                   ", of which the program's elements are; on it are " + operators_on(call.dtype));
      }
    }
    job.vectors = vectors_of(meaning, job.size());
    call.count = is_vector(call.collective)
                     ? std::accumulate(meaning.counts.begin(), meaning.counts.end(), std::uint64_t{0})
                     : meaning.count.value_or(count_reached(job, call));
    // A user's array is never that long; what is asked for here is held as symbols.
    constexpr std::uint64_t kMost = std::uint64_t{1} << 30U;
    if (call.count > kMost || call.count * call.size > kMost) {
      refuse(ErrorCode::kCapacity, call.collective,
             formatted("a call of {} elements was asked for; at most {} can be run on symbols", call.count,
                       kMost / call.size));
    }
    for (call.rank = 0; call.rank < job.size(); ++call.rank) {
      const auto [src, dst] = buffer_bytes(call, job.vectors);
      job.bytes(call.rank, Region::kSrc) = src;
      job.bytes(call.rank, Region::kDst) = dst;
    }
    call.rank = 0;
    job.dtype = call.dtype;
  }
  job.call = call;
  job.meant = true;
  return job;
}

std::string describe_promise(const Job& job) {
  if (!job.promises()) return "";
  std::string text = describe(job);
  if (job.meant) text.erase(0, std::string("program as ").size());
  return text;
}

}  // namespace unisono::reference
