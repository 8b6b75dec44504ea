#include "platform/device/loaded_programs.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/text.hpp"
#include "platform/device/lost.hpp"
#include "platform/device/registers.hpp"

namespace unisono {

std::span<const Move> LoadedPrograms::rest_of(const cclo::CheckedProgram& program) {
  const std::span<const Move> moves(program.program.moves);
  return moves.subspan(std::min<std::size_t>(moves.size(), kLoadedMoves));
}

void LoadedPrograms::check_size(const cclo::CheckedProgram& program, const cclo::Communicator& communicator) {
  const auto refuse = [&](ErrorCode code, const std::string& what) {
    throw Error(code, formatted("program on communicator {}: {}", communicator.number, what));
  };
  const std::size_t moves = program.program.moves.size(), words = program.program.pool.size();
  if (moves > kProgramMoves || words > kLoadedWords) {
    refuse(ErrorCode::kCapacity,
           formatted("rank {} has {} moves and {} words of peer lists; a device holds {} and {} of a program",
                     communicator.rank, moves, words, kProgramMoves, kLoadedWords));
  }
  if (program.writes_params) refuse(ErrorCode::kUnsupported, "it writes its own params, which a device cannot do");
}

std::uint32_t LoadedPrograms::place_of(const cclo::CallState& call) const {
  if (call.call.collective != Collective::kProgram) return kNone;
  const auto found = std::find_if(places_.begin(), places_.end(), [&](const Place& one) {
    return one.program == call.program && one.signature == call.signature;
  });
  return found == places_.end() ? kNone : static_cast<std::uint32_t>(found - places_.begin());
}

void LoadedPrograms::forget(const cclo::CallState& spared) {
  const std::uint32_t kept = place_of(spared);
  for (std::uint32_t at = 0; at < places_.size(); ++at) {
    if (places_[at].users == 0 && places_[at].rest && at != kept) places_[at] = {};
  }
}

std::uint32_t LoadedPrograms::use(std::uint32_t place) {
  ++places_[place].users;
  places_[place].used = ++called_;
  return place;
}

std::optional<std::uint32_t> LoadedPrograms::take(const cclo::CallState& call, std::shared_ptr<DeviceImage> rest) {
  if (const std::uint32_t there = place_of(call); there != kNone) return use(there);
  std::vector<std::uint32_t> free;
  for (std::uint32_t at = 0; at < places_.size(); ++at) {
    if (places_[at].users == 0) free.push_back(at);
  }
  std::sort(free.begin(), free.end(), [&](auto a, auto b) { return places_[a].used < places_[b].used; });
  for (const std::uint32_t at : free) {
    if (!load(at, call, rest)) continue;
    places_[at] = {call.program, call.signature, 0, 0, std::move(rest)};
    return use(at);
  }
  return std::nullopt;
}

/// False if the place is not free: one that never had a program may still be giving out a call that was kept there.
bool LoadedPrograms::load(std::uint32_t place, const cclo::CallState& call, const std::shared_ptr<DeviceImage>& rest) {
  device_.write(registers::kProgramSlot, place);
  if ((device_.read(registers::kProgramState) & registers::kProgramRefused) != 0) return false;
  const Program& program = call.program->program;
  for (const std::uint32_t word : program.pool) device_.write(registers::kProgramList, word);
  const std::span<const Move> beyond = rest_of(*call.program);
  if (rest) {
    std::vector<std::uint64_t> words;
    for (const Move& move : beyond) {
      for (const std::uint64_t word : encode(move)) words.push_back(word);
    }
    device_.store(rest->address, std::as_bytes(std::span(words)));
    const std::array<std::uint32_t, 3> there_it_is{static_cast<std::uint32_t>(rest->address),
                                                   static_cast<std::uint32_t>(rest->address >> 32U),
                                                   static_cast<std::uint32_t>(beyond.size())};
    device_.write(registers::kProgramRestAddress, there_it_is);
  }
  for (const Move& move : std::span(program.moves).first(program.moves.size() - beyond.size())) {
    for (const std::uint64_t words : encode(move)) {
      device_.write(registers::kProgramMove, static_cast<std::uint32_t>(words));
      device_.write(registers::kProgramMove, static_cast<std::uint32_t>(words >> 32U));
    }
  }
  device_.write(registers::kProgramLoad, call.signature);
  if ((device_.read(registers::kProgramState) >> place & 1U) == 0) {
    lost(formatted("it does not take a program of {} moves", program.moves.size()));
  }
  return true;
}

}  // namespace unisono
