// A file through which the members of a job find rank 0 and learn the secret: UNISONO_JOIN=file:///path.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/join/exchange.hpp"
#include "platform/join/sockets.hpp"

namespace unisono::join {

/// Bytes of the file, at most.
inline constexpr std::size_t kMaxMeeting = std::size_t{16} * 1024;

/// What stands in it.
struct Meeting {
  std::string host;  ///< of rank 0, for messages
  std::uint32_t pid = 0;
  std::uint32_t size = 0;  ///< of the job
  std::string secret;      ///< hexadecimal digits
  std::vector<HostPort> addresses;

  std::string text() const;
};
/// Nothing if it is none, or not whole.
std::optional<Meeting> parse_meeting(std::string_view text);

/// The members of `environment` meet by its file. Rank 0 listens, writes the file, waits until all have come, and
/// removes it. The others wait for a file whose rank 0 answers; one that an earlier job has left is waited out. Fills
/// in rank 0's address where it is known. Throws Error(kBootstrap).
std::unique_ptr<Exchange> make_file_exchange(JobEnvironment& environment);

}  // namespace unisono::join
