// Tags of the library's own messages. Users have 0 to kMaxUserTag. Freestanding.
#pragma once

#include <cstdint>

#include "core/generated/spec.hpp"

namespace unisono {

/// Messages to a stream port of their receiver.
inline constexpr std::uint32_t kFirstStreamTag = 0xffff0000U;
constexpr std::uint32_t stream_tag(std::uint32_t port) { return kFirstStreamTag + port; }

/// Messages of a session between kernels of two ranks, by its number.
inline constexpr std::uint32_t kFirstSessionTag = 0xffff8000U;
inline constexpr std::uint32_t kSessions = 256;
constexpr std::uint32_t session_tag(std::uint32_t number) { return kFirstSessionTag + number; }

/// Whether a message between two ranks may have this tag on an engine in hardware: a user's, or one of the above.
constexpr bool is_message_tag(std::uint32_t tag) { return tag <= kMaxUserTag || tag >= kFirstStreamTag; }

/// Messages of kernels' channels; kFirstChannelTag + 2^18 and more are free.
inline constexpr std::uint32_t kFirstChannelTag = 0xfff00000U;

/// By these, groups of ranks find each other as they make communicators: kFirstGroupTag + what the user has given.
inline constexpr auto kFirstGroupTag = static_cast<std::uint32_t>(kMaxUserTag) + 1;
inline constexpr std::uint32_t kMaxGroupTag = kFirstChannelTag - kFirstGroupTag - 1;

}  // namespace unisono
