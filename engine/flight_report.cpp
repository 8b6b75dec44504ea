#include "engine/flight_report.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "collectives/algorithm.hpp"
#include "core/generated/spec.hpp"

namespace unisono::cclo {
namespace {

struct SeenCall {
  std::uint64_t position = 0;
  std::uint32_t sequence = 0;
  RecordedState state = RecordedState::kNone;
  Collective collective = Collective::kNop;
  Func func = Func::kNone;
  Datatype dtype = Datatype::kNone;
  std::uint64_t count = 0;
  bool in_place = false, point_to_point = false, local = false;
  std::uint32_t peer = 0, tag = 0;
  const char* algorithm = nullptr;
};

/// A private copy of a record, of which every word is examined before it is used.
struct SeenCommunicator {
  std::uint32_t number = 0;
  std::uint16_t epoch = 0;
  std::uint32_t rank = 0, size = 0;
  bool revoked = false;
  std::vector<SeenCall> calls;           ///< oldest first
  std::optional<std::uint64_t> waiting;  ///< position
  std::uint64_t since = 0;
  std::vector<std::uint32_t> awaited;  ///< ranks
  std::string phase;
};

std::optional<SeenCall> read(const CallRecord& record, std::uint64_t position) {
  const std::uint64_t head = record.head.load(std::memory_order_relaxed);
  const std::uint64_t count = record.count.load(std::memory_order_relaxed);
  const std::uint64_t peer = record.peer.load(std::memory_order_relaxed);
  const std::uint64_t algorithm = record.algorithm.load(std::memory_order_relaxed) & 0x7fffffffU;
  SeenCall call;
  call.position = position;
  call.sequence = static_cast<std::uint32_t>(head);
  call.state = static_cast<RecordedState>(head >> kRecordedStateShift & 0xffU);
  call.collective = static_cast<Collective>(head >> 40U & 0xffU);
  call.func = static_cast<Func>(head >> 48U & 0xffU);
  call.dtype = static_cast<Datatype>(head >> 56U & 0xffU);
  if (call.state == RecordedState::kNone || call.state > RecordedState::kFailed || !is_known(call.collective) ||
      !is_known(call.func) || !is_known(call.dtype)) {
    return std::nullopt;
  }
  call.count = count & ((std::uint64_t{1} << kRecordedCountBits) - 1);
  call.in_place = (count & kRecordedInPlace) != 0;
  call.point_to_point = (count & kRecordedPointToPoint) != 0;
  call.local = (count & kRecordedLocal) != 0;
  call.peer = static_cast<std::uint32_t>(peer);
  call.tag = static_cast<std::uint32_t>(peer >> 32U);
  if (algorithm != 0 && algorithm <= algorithms().size()) {
    const Algorithm& entry = algorithms()[algorithm - 1];
    if (entry.collective == call.collective) call.algorithm = entry.name;
  }
  return call;
}

std::optional<SeenCommunicator> read(const CommunicatorRecord& record) {
  const std::uint64_t identity = record.identity.load(std::memory_order_acquire);
  if (identity >> 48U != 1) return std::nullopt;
  SeenCommunicator seen;
  seen.number = static_cast<std::uint32_t>(identity);
  seen.epoch = static_cast<std::uint16_t>(identity >> 32U);
  const std::uint64_t place = record.place.load(std::memory_order_relaxed);
  seen.rank = static_cast<std::uint32_t>(place);
  seen.size = static_cast<std::uint32_t>(place >> 32U);
  if (seen.rank >= seen.size) return std::nullopt;
  seen.revoked = record.revoked.load(std::memory_order_relaxed) != 0;
  const std::uint64_t begun = record.begun.load(std::memory_order_relaxed);
  for (std::uint64_t position = begun > kRecordedCalls ? begun - kRecordedCalls : 0; position != begun; ++position) {
    if (const auto call = read(record.calls[position % kRecordedCalls], position)) seen.calls.push_back(*call);
  }
  if (const std::uint64_t waiting = record.waiting.load(std::memory_order_acquire); waiting != 0) {
    seen.waiting = waiting - 1;
    seen.since = record.since.load(std::memory_order_relaxed);
    for (std::uint32_t rank = 0; rank < std::min(seen.size, kRecordedRanks); ++rank) {
      if ((record.awaited[rank / 64].load(std::memory_order_relaxed) >> rank % 64 & 1U) != 0) {
        seen.awaited.push_back(rank);
      }
    }
    std::array<std::uint64_t, std::tuple_size_v<decltype(record.phase)>> text{};
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = record.phase[i].load(std::memory_order_relaxed);
    seen.phase.assign(reinterpret_cast<const char*>(text.data()), sizeof text);
    seen.phase.resize(std::strlen(seen.phase.c_str()));
    for (char& character : seen.phase) {
      if (character < ' ' || character > '~') character = '?';
    }
  }
  return seen;
}

std::string name_of(const SeenCall& call) {
  std::string text = unisono::name_of(call.collective);
  if (call.point_to_point) {
    const bool to = call.collective == Collective::kSend || call.collective == Collective::kPut;
    return text + (to ? " to rank " : " from rank ") + std::to_string(call.peer) + " (tag " + std::to_string(call.tag) +
           ")";
  }
  return call.local ? text : text + " #" + std::to_string(call.sequence);
}

std::string arguments_of(const SeenCall& call) {
  std::string text = name_of(call);
  if (call.dtype != Datatype::kNone) {
    text += " of " + std::to_string(call.count) + " " + unisono::name_of(call.dtype);
  }
  if (call.func != Func::kNone) text += std::string(" by ") + unisono::name_of(call.func);
  const bool rooted = call.collective == Collective::kBcast || call.collective == Collective::kReduce ||
                      call.collective == Collective::kGather || call.collective == Collective::kScatter ||
                      call.collective == Collective::kGatherv || call.collective == Collective::kScatterv;
  if (rooted) text += ", root " + std::to_string(call.peer);
  if (call.in_place) text += ", in place";
  return text;
}

std::string details_of(const SeenCall& call) {
  std::string text = arguments_of(call);
  if (call.algorithm != nullptr && !call.local && !call.point_to_point) text += std::string(", ") + call.algorithm;
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
      const bool rooted = arguments_of(call).find(", root ") != std::string::npos;
      if (fresh || (other.collective == call.collective && other.func == call.func && other.dtype == call.dtype &&
                    other.count == call.count && (!rooted || other.peer == call.peer))) {
        continue;
      }
      return "call #" + std::to_string(call.sequence) + " differs: rank " + std::to_string(found->second.first) +
             " called " + arguments_of(other) + ", rank " + std::to_string(rank) + " " + arguments_of(call);
    }
  }
  return {};
}

}  // namespace

std::string flight_report(std::span<const ObservedEndpoint> endpoints, ReportDetail detail,
                          std::chrono::steady_clock::time_point now) {
  using Identity = std::pair<std::uint32_t, std::uint16_t>;
  std::map<Identity, std::map<std::uint32_t, Member>> communicators;
  for (std::size_t endpoint = 0; endpoint < endpoints.size(); ++endpoint) {
    const CommunicatorRecord* records = endpoints[endpoint].records;
    for (std::uint32_t i = 0; records != nullptr && i < kRecordedCommunicators; ++i) {
      if (auto seen = read(records[i])) {
        communicators[{seen->number, seen->epoch}].insert_or_assign(seen->rank, Member{endpoint, std::move(*seen)});
      }
    }
  }

  std::string text;
  std::map<std::size_t, std::size_t> waits;  // endpoint to endpoint, one each
  std::map<std::size_t, std::string> who;    // endpoint to "rank r of communicator c"
  for (const auto& entry : communicators) {
    const Identity identity = entry.first;
    const std::map<std::uint32_t, Member>& members = entry.second;
    const std::uint32_t size = members.begin()->second.seen.size;
    text += "communicator " + std::to_string(identity.first);
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
        const auto label = [&](std::uint32_t of) {
          return "rank " + std::to_string(of) +
                 (identity.first == 0 ? "" : " of communicator " + std::to_string(identity.first));
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
  }
  return text.empty() ? "no communicators\n" : text;
}

std::vector<ObservedEndpoint> endpoints_of(const Poe& poe) {
  std::vector<ObservedEndpoint> endpoints;
  for (std::uint32_t endpoint = 0; endpoint < poe.size(); ++endpoint) {
    endpoints.push_back({poe.describe(endpoint), poe.condition(endpoint), poe.records(endpoint), poe.ledger(endpoint)});
  }
  return endpoints;
}

std::string flight_report(const Poe& poe, ReportDetail detail) {
  return flight_report(endpoints_of(poe), detail, std::chrono::steady_clock::now());
}

std::string flight_table(std::span<const ObservedEndpoint> endpoints, std::chrono::steady_clock::time_point now) {
  std::string text;
  for (const ObservedEndpoint& endpoint : endpoints) {
    std::uint64_t communicators = 0;
    std::uint64_t calls = 0;
    std::string doing = "has called nothing yet";
    for (std::uint32_t i = 0; endpoint.records != nullptr && i < kRecordedCommunicators; ++i) {
      const auto seen = read(endpoint.records[i]);
      if (!seen) continue;
      ++communicators;
      calls += endpoint.records[i].begun.load(std::memory_order_relaxed);
      if (seen->calls.empty() || (present_call(*seen) == nullptr && doing != "has called nothing yet")) continue;
      doing = now_in(*seen, now);
      if (seen->number != 0) doing += " (communicator " + std::to_string(seen->number) + ")";
    }
    text += endpoint.name + "\t" + endpoint.condition + "\t" + std::to_string(communicators) + "\t" +
            std::to_string(calls) + "\t" + doing + "\n";
  }
  return text;
}

std::string counters_table(std::span<const ObservedEndpoint> endpoints) {
  std::string text;
  for (std::size_t position = 0; position < kNativeCounterNames.size(); ++position) {
    text += kNativeCounterNames[position];
    for (const ObservedEndpoint& endpoint : endpoints) {
      if (endpoint.ledger == nullptr) {
        text += "\t-";
        continue;
      }
      std::uint64_t value = endpoint.ledger->counters[position].load(std::memory_order_relaxed);
      if (position == static_cast<std::size_t>(NativeCounter::kCalls)) {
        for (std::uint32_t i = 0; endpoint.records != nullptr && i < kRecordedCommunicators; ++i) {
          const CommunicatorRecord& record = endpoint.records[i];
          if (record.identity.load(std::memory_order_acquire) != 0) {
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
    std::fprintf(stderr, "unisono: warning: UNISONO_DUMP: %s: %s\n", path.c_str(), std::strerror(errno));
    return;
  }
  std::fputs(report.c_str(), file);
  std::fclose(file);
}

std::string doings(const Poe& poe, std::uint32_t endpoint, std::uint32_t communicator, std::uint16_t epoch) {
  const CommunicatorRecord* records = poe.records(endpoint);
  if (records == nullptr) return {};
  std::string text = poe.condition(endpoint);
  std::string here = "has not made the communicator";
  std::string elsewhere;
  const auto now = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < kRecordedCommunicators; ++i) {
    const auto seen = read(records[i]);
    if (!seen) continue;
    if (seen->number == communicator && seen->epoch == epoch) {
      const SeenCall* present = present_call(*seen);
      const SeenCall* last = last_collective(*seen);
      here = present != nullptr ? "is in " + details_of(*present)
             : last != nullptr  ? "is in no call of it; its last was " + name_of(*last)
                                : "has called nothing on it";
    } else if (seen->waiting && elsewhere.empty()) {
      elsewhere = ", but in communicator " + std::to_string(seen->number) + " (as rank " + std::to_string(seen->rank) +
                  ") it is " + now_in(*seen, now);
    }
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
