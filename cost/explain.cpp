#include "cost/explain.hpp"

#include <algorithm>
#include <bit>

#include "core/facts.hpp"
#include "core/footprint.hpp"

namespace unisono::cost {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20U;

const Algorithm& at(int position) { return algorithms()[static_cast<std::size_t>(position)]; }

bool admits(Call call, const Algorithm& algorithm) {
  call.direct = algorithm.direct;
  return algorithm.admits == nullptr || algorithm.admits(call);
}

/// Whether `a` is quicker than `b` for so many elements; nothing if one does not admit the call.
std::optional<bool> quicker(Call call, std::uint64_t count, NamedAlgorithm a, NamedAlgorithm b,
                            const Machine& machine) {
  call.count = count;
  if (!admits(call, at(a.position)) || !admits(call, at(b.position))) return std::nullopt;
  const auto price = [&](NamedAlgorithm named) {
    call.direct = at(named.position).direct;
    call.radix = named.radix;
    return predict(call, at(named.position), machine).time.total;
  };
  return price(a) < price(b);
}

/// By what factors sizes are tried. Each trial walks two programs, which of so many ranks takes a second.
std::uint32_t stride_of(const Call& call) {
  constexpr std::uint32_t kManyRanks = 256;
  return call.size < kManyRanks ? 2 : 16;
}

/// The count nearest to the call's, by factors of `stride_of`, at which the order of two algorithms changes.
std::optional<std::uint64_t> crossover(const Call& call, NamedAlgorithm a, NamedAlgorithm b, const Machine& machine) {
  const std::uint32_t stride = stride_of(call);
  const std::optional<bool> here = quicker(call, call.count, a, b, machine);
  if (!here || call.count == 0) return std::nullopt;
  const std::uint64_t most = std::max<std::uint64_t>(kMostBytes / element_bytes(call) / call.size, call.count);
  std::uint64_t up = call.count;
  std::uint64_t down = call.count;
  while (up < most || down > 1) {
    for (const bool rising : {true, false}) {
      const std::uint64_t near = rising ? up : down;
      const std::uint64_t far = rising ? std::min(up * stride, most) : std::max<std::uint64_t>(down / stride, 1);
      (rising ? up : down) = far;
      if (far == near) continue;
      const std::optional<bool> there = quicker(call, far, a, b, machine);
      if (!there || *there == *here) continue;
      // Between the two it changes; a few halvings say where well enough.
      std::uint64_t same = near;
      std::uint64_t other = far;
      const int halvings = 5 + std::countr_zero(stride);
      for (int i = 0; i < halvings && (same > other ? same - other : other - same) > 1; ++i) {
        const std::uint64_t middle = same / 2 + other / 2 + (same % 2 + other % 2) / 2;
        const std::optional<bool> between = quicker(call, middle, a, b, machine);
        (between && *between == *here ? same : other) = middle;
      }
      return other;
    }
  }
  return std::nullopt;
}

}  // namespace

Explanation explain(Call call, bool reachable, const Tuning& tuning, const Machine& machine,
                    const NamedAlgorithm* named) {
  Explanation result;
  result.priced = !tuning.hosts || !machine.host_of.empty();
  if (tuning.hosts) reachable = false;
  Call agreed = call;
  // An exchange of blocks that differ agrees on no count, unless it is in place.
  if (facts_of(call.collective).pairwise() && !call.in_place) agreed.count = 0;
  // Nor does one whose counts the root alone need know.
  if (counts_at_root(call.collective) && named == nullptr) agreed.count = kUnknownCount;
  agreed.direct = false;
  const Choice plain = choose(agreed, tuning);
  agreed.direct = call.size > 1;
  const Choice direct = choose(agreed, tuning);
  // As the engine does it: a direct call is tried only where the rules have a direct algorithm for it.
  const bool asks = agreed.direct && direct.position >= 0 && at(direct.position).direct && !tuning.hosts;
  result.choice = asks && reachable ? direct : plain;
  if (asks && !reachable && call.count != 0) {
    result.asked_in_vain = machine.sync * (call.size - 1) + machine.line;
  }

  if (named != nullptr) {
    const Algorithm& algorithm = at(named->position);
    if (!admits(call, algorithm) || (algorithm.direct && !reachable)) {
      throw Error(ErrorCode::kUnsupported,
                  std::string("algorithm ") + algorithm.name + " does not admit this call: " + algorithm.restriction);
    }
    result.choice = {named->position, nullptr, named->radix};
    result.asked_in_vain = 0;
  }

  const auto consider = [&](int position, std::uint8_t radix) {
    const Algorithm& algorithm = at(position);
    Candidate candidate;
    candidate.position = position;
    candidate.radix = radix;
    call.direct = algorithm.direct;
    call.radix = radix;
    candidate.admitted = admits(call, algorithm) && (reachable || !algorithm.direct);
    if (candidate.admitted) candidate.prediction = predict(call, algorithm, machine, tuning.hosts);
    if (!result.priced) candidate.prediction.time = {};
    result.candidates.push_back(candidate);
  };
  for (std::size_t i = 0; i < algorithms().size(); ++i) {
    if (algorithms()[i].collective == call.collective) consider(static_cast<int>(i), 0);
  }
  if (result.choice.radix != 0) consider(result.choice.position, result.choice.radix);
  std::stable_sort(result.candidates.begin(), result.candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.admitted != b.admitted) return a.admitted;
    return a.prediction.time.total < b.prediction.time.total;
  });
  if (!result.priced) return result;
  for (const Candidate& candidate : result.candidates) {
    const bool chosen = candidate.position == result.choice.position && candidate.radix == result.choice.radix;
    if (candidate.admitted && !chosen) {
      result.runner_up = candidate.position;
      break;
    }
  }
  if (result.choice.position >= 0 && result.runner_up >= 0) {
    result.crossover_stride = stride_of(call);
    if (const auto count =
            crossover(call, {result.choice.position, result.choice.radix}, {result.runner_up, 0}, machine)) {
      result.crossover = *count * element_bytes(call);
    }
  }
  return result;
}

}  // namespace unisono::cost
