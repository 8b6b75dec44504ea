#include "reference/job.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "collectives/generate.hpp"
#include "core/error.hpp"
#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "core/group_table.hpp"
#include "core/text.hpp"
#include "core/tree_table.hpp"

namespace unisono::reference {
namespace {

const std::uint64_t* data_or_null(const std::vector<std::uint64_t>& values) {
  return values.empty() ? nullptr : values.data();
}

Program record_checked(const Algorithm& algorithm, const Call& call) {
  Program program;
  EmitSink sink;
  sink.context = &program;
  sink.move = [](void* context, const Move& move) { static_cast<Program*>(context)->moves.push_back(move); };
  sink.pool_word = [](void* context, std::uint32_t word) { static_cast<Program*>(context)->pool.push_back(word); };
  Emit emit(sink);
  const std::uint32_t steps = generation_steps(algorithm, call);
  for (std::uint32_t s = 0; s < steps; ++s) {
    const std::size_t before = program.moves.size();
    generation_step(algorithm, call, s, emit);
    if (program.moves.size() - before > kMovesPerStep) {
      throw Error(ErrorCode::kMalformedProgram,
                  formatted("{} {}: step {} of rank {} emits {} moves; a step may emit at most {}",
                            name_of(algorithm.collective), algorithm.name, s, call.rank, program.moves.size() - before,
                            kMovesPerStep));
    }
  }
  if (algorithm.scratch_bytes != nullptr) program.scratch_bytes = algorithm.scratch_bytes(call);
  if (algorithm.params_words != nullptr) program.params_bytes = std::uint64_t{8} * algorithm.params_words(call);
  return program;
}

std::uint64_t extent(const std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& displacements) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::uint64_t begin = i < displacements.size() ? displacements[i] : 0;
    if (counts[i] != 0) end = std::max(end, begin + counts[i]);
  }
  return end;
}

// Binds what `own`, the call of its rank, uses.
void size_regions(Job& job, const Call& own) {
  const auto [src, dst] = buffer_bytes(own, job.vectors);
  job.bytes(own.rank, Region::kSrc) = src;
  job.bytes(own.rank, Region::kDst) = dst;
  job.bytes(own.rank, Region::kScratch) = job.programs[own.rank].scratch_bytes;
  job.bytes(own.rank, Region::kParams) = job.programs[own.rank].params_bytes;
}

const Algorithm* first_of(Collective collective) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) return &algorithm;
  }
  return nullptr;
}

// splitmix64: small, and the same on every platform.
std::uint64_t mix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

// Displacements for given counts; with gaps, blocks stand in a rotated order with holes between.
std::vector<std::uint64_t> place(const std::vector<std::uint64_t>& counts, bool gaps, std::uint64_t& state) {
  std::vector<std::uint64_t> displacements(counts.size());
  const std::size_t first = gaps && !counts.empty() ? mix(state) % counts.size() : 0;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t block = (first + i) % counts.size();
    if (gaps) at += mix(state) % 3;
    displacements[block] = at;
    at += counts[block];
  }
  return displacements;
}

}  // namespace

VectorArguments VectorCounts::view() const {
  return {data_or_null(send_counts), data_or_null(send_displacements), data_or_null(recv_counts),
          data_or_null(recv_displacements)};
}

std::pair<std::uint64_t, std::uint64_t> buffer_bytes(const Call& own, const std::vector<VectorCounts>& vectors) {
  VectorExtents blocks;
  if (!vectors.empty()) {
    const VectorCounts& counts = vectors[own.rank];
    const auto& blocks_of_all = counts.recv_counts.empty() ? counts.send_counts : counts.recv_counts;
    blocks = {blocks_of_all.at(own.rank), extent(counts.send_counts, counts.send_displacements),
              extent(counts.recv_counts, counts.recv_displacements)};
  }
  const Footprint footprint = footprint_of(own, blocks);
  return {footprint.src * element_bytes(own), footprint.dst * element_bytes(own)};
}

bool is_vector(Collective collective) { return facts_of(collective).vectors; }

bool is_rooted(Collective collective) {
  const CollectiveFacts facts = facts_of(collective);
  return facts.rooted && facts.kind != CallKind::kProgram;
}

bool is_reduction(Collective collective) { return facts_of(collective).reduces; }

bool has_in_place(Collective collective) {
  const CollectiveFacts facts = facts_of(collective);
  return facts.in_place && facts.kind != CallKind::kProgram;
}

Job make_job(const Algorithm& algorithm, const Call& given, const std::vector<VectorCounts>& vectors,
             std::optional<bool> in_place_elsewhere) {
  if (algorithm.admits != nullptr && !algorithm.admits(given)) {
    throw Error(ErrorCode::kUnsupported, std::string(name_of(algorithm.collective)) + " " + algorithm.name +
                                             " does not admit the call: " + algorithm.restriction);
  }
  if (is_vector(given.collective) && vectors.size() != given.size) {
    throw Error(
        ErrorCode::kInvalidArgument,
        formatted("a v-collective of {} ranks needs counts of every rank, given were {}", given.size, vectors.size()));
  }
  Job job;
  job.algorithm = &algorithm;
  job.call = given;
  if (is_vector(given.collective)) {
    // What every rank knows: all counts of the root's or the gathered vector, but only its own rows of alltoallv,
    // where in place a bound of all blocks must have been agreed.
    const VectorCounts& counts = vectors[0];
    const auto& known = counts.recv_counts.empty() ? counts.send_counts : counts.recv_counts;
    job.call.count = 0;
    if (!facts_of(given.collective).pairwise()) {
      job.call.count = std::accumulate(known.begin(), known.end(), std::uint64_t{0});
    } else if (given.in_place) {
      for (const VectorCounts& own : vectors) {
        for (const std::uint64_t count : own.recv_counts) job.call.count = std::max(job.call.count, count);
      }
    }
  }
  const Call& call = job.call;
  job.dtype = call.dtype;
  job.vectors = vectors;
  const bool virtual_ranks = call.tree != nullptr && !call.tree->stand_in;
  const std::uint32_t programs = call.size + (virtual_ranks ? call.tree->switches : 0);
  job.programs.resize(programs);
  job.region_bytes.resize(programs);
  job.params.resize(programs);
  const CallKind kind = facts_of(call.collective).kind;
  const bool two_sided = kind == CallKind::kMessage;
  const bool one_origin = two_sided || kind == CallKind::kAccess;
  for (std::uint32_t rank = 0; rank < call.size; ++rank) {
    Call own = call;
    own.rank = rank;
    const bool apart = in_place_elsewhere.has_value() && rank != call.root;
    if (apart) own.in_place = *in_place_elsewhere;
    const Algorithm* by = &algorithm;
    if (one_origin && rank != call.rank) {
      by = nullptr;
      if (two_sided && rank == call.root) {
        own.collective = call.collective == Collective::kSend ? Collective::kRecv : Collective::kSend;
        own.root = call.rank;
        by = first_of(own.collective);
        if (by == nullptr) {
          throw Error(ErrorCode::kUnsupported, std::string("no algorithm of ") + name_of(own.collective) +
                                                   " to meet a " + name_of(call.collective));
        }
      }
    }
    if (by != nullptr) {
      job.programs[rank] = record_checked(*by, own);
      job.params[rank].assign(job.programs[rank].params_bytes / 8, 0);
      if (by->fill_params != nullptr && !vectors.empty()) {
        const bool own_count = apart && counts_at_root(own.collective) && by->admits == nullptr;
        const auto& counts = vectors[rank].recv_counts.empty() ? vectors[rank].send_counts : vectors[rank].recv_counts;
        VectorArguments alone;
        if (own_count) alone.own = counts[rank];
        by->fill_params(own, own_count ? alone : vectors[rank].view(), job.params[rank].data());
      }
      size_regions(job, own);
    }
  }
  for (std::uint32_t rank = call.size; rank < programs; ++rank) {
    Call own = call;
    own.rank = rank;
    job.programs[rank] = record_checked(algorithm, own);
    job.bytes(rank, Region::kScratch) = job.programs[rank].scratch_bytes;
  }
  if (kind == CallKind::kAccess) {
    job.bytes(call.root, Region::kWindow) = call.count * element_bytes(call);
  }
  return job;
}

Job make_job(std::vector<Program> programs, Datatype dtype, std::uint64_t src_bytes, std::uint64_t dst_bytes) {
  Job job;
  job.programs = std::move(programs);
  job.dtype = dtype;
  job.call.collective = Collective::kProgram;
  job.call.dtype = dtype;
  job.call.size = job.size();
  job.call.direct = std::any_of(job.programs.begin(), job.programs.end(), [](const Program& program) {
    return std::any_of(program.moves.begin(), program.moves.end(), reaches_directly);
  });
  job.region_bytes.resize(job.size());
  job.params.resize(job.size());
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    job.bytes(rank, Region::kSrc) = src_bytes;
    job.bytes(rank, Region::kDst) = dst_bytes;
    job.bytes(rank, Region::kScratch) = job.programs[rank].scratch_bytes;
    job.bytes(rank, Region::kParams) = job.programs[rank].params_bytes;
    job.params[rank].assign(job.programs[rank].params_bytes / 8, 0);
  }
  return job;
}

std::vector<VectorCounts> example_counts(const Call& call, CountPattern pattern, std::uint64_t seed) {
  const std::uint32_t size = call.size;
  const std::uint64_t n = call.count;
  std::uint64_t state = seed * 0x2545f4914f6cdd1dULL + size;
  const bool gaps = pattern == CountPattern::kVaried;
  const std::size_t chosen = mix(state) % size;
  const auto count = [&](std::size_t block) -> std::uint64_t {
    switch (pattern) {
      case CountPattern::kZero:
        return 0;
      case CountPattern::kUniform:
        return n;
      case CountPattern::kVaried:
        return mix(state) % 3 == 0 ? 0 : mix(state) % (2 * n + 2);
      case CountPattern::kOneRank:
        return block == chosen ? n + 1 : 0;
    }
    return 0;
  };
  std::vector<VectorCounts> all(size);
  if (facts_of(call.collective).pairwise()) {
    std::vector<std::vector<std::uint64_t>> length(size, std::vector<std::uint64_t>(size));
    for (std::uint32_t i = 0; i < size; ++i) {
      for (std::uint32_t j = 0; j < size; ++j) {
        length[i][j] = call.in_place && j < i ? length[j][i] : count(j);
      }
    }
    for (std::uint32_t i = 0; i < size; ++i) {
      for (std::uint32_t j = 0; j < size; ++j) {
        all[i].send_counts.push_back(length[i][j]);
        all[i].recv_counts.push_back(length[j][i]);
      }
      all[i].recv_displacements = place(all[i].recv_counts, gaps, state);
      all[i].send_displacements = call.in_place ? all[i].recv_displacements : place(all[i].send_counts, gaps, state);
    }
    return all;
  }
  std::vector<std::uint64_t> counts(size);
  for (std::uint32_t i = 0; i < size; ++i) counts[i] = count(i);
  const std::vector<std::uint64_t> displacements = place(counts, gaps, state);
  for (VectorCounts& own : all) {
    if (facts_of(call.collective).sends) {
      own.send_counts = counts;
      own.send_displacements = displacements;
    } else {
      own.recv_counts = counts;
      own.recv_displacements = displacements;
    }
  }
  return all;
}

bool uses_any(const Job& job) {
  for (const Program& program : job.programs) {
    for (const Move& move : program.moves) {
      if (move.op1.kind == OperandKind::kArrival && move.arrival.mode == PeerMode::kAny) return true;
    }
  }
  return false;
}

std::string describe(const Job& job) {
  std::ostringstream out;
  const Call& call = job.call;
  if (job.meant) out << "program as ";
  out << name_of(call.collective);
  if (job.algorithm != nullptr) out << ' ' << job.algorithm->name;
  if (call.radix != 0) out << ':' << static_cast<unsigned>(call.radix);
  out << ", " << job.members() << (job.members() == 1 ? " rank" : " ranks");
  if (call.tree != nullptr) {
    out << ", tree " << text_of(*call.tree) << (call.tree->stand_in ? ", members in place of switches" : "");
  }
  if (!job.promises() || (job.meant && call.collective == Collective::kBarrier)) return out.str();
  if (is_vector(call.collective)) {
    out << ", counts {";
    const VectorCounts& counts = job.vectors[0];
    const auto& shown = counts.recv_counts.empty() ? counts.send_counts : counts.recv_counts;
    for (std::size_t i = 0; i < shown.size() && i < 8; ++i) out << (i != 0 ? ", " : "") << shown[i];
    out << (shown.size() > 8 ? ", ..." : "") << "}" << (facts_of(call.collective).pairwise() ? " at rank 0" : "");
  } else {
    out << ", count " << call.count;
  }
  out << ' ' << name_of(call.dtype);
  if (is_reduction(call.collective)) out << ' ' << name_of(call.func);
  if (is_rooted(call.collective)) out << ", root " << call.root;
  if (call.in_place) out << ", in place";
  if (call.direct) out << ", direct access";
  if (call.group_size != 0) out << ", groups of " << call.group_size;
  if (call.groups != nullptr) out << ", groups " << text_of({0, call.groups});
  return out.str();
}

}  // namespace unisono::reference
