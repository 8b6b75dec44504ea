// Writes to a peer's memory by libfabric: that all comes before its word, and that nobody writes to memory that was
// given back. Over endpoints that are pieces of memory, which may be unkind, and over providers.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
#include <optional>
#include <random>

#include "tests/cpp/network/memory_endpoint.hpp"
#include "tests/cpp/network/ofi_job.hpp"

namespace unisono {
namespace {

using test::Child;
using test::Manners;
using test::MemoryEndpoint;
using test::require;
using test::Wires;

std::byte value(std::uint32_t from, std::uint32_t number, std::size_t i) {
  return static_cast<std::byte>(from * 151 + number * 29 + i * 7 + (i >> 8) + (i >> 16));
}

std::vector<std::byte> source(std::uint32_t from, std::uint32_t number, std::size_t bytes) {
  std::vector<std::byte> memory(bytes);
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = value(from, number, i);
  return memory;
}

Header word(std::uint32_t from, std::uint32_t number) {
  Header header = test::header_for(from, 1 - from, number, 0);
  header.type = MessageType::kDone;
  header.message_bytes = 1;
  return header;
}

/// Whether the word of write `number` has come; throws if another message has.
bool word_came(Network& network, std::uint32_t from, std::uint32_t number) {
  Incoming incoming;
  if (!network.peek(from, Lane::kData, incoming)) return false;
  require(incoming.header.type == MessageType::kDone && incoming.header.sequence == number, "the word of this write");
  require(incoming.payload.empty(), "a word has no payload");
  network.release(from, Lane::kData);
  return true;
}

/// Two endpoints that are memory, which have proven themselves.
struct Pair {
  explicit Pair(Manners manners, Manners others, std::uint64_t register_from = 0) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto endpoint = std::make_unique<MemoryEndpoint>(wires, i == 0 ? manners : others);
      endpoints[i] = endpoint.get();
      networks[i] =
          std::make_unique<ofi::OfiNetwork>(std::move(endpoint), std::chrono::milliseconds(5),
                                            std::chrono::milliseconds(30), std::chrono::seconds(3), register_from);
    }
    NetworkMembers members{0, test::key_of(7), {}, {"zero", "one"}};
    for (const auto& network : networks) members.cards.push_back(network->card());
    for (; members.self < 2; ++members.self) networks[members.self]->meet(members);
    drive([&] { return networks[0]->trial(1) == Trial::kProven && networks[1]->trial(0) == Trial::kProven; });
  }
  explicit Pair(Manners manners) : Pair(manners, manners) {}
  template <class Ready>
  void drive(Ready&& ready) {
    for (std::uint32_t i = 0; i < 200'000; ++i) {
      if (ready()) return;
      poll();
    }
    throw std::runtime_error("what was to come has not come");
  }
  void poll() {
    for (const auto& network : networks) {
      if (network != nullptr) network->poll();
    }
  }
  /// Until nothing goes on any more.
  void rest() {
    for (int i = 0; i < 200; ++i) poll();
  }

  Wires wires;
  std::array<MemoryEndpoint*, 2> endpoints{};
  std::array<std::unique_ptr<ofi::OfiNetwork>, 2> networks;
};

Manners writing(Manners::Writes writes, unsigned no_room = 0, bool registers_sources = false) {
  return {3, no_room, writes, registers_sources};
}

class OfiWrites : public testing::TestWithParam<Manners> {};
INSTANTIATE_TEST_SUITE_P(All, OfiWrites,
                         testing::Values(writing(Manners::Writes::kOrdered), writing(Manners::Writes::kUnordered),
                                         writing(Manners::Writes::kOrdered, 40, true),
                                         writing(Manners::Writes::kUnordered, 40, true)));

TEST_P(OfiWrites, AllIsThereBeforeItsWord) {
  Pair pair(GetParam());
  const std::size_t sizes[] = {1, 63, 65'536, 99'999, 100'000, 100'001, 777'777, 2'500'000};
  std::uint32_t number = 0;
  for (const std::size_t bytes : sizes) {
    for (std::uint32_t from = 0; from < 2; ++from, ++number) {
      const std::uint32_t to = 1 - from;
      const auto sent = source(from, number, bytes);
      std::vector<std::byte> memory(bytes + 200, std::byte{0xee});
      const auto reach = pair.networks[to]->show(from, memory);
      ASSERT_TRUE(reach);
      Ticket ticket = 0;
      ASSERT_TRUE(pair.networks[from]->write(to, *reach, 100, word(from, number), sent, ticket));
      pair.drive([&] { return word_came(*pair.networks[to], from, number); });
      EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory.begin() + 100)) << bytes;
      EXPECT_EQ(memory[99], std::byte{0xee});
      EXPECT_EQ(memory[100 + bytes], std::byte{0xee});
      pair.drive([&] { return pair.networks[from]->done(to, ticket); });
      pair.networks[to]->hide(from, *reach, true);
      EXPECT_EQ(pair.networks[to]->settle(), std::nullopt);
    }
  }
  pair.rest();
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.endpoints[i]->registered_now(), 0U);
    // Once for each time that memory was shown, and once for each source where the provider wants that.
    EXPECT_EQ(pair.endpoints[i]->registered_ever(), std::size(sizes) * (GetParam().registers_sources ? 2 : 1));
    EXPECT_EQ(pair.endpoints[i]->refused_writes(), 0U);
    EXPECT_FALSE(pair.networks[i]->has_output());
  }
}

TEST_P(OfiWrites, ManyAtOnceAreDoneInAnyOrderAndEachOnce) {
  Pair pair(GetParam());
  constexpr std::uint32_t kWrites = 200;
  constexpr std::size_t kBytes = 70'000;
  std::vector<std::byte> memory(kWrites * kBytes);
  const auto reach = pair.networks[1]->show(0, memory);
  ASSERT_TRUE(reach);
  std::vector<std::vector<std::byte>> sent;
  for (std::uint32_t n = 0; n < kWrites; ++n) sent.push_back(source(0, n, kBytes));
  std::uint32_t begun = 0;
  std::vector<Ticket> tickets(kWrites);
  std::vector<int> came(kWrites);
  std::uint32_t words = 0;
  bool refused = false;
  pair.drive([&] {
    while (begun < kWrites &&
           pair.networks[0]->write(1, *reach, begun * kBytes, word(0, begun), sent[begun], tickets[begun])) {
      ++begun;
    }
    refused = refused || begun < kWrites;
    Incoming incoming;
    while (pair.networks[1]->peek(0, Lane::kData, incoming)) {
      const std::uint32_t number = incoming.header.sequence;
      ++came.at(number);
      ++words;
      EXPECT_EQ(std::memcmp(memory.data() + number * kBytes, sent[number].data(), kBytes), 0) << number;
      pair.networks[1]->release(0, Lane::kData);
    }
    return words == kWrites;
  });
  EXPECT_TRUE(refused) << "what waits is bounded";
  EXPECT_EQ(came, std::vector<int>(kWrites, 1));
  pair.drive([&] {
    return std::all_of(tickets.begin(), tickets.end(), [&](Ticket t) { return pair.networks[0]->done(1, t); });
  });
}

TEST_P(OfiWrites, WhoIsStillAtItSaysWhenItHasStopped) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(1'000'000);
  const auto sent = source(0, 0, memory.size());
  const auto reach = pair.networks[1]->show(0, memory);
  Ticket ticket = 0;
  pair.endpoints[1]->hold_writes(true);
  ASSERT_TRUE(pair.networks[0]->write(1, *reach, 0, word(0, 0), sent, ticket));
  pair.drive([&] { return pair.endpoints[1]->has_begun_writes(); });
  pair.networks[1]->hide(0, *reach, false);
  // The write that has begun goes on; its sender cannot say that it has stopped.
  pair.rest();
  EXPECT_EQ(pair.networks[1]->settle(), std::optional<std::uint32_t>(0));
  EXPECT_EQ(pair.networks[1]->settle(), std::nullopt) << "it is said once";
  pair.endpoints[1]->hold_writes(false);
  pair.rest();
  EXPECT_TRUE(pair.networks[0]->done(1, ticket)) << "its memory is its owner's";
  // All of it may have been with an ordered provider already, and its word; the engine knows by the token that it is of
  // no use.
  const bool told = word_came(*pair.networks[1], 0, 0);
  if (GetParam().writes == Manners::Writes::kUnordered) {
    EXPECT_FALSE(told) << "a write that was stopped is not done";
  }
  EXPECT_NE(memory, sent) << "nothing began after its key was closed";
  // What was given back stays as it is now.
  const auto left = memory;
  pair.rest();
  EXPECT_EQ(memory, left);
  // It has answered, so that the next question is waited for again; and messages and writes go on.
  std::vector<std::byte> other(70'000);
  const auto again = pair.networks[1]->show(0, other);
  ASSERT_TRUE(again);
  const auto more = source(0, 1, other.size());
  ASSERT_TRUE(pair.networks[0]->write(1, *again, 0, word(0, 1), more, ticket));
  pair.drive([&] { return word_came(*pair.networks[1], 0, 1); });
  EXPECT_EQ(other, more);
}

TEST_P(OfiWrites, WhatWasHiddenIsNotWrittenWithAKeyOfBefore) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(100'000, std::byte{0x11});
  const auto before = memory;
  const auto reach = pair.networks[1]->show(0, memory);
  pair.networks[1]->hide(0, *reach, false);
  pair.rest();
  EXPECT_EQ(pair.networks[1]->settle(), std::nullopt) << "the peer has answered";
  const auto sent = source(0, 0, memory.size());
  Ticket ticket = 0;
  EXPECT_FALSE(pair.networks[0]->write(1, *reach, 0, word(0, 0), sent, ticket));
  pair.rest();
  EXPECT_EQ(memory, before);
  EXPECT_EQ(pair.endpoints[1]->refused_writes(), 0U) << "it did not even try";
  EXPECT_EQ(pair.networks[1]->liveness(0), Poe::Liveness::kAlive);
}

TEST_P(OfiWrites, WhatEndsWhileItIsWrittenIsDroppedAndItsSourceFree) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(3'000'000);
  auto sent = source(0, 0, memory.size());
  const auto reach = pair.networks[1]->show(0, memory);
  pair.endpoints[1]->hold_writes(true);
  Ticket ticket = 0;
  ASSERT_TRUE(pair.networks[0]->write(1, *reach, 0, word(0, 0), sent, ticket));
  pair.drive([&] { return pair.endpoints[1]->has_begun_writes(); });
  pair.networks[0]->withdraw(1, ticket);
  pair.endpoints[1]->hold_writes(false);
  pair.rest();
  EXPECT_EQ(pair.networks[0]->settle(), std::nullopt);
  EXPECT_TRUE(pair.networks[0]->done(1, ticket));
  std::fill(sent.begin(), sent.end(), std::byte{0xcc});
  pair.rest();
  if (GetParam().writes == Manners::Writes::kUnordered) {
    Incoming incoming;
    EXPECT_FALSE(pair.networks[1]->peek(0, Lane::kData, incoming));
  }
  EXPECT_EQ(std::count(memory.begin() + 1'000'000, memory.end(), std::byte{0xcc}), 0);
  EXPECT_EQ(pair.endpoints[0]->registered_now(), 0U);
  pair.networks[1]->hide(0, *reach, false);
  pair.rest();
  EXPECT_EQ(pair.networks[1]->settle(), std::nullopt);
}

TEST_P(OfiWrites, WhoCannotBeReachedWritesNoMore) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(1'000'000);
  const auto reach = pair.networks[1]->show(0, memory);
  ASSERT_TRUE(reach);
  pair.wires[0] = nullptr;
  pair.networks[1]->hide(0, *reach, false);
  EXPECT_EQ(pair.networks[1]->settle(), std::nullopt) << "the question has failed, and so has the session";
  EXPECT_EQ(pair.networks[1]->liveness(0), Poe::Liveness::kDead);
  EXPECT_FALSE(pair.networks[1]->takes_writes(0));
  EXPECT_FALSE(pair.networks[1]->show(0, memory));
}

TEST_P(OfiWrites, WritesToADeadPeerEndAndFreeTheirSources) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(3'000'000);
  const auto sent = source(0, 0, memory.size());
  const auto reach = pair.networks[1]->show(0, memory);
  Ticket ticket = 0;
  pair.wires[1] = nullptr;
  ASSERT_TRUE(pair.networks[0]->write(1, *reach, 0, word(0, 0), sent, ticket));
  for (int i = 0; i < 20; ++i) pair.networks[0]->poll();
  EXPECT_EQ(pair.networks[0]->liveness(1), Poe::Liveness::kDead);
  EXPECT_TRUE(pair.networks[0]->done(1, ticket));
  EXPECT_EQ(pair.endpoints[0]->registered_now(), 0U);
  EXPECT_FALSE(pair.networks[0]->write(1, *reach, 0, word(0, 1), sent, ticket));
}

TEST_P(OfiWrites, NobodyWritesBeyondWhatWasShown) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(1000);
  const auto reach = pair.networks[1]->show(0, memory);
  const auto sent = source(0, 0, 1000);
  Ticket ticket = 0;
  EXPECT_FALSE(pair.networks[0]->write(1, *reach, 1, word(0, 0), sent, ticket));
  EXPECT_FALSE(pair.networks[0]->write(1, *reach, ~std::uint64_t{0}, word(0, 0), sent, ticket));
  EXPECT_TRUE(pair.networks[0]->write(1, *reach, 0, word(0, 0), sent, ticket));
  pair.drive([&] { return word_came(*pair.networks[1], 0, 0); });
}

// --------------------------------------------------------------------------------- registrations that are kept

/// Endpoint 0 writes `sent` to memory of endpoint 1, which looks at it and hides it.
void write_once(Pair& pair, std::span<const std::byte> sent, std::span<std::byte> memory, std::uint32_t number) {
  const auto reach = pair.networks[1]->show(0, memory);
  require(reach.has_value(), "the memory is shown");
  Ticket ticket = 0;
  require(pair.networks[0]->write(1, *reach, 0, word(0, number), sent, ticket), "there is room for a write");
  pair.drive([&] { return word_came(*pair.networks[1], 0, number); });
  pair.drive([&] { return pair.networks[0]->done(1, ticket); });
  require(std::equal(sent.begin(), sent.end(), memory.begin()), "all that was written is there");
  pair.networks[1]->hide(0, *reach, true);
}

TEST_P(OfiWrites, MemoryThatLastsIsRegisteredOnce) {
  Pair pair(GetParam());
  constexpr std::size_t kBuffers = 5;
  constexpr std::size_t kBytes = 70'000;
  std::vector<std::byte> sent = source(0, 0, kBuffers * kBytes);
  std::vector<std::byte> memory(kBuffers * kBytes);
  std::vector<std::unique_ptr<LastingPiece>> lasting;
  for (std::size_t i = 0; i < kBuffers; ++i) {
    lasting.push_back(std::make_unique<LastingPiece>(&sent[i * kBytes], kBytes));
    lasting.push_back(std::make_unique<LastingPiece>(&memory[i * kBytes], kBytes));
  }
  for (std::uint32_t number = 0; number < 100; ++number) {
    const std::size_t buffer = number % kBuffers;
    // Also parts of it.
    const std::size_t begin = buffer * kBytes + number;
    write_once(pair, std::span(sent).subspan(begin, 69'000), std::span(memory).subspan(begin, 69'500), number);
  }
  const std::size_t sources = GetParam().registers_sources ? kBuffers : 0;
  EXPECT_EQ(pair.endpoints[0]->registered_ever(), sources);
  EXPECT_EQ(pair.networks[0]->registrations().made(), sources);
  EXPECT_EQ(pair.endpoints[1]->registered_ever(), kBuffers);
  EXPECT_EQ(pair.endpoints[1]->registered_now(), kBuffers);
  EXPECT_EQ(pair.endpoints[1]->refused_writes(), 0U);
  // What is freed is not registered any more, and others stay.
  lasting.resize(4);
  EXPECT_EQ(pair.endpoints[0]->registered_now(), std::min<std::size_t>(sources, 2));
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 2U);
  lasting.clear();
  EXPECT_EQ(pair.endpoints[0]->registered_now(), 0U);
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 0U);
  write_once(pair, std::span(sent).first(kBytes), std::span(memory).first(kBytes), 100);
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 0U) << "it may be freed unseen, and is registered for one message";
}

TEST_P(OfiWrites, ShortMessagesOfOtherMemoryAreNotWorthARegistration) {
  constexpr std::size_t kFrom = 100'000;
  Pair pair(GetParam(), GetParam(), kFrom);
  const std::vector<std::byte> sent = source(0, 0, kFrom);
  std::vector<std::byte> memory(kFrom);
  EXPECT_FALSE(pair.networks[1]->show(0, std::span(memory).first(kFrom - 1)));
  write_once(pair, sent, memory, 0);
  // The sender copies what is short, too, where the provider wants its memory registered.
  const auto reach = pair.networks[1]->show(0, memory);
  ASSERT_TRUE(reach);
  Ticket ticket = 0;
  EXPECT_EQ(pair.networks[0]->write(1, *reach, 0, word(0, 1), std::span(sent).first(kFrom - 1), ticket),
            !GetParam().registers_sources);
  pair.rest();
  pair.networks[1]->hide(0, *reach, true);
  const LastingPiece lasting(memory.data(), memory.size());
  const auto again = pair.networks[1]->show(0, std::span(memory).first(1));
  ASSERT_TRUE(again) << "it is registered once, for messages of any length";
  pair.networks[1]->hide(0, *again, true);
}

TEST_P(OfiWrites, MessagesAtOnceInOnePieceHaveAKeyEach) {
  Pair pair(GetParam());
  constexpr std::size_t kBytes = 66'000;
  constexpr std::size_t kAtOnce = ofi::Registrations::kMostIdle + 3;
  std::vector<std::byte> memory(kAtOnce * kBytes);
  const LastingPiece lasting(memory.data(), memory.size());
  for (int round = 0; round < 3; ++round) {
    std::vector<Reach> reaches;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const auto reach = pair.networks[1]->show(0, std::span(memory).subspan(i * kBytes, kBytes));
      ASSERT_TRUE(reach);
      for (const Reach& other : reaches) EXPECT_NE(other.key, reach->key);
      reaches.push_back(*reach);
    }
    for (const Reach& reach : reaches) pair.networks[1]->hide(0, reach, true);
    EXPECT_EQ(pair.endpoints[1]->registered_now(), ofi::Registrations::kMostIdle);
    EXPECT_EQ(pair.endpoints[1]->registered_ever(), kAtOnce + round * (kAtOnce - ofi::Registrations::kMostIdle));
  }
}

TEST_P(OfiWrites, AKeyOfAMessageThatWasCutOffIsClosedAlsoWhereMemoryLasts) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(1'000'000, std::byte{0x11});
  const LastingPiece lasting(memory.data(), memory.size());
  const auto sent = source(0, 0, memory.size());
  const auto reach = pair.networks[1]->show(0, memory);
  ASSERT_TRUE(reach);
  pair.endpoints[1]->hold_writes(true);
  Ticket ticket = 0;
  ASSERT_TRUE(pair.networks[0]->write(1, *reach, 0, word(0, 0), sent, ticket));
  pair.drive([&] { return pair.endpoints[1]->has_begun_writes(); });
  pair.networks[1]->hide(0, *reach, false);
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 1U) << "the write would find its key closed";
  // Another message of the same memory does not wait for that, and has another key.
  std::span<std::byte> other = std::span(memory).subspan(500'000, 70'000);
  const auto second = pair.networks[1]->show(0, other);
  ASSERT_TRUE(second);
  EXPECT_NE(second->key, reach->key);
  EXPECT_EQ(pair.networks[1]->settle(), std::optional<std::uint32_t>(0));
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 1U) << "who did not answer in time has no key any more";
  pair.endpoints[1]->hold_writes(false);
  pair.rest();
  static_cast<void>(word_came(*pair.networks[1], 0, 0));
  const auto more = source(0, 1, other.size());
  ASSERT_TRUE(pair.networks[0]->write(1, *second, 0, word(0, 1), more, ticket));
  pair.drive([&] { return word_came(*pair.networks[1], 0, 1); });
  EXPECT_TRUE(std::equal(more.begin(), more.end(), other.begin()));
  pair.networks[1]->hide(0, *second, true);
  // And so are keys of whom has answered.
  const auto third = pair.networks[1]->show(0, memory);
  EXPECT_EQ(third->key, second->key);
  pair.networks[1]->hide(0, *third, false);
  pair.rest();
  EXPECT_EQ(pair.networks[1]->settle(), std::nullopt);
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 0U);
  EXPECT_FALSE(pair.networks[0]->write(1, *third, 0, word(0, 2), more, ticket));
}

TEST_P(OfiWrites, MemoryThatIsFreedInUseIsDeregisteredWithItsMessage) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(100'000);
  auto lasting = std::make_unique<LastingPiece>(memory.data(), memory.size());
  const auto reach = pair.networks[1]->show(0, memory);
  lasting.reset();
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 1U) << "a closed key would end the connection for all";
  const LastingPiece again(memory.data(), memory.size());
  const auto other = pair.networks[1]->show(0, memory);
  EXPECT_NE(other->key, reach->key) << "what was registered before is of the memory that was";
  pair.networks[1]->hide(0, *reach, true);
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 1U);
  pair.networks[1]->hide(0, *other, true);
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 1U);
}

TEST_P(OfiWrites, WhatTheProviderDoesNotTakeAsAWholeGoesByMessage) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(10'000'000);
  const auto sent = source(0, 0, 100'000);
  const LastingPiece lasting(memory.data(), memory.size());
  pair.endpoints[1]->limit_registrations(~std::size_t{0}, 200'000);
  for (std::uint32_t number = 0; number < 10; ++number)
    write_once(pair, sent, std::span(memory).first(100'000), number);
  EXPECT_EQ(pair.endpoints[1]->registered_ever(), 10U);
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 0U);
}

TEST_P(OfiWrites, WhatIsKeptMakesRoomForWhatIsNeeded) {
  Pair pair(GetParam());
  std::vector<std::byte> memory(1'000'000);
  std::vector<std::byte> other(100'000);
  const auto sent = source(0, 0, 100'000);
  std::vector<std::unique_ptr<LastingPiece>> lasting;
  for (std::size_t i = 0; i < 10; ++i) {
    lasting.push_back(std::make_unique<LastingPiece>(&memory[i * 100'000], std::size_t{100'000}));
  }
  pair.endpoints[1]->limit_registrations(3, ~std::size_t{0});
  for (std::uint32_t number = 0; number < 30; ++number) {
    write_once(pair, sent, std::span(memory).subspan(number % 10 * 100'000, 100'000), number);
    EXPECT_LE(pair.endpoints[1]->registered_now(), 3U);
  }
  write_once(pair, sent, other, 30);
}

TEST_P(OfiWrites, NothingIsRegisteredWithANetworkThatIsGone) {
  std::vector<std::byte> memory(100'000);
  const LastingPiece lasting(memory.data(), memory.size());
  Pair pair(GetParam());
  const auto sent = source(0, 0, memory.size());
  write_once(pair, sent, memory, 0);
  EXPECT_EQ(pair.endpoints[1]->registered_now(), 1U);
  pair.networks[1].reset();  // throws if a piece was deregistered twice
}

TEST(OfiWritesParts, WhereOneEndDoesNotWriteMessagesGo) {
  Pair pair(writing(Manners::Writes::kOrdered), writing(Manners::Writes::kNone));
  std::vector<std::byte> memory(1000);
  for (std::uint32_t self = 0; self < 2; ++self) {
    EXPECT_FALSE(pair.networks[self]->takes_writes(1 - self));
    EXPECT_FALSE(pair.networks[self]->show(1 - self, memory));
    Ticket ticket = 0;
    EXPECT_FALSE(pair.networks[self]->write(1 - self, {0, 1, 1000}, 0, word(self, 0), memory, ticket));
  }
}

// ----------------------------------------------------------------------------------------- over providers

/// What two processes tell each other beside the network: memory that was shown.
struct Board {
  std::atomic<std::uint32_t> shown{0};
  std::array<Reach, 2> reaches{};
  std::atomic<std::uint64_t> count{0};
  std::array<std::atomic<std::uint32_t>, 2> taken{};  ///< of those that came to an endpoint
  std::atomic<bool> over{false};
};

class Shared {
 public:
  Shared() {
    void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory to share");
    board_ = new (memory) Board;
  }
  ~Shared() { munmap(board_, sizeof(Board)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Board* operator->() const { return board_; }

 private:
  Board* board_;
};

template <class Ready>
void poll_until(Network& network, Ready&& ready) {
  const auto deadline = test::Clock::now() + test::kPatience;
  while (!ready()) {
    if (test::Clock::now() > deadline) throw std::runtime_error("what was to come has not come");
    if (!network.poll()) std::this_thread::yield();
  }
}

class OfiWritesOver : public test::OfiProviders {};
INSTANTIATE_TEST_SUITE_P(Over, OfiWritesOver, testing::Values("tcp;ofi_rxm", "shm"), test::provider_name);

/// Writers that stop in the middle. Not over the provider shm: they may hold a lock of its memory, for which libfabric
/// then waits without end (1.17; about one in twenty that are killed).
class OfiWritersThatStop : public test::OfiProviders {};
INSTANTIATE_TEST_SUITE_P(Over, OfiWritersThatStop, testing::Values("tcp;ofi_rxm"), test::provider_name);

/// Each of two processes writes to the other one, many pieces of many lengths under way at once, messages between.
void write_to_each_other(Network& network, std::uint32_t self, const Shared& board) {
  constexpr std::uint32_t kWrites = 120;
  constexpr std::uint32_t kAtOnce = 6;
  constexpr std::size_t kLongest = 3'000'000;
  const std::uint32_t peer = 1 - self;
  const auto bytes_of = [](std::uint32_t number) -> std::size_t {
    constexpr std::size_t kSizes[] = {kLongest, 1, 65'536, 65'537, 400'000, 1'048'576, 8};
    return kSizes[number % std::size(kSizes)] - number % 3 * (number % 7 == 0 ? 1 : 0);
  };
  std::vector<std::byte> memory(kAtOnce * kLongest);
  poll_until(network, [&] { return network.trial(peer) == Trial::kProven; });
  require(network.takes_writes(peer), "the provider writes");
  board->reaches[self] = network.show(peer, memory).value();
  board->shown.fetch_add(1);
  poll_until(network, [&] { return board->shown.load() == 2; });
  std::vector<std::vector<std::byte>> sent(kAtOnce);
  std::vector<Ticket> tickets(kAtOnce);
  std::uint32_t begun = 0;
  std::uint32_t came = 0;
  poll_until(network, [&] {
    // A place is used again when the peer has looked at it.
    while (begun < kWrites && begun < board->taken[peer] + kAtOnce && network.done(peer, tickets[begun % kAtOnce])) {
      const std::uint32_t slot = begun % kAtOnce;
      sent[slot] = source(self, begun, bytes_of(begun));
      if (!network.write(peer, board->reaches[peer], slot * kLongest, word(self, begun), sent[slot], tickets[slot])) {
        break;
      }
      ++begun;
    }
    Incoming incoming;
    while (network.peek(peer, Lane::kData, incoming)) {
      const std::uint32_t number = incoming.header.sequence;
      require(number == came, "words of one session come in order");
      const auto right = source(peer, number, bytes_of(number));
      require(std::memcmp(memory.data() + number % kAtOnce * kLongest, right.data(), right.size()) == 0,
              "all that was written is there");
      network.release(peer, Lane::kData);
      board->taken[self] = ++came;
    }
    return begun == kWrites && came == kWrites;
  });
  poll_until(network, [&] {
    return std::all_of(tickets.begin(), tickets.end(), [&](Ticket ticket) { return network.done(peer, ticket); });
  });
  network.hide(peer, board->reaches[self], true);
  // The peer may still need this end to poll.
  board->count.fetch_add(1);
  poll_until(network, [&] { return board->count.load() == 2; });
}

TEST_P(OfiWritesOver, AllIsThereBeforeItsWord) {
  test::CardTable table(2);
  const Shared board;
  std::vector<Child> children;
  for (std::uint32_t self = 0; self < 2; ++self) {
    children.emplace_back([&, self] {
      const auto network = ofi::make_network(test::ofi_settings(GetParam()));
      table.meet(*network, self);
      write_to_each_other(*network, self, board);
    });
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
}

/// Messages from memory that lasts to such memory, of two buffers by turns.
TEST_P(OfiWritesOver, MemoryThatLastsIsRegisteredOnce) {
  constexpr std::uint32_t kMessages = 100;
  constexpr std::size_t kBytes = 100'000;
  test::CardTable table(2);
  const Shared board;
  std::vector<Child> children;
  for (std::uint32_t self = 0; self < 2; ++self) {
    children.emplace_back([&, self] {
      const auto made = ofi::make_network(test::ofi_settings(GetParam()));
      auto& network = dynamic_cast<ofi::OfiNetwork&>(*made);
      table.meet(network, self);
      const std::uint32_t peer = 1 - self;
      poll_until(network, [&] { return network.trial(peer) == Trial::kProven && network.takes_writes(peer); });
      std::vector<std::byte> memory(2 * kBytes);
      std::optional<LastingPiece> first;
      std::optional<LastingPiece> second;
      first.emplace(memory.data(), kBytes);
      second.emplace(&memory[kBytes], kBytes);
      for (std::uint32_t number = 0; number < kMessages; ++number) {
        const auto part = std::span(memory).subspan(number % 2 * kBytes, kBytes);
        if (self == 0) {
          const auto sent = source(0, number, kBytes);
          std::copy(sent.begin(), sent.end(), part.begin());
          poll_until(network, [&] { return board->shown.load() == number + 1; });
          Ticket ticket = 0;
          poll_until(network, [&] { return network.write(1, board->reaches[1], 0, word(0, number), part, ticket); });
          poll_until(network, [&] { return network.done(1, ticket) && board->count.load() == number + 1; });
        } else {
          const Reach reach = network.show(0, part).value();
          board->reaches[1] = reach;
          board->shown.fetch_add(1);
          poll_until(network, [&] { return word_came(network, 0, number); });
          require(std::ranges::equal(part, source(0, number, kBytes)), "all that was written is there");
          network.hide(0, reach, true);
          board->count.fetch_add(1);
        }
      }
      const std::size_t buffers = self == 1 ? 2 : network.registrations().made();
      require(buffers <= 2, "a source is registered once, if it is");
      require(network.registrations().made() == buffers, "once for each buffer");
      require(network.registrations().kept() == buffers, "and kept");
      first.reset();
      require(network.registrations().kept() == buffers / 2, "what is freed is deregistered");
      second.reset();
      require(network.registrations().kept() == 0, "and the other one");
      // The peer may still need this end to poll.
      board->taken[self] = 1;
      poll_until(network, [&] { return board->taken[peer].load() == 1; });
    });
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
}

/// Memory is freed by another thread while the network is at work.
TEST_P(OfiWritesOver, AnyThreadMayFreeWhatLasts) {
  constexpr std::uint32_t kMessages = 200;
  constexpr std::size_t kBytes = 70'000;
  test::CardTable table(2);
  const Shared board;
  std::vector<Child> children;
  for (std::uint32_t self = 0; self < 2; ++self) {
    children.emplace_back([&, self] {
      const auto network = ofi::make_network(test::ofi_settings(GetParam()));
      table.meet(*network, self);
      const std::uint32_t peer = 1 - self;
      poll_until(*network, [&] { return network->trial(peer) == Trial::kProven && network->takes_writes(peer); });
      if (self == 0) {
        const auto sent = source(0, 0, kBytes);
        for (std::uint32_t number = 0; number < kMessages; ++number) {
          poll_until(*network, [&] { return board->shown.load() == number + 1; });
          Ticket ticket = 0;
          poll_until(*network, [&] { return network->write(1, board->reaches[1], 0, word(0, number), sent, ticket); });
          poll_until(*network, [&] { return network->done(1, ticket) && board->count.load() == number + 1; });
        }
      } else {
        // Each message has new memory; the other thread frees that of the one before.
        std::vector<std::byte> memory(2 * kBytes);
        std::array<std::unique_ptr<LastingPiece>, 2> lasting;
        for (std::uint32_t number = 0; number < kMessages; ++number) {
          const auto part = std::span(memory).subspan(number % 2 * kBytes, kBytes);
          lasting[number % 2] = std::make_unique<LastingPiece>(part.data(), kBytes);
          std::thread frees([&] { lasting[(number + 1) % 2].reset(); });
          const Reach reach = network->show(0, part).value();
          board->reaches[1] = reach;
          board->shown.fetch_add(1);
          poll_until(*network, [&] { return word_came(*network, 0, number); });
          frees.join();
          network->hide(0, reach, true);
          board->count.fetch_add(1);
        }
      }
      board->taken[self] = 1;
      poll_until(*network, [&] { return board->taken[peer].load() == 1; });
    });
  }
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
}

/// Endpoint 0, whose memory a child, endpoint 1, writes all the time.
struct Written {
  explicit Written(const char* provider) : table(2), memory(8U << 20U) {
    child.emplace([this, provider] {
      // The network goes first: until then it may read what it writes from.
      const auto sent = source(1, 0, memory.size());
      const auto theirs = ofi::make_network(test::ofi_settings(provider));
      table.meet(*theirs, 1);
      std::array<Ticket, 4> tickets{};
      poll_until(*theirs, [&] { return board->shown.load() == 1 && theirs->takes_writes(0); });
      poll_until(*theirs, [&] {
        for (Ticket& ticket : tickets) {
          if (!theirs->done(0, ticket)) continue;
          if (theirs->write(0, board->reaches[0], 0, word(1, 0), sent, ticket)) board->count.fetch_add(1);
        }
        return board->over.load();
      });
    });
    network = ofi::make_network(test::ofi_settings(provider));
    table.meet(*network, 0);
    poll_until(*network, [&] { return network->trial(1) == Trial::kProven; });
    board->reaches[0] = network->show(1, memory).value();
    board->shown.fetch_add(1);
    // In the middle of it, after some have come.
    std::uint32_t came = 0;
    poll_until(*network, [&] {
      take();
      return ++came > 200 && board->count.load() > 6;
    });
  }
  void take() {
    Incoming incoming;
    while (network->peek(1, Lane::kData, incoming)) network->release(1, Lane::kData);
  }
  /// Polls for a while, in which nothing may be written.
  void expect_untouched() {
    std::fill(memory.begin(), memory.end(), std::byte{0x77});
    const auto deadline = test::Clock::now() + std::chrono::milliseconds(100);
    while (test::Clock::now() < deadline) {
      network->poll();
      take();
    }
    EXPECT_EQ(std::count(memory.begin(), memory.end(), std::byte{0x77}), static_cast<std::ptrdiff_t>(memory.size()));
  }

  test::CardTable table;
  Shared board;
  std::vector<std::byte> memory;
  std::optional<Child> child;
  std::unique_ptr<Network> network;
};

TEST_P(OfiWritesOver, AWriterThatLivesStopsWhenItIsTold) {
  Written job(GetParam());
  job.network->hide(1, job.board->reaches[0], false);
  ASSERT_EQ(job.network->settle(), std::nullopt) << "it has not answered";
  job.expect_untouched();
  EXPECT_EQ(job.network->liveness(1), Poe::Liveness::kAlive) << job.network->condition(1);
  job.board->over = true;
  EXPECT_EQ(job.child->wait(), 0);
}

TEST_P(OfiWritersThatStop, AWriterThatIsKilledWritesNoMoreOrIsNamed) {
  Written job(GetParam());
  kill(job.child->pid(), SIGKILL);
  job.child->wait();
  job.network->hide(1, job.board->reaches[0], false);
  const auto begin = test::Clock::now();
  const auto writes = job.network->settle();
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(10));
  // A provider that fails says so. Others try to reach the dead for ever: then that is said, and nothing promised.
  if (writes) {
    EXPECT_EQ(*writes, 1U);
  } else {
    job.expect_untouched();
  }
}

TEST_P(OfiWritersThatStop, WhoIsKnownToBeDeadIsNotWaitedForLong) {
  Written job(GetParam());
  kill(job.child->pid(), SIGKILL);
  job.child->wait();
  job.network->end(1, "the lifeline broke");
  job.network->hide(1, job.board->reaches[0], false);
  const auto writes = job.network->settle();
  if (!writes) job.expect_untouched();
  EXPECT_FALSE(job.network->takes_writes(1));
  EXPECT_EQ(job.network->liveness(1), Poe::Liveness::kDead);
}

TEST_P(OfiWritersThatStop, AWriterThatIsStoppedIsNamedAfterASecond) {
  Written job(GetParam());
  kill(job.child->pid(), SIGSTOP);
  job.network->hide(1, job.board->reaches[0], false);
  const auto begin = test::Clock::now();
  const auto writes = job.network->settle();
  EXPECT_LT(test::Clock::now() - begin, std::chrono::seconds(10));
  // It may have stopped before it had begun another write, and its word of that be on its way.
  if (writes) {
    EXPECT_EQ(*writes, 1U);
    EXPECT_GE(test::Clock::now() - begin, std::chrono::milliseconds(900));
  }
  kill(job.child->pid(), SIGCONT);
  job.board->over = true;
  EXPECT_EQ(job.child->wait(), 0) << "it goes on, and leaves";
}

}  // namespace
}  // namespace unisono
