#include "sim/cluster/trace.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <iomanip>
#include <map>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <tuple>

#include "core/text.hpp"
#include "sim/cluster/host.hpp"

namespace unisono::sim {
namespace {

/// Rows of one slot: the first is of calls.
constexpr std::uint32_t kRows = 64;
constexpr int kLongestAccess = 5000;  ///< cycles

/// Events of the format, a comma between them.
class Events {
 public:
  Events(std::ostream& out, std::uint64_t clock_khz) : out_(out), clock_khz_(clock_khz) {
    out_ << std::fixed << std::setprecision(3) << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() { out_ << "\n]}\n"; }

  void name(const char* what, std::size_t node, std::uint32_t row, const std::string& text) {
    begin(what, "M", node, row);
    out_ << ", \"args\": {\"name\": \"" << text << "\"}}";
  }
  /// `arguments` is the inside of a JSON object.
  void span(const std::string& text, std::size_t node, std::uint32_t row, std::uint64_t from, std::uint64_t to,
            const std::string& arguments) {
    begin(text, "X", node, row);
    out_ << ", \"ts\": " << microseconds(from) << ", \"dur\": " << microseconds(to - from) << ", \"args\": {"
         << arguments << "}}";
  }
  /// From a bar to another, at these times within them.
  void arrow(std::uint64_t number, std::size_t node, std::uint32_t row, std::uint64_t at, std::size_t to_node,
             std::uint32_t to_row, std::uint64_t to_at) {
    begin("message", "s", node, row);
    out_ << R"(, "cat": "message", "id": )" << number << ", \"ts\": " << microseconds(at) << "}";
    begin("message", "f", to_node, to_row);
    out_ << R"(, "cat": "message", "bp": "e", "id": )" << number << ", \"ts\": " << microseconds(to_at) << "}";
  }

 private:
  void begin(const std::string& text, const char* phase, std::size_t node, std::uint32_t row) {
    out_ << (first_ ? "\n" : ",\n") << R"({"name": ")" << text << R"(", "ph": ")" << phase << "\", \"pid\": " << node
         << ", \"tid\": " << row;
    first_ = false;
  }
  double microseconds(std::uint64_t cycles) const {
    return static_cast<double>(cycles) * 1000.0 / static_cast<double>(clock_khz_);
  }

  std::ostream& out_;
  std::uint64_t clock_khz_;
  bool first_ = true;
};

std::string name_of_move(const MoveRecord& record) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (record.receives) add(formatted("recv {}", record.source));
  if (record.func != Func::kNone) add(name_of(record.func));
  if (record.sends) add(formatted("send {}", record.destination));
  if (text.empty()) add(record.writes ? "copy" : "nothing");
  return text;
}

std::string arguments_of(const MoveRecord& record) {
  std::ostringstream text;
  const auto number = [&](const char* name, std::uint64_t value) {
    text << (text.tellp() == 0 ? "" : ", ") << '"' << name << "\": " << value;
  };
  number("call", record.call_id);
  number("move", record.index);
  number("bytes", record.bytes);
  number("segments", record.segments);
  if (record.receives) number("source", record.source);
  if (record.sends) number("destination", record.destination);
  number("entered", record.entered);
  number("issued", record.issued);
  number("began", record.began);
  number("completed", record.completed);
  number("retired", record.retired);
  text << R"(, "dtype": ")" << name_of(static_cast<Datatype>(record.dtype)) << R"(", "waited_for": [)";
  const char* comma = "";
  for (const auto& [waited, what] : {std::pair{record.waited_credit, "credit"},
                                     {record.waited_grant, "grant"},
                                     {record.waited_space, "space"},
                                     {record.waited_arrival, "arrival"},
                                     {record.waited_producer, "producer"}}) {
    if (!waited) continue;
    text << comma << '"' << what << '"';
    comma = ", ";
  }
  text << "]";
  return text.str();
}

/// Where a move is in the timeline.
struct Bar {
  std::size_t node = 0;
  std::uint32_t row = 0;
  MoveRecord record;
  const LoggedCall* call = nullptr;  ///< null: of a call that nobody has seen given
};

/// Finds the descriptors of calls, oldest first where a number was given several times.
class Descriptors {
 public:
  explicit Descriptors(std::span<const LoggedCall> calls) {
    for (const LoggedCall& one : calls) by_number_[one.call.call_id].push_back(&one);
  }
  const LoggedCall* next(std::uint32_t number) {
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return nullptr;
    const LoggedCall* const one = found->second.front();
    if (found->second.size() > 1) found->second.pop_front();
    return one;
  }

 private:
  std::map<std::uint32_t, std::deque<const LoggedCall*>> by_number_;
};

std::string arguments_of(const LoggedCall& logged) {
  const CallDescriptor& call = logged.call;
  std::string text = formatted(", \"count\": {}, \"dtype\": \"{}\"", call.count, name_of(call.dtype));
  if (call.func != Func::kNone) text += std::string(", \"func\": \"") + name_of(call.func) + "\"";
  return text;
}

void write_node(Events& events, std::size_t node, const NodeTrace& trace, std::vector<Bar>& bars) {
  events.name("process_name", node, 0, formatted("rank {}", node));
  struct Call {
    std::uint64_t from = 0, to = 0;
    const LoggedCall* logged = nullptr;
  };
  // A slot has one call after the other.
  std::map<std::tuple<std::uint8_t, std::uint32_t, std::uint32_t>, Call> calls;
  std::map<std::uint32_t, std::vector<std::uint64_t>> ends;  // of the rows of each slot
  Descriptors descriptors(trace.calls);
  std::vector<MoveRecord> records = trace.records;
  std::stable_sort(records.begin(), records.end(),
                   [](const MoveRecord& a, const MoveRecord& b) { return a.entered < b.entered; });
  for (const MoveRecord& record : records) {
    const auto [call, fresh] = calls.try_emplace({record.slot, record.call_id, record.sequence});
    if (fresh) call->second = {record.entered, record.retired, descriptors.next(record.call_id)};
    call->second.to = std::max(call->second.to, record.retired);
    auto& rows = ends[record.slot];
    const auto row = std::find_if(rows.begin(), rows.end(), [&](std::uint64_t end) { return end <= record.entered; });
    const auto number = static_cast<std::uint32_t>(row - rows.begin());
    if (row == rows.end()) {
      rows.push_back(record.retired);
    } else {
      *row = record.retired;
    }
    const std::uint32_t tid = kRows * record.slot + 1 + number;
    const LoggedCall* const logged = call->second.logged;
    const std::string of = logged == nullptr ? "" : ", \"operation\": \"" + name_of(logged->call) + "\"";
    events.span(name_of_move(record), node, tid, record.entered, record.retired, arguments_of(record) + of);
    if (record.began != 0) events.span("data", node, tid, record.began, record.completed, "");
    bars.push_back({node, tid, record, logged});
  }
  for (const auto& [key, call] : calls) {
    const auto [slot, id, sequence] = key;
    const std::string name = call.logged == nullptr ? formatted("call {}", id) : name_of(call.logged->call);
    events.span(name, node, kRows * slot, call.from, call.to,
                formatted("\"call\": {}, \"sequence\": {}{}", id, sequence,
                          call.logged == nullptr ? "" : arguments_of(*call.logged)));
  }
  for (const auto& [slot, rows] : ends) {
    events.name("thread_name", node, kRows * slot, formatted("slot {}: calls", slot));
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      events.name("thread_name", node, kRows * slot + 1 + row, formatted("slot {}: moves", slot));
    }
  }
}

/// The messages of two nodes in one call, or of one tag: communicator, sequence or tag, point to point, from, to.
using Way = std::tuple<std::uint32_t, std::uint32_t, bool, std::uint32_t, std::uint32_t>;

std::optional<Way> way_of(const Bar& bar, bool sends) {
  const MoveRecord& record = bar.record;
  const std::uint32_t peer = sends ? record.destination : record.source;
  if (bar.call == nullptr || !(sends ? record.sends : record.receives) || peer >= bar.call->nodes.size()) return {};
  const Collective collective = bar.call->call.collective;
  if (collective == Collective::kPut || collective == Collective::kGet) return {};
  const bool pair = collective == Collective::kSend || collective == Collective::kRecv;
  const auto own = static_cast<std::uint32_t>(bar.node);
  const std::uint32_t other = bar.call->nodes[peer];
  if (other == own) return {};
  return Way{record.communicator, pair ? bar.call->call.tag : record.sequence, pair, sends ? own : other,
             sends ? other : own};
}

/// An arrow from each move that sends to the one that receives its message: the first to the first, and so on. Where
/// one end has more moves than the other, as with lists of peers, it is not known which belong together.
void write_arrows(Events& events, std::span<const Bar> bars) {
  std::map<Way, std::pair<std::vector<const Bar*>, std::vector<const Bar*>>> ways;
  for (const Bar& bar : bars) {
    if (const auto way = way_of(bar, true)) ways[*way].first.push_back(&bar);
    if (const auto way = way_of(bar, false)) ways[*way].second.push_back(&bar);
  }
  std::uint64_t number = 0;
  for (auto& [way, ends] : ways) {
    auto& [from, to] = ends;
    if (from.size() != to.size()) continue;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const MoveRecord& sent = from[i]->record;
      const MoveRecord& received = to[i]->record;
      if (sent.began == 0 || received.completed < sent.began) continue;
      events.arrow(++number, from[i]->node, from[i]->row, sent.began, to[i]->node, to[i]->row, received.completed);
    }
  }
}

}  // namespace

void write_trace(std::ostream& out, std::span<const NodeTrace> nodes, std::uint64_t clock_khz) {
  Events events(out, clock_khz);
  std::vector<Bar> bars;
  for (std::size_t node = 0; node < nodes.size(); ++node) write_node(events, node, nodes[node], bars);
  write_arrows(events, bars);
}

void write_trace(std::ostream& out, const Cluster& cluster) {
  std::vector<NodeTrace> nodes(cluster.nodes());
  for (std::uint32_t node = 0; node < cluster.nodes(); ++node) {
    if (!cluster.is_native(node)) nodes[node] = {cluster.node(node).records(), cluster.node(node).calls().calls()};
  }
  write_trace(out, nodes, cluster.clock_khz());
}

void write_counters(std::ostream& out, Cluster& cluster) {
  out << "{\"clock_khz\": " << cluster.clock_khz() << ", \"nodes\": [";
  for (std::uint32_t node = 0; node < cluster.nodes(); ++node) {
    // A host may have gone in the middle of an access.
    for (int i = 0; cluster.any_node(node).busy() && i < kLongestAccess; ++i) cluster.tick();
    Host host(cluster, node);
    out << (node == 0 ? "\n{" : ",\n{");
    const char* comma = "";
    // The native engine in the place of a node counts none of this.
    for (const Counter counter : kAllCounter) {
      if (cluster.is_native(node)) break;
      const std::uint32_t at = exchange::kCounters + 8 * static_cast<std::uint32_t>(counter);
      const std::uint64_t low = host.read(at);
      const std::uint64_t value = low | static_cast<std::uint64_t>(host.read(at + 4)) << 32U;
      out << comma << '"' << name_of(counter) << "\": " << value;
      comma = ", ";
    }
    out << "}";
  }
  out << "\n]}\n";
}

}  // namespace unisono::sim
