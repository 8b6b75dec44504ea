// Bruck's all-gatherv, for any number of ranks.
//
// Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications
// in multiport message-passing systems", IEEE TPDS 1997, with a count per rank. Cost: ceil(log2 P) alpha
// + N beta, N bytes in all, and N bytes copied; one alpha more in a round whose blocks pass from P-1 to 0.
//
// As Bruck's all-gather, but blocks may lie anywhere in dst, and a message must be one range of memory.
// So the rounds run on scratch, where all blocks stand packed in order of rank, and at the end each is
// copied to its place. All ranks know all counts: where blocks stand in scratch, and how long each
// message is, is worked out beforehand and read from params.
//
// Sends wait for all arrivals before them and for the rank's own block; copies to dst wait for the
// arrival that brought the block; arrivals wait for nothing (each place of scratch is written once), so
// nobody waits in a circle.
#include "collectives/allgatherv/allgatherv.hpp"
#include "collectives/build.hpp"
#include "collectives/doubling_blocks.hpp"
#include "collectives/vectors.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

// Words of params behind the 2P of `fill_layout`: the byte offset of each block in scratch, and for each
// round the elements of what is sent and taken, before and after the wrap.
constexpr std::uint32_t packed_word(const Call& call, std::uint32_t block) { return 2 * call.size + block; }
constexpr std::uint32_t sent_word(const Call& call, std::uint32_t k) { return 3 * call.size + 4 * k; }
constexpr std::uint32_t taken_word(const Call& call, std::uint32_t k) { return sent_word(call, k) + 2; }

Place packed(const Call& call, std::uint32_t block) { return indirect(Region::kScratch, packed_word(call, block)); }

std::uint64_t sum(const std::uint64_t* counts, std::uint32_t first, std::uint32_t blocks) {
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < blocks; ++i) total += counts[first + i];
  return total;
}

// Moves before the rounds: the own block to dst, unless it is there.
std::uint32_t before_rounds(const Call& call) { return call.in_place ? 0 : 1; }

}  // namespace

bool allgatherv_bruck_admits(const Call& call) { return call.count != kUnknownCount; }

std::uint64_t allgatherv_bruck_scratch_bytes(const Call& call) {
  return call.size == 1 ? 0 : call.count * element_bytes(call);
}

std::uint32_t allgatherv_bruck_params_words(const Call& call) { return sent_word(call, log2_ceil(call.size)); }

void allgatherv_bruck_fill_params(const Call& call, const VectorArguments& arguments, std::uint64_t* words) {
  fill_layout(call, arguments.recv_counts, arguments.recv_displacements, words);
  for (std::uint32_t block = 0; block < call.size; ++block) {
    words[packed_word(call, block)] =
        block == 0 ? 0 : words[packed_word(call, block - 1)] + words[block - 1] * element_bytes(call);
  }
  for (std::uint32_t k = 0; k < log2_ceil(call.size); ++k) {
    const DoublingBlocks sent = DoublingBlocks::sent_by(call.rank, k, call.size);
    const DoublingBlocks taken = DoublingBlocks::taken_by(call.rank, k, call.size);
    words[sent_word(call, k)] = sum(words, sent.first, sent.before_wrap);
    words[sent_word(call, k) + 1] = sum(words, 0, sent.after_wrap());
    words[taken_word(call, k)] = sum(words, taken.first, taken.before_wrap);
    words[taken_word(call, k) + 1] = sum(words, 0, taken.after_wrap());
  }
}

// Own block, rounds, copies of the other blocks to dst.
std::uint32_t allgatherv_bruck_steps(const Call& call) { return 1 + log2_ceil(call.size) + steps_for(call.size - 1); }

void allgatherv_bruck_step(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint32_t size = call.size;
  const std::uint32_t before = before_rounds(call);
  const auto home = [&](std::uint32_t block) { return indirect(Region::kDst, size + block); };
  const Place own = call.in_place ? home(call.rank) : Place{Region::kSrc};

  if (s == 0) {
    if (!call.in_place) emit(Build(call).take(own).keep(home(call.rank)).count_at(call.rank));
    return;
  }
  if (s <= log2_ceil(size)) {
    const std::uint32_t k = s - 1;
    const std::uint32_t to = minus(call.rank, std::uint32_t{1} << k, size);
    const std::uint32_t from = plus(call.rank, std::uint32_t{1} << k, size);
    const DoublingBlocks given = DoublingBlocks::sent_by(call.rank, k, size);
    const DoublingBlocks taken = DoublingBlocks::taken_by(call.rank, k, size);
    Build low(call);
    low.send(to, 2 * k).count_at(sent_word(call, k));
    if (k == 0) {
      low.take(own).keep(packed(call, call.rank));
    } else {
      low.take(packed(call, given.first));
      after_rounds(low, emit.moves(), call.rank, k, size, before, before);
    }
    emit(low);
    if (given.messages() == 2) {
      Build high(call);
      high.take(packed(call, 0)).send(to, 2 * k + 1).count_at(sent_word(call, k) + 1);
      after_rounds(high, emit.moves(), call.rank, k, size, before, before);
      emit(high);
    }
    emit(Build(call).arrive(from, 2 * k).keep(packed(call, taken.first)).count_at(taken_word(call, k)));
    if (taken.messages() == 2) {
      emit(Build(call).arrive(from, 2 * k + 1).keep(packed(call, 0)).count_at(taken_word(call, k) + 1));
    }
    return;
  }
  const std::uint32_t begin = 1 + (s - 1 - log2_ceil(size)) * static_cast<std::uint32_t>(kMovesPerStep);
  for (std::uint32_t i = begin; i < size && i < begin + kMovesPerStep; ++i) {
    const std::uint32_t block = plus(call.rank, i, size);
    const std::uint32_t k = log2_floor(i);  // the round that brought it
    const DoublingBlocks taken = DoublingBlocks::taken_by(call.rank, k, size);
    const std::uint32_t part = block < taken.first ? 1 : 0;  // before or after the wrap
    const std::uint32_t arrival = first_arrival_of_round(call.rank, k, size, before) + part;
    emit(Build(call).take(packed(call, block)).keep(home(block)).count_at(block).after(emit.moves() - arrival));
  }
}

}  // namespace unisono::collectives
