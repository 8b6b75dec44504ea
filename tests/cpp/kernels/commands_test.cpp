// Kernels with commands and words (unisono/kernel.hpp): listing 2 of ACCL+, collectives whose operands and results are
// streams, in threads and as fibres that take turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <unisono/kernel.hpp>
#include <unisono/smi.hpp>
#include <vector>

namespace unisono::test {
namespace {

/// Ranks that are threads, each with its context, and a communicator of streams.
void on_cards(std::uint32_t ranks, double timeout, const std::function<void(Context&, const Communicator&)>& body) {
  const ThreadJob job(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Context context(job, rank, {.timeout_seconds = timeout});
      const Communicator streams = context.world().dup({.streams = true});
      body(context, streams);
      try {
        streams.barrier();
      } catch (const Error&) {  // a test may have had a call fail, which ends the communicator
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

float value(std::uint32_t rank, int element) {
  return static_cast<float>((element * 7 + 3) % 101) + 1000.0F * static_cast<float>(rank);
}

/// The kernel of listing 2: sends words that it makes.
void sender(cclo_hls::Command& cclo, cclo_hls::Data& data, std::uint32_t rank, std::uint32_t to, int words) {
  cclo.send(UNISONO_FP32, 16 * static_cast<std::size_t>(words), to);
  for (int i = 0; i < words; i++) {
    cclo_hls::Word word;
    for (unsigned lane = 0; lane < 16; ++lane) word.set(lane, value(rank, 16 * i + static_cast<int>(lane)));
    data.push(word);
  }
  EXPECT_EQ(cclo.finalize(), 0) << cclo.error();
}

void receiver(cclo_hls::Command& cclo, cclo_hls::Data& data, std::uint32_t from, int words) {
  cclo.recv(UNISONO_FP32, 16 * static_cast<std::size_t>(words), from);
  for (int i = 0; i < words; i++) {
    const cclo_hls::Word word = data.pull();
    for (unsigned lane = 0; lane < 16; ++lane) {
      ASSERT_EQ(word.get<float>(lane), value(from, 16 * i + static_cast<int>(lane))) << i << ", " << lane;
    }
  }
  EXPECT_EQ(cclo.finalize(), 0) << cclo.error();
}

TEST(Commands, AKernelSendsWhatItMakes) {
  on_cards(2, 30, [](Context& context, const Communicator& world) {
    kernel::Engine engine(context, {&world});
    cclo_hls::Command cclo(engine.commands(), engine.status(), 0);
    cclo_hls::Data data(engine.to_cclo(0), engine.from_cclo(0));
    constexpr int kWords = 2000;  // eight times what a port holds
    if (world.rank() == 0) {
      sender(cclo, data, 0, 1, kWords);
    } else {
      receiver(cclo, data, 0, kWords);
    }
  });
}

TEST(Commands, KernelsOfARankTakeTurnsAtStreams) {
  on_cards(3, 30, [](Context& context, const Communicator& world) {
    kernel::Engine engine(context, {&world});
    const smi::Group group(world);
    const std::uint32_t rank = world.rank(), next = (rank + 1) % 3, before = (rank + 2) % 3;
    constexpr int kWords = 1500;
    auto gives = kernel::launch(group, "gives", [&] {
      cclo_hls::Command cclo(engine.commands(), engine.status(), 0, 4);
      cclo_hls::Data data(engine.to_cclo(4), engine.from_cclo(4));
      sender(cclo, data, rank, next, kWords);
    });
    auto takes = kernel::launch(group, "takes", [&] {
      cclo_hls::Command cclo(engine.commands(), engine.status(), 0, 0, 5);
      cclo_hls::Data data(engine.to_cclo(5), engine.from_cclo(5));
      receiver(cclo, data, before, kWords);
    });
    gives.wait();
    takes.wait();
  });
}

TEST(Commands, ResultsComeWhileOperandsGo) {
  on_cards(4, 30, [](Context& context, const Communicator& world) {
    kernel::Engine engine(context, {&world});
    const smi::Group group(world);
    const std::uint32_t rank = world.rank();
    constexpr int kCount = 20'000;
    cclo_hls::Command cclo(engine.commands(), engine.status(), 0, 1, 2);
    cclo.allreduce(UNISONO_FP32, kCount, UNISONO_SUM);
    auto gives = kernel::launch(group, "gives", [&] {
      cclo_hls::Data data(engine.to_cclo(1), engine.from_cclo(2));
      for (int i = 0; i < kCount; ++i) {
        const float element = value(rank, i);
        data.push(&element, sizeof element);
      }
    });
    auto takes = kernel::launch(group, "takes", [&] {
      cclo_hls::Data data(engine.to_cclo(1), engine.from_cclo(2));
      for (int i = 0; i < kCount; ++i) {
        float sum = 0;
        data.pull(&sum, sizeof sum);
        ASSERT_EQ(sum, 4 * value(0, i) + 6000.0F) << i;
      }
    });
    gives.wait();
    takes.wait();
    EXPECT_EQ(cclo.finalize(), 0) << cclo.error();
  });
}

TEST(Commands, EveryOneIsCarriedOut) {
  on_cards(3, 30, [](Context& context, const Communicator& world) {
    kernel::Engine engine(context, {&world});
    cclo_hls::Command cclo(engine.commands(), engine.status(), 0);
    cclo_hls::Data data(engine.to_cclo(0), engine.from_cclo(0));
    const int rank = static_cast<int>(world.rank());
    const auto mine = [&](int i) { return 100 * rank + i; };
    const auto give = [&](int count) {
      for (int i = 0; i < count; ++i) {
        const int element = mine(i);
        data.push(&element, sizeof element);
      }
    };
    const auto expect = [&](int count, const std::function<int(int)>& of) {
      for (int i = 0; i < count; ++i) {
        int element = -1;
        data.pull(&element, sizeof element);
        EXPECT_EQ(element, of(i)) << i;
      }
      EXPECT_EQ(cclo.finalize(), 0) << cclo.error();
    };
    cclo.reduce(UNISONO_INT32, 10, UNISONO_SUM, 1);
    give(10);
    expect(rank == 1 ? 10 : 0, [](int i) { return 300 + 3 * i; });
    cclo.bcast(UNISONO_INT32, 10, 2);
    if (rank == 2) give(10);
    expect(rank == 2 ? 0 : 10, [](int i) { return 200 + i; });
    cclo.scan(UNISONO_INT32, 4, UNISONO_MAX);
    give(4);
    expect(4, mine);
    cclo.allgather(UNISONO_INT32, 5);
    give(5);
    expect(15, [](int i) { return i / 5 * 100 + i % 5; });
    cclo.gather(UNISONO_INT32, 5, 0);
    give(5);
    expect(rank == 0 ? 15 : 0, [](int i) { return i / 5 * 100 + i % 5; });
    cclo.scatter(UNISONO_INT32, 5, 0);
    if (rank == 0) give(15);
    expect(5, [&](int i) { return rank * 5 + i; });
    cclo.alltoall(UNISONO_INT32, 2);
    give(6);
    expect(6, [&](int i) { return i / 2 * 100 + rank * 2 + i % 2; });
    cclo.reduce_scatter(UNISONO_INT32, 2, UNISONO_SUM);
    give(6);
    expect(2, [&](int i) { return 300 + 3 * (rank * 2 + i); });
    std::vector<int> memory(50, 7);
    cclo.load(UNISONO_INT32, 50, memory.data(), 200);
    expect(50, [](int) { return 7; });
    cclo.store(UNISONO_INT32, 50, memory.data(), 200);
    give(50);
    expect(0, mine);
    EXPECT_EQ(memory[49], mine(49));
    // To a port of its own: a peer may be ahead.
    cclo_hls::Data put(engine.to_cclo(0), engine.from_cclo(9));
    cclo.stream_put(UNISONO_INT32, 3, static_cast<std::uint32_t>(rank + 1) % 3, 9);
    give(3);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(put.pull(sizeof(int)).get<int>(0), 100 * ((rank + 2) % 3) + i);
    cclo.barrier();
    expect(0, mine);
  });
}

TEST(Commands, WhatFailsIsACode) {
  on_cards(1, 0.3, [](Context& context, const Communicator& world) {
    kernel::Engine engine(context, {&world});
    cclo_hls::Command cclo(engine.commands(), engine.status(), 0);
    cclo.send(UNISONO_FP32, 16, 0);  // and gives nothing
    EXPECT_EQ(std::string(unisono_result_name(cclo.finalize())), "timeout");
    EXPECT_NE(cclo.error().find("its kernel has given 0 of 16 elements"), std::string::npos) << cclo.error();
  });
}

}  // namespace
}  // namespace unisono::test
