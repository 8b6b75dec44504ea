#include "reference/interpreter.hpp"

#include <algorithm>
#include <cstring>

#include "core/arithmetic.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "reference/machine.hpp"
#include "reference/symbol_domain.hpp"

namespace unisono::reference {

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

  static constexpr bool arranges() { return false; }
  void arrange(std::vector<std::byte>&, std::size_t) {}

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
    mean(dtype, value.data(), value.data(), count, lowered_.job().members());
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
  leaves_.memory.resize(job.size());
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    for (const Region region : {Region::kSrc, Region::kDst, Region::kWindow}) {
      const auto r = static_cast<std::size_t>(region);
      leaves_.memory[rank][r] = symbols_.make_leaves(rank, static_cast<std::uint32_t>(region),
                                                     (job.region_bytes[rank][r] + element - 1) / element);
    }
  }
  for (const StreamInput& stream : job.streams) {
    leaves_.streams.push_back(
        symbols_.make_leaves(stream.rank, kStreamRegion + stream.port, stream.bytes.size() / element));
  }
}

Interpreter::~Interpreter() = default;

SymbolRun Interpreter::run_symbols(const Policy& policy, bool record_events) {
  SymbolRun run;
  run.finding = lowered_.finding();
  if (run.finding) return run;
  run.all_orders = policy.all_orders;
  SymbolDomain domain(lowered_, symbols_, leaves_, run);
  Machine<SymbolDomain>(lowered_, domain, run, policy, record_events).run();
  return run;
}

std::optional<Finding> Interpreter::compare(const SymbolRun& one, const SymbolRun& other, const std::string& what) {
  const bool any = !(one.all_orders && other.all_orders) && uses_any(lowered_.job());
  const auto same = [&](Symbol x, Symbol y) {
    return x == y || (any && symbols_.normal_form(x) == symbols_.normal_form(y));
  };
  for (std::uint32_t rank = 0; rank < lowered_.job().size(); ++rank) {
    for (const Region region : {Region::kSrc, Region::kDst, Region::kWindow}) {
      const auto& x = one.memory[rank][static_cast<std::size_t>(region)];
      const auto& y = other.memory[rank][static_cast<std::size_t>(region)];
      const auto differs = std::mismatch(x.begin(), x.end(), y.begin(), same).first;
      if (differs == x.end()) continue;
      const auto at = static_cast<std::size_t>(differs - x.begin());
      Finding finding;
      finding.kind = FindingKind::kUnstable;
      finding.rank = rank;
      finding.text = formatted("r{}.{}[{}] is {} in one schedule, and {} in {}", rank, unisono::name_of(region), at,
                               symbols_.text(x[at]), symbols_.text(y[at]), what);
      return finding;
    }
  }
  return std::nullopt;
}

NumberRun Interpreter::run_numbers(const std::vector<RankInput>& inputs, const Policy& policy, bool record_events) {
  NumberRun run;
  run.finding = lowered_.finding();
  if (run.finding) return run;
  NumberDomain domain(lowered_, inputs, run);
  Machine<NumberDomain>(lowered_, domain, run, policy, record_events).run();
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
