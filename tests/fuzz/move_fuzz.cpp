// Moves of any bits, and the rules that a program of them must obey.
#include "core/program_check.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Program program;
  const std::uint32_t ranks = 1 + input.up_to(300);
  program.params_bytes = std::uint64_t{input.take<std::uint8_t>()} * 8;
  for (std::uint32_t words = input.up_to(12); words > 0; --words) program.pool.push_back(input.take<std::uint16_t>());
  while (!input.empty()) {
    const auto words = input.take<std::array<std::uint64_t, kMoveWords>>();
    const Move move = decode_move(words);
    if (well_formed_move(words)) claim(encode(move) == words, "a well-formed move is encoded as it came");
    program.moves.push_back(move);
  }
  const auto malformation = check_program(program, ranks);
  if (malformation) {
    claim(malformation->move < std::max<std::size_t>(1, program.moves.size()), "the move named is one of the program");
    claim(!malformation->text.empty(), "a broken rule is named");
  }
  return 0;
}
