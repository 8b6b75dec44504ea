// Members that meet at a socket of rank 0.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/wait_hook.hpp"
#include "platform/join/exchange.hpp"
#include "platform/join/frames.hpp"
#include "platform/join/pack.hpp"
#include "platform/join/ranks_in_words.hpp"

namespace unisono::join {
namespace {

using std::chrono::milliseconds;

/// How long a connection may take to prove that it is a member's before it is dropped.
constexpr std::chrono::seconds kPatience{10};
/// Members outlast rank 0's deadline by this, so that they hear from it who has not come.
constexpr std::chrono::seconds kGrace{2};
/// Connections that have proven nothing, beyond one for every rank.
constexpr std::size_t kSpareNewcomers = 64;

std::string person(std::uint32_t rank, std::uint32_t pid) { return formatted("rank {} (pid {})", rank, pid); }

template <class Body>
std::span<const std::byte> bytes_of(const Body& body) {
  return std::as_bytes(std::span(&body, 1));
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// What rank 0 proves with, and what a member does: bound to the process that has said hello, and to fresh numbers of
/// both.
Digest proof_of_root(const JobEnvironment& environment, const Hello& hello, const Nonce& nonce) {
  return digest_of(bytes_of(environment.secret), "unisono rank 0", {bytes_of(hello), bytes_of(nonce)});
}
Digest proof_of_member(const JobEnvironment& environment, const Hello& hello, const Nonce& nonce) {
  return digest_of(bytes_of(environment.secret), "unisono member", {bytes_of(hello), bytes_of(nonce)});
}

std::string wrong_secret(const JobEnvironment& environment) {
  return formatted("the secret ({}) is not that of {}", environment.secret_source, environment.title());
}

/// Rank 0. One thread and one poll loop, so no connection can hold up another.
class RootOfHub final : public Exchange {
 public:
  explicit RootOfHub(const JobEnvironment& environment)
      : environment_(environment),
        deadline_(Clock::now() + environment.timeout),
        listener_(listener_of(environment)),
        members_(environment.size) {
    try {
      gather();
    } catch (const Error& error) {
      give_up(error.what());
      throw;
    }
  }

  std::vector<Blob> all_gather(std::span<const std::byte> own) override {
    try {
      std::vector<Blob> all(environment_.size);
      all[0].assign(own.begin(), own.end());
      await_given(all);
      const Blob packed = pack_blobs(all);
      for (std::uint32_t rank = 1; rank < environment_.size; ++rank) {
        const Member& member = *members_[rank];
        if (!send_frame(member.connection, FrameKind::kAll, packed, deadline_)) {
          fail(person(rank, member.pid) + " ended, or read nothing for too long, while the job was forming");
        }
      }
      return all;
    } catch (const Error& error) {
      give_up(error.what());
      throw;
    }
  }

  void give_up(const std::string& reason) noexcept override {
    for (auto& member : members_) {
      if (member) send_refusal(member->connection, reason);
      member.reset();
    }
  }

  std::span<const std::byte> secret() const override { return bytes_of(environment_.secret); }

 private:
  struct Member {
    Descriptor connection;
    std::uint32_t pid;
    FrameReader reader{kMaxGiven};
    std::optional<Blob> given{};  ///< what it gives in this round
  };
  struct Newcomer {
    Descriptor connection;
    std::uint32_t pid;  ///< as the kernel sees it; 0: not known
    FrameReader reader{kMaxUnproven};
    Deadline deadline = Clock::now() + kPatience;
    std::optional<Hello> hello{};
    Nonce nonce{};
  };

  static Descriptor listener_of(const JobEnvironment& environment) {
    if (environment.addresses.empty()) return listen_on(environment.rendezvous);
    if (environment.listener < 0) {
      return listen_on(environment.addresses.front(), Clock::now() + environment.timeout);
    }
    // The loop below never blocks.
    fcntl(environment.listener, F_SETFL, O_NONBLOCK);
    fcntl(environment.listener, F_SETFD, FD_CLOEXEC);
    // A copy: a job that is formed again by the same process meets at the same socket.
    Descriptor copy(fcntl(environment.listener, F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) {
      throw Error(ErrorCode::kBootstrap,
                  formatted("the socket of UNISONO_JOIN_FD cannot be used: {}", std::strerror(errno)));
    }
    return copy;
  }

  [[noreturn]] void fail(const std::string& text) const {
    throw Error(ErrorCode::kBootstrap, formatted("{} of {} ranks: {}", environment_.title(), environment_.size, text));
  }

  template <class Property>
  std::vector<std::uint32_t> ranks_without(Property&& property) const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 1; rank < environment_.size; ++rank) {
      if (!property(members_[rank])) ranks.push_back(rank);
    }
    return ranks;
  }

  void gather() {
    const auto has_come = [](const std::optional<Member>& member) { return member.has_value(); };
    for (auto missing = ranks_without(has_come); !missing.empty(); missing = ranks_without(has_come)) {
      if (Clock::now() >= deadline_) {
        fail(ranks_have(missing, environment_.hosts_of_ranks) + " not come within " +
             seconds_text(environment_.timeout));
      }
      sleep();
      for (;;) {
        Descriptor connection = accept_from(listener_);
        if (!connection.valid()) break;
        receive(std::move(connection));
      }
      for (auto newcomer = newcomers_.begin(); newcomer != newcomers_.end();) newcomer = hear(newcomer);
      check_members();
    }
    newcomers_.clear();
    listener_.reset();
  }

  /// Sleeps until something arrives, or a deadline may have passed.
  void sleep() {
    std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
    Deadline until = deadline_;
    for (const auto& newcomer : newcomers_) {
      watched.push_back({newcomer.connection.get(), POLLIN, 0});
      until = std::min(until, newcomer.deadline);
    }
    for (const auto& member : members_) {
      if (member) watched.push_back({member->connection.get(), POLLIN, 0});
    }
    sleep_until_ready(watched, until);
  }

  void receive(Descriptor connection) {
    std::uint32_t pid = 0;
    if (environment_.addresses.empty()) {
      const auto peer = credentials_of(connection);
      if (!peer || peer->uid != geteuid()) return;  // another user's process gets no answer
      pid = peer->pid;
    }
    if (newcomers_.size() >= environment_.size + kSpareNewcomers) newcomers_.pop_front();
    newcomers_.push_back({std::move(connection), pid});
  }

  /// Reads on from a newcomer; returns the next one.
  std::list<Newcomer>::iterator hear(std::list<Newcomer>::iterator newcomer) {
    switch (newcomer->reader.read(newcomer->connection)) {
      case FrameReader::Progress::kMore:
        return Clock::now() < newcomer->deadline ? std::next(newcomer) : newcomers_.erase(newcomer);
      case FrameReader::Progress::kForeign:
        send_refusal(newcomer->connection, "rank 0 does not understand: " + newcomer->reader.fault());
        return newcomers_.erase(newcomer);
      case FrameReader::Progress::kClosed:
        return newcomers_.erase(newcomer);
      case FrameReader::Progress::kComplete:
        break;
    }
    if (!newcomer->hello) {
      if (!challenge(*newcomer)) return newcomers_.erase(newcomer);
      newcomer->reader.restart();
      return hear(newcomer);
    }
    admit(*newcomer);
    return newcomers_.erase(newcomer);
  }

  /// Answers a hello. False if it was none.
  bool challenge(Newcomer& newcomer) {
    Hello hello{};
    if (!newcomer.reader.body_as(FrameKind::kHello, hello)) {
      send_refusal(newcomer.connection, "rank 0 does not understand: a broken hello");
      return false;
    }
    fill_random(newcomer.nonce);
    newcomer.hello = hello;
    const Challenge answer{newcomer.nonce, proof_of_root(environment_, hello, newcomer.nonce)};
    return send_frame(newcomer.connection, FrameKind::kChallenge, bytes_of(answer), Clock::now());
  }

  /// Makes a member of a newcomer that has answered the challenge. One that does not know the secret is only refused;
  /// what a member that knows it says wrong ends the job for all.
  void admit(Newcomer& newcomer) {
    const Hello& hello = *newcomer.hello;
    Digest proof{};
    if (!newcomer.reader.body_as(FrameKind::kProof, proof)) {
      return send_refusal(newcomer.connection, "rank 0 does not understand: a broken proof");
    }
    if (!equal(proof, proof_of_member(environment_, hello, newcomer.nonce))) {
      return send_refusal(newcomer.connection, wrong_secret(environment_));
    }
    try {
      check_hello(hello);
    } catch (const Error& error) {
      send_refusal(newcomer.connection, error.what());
      throw;
    }
    Member& member = members_[hello.rank].emplace(Member{std::move(newcomer.connection), hello.pid});
    // It may have given already.
    member.reader = std::move(newcomer.reader);
    member.reader.restart();
    member.reader.allow(kMaxGiven);
  }

  void check_hello(const Hello& hello) const {
    const std::string who = person(hello.rank, hello.pid);
    if (hello.size != environment_.size) {
      fail(formatted("{} says that the job has {} ranks, rank 0 says {}", who, hello.size, environment_.size));
    }
    if (hello.rank == 0) fail(formatted("a second rank 0 came, process {}", hello.pid));
    if (hello.rank >= environment_.size) fail(who + " came; ranks count from 0");
    if (members_[hello.rank]) {
      fail(formatted("rank {} came twice, as process {} and as process {}", hello.rank, members_[hello.rank]->pid,
                     hello.pid));
    }
  }

  void await_given(std::vector<Blob>& all) {
    const auto has_given = [](const std::optional<Member>& member) { return member->given.has_value(); };
    check_members();
    for (auto missing = ranks_without(has_given); !missing.empty(); missing = ranks_without(has_given)) {
      if (Clock::now() >= deadline_) {
        fail(ranks_have(missing, environment_.hosts_of_ranks) + " come, but not gone on within " +
             seconds_text(environment_.timeout));
      }
      std::vector<pollfd> watched;
      for (const auto& member : members_) {
        if (member) watched.push_back({member->connection.get(), POLLIN, 0});
      }
      sleep_until_ready(watched, deadline_);
      check_members();
    }
    for (std::uint32_t rank = 1; rank < environment_.size; ++rank) {
      all[rank] = *std::exchange(members_[rank]->given, std::nullopt);
    }
  }

  /// Takes what members say: what they give, that they give up, or nothing because they ended.
  void check_members() {
    for (std::uint32_t rank = 1; rank < environment_.size; ++rank) {
      if (!members_[rank]) continue;
      Member& member = *members_[rank];
      switch (member.reader.read(member.connection)) {
        case FrameReader::Progress::kMore:
          break;
        case FrameReader::Progress::kComplete:
          if (member.reader.kind() == FrameKind::kGive && !member.given) {
            const auto body = member.reader.body();
            member.given.emplace(body.begin(), body.end());
            member.reader.restart();
            break;
          }
          if (member.reader.kind() == FrameKind::kRefused) {
            fail(person(rank, member.pid) + " could not join: " + member.reader.body_text());
          }
          [[fallthrough]];
        case FrameReader::Progress::kForeign:
          fail(person(rank, member.pid) + " said something unexpected while the job was forming");
        case FrameReader::Progress::kClosed:
          fail(person(rank, member.pid) + " ended while the job was forming");
      }
    }
  }

  const JobEnvironment environment_;
  Deadline deadline_;
  Descriptor listener_;
  std::vector<std::optional<Member>> members_;  ///< by rank; rank 0 is never there
  std::list<Newcomer> newcomers_;               ///< connected, and not yet known to be members
};

/// Every other rank.
class MemberOfHub final : public Exchange {
 public:
  MemberOfHub(const JobEnvironment& environment, Deadline deadline) : environment_(environment), deadline_(deadline) {}

  /// Waits until rank 0 listens: ranks start in any order. Of several addresses some may lead to strangers, such as one
  /// that many hosts have for containers of their own.
  void join() {
    milliseconds pause{1};
    NoConnection failure;
    std::string stranger;
    const bool several = environment_.addresses.size() > 1;
    for (;;) {
      if (environment_.addresses.empty() && connect_here()) {
        if (!prove(deadline_ + kGrace, stranger)) fail(stranger);
        return;
      }
      if (meet(!several, failure, stranger)) return;
      if (!several && !stranger.empty()) fail(stranger);
      // Before rank 0 gives up and the job ends with it: this rank alone knows the reason.
      if (failure.lacking_here && Clock::now() >= deadline_ - environment_.timeout / 4) {
        fail("it cannot connect to rank 0: " + failure.reason);
      }
      if (Clock::now() >= deadline_) {
        if (!stranger.empty()) fail(stranger);
        fail("nobody had the rendezvous open for " + seconds_text(environment_.timeout) +
             ": rank 0 has not come, or the job was complete without this process" +
             (failure.reason.empty() ? "" : " (" + failure.reason + ")"));
      }
      WaitHook::sleep_for(std::chrono::duration_cast<std::chrono::microseconds>(
          std::clamp<Clock::duration>(deadline_ - Clock::now(), Clock::duration::zero(), pause)));
      pause = std::min(pause * 2, milliseconds(20));
    }
  }

  /// At every address once; false, and why, if rank 0 of this job is at none.
  bool try_join(std::string& reason) {
    NoConnection failure;
    std::string stranger;
    if (meet(false, failure, stranger)) return true;
    reason = stranger.empty() ? failure.reason : stranger;
    return false;
  }
  /// Where it is.
  const HostPort& address() const { return environment_.addresses[connected_]; }

  std::vector<Blob> all_gather(std::span<const std::byte> own) override {
    // If rank 0 hung up in between, its reason may still be there to read.
    send_frame(connection_, FrameKind::kGive, own, deadline_);
    FrameReader reader(environment_.size * (kMaxGiven + static_cast<std::uint32_t>(sizeof(std::uint32_t))));
    expect(reader, FrameKind::kAll);
    auto all = unpack_blobs(reader.body(), environment_.size);
    if (!all) fail("what the members have given arrived incomplete from rank 0");
    return *std::move(all);
  }

  void give_up(const std::string& reason) noexcept override { send_refusal(connection_, reason); }
  std::span<const std::byte> secret() const override { return bytes_of(environment_.secret); }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw Error(ErrorCode::kBootstrap, formatted("rank {} could not join {} of {} ranks: {}", environment_.rank,
                                                 environment_.title(), environment_.size, text));
  }

  /// At every address once. `patient`: the process that listens there may take its time to prove that it is rank 0.
  /// False if none is: `failure` says why one did not answer, `stranger` what somebody said who is not.
  bool meet(bool patient, NoConnection& failure, std::string& stranger) {
    for (connected_ = 0; connected_ < environment_.addresses.size(); ++connected_) {
      try {
        connection_ = try_connect(environment_.addresses[connected_], deadline_, failure);
      } catch (const Error& error) {  // there is no such host
        // Or the time is over while the name is looked up once more: what came of it before is the reason.
        if (!failure.reason.empty() && Clock::now() >= deadline_) continue;
        if (patient) throw;
        stranger = error.what();
        continue;
      }
      const Deadline until = patient ? deadline_ + kGrace : std::min<Deadline>(deadline_, Clock::now() + kPatience);
      if (connection_.valid() && prove(until, stranger)) return true;
    }
    return false;
  }

  /// At the abstract socket; false if nobody listens yet.
  bool connect_here() {
    connection_ = try_connect(environment_.rendezvous);
    if (!connection_.valid()) return false;
    // Anybody can open one.
    const auto peer = credentials_of(connection_);
    if (!peer || peer->uid != geteuid()) {
      fail(formatted("the rendezvous belongs to user {}, not to user {}", peer ? std::to_string(peer->uid) : "unknown",
                     geteuid()));
    }
    return true;
  }

  /// False, and why, if the process that listens has not proven by then that it is rank 0.
  bool prove(Deadline until, std::string& failure) {
    Hello hello{environment_.rank, environment_.size, static_cast<std::uint32_t>(getpid()), {}};
    fill_random(hello.nonce);
    send_frame(connection_, FrameKind::kHello, bytes_of(hello), until);
    FrameReader reader(sizeof(Challenge));
    failure = why_not(reader, FrameKind::kChallenge, until);
    Challenge challenge{};
    if (failure.empty() && !reader.body_as(FrameKind::kChallenge, challenge)) {
      failure = "rank 0 said something unexpected";
    }
    if (failure.empty() && !equal(challenge.proof, proof_of_root(environment_, hello, challenge.nonce))) {
      failure = wrong_secret(environment_);
    }
    if (!failure.empty()) return false;
    const Digest proof = proof_of_member(environment_, hello, challenge.nonce);
    send_frame(connection_, FrameKind::kProof, bytes_of(proof), deadline_);
    return true;
  }

  void expect(FrameReader& reader, FrameKind kind) {
    if (const std::string why = why_not(reader, kind, deadline_ + kGrace); !why.empty()) fail(why);
  }

  /// Reads a frame of this kind. Empty if it has come.
  std::string why_not(FrameReader& reader, FrameKind kind, Deadline until) {
    switch (reader.read_until(connection_, until)) {
      case FrameReader::Progress::kMore:
        return "rank 0 did not complete the job within " + seconds_text(environment_.timeout);
      case FrameReader::Progress::kClosed:
        return "rank 0 closed the rendezvous before the job was complete; see its own message";
      case FrameReader::Progress::kForeign:
        return "rank 0 is not understood: " + reader.fault();
      case FrameReader::Progress::kComplete:
        break;
    }
    if (reader.kind() == FrameKind::kRefused) return "rank 0 says: " + reader.body_text();
    return reader.kind() == kind ? std::string() : "rank 0 said something unexpected";
  }

  const JobEnvironment environment_;
  const Deadline deadline_;
  Descriptor connection_;
  std::size_t connected_ = 0;  ///< of the addresses
};

}  // namespace

std::unique_ptr<Exchange> make_hub(const JobEnvironment& environment) {
  if (environment.rank == 0) return std::make_unique<RootOfHub>(environment);
  auto member = std::make_unique<MemberOfHub>(environment, Clock::now() + environment.timeout);
  member->join();
  return member;
}

std::unique_ptr<Exchange> try_member_of_hub(JobEnvironment& environment, Deadline deadline, std::string& failure) {
  auto member = std::make_unique<MemberOfHub>(environment, deadline);
  if (!member->try_join(failure)) return nullptr;
  environment.addresses = {member->address()};
  return member;
}

}  // namespace unisono::join
