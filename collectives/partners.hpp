// Schedules of who exchanges with whom. Freestanding.
#pragma once

#include <cstdint>

#include "collectives/build.hpp"
#include "collectives/powers.hpp"

namespace unisono::build {

/// Whom a rank sends to and receives from in a step of a pairwise all-to-all.
struct Exchange {
  std::uint32_t to;
  std::uint32_t from;
};

/// Step s = 1 .. P-1: over all steps every rank is met once in each direction. For a power of two both
/// are one partner.
constexpr Exchange exchange_in_step(std::uint32_t rank, std::uint32_t s, std::uint32_t size) {
  if (is_power_of_two(size)) return {rank ^ s, rank ^ s};
  return {plus(rank, s, size), minus(rank, s, size)};
}

/// Partner in round s = 0 .. P-1 of a schedule in which ranks meet in pairs, for any P: the partner's
/// partner is the rank. Over all rounds a rank meets every rank once, itself included.
constexpr std::uint32_t partner_in_round(std::uint32_t rank, std::uint32_t s, std::uint32_t size) {
  return is_power_of_two(size) ? rank ^ s : minus(s, rank, size);
}

}  // namespace unisono::build
