#include "driver/objects.hpp"

namespace unisono::driver {

ProgramSet parse_programs(std::span<const std::byte> /*bytes*/) { return {}; }

}  // namespace unisono::driver
