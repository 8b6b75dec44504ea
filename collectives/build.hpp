// Vocabulary in which collectives write their moves. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/place.hpp"
#include "collectives/split.hpp"
#include "core/call.hpp"
#include "core/emit.hpp"

namespace unisono::build {

/// Fluent construction of one move: `Build(call).take(src(call)).arrive(left, tag).keep(dst()).send(right, tag)`.
/// The datatype is the call's; a move with two operands sets the function. One move is built at a time: once a
/// second one has been begun, the first is not touched again. (The microcontroller builds in a register.)
class Build {
 public:
  constexpr explicit Build(const Call& call) {
    move_.kind = MoveKind::kMove;
    move_.dtype = call.dtype;
    func_ = call.func;
  }

  /// op0 from memory.
  constexpr Build& take(Place place) {
    move_.op0 = memory(place);
    return pair();
  }
  /// op0 from a stream port.
  constexpr Build& take_stream(std::uint32_t port) {
    move_.op0.kind = OperandKind::kStream;
    move_.op0.offset = port;
    return pair();
  }
  /// op1 from memory.
  constexpr Build& with(Place place) {
    move_.op1 = memory(place);
    return pair();
  }
  /// op1 is the message of `peer` with step tag `tag`.
  constexpr Build& arrive(std::uint32_t peer, std::uint32_t tag) { return arrive(PeerMode::kRank, peer, tag); }
  /// op1 is one message of each peer of a pool list, combined in listed order (list) or any order (any).
  constexpr Build& arrive(PeerMode mode, std::uint32_t list, std::uint32_t tag) {
    move_.op1.kind = OperandKind::kArrival;
    move_.arrival = {list, mode, tag};
    if (mode != PeerMode::kRank) move_.func = func_;
    return pair();
  }
  /// op1 is memory of `peer`. A move that also stores into remote memory has one offset for both.
  constexpr Build& fetch(std::uint32_t peer, Region region, std::uint64_t offset) {
    return fetch(PeerMode::kRank, peer, region, offset);
  }
  /// op1 is the same place in the memory of each peer of a pool list, combined in listed order.
  constexpr Build& fetch(PeerMode mode, std::uint32_t list, Region region, std::uint64_t offset) {
    move_.op1.kind = OperandKind::kRemoteMemory;
    move_.arrival = {list, mode, 0};
    move_.remote_address.region = region;
    move_.remote_address.offset = offset;
    if (mode != PeerMode::kRank) move_.func = func_;
    return pair();
  }
  /// Local result to memory.
  constexpr Build& keep(Place place) {
    move_.local = memory(place);
    return *this;
  }
  /// Local result to a stream port.
  constexpr Build& keep_stream(std::uint32_t port) {
    move_.local.kind = OperandKind::kStream;
    move_.local.offset = port;
    return *this;
  }
  /// Remote result: a message to `peer` with step tag `tag`.
  constexpr Build& send(std::uint32_t peer, std::uint32_t tag) { return send(PeerMode::kRank, peer, tag); }
  /// Remote result: the same message to every peer of a pool list.
  constexpr Build& send(PeerMode mode, std::uint32_t list, std::uint32_t tag) {
    move_.remote = {RemoteKind::kMessage, Cast::kNone, list, mode, tag, 0};
    return *this;
  }
  /// Remote result: into memory of `peer`.
  constexpr Build& store(std::uint32_t peer, Region region, std::uint64_t offset) {
    return store(PeerMode::kRank, peer, region, offset);
  }
  /// Remote result: into the same place in the memory of each peer of a pool list.
  constexpr Build& store(PeerMode mode, std::uint32_t list, Region region, std::uint64_t offset) {
    move_.remote = {RemoteKind::kMemory, Cast::kNone, list, mode, 0, 0};
    move_.remote_address.result_region = region;
    move_.remote_address.offset = offset;
    return *this;
  }
  constexpr Build& count(std::uint64_t elements) {
    move_.count = elements;
    return *this;
  }
  /// Count is the params word `word`.
  constexpr Build& count_at(std::uint32_t word) {
    move_.count = std::uint64_t{word} * 8;
    move_.count_indirect = true;
    return *this;
  }
  /// The message is sent and awaited although it is empty.
  constexpr Build& signal() {
    move_.signal = true;
    return *this;
  }
  /// The result is func(op1, op0): the arrival is the left operand.
  constexpr Build& arrival_first(bool yes = true) {
    move_.swap = yes;
    return *this;
  }
  /// Waits until the move `distance` before this one has completed. Distances of 32 and more hold
  /// anyway (window), 0 means no dependency.
  constexpr Build& after(std::uint32_t distance) {
    if (distance >= 1 && distance <= 32) move_.dependencies |= std::uint32_t{1} << (distance - 1);
    return *this;
  }
  /// Waits until the `moves` moves before this one have completed.
  constexpr Build& after_all(std::uint32_t moves) {
    move_.dependencies |= moves >= 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << moves) - 1;
    return *this;
  }
  /// Element k waits for element k of the move `distance` (1 .. 31) before this one; 0 means none.
  constexpr Build& stream_after(std::uint32_t distance) {
    if (distance == 0) return *this;
    if (move_.segment_dependency0 == 0) {
      move_.segment_dependency0 = static_cast<std::uint8_t>(distance);
    } else {
      move_.segment_dependency1 = static_cast<std::uint8_t>(distance);
    }
    return *this;
  }
  /// A function other than the call's, whatever the operands. To be set last.
  constexpr Build& function(Func func) {
    move_.func = func;
    return *this;
  }
  constexpr operator const Move&() const { return move_; }  // NOLINT(google-explicit-constructor)

 private:
  static constexpr Operand memory(Place place) {
    return {OperandKind::kMemory, Cast::kNone, place.region, place.indirect, place.offset};
  }
  constexpr Build& pair() {
    if (move_.op0.kind != OperandKind::kNone && move_.op1.kind != OperandKind::kNone) move_.func = func_;
    return *this;
  }

  Move move_{};
  Func func_ = Func::kNone;
};

}  // namespace unisono::build
