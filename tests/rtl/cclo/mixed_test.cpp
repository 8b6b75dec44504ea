// Communicators of which some members have a Verilated engine and others the native one, on one simulated network.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/error.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/host.hpp"
#include "tests/rtl/cclo/call_case.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint32_t kPlace = 3;  ///< of the communicator in the engines' tables
constexpr std::uint64_t kLimit = 400'000;

using Native = std::vector<std::uint32_t>;

sim::ClusterConfig mixed(std::uint32_t nodes, const Native& native) {
  sim::ClusterConfig config;
  config.network.nodes = nodes;
  config.network.policy = sim::Policy::kPause;
  config.memory.channels = sim::Node::kMemoryPorts;
  config.memory.one_memory = true;
  config.memory.read_latency = 30;
  config.memory.write_latency = 20;
  config.firmware = UNISONO_FIRMWARE_HEX;
  config.native = native;
  return config;
}

/// A cluster whose nodes have one communicator of all.
class Job {
 public:
  explicit Job(const sim::ClusterConfig& config, const sim::Host::Agreed& agreed = {}) : cluster_(config) {
    for (std::uint32_t node = 0; node < size(); ++node) {
      hosts_.emplace_back(cluster_, node);
      hosts_[node].run();
    }
    for (std::uint32_t node = 0; node < size(); ++node) {
      sim::Host::Agreed terms = agreed;
      terms.opens = false;  // native engines ask first
      hosts_[node].create_communicator(kPlace, 77, size(), terms);
    }
  }

  sim::Cluster& cluster() { return cluster_; }
  sim::Host& host(std::uint32_t node) { return hosts_[node]; }
  std::uint32_t size() const { return cluster_.nodes(); }
  std::uint32_t next_id() { return ++last_id_; }

 private:
  sim::Cluster cluster_;
  std::vector<sim::Host> hosts_;
  std::uint32_t last_id_ = 0;
};

/// One message of a test: its words differ from those of all others.
struct Message {
  std::uint32_t from = 0, to = 0, tag = 0;
  std::uint64_t count = 0;
  std::uint64_t place = 0;  ///< in the memory of both

  std::vector<std::int32_t> data(std::uint32_t number) const {
    std::vector<std::int32_t> words(count);
    for (std::size_t k = 0; k < count; ++k) words[k] = static_cast<std::int32_t>(k * 5 + number * 1'000'003 + from);
    return words;
  }
  CallDescriptor call(bool sends, std::uint32_t id) const {
    CallDescriptor call;
    call.dtype = Datatype::kInt32;
    call.communicator = kPlace;
    call.count = count;
    call.collective = sends ? Collective::kSend : Collective::kRecv;
    call.root = sends ? to : from;
    call.tag = tag;
    (sends ? call.src_address : call.dst_address) = sim::Node::kMemoryAddress + place;
    (sends ? call.src_bytes : call.dst_bytes) = count * 4;
    call.call_id = id;
    return call;
  }
};

/// All sends in the order given, all receives sorted by tag; each rank has at most 16 of both out at a time.
void exchange(Job& job, std::vector<Message> messages) {
  std::uint64_t place = 0;
  for (Message& message : messages) {
    message.place = place;
    place += (message.count * 4 + 127) / 64 * 64;
  }
  struct Todo {
    std::size_t number;
    bool sends;
  };
  std::vector<std::vector<Todo>> todo(job.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    todo[messages[i].from].push_back({i, true});
    const auto data = messages[i].data(static_cast<std::uint32_t>(i));
    job.cluster()
        .any_node(messages[i].from)
        .store(sim::Node::kMemoryAddress + messages[i].place, std::as_bytes(std::span(data)));
  }
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    std::vector<Todo> receives;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].to == rank) receives.push_back({i, false});
    }
    std::stable_sort(receives.begin(), receives.end(),
                     [&](const Todo& a, const Todo& b) { return messages[a.number].tag < messages[b.number].tag; });
    todo[rank].insert(todo[rank].begin() + static_cast<std::ptrdiff_t>(todo[rank].size() / 2), receives.begin(),
                      receives.end());
  }
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    for (const Todo& one : todo[rank]) job.host(rank).submit(messages[one.number].call(one.sends, job.next_id()));
  }
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    for (std::size_t i = 0; i < todo[rank].size(); ++i) {
      ASSERT_EQ(job.host(rank).completion(kLimit).second, 0) << "rank " << rank;
    }
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::vector<std::int32_t> got(messages[i].count);
    job.cluster()
        .any_node(messages[i].to)
        .load(sim::Node::kMemoryAddress + messages[i].place, std::as_writable_bytes(std::span(got)));
    EXPECT_TRUE(got == messages[i].data(static_cast<std::uint32_t>(i)))
        << "message " << i << " of " << messages[i].count << " elements from " << messages[i].from << " to "
        << messages[i].to;
  }
}

Job& pair_job() {
  static Job job(mixed(2, {1}));
  return job;
}

TEST(Mixed, ShortMessagesEachWay) {
  std::vector<Message> messages;
  for (const std::uint64_t count : {1U, 16U, 17U, 1000U, 1024U}) {
    messages.push_back({0, 1, 4, count});
    messages.push_back({1, 0, 4, count + 3 <= 1024 ? count + 3 : count});
  }
  exchange(pair_job(), messages);
}

TEST(Mixed, LongMessagesEachWay) {
  std::vector<Message> messages;
  for (const std::uint64_t count : {1025U, 5000U, 60'001U}) {
    messages.push_back({0, 1, 5, count});
    messages.push_back({1, 0, 5, count + 7});
  }
  exchange(pair_job(), messages);
}

TEST(Mixed, MessagesInAnotherOrderOfTags) {
  std::mt19937 random(11);
  for (int round = 0; round < 6; ++round) {
    std::vector<Message> messages;
    for (std::uint32_t i = 0; i < 14; ++i) {
      const std::uint32_t from = random() % 2;
      const std::uint64_t count = random() % 3 == 0 ? 1025 + random() % 9000 : 1 + random() % 600;
      messages.push_back({from, 1 - from, static_cast<std::uint32_t>(random() % 3), count});
    }
    exchange(pair_job(), messages);
    if (testing::Test::HasFailure()) return;
  }
}

/// One call of every rank, against the interpreter.
void check(Job& job, const Algorithm& algorithm, std::uint64_t count) {
  const Datatype dtype = algorithm.collective == Collective::kBarrier ? Datatype::kNone : Datatype::kFp32;
  const auto tested = CallCase::make(algorithm, job.size(), count, dtype, kPlace, job.next_id(), count + job.size(), 0);
  if (!tested) return;
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    tested->place(job.cluster().any_node(rank), rank);
    job.host(rank).submit(tested->descriptor(rank));
  }
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    ASSERT_EQ(job.host(rank).completion(kLimit), std::pair(tested->id(), std::uint16_t{0}))
        << name_of(algorithm.collective) << " " << algorithm.name << ", " << count << " elements, rank " << rank;
  }
  const auto expected = tested->expected();
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    EXPECT_TRUE(tested->result(job.cluster().any_node(rank), rank) == expected[rank])
        << name_of(algorithm.collective) << " " << algorithm.name << ", " << count << " elements, rank " << rank;
  }
}

struct Members {
  std::uint32_t size = 0;
  Native native;
};

class MixedCalls : public testing::TestWithParam<Members> {};

TEST_P(MixedCalls, AgreeWithTheInterpreter) {
  Job job(mixed(GetParam().size, GetParam().native));
  for (const Algorithm* algorithm : CallCase::algorithms()) {
    for (const std::uint64_t count : {1U, 700U, 6001U}) {
      if (count == 700 && GetParam().size > 3) continue;  // it takes its time
      check(job, *algorithm, count);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Members, MixedCalls,
                         testing::Values(Members{2, {1}}, Members{3, {0}}, Members{4, {1, 3}}, Members{5, {0, 2, 3}}),
                         [](const auto& tested) {
                           std::string name = std::to_string(tested.param.size) + "_native";
                           for (const std::uint32_t node : tested.param.native) name += "_" + std::to_string(node);
                           return name;
                         });

TEST(Mixed, FewBuffersAndSmallSegments) {
  Job job(mixed(3, {1}), {256, 512, 1});
  for (const Algorithm* algorithm : CallCase::algorithms()) {
    for (const std::uint64_t count : {3U, 200U, 2001U}) {
      check(job, *algorithm, count);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Mixed, TheSameRunHasTheSameCycles) {
  const auto course = [](unsigned threads, std::uint64_t delay) {
    sim::ClusterConfig config = mixed(3, {1});
    config.threads = threads;
    config.native_delay = delay;
    Job job(config);
    std::vector<std::uint64_t> cycles;
    for (const Algorithm* algorithm : CallCase::algorithms()) {
      if (algorithm->collective != Collective::kAllreduce) continue;
      check(job, *algorithm, 3000);
      cycles.push_back(job.cluster().cycle());
    }
    return cycles;
  };
  const auto once = course(1, 0);
  EXPECT_EQ(course(1, 0), once);
  EXPECT_EQ(course(3, 0), once);
  // Cycles that are charged to the native engine show.
  const auto slower = course(1, 100);
  EXPECT_GT(slower.back(), once.back() + 100);
}

/// A rank waits for one that never calls; its deadline counts simulated time, whichever engine it has.
TEST(Mixed, ACallThatNobodyAnswersEndsByItsDeadline) {
  constexpr std::uint32_t kDeadline = 20;      // us
  constexpr std::uint64_t kCycles = 20 * 250;  // of it
  for (const std::uint32_t caller : {0U, 1U}) {
    Job job(mixed(2, {1}));
    CallDescriptor call;
    call.collective = Collective::kBarrier;
    call.algorithm = 0;
    for (const Algorithm* algorithm : CallCase::algorithms()) {
      if (algorithm->collective != Collective::kBarrier || call.algorithm != 0) continue;
      call.algorithm = static_cast<std::uint8_t>(algorithm - algorithms().data() + 1);
    }
    call.communicator = kPlace;
    call.deadline_us = kDeadline;
    call.call_id = job.next_id();
    const std::uint64_t begin = job.cluster().cycle();
    job.host(caller).submit(call);
    EXPECT_EQ(job.host(caller).completion(kLimit).second, static_cast<std::uint16_t>(ErrorCode::kTimeout)) << caller;
    EXPECT_GE(job.cluster().cycle() - begin, kCycles);
    EXPECT_LT(job.cluster().cycle() - begin, kCycles + 2000);
  }
}

/// A broadcast of another length than the root's: each receiver finds that, whichever engine it has.
TEST(Mixed, DifferentCallsAreAMismatch) {
  const auto all = CallCase::algorithms();
  const auto bcast = std::find_if(
      all.begin(), all.end(), [](const Algorithm* algorithm) { return algorithm->collective == Collective::kBcast; });
  for (const std::uint32_t root : {0U, 1U}) {
    Job job(mixed(2, {1}));
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      CallDescriptor call;
      call.collective = Collective::kBcast;
      call.algorithm = static_cast<std::uint8_t>(*bcast - algorithms().data() + 1);
      call.dtype = Datatype::kInt32;
      call.count = 10 + rank;
      call.root = root;
      call.communicator = kPlace;
      call.dst_address = call.src_address = sim::Node::kMemoryAddress;
      call.dst_bytes = call.src_bytes = 4096;
      call.call_id = job.next_id();
      job.host(rank).submit(call);
    }
    EXPECT_EQ(job.host(1 - root).completion(20'000).second, static_cast<std::uint16_t>(ErrorCode::kMismatchedCall))
        << "root " << root;
  }
}

/// Every rank puts to and gets from every rank, itself too, many at once; a call is none of its target's, so nobody
/// waits.
TEST(Mixed, PutsAndGets) {
  constexpr std::uint32_t kRanks = 3;
  constexpr std::uint64_t kWindow = sim::Node::kMemoryAddress + (8U << 20U);
  constexpr std::uint64_t kBytes = 1U << 20U;
  Job job(mixed(kRanks, {1}), {256, 1024, 2});
  std::vector<std::vector<std::int32_t>> windows(kRanks, std::vector<std::int32_t>(kBytes / 4));
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t k = 0; k < windows[rank].size(); ++k) {
      windows[rank][k] = static_cast<std::int32_t>(k * 7 + rank * 900'001);
    }
    job.cluster().any_node(rank).store(kWindow, std::as_bytes(std::span(windows[rank])));
    job.host(rank).set_window(kPlace, kWindow, kBytes);
  }
  struct Operation {
    bool puts = false;
    std::uint32_t target = 0;
    std::uint64_t own = 0, there = 0, count = 0;  ///< bytes from the begin of memory and window; elements
  };
  std::mt19937 random(5);
  std::vector<std::vector<Operation>> operations(kRanks);
  // What is put and what is got lie in different halves of the window, and puts beside each other.
  std::vector<std::uint64_t> free_place(kRanks, kBytes / 2);
  std::vector<std::vector<std::int32_t>> expected = windows;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    std::uint64_t own = 0;
    for (std::uint32_t i = 0; i < 24; ++i) {
      Operation one;
      one.puts = i % 2 == 0;
      one.target = (rank + i / 2) % kRanks;
      one.count = i % 5 == 0 ? 1 + random() % 3000 : 1 + random() % 90;
      one.own = own;
      own += (one.count * 4 + 127) / 64 * 64 + 4 * (random() % 16);
      one.there = one.puts ? free_place[one.target] : 4 * (random() % (kBytes / 8 - 3000));
      if (one.puts) {
        std::vector<std::int32_t> data(one.count);
        for (std::size_t k = 0; k < data.size(); ++k) data[k] = static_cast<std::int32_t>(k * 3 + rank * 1000 + i);
        job.cluster().any_node(rank).store(sim::Node::kMemoryAddress + one.own, std::as_bytes(std::span(data)));
        std::copy(data.begin(), data.end(), expected[one.target].begin() + static_cast<std::ptrdiff_t>(one.there / 4));
        free_place[one.target] += one.count * 4 + 4 * (random() % 3);
      }
      operations[rank].push_back(one);
    }
  }
  const auto descriptor = [&](const Operation& one) {
    CallDescriptor call;
    call.collective = one.puts ? Collective::kPut : Collective::kGet;
    call.dtype = Datatype::kInt32;
    call.communicator = kPlace;
    call.count = one.count;
    call.root = one.target;
    call.window_offset = one.there;
    (one.puts ? call.src_address : call.dst_address) = sim::Node::kMemoryAddress + one.own;
    (one.puts ? call.src_bytes : call.dst_bytes) = one.count * 4;
    call.call_id = job.next_id();
    return call;
  };
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (const Operation& one : operations[rank]) job.host(rank).submit(descriptor(one));
  }
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t i = 0; i < operations[rank].size(); ++i) {
      ASSERT_EQ(job.host(rank).completion(kLimit).second, 0) << "rank " << rank;
    }
  }
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    std::vector<std::int32_t> window(kBytes / 4);
    job.cluster().any_node(rank).load(kWindow, std::as_writable_bytes(std::span(window)));
    EXPECT_TRUE(window == expected[rank]) << "window of rank " << rank;
    for (const Operation& one : operations[rank]) {
      if (one.puts) continue;
      std::vector<std::int32_t> got(one.count);
      job.cluster().any_node(rank).load(sim::Node::kMemoryAddress + one.own, std::as_writable_bytes(std::span(got)));
      EXPECT_TRUE(
          std::equal(got.begin(), got.end(), windows[one.target].begin() + static_cast<std::ptrdiff_t>(one.there / 4)))
          << one.count << " elements that rank " << rank << " got from rank " << one.target;
    }
  }
  // What is not in the window, whichever engine has it; and nothing at all, once it is given up.
  for (const bool puts : {true, false}) {
    for (const std::uint32_t target : {0U, 1U, 2U}) {
      job.host(0).submit(descriptor({puts, target, 0, kBytes - 4, 2}));
      EXPECT_EQ(job.host(0).completion(kLimit).second, static_cast<std::uint16_t>(ErrorCode::kBufferTooSmall))
          << target;
    }
  }
  job.host(1).set_window(kPlace, 0, 0);
  job.host(2).submit(descriptor({true, 1, 0, 0, 1}));
  EXPECT_EQ(job.host(2).completion(kLimit).second, static_cast<std::uint16_t>(ErrorCode::kBufferTooSmall));
}

TEST(Mixed, RefusesANodeThatIsNotThere) {
  try {
    sim::Cluster cluster(mixed(2, {1, 2}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("node 2"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace unisono::rtl
