#include "network/udp/impairment.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/error.hpp"
#include "core/text.hpp"

namespace unisono::udp {

namespace {

constexpr std::chrono::milliseconds kLongestHeld{2};
constexpr unsigned kMostOthers = 8;

template <class Value>
bool read(std::string_view text, Value& value) {
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && stop == text.data() + text.size();
}

bool read_chance(std::string_view text, double& value) { return read(text, value) && value >= 0 && value <= 1; }

}  // namespace

ImpairmentSettings impairment_of(std::string_view text) {
  ImpairmentSettings settings;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t sign = std::min(one.find('='), one.size());
    const std::string_view name = one.substr(0, sign);
    const std::string_view value = one.substr(std::min(one.size(), sign + 1));
    const bool right = name == "loss"        ? read_chance(value, settings.loss)
                       : name == "reorder"   ? read_chance(value, settings.reorder)
                       : name == "duplicate" ? read_chance(value, settings.duplicate)
                       : name == "corrupt"   ? read_chance(value, settings.corrupt)
                       : name == "largest"   ? read(value, settings.largest)
                       : name == "seed"      ? read(value, settings.seed)
                                             : false;
    if (right) continue;
    throw Error(ErrorCode::kBootstrap,
                formatted("environment variable UNISONO_UDP_IMPAIR is \"{}\", but should be what a test's network does "
                          "to datagrams: loss=, reorder=, duplicate=, corrupt= with chances from 0 to 1, largest= with "
                          "bytes, seed= with a number, and commas between them",
                          text));
  }
  return settings;
}

Impairment::Impairment(const ImpairmentSettings& settings) : settings_(settings), random_(settings.seed) {}

bool Impairment::happens(double chance) {
  // Not drawn where it cannot happen, so that each chance has the same draws whatever the others are not.
  return chance > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < chance;
}

void Impairment::pass(const tcp::SystemAddress& to, std::span<const std::byte> datagram, Time now, const Send& send) {
  for (Held& held : held_) held.others -= held.others > 0 ? 1 : 0;
  const bool lost = happens(settings_.loss) || (settings_.largest != 0 && datagram.size() > settings_.largest);
  if (!lost) {
    std::vector<std::byte> copy(datagram.begin(), datagram.end());
    if (happens(settings_.corrupt)) copy[random_() % copy.size()] ^= std::byte{1} << (random_() % 8);
    if (happens(settings_.duplicate)) send(to, copy);
    if (happens(settings_.reorder)) {
      held_.push_back({to, std::move(copy), 1 + static_cast<unsigned>(random_() % kMostOthers), now + kLongestHeld});
    } else {
      send(to, copy);
    }
  }
  release(now, send);
}

void Impairment::release(Time now, const Send& send) {
  for (std::size_t i = 0; i < held_.size();) {
    if (held_[i].others > 0 && held_[i].until > now) {
      ++i;
      continue;
    }
    send(held_[i].to, held_[i].datagram);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

Impairment::Time Impairment::deadline() const {
  Time first = Time::max();
  for (const Held& held : held_) first = std::min(first, held.until);
  return first;
}

}  // namespace unisono::udp
