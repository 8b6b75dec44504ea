// Direct all-to-all: every rank takes its blocks from all; in place, every two ranks exchange halves.
//
// Source: this project. Cost: sigma + alpha + P n beta, n bytes a block; sigma is the entry of all ranks. In place
// sigma + alpha + 3 (P-1) n/2 beta.
//
// Each rank copies its own block and reads the others where they stand, one move each, beginning with its right
// neighbour, so that not all read from one rank.
//
// In place two ranks exchange blocks, each one half of them, in three moves: the peer's half goes to scratch; the own
// half follows it element by element into the place that is free; then scratch goes to the own place, which has been
// read by then. One move cannot, for it has one value.
#include "collectives/direct.hpp"

#include "collectives/alltoall/alltoall.hpp"

namespace unisono::collectives {

using namespace build;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

constexpr std::uint32_t kExchangesPerStep = 5;  // three moves each

// This rank's share of the pair's block: the lower rank has the first, in whole lines.
struct Half {
  std::uint64_t count;
  std::uint64_t offset;  // bytes

  static Half of(const Call& call, std::uint32_t peer) {
    const LineSplit split{call.count, element_bytes(call), 2};
    const std::uint32_t part = call.rank < peer ? 0 : 1;
    return {split.count(part), split.offset(part)};
  }
};

std::uint64_t half_bytes(const Call& call) { return LineSplit{call.count, element_bytes(call), 2}.offset(1); }

std::uint32_t exchange_steps(const Call& call) { return (call.size - 1 + kExchangesPerStep - 1) / kExchangesPerStep; }

void exchange(const Call& call, std::uint32_t i, Emit& emit) {
  const std::uint32_t peer = other(call, i);
  const Half half = Half::of(call, peer);
  const std::uint64_t bytes = call.count * element_bytes(call);
  const Place here = dst(peer * bytes + half.offset);
  const std::uint64_t there = call.rank * bytes + half.offset;
  const Place aside = scratch(i * half_bytes(call));
  if (half.count == 0) return;
  emit(Build(call).fetch(peer, Region::kDst, there).keep(aside).count(half.count));
  emit(Build(call).take(here).store(peer, Region::kDst, there).count(half.count).stream_after(1));
  emit(Build(call).take(aside).keep(here).count(half.count).after(1));
}

}  // namespace

bool alltoall_direct_admits(const Call& call) { return admits_direct(call); }

std::uint64_t alltoall_direct_scratch_bytes(const Call& call) {
  return call.in_place ? (call.size - 1) * half_bytes(call) : 0;
}

std::uint32_t alltoall_direct_steps(const Call& call) {
  if (call.count == 0) return 0;
  return call.in_place ? exchange_steps(call) + 1 : 2;
}

void alltoall_direct_step(const Call& call, std::uint32_t s, Emit& emit) {
  const std::uint64_t bytes = call.count * element_bytes(call);
  if (call.in_place && s < exchange_steps(call)) {
    for (std::uint32_t i = 0; i < kExchangesPerStep && s * kExchangesPerStep + i + 1 < call.size; ++i) {
      exchange(call, s * kExchangesPerStep + i, emit);
    }
    return;
  }
  if (!call.in_place && s == 0) {
    emit(Build(call).take(src(call.rank * bytes)).keep(dst(call.rank * bytes)).count(call.count));
    for (std::uint32_t i = 0; i + 1 < call.size; ++i) {
      const std::uint32_t peer = other(call, i);
      emit(Build(call).fetch(peer, Region::kSrc, call.rank * bytes).keep(dst(peer * bytes)).count(call.count));
    }
    return;
  }
  // Everybody touches everybody's memory, but that a half may be empty in place.
  const LineSplit split{call.count, element_bytes(call), 2};
  const auto touches = [&](std::uint32_t by, std::uint32_t whose) {
    return !call.in_place || split.count(by < whose ? 0 : 1) != 0;
  };
  leave(
      call, emit, emit.moves(), [&](std::uint32_t peer) { return touches(call.rank, peer); },
      [&](std::uint32_t peer) { return touches(peer, call.rank); });
}

}  // namespace unisono::collectives
