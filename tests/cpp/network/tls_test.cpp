// The encrypted connection by itself: two ends, and somebody between them.
#include "network/tcp/tls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/cpp/network/wire.hpp"

namespace unisono::tcp {
namespace {

using test::Wire;
using ::testing::HasSubstr;
using Progress = Tls::Progress;

Digest secret_of(std::uint8_t seed) {
  Digest secret;
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::byte>(seed + i);
  return secret;
}

/// Byte `i` of what end `from` sends.
std::byte byte_of(std::size_t from, std::size_t i) {
  return static_cast<std::byte>((i * 2'654'435'761U) >> (16 + from));
}

/// The client is end 0.
struct Pair {
  explicit Pair(const Digest& client = secret_of(1), const Digest& server = secret_of(1),
                std::uint64_t records_per_key = Tls::kRecordsPerKey)
      : tls{Tls(TlsEnd::kClient, client, wire.end(0), records_per_key),
            Tls(TlsEnd::kServer, server, wire.end(1), records_per_key)} {}

  /// Until both have come to an end, or nothing moves any more.
  void shake_hands() {
    for (bool moves = true; moves;) {
      for (std::size_t i = 0; i < 2; ++i) {
        if (progress[i] == Progress::kUnderWay) progress[i] = tls[i].shake_hands();
      }
      moves = wire.pump();
    }
  }
  bool agreed() const { return progress[0] == Progress::kDone && progress[1] == Progress::kDone; }

  /// Sends `bytes` more from an end, in pieces of random lengths; what the kernel does not take now is left.
  void send(std::size_t from, std::size_t bytes, std::mt19937& random) {
    std::vector<std::byte> memory(bytes);
    for (std::size_t i = 0; i < bytes; ++i) memory[i] = byte_of(from, sent[from] + i);
    std::vector<iovec> pieces;
    for (std::size_t at = 0; at < bytes;) {
      const std::size_t part =
          std::min<std::size_t>(bytes - at, random() % 3 == 0 ? random() % 40'000 : random() % 100);
      pieces.push_back({memory.data() + at, part});
      at += part;
    }
    sent[from] += tls[from].send(pieces);
    // As a caller who gets his memory back at once.
    std::fill(memory.begin(), memory.end(), std::byte{0xee});
  }

  /// Takes what has come at an end, into two pieces of random lengths, and compares it. The last result of `receive`.
  ssize_t receive(std::size_t at, std::mt19937& random) {
    for (;;) {
      std::vector<std::byte> first(random() % 2 == 0 ? 0 : random() % 50'000);
      std::vector<std::byte> second(1 + random() % 300);
      const ssize_t got = tls[at].receive(first, second);
      if (got <= 0) return got;
      first.insert(first.end(), second.begin(), second.end());
      for (ssize_t i = 0; i < got; ++i) {
        if (first[i] != byte_of(1 - at, received[at] + i)) throw std::runtime_error("a byte differs");
      }
      received[at] += static_cast<std::size_t>(got);
      if (received[at] > sent[1 - at]) throw std::runtime_error("more came than was sent");
    }
  }

  Wire wire;
  std::array<Tls, 2> tls;
  std::array<Progress, 2> progress{Progress::kUnderWay, Progress::kUnderWay};
  std::array<std::size_t, 2> sent{};
  std::array<std::size_t, 2> received{};
};

/// Traffic both ways until each end has sent so much and it has come, or an end has failed.
void exchange(Pair& pair, std::size_t bytes, std::mt19937& random) {
  for (int idle = 0; idle < 100;) {
    bool moves = false;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t before = pair.sent[i] + pair.received[i];
      if (pair.sent[i] < bytes) pair.send(i, std::min<std::size_t>(bytes - pair.sent[i], random() % 150'000), random);
      pair.tls[i].flush();
      if (random() % 2 == 0) pair.receive(i, random);
      moves = moves || pair.sent[i] + pair.received[i] != before;
    }
    moves = pair.wire.pump() || moves;
    idle = moves ? 0 : idle + 1;
    if (pair.received[0] == bytes && pair.received[1] == bytes) return;
  }
}

TEST(Tls, CarriesWhatWasSentInBothDirections) {
  std::mt19937 random(1);
  for (int round = 0; round < 4; ++round) {
    Pair pair;
    pair.shake_hands();
    ASSERT_TRUE(pair.agreed()) << pair.tls[0].fault() << pair.tls[1].fault();
    exchange(pair, 1'500'000, random);
    for (const std::size_t i : {0U, 1U}) {
      EXPECT_EQ(pair.received[i], 1'500'000U);
      EXPECT_FALSE(pair.tls[i].has_output());
      EXPECT_LE(pair.tls[i].memory(), 100'000U);
      EXPECT_EQ(pair.receive(i, random), -1);
      EXPECT_EQ(errno, EAGAIN);
      EXPECT_FALSE(pair.tls[i].holds());
    }
  }
}

TEST(Tls, KeysAreChangedMeanwhile) {
  std::mt19937 random(2);
  Pair pair(secret_of(1), secret_of(1), 2);
  pair.shake_hands();
  ASSERT_TRUE(pair.agreed());
  exchange(pair, 3'000'000, random);
  EXPECT_EQ(pair.received[0], 3'000'000U) << pair.tls[0].fault();
  EXPECT_EQ(pair.received[1], 3'000'000U) << pair.tls[1].fault();
}

TEST(Tls, NothingCanBeReadOnTheWay) {
  std::mt19937 random(3);
  Pair pair;
  pair.shake_hands();
  ASSERT_TRUE(pair.agreed());
  exchange(pair, 100'000, random);
  ASSERT_EQ(pair.received[1], 100'000U);
  // No eight bytes of what was sent stand in what went over the wire: of that many random ones none would by chance.
  const auto& seen = pair.wire.from(0).seen;
  ASSERT_GE(seen.size(), 100'000U);
  std::vector<std::uint64_t> plain;
  const auto word = [](auto&& byte, std::size_t at) {
    std::uint64_t eight = 0;
    for (std::size_t i = 0; i < 8; ++i) eight = eight << 8U | static_cast<std::uint64_t>(byte(at + i));
    return eight;
  };
  for (std::size_t i = 0; i + 8 <= 100'000; ++i)
    plain.push_back(word([](std::size_t at) { return byte_of(0, at); }, i));
  std::sort(plain.begin(), plain.end());
  const auto both = [&](auto&& byte, std::size_t bytes) {
    std::size_t found = 0;
    for (std::size_t i = 0; i + 8 <= bytes; ++i) {
      found += std::binary_search(plain.begin(), plain.end(), word(byte, i)) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(both([&](std::size_t at) { return seen[at]; }, seen.size()), 0U);
  EXPECT_EQ(both([](std::size_t at) { return byte_of(0, at + 5); }, 100), 93U) << "it would be found";
}

TEST(Tls, WhoKnowsAnotherSecretIsRefusedByBothEnds) {
  Pair pair(secret_of(1), secret_of(2));
  pair.shake_hands();
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(pair.progress[i], Progress::kFailed);
    EXPECT_THAT(pair.tls[i].fault(), HasSubstr("TLS could not be agreed on"));
  }
}

TEST(Tls, ABitThatIsAlteredIsNeverTakenForData) {
  std::mt19937 random(4);
  // Bits of the handshake, one byte after the other, then of records: their heads, bodies and tags.
  std::size_t length[2]{};
  {
    Pair pair;
    pair.shake_hands();
    for (const std::size_t i : {0U, 1U}) length[i] = pair.wire.from(i).seen.size();
  }
  for (const std::size_t from : {0U, 1U}) {
    for (std::size_t at = 0; at < length[from] + 200; at += 1 + random() % 7) {
      Pair pair;
      pair.wire.from(from).alter = [&](std::vector<std::byte>& fresh, std::size_t begin) {
        if (at < begin || at >= begin + fresh.size()) return;
        fresh[at - begin] ^= static_cast<std::byte>(1U << (at % 8));
      };
      pair.shake_hands();
      if (pair.agreed()) {
        exchange(pair, 2000, random);
      } else if (pair.progress[0] == Progress::kDone) {
        // The client is done first: it finds what the server thinks when it reads.
        for (int i = 0; i < 3; ++i) {
          pair.wire.pump();
          pair.receive(0, random);
        }
      }
      // The version in the head of the first record is there for machines on the way, and nobody looks at it.
      const bool is_of_no_matter = at == 1 || at == 2;
      EXPECT_EQ(pair.received[1 - from] == 2000, is_of_no_matter) << "byte " << at << " of end " << from;
    }
  }
}

TEST(Tls, BothEndsSayWhatHappenedToAnAlteredRecord) {
  std::mt19937 random(5);
  Pair pair;
  pair.shake_hands();
  ASSERT_TRUE(pair.agreed());
  pair.wire.from(0).alter = [](std::vector<std::byte>& fresh, std::size_t) { fresh[fresh.size() / 2] ^= std::byte{8}; };
  exchange(pair, 5000, random);
  exchange(pair, 6000, random);
  EXPECT_EQ(pair.received[1], 0U);
  EXPECT_EQ(
      pair.tls[1].fault(),
      "what came from it is not as it was sent, so the connection was ended: decryption failed or bad record mac");
  EXPECT_THAT(pair.tls[0].fault(), HasSubstr("it has ended the encrypted connection: "));
  EXPECT_THAT(pair.tls[0].fault(), HasSubstr("bad record mac"));
  std::byte byte{};
  EXPECT_EQ(pair.tls[1].receive({}, {&byte, 1}), -1);
  EXPECT_EQ(errno, EPROTO);
  const iovec piece{&byte, 1};
  EXPECT_EQ(pair.tls[1].send({&piece, 1}), 0U);
}

TEST(Tls, RecordsThatAreLeftOutSentTwiceOrSwappedAreNoticed) {
  std::mt19937 random(6);
  for (int kind = 0; kind < 3; ++kind) {
    Pair pair;
    pair.shake_hands();
    ASSERT_TRUE(pair.agreed());
    std::vector<std::vector<std::byte>> records;
    pair.wire.from(0).alter = [&](std::vector<std::byte>& fresh, std::size_t) {
      records.push_back(fresh);
      fresh.clear();
    };
    for (int i = 0; i < 3; ++i) {
      pair.send(0, 500, random);
      pair.wire.pump();
    }
    ASSERT_EQ(records.size(), 3U);
    auto& waiting = pair.wire.from(0).waiting;
    for (const std::size_t which : kind == 0   ? std::vector{0, 2}
                                   : kind == 1 ? std::vector{0, 0}
                                               : std::vector{0, 2, 1}) {
      waiting.insert(waiting.end(), records[which].begin(), records[which].end());
    }
    pair.wire.pump();
    pair.receive(1, random);
    EXPECT_EQ(pair.received[1], 500U) << kind;
    EXPECT_THAT(pair.tls[1].fault(), HasSubstr("bad record mac")) << kind;
  }
}

TEST(Tls, WhatIsCutOffIsAnEndAndNoMore) {
  std::mt19937 random(7);
  for (std::size_t at = 1; at < 3000; at += 1 + random() % 97) {
    Pair pair;
    pair.wire.from(0).alter = [&](std::vector<std::byte>& fresh, std::size_t begin) {
      if (begin + fresh.size() >= at) fresh.resize(begin > at ? 0 : at - begin);
    };
    pair.shake_hands();
    if (pair.agreed()) exchange(pair, 5000, random);
    pair.wire.end_stream(0);
    if (pair.progress[1] == Progress::kDone) {
      EXPECT_EQ(pair.receive(1, random), 0) << at;
      EXPECT_LT(pair.received[1], 5000U);
    } else {
      EXPECT_EQ(pair.tls[1].shake_hands(), Progress::kFailed);
      EXPECT_THAT(pair.tls[1].fault(), HasSubstr("closed the connection before TLS was agreed on"));
    }
  }
}

TEST(Tls, WhatWasRecordedIsOfNoUseAgain) {
  // Even to an end that has the same secret once more, which no handshake of ours would give it.
  std::mt19937 random(8);
  std::vector<std::byte> recorded;
  {
    Pair pair;
    pair.shake_hands();
    exchange(pair, 3000, random);
    recorded = pair.wire.from(0).seen;
  }
  Wire wire;
  Tls server(TlsEnd::kServer, secret_of(1), wire.end(1));
  wire.from(0).waiting = recorded;
  while (server.shake_hands() == Progress::kUnderWay && wire.pump()) {
  }
  EXPECT_EQ(server.shake_hands(), Progress::kFailed);
  EXPECT_THAT(server.fault(), HasSubstr("TLS could not be agreed on"));
}

TEST(Tls, WhoSpeaksSomethingElseIsToldFromADeadOne) {
  for (const TlsEnd end : {TlsEnd::kClient, TlsEnd::kServer}) {
    Wire wire;
    Tls tls(end, secret_of(1), wire.end(1));
    tls.shake_hands();
    wire.from(0).waiting = std::vector<std::byte>(1000, std::byte{'x'});
    wire.pump();
    EXPECT_EQ(tls.shake_hands(), Progress::kFailed);
    EXPECT_THAT(tls.fault(), HasSubstr("TLS could not be agreed on with it: ")) << tls.fault();
  }
}

TEST(Tls, WhoTakesNothingHoldsUpTheSenderAndCostsNoMemory) {
  std::mt19937 random(9);
  Pair pair;
  pair.shake_hands();
  ASSERT_TRUE(pair.agreed());
  const std::vector<std::byte> zeros(100'000);
  const iovec piece{const_cast<std::byte*>(zeros.data()), zeros.size()};
  std::size_t taken = 0;
  while (const std::size_t more = pair.tls[0].send({&piece, 1})) taken += more;
  EXPECT_TRUE(pair.tls[0].has_output());
  EXPECT_FALSE(pair.tls[0].flush());
  EXPECT_LE(pair.tls[0].memory(), 100'000U);
  std::size_t came = 0;
  std::vector<std::byte> into(77'777);
  for (int idle = 0; idle < 10; ++idle) {
    pair.tls[0].flush();
    if (pair.wire.pump()) idle = 0;
    const ssize_t got = pair.tls[1].receive({}, into);
    if (got > 0) {
      came += static_cast<std::size_t>(got);
      idle = 0;
    }
  }
  EXPECT_EQ(came, taken);
}

TEST(Tls, WhoIsGoneIsAnErrorOfSendingAndWhatItSentIsRead) {
  std::mt19937 random(10);
  Pair pair;
  pair.shake_hands();
  pair.send(0, 5000, random);
  pair.wire.pump();
  shutdown(pair.wire.end(1), SHUT_WR);
  const std::byte byte{};
  const iovec piece{const_cast<std::byte*>(&byte), 1};
  for (int i = 0; i < 3; ++i) pair.tls[1].send({&piece, 1});
  EXPECT_EQ(pair.tls[1].sending_error(), EPIPE);
  EXPECT_FALSE(pair.tls[1].has_output());
  pair.receive(1, random);
  EXPECT_EQ(pair.received[1], 5000U);
}

}  // namespace
}  // namespace unisono::tcp
