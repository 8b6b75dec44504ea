// What the algorithms of direct calls share: shares of the work, and leaving. Freestanding.
//
// In a direct call every rank reaches src and dst of all others from its first move on, because all have
// entered. Data travels without messages; messages only say that a rank is done with the memory of
// another, which may then leave.
#pragma once

#include <cstdint>

#include "collectives/build.hpp"
#include "collectives/peers.hpp"

namespace unisono::build {

/// Most ranks of a direct call: those that share one memory. One step can then name all peers.
inline constexpr std::uint32_t kDirectRanks = 16;

constexpr bool admits_direct(const Call& call) { return call.direct && call.size <= kDirectRanks; }

/// How a vector of `elements` is cut into `parts` shares of whole cache lines, so that no two ranks write the same
/// line of a buffer that begins with one. The last line may be short, and small vectors have fewer shares than parts.
struct LineSplit {
  static constexpr std::uint64_t kLine = 64;  ///< bytes

  std::uint64_t elements;
  std::uint64_t element;  ///< bytes
  std::uint32_t parts;

  constexpr std::uint64_t begin(std::uint32_t part) const {
    const std::uint64_t per_line = element < kLine ? kLine / element : 1;
    const std::uint64_t lines = elements / per_line + (elements % per_line != 0 ? 1 : 0);
    const std::uint64_t first = Split{lines, parts}.begin(part) * per_line;
    return first < elements ? first : elements;
  }
  constexpr std::uint64_t count(std::uint32_t part) const { return begin(part + 1) - begin(part); }
  constexpr std::uint64_t offset(std::uint32_t part) const { return begin(part) * element; }
};

constexpr LineSplit shares(const Call& call) { return {call.count, element_bytes(call), call.size}; }

/// op1 is the same place in the memory of each of the `count` peers `peer_at(0)`, `peer_at(1)`, ..., folded in this
/// order; one peer is named directly, several through a list, none leaves the move as it is.
template <class PeerAt>
void fetch_from(Build& move, Emit& emit, std::uint32_t count, Place place, PeerAt peer_at) {
  if (count == 0) return;
  if (count == 1) {
    move.fetch(peer_at(std::uint32_t{0}), place.region, place.offset);
    return;
  }
  const std::uint32_t list = emit.begin_list(count);
  for (std::uint32_t i = 0; i < count; ++i) emit.peer(peer_at(i));
  move.fetch(PeerMode::kList, list, place.region, place.offset);
}

/// The remote result goes into the same place in the memory of each of the `count` peers.
template <class PeerAt>
void store_to(Build& move, Emit& emit, std::uint32_t count, Place place, PeerAt peer_at) {
  if (count == 0) return;
  if (count == 1) {
    move.store(peer_at(std::uint32_t{0}), place.region, place.offset);
    return;
  }
  const std::uint32_t list = emit.begin_list(count);
  for (std::uint32_t i = 0; i < count; ++i) emit.peer(peer_at(i));
  move.store(PeerMode::kList, list, place.region, place.offset);
}

/// op1 is the place on every rank, this one included, folded in rank order: any rank that does the work gets the same
/// bits.
inline void fetch_from_all(Build& move, Emit& emit, const Call& call, Place place) {
  fetch_from(move, emit, call.size, place, [](std::uint32_t i) { return i; });
}

/// The `i`-th rank other than this one, rising from the right neighbour, so that not all begin with the same peer.
constexpr std::uint32_t other(const Call& call, std::uint32_t i) { return plus(call.rank, i + 1, call.size); }

/// The last two moves of a direct program, where they are needed. With the first, this rank tells each peer for which
/// `tell(peer)` holds that it is done with the peer's memory: the `moves` moves before it have completed. With the
/// second it awaits the same of each peer for which `await(peer)` holds. `tell` on one rank and `await` on the other
/// must agree.
template <class Tell, class Await>
void leave(const Call& call, Emit& emit, std::uint32_t moves, Tell tell, Await await) {
  std::uint32_t told[kDirectRanks] = {};
  std::uint32_t awaited[kDirectRanks] = {};
  std::uint32_t tells = 0;
  std::uint32_t awaits = 0;
  for (std::uint32_t i = 0; i + 1 < call.size && i + 1 < kDirectRanks; ++i) {
    const std::uint32_t peer = other(call, i);
    if (tell(peer)) told[tells++] = peer;
    if (await(peer)) awaited[awaits++] = peer;
  }
  if (tells != 0) {
    Build done(call);
    done.signal();
    for (std::uint32_t distance = 1; distance <= moves; ++distance) done.after(distance);
    send_to(done, emit, tells, 0, [&](std::uint32_t i) { return told[i]; });
    emit(done);
  }
  if (awaits != 0) {
    Build wait(call);
    wait.signal();
    arrive_from(wait, emit, awaits, 0, [&](std::uint32_t i) { return awaited[i]; });
    emit(wait);
  }
}

}  // namespace unisono::build
