// What comes over the socket on which a job forms: to a reader of frames, to rank 0, and to a member, with the memory
// that it is to share.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "network/shm/segment.hpp"
#include "platform/native/job.hpp"
#include "platform/native/rendezvous.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using namespace unisono::rendezvous;
using fuzz::claim;

namespace {

const std::string kSecret = "0123456789abcdef";

Deadline soon() { return Clock::now() + std::chrono::seconds(1); }

void send_bytes(const Descriptor& to, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

/// Frames in any pieces.
void read_frames(fuzz::Input& input) {
  int ends[2];
  claim(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0, "a pair of sockets");
  const Descriptor here(ends[0]);
  Descriptor there(ends[1]);
  FrameReader reader(kMaxHello);
  while (!input.empty()) {
    send_bytes(there, input.take_bytes(1 + input.take<std::uint8_t>()));
    const auto progress = reader.read(here);
    if (progress == FrameReader::Progress::kForeign) {
      claim(!reader.fault().empty(), "what is foreign is named");
      return;
    }
    if (progress == FrameReader::Progress::kComplete) {
      claim(reader.body().size() <= kMaxHello, "a frame is no longer than allowed");
      reader.restart();
    }
  }
}

JobEnvironment job(std::uint32_t rank) {
  JobEnvironment environment;
  environment.rank = rank;
  environment.size = 2;
  environment.rendezvous = "unisono-fuzz-" + std::to_string(getpid());
  environment.secret = kSecret;
  environment.timeout = std::chrono::milliseconds(20);
  return environment;
}

void join(std::uint32_t rank) {
  const std::vector<std::byte> capabilities(8);
  try {
    join_job(job(rank), capabilities);
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kBootstrap || error.code() == ErrorCode::kOutOfMemory, "a job that does not form");
  }
}

/// Somebody talks to rank 0: mostly a hello with the right secret, which the input has altered.
void talk_to_host(fuzz::Input& input) {
  std::thread host(join, 0);
  Descriptor connection;
  for (const Deadline end = soon(); !connection.valid() && Clock::now() < end;) {
    connection = try_connect(job(1).rendezvous);
    if (!connection.valid()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  const auto kind = input.take<std::uint8_t>();
  if (kind % 8 != 0) {
    Hello hello{1, 2, static_cast<std::uint32_t>(getpid()), static_cast<std::uint32_t>(kSecret.size()), 8};
    const auto change = input.take<Hello>();
    if ((kind & 8U) != 0) hello.rank ^= change.rank;
    if ((kind & 16U) != 0) hello.size ^= change.size;
    if ((kind & 32U) != 0) hello.secret_bytes ^= change.secret_bytes;
    if ((kind & 64U) != 0) hello.capabilities_bytes ^= change.capabilities_bytes;
    std::vector<std::byte> body(sizeof hello);
    std::memcpy(body.data(), &hello, sizeof hello);
    for (const char c : kSecret) body.push_back(static_cast<std::byte>(c));
    for (const std::uint8_t b : input.take_bytes(kind % 8 + 1)) body.push_back(std::byte{b});
    send_frame(connection, FrameKind::kHello, body, soon());
  }
  send_bytes(connection, input.rest());
  connection.reset();
  host.join();
}

/// Rank 0 talks to a member, and hands it memory.
void talk_to_visitor(fuzz::Input& input) {
  Descriptor listener = listen_on(job(0).rendezvous);
  std::thread visitor(join, 1);
  Descriptor connection;
  for (const Deadline end = soon(); !connection.valid() && Clock::now() < end;) {
    sleep_until_readable(listener, end);
    connection = accept_from(listener);
  }
  const auto kind = input.take<std::uint8_t>();
  Descriptor memory;
  if (kind % 8 != 0) {
    memory = Descriptor(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    // A sound segment's begin, altered; its length as the begin says, or otherwise.
    shm::SegmentHeader header{};
    header.magic = shm::kSegmentMagic;
    header.version = shm::kSegmentVersion;
    header.geometry.endpoints = 2;
    header.geometry.ring_bytes[0] = 8192;
    header.geometry.ring_bytes[1] = 4096;
    header.geometry.max_payload[0] = 1024;
    header.geometry.max_payload[1] = 256;
    header.geometry.arena_bytes = shm::kArenaAlignment;
    const auto change = input.take<shm::SegmentHeader>();
    const auto xored = [](auto& value, auto with) { value = static_cast<std::decay_t<decltype(value)>>(value ^ with); };
    xored(header.geometry.endpoints, change.geometry.endpoints);
    for (int lane = 0; lane < 2; ++lane) {
      xored(header.geometry.ring_bytes[lane], change.geometry.ring_bytes[lane]);
      xored(header.geometry.max_payload[lane], change.geometry.max_payload[lane]);
    }
    xored(header.geometry.arena_bytes, change.geometry.arena_bytes);
    xored(header.geometry.one_process, change.geometry.one_process);
    header.total_bytes = change.total_bytes;
    const std::uint64_t length = (kind & 8U) != 0 ? header.total_bytes % (std::uint64_t{1} << 30U)
                                                  : input.take<std::uint32_t>() % (std::uint64_t{1} << 24U);
    if (ftruncate(memory.get(), static_cast<off_t>(length)) == 0) {
      [[maybe_unused]] const ssize_t written = pwrite(memory.get(), &header, sizeof header, 0);
    }
    if ((kind & 16U) == 0) fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  }
  std::vector<std::byte> all_capabilities;
  for (const std::uint8_t b : input.take_bytes(input.take<std::uint8_t>())) all_capabilities.push_back(std::byte{b});
  if ((kind & 32U) != 0) all_capabilities.assign(8, std::byte{0});  // two of no length
  send_frame(connection, (kind & 64U) != 0 ? FrameKind::kRefused : FrameKind::kWelcome, all_capabilities, soon(),
             memory.get());
  if ((kind & 128U) != 0) send_frame(connection, FrameKind::kGo, {}, soon());
  send_bytes(connection, input.rest());
  connection.reset();
  visitor.join();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  switch (input.take<std::uint8_t>() % 8) {
    case 0:
      talk_to_host(input);
      break;
    case 1:
    case 2:
      talk_to_visitor(input);
      break;
    default:
      read_frames(input);
  }
  return 0;
}
