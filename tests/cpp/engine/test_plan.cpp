// Plans and their cache: what is equal from launch to launch is made once, and kept within bounds.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/move_stream.hpp"
#include "engine/plan.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

using cclo::kMostKeptMoves;
using cclo::make_plan;
using cclo::Plan;
using cclo::PlanCache;
using cclo::PlanTerms;

Capability everything() {
  Capability capability;
  capability.datatypes = 0xffffff;
  capability.funcs = 0xffff;
  capability.lists = capability.fan_in = capability.remote_memory = capability.lanes = capability.radices = true;
  return capability;
}

Call allreduce(std::uint64_t count, std::uint32_t size = 4) {
  Call call;
  call.collective = Collective::kAllreduce;
  call.func = Func::kSum;
  call.dtype = Datatype::kFp32;
  call.size = size;
  call.count = count;
  return call;
}

/// What make_plan needs, kept alive.
struct Terms {
  Capability capability = everything();
  Tuning tuning;
  shm::CopyFrom copy_from;
  PlanTerms messages() const { return {capability, tuning, 8192, nullptr}; }
  PlanTerms lanes() const { return {capability, tuning, 8192, &copy_from}; }
};

const Algorithm& algorithm(Collective collective, const char* name) {
  return algorithms()[static_cast<std::size_t>(find_algorithm(collective, name))];
}

TEST(Plan, SaysWhatAllRanksAgreeOn) {
  const Terms terms;
  const Algorithm& ring = algorithm(Collective::kAllreduce, "ring");
  Call call = allreduce(1000);
  const auto first = make_plan(call, ring, true, terms.lanes());
  call.rank = 3;
  const auto other = make_plan(call, ring, true, terms.lanes());
  EXPECT_EQ(first->signature, other->signature);
  EXPECT_EQ(first->src_bytes, 4000U);
  EXPECT_EQ(first->dst_bytes, 4000U);
  EXPECT_TRUE(first->lanes);
  EXPECT_EQ(first->plain.algorithm, &ring);
  EXPECT_EQ(first->direct.algorithm, nullptr) << "the user named one of messages";
  EXPECT_TRUE(first->peer_bytes.empty());
  const auto messages = make_plan(call, ring, true, terms.messages());
  EXPECT_FALSE(messages->lanes);
  EXPECT_TRUE(messages->plain.lowered.moves.empty()) << "nothing is lowered where there are no lanes";
  EXPECT_EQ(messages->signature, first->signature);
}

TEST(Plan, AnAutomaticChoiceOnLanesHasBothProgramsAndTheFootprintsOfAll) {
  const Terms terms;
  Call call = allreduce(100'000);
  const int position = choose_algorithm(call, terms.tuning);
  const Algorithm& chosen = algorithms()[static_cast<std::size_t>(position)];
  const auto plan = make_plan(call, chosen, false, terms.lanes());
  ASSERT_NE(plan->direct.algorithm, nullptr);
  EXPECT_TRUE(plan->direct.algorithm->direct);
  EXPECT_TRUE(plan->shows_addresses);
  EXPECT_FALSE(plan->must_be_direct);
  ASSERT_EQ(plan->peer_bytes.size(), 4U);
  EXPECT_EQ(plan->peer_bytes[2], (std::array<std::uint64_t, 2>{400'000, 400'000}));
  const auto messages = make_plan(call, chosen, false, terms.messages());
  EXPECT_NE(plan->signature, messages->signature) << "messages agree on the algorithm that was chosen";
}

TEST(Plan, LanesCarryWhatMovesBetweenRanks) {
  for (const Collective collective : kAllCollective) {
    const bool here = collective <= Collective::kGet || collective == Collective::kProgram;
    EXPECT_EQ(cclo::carried_by_lanes(collective), !here) << name_of(collective);
  }
}

TEST(Plan, AClassOfCountsHasOneLargest) {
  for (std::uint64_t count = 0; count < 5000; ++count) {
    const std::uint64_t least = cclo::least_of_class(count);
    const std::uint64_t largest = cclo::largest_of_class(count);
    ASSERT_LE(least, count);
    ASSERT_GE(largest, count);
    ASSERT_LE(largest - count, count / 8) << "no more than an eighth is wasted";
    for (const std::uint64_t other : {least, largest}) {
      ASSERT_EQ(cclo::least_of_class(other), least);
      ASSERT_EQ(cclo::largest_of_class(other), largest);
    }
  }
  EXPECT_EQ(cclo::largest_of_class(kUnknownCount), kUnknownCount);
}

// Else what is kept of one call would grow with the number of ranks.
TEST(Plan, KeepsNoMovesOfALongProgram) {
  const Terms terms;
  const Algorithm& scattered = algorithm(Collective::kAlltoallv, "scattered");
  Call call;
  call.collective = Collective::kAlltoallv;
  call.dtype = Datatype::kInt32;
  for (const std::uint32_t size : {16U, 64U, 65U, 1024U}) {
    call.size = size;
    const auto plan = make_plan(call, scattered, true, terms.messages());
    const bool kept = 2 * size - 1 <= kMostKeptMoves;
    EXPECT_EQ(plan->checked->move_count, 2 * size - 1);
    EXPECT_EQ(plan->checked->program.moves.capacity(), kept ? 2 * size - 1 : 0) << size;
    EXPECT_EQ(plan->checked->made_by, kept ? nullptr : &scattered);
    EXPECT_EQ(plan->kept_moves(), kept ? 2 * size - 1 : 0);
    EXPECT_EQ(plan->checked->program.params_bytes, 32 * size);
  }
  call.size = 70;
  const auto lowered = make_plan(call, scattered, true, terms.lanes());
  EXPECT_EQ(lowered->kept_moves(), 139U) << "the lowered ones";
  EXPECT_EQ(lowered->plain.lowered.moves.size(), 139U);
  EXPECT_EQ(lowered->checked->program.moves.capacity(), 0U);
}

class Cache : public testing::Test {
 protected:
  std::shared_ptr<const Plan> make(std::uint64_t count) {
    return make_plan(allreduce(count), algorithm(Collective::kAllreduce, "ring"), true, terms_.messages());
  }
  static PlanCache::Key key(std::uint64_t count) { return {allreduce(count), nullptr, 0}; }
  void insert(std::uint64_t count) { plans_.insert(key(count), make(count)); }

  Terms terms_;
  PlanCache plans_;
};

TEST_F(Cache, FindsWhatWasInserted) {
  insert(1);
  insert(2);
  ASSERT_NE(plans_.find(key(2)), nullptr);
  EXPECT_EQ(plans_.find(key(2))->call.count, 2U);
  EXPECT_EQ(plans_.find(key(3)), nullptr);
  PlanCache::Key named = key(2);
  named.source = &algorithm(Collective::kAllreduce, "ring");
  EXPECT_EQ(plans_.find(named), nullptr) << "what the user named is another plan than what was chosen";
  PlanCache::Key user = key(2);
  user.op = 17;
  EXPECT_EQ(plans_.find(user), nullptr) << "the number of an operator may come to mean another one";
}

TEST_F(Cache, KeepsThoseUsedLastWithinItsBounds) {
  for (std::uint64_t count = 0; count < PlanCache::kMostPlans; ++count) insert(count);
  EXPECT_LE(plans_.size() * 4, PlanCache::kMostMoves) << "the bound of plans is the one that this test is about";
  plans_.trim();
  EXPECT_NE(plans_.find(key(0)), nullptr);  // used again
  insert(5000);
  insert(5001);
  plans_.trim();
  EXPECT_FALSE(plans_.full());
  EXPECT_NE(plans_.find(key(0)), nullptr);
  EXPECT_EQ(plans_.find(key(1)), nullptr);
  EXPECT_NE(plans_.find(key(5001)), nullptr);
}

TEST_F(Cache, WhatIsInUseStays) {
  insert(7);
  insert(8);
  insert(9);
  const std::shared_ptr<const Plan> in_flight = plans_.find(key(8));
  plans_.remember(plans_.find(key(9)));
  plans_.note<false>(41, *plans_.find(key(7)), 0);
  plans_.note<false>(42, *plans_.find(key(8)), 0);
  for (std::uint64_t count = 100; count < 100 + 2 * PlanCache::kMostPlans; ++count) {
    insert(count);
    plans_.trim();
  }
  EXPECT_LE(plans_.size(), PlanCache::kMostPlans);
  EXPECT_EQ(plans_.find(key(7)), nullptr);
  EXPECT_EQ(plans_.past(41).plan, nullptr) << "its plan is gone";
  EXPECT_EQ(plans_.find(key(8)), in_flight);
  EXPECT_EQ(plans_.past(42).plan, in_flight.get());
  EXPECT_EQ(plans_.past(43).plan, nullptr);
  const Plan* front = plans_.front(allreduce(9));
  ASSERT_NE(front, nullptr);
  EXPECT_EQ(front, plans_.find(key(9)).get());
}

TEST_F(Cache, LongProgramsAreFewer) {
  std::size_t moves = 0;
  for (std::uint64_t count = 1000; moves < 2 * PlanCache::kMostMoves; ++count) {
    const Call call = allreduce(count, 32);
    auto plan = make_plan(call, algorithm(Collective::kAllreduce, "ring"), true, terms_.messages());
    ASSERT_GT(plan->kept_moves(), 2 * PlanCache::kMostMoves / PlanCache::kMostPlans);
    moves += plan->kept_moves();
    plans_.insert({call, nullptr, 0}, std::move(plan));
    plans_.trim();
    ASSERT_FALSE(plans_.full());
  }
  EXPECT_LT(plans_.size(), PlanCache::kMostPlans);
  EXPECT_NE(plans_.size(), 0U);
}

/// More calls than a cache keeps, blocking and not, of a job with lanes or without: each is carried out.
void run_many(const EngineSettings& settings) {
  run_ranks(2, settings, [&](Rank& self) {
    constexpr std::uint64_t kCalls = PlanCache::kMostPlans + 300;
    std::vector<std::int32_t> src(kCalls), dst(kCalls), later(kCalls);
    for (int round = 0; round < 2; ++round) {
      for (std::uint64_t count = 1; count <= kCalls; ++count) {
        const auto value = static_cast<std::int32_t>((self.rank + 1) * count);
        for (std::uint64_t i = 0; i < count; ++i) src[i] = value;
        CallRequest request;
        request.call.collective = Collective::kAllreduce;
        request.call.func = Func::kSum;
        request.call.dtype = Datatype::kInt32;
        request.call.count = count;
        request.src = {reinterpret_cast<std::byte*>(src.data()), 4 * count};
        request.dst = {reinterpret_cast<std::byte*>(dst.data()), 4 * count};
        // One that waits for the call before it holds its plan while another one is made.
        CallRequest started = request;
        started.dst.data = reinterpret_cast<std::byte*>(later.data());
        const CallId id = self.engine.submit(started);
        self.engine.run(request);
        self.finish(id);
        ASSERT_EQ(dst[count - 1], static_cast<std::int32_t>(3 * count));
        ASSERT_EQ(later[0], static_cast<std::int32_t>(3 * count));
      }
    }
  });
}

TEST(PlansOfJobs, MoreCallsThanAreKeptOnLanes) { run_many(quick_settings()); }

TEST(PlansOfJobs, MoreCallsThanAreKeptByMessages) { run_many(message_settings()); }

}  // namespace
}  // namespace unisono::test
