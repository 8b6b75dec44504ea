// Lowered random programs: their forms are the programs, and give the interpreter's bits, simulated and on real lanes.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "engine/live.hpp"
#include "engine/model.hpp"
#include "network/shm/lanes.hpp"
#include "reference/interpreter.hpp"
#include "reference/job.hpp"
#include "tests/cpp/engine/random_programs.hpp"

namespace unisono::test {
namespace {

using cclo::LaneModel;
using cclo::LoweredProgram;

/// A set of random programs, lowered, with what must come of it.
struct LoweredSet {
  LoweredSet(std::uint32_t seed, std::uint32_t ranks, std::uint32_t block, std::uint32_t steps)
      : size(ranks), generator(seed, ranks, block, false), programs(generator.run(steps)) {
    job = reference::make_job(programs, generator.dtype(), generator.src_bytes(), generator.bytes());
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      inputs.push_back({generator.data(rank, 0), generator.data(rank, 1), {}});
      lowered.push_back(cclo::lower(programs[rank], size).value());
    }
    expected = reference::interpret(job, inputs);
  }

  std::uint32_t size;
  Generator generator;
  std::vector<Program> programs;
  reference::Job job;
  std::vector<reference::RankInput> inputs;
  std::vector<LoweredProgram> lowered;
  std::vector<std::vector<std::byte>> expected;
};

class LaneRuns : public testing::TestWithParam<std::uint32_t> {};

TEST_P(LaneRuns, FormsAreTheProgramsAndGiveTheInterpretersBits) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const LoweredSet set(seed * 10 + GetParam(), GetParam(), 150, 10 + seed * 3);
    for (std::uint32_t rank = 0; rank < set.size; ++rank) {
      const auto check = cclo::compare_lowered(set.programs[rank], set.lowered[rank], rank, set.size);
      ASSERT_FALSE(check.fault) << check.fault->text;
    }
    std::vector<LaneModel> models{LaneModel::straight()};
    for (const std::uint64_t segment : {1U, 64U, 500U}) {
      for (const auto loans : {LaneModel::Loans::kNever, LaneModel::Loans::kTaken, LaneModel::Loans::kDeclined})
        models.push_back(LaneModel::windowed_with_one_segment(set.size, segment, loans));
    }
    for (const LaneModel& model : models) {
      std::vector<cclo::LoweredRank> ranks;
      for (std::uint32_t rank = 0; rank < set.size; ++rank) {
        ranks.push_back({&set.lowered[rank], set.inputs[rank].src, set.inputs[rank].dst});
      }
      const cclo::LoweredRun run = cclo::run_lowered(ranks, model);
      ASSERT_FALSE(run.fault) << "seed " << seed << ": " << run.fault->text;
      for (std::uint32_t rank = 0; rank < set.size; ++rank) {
        EXPECT_EQ(ranks[rank].dst, set.expected[rank]) << "seed " << seed << ", rank " << rank;
      }
    }
  }
}

/// As after some stores that took a second each.
void store_past_caches(shm::StorePace& pace) {
  pace = {};
  for (std::uint32_t i = 0; i < shm::StorePace::kSlowStores; ++i) {
    pace.took(1000 * kMillisecondTicks, shm::StorePace::kLeastBytes);
  }
  EXPECT_TRUE(pace.past_caches());
}

/// Runs the engine's windowed executor for all ranks in one thread, on lanes of a real segment.
void run_on_lanes(const LoweredSet& set, std::uint32_t seed) {
  shm::Geometry geometry;
  geometry.endpoints = set.size;
  geometry.arena_bytes = std::uint64_t{256} << 20U;
  geometry.one_process = 1;
  const auto segment = shm::Segment::create(geometry);
  std::vector<std::uint32_t> endpoints;
  std::vector<std::unique_ptr<shm::LaneSet>> sets;
  for (std::uint32_t rank = 0; rank < set.size; ++rank) endpoints.push_back(rank);
  struct Side {
    cclo::LiveRank live;
    cclo::Flight flight;
    std::vector<std::byte> src, dst, scratch;
  };
  std::vector<std::unique_ptr<Side>> sides;
  for (std::uint32_t rank = 0; rank < set.size; ++rank) {
    sets.push_back(std::make_unique<shm::LaneSet>(segment, std::make_shared<shm::Arena>(segment, rank), rank, 1,
                                                  std::uint16_t{0}, endpoints));
    ASSERT_TRUE(sets.back()->open());
    auto side = std::make_unique<Side>();
    side->live.open(*sets.back(), shm::LaneSpace::kCollective, rank, set.size);
    side->live.channels.loans.open(
        {*sets.back(), segment, true, nullptr, endpoints, cclo::LaneTraffic(segment->counters(rank))});
    side->live.channels.loans.least = shm::kInlineBytes + 1;
    sides.push_back(std::move(side));
  }
  std::mt19937 random(seed);
  // Several times: the rings are where the last run left them.
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t rank = 0; rank < set.size; ++rank) {
      Side& side = *sides[rank];
      side.src = set.inputs[rank].src;
      side.dst = set.inputs[rank].dst;
      side.scratch.assign(set.lowered[rank].scratch_bytes, std::byte{0xa5});
      side.live.values.regions = {side.src.data(), side.dst.data(), side.scratch.data(), nullptr, nullptr};
      side.live.channels.digest = 100U + static_cast<std::uint32_t>(round);
      side.live.channels.loans.begin(set.lowered[rank], round >= 2 || (round == 1 && rank % 2 == 0), 0);
      side.live.values.streaming_bytes = round % 2 == 0 ? 0 : ~std::uint64_t{0};
      if (round == 3) {
        for (std::uint32_t peer = 0; peer < set.size; ++peer) store_past_caches(side.live.values.pace(peer));
      }
      side.flight.start_windowed(set.lowered[rank], set.size);
    }
    std::uint32_t running = set.size;
    for (std::uint32_t idle = 0; running != 0;) {
      Side& side = *sides[random() % set.size];
      const bool before = side.flight.ended_windowed();
      if (!before && side.live.executor->windowed(side.flight)) {
        idle = 0;
        if (side.flight.ended_windowed()) --running;
      } else {
        ASSERT_LT(++idle, 10'000U) << "nobody can go on";
        if (before) continue;
        std::uint32_t awaited = 0;
        side.live.executor->awaited_windowed(
            side.flight, [&](std::uint32_t rank, cclo::Need) { awaited += rank < set.size ? 1 : 0; });
        ASSERT_GT(awaited, 0U) << "who waits says for whom";
      }
    }
    for (std::uint32_t rank = 0; rank < set.size; ++rank) {
      ASSERT_EQ(sides[rank]->dst, set.expected[rank]) << "seed " << seed << ", round " << round << ", rank " << rank;
      ASSERT_EQ(sides[rank]->src, set.inputs[rank].src);
    }
  }
}

TEST_P(LaneRuns, WindowedRunsGiveTheInterpretersBits) {
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    run_on_lanes(LoweredSet(seed * 10 + GetParam(), GetParam(), 150, 20 + seed * 6), seed);
  }
}

TEST_P(LaneRuns, WindowedRunsOfManySegments) {
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    // Some three segments of 64 KiB a message.
    run_on_lanes(LoweredSet(seed * 11 + GetParam(), GetParam(), 45'000, 24), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LaneRuns, testing::Values(2U, 3U, 5U));

// A move without messages takes longer blocks than a segment: it may take no more than what it follows has done.
TEST(LaneRuns, ALocalMoveDoesNotOvertakeTheArrivalThatItFollows) {
  constexpr std::uint64_t kCount = 100'000;  // 400 kB: several segments, more than one local block
  Call call;
  call.dtype = Datatype::kInt32;
  std::vector<Program> programs(2);
  programs[0].moves.push_back(build::Build(call).take({Region::kSrc, 0}).send(1, 0).count(kCount));
  programs[1].scratch_bytes = 4 * kCount;
  programs[1].moves.push_back(build::Build(call).arrive(0, 0).keep({Region::kScratch, 0}).count(kCount));
  programs[1].moves.push_back(
      build::Build(call).take({Region::kScratch, 0}).keep({Region::kDst, 0}).count(kCount).stream_after(1));
  LoweredSet set(1, 2, 1, 0);
  set.programs = programs;
  set.job = reference::make_job(programs, Datatype::kInt32, 4 * kCount, 4 * kCount);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    set.lowered[rank] = cclo::lower(programs[rank], 2).value();
    set.inputs[rank].dst.assign(4 * kCount, std::byte{0});
    set.inputs[rank].src.resize(4 * kCount);
    for (std::size_t i = 0; i < set.inputs[rank].src.size(); ++i) {
      set.inputs[rank].src[i] = static_cast<std::byte>(i * 7 + i / 256 + rank);
    }
  }
  set.expected = reference::interpret(set.job, set.inputs);
  for (std::uint32_t seed = 0; seed < 5; ++seed) run_on_lanes(set, seed);
}

}  // namespace
}  // namespace unisono::test
