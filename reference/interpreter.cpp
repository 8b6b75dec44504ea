#include "reference/interpreter.hpp"

#include <bit>
#include <cstring>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "reference/machine.hpp"

namespace unisono::reference {

// Values are expressions; memory is an array of cells per region.
class Interpreter::SymbolDomain {
 public:
  using Unit = Symbol;

  SymbolDomain(Interpreter& owner, SymbolRun& run) : lowered_(owner.lowered_), table_(owner.symbols_), run_(run) {
    const Job& job = lowered_.job();
    run_.memory.resize(job.size());
    std::vector<Symbol> whole;
    for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
      for (const Region region : kAllRegion) {
        const auto r = static_cast<std::size_t>(region);
        const std::uint64_t cell = lowered_.cell_bytes(region);
        std::vector<Symbol>& cells = run_.memory[rank][r];
        cells.assign((job.region_bytes[rank][r] + cell - 1) / cell, kUninitialised);
        if (region == Region::kScratch) continue;
        if (region == Region::kParams) {
          const std::uint32_t parts = static_cast<std::uint32_t>(8 / cell);
          for (std::size_t word = 0; word < job.params[rank].size(); ++word) {
            const Symbol value = table_.constant(job.params[rank][word]);
            for (std::uint32_t p = 0; p < parts && word * parts + p < cells.size(); ++p) {
              cells[word * parts + p] = parts == 1 ? value : table_.part(value, p, parts);
            }
          }
          continue;
        }
        const std::uint32_t parts = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, bytes_of(job.dtype)) / cell);
        const Symbol first = owner.first_leaf_[rank][r];
        for (std::size_t i = 0; i < cells.size(); ++i) {
          const Symbol leaf = first + static_cast<Symbol>(i / parts);
          cells[i] = parts == 1 ? leaf : table_.part(leaf, static_cast<std::uint32_t>(i % parts), parts);
        }
      }
    }
    inputs_.resize(job.streams.size());
    const std::uint32_t element = std::max<std::uint32_t>(1, bytes_of(job.dtype));
    for (std::size_t i = 0; i < job.streams.size(); ++i) {
      const std::size_t count = job.streams[i].bytes.size() / element;
      for (std::size_t k = 0; k < count; ++k) {
        const Symbol leaf = owner.first_stream_leaf_[i] + static_cast<Symbol>(k);
        inputs_[i].push(&leaf, 1);
      }
    }
  }

  static std::size_t units(std::uint32_t) { return 1; }

  bool read(std::uint32_t rank, Region region, std::uint64_t offset, std::uint32_t element, std::uint64_t count,
            Symbol* out) {
    const std::uint64_t cell = lowered_.cell_bytes(region);
    const auto parts = static_cast<std::uint32_t>(element / cell);
    const Symbol* cells = run_.memory[rank][static_cast<std::size_t>(region)].data() + offset / cell;
    bool written = true;
    for (std::uint64_t i = 0; i < count; ++i) {
      out[i] = parts == 1 ? cells[i] : table_.join(cells + i * parts, parts);
      written = written && out[i] != kUninitialised;
    }
    return written;
  }
  void write(std::uint32_t rank, Region region, std::uint64_t offset, std::uint32_t element, std::uint64_t count,
             const Symbol* values) {
    const std::uint64_t cell = lowered_.cell_bytes(region);
    const auto parts = static_cast<std::uint32_t>(element / cell);
    Symbol* cells = run_.memory[rank][static_cast<std::size_t>(region)].data() + offset / cell;
    for (std::uint64_t i = 0; i < count; ++i) {
      for (std::uint32_t p = 0; p < parts; ++p) {
        cells[i * parts + p] = parts == 1 ? values[i] : table_.part(values[i], p, parts);
      }
    }
  }
  bool parameter(std::uint32_t rank, std::uint64_t offset, std::uint64_t& value) {
    Symbol symbol = kUninitialised;
    read(rank, Region::kParams, offset, 8, 1, &symbol);
    if (!table_.is_constant(symbol)) return false;
    value = table_.constant_value(symbol);
    return true;
  }

  void fold_begin(Datatype, std::vector<Symbol>& value, std::uint64_t) { folded_ = &value; }
  void fold_step(Func func, Datatype, bool swap, const std::vector<Symbol>& operand, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      Symbol& value = (*folded_)[i];
      value = swap ? table_.combine(func, operand[i], value) : table_.combine(func, value, operand[i]);
    }
  }
  void fold_end(Datatype, std::vector<Symbol>&, std::uint64_t) {}
  void divide(Datatype, std::vector<Symbol>& value, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) value[i] = table_.divide(value[i]);
  }

  std::size_t stream_units(std::uint32_t rank, std::uint64_t port) const {
    const auto& streams = lowered_.job().streams;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].rank == rank && streams[i].port == port) return inputs_[i].size();
    }
    return 0;
  }
  void pop_stream(std::uint32_t rank, std::uint64_t port, Symbol* out, std::size_t count) {
    const auto& streams = lowered_.job().streams;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].rank == rank && streams[i].port == port) return inputs_[i].pop(out, count);
    }
  }
  void push_stream(std::uint32_t rank, std::uint64_t port, const Symbol* values, std::size_t count) {
    for (auto& stream : run_.streams) {
      if (stream.rank == rank && stream.port == port) {
        stream.values.insert(stream.values.end(), values, values + count);
        return;
      }
    }
    run_.streams.push_back({rank, static_cast<std::uint32_t>(port), {values, values + count}});
  }

 private:
  const Lowered& lowered_;
  SymbolTable& table_;
  SymbolRun& run_;
  std::vector<Fifo<Symbol>> inputs_;
  std::vector<Symbol>* folded_ = nullptr;
};

// Values are bytes.
class Interpreter::NumberDomain {
 public:
  using Unit = std::byte;

  NumberDomain(const Lowered& lowered, const std::vector<RankInput>& inputs, NumberRun& run)
      : lowered_(lowered), run_(run) {
    const Job& job = lowered_.job();
    run_.memory.resize(job.size());
    for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
      for (std::size_t r = 0; r < kRegions; ++r) run_.memory[rank][r].resize(job.region_bytes[rank][r]);
      const auto fill = [&](Region region, const std::vector<std::byte>& bytes) {
        auto& memory = run_.memory[rank][static_cast<std::size_t>(region)];
        std::copy_n(bytes.begin(), std::min(bytes.size(), memory.size()), memory.begin());
      };
      if (rank < inputs.size()) {
        fill(Region::kSrc, inputs[rank].src);
        fill(Region::kDst, inputs[rank].dst);
        fill(Region::kWindow, inputs[rank].window);
      }
      auto& params = run_.memory[rank][static_cast<std::size_t>(Region::kParams)];
      if (!params.empty()) std::memcpy(params.data(), job.params[rank].data(), params.size());
    }
    inputs_.resize(job.streams.size());
    for (std::size_t i = 0; i < job.streams.size(); ++i) {
      inputs_[i].push(job.streams[i].bytes.data(), job.streams[i].bytes.size());
    }
  }

  static std::size_t units(std::uint32_t element) { return element; }

  bool read(std::uint32_t rank, Region region, std::uint64_t offset, std::uint32_t element, std::uint64_t count,
            std::byte* out) {
    std::memcpy(out, run_.memory[rank][static_cast<std::size_t>(region)].data() + offset, count * element);
    return true;
  }
  void write(std::uint32_t rank, Region region, std::uint64_t offset, std::uint32_t element, std::uint64_t count,
             const std::byte* values) {
    std::memcpy(run_.memory[rank][static_cast<std::size_t>(region)].data() + offset, values, count * element);
  }
  bool parameter(std::uint32_t rank, std::uint64_t offset, std::uint64_t& value) {
    std::memcpy(&value, run_.memory[rank][static_cast<std::size_t>(Region::kParams)].data() + offset, 8);
    return true;
  }

  void fold_begin(Datatype dtype, const std::vector<std::byte>& value, std::uint64_t count) {
    accumulator_.resize(count * accumulator_bytes(dtype));
    unisono::fold_begin(dtype, value.data(), accumulator_.data(), count);
  }
  void fold_step(Func func, Datatype dtype, bool swap, const std::vector<std::byte>& operand, std::uint64_t count) {
    unisono::fold_step(func, dtype, swap, accumulator_.data(), operand.data(), count);
  }
  void fold_end(Datatype dtype, std::vector<std::byte>& value, std::uint64_t count) {
    value.resize(count * bytes_of(dtype));
    unisono::fold_end(dtype, accumulator_.data(), value.data(), count);
  }
  void divide(Datatype dtype, std::vector<std::byte>& value, std::uint64_t count) {
    mean(dtype, value.data(), value.data(), count, lowered_.job().size());
  }

  std::size_t stream_units(std::uint32_t rank, std::uint64_t port) const {
    const auto& streams = lowered_.job().streams;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].rank == rank && streams[i].port == port) return inputs_[i].size();
    }
    return 0;
  }
  void pop_stream(std::uint32_t rank, std::uint64_t port, std::byte* out, std::size_t count) {
    const auto& streams = lowered_.job().streams;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].rank == rank && streams[i].port == port) return inputs_[i].pop(out, count);
    }
  }
  void push_stream(std::uint32_t rank, std::uint64_t port, const std::byte* values, std::size_t count) {
    for (StreamInput& stream : run_.streams) {
      if (stream.rank == rank && stream.port == port) {
        stream.bytes.insert(stream.bytes.end(), values, values + count);
        return;
      }
    }
    run_.streams.push_back({rank, static_cast<std::uint32_t>(port), {values, values + count}});
  }

 private:
  const Lowered& lowered_;
  NumberRun& run_;
  std::vector<Fifo<std::byte>> inputs_;
  std::vector<std::byte> accumulator_;
};

namespace {

const Job& checked(const Job& job) {
  if (job.region_bytes.size() != job.size() || job.params.size() != job.size() || job.size() == 0) {
    throw Error(
        ErrorCode::kInvalidArgument,
        formatted(
            "a job of {} programs with region sizes of {} and params of {} ranks; all must be equal and at least 1",
            job.size(), job.region_bytes.size(), job.params.size()));
  }
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    if (job.params[rank].size() * 8 != job.bytes(rank, Region::kParams) ||
        job.programs[rank].params_bytes > job.bytes(rank, Region::kParams)) {
      throw Error(
          ErrorCode::kInvalidArgument,
          formatted("rank {} has {} params words in a region of {} bytes, and its program asks for {}", rank,
                    job.params[rank].size(), job.bytes(rank, Region::kParams), job.programs[rank].params_bytes));
    }
  }
  return job;
}

}  // namespace

Interpreter::Interpreter(const Job& job) : lowered_(checked(job)) {
  const std::uint64_t element = std::max<std::uint64_t>(1, bytes_of(job.dtype));
  first_leaf_.resize(job.size());
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    for (const Region region : {Region::kSrc, Region::kDst, Region::kWindow}) {
      const auto r = static_cast<std::size_t>(region);
      first_leaf_[rank][r] = symbols_.make_leaves(rank, static_cast<std::uint32_t>(region),
                                                  (job.region_bytes[rank][r] + element - 1) / element);
    }
  }
  for (const StreamInput& stream : job.streams) {
    first_stream_leaf_.push_back(
        symbols_.make_leaves(stream.rank, kStreamRegion + stream.port, stream.bytes.size() / element));
  }
}

Interpreter::~Interpreter() = default;

SymbolRun Interpreter::run_symbols(const Policy& policy, bool record_events) {
  SymbolRun run;
  run.finding = lowered_.finding();
  if (run.finding) return run;
  SymbolDomain domain(*this, run);
  Machine<SymbolDomain>(lowered_, domain, policy, record_events).run(run);
  return run;
}

NumberRun Interpreter::run_numbers(const std::vector<RankInput>& inputs, const Policy& policy, bool record_events) {
  NumberRun run;
  run.finding = lowered_.finding();
  if (run.finding) return run;
  NumberDomain domain(lowered_, inputs, run);
  Machine<NumberDomain>(lowered_, domain, policy, record_events).run(run);
  return run;
}

std::vector<std::vector<std::byte>> interpret(const Job& job, const std::vector<RankInput>& inputs,
                                              const Policy& policy) {
  NumberRun run = Interpreter(job).run_numbers(inputs, policy);
  if (run.finding) {
    throw Error(ErrorCode::kMalformedProgram,
                describe(job) + ": " + name_of(run.finding->kind) + ": " + run.finding->text);
  }
  std::vector<std::vector<std::byte>> result;
  for (auto& regions : run.memory) result.push_back(std::move(regions[static_cast<std::size_t>(Region::kDst)]));
  return result;
}

}  // namespace unisono::reference
