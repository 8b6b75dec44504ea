// In the place of collectives/words.hpp: nobody reads texts here, and they would take a sixth of the memory.
#pragma once

namespace unisono {

struct Words {
  constexpr Words() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): written as a text
  consteval Words(const char* /*text*/) {}
};

}  // namespace unisono
