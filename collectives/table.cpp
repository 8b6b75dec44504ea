// What others see of the table of algorithms.
#include "collectives/table.hpp"

namespace unisono {

namespace {

constexpr bool is_sorted_by_collective() {
  for (std::size_t i = 1; i < collectives::kTable.size(); ++i) {
    if (collectives::kTable[i - 1].collective > collectives::kTable[i].collective) return false;
  }
  return true;
}

static_assert(is_sorted_by_collective());
static_assert(collectives::kTable.size() < 255, "a call descriptor holds the position plus one in 8 bits");

}  // namespace

std::span<const Algorithm> algorithms() { return collectives::kTable; }

int find_algorithm(Collective collective, const char* name) { return collectives::position(collective, name); }

}  // namespace unisono
