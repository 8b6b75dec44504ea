// Sends and receives between cores: matching by source and tag, order, protocols, early messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "collectives/algorithm.hpp"
#include "collectives/record.hpp"
#include "tests/rtl/core/machine.hpp"

namespace unisono::rtl {
namespace {

constexpr std::uint64_t kFirstArea = std::uint64_t{8} << 20U;  // receive buffers stand below
constexpr std::uint64_t kAreaStep = std::uint64_t{64} << 10U;
constexpr std::uint32_t kBuffers = 1024;

struct Operation {
  bool send = false;
  std::uint32_t peer = 0;
  std::uint32_t tag = 0;
  std::uint64_t bytes = 0;       ///< of a send; what a receive can take
  std::vector<std::byte> data;   ///< of a send; what a receive is to get
  std::uint64_t wait_until = 0;  ///< begins in this cycle at the earliest
};

const Algorithm& algorithm_of(Collective collective) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) return algorithm;
  }
  throw std::runtime_error("no such algorithm");
}

/// A rank's operations, in the order in which they begin.
using Script = std::vector<Operation>;

struct Active {
  bool busy = false;
  std::size_t operation = 0;
};

std::uint64_t area(std::uint32_t slot) { return kFirstArea + slot * kAreaStep + 16 * slot; }

void begin(CoreMachine& machine, std::uint32_t rank, std::uint32_t slot, const Operation& operation,
           std::uint32_t sequence) {
  Call call;
  call.collective = operation.send ? Collective::kSend : Collective::kRecv;
  call.rank = rank;
  call.size = machine.size();
  call.root = operation.peer;
  call.count = operation.bytes;
  std::array<std::pair<std::uint64_t, std::uint64_t>, 5> regions{};
  regions[operation.send ? 0 : 1] = {area(slot), operation.bytes};
  std::byte* memory = machine[rank].memory().data() + area(slot);
  if (operation.send) {
    std::copy(operation.data.begin(), operation.data.end(), memory);
  } else {
    std::fill_n(memory, operation.bytes + 64, std::byte{0xee});
  }
  machine[rank].begin(slot, call, record(algorithm_of(call.collective), call), sequence, regions, operation.tag);
}

/// Runs the scripts, at most `slots` calls of a rank at once; checks what is received.
void run(std::vector<Script>& scripts, const MachineSettings& settings, std::uint32_t slots = 8) {
  CoreMachine machine(static_cast<std::uint32_t>(scripts.size()), settings);
  std::vector<std::array<Active, 8>> active(scripts.size());
  std::vector<std::size_t> next(scripts.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sequences;
  std::mt19937_64 random(settings.seed);
  for (bool done = false; !done;) {
    done = true;
    for (std::uint32_t rank = 0; rank < machine.size(); ++rank) {
      for (std::uint32_t slot = 0; slot < slots; ++slot) {
        Active& here = active[rank][slot];
        if (here.busy) {
          ASSERT_EQ(machine[rank].failed(slot), 0) << "rank " << rank << ", operation " << here.operation;
          if (!machine[rank].finished(slot)) continue;
          here.busy = false;
          const Operation& operation = scripts[rank][here.operation];
          if (operation.send) continue;
          const std::byte* memory = machine[rank].memory().data() + area(slot);
          EXPECT_TRUE(std::equal(operation.data.begin(), operation.data.end(), memory))
              << "rank " << rank << ", operation " << here.operation << ", " << operation.data.size() << " bytes";
          EXPECT_TRUE(std::all_of(memory + operation.data.size(), memory + operation.bytes + 64,
                                  [](std::byte b) { return b == std::byte{0xee}; }))
              << "rank " << rank << ", operation " << here.operation << ": more than the message was written";
        }
      }
      if (next[rank] < scripts[rank].size() && machine.cycle() >= scripts[rank][next[rank]].wait_until) {
        const std::uint32_t first = static_cast<std::uint32_t>(random() % slots);
        for (std::uint32_t i = 0; i < slots; ++i) {
          const std::uint32_t slot = (first + i) % slots;
          if (active[rank][slot].busy) continue;
          const Operation& operation = scripts[rank][next[rank]];
          // A receive's sequence is of no meaning.
          const std::uint32_t sequence =
              operation.send ? sequences[{rank, operation.peer}]++ : static_cast<std::uint32_t>(random() % 4);
          begin(machine, rank, slot, operation, sequence);
          active[rank][slot] = {true, next[rank]++};
          break;
        }
      }
      done = done && next[rank] == scripts[rank].size() &&
             std::none_of(active[rank].begin(), active[rank].end(), [](const Active& a) { return a.busy; });
    }
    if (machine.cycle() > 600'000) {
      for (std::uint32_t rank = 0; rank < machine.size(); ++rank) {
        for (std::uint32_t slot = 0; slot < slots; ++slot) {
          if (!active[rank][slot].busy) continue;
          const Operation& o = scripts[rank][active[rank][slot].operation];
          ADD_FAILURE() << "rank " << rank << " slot " << slot << (o.send ? " sends to " : " receives from ") << o.peer
                        << ", tag " << o.tag << ", " << o.bytes << " bytes";
        }
      }
      FAIL() << "not ended";
    }
    machine.tick();
  }
  machine.run(2000);
  for (std::uint32_t rank = 0; rank < machine.size(); ++rank) {
    EXPECT_EQ(machine[rank].free_buffers(), kBuffers) << "rank " << rank;
    for (std::uint32_t peer = 0; peer < machine.size(); ++peer) {
      EXPECT_EQ(machine[rank].credits(peer), settings.rx_buffers) << "of rank " << rank << " to " << peer;
    }
  }
}

/// Random messages. A rank begins its operations nearly in the order of one global list, so that they can all end with
/// eight calls at once.
std::vector<Script> random_scripts(std::uint32_t ranks, std::uint32_t messages, const MachineSettings& settings) {
  std::mt19937_64 random(settings.seed * 31 + ranks);
  struct Placed {
    std::uint32_t place = 0;
    Operation operation;
  };
  std::vector<std::vector<Placed>> placed(ranks);
  const std::uint64_t limit = settings.eager_limit;
  const std::vector<std::uint64_t> sizes{
      0, 1, 64, 300, limit, limit + 1, 2 * limit + 5, 3 * settings.segment_bytes, 9 * limit + 77};
  for (std::uint32_t i = 0; i < messages; ++i) {
    const auto from = static_cast<std::uint32_t>(random() % ranks), to = static_cast<std::uint32_t>(random() % ranks);
    Operation send;
    send.send = true;
    send.peer = to;
    send.tag = static_cast<std::uint32_t>(random() % 3) * 0x7000'0000U;
    send.bytes = sizes[random() % sizes.size()];
    Operation receive;
    receive.peer = from;
    receive.tag = send.tag;
    receive.bytes = send.bytes;  // set below
    placed[from].push_back({i + static_cast<std::uint32_t>(random() % 4), send});
    placed[to].push_back({i + static_cast<std::uint32_t>(random() % 4), receive});
  }
  std::vector<Script> scripts(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::stable_sort(placed[rank].begin(), placed[rank].end(),
                     [](const Placed& a, const Placed& b) { return a.place < b.place; });
    std::uint64_t cycle = 0;
    for (Placed& p : placed[rank]) {
      if (random() % 4 == 0) cycle += random() % 1500;
      p.operation.wait_until = cycle;
      scripts[rank].push_back(std::move(p.operation));
    }
  }
  // The n-th send of a pair and tag meets the n-th receive.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<Operation*>> sends;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (Operation& o : scripts[rank]) {
      if (!o.send) continue;
      o.data.resize(o.bytes);
      for (std::byte& b : o.data) b = static_cast<std::byte>(random());
      sends[{rank, o.peer, o.tag}].push_back(&o);
    }
  }
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t> met;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (Operation& o : scripts[rank]) {
      if (o.send) continue;
      const auto key = std::tuple(o.peer, rank, o.tag);
      o.data = sends[key][met[key]++]->data;
      o.bytes = o.data.size() + (random() % 3 == 0 ? random() % 5000 : 0);
    }
  }
  return scripts;
}

class PointToPoint : public testing::TestWithParam<std::uint32_t> {};

TEST_P(PointToPoint, RandomMessagesArrive) {
  MachineSettings settings;
  settings.seed = GetParam();
  settings.rx_buffers = 1 + GetParam() % 4;
  if (GetParam() % 5 > 2) settings.rx_buffers *= 4;
  settings.opens = GetParam() % 7 != 6;
  settings.kept = GetParam() % 2 * settings.rx_buffers / 4;
  settings.eager_limit = settings.segment_bytes = 1024;
  if (GetParam() % 3 == 2) settings.stall_percent = 25;
  auto scripts = random_scripts(2 + GetParam() % 4, 80, settings);
  run(scripts, settings);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PointToPoint, testing::Range(0U, 20U));

Operation message(bool send, std::uint32_t peer, std::uint32_t tag, std::uint64_t bytes) {
  Operation o;
  o.send = send;
  o.peer = peer;
  o.tag = tag;
  o.bytes = bytes;
  o.data.resize(bytes);
  for (std::uint64_t i = 0; i < bytes; ++i) o.data[i] = static_cast<std::byte>(tag * 37 + i * 11);
  return o;
}

// All credit is held by messages that are received only after one that has none.
TEST(PointToPointOrder, AMessageWithoutCreditIsAskedFor) {
  MachineSettings settings;
  settings.rx_buffers = 2;
  std::vector<Script> scripts(2);
  for (const std::uint32_t tag : {1U, 2U, 3U}) scripts[0].push_back(message(true, 1, tag, 100));
  for (const std::uint32_t tag : {3U, 2U, 1U}) scripts[1].push_back(message(false, 0, tag, 100));
  run(scripts, settings, 3);
  // The receiver has one call at a time.
  std::vector<Script> one(2);
  for (const std::uint32_t tag : {1U, 2U, 3U}) one[0].push_back(message(true, 1, tag, 100));
  std::uint64_t at = 3000;
  for (const std::uint32_t tag : {3U, 2U, 1U}) {
    one[1].push_back(message(false, 0, tag, 100));
    one[1].back().wait_until = at;
    at += 1000;
  }
  run(one, settings, 3);
}

// Messages that have begun on credit and are received only after later ones: these go before their rest.
TEST(PointToPointOrder, WhatHasBegunDoesNotKeepOthersBack) {
  for (const std::uint32_t buffers : {1U, 2U, 5U, 16U}) {
    MachineSettings settings;
    settings.rx_buffers = buffers;
    settings.eager_limit = settings.segment_bytes = 256;
    std::vector<Script> scripts(2);
    for (const std::uint32_t tag : {1U, 2U, 3U, 4U}) {
      scripts[0].push_back(message(true, 1, tag, tag == 4 ? 100 : 6000 + tag));
    }
    std::uint64_t at = 3000;
    for (const std::uint32_t tag : {4U, 3U, 1U, 2U}) {
      scripts[1].push_back(message(false, 0, tag, tag == 4 ? 100 : 6000 + tag));
      scripts[1].back().wait_until = at;
      at += 1000;
    }
    run(scripts, settings, 4);
  }
}

// A long message of elements in memory does not wait for its grant; credit that is kept is left to short ones.
TEST(PointToPointOrder, LongMessagesBeginOnCredit) {
  const auto cycles = [](bool opens, std::uint32_t kept) {
    MachineSettings settings;
    settings.rx_buffers = 8;
    settings.eager_limit = settings.segment_bytes = 1024;
    settings.network_latency = 300;
    settings.opens = opens;
    settings.kept = kept;
    CoreMachine machine(2, settings);
    begin(machine, 1, 0, message(false, 0, 5, 8192), 0);
    begin(machine, 0, 0, message(true, 1, 5, 8192), 0);
    if (kept != 0) begin(machine, 0, 1, message(true, 1, 6, 64), 1);
    while (!machine[1].finished(0) && machine.cycle() < 10'000) machine.tick();
    const std::uint64_t took = machine.cycle();
    machine.run(2000);
    // The short one went on credit that was kept: it is early at its receiver.
    if (kept != 0) EXPECT_TRUE(machine[0].finished(1));
    return took;
  };
  EXPECT_LT(cycles(true, 0) + 500, cycles(false, 0));
  EXPECT_LT(cycles(true, 2) + 100, cycles(false, 2));
}

/// A long message of which one end is given up at a moment, and the other one later, when it has waited for long. What
/// is there afterwards: nothing; and the next message comes.
void one_end_dies(std::uint32_t who, std::uint64_t received, std::uint64_t moment) {
  MachineSettings settings;
  settings.rx_buffers = 6;
  settings.eager_limit = settings.segment_bytes = 512;
  settings.seed = moment;
  settings.stall_percent = moment % 2 == 0 ? 25 : 0;
  CoreMachine machine(2, settings);
  constexpr std::uint64_t kBytes = 8192;
  const auto give_up = [&](std::uint32_t rank) {
    while (!machine[rank].settled()) machine.tick();
    if (!machine[rank].finished(0)) machine[rank].abandon(0);
  };
  begin(machine, 0, 0, message(true, 1, 5, kBytes), 0);
  const std::uint64_t dies = who == 0 ? moment : std::max(moment, received + 15);
  for (bool begun = false, died = false; !begun || !died; machine.tick()) {
    if (!begun && machine.cycle() >= received) {
      begin(machine, 1, 0, message(false, 0, 5, kBytes), 9);
      begun = true;
    }
    if (!died && machine.cycle() >= dies) {
      give_up(who);
      died = true;
    }
  }
  machine.run(2500);
  give_up(1 - who);
  machine.run(2500);
  // A message that came after its receive had been given up waits for another one.
  begin(machine, 1, 5, message(false, 0, 5, kBytes), 9);
  machine.run(1000);
  machine[1].abandon(5);
  machine.run(1000);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(machine[rank].free_buffers(), kBuffers) << "rank " << rank;
    EXPECT_EQ(machine[rank].credits(1 - rank), settings.rx_buffers) << "rank " << rank;
  }
  const Operation next = message(true, 1, 5, kBytes / 2);
  begin(machine, 0, 3, next, 1);
  begin(machine, 1, 4, message(false, 0, 5, kBytes), 2);
  for (int i = 0; i < 4000 && !machine[1].finished(4); ++i) machine.tick();
  ASSERT_TRUE(machine[1].finished(4));
  EXPECT_TRUE(std::equal(next.data.begin(), next.data.end(), machine[1].memory().data() + area(4)));
}

TEST(PointToPointOrder, AnEndThatDiesLeavesNothingBehind) {
  for (const std::uint32_t who : {0U, 1U}) {
    for (const std::uint64_t received : {1U, 130U, 260U, 700U}) {
      for (std::uint64_t moment = 20; moment < 1300; moment += 41) {
        SCOPED_TRACE(testing::Message() << "rank " << who << " dies in cycle " << moment << ", received in "
                                        << received);
        one_end_dies(who, received, moment);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

/// The code with which a receive of `capacity` ends when a message of `bytes` is there before it, or comes after it.
std::uint16_t code_of(std::uint64_t capacity, std::uint64_t bytes, bool early) {
  MachineSettings settings;
  CoreMachine machine(2, settings);
  Operation send = message(true, 1, 5, bytes), receive = message(false, 0, 5, capacity);
  begin(machine, early ? 0 : 1, 2, early ? send : receive, 0);
  machine.run(1500);
  begin(machine, early ? 1 : 0, 2, early ? receive : send, 0);
  for (int i = 0; i < 4000 && machine[1].failed(2) == 0 && !machine[1].finished(2); ++i) machine.tick();
  const std::uint16_t code = machine[1].failed(2);
  if (code != 0) {
    machine[1].abandon(2);
    machine.run(1500);
    EXPECT_EQ(machine[1].free_buffers(), kBuffers);
    EXPECT_EQ(machine[0].credits(1), settings.rx_buffers);
  }
  return code;
}

TEST(PointToPointOrder, AMessageThatIsTooLongFails) {
  for (const bool early : {false, true}) {
    EXPECT_EQ(code_of(100, 100, early), 0);
    EXPECT_EQ(code_of(99, 100, early), static_cast<std::uint16_t>(ErrorCode::kTruncated));
    EXPECT_EQ(code_of(9000, 9001, early), static_cast<std::uint16_t>(ErrorCode::kTruncated));
    EXPECT_EQ(code_of(10000, 9001, early), 0);
    EXPECT_EQ(code_of(9000, 30'000, early), static_cast<std::uint16_t>(ErrorCode::kTruncated));
  }
}

}  // namespace
}  // namespace unisono::rtl
