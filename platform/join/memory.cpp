#include "platform/join/memory.hpp"

#include <unistd.h>

#include <list>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/wait_hook.hpp"
#include "platform/join/frames.hpp"

namespace unisono::join {
namespace {

/// What a member sends to ask for the memory.
struct Ask {
  std::uint32_t rank;
  Nonce nonce;
};
static_assert(std::has_unique_object_representations_v<Ask>);

std::string name_of(const Household& household) {
  std::string name = "unisono-memory-";
  for (const std::byte byte : household.nonce) name += formatted("{:02x}", static_cast<unsigned>(byte));
  return name;
}

[[noreturn]] void fail(const std::string& text) { throw Error(ErrorCode::kBootstrap, text); }

}  // namespace

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

MemoryGiver::MemoryGiver(const Household& household)
    : household_(household), listener_(listen_on(name_of(household))) {}

void MemoryGiver::give(const shm::Segment& segment, Deadline deadline) {
  struct Newcomer {
    Descriptor connection;
    std::uint32_t pid;
    FrameReader reader{sizeof(Ask)};
  };
  // A newcomer that knows the name has it from a member. Other users of the machine see it in a list, and are refused.
  constexpr std::size_t kMostNewcomers = 4096;
  std::list<Newcomer> newcomers;
  std::vector<bool> given(household_.members.size());
  given[0] = true;
  std::size_t missing = given.size() - 1;
  while (missing != 0) {
    if (Clock::now() >= deadline) {
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (!given[i]) {
          fail(formatted("rank {} (pid {}) of this host has not come for the shared memory in time",
                         household_.members[i].rank, household_.members[i].pid));
        }
      }
    }
    std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
    for (const Newcomer& newcomer : newcomers) watched.push_back({newcomer.connection.get(), POLLIN, 0});
    sleep_until_ready(watched, deadline);
    for (;;) {
      Descriptor connection = accept_from(listener_);
      if (!connection.valid()) break;
      const auto peer = credentials_of(connection);
      if (!peer || peer->uid != geteuid() || newcomers.size() >= kMostNewcomers) continue;
      newcomers.push_back({std::move(connection), peer->pid});
    }
    for (auto newcomer = newcomers.begin(); newcomer != newcomers.end();) {
      const auto progress = newcomer->reader.read(newcomer->connection);
      if (progress == FrameReader::Progress::kMore) {
        ++newcomer;
        continue;
      }
      Ask ask{};
      const bool asks = progress == FrameReader::Progress::kComplete &&
                        newcomer->reader.body_as(FrameKind::kAsk, ask) && ask.nonce == household_.nonce;
      for (std::size_t i = 1; asks && i < given.size(); ++i) {
        const Neighbour& neighbour = household_.members[i];
        if (neighbour.rank != ask.rank || given[i]) continue;
        if (neighbour.pid != newcomer->pid) {
          const std::string text = formatted(
              "rank {} (pid {}) is process {} to rank {}: members of one host must be in one PID namespace to watch "
              "one "
              "another (same container); UNISONO_HOST must differ otherwise",
              neighbour.rank, neighbour.pid, newcomer->pid, household_.members[0].rank);
          send_refusal(newcomer->connection, text);
          fail(text);
        }
        if (!send_frame(newcomer->connection, FrameKind::kMemory, {}, deadline, segment.descriptor())) {
          fail(formatted("rank {} (pid {}) ended while the job was forming", neighbour.rank, neighbour.pid));
        }
        given[i] = true;
        --missing;
      }
      newcomer = newcomers.erase(newcomer);
    }
  }
  listener_.reset();
}

std::shared_ptr<shm::Segment> take_memory(const Household& household, Deadline deadline) {
  const Neighbour& giver = household.members.front();
  const std::string who = formatted("rank {} (pid {})", giver.rank, giver.pid);
  Descriptor connection;
  for (;;) {
    connection = try_connect(name_of(household));
    if (connection.valid()) break;
    if (Clock::now() >= deadline) {
      fail(
          formatted("{} does not hand out this host's shared memory; ranks of one host must be in one network "
                    "namespace, and UNISONO_HOST must differ between hosts",
                    who));
    }
    WaitHook::sleep_for(std::chrono::milliseconds(1));
  }
  const auto peer = credentials_of(connection);
  if (!peer || peer->uid != geteuid()) fail(who + " belongs to another user, so no memory is shared with it");
  const Ask ask{household.members[household.self].rank, household.nonce};
  send_frame(connection, FrameKind::kAsk, std::as_bytes(std::span(&ask, 1)), deadline);
  FrameReader reader(0, true);
  switch (reader.read_until(connection, deadline)) {
    case FrameReader::Progress::kMore:
      fail(who + " has not handed out this host's shared memory in time");
    case FrameReader::Progress::kClosed:
      fail(who + " ended while the job was forming");
    case FrameReader::Progress::kForeign:
      fail(who + " is not understood: " + reader.fault());
    case FrameReader::Progress::kComplete:
      break;
  }
  if (reader.kind() == FrameKind::kRefused) fail(who + " says: " + reader.body_text());
  if (reader.kind() != FrameKind::kMemory) fail(who + " said something unexpected");
  const Descriptor memory = reader.take_attached();
  if (!memory.valid()) fail("the shared segment did not come with " + who + "'s answer (too many open files?)");
  auto segment = shm::Segment::attach(memory.get());
  if (segment->size() != household.members.size()) fail("the shared segment is of another size");
  return segment;
}

}  // namespace unisono::join
