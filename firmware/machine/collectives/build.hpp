// Vocabulary in which collectives write their moves: collectives/build.hpp of the microcontroller, which stands before
// the other in the compiler's search path. Each word is one instruction: the move is put together by the
// custom-function unit, and the core keeps nothing of it but its ticket.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/place.hpp"
#include "collectives/split.hpp"
#include "core/call.hpp"
#include "core/emit.hpp"
#include "firmware/machine/port.hpp"

namespace unisono::build {

class Build {
 public:
  UNISONO_INLINE explicit Build(const Call& call) {
    static_assert(offsetof(Call, func) == 1 && offsetof(Call, dtype) == 2 && alignof(Call) >= 4);
    using Word [[gnu::may_alias]] = std::uint32_t;
    ticket_ = port::ask<port::kGroupBuild, port::kBuildBegin>(*reinterpret_cast<const Word*>(&call));
  }

  UNISONO_INLINE Build& take(Place place) { return at<port::kPlaceTake>(place); }
  UNISONO_INLINE Build& take_stream(std::uint32_t port) { return set<port::kBuildTakeStream>(port); }
  UNISONO_INLINE Build& with(Place place) { return at<port::kPlaceWith>(place); }
  UNISONO_INLINE Build& arrive(std::uint32_t peer, std::uint32_t tag) { return arrive(PeerMode::kRank, peer, tag); }
  UNISONO_INLINE Build& arrive(PeerMode mode, std::uint32_t list, std::uint32_t tag) {
    return peer<port::kPeerArrive>(mode, list, tag);
  }
  UNISONO_INLINE Build& fetch(std::uint32_t peer, Region region, std::uint64_t offset) {
    return fetch(PeerMode::kRank, peer, region, offset);
  }
  UNISONO_INLINE Build& fetch(PeerMode mode, std::uint32_t list, Region region, std::uint64_t offset) {
    return peer<port::kPeerFetch>(mode, list, 0).at<port::kPlaceRemote>({region, offset, false});
  }
  UNISONO_INLINE Build& keep(Place place) { return at<port::kPlaceKeep>(place); }
  UNISONO_INLINE Build& keep_stream(std::uint32_t port) { return set<port::kBuildKeepStream>(port); }
  UNISONO_INLINE Build& send(std::uint32_t peer, std::uint32_t tag) { return send(PeerMode::kRank, peer, tag); }
  UNISONO_INLINE Build& send(PeerMode mode, std::uint32_t list, std::uint32_t tag) {
    return peer<port::kPeerSend>(mode, list, tag);
  }
  UNISONO_INLINE Build& store(std::uint32_t peer, Region region, std::uint64_t offset) {
    return store(PeerMode::kRank, peer, region, offset);
  }
  UNISONO_INLINE Build& store(PeerMode mode, std::uint32_t list, Region region, std::uint64_t offset) {
    return peer<port::kPeerStore>(mode, list, 0).at<port::kPlaceRemote>({region, offset, true});
  }
  UNISONO_INLINE Build& count(std::uint64_t elements) { return set<port::kBuildCount>(low(elements), high(elements)); }
  UNISONO_INLINE Build& count_at(std::uint32_t word) {
    const std::uint64_t offset = std::uint64_t{word} * 8;
    return set<port::kBuildCountIndirect>(low(offset), high(offset));
  }
  UNISONO_INLINE Build& signal() { return set<port::kBuildSignal>(); }
  UNISONO_INLINE Build& arrival_first(bool yes = true) { return set<port::kBuildSwap>(yes ? 1 : 0); }
  UNISONO_INLINE Build& after(std::uint32_t distance) { return set<port::kBuildAfter>(distance); }
  UNISONO_INLINE Build& after_all(std::uint32_t moves) { return set<port::kBuildAfterAll>(moves); }
  UNISONO_INLINE Build& stream_after(std::uint32_t distance) {
    if (__builtin_constant_p(distance) != 0 && distance == 0) return *this;
    return set<port::kBuildStreamAfter>(distance);
  }
  UNISONO_INLINE Build& function(Func func) { return set<port::kBuildFunction>(static_cast<std::uint32_t>(func)); }

  /// Proves to the unit that the move it holds is this one.
  UNISONO_INLINE std::uint32_t ticket() const { return ticket_; }

 private:
  UNISONO_INLINE static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  UNISONO_INLINE static std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32U); }

  template <std::uint32_t Operation>
  UNISONO_INLINE Build& set(std::uint32_t first = 0, std::uint32_t second = 0) {
    port::tell<port::kGroupBuild, Operation>(first, second);
    return *this;
  }

  template <std::uint32_t Which, std::uint32_t Region, bool Indirect>
  UNISONO_INLINE Build& at(std::uint64_t offset) {
    port::tell<port::kGroupPlace, Which | Region << 2U | (Indirect ? 1U : 0U) << 5U>(low(offset), high(offset));
    return *this;
  }
  // The region is part of the instruction where the compiler knows it, which is nearly everywhere.
  template <std::uint32_t Which>
  UNISONO_INLINE Build& at(Place place) {
    const std::uint32_t region = static_cast<std::uint32_t>(place.region);
    if (__builtin_constant_p(region) != 0 && __builtin_constant_p(place.indirect) != 0) {
      switch (region | (place.indirect ? 8U : 0U)) {
        case 0:
          return at<Which, 0, false>(place.offset);
        case 1:
          return at<Which, 1, false>(place.offset);
        case 2:
          return at<Which, 2, false>(place.offset);
        case 3:
          return at<Which, 3, false>(place.offset);
        case 4:
          return at<Which, 4, false>(place.offset);
        case 8:
          return at<Which, 0, true>(place.offset);
        case 9:
          return at<Which, 1, true>(place.offset);
        case 10:
          return at<Which, 2, true>(place.offset);
        case 12:
          return at<Which, 4, true>(place.offset);
        default:
          break;
      }
    }
    const std::uint32_t second = high(place.offset) | region << 24U | (place.indirect ? 1U : 0U) << 31U;
    port::tell<port::kGroupPlace, Which | 1U << 6U>(low(place.offset), second);
    return *this;
  }

  template <std::uint32_t What>
  UNISONO_INLINE Build& peer(PeerMode mode, std::uint32_t peer, std::uint32_t tag) {
    switch (mode) {
      case PeerMode::kRank:
        port::tell<port::kGroupPeer, What>(peer, tag);
        break;
      case PeerMode::kList:
        port::tell<port::kGroupPeer, What | 1U << 2U>(peer, tag);
        break;
      case PeerMode::kAny:
        port::tell<port::kGroupPeer, What | 2U << 2U>(peer, tag);
        break;
    }
    return *this;
  }

  std::uint32_t ticket_;
};

}  // namespace unisono::build
