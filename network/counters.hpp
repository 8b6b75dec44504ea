// What an endpoint counts, and what tools ask of a job: words in the job's memory, beside the flight records.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace unisono {

/// What the native engine counts, since its endpoint joined. What goes over lanes is counted when its call has ended.
enum class NativeCounter : std::uint8_t {
  kCalls = 0,         ///< calls begun; those of live communicators stand in their flight records alone
  kCallsFailed,       ///< calls that ended in error
  kCallsQueued,       ///< calls that went through the queue: those that do not block, follow others, or have no lane
  kSegmentsSent,      ///< messages with data or a signal
  kBytesSent,         ///< their payload
  kRequestsSent,      ///< announcements of messages too long to be sent at once, or without credit
  kGrantsSent,        ///< landing areas named to a sender
  kCreditsSent,       ///< messages that only return credits
  kSegmentsReceived,  ///< messages with data or a signal
  kBytesReceived,     ///< their payload
  kRequestsReceived,  ///< announcements of peers
  kGrantsReceived,    ///< landing areas of peers
  kSegmentsBuffered,  ///< messages that came before what they are for, and were kept
  kSleeps,            ///< waits in which a thread gave up its core
  kCommunicators,     ///< communicators made
  kRevocations,       ///< communicators that failed
  kLaneMessages,      ///< messages sent over lanes: of collectives' programs, and from send to recv
  kLaneBytes,         ///< their payload
  kDirectBytes,       ///< read and written in memory of ranks by direct access
  kStrangersRefused,  ///< connections and datagrams that did not prove to be of the job; the networks count them
};

/// Their names, by position.
inline constexpr std::array<const char*, 20> kNativeCounterNames{
    "calls",
    "calls_failed",
    "calls_queued",
    "segments_sent",
    "bytes_sent",
    "requests_sent",
    "grants_sent",
    "credits_sent",
    "segments_received",
    "bytes_received",
    "requests_received",
    "grants_received",
    "segments_buffered",
    "sleeps",
    "communicators",
    "revocations",
    "lane_messages_sent",
    "lane_bytes_sent",
    "direct_bytes",
    "strangers_refused",
};

/// The counters of an endpoint, which alone writes them.
struct alignas(64) NativeCounters {
  std::array<std::atomic<std::uint64_t>, kNativeCounterNames.size()> words;
};

/// What tools have asked of a job, whose endpoints look at it now and then. 0: nothing.
struct alignas(64) JobOrders {
  std::atomic<std::uint32_t> resets;         ///< how many times all communicators were to be given up
  std::atomic<std::uint32_t> eager_limit;    ///< of communicators made from now on, bytes
  std::atomic<std::uint32_t> segment_bytes;  ///< likewise
  std::atomic<std::uint32_t> rx_buffer_count;
  std::atomic<std::uint64_t> timeout_us;  ///< default deadline of their calls
};

}  // namespace unisono
