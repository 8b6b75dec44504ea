// Rounds through a key-value store, or through functions of a caller, among threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "platform/join/caller.hpp"
#include "platform/join/rounds.hpp"
#include "platform/join/store.hpp"

namespace unisono::join {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

/// What a launcher would have.
struct Memory {
  explicit Memory(std::uint32_t ranks) : size(ranks) {}

  bool fence(Deadline deadline) {
    std::unique_lock lock(mutex);
    const std::uint32_t generation = fences;
    if (++waiting == size) {
      waiting = 0;
      ++fences;
      changed.notify_all();
      return true;
    }
    if (changed.wait_until(lock, deadline, [&] { return fences != generation; })) return true;
    --waiting;
    return false;
  }

  std::uint32_t size;
  std::size_t max_value = 1 << 20;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Blob> values;
  std::uint32_t waiting = 0;
  std::uint32_t fences = 0;
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Memory& memory) : memory_(memory) {}
  std::size_t max_value() const override { return memory_.max_value; }
  void put(const std::string& key, std::span<const std::byte> value, Deadline /*deadline*/) override {
    const std::scoped_lock lock(memory_.mutex);
    EXPECT_LE(value.size(), memory_.max_value);
    EXPECT_LE(key.size(), kMaxKey);
    memory_.values[key].assign(value.begin(), value.end());
  }
  bool fence(Deadline deadline) override { return memory_.fence(deadline); }
  std::optional<Blob> get(std::uint32_t /*rank*/, const std::string& key, Deadline /*deadline*/) override {
    const std::scoped_lock lock(memory_.mutex);
    const auto found = memory_.values.find(key);
    return found == memory_.values.end() ? std::nullopt : std::optional<Blob>(found->second);
  }
  std::string host_of(std::uint32_t rank) override { return "node" + std::to_string(rank); }

 private:
  Memory& memory_;
};

JobEnvironment environment_of(std::uint32_t rank, std::uint32_t size, milliseconds timeout = milliseconds(20'000)) {
  JobEnvironment made;
  made.rank = rank;
  made.size = size;
  made.launcher = Launcher::kPmix;
  made.meeting = MeetingPlace::kStore;
  made.host = "host" + std::to_string(rank);
  made.timeout = timeout;
  return made;
}

Blob blob_of(std::uint32_t rank, std::size_t bytes) {
  Blob made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(rank * 31 + i * 7);
  return made;
}

/// Every rank in a thread; what each throws, by rank.
std::vector<std::string> run(std::uint32_t size, const std::function<void(std::uint32_t)>& member) {
  std::vector<std::string> errors(size);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        member(rank);
      } catch (const Error& error) {
        errors[rank] = error.code() == ErrorCode::kBootstrap ? error.what() : "wrong code";
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

std::unique_ptr<Exchange> exchange_in(Memory& memory, const JobEnvironment& environment) {
  return make_store_exchange(environment, std::make_unique<MemoryStore>(memory), 0);
}

class ValuesOf : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ValuesOf, AnyLengthTravelInPieces) {
  constexpr std::uint32_t kSize = 4;
  Memory memory(kSize);
  memory.max_value = GetParam();
  std::vector<Blob> secrets(kSize);
  const auto errors = run(kSize, [&](std::uint32_t rank) {
    const auto exchange = exchange_in(memory, environment_of(rank, kSize));
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{511}, std::size_t{5000}}) {
      const auto all = exchange->all_gather(blob_of(rank, bytes * rank));
      ASSERT_EQ(all.size(), kSize);
      for (std::uint32_t peer = 0; peer < kSize; ++peer) EXPECT_EQ(all[peer], blob_of(peer, bytes * peer));
    }
    const auto secret = exchange->secret();
    secrets[rank].assign(secret.begin(), secret.end());
  });
  EXPECT_THAT(errors, Each(std::string()));
  EXPECT_EQ(secrets[0].size(), 32U);
  EXPECT_THAT(secrets, Each(secrets[0]));
  EXPECT_NE(secrets[0], Blob(32));
}

INSTANTIATE_TEST_SUITE_P(StoreExchange, ValuesOf, ::testing::Values(5, 64, 511, 1 << 20));

TEST(StoreExchange, TheLongestIsCarriedAndLongerIsRefused) {
  Memory memory(2);
  memory.max_value = 511;
  const auto errors = run(2, [&](std::uint32_t rank) {
    const auto exchange = exchange_in(memory, environment_of(rank, 2));
    EXPECT_EQ(exchange->all_gather(blob_of(rank, kMaxGiven))[1 - rank], blob_of(1 - rank, kMaxGiven));
  });
  EXPECT_THAT(errors, Each(std::string()));
  const auto exchange = exchange_in(memory, environment_of(0, 1));
  EXPECT_THROW(exchange->all_gather(Blob(kMaxGiven + 1)), Error);
}

TEST(StoreExchange, LateRanksAreListedWithTheirHosts) {
  Memory memory(4);
  const auto errors = run(4, [&](std::uint32_t rank) {
    if (rank == 1 || rank == 3) return;
    exchange_in(memory, environment_of(rank, 4, milliseconds(150)))->all_gather({});
  });
  for (const std::uint32_t rank : {0U, 2U}) {
    EXPECT_THAT(errors[rank], AllOf(HasSubstr("of 4 ranks"), HasSubstr("rank 1 on node1, rank 3 on node3 have not come "
                                                                       "within 0.15 s")));
  }
}

TEST(StoreExchange, WhoStopsAfterTheFirstRoundIsNamed) {
  Memory memory(3);
  const auto errors = run(3, [&](std::uint32_t rank) {
    const auto exchange = exchange_in(memory, environment_of(rank, 3, milliseconds(300)));
    exchange->all_gather({});
    if (rank != 2) exchange->all_gather({});
  });
  EXPECT_THAT(errors[0], HasSubstr("rank 2 on node2 has not gone on within 0.3 s"));
  EXPECT_EQ(errors[2], "");
}

TEST(StoreExchange, AllHearWhyOneGivesUp) {
  Memory memory(4);
  const auto errors = run(4, [&](std::uint32_t rank) {
    const auto exchange = exchange_in(memory, environment_of(rank, 4));
    exchange->all_gather(blob_of(rank, 100));
    if (rank == 3) return exchange->give_up("its disk is full");
    try {
      exchange->all_gather({});
      ADD_FAILURE() << "the round cannot succeed";
    } catch (const Error& error) {
      exchange->give_up(error.what());  // as joining does: must not wait for anybody
      throw;
    }
  });
  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    EXPECT_THAT(errors[rank],
                HasSubstr("rank 3 (pid " + std::to_string(getpid()) + " on host3) could not join: its disk is full"));
  }
}

TEST(StoreExchange, GivingUpAloneEndsByTheDeadline) {
  Memory memory(2);
  const auto before = Clock::now();
  exchange_in(memory, environment_of(0, 2, milliseconds(100)))->give_up("nothing works");
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(5));
}

TEST(StoreExchange, ContradictionsNameBoth) {
  Memory memory(3);
  auto errors = run(3, [&](std::uint32_t rank) {
    JobEnvironment environment = environment_of(rank, 3);
    if (rank == 2) environment.size = 4;
    exchange_in(memory, environment)->all_gather({});
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 2"), HasSubstr("has 4 ranks, rank 0"), HasSubstr("says 3")));

  // Two that are both rank 1: the second has put over what the first put, or the other way round.
  Memory doubled(3);
  errors = run(3, [&](std::uint32_t thread) {
    JobEnvironment environment = environment_of(std::min(thread, 1U), 2);
    environment.host = "host" + std::to_string(thread);
    exchange_in(doubled, environment)->all_gather(blob_of(thread, 8));
  });
  EXPECT_THAT(errors[1] + errors[2], HasSubstr("rank 1 came twice, as process "));
}

TEST(StoreExchange, ForeignValuesAreRefused) {
  Memory memory(1);
  EXPECT_FALSE(Envelope::unpacked({}));
  EXPECT_FALSE(Envelope::unpacked(Blob(64)));
  Envelope envelope;
  envelope.host = "a";
  Blob packed = envelope.packed();
  EXPECT_TRUE(Envelope::unpacked(packed));
  packed.pop_back();
  EXPECT_FALSE(Envelope::unpacked(packed));
  memory.max_value = 4;
  EXPECT_THROW(exchange_in(memory, environment_of(0, 1)), Error);
}

/// The caller's functions, over the same memory.
CallerFunctions gathering(Memory& memory, std::uint32_t rank, std::uint32_t& calls) {
  CallerFunctions made;
  made.all_gather = [&memory, rank, &calls](std::span<const std::byte> own, std::span<std::byte> all,
                                            Deadline deadline) {
    const auto key = [n = calls++](std::uint32_t of) { return std::to_string(n) + "-" + std::to_string(of); };
    {
      const std::scoped_lock lock(memory.mutex);
      memory.values[key(rank)].assign(own.begin(), own.end());
    }
    if (!memory.fence(deadline)) throw Error(ErrorCode::kBootstrap, "the caller's all_gather has failed");
    const std::scoped_lock lock(memory.mutex);
    for (std::uint32_t peer = 0; peer < memory.size; ++peer) {
      ASSERT_EQ(memory.values[key(peer)].size(), own.size());
      std::copy_n(memory.values[key(peer)].begin(), own.size(), all.begin() + own.size() * peer);
    }
  };
  return made;
}

TEST(CallerExchange, CarriesDifferentLengthsByEqualOnes) {
  Memory memory(3);
  const auto errors = run(3, [&](std::uint32_t rank) {
    std::uint32_t calls = 0;
    const auto exchange = make_caller_exchange(environment_of(rank, 3), gathering(memory, rank, calls));
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, std::size_t{40'000}}) {
      const auto all = exchange->all_gather(blob_of(rank, bytes * rank));
      for (std::uint32_t peer = 0; peer < 3; ++peer) EXPECT_EQ(all[peer], blob_of(peer, bytes * peer));
    }
    if (rank == 1) return exchange->give_up("no more");
    exchange->all_gather({});
  });
  EXPECT_EQ(errors[1], "");
  EXPECT_THAT(errors[0], HasSubstr("could not join: no more"));
  EXPECT_THAT(errors[2], HasSubstr("could not join: no more"));
}

TEST(CallerExchange, WrongPlacesAreFound) {
  Memory memory(2);
  const auto errors = run(2, [&](std::uint32_t rank) {
    std::uint32_t calls = 0;
    CallerFunctions right = gathering(memory, rank, calls);
    CallerFunctions wrong;
    wrong.all_gather = [&](std::span<const std::byte> own, std::span<std::byte> all, Deadline deadline) {
      right.all_gather(own, all, deadline);
      std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(own.size()), all.end());
    };
    make_caller_exchange(environment_of(rank, 2), wrong)->all_gather({});
  });
  for (const auto& error : errors) EXPECT_THAT(error, HasSubstr("brings something else than was given"));
}

TEST(CallerExchange, PutAndGetWaitThemselves) {
  Memory memory(3);
  const auto functions = [&memory] {
    CallerFunctions made;
    made.put = [&memory](const std::string& key, std::span<const std::byte> value, Deadline /*deadline*/) {
      const std::scoped_lock lock(memory.mutex);
      memory.values[key].assign(value.begin(), value.end());
      memory.changed.notify_all();
    };
    made.get = [&memory](const std::string& key, std::span<std::byte> into,
                         Deadline deadline) -> std::optional<std::size_t> {
      std::unique_lock lock(memory.mutex);
      if (!memory.changed.wait_until(lock, deadline, [&] { return memory.values.contains(key); })) return std::nullopt;
      const Blob& value = memory.values[key];
      std::copy(value.begin(), value.end(), into.begin());
      return value.size();
    };
    return made;
  };
  const auto late = run(1, [&](std::uint32_t /*rank*/) {
    make_caller_exchange(environment_of(0, 3, milliseconds(100)), functions())->all_gather({});
  });
  EXPECT_THAT(late[0], HasSubstr("ranks 1 and 2 have not come within 0.1 s"));
}

}  // namespace
}  // namespace unisono::join
