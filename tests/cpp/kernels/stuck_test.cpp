// Strict channels, programs that get stuck, and channels whose ends differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unisono/smi.hpp>

#include "../driver/ranks.hpp"

namespace unisono::test {
namespace {

using ::testing::HasSubstr;

class Strict {
 public:
  Strict() { unisono_smi_set_strict(1); }
  ~Strict() { unisono_smi_set_strict(0); }
  Strict(const Strict&) = delete;
  Strict& operator=(const Strict&) = delete;
};

constexpr double kSoon = 0.5;

/// What the body throws; empty: nothing.
template <class Body>
std::string thrown(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(SmiStrict, StallsExactlyAtElementKPlus1) {
  const Strict strict;
  for (const int degree : {0, 1, 5, 64}) {
    on_ranks(2, [&](const Communicator& world) {
      const smi::Group group(world);
      constexpr int kCount = 200;
      if (group.rank() == 0) {
        int pushed = 0;
        auto sender = kernel::launch(group, "sender", [&] {
          smi::SendChannel<int> to(group, {.count = kCount, .peer = 1, .port = 0, .degree = degree});
          for (int i = 0; i < kCount; ++i) {
            to.push(i);
            ++pushed;
          }
        });
        // A second kernel runs whenever the first one waits.
        int most = 0;
        auto watcher = kernel::launch(group, "watcher", [&] {
          smi::ReceiveChannel<int> go(group, {.count = 3, .peer = 1, .port = 1, .degree = 3});
          for (int i = 0; i < 3; ++i) {
            const int popped = go.pop();
            most = std::max(most, pushed - popped);
            EXPECT_LE(pushed - popped, degree);
          }
        });
        kernel::wait_all(group);
        EXPECT_EQ(pushed, kCount);
      } else {
        smi::ReceiveChannel<int> from(group, {.count = kCount, .peer = 0, .port = 0});
        smi::SendChannel<int> go(group, {.count = 3, .peer = 0, .port = 1, .degree = 3});
        for (int i = 0; i < 3; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          go.push(i);  // i elements were popped so far
          go.flush();
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          ASSERT_EQ(from.pop(), i);
        }
        for (int i = 3; i < kCount; ++i) ASSERT_EQ(from.pop(), i);
      }
      group.finish();
      world.barrier();
    });
  }
}

/// Both push before they pop: right only if a channel has room for all.
std::string exchange(int degree, int count) {
  std::string seen;
  std::mutex mutex;
  on_ranks(
      2,
      [&](Communicator world) {
        const smi::Group group(world);
        const int other = 1 - group.rank();
        kernel::launch(group, "talker", [&, other] {
          smi::SendChannel<float> to(group, {.count = count, .peer = other, .port = 3, .degree = degree});
          smi::ReceiveChannel<float> from(group, {.count = count, .peer = other, .port = 3, .degree = degree});
          for (int i = 0; i < count; ++i) to.push(1);
          for (int i = 0; i < count; ++i) from.pop();
        });
        const std::string sentence = thrown([&] { kernel::wait_all(group); });
        {
          // Who is the first to give up may keep the other from finding out for itself.
          const std::lock_guard lock(mutex);
          if (seen.empty() || sentence.starts_with("nothing")) seen = sentence;
        }
        if (!sentence.empty()) world.revoke("as expected");
      },
      kSoon);
  return seen;
}

TEST(SmiStrict, UnmasksProgramsThatLeanOnBuffers) {
  EXPECT_EQ(exchange(-1, 200), "");
  const Strict strict;
  EXPECT_EQ(exchange(200, 200), "");
  EXPECT_EQ(exchange(100, 200),
            "nothing has gone on for 0.5 s, and nothing can: kernel talker (rank 0) waits to push element 101 of 200 "
            "of port 3 to rank 1; kernel talker (rank 1) waits to push element 101 of 200 of port 3 to rank 0; which "
            "closes the circle");
  EXPECT_THAT(exchange(-1, 1), HasSubstr("waits to push element 1 of 1 of port 3"));
}

TEST(SmiStuck, NamesTheCircleOfKernelsAndQueues) {
  on_ranks(
      1,
      [](const Communicator& world) {
        const smi::Group group(world);
        kernel::Queue<int> there("there", 4);
        kernel::Queue<int> back("back", 4);
        kernel::launch(group, "asker", [&] {
          there.write(back.read() + 1);
          there.write(1);
        });
        kernel::launch(group, "answerer", [&] { back.write(there.read() + 1); });
        EXPECT_THAT(thrown([&] { kernel::wait_all(group); }),
                    HasSubstr("kernel asker (rank 0) waits to read queue back, which is empty"));
      },
      kSoon);
}

TEST(SmiStuck, KernelsThatNeedNotEndAreNoError) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    kernel::launch_forever(group, "echo", [=] {
      for (;;) {
        smi::ReceiveChannel<int> from(group, {.count = 1, .peer = 1 - group.rank(), .port = 1});
        const int element = from.pop();
        smi::SendChannel<int> to(group, {.count = 1, .peer = 1 - group.rank(), .port = 2});
        to.push(element * 2);
      }
    });
    for (int i = 0; i < 20; ++i) {
      smi::SendChannel<int> to(group, {.count = 1, .peer = 1 - group.rank(), .port = 1});
      smi::ReceiveChannel<int> from(group, {.count = 1, .peer = 1 - group.rank(), .port = 2});
      to.push(i);
      ASSERT_EQ(from.pop(), 2 * i);
    }
    group.finish();
    world.barrier();
  });
}

TEST(SmiErrors, CountsAndTypesThatDifferAreNamedAtBothEnds) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    if (group.rank() == 0) {
      const std::string sentence = thrown([&] {
        smi::SendChannel<int> to(group, {.count = 1000000, .peer = 1, .port = 4});
        for (int i = 0; i < 1000000; ++i) to.push(i);
      });
      EXPECT_EQ(sentence,
                "the ends of port 4 from rank 0 to rank 1 differ: rank 0 sends 1000000 elements, rank 1 "
                "receives 10");
    } else {
      smi::ReceiveChannel<int> from(group, {.count = 10, .peer = 0, .port = 4});
      EXPECT_THAT(thrown([&] { from.pop(); }), HasSubstr("rank 0 sends 1000000 elements, rank 1 receives 10"));
    }
    smi::SendChannel<float> to(group, {.count = 1, .peer = 1 - group.rank(), .port = 5});
    to.push(1);
    to.flush();
    smi::ReceiveChannel<int> from(group, {.count = 1, .peer = 1 - group.rank(), .port = 5});
    EXPECT_THAT(thrown([&] { from.pop(); }), HasSubstr("sends fp32"));
    world.barrier();
  });
}

TEST(SmiErrors, WrongUseIsRefused) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    // Opening is no error: nothing has been said to anybody.
    smi::SendChannel<int> nowhere(group, {.count = 1, .peer = 2, .port = 0});
    EXPECT_THAT(thrown([&] { nowhere.push(1); }),
                HasSubstr("port 0: destination 2 was given, which does not exist; the communicator has ranks 0 to 1"));
    smi::ReceiveChannel<int> before(group, {.count = 1, .peer = -1, .port = 0});
    EXPECT_THAT(thrown([&] { before.pop(); }), HasSubstr("source -1"));
    smi::SendChannel<int> port(group, {.count = 1, .peer = 0, .port = 65536});
    EXPECT_THAT(thrown([&] { port.push(1); }), HasSubstr("port 65536"));
    const int other = 1 - group.rank();
    smi::SendChannel<int> first(group, {.count = 2, .peer = other, .port = 7});
    first.push(1);
    smi::SendChannel<int> second(group, {.count = 2, .peer = other, .port = 7});
    EXPECT_THAT(thrown([&] { second.push(1); }), HasSubstr("a port sends for one channel at a time"));
    first.push(2);
    EXPECT_THAT(thrown([&] { first.push(3); }), HasSubstr("element 3 is pushed, but the channel was opened for 2"));
    smi::ReceiveChannel<int> from(group, {.count = 2, .peer = other, .port = 7});
    EXPECT_EQ(from.pop() + from.pop(), 3);
    smi::ReduceChannel<std::byte> reduce(group, SMI_ADD, {.count = 1, .peer = 0, .port = 8});
    std::byte byte{};
    EXPECT_THAT(thrown([&] { reduce.reduce(byte, byte); }), HasSubstr("is not defined on byte"));
    group.finish();
    world.barrier();
  });
}

TEST(SmiErrors, AKernelThatEndsBeforeItsChannelFailsAtBothEnds) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    if (group.rank() == 0) {
      auto kernel = kernel::launch(group, "short", [=] {
        smi::SendChannel<int> to(group, {.count = 5, .peer = 1, .port = 0});
        to.push(1);
      });
      EXPECT_THAT(thrown([&] { kernel.wait(); }),
                  HasSubstr("has ended after 1 of 5 elements that it sends from port 0"));
    } else {
      smi::ReceiveChannel<int> from(group, {.count = 5, .peer = 0, .port = 0});
      EXPECT_THAT(thrown([&] {
                    for (int i = 0; i < 5; ++i) from.pop();
                  }),
                  HasSubstr("kernel short of rank 0 has ended after 1 of 5 elements"));
    }
    world.barrier();
  });
}

TEST(SmiErrors, AKernelsExceptionIsWhatItsWaiterGets) {
  on_ranks(1, [](const Communicator& world) {
    const smi::Group group(world);
    auto kernel = kernel::launch(group, "bad", [] { throw std::runtime_error("of its own"); });
    EXPECT_EQ(thrown([&] { kernel.wait(); }), "kernel bad (rank 0): of its own");
  });
}

}  // namespace
}  // namespace unisono::test
