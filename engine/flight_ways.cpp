#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/text.hpp"
#include "engine/flight_report.hpp"

namespace unisono::cclo {
namespace {

/// "rank 3", "ranks 0 to 3, 6": as short as it can be said of many.
std::string spans(std::vector<std::uint32_t> of) {
  std::sort(of.begin(), of.end());
  std::string text = of.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < of.size();) {
    std::size_t last = i;
    while (last + 1 < of.size() && of[last + 1] == of[last] + 1) ++last;
    if (i != 0) text += ", ";
    text += std::to_string(of[i]);
    if (last != i) text += (last == i + 1 ? " and " : " to ") + std::to_string(of[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

std::string ways_report(std::span<const ObservedEndpoint> endpoints) {
  std::vector<std::uint32_t> here;
  std::map<std::string, std::vector<std::uint32_t>> elsewhere;  // by what carries data to them
  std::uint32_t of = 0;
  std::string network;
  for (const ObservedEndpoint& endpoint : endpoints) {
    if (endpoint.of == 0) continue;
    of = endpoint.of;
    if (endpoint.records != nullptr) {
      here.push_back(endpoint.rank);
      network = endpoint.network;
    } else {
      elsewhere[endpoint.network].push_back(endpoint.rank);
    }
  }
  if (of == 0 || here.empty()) return {};
  std::string text = spans(here) + " of " + std::to_string(of);
  text += here.size() == 1 ? " is on this host\n" : " are on this host and share memory\n";
  for (const auto& [name, ranks] : elsewhere) text += name + " carries data to and from " + spans(ranks) + "\n";
  if (elsewhere.empty()) text += network + " carries data to and from the other ranks\n";
  return text;
}

std::string strangers_report(std::span<const ObservedEndpoint> endpoints) {
  std::string text;
  for (const ObservedEndpoint& endpoint : endpoints) {
    if (endpoint.counters == nullptr) continue;
    const auto position = static_cast<std::size_t>(NativeCounter::kStrangersRefused);
    const std::uint64_t refused = endpoint.counters->words[position].load(std::memory_order_relaxed);
    if (refused == 0) continue;
    text += formatted("rank {} has refused {} {} that did not prove to be of the job\n", endpoint.rank, refused,
                      refused == 1 ? "connection or datagram" : "connections or datagrams");
  }
  return text;
}

}  // namespace unisono::cclo
