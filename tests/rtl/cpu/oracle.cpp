// What the native build of the collectives says, for comparison with the microcontroller, behind a C interface.
#include <cstdint>
#include <cstring>
#include <vector>

#include "collectives/record.hpp"
#include "collectives/tuning.hpp"
#include "core/arithmetic.hpp"
#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "core/operators.hpp"
#include "core/signature.hpp"

namespace {

using namespace unisono;

struct CallFields {
  std::uint32_t collective, func, dtype, in_place, rank, size, root, group_size;
  std::uint64_t count;
};

Call call_of(const CallFields& fields) {
  Call call;
  call.collective = static_cast<Collective>(fields.collective);
  call.func = static_cast<Func>(fields.func);
  call.dtype = static_cast<Datatype>(fields.dtype);
  call.in_place = fields.in_place != 0;
  call.rank = fields.rank;
  call.size = fields.size;
  call.root = fields.root;
  call.group_size = fields.group_size;
  call.count = fields.count;
  return call;
}

Program program;

}  // namespace

extern "C" {

/// Records a program. Gives moves, pool words, bytes of src, dst, scratch and params, and the signature.
void oracle_record(const CallFields* fields, int position, std::uint32_t eager_limit, std::uint64_t* out) {
  const Call call = call_of(*fields);
  program = record(algorithms()[static_cast<std::size_t>(position)], call);
  const Footprint used = footprint_of(call);
  out[0] = program.moves.size();
  out[1] = program.pool.size();
  out[2] = used.src * element_bytes(call);
  out[3] = used.dst * element_bytes(call);
  out[4] = program.scratch_bytes;
  out[5] = program.params_bytes;
  out[6] = signature_of(call, AgreedTerms{static_cast<std::uint32_t>(position) + 1, eager_limit, Datatype::kNone, 0});
}
void oracle_copy(std::uint64_t* moves, std::uint32_t* pool) {
  for (const Move& move : program.moves) {
    const auto words = encode(move);
    std::memcpy(moves, words.data(), sizeof words);
    moves += words.size();
  }
  std::memcpy(pool, program.pool.data(), program.pool.size() * 4);
}
/// Whether all fields of all moves of the recorded program fit the encoding.
int oracle_fits() {
  for (const Move& move : program.moves) {
    if (!fits(move)) return 0;
  }
  return 1;
}
int oracle_algorithms() { return static_cast<int>(algorithms().size()); }
const char* oracle_name(int position) { return algorithms()[static_cast<std::size_t>(position)].name; }
int oracle_collective(int position) {
  return static_cast<int>(algorithms()[static_cast<std::size_t>(position)].collective);
}
int oracle_direct(int position) { return algorithms()[static_cast<std::size_t>(position)].direct ? 1 : 0; }
int oracle_admits(const CallFields* fields, int position) {
  const Algorithm& algorithm = algorithms()[static_cast<std::size_t>(position)];
  return algorithm.admits == nullptr || algorithm.admits(call_of(*fields)) ? 1 : 0;
}
int oracle_choose(const CallFields* fields, int crowded) {
  return choose_algorithm(call_of(*fields), Tuning{{}, crowded != 0});
}
/// The first pair of operator and datatype on which core/facts.hpp and core/arithmetic.hpp disagree, or -1.
int oracle_operators() {
  for (const Datatype dtype : kAllDatatype) {
    for (const Func func : kAllFunc) {
      if (is_user(func)) continue;
      const bool stated = (kOperatorsOn[static_cast<std::size_t>(dtype)] >> static_cast<unsigned>(func) & 1U) != 0;
      if (stated != is_operator(func, dtype)) return static_cast<int>(dtype) * 256 + static_cast<int>(func);
    }
  }
  for (const Collective collective : kAllCollective) {
    if (facts_of(collective).mean != takes_mean(collective)) return 65536 + static_cast<int>(collective);
  }
  return -1;
}
}
