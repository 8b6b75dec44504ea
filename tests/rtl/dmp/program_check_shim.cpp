// check_program for one move, callable from Python: the C++ engine's own check is what the decoder is compared with.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/program_check.hpp"

// Writes why the move is malformed to `text` (empty if it is not); returns whether it is malformed. Before the move
// stand others that it may depend on, and params is as large as can be.
extern "C" int unisono_check_move(const std::uint64_t* words, std::uint32_t size, const std::uint32_t* pool,
                                  std::uint32_t pool_words, char* text, std::uint32_t text_bytes) {
  std::array<std::uint64_t, unisono::kMoveWords> raw{};
  std::memcpy(raw.data(), words, sizeof raw);
  std::strncpy(text, "reserved", text_bytes);
  if (!unisono::well_formed_move(raw)) return 1;
  unisono::Program program;
  program.pool.assign(pool, pool + pool_words);
  program.params_bytes = ~std::uint64_t{7};
  unisono::Move before;
  before.kind = unisono::MoveKind::kMove;
  before.dtype = unisono::Datatype::kInt32;
  before.count_indirect = true;
  before.op0.kind = unisono::OperandKind::kMemory;
  before.local.kind = unisono::OperandKind::kMemory;
  program.moves.assign(40, before);
  program.moves.push_back(unisono::decode_move(raw));
  const auto found = unisono::check_program(program, size);
  std::strncpy(text, found ? found->text.c_str() : "", text_bytes);
  return found && found->move == 40 ? 1 : found ? -1 : 0;
}
