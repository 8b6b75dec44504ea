// Random mixes of calls on several communicators, many in flight, all results checked.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <random>
#include <string>

#include "tests/cpp/engine/ranks.hpp"

namespace unisono::test {
namespace {

constexpr std::uint32_t kCommunicators = 3;

/// Element i that a rank brings to call `step`.
std::int32_t element(std::uint32_t step, std::uint32_t rank, std::uint64_t i) {
  return static_cast<std::int32_t>(step * 7919U + rank * 104'729U + static_cast<std::uint32_t>(i) * 31U);
}

/// One call that all ranks make, as all of them draw it from the same numbers.
struct Plan {
  std::uint32_t step = 0;
  std::uint32_t communicator = 0;
  Collective collective = Collective::kBarrier;
  int algorithm = -1;
  std::uint64_t count = 0;
  std::uint32_t root = 0;
  std::uint32_t source = 0;  ///< of a message, to `root`
  std::uint32_t tag = 0;
};

Plan draw(std::mt19937& random, std::uint32_t step, std::uint32_t size) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  static constexpr Collective kKinds[] = {Collective::kSend,      Collective::kSend,         Collective::kBcast,
                                          Collective::kReduce,    Collective::kScan,         Collective::kAllreduce,
                                          Collective::kAllreduce, Collective::kBarrier,      Collective::kAllgather,
                                          Collective::kAlltoall,  Collective::kGather,       Collective::kScatter,
                                          Collective::kExscan,    Collective::kReduceScatter};
  Plan plan;
  plan.step = step;
  plan.communicator = below(kCommunicators);
  plan.collective = kKinds[below(std::size(kKinds))];
  static constexpr std::uint32_t kSizes[] = {1, 20, 300, 5'000};
  plan.count = below(8) == 0 ? 0 : 1 + below(kSizes[below(4)]);
  if (below(40) == 0) plan.count = 100'000;
  plan.root = below(size);
  plan.source = below(size);
  plan.tag = below(3);
  std::vector<int> choices{-1};
  Call call;
  call.collective = plan.collective;
  call.dtype = plan.collective == Collective::kBarrier ? Datatype::kNone : Datatype::kInt32;
  call.func = Func::kSum;
  call.size = size;
  call.root = plan.root;
  call.count = plan.collective == Collective::kBarrier ? 0 : plan.count;
  const auto table = algorithms();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].collective == plan.collective && (table[i].admits == nullptr || table[i].admits(call))) {
      choices.push_back(static_cast<int>(i));
    }
  }
  plan.algorithm = choices[below(static_cast<std::uint32_t>(choices.size()))];
  return plan;
}

/// A call in flight with its buffers, on one rank.
struct Flight {
  Plan plan;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  CallId id = 0;
  std::vector<std::int32_t> src, dst;

  std::int32_t sum(std::uint64_t i, std::uint32_t ranks) const {
    std::uint32_t total = 0;
    for (std::uint32_t r = 0; r < ranks; ++r) total += static_cast<std::uint32_t>(element(plan.step, r, i));
    return static_cast<std::int32_t>(total);
  }

  /// What stands at dst[i] afterwards, if anything.
  bool expect(std::uint64_t i, std::int32_t& value) const {
    const std::uint64_t n = plan.count;
    const bool root = rank == plan.root;
    const auto block = static_cast<std::uint32_t>(n == 0 ? 0 : i / n);
    switch (plan.collective) {
      case Collective::kSend:
        value = element(plan.step, plan.source, i);
        return root && i < n;
      case Collective::kBcast:
        value = element(plan.step, plan.root, i);
        return i < n;
      case Collective::kReduce:
        value = sum(i, size);
        return root && i < n;
      case Collective::kAllreduce:
        value = sum(i, size);
        return i < n;
      case Collective::kScan:
        value = sum(i, rank + 1);
        return i < n;
      case Collective::kExscan:
        value = sum(i, rank);
        return rank > 0 && i < n;
      case Collective::kReduceScatter:
        value = sum(rank * n + i, size);
        return i < n;
      case Collective::kAllgather:
        value = element(plan.step, block, i % std::max<std::uint64_t>(n, 1));
        return true;
      case Collective::kGather:
        value = element(plan.step, block, i % std::max<std::uint64_t>(n, 1));
        return root;
      case Collective::kScatter:
        value = element(plan.step, plan.root, rank * n + i);
        return i < n;
      case Collective::kAlltoall:
        value = element(plan.step, block, rank * n + i % std::max<std::uint64_t>(n, 1));
        return true;
      default:
        return false;
    }
  }

  void check() const {
    for (std::uint64_t i = 0; i < plan.count * size; ++i) {
      std::int32_t value = 0;
      if (!expect(i, value) || dst[i] == value) continue;
      const char* algorithm =
          plan.algorithm < 0 ? "automatic" : algorithms()[static_cast<std::size_t>(plan.algorithm)].name;
      throw Error(ErrorCode::kInternal, std::string("wrong result of step ") + std::to_string(plan.step) + ", " +
                                            name_of(plan.collective) + " by " + algorithm + ", count " +
                                            std::to_string(plan.count) + ", root " + std::to_string(plan.root) +
                                            ", rank " + std::to_string(rank) + ", element " + std::to_string(i) + ": " +
                                            std::to_string(dst[i]) + " instead of " + std::to_string(value));
    }
  }
};

void stress(Rank& self, std::uint32_t seed, std::uint32_t steps) {
  for (std::uint32_t c = 1; c <= kCommunicators; ++c) {
    std::vector<std::uint32_t> members(self.size);
    std::iota(members.begin(), members.end(), 0U);
    self.engine.create_communicator(c, 0, members, self.agreed);
  }
  std::mt19937 common(seed);
  std::mt19937 own(seed * 31 + self.rank);  // timing and order of completion differ from rank to rank
  std::deque<std::unique_ptr<Flight>> flights;
  std::uint64_t in_flight = 0;
  const auto land = [&](std::size_t at) {
    Flight& flight = *flights[at];
    self.finish(flight.id);
    flight.check();
    in_flight -= flight.plan.count;
    flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (std::uint32_t step = 0; step < steps; ++step) {
    const Plan plan = draw(common, step, self.size);
    const bool message = plan.collective == Collective::kSend;
    for (const bool receives : {true, false}) {
      if (message && self.rank != (receives ? plan.root : plan.source)) continue;
      if (!message && receives) continue;
      auto flight = std::make_unique<Flight>();
      flight->plan = plan;
      flight->rank = self.rank;
      flight->size = self.size;
      flight->src.resize(plan.count * self.size);
      for (std::uint64_t i = 0; i < flight->src.size(); ++i) flight->src[i] = element(step, self.rank, i);
      flight->dst.assign(plan.count * self.size, -1);
      if (plan.collective == Collective::kBcast && self.rank == plan.root) {
        std::copy_n(flight->src.begin(), plan.count, flight->dst.begin());
      }
      CallRequest r = request<std::int32_t>(plan.collective, plan.count, plan.root, Func::kSum);
      if (message) {
        r.call.collective = receives ? Collective::kRecv : Collective::kSend;
        r.call.root = receives ? plan.source : plan.root;
        r.tag = plan.tag;
        if (!receives) flight->plan.root = self.size;  // nothing to check on the sending end
      }
      if (!message) r.algorithm = plan.algorithm;
      r.communicator = 1 + plan.communicator;
      r.src = bind(flight->src);
      r.dst = bind(flight->dst);
      flight->id = self.engine.submit(r);
      in_flight += plan.count;
      flights.push_back(std::move(flight));
    }
    switch (own() % 8) {
      case 0:
        std::this_thread::yield();
        break;
      case 1:
        self.engine.progress();
        break;
      case 2:
        std::this_thread::sleep_for(microseconds(own() % 200));
        break;
      default:
        break;
    }
    // Every rank has submitted all before this, so any of them must come to its end.
    while (flights.size() > 40 || in_flight > 400'000 || (!flights.empty() && own() % 16 == 0)) {
      land(own() % flights.size());
    }
  }
  while (!flights.empty()) land(own() % flights.size());
}

TEST(Stress, RandomCallsInFlightGiveTheirResults) {
  // More by hand: UNISONO_STRESS_SECONDS.
  const char* text = std::getenv("UNISONO_STRESS_SECONDS");
  const auto end = std::chrono::steady_clock::now() + seconds(text != nullptr ? std::atoi(text) : 8);
  const char* first = std::getenv("UNISONO_STRESS_SEED");
  std::uint32_t seed = first != nullptr ? static_cast<std::uint32_t>(std::atoi(first)) : 1;
  for (; std::chrono::steady_clock::now() < end; ++seed) {
    EngineSettings settings = quick_settings();
    settings.timeout = seconds(30);
    static constexpr std::uint32_t kLimits[] = {0, 64, 4096, 40'000};
    static constexpr std::uint32_t kSegments[] = {64, 1024, 32'768};
    settings.eager_limit = kLimits[seed % 4];
    settings.segment_bytes = kSegments[seed % 3];
    settings.rx_buffer_count = 1 + seed % 5;
    const std::uint32_t size = 1 + seed % 5;
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_THROW(run_ranks(size, settings, [&](Rank& self) { stress(self, seed, 150); }));
  }
}

}  // namespace
}  // namespace unisono::test
