#include "engine/flight_report.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/generated/spec.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "core/user_op.hpp"
#include "engine/flight_reader.hpp"
#include "engine/recorded_exchange.hpp"

namespace unisono::cclo {
namespace {

std::string name_of(const SeenCall& call) {
  std::string text(call.probe ? "probe" : operation_of(call));
  if (call.point_to_point) {
    const bool to = call.collective == Collective::kSend || call.collective == Collective::kPut;
    return text +
           (call.any_source ? " from any source" : (to ? " to rank " : " from rank ") + std::to_string(call.peer)) +
           (call.any_tag ? " (any tag)" : " (tag " + std::to_string(call.tag) + ")");
  }
  return call.local ? text : text + " #" + std::to_string(call.sequence);
}

std::string arguments_of(const SeenCall& call) {
  std::string text = name_of(call);
  if (call.dtype != Datatype::kNone && !call.probe) {
    text += " of ";
    if (call.collective != Collective::kProgram) text += std::to_string(call.count) + " ";
    text += unisono::name_of(call.dtype);
  }
  if (call.func != Func::kNone) text += " by " + operator_name_elsewhere(call.func);
  if (call.has_root()) text += ", root " + std::to_string(call.peer);
  if (call.in_place) text += ", in place";
  if (call.post_scale != 1) text += formatted(", post_scale {}", call.post_scale);
  return text;
}

std::string details_of(const SeenCall& call) {
  std::string text = arguments_of(call);
  if (call.algorithm != nullptr && !call.local && !call.point_to_point)
    text += std::string(", ") + call.algorithm->name;
  return text;
}

/// "rank 3", "ranks 1, 2 and 5"; shortened if there are many.
std::string ranks(const std::vector<std::uint32_t>& of) {
  constexpr std::size_t kMost = 8;
  std::string text = of.size() == 1 ? "rank " : "ranks ";
  const std::size_t shown = of.size() > kMost ? kMost : of.size();
  for (std::size_t i = 0; i < shown; ++i) {
    if (i != 0) text += i + 1 == of.size() ? " and " : ", ";
    text += std::to_string(of[i]);
  }
  if (shown < of.size()) text += " and " + std::to_string(of.size() - shown) + " more";
  return text;
}

std::string seconds(std::uint64_t since, std::chrono::steady_clock::time_point now) {
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  const double passed = (static_cast<double>(time) - static_cast<double>(since)) * 1e-9;
  char text[32];
  std::snprintf(text, sizeof text, passed < 10 ? "%.1f s" : "%.0f s", std::max(passed, 0.0));
  return text;
}

const SeenCall* call_at(const SeenCommunicator& seen, std::uint64_t position) {
  for (const SeenCall& call : seen.calls) {
    if (call.position == position) return &call;
  }
  return nullptr;
}

/// The call that the endpoint is in: the one that it has waited in, or the first that has not ended.
const SeenCall* present_call(const SeenCommunicator& seen) {
  if (seen.waiting) {
    if (const SeenCall* call = call_at(seen, *seen.waiting)) return call;
  }
  for (const SeenCall& call : seen.calls) {
    if (call.state == RecordedState::kBegun) return &call;
  }
  return nullptr;
}

/// The last collective call that the endpoint has begun.
const SeenCall* last_collective(const SeenCommunicator& seen) {
  const SeenCall* last = nullptr;
  for (const SeenCall& call : seen.calls) {
    if (!call.point_to_point && !call.local) last = &call;
  }
  return last;
}

const char* name_of(RecordedState state) {
  switch (state) {
    case RecordedState::kBegun:
      return "in progress";
    case RecordedState::kEnded:
      return "ended";
    default:
      return "failed";
  }
}

/// "in allreduce #4 of ..., for 2.1 s; waits for rank 1", "in no call; the last was ..."
std::string now_in(const SeenCommunicator& seen, std::chrono::steady_clock::time_point now) {
  if (const SeenCall* call = present_call(seen)) {
    std::string text = "in " + details_of(*call);
    if (!seen.waiting || *seen.waiting != call->position) return text;
    text += ", for " + seconds(seen.since, now);
    const bool named = seen.awaited.size() <= 1 && seen.phase.find("rank ") != std::string::npos;
    if (!seen.awaited.empty() && !named) text += ", waits for " + ranks(seen.awaited);
    return text + ": " + seen.phase;
  }
  if (seen.calls.empty()) return "has called nothing yet";
  const SeenCall& last = seen.calls.back();
  return "in no call; the last was " + name_of(last) + ", " + name_of(last.state);
}

struct Member {
  std::size_t endpoint = 0;
  SeenCommunicator seen;
};

/// Calls of the same number must be the same call everywhere.
std::string disagreement(const std::map<std::uint32_t, Member>& members) {
  std::map<std::uint32_t, std::pair<std::uint32_t, SeenCall>> first;  // by sequence: who, and what
  for (const auto& [rank, member] : members) {
    for (const SeenCall& call : member.seen.calls) {
      if (call.point_to_point || call.local) continue;
      const auto [found, fresh] = first.try_emplace(call.sequence, rank, call);
      const SeenCall& other = found->second.second;
      if (fresh || other.signature == call.signature) continue;
      return "call #" + std::to_string(call.sequence) + " differs: rank " + std::to_string(found->second.first) +
             " called " + arguments_of(other) + ", rank " + std::to_string(rank) + " " + arguments_of(call);
    }
  }
  return {};
}

/// A communicator with the name that the first of its members has given it, if any has.
std::string title_of(std::uint32_t number, const std::map<std::uint32_t, Member>& members) {
  for (const auto& [rank, member] : members) {
    if (!member.seen.name.empty()) return unisono::title_of(number, member.seen.name);
  }
  return unisono::title_of(number, "");
}

/// Where a rank waits that is part of a circle: "pid 7 sits in allreduce #4 of communicator 2, as rank 1 of it".
std::string seat_of(const ObservedEndpoint& endpoint, const SeenCommunicator& seen, const std::string& title) {
  const SeenCall* call = present_call(seen);
  return endpoint.name + " sits in " + (call == nullptr ? "a call" : name_of(*call)) + " of " + title + ", as rank " +
         std::to_string(seen.rank) + " of it";
}

}  // namespace

std::string flight_report(std::span<const ObservedEndpoint> endpoints, ReportDetail detail,
                          std::chrono::steady_clock::time_point now) {
  using Identity = std::pair<std::uint32_t, std::uint16_t>;
  std::map<Identity, std::map<std::uint32_t, Member>> communicators;
  for (std::size_t endpoint = 0; endpoint < endpoints.size(); ++endpoint) {
    const CommunicatorRecord* records = endpoints[endpoint].records;
    for (std::uint32_t i = 0; records != nullptr && i < kRecordedCommunicators; ++i) {
      if (auto seen = read(records[i]); seen && !seen->left) {
        communicators[{seen->number, seen->epoch}].insert_or_assign(seen->rank, Member{endpoint, std::move(*seen)});
      }
    }
  }

  std::string text = ways_report(endpoints) + strangers_report(endpoints);
  const bool communicates = !communicators.empty();
  std::map<std::size_t, std::size_t> waits;  // endpoint to endpoint, one each
  std::map<std::size_t, std::string> who;    // endpoint to "rank r of communicator c"
  std::map<std::size_t, std::string> seats;  // endpoint to where it waits
  for (const auto& entry : communicators) {
    const Identity identity = entry.first;
    const std::map<std::uint32_t, Member>& members = entry.second;
    const std::uint32_t size = members.begin()->second.seen.size;
    const std::string title = title_of(identity.first, members);
    text += title;
    if (identity.second != 0) text += ", epoch " + std::to_string(identity.second);
    text += ", " + std::to_string(size) + (size == 1 ? " rank\n" : " ranks\n");
    for (const auto& [rank, member] : members) {
      const ObservedEndpoint& endpoint = endpoints[member.endpoint];
      text += "  rank " + std::to_string(rank) + ", " + endpoint.name;
      if (!endpoint.condition.empty()) text += ", " + endpoint.condition;
      text += (member.seen.revoked ? ": (revoked) " : ": ") + now_in(member.seen, now) + "\n";
      if (detail == ReportDetail::kHistory) {
        for (const SeenCall& call : member.seen.calls) {
          text += std::string("      ") + name_of(call.state) + ": " + details_of(call) + "\n";
        }
      }
      for (const std::uint32_t awaited : member.seen.awaited) {
        const auto peer = members.find(awaited);
        if (!member.seen.waiting || peer == members.end()) continue;
        waits.try_emplace(member.endpoint, peer->second.endpoint);
        seats.try_emplace(member.endpoint, seat_of(endpoint, member.seen, title));
        const auto label = [&](std::uint32_t of) {
          return "rank " + std::to_string(of) + (identity.first == 0 ? "" : " of " + title);
        };
        who.try_emplace(member.endpoint, label(rank));
        who.try_emplace(peer->second.endpoint, label(awaited));
      }
    }
    if (const std::string differs = disagreement(members); !differs.empty()) text += "  ! " + differs + "\n";
  }

  // Everybody who waits leads, step by step, to somebody who does not, or into a circle.
  std::map<std::size_t, std::vector<std::size_t>> held_up;  // by who is at the end of the way
  std::vector<std::size_t> circle;
  for (const auto& [endpoint, next] : waits) {
    std::vector<std::size_t> way{endpoint};
    std::size_t at = next;
    while (waits.count(at) != 0 && std::find(way.begin(), way.end(), at) == way.end()) {
      way.push_back(at);
      at = waits.at(at);
    }
    if (waits.count(at) == 0) {
      held_up[at].push_back(endpoint);
    } else if (circle.empty()) {
      circle.assign(std::find(way.begin(), way.end(), at), way.end());
    }
  }
  for (const auto& [endpoint, held] : held_up) {
    const ObservedEndpoint& last = endpoints[endpoint];
    text += "=> ";
    for (std::size_t i = 0; i < held.size(); ++i) {
      text += (i == 0 ? "" : i + 1 == held.size() ? " and " : ", ") + who[held[i]];
    }
    text += (held.size() == 1 ? " waits for " : " wait for ") + who[endpoint] + " (" + last.name;
    text += last.condition.empty() ? ")\n" : ", " + last.condition + ")\n";
  }
  if (!circle.empty()) {
    text += "=> " + who[circle.front()];
    for (std::size_t i = 1; i <= circle.size(); ++i) {
      text += (i == 1 ? " waits for " : ", which waits for ") + who[circle[i % circle.size()]];
    }
    text += ": a circle, in which nobody can go on\n";
    for (const std::size_t endpoint : circle) text += "   " + who[endpoint] + ": " + seats[endpoint] + "\n";
  }
  return communicates ? text : text + "no communicators\n";
}

std::vector<ObservedEndpoint> endpoints_of(const Poe& poe) {
  std::vector<ObservedEndpoint> endpoints;
  bool hosts = false;
  for (std::uint32_t endpoint = 0; endpoint < poe.size(); ++endpoint) hosts |= !poe.in_shared_memory(endpoint);
  for (std::uint32_t endpoint = 0; endpoint < poe.size(); ++endpoint) {
    endpoints.push_back({poe.describe(endpoint), poe.condition(endpoint), poe.records(endpoint), poe.counters(endpoint),
                         endpoint, hosts ? poe.size() : 0, poe.way_to(endpoint)});
  }
  return endpoints;
}

std::string flight_report(const Poe& poe, ReportDetail detail) {
  return flight_report(endpoints_of(poe), detail, std::chrono::steady_clock::now());
}

std::vector<std::string> standstill(const Poe& poe) {
  std::vector<std::string> sentences;
  const std::string report = flight_report(poe, ReportDetail::kNow);
  for (std::size_t begin = 0; begin < report.size();) {
    const std::size_t end = std::min(report.find('\n', begin), report.size());
    const std::string line = report.substr(begin, end - begin);
    for (const char* mark : {"=> ", "  ! "}) {
      if (line.rfind(mark, 0) == 0) sentences.push_back(line.substr(std::strlen(mark)));
    }
    begin = end + 1;
  }
  return sentences;
}

std::string flight_table(std::span<const ObservedEndpoint> endpoints, std::chrono::steady_clock::time_point now) {
  std::string text;
  for (const ObservedEndpoint& endpoint : endpoints) {
    std::uint64_t communicators = 0;
    std::uint64_t calls = 0;
    std::string doing = "has called nothing yet";
    for (std::uint32_t i = 0; endpoint.records != nullptr && i < kRecordedCommunicators; ++i) {
      const auto seen = read(endpoint.records[i]);
      if (!seen || seen->left) continue;
      ++communicators;
      calls += endpoint.records[i].begun.load(std::memory_order_relaxed);
      if (seen->calls.empty() || (present_call(*seen) == nullptr && doing != "has called nothing yet")) continue;
      doing = now_in(*seen, now);
      if (seen->number != 0 || !seen->name.empty()) doing += " (" + unisono::title_of(seen->number, seen->name) + ")";
    }
    text += endpoint.name + "\t" + endpoint.condition + "\t" + std::to_string(communicators) + "\t" +
            std::to_string(calls) + "\t" + doing + "\t" + std::to_string(endpoint.rank) + "\t" +
            std::to_string(endpoint.of == 0 ? endpoints.size() : endpoint.of) + "\t" +
            (endpoint.of == 0 || endpoint.network.empty() ? "-" : endpoint.network) + "\n";
  }
  return text;
}

std::string counters_table(std::span<const ObservedEndpoint> endpoints) {
  std::string text;
  for (std::size_t position = 0; position < kNativeCounterNames.size(); ++position) {
    text += kNativeCounterNames[position];
    for (const ObservedEndpoint& endpoint : endpoints) {
      if (endpoint.counters == nullptr) {
        text += "\t-";
        continue;
      }
      std::uint64_t value = endpoint.counters->words[position].load(std::memory_order_relaxed);
      if (position == static_cast<std::size_t>(NativeCounter::kCalls)) {
        for (std::uint32_t i = 0; endpoint.records != nullptr && i < kRecordedCommunicators; ++i) {
          const CommunicatorRecord& record = endpoint.records[i];
          if (record.identity.load(std::memory_order_acquire) >> 48U == kRecordInUse) {
            value += record.begun.load(std::memory_order_relaxed);
          }
        }
      }
      text += "\t" + std::to_string(value);
    }
    text += "\n";
  }
  return text;
}

void report_failure(const Poe& poe, const std::string& failure) {
  const char* place = std::getenv("UNISONO_DUMP");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  if (place == nullptr || *place == 0) return;
  const std::string report = failure + "\n" + flight_report(poe, ReportDetail::kHistory);
  if (std::strcmp(place, "stderr") == 0) {
    std::fputs(report.c_str(), stderr);
    return;
  }
  const std::string path = std::string(place) + "." + std::to_string(poe.self());
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) {
    log(LogLevel::kWarn, "UNISONO_DUMP: " + path + ": " + std::strerror(errno));
    return;
  }
  std::fputs(report.c_str(), file);
  std::fclose(file);
}

std::string doings(const Poe& poe, std::uint32_t endpoint, std::uint32_t communicator, std::uint16_t epoch) {
  const CommunicatorRecord* records = poe.records(endpoint);
  if (records == nullptr) return poe.condition(endpoint);
  std::string text = poe.condition(endpoint);
  std::string here;
  std::string elsewhere;
  std::uint32_t used = 0;
  const auto now = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < kRecordedCommunicators; ++i) {
    const auto seen = read(records[i]);
    if (!seen) continue;
    ++used;
    const bool is_it = seen->number == communicator && seen->epoch == epoch;
    if (seen->left) {
      if (is_it) here = "has freed it";
    } else if (is_it) {
      const SeenCall* present = present_call(*seen);
      const SeenCall* last = last_collective(*seen);
      here = present != nullptr ? "is in " + details_of(*present)
             : last != nullptr  ? "is in no call of it; its last was " + name_of(*last)
                                : "has called nothing on it";
    } else if (seen->waiting && elsewhere.empty()) {
      elsewhere = ", but in " + unisono::title_of(seen->number, seen->name) + " (as rank " +
                  std::to_string(seen->rank) + ") it is " + now_in(*seen, now);
    }
  }
  if (here.empty()) {
    here = used < kRecordedCommunicators ? "has not made the communicator"
                                         : "has so many communicators that its record of this one is not seen";
  }
  if (!text.empty()) text += "; ";
  return text + here + elsewhere;
}

bool has_begun(const Poe& poe, std::uint32_t endpoint, std::uint32_t communicator, std::uint16_t epoch,
               std::uint32_t sequence) {
  const CommunicatorRecord* records = poe.records(endpoint);
  for (std::uint32_t i = 0; records != nullptr && i < kRecordedCommunicators; ++i) {
    const auto seen = read(records[i]);
    if (!seen || seen->number != communicator || seen->epoch != epoch) continue;
    const SeenCall* last = last_collective(*seen);
    // Sequences wrap around.
    return last != nullptr && static_cast<std::int32_t>(last->sequence - sequence) >= 0;
  }
  return records == nullptr;
}

bool is_in_call(const Poe& poe, std::uint32_t endpoint) {
  const CommunicatorRecord* records = poe.records(endpoint);
  for (std::uint32_t i = 0; records != nullptr && i < kRecordedCommunicators; ++i) {
    const auto seen = read(records[i]);
    if (seen && present_call(*seen) != nullptr) return true;
  }
  return records == nullptr;
}

}  // namespace unisono::cclo
