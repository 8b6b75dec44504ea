// The records that hosts, devices and members exchange: call descriptors, capabilities, records of moves.
#include <array>

#include "core/generated/spec.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto words = input.take<std::array<std::uint64_t, 16>>();
  const CallDescriptor call = decode_call_descriptor(words);
  if (well_formed_call_descriptor(words)) claim(encode(call) == words, "a descriptor is encoded as it came");
  if (fits(call)) claim(decode_call_descriptor(encode(call)) == call, "a descriptor that fits comes back");
  const std::array<std::uint64_t, 1> capability{words[0]};
  if (well_formed_capability(capability)) {
    claim(encode(decode_capability(capability)) == capability, "a capability is encoded as it came");
  }
  const auto record = input.take<std::array<std::uint64_t, 8>>();
  if (well_formed_move_record(record)) {
    claim(encode(decode_move_record(record)) == record, "a record of a move is encoded as it came");
  }
  return 0;
}
