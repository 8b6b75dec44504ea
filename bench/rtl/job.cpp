#include "bench/rtl/job.hpp"

#include <algorithm>
#include <ctime>
#include <span>
#include <string>

#include "collectives/algorithm.hpp"

namespace unisono::bench {
namespace {

constexpr std::uint64_t kRegionStep = std::uint64_t{1} << 26U;
constexpr std::uint64_t kLimit = 20'000'000;  ///< cycles after which a call is taken for hanging

struct Lengths {
  std::uint64_t src = 0, dst = 0;  ///< elements
};

/// Of a rank's regions (docs/model.md, rule 17).
Lengths lengths_of(const Work& work, std::uint32_t rank, std::uint32_t size) {
  const std::uint64_t one = work.count, all = work.count * size;
  const bool root = rank == work.root;
  switch (work.collective) {
    case Collective::kBcast:
      return {0, one};
    case Collective::kReduce:
      return {one, root ? one : 0};
    case Collective::kAllreduce:
    case Collective::kScan:
      return {one, one};
    case Collective::kReduceScatter:
      return {all, one};
    case Collective::kAllgather:
      return {one, all};
    case Collective::kGather:
      return {one, root ? all : 0};
    case Collective::kScatter:
      return {root ? all : 0, one};
    case Collective::kAlltoall:
      return {all, all};
    default:
      return {0, 0};
  }
}

std::span<const std::byte> bytes_of_values(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

std::uint64_t place_of(std::uint32_t rank, std::uint32_t region) {
  return sim::Node::kMemoryAddress + region * kRegionStep + 16 * (region + rank);
}

float value_of(std::uint32_t salt, std::uint32_t rank, std::uint64_t index) {
  std::uint64_t x = (std::uint64_t{salt} << 40U) ^ (std::uint64_t{rank} << 32U) ^ index;
  x = (x ^ (x >> 31U)) * 0x9e3779b97f4a7c15ULL;
  x ^= x >> 29U;
  return static_cast<float>(static_cast<int>(x % 2001) - 1000);
}

std::vector<float> values_of(std::uint32_t salt, std::uint32_t rank, std::uint64_t count) {
  std::vector<float> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = value_of(salt, rank, i);
  return values;
}

Simulation& simulation() {
  static Simulation the_one;
  return the_one;
}

namespace {

sim::ClusterConfig simulated(sim::ClusterConfig config) {
  config.skip = simulation().skip;
  config.threads = simulation().threads;
  return config;
}

double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

Job::~Job() {
  Simulation::Pace& pace = simulation().paces[cluster_.nodes()];
  pace.cycles += static_cast<double>(cluster_.cycle());
  pace.evaluated += static_cast<double>(cluster_.cycle()) * cluster_.evaluated();
  pace.seconds += seconds() - began_;
}

Job::Job(const sim::ClusterConfig& config) : cluster_(simulated(config)), began_(seconds()) {
  for (std::uint32_t node = 0; node < cluster_.nodes(); ++node) {
    hosts_.emplace_back(cluster_, node);
    hosts_[node].run();
  }
}

void Job::create(std::uint32_t place, const sim::Host::Agreed& agreed) {
  const std::uint32_t number = 77 + communicators_++;
  for (auto& host : hosts_) host.create_communicator(place, number, size(), agreed);
}

void Job::tick() {
  cluster_.tick();
  if (hook_) hook_();
}

void Job::settle(std::uint64_t cycles) {
  for (std::uint64_t i = 0; i < cycles; ++i) tick();
}

void Job::call(std::uint32_t node, const CallDescriptor& descriptor) {
  if (cluster_.node(node).calling()) throw std::logic_error("a kernel calls before its call before was taken");
  cluster_.node(node).call(encode(descriptor));
}

std::uint64_t Job::answer_of(std::uint32_t node, std::uint32_t id) {
  auto& answers = cluster_.node(node).answers();
  for (std::uint64_t waited = 0; answers.empty(); ++waited) {
    if (waited == kLimit) throw std::runtime_error("node " + std::to_string(node) + " answers nothing");
    tick();
  }
  const sim::Node::Answer answer = answers.front();
  answers.pop_front();
  if (answer.call_id != id || answer.code != 0) {
    throw std::runtime_error("node " + std::to_string(node) + ": call " + std::to_string(answer.call_id) +
                             " was answered with " + name_of(static_cast<ErrorCode>(answer.code)) +
                             ", expected was call " + std::to_string(id));
  }
  return answer.cycle;
}

Outcome Job::run(const Work& work) {
  const std::uint32_t id = next_id();
  const bool nothing = work.collective == Collective::kBarrier;
  Call call;
  call.collective = work.collective;
  const bool reduces = work.collective == Collective::kReduce || work.collective == Collective::kAllreduce ||
                       work.collective == Collective::kReduceScatter || work.collective == Collective::kScan;
  call.func = reduces ? Func::kSum : Func::kNone;
  call.dtype = nothing ? Datatype::kNone : Datatype::kFp32;
  call.size = size();
  call.root = work.root;
  call.count = work.count;

  Outcome outcome;
  std::vector<CallDescriptor> descriptors(size());
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    call.rank = rank;
    std::uint64_t scratch = 0;
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective == work.collective && algorithm.scratch_bytes != nullptr && !algorithm.direct &&
          (algorithm.admits == nullptr || algorithm.admits(call))) {
        scratch = std::max(scratch, algorithm.scratch_bytes(call));
      }
    }
    const Lengths lengths = lengths_of(work, rank, size());
    CallDescriptor& descriptor = descriptors[rank];
    descriptor.collective = call.collective;
    descriptor.algorithm = static_cast<std::uint8_t>(work.algorithm + 1);
    descriptor.func = call.func;
    descriptor.dtype = call.dtype;
    descriptor.communicator = work.place;
    descriptor.root = call.root;
    descriptor.count = call.count;
    descriptor.call_id = id;
    descriptor.src_address = place_of(rank, 0);
    descriptor.src_bytes = 4 * lengths.src;
    descriptor.dst_address = place_of(rank, 1);
    descriptor.dst_bytes = 4 * lengths.dst;
    descriptor.scratch_address = place_of(rank, 2);
    descriptor.scratch_bytes = scratch;
    const bool source_is_dst = work.collective == Collective::kBcast;
    outcome.source_bytes = std::max(outcome.source_bytes, 4 * (source_is_dst ? lengths.dst : lengths.src));
    outcome.result_bytes = std::max(outcome.result_bytes, 4 * lengths.dst);
    if (lengths.src != 0)
      cluster_.node(rank).store(place_of(rank, 0), bytes_of_values(values_of(id, rank, lengths.src)));
    // What stands there before must not be what is expected afterwards.
    std::vector<float> before(lengths.dst, -7777.0F);
    if (source_is_dst && rank == work.root) before = values_of(id, rank, lengths.dst);
    if (lengths.dst != 0) cluster_.node(rank).store(place_of(rank, 1), bytes_of_values(before));
  }
  for (std::uint32_t rank = 0; rank < size(); ++rank) cluster_.node(rank).forget_first_sent();
  const std::uint64_t start = now();
  for (std::uint32_t rank = 0; rank < size(); ++rank) this->call(rank, descriptors[rank]);
  outcome.first_done = ~std::uint64_t{0};
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const std::uint64_t cycles = answer_of(rank, id) - start;
    outcome.cycles = std::max(outcome.cycles, cycles);
    outcome.first_done = std::min(outcome.first_done, cycles);
  }
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const std::uint64_t sent = cluster_.node(rank).first_sent();
    if (sent != 0 && (outcome.first_word == 0 || sent - start < outcome.first_word)) outcome.first_word = sent - start;
  }
  check(work, id);
  return outcome;
}

void Job::check_barrier(std::uint32_t place) {
  constexpr std::uint64_t kLate = 3000;  // cycles, more than a barrier takes
  CallDescriptor descriptor;
  descriptor.collective = Collective::kBarrier;
  descriptor.communicator = place;
  descriptor.call_id = next_id();
  for (std::uint32_t rank = 0; rank + 1 < size(); ++rank) call(rank, descriptor);
  settle(kLate);
  const std::uint64_t entered = now();
  call(size() - 1, descriptor);
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (answer_of(rank, descriptor.call_id) < entered) {
      throw WrongResult("rank " + std::to_string(rank) + " left a barrier that the last rank had not entered");
    }
  }
}

void Job::check(const Work& work, std::uint32_t salt) {
  const bool sums = work.collective == Collective::kReduce || work.collective == Collective::kAllreduce ||
                    work.collective == Collective::kReduceScatter || work.collective == Collective::kScan;
  std::vector<std::vector<float>> inputs(size());
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const std::uint64_t length =
        work.collective == Collective::kBcast || work.collective == Collective::kScatter
            ? (rank == work.root ? work.count * (work.collective == Collective::kBcast ? 1 : size()) : 0)
            : lengths_of(work, rank, size()).src;
    inputs[rank] = values_of(salt, rank, length);
  }
  std::vector<float> running;
  if (sums) {
    running.assign(inputs[0].size(), 0.0F);
    if (work.collective != Collective::kScan) {
      for (const auto& input : inputs) {
        for (std::size_t i = 0; i < running.size(); ++i) running[i] += input[i];
      }
    }
  }
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    std::vector<float> expected;
    const auto append = [&](const std::vector<float>& from, std::uint64_t block) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(block * work.count);
      expected.insert(expected.end(), begin, begin + static_cast<std::ptrdiff_t>(work.count));
    };
    if (work.collective == Collective::kScan) {
      for (std::size_t i = 0; i < running.size(); ++i) running[i] += inputs[rank][i];
    }
    const std::uint64_t length = lengths_of(work, rank, size()).dst;
    if (length == 0) continue;
    switch (work.collective) {
      case Collective::kBcast:
        expected = inputs[work.root];
        break;
      case Collective::kReduce:
      case Collective::kAllreduce:
      case Collective::kScan:
        expected = running;
        break;
      case Collective::kReduceScatter:
        append(running, rank);
        break;
      case Collective::kAllgather:
      case Collective::kGather:
        for (const auto& input : inputs) append(input, 0);
        break;
      case Collective::kScatter:
        append(inputs[work.root], rank);
        break;
      case Collective::kAlltoall:
        for (const auto& input : inputs) append(input, rank);
        break;
      default:
        break;
    }
    std::vector<float> got(length);
    cluster_.node(rank).load(place_of(rank, 1), std::as_writable_bytes(std::span(got)));
    if (got != expected) {
      const auto [at, want] = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end());
      throw WrongResult(std::string(name_of(work.collective)) + " of " + std::to_string(work.count) + " elements on " +
                        std::to_string(size()) + " ranks: rank " + std::to_string(rank) + " has " +
                        std::to_string(*at) + " in element " + std::to_string(at - got.begin()) + ", expected was " +
                        std::to_string(*want));
    }
  }
}

}  // namespace unisono::bench
