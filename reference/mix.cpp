#include "reference/mix.hpp"

#include <algorithm>
#include <utility>

#include "core/group_table.hpp"
#include "core/text.hpp"
#include "reference/dice.hpp"

namespace unisono::reference {
namespace {

ChannelKind drawn_kind(Dice& dice) {
  constexpr std::uint32_t kFew[] = {1, 1, 2, 3, 8};
  const auto few = [&] { return kFew[dice.below(std::size(kFew))]; };
  ChannelKind kind;
  kind.way = static_cast<ChannelKind::Way>(dice.below(3));
  kind.lines = few();
  kind.asks = dice.below(2) == 0;
  kind.buffers = kind.asks && dice.below(4) == 0 ? 0 : few();
  kind.batch = 1 + static_cast<std::uint32_t>(dice.below(kind.buffers));
  kind.longest = dice.below(2) == 0 ? ChannelKind::kUnlimited : 1 + dice.below(4);
  kind.landing = few();
  kind.in_place = dice.below(2) == 0;
  // A sender that lends its memory has it back from a lane when the data was taken, from a network when it has come.
  if (dice.below(3) == 0)
    kind.ends = kind.way == ChannelKind::Way::kLane ? ChannelKind::Ends::kTaken : ChannelKind::Ends::kArrived;
  return kind;
}

/// "hosts {0 1 2} {3 4}"
std::string text_of_hosts(const std::vector<std::uint32_t>& hosts) {
  std::string text = "hosts";
  const std::uint32_t count = *std::max_element(hosts.begin(), hosts.end()) + 1;
  for (std::uint32_t host = 0; host < count; ++host) {
    std::string ranks;
    for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
      if (hosts[rank] == host) ranks += formatted("{}{}", ranks.empty() ? "" : " ", rank);
    }
    text += " {" + ranks + "}";
  }
  return text;
}

std::vector<std::vector<std::uint32_t>> placements(const Job& job) {
  const std::uint32_t size = job.size();
  std::vector<std::uint32_t> ranges, dealt, grouped;
  const Grouping grouping{job.call.group_size, job.call.groups};
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    ranges.push_back(rank < (4 * size + 6) / 7 ? 0 : 1);  // of seven ranks 4 and 3
    dealt.push_back(rank % 2);
    if (job.call.size == size) grouped.push_back(group_of(grouping, rank));
  }
  std::vector<std::vector<std::uint32_t>> all{std::move(ranges)};
  for (auto* hosts : {&dealt, &grouped}) {
    const bool several = !hosts->empty() && *std::max_element(hosts->begin(), hosts->end()) != 0;
    if (several && std::find(all.begin(), all.end(), *hosts) == all.end()) all.push_back(std::move(*hosts));
  }
  return all;
}

}  // namespace

ChannelKind ChannelKind::lane(std::uint32_t lines) {
  ChannelKind kind;
  kind.lines = lines;
  return kind;
}

ChannelKind ChannelKind::credit(std::uint32_t buffers) {
  ChannelKind kind;
  kind.way = Way::kCredit;
  kind.buffers = buffers;
  kind.batch = std::max<std::uint32_t>(1, buffers / 2);
  return kind;
}

ChannelKind ChannelKind::grant(std::uint32_t segments) {
  ChannelKind kind;
  kind.way = Way::kGrant;
  kind.landing = segments;
  return kind;
}

std::string ChannelKind::text() const {
  const std::string granted = formatted("grant({}{})", landing, in_place ? ", in place" : "");
  std::string text = granted;
  if (way == Way::kLane) text = formatted("lane({})", lines);
  if (way == Way::kCredit) {
    text = formatted("credit({} by {}{}{})", buffers, batch, asks ? ", or asks for " + granted : "",
                     longest == kUnlimited ? "" : formatted("; from {} elements {}", longest + 1, granted));
  }
  if (ends == Ends::kSent) return text;
  return text + (ends == Ends::kArrived ? " until it has come" : " until it is taken");
}

ChannelKind Mix::kind(std::uint32_t from, std::uint32_t to) const {
  if (!drawn_kinds) return hosts.empty() || hosts[from] == hosts[to] ? within : between;
  Dice dice = Dice::apart(seed + (std::uint64_t{from} << 32U) + (std::uint64_t{to} << 48U) + 1);
  return drawn_kind(dice);
}

Mix Mix::all(std::uint32_t ranks, const ChannelKind& kind, Schedule schedule) {
  Mix mix;
  mix.size = ranks;
  mix.within = kind;
  mix.schedule = schedule;
  return mix;
}

Mix Mix::by_host(std::vector<std::uint32_t> hosts, const ChannelKind& within, const ChannelKind& between,
                 Schedule schedule) {
  Mix mix;
  mix.size = static_cast<std::uint32_t>(hosts.size());
  mix.hosts = std::move(hosts);
  mix.within = within;
  mix.between = between;
  mix.schedule = schedule;
  return mix;
}

Mix Mix::drawn(std::uint32_t ranks, std::uint64_t seed) {
  Dice dice = Dice::apart(seed);
  Mix mix;
  mix.size = ranks;
  mix.drawn_kinds = true;
  mix.segment = 1 + dice.below(4);
  mix.full_segment_dependencies = dice.below(8) == 0;
  mix.schedule = static_cast<Schedule>(std::min<std::uint64_t>(dice.below(6), 2));
  mix.seed = seed;
  return mix;
}

std::string Mix::kinds_text(const Lowered& lowered) const {
  if (!drawn_kinds && hosts.empty()) return "all pairs " + within.text();
  if (!drawn_kinds)
    return formatted("{}: within each {}, between them {}", text_of_hosts(hosts), within.text(), between.text());
  std::string text = "pair by pair:";
  for (const Lowered::Channel& channel : lowered.channels())
    text += formatted("\n      {} to {}: {}", channel.from, channel.to, kind(channel.from, channel.to).text());
  return text;
}

std::string Mix::text(const Lowered& lowered) const {
  constexpr const char* kSchedules[] = {"always the first that can go on", "always the last that can go on",
                                        "a random schedule"};
  return formatted("{}, seed {}; segments of {} element{}{};\n    {}", kSchedules[static_cast<std::size_t>(schedule)],
                   seed, segment, segment == 1 ? "" : "s",
                   full_segment_dependencies ? "; segment dependencies read as full" : "", kinds_text(lowered));
}

std::vector<Mix> mixes_of(const Job& job, std::uint32_t draws, std::uint64_t seed) {
  using Schedule = Mix::Schedule;
  const std::uint32_t size = job.size();
  std::vector<Mix> mixes;
  for (const Schedule schedule : {Schedule::kFirst, Schedule::kLast}) {
    mixes.push_back(Mix::all(size, ChannelKind::credit(1), schedule));
    mixes.push_back(Mix::all(size, ChannelKind::grant(1), schedule));
  }
  if (size > 1) {
    for (const auto& hosts : placements(job)) {
      mixes.push_back(Mix::by_host(hosts, ChannelKind::lane(1), ChannelKind::credit(1), Schedule::kFirst));
      mixes.push_back(Mix::by_host(hosts, ChannelKind::lane(1), ChannelKind::grant(1), Schedule::kLast));
    }
  }
  for (std::uint32_t i = 0; i < draws; ++i) mixes.push_back(Mix::drawn(size, seed * 1000003 + i));
  return mixes;
}

}  // namespace unisono::reference
