// What comes over the socket on which a job forms: to a reader of frames, to rank 0, and to a member, with the memory
// that it is to share.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "network/shm/segment.hpp"
#include "platform/join/frames.hpp"
#include "platform/join/host.hpp"
#include "platform/join/job.hpp"
#include "platform/join/pack.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using namespace unisono::join;
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
  FrameReader reader(kMaxUnproven);
  while (!input.empty()) {
    send_bytes(there, input.take_bytes(1 + input.take<std::uint8_t>()));
    const auto progress = reader.read(here);
    if (progress == FrameReader::Progress::kForeign) {
      claim(!reader.fault().empty(), "what is foreign is named");
      return;
    }
    if (progress == FrameReader::Progress::kComplete) {
      claim(reader.body().size() <= std::max(kMaxUnproven, kMaxText), "a frame is no longer than allowed");
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

void join_as(std::uint32_t rank) {
  const std::vector<std::byte> capabilities(8);
  try {
    join_job(job(rank), capabilities);
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kBootstrap || error.code() == ErrorCode::kOutOfMemory, "a job that does not form");
  }
}

template <class Body>
std::span<const std::byte> bytes_of(const Body& body) {
  return std::as_bytes(std::span(&body, 1));
}
Digest proof_of(const char* purpose, const Hello& hello, const Nonce& nonce) {
  return digest_of(std::as_bytes(std::span(kSecret)), purpose, {bytes_of(hello), bytes_of(nonce)});
}
Blob blob_of(std::span<const std::uint8_t> bytes) {
  Blob blob;
  for (const std::uint8_t b : bytes) blob.push_back(std::byte{b});
  return blob;
}

/// A card such as members give in the first round, of this host or of another.
Blob card(const Nonce& nonce, bool here, std::span<const std::uint8_t> capabilities) {
  const join::Host host = join::this_host("");
  const std::uint64_t cores = 3;
  return Packer()
      .add(here ? host.identity : "elsewhere")
      .add(host.machine)
      .add(host.name)
      .add_value(static_cast<std::uint32_t>(getpid()))
      .add_value(nonce)
      .add(blob_of(capabilities))
      .add_value(std::uint32_t{2})
      .add(bytes_of(cores))
      .take();
}

/// Somebody talks to rank 0: mostly one that knows the secret, whose hello or card the input has altered.
void talk_to_root(fuzz::Input& input) {
  std::thread root(join_as, 0);
  Descriptor connection;
  for (const Deadline end = soon(); !connection.valid() && Clock::now() < end;) {
    connection = try_connect(job(1).rendezvous);
    if (!connection.valid()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  const auto kind = input.take<std::uint8_t>();
  if (kind % 8 != 0) {
    Hello hello{1, 2, static_cast<std::uint32_t>(getpid()), {}};
    const auto change = input.take<std::uint64_t>();
    if ((kind & 8U) != 0) hello.rank ^= static_cast<std::uint32_t>(change);
    if ((kind & 16U) != 0) hello.size ^= static_cast<std::uint32_t>(change >> 32U);
    send_frame(connection, FrameKind::kHello, bytes_of(hello), soon());
    FrameReader reader(sizeof(Challenge));
    Challenge challenge{};
    if (reader.read_until(connection, soon()) == FrameReader::Progress::kComplete &&
        reader.body_as(FrameKind::kChallenge, challenge)) {
      Digest proof = proof_of("unisono member", hello, challenge.nonce);
      if ((kind & 32U) != 0) proof[0] ^= std::byte{1};
      send_frame(connection, FrameKind::kProof, proof, soon());
      Blob given = card({}, (kind & 64U) != 0, input.take_bytes(8));
      for (const std::uint8_t b : input.take_bytes(kind % 8)) given[b % given.size()] ^= std::byte{b};
      send_frame(connection, FrameKind::kGive, given, soon());
    }
  }
  send_bytes(connection, input.rest());
  connection.reset();
  root.join();
}

/// A segment's begin, altered; its length as the begin says, or otherwise.
Descriptor memory_of(fuzz::Input& input, std::uint8_t kind) {
  if (kind % 8 == 0) return Descriptor();
  Descriptor memory(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
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
  return memory;
}

/// Rank 0 as a member meets it, with cards that the input has altered; then it hands out memory.
void talk_to_member(fuzz::Input& input) {
  Descriptor listener = listen_on(job(0).rendezvous);
  std::thread member(join_as, 1);
  Descriptor connection;
  for (const Deadline end = soon(); !connection.valid() && Clock::now() < end;) {
    sleep_until_readable(listener, end);
    connection = accept_from(listener);
  }
  const auto kind = input.take<std::uint8_t>();
  const auto heard = [&](FrameReader& reader) {
    return reader.read_until(connection, soon()) == FrameReader::Progress::kComplete;
  };
  FrameReader greeting(sizeof(Hello));
  Hello hello{};
  if (heard(greeting) && greeting.body_as(FrameKind::kHello, hello)) {
    const Challenge challenge{{}, proof_of("unisono rank 0", hello, {})};
    send_frame(connection, FrameKind::kChallenge, bytes_of(challenge), soon());
    FrameReader proof(sizeof(Digest));
    FrameReader given(64 * 1024);
    Nonce nonce{};
    for (std::byte& byte : nonce) byte = static_cast<std::byte>(getpid());
    std::string name = "unisono-memory-";
    for (const std::byte byte : nonce) name += formatted("{:02x}", static_cast<unsigned>(byte));
    const Descriptor door = listen_on(name);
    if (heard(proof) && heard(given)) {
      const auto body = given.body();
      Blob cards = pack_blobs({card(nonce, (kind & 32U) == 0, input.take_bytes(4)), {body.begin(), body.end()}});
      for (const std::uint8_t b : input.take_bytes(input.take<std::uint8_t>() % 4)) {
        cards[b * 37U % cards.size()] ^= std::byte{b};
      }
      send_frame(connection, (kind & 64U) != 0 ? FrameKind::kRefused : FrameKind::kAll, cards, soon());
      given.restart();
      if (heard(given)) {
        const Blob said = Packer().add_value(shm::CopyFrom::never()).add("").take();
        send_frame(connection, FrameKind::kAll, pack_blobs({said, said}), soon());
        const Descriptor memory = memory_of(input, kind);
        sleep_until_readable(door, Clock::now() + std::chrono::milliseconds(50));
        const Descriptor guest = accept_from(door);
        if (guest.valid()) send_frame(guest, FrameKind::kMemory, {}, soon(), memory.get());
        if ((kind & 128U) != 0) send_frame(connection, FrameKind::kAll, pack_blobs({{}, {}}), soon());
        send_bytes(guest.valid() ? guest : connection, input.take_bytes(16));
      }
    }
  }
  send_bytes(connection, input.rest());
  connection.reset();
  member.join();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  switch (input.take<std::uint8_t>() % 8) {
    case 0:
      talk_to_root(input);
      break;
    case 1:
    case 2:
      talk_to_member(input);
      break;
    default:
      read_frames(input);
  }
  return 0;
}
