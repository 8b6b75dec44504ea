// What a host and its node of a simulated cluster say to each other, over a stream socket that the host inherits.
//
// The host sends one request at a time and waits for the reply. Simulated time passes only while every host that is
// attached waits for a reply or has closed its socket, and requests that came meanwhile are begun in the order of the
// nodes. So a run depends on the programs, the configuration and the seed, and not on how fast the hosts are.
#pragma once

#include <cstdint>

namespace unisono::device {

inline constexpr std::uint32_t kProtocolMagic = 0x554e4344;  // "DCNU" in memory
inline constexpr std::uint32_t kProtocolVersion = 2;

enum class RequestKind : std::uint32_t {
  kHello = 0,   ///< reply: bytes of payload are a Greeting
  kRead = 1,    ///< argument: offset; reply: value
  kWrite = 2,   ///< argument: offset of the first; payload: 32-bit words for consecutive registers
  kStore = 3,   ///< argument: device address; payload: the bytes
  kLoad = 4,    ///< argument: device address, length: bytes; reply: the bytes
  kWait = 5,    ///< argument: nanoseconds at most; reply when a completion waits, or then; value: the status register,
                ///< and kHasBroken
  kMeet = 6,    ///< payload: what to tell the others; replies, in one cycle, when all that are attached have asked:
                ///< of each node 32 bits with a length, and so many bytes of its own
  kBroken = 7,  ///< reply: a BrokenSession for each session of this node that has broken since the last kBroken
  kGive = 8,    ///< argument: stream port, and above bit 8 nanoseconds at most; payload: bytes for it; reply when all
                ///< have gone, or then; value: how many have
  kTake = 9,    ///< argument: likewise; length: bytes at most; reply with what has come, when something has and no more
                ///< comes, or then
  kKernel = 10,      ///< argument: a number; payload: a start (kernel_start.hpp); the kernel begins in this cycle
  kKernelEnds = 11,  ///< reply: a KernelEnd and its sentence for each kernel of this node that has ended since the last
                     ///< kKernelEnds
  kJoinTree = 12,    ///< payload: a TreeQuestion and its nodes; reply: a TreeAnswer, its text and its addresses
  kLeaveTree = 13,   ///< argument: number of a communicator, and above bit 32 its epoch; it asks no switch any more
  kTreeWaits = 14,   ///< argument: likewise; reply: what its switches wait for, in lines
};

/// Of the network's switches: will they take part in the collectives of a communicator? Every member asks, and all get
/// the same answer, until all that have asked have left.
struct TreeQuestion {
  std::uint32_t communicator = 0;
  std::uint32_t epoch = 0;
  std::uint32_t eager_limit = 0, segment_bytes = 0, rx_buffers = 0;  ///< that members have agreed
  std::uint32_t nodes = 0;                                           ///< words that follow: of each member, by rank
};
static_assert(sizeof(TreeQuestion) == 24);

struct TreeAnswer {
  std::uint32_t text = 0;  ///< bytes that follow: the tree in brackets, or why there is none
  std::uint32_t addresses =
      0;  ///< words behind them: of each switch, in the order of the brackets; 0: there is no tree
};
static_assert(sizeof(TreeAnswer) == 8);

/// Followed by `length` bytes of payload for kWrite, kStore, kMeet, kGive, kKernel and kJoinTree.
struct Request {
  std::uint32_t magic = kProtocolMagic;
  RequestKind kind = RequestKind::kHello;
  std::uint64_t argument = 0;
  std::uint64_t length = 0;
};
static_assert(sizeof(Request) == 24);

/// Followed by `length` bytes of payload.
struct Reply {
  std::uint32_t magic = kProtocolMagic;
  std::uint32_t code = 0;  ///< ErrorCode; kInvalidArgument where the node answered with an error
  std::uint64_t value = 0;
  std::uint64_t nanoseconds = 0;  ///< of simulated time, at the reply
  std::uint64_t length = 0;
};
static_assert(sizeof(Reply) == 32);

/// In the value of a reply to kWait, which is given then: a kernel of this node has ended, kKernelEnds says which.
inline constexpr std::uint64_t kHasKernelEnd = std::uint64_t{1} << 33U;
/// In the value of a reply to kWait: a session of this node has broken, kBroken says which.
inline constexpr std::uint64_t kHasBroken = std::uint64_t{1} << 32U;

/// A way from node to node on which a frame is missing. Nothing that was sent behind it arrives.
struct BrokenSession {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t control = 0;       ///< 1: of the control channel
  std::uint32_t missing = 0;       ///< number of the first frame that has not come
  std::uint32_t until = 0;         ///< of the next one after the gap
  std::uint32_t nothing_came = 0;  ///< 1: nor has anything else of it
};
static_assert(sizeof(BrokenSession) == 24);

/// The microcontroller's image is in place.
inline constexpr std::uint64_t kHasFirmware = 1;
/// kMeet is known.
inline constexpr std::uint64_t kHostsMeet = 2;
/// The node runs kernels: kKernel is known.
inline constexpr std::uint64_t kRunsKernels = 4;
/// There are switches that take part in collectives: kJoinTree, kLeaveTree and kTreeWaits are known.
inline constexpr std::uint64_t kHasSwitches = 8;

/// Stream ports that its host reaches by kGive and kTake: bits 8 to 15.
inline constexpr unsigned kStreamsShift = 8;

/// What a node is.
struct Greeting {
  std::uint32_t version = kProtocolVersion;
  std::uint32_t node = 0;
  std::uint32_t nodes = 0;  ///< of the cluster
  std::uint32_t clock_mhz = 0;
  std::uint64_t memory_address = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t features = 0;  ///< bits, see below
};
static_assert(sizeof(Greeting) == 40);

inline constexpr std::uint64_t kMostPayload = 1U << 26U;  ///< bytes of one request or reply

}  // namespace unisono::device
