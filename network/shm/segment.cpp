#include "network/shm/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.hpp"
#include "network/lasting_memory.hpp"

namespace unisono::shm {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

constexpr std::uint64_t page_aligned(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

/// Flight records of one endpoint.
constexpr std::uint64_t kRecordBytes = page_aligned(kRecordedCommunicators * sizeof(CommunicatorRecord));

/// Where the parts of a segment begin, in bytes from its start.
struct Layout {
  std::uint64_t endpoints, directories, send_cursors, receive_cursors, rings, records, all_counters, orders, arenas,
      total;
  std::uint64_t pair_bytes;  ///< rings of one ordered pair

  explicit Layout(const Geometry& geometry) {
    const std::uint64_t size = geometry.endpoints;
    endpoints = page_aligned(sizeof(SegmentHeader));
    directories = endpoints + page_aligned(size * sizeof(EndpointBlock));
    send_cursors = directories + size * page_aligned(kDirectoryEntries * sizeof(DirectoryEntry));
    receive_cursors = send_cursors + page_aligned(size * size * sizeof(SendCursors));
    rings = receive_cursors + page_aligned(size * size * sizeof(ReceiveCursors));
    pair_bytes = std::uint64_t{geometry.ring_bytes[0]} + geometry.ring_bytes[1];
    records = page_aligned(rings + size * size * pair_bytes);
    all_counters = records + size * kRecordBytes;
    orders = all_counters + page_aligned(size * sizeof(NativeCounters));
    arenas = (orders + page_aligned(sizeof(JobOrders)) + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    total = arenas + size * geometry.arena_bytes;
  }
};

bool is_power_of_two(std::uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

/// Empty if the geometry can be had; else what is wrong with it.
std::string fault_of(const Geometry& geometry) {
  if (geometry.endpoints == 0 || geometry.endpoints > kMaxEndpoints) {
    return "a job on one machine has 1 to " + std::to_string(kMaxEndpoints) + " endpoints, not " +
           std::to_string(geometry.endpoints);
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t ring = geometry.ring_bytes[lane];
    const std::uint64_t payload = geometry.max_payload[lane];
    if (!is_power_of_two(geometry.ring_bytes[lane]) || payload % kLineBytes != 0 || 2 * (payload + kLineBytes) > ring) {
      return "a ring of " + std::to_string(ring) + " bytes for payloads of " + std::to_string(payload) +
             " bytes: the ring must be a power of two and hold two payloads with headers, payloads be multiples of 64";
    }
  }
  constexpr std::uint64_t kMostArena = std::uint64_t{1} << 44U;
  if (geometry.arena_bytes == 0 || geometry.arena_bytes % kArenaAlignment != 0 || geometry.arena_bytes > kMostArena) {
    return "an arena of " + std::to_string(geometry.arena_bytes) + " bytes; allowed are multiples of " +
           std::to_string(kArenaAlignment) + " up to " + std::to_string(kMostArena);
  }
  return {};
}

std::string system_text() { return std::strerror(errno); }

std::byte* map_shared(int fd, std::uint64_t bytes, bool writable) {
  // The file's huge pages can only be mapped as such where address and offset agree modulo their size, so the
  // segment is placed by hand in a larger reservation.
  const auto failed = [&] {
    return Error(ErrorCode::kOutOfMemory, "mapping the job's shared segment of " + std::to_string(bytes) +
                                              " bytes of address space failed: " + system_text());
  };
  const std::uint64_t reserved = bytes + kArenaAlignment;
  void* place = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) throw failed();
  auto* begin = static_cast<std::byte*>(place);
  const std::uint64_t skip =
      (kArenaAlignment - reinterpret_cast<std::uintptr_t>(begin) % kArenaAlignment) % kArenaAlignment;
  void* base = mmap(begin + skip, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                    MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  if (base == MAP_FAILED) {
    const Error error = failed();
    munmap(place, reserved);
    throw error;
  }
  if (skip != 0) munmap(begin, skip);
  const std::uint64_t mapped = page_aligned(bytes);
  if (reserved - skip > mapped) munmap(begin + skip + mapped, reserved - skip - mapped);
  return static_cast<std::byte*>(base);
}

}  // namespace

Segment::Segment(const Geometry& geometry, std::byte* base, int descriptor)
    : geometry_(geometry),
      base_(base),
      descriptor_(descriptor),
      arenas_(Layout(geometry).arenas),
      total_(Layout(geometry).total) {
  // A dump of a crashed process shall not hold a terabyte of holes.
  madvise(base_ + arenas_, total_ - arenas_, MADV_DONTDUMP);
}

Segment::~Segment() {
  munmap(base_, Layout(geometry_).total);
  if (descriptor_ >= 0) close(descriptor_);
}

std::shared_ptr<Segment> Segment::create(const Geometry& geometry) {
  if (const std::string fault = fault_of(geometry); !fault.empty()) throw Error(ErrorCode::kCapacity, fault);
  const Layout layout(geometry);
  const int fd = memfd_create("unisono", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0)
    throw Error(ErrorCode::kOutOfMemory, "memfd_create for the job's shared segment failed: " + system_text());
  try {
    // Sealed before anyone maps it: a member that could shrink it would crash the others (SIGBUS).
    if (ftruncate(fd, static_cast<off_t>(layout.total)) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      throw Error(ErrorCode::kOutOfMemory,
                  "a shared segment of " + std::to_string(layout.total) + " bytes cannot be had: " + system_text());
    }
    std::byte* base = map_shared(fd, layout.total, true);
    const SegmentHeader header{kSegmentMagic, kSegmentVersion, 0, geometry, layout.total};
    std::memcpy(base, &header, sizeof header);
    return std::shared_ptr<Segment>(new Segment(geometry, base, fd));
  } catch (...) {
    close(fd);
    throw;
  }
}

std::shared_ptr<Segment> Segment::attach(int fd) { return map(fd, true); }

std::shared_ptr<Segment> Segment::observe(int fd) { return map(fd, false); }

std::shared_ptr<Segment> Segment::map(int fd, bool writable) {
  const auto refuse = [](const std::string& text) -> Error {
    return Error(ErrorCode::kBootstrap, "the memory is not this version's shared segment of a job: " + text);
  };
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kNeeded) != kNeeded) throw refuse("it is not sealed against a change of its size");
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(SegmentHeader))) throw refuse("too short");

  SegmentHeader header{};
  if (pread(fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header))
    throw refuse("its header is unreadable");
  if (header.magic != kSegmentMagic) throw refuse("its magic number is wrong");
  if (header.version != kSegmentVersion) {
    throw refuse("layout version " + std::to_string(header.version) + " instead of " + std::to_string(kSegmentVersion) +
                 "; all members must use the same release");
  }
  if (const std::string fault = fault_of(header.geometry); !fault.empty()) throw refuse(fault);
  const Layout layout(header.geometry);
  if (header.total_bytes != layout.total || status.st_size != static_cast<off_t>(layout.total)) {
    throw refuse("it has " + std::to_string(status.st_size) + " bytes instead of " + std::to_string(layout.total));
  }
  return std::shared_ptr<Segment>(new Segment(header.geometry, map_shared(fd, layout.total, writable),
                                              writable ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1));
}

// The structures below are words that start as zero in fresh memory, so their storage is used as it
// is: constructing them would touch pages that may never be needed, and erase what peers wrote.

bool Segment::detached(std::uint64_t offset, std::uint64_t bytes) const {
  const std::lock_guard lock(detached_mutex_);
  for (const auto& [from, until] : detached_) {
    if (offset < until && from < offset + bytes) return true;
  }
  return false;
}

void Segment::detach(std::byte* address, std::uint64_t bytes) {
  const std::uint64_t offset = offset_of(address, bytes);
  if (offset == 0 || geometry_.one_process != 0) return;
  const std::uint64_t from = offset / kPageBytes * kPageBytes;
  const std::uint64_t until = page_aligned(offset + bytes);
  const std::vector<std::byte> contents(base_ + from, base_ + until);
  const std::lock_guard lock(detached_mutex_);
  if (mmap(base_ + from, until - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED) {
    throw Error(ErrorCode::kOutOfMemory,
                "private pages for a buffer that another rank may still write to cannot be "
                "had: " +
                    system_text());
  }
  std::memcpy(base_ + from, contents.data(), contents.size());
  detached_.emplace_back(from, until);
  any_detached_.store(true, std::memory_order_release);
  // A card would go on to write to the pages that it was told of.
  LastingMemory::instance().repaged(base_ + from, until - from);
}

EndpointBlock& Segment::endpoint(std::uint32_t endpoint) const {
  return reinterpret_cast<EndpointBlock*>(base_ + Layout(geometry_).endpoints)[endpoint];
}

DirectoryEntry* Segment::directory(std::uint32_t endpoint) const {
  constexpr std::uint64_t kEach = page_aligned(kDirectoryEntries * sizeof(DirectoryEntry));
  return reinterpret_cast<DirectoryEntry*>(base_ + Layout(geometry_).directories + endpoint * kEach);
}

SendCursors& Segment::send_cursors(std::uint32_t sender, std::uint32_t receiver) const {
  const std::uint64_t place = std::uint64_t{receiver} * geometry_.endpoints + sender;
  return reinterpret_cast<SendCursors*>(base_ + Layout(geometry_).send_cursors)[place];
}

ReceiveCursors& Segment::receive_cursors(std::uint32_t sender, std::uint32_t receiver) const {
  const std::uint64_t place = std::uint64_t{sender} * geometry_.endpoints + receiver;
  return reinterpret_cast<ReceiveCursors*>(base_ + Layout(geometry_).receive_cursors)[place];
}

CommunicatorRecord* Segment::records(std::uint32_t endpoint) const {
  return reinterpret_cast<CommunicatorRecord*>(base_ + Layout(geometry_).records + endpoint * kRecordBytes);
}

NativeCounters& Segment::counters(std::uint32_t endpoint) const {
  return reinterpret_cast<NativeCounters*>(base_ + Layout(geometry_).all_counters)[endpoint];
}

JobOrders& Segment::orders() const { return *reinterpret_cast<JobOrders*>(base_ + Layout(geometry_).orders); }

std::byte* Segment::arena(std::uint32_t endpoint) const { return base_ + arenas_ + endpoint * geometry_.arena_bytes; }

std::byte* Segment::ring(std::uint32_t sender, std::uint32_t receiver, Lane lane) const {
  const Layout layout(geometry_);
  const std::uint64_t pair = std::uint64_t{receiver} * geometry_.endpoints + sender;
  return base_ + layout.rings + pair * layout.pair_bytes + (lane == Lane::kControl ? geometry_.ring_bytes[0] : 0);
}

}  // namespace unisono::shm
