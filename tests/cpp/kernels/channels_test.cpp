// Channels between two ranks: elements, lengths, asynchronicity degrees, types.
#include <gtest/gtest.h>

#include <cstring>
#include <unisono/smi.hpp>
#include <vector>

#include "../driver/ranks.hpp"

namespace unisono::test {
namespace {

/// Differs on every rank and element.
template <class T>
T value(int rank, long long element) {
  return static_cast<T>(static_cast<int>((rank * 7919LL + element * 31 + 5) % 120));
}

template <class T>
void ring(std::uint32_t ranks, long long count, int degree) {
  on_ranks(ranks, [&](const Communicator& world) {
    const smi::Group group(world);
    const int me = group.rank();
    const int next = (me + 1) % group.size();
    const int before = (me + group.size() - 1) % group.size();
    auto sender = kernel::launch(group, "sender", [&] {
      smi::SendChannel<T> to(group, {.count = count, .peer = next, .port = 3, .degree = degree});
      for (long long i = 0; i < count; ++i) to.push(value<T>(me, i));
    });
    auto receiver = kernel::launch(group, "receiver", [&] {
      smi::ReceiveChannel<T> from(group, {.count = count, .peer = before, .port = 3, .degree = degree});
      for (long long i = 0; i < count; ++i) ASSERT_EQ(from.pop(), value<T>(before, i)) << i;
    });
    kernel::wait_all(group);
  });
}

TEST(SmiChannels, CarryElementsInOrderAtEveryLengthAndDegree) {
  for (const std::uint32_t ranks : {1U, 2U, 3U, 8U}) {
    for (const long long count : {1LL, 2LL, 7LL, 8LL, 1000LL, 10000LL}) {
      for (const int degree : {-1, 0, 1, 13, 711, 2048}) ring<float>(ranks, count, degree);
    }
  }
}

TEST(SmiChannels, CarryEveryType) {
  ring<std::int8_t>(2, 10000, 7);
  ring<std::int16_t>(2, 10000, -1);
  ring<std::int32_t>(2, 33333, -1);
  ring<double>(2, 33333, 3);
  ring<std::uint64_t>(2, 5000, -1);
  ring<std::complex<double>>(2, 5000, -1);
}

TEST(SmiChannels, AreForThreadsOfTheProgramToo) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    constexpr int kCount = 100000;
    if (group.rank() == 0) {
      SMI_Channel to = SMI_Open_send_channel(kCount, SMI_INT, 1, 0, group.get());
      for (int i = 0; i < kCount; ++i) SMI_Push(&to, &i);
    } else {
      SMI_Channel from = SMI_Open_recv_channel(kCount, SMI_INT, 0, 0, group.get());
      for (int i = 0; i < kCount; ++i) {
        int element = -1;
        SMI_Pop(&from, &element);
        ASSERT_EQ(element, i);
      }
    }
    group.finish();
  });
}

TEST(SmiChannels, AnElementCanBeAnsweredBeforeTheNext) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    const int other = 1 - group.rank();
    constexpr int kRounds = 500;
    smi::SendChannel<int> to(group, {.count = kRounds, .peer = other, .port = group.rank()});
    smi::ReceiveChannel<int> from(group, {.count = kRounds, .peer = other, .port = other});
    for (int i = 0; i < kRounds; ++i) {
      if (group.rank() == 0) {
        to.push(i);
        ASSERT_EQ(from.pop(), i + 1);
      } else {
        to.push(from.pop() + 1);
      }
    }
    group.finish();
  });
}

TEST(SmiChannels, AFlushedElementArrivesThoughThePusherGoesOnWithoutTheLibrary) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    if (group.rank() == 0) {
      SMI_Channel to = SMI_Open_send_channel(2, SMI_INT, 1, 0, group.get());
      int element = 42;
      SMI_Push_flush(&to, &element, 1);
      world.barrier();
      SMI_Push(&to, &element);
    } else {
      SMI_Channel from = SMI_Open_receive_channel(2, SMI_INT, 0, 0, group.get());
      int element = 0;
      SMI_Pop(&from, &element);
      EXPECT_EQ(element, 42);
      world.barrier();
      SMI_Pop(&from, &element);
    }
    group.finish();
  });
}

TEST(SmiChannels, ManyAtOnceOnTheirOwnPorts) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    constexpr int kPorts = 20;
    constexpr int kCount = 3000;
    for (int port = 0; port < kPorts; ++port) {
      kernel::launch(group, "push" + std::to_string(port), [=] {
        smi::SendChannel<double> to(group, {.count = kCount, .peer = 1 - group.rank(), .port = port});
        for (int i = 0; i < kCount; ++i) to.push(port * 10000.0 + group.rank() + i);
      });
      kernel::launch(group, "pop" + std::to_string(port), [=] {
        smi::ReceiveChannel<double> from(group, {.count = kCount, .peer = 1 - group.rank(), .port = port});
        for (int i = 0; i < kCount; ++i) ASSERT_EQ(from.pop(), port * 10000.0 + (1 - group.rank()) + i);
      });
    }
    kernel::wait_all(group);
  });
}

TEST(SmiChannels, OneAfterTheOtherOnTheSamePort) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    for (int round = 0; round < 50; ++round) {
      const int count = 1 + round * 37;
      if (group.rank() == 0) {
        smi::SendChannel<int> to(group, {.count = count, .peer = 1, .port = 9});
        for (int i = 0; i < count; ++i) to.push(round * 100000 + i);
      } else {
        smi::ReceiveChannel<int> from(group, {.count = count, .peer = 0, .port = 9});
        for (int i = 0; i < count; ++i) ASSERT_EQ(from.pop(), round * 100000 + i);
      }
    }
    group.finish();
  });
}

TEST(SmiChannels, InCommunicatorsMadeAtRunTime) {
  on_ranks(4, [](const Communicator& world) {
    const smi::Group all(world);
    const smi::Group half = all.split(all.rank() % 2, -all.rank());
    ASSERT_EQ(half.size(), 2);
    EXPECT_EQ(half.rank(), all.rank() < 2 ? 1 : 0);
    smi::SendChannel<int> to(half, {.count = 1, .peer = 1 - half.rank(), .port = 0});
    smi::ReceiveChannel<int> from(half, {.count = 1, .peer = 1 - half.rank(), .port = 0});
    to.push(all.rank());
    EXPECT_EQ(from.pop(), (all.rank() + 2) % 4);
    all.finish();
    world.barrier();
  });
}

TEST(SmiKernels, QueuesConnectThem) {
  on_ranks(2, [](const Communicator& world) {
    const smi::Group group(world);
    constexpr int kCount = 20000;
    kernel::Queue<float> a("a", 1);
    kernel::Queue<float> b("b", 64);
    long long sum = 0;
    kernel::launch(group, "first", [&] {
      for (int i = 0; i < kCount; ++i) a.write(static_cast<float>(i));
    });
    kernel::launch_forever(group, "second", [&] {
      for (;;) b.write(a.read() + 1);
    });
    kernel::launch(group, "third", [&] {
      for (int i = 0; i < kCount; ++i) sum += static_cast<long long>(b.read());
    });
    kernel::wait_all(group);
    EXPECT_EQ(sum, kCount * (kCount + 1LL) / 2);
  });
}

}  // namespace
}  // namespace unisono::test
