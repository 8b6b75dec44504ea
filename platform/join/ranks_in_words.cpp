#include "platform/join/ranks_in_words.hpp"

#include <algorithm>
#include <charconv>

#include "core/text.hpp"
#include "platform/join/variables.hpp"

namespace unisono::join {
namespace {

constexpr std::size_t kMostShown = 16;
constexpr std::size_t kLongestHost = 255;

/// "rank 3", "ranks 1, 2 and 5".
std::string listed(const std::vector<std::uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i != 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

struct OfHost {
  std::string_view host;
  std::vector<std::uint32_t> ranks;
};

}  // namespace

std::string ranks_have(std::span<const std::uint32_t> ranks, std::span<const std::string> hosts) {
  const char* const have = ranks.size() == 1 ? " has" : " have";
  const std::size_t hidden = ranks.size() - std::min(ranks.size(), kMostShown);
  std::vector<OfHost> parts;
  for (const std::uint32_t rank : ranks.first(ranks.size() - hidden)) {
    const std::string_view host = rank < hosts.size() ? std::string_view(hosts[rank]) : std::string_view();
    auto part = std::find_if(parts.begin(), parts.end(), [&](const OfHost& one) { return one.host == host; });
    if (part == parts.end()) part = parts.insert(parts.end(), {host, {}});
    part->ranks.push_back(rank);
  }
  std::string text;
  for (const OfHost& part : parts) {
    text += (text.empty() ? "" : ", ") + listed(part.ranks);
    if (!part.host.empty()) text += formatted(" on {}", part.host);
  }
  if (hidden != 0) text += formatted(" and {} more", hidden);
  return text + have;
}

std::optional<std::vector<std::string>> hosts_of_ranks(std::string_view text, std::uint32_t size) {
  std::vector<std::string> hosts;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    // The last colon: a host may be an IPv6 address.
    const std::size_t colon = entry.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string_view host = entry.substr(0, colon);
    const std::string_view number = entry.substr(colon + 1);
    std::uint32_t count = 0;
    const auto [stop, fault] = std::from_chars(number.data(), number.data() + number.size(), count);
    const bool whole = fault == std::errc() && stop == number.data() + number.size();
    if (!whole || count == 0 || count > size - hosts.size()) return std::nullopt;
    if (host.empty() || host.size() > kLongestHost || !is_printable(host)) return std::nullopt;
    hosts.insert(hosts.end(), count, std::string(host));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  if (hosts.size() != size) return std::nullopt;
  return hosts;
}

}  // namespace unisono::join
