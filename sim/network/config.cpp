#include "sim/network/config.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::sim {
namespace {

[[noreturn]] void refuse(std::string_view key, std::string_view value, const std::string& allowed) {
  throw Error(ErrorCode::kInvalidArgument,
              std::string(key) + ": '" + std::string(value) + "' is not allowed; allowed is " + allowed);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::uint64_t whole(std::string_view key, std::string_view value, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem != std::errc{} || end != value.data() + value.size() || number < least || number > most)
    refuse(key, value, formatted("a whole number of {} to {}", least, most));
  return number;
}

std::uint32_t whole32(std::string_view key, std::string_view value, std::uint32_t least, std::uint32_t most) {
  return static_cast<std::uint32_t>(whole(key, value, least, most));
}

/// A decimal number in thousandths, without rounding.
std::uint64_t thousandths(std::string_view key, std::string_view value, std::uint64_t most) {
  const std::string allowed = formatted("a number above 0 with at most three decimals, at most {}", most / 1000);
  const std::size_t point = value.find('.');
  const std::string_view decimals = point == std::string_view::npos ? "" : value.substr(point + 1);
  if (decimals.size() > 3 || (point != std::string_view::npos && decimals.empty())) refuse(key, value, allowed);
  std::string digits(value.substr(0, point));
  if (digits.empty() || digits.size() > 9) refuse(key, value, allowed);
  digits += decimals;
  digits.append(3 - decimals.size(), '0');
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc{} || end != digits.data() + digits.size() || number == 0 || number > most)
    refuse(key, value, allowed);
  return number;
}

double probability(std::string_view key, std::string_view value) {
  double number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem != std::errc{} || end != value.data() + value.size() || !(number >= 0) || number > 1)
    refuse(key, value, "a probability of 0 to 1");
  return number;
}

template <class E>
struct Choice {
  std::string_view name;
  E value;
};

template <class E, std::size_t N>
E chosen(std::string_view key, std::string_view value, const std::array<Choice<E>, N>& choices) {
  std::string allowed;
  for (const Choice<E>& choice : choices) {
    if (choice.name == value) return choice.value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(choice.name);
  }
  refuse(key, value, "one of " + allowed);
}

constexpr std::uint32_t kMostCycles = 1'000'000'000;
constexpr std::uint32_t kMostNodes = 4096;
constexpr std::uint32_t kLeastFrame = 128;   ///< a header of engines, and some data
constexpr std::uint32_t kMostFrame = 65535;  ///< lengths are 16 bits in the hardware

std::vector<Outage> outages(std::string_view key, std::string_view value) {
  std::vector<Outage> found;
  const std::string allowed = "cycles as 1000-2000, 5000-6000: ascending and apart";
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 4;
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    const std::string_view one = trimmed(value.substr(0, comma));
    value = comma == std::string_view::npos ? std::string_view{} : value.substr(comma + 1);
    const std::size_t dash = one.find('-');
    if (dash == std::string_view::npos) refuse(key, one, allowed);
    const Outage outage{whole(key, trimmed(one.substr(0, dash)), 0, kMost),
                        whole(key, trimmed(one.substr(dash + 1)), 0, kMost)};
    if (outage.from >= outage.to || (!found.empty() && outage.from <= found.back().to)) refuse(key, one, allowed);
    found.push_back(outage);
  }
  return found;
}

bool apply_known(LinkConfig& link, std::string_view key, std::string_view value) {
  if (key == "gbps") {
    link.mbps = thousandths(key, value, 10'000'000);
  } else if (key == "propagation") {
    link.propagation = whole32(key, value, 0, kMostCycles);
  } else if (key == "header_bytes") {
    link.header_bytes = whole32(key, value, 0, 4096);
  } else if (key == "trailer_bytes") {
    link.trailer_bytes = whole32(key, value, 0, 4096);
  } else if (key == "min_wire_bytes") {
    link.min_wire_bytes = whole32(key, value, 0, 4096);
  } else if (key == "buffer_bytes") {
    link.buffer_bytes = whole(key, value, 1, std::uint64_t{1} << 40U);
  } else if (key == "loss") {
    link.loss = probability(key, value);
  } else if (key == "duplicate") {
    link.duplicate = probability(key, value);
  } else if (key == "reorder") {
    link.reorder = probability(key, value);
  } else if (key == "corrupt") {
    link.corrupt = probability(key, value);
  } else if (key == "reorder_cycles") {
    link.reorder_cycles = whole32(key, value, 1, kMostCycles);
  } else if (key == "down") {
    link.down = outages(key, value);
  } else {
    return false;
  }
  return true;
}

bool apply_known(NetworkConfig& config, std::string_view key, std::string_view value) {
  if (key == "topology") {
    config.shape = chosen(key, value,
                          std::array<Choice<Shape>, 7>{{{"point_to_point", Shape::kPointToPoint},
                                                        {"switch", Shape::kSwitch},
                                                        {"ring", Shape::kRing},
                                                        {"torus", Shape::kTorus},
                                                        {"leaf_spine", Shape::kLeafSpine},
                                                        {"fat_tree", Shape::kLeafSpine},
                                                        {"cables", Shape::kCables}}});
  } else if (key == "nodes") {
    config.nodes = whole32(key, value, 2, kMostNodes);
  } else if (key == "columns") {
    config.columns = whole32(key, value, 1, kMostNodes);
  } else if (key == "rows") {
    config.rows = whole32(key, value, 1, kMostNodes);
  } else if (key == "planes") {
    config.planes = whole32(key, value, 1, kMostNodes);
  } else if (key == "leaves") {
    config.leaves = whole32(key, value, 1, kMostNodes);
  } else if (key == "spines") {
    config.spines = whole32(key, value, 1, kMostNodes);
  } else if (key == "clock_mhz") {
    config.clock_khz = thousandths(key, value, 10'000'000);
  } else if (key == "mtu") {
    config.mtu = whole32(key, value, kLeastFrame, kMostFrame);
  } else if (key == "switch_latency") {
    config.switch_latency = whole32(key, value, 0, kMostCycles);
  } else if (key == "policy") {
    config.policy =
        chosen(key, value, std::array<Choice<Policy>, 2>{{{"drop", Policy::kDrop}, {"pause", Policy::kPause}}});
  } else if (key == "queue_share") {
    config.queue_share = whole32(key, value, 1, 1'000'000);
  } else if (key == "receive_bytes") {
    config.receive_bytes = whole(key, value, 1, std::uint64_t{1} << 40U);
  } else if (key == "receive") {
    config.receive =
        chosen(key, value,
               std::array<Choice<Receive>, 2>{{{"cut_through", Receive::kCutThrough}, {"whole", Receive::kWhole}}});
  } else if (key == "frame_check") {
    config.frame_check = chosen(key, value, std::array<Choice<bool>, 2>{{{"on", true}, {"off", false}}});
  } else if (key == "aggregation") {
    config.aggregation = parse_aggregation(value);
  } else if (key == "seed") {
    config.seed = whole(key, value, 0, std::numeric_limits<std::uint64_t>::max());
  } else {
    return apply_known(config.link, key, value);
  }
  return true;
}

constexpr const char* kNetworkKeys =
    "topology, nodes, columns, rows, planes, leaves, spines, clock_mhz, mtu, switch_latency, policy, queue_share, "
    "receive_bytes, receive, frame_check, aggregation, seed";
constexpr const char* kLinkKeys =
    "gbps, propagation, header_bytes, trailer_bytes, min_wire_bytes, buffer_bytes, loss, duplicate, reorder, corrupt, "
    "reorder_cycles, down";

}  // namespace

void apply(LinkConfig& link, std::string_view key, std::string_view value) {
  if (apply_known(link, key, value)) return;
  throw Error(ErrorCode::kInvalidArgument,
              std::string(key) + ": is no key of a link; these are: " + std::string(kLinkKeys));
}

std::vector<UnitPattern> parse_aggregation(std::string_view value) {
  constexpr const char* kAllowed =
      "ais@SWITCH or aas@NODE, with `*` for any characters, several joined by `|`, as ais@leaf*|ais@spine0";
  std::vector<UnitPattern> found;
  for (bool more = true; more;) {
    const std::size_t bar = value.find('|');
    const std::string_view one = trimmed(value.substr(0, bar));
    more = bar != std::string_view::npos;
    if (more) value = value.substr(bar + 1);
    const std::size_t at = one.find('@');
    const std::string_view kind = trimmed(one.substr(0, at));
    const std::string_view pattern = at == std::string_view::npos ? "" : trimmed(one.substr(at + 1));
    if ((kind != "ais" && kind != "aas") || pattern.empty()) refuse("aggregation", one, kAllowed);
    found.push_back({kind == "aas", std::string(pattern)});
  }
  return found;
}

bool matches(std::string_view pattern, std::string_view name) {
  // Where the last `*` stood, and what of the name it covers so far: a mismatch lets it cover one more character.
  std::size_t star = std::string_view::npos, covered = 0, p = 0, n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      covered = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++covered;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

NetworkConfig parse_network(std::string_view text, const std::string& source) {
  NetworkConfig config;
  config.source = source;
  std::uint32_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    try {
      const std::size_t equals = line.find('=');
      if (equals == std::string_view::npos)
        throw Error(ErrorCode::kInvalidArgument, "'" + std::string(line) + "' is not of the form key = value");
      std::string_view key = trimmed(line.substr(0, equals));
      const std::string_view value = trimmed(line.substr(equals + 1));
      if (const std::size_t at = key.find('@'); at != std::string_view::npos) {
        const std::string_view pattern = trimmed(key.substr(at + 1));
        key = trimmed(key.substr(0, at));
        LinkConfig sample;
        apply(sample, key, value);  // so that what is wrong is said with its line
        config.settings.push_back({std::string(key), std::string(pattern), std::string(value), number});
      } else if (apply_known(config, key, value)) {
        config.lines[std::string(key)] = number;
      } else {
        throw Error(ErrorCode::kInvalidArgument, std::string(key) + ": is no key; these are: " + kNetworkKeys +
                                                     "; of links, also as key@link: " + kLinkKeys);
      }
    } catch (const Error& error) {
      throw Error(error.code(), formatted("{}, line {}: {}", source, number, error.what()));
    }
  }
  return config;
}

}  // namespace unisono::sim
