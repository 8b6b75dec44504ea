#include "sim/cluster/config.hpp"

#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "sim/network/topology.hpp"

namespace unisono::sim {
namespace {

constexpr std::string_view kOwn = "tlb_";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

[[noreturn]] void refuse(std::string_view key, std::string_view value, const char* allowed) {
  throw Error(ErrorCode::kInvalidArgument, std::string(key) + ": '" + std::string(value) + "'; allowed is " + allowed);
}

unsigned whole(std::string_view key, std::string_view value, unsigned most, const char* allowed) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number > most) refuse(key, value, allowed);
  return number;
}

void apply(ClusterFile& file, std::string_view key, std::string_view value) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 3> kPages{
      {{"4K", std::uint64_t{4} << 10U}, {"2M", std::uint64_t{2} << 20U}, {"1G", std::uint64_t{1} << 30U}}};
  if (key == "tlb_entries") {
    file.tlb_entries = whole(key, value, 1U << 20U, "0 (no translation) to 1048576");
  } else if (key == "tlb_miss_cycles") {
    file.tlb_miss_cycles = whole(key, value, 1'000'000'000, "0 to 1000000000 cycles");
  } else if (key == "tlb_page") {
    for (const auto& [name, bytes] : kPages) {
      if (value == name) file.tlb_page = bytes;
    }
    if (!file.tlb_page) refuse(key, value, "4K, 2M or 1G");
  } else {
    throw Error(ErrorCode::kInvalidArgument,
                std::string(key) + ": is no key; those of translation are: tlb_entries, tlb_page, tlb_miss_cycles");
  }
}

}  // namespace

TlbConfig ClusterFile::tlb(TlbConfig usual) const {
  usual.entries = tlb_entries.value_or(usual.entries);
  usual.page_bytes = tlb_page.value_or(usual.page_bytes);
  usual.miss_cycles = tlb_miss_cycles.value_or(usual.miss_cycles);
  return usual;
}

NetworkConfig ClusterFile::network_of(std::uint32_t nodes, std::optional<std::uint64_t> seed) const {
  NetworkConfig config = network;
  const auto refuse_line = [&](const char* key, const std::string& value, const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("{}, line {}: {} = {}{}", network.source, network.lines.at(key), key, value, why));
  };
  const std::uint32_t all = nodes_with_units(network, nodes);
  if (network.lines.contains("nodes") && network.nodes != all) {
    const std::uint32_t units = units_at_nodes(network);
    const std::string and_units =
        units == 0 ? "" : formatted(" and {} more {} a unit", units, units == 1 ? "is" : "are each");
    refuse_line("nodes", std::to_string(network.nodes),
                formatted(", but the job has {}{}: each rank has a node{}. Leave the line out, or start {} ranks",
                          nodes, nodes == 1 ? " rank" : " ranks", and_units, network.nodes - units));
  }
  if (network.lines.contains("seed") && seed && *seed != network.seed) {
    refuse_line("seed", std::to_string(network.seed),
                formatted(" does nothing, for the option --seed says {}. Leave one of them out", *seed));
  }
  config.nodes = all;
  config.seed = seed.value_or(network.seed);
  return config;
}

ClusterFile parse_cluster(std::string_view text, const std::string& source) {
  ClusterFile file;
  // The network's own reader gets an empty line for each of ours, so that it counts the same lines.
  std::string rest;
  for (unsigned number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const std::string_view content = trimmed(line.substr(0, line.find('#')));
    const std::size_t equals = content.find('=');
    const std::string_view key = trimmed(content.substr(0, equals));
    if (key.starts_with(kOwn) && equals != std::string_view::npos) {
      try {
        apply(file, key, trimmed(content.substr(equals + 1)));
      } catch (const Error& error) {
        throw Error(error.code(), formatted("{}, line {}: {}", source, number, error.what()));
      }
    } else {
      rest += line;
    }
    rest += '\n';
  }
  file.network = parse_network(rest, source);
  return file;
}

}  // namespace unisono::sim
