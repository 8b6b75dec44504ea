// What is known of registered memory: which bytes it is known of, and that the kernel is not asked again.
#include "network/shm/registered.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "network/shm/kernel_copy.hpp"
#include "tests/cpp/network/processes.hpp"
#include "tests/cpp/network/seccomp.hpp"

namespace unisono::shm {
namespace {

using test::Child;
using test::deny;

const std::byte* at(std::uintptr_t address) { return reinterpret_cast<const std::byte*>(address); }  // NOLINT

void require(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error(text);
}

TEST(RegisteredMemory, IsKnownWhereOnePieceHasAllBytes) {
  RegisteredMemory& known = RegisteredMemory::instance();
  EXPECT_FALSE(known.copied(at(0x5000), 1));
  known.add(at(0x10000), 0x8000, true);
  known.add(at(0x12000), 0x100, false);   // within the first
  known.add(at(0x17000), 0x2000, false);  // beyond its end
  EXPECT_EQ(known.copied(at(0x10000), 0x8000), true);
  EXPECT_EQ(known.copied(at(0x13000), 0x1000), true);
  EXPECT_EQ(known.copied(at(0x12010), 0x10), false);
  EXPECT_EQ(known.copied(at(0x12010), 0x1000), true);
  EXPECT_EQ(known.copied(at(0x17fff), 0x1001), false);
  EXPECT_FALSE(known.copied(at(0xffff), 2));
  EXPECT_FALSE(known.copied(at(0x18fff), 2));
  EXPECT_FALSE(known.copied(at(0x19000), 1));
  EXPECT_FALSE(known.copied(at(0x16fff), 0x2001));  // in both, but not in one
  EXPECT_FALSE(known.copied(at(0x11000), ~std::uint64_t{0}));
  known.add(at(0x10000), 0x8000, true);
  known.remove(at(0x10000), 0x8000, true);
  EXPECT_EQ(known.copied(at(0x10000), 0x8000), true) << "it was registered twice";
  known.remove(at(0x10000), 0x8000, true);
  known.remove(at(0x10000), 0x8000, true);
  EXPECT_FALSE(known.copied(at(0x13000), 1));
  EXPECT_EQ(known.copied(at(0x12010), 0x10), false);
  known.remove(at(0x12000), 0x100, false);
  known.remove(at(0x17000), 0x2000, false);
  EXPECT_FALSE(known.copied(at(0x12010), 0x10));
}

TEST(RegisteredMemory, IsNotAskedAboutAgain) {
  Child child([] {
    std::vector<std::byte> memory(10'000);
    RegisteredMemory& known = RegisteredMemory::instance();
    require(KernelCopy::copies_own(memory.data(), memory.size()), "the kernel copies it");
    known.add(memory.data(), 5'000, KernelCopy::tries_own(memory.data(), 5'000));
    deny({SYS_process_vm_readv, SYS_process_vm_writev});
    require(KernelCopy::copies_own(memory.data() + 100, 4'900), "that is known");
    require(!KernelCopy::copies_own(memory.data() + 100, 4'901), "that is not, and nobody answers");
    require(!KernelCopy::tries_own(memory.data(), 5'000), "who tries is refused");
    known.remove(memory.data(), 5'000, true);
    require(!KernelCopy::copies_own(memory.data(), 5'000), "it is forgotten");
  });
  EXPECT_EQ(child.wait(std::chrono::seconds(20)), 0);
}

TEST(RegisteredMemory, IsItsParentsAfterAFork) {
  RegisteredMemory::instance().add(at(0x10000), 0x1000, false);
  Child child([] {
    require(!RegisteredMemory::instance().copied(at(0x10000), 1), "a child begins with none");
    RegisteredMemory::instance().add(at(0x10000), 0x1000, true);
    require(RegisteredMemory::instance().copied(at(0x10000), 1) == true, "and has its own");
  });
  EXPECT_EQ(child.wait(std::chrono::seconds(20)), 0);
  EXPECT_EQ(RegisteredMemory::instance().copied(at(0x10000), 1), false);
  RegisteredMemory::instance().remove(at(0x10000), 0x1000, false);
}

TEST(RegisteredMemory, IsEnteredAndTakenOutByAllThreads) {
  constexpr std::uintptr_t kApart = 0x100000;
  RegisteredMemory& known = RegisteredMemory::instance();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uintptr_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      const bool copied = thread % 2 == 0;
      for (std::uint64_t round = 1; round <= 2'000; ++round) {
        const std::byte* const begin = at(thread * kApart);
        known.add(begin, round, copied);
        if (known.copied(begin, round) != copied) ++wrong;
        known.remove(begin, round, copied);
        if (known.copied(begin, round)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace unisono::shm
