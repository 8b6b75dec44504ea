// The file through which ranks find rank 0: somebody may have written anything into it.
#include <string>

#include "platform/join/job.hpp"
#include "platform/join/meeting_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using namespace unisono::join;
using fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto meeting = parse_meeting(text);
  if (!meeting) return 0;
  claim(meeting->size >= 1 && meeting->size <= kMaxJobSize, "a job has ranks");
  claim(meeting->secret.size() == 64, "nobody joins without the secret");
  claim(!meeting->addresses.empty(), "rank 0 is somewhere");
  for (const HostPort& address : meeting->addresses) claim(address.port != 0, "at a port");
  const auto again = parse_meeting(meeting->text());
  claim(again && again->text() == meeting->text(), "what is written is read");
  return 0;
}
