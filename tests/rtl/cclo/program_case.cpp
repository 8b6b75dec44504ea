#include "tests/rtl/cclo/program_case.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "platform/device/registers.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/random_programs.hpp"

namespace unisono::rtl {

namespace {

/// Each list once: a long program names the same ones again and again.
void share_lists(Program& program) {
  std::map<std::vector<std::uint32_t>, std::uint32_t> places;
  std::vector<std::uint32_t> pool;
  const auto place = [&](std::uint32_t at) {
    const auto begin = program.pool.begin() + at;
    const std::vector<std::uint32_t> list(begin, begin + 1 + *begin);
    const auto [found, made] = places.emplace(list, static_cast<std::uint32_t>(pool.size()));
    if (made) pool.insert(pool.end(), list.begin(), list.end());
    return found->second;
  };
  for (Move& move : program.moves) {
    if (move.op1.kind == OperandKind::kArrival && move.arrival.mode == PeerMode::kList) {
      move.arrival.peer = place(move.arrival.peer);
    }
    if (move.remote.kind != RemoteKind::kNone && move.remote.mode == PeerMode::kList) {
      move.remote.peer = place(move.remote.peer);
    }
  }
  program.pool = std::move(pool);
}

std::size_t held(const Program& program) { return std::min<std::size_t>(program.moves.size(), kLoadedMoves); }

}  // namespace

void store_rest(sim::Node& node, const Program& program, std::uint64_t rest) {
  std::vector<std::uint64_t> words;
  for (const Move& move : std::span(program.moves).subspan(held(program))) {
    for (const std::uint64_t word : encode(move)) words.push_back(word);
  }
  if (!words.empty()) node.store(rest, std::as_bytes(std::span(words)));
}

bool load(sim::Host& host, std::uint32_t slot, const Program& program, std::uint32_t signature, std::uint64_t rest) {
  host.write(registers::kProgramSlot, slot);
  for (const std::uint32_t word : program.pool) host.write(registers::kProgramList, word);
  if (program.moves.size() > kLoadedMoves) {
    host.write(registers::kProgramRestAddress, static_cast<std::uint32_t>(rest));
    host.write(registers::kProgramRestAddress + 4, static_cast<std::uint32_t>(rest >> 32U));
    host.write(registers::kProgramRestMoves, static_cast<std::uint32_t>(program.moves.size() - kLoadedMoves));
  }
  for (const Move& move : std::span(program.moves).first(held(program))) {
    for (const std::uint64_t words : encode(move)) {
      host.write(registers::kProgramMove, static_cast<std::uint32_t>(words));
      host.write(registers::kProgramMove, static_cast<std::uint32_t>(words >> 32U));
    }
  }
  host.write(registers::kProgramLoad, signature);
  return (host.read(registers::kProgramState) >> slot & 1U) != 0;
}

std::optional<ProgramCase> ProgramCase::make(std::uint32_t seed, std::uint32_t size, std::uint32_t block,
                                             std::uint32_t steps) {
  test::Generator generator(seed, size, block, false);
  ProgramCase made;
  made.dtype = generator.dtype();
  // Not in this engine.
  if (made.dtype == Datatype::kComplex64) return std::nullopt;
  made.programs = generator.run(steps);
  for (Program& program : made.programs) {
    if (steps > kSteps) share_lists(program);
    if (program.moves.size() > (steps > kSteps ? kProgramMoves : kLoadedMoves) || program.pool.size() > kLoadedWords)
      return std::nullopt;
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
