// Calls that are ended in the middle: what they held comes back, late messages do no harm, other calls go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "collectives/algorithm.hpp"
#include "core/footprint.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/rtl/core/machine.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint64_t kFirstRegion = std::uint64_t{8} << 20U;  // receive buffers stand below
constexpr std::uint64_t kRegionStep = std::uint64_t{32} << 10U;
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
  bool dies = false;
  std::vector<std::uint64_t> begins, ends;  ///< cycles, by rank; ends only if it dies
  std::vector<bool> begun, over;
  std::vector<std::vector<std::byte>> dst;
};

Places places_of(const OneCall& call, std::uint32_t rank) {
  Places places{};
  for (std::size_t region = 0; region < 5; ++region) {
    places[region] = {kFirstRegion + (call.slot * 5 + region) * kRegionStep + 16 * (region + rank),
                      call.job.region_bytes[rank][region]};
  }
  return places;
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
  one.inputs.resize(ranks);
  one.dies = dies;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    one.inputs[rank].src.resize(one.job.bytes(rank, Region::kSrc));
    one.inputs[rank].dst.resize(one.job.bytes(rank, Region::kDst));
    for (auto* bytes : {&one.inputs[rank].src, &one.inputs[rank].dst}) {
      for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
    }
    one.begins.push_back(now + random() % 1500);
    // Now and then a rank comes when all others have given up.
    if (dies && random() % 4 == 0) one.begins.back() += 3000;
    one.ends.push_back(one.begins.back() + random() % 1200);
  }
  one.begun.assign(ranks, false);
  one.over.assign(ranks, false);
  one.dst.resize(ranks);
  return one;
}

class Abandoned : public testing::TestWithParam<std::uint32_t> {};

// Two calls at once, of which one dies on each rank at another moment, again and again.
TEST_P(Abandoned, CallsLeaveNothingBehind) {
  MachineSettings settings;
  settings.seed = GetParam();
  settings.eager_limit = settings.segment_bytes = 1024;
  settings.rx_buffers = 1 + GetParam() % 3;
  if (GetParam() % 2 == 1) settings.stall_percent = 20;
  const std::uint32_t ranks = 2 + GetParam() % 3;
  CoreMachine machine(ranks, settings);
  std::mt19937_64 random(settings.seed * 7919);
  std::uint32_t sequence = 0xffff'fff0U, died = 0;  // so that it wraps
  for (std::uint32_t round = 0; round < 30; ++round) {
    std::vector<OneCall> calls;
    const std::uint64_t dying = random() % 2;
    for (std::uint32_t i = 0; i < 2; ++i) {
      calls.push_back(random_call(random, ranks, machine.cycle(), i == dying));
      calls[i].sequence = sequence++;
      calls[i].slot = i == 0 ? static_cast<std::uint32_t>(random() % 8) : (calls[0].slot + 1 + random() % 7) % 8;
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {  // calls begin in their order
      calls[1].begins[rank] = std::max(calls[1].begins[rank], calls[0].begins[rank] + 1);
      if (calls[1].dies) calls[1].ends[rank] = std::max(calls[1].ends[rank], calls[1].begins[rank] + 1);
    }
    const std::uint64_t limit = machine.cycle() + 60'000;
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
  EXPECT_GT(died, 10U);
  machine.run(3000);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(machine[rank].free_buffers(), kBuffers) << "rank " << rank;
    for (std::uint32_t peer = 0; peer < ranks; ++peer) {
      EXPECT_EQ(machine[rank].credits(peer), settings.rx_buffers) << "of rank " << rank << " to " << peer;
    }
  }
}

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
