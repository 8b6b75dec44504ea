#include "reference/reduction_order.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"

namespace unisono::reference {
namespace {

std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 30U;
  value *= 0xbf58476d1ce4e5b9ULL;
  value ^= value >> 27U;
  value *= 0x94d049bb133111ebULL;
  return value ^ value >> 31U;
}

}  // namespace

ReductionOrder reduction_order(const Algorithm& algorithm, const Call& call) {
  if (!is_reduction(call.collective)) {
    throw Error(ErrorCode::kUnsupported, std::string(name_of(call.collective)) + " does not reduce");
  }
  Job job = make_job(algorithm, call);
  Interpreter interpreter(job);
  const SymbolRun run = interpreter.run_symbols(Policy::generous());
  if (run.finding) throw Error(ErrorCode::kInternal, "the program of " + std::string(algorithm.name) + " is wrong");
  std::unordered_map<Symbol, std::uint64_t> known;
  ReductionOrder result;
  for (std::uint32_t rank = 0; rank < call.size; ++rank) {
    if (call.collective == Collective::kReduce && rank != call.root) continue;
    const auto& cells = run.memory[rank][static_cast<std::size_t>(Region::kDst)];
    const std::uint64_t parts = bytes_of(call.dtype) / interpreter.lowered().cell_bytes(Region::kDst);
    std::vector<std::uint64_t> shapes;
    std::uint64_t of_rank = mix(rank + 1);
    std::uint64_t before = 0;
    std::uint64_t repeated = 0;
    for (std::uint64_t element = 0; element < call.count; ++element) {
      const Symbol value = interpreter.symbols().join(&cells[element * parts], static_cast<std::uint32_t>(parts));
      const std::uint64_t shape = interpreter.symbols().shape(value, known);
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
      // Where orders change matters, and how many elements have the last one does not.
      if (element != 0 && shape != before) of_rank = mix(of_rank ^ mix(before + repeated));
      repeated = shape == before ? repeated + 1 : 1;
      before = shape;
    }
    result.orders = std::max(result.orders, static_cast<std::uint32_t>(shapes.size()));
    result.hash = mix(result.hash ^ mix(of_rank + before));
  }
  return result;
}

}  // namespace unisono::reference
