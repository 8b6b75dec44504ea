// What PEs of different hosts say to one another.
//
//   request  [origin -> owner's server]  a Request, behind it up to kInline bytes of a put
//   payload  [origin -> owner's server]  the bytes of a longer put, right behind its request
//   reply    [owner's server -> origin]  the bytes of a get; a word for an atomic that fetches, and for a flush
//
// Requests of one PE to another are carried out in the order in which they were sent, so a flush that was answered says
// that all puts and atomics before it are done.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::shmem {

enum class Asked : std::uint32_t { kPut = 1, kGet, kAtomic, kFlush, kExit, kStop };

struct Request {
  Asked asked;
  std::uint32_t region;
  std::uint64_t offset;
  std::uint64_t bytes;    ///< of a put or get
  std::uint64_t operand;  ///< of an atomic; the status of an exit
  std::uint64_t comparand;
  std::uint32_t operation;  ///< Atomic
  std::uint32_t width;      ///< of an atomic
  std::uint32_t reply;      ///< tag of the answer; 0: none is wanted
  std::uint32_t reserved;
};

inline constexpr std::size_t kInline = 2048;
inline constexpr std::int64_t kRequestTag = 1;
inline constexpr std::int64_t kPayloadTag = 2;
inline constexpr std::uint32_t kFirstReplyTag = 16;
inline constexpr std::uint32_t kReplyTags = 1U << 20U;

}  // namespace unisono::shmem
