#include "tests/rtl/cclo/program_case.hpp"

#include "platform/device/registers.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/random_programs.hpp"

namespace unisono::rtl {

bool load(sim::Host& host, std::uint32_t slot, const Program& program, std::uint32_t signature) {
  host.write(registers::kProgramSlot, slot);
  for (const std::uint32_t word : program.pool) host.write(registers::kProgramList, word);
  for (const Move& move : program.moves) {
    for (const std::uint64_t words : encode(move)) {
      host.write(registers::kProgramMove, static_cast<std::uint32_t>(words));
      host.write(registers::kProgramMove, static_cast<std::uint32_t>(words >> 32U));
    }
  }
  host.write(registers::kProgramLoad, signature);
  return (host.read(registers::kProgramState) >> slot & 1U) != 0;
}

std::optional<ProgramCase> ProgramCase::make(std::uint32_t seed, std::uint32_t size, std::uint32_t block) {
  test::Generator generator(seed, size, block, false);
  ProgramCase made;
  made.dtype = generator.dtype();
  // Not in this engine.
  if (made.dtype == Datatype::kComplex64) return std::nullopt;
  made.programs = generator.run(12);
  for (const Program& program : made.programs) {
    if (program.moves.size() > kLoadedMoves || program.pool.size() > kLoadedWords) return std::nullopt;
  }
  for (std::uint32_t r = 0; r < size; ++r) made.inputs.push_back({generator.data(r, 0), generator.data(r, 1), {}});
  const reference::Job job = reference::make_job(made.programs, made.dtype, generator.src_bytes(), generator.bytes());
  made.expected = reference::interpret(job, made.inputs);
  return made;
}

CallDescriptor ProgramCase::call(std::uint32_t rank, std::uint32_t slot, std::uint32_t communicator, std::uint32_t id,
                                 std::uint64_t address) const {
  CallDescriptor call;
  call.collective = Collective::kProgram;
  call.dtype = dtype;
  call.communicator = communicator;
  call.src_address = src(address);
  call.src_bytes = inputs[rank].src.size();
  call.dst_address = dst(address);
  call.dst_bytes = inputs[rank].dst.size();
  call.scratch_address = address + (std::uint64_t{2} << 20U);
  call.scratch_bytes = programs[rank].scratch_bytes;
  call.call_id = id;
  call.program = slot;
  return call;
}

}  // namespace unisono::rtl
