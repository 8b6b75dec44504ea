// Ordinary buffers of processes, copied by the kernel: messages and collectives, and what becomes of them when the
// kernel refuses, at once or later.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <ostream>
#include <string>
#include <thread>

#include "tests/cpp/engine/process_jobs.hpp"
#include "tests/cpp/network/seccomp.hpp"

namespace unisono::test {
namespace {

constexpr std::uint64_t kAlways = 1;

CallRequest message(const Memory& memory, bool sends, std::uint32_t peer, std::uint64_t count) {
  CallRequest made = request<std::int32_t>(sends ? Collective::kSend : Collective::kRecv, count, peer);
  Binding& binding = sends ? made.src : made.dst;
  binding = {reinterpret_cast<std::byte*>(sends ? memory.src : memory.dst), 4 * count};
  return made;
}

/// Rank 0 sends to rank 1, which checks what has come.
void pass(Rank& self, const Memory& memory, std::uint64_t count) {
  if (self.rank == 0) {
    self.engine.run(message(memory, true, 1, count));
    return;
  }
  std::fill_n(memory.dst, count, -1);
  self.engine.run(message(memory, false, 0, count));
  for (std::uint64_t i = 0; i < count; ++i) {
    if (memory.dst[i] != static_cast<std::int32_t>(i * 3))
      require(false, "element " + std::to_string(i) + " is rank 0's");
  }
}

void expect_success(std::vector<Child>& children) {
  for (Child& child : children) EXPECT_EQ(child.wait(seconds(60)), 0);
}

/// What both ranks agree on before one of them changes its process.
void meet(Rank& self) { self.engine.run(request<std::int32_t>(Collective::kBarrier, 0)); }

TEST(KernelCopy, OrdinaryBuffersMakeCallsDirectWhereverTheyStand) {
  constexpr std::uint64_t kCount = 50'000;
  auto children = start(3, kAlways, [](Rank& self) {
    for (std::uint32_t who = 0; who < 8; ++who) {
      const Memory memory(self, (who >> self.rank & 1U) != 0, kCount);
      for (int round = 0; round < 3; ++round) {
        std::fill_n(memory.dst, kCount, 0);
        if (round == 1) {
          self.run(memory.sum(kCount));
        } else {
          self.engine.run(memory.sum(kCount, round == 2 ? "direct" : nullptr));
        }
        require(self.engine.fast_path(0)->last_algorithm()->direct, "every buffer can be reached");
        memory.check(3, kCount);
      }
    }
  });
  expect_success(children);
}

TEST(KernelCopy, ShortCallsStayOnTheLanes) {
  auto children = start(2, 40'000, [](Rank& self) {
    for (const std::uint64_t count : {9'999U, 10'000U}) {
      const Memory memory(self, false, count);
      self.engine.run(memory.sum(count));
      require(self.engine.fast_path(0)->last_algorithm()->direct == (4 * count >= 40'000), "from there on it copies");
      memory.check(2, count);
    }
  });
  expect_success(children);
}

TEST(KernelCopy, MessagesArriveFromAnywhereToAnywhere) {
  auto children = start(2, kAlways, [](Rank& self) {
    for (const std::uint64_t count : {2'049U, 16'384U, 65'551U, 700'001U}) {
      for (std::uint32_t who = 0; who < 4; ++who) {
        const Memory memory(self, (who >> self.rank & 1U) != 0, count);
        for (int round = 0; round < 3; ++round) pass(self, memory, count);
      }
    }
  });
  expect_success(children);
}

/// Which of the ranks, and which of the system calls, a filter stops, and how.
struct Refusal {
  const char* name;
  std::uint32_t rank;
  std::array<long, 2> calls;
  int error;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class KernelCopyRefused : public testing::TestWithParam<Refusal> {
 protected:
  static void install() { deny({GetParam().calls[0], GetParam().calls[1]}, GetParam().error); }
};

TEST_P(KernelCopyRefused, FromTheStartEverythingGoesOtherWays) {
  constexpr std::uint64_t kCount = 100'000;
  auto children = start(2, kAlways, [](Rank& self) {
    if (self.rank == GetParam().rank) install();
    meet(self);
    for (std::uint32_t who = 0; who < 4; ++who) {
      const Memory memory(self, (who >> self.rank & 1U) != 0, kCount);
      pass(self, memory, kCount);
      self.engine.run(memory.sum(kCount));
      require(self.engine.fast_path(0)->last_algorithm()->direct == (who == 3), "direct if all is allocated");
      memory.check(2, kCount);
    }
  });
  expect_success(children);
}

TEST_P(KernelCopyRefused, LaterMessagesGoOnThroughCells) {
  constexpr std::uint64_t kCount = 300'000;
  auto children = start(2, kAlways, [](Rank& self) {
    const Memory ordinary(self, false, kCount);
    pass(self, ordinary, kCount);
    meet(self);
    if (self.rank == GetParam().rank) install();
    meet(self);
    for (int round = 0; round < 3; ++round) {
      for (std::uint32_t who = 0; who < 4; ++who) {
        const Memory memory(self, (who >> self.rank & 1U) != 0, kCount);
        pass(self, memory, kCount);
      }
    }
  });
  expect_success(children);
}

TEST_P(KernelCopyRefused, InTheMiddleOfAMessageTheRestIsStreamed) {
  constexpr std::uint64_t kCount = 500'000;
  auto children = start(2, kAlways, [](Rank& self) {
    const Memory memory(self, false, kCount);
    pass(self, memory, kCount);
    std::thread filter;
    if (self.rank == GetParam().rank) {
      filter = std::thread([] {
        std::this_thread::sleep_for(milliseconds(1));
        install();
      });
    }
    for (int round = 0; round < 12; ++round) pass(self, memory, kCount);
    if (filter.joinable()) filter.join();
  });
  expect_success(children);
}

TEST_P(KernelCopyRefused, LaterACollectiveNamesRankAndAddress) {
  constexpr std::uint64_t kCount = 100'000;
  auto children = start(2, kAlways, [](Rank& self) {
    // Both buffers are remembered as ones that the kernel copies: that depends on their addresses.
    constexpr std::uint64_t kPage = 4096;
    Memory memory(self, false, kCount + kPage / 8);
    const auto place = reinterpret_cast<std::uintptr_t>(memory.src);
    memory.src += (kPage - place % kPage) / sizeof *memory.src;
    memory.dst = memory.src + kCount;
    self.engine.run(memory.sum(kCount));
    meet(self);
    if (self.rank == GetParam().rank) install();
    meet(self);
    try {
      self.engine.run(memory.sum(kCount));
    } catch (const Error& error) {
      const std::string text = error.what();
      const std::string peer = "rank " + std::to_string(1 - GetParam().rank) + "'s buffer at 0x";
      require(text.find("allreduce") != std::string::npos, text);
      require(text.find(peer) != std::string::npos, text);
      require(text.find("UNISONO_KERNEL_COPY=off") != std::string::npos, text);
      require(error.code() == (self.rank == GetParam().rank ? ErrorCode::kUnsupported : ErrorCode::kRevoked), text);
      return;
    }
    throw std::runtime_error("the call must fail");
  });
  expect_success(children);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, KernelCopyRefused,
    testing::Values(Refusal{"SenderWrites", 0, {SYS_process_vm_writev, SYS_process_vm_writev}, EPERM},
                    Refusal{"ReceiverReads", 1, {SYS_process_vm_readv, SYS_process_vm_readv}, EPERM},
                    Refusal{"SenderFaults", 0, {SYS_process_vm_readv, SYS_process_vm_writev}, EFAULT},
                    Refusal{"ReceiverFaults", 1, {SYS_process_vm_readv, SYS_process_vm_writev}, EFAULT},
                    Refusal{"Unknown", 1, {SYS_process_vm_readv, SYS_process_vm_writev}, ENOSYS}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(KernelCopy, ARankThatIsOffMakesAllUseCells) {
  constexpr std::uint64_t kCount = 100'000;
  auto children = start(2, kAlways, [](Rank& self) {
    // As UNISONO_KERNEL_COPY=off on one rank: the other one's trial fails.
    if (self.rank == 1) self.poe.shared_memory()->segment()->endpoint(1).nonce_address.store(0);
    meet(self);
    const Memory memory(self, false, kCount);
    pass(self, memory, kCount);
    self.engine.run(memory.sum(kCount));
    require(!self.engine.fast_path(0)->last_algorithm()->direct, "not all can be reached");
    memory.check(2, kCount);
  });
  expect_success(children);
}

/// Whether this rank lets others at its memory.
bool permits(const Rank& self) {
  return self.poe.shared_memory()->segment()->endpoint(self.rank).nonce_address.load() != 0;
}

TEST(KernelCopy, WhatIsNamedDoesNotDependOnAMeasurement) {
  // Where cells are faster at all lengths, calls have them; a direct algorithm that the user names runs all the same.
  constexpr std::uint64_t kCount = 50'000;
  auto children = start(3, kCellsWin, [](Rank& self) {
    const Memory allocated(self, true, kCount);
    const Memory ordinary(self, false, kCount);
    self.engine.run(ordinary.sum(kCount));
    require(!self.engine.fast_path(0)->last_algorithm()->direct, "cells are faster");
    self.engine.run(allocated.sum(kCount, "direct"));
    self.run(allocated.sum(kCount, "direct"));
    meet(self);
    require(!permits(self), "who needs no kernel copy permits none");
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t number = 0; number < 2; ++number) {  // each tries its members by its own first call
        if (round == 0 && number == 1) {
          const std::array<std::uint32_t, 3> all{2, 0, 1};
          self.engine.create_communicator(1, 0, all, self.agreed);
        }
        for (std::uint32_t who = 0; who < 8; ++who) {
          const Memory memory(self, (who >> self.rank & 1U) != 0, kCount);
          std::fill_n(memory.dst, kCount, 0);
          CallRequest sum = memory.sum(kCount, "direct");
          sum.communicator = number;
          if ((who + number) % 2 == 0) {
            self.run(sum);
          } else {
            self.engine.run(sum);
          }
          require(self.engine.fast_path(number)->last_algorithm()->direct, "it was named");
          memory.check(3, kCount);
        }
      }
    }
    require(permits(self), "some buffers were ordinary");
    self.engine.run(ordinary.sum(kCount));
    require(!self.engine.fast_path(0)->last_algorithm()->direct, "cells are still faster");
  });
  expect_success(children);
}

TEST(KernelCopy, WhatIsNamedIsRefusedOnAllRanksWhereOneIsOff) {
  constexpr std::uint64_t kCount = 50'000;
  for (const std::uint64_t others : {kAlways, kCellsWin}) {
    for (std::uint32_t off = 0; off < 3; ++off) {
      std::vector<std::uint64_t> copy_from(3, others);
      copy_from[off] = kNoKernelCopy;
      auto children = start(copy_from, [](Rank& self) {
        const Memory memory(self, self.rank == 1, kCount);
        for (int round = 0; round < 4; ++round) {
          try {
            if (round % 2 == 0) {
              self.run(memory.sum(kCount, "direct"));
            } else {
              self.engine.run(memory.sum(kCount, "direct"));
            }
            require(false, "it was carried out");
          } catch (const Error& error) {
            require(error.code() == ErrorCode::kUnsupported, error.what());
          }
          self.engine.run(memory.sum(kCount));
          memory.check(3, kCount);
        }
      });
      expect_success(children);
    }
  }
}

TEST(KernelCopy, AProcessThatOnlyHasTheNumberIsNotTouched) {
  constexpr std::uint64_t kCount = 100'000;
  auto children = start(2, kAlways, [](Rank& self) {
    if (self.rank == 1) self.poe.shared_memory()->segment()->endpoint(1).nonce[0].fetch_add(1);
    meet(self);
    if (self.rank == 0) require(!self.poe.shared_memory()->kernel_copy().reaches(1), "it does not know the words");
    const Memory memory(self, false, kCount);
    pass(self, memory, kCount);
  });
  expect_success(children);
}

TEST(KernelCopy, ABufferThatAStoppedRankMayStillWriteToIsNamed) {
  constexpr std::uint64_t kCount = 100'000;
  auto children = start(2, kAlways, [](Rank& self) {
    const Memory memory(self, false, kCount);
    self.engine.run(memory.sum(kCount));
    const std::array<std::uint32_t, 2> all{0, 1};
    shm::ShmPoe& network = *self.poe.shared_memory();
    shm::LaneSet lanes(network.segment(), network.arena(), self.rank, 0, std::uint16_t{0}, all);
    require(lanes.open(), "the lanes that are in use");
    if (self.rank == 1) {
      // As a rank that is stopped between its announcement of an access and the system call.
      require(lanes.touch_guard().enter(), "nobody has failed yet");
      std::this_thread::sleep_for(seconds(4));
      lanes.touch_guard().leave();
      return;
    }
    self.engine.set_timeout(0, milliseconds(300));
    try {
      self.engine.run(memory.sum(kCount));
    } catch (const Error& error) {
      const std::string text = error.what();
      require(error.code() == ErrorCode::kTimeout, text);
      require(text.find("rank 1 was stopped while copying") != std::string::npos, text);
      require(error.still_written(), "the error says so to programs as well");
      return;
    }
    throw std::runtime_error("the call must fail");
  });
  expect_success(children);
}

// The same of a call that is waited for, and of a receive.
TEST(KernelCopy, ACallInFlightNamesItsBufferAsWell) {
  constexpr std::uint64_t kCount = 100'000;
  auto children = start(2, kAlways, [](Rank& self) {
    const Memory memory(self, false, kCount);
    self.engine.run(memory.sum(kCount));
    const std::array<std::uint32_t, 2> all{0, 1};
    shm::ShmPoe& network = *self.poe.shared_memory();
    shm::LaneSet lanes(network.segment(), network.arena(), self.rank, 0, std::uint16_t{0}, all);
    require(lanes.open(), "the lanes that are in use");
    if (self.rank == 1) {
      // Shows where its buffers are, so that the call of rank 0 goes on from there.
      const CallId call = self.engine.submit(memory.sum(kCount));
      require(lanes.touch_guard().enter(), "nobody has failed yet");
      std::this_thread::sleep_for(seconds(4));
      lanes.touch_guard().leave();
      self.engine.test(call);
      return;
    }
    self.engine.set_timeout(0, milliseconds(300));
    const CallId call = self.engine.submit(memory.sum(kCount));
    const CallResult result = self.engine.wait(call);
    if (result.code == ErrorCode::kOk) return;  // both ends were quicker than the stop
    require(result.still_written == (result.message.find("rank 1 was stopped while copying") != std::string::npos),
            result.message);
  });
  expect_success(children);
}

/// Memory that its process uses like any other, and that the kernel copies for nobody, as that of some devices.
std::byte* secret(std::uint64_t bytes) {
  constexpr long kMemfdSecret = 447;
  const auto file = static_cast<int>(syscall(kMemfdSecret, 0U));
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return place == MAP_FAILED ? nullptr : static_cast<std::byte*>(place);
}

TEST(KernelCopy, MemoryThatTheKernelCopiesForNobodyGoesOtherWays) {
  constexpr std::uint64_t kCount = 20'000;
  if (secret(4096) == nullptr) GTEST_SKIP() << "no secret memory here";
  for (std::uint32_t who = 1; who < 4; ++who) {
    auto children = start(2, kAlways, [who](Rank& self) {
      Memory memory(self, false, kCount);
      if ((who >> self.rank & 1U) != 0) {
        std::byte* const place = secret(8 * kCount);
        require(place != nullptr, "secret memory");
        auto* const values = reinterpret_cast<std::int32_t*>(place);
        std::copy_n(memory.src, kCount, values);
        memory.src = values;
        memory.dst = values + kCount;
      }
      for (int round = 0; round < 2; ++round) {
        pass(self, memory, kCount);
        std::fill_n(memory.dst, kCount, 0);
        self.engine.run(memory.sum(kCount));
        require(!self.engine.fast_path(0)->last_algorithm()->direct, "it cannot be reached");
        memory.check(2, kCount);
      }
    });
    expect_success(children);
  }
}

TEST(KernelCopy, AVanishedBufferIsNamed) {
  constexpr std::uint64_t kCount = 1'000'000;
  auto children = start(2, kAlways, [](Rank& self) {
    const std::uint64_t bytes = 4 * kCount;
    void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(place != MAP_FAILED, "memory");
    auto* const src = static_cast<std::byte*>(place);
    CallRequest bcast = request<std::int32_t>(Collective::kBcast, kCount, 0);
    bcast.dst = {src, bytes};
    self.engine.run(bcast);
    meet(self);
    if (self.rank == 1) require(mprotect(src, bytes, PROT_NONE) == 0, "protected");  // a mistake of the program's
    meet(self);
    try {
      self.engine.run(bcast);
    } catch (const Error& error) {
      const std::string text = error.what();
      require(text.find("rank 1's buffer at 0x") != std::string::npos ||
                  text.find("rank 0's buffer at 0x") != std::string::npos,
              text);
      require(text.find("Bad address") != std::string::npos, text);
      return;
    }
    throw std::runtime_error("the call must fail");
  });
  expect_success(children);
}

}  // namespace
}  // namespace unisono::test
