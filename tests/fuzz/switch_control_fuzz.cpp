// What somebody who speaks to a switch may say to it, or a switch to its callers: any bytes.
#include <algorithm>
#include <cstring>

#include "switch/control.hpp"
#include "switch/handler_control.hpp"
#include "switch/service/places.hpp"
#include "switch/service/report.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;         // NOLINT(google-build-using-namespace)
using namespace unisono::slots;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

namespace {

/// What can be read can be written, and is then read as the same.
template <class Read>
void comes_back(std::span<const std::byte> bytes, Read&& read) {
  const auto first = read(bytes);
  if (!first) return;
  const join::Blob written = packed(*first);
  const auto second = read(written);
  claim(second.has_value(), "what was written can be read");
  claim(packed(*second) == written, "as the same");
}

void request(std::span<const std::byte> bytes) {
  comes_back(bytes, pool_request_in);
  const std::optional<PoolRequest> request = pool_request_in(bytes);
  if (!request) return;
  for (const PoolNode& node : request->nodes) {
    const auto members = static_cast<std::uint32_t>(node.below.size());
    claim(request->node(node.name) == &node, "every node is found");
    claim(members != 0 && members <= request->ranks, "with as many members as there may be");
    const std::uint32_t possible = possible_slots(*request, members, 1000);
    claim(possible < std::max(request->slots, 1U), "less is possible than was asked for");
    claim(possible == 0 || places_of(possible, request->payload_bytes, members, request->keeps_order) <= 1000,
          "which fits");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto kind = input.take<std::uint8_t>();
  const auto rest = std::as_bytes(input.rest());
  switch (kind % 11) {
    case 0:
      request(rest);
      break;
    case 1:
      comes_back(rest, pool_answer_in);
      break;
    case 2:
      comes_back(rest, welcome_in);
      break;
    case 3:
      comes_back(rest, control_frame_in);
      break;
    case 5:
      comes_back(rest, load_request_in);
      break;
    case 6:
      comes_back(rest, load_answer_in);
      break;
    case 7:
      comes_back(rest, unload_request_in);
      break;
    case 8:
      comes_back(rest, run_request_in);
      break;
    case 9:
      comes_back(rest, run_answer_in);
      break;
    case 10:
      comes_back(rest, operator_request_in);
      break;
    default:
      chain_in_status({reinterpret_cast<const char*>(rest.data()), rest.size()});
  }
  return 0;
}
