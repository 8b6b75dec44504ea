// Runs a generator to its end and keeps the program. For hosts; the freestanding build does not include it.
#pragma once

#include "collectives/generate.hpp"
#include "core/program.hpp"

namespace unisono {

/// The program of `call.rank` for `call` by `algorithm`, which must admit the call.
inline Program record(const Algorithm& algorithm, const Call& call) {
  Program program;
  EmitSink sink;
  sink.context = &program;
  sink.move = [](void* context, const Move& move) { static_cast<Program*>(context)->moves.push_back(move); };
  sink.pool_word = [](void* context, std::uint32_t word) { static_cast<Program*>(context)->pool.push_back(word); };
  Emit emit(sink);
  const std::uint32_t steps = generation_steps(algorithm, call);
  for (std::uint32_t s = 0; s < steps; ++s) generation_step(algorithm, call, s, emit);
  if (algorithm.scratch_bytes != nullptr) program.scratch_bytes = algorithm.scratch_bytes(call);
  if (algorithm.params_words != nullptr) program.params_bytes = std::uint64_t{8} * algorithm.params_words(call);
  return program;
}

}  // namespace unisono
