// Calls that are ended in the middle: what they held comes back, late messages do no harm, other calls go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "collectives/algorithm.hpp"
#include "collectives/build.hpp"
#include "core/footprint.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/rtl/core/machine.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint64_t kFirstRegion = std::uint64_t{8} << 20U;  // receive buffers stand below
constexpr std::uint64_t kRegionStep = std::uint64_t{32} << 10U;
constexpr std::uint64_t kLargeRegionStep = std::uint64_t{1} << 20U;  // for two calls at a time
constexpr std::uint32_t kBuffers = 1024;

using Places = std::array<std::pair<std::uint64_t, std::uint64_t>, 5>;

const Algorithm& algorithm_of(Collective collective, const std::string& name) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective && algorithm.name == name) return algorithm;
  }
  throw std::runtime_error("no algorithm " + name);
}

struct Choice {
  Collective collective;
  const char* name;
};
constexpr std::array kChoices{
    Choice{Collective::kAllreduce, "ring"},    Choice{Collective::kAllreduce, "recursive_doubling"},
    Choice{Collective::kAlltoall, "pairwise"}, Choice{Collective::kBcast, "chain"},
    Choice{Collective::kReduce, "linear"},     Choice{Collective::kAllgather, "ring"},
    Choice{Collective::kAllreduce, "flat"},    Choice{Collective::kGather, "linear"},
};

struct OneCall {
  reference::Job job;
  std::vector<reference::RankInput> inputs;
  std::uint32_t sequence = 0;
  std::uint32_t slot = 0;
  std::uint32_t place = 0;  ///< of its regions
  std::uint64_t step = kRegionStep;
  std::uint32_t regions = 5;
  bool dies = false;
  std::vector<std::uint64_t> begins, ends;  ///< cycles, by rank; ends only if it dies
  std::vector<bool> begun, over;
  std::vector<std::vector<std::byte>> dst;
};

Places places_of(const OneCall& call, std::uint32_t rank) {
  Places places{};
  for (std::size_t region = 0; region < call.regions; ++region) {
    places[region] = {kFirstRegion + (call.place * call.regions + region) * call.step + 16 * (region + rank),
                      call.job.region_bytes[rank][region]};
  }
  return places;
}

void fill(OneCall& one, std::mt19937_64& random) {
  const std::uint32_t ranks = one.job.size();
  one.inputs.resize(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    one.inputs[rank].src.resize(one.job.bytes(rank, Region::kSrc));
    one.inputs[rank].dst.resize(one.job.bytes(rank, Region::kDst));
    for (auto* bytes : {&one.inputs[rank].src, &one.inputs[rank].dst}) {
      for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
    }
  }
  one.begun.assign(ranks, false);
  one.over.assign(ranks, false);
  one.dst.resize(ranks);
}

void plan(OneCall& one, std::mt19937_64& random, std::uint64_t now, bool dies, std::uint64_t length) {
  one.dies = dies;
  for (std::uint32_t rank = 0; rank < one.job.size(); ++rank) {
    one.begins.push_back(now + random() % length);
    // Now and then a rank comes when all others have given up.
    if (dies && random() % 4 == 0) one.begins.back() += 3000;
    one.ends.push_back(one.begins.back() + random() % length);
  }
}

OneCall random_call(std::mt19937_64& random, std::uint32_t ranks, std::uint64_t now, bool dies) {
  OneCall one;
  const Choice choice = kChoices[random() % kChoices.size()];
  const Algorithm& algorithm = algorithm_of(choice.collective, choice.name);
  Call call;
  call.collective = choice.collective;
  call.func = reference::is_reduction(choice.collective) ? Func::kSum : Func::kNone;
  call.dtype = Datatype::kInt32;
  call.size = ranks;
  call.root = reference::is_rooted(choice.collective) ? static_cast<std::uint32_t>(random() % ranks) : 0;
  call.count = std::array<std::uint64_t, 4>{5, 200, 900, 1900}[random() % 4];
  one.job = reference::make_job(algorithm, call);
  fill(one, random);
  plan(one, random, now, dies, 1500);
  return one;
}

/// Moves that follow one another by segments: what has come, or has been made, is sent on, added to and sent on.
/// Messages of a pair are short and long by turns, so both lanes and both protocols meet.
class RandomPrograms {
 public:
  RandomPrograms(std::mt19937_64& random, std::uint32_t ranks) : random_(random), programs_(ranks), made_(ranks) {
    call_.collective = Collective::kAllreduce;
    call_.func = Func::kSum;
    call_.dtype = Datatype::kInt32;
    call_.size = ranks;
    call_.count = 1;
    counts_ = {1 + random_() % 40, 1 + random_() % 256, 257 + random_() % 1200, 4000 + random_() % 3000};
    for (std::uint32_t tag = 0; tag < 50; ++tag) add(tag);
  }
  reference::Job job() const {
    reference::Job job = reference::make_job(programs_, call_.dtype, 4 * kSource, 4 * kDestination);
    job.call = call_;
    return job;
  }

 private:
  static constexpr std::uint64_t kSource = 12'000, kDestination = 125'000;  // elements
  struct Made {
    std::size_t move = 0;
    std::uint64_t at = 0, count = 0;
  };

  bool flips() { return random_() % 2 == 0; }
  /// An operand, and what the move must follow: by segments what has the same count.
  build::Place operand(std::uint32_t rank, std::uint64_t count, build::Build& move) {
    const std::vector<Made>& made = made_[rank];
    const std::size_t back = 1 + random_() % 6;
    if (back <= made.size()) {
      const Made& one = made[made.size() - back];
      const auto distance = static_cast<std::uint32_t>(programs_[rank].moves.size() - one.move);
      if (one.count == count && distance < 32) {
        move.stream_after(distance);
      } else {
        move.after(distance);
      }
      if (one.count >= count) return build::dst(4 * one.at);
    }
    return {Region::kSrc, 4 * (random_() % (kSource - count))};
  }
  build::Place keep(std::uint32_t rank, std::uint64_t count) {
    made_[rank].push_back({programs_[rank].moves.size(), at_, count});
    at_ += count;
    if (at_ > kDestination) throw std::runtime_error("the programs are too long");
    return build::dst(4 * made_[rank].back().at);
  }
  void add(std::uint32_t tag) {
    const auto ranks = static_cast<std::uint32_t>(programs_.size());
    const auto from = static_cast<std::uint32_t>(random_() % ranks);
    const auto to = static_cast<std::uint32_t>((from + 1 + random_() % (ranks - 1)) % ranks);
    const auto further = static_cast<std::uint32_t>((to + 1 + random_() % (ranks - 1)) % ranks);
    if (tag % 7 == 3) {
      programs_[from].moves.push_back(build::Build(call_).send(to, tag).signal());
      programs_[to].moves.push_back(build::Build(call_).arrive(from, tag).signal());
      return;
    }
    const std::uint64_t count = counts_[tag % 10 == 0 ? 3 : random_() % 3];
    const bool adds = flips(), arrives_at_sum = flips(), passes_on = flips(), keeps = !passes_on || flips();
    build::Build first(call_), second(call_), third(call_);
    const build::Place own = operand(from, count, first);
    const build::Place other = operand(from, count, first);
    const build::Place there = operand(to, count, second);
    first.take(own);
    if (adds) first.with(other);
    if (adds && flips()) first.keep(keep(from, count));
    first.send(to, tag).count(count);
    if (arrives_at_sum) second.take(there);
    second.arrive(from, tag);
    if (keeps) second.keep(keep(to, count));
    if (passes_on) second.send(further, tag);
    second.count(count);
    programs_[from].moves.push_back(first);
    programs_[to].moves.push_back(second);
    if (passes_on) {
      third.arrive(to, tag).keep(keep(further, count)).count(count);
      programs_[further].moves.push_back(third);
    }
  }

  std::mt19937_64& random_;
  Call call_;
  std::vector<Program> programs_;
  std::vector<std::vector<Made>> made_;
  std::array<std::uint64_t, 4> counts_{};  ///< of messages of one segment and of several
  std::uint64_t at_ = 0;
};

OneCall random_programs(std::mt19937_64& random, std::uint32_t ranks, std::uint64_t now, bool dies) {
  OneCall one;
  one.job = RandomPrograms(random, ranks).job();
  one.step = kLargeRegionStep / 2;
  one.regions = 2;
  fill(one, random);
  plan(one, random, now, dies, 6000);
  return one;
}

class Abandoned : public testing::TestWithParam<std::uint32_t> {};

using Maker = OneCall (*)(std::mt19937_64& random, std::uint32_t ranks, std::uint64_t now, bool dies);

/// Two calls at once, again and again, of which one dies on each rank at another moment if `dies`.
void leaves_nothing_behind(std::uint32_t seed, Maker make, std::uint32_t rounds, bool dies) {
  MachineSettings settings;
  settings.seed = seed;
  settings.eager_limit = settings.segment_bytes = 1024;
  settings.rx_buffers = 1 + seed % 3;
  if (seed % 2 == 1) settings.stall_percent = 20;
  const std::uint32_t ranks = 2 + seed % 3;
  CoreMachine machine(ranks, settings);
  std::mt19937_64 random(settings.seed * 7919);
  std::uint32_t sequence = 0xffff'fff0U, died = 0;  // so that it wraps
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::vector<OneCall> calls;
    const std::uint64_t dying = random() % 2;
    for (std::uint32_t i = 0; i < 2; ++i) {
      calls.push_back(make(random, ranks, machine.cycle(), dies && i == dying));
      calls[i].sequence = sequence++;
      calls[i].place = i;
      calls[i].slot = i == 0 ? static_cast<std::uint32_t>(random() % 8) : (calls[0].slot + 1 + random() % 7) % 8;
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {  // calls begin in their order
      calls[1].begins[rank] = std::max(calls[1].begins[rank], calls[0].begins[rank] + 1);
      if (calls[1].dies) calls[1].ends[rank] = std::max(calls[1].ends[rank], calls[1].begins[rank] + 1);
    }
    const std::uint64_t limit = machine.cycle() + 200'000;
    for (bool done = false; !done;) {
      done = true;
      for (OneCall& one : calls) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          CoreNode& node = machine[rank];
          if (!one.begun[rank] && machine.cycle() >= one.begins[rank]) {
            const Places places = places_of(one, rank);
            std::memcpy(node.memory().data() + places[0].first, one.inputs[rank].src.data(),
                        one.inputs[rank].src.size());
            std::memcpy(node.memory().data() + places[1].first, one.inputs[rank].dst.data(),
                        one.inputs[rank].dst.size());
            Call call = one.job.call;
            call.rank = rank;
            node.begin(one.slot, call, one.job.programs[rank], one.sequence, places);
            one.begun[rank] = true;
          } else if (one.begun[rank] && !one.over[rank] && node.settled()) {
            ASSERT_EQ(node.failed(one.slot), 0) << "round " << round << ", rank " << rank;
            if (node.finished(one.slot)) {
              one.over[rank] = true;
              const std::byte* dst = node.memory().data() + places_of(one, rank)[1].first;
              one.dst[rank].assign(dst, dst + one.job.bytes(rank, Region::kDst));
            } else if (one.dies && machine.cycle() >= one.ends[rank]) {
              node.abandon(one.slot);
              one.over[rank] = true;
              ++died;
            }
          }
          done = done && one.over[rank] && node.settled();
        }
      }
      if (!done) machine.tick();
      ASSERT_LT(machine.cycle(), limit) << "round " << round << " does not end";
    }
    for (const OneCall& one : calls) {
      if (one.dies) continue;
      const auto expected = reference::interpret(one.job, one.inputs);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        ASSERT_TRUE(one.dst[rank] == expected[rank]) << "round " << round << ", rank " << rank;
      }
    }
  }
  EXPECT_GE(died, dies ? rounds / 3 : 0U);
  machine.run(3000);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(machine[rank].free_buffers(), kBuffers) << "rank " << rank;
    for (std::uint32_t peer = 0; peer < ranks; ++peer) {
      EXPECT_EQ(machine[rank].credits(peer), settings.rx_buffers) << "of rank " << rank << " to " << peer;
    }
  }
}

TEST_P(Abandoned, CallsLeaveNothingBehind) { leaves_nothing_behind(GetParam(), random_call, 30, true); }
TEST_P(Abandoned, PipelinesLeaveNothingBehind) { leaves_nothing_behind(GetParam(), random_programs, 10, true); }
TEST_P(Abandoned, PipelinesEnd) { leaves_nothing_behind(GetParam() + 100, random_programs, 4, false); }

INSTANTIATE_TEST_SUITE_P(Seeds, Abandoned, testing::Range(0U, 8U));

// A rank that has given up touches no memory and sends nothing.
TEST(AbandonedCall, IsSilentAfterwards) {
  MachineSettings settings;
  for (std::uint64_t moment = 60; moment < 1600; moment += 140) {
    CoreMachine machine(2, settings);
    std::mt19937_64 random(moment);
    OneCall one = random_call(random, 2, 0, true);
    one.slot = 3;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      Call call = one.job.call;
      call.rank = rank;
      machine[rank].begin(3, call, one.job.programs[rank], 0, places_of(one, rank));
    }
    machine.run(moment);
    if (machine[0].finished(3)) continue;
    machine[0].abandon(3);
    while (!machine[0].settled()) machine.tick();
    std::byte* memory = machine[0].memory().data() + kFirstRegion;
    std::fill_n(memory, 40 * kRegionStep, std::byte{0x77});
    const std::uint64_t sent = machine[0].counters().sent_words;
    machine.run(3000);
    EXPECT_TRUE(std::all_of(memory, memory + 40 * kRegionStep, [](std::byte b) { return b == std::byte{0x77}; }))
        << "abandoned in cycle " << moment;
    EXPECT_EQ(machine[0].counters().sent_words, sent);
    EXPECT_EQ(machine[0].free_buffers(), kBuffers);
  }
}

// An error of memory ends the call that it met.
TEST(AbandonedCall, MemoryErrorsFailTheirCall) {
  for (std::size_t port = 0; port < 5; ++port) {
    MachineSettings settings;
    settings.skew = 0;
    CoreMachine machine(2, settings);
    Call call;
    call.collective = Collective::kAllreduce;
    call.func = Func::kSum;
    call.dtype = Datatype::kInt32;
    call.size = 2;
    call.count = 300;
    OneCall one;
    one.job = reference::make_job(algorithm_of(Collective::kAllreduce, "ring"), call);
    one.slot = 1;
    machine[0].break_memory(port);
    call.rank = 1;
    machine[1].begin(1, call, one.job.programs[1], 0, places_of(one, 1));
    machine.run(1000);  // so that messages are early
    call.rank = 0;
    machine[0].begin(1, call, one.job.programs[0], 0, places_of(one, 0));
    for (int i = 0; i < 4000 && machine[0].failed(1) == 0; ++i) machine.tick();
    EXPECT_EQ(machine[0].failed(1), static_cast<std::uint16_t>(ErrorCode::kInternal)) << "port " << port;
    machine[0].abandon(1);
    while (!machine[0].settled()) machine.tick();
    machine.run(500);
    EXPECT_EQ(machine[0].free_buffers(), kBuffers);
  }
}

// A count that no move can have, a word that memory does not give, and one beyond params.
TEST(AbandonedCall, ParamsThatAreWrongFailTheirCall) {
  const auto code_of = [](std::uint64_t word, std::uint64_t params_bytes, bool broken) {
    MachineSettings settings;
    CoreMachine machine(2, settings);
    Call call;
    call.collective = Collective::kAllgatherv;
    call.dtype = Datatype::kInt32;
    call.size = 2;
    call.count = 50;
    OneCall one;
    one.slot = 6;
    one.job = reference::make_job(algorithm_of(Collective::kAllgatherv, "ring"), call,
                                  reference::example_counts(call, reference::CountPattern::kUniform, 1));
    one.job.region_bytes[0][3] = params_bytes;
    const Places places = places_of(one, 0);
    std::vector<std::uint64_t> params(one.job.params[0].size(), word);
    std::memcpy(machine[0].memory().data() + places[3].first, params.data(), params.size() * 8);
    if (broken) machine[0].break_memory(1);
    machine[0].begin(6, call, one.job.programs[0], 0, places);
    for (int i = 0; i < 1000 && machine[0].failed(6) == 0; ++i) machine.tick();
    const std::uint16_t code = machine[0].failed(6);
    machine[0].abandon(6);
    while (!machine[0].settled()) machine.tick();
    EXPECT_EQ(machine[0].free_buffers(), kBuffers);
    return code;
  };
  EXPECT_EQ(code_of(8, 400, false), 0);
  EXPECT_EQ(code_of(std::uint64_t{1} << 40U, 400, false), static_cast<std::uint16_t>(ErrorCode::kInvalidCount));
  EXPECT_EQ(code_of(8, 400, true), static_cast<std::uint16_t>(ErrorCode::kInternal));
  EXPECT_EQ(code_of(8, 7, false), static_cast<std::uint16_t>(ErrorCode::kMalformedProgram));
}

}  // namespace
}  // namespace unisono::rtl
