// Program files (docs/program-files.md).
#include "core/program_file.hpp"
#include "driver/objects.hpp"
#include "engine/lower.hpp"

namespace unisono::driver {

ProgramSet parse_programs(std::span<const std::byte> bytes) {
  ProgramFile file = parse_program_file(bytes);
  ProgramSet set;
  for (Program& program : file.programs) set.ranks.push_back(std::make_shared<const Program>(std::move(program)));
  set.lanes_carry = cclo::lanes_carry(set.ranks);
  set.region_bytes = std::move(file.region_bytes);
  return set;
}

}  // namespace unisono::driver
