// Who may speak to a switch, and what becomes of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <thread>

#include "tests/cpp/switch/service/members.hpp"

namespace unisono::slots {
namespace {

using join::FrameKind;
using join::FrameReader;
using std::chrono::seconds;
using testing::HasSubstr;

/// One who does as callers do, but not to the end.
class Stranger {
 public:
  explicit Stranger(const std::string& address) {
    join::NoConnection failure;
    connection_ = join::try_connect(*join::parse_host_port(address), within(seconds(5)), failure);
  }
  void hello(std::uint32_t version) {
    hello_.size = version;
    fill_random(hello_.nonce);
    join::send_frame(connection_, FrameKind::kHello, std::as_bytes(std::span(&hello_, 1)), within(seconds(5)));
  }
  void prove(const std::string& secret) {
    join::Challenge challenge{};
    ASSERT_EQ(hear(), FrameReader::Progress::kComplete);
    ASSERT_TRUE(reader_.body_as(FrameKind::kChallenge, challenge));
    give(FrameKind::kProof, proof_of_caller(bytes_of_text(secret), hello_, challenge.nonce));
  }
  bool give(FrameKind kind, std::span<const std::byte> body) {
    return join::send_frame(connection_, kind, body, within(seconds(5)));
  }
  void send(const std::string& text) { ::send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  FrameReader::Progress hear() {
    reader_.restart();
    return reader_.read_until(connection_, within(seconds(5)));
  }
  /// What it is refused with; empty: it is not.
  std::string refusal() {
    return hear() == FrameReader::Progress::kComplete && reader_.kind() == FrameKind::kRefused ? reader_.body_text()
                                                                                               : "";
  }
  FrameReader& reader() { return reader_; }

 private:
  join::Descriptor connection_;
  FrameReader reader_{kMostControlBytes};
  join::Hello hello_{};
};

TEST(Callers, OfAnotherVersionAreToldBoth) {
  const Serving one("one");
  Stranger stranger(one.address());
  stranger.hello(99);
  EXPECT_THAT(stranger.refusal(), HasSubstr("speaks version " + std::to_string(kControlVersion) +
                                            " of what is said to switches, this process version 99"));
  EXPECT_EQ(stranger.hear(), FrameReader::Progress::kClosed);
  EXPECT_THAT(ask_at(one.address(), "status"), HasSubstr(R"("other_versions":1)"));
}

TEST(Callers, WithAnotherSecretAreRefused) {
  const Serving one("one");
  Stranger stranger(one.address());
  stranger.hello(kControlVersion);
  stranger.prove("another secret than that");
  EXPECT_THAT(stranger.refusal(), HasSubstr("the secret is not that of the switch one"));
  EXPECT_THAT(ask_at(one.address(), "status"), HasSubstr(R"("wrong_secrets":1)"));
  const std::string other = "another secret than that";
  try {
    ControlConnection(one.address(), bytes_of_text(other), within(seconds(5)));
    ADD_FAILURE() << "it was let in";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("it has another secret"));
  }
}

TEST(Callers, WhoAreNoneDisturbNobody) {
  const Serving one("one");
  const auto caller = call_at(one.address());
  Stranger http(one.address());
  http.send("GET / HTTP/1.1\r\nHost: switch\r\n\r\n");
  const auto heard = http.hear();
  EXPECT_TRUE(heard == FrameReader::Progress::kClosed || http.reader().kind() == FrameKind::kRefused);
  Stranger broken(one.address());
  broken.give(FrameKind::kGive, std::vector<std::byte>(28));
  EXPECT_THAT(broken.refusal(), HasSubstr("a broken hello"));
  Stranger large(one.address());
  large.give(FrameKind::kHello, std::vector<std::byte>(5000));
  EXPECT_NE(large.hear(), FrameReader::Progress::kMore);
  EXPECT_TRUE(caller->make(request_for("one", 2), within(seconds(5))).made);
}

TEST(Callers, WhoSayWhatIsNoRequestAreRefused) {
  const Serving one("one");
  for (const ControlFrame& frame : {ControlFrame{ControlKind::kMake, 1, {}}, ControlFrame{ControlKind::kFree, 1, {}}}) {
    Stranger stranger(one.address());
    stranger.hello(kControlVersion);
    stranger.prove(kSecret);
    ASSERT_EQ(stranger.hear(), FrameReader::Progress::kComplete);
    EXPECT_TRUE(welcome_in(stranger.reader().body()));
    stranger.give(FrameKind::kGive, packed(frame));
    EXPECT_THAT(stranger.refusal(), HasSubstr("a broken request"));
  }
}

TEST(Callers, WhoProveNothingGiveWayToOthers) {
  const Serving one("one");
  std::vector<std::unique_ptr<Stranger>> silent;
  for (int i = 0; i < 70; ++i) silent.push_back(std::make_unique<Stranger>(one.address()));
  EXPECT_TRUE(call_at(one.address())->make(request_for("one", 2), within(seconds(5))).made);
  EXPECT_EQ(silent.front()->hear(), FrameReader::Progress::kClosed);
  EXPECT_THAT(ask_at(one.address(), "status"), testing::Not(HasSubstr(R"("crowded":0)")));
}

/// A switch that answers its first question in two halves, the second half when the next question has come.
void answer_in_halves(const join::Descriptor& listener) {
  join::Descriptor connection;
  while (!connection.valid()) connection = join::accept_from(listener);
  FrameReader reader(kMostControlBytes);
  const auto hear = [&] {
    reader.restart();
    ASSERT_EQ(reader.read_until(connection, within(seconds(5))), FrameReader::Progress::kComplete);
  };
  hear();
  join::Hello hello{};
  ASSERT_TRUE(reader.body_as(FrameKind::kHello, hello));
  join::Challenge challenge{};
  fill_random(challenge.nonce);
  challenge.proof = proof_of_switch(bytes_of_text(kSecret), hello, challenge.nonce);
  join::send_frame(connection, FrameKind::kChallenge, std::as_bytes(std::span(&challenge, 1)), within(seconds(5)));
  hear();
  Welcome welcome;
  welcome.name = "halves";
  join::send_frame(connection, FrameKind::kAll, packed(welcome), within(seconds(5)));
  join::Blob answers;
  std::size_t half = 0;
  for (std::uint32_t number = 1; number <= 2; ++number) {
    hear();
    const join::Blob body = packed(ControlFrame{ControlKind::kAsk, number, join::Blob(100 * number)});
    const join::FrameHead head{join::kFrameMagic, join::kProtocol, FrameKind::kAll,
                               static_cast<std::uint32_t>(body.size())};
    const auto begin = std::as_bytes(std::span(&head, 1));
    answers.insert(answers.end(), begin.begin(), begin.end());
    answers.insert(answers.end(), body.begin(), body.end());
    const std::size_t end = number == 1 ? answers.size() / 2 : answers.size();
    ::send(connection.get(), answers.data() + half, end - half, MSG_NOSIGNAL);
    half = end;
  }
  hear();  // until the caller has taken the second
}

TEST(Callers, WhoGiveUpAnAnswerInItsMiddleGetTheNextOne) {
  const join::Descriptor listener = join::listen_anywhere();
  std::jthread answering([&] { answer_in_halves(listener); });
  const auto caller = call_at("127.0.0.1:" + std::to_string(join::port_of(listener)));
  EXPECT_THROW(caller->ask(ControlKind::kAsk, {}, within(std::chrono::milliseconds(300))), Error);
  EXPECT_FALSE(caller->ended());
  EXPECT_EQ(caller->ask(ControlKind::kAsk, {}, within(seconds(5))).size(), 200U);
  caller->free({});
}

TEST(Callers, WhoReadNoAnswersAreClosed) {
  const Serving one("one");
  Stranger stranger(one.address());
  stranger.hello(kControlVersion);
  stranger.prove(kSecret);
  ASSERT_EQ(stranger.hear(), FrameReader::Progress::kComplete);
  const join::Blob question = packed(ControlFrame{ControlKind::kAsk, 1, join::Blob(6, std::byte{'x'})});
  bool closed = false;
  // The system keeps some megabytes in either direction before anybody notices.
  const auto until = within(seconds(60));
  while (!closed && join::Clock::now() < until) closed = !stranger.give(FrameKind::kGive, question);
  EXPECT_TRUE(closed);
  EXPECT_THAT(ask_at(one.address(), "status"), HasSubstr(R"("slow":1)"));
}

}  // namespace
}  // namespace unisono::slots
