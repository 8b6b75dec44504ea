// Calls of ranks that switches carry: what comes of them, also when switches end in the middle of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "collectives/algorithm.hpp"
#include "core/cores.hpp"
#include "core/crc32c.hpp"
#include "core/user_op.hpp"
#include "switch/handler/binary.hpp"
#include "tests/cpp/switch/endpoint/carried_job.hpp"
#include "tests/cpp/switch/handler/words.hpp"

namespace unisono::slots {
namespace {

using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::uint32_t kRanks = 5;

std::int64_t value(std::uint32_t rank, std::uint64_t i) {
  return static_cast<std::int64_t>((rank + 1) * 1000003 + i * (rank + 7));
}

std::vector<std::int64_t> values(std::uint32_t rank, std::uint64_t count) {
  std::vector<std::int64_t> made(count);
  for (std::uint64_t i = 0; i < count; ++i) made[i] = value(rank, i);
  return made;
}

/// All that slots carry, on data that differ, with one count.
void run_all(const Rank& own, std::uint64_t count) {
  const std::uint32_t root = static_cast<std::uint32_t>(count % own.ranks);
  std::vector<std::int64_t> sums(count);
  for (std::uint32_t rank = 0; rank < own.ranks; ++rank) {
    for (std::uint64_t i = 0; i < count; ++i) sums[i] += value(rank, i);
  }
  std::vector<std::int64_t> src = values(own.rank, count);
  {
    std::vector<std::int64_t> dst = src;
    own.engine.run(own.sum_in_place(Datatype::kInt64, dst));
    ASSERT_EQ(dst, sums);
    std::vector<std::int64_t> other(count);
    CallRequest request = own.request(Collective::kAllreduce, Datatype::kInt64, count);
    request.call.func = Func::kSum;
    request.src = Rank::binding(src);
    request.dst = Rank::binding(other);
    own.engine.run(request);
    ASSERT_EQ(other, sums);
  }
  {
    std::vector<std::int64_t> dst(count, -1);
    CallRequest request = own.request(Collective::kReduce, Datatype::kInt64, count);
    request.call.func = Func::kSum;
    request.call.root = root;
    request.src = Rank::binding(src);
    request.dst = Rank::binding(dst);
    own.engine.run(request);
    ASSERT_EQ(dst, own.rank == root ? sums : std::vector<std::int64_t>(count, -1));
  }
  {
    std::vector<std::int64_t> dst = own.rank == root ? values(root, count) : std::vector<std::int64_t>(count);
    CallRequest request = own.request(Collective::kBcast, Datatype::kInt64, count);
    request.call.root = root;
    request.dst = Rank::binding(dst);
    own.engine.run(request);
    ASSERT_EQ(dst, values(root, count));
  }
  {
    std::vector<std::int64_t> all(count * own.ranks);
    CallRequest request = own.request(Collective::kAllgather, Datatype::kInt64, count);
    request.src = Rank::binding(src);
    request.dst = Rank::binding(all);
    own.engine.run(request);
    for (std::uint32_t rank = 0; rank < own.ranks; ++rank) {
      for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(all[rank * count + i], value(rank, i));
    }
    std::vector<std::int64_t> mine(count);
    request = own.request(Collective::kReduceScatter, Datatype::kInt64, count);
    request.call.func = Func::kSum;
    for (std::int64_t& one : all) one += own.rank;
    request.src = Rank::binding(all);
    request.dst = Rank::binding(mine);
    own.engine.run(request);
    const auto of_ranks = static_cast<std::int64_t>(own.ranks * (own.ranks - 1) / 2);
    for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(mine[i], own.ranks * value(own.rank, i) + of_ranks);
  }
  own.engine.run(own.request(Collective::kBarrier, Datatype::kNone, 0));
}

int add(const void* a, const void* b, void* out, std::uint64_t count, int, void*) {
  const auto* left = static_cast<const std::int64_t*>(a);
  const auto* right = static_cast<const std::int64_t*>(b);
  auto* sums = static_cast<std::int64_t*>(out);
  for (std::uint64_t i = 0; i < count; ++i) sums[i] = left[i] + right[i];
  return 0;
}

/// Has the switches of a rank's job fold by `func`, as all its ranks say.
void carry_operator(const Rank& own, Func func, std::barrier<>& all) {
  if (own.rank == 0) {
    const std::vector<std::byte> binary = handler::write_binary(handler::adds_elements());
    EXPECT_EQ(own.aggregation.load_operator(0, Func::kUser3, binary), "");
  }
  all.arrive_and_wait();
  own.aggregation.add_operator(0, func, Func::kUser3, 8);
}

std::uint64_t counter_of(const std::string& address, const std::string& name) {
  const std::string status = ask_at(address, "status");
  const std::size_t at = status.find("\"" + name + "\":");
  return at == std::string::npos ? ~std::uint64_t{0} : std::stoull(status.substr(at + name.size() + 3));
}

// Numbers of a process change hands: what an operator is to ranks is its name.
TEST(Carried, AnOperatorThatGetsAnotherNumberIsCarriedAsBefore) {
  Serving one("one");
  const UserOp op{"adds", add, nullptr, true};
  const Func before = add_user_op(op);
  Func after = before;
  std::barrier all(kRanks);
  std::atomic<std::uint64_t> frames{0};
  const auto errors = run_carried(kRanks, settings_for({one.address()}), [&](Rank& own) {
    carry_operator(own, before, all);
    all.arrive_and_wait();
    if (own.rank == 0) {
      remove_user_op(before);
      add_user_op({"another", add, nullptr, true});
      after = add_user_op(op);
      frames = counter_of(one.address(), "frames_in");
    }
    all.arrive_and_wait();
    std::vector<std::int64_t> mine = values(own.rank, 100);
    CallRequest request = own.sum_in_place(Datatype::kInt64, mine);
    request.call.func = after;
    own.engine.run(request);
    ASSERT_EQ(mine[99], 15 * 1000003 + 99 * 45);
    all.arrive_and_wait();
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_NE(before, after);
  EXPECT_GE(counter_of(one.address(), "frames_in"), frames + kRanks);
  remove_user_op(before);
  remove_user_op(after);
}

TEST(Carried, AnOperatorThatIsFreedBeforeItsCallBeginsDoesNoHarm) {
  Serving one("one");
  const Func func = add_user_op({"adds", add, nullptr, true});
  std::barrier all(kRanks);
  const auto errors = run_carried(kRanks, settings_for({one.address()}), [&](Rank& own) {
    carry_operator(own, func, all);
    std::vector<std::int64_t> mine = values(own.rank, 100);
    CallRequest request = own.sum_in_place(Datatype::kInt64, mine);
    request.call.func = func;
    CallRequest held = own.request(Collective::kRecv, Datatype::kInt64, 1);
    std::vector<std::int64_t> word{7};
    held.call.root = 1;
    held.dst = Rank::binding(word);
    CallId first{};
    if (own.rank == 0) {
      first = own.engine.submit(held);
      request.wait_for = std::span(&first, 1);
    }
    const CallId call = own.engine.submit(request);
    all.arrive_and_wait();
    if (own.rank == 0) remove_user_op(func);
    all.arrive_and_wait();
    if (own.rank == 1) {
      CallRequest frees = own.request(Collective::kSend, Datatype::kInt64, 1);
      frees.src = Rank::binding(word);
      own.engine.run(frees);
    }
    ASSERT_EQ(own.engine.wait(call).code, ErrorCode::kOk);
    ASSERT_EQ(mine[99], 15 * 1000003 + 99 * 45);
    all.arrive_and_wait();
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(Carried, SixCollectivesOfAnyLength) {
  Serving one("one");
  const auto errors = run_carried(kRanks, settings_for({one.address()}), [&](Rank& own) {
    ASSERT_TRUE(own.carried());
    for (const std::uint64_t count : {0, 1, 3, 1024, 5000}) run_all(own, count);
    ASSERT_STREQ(own.engine.last_algorithm(0).algorithm->name, "switch");
    ASSERT_TRUE(own.engine.last_algorithm(0).automatic);
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_NE(counter_of(one.address(), "frames_in"), 0U);
  // The job has gone, and all that it had with it.
  EXPECT_TRUE(comes([&] { return ask_at(one.address(), "status").find("\"pools\":0") != std::string::npos; },
                    std::chrono::seconds(1)));
}

// Whatever is pinned, unless a rule names the switches; then the first one that a call meets decides.
TEST(Carried, AsRulesSayThatNameSwitches) {
  Serving one("one");
  const auto rule = [](Collective collective, const char* name, std::uint64_t max_bytes) {
    Rule made;
    made.position = static_cast<std::uint16_t>(find_algorithm(collective, name));
    made.max_bytes = max_bytes;
    made.switches = true;
    return made;
  };
  const auto rules = std::make_shared<const std::vector<Rule>>(
      std::vector<Rule>{rule(Collective::kAllreduce, "ring", 4096), rule(Collective::kAllreduce, "switch", kAnyBytes),
                        rule(Collective::kBarrier, "dissemination", kAnyBytes)});
  const auto errors = run_carried(
      kRanks, settings_for({one.address()}),
      [&](Rank& own) {
        const auto chosen = [&](std::uint64_t count) {
          std::vector<std::int64_t> dst = values(own.rank, count);
          own.engine.run(own.sum_in_place(Datatype::kInt64, dst));
          EXPECT_EQ(dst.back(), 15 * 1000003 + static_cast<std::int64_t>(count - 1) * 45);
          return std::string(own.engine.last_algorithm(0).algorithm->name);
        };
        EXPECT_EQ(chosen(512), "ring");
        EXPECT_EQ(chosen(513), "switch");
        own.engine.run(own.request(Collective::kBarrier, Datatype::kNone, 0));
        EXPECT_STREQ(own.engine.last_algorithm(0).algorithm->name, "switch");
      },
      std::chrono::seconds(30), rules);
  EXPECT_THAT(errors, Each(""));
}

TEST(Carried, ByTwoSwitchesThatShareEachVector) {
  Serving one("one");
  Serving two("two");
  const auto errors = run_carried(kRanks, settings_for({one.address(), two.address()}), [&](Rank& own) {
    for (const std::uint64_t count : {0, 1, 3, 1024, 50000}) run_all(own, count);
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_NE(counter_of(one.address(), "frames_in"), 0U);
  EXPECT_NE(counter_of(two.address(), "frames_in"), 0U);
}

/// Whether results have gone to a group: one datagram for five that came, and for what a root alone gets some more.
bool by_a_group(const std::string& multicast) {
  Serving one(ServiceSettings{.listen = "127.0.0.1:0", .name = "one", .multicast = multicast});
  const auto errors = run_carried(kRanks, settings_for({one.address()}), [&](Rank& own) {
    for (const std::uint64_t count : {0, 1, 3, 1024, 5000}) run_all(own, count);
    std::vector<std::int64_t> vector = values(own.rank, 8);
    for (int i = 0; i < 200; ++i) own.engine.run(own.sum_in_place(Datatype::kInt64, vector));
  });
  EXPECT_THAT(errors, Each(""));
  return counter_of(one.address(), "frames_out") < counter_of(one.address(), "frames_in") * 3 / 5;
}

TEST(Carried, WithResultsThatGoToAllAtOnce) {
  // Where other programs keep members from their turn, results are sent to each again: then another try tells.
  const auto sometimes = [](const std::string& multicast) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      if (by_a_group(multicast)) return true;
    }
    return false;
  };
  EXPECT_TRUE(sometimes("239.77.5.4:47011"));
  // On the loopback a switch takes a group by itself, if there are more cores than members.
  const bool cores = std::thread::hardware_concurrency() > kRanks && cgroup_quota().cores >= kRanks + 1;
  EXPECT_EQ(cores ? sometimes("") : by_a_group(""), cores);
}

TEST(Carried, WithResultsThatGoToEach) { EXPECT_FALSE(by_a_group("off")); }

TEST(Carried, ByATree) {
  Serving top("top");
  Serving left(ServiceSettings{.listen = "127.0.0.1:0", .name = "left", .uplink = top.address()});
  Serving right(ServiceSettings{.listen = "127.0.0.1:0", .name = "right", .uplink = top.address()});
  const auto errors = run_carried(kRanks, settings_for({left.address(), right.address()}), [&](Rank& own) {
    ASSERT_TRUE(own.carried());
    for (const std::uint64_t count : {0, 1, 3, 1024, 5000}) run_all(own, count);
  });
  EXPECT_THAT(errors, Each(""));
  for (const Serving* one : {&top, &left, &right}) EXPECT_NE(counter_of(one->address(), "frames_in"), 0U);
}

TEST(Carried, OverABadNetwork) {
  const udp::ImpairmentSettings bad = udp::impairment_of("loss=0.05,reorder=0.1,duplicate=0.05,corrupt=0.01,seed=3");
  Serving one(ServiceSettings{.listen = "127.0.0.1:0", .name = "one", .impairment = bad});
  AggregationSettings settings = settings_for({one.address()});
  settings.impairment = bad;
  settings.patience = std::chrono::seconds(5);
  const auto errors = run_carried(kRanks, settings, [&](Rank& own) {
    for (const std::uint64_t count : {0, 1, 1024, 9000}) run_all(own, count);
    ASSERT_TRUE(own.carried());
  });
  EXPECT_THAT(errors, Each(""));
}

/// Sums of fp32 over and over, of the same data: digests of the results, alike on all ranks, or a sentence. `at(n)` is
/// called by rank 0 before its n-th call.
std::vector<std::uint32_t> sums_of(Rank& own, int calls, std::uint64_t count, const std::function<void(int)>& at) {
  std::vector<float> given(count);
  for (std::uint64_t i = 0; i < count; ++i) given[i] = std::ldexp(static_cast<float>(value(own.rank, i)), -20);
  std::vector<std::uint32_t> digests;
  for (int n = 0; n < calls; ++n) {
    if (own.rank == 0) at(n);
    std::vector<float> sum = given;
    own.engine.run(own.sum_in_place(Datatype::kFp32, sum));
    digests.push_back(crc32c({reinterpret_cast<const std::uint8_t*>(sum.data()), count * sizeof(float)}));
  }
  return digests;
}

/// Digests of all ranks are the same; in the first calls, and in the one that was under way when the switches were
/// given up, they are those of the switches.
void expect_alike(const std::vector<std::vector<std::uint32_t>>& digests, int carried) {
  for (const auto& one : digests) ASSERT_EQ(one, digests[0]);
  for (int n = 0; n < carried; ++n) EXPECT_EQ(digests[0][n], digests[0][0]) << n;
}

/// A switch ends in the middle of a call, after a time that differs from run to run.
TEST(Carried, EndsAmongTheRanksWhenTheSwitchDies) {
  for (int run = 0; run < 6; ++run) {
    auto one = std::make_unique<Serving>("one");
    const AggregationSettings settings = settings_for({one->address()});
    std::vector<std::vector<std::uint32_t>> digests(kRanks);
    std::thread killer;
    const auto errors = run_carried(kRanks, settings, [&](Rank& own) {
      digests[own.rank] = sums_of(own, 12, 30000, [&](int n) {
        if (n != 4) return;
        killer = std::thread([&, run] {
          std::this_thread::sleep_for(std::chrono::microseconds(700 * run));
          one.reset();
        });
      });
      EXPECT_FALSE(own.carried());
    });
    killer.join();
    ASSERT_THAT(errors, Each(""));
    expect_alike(digests, 5);
  }
}

/// Who has a communicator's last result frees it at once, while another rank still asks for its own.
TEST(Carried, EndsAmongTheRanksWhenTheSwitchDiesAfterTheOthersHaveFreedTheCommunicator) {
  constexpr std::uint32_t kRoot = 3;
  constexpr std::uint64_t kCount = 100;
  udp::ImpairmentSettings bad;
  bad.largest = 400;  // the sum is lost, which is for the root; what the others get is short
  auto one = std::make_unique<Serving>(ServiceSettings{.listen = "127.0.0.1:0", .name = "one", .impairment = bad});
  std::atomic<std::uint32_t> freed = 0;
  std::thread killer;
  const auto errors = run_carried(
      kRanks, settings_for({one->address()}),
      [&](Rank& own) {
        std::vector<std::uint32_t> all(own.ranks);
        std::iota(all.begin(), all.end(), 0U);
        own.engine.create_communicator(1, 0, all, own.engine.state(0).agreed);
        own.aggregation.arrange_for(1, 0, all);
        ASSERT_NE(own.aggregation.carrier_of(1), "");
        std::vector<std::int64_t> src = values(own.rank, kCount);
        std::vector<std::int64_t> dst(kCount);
        CallRequest request = own.request(Collective::kReduce, Datatype::kInt64, kCount);
        request.communicator = 1;
        request.call.func = Func::kSum;
        request.call.root = kRoot;
        request.src = Rank::binding(src);
        request.dst = Rank::binding(dst);
        own.engine.run(request);
        own.engine.free_communicator(1);
        if (++freed == kRanks - 1) killer = std::thread([&] { one.reset(); });
        if (own.rank == kRoot) {
          EXPECT_EQ(freed, kRanks) << "the others were not gone";
          for (std::uint64_t i = 0; i < kCount; ++i) {
            std::int64_t want = 0;
            for (std::uint32_t rank = 0; rank < own.ranks; ++rank) want += value(rank, i);
            EXPECT_EQ(dst[i], want);
          }
        }
        // Without the switch.
        CallRequest barrier = own.request(Collective::kBarrier, Datatype::kNone, 0);
        barrier.algorithm = find_algorithm(Collective::kBarrier, "dissemination");
        own.engine.run(barrier);
      },
      std::chrono::seconds(5));
  killer.join();
  EXPECT_THAT(errors, Each(""));
}

TEST(Carried, EndsAmongTheRanksWhenOneOfTwoSwitchesDies) {
  auto one = std::make_unique<Serving>("one");
  Serving two("two");
  std::vector<std::vector<std::uint32_t>> digests(kRanks);
  const auto errors = run_carried(kRanks, settings_for({one->address(), two.address()}), [&](Rank& own) {
    digests[own.rank] = sums_of(own, 8, 60000, [&](int n) {
      if (n == 3) one.reset();
    });
  });
  ASSERT_THAT(errors, Each(""));
  expect_alike(digests, 4);
}

TEST(Carried, EndsAmongTheRanksWhenTheTopOfATreeDies) {
  auto top = std::make_unique<Serving>("top");
  Serving left(ServiceSettings{.listen = "127.0.0.1:0", .name = "left", .uplink = top->address()});
  Serving right(ServiceSettings{.listen = "127.0.0.1:0", .name = "right", .uplink = top->address()});
  std::vector<std::vector<std::uint32_t>> digests(kRanks);
  const auto errors = run_carried(kRanks, settings_for({left.address(), right.address()}), [&](Rank& own) {
    digests[own.rank] = sums_of(own, 8, 30000, [&](int n) {
      if (n == 3) top.reset();
    });
    EXPECT_FALSE(own.carried());
  });
  ASSERT_THAT(errors, Each(""));
  expect_alike(digests, 4);
}

/// Reductions to a root, broadcasts and blocks, some of them in flight together, one of them behind another call.
TEST(Carried, FinishesAllKindsOfCallsAmongTheRanks) {
  for (int run = 0; run < 4; ++run) {
    auto one = std::make_unique<Serving>("one");
    std::thread killer;
    const auto errors = run_carried(kRanks, settings_for({one->address()}), [&](Rank& own) {
      run_all(own, 700);
      if (own.rank == 0) {
        killer = std::thread([&, run] {
          std::this_thread::sleep_for(std::chrono::microseconds(1500 * run));
          one.reset();
        });
      }
      for (const std::uint64_t count : {1, 2000, 700, 3, 5000}) run_all(own, count);
      // Several at once; the second begins when the first has ended.
      std::vector<std::int64_t> a = values(own.rank, 4000);
      std::vector<std::int64_t> b = values(own.rank, 10);
      std::vector<std::int64_t> c = values(own.rank, 600);
      const CallId first = own.engine.submit(own.sum_in_place(Datatype::kInt64, a));
      CallRequest behind = own.sum_in_place(Datatype::kInt64, b);
      behind.wait_for = std::span(&first, 1);
      const CallId second = own.engine.submit(behind);
      const CallId third = own.engine.submit(own.sum_in_place(Datatype::kInt64, c));
      for (const CallId id : {third, second, first}) ASSERT_EQ(own.engine.wait(id).code, ErrorCode::kOk);
      std::int64_t want = 0;
      for (std::uint32_t rank = 0; rank < own.ranks; ++rank) want += value(rank, 3);
      ASSERT_EQ(a[3], want);
      ASSERT_EQ(b[3], want);
      ASSERT_EQ(c[3], want);
      run_all(own, 100);
    });
    killer.join();
    ASSERT_THAT(errors, Each(""));
  }
}

/// Two ranks have begun a call when the switch ends; the third one multiplies its result by something else.
TEST(Carried, ComparesFactorsOfCallsThatItFinishesAmongTheRanks) {
  auto one = std::make_unique<Serving>("one");
  const auto errors = run_carried(3, settings_for({one->address()}), [&](Rank& own) {
    run_all(own, 5);
    std::vector<double> vector(8, own.rank + 1);
    CallRequest request = own.sum_in_place(Datatype::kFp64, vector);
    request.post_scale = own.rank == 2 ? 0.25 : 0.5;
    if (own.rank == 2) {
      std::this_thread::sleep_for(milliseconds(100));
      one.reset();
    }
    own.engine.run(request);
  });
  EXPECT_THAT(errors, Each(HasSubstr("post_scale 0.25")));
}

TEST(Carried, GoesOnWithASwitchThatIsStartedAnew) {
  auto one = std::make_unique<Serving>("one");
  const std::string address = one->address();
  AggregationSettings settings = settings_for({address});
  settings.patience = std::chrono::seconds(10);
  std::vector<std::vector<std::uint32_t>> digests(kRanks);
  const auto errors = run_carried(kRanks, settings, [&](Rank& own) {
    digests[own.rank] = sums_of(own, 12, 30000, [&](int n) {
      if (n != 4) return;
      one.reset();
      one = std::make_unique<Serving>(ServiceSettings{.listen = address, .name = "one"});
    });
    EXPECT_TRUE(own.carried());
  });
  ASSERT_THAT(errors, Each(""));
  expect_alike(digests, 12);
}

/// Each rank makes them in the same order, uses them in another one, and frees them.
TEST(Carried, InHundredsOfCommunicators) {
  Serving one("one");
  constexpr std::uint32_t kMany = 150;
  const auto errors = run_carried(3, settings_for({one.address()}), [&](Rank& own) {
    const Agreement agreed = own.engine.state(0).agreed;
    // Of the ranks 2, 1 and 0, in this order; and, every third, without rank 1.
    for (std::uint32_t number = 1; number <= kMany; ++number) {
      std::vector<std::uint32_t> endpoints{2, 1, 0};
      if (number % 3 == 0) endpoints = {2, 0};
      if (number % 3 == 0 && own.rank == 1) continue;
      own.engine.create_communicator(number, 0, endpoints, agreed);
      own.aggregation.arrange_for(number, 0, endpoints);
      ASSERT_NE(own.aggregation.carrier_of(number), "") << number;
    }
    for (std::uint32_t round = 0; round < 2; ++round) {
      for (std::uint32_t i = 0; i < kMany; ++i) {
        const std::uint32_t number = i * 7 % kMany + 1;
        if (number % 3 == 0 && own.rank == 1) continue;
        std::vector<std::int64_t> vector = values(own.rank, 20 + number);
        CallRequest request = own.sum_in_place(Datatype::kInt64, vector);
        request.communicator = number;
        own.engine.run(request);
        const std::int64_t others = number % 3 == 0 ? 0 : value(1, 9);
        ASSERT_EQ(vector[9], value(0, 9) + value(2, 9) + others);
      }
    }
    own.engine.run(own.request(Collective::kBarrier, Datatype::kNone, 0));
    for (std::uint32_t number = 1; number <= kMany; ++number) {
      if (number % 3 != 0 || own.rank != 1) own.engine.free_communicator(number);
    }
    own.engine.run(own.request(Collective::kBarrier, Datatype::kNone, 0));
    if (own.rank == 0) {
      EXPECT_TRUE(comes([&] { return ask_at(one.address(), "status").find("\"pools\":1,") != std::string::npos; },
                        std::chrono::seconds(1)));
    }
    own.engine.run(own.request(Collective::kBarrier, Datatype::kNone, 0));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(Carried, NotWithAnotherSecretAndNotWithoutASwitch) {
  Serving one("one");
  AggregationSettings settings = settings_for({one.address()});
  settings.secret = "another secret of the tests";
  const auto stranger = run_carried(3, settings, [&](Rank& own) {
    EXPECT_FALSE(own.carried());
    run_all(own, 100);
  });
  EXPECT_THAT(stranger, Each(""));
  const auto alone = run_carried(3, settings_for({"127.0.0.1:1"}), [&](Rank& own) {
    EXPECT_FALSE(own.carried());
    run_all(own, 100);
  });
  EXPECT_THAT(alone, Each(""));
}

TEST(Carried, SaysWhichRanksDoNotAgree) {
  Serving one("one");
  const auto errors = run_carried(3, settings_for({one.address()}), [&](Rank& own) {
    std::vector<std::int64_t> vector = values(own.rank, own.rank == 2 ? 7 : 8);
    own.engine.run(own.sum_in_place(Datatype::kInt64, vector));
  });
  EXPECT_THAT(errors, Each(HasSubstr("rank 2")));
  EXPECT_THAT(errors, ::testing::Contains(HasSubstr("all ranks must say the same")));
}

TEST(Carried, NamesTheRankThatDoesNotCome) {
  Serving one("one");
  const auto errors = run_carried(
      3, settings_for({one.address()}),
      [&](Rank& own) {
        run_all(own, 5);
        if (own.rank == 1) {
          std::this_thread::sleep_for(milliseconds(1500));
          return;
        }
        std::vector<std::int64_t> vector = values(own.rank, 8);
        own.engine.run(own.sum_in_place(Datatype::kInt64, vector));
      },
      milliseconds(700));
  EXPECT_EQ(errors[1], "");
  EXPECT_THAT(errors[0] + errors[2], HasSubstr("waits for rank 1"));
  EXPECT_NE(errors[0], "");
  EXPECT_NE(errors[2], "");
}

}  // namespace
}  // namespace unisono::slots
