// Joining a job of processes: rank 0 gathers the members, then hands everybody the shared segment.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/shm/segment.hpp"
#include "network/shm/shm_poe.hpp"
#include "network/shm/wait_hook.hpp"
#include "platform/native/job.hpp"
#include "platform/native/rendezvous.hpp"

namespace unisono {
namespace {

using namespace rendezvous;
using std::chrono::milliseconds;

/// How long a connection may take to introduce itself before it is dropped.
constexpr std::chrono::seconds kHelloPatience{10};
/// Members outlast rank 0's deadline by this, so that they hear from it who has not come.
constexpr std::chrono::seconds kGrace{2};
/// Connections that have not introduced themselves, beyond one for every rank.
constexpr std::size_t kSpareNewcomers = 64;

std::string person(std::uint32_t rank, std::uint32_t pid) { return formatted("rank {} (pid {})", rank, pid); }

/// "rank 3 has", "ranks 1, 2 and 5 have": shortened if there are many.
std::string ranks_have(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t kMost = 16;
  if (ranks.size() == 1) return formatted("rank {} has", ranks[0]);
  std::string text = "ranks ";
  const std::size_t shown = std::min(ranks.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i != 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (shown < ranks.size()) text += formatted(" and {} more", ranks.size() - shown);
  return text + " have";
}

/// Compares in a time that depends only on the lengths.
bool same_secret(std::span<const std::byte> given, const std::string& expected) {
  const auto wanted = std::as_bytes(std::span(expected));
  if (given.size() != wanted.size()) return false;
  std::byte difference{0};
  for (std::size_t i = 0; i < wanted.size(); ++i) difference |= given[i] ^ wanted[i];
  return difference == std::byte{0};
}

void check_request(const JobEnvironment& environment, std::span<const std::byte> capabilities) {
  const auto refuse = [](const std::string& text) { throw Error(ErrorCode::kBootstrap, text); };
  const auto rank = std::to_string(environment.rank);
  const auto size = std::to_string(environment.size);
  if (environment.size == 0 || environment.size > shm::kMaxEndpoints) {
    refuse(formatted("a job of {} ranks; allowed are 1 to {}", size, shm::kMaxEndpoints));
  }
  if (environment.rank >= environment.size) refuse("rank " + rank + " of a job of " + size + "; ranks count from 0");
  if (capabilities.size() > kMaxCapabilities) {
    refuse(formatted("an offer of {} bytes; allowed are {}", capabilities.size(), kMaxCapabilities));
  }
  if (environment.size == 1) return;
  if (environment.rendezvous.empty() || environment.rendezvous.size() > kMaxName) {
    refuse(
        formatted("a rendezvous name of {} characters; allowed are 1 to {}", environment.rendezvous.size(), kMaxName));
  }
  if (environment.secret.empty() || environment.secret.size() > kMaxSecret) {
    refuse(formatted("a secret of {} characters; allowed are 1 to {}", environment.secret.size(), kMaxSecret));
  }
}

/// The capabilities of all in one frame: a 32-bit length before each.
std::vector<std::byte> pack(const std::vector<std::vector<std::byte>>& all_capabilities) {
  std::vector<std::byte> packed;
  for (const auto& capabilities : all_capabilities) {
    const auto bytes = static_cast<std::uint32_t>(capabilities.size());
    const auto* length = reinterpret_cast<const std::byte*>(&bytes);
    packed.insert(packed.end(), length, length + sizeof bytes);
    packed.insert(packed.end(), capabilities.begin(), capabilities.end());
  }
  return packed;
}

std::vector<std::vector<std::byte>> unpack(std::span<const std::byte> packed, std::uint32_t count) {
  const Error broken(ErrorCode::kBootstrap, "the members' offers arrived incomplete from rank 0");
  std::vector<std::vector<std::byte>> all_capabilities(count);
  for (auto& capabilities : all_capabilities) {
    std::uint32_t bytes = 0;
    if (packed.size() < sizeof bytes) throw broken;
    std::memcpy(&bytes, packed.data(), sizeof bytes);
    packed = packed.subspan(sizeof bytes);
    if (packed.size() < bytes) throw broken;
    capabilities.assign(packed.begin(), packed.begin() + bytes);
    packed = packed.subspan(bytes);
  }
  if (!packed.empty()) throw broken;
  return all_capabilities;
}

/// The job's segment, with as much address space for arenas as this process may have.
std::shared_ptr<shm::Segment> make_segment(std::uint32_t endpoints, const shm::CopyFrom& copy_from) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20U;
  for (std::uint64_t arena = shm::arena_bytes_for(endpoints);; arena = arena / 4 / kLeast * kLeast) {
    try {
      return shm::Segment::create({.endpoints = endpoints, .arena_bytes = arena, .copy_from = copy_from});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory || arena / 4 < kLeast) throw;
    }
  }
}

/// From how many bytes on the job has the kernel copy.
shm::CopyFrom copy_from_of(const JobEnvironment& environment, const FindCopyFrom& find) {
  if (environment.kernel_copy == 0) return shm::CopyFrom::never();
  if (environment.kernel_copy) return {*environment.kernel_copy, *environment.kernel_copy, *environment.kernel_copy, 0};
  return find ? find() : shm::CopyFrom{};
}

/// Hands the job's memory to who has asked to look at it (UNISONO_OBSERVER), if he is there and of this user. What he
/// does with it, or that he has gone, is nothing to the job.
void show(const JobEnvironment& environment, const shm::Segment& segment) {
  if (environment.observer.empty()) return;
  try {
    const Descriptor connection = try_connect(environment.observer);
    if (!connection.valid()) return;
    const auto observer = credentials_of(connection);
    if (!observer || observer->uid != geteuid()) return;
    send_frame(connection, FrameKind::kWelcome, {}, Clock::now() + kGrace, segment.descriptor());
  } catch (const Error&) {  // the system refuses a socket
  }
}

/// Rank 0. One thread and one poll loop, so no connection can hold up another.
class RootOfJob {
 public:
  RootOfJob(const JobEnvironment& environment, std::span<const std::byte> capabilities, const FindCopyFrom& copy_from)
      : environment_(environment),
        find_copy_from_(copy_from),
        deadline_(Clock::now() + environment.timeout),
        listener_(listen_on(environment.rendezvous)),
        members_(environment.size) {
    all_capabilities_.resize(environment.size);
    all_capabilities_[0].assign(capabilities.begin(), capabilities.end());
  }

  JoinedJob run() {
    try {
      gather();
      auto segment = make_segment(environment_.size, copy_from_of(environment_, find_copy_from_));
      auto poe = std::make_unique<shm::ShmPoe>(segment, 0, environment_.kernel_copy != 0);
      show(environment_, *segment);
      invite(*segment);
      await_ready();
      poe->watch_peers();
      for (const auto& member : members_) {
        // A member that has gone by now is found by its peers: the job is complete.
        if (member) send_frame(member->connection, FrameKind::kGo, {}, Clock::now() + kGrace);
      }
      return {std::move(poe), std::move(all_capabilities_)};
    } catch (const Error& error) {
      for (const auto& member : members_) {
        if (member) send_refusal(member->connection, error.what());
      }
      throw;
    }
  }

 private:
  struct Member {
    Descriptor connection;
    std::uint32_t pid;
    FrameReader reader{kMaxText};
    bool ready = false;
  };
  struct Newcomer {
    Descriptor connection;
    std::uint32_t pid;
    FrameReader reader{kMaxHello};
    Deadline deadline = Clock::now() + kHelloPatience;
  };

  [[noreturn]] void fail(const std::string& text) const {
    throw Error(ErrorCode::kBootstrap,
                formatted("job \"{}\" of {} ranks: {}", environment_.rendezvous, environment_.size, text));
  }

  std::vector<std::uint32_t> ranks_without(bool (*property)(const std::optional<Member>&)) const {
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
        fail(ranks_have(missing) + " not come within " + seconds_text(environment_.timeout));
      }
      sleep();
      for (;;) {
        Descriptor connection = accept_from(listener_);
        if (!connection.valid()) break;
        admit(std::move(connection));
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

  void admit(Descriptor connection) {
    const auto peer = credentials_of(connection);
    if (!peer || peer->uid != geteuid()) return;  // another user's process gets no answer
    if (newcomers_.size() >= environment_.size + kSpareNewcomers) newcomers_.pop_front();
    newcomers_.push_back({std::move(connection), peer->pid});
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
    introduce(*newcomer);
    return newcomers_.erase(newcomer);
  }

  /// Makes a member of a newcomer that has said hello. Who does not know the secret is only refused; what
  /// a member that knows it says wrong ends the job for all.
  void introduce(Newcomer& newcomer) {
    const auto body = newcomer.reader.body();
    Hello hello{};
    if (newcomer.reader.kind() == FrameKind::kHello && body.size() >= sizeof hello) {
      std::memcpy(&hello, body.data(), sizeof hello);
    }
    const std::uint64_t claimed = sizeof hello + std::uint64_t{hello.secret_bytes} + hello.capabilities_bytes;
    if (hello.secret_bytes == 0 || claimed != body.size() || hello.capabilities_bytes > kMaxCapabilities) {
      return send_refusal(newcomer.connection, "rank 0 does not understand: a broken hello");
    }
    const auto rest = body.subspan(sizeof hello);
    if (!same_secret(rest.first(hello.secret_bytes), environment_.secret)) {
      return send_refusal(newcomer.connection,
                          "the secret (UNISONO_SECRET) is not that of job \"" + environment_.rendezvous + "\"");
    }
    try {
      check_hello(hello, newcomer.pid);
    } catch (const Error& error) {
      send_refusal(newcomer.connection, error.what());
      throw;
    }
    const auto capabilities = rest.subspan(hello.secret_bytes);
    all_capabilities_[hello.rank].assign(capabilities.begin(), capabilities.end());
    members_[hello.rank].emplace(Member{std::move(newcomer.connection), hello.pid});
  }

  void check_hello(const Hello& hello, std::uint32_t visible_pid) const {
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
    if (hello.pid != visible_pid) {
      fail(formatted(
          "{} is process {} to rank 0: members must be in one PID namespace to watch one another (same container)", who,
          visible_pid));
    }
  }

  /// Takes what members say: ready, a failure, or nothing because they ended.
  void check_members() {
    for (std::uint32_t rank = 1; rank < environment_.size; ++rank) {
      if (!members_[rank] || members_[rank]->ready) continue;
      Member& member = *members_[rank];
      switch (member.reader.read(member.connection)) {
        case FrameReader::Progress::kMore:
          break;
        case FrameReader::Progress::kComplete:
          if (member.reader.kind() == FrameKind::kReady && invited_) {
            member.ready = true;
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

  void invite(const shm::Segment& segment) {
    invited_ = true;
    const auto packed = pack(all_capabilities_);
    for (std::uint32_t rank = 1; rank < environment_.size; ++rank) {
      const Member& member = *members_[rank];
      if (!send_frame(member.connection, FrameKind::kWelcome, packed, deadline_, segment.descriptor())) {
        fail(person(rank, member.pid) + " ended, or read nothing for too long, while the job was forming");
      }
    }
  }

  void await_ready() {
    const auto is_ready = [](const std::optional<Member>& member) { return member->ready; };
    for (auto missing = ranks_without(is_ready); !missing.empty(); missing = ranks_without(is_ready)) {
      if (Clock::now() >= deadline_) {
        fail(ranks_have(missing) + " come, but not mapped the shared segment within " +
             seconds_text(environment_.timeout));
      }
      std::vector<pollfd> watched;
      watched.reserve(missing.size());
      for (const std::uint32_t rank : missing) watched.push_back({members_[rank]->connection.get(), POLLIN, 0});
      sleep_until_ready(watched, deadline_);
      check_members();
    }
  }

  const JobEnvironment& environment_;
  const FindCopyFrom& find_copy_from_;
  Deadline deadline_;
  Descriptor listener_;
  std::vector<std::optional<Member>> members_;  ///< by rank; rank 0 is never there
  std::list<Newcomer> newcomers_;               ///< connected, not yet introduced
  std::vector<std::vector<std::byte>> all_capabilities_;
  bool invited_ = false;
};

/// Every other rank.
class MemberOfJob {
 public:
  MemberOfJob(const JobEnvironment& environment, std::span<const std::byte> capabilities)
      : environment_(environment), capabilities_(capabilities), deadline_(Clock::now() + environment.timeout) {}

  JoinedJob run() {
    connect();
    say_hello();
    FrameReader reader(environment_.size * static_cast<std::uint32_t>(sizeof(std::uint32_t) + kMaxCapabilities), true);
    expect(reader, FrameKind::kWelcome);
    std::unique_ptr<shm::ShmPoe> poe;
    std::vector<std::vector<std::byte>> all_capabilities;
    try {
      const Descriptor memory = reader.take_attached();
      if (!memory.valid()) fail("rank 0's welcome came without the shared segment (too many open files?)");
      auto segment = shm::Segment::attach(memory.get());
      if (segment->size() != environment_.size) fail("the shared segment is of another size");
      all_capabilities = unpack(reader.body(), environment_.size);
      poe = std::make_unique<shm::ShmPoe>(std::move(segment), environment_.rank, environment_.kernel_copy != 0);
    } catch (const Error& error) {
      send_refusal(connection_, error.what());
      throw;
    }
    if (!send_frame(connection_, FrameKind::kReady, {}, deadline_)) fail("rank 0 ended while the job was forming");
    reader.restart();
    expect(reader, FrameKind::kGo);
    poe->watch_peers();
    return {std::move(poe), std::move(all_capabilities)};
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw Error(ErrorCode::kBootstrap, formatted("rank {} could not join job \"{}\" of {} ranks: {}", environment_.rank,
                                                 environment_.rendezvous, environment_.size, text));
  }

  /// Ranks start in any order, so rank 0 may not listen yet.
  void connect() {
    milliseconds pause{1};
    for (;;) {
      connection_ = try_connect(environment_.rendezvous);
      if (connection_.valid()) break;
      if (Clock::now() >= deadline_) {
        fail("nobody had the rendezvous open for " + seconds_text(environment_.timeout) +
             ": rank 0 has not come, or the job was complete without this process");
      }
      shm::WaitHook::sleep_for(std::chrono::duration_cast<std::chrono::microseconds>(
          std::min<Clock::duration>(pause, deadline_ - Clock::now())));
      pause = std::min(pause * 2, milliseconds(20));
    }
    // Anybody can open an abstract socket: the secret is for our own user's processes only.
    const auto peer = credentials_of(connection_);
    if (!peer || peer->uid != geteuid()) {
      fail(formatted("the rendezvous belongs to user {}, not to user {}", peer ? std::to_string(peer->uid) : "unknown",
                     geteuid()));
    }
  }

  void say_hello() {
    const Hello hello{environment_.rank, environment_.size, static_cast<std::uint32_t>(getpid()),
                      static_cast<std::uint32_t>(environment_.secret.size()),
                      static_cast<std::uint32_t>(capabilities_.size())};
    const auto begin = std::as_bytes(std::span(&hello, 1));
    const auto secret = std::as_bytes(std::span(environment_.secret));
    std::vector<std::byte> body(begin.begin(), begin.end());
    body.insert(body.end(), secret.begin(), secret.end());
    body.insert(body.end(), capabilities_.begin(), capabilities_.end());
    // If rank 0 hung up in between, its reason may still be there to read.
    send_frame(connection_, FrameKind::kHello, body, deadline_);
  }

  void expect(FrameReader& reader, FrameKind kind) {
    switch (reader.read_until(connection_, deadline_ + kGrace)) {
      case FrameReader::Progress::kMore:
        fail("rank 0 did not complete the job within " + seconds_text(environment_.timeout));
      case FrameReader::Progress::kClosed:
        fail("rank 0 closed the rendezvous before the job was complete; see its own message");
      case FrameReader::Progress::kForeign:
        fail("rank 0 is not understood: " + reader.fault());
      case FrameReader::Progress::kComplete:
        break;
    }
    if (reader.kind() == FrameKind::kRefused) fail("rank 0 says: " + reader.body_text());
    if (reader.kind() != kind) fail("rank 0 said something unexpected");
  }

  const JobEnvironment& environment_;
  std::span<const std::byte> capabilities_;
  Deadline deadline_;
  Descriptor connection_;
};

}  // namespace

JoinedJob join_job(const JobEnvironment& environment, std::span<const std::byte> capabilities,
                   const FindCopyFrom& copy_from) {
  check_request(environment, capabilities);
  if (environment.size == 1) {
    auto segment = make_segment(1, shm::CopyFrom::never());
    show(environment, *segment);
    return {std::make_unique<shm::ShmPoe>(std::move(segment), 0), {{capabilities.begin(), capabilities.end()}}};
  }
  return environment.rank == 0 ? RootOfJob(environment, capabilities, copy_from).run()
                               : MemberOfJob(environment, capabilities).run();
}

}  // namespace unisono
