// Forms of calls: several requests at once, callbacks, persistent calls, groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

using testing::HasSubstr;
using Error = api::Error;
using std::chrono::milliseconds;

constexpr std::uint32_t kRanks = 3;

int code_of(ErrorCode code) { return static_cast<int>(code); }

std::vector<std::int64_t> values_of(std::uint32_t rank, std::size_t n, std::int64_t salt = 0) {
  std::vector<std::int64_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::int64_t>(i * 10 + rank + 1) + 1000 * salt;
  return values;
}

std::vector<std::int64_t> sum_of_all(std::size_t n, std::int64_t salt = 0) {
  std::vector<std::int64_t> sum(n, 0);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    const auto values = values_of(rank, n, salt);
    for (std::size_t i = 0; i < n; ++i) sum[i] += values[i];
  }
  return sum;
}

/// Writes new values where a persistent call looks for them.
void set(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
  ASSERT_EQ(to.size(), from.size());
  std::copy(from.begin(), from.end(), to.begin());
}

/// Time of the processor that this thread has used.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// ------------------------------------------------------------------------------------ several requests at once

TEST(WaitAny, ReturnsWhatHasEndedAndWaitsForTheRestLater) {
  on_ranks(2, [](const Communicator& world) {
    constexpr std::size_t kMessages = 5;
    if (world.rank() == 1) {
      // In an order that is not that of the receives, one after the other.
      for (const std::int64_t tag : {3, 0, 4, 1, 2}) {
        world.send(values_of(1, 4, tag), 0, tag);
        std::int64_t go = 0;
        world.recv(std::span(&go, 1), 0, 100 + tag);
        EXPECT_EQ(go, tag);
      }
      return;
    }
    std::vector<std::vector<std::int64_t>> received(kMessages, std::vector<std::int64_t>(4));
    std::vector<Request> requests;
    for (std::size_t tag = 0; tag < kMessages; ++tag) {
      requests.push_back(world.recv_async(received[tag], 1, static_cast<std::int64_t>(tag)));
    }
    std::vector<std::size_t> order;
    while (const auto found = wait_any(requests)) {
      const std::size_t i = *found;
      order.push_back(i);
      requests[i].wait();
      EXPECT_EQ(received[i], values_of(1, 4, static_cast<std::int64_t>(i)));
      requests[i] = {};
      const auto tag = static_cast<std::int64_t>(i);
      world.send(std::span(&tag, 1), 1, 100 + tag);
    }
    EXPECT_EQ(order, (std::vector<std::size_t>{3, 0, 4, 1, 2}));
    EXPECT_EQ(test_any(requests), std::nullopt) << "all are empty";
  });
}

TEST(WaitAny, EndsInTimeAndSleepsMeanwhile) {
  on_ranks(2, [](const Communicator& world) {
    std::vector<std::int64_t> data(3);
    if (world.rank() == 0) {
      std::vector<Request> requests;
      requests.push_back(world.recv_async(data, 1, 1));
      std::vector<std::int64_t> other(3);
      requests.push_back(world.recv_async(other, 1, 2));
      const auto begin = std::chrono::steady_clock::now();
      const double used = processor_seconds();
      EXPECT_EQ(wait_any(requests, 0.3), std::nullopt);
      EXPECT_FALSE(test_all(requests));
      EXPECT_FALSE(wait_all(requests, 0.1));
      EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(390));
      EXPECT_LT(processor_seconds() - used, 0.2) << "it did not sleep";
      world.barrier();
      EXPECT_TRUE(wait_all(requests));
      EXPECT_EQ(data, values_of(1, 3, 1));
      EXPECT_EQ(other, values_of(1, 3, 2));
    } else {
      world.barrier();
      world.send(values_of(1, 3, 2), 0, 2);
      world.send(values_of(1, 3, 1), 0, 1);
    }
  });
}

TEST(WaitSome, ReturnsAllThatHaveEnded) {
  on_ranks(kRanks, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    std::vector<std::vector<std::int64_t>> out(6, std::vector<std::int64_t>(9));
    std::vector<std::vector<std::int64_t>> in;
    std::vector<Request> requests;
    for (std::int64_t i = 0; i < 6; ++i) in.push_back(values_of(r, 9, i));
    for (std::size_t i = 0; i < 6; ++i) requests.push_back(world.allreduce_async(in[i], out[i], Op::kSum));
    std::set<std::size_t> seen;
    for (;;) {
      const std::vector<std::size_t> ended = wait_some(requests);
      if (ended.empty()) break;
      for (const std::size_t i : ended) {
        EXPECT_TRUE(seen.insert(i).second);
        requests[i].wait();
        requests[i] = {};
        EXPECT_EQ(out[i], sum_of_all(9, static_cast<std::int64_t>(i)));
      }
    }
    EXPECT_EQ(seen.size(), 6U);
  });
}

TEST(WaitAll, OneFailureHidesNoOtherResult) {
  on_ranks(2, [](const Communicator& world) {
    std::vector<std::int64_t> good(4), bad(2), late(4);
    if (world.rank() == 1) {
      world.send(values_of(1, 4, 7), 0, 7);  // longer than its receive
      world.send(values_of(1, 4, 8), 0, 8);
      std::this_thread::sleep_for(milliseconds(50));
      world.send(values_of(1, 4, 9), 0, 9);
      world.barrier();
      return;
    }
    std::vector<Request> requests;
    requests.push_back(world.recv_async(bad, 1, 7));
    requests.push_back(world.recv_async(good, 1, 8));
    requests.push_back(world.recv_async(late, 1, 9));
    std::vector<unisono_request*> handles;
    handles.reserve(4);
    for (const Request& request : requests) handles.push_back(request.handle());
    handles.insert(handles.begin() + 1, nullptr);
    std::vector<unisono_result> results(4, -1);
    int complete = 0;
    EXPECT_EQ(unisono_wait_all(handles.data(), 4, UNISONO_NO_LIMIT, &complete, results.data()),
              code_of(ErrorCode::kTruncated));
    EXPECT_THAT(unisono_last_error(), HasSubstr("recv"));
    EXPECT_EQ(complete, 1);
    EXPECT_EQ(results, (std::vector<unisono_result>{code_of(ErrorCode::kTruncated), 0, 0, 0}));
    EXPECT_EQ(good, values_of(1, 4, 8));
    EXPECT_EQ(late, values_of(1, 4, 9));
    EXPECT_EQ(wait_any(requests), 0U) << "found, and no exception";
    EXPECT_EQ(wait_some(requests), (std::vector<std::size_t>{0, 1, 2}));
    EXPECT_THROW(requests[0].wait(), Error);
    EXPECT_THROW(wait_all(requests), Error);
    EXPECT_NO_THROW(requests[2].wait());
    world.barrier();
  });
}

TEST(WaitAll, RefusesWhatItCannotWaitFor) {
  const ThreadJob one(1), other(1);
  const Context a(one, 0), b(other, 0);
  std::vector<std::int64_t> data(2), out(2);
  std::vector<Request> requests;
  requests.push_back(a.world().copy_async(data, out));
  std::vector<std::int64_t> out_of_b(2);
  requests.push_back(b.world().copy_async(data, out_of_b));
  int complete = 0;
  std::size_t index = 0;
  unisono_request* const handles[] = {requests[0].handle(), requests[1].handle()};
  EXPECT_EQ(unisono_wait_all(handles, 2, 0, &complete, nullptr), code_of(ErrorCode::kInvalidArgument));
  EXPECT_THAT(unisono_last_error(), HasSubstr("request 1 belongs to another context"));
  EXPECT_THROW(wait_all(requests), Error);
  EXPECT_THROW(wait_some(requests), Error);
  EXPECT_EQ(unisono_wait_any(nullptr, 2, 0, &index), code_of(ErrorCode::kInvalidArgument));
  EXPECT_EQ(unisono_wait_any(handles, 1, 0, nullptr), code_of(ErrorCode::kInvalidArgument));
  EXPECT_EQ(unisono_wait_any(handles, 1, -3, &index), code_of(ErrorCode::kInvalidArgument));
  EXPECT_EQ(index, UNISONO_NONE);
  EXPECT_EQ(unisono_wait_all(nullptr, 0, 1, &complete, nullptr), 0);
  EXPECT_EQ(complete, 1) << "all of none";
}

TEST(WaitAny, TellsOfCallsThatTheEndOfTheirContextCancelled) {
  const ThreadJob job(1);
  Request pending;
  std::vector<std::int64_t> data(2);
  {
    const Context context(job, 0);
    pending = context.world().recv_async(data, 0, 5);
  }
  std::vector<Request> requests;
  requests.push_back(std::move(pending));
  EXPECT_EQ(wait_any(requests), 0U);
  EXPECT_THROW(requests[0].wait(), Error);
}

// -------------------------------------------------------------------------------------------------- callbacks

TEST(Callbacks, RunOnceWithTheResult) {
  on_ranks(kRanks, [](const Communicator& world) {
    std::atomic<int> called = 0;
    std::vector<std::int64_t> out(5);
    const auto in = values_of(world.rank(), 5);
    Request request = world.allreduce_async(in, out, Op::kSum);
    request.on_complete([&](unisono_result result) {
      EXPECT_EQ(result, 0);
      EXPECT_EQ(out, sum_of_all(5));
      ++called;
    });
    request.wait();
    while (called == 0) std::this_thread::yield();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(request.test());
    EXPECT_EQ(called, 1);
    request.on_complete([&](unisono_result) { ++called; });
    EXPECT_EQ(called, 2) << "at once, for the call has ended";
  });
}

TEST(Callbacks, RunOnTheThreadThatMakesProgressForOthers) {
  on_ranks(2, [](const Communicator& world) {
    std::vector<std::int64_t> data(3);
    if (world.rank() == 1) {
      world.barrier();
      world.send(values_of(1, 3, 4), 0, 4);
      world.barrier();
      return;
    }
    bool called = false;
    Request request = world.recv_async(data, 1, 4);
    request.on_complete([&, thread = std::this_thread::get_id()](unisono_result result) {
      EXPECT_EQ(result, 0);
      EXPECT_EQ(std::this_thread::get_id(), thread);
      EXPECT_EQ(data, values_of(1, 3, 4));
      called = true;
    });
    world.barrier();
    world.barrier();  // makes progress on the receive too
    while (!called) request.test();
  });
}

TEST(Callbacks, MayStartCallsAndMustNotWait) {
  on_ranks(2, [](const Communicator& world) {
    const std::uint32_t r = world.rank(), peer = 1 - r;
    const auto own = world.split(0);
    std::vector<std::int64_t> first(4), second(4), pending(1);
    const auto in = values_of(r, 4);
    std::atomic<bool> done = false;
    Request never = world.recv_async(pending, peer, 77);
    Request next;
    Request request = own.allreduce_async(in, first, Op::kSum);
    request.on_complete([&](unisono_result) {
      EXPECT_EQ(unisono_wait(never.handle()), code_of(ErrorCode::kInvalidArgument));
      EXPECT_THAT(unisono_last_error(), HasSubstr("unisono_wait was called in a callback"));
      int complete = 1;
      EXPECT_EQ(unisono_wait_at_most(never.handle(), 1, &complete), code_of(ErrorCode::kInvalidArgument));
      EXPECT_EQ(unisono_wait_at_most(never.handle(), -5, &complete), code_of(ErrorCode::kInvalidArgument));
      EXPECT_THAT(unisono_last_error(), HasSubstr("seconds is -5 s; allowed are 0 (only look) to 10 years"));
      EXPECT_EQ(unisono_wait_at_most(never.handle(), 0, &complete), 0);
      EXPECT_EQ(complete, 0);
      unisono_request* const handle = never.handle();
      EXPECT_EQ(unisono_wait_all(&handle, 1, 1, &complete, nullptr), code_of(ErrorCode::kInvalidArgument));
      EXPECT_EQ(unisono_test_all(&handle, 1, &complete, nullptr), 0);
      EXPECT_THROW(own.barrier(), Error);
      EXPECT_THROW(own.split(0), Error);
      unisono_graph* graph = nullptr;
      EXPECT_EQ(unisono_graph_create(own.handle(), 0, nullptr, 0, nullptr, &graph),
                code_of(ErrorCode::kInvalidArgument));
      EXPECT_THAT(unisono_last_error(), HasSubstr("unisono_graph_create was called in a callback"));
      unisono_request_free(handle);
      EXPECT_THAT(unisono_last_error(), HasSubstr("in flight"));
      EXPECT_FALSE(never.test()) << "nothing was freed";
      next = own.allreduce_async(first, second, Op::kMax);
      next.on_complete([&](unisono_result result) {
        EXPECT_EQ(result, 0);
        done = true;
      });
    });
    while (!done) {
      request.test();
      never.test();  // makes progress also when the first call has ended
      std::this_thread::yield();
    }
    std::vector<std::int64_t> sum(4);
    for (std::size_t i = 0; i < 4; ++i) sum[i] = values_of(0, 4)[i] + values_of(1, 4)[i];
    EXPECT_EQ(second, sum);
    const std::int64_t one = r;
    world.send(std::span(&one, 1), peer, 77);
    never.wait();
    EXPECT_EQ(pending[0], peer);
  });
}

TEST(Callbacks, MayFreeTheirRequest) {
  on_ranks(1, [](const Communicator& world) {
    const std::vector<std::int64_t> in{1, 2};
    std::vector<std::int64_t> out(2);
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = UNISONO_COPY;
    call.datatype = UNISONO_INT64;
    call.count = 2;
    call.src = in.data();
    call.dst = out.data();
    call.src_bytes = call.dst_bytes = 16;
    unisono_request* request = nullptr;
    ASSERT_EQ(unisono_start(world.handle(), &call, &request), 0);
    int called = 0;
    ASSERT_EQ(unisono_on_complete(
                  request,
                  [](unisono_request* own, unisono_result, void* times) {
                    unisono_request_free(own);
                    ++*static_cast<int*>(times);
                  },
                  &called),
              0);
    while (called == 0) world.barrier();
    EXPECT_EQ(unisono_wait(request), code_of(ErrorCode::kInvalidArgument)) << "it is free";
    EXPECT_EQ(out, in);
    EXPECT_EQ(unisono_on_complete(request, nullptr, nullptr), code_of(ErrorCode::kInvalidArgument));
  });
}

TEST(Callbacks, ChainsNeedNoStack) {
  on_ranks(1, [](const Communicator& world) {
    constexpr int kLinks = 30'000;
    const std::vector<std::int64_t> in{3};
    std::vector<std::int64_t> out(1);
    std::vector<Request> requests(kLinks + 1);
    std::function<void(int)> link = [&](int number) {
      requests[number] = world.copy_async(in, out);
      if (number < kLinks) requests[number].on_complete([&, number](unisono_result) { link(number + 1); });
    };
    link(0);
    while (requests[kLinks].handle() == nullptr || !requests[kLinks].test()) world.barrier();
    EXPECT_EQ(out[0], 3);
  });
}

TEST(Callbacks, HearOfFailures) {
  on_ranks(2, [](const Communicator& world) {
    std::vector<std::int64_t> data(3);
    std::string said;
    unisono_result code = 0;
    Communicator pair = world.split(0);
    Request request = pair.recv_async(data, 1 - world.rank(), 1);
    request.on_complete([&](unisono_result result) {
      code = result;
      said = unisono_last_error();
    });
    world.barrier();
    if (world.rank() == 0) pair.revoke("enough of it");
    EXPECT_THROW(request.wait(), Error);
    EXPECT_EQ(code, code_of(ErrorCode::kRevoked));
    EXPECT_THAT(said, HasSubstr("enough of it"));
    world.barrier();
  });
}

TEST(Callbacks, OfRequestsThatManyThreadsWaitForRunOnce) {
  on_ranks(2, [](const Communicator& world) {
    constexpr int kRounds = 200;
    const auto in = values_of(world.rank(), 6);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::int64_t> out(6);
      std::atomic<int> called = 0;
      {
        Request request = world.allreduce_async(in, out, Op::kSum);
        std::thread other([&] { request.wait(); });
        request.on_complete([&](unisono_result) { ++called; });
        request.wait();
        other.join();
      }
      ASSERT_EQ(called, 1) << "freeing the request waits for the callback";
    }
  });
}

// --------------------------------------------------------------------------------------------- persistent calls

TEST(Persistent, StartsAgainWithWhatTheBuffersHoldThen) {
  on_ranks(kRanks, [](const Communicator& world) {
    std::vector<std::int64_t> in(7), out(7);
    Request request = world.allreduce_async(in, out, Op::kSum, {.start = false});
    EXPECT_THROW(request.wait(), Error);
    EXPECT_THROW(request.test(), Error);
    for (std::int64_t round = 0; round < 20; ++round) {
      set(in, values_of(world.rank(), 7, round));
      request.start();
      request.wait();
      EXPECT_EQ(out, sum_of_all(7, round));
    }
  });
}

TEST(Persistent, MayFollowOneAnother) {
  on_ranks(kRanks, [](const Communicator& world) {
    std::vector<std::int64_t> in(3), sum(3), all(std::size_t{3} * kRanks);
    Request first = world.allreduce_async(in, sum, Op::kSum, {.start = false});
    Request second = world.allgather_async(sum, all, {.after = {&first}, .start = false});
    EXPECT_THROW(second.start(), Error) << "what it follows was never started";
    for (std::int64_t round = 0; round < 5; ++round) {
      set(in, values_of(world.rank(), 3, round));
      first.start();
      second.start();
      second.wait();
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        const auto block = std::span(all).subspan(std::size_t{3} * rank, 3);
        EXPECT_EQ(std::vector<std::int64_t>(block.begin(), block.end()), sum_of_all(3, round));
      }
    }
  });
}

TEST(Persistent, WrongUsesAreRefused) {
  on_ranks(2, [](const Communicator& world) {
    std::vector<std::int64_t> data(3);
    const std::uint32_t peer = 1 - world.rank();
    Request request = world.recv_async(data, peer, 5, {.start = false});
    request.start();
    try {
      request.start();
      ADD_FAILURE() << "started twice";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code_of(ErrorCode::kInvalidArgument));
      EXPECT_THAT(error.what(), HasSubstr("in flight"));
    }
    world.barrier();
    world.send(values_of(world.rank(), 3, 1), peer, 5);
    request.wait();
    EXPECT_EQ(data, values_of(peer, 3, 1));
    EXPECT_EQ(request.received(), 3);
    Request once = world.barrier_async();
    once.wait();
    EXPECT_THROW(once.start(), Error);
    EXPECT_THROW(world.barrier({.start = false}), Error);
    std::vector<double> came(data.size());
    EXPECT_THROW(world.sendrecv(data, peer, came, peer, 5, {.start = false}), Error);
    EXPECT_THROW(world.bcast_async(data, 9, {.start = false}), Error) << "arguments are checked when it is prepared";
    std::vector<Request> requests;
    requests.push_back(world.barrier_async({.start = false}));
    EXPECT_THROW(wait_all(requests), Error);
  });
}

TEST(Persistent, KeepsItsOwnCounts) {
  on_ranks(kRanks, [](const Communicator& world) {
    std::vector<std::int64_t> in(world.rank() + 1), out(6);
    Request request;
    {
      const std::vector<std::int64_t> counts{1, 2, 3};  // gone when the call is started
      request = world.allgatherv_async(in, out, {.counts = counts}, {.algorithm = "ring", .start = false});
    }
    for (std::int64_t round = 0; round < 4; ++round) {
      set(in, values_of(world.rank(), world.rank() + 1, round));
      request.start();
      request.wait();
      std::vector<std::int64_t> expected;
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        for (const std::int64_t value : values_of(rank, rank + 1, round)) expected.push_back(value);
      }
      EXPECT_EQ(out, expected);
    }
  });
}

// ------------------------------------------------------------------------------------------------------- groups

TEST(Groups, OfMixedCallsGiveEachItsResult) {
  on_ranks(kRanks, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    std::vector<std::vector<std::int64_t>> in, out(8);
    for (std::int64_t i = 0; i < 8; ++i) {
      in.push_back(values_of(r, static_cast<std::size_t>(1 + i * 30), i));
      out[static_cast<std::size_t>(i)].resize(in.back().size());
    }
    auto in_place = values_of(r, 11, 40);
    std::vector<std::int64_t> most(5), broadcast = values_of(r, 3), large(20'000), message(2);
    const auto big = values_of(r, 20'000), five = values_of(r, 5), two = values_of(r, 2, 9);
    std::vector<Request> requests;
    const std::uint32_t right = (r + 1) % kRanks, left = (r + kRanks - 1) % kRanks;
    {
      const Group group = world.group();
      for (std::size_t i = 0; i < 8; ++i) requests.push_back(world.allreduce_async(in[i], out[i], Op::kSum));
      requests.push_back(world.bcast_async(broadcast, 2));
      requests.push_back(world.allreduce_async(five, most, Op::kMax));
      requests.push_back(world.allreduce_async(kInPlace, in_place, Op::kSum));
      requests.push_back(world.allreduce_async(big, large, Op::kSum));
      requests.push_back(world.recv_async(message, left));
      requests.push_back(world.send_async(two, right));
      EXPECT_THROW(requests[0].wait(), Error) << "the group has not ended";
      EXPECT_THROW(world.barrier_async({.after = {&requests[0]}}), Error) << "it cannot be followed either";
      EXPECT_THROW(world.barrier(), Error);
      EXPECT_THROW(world.group(), Error) << "one at a time";
    }
    EXPECT_TRUE(wait_all(requests));
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(out[i], sum_of_all(in[i].size(), static_cast<std::int64_t>(i)));
    EXPECT_EQ(in_place, sum_of_all(11, 40));
    EXPECT_EQ(most, values_of(kRanks - 1, 5));
    EXPECT_EQ(broadcast, values_of(2, 3));
    EXPECT_EQ(large, sum_of_all(20'000));
    EXPECT_EQ(message, values_of(left, 2, 9));
  });
}

// Nobody else calls what is refused, so it would wait here.
TEST(Groups, RefuseWhatBlocks) {
  on_ranks(2, [](const Communicator& world) {
    if (world.rank() == 0) {
      const auto refused = [](unisono_result result, const char* function) {
        EXPECT_EQ(result, code_of(ErrorCode::kInvalidArgument)) << function;
        EXPECT_THAT(unisono_last_error(), testing::StartsWith(std::string(function) + " was called while a group"));
      };
      const Group group = world.group();
      unisono_communicator* const handle = world.handle();
      unisono_communicator* made = nullptr;
      unisono_graph* graph = nullptr;
      std::uint64_t bits = 1;
      const std::uint32_t ranks[] = {0, 1};
      refused(unisono_split(handle, 0, 0, 0, &made), "unisono_split");
      refused(unisono_split_with(handle, 0, 0, nullptr, &made), "unisono_split_with");
      refused(unisono_dup(handle, nullptr, &made), "unisono_dup");
      refused(unisono_subset(handle, ranks, 2, nullptr, &made), "unisono_subset");
      refused(unisono_create_group(handle, ranks, 2, 0, nullptr, &made), "unisono_create_group");
      refused(unisono_shrink(handle, &made), "unisono_shrink");
      refused(unisono_agree(handle, &bits), "unisono_agree");
      refused(unisono_window(handle, nullptr, 0), "unisono_window");
      refused(unisono_graph_create(handle, 0, nullptr, 0, nullptr, &graph), "unisono_graph_create");
      refused(unisono_probe(handle, 1, 0, 1, nullptr), "unisono_probe");
      const std::int64_t counts[] = {1, 1};
      std::int64_t data[] = {1, 2};
      unisono_call call{};
      call.struct_size = sizeof call;
      call.collective = UNISONO_ALLTOALLV;
      call.datatype = UNISONO_INT64;
      call.in_place = 1;
      call.recv_counts = counts;
      call.dst = data;
      call.dst_bytes = sizeof data;
      unisono_request* request = nullptr;
      refused(unisono_start(handle, &call, &request), "an in-place alltoallv whose count is 0");
    }
    world.barrier();
  });
}

TEST(Groups, FusedCallsHaveTheBitsOfSingleOnes) {
  on_ranks(4, [](const Communicator& world) {
    for (const char* algorithm : {"recursive_doubling", "flat"}) {
      constexpr std::size_t kCalls = 12;
      std::vector<std::vector<float>> in(kCalls), alone(kCalls), fused(kCalls);
      for (std::size_t i = 0; i < kCalls; ++i) {
        for (std::size_t k = 0; k < 17 + 31 * i; ++k) {
          in[i].push_back(std::sin(static_cast<float>(k * 7 + i * 3 + std::size_t{11} * world.rank())) * 1e3F);
        }
        alone[i].resize(in[i].size());
        fused[i].resize(in[i].size());
        world.allreduce(in[i], alone[i], Op::kSum, {.algorithm = algorithm});
      }
      std::vector<Request> requests;
      {
        const Group group = world.group();
        for (std::size_t i = 0; i < kCalls; ++i) {
          requests.push_back(world.allreduce_async(in[i], fused[i], Op::kSum, {.algorithm = algorithm}));
        }
      }
      EXPECT_TRUE(wait_all(requests));
      EXPECT_EQ(fused, alone) << algorithm;
    }
  });
}

TEST(Groups, OfOneRankAreFusedAlikeWhateverItFollows) {
  on_ranks(2, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    std::vector<std::int64_t> a = values_of(r, 4), b(4, -1), sum_a(4), sum_b(4);
    const auto source = values_of(r, 4, 3);
    // On rank 0 the input of the second call is still to come when the group ends.
    Request before;
    if (r == 0) {
      before = world.recv_async(b, 1, 3);
    } else {
      b = source;
    }
    std::vector<Request> requests;
    {
      const Group group = world.group();
      requests.push_back(world.allreduce_async(a, sum_a, Op::kSum));
      Options options;
      if (r == 0) options.after = {&before};
      requests.push_back(world.allreduce_async(b, sum_b, Op::kSum, options));
    }
    if (r == 1) {
      const auto sent = values_of(0, 4, 8);
      std::this_thread::sleep_for(milliseconds(30));
      world.send(sent, 0, 3);
    }
    EXPECT_TRUE(wait_all(requests));
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(sum_a[i], values_of(0, 4)[i] + values_of(1, 4)[i]);
      EXPECT_EQ(sum_b[i], values_of(0, 4, 8)[i] + values_of(1, 4, 3)[i]);
    }
  });
}

TEST(Groups, CallsThatFollowAFusedOneSeeItsResult) {
  on_ranks(kRanks, [](const Communicator& world) {
    const auto in = values_of(world.rank(), 6), more = values_of(world.rank(), 6, 1);
    std::vector<std::int64_t> out(6), other(6), copied(6);
    std::vector<Request> requests;
    {
      const Group group = world.group();
      requests.push_back(world.allreduce_async(in, out, Op::kSum));
      requests.push_back(world.allreduce_async(more, other, Op::kSum));
    }
    world.copy_async(out, copied, {.after = {&requests[0]}}).wait();
    EXPECT_EQ(copied, sum_of_all(6));
    EXPECT_TRUE(wait_all(requests));
    EXPECT_EQ(other, sum_of_all(6, 1));
  });
}

TEST(Groups, PersistentCallsMayBeMembers) {
  on_ranks(kRanks, [](const Communicator& world) {
    std::vector<std::int64_t> a(3), b(4), sum_a(3), sum_b(4);
    std::vector<Request> requests;
    requests.push_back(world.allreduce_async(a, sum_a, Op::kSum, {.start = false}));
    requests.push_back(world.allreduce_async(b, sum_b, Op::kSum, {.start = false}));
    for (std::int64_t round = 0; round < 5; ++round) {
      set(a, values_of(world.rank(), 3, round));
      set(b, values_of(world.rank(), 4, round + 1));
      {
        const Group group = world.group();
        for (Request& request : requests) request.start();
        EXPECT_THROW(requests[0].start(), Error) << "in the group already";
      }
      EXPECT_TRUE(wait_all(requests));
      EXPECT_EQ(sum_a, sum_of_all(3, round));
      EXPECT_EQ(sum_b, sum_of_all(4, round + 1));
    }
  });
}

TEST(Groups, FailuresBelongToTheRequests) {
  on_ranks(2, [](const Communicator& world) {
    std::vector<std::int64_t> a(3), b(3);
    Communicator own = world.split(0);
    std::vector<Request> requests;
    {
      const Group group = own.group();
      requests.push_back(own.allreduce_async(kInPlace, a, Op::kSum));
      requests.push_back(own.allreduce_async(kInPlace, b, Op::kSum));
      EXPECT_THROW(own.allreduce_async(kInPlace, b, Op::kMinloc), Error) << "arguments are checked at once";
      own.revoke("no more");
    }
    for (Request& request : requests) EXPECT_THROW(request.wait(), Error);
    Communicator freed = world.split(0);
    Request left;
    EXPECT_EQ(unisono_group_begin(freed.handle()), 0);
    left = freed.allreduce_async(kInPlace, a, Op::kSum);
    freed.free();
    try {
      left.wait();
      ADD_FAILURE() << "it has no communicator";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code_of(ErrorCode::kFreedCommunicator));
    }
    EXPECT_EQ(unisono_group_end(world.handle()), code_of(ErrorCode::kInvalidArgument));
    EXPECT_THAT(unisono_last_error(), HasSubstr("no group"));
    world.barrier();
  });
}

TEST(Groups, ThatAreOpenWhenTheContextIsLeftEndInError) {
  const ThreadJob job(1);
  Request request;
  std::vector<std::int64_t> data{1};
  {
    const Context context(job, 0);
    EXPECT_EQ(unisono_group_begin(context.world().handle()), 0);
    request = context.world().allreduce_async(kInPlace, data, Op::kSum);
  }
  EXPECT_THROW(request.wait(), Error);
}

// The same forms on an engine behind the registers of a device, which fuses nothing.
TEST(FormsOfCalls, OnADevice) {
  setenv("UNISONO_PLATFORM", "functional", 1);
  on_ranks(kRanks, [](const Communicator& world) {
    const std::uint32_t r = world.rank();
    std::vector<std::int64_t> a(3), b(5), sum_a(3), sum_b(5);
    std::vector<Request> requests;
    requests.push_back(world.allreduce_async(a, sum_a, Op::kSum, {.start = false}));
    requests.push_back(world.allreduce_async(b, sum_b, Op::kSum, {.start = false}));
    for (std::int64_t round = 0; round < 3; ++round) {
      set(a, values_of(r, 3, round));
      set(b, values_of(r, 5, round + 7));
      {
        const Group group = world.group();
        for (Request& request : requests) request.start();
      }
      std::atomic<int> called = 0;
      requests[1].on_complete([&](unisono_result result) {
        EXPECT_EQ(result, 0);
        ++called;
      });
      requests[1].offload();
      EXPECT_TRUE(wait_any(requests).has_value());
      EXPECT_TRUE(wait_all(requests));
      EXPECT_EQ(sum_a, sum_of_all(3, round));
      EXPECT_EQ(sum_b, sum_of_all(5, round + 7));
      // The thread of the context may be at the callback still.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (called == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      EXPECT_EQ(called, 1);
    }
    const Communicator twin = world.dup({.timeout_seconds = 20});
    std::vector<std::int64_t> most(1);
    twin.allreduce(std::vector<std::int64_t>{r}, most, Op::kMax);
    EXPECT_EQ(most[0], 2);
    const std::vector<std::uint32_t> list{0, 1, 2};
    try {
      world.create_group(list);
      ADD_FAILURE() << "a device has no tags of the library";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code_of(ErrorCode::kUnsupported));
    }
    world.barrier();
  });
  unsetenv("UNISONO_PLATFORM");
}

TEST(Groups, OfThreadsAreTheirOwn) {
  on_ranks(2, [](const Communicator& world) {
    const Communicator other = world.split(0);
    std::thread thread([&] {
      std::vector<std::int64_t> a(3, 1), b(3, 2);
      std::vector<Request> requests;
      {
        const Group group = other.group();
        requests.push_back(other.allreduce_async(kInPlace, a, Op::kSum));
        requests.push_back(other.allreduce_async(kInPlace, b, Op::kSum));
      }
      EXPECT_TRUE(wait_all(requests));
      EXPECT_EQ(a[2] + b[2], 6);
    });
    std::vector<std::int64_t> c(3, world.rank());
    const Group group = world.group();
    Request request = world.allreduce_async(kInPlace, c, Op::kSum);
    thread.join();
    unisono_group_end(world.handle());
    request.wait();
    EXPECT_EQ(c[0], 1);
    EXPECT_EQ(unisono_group_begin(world.handle()), 0);  // for the destructor
  });
}

}  // namespace
}  // namespace unisono::test
