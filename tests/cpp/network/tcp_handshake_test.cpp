// The proofs at the begin of a connection, byte by byte, without sockets.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/generated/spec.hpp"
#include "network/tcp/handshake.hpp"
#include "tests/cpp/network/tcp_job.hpp"

namespace unisono::tcp {
namespace {

using test::key_of;

Nonce nonce_of(std::uint8_t seed) {
  Nonce nonce{};
  nonce[0] = std::byte{seed};
  return nonce;
}

std::vector<std::byte> taken(Exchange& from) {
  const auto output = from.output();
  std::vector<std::byte> bytes(output.begin(), output.end());
  from.sent(output.size());
  return bytes;
}

/// Gives an end bytes in pieces of `step`; returns how many it wanted.
template <class End>
std::size_t give(End& end, std::span<const std::byte> bytes, std::size_t step = 1000) {
  std::size_t given = 0;
  while (given < bytes.size() && !end.wanted().empty()) {
    const std::size_t part = std::min({step, end.wanted().size(), bytes.size() - given});
    std::memcpy(end.wanted().data(), bytes.data() + given, part);
    end.got(part);
    given += part;
  }
  return given;
}

const Ends kFour{4, 9, 16};  // endpoint 4 connects to 9
const Ends kNine{9, 0, 16};

struct Pair {
  Connector connector{key_of(1), kFour, nonce_of(1)};
  Acceptor acceptor{key_of(1), kNine, nonce_of(2)};
};

/// Both ends as far as the proof.
void run(Pair& pair, std::size_t step = 1000) {
  give(pair.acceptor, taken(pair.connector), step);
  give(pair.connector, taken(pair.acceptor), step);
  if (pair.connector.state() != Connector::State::kChallenged) return;
  pair.connector.prove();
  give(pair.acceptor, taken(pair.connector), step);
}

TEST(TcpHandshake, MembersProveThemselves) {
  for (const std::size_t step : {1U, 7U, 1000U}) {
    Pair pair;
    run(pair, step);
    ASSERT_EQ(pair.acceptor.state(), Acceptor::State::kProven) << pair.acceptor.fault() << pair.connector.fault();
    EXPECT_EQ(pair.acceptor.peer(), 4U);
    EXPECT_EQ(pair.acceptor.objection(), tcp::Ruling::kAccepted);
    pair.acceptor.rule(Ruling::kAccepted);
    // What follows the verdict is of the session, and not asked for.
    auto bytes = taken(pair.acceptor);
    bytes.push_back(std::byte{0x55});
    EXPECT_EQ(give(pair.connector, bytes, step), bytes.size() - 1);
    EXPECT_EQ(pair.connector.state(), Connector::State::kAccepted);
  }
}

TEST(TcpHandshake, VerdictsAreTold) {
  const auto told = [](Ruling ruling) {
    Pair pair;
    run(pair);
    pair.acceptor.rule(ruling);
    give(pair.connector, taken(pair.acceptor));
    return pair.connector;
  };
  EXPECT_EQ(told(Ruling::kDuplicate).state(), Connector::State::kDuplicate);
  EXPECT_EQ(told(Ruling::kKnown).state(), Connector::State::kFailed);
  EXPECT_TRUE(told(Ruling::kKnown).final());
  EXPECT_TRUE(told(Ruling::kOtherVersion).final());
  EXPECT_EQ(told(static_cast<Ruling>(77)).state(), Connector::State::kFailed);
  EXPECT_NE(told(static_cast<Ruling>(77)).fault().find("77"), std::string::npos);
}

TEST(TcpHandshake, AnAcceptorWithoutTheKeyLearnsNothing) {
  Connector connector(key_of(1), kFour, nonce_of(1));
  Acceptor acceptor(key_of(2), kNine, nonce_of(2));
  give(acceptor, taken(connector));
  give(connector, taken(acceptor));
  EXPECT_EQ(connector.state(), Connector::State::kFailed);
  EXPECT_FALSE(connector.final()) << "another address may be the peer's";
  EXPECT_TRUE(connector.output().empty());
  EXPECT_NE(connector.fault().find("key"), std::string::npos);
}

TEST(TcpHandshake, AConnectorWithoutTheKeyIsRefused) {
  Pair right;
  Connector stranger(key_of(2), kFour, nonce_of(1));
  give(right.acceptor, taken(stranger));
  // It cannot read the challenge, and says something.
  give(right.acceptor, std::vector<std::byte>(sizeof(Proof), std::byte{0x5a}));
  EXPECT_EQ(right.acceptor.state(), Acceptor::State::kRefused);
  EXPECT_NE(right.acceptor.fault().find("endpoint 4"), std::string::npos) << right.acceptor.fault();
}

TEST(TcpHandshake, AReplayedHandshakeIsRefused) {
  Pair first;
  const auto hello = taken(first.connector);
  give(first.acceptor, hello);
  const auto challenge = taken(first.acceptor);
  give(first.connector, challenge);
  first.connector.prove();
  const auto proof = taken(first.connector);
  give(first.acceptor, proof);
  ASSERT_EQ(first.acceptor.state(), Acceptor::State::kProven);

  // The connector's part again, to the same endpoint: its nonce is another one.
  Acceptor again(key_of(1), kNine, nonce_of(3));
  give(again, hello);
  give(again, proof);
  EXPECT_EQ(again.state(), Acceptor::State::kRefused);
  // The acceptor's part again.
  Connector other(key_of(1), kFour, nonce_of(4));
  give(other, challenge);
  EXPECT_EQ(other.state(), Connector::State::kFailed);
  // An acceptor's proof is not a connector's.
  Acceptor reflected(key_of(1), kNine, nonce_of(2));
  give(reflected, hello);
  give(reflected, std::span(challenge).subspan(sizeof(ChallengeHead)));
  EXPECT_EQ(reflected.state(), Acceptor::State::kRefused);
}

TEST(TcpHandshake, AProofHoldsForItsEndsOnly) {
  // A member that relays a challenge to another one: the proof names whom it was meant for.
  Pair right;
  give(right.acceptor, taken(right.connector));
  const auto challenge = taken(right.acceptor);
  for (const Ends ends : {Ends{4, 8, 16}, Ends{5, 9, 16}, Ends{9, 4, 16}, Ends{4, 9, 17}}) {
    Connector other(key_of(1), ends, nonce_of(1));
    taken(other);
    give(other, challenge);
    EXPECT_EQ(other.state(), Connector::State::kFailed) << ends.self << " to " << ends.peer << " of " << ends.size;
  }
}

TEST(TcpHandshake, HellosForOthersAreRefused) {
  for (const Ends ends : {Ends{4, 8, 16}, Ends{9, 9, 16}, Ends{16, 9, 16}, Ends{4, 9, 17}, Ends{4, 9, 0}}) {
    Connector connector(key_of(1), ends, nonce_of(1));
    Acceptor acceptor(key_of(1), kNine, nonce_of(2));
    give(acceptor, taken(connector));
    EXPECT_EQ(acceptor.state(), Acceptor::State::kRefused) << ends.self << " to " << ends.peer << " of " << ends.size;
    EXPECT_TRUE(acceptor.output().empty()) << "a stranger gets no answer";
    EXPECT_TRUE(acceptor.wanted().empty()) << "and is not listened to";
  }
}

TEST(TcpHandshake, AnyAlteredBitIsNoticed) {
  for (std::size_t bit = 0; bit < 8 * (sizeof(Hello) + sizeof(Challenge) + sizeof(Proof)); ++bit) {
    Pair pair;
    // The first altered bit ends it, for one of the two ends.
    std::size_t rest = bit;
    const auto alter = [&](std::vector<std::byte> bytes) {
      if (rest < 8 * bytes.size()) {
        bytes[rest / 8] ^= static_cast<std::byte>(1U << (rest % 8));
        rest = std::size_t{1} << 40U;
      } else {
        rest -= 8 * bytes.size();
      }
      return bytes;
    };
    give(pair.acceptor, alter(taken(pair.connector)));
    give(pair.connector, alter(taken(pair.acceptor)));
    if (pair.connector.state() == Connector::State::kChallenged) {
      pair.connector.prove();
      give(pair.acceptor, alter(taken(pair.connector)));
    }
    EXPECT_NE(pair.acceptor.state(), Acceptor::State::kProven) << "bit " << bit;
  }
}

TEST(TcpHandshake, GarbageIsRefusedAfterOneMessage) {
  Acceptor acceptor(key_of(1), kNine, nonce_of(2));
  const std::vector<std::byte> garbage(100'000, std::byte{'G'});
  EXPECT_EQ(give(acceptor, garbage), sizeof(Hello));
  EXPECT_EQ(acceptor.state(), Acceptor::State::kRefused);
  Connector connector(key_of(1), kFour, nonce_of(1));
  EXPECT_EQ(give(connector, garbage), sizeof(Challenge));
  EXPECT_EQ(connector.state(), Connector::State::kFailed);
}

TEST(TcpHandshake, TwoVersionsSayWhich) {
  // A connector of the next version, as this one would be with another number: its proofs are right.
  const JobKey key = key_of(1);
  Connector same(key, kFour, nonce_of(1));
  auto bytes = taken(same);
  Hello hello;
  std::memcpy(&hello, bytes.data(), sizeof hello);
  hello.protocol = kProtocol + 1;
  hello.wire = kWireVersion + 2;
  Acceptor acceptor(key, kNine, nonce_of(2));
  give(acceptor, std::as_bytes(std::span(&hello, 1)));
  bytes = taken(acceptor);
  ASSERT_EQ(bytes.size(), sizeof(Challenge)) << "the other version must be able to prove itself";
  const Proof proof{digest_of(key, "unisono tcp connector", {std::as_bytes(std::span(&hello, 1)), bytes})};
  give(acceptor, std::as_bytes(std::span(&proof, 1)));
  ASSERT_EQ(acceptor.state(), Acceptor::State::kProven);
  EXPECT_EQ(acceptor.objection(), tcp::Ruling::kOtherVersion);
  EXPECT_NE(acceptor.fault().find("version 3 of the handshake and 3 of"), std::string::npos) << acceptor.fault();

  // An acceptor of the next version.
  Connector connector(key, kFour, nonce_of(1));
  bytes = taken(connector);
  Challenge challenge;
  Pair pair;
  give(pair.acceptor, bytes);
  const auto right = taken(pair.acceptor);
  std::memcpy(&challenge, right.data(), sizeof challenge);
  challenge.head.protocol = kProtocol + 1;
  challenge.proof = digest_of(key, "unisono tcp acceptor", {bytes, std::as_bytes(std::span(&challenge.head, 1))});
  give(connector, std::as_bytes(std::span(&challenge, 1)));
  ASSERT_EQ(connector.state(), Connector::State::kChallenged) << "so that the acceptor learns the version for sure";
  connector.prove();
  taken(connector);
  const Verdict verdict{{'U', 'N', 'I', 'V'}, Ruling::kOtherVersion, 0};
  give(connector, std::as_bytes(std::span(&verdict, 1)));
  ASSERT_EQ(connector.state(), Connector::State::kFailed);
  EXPECT_TRUE(connector.final());
  EXPECT_NE(connector.fault().find("version 3 of the handshake"), std::string::npos) << connector.fault();
}

TEST(TcpHandshake, BothEndsLearnTheLesserNumberOfConnections) {
  const std::uint32_t cases[][3] = {{1, 1, 1}, {4, 2, 2}, {2, 4, 2}, {16, 16, 16}, {1, 16, 1}};
  for (const auto& [connector, acceptor, expected] : cases) {
    Ends from = kFour;
    Ends to = kNine;
    from.connections = connector;
    to.connections = acceptor;
    Pair pair{Connector(key_of(1), from, nonce_of(1)), Acceptor(key_of(1), to, nonce_of(2))};
    run(pair);
    pair.acceptor.rule(Ruling::kAccepted);
    give(pair.connector, taken(pair.acceptor));
    EXPECT_EQ(pair.connector.agreed().connections, expected);
    EXPECT_EQ(pair.acceptor.agreed().connections, expected);
    EXPECT_EQ(pair.connector.agreed().session_key, pair.acceptor.agreed().session_key);
    EXPECT_NE(pair.connector.agreed().session_key, pair.connector.agreed().tls_secret);
  }
}

TEST(TcpHandshake, AFurtherConnectionIsProvenByTheKeyOfItsSession) {
  Pair first;
  run(first);
  first.acceptor.rule(Ruling::kAccepted);
  give(first.connector, taken(first.acceptor));
  const JobKey key = first.connector.agreed().session_key;
  const SessionKeys sessions = [&](std::uint32_t peer) { return peer == 4 ? std::optional(key) : std::nullopt; };
  Ends more = kFour;
  more.number = 3;
  const auto proven = [&](const JobKey& with, Ends ends, const SessionKeys* known) {
    Pair pair{Connector(with, ends, nonce_of(5)), Acceptor(key_of(1), kNine, nonce_of(6), known)};
    give(pair.acceptor, taken(pair.connector));
    give(pair.connector, taken(pair.acceptor));
    if (pair.connector.state() == Connector::State::kChallenged) pair.connector.prove();
    give(pair.acceptor, taken(pair.connector));
    if (pair.acceptor.state() == Acceptor::State::kProven) {
      EXPECT_EQ(pair.acceptor.number(), ends.number);
      EXPECT_NE(pair.acceptor.agreed().tls_secret, first.acceptor.agreed().tls_secret) << "each has its own";
    }
    return pair.acceptor.state() == Acceptor::State::kProven;
  };
  EXPECT_TRUE(proven(key, more, &sessions));
  EXPECT_FALSE(proven(key_of(1), more, &sessions)) << "the job's key is not that of the session";
  EXPECT_FALSE(proven(key, more, nullptr)) << "there is no session";
  EXPECT_FALSE(proven(key, kFour, &sessions)) << "nor is a session made by its own key";
  Ends other = more;
  other.self = 5;
  EXPECT_FALSE(proven(key, other, &sessions)) << "another endpoint has another session, or none";
  more.number = kMostConnections;
  EXPECT_FALSE(proven(key, more, &sessions));
  // A session of the same two endpoints that was made by another handshake has another key.
  Pair second{Connector(key_of(1), kFour, nonce_of(8)), Acceptor(key_of(1), kNine, nonce_of(2))};
  run(second);
  EXPECT_NE(second.acceptor.agreed().session_key, key);
}

TEST(TcpHandshake, ThePrintedFaultsHoldNoSecret) {
  Connector stranger(key_of(2), kFour, nonce_of(1));
  Acceptor acceptor(key_of(1), kNine, nonce_of(2));
  give(acceptor, taken(stranger));
  give(acceptor, std::vector<std::byte>(sizeof(Proof), std::byte{'s'}));
  EXPECT_EQ(acceptor.fault(), "says that it is endpoint 4, and does not know the key of this job");
}

}  // namespace
}  // namespace unisono::tcp
